//! What a run works with: the arguments that all verbs share, the output, and the repository.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use engine::object::ObjectStore;
use remote::Location;
use repository::config::{Encryption, UnverifiedConfig};
use repository::files::{current_user, host_name};
use repository::keys::{KeyError, Password, SlotLabel};
use repository::snapshot::{Snapshot, SnapshotFilter, SnapshotList, SnapshotSpec};
use repository::timestamp::Timestamp;
use repository::{CreateOptions, Keyring, Repository, RepositoryError, RunSettings};

use crate::arguments::GlobalArguments;
use crate::events::Event;
use crate::exit_code::ExitCode;
use crate::failure::{self, Failure};
use crate::names;
use crate::output::Output;
use crate::password;
pub use crate::place::Found;
use crate::place::Place;
use crate::units;

/// What all else than the index needs of the memory, in bytes.
const REST_BYTES_MIN: usize = 16 << 20;

/// How often a password may be typed.
const PASSWORD_TRIES: usize = 3;

/// What all verbs work with.
#[derive(Debug)]
pub struct Session {
    pub global: GlobalArguments,
    pub output: Arc<Output>,
    place: OnceLock<Place>,
}

impl Session {
    /// What all verbs work with.
    pub fn new(global: GlobalArguments, output: Arc<Output>) -> Self {
        Self {
            global,
            output,
            place: OnceLock::new(),
        }
    }

    /// Where the repository lies.
    pub fn location(&self) -> anyhow::Result<&Location> {
        let is_given = |location: &&Location| {
            location
                .directory()
                .is_none_or(|path| !path.as_os_str().is_empty())
        };
        self.global.repo.as_ref().filter(is_given).ok_or_else(|| {
            Failure::usage("no repository is given")
                .with_hint("give --repo REPOSITORY, or set ONEFOLD_REPO")
                .into()
        })
    }

    /// The same for a second repository, with a password of its own from these places.
    pub fn beside(
        &self,
        location: &Location,
        password_file: Option<&Path>,
        password_command: Option<&str>,
        password_variable: &'static str,
    ) -> Self {
        let global = GlobalArguments {
            repo: Some(location.to_owned()),
            password_file: password_file.map(Path::to_owned),
            password_command: password_command.map(str::to_owned),
            password_variable: Some(password_variable),
            ..self.global.clone()
        };
        Self::new(global, Arc::clone(&self.output))
    }

    /// The same with half of the memory: another repository has the other half.
    pub fn sharing_memory(&self) -> Self {
        let whole = self
            .global
            .memory
            .unwrap_or(RunSettings::default().memory_bytes);
        let global = GlobalArguments {
            memory: Some((whole / 2).max(REST_BYTES_MIN)),
            index_memory: self.global.index_memory.map(|bytes| bytes / 2),
            ..self.global.clone()
        };
        Self::new(global, Arc::clone(&self.output))
    }

    /// The settings of this run.
    pub fn settings(&self) -> anyhow::Result<RunSettings> {
        let mut settings = RunSettings::default();
        let global = &self.global;
        if let Some(compression) = global.compression {
            settings.compression = compression;
        }
        if let Some(threads) = global.threads {
            settings.threads = threads.get();
            settings.read_threads = threads.get().max(2);
        }
        if let Some(threads) = global.read_concurrency {
            settings.read_threads = threads.get();
        }
        if let Some(bytes) = global.memory {
            settings.memory_bytes = bytes;
        }
        settings.index_memory_bytes = global.index_memory;
        if let Some(remote) = self.place.get().and_then(Place::remote) {
            settings.store_threads = Some(remote.store().settings().connections);
        }
        let rest = settings
            .memory_bytes
            .saturating_sub(global.index_memory.unwrap_or(0));
        if rest < REST_BYTES_MIN {
            let hint = format!(
                "give at least {} more to --memory than to --index-memory",
                units::bytes(REST_BYTES_MIN as u64)
            );
            return Err(
                Failure::usage("--index-memory leaves too little of --memory")
                    .with_hint(hint)
                    .into(),
            );
        }
        Ok(settings)
    }

    /// The place of the repository.
    pub fn place(&self) -> anyhow::Result<&Place> {
        if let Some(place) = self.place.get() {
            return Ok(place);
        }
        let place = Place::open(self.location()?, &self.global.remote)?;
        let place = self.place.get_or_init(|| place);
        if let Some(remote) = place.remote() {
            self.output.count_server(remote.counting());
        }
        Ok(place)
    }

    /// Looks what is at the place of the repository, without any password.
    pub fn look(&self) -> anyhow::Result<Found> {
        self.place()?.look()
    }

    /// The repository, which must be there.
    fn find(&self) -> anyhow::Result<(Arc<dyn ObjectStore>, Box<UnverifiedConfig>)> {
        let shown = names::escaped_location(self.location()?);
        match self.look()? {
            Found::Repository { store, config } => Ok((store, config)),
            Found::Nothing => Err(no_repository(format!("there is no repository at {shown}"))),
            Found::Other { reason } => Err(no_repository(reason)),
        }
    }

    /// Opens the repository, which must be there.
    pub fn open(&self) -> anyhow::Result<Repository> {
        let (store, config) = self.find()?;
        self.open_found(store, &config)
    }

    /// Opens the repository that was found.
    pub fn open_found(
        &self,
        store: Arc<dyn ObjectStore>,
        config: &UnverifiedConfig,
    ) -> anyhow::Result<Repository> {
        let settings = self.settings()?;
        let repository = self.with_password(config, |password| {
            let store = Arc::clone(&store);
            Repository::open(store, password, settings.clone())
        })?;
        for warning in repository.warnings() {
            self.output.warning(warning);
        }
        Ok(repository)
    }

    /// Opens the keys of the repository, which must be there.
    pub fn open_keyring(&self) -> anyhow::Result<Keyring> {
        let (store, config) = self.find()?;
        self.with_password(&config, |password| {
            let store = Arc::clone(&store);
            Keyring::open(store, password)
        })
    }

    /// Opens something with the password that was given, or asks for it: several times, if need be.
    fn with_password<T>(
        &self,
        config: &UnverifiedConfig,
        open: impl Fn(Option<&Password>) -> Result<T, RepositoryError>,
    ) -> anyhow::Result<T> {
        let given = password::given(&self.global)?;
        if given.is_some() || config.encryption() == Encryption::None {
            return Ok(open(given.as_ref())?);
        }
        let mut attempt = 1;
        loop {
            let password = password::ask(&names::escaped_location(self.location()?))?;
            match open(Some(&password)) {
                Err(RepositoryError::Key(KeyError::WrongPassword { .. }))
                    if attempt < PASSWORD_TRIES =>
                {
                    attempt += 1;
                    self.output.print("Wrong password, try again.");
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Creates the repository where [`Session::look`] has found nothing, and says so.
    pub fn create(
        &self,
        password: Option<&Password>,
        options: &CreateOptions,
    ) -> anyhow::Result<Repository> {
        let location = self.location()?;
        let store = self.place()?.create()?;
        let options = CreateOptions {
            label: Some(key_label(String::new())),
            ..options.clone()
        };
        let repository = Repository::create(store, password, &options, self.settings()?)?;
        let id = repository.config().id;
        let shown = names::escaped_location(location);
        let is_encrypted = password.is_some();
        self.output.event(&Event::Created {
            repository: id.to_string(),
            location: location.to_string(),
            is_encrypted,
        })?;
        let manner = if is_encrypted {
            "encrypted"
        } else {
            "unencrypted"
        };
        self.output.note(&format!(
            "Created the {manner} repository {} at {shown}",
            id.short()
        ));
        if is_encrypted {
            self.output.note(
                "Keep the password in a second place (a password manager, a sheet of paper): \
                 without it nobody can restore anything.",
            );
        }
        Ok(repository)
    }

    /// The repository that was just created, opened as later runs open it where it lies on a server: with copies
    /// of its metadata on this machine.
    pub fn reopen(&self, created: Repository, password: &Password) -> anyhow::Result<Repository> {
        if self.place()?.remote().is_none() {
            return Ok(created);
        }
        drop(created);
        let (store, _) = self.find()?;
        Ok(Repository::open(store, Some(password), self.settings()?)?)
    }

    /// The password for a new repository: given, or asked for twice.
    pub fn new_password(&self) -> anyhow::Result<Password> {
        match password::given(&self.global)? {
            Some(password) => Ok(password),
            None => {
                let location = names::escaped_location(self.location()?);
                password::ask_new(
                    &format!("New password for the repository {location}: "),
                    failure::HINT_PASSWORD_SOURCES,
                    "no repository was created",
                )
            }
        }
    }

    /// Names the snapshots that can't be read.
    pub fn tell_unreadable(&self, list: &SnapshotList) {
        for unreadable in &list.unreadable {
            let id = unreadable.id.short();
            let error = &unreadable.error;
            self.output
                .warning(&format!("snapshot {id} can't be read: {error}"));
        }
    }

    /// Finds a snapshot.
    pub fn snapshot(
        &self,
        repository: &Repository,
        spec: &SnapshotSpec,
        filter: &SnapshotFilter,
    ) -> anyhow::Result<Snapshot> {
        let resolved = repository.snapshot(spec, filter)?;
        for unreadable in &resolved.unreadable {
            self.output.warning(&format!(
                "snapshot {} can't be read, and may be the latest one: {}",
                unreadable.id.short(),
                unreadable.error
            ));
        }
        Ok(resolved.snapshot)
    }
}

/// What a key that is made here and now is labelled with.
pub fn key_label(name: String) -> SlotLabel {
    SlotLabel {
        created: Timestamp::now(),
        host: host_name(),
        user: current_user(),
        name,
    }
}

/// There is none where one was expected.
pub fn no_repository(reason: String) -> anyhow::Error {
    Failure::new(ExitCode::NoRepository, reason)
        .with_hint(
            "check --repo or ONEFOLD_REPO (is the disk mounted?); `onefold init` creates a repository",
        )
        .into()
}

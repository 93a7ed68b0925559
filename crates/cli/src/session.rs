//! What a run works with: the arguments that all verbs share, the output, and the repository.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use engine::object::{LocalStore, ObjectKind, ObjectStore, StoreError, TEMPORARY_STALE_AFTER};
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
use crate::units;

/// What all else than the index needs of the memory, in bytes.
const REST_BYTES_MIN: usize = 16 << 20;

/// How often a password may be typed.
const PASSWORD_TRIES: usize = 3;

/// Names in a directory that is laid out for objects, besides those of kinds of objects.
const LAYOUT_NAMES: [&str; 2] = ["tmp", "lost+found"];

/// What all verbs work with.
#[derive(Debug)]
pub struct Session {
    pub global: GlobalArguments,
    pub output: Arc<Output>,
}

/// What is at the place of a repository.
pub enum Found {
    /// A repository.
    Repository {
        store: Arc<LocalStore>,
        config: Box<UnverifiedConfig>,
    },
    /// Nothing, or an empty directory: there is room for a repository.
    Nothing,
    /// Something else, which must be left alone.
    Other {
        /// What, for a person.
        reason: String,
    },
}

impl Session {
    /// The directory of the repository.
    pub fn location(&self) -> anyhow::Result<&Path> {
        match &self.global.repo {
            Some(path) if !path.as_os_str().is_empty() => Ok(path),
            _ => Err(Failure::usage("no repository is given")
                .with_hint("give --repo DIR, or set ONEFOLD_REPO")
                .into()),
        }
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

    /// Looks what is at the place of the repository, without any password.
    pub fn look(&self) -> anyhow::Result<Found> {
        let location = self.location()?;
        let shown = names::escaped_path(location);
        match fs::metadata(location) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(error).with_context(|| format!("cannot open {shown}")),
            Ok(metadata) if !metadata.is_dir() => {
                return Ok(Found::Other {
                    reason: format!("{shown} is not a directory"),
                });
            }
            Ok(_) => {}
        }
        let store = Arc::new(LocalStore::open(location)?);
        if let Some(config) = Repository::inspect(store.as_ref())? {
            // What killed runs left half-written a day ago or more. It only takes room: where it
            // can't be removed (a read-only medium), it stays.
            let _ = store.remove_stale_temporaries(TEMPORARY_STALE_AFTER);
            let config = Box::new(config);
            return Ok(Found::Repository { store, config });
        }
        refuse_beheaded(store.as_ref(), location)?;
        match foreign_name(location).with_context(|| format!("cannot read {shown}"))? {
            None => Ok(Found::Nothing),
            Some(name) => Ok(Found::Other {
                reason: format!(
                    "{shown} holds other things ('{name}' among them), and no repository"
                ),
            }),
        }
    }

    /// The repository, which must be there.
    fn find(&self) -> anyhow::Result<(Arc<LocalStore>, Box<UnverifiedConfig>)> {
        let shown = names::escaped_path(self.location()?);
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
        store: Arc<LocalStore>,
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
            let password = password::ask(self.location()?)?;
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
        let store = Arc::new(LocalStore::create(location)?);
        let options = CreateOptions {
            label: Some(key_label(String::new())),
            ..options.clone()
        };
        let repository = Repository::create(store, password, &options, self.settings()?)?;
        let id = repository.config().id;
        let shown = names::escaped_path(location);
        let is_encrypted = password.is_some();
        self.output.event(&Event::Created {
            repository: id.to_string(),
            location: location.to_string_lossy().into_owned(),
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

    /// The password for a new repository: given, or asked for twice.
    pub fn new_password(&self) -> anyhow::Result<Password> {
        match password::given(&self.global)? {
            Some(password) => Ok(password),
            None => {
                let location = names::escaped_path(self.location()?);
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

/// A repository whose `config` is gone must not be taken for an empty place.
fn refuse_beheaded(store: &dyn ObjectStore, location: &Path) -> anyhow::Result<()> {
    // A key without a `config` is what is left of an `init` that was interrupted.
    let has_config = location.join(ObjectKind::Config.directory()).exists();
    let kinds = [
        ObjectKind::Snapshot,
        ObjectKind::Container,
        ObjectKind::Index,
        ObjectKind::Key,
    ];
    for kind in &kinds[..if has_config { 4 } else { 3 }] {
        let mut count = 0u64;
        match store.list(*kind, &mut |_, _| count += 1) {
            Ok(()) => {}
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        if count > 0 {
            return Err(beheaded(location, count, kind.directory()));
        }
    }
    Ok(())
}

fn beheaded(location: &Path, count: u64, directory: &str) -> anyhow::Error {
    let message = format!(
        "the file `config` of the repository at {} is missing or overwritten ({} in `{directory}`)",
        names::escaped_path(location),
        units::counted(count, "object is", "objects are"),
    );
    Failure::new(ExitCode::Damaged, message)
        .with_hint(failure::HINT_CONFIG_DAMAGE)
        .into()
}

/// A name in a directory that is none of a repository's, for a person.
fn foreign_name(directory: &Path) -> std::io::Result<Option<String>> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let is_ours = LAYOUT_NAMES.iter().any(|ours| name == *ours)
            || ObjectKind::ALL
                .iter()
                .any(|&kind| kind != ObjectKind::Config && name == kind.directory());
        if !is_ours {
            return Ok(Some(names::escaped_path(Path::new(&name))));
        }
    }
    Ok(None)
}

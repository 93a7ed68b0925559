//! An open repository: configuration, secrets and engine together.
//!
//! Opening goes in steps, so that a person is asked for a password only when it can help:
//! [`Repository::inspect`] reads the configuration without secrets, [`Repository::open`] opens a
//! key slot and checks the configuration's authentication.

use std::sync::{Arc, Mutex};

use chunking::structure::Structure;
use chunking::{Chunker, KeyMaterial, Parameters};
use engine::container::CompressionChoice;
use engine::format::ObjectError;
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, StoreError};
use engine::pipeline::{DeltaLevel, PUT_THREADS_DEFAULT, WriteError};
use engine::rewriting::Rewriting;
use engine::{Engine, EngineSettings};

use crate::config::{Acceleration, Config, ConfigError, Encryption, Features, UnverifiedConfig};
use crate::deletion::condemned::Condemned;
use crate::deletion::runs::{self, Registration, RunKind};
use crate::keyring::told;
use crate::keys::{
    Argon2Cost, EpochFinder, KeyError, KeySlot, LockedOut, OpenedSecrets, Password, Secret,
    Secrets, SlotLabel, open_secrets,
};
use crate::snapshot::{
    Resolved, Snapshot, SnapshotChange, SnapshotError, SnapshotFilter, SnapshotList, SnapshotSpec,
};
use crate::timestamp::Timestamp;

/// Name and version of this program, as written into what it stores.
pub const PROGRAM: &str = concat!("onefold ", env!("CARGO_PKG_VERSION"));

/// Why a repository can't be created, opened or used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// Its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The configuration is lost, but what it belongs to is there.
    #[error(
        "{location} holds {kind} of a repository, but no config: a new repository there would bury them; bring the config object back from a copy, or choose another place"
    )]
    LostConfig {
        /// The store, for a person.
        location: String,
        /// What is there.
        kind: &'static str,
    },
    /// A snapshot.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// An object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// What is to be stored in it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The chunker's parameters.
    #[error(transparent)]
    Chunker(#[from] chunking::ParameterError),
}

impl From<StoreError> for RepositoryError {
    fn from(error: StoreError) -> Self {
        RepositoryError::Object(error.into())
    }
}

/// A store that holds backups but no configuration is a damaged repository, not an empty place.
fn refuse_remains(store: &dyn ObjectStore) -> Result<(), RepositoryError> {
    for kind in [ObjectKind::Container, ObjectKind::Snapshot] {
        let mut is_empty = true;
        store.list(kind, &mut |_, _| is_empty = false)?;
        if !is_empty {
            return Err(RepositoryError::LostConfig {
                location: store.location(),
                kind: kind.directory(),
            });
        }
    }
    Ok(())
}

/// How a repository cuts files, with the secret of its chunker. Whoever knows the secret of one repository that was created
/// with it knows that of the others.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedChunker {
    parameters: Parameters,
    acceleration: Acceleration,
    structure: Structure,
    secret: Option<Secret>,
}

impl std::fmt::Debug for SharedChunker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedChunker")
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

/// How a new repository is to be.
#[derive(Debug, Clone)]
pub struct CreateOptions {
    /// Chunker and its parameters; the default when not given.
    pub chunker: Option<Parameters>,
    /// How cutting is accelerated.
    pub acceleration: Acceleration,
    /// Formats whose parts are cut apart; when not given, tar, unless streams are cut by segments.
    pub structure: Option<Structure>,
    /// Cut as another repository does, with its secret: beats `chunker`, `acceleration` and `structure`.
    pub chunker_of: Option<SharedChunker>,
    /// Take a chunker without a key in an encrypted repository.
    pub allow_unkeyed_chunker: bool,
    /// Container size in bytes; 4 MiB when not given.
    pub container_bytes: Option<u32>,
    /// Plain bytes at which a group is closed; 1 MiB when not given.
    pub group_bytes: Option<u32>,
    /// Which duplicates backups store again.
    pub rewriting: Rewriting,
    /// How backups store chunks that resemble others. With [`DeltaLevel::Off`], no backup can.
    pub deltas: DeltaLevel,
    /// What a guess at the password costs.
    pub cost: Argon2Cost,
    /// Who creates it, to be told in the list of its keys. Only with a password.
    pub label: Option<SlotLabel>,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            chunker: None,
            acceleration: Acceleration::None,
            structure: None,
            chunker_of: None,
            allow_unkeyed_chunker: false,
            container_bytes: None,
            group_bytes: None,
            rewriting: Rewriting::Off,
            deltas: DeltaLevel::default(),
            cost: Argon2Cost::DEFAULT,
            label: None,
        }
    }
}

/// Settings of one run that leave no trace in the repository's parameters.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// How hard to compress.
    pub compression: CompressionChoice,
    /// Threads for compression and restore.
    pub threads: usize,
    /// Threads that read: files when storing, containers when reading back.
    pub read_threads: usize,
    /// Objects that are read, or written, at the same time; by default as many as suit a disk. A
    /// store behind a network gains by more.
    pub store_threads: Option<usize>,
    /// Total for queues and caches, in bytes.
    pub memory_bytes: usize,
    /// What the index has of it, in bytes: by default 64 MiB, at most a quarter of the total.
    pub index_memory_bytes: Option<usize>,
}

impl Default for RunSettings {
    fn default() -> Self {
        let engine = EngineSettings::default();
        Self {
            compression: engine.compression,
            threads: engine.threads,
            read_threads: engine.threads.max(2),
            store_threads: None,
            memory_bytes: engine.memory_bytes,
            index_memory_bytes: engine.index_memory_bytes,
        }
    }
}

/// An open repository.
#[derive(Debug)]
pub struct Repository {
    config: Config,
    engine: Engine,
    settings: RunSettings,
    locked_out: Option<LockedOut>,
    warnings: Vec<String>,
    /// The chunker's secret, if it has one.
    chunker_secret: Option<Secret>,
}

impl Repository {
    /// Reads the configuration without secrets: is there a repository, and is it encrypted?
    /// Nothing when the store holds none.
    ///
    /// # Errors
    /// When the configuration is unreadable, damaged or too new.
    pub fn inspect(store: &dyn ObjectStore) -> Result<Option<UnverifiedConfig>, RepositoryError> {
        match UnverifiedConfig::read(store) {
            Ok(config) => Ok(Some(config)),
            Err(ConfigError::NotARepository { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a repository could be created with these options. Touches nothing.
    ///
    /// # Errors
    /// Which parameter is impossible.
    pub fn check_options(
        is_encrypted: bool,
        options: &CreateOptions,
    ) -> Result<(), RepositoryError> {
        Self::config_of(is_encrypted, options).map(|_| ())
    }

    /// The configuration of a new repository, with an id of its own.
    fn config_of(is_encrypted: bool, options: &CreateOptions) -> Result<Config, RepositoryError> {
        let encryption = if is_encrypted {
            Encryption::Aes256Gcm
        } else {
            Encryption::None
        };
        let now = Timestamp::now().seconds;
        let mut config = Config::new(ObjectId::random(), encryption, now, PROGRAM);
        if let Some(chunker) = options.chunker {
            config.chunker = chunker;
        }
        config.acceleration = options.acceleration;
        config.structure = options.structure.unwrap_or(match options.acceleration {
            Acceleration::Segments { .. } => Structure::None,
            _ => config.structure,
        });
        if let Some(shared) = &options.chunker_of {
            config.chunker = shared.parameters;
            config.acceleration = shared.acceleration;
            config.structure = shared.structure;
        }
        config.rewriting = options.rewriting;
        config.deltas = options.deltas;
        if options.deltas != DeltaLevel::Off {
            config.features.incompatible |= Features::DELTAS;
        }
        if let Some(bytes) = options.container_bytes {
            config.container_bytes = bytes;
        }
        if let Some(bytes) = options.group_bytes {
            config.group_bytes = bytes;
        }
        if options.allow_unkeyed_chunker {
            config.features.incompatible |= Features::UNKEYED_CHUNKER;
        }
        config.chunker.validate()?;
        config.validate()?;
        Ok(config)
    }

    /// Creates a repository: encrypted under `password`, or readable by anybody without one.
    ///
    /// # Errors
    /// When there is one already, a parameter is impossible, or the store fails.
    pub fn create(
        store: Arc<dyn ObjectStore>,
        password: Option<&Password>,
        options: &CreateOptions,
        settings: RunSettings,
    ) -> Result<Self, RepositoryError> {
        if Self::inspect(store.as_ref())?.is_some() {
            let location = store.location();
            return Err(ConfigError::AlreadyExists { location }.into());
        }
        refuse_remains(store.as_ref())?;
        let config = Self::config_of(password.is_some(), options)?;
        let secrets = Secrets::random();
        let shared = options.chunker_of.as_ref();
        let secrets = match shared.and_then(|shared| shared.secret.clone()) {
            Some(secret) => secrets.with_chunker(secret),
            None => secrets,
        };
        let id = ObjectId::random();
        let cost = options.cost;
        let slot = match (password, &options.label) {
            (Some(password), Some(label)) => {
                KeySlot::seal_labelled(&secrets, password, cost, config.id, id, label)?
            }
            (Some(password), None) => {
                KeySlot::seal_password(&secrets, password, cost, config.id, id)?
            }
            (None, _) => KeySlot::seal_plain(&secrets, config.id, id),
        };
        slot.write(store.as_ref())?;
        config.create(store.as_ref(), &secrets)?;
        let opened = OpenedSecrets {
            secrets,
            slot: id,
            slot_key: None,
            locked_out: None,
            warnings: Vec::new(),
        };
        Self::assemble(store, config, opened, settings)
    }

    /// Opens a repository.
    ///
    /// # Errors
    /// When there is none, the password is wrong or missing, or something is damaged.
    pub fn open(
        store: Arc<dyn ObjectStore>,
        password: Option<&Password>,
        settings: RunSettings,
    ) -> Result<Self, RepositoryError> {
        let unverified = UnverifiedConfig::read(store.as_ref())?;
        let opened = open_secrets(
            store.as_ref(),
            unverified.id(),
            unverified.encryption(),
            password,
        )?;
        let config = unverified.authenticate(&opened.secrets)?;
        Self::assemble(store, config, opened, settings)
    }

    fn assemble(
        store: Arc<dyn ObjectStore>,
        config: Config,
        opened: OpenedSecrets,
        settings: RunSettings,
    ) -> Result<Self, RepositoryError> {
        let OpenedSecrets {
            secrets,
            slot,
            slot_key,
            locked_out,
            warnings,
        } = opened;
        let key = if config.chunker.algorithm.info().keyed {
            KeyMaterial::Table(secrets.gear_table())
        } else {
            KeyMaterial::Unkeyed
        };
        let has_key = matches!(key, KeyMaterial::Table(_));
        let chunker_secret = has_key.then(|| secrets.chunker().clone());
        let chunker = Chunker::new(&config.chunker, key)?;
        let vault = secrets.vault(config.id, config.encryption.is_padded());
        let fingerprinter = secrets.fingerprinter();
        let finder = EpochFinder {
            store: Arc::clone(&store),
            repository: config.id,
            slot,
            slot_key,
            secrets: Mutex::new(secrets),
            listed: Mutex::default(),
        };
        let engine = Engine::new(
            store,
            vault.finding(Box::new(move |epoch| finder.find(epoch))),
            fingerprinter,
            config.acceleration.cutter(chunker)?,
            EngineSettings {
                container_bytes: config.container_bytes,
                group_bytes: config.group_bytes,
                structure: config.structure,
                compression: settings.compression,
                threads: settings.threads,
                fetch_threads: settings.store_threads.unwrap_or(settings.read_threads),
                put_threads: settings.store_threads.unwrap_or(PUT_THREADS_DEFAULT),
                memory_bytes: settings.memory_bytes,
                index_memory_bytes: settings.index_memory_bytes,
                rewriting: config.rewriting,
                deltas: config.deltas.settings(),
            },
        );
        Ok(Self {
            config,
            engine,
            settings,
            chunker_secret,
            locked_out,
            warnings: told(&warnings, locked_out),
        })
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Do both repositories cut files alike: the same chunker, with the same secret if it has one? Then chunks of one are
    /// chunks of the other.
    #[must_use]
    pub fn cuts_like(&self, other: &Repository) -> bool {
        self.chunker_to_share() == other.chunker_to_share()
    }

    /// How it cuts files, for another repository that is to cut them alike.
    #[must_use]
    pub fn chunker_to_share(&self) -> SharedChunker {
        SharedChunker {
            parameters: self.config.chunker,
            acceleration: self.config.acceleration,
            structure: self.config.structure,
            secret: self.chunker_secret.clone(),
        }
    }

    /// Its engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// May it be written to: by this version, and with the key that opened it?
    ///
    /// # Errors
    /// When a feature is not known, or the newest epoch was begun without this key.
    pub fn check_writable(&self) -> Result<(), RepositoryError> {
        self.config.check_writable()?;
        match self.locked_out {
            Some(locked_out) => Err(KeyError::LockedOut(locked_out).into()),
            None => Ok(()),
        }
    }

    /// May containers be packed anew, as a prune does and a repair?
    ///
    /// # Errors
    /// As [`Repository::check_writable`], and when older versions that can't read the result may use the repository.
    pub fn check_may_pack(&self) -> Result<(), RepositoryError> {
        self.check_writable()?;
        match self.config.may_have_multi_section() {
            true => Ok(()),
            false => Err(ConfigError::OneSection.into()),
        }
    }

    /// Registers this process as at work: before it lists or reads anything that others may delete.
    ///
    /// # Errors
    /// When the store can't be written, or, by one who is not to read only, the repository
    /// ([`Repository::check_writable`]).
    pub fn register(&self, kind: RunKind, host: &str) -> Result<Registration, RepositoryError> {
        if kind != RunKind::Reader {
            self.check_writable()?;
        }
        let engine = self.engine();
        Ok(Registration::begin(
            engine.store(),
            engine.vault(),
            kind,
            host,
        )?)
    }

    /// Its engine, which takes what is condemned for gone. For those who are registered as writers.
    ///
    /// # Errors
    /// When it is not known what is condemned.
    pub fn engine_without_condemned(&self) -> Result<Engine, RepositoryError> {
        let condemned = Condemned::load(self.store(), self.engine.vault())?;
        Ok(self.engine.with_condemned(Arc::new(condemned.objects())))
    }

    /// Settings of this run.
    #[must_use]
    pub fn settings(&self) -> &RunSettings {
        &self.settings
    }

    /// What a person should be told of its keys, such as a damaged slot beside the one that
    /// opened.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn store(&self) -> &dyn ObjectStore {
        self.engine.store().as_ref()
    }

    /// All snapshots, oldest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn snapshots(&self) -> Result<SnapshotList, RepositoryError> {
        let mut list = Snapshot::load_all(self.store(), self.engine.vault())?;
        // Listed after them: one that came with a run that has expired before is among them.
        let expired = runs::expired(self.store())?;
        for snapshot in &mut list.snapshots {
            snapshot.is_doubtful = snapshot
                .run
                .is_some_and(|run| expired.binary_search(&run).is_ok());
        }
        Ok(list)
    }

    /// The snapshot that `spec` names; `filter` narrows `latest`. With it come the snapshots
    /// that could not be read when `latest` was asked for: a later one may be among them, which
    /// a person must be told.
    ///
    /// # Errors
    /// When there is none, or several, or it is damaged.
    pub fn snapshot(
        &self,
        spec: &SnapshotSpec,
        filter: &SnapshotFilter,
    ) -> Result<Resolved, RepositoryError> {
        Ok(spec.resolve(self.store(), self.engine.vault(), filter)?)
    }

    /// Stores a change of a snapshot: a new object in the place of the old one. Returns the
    /// snapshot with its new id, or nothing when it was like that already.
    ///
    /// # Errors
    /// When the repository may not be written to, the store fails, or the snapshot is gone
    /// ([`SnapshotError::Vanished`]).
    pub fn change_snapshot(
        &self,
        snapshot: &Snapshot,
        change: &SnapshotChange,
    ) -> Result<Option<Snapshot>, RepositoryError> {
        self.check_writable()?;
        let Some(changed) = change.of(snapshot) else {
            return Ok(None);
        };
        let changed = snapshot.replace(changed, self.store(), self.engine.vault())?;
        Ok(Some(changed))
    }

    /// Deletes what changes that were cut off have left of earlier forms of these snapshots, and
    /// returns how many objects that were.
    ///
    /// # Errors
    /// When the repository may not be written to, or the store fails.
    pub fn delete_replaced(&self, list: &SnapshotList) -> Result<u64, RepositoryError> {
        self.check_writable()?;
        Ok(list.delete_replaced(self.store())?)
    }

    /// Is there an object of that key?
    pub(crate) fn object_bytes(&self, key: ObjectKey) -> Result<u64, RepositoryError> {
        Ok(self.store().get_tail(&key, 0)?.object_bytes)
    }
}

//! The engine of one repository: what its rooms share.

use std::collections::HashSet;
use std::sync::Arc;

use chunking::structure::Structure;

use crate::container::{CompressionChoice, CompressionLevel, ContainerReader, RemapSet};
use crate::fingerprint::Fingerprinter;
use crate::format::{ObjectError, Vault};
use crate::object::{DiscardingStore, ObjectId, ObjectStore};
use crate::pipeline::{
    Cutter, DeltaSettings, FingerprintPool, MemoryShares, PUT_THREADS_DEFAULT, ReadingRoom, Stages,
    StreamChunking, WriteError, Writer,
};
use crate::restore::Reader;
use crate::rewriting::Rewriting;

/// Settings of an engine. Those of the repository's `config` come from there; the others are
/// the user's for this run.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Size of a container in bytes (from `config`).
    pub container_bytes: u32,
    /// Plain bytes at which a group is closed (from `config`).
    pub group_bytes: u32,
    /// Formats whose parts are cut apart (from `config`); not where the cutter cuts segments.
    pub structure: Structure,
    /// How hard to compress.
    pub compression: CompressionChoice,
    /// Threads for compression; other stages have a few of their own.
    pub threads: usize,
    /// Threads that fetch containers to read them back.
    pub fetch_threads: usize,
    /// Containers that are put into the store at the same time.
    pub put_threads: usize,
    /// Total for queues and caches, in bytes.
    pub memory_bytes: usize,
    /// What the index has of it; otherwise as [`MemoryShares::of`] says.
    pub index_memory_bytes: Option<usize>,
    /// Which duplicates are stored again.
    pub rewriting: Rewriting,
    /// How new chunks that resemble others are stored as deltas; nothing: they are not.
    pub deltas: Option<DeltaSettings>,
}

/// Containers of metadata have at least this size, so that any page fits one.
const METADATA_CONTAINER_BYTES_MIN: u32 = 2 << 20;

/// Groups of metadata are closed at this many bytes: small enough to be read for one page.
pub(crate) const METADATA_GROUP_BYTES: u32 = 256 << 10;

impl EngineSettings {
    /// How the memory is shared out.
    #[must_use]
    pub fn shares(&self) -> MemoryShares {
        let window_bytes = self.rewriting.window_bytes(self.container_bytes);
        let shares = match self.deltas {
            Some(_) => MemoryShares::of_deltas(self.memory_bytes, self.index_memory_bytes),
            None => MemoryShares::of(self.memory_bytes, self.index_memory_bytes),
        };
        shares.with_window(window_bytes)
    }

    /// Plain bytes at which a group of metadata is closed: few enough to be read for one page.
    #[must_use]
    pub fn metadata_group_bytes(&self) -> u32 {
        METADATA_GROUP_BYTES
    }

    /// Size of a container of metadata in bytes.
    #[must_use]
    pub fn metadata_container_bytes(&self) -> u32 {
        self.container_bytes.max(METADATA_CONTAINER_BYTES_MIN)
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            container_bytes: 4 << 20,
            group_bytes: 1 << 20,
            structure: Structure::None,
            compression: CompressionLevel::DEFAULT.into(),
            threads,
            fetch_threads: threads.max(2),
            put_threads: PUT_THREADS_DEFAULT,
            memory_bytes: 256 << 20,
            rewriting: Rewriting::Off,
            deltas: None,
            index_memory_bytes: None,
        }
    }
}

/// A store with the keys and settings to use it: makes writers and readers.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn ObjectStore>,
    vault: Arc<Vault>,
    fingerprinter: Arc<Fingerprinter>,
    cutter: Arc<Cutter>,
    settings: EngineSettings,
    stages: Stages,
    is_discarding: bool,
    condemned: Arc<HashSet<ObjectId>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("store", &self.store.location())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine on `store`; a chunker alone is a cutter as well.
    #[must_use]
    pub fn new(
        store: Arc<dyn ObjectStore>,
        vault: Vault,
        fingerprinter: Fingerprinter,
        cutter: impl Into<Cutter>,
        settings: EngineSettings,
    ) -> Self {
        Self {
            store,
            vault: Arc::new(vault),
            fingerprinter: Arc::new(fingerprinter),
            cutter: Arc::new(cutter.into()),
            settings,
            stages: Stages::default(),
            is_discarding: false,
            condemned: Arc::default(),
        }
    }

    /// The same engine, whose stages report to these meters: for one operation.
    #[must_use]
    pub fn metered(&self, stages: &Stages) -> Self {
        Self {
            stages: stages.clone(),
            ..self.clone()
        }
    }

    /// The same engine, whose writers store again what this says.
    #[must_use]
    pub fn rewriting(&self, rewriting: Rewriting) -> Self {
        let mut engine = self.clone();
        engine.settings.rewriting = rewriting;
        engine
    }

    /// The same engine, whose writers store similar chunks as this says.
    #[must_use]
    pub fn with_deltas(&self, deltas: Option<DeltaSettings>) -> Self {
        let mut engine = self.clone();
        engine.settings.deltas = deltas;
        engine
    }

    /// The same engine, which takes these container objects for gone, since they will be deleted: its writers refer
    /// to no chunk in them, neither found by the index, nor as a base, nor from an earlier stream. Its readers
    /// read them as long as they are there. A container that a remap says lies in another object, too, is there.
    #[must_use]
    pub fn with_condemned(&self, condemned: Arc<HashSet<ObjectId>>) -> Self {
        Self {
            condemned,
            ..self.clone()
        }
    }

    /// The container objects that its writers take for gone.
    #[must_use]
    pub fn condemned(&self) -> &Arc<HashSet<ObjectId>> {
        &self.condemned
    }

    /// What its stages report to.
    #[must_use]
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// Where its objects lie.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// What seals its objects.
    #[must_use]
    pub fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    /// What fingerprints its chunks.
    #[must_use]
    pub fn fingerprinter(&self) -> &Arc<Fingerprinter> {
        &self.fingerprinter
    }

    /// What cuts its streams.
    #[must_use]
    pub fn cutter(&self) -> &Arc<Cutter> {
        &self.cutter
    }

    /// Threads that cut one stream, where the cutter can use several: as many as their segments
    /// fit an eighth of the memory.
    #[must_use]
    pub fn threads_a_stream(&self) -> usize {
        self.cutter.segment_bytes().map_or(1, |segment_bytes| {
            let fitting = self.settings.memory_bytes / 8 / segment_bytes;
            fitting.clamp(1, self.settings.threads.max(1))
        })
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// The same engine on a store that takes writes and drops them: for dry runs.
    #[must_use]
    pub fn discarding(&self) -> Self {
        Self {
            store: Arc::new(DiscardingStore::new(Arc::clone(&self.store))),
            is_discarding: true,
            ..self.clone()
        }
    }

    /// Is what it stores dropped?
    #[must_use]
    pub fn is_discarding(&self) -> bool {
        self.is_discarding
    }

    /// How it turns streams into chunks, with threads of its own to fingerprint them.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub fn stream_chunking(&self) -> std::io::Result<StreamChunking> {
        let fingerprinter = Arc::clone(&self.fingerprinter);
        Ok(StreamChunking {
            cutter: Arc::clone(&self.cutter),
            threads: self.threads_a_stream(),
            fingerprints: FingerprintPool::start(
                fingerprinter,
                self.settings.threads,
                &self.stages,
            )?,
            structure: self.settings.structure,
            stages: self.stages.clone(),
        })
    }

    /// Opens the index and starts what stores new chunks.
    ///
    /// # Errors
    /// When the store can't be read, or the system starts no more threads.
    pub fn writer(&self) -> Result<Writer, WriteError> {
        Writer::start(self)
    }

    /// What reads streams back.
    ///
    /// # Errors
    /// When the store's remaps can't be read.
    pub fn reader(&self) -> Result<Reader, ObjectError> {
        let share = self.settings.memory_bytes / 4;
        Ok(Reader::new(Arc::new(self.container_reader(share)?), share))
    }

    /// The threads that read many streams or containers back at once; what they hold between
    /// them is an eighth of the memory.
    #[must_use]
    pub fn reading_room(&self) -> ReadingRoom {
        let EngineSettings {
            fetch_threads,
            threads,
            memory_bytes,
            ..
        } = self.settings;
        ReadingRoom::new(fetch_threads, threads, memory_bytes / 8, &self.stages)
    }

    pub(crate) fn container_reader(
        &self,
        cache_bytes: usize,
    ) -> Result<ContainerReader, ObjectError> {
        let remaps = RemapSet::load(self.store.as_ref(), &self.vault)?;
        Ok(ContainerReader::new(
            Arc::clone(&self.store),
            Arc::clone(&self.vault),
            Arc::clone(&self.fingerprinter),
            remaps,
            cache_bytes,
        ))
    }
}

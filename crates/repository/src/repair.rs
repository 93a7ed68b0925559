//! Makes good what can be made good, and says what is lost (docs/design/0020-repair.md).
//!
//! Rooms: snapshots without what is lost (`snapshots.rs`, `tree.rs`, `streams.rs`), what is whole of damaged containers
//! (`containers.rs`), remaps (`remaps.rs`), which chunks are whole (`health.rs`); here, the index again from the
//! containers.
//!
//! What is lost of the index, or damaged, is made good from the metadata of the containers, which
//! say what is in them: runs that are damaged are replaced, containers that no run covers are taken
//! in. With `all`, every run is replaced. Nothing else is touched, no snapshot and no container; what
//! takes the place of a run is durable before that run is deleted.

mod containers;
mod health;
mod recover;
mod remaps;
mod snapshots;
mod streams;
mod tree;

pub use containers::{RepairContainersOptions, RepairContainersReport};
pub use recover::{RecoverOptions, RecoverReport};
pub use remaps::{RepairRemapsOptions, RepairRemapsReport};
pub use snapshots::{
    RepairSnapshotsOptions, RepairSnapshotsReport, RepairedSnapshot, SnapshotOutcome,
};

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::container::{CompactionError, ContainerId, ContainerSummary, ObjectMetadata};
use engine::format::ObjectError;
use engine::index::{ObjectsToIndex, RunBuilder, RunSet};
use engine::object::{ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::WriteError;
use engine::restore::{MetadataSink, ReadError, read_metadata};

use crate::config::ConfigError;
use crate::progress::{Problem, Progress};
use crate::repository::{Repository, RepositoryError};

/// Containers that can't be read and are named; all are counted.
const PROBLEMS_TOLD_MAX: usize = 10_000;

/// Why something was not repaired, or not wholly. What there was before is there still.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// What is new can't be stored.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Something can't be read just now, and may be whole: nobody knows what is lost.
    #[error("it can't be said what is lost: {0}")]
    Read(Box<ReadError>),
    /// What is whole of a container can't be moved.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    /// A prune took the repair for dead, and may have deleted what it refers to.
    #[error(
        "the repair showed no sign of life for so long that a prune took it for dead, so what it wrote last was taken back; run it again"
    )]
    TakenForDead,
    /// Somebody asked for a stop.
    #[error("interrupted; nothing is worse than before, and the next run goes on")]
    Interrupted,
}

impl From<ObjectError> for RepairError {
    fn from(error: ObjectError) -> Self {
        RepairError::Repository(error.into())
    }
}

impl From<ConfigError> for RepairError {
    fn from(error: ConfigError) -> Self {
        RepairError::Repository(error.into())
    }
}

/// A file, or a part of a directory, of which something is lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loss {
    /// Its path in the snapshot.
    pub path: Vec<u8>,
    /// What is lost, and what becomes of the rest.
    pub message: String,
    /// Bytes of a file that can be read.
    pub bytes_readable: u64,
    /// Bytes of a file that can't.
    pub bytes_lost: u64,
    /// Is it a directory of which entries are lost, rather than a file?
    pub is_directory: bool,
    /// Is what is left of a file kept, under another name?
    pub is_kept: bool,
}

impl Loss {
    fn directory(path: &[u8], message: String) -> Self {
        Self {
            path: if path.is_empty() { b"/" } else { path }.to_vec(),
            message,
            is_directory: true,
            ..Self::default()
        }
    }
}

/// How the index is to be repaired.
#[derive(Debug, Clone, Copy, Default)]
pub struct RepairIndexOptions {
    /// Build all of it again: also what seems to be sound, and what was sealed in an epoch whose
    /// secret is not at hand.
    pub all: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What a repair of the index found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairIndexReport {
    /// Index runs that were there.
    pub runs: u64,
    /// Those of them that were damaged.
    pub runs_damaged: u64,
    /// Those that were, or would be, replaced.
    pub runs_replaced: u64,
    /// Container objects that were there.
    pub containers: u64,
    /// Those whose chunks were, or would be, taken into the index.
    pub containers_indexed: u64,
    /// Chunks in these.
    pub chunks_indexed: u64,
    /// Containers whose metadata can't be read: backups store what was in them again.
    pub containers_unreadable: u64,
}

/// Takes what containers say into new runs.
struct Rebuild<'a> {
    store: &'a dyn ObjectStore,
    runs: &'a RunSet,
    to_index: ObjectsToIndex<'a>,
    /// Containers that were set aside.
    aside: HashSet<ContainerId>,
    progress: &'a Progress,
    is_dry_run: bool,
    state: Mutex<State>,
    has_failed: AtomicBool,
}

struct State {
    builder: RunBuilder,
    report: RepairIndexReport,
    unreadable: Vec<(ObjectKey, String)>,
    failure: Option<ObjectError>,
}

impl Repository {
    /// Repairs the index. An interruption leaves it as whole as it was, or more so.
    ///
    /// # Errors
    /// When the store can't be listed, read or written. Containers that are damaged are reported to
    /// `progress`, and counted.
    pub fn repair_index(
        &self,
        options: RepairIndexOptions,
        progress: &Progress,
    ) -> Result<RepairIndexReport, RepositoryError> {
        if !options.dry_run {
            self.check_writable()?;
        }
        let engine = self.engine().metered(&progress.stages);
        let memory_bytes = engine.settings().memory_bytes;
        let runs = RunSet::open(
            Arc::clone(engine.store()),
            Arc::clone(engine.vault()),
            engine.settings().shares().index_bytes,
        )?;
        runs.verify();
        let mut report = RepairIndexReport::default();
        let replaced = self.replaced(&runs, options, &mut report, progress)?;
        // What was set aside stays so, if that can still be read.
        let aside = runs.covered_without_entries();
        let mut builder = RunBuilder::new(memory_bytes / 2);
        builder.keep_generations(&runs);
        runs.leave_out(&|key| replaced.contains(&key));

        let reader = engine.reader()?;
        let containers = reader.containers();
        // Of a container that was set aside and moved, what was intact lies among others.
        let mut passed_over: HashSet<_> = aside.iter().map(|container| container.0).collect();
        passed_over.extend(engine.condemned().iter());
        let remaps = containers.remaps();
        let moved = runs.moved_uncovered(&remaps);
        let to_index = ObjectsToIndex::new(&remaps, &moved);
        let mut objects: Vec<(ObjectKey, u64)> = Vec::new();
        self.store().list(ObjectKind::Container, &mut |id, bytes| {
            report.containers += 1;
            let key = ObjectKey::new(ObjectKind::Container, id);
            if to_index.contains(&runs, id) && !passed_over.contains(&id) {
                objects.push((key, bytes));
            }
        })?;
        objects.sort_unstable();
        progress
            .files_total
            .store(objects.len() as u64, Ordering::Relaxed);
        progress.is_total_known.store(true, Ordering::Relaxed);
        for &container in &aside {
            if !runs.covered(container) && !options.dry_run {
                builder.cover(&runs, container)?;
            }
        }
        let rebuild = Rebuild {
            store: self.store(),
            runs: &runs,
            to_index,
            aside: aside.into_iter().collect(),
            progress,
            is_dry_run: options.dry_run,
            state: Mutex::new(State {
                builder,
                report,
                unreadable: Vec::new(),
                failure: None,
            }),
            has_failed: AtomicBool::new(false),
        };
        read_metadata(containers, &engine.reading_room(), &objects, &rebuild);
        let report = rebuild.finish()?;
        if options.dry_run || progress.is_cancelled() {
            return Ok(report);
        }
        runs.delete_left_out(&replaced.into_iter().collect::<Vec<_>>())?;
        runs.merge(&|_| true, &progress.is_cancelled)?;
        Ok(report)
    }

    /// The runs that others take the place of: the damaged ones, or all.
    fn replaced(
        &self,
        runs: &RunSet,
        options: RepairIndexOptions,
        report: &mut RepairIndexReport,
        progress: &Progress,
    ) -> Result<HashSet<ObjectKey>, RepositoryError> {
        let mut stored = HashSet::new();
        self.store().list(ObjectKind::Index, &mut |id, _| {
            stored.insert(ObjectKey::new(ObjectKind::Index, id));
        })?;
        report.runs = stored.len() as u64;
        let mut replaced: HashSet<ObjectKey> = HashSet::new();
        for (key, error) in runs.damaged() {
            let is_unknown = matches!(*error, ObjectError::UnknownEpoch { .. });
            let is_replaceable = error.is_damage() || (is_unknown && options.all);
            if !is_replaceable {
                // It may be sound: a run must not go because a disk is out of order, or because we
                // lack a secret that others have.
                let hint = match is_unknown {
                    true => "; `repair index --all` replaces it",
                    false => "",
                };
                progress.report(&Problem {
                    path: key.to_string().into_bytes(),
                    message: format!("left as it is: {error}{hint}"),
                    is_error: true,
                });
                continue;
            }
            report.runs_damaged += 1;
            progress.report(&Problem {
                path: key.to_string().into_bytes(),
                message: error.to_string(),
                is_error: false,
            });
            replaced.insert(key);
        }
        if options.all {
            replaced.extend(runs.keys());
        }
        replaced.retain(|key| stored.contains(key));
        report.runs_replaced = replaced.len() as u64;
        Ok(replaced)
    }
}

/// Is what it holds lost, or not for us? Otherwise the store is out of order, and nobody knows.
fn is_unusable(error: &ObjectError) -> bool {
    error.is_damage() || matches!(error, ObjectError::UnknownEpoch { .. })
}

impl Rebuild<'_> {
    /// Writes what is gathered, tells what could not be read, and leaves the report.
    fn finish(self) -> Result<RepairIndexReport, RepositoryError> {
        let state = self.state.into_inner();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = state.failure {
            return Err(failure.into());
        }
        if !self.is_dry_run && !self.progress.is_cancelled() {
            state.builder.write(self.runs)?;
        }
        state.unreadable.sort_unstable();
        for (key, message) in state.unreadable {
            self.progress.report(&Problem {
                path: key.to_string().into_bytes(),
                message,
                is_error: true,
            });
        }
        Ok(state.report)
    }

    fn take(&self, state: &mut State, key: ObjectKey, metadata: &ObjectMetadata, bytes: u64) {
        let mut is_indexed = false;
        for section in &metadata.sections {
            let id = section.id;
            let is_wanted = self.to_index.is_wanted(self.runs, id, key.id);
            if !is_wanted || self.aside.contains(&id) {
                continue;
            }
            // Runs note it of containers in objects of their own.
            let bytes = match id.0 == key.id {
                true => u32::try_from(bytes).unwrap_or(0),
                false => 0,
            };
            if !is_indexed && !self.is_dry_run {
                // It may be of a run that died before it was durable; what an index run names must
                // not go.
                if let Err(error) = self.store.persist(&[key]) {
                    self.fail(state, error.into());
                    return;
                }
            }
            is_indexed = true;
            state.report.chunks_indexed += section.chunk_count() as u64;
            if self.is_dry_run {
                continue;
            }
            if let Err(error) = state.builder.add(self.runs, section, bytes) {
                self.fail(state, error);
                return;
            }
        }
        state.report.containers_indexed += u64::from(is_indexed);
    }

    /// Nothing more is to be done, and nothing deleted.
    fn fail(&self, state: &mut State, error: ObjectError) {
        self.has_failed.store(true, Ordering::Relaxed);
        state.failure.get_or_insert(error);
    }
}

impl MetadataSink for Rebuild<'_> {
    fn metadata(
        &self,
        key: ObjectKey,
        object_bytes: u64,
        outcome: Result<(ObjectMetadata, ContainerSummary), ObjectError>,
    ) {
        self.progress.set_current(key.to_string().as_bytes());
        Progress::add(&self.progress.files_done, 1);
        Progress::add(&self.progress.bytes_done, object_bytes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok((metadata, summary)) => {
                self.take(&mut state, key, &metadata, summary.metadata_bytes);
            }
            Err(error) if !is_unusable(&error) => self.fail(&mut state, error),
            Err(error) => {
                state.report.containers_unreadable += 1;
                if state.unreadable.len() < PROBLEMS_TOLD_MAX {
                    state.unreadable.push((key, error.to_string()));
                }
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled() || self.has_failed.load(Ordering::Relaxed)
    }
}

//! Deletes what no snapshot needs, while others back up and restore (docs/design/0015-prune.md).
//!
//! Enters: a repository. Leaves: the same, smaller. The steps, each of which may be the last (a crash, a stop) without
//! harm: finish what was condemned before (`finish.rs`), mark (`mark.rs`), plan (`plan.rs`), pack what is needed of
//! containers that are mostly unneeded, remap, condemn, list who is at work, and, when nobody is, finish at once.

mod duplicates;
mod finish;
mod mark;
mod plan;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::container::{ChunkAddress, CompactionError, ContainerId};
use engine::format::ObjectError;
use engine::index::RunSet;
use engine::object::{ObjectId, StoreError};
use engine::restore::Reader;

pub use mark::{MarkError, Marking, Marks};
pub use plan::Plan;

use crate::deletion::condemned::{self, Condemned};
use crate::deletion::runs::{self, DEAD_AFTER, Registration, Run, RunKind};
use crate::progress::Progress;
use crate::repository::{Repository, RepositoryError};
use crate::timestamp::Timestamp;
use plan::Inventory;

/// Why a repository was not pruned, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// Needed chunks can't be packed.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    /// A snapshot can't be read: what it needs is not known.
    #[error("snapshot {snapshot} can't be read, so what it needs is not known: {error}")]
    Unreadable {
        /// Which one.
        snapshot: ObjectId,
        /// What is wrong.
        error: Box<MarkError>,
    },
    /// A snapshot object can't be read.
    #[error("snapshot {snapshot} can't be read, so what it needs is not known: {error}")]
    UnreadableSnapshot {
        /// Which one.
        snapshot: ObjectId,
        /// What is wrong.
        error: ObjectError,
    },
    /// A chunk that a snapshot needs is nowhere.
    #[error("slot {} of container {} is needed and is nowhere", address.slot.0, address.container)]
    Missing {
        /// Where it should be.
        address: ChunkAddress,
    },
    /// Another prune is at work.
    #[error("another prune is at work on {host} (run {id})")]
    AtWork {
        /// Its run.
        id: ObjectId,
        /// Its machine.
        host: String,
    },
    /// Somebody asked for a stop.
    #[error("interrupted; nothing is lost, and the next prune goes on from there")]
    Interrupted,
}

impl From<ObjectError> for PruneError {
    fn from(error: ObjectError) -> Self {
        PruneError::Repository(error.into())
    }
}

impl From<StoreError> for PruneError {
    fn from(error: StoreError) -> Self {
        PruneError::Repository(error.into())
    }
}

/// How a repository is to be pruned.
#[derive(Debug, Clone)]
pub struct PruneOptions {
    /// This machine's name.
    pub host: String,
    /// How much of what is stored may be unneeded, in thousandths: more is packed anew.
    pub unused_max_thousandths: u32,
    /// Bytes of containers that are packed anew at most.
    pub repack_bytes_max: u64,
    /// How long a run may show no sign of life until it is taken for dead.
    pub dead_after: Duration,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
}

impl Default for PruneOptions {
    fn default() -> Self {
        Self {
            host: String::new(),
            unused_max_thousandths: 50,
            repack_bytes_max: u64::MAX,
            dead_after: DEAD_AFTER,
            dry_run: false,
        }
    }
}

/// What a prune did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Snapshots that were looked at.
    pub snapshots: u64,
    /// Slots that are needed.
    pub chunks_needed: u64,
    /// How long it took to mark them.
    pub mark_time: Duration,
    /// Memory that the marks took, in bytes.
    pub mark_bytes: u64,
    /// Container objects that there were.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes in them that nobody needs, as far as that is known.
    pub bytes_unneeded: u64,
    /// Objects without anything that is needed.
    pub objects_unneeded: u64,
    /// Objects of which the rest was packed anew.
    pub objects_packed: u64,
    /// Bytes of them.
    pub bytes_packed: u64,
    /// Bytes of the new objects.
    pub bytes_written: u64,
    /// Objects that no index run covers, left alone because somebody may be writing them.
    pub objects_left: u64,
    /// Objects that were deleted, of this and earlier prunes.
    pub objects_deleted: u64,
    /// Bytes of them.
    pub bytes_deleted: u64,
    /// Objects that wait to be deleted, and for whom.
    pub objects_waiting: u64,
    /// The runs that they wait for.
    pub waiting_for: Vec<Run>,
    /// Slots that a run needed which did not know of the prune before it: packed anew before the deletion.
    pub chunks_rescued: u64,
    /// Slots whose chunks other slots have, too, in containers that are packed anew.
    pub chunks_repeated: u64,
    /// Of these, how many share their chunks with others now.
    pub chunks_merged: u64,
    /// Runs that were taken for dead.
    pub expired: Vec<Run>,
}

/// A prune while it runs.
struct Pruning<'a> {
    repository: &'a Repository,
    options: &'a PruneOptions,
    progress: &'a Progress,
    registration: Option<Registration>,
    report: PruneReport,
}

impl Repository {
    /// Deletes what no snapshot needs.
    ///
    /// # Errors
    /// When a snapshot can't be read, another prune is at work, or the store fails. Nothing that a snapshot needs is
    /// lost in any case.
    pub fn prune(
        &self,
        options: &PruneOptions,
        progress: &Progress,
    ) -> Result<PruneReport, PruneError> {
        if !options.dry_run {
            self.check_may_pack()?;
        }
        let mut pruning = Pruning {
            repository: self,
            options,
            progress,
            registration: None,
            report: PruneReport::default(),
        };
        if !options.dry_run {
            pruning.register()?;
        }
        pruning.run()?;
        if let Some(registration) = &pruning.registration {
            registration.end()?;
        }
        Ok(pruning.report)
    }
}

impl Pruning<'_> {
    fn register(&mut self) -> Result<(), PruneError> {
        let engine = self.repository.engine();
        let (store, vault) = (engine.store(), engine.vault());
        let own = Registration::begin(store, vault, RunKind::Prune, &self.options.host)?;
        let expired = runs::expired(store.as_ref())?;
        for other in runs::registered(store.as_ref(), vault)?.into_values() {
            if other.kind != RunKind::Prune || other.id == own.id() || expired.contains(&other.id) {
                continue;
            }
            if other.has_died() {
                runs::expire(store.as_ref(), vault, other.id)?;
                continue;
            }
            let age = Timestamp::now().since(other.started);
            // Two at once lose nothing; it is only work done twice, which must not go on for ever.
            if age.is_none_or(|age| age < self.options.dead_after) {
                return Err(PruneError::AtWork {
                    id: other.id,
                    host: other.host,
                });
            }
        }
        self.registration = Some(own);
        Ok(())
    }

    fn run(&mut self) -> Result<(), PruneError> {
        self.finish_condemned()?;
        let condemned = self.condemned()?.objects();
        let inventory = Inventory::take(self, &condemned)?;
        let reader = self.reader()?;
        let started = Instant::now();
        let marks = self.mark(&reader, &inventory.deltas())?;
        self.report.mark_time = started.elapsed();
        self.report.mark_bytes = marks.memory_bytes() as u64;
        self.report.chunks_needed = marks.chunk_count();
        let plan = inventory.plan(self, &reader, &marks)?;
        self.report.count(&plan);
        if self.options.dry_run {
            return Ok(());
        }
        let condemned = plan.condemned();
        if condemned.is_empty() {
            return match self.report.objects_deleted {
                0 => Ok(()),
                _ => self.tidy_index(),
            };
        }
        self.carry_out(&plan, &condemned, &marks)?;
        self.finish_condemned()?;
        self.tidy_index()
    }

    /// Has the index know where everything lies now, and nothing of what is gone.
    fn tidy_index(&self) -> Result<(), PruneError> {
        let mut writer = self
            .repository
            .engine_without_condemned()?
            .writer()
            .map_err(RepositoryError::from)?;
        writer.commit().map_err(RepositoryError::from)?;
        Ok(writer.merge_index()?)
    }

    /// Packs what is needed of the containers that go, and condemns them.
    fn carry_out(
        &mut self,
        plan: &Plan,
        condemned: &[ObjectId],
        marks: &Marks,
    ) -> Result<(), PruneError> {
        let engine = self.repository.engine();
        let (store, vault) = (engine.store().as_ref(), engine.vault());
        let mut compactor = engine.compactor()?;
        let merged = compactor.merge(&plan.classes)?;
        self.report.chunks_merged = merged.values().map(|slots| slots.len() as u64).sum();
        for container in &plan.packed_containers {
            self.check()?;
            if let Some(slots) = marks.of(*container) {
                let merged = merged.get(container);
                let is_merged = |slot| merged.is_some_and(|slots| slots.contains(slot));
                let rest = slots.iter().filter(|&slot| !is_merged(slot));
                compactor.keep(*container, &rest.collect())?;
            }
        }
        let compacted = compactor.finish()?;
        self.report.bytes_written += compacted.totals.bytes_written;
        self.check()?;
        engine.store_remap(compacted.moved)?;
        for objects in condemned.chunks(condemned::OBJECTS_MAX) {
            let objects: BTreeSet<ObjectId> = objects.iter().copied().collect();
            let marker = condemned::condemn(store, vault, &objects)?;
            self.write_waiting_list(marker)?;
        }
        Ok(())
    }

    /// Lists who is at work, after a marker was written, and writes that down.
    fn write_waiting_list(&self, marker: ObjectId) -> Result<(), PruneError> {
        let engine = self.repository.engine();
        let (store, vault) = (engine.store().as_ref(), engine.vault());
        let signs = |run: Run| (run.id, run.signs);
        let runs: BTreeMap<ObjectId, u64> = runs::registered(store, vault)?
            .into_values()
            .filter(|run| self.own_run() != Some(run.id))
            .map(signs)
            .collect();
        condemned::wait_for(store, vault, marker, &runs)?;
        Ok(())
    }

    fn own_run(&self) -> Option<ObjectId> {
        self.registration.as_ref().map(Registration::id)
    }

    fn condemned(&self) -> Result<Condemned, PruneError> {
        let engine = self.repository.engine();
        Ok(Condemned::load(engine.store().as_ref(), engine.vault())?)
    }

    fn reader(&self) -> Result<Reader, PruneError> {
        Ok(self.repository.engine().reader()?)
    }

    /// Marks what all snapshots need, as they are now.
    fn mark(&mut self, reader: &Reader, deltas: &[ContainerId]) -> Result<Marks, PruneError> {
        let mut marking = Marking::new(reader, self.progress);
        let mut marked = HashSet::new();
        // Until a listing brings nothing new: one that is changed meanwhile is another object, and a listing may have
        // neither.
        loop {
            let mut list = self.repository.snapshots()?;
            if let Some(unreadable) = list.unreadable.into_iter().next() {
                return Err(PruneError::UnreadableSnapshot {
                    snapshot: unreadable.id,
                    error: unreadable.error,
                });
            }
            self.report.snapshots = list.snapshots.len() as u64;
            list.snapshots.retain(|snapshot| marked.insert(snapshot.id));
            if list.snapshots.is_empty() {
                break;
            }
            for snapshot in &list.snapshots {
                self.check()?;
                self.progress.set_current(snapshot.id.short().as_bytes());
                match marking.snapshot(snapshot) {
                    Err(PruneError::Unreadable { .. }) if self.progress.is_cancelled() => {
                        return Err(PruneError::Interrupted);
                    }
                    marked => marked?,
                }
            }
        }
        marking.finish(deltas)
    }

    /// Shows life, and ends when somebody asks for that or took this prune for dead.
    fn check(&self) -> Result<(), PruneError> {
        if self.progress.is_cancelled() {
            return Err(PruneError::Interrupted);
        }
        if let Some(registration) = &self.registration {
            registration.show_life()?;
        }
        Ok(())
    }

    /// Index runs, to know which containers they cover.
    fn index_runs(&self) -> Result<RunSet, PruneError> {
        let engine = self.repository.engine();
        let (store, vault) = (Arc::clone(engine.store()), Arc::clone(engine.vault()));
        let memory_bytes = engine.settings().shares().index_bytes;
        Ok(RunSet::open(store, vault, memory_bytes)?)
    }

    /// Is a writer at work that may be about to refer to what it has stored?
    fn is_somebody_writing(&self) -> Result<bool, PruneError> {
        let engine = self.repository.engine();
        let store = engine.store().as_ref();
        let expired: HashSet<ObjectId> = runs::expired(store)?.into_iter().collect();
        let registered = runs::registered(store, engine.vault())?;
        Ok(registered
            .values()
            .any(|run| run.kind == RunKind::Writer && !expired.contains(&run.id)))
    }
}

impl PruneReport {
    fn count(&mut self, plan: &Plan) {
        self.objects = plan.objects;
        self.bytes = plan.bytes;
        self.bytes_unneeded = plan.bytes_unneeded;
        self.objects_unneeded = plan.unneeded.len() as u64;
        self.objects_packed = plan.packed.len() as u64;
        self.bytes_packed = plan.bytes_packed;
        self.objects_left = plan.objects_left;
        self.chunks_repeated = plan.classes.iter().map(|class| class.len() as u64).sum();
    }
}

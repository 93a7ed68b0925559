//! Snapshots without what is lost of them, and without a doubt that has no ground.
//!
//! Enter: snapshots. Leave: of each that is damaged a new one, of the same time, that names it (field 40), in which
//! every file can be read; what is left out is listed in it, and reported. Chunks that are lost in their place and
//! stored elsewhere as well are taken from there. The damaged snapshot stays, unless it is to be forgotten: then the
//! new one takes its place. A doubtful snapshot that is whole, none of it in condemned objects, is written again under
//! this run, and is doubtful no more.
//!
//! Order: metadata containers, index run, snapshots, each durable before the next; a damaged snapshot is deleted after
//! that. The run is registered before it looks at anything (docs/design/0015-prune.md), so that nothing it refers to
//! is deleted meanwhile.

use std::sync::Arc;

use engine::Engine;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::pipeline::Writer;

use super::health::Health;
use super::tree::{LeftOfTree, TreeRepair};
use super::{Loss, RepairError};
use crate::deletion::runs::{Registration, RunKind};
use crate::progress::{Problem, Progress};
use crate::repository::{PROGRAM, Repository, RepositoryError};
use crate::snapshot::{Snapshot, SnapshotList};

/// How snapshots are to be repaired.
#[derive(Debug, Clone, Default)]
pub struct RepairSnapshotsOptions {
    /// This machine's name.
    pub host: String,
    /// Which ones; all where none is named.
    pub snapshots: Vec<ObjectId>,
    /// Keep what is left of a damaged file, with zeros for the rest, under the name `NAME.damaged`.
    pub keep_parts: bool,
    /// Put the new snapshot in the place of the damaged one, unless that one is protected.
    pub forget: bool,
    /// Believe the data of containers instead of reading it: only what is missing, or metadata that is damaged, counts.
    pub skip_data: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became, or would become, of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// It is whole.
    Whole,
    /// It was doubtful, and is whole: it is written again, without the doubt.
    Cleared,
    /// It is doubtful, and a part of it lies in condemned objects alone: to be looked at again after a prune.
    StillDoubtful,
    /// It is damaged, and a new one is made of what is left.
    Repaired,
    /// It is damaged, and there is such a new one already.
    WasRepaired,
}

/// A snapshot that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedSnapshot {
    /// Its id.
    pub id: ObjectId,
    /// What became of it.
    pub outcome: SnapshotOutcome,
    /// The snapshot that was made of it, or had been.
    pub new: Option<ObjectId>,
    /// Files that are whole again, their chunks being stored elsewhere as well.
    pub files_relinked: u64,
    /// What is lost.
    pub losses: Vec<Loss>,
    /// Was it deleted, the new one having taken its place?
    pub is_forgotten: bool,
}

/// What a repair of snapshots found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairSnapshotsReport {
    /// The snapshots, oldest first.
    pub snapshots: Vec<RepairedSnapshot>,
    /// Snapshot objects that can't be read at all.
    pub unreadable: u64,
    /// Container objects that are damaged.
    pub containers_damaged: u64,
}

/// What is to be written for a snapshot.
struct Plan {
    /// Its place in the report.
    at: usize,
    old: Snapshot,
    new: Snapshot,
    /// Takes the old one's place, rather than standing beside it.
    is_in_place: bool,
    /// What was made of the old one before, and goes then.
    earlier: Option<ObjectId>,
}

/// A repair while it runs.
struct Repairing<'a> {
    repository: &'a Repository,
    options: &'a RepairSnapshotsOptions,
    progress: &'a Progress,
    engine: Engine,
    registration: Option<Registration>,
    report: RepairSnapshotsReport,
    plans: Vec<Plan>,
}

impl Repository {
    /// Makes of damaged snapshots new ones in which everything can be read, and clears those of doubt that are whole.
    ///
    /// # Errors
    /// When the store can't be read or written, or it can't be said what is lost. Nothing is worse then than before.
    pub fn repair_snapshots(
        &self,
        options: &RepairSnapshotsOptions,
        progress: &Progress,
    ) -> Result<RepairSnapshotsReport, RepairError> {
        self.config().check_writable()?;
        let registration = match options.dry_run {
            true => None,
            false => Some(self.register(RunKind::Writer, &options.host)?),
        };
        let engine = self.engine_without_condemned()?.metered(&progress.stages);
        let engine = match options.dry_run {
            true => engine.discarding(),
            false => engine,
        };
        let mut repairing = Repairing {
            repository: self,
            options,
            progress,
            engine,
            registration,
            report: RepairSnapshotsReport::default(),
            plans: Vec::new(),
        };
        repairing.run(None)?;
        if let Some(registration) = &repairing.registration {
            registration.end()?;
        }
        Ok(repairing.report)
    }
}

/// What is left of the snapshots that are not whole, where it is known what is damaged. Changes nothing.
///
/// # Errors
/// As [`Repository::repair_snapshots`].
pub(super) fn snapshots_left(
    repository: &Repository,
    health: &Health,
    progress: &Progress,
) -> Result<Vec<RepairedSnapshot>, RepairError> {
    let options = RepairSnapshotsOptions {
        dry_run: true,
        ..RepairSnapshotsOptions::default()
    };
    let mut repairing = Repairing {
        repository,
        options: &options,
        progress,
        engine: repository.engine_without_condemned()?.discarding(),
        registration: None,
        report: RepairSnapshotsReport::default(),
        plans: Vec::new(),
    };
    repairing.run(Some(health))?;
    let mut snapshots = repairing.report.snapshots;
    snapshots.retain(|snapshot| !snapshot.losses.is_empty());
    Ok(snapshots)
}

impl Repairing<'_> {
    fn run(&mut self, known: Option<&Health>) -> Result<(), RepairError> {
        let reader = self.engine.reader()?;
        let read_data = !self.options.skip_data;
        let mut scanned = None;
        let health = match known {
            Some(health) => health,
            None => {
                let health = Health::scan(&self.engine, &reader, read_data, self.progress)?;
                &*scanned.insert(health)
            }
        };
        self.report.containers_damaged = health.damaged.len() as u64;
        self.show_life()?;
        let mut writer = self.engine.writer()?;
        for &object in health.damaged.keys() {
            writer.set_aside(object); // Nothing is to be found there that is looked for elsewhere.
        }
        let list = self.repository.snapshots()?;
        for unreadable in &list.unreadable {
            self.report.unreadable += 1;
            let key = ObjectKey::new(ObjectKind::Snapshot, unreadable.id);
            self.tell(
                key.to_string().into_bytes(),
                format!(
                    "{}; `onefold recover` finds the directories that it alone named",
                    unreadable.error
                ),
            );
        }
        let fingerprinter = Arc::clone(self.engine.fingerprinter());
        let keep_parts = self.options.keep_parts;
        let mut trees = TreeRepair::new(&reader, health, &fingerprinter, self.progress, keep_parts);
        for snapshot in &list.snapshots {
            self.show_life()?;
            trees.is_whole(&snapshot.root, false)?;
        }
        let roots: Vec<_> = list.snapshots.iter().map(|it| &it.root).collect();
        trees.find_same(&roots)?;
        for snapshot in &list.snapshots {
            let wanted = &self.options.snapshots;
            if wanted.is_empty() || wanted.contains(&snapshot.id) {
                self.show_life()?;
                self.snapshot(snapshot, &list, &mut trees, &mut writer)?;
            }
        }
        if self.progress.is_cancelled() {
            return Err(RepairError::Interrupted);
        }
        if self.plans.is_empty() {
            return Ok(());
        }
        writer.commit()?;
        if self.options.dry_run {
            return Ok(());
        }
        let generation = writer.remap_generation();
        for plan in std::mem::take(&mut self.plans) {
            self.write(plan, generation)?;
        }
        Ok(())
    }

    fn show_life(&self) -> Result<(), RepairError> {
        match &self.registration {
            Some(registration) => Ok(registration.show_life()?),
            None => Ok(()),
        }
    }

    fn tell(&self, path: Vec<u8>, message: String) {
        self.progress.report(&Problem {
            path,
            message,
            is_error: true,
        });
    }

    fn snapshot(
        &mut self,
        snapshot: &Snapshot,
        list: &SnapshotList,
        trees: &mut TreeRepair<'_>,
        writer: &mut Writer,
    ) -> Result<(), RepairError> {
        let mut found = RepairedSnapshot {
            id: snapshot.id,
            outcome: SnapshotOutcome::Whole,
            new: None,
            files_relinked: 0,
            losses: Vec::new(),
            is_forgotten: false,
        };
        let at = self.report.snapshots.len();
        if trees.is_whole(&snapshot.root, false)? {
            if snapshot.is_doubtful {
                found.outcome = match trees.is_whole(&snapshot.root, true)? {
                    true => SnapshotOutcome::Cleared,
                    false => SnapshotOutcome::StillDoubtful,
                };
            }
            if found.outcome == SnapshotOutcome::Cleared {
                self.plans.push(Plan {
                    at,
                    old: snapshot.clone(),
                    new: self.by_this_run(snapshot),
                    is_in_place: true,
                    earlier: None,
                });
            }
            self.report.snapshots.push(found);
            return Ok(());
        }
        let left = trees.rebuild(&snapshot.root, writer)?;
        for loss in &left.losses {
            let path = [snapshot.id.short().as_bytes(), b":", &loss.path].concat();
            self.tell(path, loss.message.clone());
        }
        let earlier = whole_repair_of(snapshot, list, trees)?;
        // It is given up for something that lacks nothing of what it has.
        let is_better = earlier.is_some_and(|it| it.is_protected || lacks_what_is_in(&left, it));
        let is_kept = !self.options.forget || snapshot.is_protected;
        found.outcome = SnapshotOutcome::Repaired;
        match earlier {
            Some(earlier) if is_better || (earlier.root == left.root && is_kept) => {
                found.outcome = SnapshotOutcome::WasRepaired;
                found.new = Some(earlier.id);
            }
            // What was made of it before goes with it, or is made again with what is there now.
            Some(earlier) if is_kept => self.plans.push(Plan {
                at,
                old: earlier.clone(),
                new: Snapshot {
                    repaired: Some(snapshot.id),
                    ..self.left_of(snapshot, &left)
                },
                is_in_place: true,
                earlier: None,
            }),
            _ => self.plans.push(Plan {
                at,
                old: snapshot.clone(),
                new: self.left_of(snapshot, &left),
                is_in_place: !is_kept,
                earlier: earlier.map(|it| it.id),
            }),
        }
        found.files_relinked = left.files_relinked;
        found.losses = left.losses;
        self.report.snapshots.push(found);
        Ok(())
    }

    /// The same snapshot, as if this run had written it: nothing that it refers to goes while this run is at work, or
    /// after that, since it is listed.
    fn by_this_run(&self, snapshot: &Snapshot) -> Snapshot {
        Snapshot {
            run: self.registration.as_ref().map(Registration::id),
            is_doubtful: false,
            ..snapshot.clone()
        }
    }

    fn left_of(&self, snapshot: &Snapshot, left: &LeftOfTree) -> Snapshot {
        let mut new = Snapshot {
            root: left.root.clone(),
            program: PROGRAM.to_owned(),
            replaces: Vec::new(),
            repaired: Some(snapshot.id),
            ..self.by_this_run(snapshot)
        };
        for loss in &left.losses {
            let path = loss.path.clone();
            new.errors.record(
                path,
                format!("lost after it was backed up: {}", loss.message),
            );
            if !loss.is_directory && !loss.is_kept {
                new.summary.files = new.summary.files.saturating_sub(1);
                let bytes = loss.bytes_readable + loss.bytes_lost;
                new.summary.files_bytes = new.summary.files_bytes.saturating_sub(bytes);
            }
        }
        if snapshot.is_doubtful {
            // What it needs may lie in what is condemned, and go before anybody sees this one.
            new.run = snapshot.run;
        }
        if !left.losses.is_empty() {
            new.disk = None; // No later image may rest on it.
            new.copy_of = None; // It is no copy any more: a later one must not rest on it.
            new.is_protected = false;
        }
        new
    }

    fn write(&mut self, plan: Plan, generation: u64) -> Result<(), RepairError> {
        let Plan {
            at,
            old,
            mut new,
            is_in_place,
            earlier,
        } = plan;
        new.remap_generation = generation;
        let (store, vault) = (self.engine.store().as_ref(), self.engine.vault());
        let is_dead = || match &self.registration {
            Some(registration) => registration.is_expired(),
            None => Ok(false),
        };
        let written = match is_in_place {
            true => old.replace_unless(new, store, vault, &is_dead),
            false => new
                .write_unless(store, vault, &is_dead)
                .map(|is_written| is_written.then_some(new)),
        };
        let written = written.map_err(RepositoryError::from)?;
        let new = written.ok_or(RepairError::TakenForDead)?;
        if let Some(earlier) = earlier {
            let key = ObjectKey::new(ObjectKind::Snapshot, earlier);
            store.delete(&key).map_err(RepositoryError::from)?;
        }
        let found = &mut self.report.snapshots[at];
        found.new = Some(new.id);
        found.is_forgotten =
            is_in_place && old.id == found.id && found.outcome == SnapshotOutcome::Repaired;
        Ok(())
    }
}

/// A snapshot that an earlier repair made of this one, and that is whole still.
fn whole_repair_of<'a>(
    snapshot: &Snapshot,
    list: &'a SnapshotList,
    trees: &mut TreeRepair<'_>,
) -> Result<Option<&'a Snapshot>, RepairError> {
    for other in &list.snapshots {
        let is_of_it = other
            .repaired
            .is_some_and(|id| id == snapshot.id || snapshot.replaces.contains(&id));
        if is_of_it && trees.is_whole(&other.root, false)? {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

/// Is something lost of a tree that an earlier repair has?
fn lacks_what_is_in(left: &LeftOfTree, earlier: &Snapshot) -> bool {
    let listed = &earlier.errors.listed;
    let is_listed = |path: &Vec<u8>| listed.iter().any(|error| error.path == *path);
    earlier.errors.count > listed.len() as u64
        || left.losses.iter().any(|loss| !is_listed(&loss.path))
}

//! Backups that a power failure or a kill ends at any operation (design.md, "Crash rule").
//!
//! A directory is backed up in successive versions onto a disk that crashes. For each operation
//! of the last backup the disk crashes there, and is found again in several ways: after a power
//! failure; as a killed process leaves it; and when the backup after the kill crashes, too, with or
//! without a repair of the index between. Then:
//! * every snapshot that was reported restores bit for bit, and `check --read-data` is clean;
//! * the next backup succeeds and stores exactly what the dead one had not: the bytes of the
//!   data containers that survived are not new;
//! * and what it reports survives the next power failure.
//!
//! A failure prints the case; `ONEFOLD_CRASH_CASE=…` runs that case alone, many times, because
//! the numbering of operations follows the luck of threads. `ONEFOLD_CRASH_SEEDS=N` tries
//! N ways of finding the disk instead of a few.
//!
//! That the test can fail is itself tested: stores that promise durability too early must be
//! found out.

mod support;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use engine::container::ContainerKind;
use engine::object::{LocalStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use repository::{Progress, RepairIndexOptions, Repository};
use support::broken::{Breaks, Broken, Forgetful, Forgets};
use support::sources::{Picture, Source};
use support::{History, backup, chain_of, create, open};
use testkit::random::Random;
use testkit::{CrashDisk, CrashMode};

/// Ways in which a disk is found after a power failure at one operation.
const POWER_LOSSES: u64 = 4;

/// Runs of a case that is replayed.
const REPLAYS: u64 = 50;

/// Seeds that a broken store is tried with.
const BROKEN_SEEDS: u64 = 24;

/// How the disk is found after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Unsynced changes survive by chance.
    Power,
    /// The process was killed: what it wrote is seen, and not durable.
    Kill,
    /// The process was killed, and during the next backup the power failed.
    KillThenPower,
    /// The same, after the index was repaired: what the killed process left is not durable, and an
    /// index run that names it must not outlive it.
    KillThenRepair,
}

impl Way {
    const NAMES: [(Way, &str); 4] = [
        (Way::Power, "power"),
        (Way::Kill, "kill"),
        (Way::KillThenPower, "kill-then-power"),
        (Way::KillThenRepair, "kill-then-repair"),
    ];
}

/// One crash, and one way of finding the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    encrypted: bool,
    version: u64,
    operation: u64,
    way: Way,
    seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encryption = if self.encrypted { "encrypted" } else { "plain" };
        let way = Way::NAMES.iter().find(|(way, _)| *way == self.way);
        let way = way.map_or("", |(_, name)| name);
        let Case {
            version,
            operation,
            seed,
            ..
        } = self;
        write!(f, "{encryption}:{version}:{operation}:{way}:{seed}")
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no case, such as encrypted:1:17:power:3");
        let parts: Vec<&str> = text.split(':').collect();
        let [encryption, version, operation, way, seed] = parts[..] else {
            return Err(bad());
        };
        let number = |text: &str| text.parse().map_err(|_| bad());
        let way = Way::NAMES.iter().find(|(_, name)| *name == way);
        Ok(Self {
            encrypted: encryption == "encrypted",
            version: number(version)?,
            operation: number(operation)?,
            way: way.ok_or_else(bad)?.0,
            seed: number(seed)?,
        })
    }
}

/// Repairs the index, all of it.
fn repair_index(disk: &CrashDisk, encrypted: bool) {
    let repository = open(store(disk), encrypted).expect("opened");
    let options = RepairIndexOptions {
        all: true,
        dry_run: false,
    };
    let report = repository.repair_index(options, &Progress::default());
    report.expect("repaired");
}

/// The case that the environment asks for.
fn asked_case() -> Option<Case> {
    let text = std::env::var("ONEFOLD_CRASH_CASE").ok()?;
    Some(text.parse().expect("a case"))
}

fn power_losses() -> u64 {
    let asked = std::env::var("ONEFOLD_CRASH_SEEDS").ok();
    asked.map_or(POWER_LOSSES, |text| {
        text.parse().expect("a number of seeds")
    })
}

fn store(disk: &CrashDisk) -> Arc<LocalStore<CrashDisk>> {
    Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk"))
}

/// A disk in the same state, without faults.
fn copy(disk: &CrashDisk) -> CrashDisk {
    disk.after_crash(0, CrashMode::ProcessKill)
}

/// An empty repository.
fn new_disk(encrypted: bool) -> CrashDisk {
    let disk = CrashDisk::new(0);
    let store = LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("laid out");
    create(Arc::new(store), encrypted);
    disk
}

fn containers(store: &dyn ObjectStore) -> BTreeSet<ObjectId> {
    ids(store, ObjectKind::Container)
}

fn ids(store: &dyn ObjectStore, kind: ObjectKind) -> BTreeSet<ObjectId> {
    let mut ids = BTreeSet::new();
    let visit = &mut |id, _| {
        ids.insert(id);
    };
    store.list(kind, visit).expect("listed");
    ids
}

/// Bytes of the chunks in the containers of data and of deltas that are not in `before`.
fn bytes_stored_since(repository: &Repository, before: &BTreeSet<ObjectId>) -> Result<u64, String> {
    let engine = repository.engine();
    let reader = engine.reader().map_err(|error| error.to_string())?;
    let mut bytes = 0;
    for id in containers(engine.store().as_ref()).difference(before) {
        let key = ObjectKey::new(ObjectKind::Container, *id);
        let (metadata, summary) = reader
            .containers()
            .object(key)
            .map_err(|error| format!("a container survived in part: {error}"))?;
        if metadata.sections[0].kind != ContainerKind::Metadata {
            bytes += summary.plain_bytes;
        }
    }
    Ok(bytes)
}

/// A version of the source and the repository before it is backed up.
struct Scene<'a> {
    encrypted: bool,
    version: u64,
    source: &'a Source,
    picture: Arc<Picture>,
    base: CrashDisk,
    base_containers: BTreeSet<ObjectId>,
    history: History,
    /// Operations of an undisturbed backup.
    operations: u64,
    /// New bytes of an undisturbed backup.
    bytes_new: u64,
    /// The disk after it.
    whole: CrashDisk,
    reported: ObjectId,
}

impl<'a> Scene<'a> {
    fn new(
        source: &'a Source,
        (encrypted, version): (bool, u64),
        base: CrashDisk,
        history: History,
    ) -> Self {
        let whole = copy(&base);
        let repository = open(store(&whole), encrypted).expect("opened");
        let report = backup(&repository, source.root()).expect("backed up");
        assert_eq!(report.errors, 0);
        Self {
            encrypted,
            version,
            source,
            picture: source.picture(),
            base_containers: containers(store(&base).as_ref()),
            base,
            history,
            operations: whole.operations(),
            bytes_new: report.totals.bytes_new,
            whole,
            reported: report.snapshot.id,
        }
    }

    /// The disk and the history with this version.
    fn after(&self) -> (CrashDisk, History) {
        let history = self.history.with(self.reported, &self.picture);
        (copy(&self.whole), history)
    }

    /// Backs up until the disk crashes, if it does. The history is longer when the backup was
    /// reported as saved.
    fn back_up(&self, disk: &CrashDisk, history: &History) -> History {
        let saved = open(store(disk), self.encrypted)
            .map_err(|error| error.to_string())
            .and_then(|repository| {
                backup(&repository, self.source.root()).map_err(|error| chain_of(&error))
            });
        match saved {
            Ok(report) => history.with(report.snapshot.id, &self.picture),
            Err(error) => {
                assert!(
                    disk.has_crashed(),
                    "a backup failed on a sound disk: {error}"
                );
                history.clone()
            }
        }
    }

    /// Backs up until the disk crashes at `operation`.
    fn crash(&self, operation: u64) -> (CrashDisk, History) {
        let disk = copy(&self.base);
        disk.crash_at(operation);
        let history = self.back_up(&disk, &self.history);
        (disk, history)
    }

    /// Tries all ways of finding the disk after a crash at `operation`.
    fn try_operation(&self, operation: u64) {
        let (disk, history) = self.crash(operation);
        let try_way = |way, seed| {
            let case = Case {
                encrypted: self.encrypted,
                version: self.version,
                operation,
                way,
                seed,
            };
            self.try_case(&disk, &history, case);
        };
        for seed in 0..power_losses() {
            try_way(Way::Power, seed);
        }
        try_way(Way::Kill, operation);
        try_way(Way::KillThenPower, operation);
        try_way(Way::KillThenRepair, operation);
    }

    fn try_case(&self, disk: &CrashDisk, history: &History, case: Case) {
        let seed = case.seed;
        let mut history = history.clone();
        let found = match case.way {
            Way::Power => disk.after_crash(seed, CrashMode::PowerLoss),
            Way::Kill => disk.after_crash(seed, CrashMode::ProcessKill),
            Way::KillThenPower | Way::KillThenRepair => {
                let found = disk.after_crash(seed, CrashMode::ProcessKill);
                if case.way == Way::KillThenRepair {
                    repair_index(&found, self.encrypted);
                }
                found.crash_at(Random::new(seed).below(self.operations));
                history = self.back_up(&found, &history);
                found.after_crash(seed, CrashMode::PowerLoss)
            }
        };
        if let Err(error) = self.recover(&found, &history, seed) {
            panic!("{error}\n    replay with ONEFOLD_CRASH_CASE={case}");
        }
    }

    /// Everything that must hold of a disk that was found after a crash.
    fn recover(&self, found: &CrashDisk, history: &History, seed: u64) -> Result<(), String> {
        let root = self.source.root();
        let repository =
            open(store(found), self.encrypted).map_err(|error| format!("not opened: {error}"))?;
        let unreported = history.check(&repository, root, &self.picture)?;
        if unreported > 2 {
            return Err(format!("{unreported} snapshots appeared"));
        }
        let survived = bytes_stored_since(&repository, &self.base_containers)?;
        let report = backup(&repository, root)
            .map_err(|error| format!("the next backup failed: {}", chain_of(&error)))?;
        if report.errors > 0 || !report.repository_warnings.is_empty() {
            return Err(format!(
                "the next backup complains: {:?}",
                report.repository_warnings
            ));
        }
        let new = report.totals.bytes_new;
        if new + survived != self.bytes_new {
            return Err(format!(
                "the next backup stored {new} bytes where {survived} of {} had survived",
                self.bytes_new
            ));
        }
        let history = history.with(report.snapshot.id, &self.picture);
        drop(repository);
        let later = found.after_crash(seed + 1000, CrashMode::PowerLoss);
        let repository = open(store(&later), self.encrypted)
            .map_err(|error| format!("not opened after the next power failure: {error}"))?;
        history
            .check(&repository, root, &self.picture)
            .map(drop)
            .map_err(|error| format!("after the next power failure: {error}"))
    }

    /// Crashes at the operations `numbers`, or replays the case that was asked for.
    fn run(&self, numbers: impl Iterator<Item = u64>) {
        let Some(case) = asked_case() else {
            numbers.for_each(|operation| self.try_operation(operation));
            return;
        };
        if (case.encrypted, case.version) == (self.encrypted, self.version) {
            for _ in 0..REPLAYS {
                let (disk, history) = self.crash(case.operation);
                self.try_case(&disk, &history, case);
            }
        }
    }
}

/// Three versions of a directory, a crash at every `step`-th operation of each backup.
fn three_versions(encrypted: bool, step: usize) {
    let source = Source::new();
    let mut disk = new_disk(encrypted);
    let mut history = History::default();
    for version in 0..3 {
        if version > 0 {
            source.advance(version);
        }
        let scene = Scene::new(&source, (encrypted, version), disk, history);
        assert!(
            scene.bytes_new > 60_000,
            "every version brings something new"
        );
        let many = if version == 0 { 35 } else { 15 };
        assert!(scene.operations > many, "{} operations", scene.operations);
        // The end of a backup, where snapshot and index are written, at every operation.
        let end = scene.operations.saturating_sub(10);
        let numbers = (0..end).step_by(step).chain(end..scene.operations);
        scene.run(numbers);
        (disk, history) = scene.after();
    }
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_reported() {
    three_versions(false, 1);
}

#[test]
fn encrypted_a_crash_loses_nothing_that_was_reported() {
    three_versions(true, 2);
}

#[test]
fn a_crash_while_index_runs_are_merged_loses_nothing() {
    let source = Source::new();
    let mut disk = new_disk(false);
    let mut history = History::default();
    let runs = |disk: &CrashDisk| ids(store(disk).as_ref(), ObjectKind::Index);
    let are_merged = |before: &CrashDisk, after: &CrashDisk| {
        let after = runs(after);
        !runs(before).iter().all(|id| after.contains(id))
    };
    // Until a backup merges: that one is tried again.
    for version in 0.. {
        assert!(version < 12, "no backup merges");
        let before = copy(&disk);
        source.touch(version);
        let repository = open(store(&disk), false).expect("opened");
        let report = backup(&repository, source.root()).expect("backed up");
        // One of them is enough to restore each time.
        if version == 0 {
            history = history.with(report.snapshot.id, &source.picture());
        }
        if are_merged(&before, &disk) {
            disk = before;
            break;
        }
    }
    let first = history.reported[0].0;
    delete_snapshots_but(&disk, first);
    source.touch(100);
    disk = copy(&disk);
    let before = copy(&disk);
    let scene = Scene::new(&source, (false, 100), disk, history);
    assert!(are_merged(&before, &scene.whole), "the runs are merged");
    let start = scene.operations.saturating_sub(30);
    scene.run(start..scene.operations);
}

/// Restoring all of them over and over would prove nothing.
fn delete_snapshots_but(disk: &CrashDisk, kept: ObjectId) {
    let store = store(disk);
    for id in ids(store.as_ref(), ObjectKind::Snapshot) {
        if id != kept {
            let key = ObjectKey::new(ObjectKind::Snapshot, id);
            store.delete(&key).expect("deleted");
        }
    }
}

/// How many of the ways of finding the disk after a reported backup show a loss?
fn losses(disk: &CrashDisk, history: &History, source: &Path, picture: &Picture) -> usize {
    let is_lost = |seed: &u64| {
        let found = disk.after_crash(*seed, CrashMode::PowerLoss);
        match open(store(&found), false) {
            Ok(repository) => history.check(&repository, source, picture).is_err(),
            Err(_) => true,
        }
    };
    (0..BROKEN_SEEDS).filter(is_lost).count()
}

#[test]
fn stores_that_promise_too_early_are_found_out() {
    let source = Source::new();
    let picture = source.picture();
    for forgets in [
        Forgets::Nothing,
        Forgets::Files,
        Forgets::Containers,
        Forgets::Snapshots,
    ] {
        let disk = new_disk(false);
        let forgetful = Forgetful {
            disk: disk.clone(),
            forgets,
        };
        let store = Arc::new(LocalStore::with_filesystem(forgetful, "forgetful disk"));
        let repository = open(store, false).expect("opened");
        let report = backup(&repository, source.root()).expect("reported as saved");
        let history = History::default().with(report.snapshot.id, &picture);
        let losses = losses(&disk, &history, source.root(), &picture);
        assert_eq!(
            losses > 0,
            forgets != Forgets::Nothing,
            "{forgets:?}: {losses} losses"
        );
    }
}

#[test]
fn a_store_that_puts_later_is_found_out() {
    let source = Source::new();
    let picture = source.picture();
    let disk = new_disk(false);
    let hasty = Broken::new(&disk, Breaks::PutsLater);
    let repository = open(hasty, false).expect("opened");
    let report = backup(&repository, source.root()).expect("reported as saved");
    let history = History::default().with(report.snapshot.id, &picture);
    let losses = losses(&disk, &history, source.root(), &picture);
    assert_eq!(losses as u64, BROKEN_SEEDS);
}

#[test]
fn a_store_that_persists_nothing_is_found_out() {
    let source = Source::new();
    let scene = Scene::new(&source, (false, 0), new_disk(false), History::default());
    let mut found_out = 0;
    for operation in 0..scene.operations {
        let (disk, _) = scene.crash(operation);
        let killed = disk.after_crash(operation, CrashMode::ProcessKill);
        let repository = open(Broken::new(&killed, Breaks::Persisting), false).expect("opened");
        let report = backup(&repository, source.root()).expect("reported as saved");
        let history = History::default().with(report.snapshot.id, &scene.picture);
        found_out += losses(&killed, &history, source.root(), &scene.picture);
    }
    assert!(
        found_out > 0,
        "making durable what a dead run left was never needed"
    );
}

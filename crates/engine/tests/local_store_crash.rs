//! A local store on a disk that crashes at every operation, fills up, and fails to sync.
//!
//! One workload writes every kind of object and deletes some. After the crash the store is
//! opened again and compared with a model of what was promised: what was reported as stored is
//! there bit for bit, anything else is absent or whole, lists show objects and nothing else,
//! and the store goes on working. Failures name the operation, the seed and the mode: the same
//! numbers replay.
//!
//! That the checks can fail is itself tested: a file system that forgets one kind of sync must
//! be found out, whichever sync it is.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use engine::object::{
    FileStatus, FileSystem, LocalStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter,
    StoreError, TEMPORARY_STALE_AFTER,
};
use testkit::generate::random_bytes;
use testkit::random::Random;
use testkit::{CrashDisk, CrashMode};

/// Crashes tried for each operation.
const SEEDS: u64 = 24;

/// The first byte of the containers' ids, so that two share a directory.
const SHARDS: [u8; 5] = [0x00, 0xab, 0xab, 0xff, 0x10];

#[derive(Debug, Clone)]
enum Step {
    Put(ObjectKey, Vec<u8>),
    PutIfAbsent(ObjectKey, Vec<u8>),
    /// In parts of at most 1,000 bytes.
    Create(ObjectKey, Vec<u8>),
    /// In parts, and never finished.
    Abandon(ObjectKey, Vec<u8>),
    Delete(ObjectKey),
}

/// What a caller has been told about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// A put began, or a removal that did not end: absent or whole.
    Open,
    /// Stored, said the store.
    Stored,
    /// Removed, said the store.
    Removed,
}

/// What the store was given, and what it promised.
#[derive(Debug, Clone, Default)]
struct Model {
    objects: BTreeMap<ObjectKey, (Vec<u8>, Promise)>,
}

impl Model {
    /// Does one step on the store and notes what it promised.
    fn run<F: FileSystem>(&mut self, store: &LocalStore<F>, step: &Step) -> Result<(), StoreError> {
        match step {
            Step::Abandon(key, bytes) => drop(write_parts(store, key, bytes)?),
            Step::Put(key, bytes) | Step::PutIfAbsent(key, bytes) | Step::Create(key, bytes) => {
                let object = self.objects.entry(*key);
                object.or_insert((bytes.clone(), Promise::Open));
                match step {
                    Step::Put(..) => store.put(key, bytes)?,
                    Step::Create(..) => write_parts(store, key, bytes)?.finish()?,
                    _ => store.put_if_absent(key, bytes).map(|_| ())?,
                }
                self.promise(key, Promise::Stored);
            }
            Step::Delete(key) => {
                self.promise(key, Promise::Open);
                store.delete(key)?;
                self.promise(key, Promise::Removed);
            }
        }
        Ok(())
    }

    fn promise(&mut self, key: &ObjectKey, promise: Promise) {
        if let Some(object) = self.objects.get_mut(key) {
            object.1 = promise;
        }
    }

    /// Is the store in one of the states that the promises allow?
    fn check<F: FileSystem>(&self, store: &LocalStore<F>) -> Result<(), String> {
        let mut present: BTreeMap<ObjectKey, u64> = BTreeMap::new();
        for (key, (bytes, promise)) in &self.objects {
            match store.get(key, u64::MAX) {
                Ok(found) if found != *bytes => return Err(format!("{key} is damaged")),
                Ok(_) => {
                    if *promise == Promise::Removed && key.kind != ObjectKind::Container {
                        return Err(format!("{key} has come back"));
                    }
                    present.insert(*key, bytes.len() as u64);
                }
                Err(error) if error.is_missing() => {
                    if *promise == Promise::Stored {
                        return Err(format!("{key} is lost"));
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut listed = BTreeMap::new();
        for kind in ObjectKind::ALL {
            let visit = &mut |id, object_bytes| {
                listed.insert(ObjectKey { kind, id }, object_bytes);
            };
            store.list(kind, visit).map_err(|error| error.to_string())?;
        }
        if listed != present {
            return Err(format!("listed {listed:?}, but present {present:?}"));
        }
        Ok(())
    }
}

fn write_parts<'a, F: FileSystem>(
    store: &'a LocalStore<F>,
    key: &ObjectKey,
    bytes: &[u8],
) -> Result<Box<dyn ObjectWriter + 'a>, StoreError> {
    let mut writer = store.create(key)?;
    for part in bytes.chunks(1000) {
        writer.write(part)?;
    }
    Ok(writer)
}

/// Objects of every kind and of many sizes, some deleted again.
fn workload() -> Vec<Step> {
    let mut random = Random::new(1);
    let mut bytes = |length| random.bytes(length);
    let key = |kind, number| ObjectKey::new(kind, ObjectId([number; 16]));
    let mut steps = vec![Step::PutIfAbsent(ObjectKey::CONFIG, bytes(700))];
    steps.push(Step::Put(key(ObjectKind::Key, 1), bytes(100)));
    for (number, shard) in SHARDS.into_iter().enumerate() {
        let mut id = [number as u8; 16];
        id[0] = shard;
        let container = ObjectKey::new(ObjectKind::Container, ObjectId(id));
        steps.push(Step::Put(container, bytes(3000 * number + 1)));
    }
    steps.push(Step::Put(key(ObjectKind::Index, 1), bytes(5000)));
    steps.push(Step::Create(key(ObjectKind::Index, 2), bytes(9000)));
    steps.push(Step::Abandon(key(ObjectKind::Index, 3), bytes(2500)));
    steps.push(Step::Put(key(ObjectKind::Snapshot, 1), bytes(0)));
    steps.push(Step::Put(key(ObjectKind::Snapshot, 2), bytes(513)));
    steps.push(Step::Put(key(ObjectKind::Remap, 1), bytes(512)));
    steps.push(Step::Put(key(ObjectKind::Run, 1), bytes(20)));
    steps.push(Step::Delete(key(ObjectKind::Index, 1)));
    steps.push(Step::Delete(key(ObjectKind::Snapshot, 1)));
    if let Step::Put(container, _) = steps[3].clone() {
        steps.push(Step::Delete(container));
    }
    steps
}

/// Creates a store and runs the workload until the first error.
fn run_until_error<F: FileSystem>(filesystem: F) -> (Model, bool) {
    let mut model = Model::default();
    let Ok(store) = LocalStore::create_with_filesystem(filesystem, "crash disk") else {
        return (model, false);
    };
    for step in workload() {
        if model.run(&store, &step).is_err() {
            break;
        }
    }
    (model, true)
}

/// Opens the store again, as the next process would.
fn reopen(disk: &CrashDisk, created: bool) -> LocalStore<CrashDisk> {
    if created {
        return LocalStore::with_filesystem(disk.clone(), "crash disk");
    }
    LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("created again")
}

/// More objects, of ids that the workload does not use.
fn more_steps() -> Vec<Step> {
    let kinds = ObjectKind::ALL.into_iter();
    kinds
        .filter(|kind| *kind != ObjectKind::Config)
        .map(|kind| {
            let mut id = [0xee; 16];
            id[0] = 0xab;
            Step::Put(ObjectKey::new(kind, ObjectId(id)), random_bytes(9, 2000))
        })
        .collect()
}

/// The store is as promised, and goes on: new objects survive the next power failure, and
/// what the dead process left in `tmp/` can be swept.
fn check_recovery(
    disk: &CrashDisk,
    mut model: Model,
    created: bool,
    seed: u64,
) -> Result<(), String> {
    let store = reopen(disk, created);
    model.check(&store)?;
    for step in more_steps() {
        model
            .run(&store, &step)
            .map_err(|error| format!("unusable: {error}"))?;
    }
    model.check(&store)?;
    disk.advance_clock(TEMPORARY_STALE_AFTER);
    store
        .remove_stale_temporaries(TEMPORARY_STALE_AFTER)
        .map_err(|error| error.to_string())?;
    let is_temporary = |path: &String| path.starts_with("tmp/");
    if let Some(path) = disk.file_paths().into_iter().find(is_temporary) {
        return Err(format!("{path} is left"));
    }
    let next = disk.after_crash(seed + 1000, CrashMode::PowerLoss);
    model
        .check(&reopen(&next, created))
        .map_err(|error| format!("after the next power failure: {error}"))
}

#[test]
fn every_crash_keeps_every_promise() {
    let whole = CrashDisk::new(0);
    let (model, _) = run_until_error(whole.clone());
    assert!(
        model
            .objects
            .values()
            .all(|object| object.1 != Promise::Open)
    );
    let operations = whole.operations();
    assert!(operations > 60, "{operations} operations are too few");
    for operation in 0..=operations {
        let disk = CrashDisk::new(0);
        disk.crash_at(operation);
        let (model, created) = run_until_error(disk.clone());
        assert_eq!(disk.has_crashed(), operation < operations);
        for mode in CrashMode::ALL {
            for seed in 0..SEEDS {
                let found = disk.after_crash(seed, mode);
                if let Err(error) = check_recovery(&found, model.clone(), created, seed) {
                    panic!("operation {operation}, seed {seed}, {mode:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn what_a_killed_process_left_can_be_made_durable() {
    let whole = CrashDisk::new(0);
    run_until_error(whole.clone());
    let mut unsynced = 0;
    for operation in 0..whole.operations() {
        let disk = CrashDisk::new(0);
        disk.crash_at(operation);
        run_until_error(disk.clone());
        for seed in 0..SEEDS {
            let lost = lost_after_persisting(&disk, seed, |disk| disk);
            assert_eq!(lost, 0, "operation {operation}, seed {seed}");
            unsynced += lost_after_persisting(&disk, seed, |disk| Forgetful {
                disk,
                forgets: Forgets::EverySync,
            });
        }
    }
    assert!(
        unsynced > 0,
        "persisting was never needed: the test proves nothing"
    );
}

/// Kills the process, persists every object that is seen, cuts the power; how many are lost?
fn lost_after_persisting<F: FileSystem>(
    crashed: &CrashDisk,
    seed: u64,
    filesystem: impl Fn(CrashDisk) -> F,
) -> usize {
    let disk = crashed.after_crash(seed, CrashMode::ProcessKill);
    let store = LocalStore::with_filesystem(filesystem(disk.clone()), "crash disk");
    let keys = all_keys(&store);
    store.persist(&keys).expect("persist");
    let disk = disk.after_crash(seed, CrashMode::PowerLoss);
    let found = all_keys(&LocalStore::with_filesystem(disk, "crash disk"));
    keys.iter().filter(|key| !found.contains(key)).count()
}

fn all_keys<F: FileSystem>(store: &LocalStore<F>) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    for kind in ObjectKind::ALL {
        let visit = &mut |id, _| keys.push(ObjectKey { kind, id });
        store.list(kind, visit).expect("list");
    }
    keys
}

#[test]
fn a_forgotten_sync_is_found_out() {
    let cases = [
        Forgets::Files,
        Forgets::Directory(""),
        Forgets::Directory("keys"),
        Forgets::Directory("containers"),
        Forgets::Directory("containers/00"),
        Forgets::Directory("containers/ab"),
        Forgets::Directory("index"),
        Forgets::Directory("snapshots"),
        Forgets::Directory("remaps"),
        Forgets::Directory("runs"),
    ];
    for forgets in cases {
        let disk = CrashDisk::new(0);
        let (model, created) = run_until_error(Forgetful {
            disk: disk.clone(),
            forgets,
        });
        assert!(created);
        let broken = |seed: &u64| {
            let found = disk.after_crash(*seed, CrashMode::PowerLoss);
            model.check(&reopen(&found, true)).is_err()
        };
        let losses = (0..SEEDS).filter(broken).count();
        assert!(losses > 0, "nobody missed the sync: {forgets:?}");
    }
}

#[test]
fn threads_crash_together() {
    for round in 0..200 {
        let disk = CrashDisk::new(0);
        let store = LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("create");
        disk.crash_at(disk.operations() + Random::new(round).below(120));
        let model = run_in_threads(&store, round);
        for seed in 0..4 {
            for mode in CrashMode::ALL {
                let found = disk.after_crash(seed, mode);
                if let Err(error) = check_recovery(&found, model.clone(), true, seed) {
                    panic!("round {round}, seed {seed}, {mode:?}: {error}");
                }
            }
        }
    }
}

/// Four threads put objects that meet in the same directories; errors end nobody's work.
fn run_in_threads(store: &LocalStore<CrashDisk>, round: u64) -> Model {
    let model = Mutex::new(Model::default());
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let model = &model;
            scope.spawn(move || {
                let mut own = Model::default();
                let mut random = Random::new(round << 8 | u64::from(thread));
                for number in 0..6_u8 {
                    let mut id = [thread << 4 | number; 16];
                    id[0] = number % 2;
                    let kinds = [ObjectKind::Container, ObjectKind::Index];
                    let key = ObjectKey::new(kinds[usize::from(number) / 3], ObjectId(id));
                    let length = random.index(3000);
                    let _ = own.run(store, &Step::Put(key, random.bytes(length)));
                }
                let mut model = model.lock().expect("no panic");
                model.objects.extend(own.objects);
            });
        }
    });
    model.into_inner().expect("no panic")
}

#[test]
fn a_full_disk_keeps_what_is_stored() {
    let create = |disk: &CrashDisk| {
        LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("create")
    };
    for room in (0..60_000).step_by(487) {
        let disk = CrashDisk::new(0);
        let store = create(&disk);
        disk.fail_after_bytes(room);
        let mut model = Model::default();
        let mut refused = Vec::new();
        for step in workload() {
            match (model.run(&store, &step), &step) {
                (Ok(()), _) => {}
                (
                    Err(StoreError::Full { key, .. }),
                    Step::Put(asked, _)
                    | Step::PutIfAbsent(asked, _)
                    | Step::Create(asked, _)
                    | Step::Abandon(asked, _),
                ) => {
                    assert_eq!(key, *asked);
                    refused.push(step);
                }
                (Err(error), _) => panic!("room {room}, {step:?}: {error}"),
            }
        }
        let temporaries = disk.list_dir("tmp").expect("list");
        assert_eq!(temporaries, Vec::<String>::new(), "room {room}");
        model
            .check(&store)
            .unwrap_or_else(|error| panic!("room {room}: {error}"));
        for seed in 0..4 {
            let found = disk.after_crash(seed, CrashMode::PowerLoss);
            let checked = check_recovery(&found, model.clone(), true, seed);
            checked.unwrap_or_else(|error| panic!("room {room}, seed {seed}: {error}"));
        }
        disk.stop_failing();
        for step in refused {
            model.run(&store, &step).expect("there is room again");
        }
        model.check(&store).expect("as if nothing had happened");
    }
}

#[test]
fn a_failed_sync_is_never_taken_for_a_success() {
    // On a store laid out in advance, and on one that lays itself out as it goes.
    for laid_out in [true, false] {
        for number in 0..60 {
            let disk = CrashDisk::new(number);
            let store = if laid_out {
                LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("create")
            } else {
                LocalStore::with_filesystem(disk.clone(), "crash disk")
            };
            let before = disk.sync_points().len() as u64;
            disk.fail_syncs(before + number..before + number + 1);
            let mut model = Model::default();
            let steps = workload();
            let failed: Vec<&Step> = steps
                .iter()
                .filter(|step| model.run(&store, step).is_err())
                .collect();
            let hit = disk.sync_points().len() as u64 - before > number;
            assert_eq!(hit, !failed.is_empty(), "sync {number} failed in silence");
            assert_eq!(
                disk.list_dir("tmp").unwrap_or_default(),
                Vec::<String>::new()
            );
            for step in &failed {
                if let Step::Put(key, _) | Step::PutIfAbsent(key, _) | Step::Create(key, _) = step {
                    let found = store.get(key, u64::MAX);
                    assert!(
                        found.is_err_and(|error| error.is_missing()),
                        "{key} is left"
                    );
                }
            }
            // Whoever asks again is refused, or told the truth.
            for step in failed {
                let _ = model.run(&store, step);
            }
            for seed in 0..SEEDS {
                let found = disk.after_crash(seed, CrashMode::PowerLoss);
                if let Err(error) = model.check(&reopen(&found, true)) {
                    panic!("laid out {laid_out}, sync {number}, seed {seed}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_failed_sync_in_one_thread_is_heard_by_the_others() {
    for round in 0..200 {
        let disk = CrashDisk::new(round);
        let store = LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("create");
        let failing = disk.sync_points().len() as u64 + Random::new(round).below(48);
        disk.fail_syncs(failing..failing + 1);
        let model = run_in_threads(&store, round);
        for seed in 0..4 {
            let found = disk.after_crash(seed, CrashMode::PowerLoss);
            if let Err(error) = model.check(&reopen(&found, true)) {
                panic!("round {round}, seed {seed}: {error}");
            }
        }
    }
}

#[test]
fn persisting_again_after_a_failure_is_refused() {
    for number in 0..3 {
        let disk = CrashDisk::new(0);
        let (model, _) = run_until_error(disk.clone());
        let store = LocalStore::with_filesystem(disk.clone(), "crash disk");
        let key = ObjectKey::new(ObjectKind::Snapshot, ObjectId([2; 16]));
        let before = disk.sync_points().len() as u64;
        disk.fail_syncs(before + number..before + number + 1);
        store.persist(&[key]).expect_err("a sync fails");
        store.persist(&[key]).expect_err("nobody knows");
        assert!(disk.sync_points().len() as u64 <= before + number + 2);
        model.check(&store).expect("nothing is removed");
        let other = LocalStore::with_filesystem(disk, "crash disk");
        other.persist(&[key]).expect("a new handle may ask");
    }
}

#[test]
fn young_temporaries_are_left_alone() {
    let disk = CrashDisk::new(0);
    let store = LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("create");
    let age = Duration::from_secs(60);
    let old = format!("tmp/{}", ObjectId([1; 16]));
    let young = format!("tmp/{}", ObjectId([2; 16]));
    for foreign in ["tmp/notes.txt", "tmp/old.claim"] {
        disk.write_new_file(foreign, b"x").expect("write");
    }
    disk.write_new_file(&old, b"x").expect("write");
    disk.advance_clock(age);
    disk.write_new_file(&young, b"x").expect("write");
    assert_eq!(store.remove_stale_temporaries(age).expect("sweep"), 2);
    assert_eq!(disk.file_paths(), [young, "tmp/notes.txt".to_owned()]);
}

/// A broken file system: it says that it has synced.
struct Forgetful {
    disk: CrashDisk,
    forgets: Forgets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forgets {
    Files,
    Directory(&'static str),
    EverySync,
}

impl FileSystem for Forgetful {
    type File = <CrashDisk as FileSystem>::File;

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn write_new_file(&self, path: &str, bytes: &[u8]) -> io::Result<Self::File> {
        self.disk.write_new_file(path, bytes)
    }

    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()> {
        self.disk.append(file, bytes)
    }

    fn open_file(&self, path: &str) -> io::Result<Self::File> {
        self.disk.open_file(path)
    }

    fn file_bytes(&self, file: &Self::File) -> io::Result<u64> {
        self.disk.file_bytes(file)
    }

    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.read_at(file, offset, buffer)
    }

    fn sync_file(&self, file: &Self::File) -> io::Result<()> {
        match self.forgets {
            Forgets::Files | Forgets::EverySync => Ok(()),
            Forgets::Directory(_) => self.disk.sync_file(file),
        }
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        match self.forgets {
            Forgets::Directory(forgotten) if forgotten == path => Ok(()),
            Forgets::EverySync => Ok(()),
            _ => self.disk.sync_dir(path),
        }
    }

    fn publish(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.publish(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.replace(from, to)
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn status(&self, path: &str) -> io::Result<FileStatus> {
        self.disk.status(path)
    }

    fn list_dir(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list_dir(path)
    }
}

//! Changes of snapshots and of keys that a power failure, a kill or another client meets at any
//! operation: a snapshot is always there, once, and old or new; a repository always opens.

mod support;

use std::sync::{Arc, Mutex};

use engine::object::{LocalStore, MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::Repository;
use repository::snapshot::{Snapshot, SnapshotChange};
use support::hooked::watched;
use support::sources::Source;
use support::{backup, create, open};
use testkit::{CrashDisk, CrashMode};

/// Ways in which a disk is found after a power failure at one operation.
const POWER_LOSSES: u64 = 8;

fn store(disk: &CrashDisk) -> Arc<LocalStore<CrashDisk>> {
    Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk"))
}

fn copy(disk: &CrashDisk) -> CrashDisk {
    disk.after_crash(0, CrashMode::ProcessKill)
}

/// All ways of finding a disk that has crashed.
fn found(disk: &CrashDisk) -> impl Iterator<Item = CrashDisk> {
    let power = (0..POWER_LOSSES).map(|seed| disk.after_crash(seed, CrashMode::PowerLoss));
    power.chain([copy(disk)])
}

fn new_disk() -> CrashDisk {
    let disk = CrashDisk::new(0);
    let store = LocalStore::create_with_filesystem(disk.clone(), "crash disk").expect("laid out");
    create(Arc::new(store), true);
    disk
}

fn only_snapshot(repository: &Repository) -> Snapshot {
    let list = repository.snapshots().expect("listed");
    assert!(list.unreadable.is_empty());
    let [snapshot] = &list.snapshots[..] else {
        panic!("{} snapshots", list.snapshots.len());
    };
    snapshot.clone()
}

fn protect(repository: &Repository) -> Result<Snapshot, repository::RepositoryError> {
    let snapshot = only_snapshot(repository);
    let changed = repository.change_snapshot(&snapshot, &SnapshotChange::Protect)?;
    Ok(changed.expect("it was not protected"))
}

#[test]
fn a_crash_in_a_change_leaves_the_snapshot_once() {
    let base = new_disk();
    let source = Source::new();
    let original = backup(&open(store(&base), true).unwrap(), source.root()).unwrap();
    let whole = copy(&base);
    let repository = open(store(&whole), true).unwrap();
    let before = whole.operations();
    protect(&repository).unwrap();
    let operations = whole.operations() - before;
    assert!(operations > 3, "{operations} operations");
    for operation in 0..=operations {
        let disk = copy(&base);
        let repository = open(store(&disk), true).unwrap();
        disk.crash_at(disk.operations() + operation);
        let snapshot = original.snapshot.clone();
        let outcome = repository.change_snapshot(&snapshot, &SnapshotChange::Protect);
        assert_eq!(outcome.is_ok(), !disk.has_crashed());
        for found in found(&disk) {
            let repository = open(store(&found), true).unwrap();
            let snapshot = only_snapshot(&repository);
            assert_eq!(snapshot.original(), original.snapshot.id);
            assert_eq!(snapshot.root, original.snapshot.root);
            assert!(snapshot.is_protected || outcome.is_err());
            let list = repository.snapshots().unwrap();
            repository.delete_replaced(&list).unwrap();
            assert!(repository.snapshots().unwrap().replaced.is_empty());
            // The next power failure takes nothing away; what a killed process deleted may come
            // back, and counts no more.
            let later = open(store(&found.after_crash(1, CrashMode::PowerLoss)), true).unwrap();
            assert_eq!(only_snapshot(&later), snapshot);
        }
    }
}

/// Somebody changes a snapshot between the listing and the reading of it.
#[test]
fn a_listing_finds_what_is_changed_meanwhile() {
    let medium = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&medium) as Arc<dyn ObjectStore>, true);
    let source = Source::new();
    let report = backup(&repository, source.root()).unwrap();
    let key = ObjectKey::new(ObjectKind::Snapshot, report.snapshot.id);
    let changed = Arc::new(Mutex::new(None));
    let (other, told) = (repository, Arc::clone(&changed));
    let reader = watched(Arc::clone(&medium), &[key], 1, move || {
        *told.lock().unwrap() = Some(protect(&other).unwrap());
    });
    let repository = open(Arc::new(reader), true).unwrap();
    let snapshot = only_snapshot(&repository);
    assert_eq!(Some(snapshot), *changed.lock().unwrap());
}

#[test]
fn forgetting_removes_snapshots_and_nothing_else() {
    let medium = Arc::new(MemoryStore::new());
    let repository = create(Arc::clone(&medium) as Arc<dyn ObjectStore>, true);
    let source = Source::new();
    let first = backup(&repository, source.root()).unwrap().snapshot;
    let second = backup(&repository, source.root()).unwrap().snapshot;
    let third = backup(&repository, source.root()).unwrap().snapshot;
    let protect = SnapshotChange::Protect;
    let second = repository
        .change_snapshot(&second, &protect)
        .unwrap()
        .unwrap();
    let others = |key: &ObjectKey| key.kind != ObjectKind::Snapshot;
    let kept: Vec<ObjectKey> = medium.keys().into_iter().filter(others).collect();

    let list = repository.snapshots().unwrap();
    let error = repository.forget(&list, &[&first, &second]).unwrap_err();
    assert!(
        error.to_string().contains(&second.id.to_string()),
        "{error}"
    );
    assert_eq!(repository.snapshots().unwrap().snapshots.len(), 3);
    repository.forget(&list, &[&first, &third]).unwrap();
    assert_eq!(only_snapshot(&repository), second);
    // Somebody else has forgotten them meanwhile: that is what was wanted.
    repository.forget(&list, &[&first, &third]).unwrap();
    let left: Vec<ObjectKey> = medium.keys().into_iter().filter(others).collect();
    assert_eq!(left, kept);
}

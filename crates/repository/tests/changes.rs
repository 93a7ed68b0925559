//! Changes of snapshots and of keys that a power failure, a kill or another client meets at any
//! operation: a snapshot is always there, once, and old or new; a repository always opens.

mod support;

use std::sync::{Arc, Mutex};

use engine::object::{LocalStore, MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use repository::keys::{KEY_SLOTS_MAX, KeyError, Password, SlotLabel};
use repository::snapshot::{Snapshot, SnapshotChange};
use repository::{Keyring, Repository, RepositoryError};
use support::hooked::watched;
use support::sources::Source;
use support::{CHEAP, PASSWORD, backup, create, open};
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

fn protect(repository: &Repository) -> Result<Snapshot, RepositoryError> {
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

const OTHER: &str = "battery staple";

fn keyring(store: Arc<dyn ObjectStore>, password: &str) -> Result<Keyring, RepositoryError> {
    Keyring::open(store, Some(&Password::new(password)))
}

/// Adds the other password, then removes the one that opened: what `passwd` does.
fn change_password(keyring: &Keyring) -> Result<(), RepositoryError> {
    let label = SlotLabel::default();
    keyring.add(&Password::new(OTHER), CHEAP, &label)?;
    keyring.remove(keyring.opened_by(), true)
}

#[test]
fn a_crash_in_a_change_of_password_leaves_one_that_opens() {
    let base = new_disk();
    let whole = copy(&base);
    let ring = keyring(store(&whole), PASSWORD).unwrap();
    let before = whole.operations();
    change_password(&ring).unwrap();
    let operations = whole.operations() - before;
    assert!(operations > 3, "{operations} operations");
    assert!(keyring(store(&whole), PASSWORD).is_err());
    for operation in 0..operations {
        let disk = copy(&base);
        let ring = keyring(store(&disk), PASSWORD).unwrap();
        disk.crash_at(disk.operations() + operation);
        assert!(change_password(&ring).is_err());
        for found in found(&disk) {
            let (old, new) = (
                keyring(store(&found), PASSWORD),
                keyring(store(&found), OTHER),
            );
            assert!(old.is_ok() || new.is_ok(), "operation {operation}");
            // Whatever is left can be put in order.
            if let (Ok(_), Ok(new)) = (&old, &new) {
                new.remove(old.unwrap().opened_by(), false).unwrap();
                assert!(keyring(store(&found), PASSWORD).is_err());
            }
        }
    }
}

#[test]
fn passwords_come_and_go() {
    let medium = Arc::new(MemoryStore::new());
    let store = || Arc::clone(&medium) as Arc<dyn ObjectStore>;
    create(store(), true);
    let ring = keyring(store(), PASSWORD).unwrap();
    let first = ring.opened_by();
    let error = ring.remove(first, false).unwrap_err();
    assert!(matches!(
        error,
        RepositoryError::Key(KeyError::LastSlot { .. })
    ));
    let error = ring.remove(first, true).unwrap_err();
    assert!(matches!(
        error,
        RepositoryError::Key(KeyError::LastSlot { .. })
    ));

    let label = SlotLabel {
        host: "here".to_owned(),
        user: "me".to_owned(),
        name: "in the safe".to_owned(),
        ..SlotLabel::default()
    };
    let second = ring.add(&Password::new(OTHER), CHEAP, &label).unwrap();
    let error = ring.remove(first, false).unwrap_err();
    assert!(matches!(
        error,
        RepositoryError::Key(KeyError::SlotInUse { .. })
    ));
    // Each sees the labels of all.
    let other = keyring(store(), OTHER).unwrap();
    let (keys, problems) = other.list().unwrap();
    assert_eq!(problems, Vec::<String>::new());
    let facts: Vec<_> = keys
        .into_iter()
        .map(|key| (key.id, key.label, key.is_current))
        .collect();
    assert_eq!(facts, [(first, None, false), (second, Some(label), true)]);
    assert_eq!(other.find(&first.to_string()[..9]).unwrap(), first);
    let error = other.find("").unwrap_err();
    assert!(matches!(
        error,
        RepositoryError::Key(KeyError::AmbiguousSlot { .. })
    ));

    // A damaged slot is named, and can be removed.
    let key = ObjectKey::new(ObjectKind::Key, first);
    medium.corrupt(&key, |bytes| bytes[70] ^= 1);
    let (keys, problems) = other.list().unwrap();
    assert_eq!((keys.len(), problems.len()), (1, 1));
    let error = other.remove(second, true).unwrap_err();
    assert!(matches!(
        error,
        RepositoryError::Key(KeyError::LastSlot { .. })
    ));
    other.remove(first, false).unwrap();
    assert_eq!(other.list().unwrap().0.len(), 1);
}

#[test]
fn an_unencrypted_repository_has_no_passwords() {
    let medium = Arc::new(MemoryStore::new());
    create(Arc::clone(&medium) as Arc<dyn ObjectStore>, false);
    let ring = Keyring::open(medium, None).unwrap();
    assert_eq!(ring.list().unwrap().0.len(), 1);
    let label = SlotLabel::default();
    let error = ring.add(&Password::new(OTHER), CHEAP, &label).unwrap_err();
    assert!(matches!(error, RepositoryError::Key(KeyError::NoPasswords)));
    assert!(ring.remove(ring.opened_by(), true).is_err());
}

#[test]
fn there_is_room_for_so_many_keys_and_no_more() {
    let medium = Arc::new(MemoryStore::new());
    create(Arc::clone(&medium) as Arc<dyn ObjectStore>, true);
    let ring = keyring(medium, PASSWORD).unwrap();
    let add = |name: &str| {
        let label = SlotLabel {
            name: name.to_owned(),
            ..SlotLabel::default()
        };
        ring.add(&Password::new(OTHER), CHEAP, &label)
    };
    let long: String = (0..5000).map(|number: u32| format!("{number:x}")).collect();
    let error = add(&long).unwrap_err();
    assert!(matches!(
        error,
        RepositoryError::Key(KeyError::LongLabel { .. })
    ));
    for _ in 1..KEY_SLOTS_MAX {
        add("one of many").unwrap();
    }
    let error = add("one too many").unwrap_err();
    assert!(matches!(error, RepositoryError::Key(KeyError::NoRoom)));
    assert_eq!(ring.list().unwrap().0.len(), KEY_SLOTS_MAX);
}

//! Rotation of the data secret: who reads what before and after, in every order of what clients do,
//! and after a crash at any operation.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod support;

use std::sync::{Arc, Mutex};

use engine::object::{LocalStore, MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use repository::keys::{KeyError, KeySlot, Password, SlotLabel};
use repository::prune::{PruneError, PruneOptions};
use repository::{CreateOptions, Keyring, Progress, Repository, RepositoryError};
use support::hooked::meddled;
use support::sources::Source;
use support::{CHEAP, PASSWORD, backup, check_clean, check_restore, create_options, settings};
use testkit::{CrashDisk, CrashMode};

fn options() -> CreateOptions {
    CreateOptions {
        label: Some(SlotLabel::default()),
        ..create_options()
    }
}

/// An encrypted repository with the keys [`PASSWORD`] and `second`.
fn create(store: Arc<dyn ObjectStore>) {
    let password = Password::new(PASSWORD);
    Repository::create(Arc::clone(&store), Some(&password), &options(), settings()).unwrap();
    add(&keyring(store, PASSWORD), "second").unwrap();
}

fn keyring(store: Arc<dyn ObjectStore>, password: &str) -> Keyring {
    Keyring::open(store, Some(&Password::new(password))).unwrap()
}

fn open(store: Arc<dyn ObjectStore>, password: &str) -> Repository {
    Repository::open(store, Some(&Password::new(password)), settings()).unwrap()
}

fn add(keyring: &Keyring, password: &str) -> Result<ObjectId, RepositoryError> {
    keyring.add(&Password::new(password), CHEAP, &SlotLabel::default())
}

fn memory(store: &Arc<MemoryStore>) -> Arc<dyn ObjectStore> {
    Arc::clone(store) as Arc<dyn ObjectStore>
}

/// The epoch that a snapshot is sealed in, as its header says.
fn epoch_of(store: &dyn ObjectStore, snapshot: ObjectId) -> u32 {
    let key = ObjectKey::new(ObjectKind::Snapshot, snapshot);
    let bytes = store.get(&key, 1 << 20).unwrap();
    u32::from_le_bytes(bytes[4..8].try_into().unwrap())
}

fn copy_of(store: &MemoryStore) -> Arc<MemoryStore> {
    let copy = MemoryStore::new();
    for kind in ObjectKind::ALL {
        let mut ids = Vec::new();
        store.list(kind, &mut |id, _| ids.push(id)).unwrap();
        if kind == ObjectKind::Config {
            ids = vec![ObjectId([0; 16])];
        }
        for id in ids {
            let key = ObjectKey::new(kind, id);
            copy.put(&key, &store.get(&key, 1 << 26).unwrap()).unwrap();
        }
    }
    Arc::new(copy)
}

/// What a person loses who had the password of a key that is gone, and kept everything of the
/// repository, then and now.
#[test]
fn a_removed_key_reads_nothing_that_comes_after() {
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    let source = Source::new();
    let before = backup(&open(memory(&store), PASSWORD), source.root()).unwrap();
    let picture = source.picture();
    let removed = keyring(memory(&store), "second").opened_by();
    let slot = ObjectKey::new(ObjectKind::Key, removed);
    let kept = store.get(&slot, 1 << 20).unwrap();

    let ours = keyring(memory(&store), PASSWORD);
    ours.remove(removed, false).unwrap();
    let rotation = ours.rotate(false).unwrap();
    assert_eq!(rotation.slots, [ours.opened_by()]);
    let epochs = ours.epochs().unwrap();
    assert_eq!(epochs.len(), 2);
    assert!(epochs[1].is_newest && !epochs[0].is_newest);
    source.advance(1);
    let after = backup(&open(memory(&store), PASSWORD), source.root()).unwrap();
    assert_eq!(epoch_of(store.as_ref(), after.snapshot.id), rotation.epoch);
    assert_eq!(epoch_of(store.as_ref(), before.snapshot.id), 1);
    // What is stored of the unchanged files is not stored again.
    assert!(after.totals.bytes_new < before.totals.bytes_new);

    let stolen = copy_of(&store);
    stolen.put(&slot, &kept).unwrap();
    let theirs = open(memory(&stolen), "second");
    assert!(
        theirs
            .warnings()
            .iter()
            .any(|warning| warning.contains("key rotate"))
    );
    check_restore(&theirs, &before.snapshot, source.root(), &picture).unwrap();
    let list = theirs.snapshots().unwrap();
    assert_eq!(list.snapshots.len(), 1);
    assert_eq!(list.unreadable.len(), 1);
    assert_eq!(list.unreadable[0].id, after.snapshot.id);
    // Not one object that came since opens, of whatever kind.
    let vault = theirs.engine().vault();
    let mut refused = 0;
    for kind in [
        ObjectKind::Snapshot,
        ObjectKind::Index,
        ObjectKind::Container,
    ] {
        let mut ids = Vec::new();
        store.list(kind, &mut |id, _| ids.push(id)).unwrap();
        for id in ids {
            let key = ObjectKey::new(kind, id);
            let bytes = store.get(&key, 1 << 26).unwrap();
            let header = match kind {
                ObjectKind::Snapshot => &bytes[..12],
                _ => &bytes[bytes.len() - 32..][..12],
            };
            let epoch = u32::from_le_bytes(header[4..8].try_into().unwrap());
            assert_eq!(vault.object(key, header).is_ok(), epoch == 1, "{key}");
            refused += usize::from(epoch != 1);
        }
    }
    assert!(refused >= 3, "{refused} objects of the new epoch");
    // Nor is anything written with it.
    assert!(backup(&theirs, source.root()).is_err());
    let error = theirs.prune(&PruneOptions::default(), &Progress::default());
    assert!(matches!(
        error,
        Err(PruneError::Repository(RepositoryError::Key(
            KeyError::LockedOut(_)
        )))
    ));
    let theirs = keyring(memory(&stolen), "second");
    for error in [theirs.rotate(true).err(), add(&theirs, "third").err()] {
        assert!(matches!(
            error,
            Some(RepositoryError::Key(KeyError::LockedOut(_)))
        ));
    }
}

/// No other password is needed, and all keys that are there read all there is, also after several
/// rotations, from several keys, with keys that came between.
#[test]
fn every_key_that_stays_reads_everything() {
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    let source = Source::new();
    let mut saved = Vec::new();
    for (round, password) in ["second", PASSWORD, "second"].into_iter().enumerate() {
        let keyring = keyring(memory(&store), password);
        let rotation = keyring.rotate(false).unwrap();
        assert_eq!(rotation.slots.len(), 2 + round);
        add(&keyring_after(&store, password), &format!("key {round}")).unwrap();
        source.advance(round as u64 + 1);
        let report = backup(&open(memory(&store), password), source.root()).unwrap();
        assert_eq!(epoch_of(store.as_ref(), report.snapshot.id), rotation.epoch);
        saved.push((report.snapshot, source.picture()));
    }
    for password in [PASSWORD, "second", "key 0", "key 1", "key 2"] {
        let repository = open(memory(&store), password);
        assert!(repository.warnings().is_empty(), "{password}");
        for (snapshot, picture) in &saved {
            check_restore(&repository, snapshot, source.root(), picture).unwrap();
        }
        check_clean(&repository).unwrap();
        let (keys, problems) = keyring(memory(&store), password).list().unwrap();
        assert!(problems.is_empty());
        assert!(keys.iter().all(|key| key.opens_newest == Some(true)));
    }
}

fn keyring_after(store: &Arc<MemoryStore>, password: &str) -> Keyring {
    keyring(memory(store), password)
}

/// Who has opened the repository before goes on, reads what is new, and seals in the new epoch from
/// the next time on.
#[test]
fn who_is_at_work_goes_on() {
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    let source = Source::new();
    let early = open(memory(&store), "second");
    let rotation = keyring(memory(&store), PASSWORD).rotate(false).unwrap();
    let new = backup(&open(memory(&store), PASSWORD), source.root()).unwrap();
    check_restore(&early, &new.snapshot, source.root(), &source.picture()).unwrap();
    source.advance(1);
    let old = backup(&early, source.root()).unwrap();
    assert_eq!(old.repository_warnings, []);
    assert_eq!(epoch_of(store.as_ref(), old.snapshot.id), 1);
    source.advance(2);
    let late = backup(&open(memory(&store), "second"), source.root()).unwrap();
    assert_eq!(epoch_of(store.as_ref(), late.snapshot.id), rotation.epoch);
    check_clean(&open(memory(&store), PASSWORD)).unwrap();
}

/// Keys of older versions have no key pair.
#[test]
fn keys_that_can_not_be_handed_a_secret_are_named() {
    let store = Arc::new(MemoryStore::new());
    let password = Password::new(PASSWORD);
    // Without a label it is such a key.
    Repository::create(
        memory(&store),
        Some(&password),
        &create_options(),
        settings(),
    )
    .unwrap();
    let keyring = |password| keyring(memory(&store), password);
    let old = keyring(PASSWORD).opened_by();
    let unpaired = |result| match result {
        Err(RepositoryError::Key(KeyError::Unpaired { slots })) => slots,
        other => panic!("{other:?}"),
    };
    // A key can't leave itself out.
    assert_eq!(unpaired(keyring(PASSWORD).rotate(false)), [old]);
    assert_eq!(unpaired(keyring(PASSWORD).rotate(true)), [old]);
    let new = add(&keyring(PASSWORD), "new").unwrap();
    assert_eq!(unpaired(keyring("new").rotate(false)), [old]);
    assert_eq!(
        keyring("new").epochs().unwrap().len(),
        1,
        "nothing was begun"
    );
    let rotation = keyring("new").rotate(true).unwrap();
    assert_eq!((rotation.slots, rotation.left_out), (vec![new], vec![old]));
    let (keys, _) = keyring("new").list().unwrap();
    let opens = |id| keys.iter().find(|key| key.id == id).unwrap().opens_newest;
    assert_eq!((opens(new), opens(old)), (Some(true), None));
    let repository = open(memory(&store), PASSWORD);
    assert_eq!(repository.warnings().len(), 1);
    assert!(repository.check_writable().is_err());
}

/// A forged epoch, or one whose maker does not have the epoch before, gives nobody anything.
#[test]
fn an_epoch_of_a_stranger_is_not_taken() {
    let [ours, theirs] = [(), ()].map(|()| Arc::new(MemoryStore::new()));
    create(memory(&ours));
    create(memory(&theirs));
    keyring(memory(&theirs), PASSWORD).rotate(false).unwrap();
    let mut ids = Vec::new();
    theirs
        .list(ObjectKind::Epoch, &mut |id, _| ids.push(id))
        .unwrap();
    let key = ObjectKey::new(ObjectKind::Epoch, ids[0]);
    ours.put(&key, &theirs.get(&key, 1 << 20).unwrap()).unwrap();
    // It is newer than all that we have: so we do not write, and say why.
    let repository = open(memory(&ours), PASSWORD);
    assert!(repository.check_writable().is_err());
    assert_eq!(repository.engine().vault().sealing_epoch(), 1);
}

#[test]
fn a_damaged_newest_epoch_is_not_passed_over() {
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    keyring(memory(&store), PASSWORD).rotate(false).unwrap();
    let mut epochs = Vec::new();
    let mut list = |id, _| epochs.push(ObjectKey::new(ObjectKind::Epoch, id));
    store.list(ObjectKind::Epoch, &mut list).unwrap();
    assert!(store.corrupt(&epochs[0], |bytes| bytes[60] ^= 1));
    // Under the secret before it, which a removed key may have, nothing is stored.
    let repository = open(memory(&store), PASSWORD);
    assert!(
        repository
            .warnings()
            .iter()
            .any(|it| it.contains("newest secret"))
    );
    assert!(repository.check_writable().is_err());
    // Another one is begun above it.
    keyring(memory(&store), PASSWORD).rotate(false).unwrap();
    for password in [PASSWORD, "second"] {
        open(memory(&store), password).check_writable().unwrap();
    }
}

#[test]
fn rotations_at_the_same_time() {
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    let first = Arc::new(Mutex::new(None));
    let (other, told) = (Arc::clone(&store), Arc::clone(&first));
    let hooked = meddled(&store, 1, move || {
        let rotation = keyring(memory(&other), "second").rotate(false).unwrap();
        *told.lock().unwrap() = Some(rotation);
    });
    let second = keyring(hooked, PASSWORD).rotate(false).unwrap();
    let first = first.lock().unwrap().clone().unwrap();
    assert!(second.epoch >> 16 > first.epoch >> 16, "it came after");
    for password in [PASSWORD, "second"] {
        let repository = open(memory(&store), password);
        assert_eq!(repository.engine().vault().sealing_epoch(), second.epoch);
        assert!(repository.warnings().is_empty());
        let epochs = keyring(memory(&store), password).epochs().unwrap();
        assert!(epochs.len() == 4 && epochs.iter().all(|epoch| epoch.is_open));
    }
}

/// A key comes while an epoch is begun, and an epoch is begun while a key comes: at every change of
/// the one the other happens as a whole.
#[test]
fn keys_come_and_go_while_an_epoch_is_begun() {
    for change in 1..=2 {
        for rotates_first in [false, true] {
            let store = Arc::new(MemoryStore::new());
            create(memory(&store));
            let other = Arc::clone(&store);
            let hooked = meddled(&store, change, move || {
                let second = keyring(memory(&other), "second");
                match rotates_first {
                    true => drop(add(&second, "third").unwrap()),
                    false => drop(second.rotate(false).unwrap()),
                }
            });
            let ours = keyring(hooked.clone(), PASSWORD);
            match rotates_first {
                true => drop(ours.rotate(false).unwrap()),
                false => drop(add(&ours, "third").unwrap()),
            }
            // Where it happened after the last change, there was nothing to meet.
            let third = Keyring::open(memory(&store), Some(&Password::new("third")));
            let third = match third {
                Ok(third) => third,
                Err(_) if rotates_first && change == 2 => continue,
                Err(error) => panic!("change {change}, {rotates_first}: {error}"),
            };
            assert!(
                third.warnings().is_empty(),
                "change {change}, {rotates_first}"
            );
            assert!(third.epochs().unwrap().iter().all(|epoch| epoch.is_open));
            let (keys, problems) = third.list().unwrap();
            assert_eq!((keys.len(), problems.len()), (3, 0));
            assert!(keys.iter().all(|key| key.opens_newest == Some(true)));
        }
    }
    // A key that goes while an epoch is begun has no part in the last one.
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    let gone = keyring(memory(&store), "second").opened_by();
    let other = Arc::clone(&store);
    let hooked = meddled(&store, 1, move || {
        keyring(memory(&other), PASSWORD)
            .remove(gone, false)
            .unwrap();
    });
    let rotation = keyring(hooked, PASSWORD).rotate(false).unwrap();
    assert!(!rotation.slots.contains(&gone));
}

fn disk_store(disk: &CrashDisk) -> Arc<LocalStore<CrashDisk>> {
    Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk"))
}

/// At any operation of a rotation, and whatever is left of it, every key opens the repository, reads
/// all that was stored, and may begin an epoch; what was reported as begun stays.
#[test]
fn a_crash_in_a_rotation() {
    let base = CrashDisk::new(0);
    let store = LocalStore::create_with_filesystem(base.clone(), "crash disk").unwrap();
    create(Arc::new(store));
    let source = Source::new();
    let report = backup(&open(disk_store(&base), PASSWORD), source.root()).unwrap();
    let copy = |disk: &CrashDisk| disk.after_crash(0, CrashMode::ProcessKill);
    let whole = copy(&base);
    let ours = keyring(disk_store(&whole), PASSWORD);
    let before = whole.operations();
    ours.rotate(false).unwrap();
    let operations = whole.operations() - before;
    assert!(operations > 3, "{operations} operations");
    for operation in 0..=operations {
        let disk = copy(&base);
        let ours = keyring(disk_store(&disk), PASSWORD);
        disk.crash_at(disk.operations() + operation);
        let outcome = ours.rotate(false);
        assert_eq!(outcome.is_ok(), !disk.has_crashed());
        let power = (0..4).map(|seed| disk.after_crash(seed, CrashMode::PowerLoss));
        for found in power.chain([copy(&disk)]) {
            for password in [PASSWORD, "second"] {
                let repository = open(disk_store(&found), password);
                assert!(repository.warnings().is_empty(), "operation {operation}");
                let list = repository.snapshots().unwrap();
                assert_eq!((list.snapshots.len(), list.unreadable.len()), (1, 0));
                check_restore(
                    &repository,
                    &report.snapshot,
                    source.root(),
                    &source.picture(),
                )
                .unwrap();
                if let Ok(rotation) = &outcome {
                    assert_eq!(repository.engine().vault().sealing_epoch(), rotation.epoch);
                }
            }
            let again = keyring(disk_store(&found), "second").rotate(false).unwrap();
            let repository = open(disk_store(&found), PASSWORD);
            assert_eq!(repository.engine().vault().sealing_epoch(), again.epoch);
        }
    }
}

/// What is sealed for slots is nothing without their secrets: slots of the same repository with other
/// secrets get nothing.
#[test]
fn a_slot_under_the_same_id_is_not_enough() {
    let store = Arc::new(MemoryStore::new());
    create(memory(&store));
    let ours = keyring(memory(&store), PASSWORD);
    let slot = ours.opened_by();
    ours.rotate(false).unwrap();
    let repository = ours.config().id;
    let read = KeySlot::read(store.as_ref(), slot).unwrap();
    let secrets = read
        .open_password(repository, &Password::new(PASSWORD))
        .unwrap();
    assert_eq!(secrets.newest_epoch(), 1, "the slot itself never changes");
    let stranger = Password::new("stranger");
    let label = SlotLabel::default();
    let forged = KeySlot::seal_labelled(&secrets, &stranger, CHEAP, repository, slot, &label);
    store.delete(&forged.as_ref().unwrap().key()).unwrap();
    forged.unwrap().write(store.as_ref()).unwrap();
    let stranger = open(memory(&store), "stranger");
    assert_eq!(stranger.engine().vault().sealing_epoch(), 1);
    assert!(stranger.check_writable().is_err());
}

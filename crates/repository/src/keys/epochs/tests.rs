//! Tests of epochs: numbers, and what a slot gets of them.

use engine::object::MemoryStore;

use super::*;
use crate::keys::epoch::Member;
use crate::keys::random_secret;

const REPOSITORY: ObjectId = ObjectId([0xaa; 16]);

fn slot(byte: u8) -> ObjectId {
    ObjectId([byte; 16])
}

/// Stores a rotation of `secrets` for these slots, whose secrets are their bytes; returns its epoch.
fn rotate(store: &MemoryStore, secrets: &mut Secrets, slots: &[u8]) -> u32 {
    let before = secrets.newest_epoch();
    let id = next_rotation(before).unwrap();
    let pairs = secrets.clone();
    let secret = random_secret();
    secrets.add_epoch(epoch_of(id), secret.clone());
    let public = recipient_of(secrets, REPOSITORY, epoch_of(id)).unwrap();
    let member = |&byte: &u8| Member {
        slot: slot(byte),
        public: public_key(&Secret::new([byte; 32])),
        made_in: 1,
        is_write_only: false,
    };
    let members: Vec<_> = slots.iter().map(member).collect();
    let epoch = Epoch::rotate(
        REPOSITORY,
        id,
        0,
        &|epoch| pairs.recipient(REPOSITORY, epoch),
        (&secret, public),
        &members,
    );
    let epoch = epoch.unwrap();
    store.put(&epoch.key(), &epoch.encode()).unwrap();
    epoch_of(id)
}

#[test]
fn numbers_rise_and_come_to_an_end() {
    let mut before = 1;
    for counted in 1..=100 {
        let next = epoch_of(next_rotation(before).unwrap());
        assert!(next > before && next >> 16 == counted, "{next:x}");
        before = next;
    }
    assert!(next_rotation(0x7ffe_ffff).is_some());
    assert!(next_rotation(0x7fff_0000).is_none());
    let of_two = |_| epoch_of(next_rotation(1).unwrap());
    let numbers: std::collections::BTreeSet<u32> = (0..8).map(of_two).collect();
    assert!(numbers.len() > 1, "two at the same time differ");
}

#[test]
fn a_slot_gets_the_epochs_that_it_has_a_part_in() {
    let store = MemoryStore::new();
    let first = Secrets::random();
    let mut all = first.clone();
    let epochs = [
        rotate(&store, &mut all, &[1, 2, 3]),
        rotate(&store, &mut all, &[1, 3]),
        rotate(&store, &mut all, &[1, 2]),
    ];
    let listed = Epochs::load(&store).unwrap();
    assert_eq!(listed.rotations.len(), 3);
    for (byte, has) in [
        (1, [true; 3]),
        (2, [true, false, true]),
        (3, [true, true, false]),
    ] {
        let mut secrets = first.clone();
        listed.extend(
            REPOSITORY,
            &mut secrets,
            slot(byte),
            Some(&Secret::new([byte; 32])),
        );
        assert_eq!(
            epochs.map(|epoch| secrets.has_epoch(epoch)),
            has,
            "slot {byte}"
        );
        assert_eq!(listed.newer_than(&secrets).is_none(), has[2]);
        for epoch in epochs.into_iter().filter(|&epoch| secrets.has_epoch(epoch)) {
            assert_eq!(secrets.epoch(epoch), all.epoch(epoch));
        }
    }
    let mut secrets = first.clone();
    listed.extend(REPOSITORY, &mut secrets, slot(1), None);
    assert_eq!(
        secrets.newest_epoch(),
        1,
        "a slot without a pair gets nothing"
    );
}

#[test]
fn an_epoch_that_came_later_is_found() {
    let store = Arc::new(MemoryStore::new());
    let mut all = Secrets::random();
    let finder = EpochFinder {
        store: Arc::clone(&store) as Arc<dyn ObjectStore>,
        repository: REPOSITORY,
        slot: slot(1),
        slot_key: Some(Secret::new([1; 32])),
        secrets: Mutex::new(all.clone()),
        listed: Mutex::default(),
    };
    assert!(finder.find(5).unwrap().is_none());
    let epoch = rotate(&store, &mut all, &[1]);
    assert_eq!(finder.find(epoch).unwrap().as_ref(), all.epoch(epoch));
    let without = rotate(&store, &mut all, &[2]);
    assert!(finder.find(without).unwrap().is_none());
}

#[test]
fn a_damaged_rotation_is_told_and_the_others_count() {
    let store = MemoryStore::new();
    let mut all = Secrets::random();
    rotate(&store, &mut all, &[1]);
    let listed = Epochs::load(&store).unwrap();
    let key = listed.rotations[0].key();
    rotate(&store, &mut all, &[1]);
    assert!(store.corrupt(&key, |bytes| bytes[60] ^= 1));
    let listed = Epochs::load(&store).unwrap();
    assert_eq!((listed.rotations.len(), listed.damaged.len()), (1, 1));
    assert_eq!(listed.damaged[0].0, key.id);
}

/// Runs of clients that can only write are as many as their backups: opening lists them, and each is read when
/// something of it is met.
#[test]
fn thousands_of_runs_are_found_one_by_one() {
    const RUNS: u32 = 1000;
    let store = Arc::new(MemoryStore::new());
    let mut all = Secrets::random();
    let rotated = rotate(&store, &mut all, &[1]);
    let public = recipient_of(&all, REPOSITORY, rotated).unwrap();
    let shared = all.shared_by_clients(REPOSITORY);
    let mut expected = BTreeMap::new();
    for number in 0..RUNS {
        let id = id_of(1 << 31 | number);
        let secret = random_secret();
        let by = (slot(2), &shared);
        let run = Epoch::begin_run(REPOSITORY, id, 0, (rotated, public), &secret, by).unwrap();
        store.put(&run.key(), &run.encode()).unwrap();
        expected.insert(epoch_of(id), secret);
    }
    let epochs = Epochs::load(store.as_ref()).unwrap();
    assert_eq!((epochs.rotations.len(), epochs.runs), (1, RUNS as usize));
    let finder = |secrets: &Secrets| EpochFinder {
        store: Arc::clone(&store) as Arc<dyn ObjectStore>,
        repository: REPOSITORY,
        slot: slot(1),
        slot_key: Some(Secret::new([1; 32])),
        secrets: Mutex::new(secrets.clone()),
        listed: Mutex::default(),
    };
    let ours = finder(&all);
    for (&epoch, secret) in &expected {
        assert_eq!(ours.find(epoch).unwrap().as_ref(), Some(secret));
    }
    assert!(ours.find(1 << 31 | RUNS).unwrap().is_none());
    // Who has other secrets gets none of them.
    let stranger = finder(&Secrets::random());
    assert!(stranger.find(1 << 31).unwrap().is_none());
}

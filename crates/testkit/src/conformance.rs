//! What every implementation of a seam must do, as suites to run on each.
//!
//! [`object_store`] takes a maker of empty stores and panics, naming the rule, where a store
//! breaks one. Durability needs a disk that crashes: `engine/tests/local_store_crash.rs`.

use std::collections::BTreeMap;
use std::sync::Barrier;

use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, PutOutcome, StoreError};

use crate::generate::random_bytes;

/// A maker of empty stores.
pub type MakeStore<'a> = &'a dyn Fn() -> Box<dyn ObjectStore>;

/// Runs every rule of [`ObjectStore`] on stores of its own.
///
/// # Panics
/// When a rule is broken.
pub fn object_store(make: MakeStore<'_>) {
    objects_come_back_whole(&*make());
    objects_in_parts_come_back_whole(&*make());
    objects_in_parts_are_invisible_until_finished(&*make());
    missing_objects_are_named(&*make());
    limits_are_checked_first(&*make());
    ranges_are_exact(&*make());
    tails_know_the_length(&*make());
    put_if_absent_leaves_what_is_there(&*make());
    put_never_mixes_two_objects(&*make());
    listing_shows_each_kind_alone(&*make());
    visitors_may_call_the_store(&*make());
    deleted_objects_are_gone(&*make());
    persisting_wants_every_object(&*make());
    threads_do_not_disturb_each_other(&*make());
    one_racer_creates(&*make());
}

/// A key that the same numbers always give.
fn key(kind: ObjectKind, number: u8) -> ObjectKey {
    match kind {
        ObjectKind::Config => ObjectKey::CONFIG,
        kind => ObjectKey::new(kind, ObjectId([number; ObjectId::BYTES])),
    }
}

fn container(number: u8) -> ObjectKey {
    key(ObjectKind::Container, number)
}

fn listed(store: &dyn ObjectStore, kind: ObjectKind) -> BTreeMap<ObjectId, u64> {
    let mut found = BTreeMap::new();
    store
        .list(kind, &mut |id, object_bytes| {
            let twice = found.insert(id, object_bytes);
            assert_eq!(twice, None, "{id} was listed twice");
        })
        .expect("listing works");
    found
}

fn put(store: &dyn ObjectStore, key: &ObjectKey, bytes: &[u8]) {
    store.put(key, bytes).expect("putting works");
}

fn whole(store: &dyn ObjectStore, key: &ObjectKey) -> Vec<u8> {
    store.get(key, u64::MAX).expect("the object is there")
}

fn objects_come_back_whole(store: &dyn ObjectStore) {
    assert!(!store.location().is_empty(), "a store says where it is");
    for (number, length) in [0, 1, 511, 512, 4096, 300_001].into_iter().enumerate() {
        let key = container(number as u8);
        let bytes = random_bytes(number as u64, length);
        put(store, &key, &bytes);
        assert_eq!(whole(store, &key), bytes);
    }
    for kind in ObjectKind::ALL {
        let key = key(kind, 0xee);
        put(store, &key, kind.directory().as_bytes());
        assert_eq!(whole(store, &key), kind.directory().as_bytes());
    }
}

fn objects_in_parts_come_back_whole(store: &dyn ObjectStore) {
    for (number, parts) in [&[][..], &[0], &[1, 0, 511], &[300_001, 7], &[4096; 40]]
        .into_iter()
        .enumerate()
    {
        let key = key(ObjectKind::Index, number as u8);
        let bytes = random_bytes(number as u64, parts.iter().sum());
        let mut writer = store.create(&key).expect("creating works");
        let mut rest = &bytes[..];
        for &length in parts {
            let (part, after) = rest.split_at(length);
            writer.write(part).expect("writing works");
            rest = after;
        }
        writer.finish().expect("finishing works");
        assert_eq!(whole(store, &key), bytes);
    }
    assert_eq!(listed(store, ObjectKind::Index).len(), 5);
}

fn objects_in_parts_are_invisible_until_finished(store: &dyn ObjectStore) {
    let (key, other) = (container(1), container(2));
    let mut writer = store.create(&key).expect("creating works");
    let mut dropped = store.create(&other).expect("creating works");
    for part in [&b"some"[..], b"thing"] {
        writer.write(part).expect("writing works");
        dropped.write(part).expect("writing works");
        assert!(
            store
                .get(&key, u64::MAX)
                .is_err_and(|error| error.is_missing())
        );
        assert_eq!(listed(store, ObjectKind::Container).len(), 0);
    }
    drop(dropped);
    writer.finish().expect("finishing works");
    assert_eq!(whole(store, &key), b"something");
    let expected = BTreeMap::from([(key.id, 9)]);
    assert_eq!(listed(store, ObjectKind::Container), expected);
    // Two that race for one key: never a mixture.
    let mut writer = store.create(&key).expect("creating works");
    writer.write(b"another").expect("writing works");
    match writer.finish() {
        Ok(()) => assert_eq!(whole(store, &key), b"another"),
        Err(_) => assert_eq!(whole(store, &key), b"something"),
    }
}

fn missing_objects_are_named(store: &dyn ObjectStore) {
    let check = |asked: ObjectKey, result: Result<(), StoreError>| match result {
        Err(StoreError::Missing { key, location }) => {
            assert_eq!((key, location), (asked, store.location()));
        }
        other => panic!("{asked} is missing, but the store says {other:?}"),
    };
    put(store, &container(1), b"another");
    for kind in ObjectKind::ALL {
        let key = key(kind, 2);
        check(key, store.get(&key, u64::MAX).map(|_| ()));
        check(key, store.get_range(&key, 0, 0).map(|_| ()));
        check(key, store.get_tail(&key, 0).map(|_| ()));
        check(key, store.persist(&[key]));
        store
            .delete(&key)
            .expect("deleting what is not there is no error");
    }
}

fn limits_are_checked_first(store: &dyn ObjectStore) {
    let asked = container(1);
    put(store, &asked, &[7; 1000]);
    assert_eq!(store.get(&asked, 1000).expect("at the limit").len(), 1000);
    match store.get(&asked, 999) {
        Err(StoreError::TooLong {
            key,
            object_bytes,
            limit_bytes,
            ..
        }) => assert_eq!((key, object_bytes, limit_bytes), (asked, 1000, 999)),
        other => panic!("1000 bytes where 999 are allowed: {other:?}"),
    }
    put(store, &container(2), b"");
    assert_eq!(store.get(&container(2), 0).expect("nothing fits"), b"");
}

fn ranges_are_exact(store: &dyn ObjectStore) {
    let asked = container(1);
    let bytes = random_bytes(1, 10_000);
    put(store, &asked, &bytes);
    for (offset, length) in [
        (0, 0),
        (0, 1),
        (0, 10_000),
        (9_999, 1),
        (10_000, 0),
        (4_095, 4_098),
    ] {
        let range = store
            .get_range(&asked, offset as u64, length)
            .expect("the range lies in the object");
        assert_eq!(range, bytes[offset..offset + length]);
    }
    for (offset, length) in [
        (0, 10_001),
        (10_000, 1),
        (10_001, 0),
        (u64::MAX, 1),
        (1, usize::MAX),
    ] {
        match store.get_range(&asked, offset, length) {
            Err(StoreError::TooShort {
                key,
                wanted_end,
                object_bytes,
                ..
            }) => {
                let end = offset.saturating_add(length as u64);
                assert_eq!((key, wanted_end, object_bytes), (asked, end, 10_000));
            }
            other => panic!("{length} bytes from {offset} of 10000: {other:?}"),
        }
    }
}

fn tails_know_the_length(store: &dyn ObjectStore) {
    let key = container(1);
    let bytes = random_bytes(1, 1000);
    put(store, &key, &bytes);
    for length in [0, 1, 999, 1000, 1001, usize::MAX] {
        let tail = store.get_tail(&key, length).expect("any length will do");
        assert_eq!(tail.bytes, bytes[1000 - length.min(1000)..]);
        assert_eq!(tail.object_bytes, 1000);
    }
}

fn put_if_absent_leaves_what_is_there(store: &dyn ObjectStore) {
    for kind in ObjectKind::ALL {
        let key = key(kind, 1);
        let first = store.put_if_absent(&key, b"first").expect("put");
        let second = store.put_if_absent(&key, b"second").expect("put");
        assert_eq!((first, second), (PutOutcome::Created, PutOutcome::Exists));
        assert_eq!(whole(store, &key), b"first");
        store.delete(&key).expect("delete");
        let third = store.put_if_absent(&key, b"third").expect("put");
        assert_eq!(third, PutOutcome::Created);
        assert_eq!(whole(store, &key), b"third");
    }
}

fn put_never_mixes_two_objects(store: &dyn ObjectStore) {
    let key = container(1);
    put(store, &key, b"first");
    let expected: &[u8] = match store.put(&key, b"the second") {
        Ok(()) => b"the second",
        Err(_) => b"first",
    };
    assert_eq!(whole(store, &key), expected);
}

fn listing_shows_each_kind_alone(store: &dyn ObjectStore) {
    for kind in ObjectKind::ALL {
        assert_eq!(listed(store, kind), BTreeMap::new(), "an empty store");
    }
    let mut expected: BTreeMap<ObjectKind, BTreeMap<ObjectId, u64>> = BTreeMap::new();
    for kind in ObjectKind::ALL {
        for number in [0, 1, 0x0f, 0xff] {
            let key = key(kind, number);
            let length = usize::from(number) + kind as usize;
            if store.put_if_absent(&key, &vec![0; length]).expect("put") == PutOutcome::Created {
                let of_kind = expected.entry(kind).or_default();
                of_kind.insert(key.id, length as u64);
            }
        }
    }
    for kind in ObjectKind::ALL {
        assert_eq!(listed(store, kind), expected[&kind], "{kind:?}");
    }
}

fn visitors_may_call_the_store(store: &dyn ObjectStore) {
    for number in 0..10 {
        put(store, &container(number), &[number]);
    }
    let mut visited = 0;
    store
        .list(ObjectKind::Container, &mut |id, _| {
            visited += 1;
            let key = ObjectKey::new(ObjectKind::Container, id);
            whole(store, &key);
            store.delete(&key).expect("deleting while listing works");
        })
        .expect("listing works");
    assert_eq!(visited, 10);
    assert_eq!(listed(store, ObjectKind::Container).len(), 0);
}

fn deleted_objects_are_gone(store: &dyn ObjectStore) {
    for kind in ObjectKind::ALL {
        put(store, &key(kind, 1), b"bytes");
    }
    for kind in ObjectKind::ALL {
        let key = key(kind, 1);
        store.delete(&key).expect("delete");
        assert!(store.get(&key, 10).expect_err("deleted").is_missing());
        assert_eq!(listed(store, kind), BTreeMap::new());
        store.delete(&key).expect("again");
        let others = ObjectKind::ALL.into_iter().filter(|other| *other > kind);
        for other in others {
            assert_eq!(
                listed(store, other).len(),
                1,
                "{kind:?} took {other:?} along"
            );
        }
    }
}

fn persisting_wants_every_object(store: &dyn ObjectStore) {
    let keys: Vec<ObjectKey> = ObjectKind::ALL.map(|kind| key(kind, 1)).into();
    for key in &keys {
        put(store, key, b"bytes");
    }
    store.persist(&[]).expect("nothing to do");
    store.persist(&keys).expect("all are there");
    store
        .persist(&[keys[2], keys[2]])
        .expect("a key named twice");
    let missing = container(2);
    match store.persist(&[keys[0], missing]) {
        Err(StoreError::Missing { key, .. }) => assert_eq!(key, missing),
        other => panic!("{missing} is missing, but the store says {other:?}"),
    }
}

fn threads_do_not_disturb_each_other(store: &dyn ObjectStore) {
    const THREADS: u8 = 8;
    const OBJECTS: u8 = 12;
    // Every thread meets every other in some shard of the containers.
    let key = |thread: u8, number: u8| {
        let mut id = [number; ObjectId::BYTES];
        id[15] = thread;
        ObjectKey::new(ObjectKind::Container, ObjectId(id))
    };
    let bytes = |thread: u8, number: u8| {
        random_bytes(
            u64::from(thread) << 8 | u64::from(number),
            1000 * usize::from(number),
        )
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..OBJECTS {
                    let key = key(thread, number);
                    put(store, &key, &bytes(thread, number));
                    assert_eq!(whole(store, &key), bytes(thread, number));
                    listed(store, ObjectKind::Container);
                    if number % 3 == 0 {
                        store.delete(&key).expect("delete");
                    } else {
                        store.persist(&[key]).expect("persist");
                    }
                }
            });
        }
    });
    let mut expected = BTreeMap::new();
    for thread in 0..THREADS {
        for number in (0..OBJECTS).filter(|number| number % 3 != 0) {
            let key = key(thread, number);
            assert_eq!(whole(store, &key), bytes(thread, number));
            expected.insert(key.id, 1000 * u64::from(number));
        }
    }
    assert_eq!(listed(store, ObjectKind::Container), expected);
}

fn one_racer_creates(store: &dyn ObjectStore) {
    const RACERS: usize = 8;
    for kind in ObjectKind::ALL {
        let key = key(kind, 1);
        let start = Barrier::new(RACERS);
        let outcomes: Vec<(Vec<u8>, PutOutcome)> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..RACERS)
                .map(|racer| {
                    let start = &start;
                    scope.spawn(move || {
                        let bytes = random_bytes(racer as u64, 5000);
                        start.wait();
                        let outcome = store.put_if_absent(&key, &bytes).expect("put");
                        (bytes, outcome)
                    })
                })
                .collect();
            let join =
                |racer: std::thread::ScopedJoinHandle<'_, _>| racer.join().expect("no panic");
            racers.into_iter().map(join).collect()
        });
        let created = |(_, outcome): &&(Vec<u8>, PutOutcome)| *outcome == PutOutcome::Created;
        let winners: Vec<_> = outcomes.iter().filter(created).collect();
        assert_eq!(
            winners.len(),
            1,
            "{key} was created more than once, or never"
        );
        assert_eq!(whole(store, &key), winners[0].0);
    }
}

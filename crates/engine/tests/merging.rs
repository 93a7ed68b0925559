//! Chunks that several containers have are stored once: everything comes back bit for bit, from fewer bytes, also after
//! some of the containers went, and what shares groups is packed anew.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use common::compaction::{Stored, assert_reads, container_objects, delete, new_engine, slots_of};
use common::{noise, text};
use engine::container::{ChunkAddress, Compacted, CompactionError, ContainerId, SlotSet};
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use proptest::prelude::*;

/// Streams of writers that did not know of each other: `shared` of all parts are in all of them.
fn raced(seed: u64, writers: u64, parts: u64, shared: u64, is_padded: bool) -> Stored {
    let (store, engine) = new_engine(is_padded);
    let mut open: Vec<_> = (0..writers).map(|_| engine.writer().unwrap()).collect();
    let mut streams = Vec::new();
    for part in 0..parts {
        for (number, writer) in open.iter_mut().enumerate() {
            let own = if part % parts < shared {
                0
            } else {
                100 + number as u64
            };
            let kind = seed + 1000 * own + part;
            let bytes = 30_000 + (kind % 7) as usize * 20_000;
            let stream = if part % 2 == 0 {
                text(kind, bytes)
            } else {
                noise(kind, bytes)
            };
            let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
            streams.push((writer.settle(pending).unwrap(), stream));
        }
    }
    for writer in &mut open {
        writer.commit().unwrap();
    }
    drop(open);
    Stored {
        store,
        engine,
        streams,
    }
}

/// Slots with equal chunks, as a prune finds them.
fn classes_of(stored: &Stored, slots: &BTreeMap<ContainerId, SlotSet>) -> Vec<Vec<ChunkAddress>> {
    let reader = stored.engine.reader().unwrap();
    let mut by_fingerprint: HashMap<_, BTreeSet<ChunkAddress>> = HashMap::new();
    for (&container, slots) in slots {
        for slot in slots.iter() {
            let chunk = ChunkAddress { container, slot };
            let (loaded, at) = reader.containers().find(chunk).unwrap().unwrap();
            let class = by_fingerprint
                .entry(loaded.section.fingerprints[at])
                .or_default();
            if !class.iter().any(|other| other.container == container) {
                class.insert(chunk);
            }
        }
    }
    let several = by_fingerprint.into_values().filter(|class| class.len() > 1);
    let mut classes: Vec<Vec<_>> = several.map(|class| class.into_iter().collect()).collect();
    classes.sort_unstable();
    classes
}

/// Merges what can be, and keeps the rest of what streams need.
fn merge(stored: &Stored) -> Result<(Compacted, u64), CompactionError> {
    let slots = slots_of(all(stored));
    let classes = classes_of(stored, &slots);
    let mut compactor = stored.engine.compactor()?;
    let merged = compactor.merge(&classes)?;
    for (container, slots) in &slots {
        let of_container = merged.get(container);
        let is_merged = |slot| of_container.is_some_and(|merged| merged.contains(slot));
        let rest = slots.iter().filter(|&slot| !is_merged(slot));
        compactor.keep(*container, &rest.collect())?;
    }
    let count = merged.values().map(|slots| slots.len() as u64).sum();
    Ok((compactor.finish()?, count))
}

fn all(stored: &Stored) -> Vec<&engine::recipe::Recipe> {
    stored.streams.iter().map(|(recipe, _)| recipe).collect()
}

fn bytes(stored: &Stored) -> u64 {
    container_objects(&stored.store).values().sum()
}

/// Deletes the objects that are not in `kept`.
fn delete_others(stored: &Stored, compacted: &Compacted) {
    let kept: BTreeSet<ObjectId> = compacted.moved.iter().map(|(_, object)| *object).collect();
    for object in container_objects(&stored.store).into_keys() {
        if !kept.contains(&object) {
            delete(&stored.store, object);
        }
    }
}

fn assert_sound(stored: &Stored) {
    let reader = stored.engine.reader().unwrap();
    for (recipe, stream) in &stored.streams {
        assert_reads(&stored.engine, &reader, recipe, stream);
    }
    for object in container_objects(&stored.store).into_keys() {
        let key = ObjectKey::new(ObjectKind::Container, object);
        reader.containers().verify_object(key).unwrap();
    }
}

#[test]
fn what_two_writers_stored_at_once_is_stored_once() {
    for is_padded in [false, true] {
        let stored = raced(1, 2, 24, 24, is_padded);
        let before = bytes(&stored);
        let under_way = stored.engine.reader().unwrap();
        let (compacted, merged) = merge(&stored).unwrap();
        stored.engine.store_moved(&compacted).unwrap();
        assert_sound(&stored);
        delete_others(&stored, &compacted);
        assert_sound(&stored);
        for (recipe, stream) in &stored.streams {
            assert_reads(&stored.engine, &under_way, recipe, stream);
        }
        let after = bytes(&stored);
        assert!(after < before * 2 / 3, "{before} bytes became {after}");
        assert!(merged > 100);
        // Who stores it again finds it.
        let mut writer = stored.engine.writer().unwrap();
        let stream = &stored.streams[0].1;
        writer.store_stream(&mut stream.as_slice(), None).unwrap();
        assert_eq!(writer.totals().chunks_new, 0);
    }
}

#[test]
fn one_of_two_owners_may_go() {
    let mut stored = raced(2, 2, 16, 12, true);
    let (compacted, _) = merge(&stored).unwrap();
    stored.engine.store_moved(&compacted).unwrap();
    delete_others(&stored, &compacted);
    let with_both = bytes(&stored);
    // Streams of the two alternate.
    let mut number = 0;
    stored.streams.retain(|_| {
        number += 1;
        number % 2 == 0
    });
    let keep = slots_of(all(&stored));
    let compacted = common::compaction::compact(&stored.engine, &keep).unwrap();
    stored.engine.store_moved(&compacted).unwrap();
    delete_others(&stored, &compacted);
    assert_sound(&stored);
    assert!(bytes(&stored) <= with_both);
}

#[test]
fn what_differs_is_never_taken_for_the_same() {
    let stored = raced(3, 2, 6, 0, false);
    let slots = slots_of(all(&stored));
    let mut firsts = slots.iter().map(|(&container, slots)| ChunkAddress {
        container,
        slot: slots.iter().next().unwrap(),
    });
    let class = vec![firsts.next().unwrap(), firsts.next().unwrap()];
    let before = container_objects(&stored.store);
    let mut compactor = stored.engine.compactor().unwrap();
    let refused = compactor.merge(&[class]);
    assert!(matches!(refused, Err(CompactionError::Differ { .. })));
    assert_eq!(container_objects(&stored.store), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn whatever_is_shared_comes_back(
        seed in 0u64..1000,
        writers in 2u64..5,
        shared in 0u64..10,
        is_padded: bool,
    ) {
        let stored = raced(seed, writers, 10, shared, is_padded);
        for round in 0..2 {
            let (compacted, merged) = merge(&stored).unwrap();
            prop_assert!(round > 0 || shared < 3 || merged > 0);
            stored.engine.store_moved(&compacted).unwrap();
            delete_others(&stored, &compacted);
            assert_sound(&stored);
        }
    }
}

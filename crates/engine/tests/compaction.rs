//! Compaction against a plain model: what is kept comes back bit for bit, by readers opened before and after, what is
//! dropped is gone, and whatever goes wrong leaves everything as it was.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use common::compaction::{
    Sink, Stored, assert_reads, compact, container_objects, delete, keep_only, new_engine,
    slots_of, stored, with_bases,
};
use common::{engine_on, small_settings, text};
use engine::container::{ChunkAddress, CompactionError, ContainerId, ContainerKind, SlotSet};
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::restore::RestorePlan;
use proptest::prelude::*;
use testkit::deltas::{Filling, Storeroom};
use testkit::random::Random;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_kept_comes_back_and_what_is_dropped_is_gone(seed: u64, is_padded: bool) {
        let (store, engine) = new_engine(is_padded);
        let filling = Filling { containers: 4, chunks: 40, depth_max: 3 };
        let room = Storeroom::random(&engine, seed, filling);
        let mut random = Random::new(seed);
        let model: BTreeMap<ChunkAddress, &Vec<u8>> =
            room.chunks.iter().map(|(place, bytes, _)| (*place, bytes)).collect();
        let mut kept: BTreeSet<ChunkAddress> = model.keys().copied().collect();
        for _ in 0..4 {
            let before = engine.reader().unwrap();
            let share = 1 + random.below(10);
            let wanted: Vec<_> = kept.iter().copied().filter(|_| random.below(10) < share).collect();
            let keep = with_bases(&before, wanted);
            // Some containers stay where they are, with all that is in them.
            let mut moving: BTreeMap<ContainerId, SlotSet> = BTreeMap::new();
            let all: BTreeSet<_> = kept.iter().map(|chunk| chunk.container).collect();
            for &container in all.iter().filter(|_| random.below(4) > 0) {
                moving.insert(container, keep.get(&container).cloned().unwrap_or_default());
            }
            // What stays may have any bases.
            let staying = kept.iter().copied().filter(|chunk| !moving.contains_key(&chunk.container));
            for (container, slots) in with_bases(&before, staying) {
                if let Some(moved) = moving.get_mut(&container) {
                    moved.insert_all(&slots);
                }
            }
            let is_kept = |chunk: &ChunkAddress| {
                moving.get(&chunk.container).is_none_or(|slots| slots.contains(chunk.slot))
            };
            let numbers: Vec<_> = (0..room.chunks.len())
                .filter(|&at| kept.contains(&room.chunks[at].0) && is_kept(&room.chunks[at].0))
                .collect();
            let (recipe, expected) = room.stream(numbers);
            // A restore that is under way.
            let mut plan = RestorePlan::default();
            let parts = plan.add_stream(&before, 0, &recipe, None).unwrap();

            let compacted = compact(&engine, &moving).unwrap();
            engine.store_moved(&compacted).unwrap();
            let totals = compacted.totals;
            prop_assert_eq!(
                totals.chunks_kept as usize,
                moving.values().map(SlotSet::len).sum::<usize>()
            );
            let remaps = engine.reader().unwrap().containers().remaps();
            let needed: BTreeSet<_> = compacted.moved.iter().map(|(_, object)| *object).collect();
            let sizes = container_objects(&store);
            for object in &needed {
                prop_assert!(sizes[object] <= 256 << 10);
            }
            // Objects go of which everything was moved.
            let used: HashSet<ObjectId> = all
                .iter()
                .filter(|container| !moving.contains_key(container))
                .map(|&container| remaps.object_of(container).id)
                .collect();
            for (object, _) in sizes {
                if !needed.contains(&object) && !used.contains(&object) {
                    delete(&store, object);
                }
            }
            let dropped: Vec<_> = kept.iter().copied().filter(|chunk| !is_kept(chunk)).collect();
            kept.retain(|chunk| is_kept(chunk));
            let after = engine.reader().unwrap();
            let sink = Sink::default();
            plan.execute(&before, &engine.reading_room(), &sink);
            sink.assert_is(parts.parts, &expected);
            for reader in [&before, &after] {
                assert_reads(&engine, reader, &recipe, &expected);
                for chunk in &kept {
                    prop_assert!(&*reader.chunk(*chunk).unwrap() == model[chunk].as_slice());
                }
            }
            for &chunk in &dropped {
                // Unless its old object had to stay for others.
                let remaps = after.containers().remaps();
                let may_stay = remaps.places(chunk.container).any(|place| used.contains(&place));
                prop_assert!(may_stay || after.chunk(chunk).is_err(), "{chunk}");
            }
            let dropped: BTreeSet<_> = dropped.into_iter().collect();
            for (object, _) in container_objects(&store) {
                let key = ObjectKey::new(ObjectKind::Container, object);
                after.containers().verify_object(key).unwrap();
                if needed.contains(&object) {
                    let (metadata, _) = after.containers().object(key).unwrap();
                    for section in &metadata.sections {
                        let all = (0..section.chunk_count()).map(|chunk| section.address(chunk));
                        prop_assert!(all.into_iter().all(|chunk| !dropped.contains(&chunk)));
                    }
                }
            }
        }
    }
}

#[test]
fn whole_groups_are_not_compressed_again_and_objects_are_padded_as_those_of_a_backup() {
    for is_padded in [false, true] {
        let Stored {
            store,
            engine,
            streams,
        } = stored(is_padded);
        let before = container_objects(&store);
        let all: Vec<_> = streams.iter().map(|(recipe, _)| recipe).collect();
        let same = keep_only(&engine, &store, &all).totals;
        assert_eq!((same.groups_made, same.chunks_dropped), (0, 0));
        assert!(same.groups_kept > 10);
        let half = keep_only(&engine, &store, &[&streams[0].0, &streams[3].0]);
        assert!(half.totals.groups_kept > 0 && half.totals.chunks_dropped > 0);
        assert!(half.totals.objects >= 2);
        let objects = container_objects(&store);
        let new: BTreeSet<_> = half.moved.iter().map(|(_, object)| *object).collect();
        let sizes: Vec<_> = new.iter().map(|object| objects[object]).collect();
        let whole = sizes.iter().filter(|&&bytes| bytes == 256 << 10).count();
        match is_padded {
            true => assert!(whole + 1 >= sizes.len(), "{sizes:?}"),
            false => assert_eq!(sizes.iter().sum::<u64>(), half.totals.bytes_written),
        }
        assert!(sizes.iter().sum::<u64>() < before.values().sum::<u64>());
    }
}

#[test]
fn without_a_remap_new_objects_harm_nobody() {
    let Stored {
        store,
        engine,
        streams,
    } = stored(true);
    let crashed = keep_only(&engine, &store, &[&streams[1].0]);
    assert!(crashed.totals.objects > 0);
    let reader = engine.reader().unwrap();
    assert_eq!(reader.containers().remaps().generation(), 0);
    let mut writer = engine.writer().unwrap();
    for (recipe, stream) in &streams {
        assert_reads(&engine, &reader, recipe, stream);
        let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
        assert_eq!(writer.settle(pending).unwrap(), *recipe);
    }
    assert_eq!(writer.totals().chunks_new, 0);
    writer.commit().unwrap();
    drop(writer);
    let again = keep_only(&engine, &store, &[&streams[1].0]);
    engine.store_moved(&again).unwrap();
    assert_reads(
        &engine,
        &engine.reader().unwrap(),
        &streams[1].0,
        &streams[1].1,
    );
}

#[test]
fn damage_ends_a_compaction_and_names_the_chunk() {
    let Stored {
        store,
        engine,
        streams,
    } = stored(false);
    let keep = slots_of([&streams[2].0]);
    let (&container, slots) = keep.first_key_value().unwrap();
    let reader = engine.reader().unwrap();
    let section = Arc::clone(&reader.containers().section(container).unwrap().section);
    let first = slots.iter().next().unwrap();
    let group = section.groups[section.group_of(section.chunk_in(first).unwrap())];
    let key = container.own_object();
    let mut bytes = store.get(&key, u64::MAX).unwrap();
    bytes[group.offset as usize + 5] ^= 1;
    store.delete(&key).unwrap();
    store.put(&key, &bytes).unwrap();
    let error = compact(&engine, &keep).unwrap_err();
    match &error {
        CompactionError::Chunk { chunk, object, .. } => {
            assert_eq!((chunk.container, *object), (container, key));
            assert!(slots.contains(chunk.slot));
        }
        other => panic!("{other}"),
    }
    let message = error.to_string();
    assert!(
        message.contains(&key.to_string()) && message.contains("slot"),
        "{message}"
    );
    // What is not there, neither.
    let mut missing = SlotSet::new();
    missing.insert_run(first, u32::from(u16::MAX));
    let missing = BTreeMap::from([(container, missing)]);
    let error = compact(&engine, &missing).unwrap_err();
    assert!(matches!(error, CompactionError::Missing { chunk } if chunk.container == container));
    store.delete(&key).unwrap();
    let error = compact(&engine, &keep).unwrap_err();
    assert!(matches!(error, CompactionError::Container { container: of, .. } if of == container));
    assert_eq!(
        engine.reader().unwrap().containers().remaps().generation(),
        0
    );
}

#[test]
fn containers_of_a_kind_go_together() {
    let (store, engine) = new_engine(false);
    let filling = Filling {
        containers: 3,
        chunks: 20,
        depth_max: 2,
    };
    let room = Storeroom::random(&engine, 3, filling);
    let reader = engine.reader().unwrap();
    let keep = with_bases(&reader, room.chunks.iter().map(|(place, _, _)| *place));
    let compacted = compact(&engine, &keep).unwrap();
    assert_eq!(compacted.moved.len(), 6);
    for object in compacted.moved.iter().map(|(_, object)| *object) {
        let key = ObjectKey::new(ObjectKind::Container, object);
        let (metadata, _) = reader.containers().object(key).unwrap();
        let kinds: HashSet<ContainerKind> = metadata
            .sections
            .iter()
            .map(|section| section.kind)
            .collect();
        assert_eq!(kinds.len(), 1);
        assert_eq!(metadata.sections.len(), 3);
    }
    assert_eq!(container_objects(&store).len(), 8);
}

#[test]
fn what_compresses_worse_than_before_keeps_its_groups() {
    let (store, engine) = new_engine(true);
    let mut writer = engine.writer().unwrap();
    let stream = text(9, 2_000_000);
    let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
    let recipe = writer.settle(pending).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let mut keep = slots_of([&recipe]);
    for slots in keep.values_mut() {
        *slots = slots.iter().filter(|slot| slot.0 % 9 > 0).collect();
    }
    let wanted: usize = keep.values().map(SlotSet::len).sum();
    let settings = engine::EngineSettings {
        compression: engine::container::CompressionLevel::NONE.into(),
        ..small_settings(1)
    };
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    let compacted = compact(&engine_on(shared, settings, true), &keep).unwrap();
    assert!(compacted.totals.chunks_kept as usize > wanted);
    engine.store_moved(&compacted).unwrap();
    keep.keys()
        .for_each(|container| delete(&store, container.0));
    let reader = engine.reader().unwrap();
    for (&container, slots) in &keep {
        for slot in slots.iter() {
            reader.chunk(ChunkAddress { container, slot }).unwrap();
        }
    }
}

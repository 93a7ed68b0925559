//! Reading what compactions have moved: from several places, while objects go, and by an index that is told which will.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::sync::Arc;

use common::compaction::{
    Sink, Stored, assert_reads, compact, container_objects, delete, keep_only, new_engine,
    slots_of, stored, with_bases,
};
use engine::container::SlotSet;
use engine::index::RunSet;
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::StreamPiece;
use engine::recipe::{Recipe, Run};
use engine::restore::{ChunkSink, RestorePlan};
use testkit::deltas::{Filling, Storeroom};

/// Two prunes that packed different slots of a container do not hide each other's.
#[test]
fn slots_are_found_in_several_places() {
    for is_same_generation in [false, true] {
        let Stored {
            store,
            engine,
            streams,
        } = stored(true);
        let old = container_objects(&store);
        let before = engine.reader().unwrap();
        let (recipe, stream) = &streams[0];
        let all = slots_of([recipe]);
        let part = |number: usize| {
            let of_container = all.iter().map(|(&container, slots)| {
                let part = slots
                    .iter()
                    .filter(|slot| usize::from(slot.0) / 7 % 3 == number);
                (container, part.collect::<SlotSet>())
            });
            of_container.collect::<BTreeMap<_, _>>()
        };
        let parts: Vec<_> = (0..3)
            .map(|number| compact(&engine, &part(number)).unwrap())
            .collect();
        let none = before.containers().remaps();
        for compacted in &parts {
            match is_same_generation {
                true => drop(
                    none.next(compacted.moved.clone())
                        .store(store.as_ref(), engine.vault())
                        .unwrap(),
                ),
                false => drop(engine.store_moved(compacted).unwrap()),
            }
        }
        old.into_keys().for_each(|object| delete(&store, object));
        let after = engine.reader().unwrap();
        for reader in [&before, &after] {
            assert_reads(&engine, reader, recipe, stream);
        }
        let mut check = None;
        after
            .visit_runs(recipe, &mut |run, located| {
                let chunks = located.unwrap().chunks.len() as u32;
                assert!(matches!(run, Run::Slots { count, .. } if *count == chunks));
                check = Some(chunks);
            })
            .unwrap();
        assert!(check.unwrap() <= 7);
        // All of it is found by the index, also by one that is made anew.
        for is_new in [false, true] {
            if is_new {
                let mut runs = Vec::new();
                store
                    .list(ObjectKind::Index, &mut |id, _| {
                        runs.push(ObjectKey::new(ObjectKind::Index, id));
                    })
                    .unwrap();
                runs.iter().for_each(|run| store.delete(run).unwrap());
            }
            let mut writer = engine.writer().unwrap();
            let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
            writer.settle(pending).unwrap();
            assert_eq!(writer.totals().chunks_new, 0);
            writer.commit().unwrap();
        }
        // And compacted again it lies in one place.
        let again = compact(&engine, &all).unwrap();
        engine.store_moved(&again).unwrap();
        assert_reads(&engine, &engine.reader().unwrap(), recipe, stream);
    }
}

#[test]
fn what_is_condemned_is_read_and_not_referred_to() {
    let Stored {
        store,
        engine,
        streams,
    } = stored(false);
    let old: HashSet<ObjectId> = container_objects(&store).into_keys().collect();
    let kept = &streams[2];
    let compacted = keep_only(&engine, &store, &[&kept.0]);
    engine.store_moved(&compacted).unwrap();
    let engine = engine.with_condemned(Arc::new(old.clone()));
    let reader = engine.reader().unwrap();
    for (recipe, stream) in &streams {
        assert_reads(&engine, &reader, recipe, stream);
    }
    let mut writer = engine.writer().unwrap();
    let live = Arc::clone(writer.index().live_objects());
    let has_all = |recipe: &Recipe| {
        let Recipe::Runs(runs) = recipe else {
            panic!("short recipes");
        };
        runs.iter().all(|run| match *run {
            Run::Slots {
                container,
                first,
                count,
                ..
            } => live.has_chunks(reader.containers(), container, first, count),
            Run::Hole { .. } => true,
        })
    };
    for (recipe, _) in &streams {
        assert_eq!(has_all(recipe), *recipe == kept.0);
    }
    // What is kept is found, the rest is stored again, in other places.
    let mut again = Vec::new();
    for (recipe, stream) in &streams {
        let new_before = writer.totals().chunks_new;
        let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
        let settled = writer.settle(pending).unwrap();
        let is_new = writer.totals().chunks_new > new_before;
        assert_eq!(
            (settled == *recipe, is_new),
            (*recipe == kept.0, *recipe != kept.0)
        );
        again.push(settled);
    }
    writer.commit().unwrap();
    drop(writer);
    old.into_iter().for_each(|object| delete(&store, object));
    let reader = engine.reader().unwrap();
    for (recipe, (_, stream)) in again.iter().zip(&streams) {
        assert_reads(&engine, &reader, recipe, stream);
    }
}

#[test]
fn the_index_reads_no_moved_containers_that_it_knows() {
    let Stored {
        store,
        engine,
        streams,
    } = stored(true);
    let old = container_objects(&store);
    let compacted = keep_only(&engine, &store, &[&streams[0].0, &streams[5].0]);
    engine.store_moved(&compacted).unwrap();
    old.into_keys().for_each(|object| delete(&store, object));
    for _ in 0..2 {
        let mut writer = engine.writer().unwrap();
        let reads =
            |writer: &engine::pipeline::Writer| writer.index().containers().metadata_reads().reads;
        assert_eq!(reads(&writer), 0);
        let pending = writer
            .store_stream(&mut streams[5].1.as_slice(), None)
            .unwrap()
            .0;
        assert_eq!(writer.settle(pending).unwrap(), streams[5].0);
        writer.commit().unwrap();
        // A container that was moved is live in a merge.
        writer.merge_index().unwrap();
    }
    let runs = RunSet::open(
        Arc::clone(engine.store()),
        Arc::clone(engine.vault()),
        1 << 20,
    )
    .unwrap();
    for (container, _) in &compacted.moved {
        assert!(runs.covered(*container));
    }
}

/// Deletes objects when it is told to, in the middle of things.
struct Deleting<'a> {
    sink: Sink,
    delete: &'a (dyn Fn() + Sync),
}

impl ChunkSink for Deleting<'_> {
    fn write(&self, stream: u32, offset: u64, bytes: &[u8]) {
        (self.delete)();
        self.sink.write(stream, offset, bytes);
    }

    fn lost(&self, stream: u32, offset: u64, parts: usize, error: &str) {
        self.sink.lost(stream, offset, parts, error);
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

#[test]
fn readers_go_on_when_objects_go_while_they_read() {
    for way in 0..4 {
        let Stored {
            store,
            engine,
            streams,
        } = stored(true);
        let old = container_objects(&store);
        let (recipe, stream) = &streams[1];
        let reader = engine.reader().unwrap();
        let mut plan = RestorePlan::default();
        let parts = plan.add_stream(&reader, 0, recipe, None).unwrap();
        let check = reader.visit_runs(recipe, &mut |_, _| {}).unwrap().1;
        let compacted = keep_only(&engine, &store, &[recipe]);
        engine.store_moved(&compacted).unwrap();
        let delete_old = || old.keys().for_each(|&object| delete(&store, object));
        let mut read = Vec::new();
        match way {
            0 => {
                let mut all = reader.stream(recipe);
                let mut some = vec![0; 50_000];
                all.read_exact(&mut some).unwrap();
                delete_old();
                read = some;
                all.read_to_end(&mut read).unwrap();
            }
            1 => {
                let mut take = |piece: StreamPiece<'_>| {
                    delete_old();
                    if let StreamPiece::Bytes(bytes) = piece {
                        read.extend_from_slice(bytes);
                    }
                    Ok(())
                };
                let room = engine.reading_room();
                let report = room.read_in_order(&reader, recipe, Some(check), 20_000, &mut take);
                assert_eq!(report.unwrap().bytes, stream.len() as u64);
            }
            _ => {
                // Metadata is known, or not any more.
                let reader = match way {
                    2 => reader.clone(),
                    _ => engine.reader().unwrap(),
                };
                let sink = Deleting {
                    sink: Sink::default(),
                    delete: &delete_old,
                };
                plan.execute(&reader, &engine.reading_room(), &sink);
                sink.sink.assert_is(parts.parts, stream);
                read.clone_from(stream);
            }
        }
        assert!(read == *stream, "way {way}");
        assert!(container_objects(&store).len() < old.len());
    }
}

#[test]
fn chunks_made_of_condemned_ones_are_not_there() {
    let (_, engine) = new_engine(false);
    let filling = Filling {
        containers: 2,
        chunks: 30,
        depth_max: 2,
    };
    let room = Storeroom::random(&engine, 5, filling);
    let condemned = room.chunks[0].0.container;
    let engine = engine.with_condemned(Arc::new(HashSet::from([condemned.0])));
    let reader = engine.reader().unwrap();
    let writer = engine.writer().unwrap();
    let live = writer.index().live_objects();
    let (mut gone, mut there) = (0, 0);
    for (chunk, ..) in &room.chunks {
        let needed = with_bases(&reader, [*chunk]);
        let is_there = live.has_chunk(reader.containers(), *chunk);
        assert_eq!(is_there, !needed.contains_key(&condemned), "{chunk}");
        match is_there {
            true => there += 1,
            false => gone += 1,
        }
    }
    assert!(gone > 30 && there > 0);
}

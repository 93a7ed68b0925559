//! Containers that were moved: several sections in one object, gaps in their slots, found
//! through a remap.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use common::{engine_on, noise, small_settings, text};
use engine::container::{ContainerId, Slot};
use engine::object::{MemoryStore, ObjectId, ObjectKind, ObjectStore};
use engine::recipe::{Recipe, Run};

#[test]
fn moved_containers_are_read_through_their_remap() {
    for padded in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
        let engine = engine_on(shared, small_settings(1), padded);
        let mut writer = engine.writer().unwrap();
        let wanted = text(1, 300_000);
        let unwanted = noise(2, 300_000);
        let last = text(3, 200_000);
        let mut recipes = Vec::new();
        for stream in [&wanted, &unwanted, &last] {
            let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
            recipes.push(writer.settle(pending).unwrap());
        }
        writer.commit().unwrap();
        drop(writer);

        let mut live: BTreeSet<(ContainerId, usize)> = BTreeSet::new();
        let mut containers: Vec<ContainerId> = Vec::new();
        for recipe in &recipes {
            let Recipe::Runs(runs) = recipe else {
                panic!("short recipes");
            };
            for run in runs {
                if let Run::Slots {
                    container,
                    first,
                    count,
                    ..
                } = *run
                {
                    let Slot(first) = first;
                    if !containers.contains(&container) {
                        containers.push(container);
                    }
                    if recipe != &recipes[1] {
                        let slots = usize::from(first)..usize::from(first) + count as usize;
                        live.extend(slots.map(|slot| (container, slot)));
                    }
                }
            }
        }
        assert!(containers.len() > 1);
        let (object, remap) = (ObjectId([7; 16]), ObjectId([8; 16]));
        testkit::compaction::compact(&engine, &containers, object, remap, &|container, chunk| {
            live.contains(&(container, chunk))
        });
        let mut objects = 0;
        store
            .list(ObjectKind::Container, &mut |_, _| objects += 1)
            .unwrap();
        assert_eq!(objects, 1);

        let reader = engine.reader().unwrap();
        assert_eq!(reader.containers().remaps().generation(), 1);
        for (recipe, expected) in [(&recipes[0], &wanted), (&recipes[2], &last)] {
            let mut bytes = Vec::new();
            reader.stream(recipe).read_to_end(&mut bytes).unwrap();
            assert!(bytes == *expected);
        }
        let mut bytes = Vec::new();
        assert!(reader.stream(&recipes[1]).read_to_end(&mut bytes).is_err());
        let key = engine::object::ObjectKey::new(ObjectKind::Container, object);
        reader.containers().verify_object(key).unwrap();

        // A new run dedups against what was moved, and stores what was dropped again.
        let mut writer = engine.writer().unwrap();
        assert_eq!(writer.remap_generation(), 1);
        let again = writer.store_stream(&mut wanted.as_slice(), None).unwrap().0;
        let again = writer.settle(again).unwrap();
        assert_eq!(again, recipes[0]);
        let dropped = writer
            .store_stream(&mut unwanted.as_slice(), None)
            .unwrap()
            .0;
        assert!(writer.totals().chunks_new > 0);
        let dropped = writer.settle(dropped).unwrap();
        writer.commit().unwrap();
        let mut bytes = Vec::new();
        let reader = engine.reader().unwrap();
        reader.stream(&dropped).read_to_end(&mut bytes).unwrap();
        assert!(bytes == unwanted);
    }
}

//! Streams go in and come back, each chunk stored once, the same for any number of threads.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::io::Read;
use std::sync::Arc;

use common::{engine_on, noise, small_settings, text};
use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::PendingRecipe;
use engine::recipe::{Recipe, Run};
use engine::{Engine, EngineSettings};

fn store_all(engine: &Engine, streams: &[Vec<u8>]) -> (Vec<Recipe>, engine::pipeline::WriteTotals) {
    let mut writer = engine.writer().unwrap();
    let pending: Vec<PendingRecipe> = streams
        .iter()
        .map(|stream| writer.store_stream(&mut stream.as_slice(), None).unwrap().0)
        .collect();
    let recipes = pending
        .into_iter()
        .map(|pending| writer.settle(pending).unwrap())
        .collect();
    let totals = writer.commit().unwrap();
    (recipes, totals)
}

fn read_back(engine: &Engine, recipe: &Recipe) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine
        .reader()
        .unwrap()
        .stream(recipe)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn sample_streams() -> Vec<Vec<u8>> {
    let mut streams = vec![Vec::new(), vec![7], text(1, 2_000_000), noise(2, 1_500_000)];
    for number in 0..200 {
        streams.push(text(100 + number, 100 + 37 * number as usize));
    }
    let mut edited = streams[2].clone();
    edited.splice(700_000..700_010, noise(3, 5000));
    streams.push(edited);
    streams.push(streams[3].clone());
    streams
}

#[test]
fn streams_come_back() {
    for padded in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let engine = engine_on(store, small_settings(2), padded);
        let streams = sample_streams();
        let (recipes, totals) = store_all(&engine, &streams);
        for (stream, recipe) in streams.iter().zip(&recipes) {
            assert_eq!(recipe.stream_bytes(), stream.len() as u64);
            assert_eq!(read_back(&engine, recipe), *stream);
        }
        let logical: u64 = streams.iter().map(|stream| stream.len() as u64).sum();
        assert!(
            totals.bytes_new < logical - 3_000_000,
            "duplicates are found"
        );
    }
}

#[test]
fn a_second_run_stores_nothing_again() {
    let store = Arc::new(MemoryStore::new());
    let streams = sample_streams();
    let engine = engine_on(
        Arc::clone(&store) as Arc<dyn ObjectStore>,
        small_settings(2),
        true,
    );
    let (first, totals) = store_all(&engine, &streams);
    let containers = count(&store, ObjectKind::Container);
    assert_eq!(totals.containers, containers);
    let (second, totals) = store_all(&engine, &streams);
    assert_eq!(first, second);
    assert_eq!((totals.chunks_new, totals.containers), (0, 0));
    assert_eq!(count(&store, ObjectKind::Container), containers);
}

#[test]
fn containers_without_an_index_run_are_used_again() {
    let store = Arc::new(MemoryStore::new());
    let streams = sample_streams();
    let engine = engine_on(
        Arc::clone(&store) as Arc<dyn ObjectStore>,
        small_settings(2),
        true,
    );
    store_all(&engine, &streams);
    let mut runs = Vec::new();
    store
        .list(ObjectKind::Index, &mut |id, _| runs.push(id))
        .unwrap();
    for id in runs {
        store
            .delete(&ObjectKey::new(ObjectKind::Index, id))
            .unwrap();
    }
    let (_, totals) = store_all(&engine, &streams);
    assert_eq!(totals.chunks_new, 0);
    assert_eq!(count(&store, ObjectKind::Index), 1, "and indexed this time");
}

/// Sizes of groups, chunk lengths and kinds of every container, in the order of first use.
fn layout(threads: usize, streams: &[Vec<u8>]) -> Vec<(ContainerKind, Vec<u32>, Vec<u32>)> {
    let store = Arc::new(MemoryStore::new());
    let engine = engine_on(store, small_settings(threads), true);
    let (recipes, _) = store_all(&engine, streams);
    let reader = engine.reader().unwrap();
    let mut seen = Vec::new();
    for recipe in &recipes {
        for run in reader.runs(recipe) {
            if let Run::Slots { container, .. } = run.unwrap()
                && !seen.contains(&container)
            {
                seen.push(container);
            }
        }
    }
    seen.into_iter()
        .map(|id| {
            let loaded = reader.containers().section(id).unwrap();
            let groups = &loaded.section.groups;
            let sealed = groups.iter().map(|group| group.sealed_bytes).collect();
            (loaded.section.kind, sealed, loaded.section.lengths.clone())
        })
        .collect()
}

#[test]
fn packing_is_the_same_for_any_number_of_threads() {
    let streams = sample_streams();
    let expected = layout(1, &streams);
    assert!(expected.len() > 5, "several containers");
    for threads in [2, 3, 8] {
        assert_eq!(layout(threads, &streams), expected, "{threads} threads");
    }
}

#[test]
fn containers_are_full() {
    for make in [text, noise] {
        let store = Arc::new(MemoryStore::new());
        let settings = EngineSettings {
            container_bytes: 4 << 20,
            group_bytes: 1 << 20,
            ..small_settings(2)
        };
        let engine = engine_on(Arc::clone(&store) as Arc<dyn ObjectStore>, settings, true);
        let (_, totals) = store_all(&engine, &[make(5, 40_000_000)]);
        let mut full = 0;
        store
            .list(ObjectKind::Container, &mut |_, bytes| {
                full += u64::from(bytes == 4 << 20)
            })
            .unwrap();
        assert!(totals.containers - full <= 1, "only the last is smaller");
        let filling = totals.filled_bytes as f64 / totals.stored_bytes as f64;
        assert!(filling > 0.97, "filling ratio {filling}");
    }
}

#[test]
fn fragmented_streams_have_paged_recipes() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine_on(store, small_settings(2), true);
    let pieces: Vec<Vec<u8>> = (0..40).map(|seed| noise(seed, 3000)).collect();
    let mut writer = engine.writer().unwrap();
    for piece in &pieces {
        writer.store_stream(&mut piece.as_slice(), None).unwrap();
    }
    let mut recipe = PendingRecipe::default();
    let mut expected = Vec::new();
    for number in 0..5000usize {
        let piece = &pieces[number * 17 % 40];
        let mut one = writer.store_stream(&mut piece.as_slice(), None).unwrap().0;
        assert!({
            writer.close_group().unwrap();
            while !writer.is_settled(&mut one) {
                std::thread::yield_now();
            }
            true
        });
        let Recipe::Runs(runs) = writer.settle(one).unwrap() else {
            panic!("a short recipe");
        };
        for run in runs {
            recipe.push_placed(run);
            recipe.push_placed(Run::Hole { bytes: 1 });
            expected.push(run);
        }
    }
    let recipe = writer.settle(recipe).unwrap();
    writer.commit().unwrap();
    assert!(matches!(&recipe, Recipe::Paged { level: 1, .. }));
    let runs: Vec<Run> = engine
        .reader()
        .unwrap()
        .runs(&recipe)
        .map(Result::unwrap)
        .filter(|run| matches!(run, Run::Slots { .. }))
        .collect();
    assert_eq!(runs, expected);
    let bytes = read_back(&engine, &recipe);
    assert_eq!(bytes.len() as u64, recipe.stream_bytes());
    assert_eq!(bytes[..3000], pieces[0]);
}

#[test]
fn damage_never_gives_wrong_bytes() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine_on(
        Arc::clone(&store) as Arc<dyn ObjectStore>,
        small_settings(1),
        true,
    );
    let stream = text(1, 400_000);
    let (recipes, _) = store_all(&engine, std::slice::from_ref(&stream));
    let mut ids = Vec::new();
    store
        .list(ObjectKind::Container, &mut |id, bytes| {
            ids.push((id, bytes))
        })
        .unwrap();
    for (id, bytes) in ids {
        let key = ObjectKey::new(ObjectKind::Container, id);
        for place in (0..bytes as usize).step_by(997) {
            store.corrupt(&key, |object| object[place] ^= 0x40);
            let mut back = Vec::new();
            let outcome = engine
                .reader()
                .unwrap()
                .stream(&recipes[0])
                .read_to_end(&mut back);
            assert!(stream.starts_with(&back), "what comes is right");
            assert!(outcome.is_err() || back == stream);
            let check = engine.reader().unwrap();
            assert!(
                check.containers().verify_object(key).is_err(),
                "byte {place}"
            );
            store.corrupt(&key, |object| object[place] ^= 0x40);
        }
        let reader = engine.reader().unwrap();
        assert!(reader.containers().verify_object(key).is_ok());
    }
}

#[test]
fn damaged_containers_are_stored_again() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine_on(
        Arc::clone(&store) as Arc<dyn ObjectStore>,
        small_settings(1),
        true,
    );
    let streams = [text(1, 400_000)];
    store_all(&engine, &streams);
    let mut ids = Vec::new();
    store
        .list(ObjectKind::Container, &mut |id, _| ids.push(id))
        .unwrap();
    for id in &ids {
        store.corrupt(&ObjectKey::new(ObjectKind::Container, *id), |object| {
            let end = object.len() - 1;
            object[end] ^= 1;
        });
    }
    let (recipes, totals) = store_all(&engine, &streams);
    assert!(totals.chunks_new > 0);
    assert_eq!(read_back(&engine, &recipes[0]), streams[0]);
}

fn count(store: &MemoryStore, kind: ObjectKind) -> u64 {
    let mut count = 0;
    store.list(kind, &mut |_, _| count += 1).unwrap();
    count
}

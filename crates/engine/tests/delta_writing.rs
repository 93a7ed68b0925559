//! New chunks that resemble others are stored as deltas, the same for any number of threads, and come
//! back.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use common::{engine_on, noise, small_settings};
use engine::container::{ChunkAddress, ContainerId, ContainerKind, DeltaMethod, Section};
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::{DeltaLevel, DeltaSettings, PendingRecipe, WriteTotals};
use engine::recipe::{Recipe, Run};
use engine::similarity::base_choice::BaseChoice;
use engine::{Engine, EngineSettings};

const STREAM_BYTES: usize = 1_200_000;

/// Successive versions of a stream: a few bytes differ in every stretch of 3,000.
fn versions(seed: u64, count: u64) -> Vec<Vec<u8>> {
    let mut stream = noise(seed, STREAM_BYTES);
    let mut versions = vec![stream.clone()];
    for version in 1..count {
        let places = noise(seed * 1000 + version, STREAM_BYTES / 3000 * 8);
        for (stretch, place) in places.chunks_exact(8).enumerate() {
            let at = stretch * 3000 + usize::from(u16::from_le_bytes([place[0], place[1]])) % 2990;
            stream[at..at + 6].copy_from_slice(&place[2..8]);
        }
        versions.push(stream.clone());
    }
    versions
}

fn settings(threads: usize, deltas: Option<DeltaSettings>) -> EngineSettings {
    EngineSettings {
        deltas,
        ..small_settings(threads)
    }
}

fn engine(store: &Arc<MemoryStore>, threads: usize, deltas: Option<DeltaSettings>) -> Engine {
    let store = Arc::clone(store) as Arc<dyn ObjectStore>;
    engine_on(store, settings(threads, deltas), true)
}

fn store_all(engine: &Engine, streams: &[Vec<u8>]) -> (Vec<Recipe>, WriteTotals) {
    let mut writer = engine.writer().unwrap();
    let store = |stream: &Vec<u8>| writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
    let pending: Vec<PendingRecipe> = streams.iter().map(store).collect();
    let settle = |pending| writer.settle(pending).unwrap();
    let recipes = pending.into_iter().map(settle).collect();
    (recipes, writer.commit().unwrap())
}

fn assert_come_back(engine: &Engine, recipes: &[Recipe], streams: &[Vec<u8>]) {
    let reader = engine.reader().unwrap();
    for (number, (recipe, stream)) in recipes.iter().zip(streams).enumerate() {
        let mut bytes = Vec::new();
        reader.stream(recipe).read_to_end(&mut bytes).unwrap();
        assert!(bytes == *stream, "stream {number} comes back");
    }
}

fn sections(engine: &Engine, recipes: &[Recipe]) -> Vec<Arc<Section>> {
    let reader = engine.reader().unwrap();
    let mut seen: Vec<ContainerId> = Vec::new();
    for recipe in recipes {
        for run in reader.runs(recipe) {
            if let Run::Slots { container, .. } = run.unwrap()
                && !seen.contains(&container)
            {
                seen.push(container);
            }
        }
    }
    let section = |&id: &ContainerId| Arc::clone(&reader.containers().section(id).unwrap().section);
    seen.iter().map(section).collect()
}

fn containers(store: &MemoryStore) -> Vec<ObjectId> {
    let mut ids = Vec::new();
    let mut note = |id, _| ids.push(id);
    store.list(ObjectKind::Container, &mut note).unwrap();
    ids
}

fn prefixes() -> DeltaSettings {
    DeltaSettings {
        method: DeltaMethod::Prefix,
        ..DeltaSettings::best()
    }
}

#[test]
fn versions_become_deltas_and_come_back() {
    let streams = versions(1, 6);
    let stored_bytes = |deltas: Option<DeltaSettings>| {
        let store = Arc::new(MemoryStore::new());
        let engine = engine(&store, 2, deltas.clone());
        let (recipes, totals) = store_all(&engine, &streams);
        assert_come_back(&engine, &recipes, &streams);
        assert_eq!(deltas.is_some(), totals.delta_chunks > 0);
        assert!(totals.delta_bytes <= totals.delta_chunk_bytes * 3 / 4);
        totals.stored_bytes
    };
    let whole = stored_bytes(None);
    for choice in BaseChoice::ALL {
        for settings in [DeltaSettings::fast(), DeltaSettings::best(), prefixes()] {
            let settings = DeltaSettings { choice, ..settings };
            let stored = stored_bytes(Some(settings.clone()));
            assert!(
                stored * 2 < whole,
                "{stored} of {whole} bytes by {settings:?}"
            );
        }
    }
}

#[test]
fn no_delta_is_deeper_than_it_may() {
    let streams = versions(2, 8);
    for depth_max in [1, 2, 5] {
        let settings = DeltaSettings {
            depth_max,
            choice: BaseChoice::Latest,
            ..DeltaSettings::best()
        };
        let store = Arc::new(MemoryStore::new());
        let engine = engine(&store, 2, Some(settings));
        // A run each: what a run has just stored can't always be had.
        let mut recipes = Vec::new();
        for stream in &streams {
            recipes.extend(store_all(&engine, std::slice::from_ref(stream)).0);
        }
        let mut depths: HashMap<ChunkAddress, u8> = HashMap::new();
        let mut deltas = Vec::new();
        for section in sections(&engine, &recipes) {
            assert_eq!(
                section.kind == ContainerKind::Deltas,
                !section.deltas.is_empty()
            );
            for (chunk, &slot) in section.slots.iter().enumerate() {
                let container = section.id;
                let address = ChunkAddress { container, slot };
                let delta = section.delta(chunk).copied();
                let depth = delta.map_or(0, |delta| delta.depth);
                let is_base = section.features.of(chunk).is_some();
                assert!(!is_base || depth < depth_max, "depth {depth} of a base");
                depths.insert(address, depth);
                deltas.extend(delta);
            }
        }
        let deepest = deltas.iter().map(|delta| delta.depth).max();
        assert_eq!(deepest, Some(depth_max));
        for delta in deltas {
            assert!(
                depths[&delta.base] < delta.depth,
                "a base is nearer to a whole chunk"
            );
        }
    }
}

/// What of a container follows from the input alone; bases by their container's place in the list.
type Layout = (
    ContainerKind,
    Vec<u32>,
    Vec<u32>,
    Vec<Option<(usize, u16, u32, u8)>>,
);

fn layout(threads: usize, runs: &[Vec<Vec<u8>>]) -> Vec<Layout> {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, threads, DeltaLevel::Best.settings());
    let mut recipes = Vec::new();
    for streams in runs {
        recipes.extend(store_all(&engine, streams).0);
    }
    let sections = sections(&engine, &recipes);
    let number = |id| {
        sections
            .iter()
            .position(|section| section.id == id)
            .unwrap()
    };
    let base = |delta: &Option<engine::container::Delta>| {
        let delta = (*delta)?;
        let ChunkAddress { container, slot } = delta.base;
        Some((number(container), slot.0, delta.stored_bytes, delta.depth))
    };
    let of = |section: &Arc<Section>| {
        let sealed = section.groups.iter().map(|group| group.sealed_bytes);
        let deltas = section.deltas.iter().map(base);
        (
            section.kind,
            sealed.collect(),
            section.lengths.clone(),
            deltas.collect(),
        )
    };
    sections.iter().map(of).collect()
}

#[test]
fn what_is_stored_is_the_same_for_any_number_of_threads() {
    // More than is kept in memory as bases, in one run and in two.
    let streams = versions(3, 6);
    let runs = [streams[..4].to_vec(), streams[4..].to_vec()];
    let expected = layout(1, &runs);
    let kinds = |kind| expected.iter().filter(|layout| layout.0 == kind).count();
    assert!(kinds(ContainerKind::Data) > 3 && kinds(ContainerKind::Deltas) > 1);
    for threads in [2, 3, 8] {
        assert!(layout(threads, &runs) == expected, "{threads} threads");
    }
}

#[test]
fn bases_of_earlier_runs_are_found_again() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, 2, DeltaLevel::Best.settings());
    let mut all = Vec::new();
    let mut recipes = Vec::new();
    for (run, stream) in versions(4, 4).into_iter().enumerate() {
        let (recipe, totals) = store_all(&engine, std::slice::from_ref(&stream));
        assert!(run == 0 || totals.delta_chunks * 10 > totals.chunks_new * 9);
        recipes.extend(recipe);
        all.push(stream);
    }
    assert_come_back(&engine, &recipes, &all);
    let (_, again) = store_all(&engine, &all);
    assert_eq!((again.chunks_new, again.containers), (0, 0));
}

#[test]
fn bases_are_found_behind_many_containers_that_are_all_alike() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, 2, DeltaLevel::Best.settings());
    let old = &versions(21, 2);
    store_all(&engine, &old[..1]);
    // A hundred runs that store one more version of the same few chunks.
    let mut hot = noise(22, 20_000);
    for run in 0..100 {
        for stretch in hot.chunks_mut(2000) {
            stretch[300 + run] ^= 0x55;
        }
        store_all(&engine, std::slice::from_ref(&hot));
    }
    let (recipes, totals) = store_all(&engine, &old[1..]);
    assert!(totals.delta_chunks * 10 > totals.chunks_new * 9);
    assert_come_back(&engine, &recipes, &old[1..]);
}

#[test]
fn chunks_whose_bases_are_gone_or_damaged_are_stored_whole() {
    let streams = versions(5, 3);
    for is_gone in [true, false] {
        let store = Arc::new(MemoryStore::new());
        let engine = engine(&store, 2, DeltaLevel::Best.settings());
        store_all(&engine, &streams[..1]);
        for id in containers(&store) {
            let key = ObjectKey::new(ObjectKind::Container, id);
            let mut bytes = store.get(&key, u64::MAX).unwrap();
            store.delete(&key).unwrap();
            if !is_gone {
                bytes[100] ^= 1; // In the first group; the metadata is as it was.
                store.put(&key, &bytes).unwrap();
            }
        }
        let before = containers(&store);
        let (recipes, totals) = store_all(&engine, &streams[1..]);
        assert!(totals.chunks_new > totals.delta_chunks);
        if is_gone {
            assert_come_back(&engine, &recipes, &streams[1..]);
            continue;
        }
        // Of what is damaged some is referred to, as it is not read; nothing new rests on it.
        let reader = engine.reader().unwrap();
        let sections = sections(&engine, &recipes);
        let new = sections
            .iter()
            .filter(|section| !before.contains(&section.id.0));
        let mut chunks = 0;
        for section in new {
            for &slot in &section.slots {
                let container = section.id;
                reader.chunk(ChunkAddress { container, slot }).unwrap();
                chunks += 1;
            }
        }
        assert!(chunks > 500, "{chunks} chunks");
    }
}

#[test]
fn a_recipe_is_settled_while_its_deltas_wait() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, 3, DeltaLevel::Best.settings());
    let streams = versions(6, 3);
    let mut writer = engine.writer().unwrap();
    let mut recipes = Vec::new();
    for stream in &streams {
        let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
        recipes.push(writer.settle(pending).unwrap());
    }
    assert!(writer.commit().unwrap().delta_chunks > 0);
    assert_come_back(&engine, &recipes, &streams);
}

#[test]
fn a_dry_run_makes_deltas_and_stores_nothing() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, 2, DeltaLevel::Best.settings());
    store_all(&engine, &versions(7, 1));
    let count = || {
        let mut count = 0;
        store
            .list(ObjectKind::Container, &mut |_, _| count += 1)
            .unwrap();
        count
    };
    let before = count();
    let (_, totals) = store_all(&engine.discarding(), &versions(7, 5));
    assert!(totals.delta_chunks > 0);
    assert_eq!(containers(&store).len(), before);
}

#[test]
fn what_resembles_nothing_is_stored_as_without_deltas() {
    let streams: Vec<_> = (0..3).map(|seed| noise(900 + seed, STREAM_BYTES)).collect();
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, 2, DeltaLevel::Best.settings());
    let (recipes, totals) = store_all(&engine, &streams);
    assert_eq!((totals.delta_chunks, totals.delta_bytes), (0, 0));
    let sections = sections(&engine, &recipes);
    assert!(
        sections
            .iter()
            .all(|section| section.kind == ContainerKind::Data)
    );
    assert_come_back(&engine, &recipes, &streams);
}

#[test]
fn a_container_of_deltas_is_stored_after_those_of_its_bases() {
    let store = Arc::new(MemoryStore::new());
    let settings = EngineSettings {
        container_bytes: 64 << 10,
        group_bytes: 4 << 10,
        ..settings(2, DeltaLevel::Best.settings())
    };
    let engine = engine_on(Arc::clone(&store) as Arc<dyn ObjectStore>, settings, true);
    let mut writer = engine.writer().unwrap();
    let mut stored = 0;
    // Something new in each, so that a container of whole chunks is always open, and bases in it.
    let mut stream = noise(8, 100_000);
    for version in 0..60 {
        stream.extend(noise(800 + version, 3000));
        for stretch in stream.chunks_mut(3000) {
            let at = 10 + 7 * version as usize;
            stretch[at..at + 3].copy_from_slice(&[version as u8; 3]);
        }
        let mut recipe = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
        writer.close_group().unwrap();
        while !writer.is_settled(&mut recipe) {
            std::thread::yield_now();
        }
        // A process that dies now leaves nothing that lacks its bases.
        let there = containers(&store);
        let reader = engine.reader().unwrap();
        for &id in &there {
            let loaded = reader.containers().section(ContainerId(id)).unwrap();
            stored += usize::from(loaded.section.kind == ContainerKind::Deltas);
            for delta in loaded.section.deltas.iter().flatten() {
                let base = delta.base.container.0;
                assert!(
                    there.contains(&base),
                    "version {version}: {base} is not there"
                );
            }
        }
    }
    assert!(stored > 0, "containers of deltas are stored meanwhile");
    writer.commit().unwrap();
}

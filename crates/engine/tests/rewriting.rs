//! Duplicates that are stored again: the streams stay the same, and lie in fewer containers.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use common::{engine_on, noise, small_settings};
use engine::container::{ContainerId, ContainerReader};
use engine::fingerprint::Fingerprint;
use engine::object::{MemoryStore, ObjectKind, ObjectStore};
use engine::pipeline::{PendingRecipe, WriteTotals};
use engine::recipe::{Recipe, Run};
use engine::rewriting::{Capping, LookBackWindow, Rewriting};
use engine::{Engine, EngineSettings};

/// Policies that have much to do in small streams.
const EAGER: [Rewriting; 2] = [
    Rewriting::LookBackWindow(LookBackWindow {
        threshold_min: 10,
        rewritten_permille_max: 1000,
        ..LookBackWindow::DEFAULT
    }),
    Rewriting::Capping(Capping {
        segment_bytes: 1 << 20,
        containers_max: 1,
    }),
];

fn engine(store: &Arc<MemoryStore>, rewriting: Rewriting, threads: usize) -> Engine {
    let settings = EngineSettings {
        rewriting,
        ..small_settings(threads)
    };
    engine_on(Arc::clone(store) as Arc<dyn ObjectStore>, settings, true)
}

/// New bytes with pieces of `old` from all over it, one each 60 KB.
fn fragmented(old: &[u8], seed: u64) -> Vec<u8> {
    let new = noise(seed, 3_000_000);
    let mut out = Vec::new();
    for (number, part) in new.chunks(60_000).enumerate() {
        out.extend_from_slice(part);
        let start = number * 37 % 50 * (old.len() / 50);
        out.extend_from_slice(&old[start..start + 20_000]);
    }
    out
}

/// One backup run.
fn store_all(engine: &Engine, streams: &[&[u8]]) -> (Vec<Recipe>, WriteTotals) {
    let mut writer = engine.writer().unwrap();
    let mut pending: Vec<PendingRecipe> = Vec::new();
    for stream in streams {
        let mut stream = *stream;
        pending.push(writer.store_stream(&mut stream, None).unwrap().0);
    }
    let settle = |recipe| writer.settle(recipe).unwrap();
    let recipes = pending.into_iter().map(settle).collect();
    (recipes, writer.commit().unwrap())
}

fn read_back(engine: &Engine, recipe: &Recipe) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reader = engine.reader().unwrap();
    reader.stream(recipe).read_to_end(&mut bytes).unwrap();
    bytes
}

fn containers_of(engine: &Engine, recipe: &Recipe) -> BTreeSet<ContainerId> {
    let reader = engine.reader().unwrap();
    let mut containers = BTreeSet::new();
    for run in reader.runs(recipe) {
        if let Run::Slots { container, .. } = run.unwrap() {
            containers.insert(container);
        }
    }
    containers
}

#[test]
fn a_fragmented_stream_lies_in_fewer_containers() {
    let old = noise(1, 6_000_000);
    let new = fragmented(&old, 2);
    let before = Arc::new(MemoryStore::new());
    store_all(&engine(&before, Rewriting::Off, 1), &[&old]);
    let without = Arc::new(before.fork());
    let off = engine(&without, Rewriting::Off, 1);
    let (recipes, totals_off) = store_all(&off, &[&new]);
    assert_eq!(totals_off.bytes_rewritten, 0);
    let containers_off = containers_of(&off, &recipes[0]).len();
    for rewriting in EAGER {
        let store = Arc::new(before.fork());
        let engine = engine(&store, rewriting, 2);
        let (recipes, totals) = store_all(&engine, &[&new]);
        assert!(read_back(&engine, &recipes[0]) == new, "{rewriting:?}");
        assert!(totals.bytes_rewritten > 300_000, "{totals:?}");
        assert_eq!(
            (totals.chunks, totals.chunks_new, totals.bytes_new),
            (
                totals_off.chunks,
                totals_off.chunks_new,
                totals_off.bytes_new
            )
        );
        let containers = containers_of(&engine, &recipes[0]).len();
        assert!(
            containers * 10 < containers_off * 7,
            "{containers} instead of {containers_off} with {rewriting:?}"
        );
    }
}

/// How often each chunk is stored.
fn copies(engine: &Engine) -> BTreeMap<Fingerprint, u64> {
    let mut ids = Vec::new();
    let list = engine
        .store()
        .list(ObjectKind::Container, &mut |id, _| ids.push(id));
    list.unwrap();
    let reader = engine.reader().unwrap();
    let mut copies = BTreeMap::new();
    for id in ids {
        let loaded = reader.containers().section(ContainerId(id)).unwrap();
        for fingerprint in &loaded.section.fingerprints {
            *copies.entry(*fingerprint).or_default() += 1;
        }
    }
    copies
}

#[test]
fn a_chunk_is_rewritten_once_a_run() {
    let old = noise(1, 6_000_000);
    let new = fragmented(&old, 2);
    let before = Arc::new(MemoryStore::new());
    store_all(&engine(&before, Rewriting::Off, 1), &[&old]);
    for rewriting in EAGER {
        let store = Arc::new(before.fork());
        let engine = engine(&store, rewriting, 1);
        let (recipes, totals) = store_all(&engine, &[&new, &new, &new]);
        let copies = copies(&engine);
        assert!(copies.values().all(|&copies| copies <= 2));
        let twice = copies.values().filter(|&&copies| copies == 2).count() as u64;
        assert_eq!(twice, totals.chunks_rewritten);
        assert!(twice > 0);
        for recipe in &recipes {
            assert!(read_back(&engine, recipe) == new);
        }
    }
}

#[test]
fn later_runs_refer_to_the_newest_copies() {
    let old = noise(1, 6_000_000);
    let new = fragmented(&old, 2);
    let roomy = Rewriting::Capping(Capping {
        segment_bytes: 1 << 20,
        containers_max: 6,
    });
    for rewriting in [EAGER[0], roomy] {
        let store = Arc::new(MemoryStore::new());
        let engine = engine(&store, rewriting, 2);
        store_all(&engine, &[&old]);
        let (first, totals) = store_all(&engine, &[&new]);
        assert!(totals.bytes_rewritten > 10_000, "{totals:?}");
        let without = engine.rewriting(Rewriting::Off);
        let (recipes, totals) = store_all(&without, &[&new]);
        assert_eq!(totals.bytes_new, 0);
        assert!(read_back(&engine, &recipes[0]) == new);
        let containers = |recipe| containers_of(&engine, recipe);
        assert_eq!(containers(&recipes[0]), containers(&first[0]));
        // Stored again once, it need not be again; only what was kept may be. Capping goes on until
        // every segment lies in as few containers as it asks for.
        let (_, totals) = store_all(&engine, &[&new]);
        let is_window = matches!(rewriting, Rewriting::LookBackWindow(_));
        assert!(!is_window || totals.bytes_rewritten < 200_000, "{totals:?}");
    }
}

#[test]
fn many_short_streams_are_one_to_the_policy() {
    let old = noise(1, 6_000_000);
    let new = fragmented(&old, 2);
    let before = Arc::new(MemoryStore::new());
    store_all(&engine(&before, Rewriting::Off, 1), &[&old]);
    let store = Arc::new(before.fork());
    let engine = engine(&store, EAGER[0], 3);
    let files: Vec<&[u8]> = new.chunks(30_000).chain([&new[..0]]).collect();
    let (recipes, totals) = store_all(&engine, &files);
    assert!(totals.bytes_rewritten > 100_000, "{totals:?}");
    for (file, recipe) in files.iter().zip(&recipes) {
        assert!(read_back(&engine, recipe) == *file);
    }
}

/// Where each run of each recipe lies, with containers numbered in order of first use, and what
/// they hold.
fn layout(before: &MemoryStore, rewriting: Rewriting, threads: usize, new: &[u8]) -> Vec<String> {
    let store = Arc::new(before.fork());
    let engine = engine(&store, rewriting, threads);
    let (recipes, totals) = store_all(&engine, &[new, &new[..500_000]]);
    let reader = engine.reader().unwrap();
    let containers: &ContainerReader = reader.containers();
    let mut seen: Vec<ContainerId> = Vec::new();
    let mut lines = vec![format!("{totals:?}")];
    for run in recipes.iter().flat_map(|recipe| reader.runs(recipe)) {
        let Run::Slots {
            container,
            first,
            count,
            bytes,
        } = run.unwrap()
        else {
            panic!("no holes here");
        };
        let number = seen.iter().position(|&known| known == container);
        let number = number.unwrap_or_else(|| {
            let section = &containers.section(container).unwrap().section;
            lines.push(format!("{:?} {:?}", section.lengths, section.fingerprints));
            seen.push(container);
            seen.len() - 1
        });
        lines.push(format!("{number}: {first:?} + {count} ({bytes})"));
    }
    lines
}

#[test]
fn what_is_rewritten_does_not_depend_on_threads() {
    let old = noise(1, 6_000_000);
    let new = fragmented(&old, 2);
    let before = MemoryStore::new();
    let first = Arc::new(before.fork());
    store_all(&engine(&first, Rewriting::Off, 1), &[&old]);
    for rewriting in EAGER {
        let expected = layout(&first, rewriting, 1, &new);
        for threads in [2, 5] {
            assert_eq!(layout(&first, rewriting, threads, &new), expected);
        }
    }
}

#[test]
fn a_writer_that_is_dropped_midway_leaves_only_whole_containers() {
    let old = noise(1, 6_000_000);
    let new = fragmented(&old, 2);
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, EAGER[0], 2);
    store_all(&engine, &[&old]);
    let mut writer = engine.writer().unwrap();
    writer.store_stream(&mut new.as_slice(), None).unwrap();
    drop(writer);
    let (recipes, _) = store_all(&engine, &[&new, &old]);
    assert!(read_back(&engine, &recipes[0]) == new);
    assert!(read_back(&engine, &recipes[1]) == old);
}

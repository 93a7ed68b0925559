//! A stream that is read back in order, some way ahead: the same bytes whatever the threads and the
//! memory, each container read once when the memory allows, and a word about damage in its place.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use common::{engine_on, noise, small_settings, text};
use engine::container::ContainerId;
use engine::fingerprint::CheckValue;
use engine::object::{MemoryStore, ObjectKey, ObjectKind};
use engine::pipeline::{InOrderError, InOrderReport, ReadingRoom, Stages, StreamPiece};
use engine::recipe::{Recipe, Run};
use engine::restore::{ReadError, Reader};

/// Threads that fetch, threads that compute.
const THREADS: [(usize, usize); 3] = [(1, 1), (4, 2), (1, 8)];

struct Scene {
    store: Arc<MemoryStore>,
    stream: Vec<u8>,
    recipe: Recipe,
    check: CheckValue,
}

/// A stream whose parts were stored in another order, with new ones between them, and twice.
fn scene() -> Scene {
    let store = Arc::new(MemoryStore::new());
    let engine = engine_on(Arc::clone(&store) as _, small_settings(2), true);
    let mut writer = engine.writer().unwrap();
    let first = [text(1, 900_000), noise(2, 900_000)].concat();
    writer.store_stream(&mut first.as_slice(), None).unwrap();
    writer.flush().unwrap();
    let mut stream = Vec::new();
    for (number, part) in first.rchunks(70_000).enumerate() {
        stream.extend_from_slice(part);
        stream.extend(noise(100 + number as u64, 20_000));
    }
    stream.extend_from_within(..900_000);
    let (pending, check) = writer.store_stream(&mut stream.as_slice(), None).unwrap();
    let recipe = writer.settle(pending).unwrap();
    writer.commit().unwrap();
    Scene {
        store,
        stream,
        recipe,
        check,
    }
}

fn read(
    reader: &Reader,
    (fetch_threads, threads): (usize, usize),
    (recipe, check): (&Recipe, CheckValue),
    cache_bytes: usize,
) -> (Vec<u8>, Result<InOrderReport, InOrderError>) {
    let room = ReadingRoom::new(fetch_threads, threads, 1 << 20, &Stages::default());
    let mut out = Vec::new();
    let mut take = |piece: StreamPiece<'_>| {
        match piece {
            StreamPiece::Bytes(bytes) => out.extend_from_slice(bytes),
            StreamPiece::Hole(bytes) => out.resize(out.len() + bytes as usize, 0),
        }
        io::Result::Ok(())
    };
    let outcome = room.read_in_order(reader, recipe, Some(check), cache_bytes, &mut take);
    (out, outcome)
}

fn containers_of(reader: &Reader, recipe: &Recipe) -> HashSet<ContainerId> {
    let runs = reader.runs(recipe);
    runs.filter_map(|run| match run.unwrap() {
        Run::Slots { container, .. } => Some(container),
        Run::Hole { .. } => None,
    })
    .collect()
}

#[test]
fn the_stream_comes_with_any_threads_and_memory() {
    let scene = scene();
    let engine = engine_on(Arc::clone(&scene.store) as _, small_settings(2), true);
    let reader = engine.reader().unwrap();
    let needed = containers_of(&reader, &scene.recipe).len() as u64;
    assert!(needed > 3, "{needed} containers");
    for threads in THREADS {
        for cache_bytes in [0, 1, 50_000, 300_000, 64 << 20] {
            let what = (&scene.recipe, scene.check);
            let (out, outcome) = read(&reader, threads, what, cache_bytes);
            assert!(out == scene.stream, "{threads:?} {cache_bytes}");
            let report = outcome.unwrap();
            assert_eq!(report.bytes, scene.stream.len() as u64);
            assert!(report.containers_read >= needed);
            // A thread may begin with a container before all of the stream that needs it is planned.
            let is_ample = cache_bytes > scene.stream.len();
            assert!(
                !is_ample || report.containers_read <= 2 * needed,
                "{report:?}"
            );
        }
    }
}

#[test]
fn holes_come_as_holes() {
    let scene = scene();
    let engine = engine_on(Arc::clone(&scene.store) as _, small_settings(2), true);
    let reader = engine.reader().unwrap();
    let runs: Vec<Run> = reader.runs(&scene.recipe).map(Result::unwrap).collect();
    let hole = Run::Hole { bytes: 3 << 20 };
    let with_holes = Recipe::Runs([vec![hole], runs, vec![hole]].concat());
    let mut check = engine.fingerprinter().check();
    check.hole(3 << 20);
    let (_, actual) = reader.visit_runs(&with_holes, &mut |_, _| {}).unwrap();
    let (out, outcome) = read(&reader, (2, 2), (&with_holes, actual), 100_000);
    let expected = [vec![0; 3 << 20], scene.stream, vec![0; 3 << 20]].concat();
    assert!(out == expected);
    outcome.unwrap();
    let empty = Recipe::default();
    let (out, outcome) = read(
        &reader,
        (2, 2),
        (&empty, engine.fingerprinter().check().finish()),
        0,
    );
    assert_eq!((out.len(), outcome.unwrap()), (0, InOrderReport::default()));
}

#[test]
fn damage_ends_it_where_it_is() {
    let scene = scene();
    for threads in THREADS {
        for what in ["group", "missing", "check", "take"] {
            let store = Arc::new(scene.store.fork());
            let engine = engine_on(Arc::clone(&store) as _, small_settings(2), true);
            let reader = engine.reader().unwrap();
            let runs: Vec<Run> = reader.runs(&scene.recipe).map(Result::unwrap).collect();
            let Run::Slots { container, .. } = runs[runs.len() / 2] else {
                panic!("no holes here");
            };
            let key = ObjectKey::new(ObjectKind::Container, container.0);
            let mut check = scene.check;
            match what {
                "group" => assert!(store.corrupt(&key, |bytes| bytes[10] ^= 1)),
                "missing" => drop(store.remove_raw(&key)),
                "check" => check = engine.fingerprinter().check().finish(),
                _ => {}
            }
            if what == "take" {
                let room = ReadingRoom::new(threads.0, threads.1, 1 << 20, &Stages::default());
                let mut left = 3;
                let mut take = |_: StreamPiece<'_>| {
                    left -= 1;
                    match left {
                        0 => Err(io::ErrorKind::BrokenPipe.into()),
                        _ => Ok(()),
                    }
                };
                let outcome = room.read_in_order(&reader, &scene.recipe, None, 10_000, &mut take);
                assert!(matches!(outcome, Err(InOrderError::Take(_))));
                continue;
            }
            let (out, outcome) = read(&reader, threads, (&scene.recipe, check), 200_000);
            assert!(scene.stream.starts_with(&out));
            match outcome {
                Err(InOrderError::Read(ReadError::Check)) => {
                    assert_eq!((what, out.len()), ("check", scene.stream.len()));
                }
                Err(InOrderError::Read(error)) => {
                    assert!(what != "check" && error.is_damage(), "{error}");
                    assert!(
                        error.to_string().contains(&container.to_string()),
                        "{error}"
                    );
                    assert!(out.len() < scene.stream.len());
                }
                other => panic!("{what}: {other:?}"),
            }
        }
    }
}

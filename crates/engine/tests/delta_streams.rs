//! Streams of chunks stored as deltas, many at once and one in order: the same bytes for any number of
//! threads and any memory, each container read once, and only what is made of a damaged chunk is lost.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{engine_on, noise, small_settings, text};
use engine::container::{ContainerId, ContainerKind, DELTA_DEPTH_MAX, DeltaMethod, Slot};
use engine::object::{MemoryStore, ObjectId};
use engine::pipeline::{InOrderError, ReadingRoom, Stages, StreamPiece};
use engine::recipe::Recipe;
use engine::restore::{ChunkSink, ReadError, Reader, RestorePlan, StreamPlanner};
use engine::{Engine, EngineSettings};
use testkit::deltas::{Filling, HandChunk, Storeroom, container, place, store_container};

/// Threads that fetch, threads that compute.
const THREADS: [(usize, usize); 3] = [(1, 1), (4, 2), (2, 8)];

/// Streams in memory, every part of which comes once.
#[derive(Default)]
struct Streams {
    written: Mutex<BTreeMap<(u32, u64), Vec<u8>>>,
    lost: Mutex<BTreeMap<(u32, u64), String>>,
    parts: AtomicUsize,
}

impl ChunkSink for Streams {
    fn write(&self, stream: u32, offset: u64, bytes: &[u8]) {
        let before = self
            .written
            .lock()
            .unwrap()
            .insert((stream, offset), bytes.to_vec());
        assert_eq!(before, None, "stream {stream} at {offset}");
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self, stream: u32, offset: u64, parts: usize, error: &str) {
        let before = self
            .lost
            .lock()
            .unwrap()
            .insert((stream, offset), error.to_owned());
        assert_eq!(before, None, "stream {stream} at {offset}");
        self.parts.fetch_add(parts, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Streams {
    /// A stream; zeros where it has not come.
    fn stream(&self, number: u32, length: usize) -> Vec<u8> {
        let mut stream = vec![0; length];
        for ((_, offset), bytes) in self
            .written
            .lock()
            .unwrap()
            .range((number, 0)..(number + 1, 0))
        {
            stream[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        stream
    }
}

struct Scene {
    store: Arc<MemoryStore>,
    room: Storeroom,
    streams: Vec<(Recipe, Vec<u8>)>,
}

fn engine(store: &Arc<MemoryStore>, (fetch_threads, threads): (usize, usize)) -> Engine {
    let settings = EngineSettings {
        fetch_threads,
        ..small_settings(threads)
    };
    engine_on(Arc::clone(store) as _, settings, true)
}

impl Scene {
    /// Streams of some, of all, and of the same chunks twice.
    fn new(seed: u64) -> Self {
        let store = Arc::new(MemoryStore::new());
        let filling = Filling {
            containers: 5,
            chunks: 60,
            depth_max: 7,
        };
        let room = Storeroom::random(&engine(&store, (1, 1)), seed, filling);
        let count = room.chunks.len();
        let streams = vec![
            room.stream((0..count).rev()),
            room.stream(0..count),
            room.stream((0..count).map(|number| number * 7 % count)),
            room.stream([70, 71, 72, 70, 71, 130, 190, 70]),
            room.stream([]),
            room.stream(60..120),
        ];
        Self {
            store,
            room,
            streams,
        }
    }
}

#[test]
fn deltas_come_to_all_streams_with_one_read_a_container() {
    let scene = Scene::new(1);
    for threads in THREADS {
        let engine = engine(&scene.store, threads);
        let reader = engine.reader().unwrap();
        let mut plan = RestorePlan::default();
        let mut parts = 0;
        for (number, (recipe, _)) in scene.streams.iter().enumerate() {
            let added = plan
                .add_stream(&reader, number as u32, recipe, None)
                .unwrap();
            parts += added.parts;
        }
        assert_eq!(plan.containers().count(), 10);
        let sink = Streams::default();
        scene.store.reset_counts();
        plan.execute(&reader, &engine.reading_room(), &sink);
        // The metadata is known; all groups of a container come in one read.
        assert_eq!(scene.store.counts().ranges, 10);
        assert_eq!(scene.store.counts().tails, 0);
        assert_eq!(*sink.lost.lock().unwrap(), BTreeMap::new());
        assert_eq!(sink.parts.load(Ordering::Relaxed), parts);
        for (number, (_, expected)) in scene.streams.iter().enumerate() {
            let stream = sink.stream(number as u32, expected.len());
            assert!(stream == *expected, "stream {number}, threads {threads:?}");
        }
        assert_eq!(plan.memory_bytes(), 0);
    }
}

#[test]
fn a_plan_takes_no_more_memory_than_it_may() {
    let scene = Scene::new(2);
    let engine = engine(&scene.store, (2, 2));
    let reader = engine.reader().unwrap();
    let (recipe, expected) = &scene.streams[0];
    let check = reader.visit_runs(recipe, &mut |_, _| {}).unwrap().1;
    for bytes_max in [0, 10_000, 100_000, usize::MAX] {
        let sink = Streams::default();
        let mut plan = RestorePlan::default();
        let mut planner = StreamPlanner::new(&reader, recipe, Some(check));
        let (mut parts, mut plans) = (0, 0);
        loop {
            let step = planner.add_to(&mut plan, 0, bytes_max).unwrap();
            // One chain more: seven deltas of half a kilobyte, a root of five in the worst case, and
            // lists that double.
            let most = bytes_max.saturating_mul(2).saturating_add(20_000);
            assert!(plan.memory_bytes() <= most, "{} bytes", plan.memory_bytes());
            parts += step.parts.parts;
            plans += 1;
            plan.execute(&reader, &engine.reading_room(), &sink);
            if step.is_end {
                break;
            }
        }
        assert_eq!(sink.parts.load(Ordering::Relaxed), parts);
        assert!(sink.stream(0, expected.len()) == *expected);
        let is_several = bytes_max <= 100_000;
        assert_eq!(plans > 1, is_several, "{plans} plans of {bytes_max} bytes");
    }
}

/// What a stream that can't be planned added goes out again, and what came before stays.
#[test]
fn a_lost_stream_leaves_nothing_in_the_plan() {
    let scene = Scene::new(3);
    let engine = engine(&scene.store, (2, 2));
    let reader = engine.reader().unwrap();
    let mut wrong = engine.fingerprinter().check();
    wrong.hole(1);
    let wrong = Some(wrong.finish());
    let mut plan = RestorePlan::default();
    let (recipe, _) = &scene.streams[0];
    let outcome = plan.add_stream(&reader, 9, recipe, wrong);
    assert!(matches!(outcome, Err(ReadError::Check)));
    assert_eq!(plan.containers().count(), 0);
    for (number, (recipe, _)) in scene.streams.iter().enumerate().skip(3) {
        plan.add_stream(&reader, number as u32, recipe, None)
            .unwrap();
        let containers = plan.containers().count();
        let whole = &scene.streams[0].0;
        plan.add_stream(&reader, 9, whole, wrong).unwrap_err();
        assert_eq!(plan.containers().count(), containers);
    }
    let sink = Streams::default();
    plan.execute(&reader, &engine.reading_room(), &sink);
    assert_eq!(*sink.lost.lock().unwrap(), BTreeMap::new());
    for (number, (_, expected)) in scene.streams.iter().enumerate().skip(3) {
        assert!(sink.stream(number as u32, expected.len()) == *expected);
    }
    let written = sink.written.into_inner().unwrap();
    assert!(written.keys().all(|(stream, _)| *stream != 9));
}

/// Which chunks are made of one in that container, or lie in it.
fn made_of(scene: &Scene, number: u8) -> BTreeSet<usize> {
    let engine = engine(&scene.store, (1, 1));
    let reader = engine.reader().unwrap();
    let chunks = &scene.room.chunks;
    let mut lost = BTreeSet::new();
    for (at, (place, _, _)) in chunks.iter().enumerate() {
        let section = &reader
            .containers()
            .section(place.container)
            .unwrap()
            .section;
        let base = section
            .delta(usize::from(place.slot.0))
            .map(|delta| delta.base);
        let base = base.map(|base| chunks.iter().position(|(place, _, _)| *place == base));
        let is_lost = base.flatten().is_some_and(|base| lost.contains(&base));
        if is_lost || place.container == container(number) {
            lost.insert(at);
        }
    }
    lost
}

#[test]
fn a_damaged_container_costs_what_is_made_of_it_and_nothing_else() {
    let scene = Scene::new(4);
    let count = scene.room.chunks.len();
    // One of data, and one of deltas.
    for number in [1, 4] {
        let lost = made_of(&scene, number);
        assert!(
            lost.len() > 60 && lost.len() < count,
            "{} are lost",
            lost.len()
        );
        for what in ["missing", "damaged"] {
            let mut first: Option<BTreeMap<(u32, u64), String>> = None;
            for threads in THREADS {
                let store = Arc::new(scene.store.fork());
                let engine = engine(&store, threads);
                let reader = engine.reader().unwrap();
                // One stream a chunk.
                let mut plan = RestorePlan::default();
                for chunk in 0..count {
                    let (recipe, _) = scene.room.stream([chunk]);
                    plan.add_stream(&reader, chunk as u32, &recipe, None)
                        .unwrap();
                }
                let key = container(number).own_object();
                match what {
                    "missing" => drop(store.remove_raw(&key)),
                    // Its groups; the metadata is at the end.
                    _ => assert!(store.corrupt(&key, |bytes| bytes[..200].fill(9))),
                }
                let sink = Streams::default();
                plan.execute(&reader, &engine.reading_room(), &sink);
                assert_eq!(sink.parts.load(Ordering::Relaxed), count);
                let told = sink.lost.into_inner().unwrap();
                let streams: BTreeSet<usize> =
                    told.keys().map(|(stream, _)| *stream as usize).collect();
                match what {
                    "missing" => assert_eq!(streams, lost),
                    _ => assert!(streams.is_subset(&lost) && !streams.is_empty()),
                }
                for error in told.values() {
                    assert!(error.contains(&key.id.to_string()), "{error}");
                }
                assert_eq!(*first.get_or_insert_with(|| told.clone()), told, "{what}");
            }
        }
    }
}

/// A wrong delta in a container whose seals are right: it and what is made of it are lost.
#[test]
fn hostile_deltas_are_told() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, (2, 2));
    let base = text(1, 4000);
    let edit = |at: usize| {
        let mut chunk = base.clone();
        chunk.splice(at..at + 5, *b"other");
        chunk
    };
    let whole = vec![vec![HandChunk::whole(base.clone())]];
    store_container(&engine, container(1), ContainerKind::Data, &whole, |_| {});
    let delta = |at, depth, place| {
        HandChunk::delta(edit(at), (place, &base), DeltaMethod::Instructions, depth)
    };
    let mut chunks: Vec<HandChunk> = (0..6).map(|n| delta(n * 100, 1, place(1, 0))).collect();
    // Not a delta at all, one that makes another chunk, one of the other method.
    chunks[1].stored = noise(1, 50);
    chunks[2].stored = chunks[0].stored.clone();
    chunks[3].delta.as_mut().unwrap().method = DeltaMethod::Prefix;
    // Made of the first, and of the second, of the same section.
    let (first, second) = (chunks[0].bytes.clone(), chunks[1].bytes.clone());
    let made_of = |slot, base: &[u8]| {
        let base = (place(2, slot), base);
        HandChunk::delta(edit(900), base, DeltaMethod::Prefix, 2)
    };
    chunks.extend([made_of(0, &first), made_of(1, &second)]);
    let bytes: Vec<_> = chunks.iter().map(|chunk| chunk.bytes.clone()).collect();
    store_container(
        &engine,
        container(2),
        ContainerKind::Deltas,
        &[chunks],
        |_| {},
    );
    let reader = engine.reader().unwrap();
    let mut room = Storeroom::default();
    let mut plan = RestorePlan::default();
    for (slot, bytes) in bytes.iter().enumerate() {
        room.chunks.push((place(2, slot as u16), bytes.clone(), 1));
        let (recipe, _) = room.stream([slot]);
        plan.add_stream(&reader, slot as u32, &recipe, None)
            .unwrap();
    }
    let sink = Streams::default();
    plan.execute(&reader, &engine.reading_room(), &sink);
    let lost = sink.lost.lock().unwrap();
    let lost: Vec<_> = lost
        .iter()
        .map(|((stream, _), error)| (*stream, error))
        .collect();
    let streams: Vec<u32> = lost.iter().map(|(stream, _)| *stream).collect();
    assert_eq!(streams, [1, 2, 3, 7]);
    for (stream, error) in &lost {
        let slot = if *stream == 7 { 1 } else { *stream };
        assert!(error.contains(&format!("slot {slot} ")), "{error}");
        let outcome = reader.chunk(place(2, *stream as u16));
        assert!(outcome.unwrap_err().is_damage());
        let (recipe, _) = room.stream([*stream as usize]);
        let (out, outcome) = dump(&reader, (1, 1), &recipe, 100_000);
        assert!(out.is_empty() && outcome.is_err());
    }
    for stream in [0, 4, 5, 6] {
        assert!(sink.stream(stream, bytes[stream as usize].len()) == bytes[stream as usize]);
    }
}

/// The metadata says that a chunk is made of what is not there, or of itself.
#[test]
fn streams_of_impossible_chains_are_not_planned() {
    let store = Arc::new(MemoryStore::new());
    let engine = engine(&store, (2, 2));
    let bytes = text(1, 2000);
    let delta = |base, depth| {
        HandChunk::delta(
            bytes.clone(),
            (base, &bytes),
            DeltaMethod::Instructions,
            depth,
        )
    };
    let deltas = ContainerKind::Deltas;
    let chunks = vec![
        HandChunk::whole(bytes.clone()),
        delta(place(1, 0), 1),
        delta(place(2, 0), DELTA_DEPTH_MAX), // in a circle
        delta(place(9, 0), 1),               // no container
        delta(place(2, 5), 1),               // no slot
        delta(place(2, 1), 1),               // not less deep
    ];
    store_container(&engine, container(1), deltas, &[chunks], |_| {});
    let chunks = vec![delta(place(1, 2), DELTA_DEPTH_MAX), delta(place(1, 0), 1)];
    store_container(&engine, container(2), deltas, &[chunks], |section| {
        section.slots[1] = Slot(1);
    });
    let reader = engine.reader().unwrap();
    let mut room = Storeroom::default();
    let mut plan = RestorePlan::default();
    for slot in 0..6u16 {
        room.chunks.push((place(1, slot), bytes.clone(), 0));
        let (recipe, _) = room.stream([0, usize::from(slot)]);
        let planned = plan.add_stream(&reader, u32::from(slot), &recipe, None);
        let (out, read) = dump(&reader, (2, 2), &recipe, 1 << 20);
        match slot {
            0 | 1 => {
                planned.unwrap();
                read.unwrap();
                assert!(out == [bytes.clone(), bytes.clone()].concat());
            }
            _ => {
                let error = planned.unwrap_err();
                assert!(error.is_damage(), "{error}");
                assert!(
                    error.to_string().contains(&place(1, slot).to_string()),
                    "{error}"
                );
                let Err(InOrderError::Read(read)) = read else {
                    panic!("{read:?}");
                };
                assert_eq!(read.to_string(), error.to_string());
                assert!(out == bytes, "what comes before is right");
            }
        }
    }
    let sink = Streams::default();
    plan.execute(&reader, &engine.reading_room(), &sink);
    assert_eq!(*sink.lost.lock().unwrap(), BTreeMap::new());
    assert!(sink.stream(1, 4000) == [bytes.clone(), bytes].concat());
}

fn dump(
    reader: &Reader,
    (fetch_threads, threads): (usize, usize),
    recipe: &Recipe,
    cache_bytes: usize,
) -> (Vec<u8>, Result<u64, InOrderError>) {
    let room = ReadingRoom::new(fetch_threads, threads, 1 << 20, &Stages::default());
    let mut out = Vec::new();
    let mut take = |piece: StreamPiece<'_>| {
        match piece {
            StreamPiece::Bytes(bytes) => out.extend_from_slice(bytes),
            StreamPiece::Hole(bytes) => out.resize(out.len() + bytes as usize, 0),
        }
        io::Result::Ok(())
    };
    let outcome = room.read_in_order(reader, recipe, None, cache_bytes, &mut take);
    (out, outcome.map(|report| report.bytes))
}

#[test]
fn deltas_come_in_order_with_any_threads_and_memory() {
    let scene = Scene::new(5);
    let engine = engine(&scene.store, (2, 2));
    let reader = engine.reader().unwrap();
    for threads in THREADS {
        for cache_bytes in [0, 1, 5000, 100_000, 64 << 20] {
            for (recipe, expected) in &scene.streams {
                let (out, outcome) = dump(&reader, threads, recipe, cache_bytes);
                assert!(out == *expected, "{threads:?} {cache_bytes}");
                assert_eq!(outcome.unwrap(), expected.len() as u64);
            }
        }
    }
}

#[test]
fn damage_ends_a_stream_of_deltas_where_it_is() {
    let scene = Scene::new(6);
    for number in [1, 4] {
        let lost = made_of(&scene, number);
        let store = Arc::new(scene.store.fork());
        let key = container(number).own_object();
        assert!(store.corrupt(&key, |bytes| bytes[5] ^= 1));
        let engine = engine(&store, (2, 2));
        let reader = engine.reader().unwrap();
        let (recipe, expected) = &scene.streams[0];
        let (out, outcome) = dump(&reader, (2, 2), recipe, 100_000);
        assert!(expected.starts_with(&out) && out.len() < expected.len());
        let chunks = scene.room.chunks.iter().rev();
        let ends = chunks.scan(0, |end, (_, bytes, _)| {
            *end += bytes.len();
            Some(*end)
        });
        let whole = ends.take_while(|end| *end <= out.len()).count();
        let at = scene.room.chunks.len() - 1 - whole;
        assert!(
            lost.contains(&at),
            "chunk {at} is made of container {number}"
        );
        let Err(InOrderError::Read(error)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            error.is_damage() && error.to_string().contains(&key.id.to_string()),
            "{error}"
        );
    }
}

/// Containers that were moved are found through their remap, bases and deltas alike.
#[test]
fn deltas_are_read_after_a_compaction() {
    let scene = Scene::new(7);
    let all: Vec<ContainerId> = (1..=10).map(container).collect();
    let before = engine(&scene.store, (1, 1));
    let object = ObjectId([99; 16]);
    testkit::compaction::compact(&before, &all, object, ObjectId([98; 16]), &|_, _| true);
    let engine = engine(&scene.store, (2, 2));
    let reader = engine.reader().unwrap();
    let (recipe, expected) = &scene.streams[2];
    let mut plan = RestorePlan::default();
    plan.add_stream(&reader, 0, recipe, None).unwrap();
    let sink = Streams::default();
    plan.execute(&reader, &engine.reading_room(), &sink);
    assert!(sink.stream(0, expected.len()) == *expected);
    assert!(dump(&reader, (2, 2), recipe, 50_000).0 == *expected);
}

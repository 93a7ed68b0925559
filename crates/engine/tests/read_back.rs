//! Many streams are read back at once: the same bytes, and the same word about what is lost, for
//! any number of threads.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use common::{engine_on, noise, small_settings, text};
use engine::container::ContainerKind;
use engine::object::{MemoryStore, ObjectKey, ObjectKind};
use engine::pipeline::Stage;
use engine::recipe::Recipe;
use engine::restore::{ChunkSink, ReadError, RestorePlan, StreamPlanner};
use engine::{Engine, EngineSettings};

/// Threads that fetch, threads that compute.
const THREADS: [(usize, usize); 6] = [(1, 1), (4, 1), (1, 2), (4, 2), (1, 8), (4, 8)];

/// Streams in memory.
struct Streams {
    bytes: Vec<Mutex<Vec<u8>>>,
    parts: Vec<AtomicUsize>,
    lost: Mutex<BTreeMap<(u32, u64), String>>,
    cancel_after: usize,
    writes: AtomicUsize,
}

impl Streams {
    fn new(lengths: impl Iterator<Item = usize>) -> Self {
        let bytes: Vec<_> = lengths.map(|length| Mutex::new(vec![0; length])).collect();
        Self {
            parts: bytes.iter().map(|_| AtomicUsize::new(0)).collect(),
            bytes,
            lost: Mutex::default(),
            cancel_after: usize::MAX,
            writes: AtomicUsize::new(0),
        }
    }
}

impl ChunkSink for Streams {
    fn write(&self, stream: u32, offset: u64, bytes: &[u8]) {
        let start = offset as usize;
        let mut whole = self.bytes[stream as usize].lock().unwrap();
        whole[start..start + bytes.len()].copy_from_slice(bytes);
        self.parts[stream as usize].fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    fn lost(&self, stream: u32, offset: u64, parts: usize, error: &str) {
        let mut lost = self.lost.lock().unwrap();
        lost.insert((stream, offset), error.to_owned());
        self.parts[stream as usize].fetch_add(parts, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.writes.load(Ordering::Relaxed) >= self.cancel_after
    }
}

struct Scene {
    store: Arc<MemoryStore>,
    streams: Vec<Vec<u8>>,
    recipes: Vec<Recipe>,
}

impl Scene {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let mut streams = vec![Vec::new(), text(1, 2_000_000), noise(2, 1_500_000)];
        streams.extend((0..60).map(|number| text(100 + number, 100 + 997 * number as usize)));
        let mut edited = streams[1].clone();
        edited.splice(700_000..700_010, noise(3, 5000));
        streams.push(edited);
        streams.push(streams[2].clone());
        let engine = engine_on(Arc::clone(&store) as _, small_settings(2), true);
        let mut writer = engine.writer().unwrap();
        let pending: Vec<_> = streams
            .iter()
            .map(|stream| writer.store_stream(&mut stream.as_slice(), None).unwrap().0)
            .collect();
        let recipes = pending.into_iter();
        let recipes = recipes.map(|recipe| writer.settle(recipe).unwrap());
        let recipes = recipes.collect();
        writer.commit().unwrap();
        Self {
            store,
            streams,
            recipes,
        }
    }

    fn engine(&self, (fetch_threads, threads): (usize, usize)) -> Engine {
        let settings = EngineSettings {
            fetch_threads,
            ..small_settings(threads)
        };
        engine_on(Arc::clone(&self.store) as _, settings, true)
    }

    /// Reads all streams back; checks that all parts of the whole come, unless cancelled.
    fn read_back(&self, engine: &Engine, cancel_after: usize) -> (Streams, usize) {
        let reader = engine.reader().unwrap();
        let mut sink = Streams::new(self.streams.iter().map(Vec::len));
        sink.cancel_after = cancel_after;
        let mut plan = RestorePlan::default();
        let mut parts = Vec::new();
        for (number, recipe) in self.recipes.iter().enumerate() {
            let added = plan.add_stream(&reader, number as u32, recipe, None);
            parts.push(added.unwrap());
        }
        let containers = plan.containers().count();
        plan.execute(&reader, &engine.reading_room(), &sink);
        for (number, parts) in parts.iter().enumerate() {
            let came = sink.parts[number].load(Ordering::Relaxed);
            assert!(came == parts.parts || cancel_after < usize::MAX);
        }
        (sink, containers)
    }

    fn data_containers(&self) -> Vec<ObjectKey> {
        let reader = self.engine((1, 1)).reader().unwrap();
        let mut keys = self.store.keys();
        keys.retain(|key| {
            key.kind == ObjectKind::Container
                && reader.containers().object(*key).unwrap().0.sections[0].kind
                    == ContainerKind::Data
        });
        keys
    }
}

#[test]
fn streams_are_the_same_for_any_number_of_threads() {
    let scene = Scene::new();
    for threads in THREADS {
        let engine = scene.engine(threads);
        scene.store.reset_counts();
        let (sink, containers) = scene.read_back(&engine, usize::MAX);
        assert!(containers > 5, "several containers");
        assert_eq!(*sink.lost.lock().unwrap(), BTreeMap::new());
        for (number, expected) in scene.streams.iter().enumerate() {
            let bytes = sink.bytes[number].lock().unwrap();
            assert!(*bytes == *expected, "stream {number}, threads {threads:?}");
        }
        // Every container in one go: its metadata, and all its groups.
        let counts = scene.store.counts();
        assert_eq!(counts.ranges, containers as u64);
        assert_eq!(counts.tails, containers as u64);
        let reports = engine.stages().reports();
        for stage in [
            Stage::Fetch,
            Stage::Unseal,
            Stage::Decompress,
            Stage::Verify,
        ] {
            let report = reports.iter().find(|report| report.stage == stage);
            let report = report.unwrap();
            assert!(report.bytes > 1_000_000, "{report:?}");
            assert_eq!(report.queued_bytes, 0);
            // An eighth of the memory, and at most one item more.
            assert!(report.queued_bytes_max <= (2 << 20) + (256 << 10));
        }
    }
}

#[test]
fn damage_costs_the_same_for_any_number_of_threads() {
    let scene = Scene::new();
    let keys = scene.data_containers();
    let damaged = &keys[keys.len() / 2];
    for what in ["a group", "the metadata", "cut off", "missing"] {
        let engine = scene.engine((1, 1));
        let reader = engine.reader().unwrap();
        let whole = scene.store.object(damaged).unwrap();
        let mut first: Option<BTreeMap<(u32, u64), String>> = None;
        for threads in THREADS {
            let engine = scene.engine(threads);
            let reader = match what {
                // Known before it is damaged: planned, and then not there.
                "the metadata" | "missing" => reader.clone(),
                _ => engine.reader().unwrap(),
            };
            let mut plan = RestorePlan::default();
            let sink = Streams::new(scene.streams.iter().map(Vec::len));
            for (number, recipe) in scene.recipes.iter().enumerate() {
                let added = plan.add_stream(&reader, number as u32, recipe, None);
                added.unwrap();
            }
            match what {
                "a group" => assert!(scene.store.corrupt(damaged, |bytes| bytes[1000] ^= 1)),
                "the metadata" => {
                    assert!(scene.store.corrupt(damaged, |bytes| {
                        let end = bytes.len() - 50;
                        bytes[end] ^= 1;
                    }));
                }
                "cut off" => assert!(
                    scene
                        .store
                        .corrupt(damaged, |bytes| bytes.truncate(100_000))
                ),
                _ => drop(scene.store.remove_raw(damaged)),
            }
            plan.execute(&reader, &engine.reading_room(), &sink);
            scene.store.insert_raw(*damaged, whole.clone());
            let lost = sink.lost.into_inner().unwrap();
            // Metadata that was read before is not read again.
            assert_eq!(lost.is_empty(), what == "the metadata", "{what}");
            for error in lost.values() {
                assert!(error.contains(&damaged.id.to_string()), "{error}");
            }
            for (number, expected) in scene.streams.iter().enumerate() {
                let is_lost = lost.keys().any(|(stream, _)| *stream == number as u32);
                let bytes = sink.bytes[number].lock().unwrap();
                assert!(is_lost || *bytes == *expected, "stream {number}");
            }
            assert!(lost.len() < scene.streams.len(), "{what}: others come");
            assert_eq!(*first.get_or_insert_with(|| lost.clone()), lost, "{what}");
        }
    }
}

/// A stream that goes through many plans comes as it does through one, with all its parts.
#[test]
fn a_long_stream_goes_through_several_plans() {
    let scene = Scene::new();
    let engine = scene.engine((2, 2));
    let reader = engine.reader().unwrap();
    let longest = scene.recipes.len() - 2;
    let recipe = &scene.recipes[longest];
    let check = reader.visit_runs(recipe, &mut |_, _| {}).unwrap().1;
    for bytes_max in [0, 1, 240, 100_000] {
        let sink = Streams::new(scene.streams.iter().map(Vec::len));
        let mut plan = RestorePlan::default();
        let mut planner = StreamPlanner::new(&reader, recipe, Some(check));
        let (mut parts, mut plans) = (0, 0);
        loop {
            let step = planner.add_to(&mut plan, longest as u32, bytes_max);
            let step = step.unwrap();
            assert!(plan.memory_bytes() <= bytes_max.max(500) + 500);
            parts += step.parts.parts;
            plans += 1;
            plan.execute(&reader, &engine.reading_room(), &sink);
            if step.is_end {
                break;
            }
        }
        assert_eq!(*sink.bytes[longest].lock().unwrap(), scene.streams[longest]);
        assert_eq!(sink.parts[longest].load(Ordering::Relaxed), parts);
        assert!((plans > 1) == (bytes_max < 100_000), "{plans} plans");
    }
    let mut planner = StreamPlanner::new(&reader, &scene.recipes[1], Some(check));
    let mut plan = RestorePlan::default();
    let outcome = planner.add_to(&mut plan, 0, usize::MAX);
    assert!(matches!(outcome, Err(ReadError::Check)));
    assert_eq!(plan.containers().count(), 0);
}

#[test]
fn a_stop_ends_reading() {
    let scene = Scene::new();
    for threads in THREADS {
        let engine = scene.engine(threads);
        let (sink, _) = scene.read_back(&engine, 3);
        let writes = sink.writes.load(Ordering::Relaxed);
        let (whole, _) = scene.read_back(&engine, usize::MAX);
        let all = whole.writes.load(Ordering::Relaxed);
        assert!(writes >= 3 && writes < all, "{writes} of {all}");
    }
}

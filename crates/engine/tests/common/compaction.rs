//! What the tests of compaction share: stores with streams in them, and what readers must say of them.

#![allow(dead_code)] // Each test binary uses a part of it.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex};

use engine::Engine;
use engine::container::{ChunkAddress, Compacted, CompactionError, ContainerId, SlotSet};
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::StreamPiece;
use engine::recipe::{Recipe, Run};
use engine::restore::{ChunkSink, Reader, RestorePlan};

use super::{engine_on, noise, small_settings, text};

/// A store and an engine on it.
pub fn new_engine(is_padded: bool) -> (Arc<MemoryStore>, Engine) {
    let store = Arc::new(MemoryStore::new());
    let shared = Arc::clone(&store) as Arc<dyn ObjectStore>;
    (store, engine_on(shared, small_settings(1), is_padded))
}

pub fn container_objects(store: &MemoryStore) -> BTreeMap<ObjectId, u64> {
    let mut objects = BTreeMap::new();
    store
        .list(ObjectKind::Container, &mut |id, bytes| {
            objects.insert(id, bytes);
        })
        .unwrap();
    objects
}

pub fn delete(store: &MemoryStore, object: ObjectId) {
    store
        .delete(&ObjectKey::new(ObjectKind::Container, object))
        .unwrap();
}

/// What is to be kept, by container, with the bases that it takes.
pub fn with_bases(
    reader: &Reader,
    wanted: impl IntoIterator<Item = ChunkAddress>,
) -> BTreeMap<ContainerId, SlotSet> {
    let mut keep: BTreeMap<ContainerId, SlotSet> = BTreeMap::new();
    let mut waiting: Vec<_> = wanted.into_iter().collect();
    while let Some(chunk) = waiting.pop() {
        if keep.entry(chunk.container).or_default().insert(chunk.slot) {
            let (loaded, found) = reader.containers().find(chunk).unwrap().unwrap();
            waiting.extend(loaded.section.delta(found).map(|delta| delta.base));
        }
    }
    keep
}

pub fn compact(
    engine: &Engine,
    keep: &BTreeMap<ContainerId, SlotSet>,
) -> Result<Compacted, CompactionError> {
    let mut compactor = engine.compactor()?;
    for (&container, slots) in keep {
        compactor.keep(container, slots)?;
    }
    compactor.finish()
}

/// A stream in memory.
#[derive(Default)]
pub struct Sink {
    written: Mutex<BTreeMap<u64, Vec<u8>>>,
    lost: Mutex<Vec<String>>,
    calls: Mutex<usize>,
}

impl ChunkSink for Sink {
    fn write(&self, _: u32, offset: u64, bytes: &[u8]) {
        *self.calls.lock().unwrap() += 1;
        self.written.lock().unwrap().insert(offset, bytes.to_vec());
    }

    fn lost(&self, _: u32, _: u64, parts: usize, error: &str) {
        *self.calls.lock().unwrap() += parts;
        self.lost.lock().unwrap().push(error.to_owned());
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

impl Sink {
    pub fn assert_is(&self, parts: usize, expected: &[u8]) {
        assert_eq!(*self.lost.lock().unwrap(), [""; 0]);
        assert_eq!(*self.calls.lock().unwrap(), parts);
        let mut stream = Vec::new();
        for (&offset, bytes) in self.written.lock().unwrap().iter() {
            assert_eq!(offset, stream.len() as u64);
            stream.extend_from_slice(bytes);
        }
        assert!(stream == expected);
    }
}

/// Reads a stream by all that reads streams.
pub fn assert_reads(engine: &Engine, reader: &Reader, recipe: &Recipe, expected: &[u8]) {
    let mut stream = Vec::new();
    reader.stream(recipe).read_to_end(&mut stream).unwrap();
    assert!(stream == expected);
    assert!(in_order(engine, reader, recipe) == expected);
    let mut plan = RestorePlan::default();
    let parts = plan.add_stream(reader, 0, recipe, None).unwrap();
    let sink = Sink::default();
    plan.execute(reader, &engine.reading_room(), &sink);
    sink.assert_is(parts.parts, expected);
}

pub fn in_order(engine: &Engine, reader: &Reader, recipe: &Recipe) -> Vec<u8> {
    let mut stream = Vec::new();
    let room = engine.reading_room();
    let mut take = |piece: StreamPiece<'_>| {
        match piece {
            StreamPiece::Bytes(bytes) => stream.extend_from_slice(bytes),
            StreamPiece::Hole(bytes) => stream.resize(stream.len() + bytes as usize, 0),
        }
        Ok(())
    };
    let report = room.read_in_order(reader, recipe, None, 100_000, &mut take);
    assert_eq!(report.unwrap().bytes, stream.len() as u64);
    stream
}

/// Streams that a writer stored.
pub struct Stored {
    pub store: Arc<MemoryStore>,
    pub engine: Engine,
    pub streams: Vec<(Recipe, Vec<u8>)>,
}

pub fn stored(is_padded: bool) -> Stored {
    let (store, engine) = new_engine(is_padded);
    let mut writer = engine.writer().unwrap();
    let mut streams = Vec::new();
    for seed in 0..6 {
        let stream = match seed % 2 {
            0 => text(seed, 300_000),
            _ => noise(seed, 200_000),
        };
        let pending = writer.store_stream(&mut stream.as_slice(), None).unwrap().0;
        streams.push((writer.settle(pending).unwrap(), stream));
    }
    writer.commit().unwrap();
    Stored {
        store,
        engine,
        streams,
    }
}

pub fn slots_of<'a>(
    recipes: impl IntoIterator<Item = &'a Recipe>,
) -> BTreeMap<ContainerId, SlotSet> {
    let mut keep: BTreeMap<ContainerId, SlotSet> = BTreeMap::new();
    for recipe in recipes {
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
                keep.entry(container).or_default().insert_run(first, count);
            }
        }
    }
    keep
}

/// Keeps `wanted` of all containers that there are.
pub fn keep_only(engine: &Engine, store: &MemoryStore, wanted: &[&Recipe]) -> Compacted {
    let mut keep = slots_of(wanted.iter().copied());
    for object in container_objects(store).into_keys() {
        keep.entry(ContainerId(object)).or_default();
    }
    compact(engine, &keep).unwrap()
}

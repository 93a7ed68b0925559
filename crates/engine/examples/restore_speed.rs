//! How fast streams come back from memory: versions of data, the first stored whole, each later one as
//! deltas to the one before; through a restore plan, and in order.
//!
//! ```sh
//! cargo run --release -p onefold-engine --example restore_speed -- 64 4
//! ```
//! takes 64 MB of data and 4 versions after the first. A chunk has 8 KB, of which a version changes 80.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};
use engine::container::{ChunkAddress, ContainerId, ContainerKind, DeltaMethod, Slot};
use engine::fingerprint::Fingerprinter;
use engine::format::Vault;
use engine::object::{MemoryStore, ObjectId};
use engine::pipeline::StreamPiece;
use engine::restore::{ChunkSink, RestorePlan};
use engine::{Engine, EngineSettings};
use testkit::deltas::{HandChunk, Storeroom, store_container};
use testkit::random::Random;
use zeroize::Zeroizing;

const CHUNK_BYTES: usize = 8 << 10;

/// Chunks in a container: some 4 MiB of what is stored of them.
const CHUNKS_A_CONTAINER: usize = 1000;

/// Chunks in a group.
const CHUNKS_A_GROUP: usize = 128;

struct Counting(AtomicU64);

impl ChunkSink for Counting {
    fn write(&self, _: u32, _: u64, bytes: &[u8]) {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }

    fn lost(&self, _: u32, _: u64, _: usize, error: &str) {
        panic!("{error}");
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or: usize| arguments.next().map_or(Ok(or), |text| text.parse());
    let chunk_count = number(64)? * 1_000_000 / CHUNK_BYTES;
    let versions = number(4)?;
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    let parameters = Parameters {
        algorithm: Algorithm::FastCdc,
        ..Parameters::default()
    };
    let engine = Engine::new(
        Arc::new(MemoryStore::new()),
        Vault::new(ObjectId([1; 16]), secrets, true),
        Fingerprinter::new(&[9; 32]),
        Chunker::new(&parameters, KeyMaterial::Unkeyed)?,
        EngineSettings::default(),
    );
    let mut random = Random::new(1);
    let mut version = Storeroom::default();
    for depth in 0..=versions {
        version = store(&engine, &mut random, depth as u8, chunk_count, &version);
        measure(&engine, depth, &version)?;
    }
    Ok(())
}

/// Stores a version, which is that before with a few words changed in each chunk.
fn store(
    engine: &Engine,
    random: &mut Random,
    depth: u8,
    chunk_count: usize,
    before: &Storeroom,
) -> Storeroom {
    let mut version = Storeroom::default();
    let mut chunks = Vec::new();
    let id_of = |at: usize| {
        let mut id = [depth; 16];
        id[..4].copy_from_slice(&((at / CHUNKS_A_CONTAINER) as u32).to_le_bytes());
        ContainerId(ObjectId(id))
    };
    for at in 0..chunk_count {
        let chunk = match before.chunks.get(at) {
            None => HandChunk::whole(words(random)),
            Some((place, base, _)) => {
                let mut bytes = base.clone();
                for _ in 0..5 {
                    let start = random.index(bytes.len() - 16);
                    bytes[start..start + 16].copy_from_slice(&random.bytes(16));
                }
                HandChunk::delta(bytes, (*place, base), DeltaMethod::Instructions, depth)
            }
        };
        let place = ChunkAddress {
            container: id_of(at),
            slot: Slot((at % CHUNKS_A_CONTAINER) as u16),
        };
        version.chunks.push((place, chunk.bytes.clone(), depth));
        chunks.push(chunk);
    }
    for (number, chunks) in chunks.chunks(CHUNKS_A_CONTAINER).enumerate() {
        let groups: Vec<_> = chunks.chunks(CHUNKS_A_GROUP).map(<[_]>::to_vec).collect();
        let kind = match depth {
            0 => ContainerKind::Data,
            _ => ContainerKind::Deltas,
        };
        let id = id_of(number * CHUNKS_A_CONTAINER);
        store_container(engine, id, kind, &groups, |_| {});
    }
    version
}

/// A chunk that compresses somewhat.
fn words(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CHUNK_BYTES + 16);
    while bytes.len() < CHUNK_BYTES {
        bytes.extend_from_slice(format!("{:06x} and ", random.below(1 << 24)).as_bytes());
    }
    bytes.truncate(CHUNK_BYTES);
    bytes
}

fn measure(
    engine: &Engine,
    depth: usize,
    version: &Storeroom,
) -> Result<(), Box<dyn std::error::Error>> {
    let (recipe, stream) = version.stream(0..version.chunks.len());
    let room = engine.reading_room();
    let (mut planned, mut in_order) = (f64::MAX, f64::MAX);
    let mut plan_bytes = 0;
    for _ in 0..5 {
        let reader = engine.reader()?;
        let started = Instant::now();
        let mut plan = RestorePlan::default();
        plan.add_stream(&reader, 0, &recipe, None)?;
        plan_bytes = plan.memory_bytes();
        let sink = Counting(AtomicU64::new(0));
        plan.execute(&reader, &room, &sink);
        assert_eq!(sink.0.into_inner(), stream.len() as u64);
        planned = planned.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        let mut is_same = true;
        let mut rest = &stream[..];
        let mut take = |piece: StreamPiece<'_>| {
            if let StreamPiece::Bytes(bytes) = piece {
                is_same &= rest.starts_with(bytes);
                rest = &rest[bytes.len().min(rest.len())..];
            }
            Ok(())
        };
        room.read_in_order(&reader, &recipe, None, 64 << 20, &mut take)?;
        assert!(is_same && rest.is_empty());
        in_order = in_order.min(started.elapsed().as_secs_f64());
    }
    let speed = |seconds: f64| stream.len() as f64 / seconds / 1e6;
    println!(
        "depth {depth}: plan {:.0} MB/s, of {:.1} MB; in order {:.0} MB/s",
        speed(planned),
        plan_bytes as f64 / 1e6,
        speed(in_order),
    );
    Ok(())
}

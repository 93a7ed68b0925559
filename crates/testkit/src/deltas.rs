//! Containers of deltas put together by hand, right ones and wrong ones: for tests of what reads them
//! (docs/format/v1.md, §6).
//!
//! A [`Storeroom`] takes chunks, writes them into containers as it is told, whole or as deltas to chunks
//! that it took before, and gives recipes of streams made of them. What metadata says may be
//! changed before it is sealed: a circle of bases, say, which no writer makes.

use engine::Engine;
use engine::container::{
    ChunkAddress, Compression, CompressionLevel, Compressor, ContainerId, ContainerKind, Delta,
    DeltaMethod, Features, Group, ObjectMetadata, Section, Slot,
};
use engine::object::ObjectId;
use engine::recipe::{Recipe, Run, RunJoiner};
use engine::similarity::delta::DeltaEncoder;
use engine::similarity::prefix::PrefixEncoder;

use crate::random::Random;

/// A chunk on its way into a container.
#[derive(Debug, Clone)]
pub struct HandChunk {
    /// The chunk.
    pub bytes: Vec<u8>,
    /// What is stored of it.
    pub stored: Vec<u8>,
    /// How, if not whole; its `stored_bytes` is filled in.
    pub delta: Option<Delta>,
}

impl HandChunk {
    /// A chunk stored whole.
    #[must_use]
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self {
            stored: bytes.clone(),
            bytes,
            delta: None,
        }
    }

    /// A chunk stored as a delta to `base`, which lies in that place.
    ///
    /// # Panics
    /// When there is no such delta: bytes too many.
    #[must_use]
    pub fn delta(
        bytes: Vec<u8>,
        (place, base): (ChunkAddress, &[u8]),
        method: DeltaMethod,
        depth: u8,
    ) -> Self {
        let mut stored = Vec::new();
        let limit = 2 * bytes.len() + 64;
        let is_there = match method {
            DeltaMethod::Instructions => {
                DeltaEncoder::new().encode(base, &bytes, limit, &mut stored)
            }
            DeltaMethod::Prefix => {
                let mut encoder = PrefixEncoder::new(CompressionLevel::DEFAULT);
                encoder.encode(base, &bytes, limit, &mut stored)
            }
        };
        assert!(is_there, "there is a delta of {limit} bytes");
        let delta = Delta {
            base: place,
            stored_bytes: stored.len() as u32,
            method,
            depth,
        };
        Self {
            bytes,
            stored,
            delta: Some(delta),
        }
    }
}

/// A container id for tests.
#[must_use]
pub fn container(number: u8) -> ContainerId {
    ContainerId(ObjectId([number; 16]))
}

/// A place for tests.
#[must_use]
pub fn place(number: u8, slot: u16) -> ChunkAddress {
    ChunkAddress {
        container: container(number),
        slot: Slot(slot),
    }
}

/// Stores a container of these groups, each compressed if that makes it smaller, in slots from 0 on.
/// `change` may change what its metadata says.
///
/// # Panics
/// When the store does not take it.
pub fn store_container(
    engine: &Engine,
    id: ContainerId,
    kind: ContainerKind,
    groups: &[Vec<HandChunk>],
    change: impl FnOnce(&mut Section),
) {
    let key = id.own_object();
    let sealer = engine.vault().new_object(key);
    let mut compressor = Compressor::new(CompressionLevel::DEFAULT);
    let chunks: Vec<&HandChunk> = groups.iter().flatten().collect();
    let delta_of = |chunk: &&HandChunk| {
        let stored_bytes = chunk.stored.len() as u32;
        chunk.delta.map(|delta| Delta {
            stored_bytes,
            ..delta
        })
    };
    let mut section = Section {
        id,
        kind,
        slots: (0..chunks.len() as u16).map(Slot).collect(),
        lengths: chunks.iter().map(|c| c.bytes.len() as u32).collect(),
        fingerprints: chunks
            .iter()
            .map(|chunk| engine.fingerprinter().fingerprint(kind, &chunk.bytes))
            .collect(),
        markers: Vec::new(),
        deltas: match kind {
            ContainerKind::Deltas => chunks.iter().map(delta_of).collect(),
            _ => Vec::new(),
        },
        features: Features::default(),
        groups: Vec::new(),
    };
    let mut data = Vec::new();
    for (number, chunks) in groups.iter().enumerate() {
        let plain: Vec<u8> = chunks.iter().flat_map(|c| c.stored.clone()).collect();
        let small = compressor.compress(&plain);
        let compression = match small {
            Some(_) => Compression::Zstd,
            None => Compression::Stored,
        };
        let offset = data.len();
        data.extend_from_slice(small.as_ref().unwrap_or(&plain));
        sealer.seal(3 + number as u32, &mut data, offset);
        section.groups.push(Group {
            offset: offset as u64,
            sealed_bytes: (data.len() - offset) as u32,
            compression,
            number: number as u32,
            first_chunk: groups[..number].iter().map(|g| g.len() as u32).sum(),
            chunk_count: chunks.len() as u32,
            plain_bytes: plain.len() as u64,
        });
    }
    change(&mut section);
    let metadata = ObjectMetadata {
        sections: vec![section],
    };
    let start = data.len();
    data.extend_from_slice(&metadata.encode());
    sealer.seal(1, &mut data, start);
    let tag = sealer.length_tag((data.len() - start) as u32);
    data.extend_from_slice(&tag);
    let stored = engine.store().put(&key, &data);
    stored.expect("the container is stored");
}

/// Chunks that are stored, and streams made of them.
#[derive(Debug, Default)]
pub struct Storeroom {
    /// Every chunk: where it lies, what it is, and how deep.
    pub chunks: Vec<(ChunkAddress, Vec<u8>, u8)>,
}

/// How a random storeroom is filled.
#[derive(Debug, Clone, Copy)]
pub struct Filling {
    /// Containers of data, and as many of deltas between them.
    pub containers: u8,
    /// Chunks in each.
    pub chunks: usize,
    /// Most deltas on each other.
    pub depth_max: u8,
}

impl Storeroom {
    /// Containers of data and of deltas in turn: a few chunks of the latter are whole, the others deltas,
    /// by either method, to chunks of any container before, or of their own.
    ///
    /// # Panics
    /// When the store does not take them.
    #[must_use]
    pub fn random(engine: &Engine, seed: u64, filling: Filling) -> Self {
        let mut random = Random::new(seed);
        let mut room = Self::default();
        for number in 0..2 * filling.containers {
            let kind = match number % 2 {
                0 => ContainerKind::Data,
                _ => ContainerKind::Deltas,
            };
            let mut chunks: Vec<HandChunk> = Vec::new();
            for slot in 0..filling.chunks {
                let base = random.index(room.chunks.len().max(1));
                let base = room
                    .chunks
                    .get(base)
                    .filter(|_| kind == ContainerKind::Deltas && random.below(8) > 0);
                let base = base.filter(|(_, _, depth)| *depth < filling.depth_max);
                let chunk = match base {
                    None => HandChunk::whole(fresh(&mut random)),
                    Some((place, base, depth)) => {
                        let method = match random.below(3) {
                            0 => DeltaMethod::Prefix,
                            _ => DeltaMethod::Instructions,
                        };
                        let bytes = edited(&mut random, base);
                        HandChunk::delta(bytes, (*place, base), method, depth + 1)
                    }
                };
                let depth = chunk.delta.map_or(0, |delta| delta.depth);
                let place = place(number + 1, slot as u16);
                room.chunks.push((place, chunk.bytes.clone(), depth));
                chunks.push(chunk);
            }
            let groups: Vec<_> = chunks.chunks(5).map(<[HandChunk]>::to_vec).collect();
            store_container(engine, container(number + 1), kind, &groups, |_| {});
        }
        room
    }

    /// A recipe of these chunks, by number, one after the other; and the stream that they make.
    #[must_use]
    pub fn stream(&self, numbers: impl IntoIterator<Item = usize>) -> (Recipe, Vec<u8>) {
        let mut runs = RunJoiner::default();
        let mut stream = Vec::new();
        for number in numbers {
            let (place, bytes, _) = &self.chunks[number];
            runs.push(Run::Slots {
                container: place.container,
                first: place.slot,
                count: 1,
                bytes: bytes.len() as u64,
            });
            stream.extend_from_slice(bytes);
        }
        (Recipe::Runs(runs.finish()), stream)
    }
}

/// A chunk of its own, which compresses somewhat.
fn fresh(random: &mut Random) -> Vec<u8> {
    let words = 50 + random.below(200);
    let mut bytes = Vec::new();
    for _ in 0..words {
        bytes.extend_from_slice(format!("{:06x} and ", random.below(1 << 24)).as_bytes());
    }
    bytes
}

/// The same chunk with something in it replaced and something put in.
fn edited(random: &mut Random, base: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.index(bytes.len());
        let end = (at + random.below(20) as usize).min(bytes.len());
        let new = format!("edit {:x}", random.below(1 << 40)).into_bytes();
        bytes.splice(at..end, new);
    }
    bytes
}

/// Makes a container of deltas of one of data, in its place: chunks in the same slots, a few of them
/// whole, the others deltas to chunks like them in a new container `bases`, or to the chunk before.
///
/// # Panics
/// When the container is not readable, or the store fails.
pub fn make_deltas(engine: &Engine, id: ContainerId, bases: ContainerId) {
    let reader = engine.reader().expect("remaps are readable");
    let loaded = reader.containers().section(id);
    let section = &loaded.expect("the container is readable").section;
    let mut random = Random::new(7);
    let mut base_chunks = Vec::new();
    let mut chunks: Vec<HandChunk> = Vec::new();
    for chunk in 0..section.chunk_count() {
        let bytes = reader.chunk(section.address(chunk));
        let bytes = bytes.expect("the chunk is readable").to_vec();
        let before = chunks
            .last()
            .and_then(|before| Some((before, before.delta?)));
        let new = match (chunk % 5, before) {
            (0, _) => HandChunk::whole(bytes),
            (1, Some((before, delta))) => {
                let base = (section.address(chunk - 1), &before.bytes[..]);
                HandChunk::delta(bytes, base, DeltaMethod::Instructions, delta.depth + 1)
            }
            _ => {
                let base = edited(&mut random, &bytes);
                let place = ChunkAddress {
                    container: bases,
                    slot: Slot(base_chunks.len() as u16),
                };
                let method = match chunk % 2 {
                    0 => DeltaMethod::Instructions,
                    _ => DeltaMethod::Prefix,
                };
                let delta = HandChunk::delta(bytes, (place, &base), method, 1);
                base_chunks.push(HandChunk::whole(base));
                delta
            }
        };
        chunks.push(new);
    }
    let groups = |chunks: &[HandChunk]| chunks.chunks(9).map(<[_]>::to_vec).collect::<Vec<_>>();
    store_container(
        engine,
        bases,
        ContainerKind::Data,
        &groups(&base_chunks),
        |_| {},
    );
    let key = id.own_object();
    engine.store().delete(&key).expect("it is there");
    let slots = section.slots.clone();
    store_container(engine, id, ContainerKind::Deltas, &groups(&chunks), |new| {
        new.slots = slots;
    });
}

//! Runs of the fingerprint index (docs/format/v1.md, §11).
//!
//! Footers, blocks and filters are known to the index alone, so they are attacked through
//! [`RunSet`]: a hostile part takes the place of a good one, everything is sealed, and the run
//! is opened, asked and merged. The layout of the object follows what the footer announces, so
//! that a hostile footer is not refused for the object's length alone.

use std::sync::{Arc, OnceLock};

use engine::container::{ChunkAddress, ContainerId, Slot};
use engine::format::{
    DecodeError, Decoder, FieldList, LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES,
};
use engine::index::{IndexEntry, MEMORY_BYTES_MIN, RunSet};
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind};

use super::vault;

/// Stored length of a block.
const BLOCK_BYTES: usize = 16_384;

/// The object of the hostile run.
const KEY: ObjectKey = ObjectKey {
    kind: ObjectKind::Index,
    id: ObjectId([2; 16]),
};

/// Entries in the sample: several blocks.
const ENTRIES: u64 = 5000;

/// An announced body is laid out up to this length.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A plaintext in the place of a good one: `u8` says which (0 the footer, 1 the planes of filters,
/// other numbers a block), the rest is the plaintext.
pub fn parts(bytes: &[u8]) {
    let Some((&which, part)) = bytes.split_first() else {
        return;
    };
    let mut parts = Parts::sample().clone();
    match which {
        0 => parts.footer = part.to_vec(),
        1 => parts.plane = part.to_vec(),
        _ => {
            let block = usize::from(which - 2) % parts.blocks.len();
            parts.blocks[block] = part.to_vec();
        }
    }
    ask(parts.seal());
}

/// A whole object, seals included.
pub fn object(bytes: &[u8]) {
    ask(bytes.to_vec());
}

/// Opens the run beside a good one: whatever the hostile one says, the good one is still found,
/// before and after they are merged.
fn ask(hostile: Vec<u8>) {
    let store = Arc::new(MemoryStore::new());
    store.insert_raw(KEY, hostile);
    let set = RunSet::open(store, vault(), MEMORY_BYTES_MIN).expect("memory can be listed");
    let good: Vec<_> = (0..50).map(|number| entry(number * 1000, 9)).collect();
    set.write_run(&mut good.clone(), &[])
        .expect("memory takes it");
    let look = || {
        for prefix in [0, 1, u64::MAX]
            .into_iter()
            .chain((0..ENTRIES).step_by(97).map(prefix_of))
        {
            set.candidates(prefix, &mut Vec::new());
        }
        for entry in &good {
            let mut found = Vec::new();
            set.candidates(entry.prefix, &mut found);
            assert!(found.contains(&entry.address));
        }
        assert!(set.covered(good[0].address.container));
    };
    look();
    set.merge_all(&|_| true).expect("memory takes it");
    look();
    let statistics = set.statistics();
    assert!((1..=2).contains(&statistics.runs));
    let is_hostile_run_read = statistics.entries > good.len() as u64;
    assert!(is_hostile_run_read || statistics.footer_bytes < 1 << 20);
}

fn prefix_of(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn entry(number: u64, container: u8) -> IndexEntry {
    IndexEntry {
        prefix: prefix_of(number),
        address: ChunkAddress {
            container: ContainerId(ObjectId([container; 16])),
            slot: Slot((number % 1000) as u16),
        },
    }
}

/// The plaintexts of a run.
#[derive(Debug, Clone)]
struct Parts {
    footer: Vec<u8>,
    blocks: Vec<Vec<u8>>,
    plane: Vec<u8>,
}

impl Parts {
    /// Those of a good run of one filter partition.
    fn sample() -> &'static Self {
        static SAMPLE: OnceLock<Parts> = OnceLock::new();
        SAMPLE.get_or_init(|| {
            let store = Arc::new(MemoryStore::new());
            let set = RunSet::open(Arc::clone(&store) as _, vault(), MEMORY_BYTES_MIN)
                .expect("memory can be listed");
            let mut entries: Vec<_> = (0..ENTRIES)
                .map(|number| entry(number, (number / 1000) as u8))
                .collect();
            let covered = ContainerId(ObjectId([200; 16]));
            set.write_run(&mut entries, &[covered])
                .expect("memory takes it");
            let key = store.keys()[0];
            Self::open(key, &store.object(&key).expect("it is there"))
        })
    }

    fn open(key: ObjectKey, object: &[u8]) -> Self {
        let (object, tag) = object
            .split_last_chunk::<LENGTH_TAG_BYTES>()
            .expect("it has a tag");
        let sealer = vault().object(key, &tag[..12]).expect("it is our tag");
        let footer_bytes = sealer.open_length_tag(tag).expect("it opens") as usize;
        let (body, footer) = object.split_at(object.len() - footer_bytes);
        let footer = open(&sealer, 1, footer);
        let announced = Announced::read(&footer).expect("the footer is good");
        let (blocks, planes) = body.split_at(announced.blocks * BLOCK_BYTES);
        let blocks: Vec<_> = blocks
            .chunks(BLOCK_BYTES)
            .zip(2..)
            .map(|(block, piece)| open(&sealer, piece, block))
            .collect();
        let plane = &planes[..announced.partitions[0].1];
        let plane = open(&sealer, 2 + blocks.len() as u32, plane);
        Self {
            footer,
            blocks,
            plane,
        }
    }

    /// The object that the footer announces, as far as that makes sense.
    fn seal(&self) -> Vec<u8> {
        let sealer = vault().new_object(KEY);
        let announced = Announced::read(&self.footer).unwrap_or_default();
        let mut blocks = self.blocks.iter().cycle();
        let mut pieces = Vec::new();
        let ends = announced.partitions.iter().skip(1).map(|next| next.0);
        let ends = ends.chain([announced.blocks]);
        for (&(first, plane_bytes), end) in announced.partitions.iter().zip(ends).take(1 << 10) {
            let count = end.saturating_sub(first).min(1 << 10);
            pieces.extend(
                blocks
                    .by_ref()
                    .take(count)
                    .map(|block| (block, BLOCK_BYTES)),
            );
            pieces.extend([(&self.plane, plane_bytes); 2]);
        }
        let mut object = Vec::new();
        for (piece, (plain, sealed_bytes)) in (2..).zip(pieces) {
            let start = object.len();
            let Some(length) = sealed_bytes.checked_sub(SEAL_TAG_BYTES) else {
                break;
            };
            if start + length > BODY_BYTES_MAX {
                break;
            }
            object.extend_from_slice(&plain[..length.min(plain.len())]);
            object.resize(start + length, 0);
            sealer.seal(piece, &mut object, start);
        }
        let start = object.len();
        object.extend_from_slice(&self.footer);
        sealer.seal(1, &mut object, start);
        let tag = sealer.length_tag((object.len() - start) as u32);
        object.extend_from_slice(&tag);
        object
    }
}

fn open(sealer: &ObjectSealer, piece: u32, sealed: &[u8]) -> Vec<u8> {
    let mut plain = sealed.to_vec();
    sealer.open(piece, &mut plain).expect("it opens");
    plain
}

/// What a footer says of the object's layout, unchecked.
#[derive(Default)]
struct Announced {
    blocks: usize,
    /// First block, and sealed bytes of each of the two planes.
    partitions: Vec<(usize, usize)>,
}

impl Announced {
    fn read(footer: &[u8]) -> Result<Self, DecodeError> {
        let mut announced = Self::default();
        let mut fields = FieldList::new(footer);
        while let Some(field) = fields.next_field()? {
            let mut value = Decoder::new(field.value);
            match field.tag {
                1 => {
                    value.varint()?;
                    announced.blocks = value.varint()? as usize;
                }
                7 => {
                    while !value.is_empty() {
                        let first_block = value.varint()? as usize;
                        value.varint()?;
                        let segment_bits = value.varint()?.min(20);
                        let segments = value.varint()?.min(1 << 30);
                        value.varint()?;
                        let slots = (segments + 3) << segment_bits;
                        let plane_bytes = slots as usize / 2 + SEAL_TAG_BYTES;
                        announced.partitions.push((first_block, plane_bytes));
                    }
                }
                _ => {}
            }
        }
        Ok(announced)
    }
}

pub fn parts_samples() -> Vec<Vec<u8>> {
    let Parts {
        footer,
        blocks,
        plane,
    } = Parts::sample();
    let sample = |which: u8, part: &[u8]| [&[which], part].concat();
    vec![
        sample(0, footer),
        sample(1, plane),
        sample(2, &blocks[0]),
        sample(3, &blocks[1]),
    ]
}

pub fn object_samples() -> Vec<Vec<u8>> {
    vec![Parts::sample().seal()]
}

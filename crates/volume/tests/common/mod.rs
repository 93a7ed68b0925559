//! What tests of volumes share: small volumes, a model, random operations.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use volume::backing::{Backing, Event, MemoryBacking, RecordingBacking};
use volume::fingerprint::FingerprintKind;
use volume::{BlockDevice, OpenOptions, Persistence, Policy, Volume, VolumeSettings};

pub const BLOCK: usize = 4096;

/// What survives a crash, or does not, on its own.
const SECTOR: usize = 512;

/// A small generator of numbers (SplitMix64): the same seed, the same numbers.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }
}

/// A block of contents number `id`: of 8, five can be compressed, one is zeros.
pub fn content(id: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    if id % 8 == 7 {
        return block;
    }
    let mut random = Random(id);
    let filled = if id % 8 < 5 { BLOCK * 3 / 4 } else { BLOCK };
    for byte in block[..filled].chunks_exact_mut(8) {
        byte.copy_from_slice(&random.bits().to_le_bytes());
    }
    block
}

/// Settings of a volume of `blocks` blocks with small zones and windows, so that much happens.
pub fn small(blocks: u64, policy: Policy, persistence: Persistence) -> VolumeSettings {
    VolumeSettings {
        policy,
        persistence,
        fingerprint: FingerprintKind::Xxh3,
        zone_blocks: 32,
        window_blocks: 16,
        commit_zones: 2,
        journal: "100-149,160-209".to_owned(),
        ..VolumeSettings::new(blocks * BLOCK as u64)
    }
}

pub fn options() -> OpenOptions {
    OpenOptions {
        cache_bytes: 1 << 20,
        allow_volatile: true,
        ..OpenOptions::default()
    }
}

pub fn open(backing: &Arc<dyn Backing>) -> Volume {
    Volume::open(Arc::clone(backing), &options()).unwrap()
}

/// One thing that a client does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Write { offset: u64, data: Vec<u8> },
    Zero { offset: u64, length: u64 },
    Flush,
}

/// Random operations on a disk of `size` bytes in sectors of `sector` bytes, contents from a small set
/// so that many blocks are equal.
pub fn operation(random: &mut Random, size: u64, sector: u64, contents: u64) -> Operation {
    let sectors = size / sector;
    match random.below(16) {
        0 => Operation::Flush,
        1 => {
            let start = random.below(sectors);
            let length = 1 + random.below((sectors - start).min(200));
            Operation::Zero {
                offset: start * sector,
                length: length * sector,
            }
        }
        2 | 3 if sector < BLOCK as u64 => {
            let start = random.below(sectors);
            let length = (1 + random.below(20)).min(sectors - start) * sector;
            let byte = random.bits() as u8;
            let data = (0..length)
                .map(|at| byte.wrapping_add((at / 64) as u8))
                .collect();
            Operation::Write {
                offset: start * sector,
                data,
            }
        }
        _ => {
            let blocks = size / BLOCK as u64;
            let start = random.below(blocks);
            let count = (1 + random.below(6)).min(blocks - start);
            let data = (0..count)
                .flat_map(|_| content(random.below(contents)))
                .collect();
            Operation::Write {
                offset: start * BLOCK as u64,
                data,
            }
        }
    }
}

pub fn apply(device: &dyn BlockDevice, operation: &Operation) {
    match operation {
        Operation::Write { offset, data } => device.write(*offset, data).unwrap(),
        Operation::Zero { offset, length } => device.write_zeroes(*offset, *length).unwrap(),
        Operation::Flush => device.flush().unwrap(),
    }
}

pub fn contents_of(device: &dyn BlockDevice) -> Vec<u8> {
    let mut bytes = vec![0; device.geometry().size_bytes as usize];
    for (number, part) in bytes.chunks_mut(64 * BLOCK).enumerate() {
        device.read((number * 64 * BLOCK) as u64, part).unwrap();
    }
    bytes
}

pub fn assert_equal(device: &dyn BlockDevice, model: &dyn BlockDevice, when: &str) {
    let (found, wanted) = (contents_of(device), contents_of(model));
    if let Some(at) = found.iter().zip(&wanted).position(|(a, b)| a != b) {
        panic!("{when}: byte {at} (block {}) differs", at / BLOCK);
    }
}

pub fn assert_fine(volume: &Volume, when: &str) {
    let report = volume.check(true).unwrap();
    assert!(report.is_fine(), "{when}: {report:#?}");
}

/// A new volume in memory whose store writes down what is done to it; and the events that made it.
pub fn recorded(
    settings: &VolumeSettings,
    store_bytes: u64,
) -> (RecordingBacking<MemoryBacking>, Vec<Event>) {
    let memory = MemoryBacking::new(store_bytes);
    Volume::create(&memory, settings, Some(store_bytes)).unwrap();
    let mut data = vec![0; 2 * BLOCK];
    memory.read_at(0, &mut data).unwrap();
    let made = vec![Event::Write { offset: 0, data }, Event::Sync];
    (RecordingBacking::new(memory), made)
}

/// The store after a crash that let the first `done` events begin.
pub fn crashed(
    events: &[Event],
    store_bytes: u64,
    done: usize,
    random: &mut Random,
) -> MemoryBacking {
    let store = MemoryBacking::new(store_bytes);
    let synced = events[..done]
        .iter()
        .rposition(|event| *event == Event::Sync)
        .map_or(0, |at| at + 1);
    // What an event of the unsynced ones leaves: everything, nothing, or some sectors.
    let fate = random.below(3);
    for (number, event) in events[..done].iter().enumerate() {
        let Event::Write { offset, data } = event else {
            continue;
        };
        if number < synced {
            store.write_at(*offset, data).unwrap();
            continue;
        }
        let whole = random.below(2) == 0;
        for (sector, bytes) in data.chunks(SECTOR).enumerate() {
            let survives = match fate {
                0 => whole,
                1 => random.below(2) == 0,
                _ => random.below(8) != 0,
            };
            if survives {
                let at = offset + (sector * SECTOR) as u64;
                store.write_at(at, bytes).unwrap();
            }
        }
    }
    store
}

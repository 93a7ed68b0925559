//! Fingerprints that nobody has to keep: the n-th can be made again.
//!
//! Enter: numbers. Leave: prefixes as random as those of keyed hashes, all different, and where their
//! chunks lie: 512 a container, in order. Source: SplitMix64's finalizer (Steele, Lea and Flood,
//! 2014), a bijection of 64 bits.

use engine::container::{ChunkAddress, ContainerId, Slot};
use engine::index::IndexEntry;
use engine::object::ObjectId;

/// Chunks of a container: 8 KiB each in 4 MiB.
pub const CONTAINER_CHUNKS: u64 = 512;

/// What their metadata takes, about: a fingerprint, a length and a share of a group each.
pub const METADATA_BYTES: u32 = 34 * CONTAINER_CHUNKS as u32 + 200;

/// Beyond all numbers of fingerprints that are stored.
const ABSENT: u64 = 1 << 63;

/// So many fingerprints.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprints {
    count: u64,
}

impl Fingerprints {
    /// `count` of them, at least one.
    pub fn new(count: u64) -> Self {
        Self {
            count: count.max(1),
        }
    }

    /// Number `number`.
    pub fn entry(&self, number: u64) -> IndexEntry {
        let container = number / CONTAINER_CHUNKS;
        let mut id = [0; ObjectId::BYTES];
        id[..8].copy_from_slice(&mixed(container ^ 0x5555 << 48).to_le_bytes());
        id[8..].copy_from_slice(&mixed(container ^ 0xaaaa << 48).to_le_bytes());
        IndexEntry {
            prefix: mixed(number),
            address: ChunkAddress {
                container: ContainerId(ObjectId(id)),
                slot: Slot((number % CONTAINER_CHUNKS) as u16),
            },
        }
    }

    /// The prefix of one that is never stored.
    pub fn absent(&self, number: u64) -> u64 {
        mixed(ABSENT | number)
    }

    /// The number of one of them, by chance: the same for the same salt and number.
    pub fn pick(&self, salt: u64, number: u64) -> u64 {
        mixed(mixed(salt) ^ number) % self.count
    }
}

fn mixed(number: u64) -> u64 {
    let mut value = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn fingerprints_differ_and_lie_in_order() {
        let fingerprints = Fingerprints::new(5000);
        let mut prefixes: HashSet<u64> = (0..5000).map(|n| fingerprints.entry(n).prefix).collect();
        prefixes.extend((0..5000).map(|n| fingerprints.absent(n)));
        assert_eq!(prefixes.len(), 10_000);
        let address = |n| fingerprints.entry(n).address;
        assert_eq!(address(511).container, address(0).container);
        assert_ne!(address(512).container, address(0).container);
        assert_eq!((address(511).slot, address(512).slot), (Slot(511), Slot(0)));
        assert!((0..1000).all(|n| fingerprints.pick(3, n) < 5000));
    }
}

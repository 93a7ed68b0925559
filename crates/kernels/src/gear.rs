//! The scan of Gear hashing: where does a rolling hash, seen through a mask, become zero?
//!
//! Enters: a table of 256 random 64-bit numbers, the rolling hash so far, a mask, bytes.
//! Leaves: the first position whose hash has only zeros under the mask, and the hash there.
//! For every byte `hash = (hash << 1) + table[byte]`, modulo 2^64 (FastCDC, Xia et al., §3.2).
//! A byte leaves the hash after 64 steps, and bit `j` of the hash knows the last `j + 1` bytes:
//! masks take high bits.
//!
//! Method of [`find_cut`]. The loop as written is bound by its chain, for each hash needs the one
//! before: a shift and an addition, two cycles a byte on recent Intel cores. But the hash after
//! `k` more bytes is `(hash << k) + sum_k`, where `sum_k` is the Gear hash of those `k` bytes
//! alone, which waits for nothing. So bytes are taken in groups of four: four independent sums,
//! then four hashes straight from the hash before the group; the chain costs two steps for four
//! bytes instead of eight. The sums of the next group are made before the present one is judged:
//! carried around the loop, they are values which the compiler cannot fold back into the slow
//! chain (pairs made and used in one turn it does fold).
//! `cargo run --release -p onefold-kernels --example gear_speed` compares the two.

/// The table of a Gear hash: one random number for each value of a byte.
pub type GearTable = [u64; 256];

/// Bytes whose hashes are computed from one hash before them.
const GROUP: usize = 4;

/// Bytes in one turn of the unrolled loop: four groups.
const BLOCK: usize = 4 * GROUP;

/// What a scan saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// Index of the first byte after which `hash & mask == 0`; `None`: nowhere in the slice.
    pub position: Option<usize>,
    /// The rolling hash after that byte, or after the last byte of the slice.
    pub hash: u64,
}

/// The specification: Gear hashing as the papers write it.
pub mod scalar {
    use super::{GearTable, Scan};

    /// The first position at which `hash & mask == 0`, one byte at a time.
    #[must_use]
    pub fn find_cut(table: &GearTable, mut hash: u64, mask: u64, bytes: &[u8]) -> Scan {
        for (position, &byte) in bytes.iter().enumerate() {
            hash = (hash << 1).wrapping_add(table[usize::from(byte)]);
            if hash & mask == 0 {
                return Scan {
                    position: Some(position),
                    hash,
                };
            }
        }
        Scan {
            position: None,
            hash,
        }
    }
}

/// The first position at which `hash & mask == 0`: equal to [`scalar::find_cut`], faster.
///
/// To go on in the bytes that follow, hand in the hash that came out. A zero mask is found at the
/// first byte.
#[must_use]
pub fn find_cut(table: &GearTable, mut hash: u64, mask: u64, bytes: &[u8]) -> Scan {
    let mut judged = 0;
    if let Some(first) = bytes.first_chunk::<GROUP>() {
        let mut sums = partial_sums(table, first);
        // The groups in the blocks are one ahead of the group that is judged.
        for block in bytes[GROUP..].chunks_exact(BLOCK) {
            for group in block.as_chunks::<GROUP>().0 {
                let sums_ahead = partial_sums(table, group);
                let hashes: [u64; GROUP] =
                    std::array::from_fn(|index| (hash << (index + 1)).wrapping_add(sums[index]));
                if let Some(index) = hashes.iter().position(|hash| hash & mask == 0) {
                    return Scan {
                        position: Some(judged + index),
                        hash: hashes[index],
                    };
                }
                hash = hashes[GROUP - 1];
                sums = sums_ahead;
                judged += GROUP;
            }
        }
    }
    // Fewer than BLOCK + GROUP bytes are left.
    let rest = scalar::find_cut(table, hash, mask, &bytes[judged..]);
    Scan {
        position: rest.position.map(|position| judged + position),
        hash: rest.hash,
    }
}

/// Gear hashes of the first 1, 2, 3, 4 bytes of a group, each from a hash of zero.
#[inline(always)]
fn partial_sums(table: &GearTable, group: &[u8; GROUP]) -> [u64; GROUP] {
    let mut sums = [0; GROUP];
    let mut sum = 0u64;
    for (slot, &byte) in sums.iter_mut().zip(group) {
        sum = (sum << 1).wrapping_add(table[usize::from(byte)]);
        *slot = sum;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, GROUP, GearTable, Scan, find_cut, scalar};
    use proptest::prelude::*;

    fn table_from(seed: u64) -> GearTable {
        let mut state = seed;
        std::array::from_fn(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        })
    }

    #[test]
    fn specification_by_hand() {
        let mut table = [0u64; 256];
        table[1] = 1;
        table[2] = 0b110;
        let scan = |hash, mask, bytes: &[u8]| scalar::find_cut(&table, hash, mask, bytes);
        // 1 → 1; 1·2 + 1 = 3; 3·2 + 6 = 12.
        let found = |position, hash| Scan { position, hash };
        assert_eq!(scan(0, 0b1, &[1, 1, 2]), found(Some(2), 12));
        assert_eq!(scan(0, 0b10, &[1, 1, 2]), found(Some(0), 1));
        assert_eq!(scan(0, 0b111, &[1, 1, 2]), found(None, 12));
        assert_eq!(scan(7, 0b111, &[]), found(None, 7));
        // The top bit leaves.
        assert_eq!(scan(1 << 63, u64::MAX, &[0]), found(Some(0), 0));
    }

    #[test]
    fn every_length_start_and_place_of_a_cut() {
        // Byte 9 alone clears the mask bit, for every other byte sets it and bits only move up.
        let mut table = table_from(1).map(|number| number | 1);
        table[9] &= !1;
        let background = [200u8; 4 * BLOCK + 3 * GROUP + 3];
        for start in 0..BLOCK {
            for end in start..background.len() {
                let clean = &background[start..end];
                assert_eq!(
                    find_cut(&table, 5, 1, clean),
                    scalar::find_cut(&table, 5, 1, clean)
                );
            }
        }
        for place in 0..background.len() {
            let mut bytes = background;
            bytes[place] = 9;
            let scan = find_cut(&table, u64::MAX, 1, &bytes);
            assert_eq!(scan.position, Some(place));
            assert_eq!(scan, scalar::find_cut(&table, u64::MAX, 1, &bytes));
        }
    }

    proptest! {
        #[test]
        fn equal_to_the_specification(
            seed: u64,
            hash: u64,
            bits in 0u32..16,
            shift in 0u32..64,
            bytes in proptest::collection::vec(any::<u8>(), 0..700),
            start in 0usize..20,
        ) {
            let table = table_from(seed);
            let mask = ((1u64 << bits) - 1).rotate_left(shift);
            let bytes = &bytes[start.min(bytes.len())..];
            prop_assert_eq!(
                find_cut(&table, hash, mask, bytes),
                scalar::find_cut(&table, hash, mask, bytes)
            );
        }

        #[test]
        fn two_scans_are_one(
            seed: u64,
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            split in 0usize..300,
        ) {
            let table = table_from(seed);
            let mask = 0xff << 40;
            let (head, tail) = bytes.split_at(split.min(bytes.len()));
            let first = find_cut(&table, 0, mask, head);
            let joined = if first.position.is_some() {
                first
            } else {
                let second = find_cut(&table, first.hash, mask, tail);
                Scan { position: second.position.map(|position| position + head.len()), ..second }
            };
            prop_assert_eq!(joined, find_cut(&table, 0, mask, &bytes));
        }
    }
}

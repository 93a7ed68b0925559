//! The scan of Gear hashing: where does a rolling hash, seen through a mask, become zero?
//!
//! Enters: a table of 256 random 64-bit numbers, the rolling hash so far, a mask, bytes.
//! Leaves: the first position whose hash has only zeros under the mask, and the hash there.
//! For every byte `hash = (hash << 1) + table[byte]`, modulo 2^64 (FastCDC, Xia et al., §3.2).
//! A byte leaves the hash after 64 steps, and bit `j` of the hash knows the last `j + 1` bytes:
//! masks take high bits.
//!
//! Method of [`find_cut`]. The loop as written is bound by its chain, for each hash needs the one
//! before: a shift and an addition, two cycles a byte. Two ways out of it:
//!
//! - *Strips*: a hash forgets all but the last 64 bytes. So a block is divided into four strips,
//!   each strip's first hash is made from the 64 bytes before it, and four chains run side by side.
//!   A cut in a later strip waits until the strips before it are through. Per block this costs 192
//!   hashes more than there are bytes, and what was judged behind a cut is lost.
//! - *Groups*, where less than a block is left: the hash after `k` more bytes is
//!   `(hash << k) + sum_k`, where `sum_k` is the Gear hash of those `k` bytes alone, which waits
//!   for nothing. So four sums are made, then four hashes straight from the hash before the group;
//!   the chain costs two steps for four bytes instead of eight. The sums of the next group are made
//!   before the present one is judged: carried around the loop, they are values which the compiler
//!   cannot fold back into the slow chain (pairs made and used in one turn it does fold).
//!
//! Against the specification 1.6 times as fast by strips, 1.5 by groups (2, 8, 64 KiB;
//! `cargo run --release -p onefold-kernels --example gear_speed`).

/// The table of a Gear hash: one random number for each value of a byte.
pub type GearTable = [u64; 256];

/// Bytes whose hashes are computed from one hash before them.
const GROUP: usize = 4;

/// Chains of hashes that run side by side.
const LANES: usize = 4;

/// Bytes of one chain in a block.
const STRIP: usize = 256;

/// Bytes that a hash remembers.
const WINDOW: usize = 64;

/// Bytes that the chains judge together.
const BLOCK: usize = LANES * STRIP;

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
    use super::{GearTable, Scan, step};

    /// The first position at which `hash & mask == value`, one byte at a time.
    #[must_use]
    pub fn find_value(
        table: &GearTable,
        mut hash: u64,
        mask: u64,
        value: u64,
        bytes: &[u8],
    ) -> Scan {
        for (position, &byte) in bytes.iter().enumerate() {
            hash = step(table, hash, byte);
            if hash & mask == value {
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

    /// The first position at which `hash & mask == 0`, one byte at a time.
    #[must_use]
    pub fn find_cut(table: &GearTable, hash: u64, mask: u64, bytes: &[u8]) -> Scan {
        find_value(table, hash, mask, 0, bytes)
    }
}

/// The hash after one more byte.
#[inline(always)]
#[must_use]
pub fn step(table: &GearTable, hash: u64, byte: u8) -> u64 {
    (hash << 1).wrapping_add(table[usize::from(byte)])
}

/// The hash after `bytes`, none of which is judged.
#[must_use]
pub fn hash(table: &GearTable, hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| step(table, hash, byte))
}

/// "Rolling two bytes" (FastCDC §3.7, Algorithm 4): one shift for two bytes.
pub mod two_bytes {
    use super::{GearTable, Scan, scalar, step};

    /// The second table, for bytes whose hash is one shift ahead.
    #[must_use]
    pub fn shifted(table: &GearTable) -> GearTable {
        table.map(|number| number << 1)
    }

    /// The first position at which `hash & mask == 0`: equal to [`scalar::find_cut`].
    ///
    /// `table_shifted` is what [`shifted`] makes of `table`: the even byte is looked up there, and
    /// judged under the mask shifted as much.
    #[must_use]
    pub fn find_cut(
        table: &GearTable,
        table_shifted: &GearTable,
        mut hash: u64,
        mask: u64,
        bytes: &[u8],
    ) -> Scan {
        let mask_shifted = mask << 1;
        // A mask with the top bit loses it in the shift.
        if mask_shifted >> 1 != mask {
            return scalar::find_cut(table, hash, mask, bytes);
        }
        let (pairs, rest) = bytes.as_chunks::<2>();
        for (index, &[even, odd]) in pairs.iter().enumerate() {
            let shifted = (hash << 2).wrapping_add(table_shifted[usize::from(even)]);
            if shifted & mask_shifted == 0 {
                return Scan {
                    position: Some(2 * index),
                    hash: step(table, hash, even),
                };
            }
            hash = shifted.wrapping_add(table[usize::from(odd)]);
            if hash & mask == 0 {
                return Scan {
                    position: Some(2 * index + 1),
                    hash,
                };
            }
        }
        let scan = scalar::find_cut(table, hash, mask, rest);
        Scan {
            position: scan.position.map(|position| 2 * pairs.len() + position),
            hash: scan.hash,
        }
    }
}

/// The first position at which `hash & mask == 0`: equal to [`scalar::find_cut`], faster.
///
/// To go on in the bytes that follow, hand in the hash that came out. A zero mask is found at the
/// first byte.
#[must_use]
pub fn find_cut(table: &GearTable, hash: u64, mask: u64, bytes: &[u8]) -> Scan {
    scan(table, hash, bytes, |hash| hash & mask == 0)
}

/// The first position at which `hash & mask == value`: equal to [`scalar::find_value`], faster.
#[must_use]
pub fn find_value(table: &GearTable, hash: u64, mask: u64, value: u64, bytes: &[u8]) -> Scan {
    scan(table, hash, bytes, |hash| hash & mask == value)
}

/// The first position whose hash `is_cut`.
#[inline(always)]
fn scan(table: &GearTable, mut hash: u64, bytes: &[u8], is_cut: impl Fn(u64) -> bool) -> Scan {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        let scan = scan_block(table, hash, block, &is_cut);
        if let Some(position) = scan.position {
            return Scan {
                position: Some(index * BLOCK + position),
                hash: scan.hash,
            };
        }
        hash = scan.hash;
    }
    let judged = blocks.len() * BLOCK;
    let scan = scan_groups(table, hash, &bytes[judged..], is_cut);
    Scan {
        position: scan.position.map(|position| judged + position),
        hash: scan.hash,
    }
}

/// A block, its strips side by side.
#[inline(always)]
fn scan_block(
    table: &GearTable,
    hash: u64,
    block: &[u8; BLOCK],
    is_cut: &impl Fn(u64) -> bool,
) -> Scan {
    let (strips, _) = block.as_chunks::<STRIP>();
    let strips: &[[u8; STRIP]; LANES] = strips.try_into().expect("BLOCK = LANES * STRIP");
    // A hash forgets all but the last 64 bytes.
    let mut hashes: [u64; LANES] = [hash, 0, 0, 0];
    for index in STRIP - WINDOW..STRIP {
        for (hash, strip) in hashes[1..].iter_mut().zip(strips) {
            *hash = step(table, *hash, strip[index]);
        }
    }
    let mut found = [None; LANES];
    for index in 0..STRIP {
        let mut is_any = false;
        for (hash, strip) in hashes.iter_mut().zip(strips) {
            *hash = step(table, *hash, strip[index]);
            is_any |= is_cut(*hash);
        }
        if is_any {
            for (lane, (found, &hash)) in found.iter_mut().zip(&hashes).enumerate() {
                if is_cut(hash) && found.is_none() {
                    let position = Some(lane * STRIP + index);
                    *found = Some(Scan { position, hash });
                }
            }
            if let Some(first) = found[0] {
                return first;
            }
        }
    }
    found.into_iter().flatten().next().unwrap_or(Scan {
        position: None,
        hash: hashes[LANES - 1],
    })
}

/// Few bytes, by groups.
#[inline(always)]
fn scan_groups(
    table: &GearTable,
    mut hash: u64,
    bytes: &[u8],
    is_cut: impl Fn(u64) -> bool,
) -> Scan {
    let mut judged = 0;
    if let Some(first) = bytes.first_chunk::<GROUP>() {
        let mut sums = partial_sums(table, first);
        // The groups in the blocks are one ahead of the group that is judged.
        for block in bytes[GROUP..].chunks_exact(4 * GROUP) {
            for group in block.as_chunks::<GROUP>().0 {
                let sums_ahead = partial_sums(table, group);
                let hashes: [u64; GROUP] =
                    std::array::from_fn(|index| (hash << (index + 1)).wrapping_add(sums[index]));
                if let Some(index) = hashes.iter().position(|&hash| is_cut(hash)) {
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
    for (position, &byte) in bytes.iter().enumerate().skip(judged) {
        hash = step(table, hash, byte);
        if is_cut(hash) {
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

/// Gear hashes of the first 1, 2, 3, 4 bytes of a group, each from a hash of zero.
#[inline(always)]
fn partial_sums(table: &GearTable, group: &[u8; GROUP]) -> [u64; GROUP] {
    let mut sums = [0; GROUP];
    let mut sum = 0u64;
    for (slot, &byte) in sums.iter_mut().zip(group) {
        sum = step(table, sum, byte);
        *slot = sum;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, GROUP, GearTable, Scan, find_cut, find_value, scalar, two_bytes};
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
        let background = [200u8; 2 * BLOCK + 5 * GROUP + 3];
        for start in (0..70).chain(BLOCK - 2..BLOCK + 2) {
            let ends = (start..start + 70).chain(BLOCK + start - 3..background.len());
            for end in ends.step_by(1 + start % 7) {
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
        fn any_value_is_found_as_the_specification_does(
            seed: u64,
            hash: u64,
            bits in 0u32..12,
            value: u64,
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let table = table_from(seed);
            let mask = (1u64 << bits) - 1;
            prop_assert_eq!(
                find_value(&table, hash, mask, value & mask, &bytes),
                scalar::find_value(&table, hash, mask, value & mask, &bytes)
            );
        }

        #[test]
        fn two_bytes_at_a_time_are_the_same(
            seed: u64,
            hash: u64,
            bits in 0u32..16,
            shift in 0u32..64,
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let table = table_from(seed);
            let mask = ((1u64 << bits) - 1).rotate_left(shift);
            prop_assert_eq!(
                two_bytes::find_cut(&table, &two_bytes::shifted(&table), hash, mask, &bytes),
                scalar::find_cut(&table, hash, mask, &bytes)
            );
        }

        #[test]
        fn equal_to_the_specification(
            seed: u64,
            hash: u64,
            bits in 0u32..16,
            shift in 0u32..64,
            bytes in proptest::collection::vec(any::<u8>(), 0..3000),
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

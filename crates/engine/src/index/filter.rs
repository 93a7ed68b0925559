//! Filter partitions of an index run: binary fuse filters in two planes (docs/format/v1.md, §11;
//! Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", JEA 2022, the 4-wise
//! form).
//!
//! Enter: the prefixes of a partition. Leave: two *planes* of 4 bits for each *slot*, about 1.1 slots
//! a key. A key has four slots, one in each of four consecutive segments, and the bits in them XOR
//! to its own 4 bits of that plane. So a prefix that was put in always passes; another one passes
//! the first plane in 1 of 16 cases, and both in 1 of 256. One plane says something without the
//! other: in little memory the first planes of all runs serve, and the second ones of small runs.
//!
//! Building *peels*: a slot that only one key uses is that key's to set, last; without it others
//! become free. Where some keys remain, the next seed is tried, and after some seeds with more
//! segments: the same keys give the same planes. Equal prefixes are one key.
//!
//! Memory while building: [`BUILD_BYTES_PER_KEY`] for each key, and the planes.

use crate::format::DecodeError;

/// Most keys in a partition.
pub(super) const PARTITION_KEYS_MAX: u64 = 1 << 20;

/// Slots of a key.
const ARITY: usize = 4;

/// Most slots in a plane that a reader accepts: twice as many as [`PARTITION_KEYS_MAX`] keys.
const SLOTS_MAX: u64 = 1 << 21;

/// Least and most bits of a slot's number in its segment.
const SEGMENT_BITS: std::ops::RangeInclusive<u8> = 2..=14;

/// Memory that a key takes while a filter is built: itself, in the order of peeling, and what its
/// slots and the stack hold.
pub(super) const BUILD_BYTES_PER_KEY: usize = 36;

/// Seeds tried before there are more segments.
const SEEDS_A_SIZE: u32 = 8;

/// The planes of a filter.
pub(super) const PLANES: usize = 2;

/// Of what size a filter is, and by which hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FilterShape {
    /// Binary logarithm of the slots in a segment.
    pub(super) segment_bits: u8,
    /// Segments that a key may begin in; three more follow.
    pub(super) segments: u32,
    /// Number of the hash.
    pub(super) seed: u32,
}

impl FilterShape {
    /// A shape as it was read.
    ///
    /// # Errors
    /// When its planes would be larger than any writer makes them.
    pub(super) fn checked(self) -> Result<Self, DecodeError> {
        let is_possible = SEGMENT_BITS.contains(&self.segment_bits)
            && self.segments > 0
            && u64::from(self.segments) <= SLOTS_MAX
            && self.slots() <= SLOTS_MAX;
        match is_possible {
            true => Ok(self),
            false => Err(DecodeError::new(format!("a filter of {self:?} can't be"))),
        }
    }

    /// A size for `keys` keys that the first seeds mostly suffice for.
    fn of(keys: usize) -> Self {
        // To the nearest power of two.
        let logarithm = (keys + keys / 2).max(2).ilog2();
        // About log(keys) / log(2.91) - 0.5, as in the paper.
        let bits = (649 * logarithm).saturating_sub(380) / 1000;
        let segment_bits = (bits as u8).clamp(*SEGMENT_BITS.start(), *SEGMENT_BITS.end());
        let slots = keys as u64 * slots_per_1024_keys(logarithm) / 1024;
        let segments = (slots >> segment_bits)
            .saturating_sub(ARITY as u64 - 2)
            .max(1);
        Self {
            segment_bits,
            segments: segments as u32,
            seed: 0,
        }
    }

    /// What is tried after this has failed.
    fn next(self) -> Self {
        let seed = self.seed + 1;
        let more = if seed.is_multiple_of(SEEDS_A_SIZE) {
            1 + self.segments / 64
        } else {
            0
        };
        Self {
            seed,
            segments: self.segments + more,
            ..self
        }
    }

    fn slots(self) -> u64 {
        (u64::from(self.segments) + ARITY as u64 - 1) << self.segment_bits
    }

    /// Bytes of a plane, before it is sealed.
    pub(super) fn plane_bytes(self) -> u64 {
        self.slots() / 2
    }

    fn hash(self, prefix: u64) -> u64 {
        // The finalizer of MurmurHash3 (Appleby): prefixes of a partition have their upper bits in
        // common.
        let mut hash =
            prefix.wrapping_add(u64::from(self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ hash >> 33
    }

    /// The slots of a key.
    fn slots_of(self, hash: u64) -> [usize; ARITY] {
        let length = 1usize << self.segment_bits;
        let mask = length - 1;
        let starts = u128::from(self.segments) << self.segment_bits;
        let first = ((u128::from(hash) * starts) >> 64) as usize;
        [
            first,
            (first + length) ^ (hash >> 36) as usize & mask,
            (first + 2 * length) ^ (hash >> 18) as usize & mask,
            (first + 3 * length) ^ hash as usize & mask,
        ]
    }
}

/// The 4 bits of a key in each plane, in one byte: those of the first plane below.
fn key_bits(hash: u64) -> u8 {
    (hash ^ hash >> 32) as u8
}

/// Slots for 1,024 keys, where there are about 2^`logarithm` of them: somewhat above the least
/// for which peeling mostly succeeds (see the tests), which falls as keys become many.
fn slots_per_1024_keys(logarithm: u32) -> u64 {
    match logarithm {
        0..=9 => 1500,
        10 => 1345,
        11 => 1310,
        12 => 1285,
        13 => 1250,
        14 => 1200,
        15 => 1180,
        16 => 1148,
        17 => 1128,
        _ => 1108,
    }
}

/// Does `prefix` pass plane number `plane` (0 or 1) of a filter? A no is certain.
pub(super) fn passes(shape: FilterShape, plane: usize, bytes: &[u8], prefix: u64) -> bool {
    let hash = shape.hash(prefix);
    let found = shape
        .slots_of(hash)
        .into_iter()
        .fold(0, |bits, slot| bits ^ bytes[slot / 2] >> (slot % 2 * 4));
    (found ^ key_bits(hash) >> (plane * 4)) & 15 == 0
}

/// Builds one filter after the other; what it works in is kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct FilterBuilder {
    /// Of each slot: four times the number of keys that use it, and the XOR of their places there.
    uses: Vec<u8>,
    /// Of each slot: the XOR of the hashes that use it; later its bits in both planes.
    hashes: Vec<u64>,
    /// Slots that one key uses.
    single: Vec<u32>,
    /// Keys in the order in which they were peeled, each with the place of the slot it sets.
    peeled: Vec<(u64, u8)>,
}

impl FilterBuilder {
    /// The filter of `prefixes`, which are sorted: its shape and its planes.
    ///
    /// # Panics
    /// When there are too many, or none.
    pub(super) fn build(&mut self, prefixes: &[u64]) -> (FilterShape, [Vec<u8>; PLANES]) {
        assert!(
            !prefixes.is_empty() && prefixes.len() as u64 <= PARTITION_KEYS_MAX,
            "a partition has keys, and not too many"
        );
        let distinct = prefixes.chunk_by(|a, b| a == b).count();
        let mut shape = FilterShape::of(distinct);
        while !self.peel(shape, prefixes, distinct) {
            shape = shape.next();
            assert!(
                shape.slots() <= SLOTS_MAX,
                "some seed separates the keys long before there is so much room"
            );
        }
        (shape, self.planes(shape))
    }

    /// Puts the keys in an order in which each has a slot that no later one uses. Is there one?
    fn peel(&mut self, shape: FilterShape, prefixes: &[u64], distinct: usize) -> bool {
        let slots = shape.slots() as usize;
        self.uses.clear();
        self.uses.resize(slots, 0);
        self.hashes.clear();
        self.hashes.resize(slots, 0);
        self.peeled.clear();
        self.peeled.reserve_exact(distinct);
        let mut is_overfull = false;
        for same in prefixes.chunk_by(|a, b| a == b) {
            let hash = shape.hash(same[0]);
            for (place, slot) in shape.slots_of(hash).into_iter().enumerate() {
                is_overfull |= self.uses[slot] >= 252;
                self.uses[slot] = self.uses[slot].wrapping_add(4) ^ place as u8;
                self.hashes[slot] ^= hash;
            }
        }
        if is_overfull {
            return false;
        }
        self.single.clear();
        let single = (0..slots as u32).filter(|&slot| self.uses[slot as usize] >> 2 == 1);
        self.single.extend(single);
        while let Some(slot) = self.single.pop() {
            let slot = slot as usize;
            if self.uses[slot] >> 2 != 1 {
                continue;
            }
            let (hash, own_place) = (self.hashes[slot], self.uses[slot] & 3);
            self.peeled.push((hash, own_place));
            for (place, other) in shape.slots_of(hash).into_iter().enumerate() {
                self.uses[other] = (self.uses[other] - 4) ^ place as u8;
                self.hashes[other] ^= hash;
                if self.uses[other] >> 2 == 1 {
                    self.single.push(other as u32);
                }
            }
        }
        self.peeled.len() == distinct
    }

    /// Sets the slots, in the order opposite to that of peeling.
    fn planes(&mut self, shape: FilterShape) -> [Vec<u8>; PLANES] {
        let bits = &mut self.uses;
        bits.fill(0);
        for &(hash, own_place) in self.peeled.iter().rev() {
            let slots = shape.slots_of(hash);
            let all = slots.iter().fold(0, |all, &slot| all ^ bits[slot]);
            let own = slots[usize::from(own_place)];
            bits[own] ^= all ^ key_bits(hash);
        }
        [0, 4].map(|shift| {
            bits.chunks_exact(2)
                .map(|pair| pair[0] >> shift & 15 | (pair[1] >> shift & 15) << 4)
                .collect()
        })
    }

    /// Memory that it keeps.
    #[cfg(test)]
    fn memory_bytes(&self) -> usize {
        self.uses.capacity()
            + self.hashes.capacity() * 8
            + self.single.capacity() * 4
            + self.peeled.capacity() * size_of::<(u64, u8)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use testkit::random::Random;

    fn keys(seed: u64, count: usize, draw: impl Fn(&mut Random) -> u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let mut keys: Vec<u64> = (0..count).map(|_| draw(&mut random)).collect();
        keys.sort_unstable();
        keys
    }

    /// As prefixes of one partition of a large run lie together.
    fn narrow(random: &mut Random) -> u64 {
        random.bits() >> 12 | 0xabc << 52
    }

    #[test]
    fn what_was_put_in_passes_and_little_else() {
        let mut builder = FilterBuilder::default();
        for count in [1, 2, 3, 50, 1000, 1 << 15, 200_000, 1 << 18] {
            for draw in [Random::bits, narrow] {
                let keys = keys(count as u64, count, draw);
                let (shape, planes) = builder.build(&keys);
                assert_eq!(shape.checked(), Ok(shape));
                let mut random = Random::new(7);
                let strangers: Vec<u64> = (0..100_000).map(|_| draw(&mut random)).collect();
                let mut passing = [0.0; 2];
                let mut both = 0.0;
                for (plane, bytes) in planes.iter().enumerate() {
                    assert_eq!(bytes.len() as u64, shape.plane_bytes());
                    assert!(keys.iter().all(|&key| passes(shape, plane, bytes, key)));
                }
                for &stranger in &strangers {
                    let each = [0, 1].map(|plane| passes(shape, plane, &planes[plane], stranger));
                    for (count, passed) in passing.iter_mut().zip(each) {
                        *count += f64::from(u8::from(passed)) / 1e5;
                    }
                    both += f64::from(u8::from(each == [true; 2])) / 1e5;
                }
                let slots = shape.slots() as f64 / count as f64;
                println!(
                    "{count} keys: {slots:.3} slots a key, seed {}, pass {passing:?}, both {both}",
                    shape.seed
                );
                if count >= 1000 {
                    assert!(slots < 1.5 && shape.seed < 16);
                    assert!(passing.iter().all(|share| (0.055..0.07).contains(share)));
                    assert!((0.0025..0.0055).contains(&both));
                }
            }
        }
    }

    #[test]
    fn the_first_seeds_mostly_suffice() {
        let mut builder = FilterBuilder::default();
        for logarithm in [9, 11, 13, 15, 16, 17, 18] {
            let mut tries = 0;
            for seed in 0..16 {
                let (shape, _) = builder.build(&keys(seed, 1 << logarithm, Random::bits));
                tries += shape.seed + 1;
            }
            println!("2^{logarithm} keys: {} tries for 16 filters", tries);
            assert!(tries < 64);
        }
        let each = builder.memory_bytes() as f64 / f64::from(1 << 18);
        println!("{each:.1} B of memory a key while building");
        assert!(each + 8.0 <= BUILD_BYTES_PER_KEY as f64);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let good = FilterShape {
            segment_bits: 11,
            segments: 1000,
            seed: 3,
        };
        assert!(good.checked().is_ok());
        for (segment_bits, segments) in [(11, 0), (1, 10), (15, 10), (11, 1022), (2, u32::MAX)] {
            let bad = FilterShape {
                segment_bits,
                segments,
                ..good
            };
            assert!(bad.checked().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_stored_form_does_not_change() {
        let (shape, planes) = FilterBuilder::default().build(&[0x0123_4567_89ab_cdef]);
        let expected = FilterShape {
            segment_bits: 2,
            segments: 1,
            seed: 0,
        };
        assert_eq!(shape, expected);
        // Murmur's finalizer of 0x0123456789abcdef, by an independent calculation.
        assert_eq!(shape.hash(0x0123_4567_89ab_cdef), 0x87cb_fbfe_8902_2cea);
        assert_eq!(planes[0].len(), 8);
    }

    proptest! {
        #[test]
        fn keys_of_any_kind_pass(
            mut keys in prop::collection::vec(
                prop_oneof![any::<u64>(), 0..50u64, Just(u64::MAX), any::<u64>().prop_map(|key| key << 40)],
                1..3000,
            ),
        ) {
            keys.sort_unstable();
            let (shape, planes) = FilterBuilder::default().build(&keys);
            prop_assert!(shape.checked().is_ok());
            for &key in &keys {
                prop_assert!((0..PLANES).all(|plane| passes(shape, plane, &planes[plane], key)));
            }
            prop_assert_eq!(FilterBuilder::default().build(&keys), (shape, planes));
        }
    }
}

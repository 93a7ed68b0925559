//! The chunkers `gearhash` and `xet`: Gear hashing judged by its highest bits, over whole windows.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. The hash of position i is the Gear hash of `src[i−63..=i]`, the 64 bytes that a 64-bit Gear
//!    hash remembers, with the default table of the crate `gearhash`.
//! 2. The chunk is `src[0..=i]` for the smallest i from min − 1 on whose hash has only zeros in
//!    its log2(avg) highest bits: here the byte that matched is the *last* of the chunk.
//! 3. No match: the first min(n, max) bytes.
//!
//! `xet` is this with 8, 64 and 128 KiB: what xet-core's `Chunker` cuts (xet-data 1.8.0; earlier
//! versions could cut up to 64 bytes early), which skips min − 65 bytes
//! and starts the hash as 0, so that at the first position that counts all 64 bytes are in.
//! `gearhash` is this with any sizes: the positions that the crate's `next_match` finds in the whole
//! stream with such a mask, but those that would make a chunk smaller than min.

use super::foreign_tables::CRATE_GEARHASH;
use super::gear::hash_at;
use crate::Parameters;
use crate::gear_table::SharedGearTable;
use crate::two_stage::{Rule, Windowed};
use kernels::gear;
use kernels::isa::Isa;
use kernels::marks::{Marks, Masks};

/// Bytes that a hash remembers.
pub(crate) const WINDOW_BYTES: u32 = 64;

/// A chunker of whole windows.
#[derive(Clone)]
pub(crate) struct GearHash {
    table: SharedGearTable,
    mask: u64,
    min: usize,
    max: usize,
}

impl GearHash {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let mask = u64::from(parameters.avg_bytes) - 1;
        Self {
            table: SharedGearTable::new(&CRATE_GEARHASH),
            mask: mask << mask.leading_zeros(),
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let first = self.min - 1;
        let warm = &data[first + 1 - WINDOW_BYTES as usize..first];
        let hash = gear::hash(&CRATE_GEARHASH, 0, warm);
        let scan = gear::find_cut(&CRATE_GEARHASH, hash, self.mask, &data[first..]);
        scan.position
            .map_or(data.len(), |position| first + position + 1)
    }

    /// Whether the hash matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        hash_at(&CRATE_GEARHASH, self.mask, &data[..length]) & self.mask == 0
    }
}

impl Windowed for GearHash {
    fn rule(&self) -> Rule {
        Rule {
            included: 1,
            ..Rule::whole_windows(self.min - 1, self.min, self.max)
        }
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        let masks = Masks {
            strict: self.mask,
            loose: self.mask,
            value: 0,
        };
        self.table.mark(isa, masks, data, (first, count), marks);
    }

    /// All 64 bits are needed, for carries go up to those that are judged: 0.9 times the loop in order.
    fn gain(&self, _: Isa) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, Chunker, KeyMaterial, Parameters};

    #[test]
    fn a_match_at_the_first_place_that_counts_makes_a_chunk_of_min_bytes() {
        let parameters = Parameters {
            min_bytes: 64,
            avg_bytes: 256,
            max_bytes: 4096,
            ..Parameters::new(Algorithm::GearHash)
        };
        let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed).expect("possible");
        let mut found = false;
        for seed in 0..2000u64 {
            let mut data: Vec<u8> = (0..64u64)
                .map(|index| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (index % 56)) as u8)
                .collect();
            data.extend([0; 100]);
            found |= chunker.cut(&data) == 64;
        }
        assert!(found, "one window in 256 matches");
    }
}

//! Gear hashes sampled by a mask: Odess (§3.2).
//!
//! Enters: a chunk, a Gear table, a mask, transforms. Leaves: minima over the hashes that are zero
//! under the mask. Hashes have 32 bits, as in the paper, and know 32 bytes; or 64.
//!
//! Method. With AVX-512 the positions are marked first (`gear_marks.rs`, 32 chains with the table in
//! registers), and the few marked windows hashed again. Elsewhere four chains side by side, as each hash
//! waits for the one before.

use super::{Collector, Transforms, WINDOW_BYTES, fold};
use crate::gear::{self, GearTable};
use crate::gear_marks::{self, GearPlanes, Tables};
use crate::isa::Isa;
use crate::marks::{Marks, Masks};

/// Chains.
const CHAINS: usize = 4;

/// Positions that are marked together.
const MARKED: usize = 8 << 10;

/// Fewer are not worth the turning of a block.
const MARKED_FEWEST: usize = 2 << 10;

/// A Gear table and a mask, made ready.
#[derive(Debug, Clone)]
pub struct SampledGear {
    table: GearTable,
    planes: GearPlanes,
    mask: u64,
    hash_bits: usize,
}

impl SampledGear {
    /// Hashes of `hash_bits` bits, 32 or 64; the low bits of a number count.
    ///
    /// # Panics
    /// When `hash_bits` is another number, or the mask has bits beyond them.
    #[must_use]
    pub fn new(table: &GearTable, hash_bits: usize, mask: u64) -> Self {
        assert!(hash_bits == WINDOW_BYTES || hash_bits == 64);
        assert!(hash_bits == 64 || mask >> hash_bits == 0);
        Self {
            table: *table,
            planes: gear_marks::planes(table),
            mask,
            hash_bits,
        }
    }

    /// Sets each minimum to the least that its transform makes of any hash that counts, and says
    /// whether there is one.
    ///
    /// Every level gives what the specification gives: [`super::scalar::gear_samples`] and
    /// [`super::scalar::minima`].
    ///
    /// # Panics
    /// When there are not as many minima as transforms.
    pub fn minima(
        &self,
        isa: Isa,
        transforms: &Transforms,
        chunk: &[u8],
        minima: &mut [u32],
    ) -> bool {
        let mut collector = Collector::new(isa, transforms, minima);
        let windows = (chunk.len() + 1).saturating_sub(self.hash_bits);
        if isa.or_scalar() == Isa::Avx512 && windows >= MARKED_FEWEST && self.is_sparse() {
            self.collect_marked(isa, chunk, windows, &mut collector);
        } else if windows > 0 {
            self.collect_in_chains(chunk, windows, &mut collector);
        }
        collector.finish()
    }

    /// Whether few enough hashes count to be computed twice.
    fn is_sparse(&self) -> bool {
        self.mask.count_ones() >= 6
    }

    fn collect_marked(
        &self,
        isa: Isa,
        chunk: &[u8],
        windows: usize,
        collector: &mut Collector<'_>,
    ) {
        let masks = Masks {
            strict: self.mask,
            loose: self.mask,
            value: 0,
        };
        let tables = Tables {
            numbers: &self.table,
            planes: &self.planes,
        };
        for begin in (0..windows).step_by(MARKED) {
            let count = MARKED.min(windows - begin);
            let (mut strict, mut loose) = ([0; MARKED / 64], [0; MARKED / 64]);
            let mut marks = Marks::cleared(&mut strict, &mut loose, count);
            let first = begin + self.hash_bits - 1;
            gear_marks::mark(isa, tables, masks, chunk, first, count, &mut marks);
            for (index, mut word) in loose.into_iter().enumerate() {
                while word != 0 {
                    let start = begin + 64 * index + word.trailing_zeros() as usize;
                    let window = &chunk[start..start + self.hash_bits];
                    let hash = gear::hash(&self.table, 0, window);
                    collector.push(fold(hash & self.known()));
                    word &= word - 1;
                }
            }
        }
    }

    /// In chains that may overlap.
    fn collect_in_chains(&self, chunk: &[u8], windows: usize, collector: &mut Collector<'_>) {
        let length = windows.div_ceil(CHAINS);
        let warm = self.hash_bits - 1;
        let chains: [&[u8]; CHAINS] = std::array::from_fn(|chain| {
            let start = (chain * length).min(windows - length);
            &chunk[start..start + length + warm]
        });
        let mut hashes = chains.map(|chain| gear::hash(&self.table, 0, &chain[..warm]));
        let chains = chains.map(|chain| &chain[warm..][..length]);
        for index in 0..length {
            let mut is_any = false;
            for (hash, chain) in hashes.iter_mut().zip(&chains) {
                *hash = gear::step(&self.table, *hash, chain[index]);
                is_any |= *hash & self.mask == 0;
            }
            if is_any {
                for hash in hashes {
                    if hash & self.mask == 0 {
                        collector.push(fold(hash & self.known()));
                    }
                }
            }
        }
    }

    /// The bits that a hash has.
    fn known(&self) -> u64 {
        u64::MAX >> (64 - self.hash_bits)
    }
}

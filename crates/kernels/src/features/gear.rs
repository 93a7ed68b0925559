//! Gear hashes sampled by a mask: Odess (§3.2).
//!
//! Enters: a chunk, a Gear table, a mask, transforms. Leaves: minima over the hashes that are zero
//! under the mask. Hashes have 32 bits, as in the paper, and know 32 bytes; or 64.

use super::{Collector, Transforms, WINDOW_BYTES, fold};
use crate::gear::GearTable;
use crate::isa::Isa;

/// A Gear table and a mask, made ready.
#[derive(Debug, Clone)]
pub struct SampledGear {
    table: GearTable,
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
        let known = u64::MAX >> (64 - self.hash_bits);
        let mut hash = 0u64;
        for (index, &byte) in chunk.iter().enumerate() {
            hash = crate::gear::step(&self.table, hash, byte);
            if hash & self.mask == 0 && index + 1 >= self.hash_bits {
                collector.push(fold(hash & known));
            }
        }
        collector.finish()
    }
}

//! The scan of `shield`: at which position does a cipher of a universal hash of the last 64 bytes
//! have only zeros under a mask?
//!
//! Enters: eight secret constants of 128 bits, a secret key of AES-128, two masks, data. Leaves: the
//! first position that cuts. Bits of the cipher text are judged, never of the hash: what an
//! observer of cuts can learn of the constants is whether two windows have one hash.
//!
//! The hash of a window is the sum of G(byte) · x^k in GF(2^128) = GF(2)\[x\] / (x^128 + x^7 + x^2 + x + 1),
//! where byte k, counted from the end, is one of 64, and G(byte) is the sum of the constants g_t of
//! its bits t. *Two different windows have hashes whose difference is uniform, so that they are equal
//! with a probability of exactly 2^-128 over the constants*: the difference is the sum over t of
//! g_t · q_t(x), where bit k of q_t is the difference of bit t of the two bytes k. Some q_t is not
//! zero, and as a polynomial of degree below 64 it is not zero in the field either; so g_t, which is
//! uniform, makes the product uniform, and the sum too. (It is the rolling hash "General" of Lemire
//! and Kaser, *Recursive n-gram hashing is pairwise independent, at best*, with a linear table.)
//!
//! A hash is stored as 16 bytes, bit b of byte p the coefficient of x^(16b + p), so that a
//! multiplication by x moves bytes. The first eight bytes of its AES-128, little-endian, are judged.
//!
//! Method: see `tables.rs` (hashes, anywhere), `aes.rs` (the cipher), `avx512.rs` (both).

use crate::isa::Isa;
use std::ops::Range;

mod aes;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod scalar;
mod tables;
#[cfg(test)]
mod tests;

/// The window of the hash.
pub const WINDOW_BYTES: usize = 64;

/// Which positions cut: those whose value has only zeros under the mask in force there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masks {
    /// In force before `normal`; has all ones of `loose`.
    pub strict: u64,
    /// In force from `normal` on.
    pub loose: u64,
    /// The first position of the loose mask.
    pub normal: usize,
}

impl Masks {
    /// The mask in force at a position.
    #[must_use]
    #[inline(always)]
    pub fn at(self, position: usize) -> u64 {
        if position < self.normal {
            self.strict
        } else {
            self.loose
        }
    }
}

/// Constants and a key, made ready to scan. Has no `Debug`: they are secret.
#[derive(Clone)]
pub struct Shield {
    tables: tables::Tables,
    #[cfg(target_arch = "x86_64")]
    matrices: avx512::Matrices,
    round_keys: [[u8; 16]; 11],
}

impl Shield {
    /// Makes the tables.
    #[must_use]
    pub fn new(constants: &[u128; 8], key: &[u8; 16]) -> Self {
        // A byte leaves when the window has moved on by its length.
        let leaving = constants.map(|constant| {
            (0..WINDOW_BYTES).fold(constant, |constant, _| scalar::times_x(constant))
        });
        Self {
            tables: tables::Tables::new(constants, &leaving),
            #[cfg(target_arch = "x86_64")]
            matrices: avx512::Matrices::new(constants, &leaving),
            round_keys: scalar::round_keys(key),
        }
    }

    /// The first position i, from `first` on, whose window `data[i − 63..=i]` cuts: equal to
    /// [`scalar::find_cut`], faster.
    ///
    /// # Panics
    /// When `first` is less than the window, or the strict mask lacks a one of the loose one.
    #[must_use]
    pub fn find_cut(&self, isa: Isa, masks: Masks, data: &[u8], first: usize) -> Option<usize> {
        assert!(
            first >= WINDOW_BYTES,
            "the first window has a byte before it"
        );
        assert_eq!(masks.strict & masks.loose, masks.loose);
        match isa.or_scalar() {
            // Of a block by planes nothing is saved when it is mostly empty.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if data.len() >= first + tables::BLOCK_POSITIONS / 2 => {
                let keys = (&self.matrices, &self.round_keys);
                // SAFETY: `or_scalar` has seen that the machine has all of the level.
                unsafe { avx512::find_cut(keys, masks, data, first) }
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512 => {
                // SAFETY: as above.
                let values = |hashes: &_| unsafe { aes::values_avx2(&self.round_keys, hashes) };
                let hash = |start, count, hashes: &mut _| {
                    // SAFETY: as above.
                    unsafe { self.tables.hash_avx2(data, start, count, hashes) }
                };
                find_cut_by_tables(hash, values, masks, first..data.len())
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => {
                // SAFETY: as above.
                let values = |hashes: &_| unsafe { aes::values_neon(&self.round_keys, hashes) };
                let hash = |start, count, hashes: &mut _| {
                    self.tables.hash(data, start, count, hashes);
                };
                find_cut_by_tables(hash, values, masks, first..data.len())
            }
            _ => {
                let values = |hashes: &[u128; aes::JUDGED]| {
                    hashes.map(|hash| scalar::value(&self.round_keys, hash))
                };
                let hash = |start, count, hashes: &mut _| {
                    self.tables.hash(data, start, count, hashes);
                };
                find_cut_by_tables(hash, values, masks, first..data.len())
            }
        }
    }
}

/// The first of `positions` that cuts, where `hash` hashes so many windows from a position on and
/// `values` ciphers what it made.
#[inline(always)]
fn find_cut_by_tables(
    hash: impl Fn(usize, usize, &mut tables::Hashes),
    values: impl Fn(&[u128; aes::JUDGED]) -> [u64; aes::JUDGED],
    masks: Masks,
    positions: Range<usize>,
) -> Option<usize> {
    let mut hashes = [0; tables::BLOCK_POSITIONS];
    let mut start = positions.start;
    while start < positions.end {
        let count = (positions.end - start).min(hashes.len());
        hash(start, count, &mut hashes);
        let (parts, _) = hashes.as_chunks();
        for (part, from) in parts
            .iter()
            .zip((start..start + count).step_by(aes::JUDGED))
        {
            let values = values(part);
            if values.iter().all(|value| value & masks.loose != 0) {
                continue;
            }
            let end = (start + count).min(from + aes::JUDGED);
            let is_cut = |&position: &usize| values[position - from] & masks.at(position) == 0;
            if let Some(cut) = (from..end).find(is_cut) {
                return Some(cut);
            }
        }
        start += count;
    }
    None
}

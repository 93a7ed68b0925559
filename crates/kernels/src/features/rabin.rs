//! Rabin fingerprints of every window: N-Transform (all of them, transformed) and Finesse (the
//! greatest of each part of a chunk).
//!
//! Enters: a chunk, a polynomial of degree 32 (so that fingerprints have the 32 bits that features
//! have). Leaves: minima over all fingerprints, or maxima of parts.
//!
//! Method. With AVX2, AVX-512 and NEON 32, 64 and 16 lanes of the chunk are hashed side by side, in
//! planes of bytes (`linear.rs`), and the planes joined to words of 32 bits. Elsewhere four chains with
//! tables, as each fingerprint waits for the one before. By far the most time of N-Transform goes into
//! the transforms.

use super::{Collector, Transforms, WINDOW_BYTES};
use crate::isa::Isa;
use crate::linear::{self, Linear};
use std::fmt;

/// Chains of the form with tables.
const CHAINS: usize = 4;

/// A polynomial, made ready.
#[derive(Clone)]
pub struct FeatureRabin {
    append: [u32; 256],
    leave: [u32; 256],
    linear: Linear<4, false>,
}

impl fmt::Debug for FeatureRabin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeatureRabin").finish_non_exhaustive()
    }
}

impl FeatureRabin {
    /// Makes the tables of x^32 + `polynomial`.
    #[must_use]
    pub fn new(polynomial: u32) -> Self {
        let of = |byte: usize, zeros: usize| {
            let mut bytes = [0; WINDOW_BYTES + 1];
            bytes[0] = byte as u8;
            super::scalar::rabin_fingerprint(polynomial, &bytes[..=zeros])
        };
        let append = std::array::from_fn(|byte| of(byte, 4));
        let leave = std::array::from_fn(|byte| of(byte, WINDOW_BYTES));
        let number = |table: &[u32; 256], bit: u8| u64::from(table[usize::from(bit)]);
        Self {
            append,
            leave,
            linear: Linear {
                append: linear::maps(|bit| number(&append, bit), |k| k),
                leave: linear::maps(|bit| number(&leave, bit), |k| k),
                enter: linear::maps(u64::from, |k| k),
                window_bytes: WINDOW_BYTES,
            },
        }
    }

    /// Sets each minimum to the least that its transform makes of the fingerprint of any window, and
    /// says whether there is one.
    ///
    /// Every level gives what the specification gives: [`super::scalar::rabin_fingerprints`] and
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
        assert_eq!(minima.len(), transforms.count());
        let mut collector = Collector::new(isa, transforms, minima);
        let linear = &self.linear;
        let is_done = match isa.or_scalar() {
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe {
                super::avx512::rabin_minima(linear, transforms, chunk, collector.minima)
            },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe {
                super::avx2::rabin_minima(linear, transforms, chunk, collector.minima)
            },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe {
                super::neon::rabin_minima(linear, transforms, chunk, collector.minima)
            },
            _ => false,
        };
        if is_done {
            return true;
        }
        self.roll(chunk, |fingerprints| {
            fingerprints.iter().for_each(|&it| collector.push(it));
        });
        collector.finish()
    }

    /// Sets each number to the greatest fingerprint of the windows that lie whole in its part of the
    /// chunk; says whether each part has a window, and sets nothing where one has none. Part k of n
    /// begins at byte ⌊k · length / n⌋.
    ///
    /// Every level gives what [`super::scalar::rabin_maxima`] gives.
    pub fn maxima(&self, isa: Isa, chunk: &[u8], maxima: &mut [u32]) -> bool {
        let parts = maxima.len();
        if parts == 0 || chunk.len() / parts < WINDOW_BYTES {
            return false;
        }
        let bound = |part: usize| part * chunk.len() / parts;
        let linear = &self.linear;
        let is_done = match isa.or_scalar() {
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { super::avx512::rabin_maxima(linear, chunk, bound, maxima) },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { super::avx2::rabin_maxima(linear, chunk, bound, maxima) },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { super::neon::rabin_maxima(linear, chunk, bound, maxima) },
            _ => false,
        };
        if !is_done {
            for (part, maximum) in maxima.iter_mut().enumerate() {
                let mut greatest = [0; CHAINS];
                self.roll(&chunk[bound(part)..bound(part + 1)], |fingerprints| {
                    for (greatest, &fingerprint) in greatest.iter_mut().zip(fingerprints) {
                        *greatest = fingerprint.max(*greatest);
                    }
                });
                *maximum = greatest.into_iter().fold(0, u32::max);
            }
        }
        true
    }

    /// The fingerprints of all windows, in chains that may overlap.
    #[inline(always)]
    fn roll(&self, bytes: &[u8], mut take: impl FnMut(&[u32; CHAINS])) {
        let windows = (bytes.len() + 1).saturating_sub(WINDOW_BYTES);
        if windows == 0 {
            return;
        }
        let length = windows.div_ceil(CHAINS);
        let chains: [&[u8]; CHAINS] = std::array::from_fn(|chain| {
            let start = (chain * length).min(windows - length);
            &bytes[start..start + length + WINDOW_BYTES - 1]
        });
        let mut fingerprints = chains.map(|chain| {
            let window = chain[..WINDOW_BYTES].iter();
            window.fold(0, |fingerprint, &byte| self.append(fingerprint, byte))
        });
        take(&fingerprints);
        for index in 0..length - 1 {
            for (fingerprint, chain) in fingerprints.iter_mut().zip(&chains) {
                let (leaving, entering) = (chain[index], chain[index + WINDOW_BYTES]);
                let leave = self.leave[usize::from(leaving)];
                *fingerprint = self.append(*fingerprint, entering) ^ leave;
            }
            take(&fingerprints);
        }
    }

    #[inline(always)]
    fn append(&self, fingerprint: u32, byte: u8) -> u32 {
        let top = (fingerprint >> 24) as usize;
        (fingerprint << 8 | u32::from(byte)) ^ self.append[top]
    }
}

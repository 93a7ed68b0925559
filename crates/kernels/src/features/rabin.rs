//! Rabin fingerprints of every window: N-Transform (all of them, transformed) and Finesse (the
//! greatest of each part of a chunk).
//!
//! Enters: a chunk, a polynomial of degree 32 (so that fingerprints have the 32 bits that features
//! have). Leaves: minima over all fingerprints, or maxima of parts.

use super::{Collector, Transforms, WINDOW_BYTES};
use crate::isa::Isa;

/// A polynomial, made ready.
#[derive(Debug, Clone)]
pub struct FeatureRabin {
    append: [u32; 256],
    leave: [u32; 256],
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
        Self {
            append: std::array::from_fn(|byte| of(byte, 4)),
            leave: std::array::from_fn(|byte| of(byte, WINDOW_BYTES)),
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
        let mut collector = Collector::new(isa, transforms, minima);
        self.roll(chunk, |fingerprint| collector.push(fingerprint));
        collector.finish()
    }

    /// Sets each number to the greatest fingerprint of the windows that lie whole in its part of the
    /// chunk; says whether each part has a window, and sets nothing where one has none. Part k of n
    /// begins at byte ⌊k · length / n⌋.
    ///
    /// Every level gives what [`super::scalar::rabin_maxima`] gives.
    pub fn maxima(&self, isa: Isa, chunk: &[u8], maxima: &mut [u32]) -> bool {
        let _ = isa;
        let parts = maxima.len();
        if parts == 0 || chunk.len() / parts < WINDOW_BYTES {
            return false;
        }
        let bound = |part: usize| part * chunk.len() / parts;
        for (part, maximum) in maxima.iter_mut().enumerate() {
            *maximum = 0;
            self.roll(&chunk[bound(part)..bound(part + 1)], |fingerprint| {
                *maximum = fingerprint.max(*maximum);
            });
        }
        true
    }

    /// The fingerprints of all windows in their order.
    #[inline(always)]
    fn roll(&self, bytes: &[u8], mut take: impl FnMut(u32)) {
        let Some((window, entering)) = bytes.split_at_checked(WINDOW_BYTES) else {
            return;
        };
        let mut fingerprint = window
            .iter()
            .fold(0, |fingerprint, &byte| self.append(fingerprint, byte));
        take(fingerprint);
        for (&entering, &leaving) in entering.iter().zip(bytes) {
            fingerprint = self.append(fingerprint, entering) ^ self.leave[usize::from(leaving)];
            take(fingerprint);
        }
    }

    #[inline(always)]
    fn append(&self, fingerprint: u32, byte: u8) -> u32 {
        let top = (fingerprint >> 24) as usize;
        (fingerprint << 8 | u32::from(byte)) ^ self.append[top]
    }
}

//! Features of a chunk, by which similar chunks are found (Odess; Xia et al., ACM ToS 2022).
//!
//! Enters: a chunk, what hashes its windows, which hashes count, a list of linear transforms. Leaves:
//! one number of 32 bits a transform, the least that it makes of any hash that counts (Eqs. 3 and 4),
//! or the word that no hash counted. Two chunks that share much of their contents share many of these
//! minima, as Broder's theorem says.
//!
//! - [`rabin`]: Rabin fingerprints, all of them count: N-Transform; the greatest of each part of the
//!   chunk: Finesse.
//! - [`gear`]: Gear hashes, those count that are zero under a mask: Odess.
//! - [`swpr`]: hashes of sub-windows, made for SIMD, those count that reach a bound: Odess+.
//!
//! **What is hashed** is every window of [`WINDOW_BYTES`] (of 64 bytes for Gear hashes of 64 bits)
//! that lies in the chunk, and nothing else: a hash follows from its window alone, wherever that lies.
//! (The paper's loops also hash windows that begin before the chunk, filled up with zeros, and leave
//! out up to 16 bytes at its end.)
//!
//! Method, in common. As minima do not ask for the order of what they are taken of, nor whether
//! something is there twice, a chunk is cut into lanes that may overlap: each as long as the others
//! and a multiple of what a loop takes at once, the last ones moved back to where they fit. So there
//! are no rests. Hashes that count are collected, and [`Transforms::apply`] takes many at once.

pub mod gear;
pub mod rabin;
pub mod scalar;
pub mod swpr;
#[cfg(test)]
mod tests;
mod transforms;

pub use transforms::{TRANSFORMS_MOST, Transforms};

/// Bytes of a window.
pub const WINDOW_BYTES: usize = 32;

/// What a feature is made of where hashes have 64 bits: both halves.
#[inline(always)]
#[must_use]
pub const fn fold(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

/// Hashes that count are collected up to so many.
const COLLECTED: usize = 512;

/// Hashes that count, on their way to the transforms.
struct Collector<'a> {
    isa: crate::isa::Isa,
    transforms: &'a Transforms,
    minima: &'a mut [u32],
    values: [u32; COLLECTED],
    count: usize,
    is_any: bool,
}

impl<'a> Collector<'a> {
    /// Sets the minima to the greatest number.
    fn new(isa: crate::isa::Isa, transforms: &'a Transforms, minima: &'a mut [u32]) -> Self {
        minima.fill(u32::MAX);
        Self {
            isa,
            transforms,
            minima,
            values: [0; COLLECTED],
            count: 0,
            is_any: false,
        }
    }

    /// Takes one.
    #[inline(always)]
    fn push(&mut self, value: u32) {
        if self.count == COLLECTED {
            self.flush();
        }
        self.values[self.count] = value;
        self.count += 1;
    }

    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        self.is_any |= self.count > 0;
        let values = &self.values[..self.count];
        self.transforms.apply(self.isa, values, self.minima);
        self.count = 0;
    }

    /// Whether there were any.
    fn finish(mut self) -> bool {
        self.flush();
        self.is_any
    }
}

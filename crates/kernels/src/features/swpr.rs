//! The hash of sub-windows, many windows at once (SWPR; Odess §3.4, Algorithms 1 and 2), sampled by a
//! bound: Odess+.
//!
//! Enters: a chunk, how many windows the paper runs side by side (so many bytes has a sub-window, so
//! many bits less a hash), a bound, transforms. Leaves: minima over the hashes that reach the bound.

use super::{Collector, Transforms, WINDOW_BYTES, fold};
use crate::isa::Isa;

/// How many windows lie side by side in 128 bits: the variants of Table 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubWindows {
    /// Sub-windows of 2 bytes, hashes of 64 bits.
    Two,
    /// Sub-windows of 4 bytes, hashes of 32 bits: the paper's choice.
    Four,
    /// Sub-windows of 8 bytes, of which the last 2 count, hashes of 16 bits.
    Eight,
}

impl SubWindows {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Two, Self::Four, Self::Eight];

    /// How many windows, and bytes of a sub-window.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// Bits of a hash.
    #[must_use]
    pub const fn hash_bits(self) -> u32 {
        128 / self.count() as u32
    }

    /// The greatest hash.
    #[must_use]
    pub const fn hash_highest(self) -> u64 {
        u64::MAX >> (64 - self.hash_bits())
    }
}

/// Sets each minimum to the least that its transform makes of any hash of at least `boundary`, and
/// says whether there is one.
///
/// Every level gives what the specification gives: [`super::scalar::swpr_samples`] and
/// [`super::scalar::minima`].
///
/// # Panics
/// When there are not as many minima as transforms.
pub fn minima(
    isa: Isa,
    (windows, boundary): (SubWindows, u64),
    transforms: &Transforms,
    chunk: &[u8],
    minima: &mut [u32],
) -> bool {
    let mut collector = Collector::new(isa, transforms, minima);
    let is_done = windows == SubWindows::Four && four(isa, boundary, chunk, &mut collector);
    if !is_done {
        by_recurrence(windows, boundary, chunk, &mut collector);
    }
    collector.finish()
}

/// Sub-windows of four bytes by the form of this level; says whether there is one for such a chunk.
fn four(isa: Isa, boundary: u64, chunk: &[u8], collector: &mut Collector<'_>) -> bool {
    let Ok(boundary) = u32::try_from(boundary) else {
        return false;
    };
    match isa.or_scalar() {
        // SAFETY: the machine has the features.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { super::avx512::swpr_four(boundary, chunk, collector) },
        // SAFETY: the machine has the features.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { super::avx2::swpr_four(boundary, chunk, collector) },
        // SAFETY: the machine has the features.
        #[cfg(target_arch = "x86_64")]
        Isa::Sse41 => unsafe { super::sse41::swpr_four(boundary, chunk, collector) },
        // SAFETY: the machine has the features.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { super::neon::swpr_four(boundary, chunk, collector) },
        _ => false,
    }
}

/// Algorithm 1: one hash after another, each from the one of a sub-window before.
fn by_recurrence(windows: SubWindows, boundary: u64, chunk: &[u8], collector: &mut Collector<'_>) {
    let size = windows.count();
    let highest = windows.hash_highest();
    let mut hashes = [0u64; 8];
    let mut number = 0u64;
    for (index, &byte) in chunk.iter().enumerate() {
        number = (number << 8 | u64::from(byte)) & (u64::MAX >> (64 - 8 * size));
        let hash = &mut hashes[index % size];
        // Sub-windows that begin before the chunk have left the hash when the first window is full.
        *hash = (*hash << 4).wrapping_add(number) & highest;
        if *hash >= boundary && index + 1 >= WINDOW_BYTES {
            collector.push(fold(*hash));
        }
    }
}

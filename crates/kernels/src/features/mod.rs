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

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod gear;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod rabin;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod rabin_kernel;
pub mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse41;
pub mod swpr;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod swpr_kernel;
#[cfg(test)]
mod tests;
mod transforms;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod transforms_kernel;

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

    /// Sees that `count` more have room.
    #[inline(always)]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn make_room(&mut self, count: usize) {
        if self.count + count > COLLECTED {
            self.flush();
        }
    }

    /// Takes the first `count` of these.
    ///
    /// # Panics
    /// When there is no room for all of them.
    #[inline(always)]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn push_some<const LANES: usize>(&mut self, values: &[u32; LANES], count: usize) {
        self.values[self.count..][..LANES].copy_from_slice(values);
        self.count += count;
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

/// Below this bound more than one hash in 32 is sampled, too many for what supposes that they are few.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const DENSE_BELOW: u32 = 0xf800_0000 - 1;

/// Shuffles that make the four big-endian numbers which begin at byte 4k, 4k + 1, 4k + 2, 4k + 3 of 16
/// bytes; the last of bytes that begin 3 later.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const NUMBERS: [[u8; 16]; 4] = {
    let mut shuffles = [[0; 16]; 4];
    let mut index = 0;
    while index < 64 {
        let (row, lane, byte) = (index / 16, index / 4 % 4, index % 4);
        let begin = if row == 3 { 9 } else { 4 * row };
        shuffles[row][4 * lane + byte] = (begin + lane + 3 - byte) as u8;
        index += 1;
    }
    shuffles
};

/// For each set of `LANES` lanes these lanes, close together.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn kept_places<const LANES: usize, const SETS: usize>() -> [[u8; LANES]; SETS] {
    let mut places = [[0; LANES]; SETS];
    let mut set = 0;
    while set < SETS {
        let (mut lane, mut count) = (0, 0);
        while lane < LANES {
            if set >> lane & 1 == 1 {
                places[set][count] = lane as u8;
                count += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    places
}

/// The same for the bytes of four lanes of four.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const fn places_of_bytes(lanes: &[[u8; 4]; 16]) -> [[u8; 16]; 16] {
    let mut places = [[0; 16]; 16];
    let mut index = 0;
    while index < 256 {
        let (set, byte) = (index / 16, index % 16);
        places[set][byte] = 4 * lanes[set][byte / 4] + (byte % 4) as u8;
        index += 1;
    }
    places
}

/// Prefetches what lies behind the chunk, `COUNT` bytes from byte `from` on, as a loop over the chunk
/// comes along: what is asked for next is mostly the chunk that follows in memory, and its lanes begin
/// at too many places at once for the hardware to foresee.
#[inline(always)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn prefetch_behind<const COUNT: usize>(chunk: &[u8], from: usize) {
    #[cfg(target_arch = "x86_64")]
    for index in (0..COUNT).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = chunk.as_ptr().wrapping_add(chunk.len() + from + index);
        // SAFETY: SSE is part of x86-64, and a prefetch may name any address: it loads nothing that is
        // seen, and never fails.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (chunk, from);
}

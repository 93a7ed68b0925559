//! Marks of every position for hashes that are linear over GF(2) and slide by a byte: CRCs and Rabin
//! fingerprints, without tables.
//!
//! Enters: a hash in *planes*, bytes of it that are moved on one by one: with the byte that enters
//! `e`, the one that leaves `l` and `f` the last plane (for CRCs `f ^ e`),
//! `plane'[k] = plane[k − 1] ^ A[k](f) ^ L[k](l) ^ E[k](e)`, where A, L, E are linear maps from byte to
//! byte. Leaves: marks of the windows whose hash has a value under each mask.
//!
//! Method. SS-CDC (Ni §2.3.3) runs 16 segments side by side and gathers both table numbers of each. A
//! gather is slow, but both tables are linear: what they say of a byte is the XOR of what they say of
//! its bits. With a plane of all lanes in one register (64 lanes of AVX-512, 32 of AVX2, 16 of NEON) a
//! linear map is one instruction (GF2P8AFFINEQB), or two shuffles of 16 bytes for its two halves. A
//! block of data is cut into as many equal lanes as a register has bytes; 16 bytes of each lane are
//! turned at a time, so that a register holds the same byte of all lanes, and kept until they leave the
//! window. Each lane takes in the window before it first.

use crate::isa::Isa;
use crate::marks::{Marks, Masks};

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod kernel;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

/// Bytes of a lane that are turned together.
pub(crate) const GROUP: usize = 16;

/// Windows are kept for so many bytes.
const WINDOW_HIGHEST: usize = 256;

/// Positions of a block.
const BLOCK: usize = 16 << 10;

/// Fewer positions a lane are left to the scalar form.
const LANE_LOWEST: usize = 4 * GROUP;

/// A linear map from byte to byte: what it makes of each bit.
pub(crate) type Map = [u8; 8];

/// Planes that an entering byte can reach at once.
pub(crate) const ENTERING: usize = 3;

/// A hash of `PLANES` bytes; of those that are `FED`, the byte that enters is joined to the last
/// plane. Has no `Debug`: a polynomial may be secret.
#[derive(Clone)]
pub(crate) struct Linear<const PLANES: usize, const FED: bool> {
    /// Of the last plane.
    pub(crate) append: [Map; PLANES],
    /// Of the byte that leaves.
    pub(crate) leave: [Map; PLANES],
    /// Of the byte that enters, where the hash is not fed.
    pub(crate) enter: [Map; ENTERING],
    pub(crate) window_bytes: usize,
}

/// What is looked for, plane by plane.
#[derive(Clone, Copy)]
pub(crate) struct Judged<const PLANES: usize> {
    strict: [u8; PLANES],
    loose: [u8; PLANES],
    value: [u8; PLANES],
}

impl<const PLANES: usize> Judged<PLANES> {
    /// Masks whose byte number `byte_of(plane)`, the lowest being 0, is of that plane.
    pub(crate) fn new(masks: Masks<u64>, byte_of: impl Fn(usize) -> usize) -> Self {
        let planes =
            |number: u64| std::array::from_fn(|plane| (number >> (8 * byte_of(plane))) as u8);
        Self {
            strict: planes(masks.strict),
            loose: planes(masks.loose),
            value: planes(masks.value),
        }
    }

    /// Whether no plane but these is judged.
    fn is_within(&self, from: usize, end: usize) -> bool {
        let judged = |k: usize| self.strict[k] | self.loose[k] != 0;
        !(0..from).chain(end..PLANES).any(judged)
    }
}

/// What linear maps from bytes to the bytes of a number do with each bit: `maps[k][bit]` is byte
/// `byte_of(k)` of the number of that bit.
pub(crate) fn maps<const COUNT: usize>(
    number_of: impl Fn(u8) -> u64,
    byte_of: impl Fn(usize) -> usize,
) -> [Map; COUNT] {
    std::array::from_fn(|k| {
        std::array::from_fn(|bit| (number_of(1 << bit) >> (8 * byte_of(k))) as u8)
    })
}

/// The map as two tables, of the lower and the upper four bits.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn halves(map: Map) -> [[u8; 16]; 2] {
    [0, 4].map(|shift| {
        std::array::from_fn(|half| {
            let bits = (0..4).filter(|bit| half >> bit & 1 == 1);
            bits.fold(0, |sum, bit| sum ^ map[shift + bit])
        })
    })
}

impl<const PLANES: usize, const FED: bool> Linear<PLANES, FED> {
    /// Marks positions from `from` on, counted from `first`, and says to where it came: a little
    /// before the end of the data, or `from` where there is no form for this level or window. Of the
    /// planes those `FROM..END` are judged by themselves where the masks allow it.
    ///
    /// # Panics
    /// When the window before the first of them does not lie in the data.
    pub(crate) fn mark<const FROM: usize, const END: usize>(
        &self,
        isa: Isa,
        judged: &Judged<PLANES>,
        data: &[u8],
        first: usize,
        from: usize,
        marks: &mut Marks<'_>,
    ) -> usize {
        if judged.is_within(FROM, END) {
            self.mark_planes::<FROM, END>(isa, judged, data, first, from, marks)
        } else {
            self.mark_planes::<0, PLANES>(isa, judged, data, first, from, marks)
        }
    }

    fn mark_planes<const FROM: usize, const END: usize>(
        &self,
        isa: Isa,
        judged: &Judged<PLANES>,
        data: &[u8],
        first: usize,
        from: usize,
        marks: &mut Marks<'_>,
    ) -> usize {
        let window = self.window_bytes;
        let is_empty = data.len() <= first + from;
        if is_empty || !window.is_multiple_of(GROUP) || window > WINDOW_HIGHEST {
            return from;
        }
        assert!(first + from >= window, "a window lies before the lanes");
        match isa.or_scalar() {
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe {
                avx512::mark::<PLANES, FED, FROM, END>(self, judged, data, first, from, marks)
            },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe {
                avx2::mark::<PLANES, FED, FROM, END>(self, judged, data, first, from, marks)
            },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe {
                neon::mark::<PLANES, FED, FROM, END>(self, judged, data, first, from, marks)
            },
            _ => from,
        }
    }
}

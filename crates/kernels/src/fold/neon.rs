//! `fold` with NEON and PMULL: 64 bytes, one word of signs, at a time.
//!
//! As with AVX2 words are in order, the first of their 64 places is the lowest bit, and the lower
//! half of a product is for the same 64 places, its upper half for the next 64. A look-up for
//! each half of a byte (TBL) gives its four planes; a plane of 64 bytes is taken out by testing its
//! bit, keeping one bit of eight a byte, and adding neighbours up three times (ADDP). Signs of o bytes
//! ago come from two words by EXTR, so the pattern needs no vectors.

use super::{Fold, HALF_PLANES, PATTERN, PLANES, mark_blocks};
use crate::marks::Marks;
use std::arch::aarch64::*;

/// Bytes of a block, and places of a word.
const BLOCK: usize = 64;

/// Where a scan is.
#[derive(Clone, Copy)]
struct Walk {
    /// The first byte that was not taken.
    position: usize,
    /// The places of the next block that are judged.
    places: u64,
    /// The upper half of the last product.
    upper: u64,
    /// The last word of signs.
    signs: u64,
}

/// What a scan reads.
struct Scan<'a> {
    data: &'a [u8],
    fold: &'a Fold,
    normal: usize,
    /// Planes of the lower and of the upper half of a byte.
    low_planes: uint8x16_t,
    high_planes: uint8x16_t,
    taps: [u64; PLANES],
}

/// See [`Fold::find_cut`].
#[target_feature(enable = "neon,aes")]
pub(super) fn find_cut(fold: &Fold, data: &[u8], first: usize, normal: usize) -> Option<usize> {
    let scan = scan(fold, data, normal);
    // The word before the first judged one has right signs in its last 32 places: no byte before
    // it reaches further, and no pattern looks at more.
    let mut walk = Walk {
        position: first - BLOCK,
        places: 0,
        upper: 0,
        signs: 0,
    };
    find_cut_by_blocks!(scan, walk)
}

/// See [`Fold::mark`].
#[target_feature(enable = "neon,aes")]
pub(super) fn mark(fold: &Fold, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
    let scan = scan(fold, data, 0);
    let mut walk = Walk {
        position: 0,
        places: 0,
        upper: 0,
        signs: 0,
    };
    mark_blocks::<1>(data, first, count, marks, |block| {
        let before = walk.signs;
        scan.signs(block.try_into().expect("a word is a block"), &mut walk);
        let loose = pattern(walk.signs, before, &PATTERN[..fold.loose_signs]);
        let strict = pattern(walk.signs, before, &PATTERN[..fold.strict_signs]);
        [[strict], [loose]]
    });
}

#[target_feature(enable = "neon")]
fn scan<'a>(fold: &'a Fold, data: &'a [u8], normal: usize) -> Scan<'a> {
    Scan {
        data,
        fold,
        normal,
        low_planes: load(&HALF_PLANES[0]),
        high_planes: load(&HALF_PLANES[1]),
        taps: fold.taps.map(|taps| u64::from(taps.reverse_bits()) << 1),
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes are there.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

impl Scan<'_> {
    /// Takes whole blocks up to `end` under the pattern of `signs` signs.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    fn run(&self, signs: usize, end: usize, walk: &mut Walk) -> Option<usize> {
        by_signs!(signs, self, end, walk)
    }

    /// The same, for a number of signs that the compiler knows.
    #[target_feature(enable = "neon,aes")]
    fn run_with<const SIGNS: usize>(&self, end: usize, walk: &mut Walk) -> Option<usize> {
        let mut now = *walk;
        let data = &self.data[..end];
        while let Some(block) = data.get(now.position..).and_then(|rest| rest.first_chunk()) {
            let before = now.signs;
            self.signs(block, &mut now);
            let cuts = pattern(now.signs, before, &PATTERN[..SIGNS]) & now.places;
            if cuts != 0 {
                return Some(now.position + cuts.trailing_zeros() as usize);
            }
            now.places = !0;
            now.position += BLOCK;
        }
        *walk = now;
        None
    }

    /// Takes one block in which the normal point may lie.
    #[target_feature(enable = "neon,aes")]
    fn crossing(&self, block: &[u8; BLOCK], walk: &mut Walk) -> Option<usize> {
        let before = walk.signs;
        self.signs(block, walk);
        let loose = pattern(walk.signs, before, &PATTERN[..self.fold.loose_signs]);
        let strict = pattern(walk.signs, before, &PATTERN[..self.fold.strict_signs]);
        let strict_places = self.normal.saturating_sub(walk.position).min(BLOCK) as u32;
        let is_loose = (!0u64).checked_shl(strict_places).unwrap_or(0);
        let cuts = (strict | loose & is_loose) & walk.places;
        let position = walk.position;
        walk.places = !0;
        walk.position += BLOCK;
        (cuts != 0).then(|| position + cuts.trailing_zeros() as usize)
    }

    /// Takes the signs of a block.
    #[inline]
    #[target_feature(enable = "neon,aes")]
    fn signs(&self, block: &[u8; BLOCK], walk: &mut Walk) {
        let (quarters, _) = block.as_chunks::<16>();
        let planes = [
            self.planes(&quarters[0]),
            self.planes(&quarters[1]),
            self.planes(&quarters[2]),
            self.planes(&quarters[3]),
        ];
        let mut sum = 0u128;
        for (plane, &taps) in self.taps.iter().enumerate() {
            sum ^= vmull_p64(plane_of(&planes, 1 << plane), taps);
        }
        walk.signs = sum as u64 ^ walk.upper;
        walk.upper = (sum >> 64) as u64;
    }

    /// The planes of 16 bytes, in bits 0 to 3 of each.
    #[inline]
    #[target_feature(enable = "neon")]
    fn planes(&self, bytes: &[u8; 16]) -> uint8x16_t {
        let bytes = load(bytes);
        veorq_u8(
            vqtbl1q_u8(self.low_planes, vandq_u8(bytes, vdupq_n_u8(0x0f))),
            vqtbl1q_u8(self.high_planes, vshrq_n_u8::<4>(bytes)),
        )
    }
}

/// One bit of 64 bytes, the first byte's lowest.
#[inline]
#[target_feature(enable = "neon")]
fn plane_of(planes: &[uint8x16_t; 4], bit: u8) -> u64 {
    const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    let places = load(&PLACES);
    let bit = vdupq_n_u8(bit);
    let kept = |planes| vandq_u8(vtstq_u8(planes, bit), places);
    let first = vpaddq_u8(kept(planes[0]), kept(planes[1]));
    let second = vpaddq_u8(kept(planes[2]), kept(planes[3]));
    let bytes = vpaddq_u8(first, second);
    let bytes = vpaddq_u8(bytes, bytes);
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(bytes))
}

/// Places where these rows of the pattern hold.
#[inline(always)]
fn pattern(now: u64, before: u64, rows: &[(u32, bool)]) -> u64 {
    rows.iter().fold(!0, |cuts, &(ago, sign)| {
        let ago = ((u128::from(now) << 64 | u128::from(before)) << ago >> 64) as u64;
        cuts & if sign { ago } else { !ago }
    })
}

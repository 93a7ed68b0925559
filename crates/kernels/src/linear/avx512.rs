//! The level of AVX-512 with GFNI: 64 lanes, a linear map is one instruction.

use super::kernel::linear_kernel;
use super::{BLOCK, ENTERING, GROUP, Judged, LANE_LOWEST, Linear, Map, WINDOW_HIGHEST};
use crate::marks::Marks;
use std::arch::x86_64::{
    __m512i as V, _mm_loadu_si128, _mm512_castsi128_si512, _mm512_gf2p8affine_epi64_epi8,
    _mm512_mask_broadcast_i32x4, _mm512_or_si512, _mm512_set1_epi8, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_ternarylogic_epi32, _mm512_testn_epi8_mask, _mm512_unpackhi_epi8,
    _mm512_unpacklo_epi8, _mm512_xor_si512,
};

pub(crate) const LANES: usize = 64;
const TURNED: usize = WINDOW_HIGHEST + BLOCK / LANES;

linear_kernel!("avx512f,avx512bw,gfni");

struct Maps<const PLANES: usize, const FED: bool> {
    append: [V; PLANES],
    leave: [V; PLANES],
    enter: [V; ENTERING],
}

impl<const PLANES: usize, const FED: bool> Maps<PLANES, FED> {
    #[target_feature(enable = "avx512f")]
    fn new(linear: &Linear<PLANES, FED>) -> Self {
        let matrix = |map: Map| _mm512_set1_epi64(matrix(map));
        Self {
            append: std::array::from_fn(|k| matrix(linear.append[k])),
            leave: std::array::from_fn(|k| matrix(linear.leave[k])),
            enter: std::array::from_fn(|k| matrix(linear.enter[k])),
        }
    }
}

/// As GF2P8AFFINEQB wants it: byte 7 − i has the bits of the input that are summed in bit i.
fn matrix(map: Map) -> i64 {
    let row = |i: usize| (0..8).fold(0, |row, bit| row | (map[bit] >> i & 1) << bit);
    i64::from_le_bytes(std::array::from_fn(|byte| row(7 - byte)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn split(bytes: V) -> V {
    bytes
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn apply(matrix: &V, bytes: V) -> V {
    _mm512_gf2p8affine_epi64_epi8::<0>(bytes, *matrix)
}

/// # Safety
/// 16 bytes must be there at each of the four places.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(place: *const u8, apart: usize) -> V {
    let part = |part: usize| {
        // SAFETY: as the caller promises.
        unsafe { _mm_loadu_si128(place.add(part * apart).cast()) }
    };
    let row = _mm512_castsi128_si512(part(0));
    let row = _mm512_mask_broadcast_i32x4(row, 0x00f0, part(1));
    let row = _mm512_mask_broadcast_i32x4(row, 0x0f00, part(2));
    _mm512_mask_broadcast_i32x4(row, 0xf000, part(3))
}

/// # Safety
/// 16 bytes must be there at each place.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_each(places: [*const u8; LANES / GROUP]) -> V {
    // SAFETY: as the caller promises.
    let part = |part: usize| unsafe { _mm_loadu_si128(places[part].cast()) };
    let row = _mm512_castsi128_si512(part(0));
    let row = _mm512_mask_broadcast_i32x4(row, 0x00f0, part(1));
    let row = _mm512_mask_broadcast_i32x4(row, 0x0f00, part(2));
    _mm512_mask_broadcast_i32x4(row, 0xf000, part(3))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn low(a: V, b: V) -> V {
    _mm512_unpacklo_epi8(a, b)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn high(a: V, b: V) -> V {
    _mm512_unpackhi_epi8(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zero() -> V {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(byte: u8) -> V {
    _mm512_set1_epi8(byte as i8)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor(a: V, b: V) -> V {
    _mm512_xor_si512(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn differing(rest: V, hash: V, value: V, mask: V) -> V {
    // (hash ^ value) & mask.
    const DIFFERING: i32 = 0x28;
    let differing = _mm512_ternarylogic_epi32::<DIFFERING>(hash, value, mask);
    _mm512_or_si512(rest, differing)
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn zeros(bytes: V) -> u64 {
    _mm512_testn_epi8_mask(bytes, bytes)
}

//! The level of AVX-512: sixteen numbers of 32 bits, four lanes of a chunk at once.

use super::rabin_kernel::rabin_kernel;
use super::swpr_kernel::swpr_kernel;
use super::transforms::MANY;
use super::transforms_kernel::transforms_kernel;
use super::{
    Collector, DENSE_BELOW, NUMBERS, TRANSFORMS_MOST, Transforms, WINDOW_BYTES, prefetch_behind,
};
use crate::linear::Linear;
use std::arch::x86_64::{
    __m512i as V, _mm_loadu_si128, _mm512_add_epi32, _mm512_alignr_epi8, _mm512_broadcast_i32x4,
    _mm512_castsi128_si512, _mm512_cmpge_epu32_mask, _mm512_loadu_si512,
    _mm512_mask_broadcast_i32x4, _mm512_maskz_compress_epi32, _mm512_max_epu32, _mm512_min_epu32,
    _mm512_mullo_epi32, _mm512_reduce_min_epu32, _mm512_set1_epi32, _mm512_shuffle_epi8,
    _mm512_slli_epi32, _mm512_storeu_si512, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16,
    _mm512_unpacklo_epi8, _mm512_unpacklo_epi16,
};

const LANES: usize = 16;
const PARTS: usize = 4;

transforms_kernel!("avx512f,avx512bw");
rabin_kernel!("avx512f,avx512bw,gfni", avx512);
swpr_kernel!("avx512f,avx512bw,popcnt");

#[inline]
#[target_feature(enable = "avx512f")]
fn load(numbers: &[u32; LANES]) -> V {
    // SAFETY: 64 bytes are there.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(register: V) -> [u32; LANES] {
    let mut numbers = [0; LANES];
    // SAFETY: 64 bytes are there.
    unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), register) };
    numbers
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(number: u32) -> V {
    _mm512_set1_epi32(number.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(a: V, b: V) -> V {
    _mm512_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn mul(a: V, b: V) -> V {
    _mm512_mullo_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn min(a: V, b: V) -> V {
    _mm512_min_epu32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn max(a: V, b: V) -> V {
    _mm512_max_epu32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn least(register: V) -> u32 {
    _mm512_reduce_min_epu32(register)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn shift(hashes: V) -> V {
    _mm512_slli_epi32::<4>(hashes)
}

/// # Safety
/// 16 bytes must be there behind each place.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn gather(places: &[*const u8; PARTS], offset: usize) -> V {
    // SAFETY: as the caller promises.
    let part = |k: usize| unsafe { _mm_loadu_si128(places[k].add(offset).cast()) };
    let bytes = _mm512_castsi128_si512(part(0));
    let bytes = _mm512_mask_broadcast_i32x4(bytes, 0x00f0, part(1));
    let bytes = _mm512_mask_broadcast_i32x4(bytes, 0x0f00, part(2));
    _mm512_mask_broadcast_i32x4(bytes, 0xf000, part(3))
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn join_at_12(bytes: V, behind: V) -> V {
    _mm512_alignr_epi8::<12>(behind, bytes)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn shuffle(row: usize) -> V {
    // SAFETY: 16 bytes are there.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(NUMBERS[row].as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512bw")]
fn numbers(bytes: V, shuffle: V) -> V {
    _mm512_shuffle_epi8(bytes, shuffle)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn reaches(hashes: V, bound: V) -> bool {
    _mm512_cmpge_epu32_mask(hashes, bound) != 0
}

#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn keep(hashes: V, bound: V, collector: &mut Collector<'_>) {
    let reached = _mm512_cmpge_epu32_mask(hashes, bound);
    let kept = store(_mm512_maskz_compress_epi32(reached, hashes));
    collector.push_some(&kept, reached.count_ones() as usize);
}

/// Words of 32 bits of four planes of bytes, the lowest first.
#[inline]
#[target_feature(enable = "avx512bw")]
fn words([a, b, c, d]: [V; 4]) -> [V; 4] {
    let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
    let (low_above, high_above) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
    [
        _mm512_unpacklo_epi16(low, low_above),
        _mm512_unpackhi_epi16(low, low_above),
        _mm512_unpacklo_epi16(high, high_above),
        _mm512_unpackhi_epi16(high, high_above),
    ]
}

//! The level of AVX2: eight numbers of 32 bits, two lanes of a chunk at once.

use super::rabin_kernel::rabin_kernel;
use super::swpr_kernel::swpr_kernel;
use super::transforms::MANY;
use super::transforms_kernel::transforms_kernel;
use super::{
    Collector, DENSE_BELOW, NUMBERS, TRANSFORMS_MOST, Transforms, WINDOW_BYTES, kept_places,
    prefetch_behind,
};
use crate::linear::Linear;
use std::arch::x86_64::{
    __m256i as V, _mm_loadl_epi64, _mm_loadu_si128, _mm256_add_epi32, _mm256_alignr_epi8,
    _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32,
    _mm256_cvtepu8_epi32, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_max_epu32,
    _mm256_min_epu32, _mm256_movemask_epi8, _mm256_movemask_ps, _mm256_mullo_epi32,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_shuffle_epi8, _mm256_slli_epi32,
    _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi16,
};

const LANES: usize = 8;
const PARTS: usize = 2;

/// For each set of lanes, these lanes, close together.
static KEPT: [[u8; LANES]; 1 << LANES] = kept_places();

transforms_kernel!("avx2");
rabin_kernel!("avx2", avx2);
swpr_kernel!("avx2,popcnt");

#[inline]
#[target_feature(enable = "avx2")]
fn load(numbers: &[u32; LANES]) -> V {
    // SAFETY: 32 bytes are there.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(register: V) -> [u32; LANES] {
    let mut numbers = [0; LANES];
    // SAFETY: 32 bytes are there.
    unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), register) };
    numbers
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(number: u32) -> V {
    _mm256_set1_epi32(number.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: V, b: V) -> V {
    _mm256_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn mul(a: V, b: V) -> V {
    _mm256_mullo_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn min(a: V, b: V) -> V {
    _mm256_min_epu32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn max(a: V, b: V) -> V {
    _mm256_max_epu32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn least(register: V) -> u32 {
    store(register).into_iter().fold(u32::MAX, u32::min)
}

#[inline]
#[target_feature(enable = "avx2")]
fn shift(hashes: V) -> V {
    _mm256_slli_epi32::<4>(hashes)
}

/// # Safety
/// 16 bytes must be there behind each place.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather(places: &[*const u8; PARTS], offset: usize) -> V {
    // SAFETY: as the caller promises.
    let part = |k: usize| unsafe { _mm_loadu_si128(places[k].add(offset).cast()) };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(part(0)), part(1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn join_at_12(bytes: V, behind: V) -> V {
    _mm256_alignr_epi8::<12>(behind, bytes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn shuffle(row: usize) -> V {
    // SAFETY: 16 bytes are there.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(NUMBERS[row].as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn numbers(bytes: V, shuffle: V) -> V {
    _mm256_shuffle_epi8(bytes, shuffle)
}

#[inline]
#[target_feature(enable = "avx2")]
fn reached(hashes: V, bound: V) -> V {
    _mm256_cmpeq_epi32(_mm256_max_epu32(hashes, bound), hashes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn reaches(hashes: V, bound: V) -> bool {
    _mm256_movemask_epi8(reached(hashes, bound)) != 0
}

#[inline]
#[target_feature(enable = "avx2,popcnt")]
fn keep(hashes: V, bound: V, collector: &mut Collector<'_>) {
    let lanes = _mm256_movemask_ps(_mm256_castsi256_ps(reached(hashes, bound)));
    let places = &KEPT[lanes as usize & 0xff];
    // SAFETY: 8 bytes are there.
    let places = _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(places.as_ptr().cast()) });
    let kept = store(_mm256_permutevar8x32_epi32(hashes, places));
    collector.push_some(&kept, lanes.count_ones() as usize);
}

/// Words of 32 bits of four planes of bytes, the lowest first.
#[inline]
#[target_feature(enable = "avx2")]
fn words([a, b, c, d]: [V; 4]) -> [V; 4] {
    let (low, high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b));
    let (low_above, high_above) = (_mm256_unpacklo_epi8(c, d), _mm256_unpackhi_epi8(c, d));
    [
        _mm256_unpacklo_epi16(low, low_above),
        _mm256_unpackhi_epi16(low, low_above),
        _mm256_unpacklo_epi16(high, high_above),
        _mm256_unpackhi_epi16(high, high_above),
    ]
}

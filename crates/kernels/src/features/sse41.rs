//! The level of SSE4.1, which the paper measures: four numbers of 32 bits.

use super::swpr_kernel::swpr_kernel;
use super::transforms::MANY;
use super::transforms_kernel::transforms_kernel;
use super::{
    Collector, DENSE_BELOW, NUMBERS, TRANSFORMS_MOST, Transforms, WINDOW_BYTES, kept_places,
    places_of_bytes, prefetch_behind,
};
use std::arch::x86_64::{
    __m128i as V, _mm_add_epi32, _mm_alignr_epi8, _mm_castsi128_ps, _mm_cmpeq_epi32,
    _mm_loadu_si128, _mm_max_epu32, _mm_min_epu32, _mm_movemask_epi8, _mm_movemask_ps,
    _mm_mullo_epi32, _mm_set1_epi32, _mm_shuffle_epi8, _mm_slli_epi32, _mm_storeu_si128,
};

const LANES: usize = 4;
const PARTS: usize = 1;

/// For each set of lanes, the bytes of these lanes, close together; and how many lanes they are.
static KEPT: [[u8; 16]; 1 << LANES] = places_of_bytes(&kept_places());

transforms_kernel!("ssse3,sse4.1");
swpr_kernel!("ssse3,sse4.1");

#[inline]
#[target_feature(enable = "sse4.1")]
fn load(numbers: &[u32; LANES]) -> V {
    // SAFETY: 16 bytes are there.
    unsafe { _mm_loadu_si128(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn store(register: V) -> [u32; LANES] {
    let mut numbers = [0; LANES];
    // SAFETY: 16 bytes are there.
    unsafe { _mm_storeu_si128(numbers.as_mut_ptr().cast(), register) };
    numbers
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn splat(number: u32) -> V {
    _mm_set1_epi32(number.cast_signed())
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn add(a: V, b: V) -> V {
    _mm_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn mul(a: V, b: V) -> V {
    _mm_mullo_epi32(a, b)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn min(a: V, b: V) -> V {
    _mm_min_epu32(a, b)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn max(a: V, b: V) -> V {
    _mm_max_epu32(a, b)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn least(register: V) -> u32 {
    store(register).into_iter().fold(u32::MAX, u32::min)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn shift(hashes: V) -> V {
    _mm_slli_epi32::<4>(hashes)
}

/// # Safety
/// 16 bytes must be there behind the place.
#[inline]
#[target_feature(enable = "sse4.1")]
unsafe fn gather(places: &[*const u8; PARTS], offset: usize) -> V {
    // SAFETY: as the caller promises.
    unsafe { _mm_loadu_si128(places[0].add(offset).cast()) }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn join_at_12(bytes: V, behind: V) -> V {
    _mm_alignr_epi8::<12>(behind, bytes)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn shuffle(row: usize) -> V {
    // SAFETY: 16 bytes are there.
    unsafe { _mm_loadu_si128(NUMBERS[row].as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn numbers(bytes: V, shuffle: V) -> V {
    _mm_shuffle_epi8(bytes, shuffle)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn reached(hashes: V, bound: V) -> V {
    _mm_cmpeq_epi32(_mm_max_epu32(hashes, bound), hashes)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn reaches(hashes: V, bound: V) -> bool {
    _mm_movemask_epi8(reached(hashes, bound)) != 0
}

#[inline]
#[target_feature(enable = "ssse3,sse4.1")]
fn keep(hashes: V, bound: V, collector: &mut Collector<'_>) {
    // How many of four lanes are set, four bits each.
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    let lanes = _mm_movemask_ps(_mm_castsi128_ps(reached(hashes, bound))) as usize & 0xf;
    // SAFETY: 16 bytes are there.
    let places = unsafe { _mm_loadu_si128(KEPT[lanes].as_ptr().cast()) };
    let kept = store(_mm_shuffle_epi8(hashes, places));
    collector.push_some(&kept, (COUNTS >> (4 * lanes)) as usize & 0xf);
}

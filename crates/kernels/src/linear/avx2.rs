//! The level of AVX2: 32 lanes, a linear map is two shuffles of 16 bytes.

use super::kernel::linear_kernel;
use super::{BLOCK, ENTERING, GROUP, Judged, LANE_LOWEST, Linear, Map, WINDOW_HIGHEST, halves};
use crate::marks::Marks;
use std::arch::x86_64::{
    __m256i as V, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_castsi128_si256, _mm256_cmpeq_epi8, _mm256_inserti128_si256, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8, _mm256_xor_si256,
};

pub(crate) const LANES: usize = 32;
const TURNED: usize = WINDOW_HIGHEST + BLOCK / LANES;

linear_kernel!("avx2");

struct Maps<const PLANES: usize, const FED: bool> {
    append: [[V; 2]; PLANES],
    leave: [[V; 2]; PLANES],
    enter: [[V; 2]; ENTERING],
}

impl<const PLANES: usize, const FED: bool> Maps<PLANES, FED> {
    #[target_feature(enable = "avx2")]
    fn new(linear: &Linear<PLANES, FED>) -> Self {
        let table = |half: [u8; 16]| {
            // SAFETY: 16 bytes are there.
            let half = unsafe { _mm_loadu_si128(half.as_ptr().cast()) };
            _mm256_broadcastsi128_si256(half)
        };
        let tables = |map: Map| {
            let [low, high] = halves(map);
            [table(low), table(high)]
        };
        Self {
            append: std::array::from_fn(|k| tables(linear.append[k])),
            leave: std::array::from_fn(|k| tables(linear.leave[k])),
            enter: std::array::from_fn(|k| tables(linear.enter[k])),
        }
    }
}

/// The lower and the upper half of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn split(bytes: V) -> [V; 2] {
    let mask = _mm256_set1_epi8(15);
    let high = _mm256_srli_epi16::<4>(bytes);
    [_mm256_and_si256(bytes, mask), _mm256_and_si256(high, mask)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn apply(tables: &[V; 2], [low, high]: [V; 2]) -> V {
    _mm256_xor_si256(
        _mm256_shuffle_epi8(tables[0], low),
        _mm256_shuffle_epi8(tables[1], high),
    )
}

/// # Safety
/// 16 bytes must be there at both places.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(place: *const u8, apart: usize) -> V {
    let part = |part: usize| {
        // SAFETY: as the caller promises.
        unsafe { _mm_loadu_si128(place.add(part * apart).cast()) }
    };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(part(0)), part(1))
}

/// # Safety
/// 16 bytes must be there at each place.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_each(places: [*const u8; LANES / GROUP]) -> V {
    // SAFETY: as the caller promises.
    let part = |part: usize| unsafe { _mm_loadu_si128(places[part].cast()) };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(part(0)), part(1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn low(a: V, b: V) -> V {
    _mm256_unpacklo_epi8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn high(a: V, b: V) -> V {
    _mm256_unpackhi_epi8(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn zero() -> V {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(byte: u8) -> V {
    _mm256_set1_epi8(byte as i8)
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor(a: V, b: V) -> V {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn differing(rest: V, hash: V, value: V, mask: V) -> V {
    _mm256_or_si256(rest, _mm256_and_si256(xor(hash, value), mask))
}

#[inline]
#[target_feature(enable = "avx2")]
fn zeros(bytes: V) -> u64 {
    let zeros = _mm256_cmpeq_epi8(bytes, zero());
    u64::from(_mm256_movemask_epi8(zeros).cast_unsigned())
}

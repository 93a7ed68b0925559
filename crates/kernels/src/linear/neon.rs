//! The level of NEON: 16 lanes, a linear map is two look-ups among 16 bytes.

use super::kernel::linear_kernel;
use super::{BLOCK, ENTERING, GROUP, Judged, LANE_LOWEST, Linear, Map, WINDOW_HIGHEST, halves};
use crate::marks::Marks;
use std::arch::aarch64::{
    uint8x16_t as V, vandq_u8, vceqzq_u8, vdupq_n_u8, veorq_u8, vget_lane_u64, vld1q_u8, vminvq_u8,
    vorrq_u8, vqtbl1q_u8, vreinterpret_u64_u8, vreinterpretq_u16_u8, vshrn_n_u16, vshrq_n_u8,
    vzip1q_u8, vzip2q_u8,
};

pub(crate) const LANES: usize = 16;
const TURNED: usize = WINDOW_HIGHEST + BLOCK / LANES;

linear_kernel!("neon");

struct Maps<const PLANES: usize, const FED: bool> {
    append: [[V; 2]; PLANES],
    leave: [[V; 2]; PLANES],
    enter: [[V; 2]; ENTERING],
}

impl<const PLANES: usize, const FED: bool> Maps<PLANES, FED> {
    #[target_feature(enable = "neon")]
    fn new(linear: &Linear<PLANES, FED>) -> Self {
        // SAFETY: 16 bytes are there.
        let tables = |map: Map| halves(map).map(|half| unsafe { vld1q_u8(half.as_ptr()) });
        Self {
            append: std::array::from_fn(|k| tables(linear.append[k])),
            leave: std::array::from_fn(|k| tables(linear.leave[k])),
            enter: std::array::from_fn(|k| tables(linear.enter[k])),
        }
    }
}

/// The lower and the upper half of each byte.
#[inline]
#[target_feature(enable = "neon")]
fn split(bytes: V) -> [V; 2] {
    [vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8::<4>(bytes)]
}

#[inline]
#[target_feature(enable = "neon")]
fn apply(tables: &[V; 2], [low, high]: [V; 2]) -> V {
    veorq_u8(vqtbl1q_u8(tables[0], low), vqtbl1q_u8(tables[1], high))
}

/// # Safety
/// 16 bytes must be there.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(place: *const u8, _: usize) -> V {
    // SAFETY: as the caller promises.
    unsafe { vld1q_u8(place) }
}

/// # Safety
/// 16 bytes must be there at each place.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_each(places: [*const u8; LANES / GROUP]) -> V {
    // SAFETY: as the caller promises.
    unsafe { vld1q_u8(places[0]) }
}

#[inline]
#[target_feature(enable = "neon")]
fn low(a: V, b: V) -> V {
    vzip1q_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn high(a: V, b: V) -> V {
    vzip2q_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn zero() -> V {
    vdupq_n_u8(0)
}

#[inline]
#[target_feature(enable = "neon")]
fn splat(byte: u8) -> V {
    vdupq_n_u8(byte)
}

#[inline]
#[target_feature(enable = "neon")]
fn xor(a: V, b: V) -> V {
    veorq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn differing(rest: V, hash: V, value: V, mask: V) -> V {
    vorrq_u8(rest, vandq_u8(veorq_u8(hash, value), mask))
}

#[inline]
#[target_feature(enable = "neon")]
fn zeros(bytes: V) -> u64 {
    if vminvq_u8(bytes) != 0 {
        return 0;
    }
    // Four bits of each byte; then one of each four.
    let narrowed = vshrn_n_u16::<4>(vreinterpretq_u16_u8(vceqzq_u8(bytes)));
    let mut fours = vget_lane_u64::<0>(vreinterpret_u64_u8(narrowed)) & 0x1111_1111_1111_1111;
    fours = (fours | fours >> 3) & 0x0303_0303_0303_0303;
    fours = (fours | fours >> 6) & 0x000f_000f_000f_000f;
    fours = (fours | fours >> 12) & 0x0000_00ff_0000_00ff;
    (fours | fours >> 24) & 0xffff
}

//! The level of NEON: four numbers of 32 bits.

use super::rabin_kernel::rabin_kernel;
use super::swpr_kernel::swpr_kernel;
use super::transforms::MANY;
use super::transforms_kernel::transforms_kernel;
use super::{
    Collector, DENSE_BELOW, NUMBERS, TRANSFORMS_MOST, Transforms, WINDOW_BYTES, kept_places,
    places_of_bytes, prefetch_behind,
};
use crate::linear::Linear;
use std::arch::aarch64::{
    uint8x16_t, uint32x4_t as V, vaddq_u32, vaddvq_u32, vandq_u32, vcgeq_u32, vdupq_n_u32,
    vextq_u8, vld1q_u8, vld1q_u32, vmaxq_u32, vmaxvq_u32, vminq_u32, vminvq_u32, vmulq_u32,
    vqtbl1q_u8, vreinterpretq_u8_u32, vreinterpretq_u16_u8, vreinterpretq_u32_u8,
    vreinterpretq_u32_u16, vshlq_n_u32, vst1q_u32, vzip1q_u8, vzip1q_u16, vzip2q_u8, vzip2q_u16,
};

const LANES: usize = 4;
const PARTS: usize = 1;

/// For each set of lanes, the bytes of these lanes, close together.
static KEPT: [[u8; 16]; 1 << LANES] = places_of_bytes(&kept_places());

transforms_kernel!("neon");
rabin_kernel!("neon", neon);
swpr_kernel!("neon");

#[inline]
#[target_feature(enable = "neon")]
fn load(numbers: &[u32; LANES]) -> V {
    // SAFETY: 16 bytes are there.
    unsafe { vld1q_u32(numbers.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(register: V) -> [u32; LANES] {
    let mut numbers = [0; LANES];
    // SAFETY: 16 bytes are there.
    unsafe { vst1q_u32(numbers.as_mut_ptr(), register) };
    numbers
}

#[inline]
#[target_feature(enable = "neon")]
fn splat(number: u32) -> V {
    vdupq_n_u32(number)
}

#[inline]
#[target_feature(enable = "neon")]
fn add(a: V, b: V) -> V {
    vaddq_u32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn mul(a: V, b: V) -> V {
    vmulq_u32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn min(a: V, b: V) -> V {
    vminq_u32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn max(a: V, b: V) -> V {
    vmaxq_u32(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn least(register: V) -> u32 {
    vminvq_u32(register)
}

#[inline]
#[target_feature(enable = "neon")]
fn shift(hashes: V) -> V {
    vshlq_n_u32::<4>(hashes)
}

/// # Safety
/// 16 bytes must be there behind the place.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn gather(places: &[*const u8; PARTS], offset: usize) -> V {
    // SAFETY: as the caller promises.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(places[0].add(offset)) })
}

#[inline]
#[target_feature(enable = "neon")]
fn join_at_12(bytes: V, behind: V) -> V {
    let (bytes, behind) = (vreinterpretq_u8_u32(bytes), vreinterpretq_u8_u32(behind));
    vreinterpretq_u32_u8(vextq_u8::<12>(bytes, behind))
}

#[inline]
#[target_feature(enable = "neon")]
fn shuffle(row: usize) -> V {
    // SAFETY: 16 bytes are there.
    vreinterpretq_u32_u8(unsafe { vld1q_u8(NUMBERS[row].as_ptr()) })
}

#[inline]
#[target_feature(enable = "neon")]
fn numbers(bytes: V, shuffle: V) -> V {
    let (bytes, shuffle) = (vreinterpretq_u8_u32(bytes), vreinterpretq_u8_u32(shuffle));
    vreinterpretq_u32_u8(vqtbl1q_u8(bytes, shuffle))
}

#[inline]
#[target_feature(enable = "neon")]
fn reaches(hashes: V, bound: V) -> bool {
    vmaxvq_u32(vcgeq_u32(hashes, bound)) != 0
}

#[inline]
#[target_feature(enable = "neon")]
fn keep(hashes: V, bound: V, collector: &mut Collector<'_>) {
    // The lane's bit, and one more for the count.
    const BITS: [u32; LANES] = [0x11, 0x12, 0x14, 0x18];
    let reached = vaddvq_u32(vandq_u32(vcgeq_u32(hashes, bound), load(&BITS)));
    let places = &KEPT[reached as usize & 0xf];
    // SAFETY: 16 bytes are there.
    let places = vreinterpretq_u32_u8(unsafe { vld1q_u8(places.as_ptr()) });
    collector.push_some(&store(numbers(hashes, places)), reached as usize >> 4);
}

/// Words of 32 bits of four planes of bytes, the lowest first.
#[inline]
#[target_feature(enable = "neon")]
fn words([a, b, c, d]: [uint8x16_t; 4]) -> [V; 4] {
    let halves = |a, b| [vzip1q_u8(a, b), vzip2q_u8(a, b)].map(|half| vreinterpretq_u16_u8(half));
    let ([low, high], [low_above, high_above]) = (halves(a, b), halves(c, d));
    [
        vzip1q_u16(low, low_above),
        vzip2q_u16(low, low_above),
        vzip1q_u16(high, high_above),
        vzip2q_u16(high, high_above),
    ]
    .map(|words| vreinterpretq_u32_u16(words))
}

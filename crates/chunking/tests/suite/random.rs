//! Test data that every run and every language can make again: splitmix64.

use proptest::prelude::*;

/// The outputs of splitmix64 from a seed.
pub struct Splitmix64(pub u64);

impl Iterator for Splitmix64 {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }
}

/// `length` bytes: the outputs from `seed`, little-endian, one after the other.
pub fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let numbers = Splitmix64(seed).take(length.div_ceil(8));
    let mut bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(length);
    bytes
}

/// Bytes of 1 to 256 symbols, with a run of one byte somewhere.
pub fn any_data() -> impl Strategy<Value = Vec<u8>> {
    (
        any::<u64>(),
        0usize..60_000,
        1u16..=256,
        0usize..60_000,
        0usize..20_000,
    )
        .prop_map(|(seed, length, symbols, run_start, run_length)| {
            let mut data = random_bytes(seed, length);
            for byte in &mut data {
                *byte = (u16::from(*byte) % symbols) as u8;
            }
            let run_start = run_start.min(length);
            let run_end = (run_start + run_length).min(length);
            data[run_start..run_end].fill(seed as u8);
            data
        })
}

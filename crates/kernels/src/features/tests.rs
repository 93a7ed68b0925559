//! Every level against the specification.

use super::gear::SampledGear;
use super::rabin::FeatureRabin;
use super::swpr::{self, SubWindows};
use super::{Transforms, WINDOW_BYTES, fold, scalar};
use crate::isa::Isa;
use proptest::prelude::*;

/// CRC-32's.
const POLYNOMIAL: u32 = 0x04c1_1db7;

/// Deterministic bytes.
fn random(seed: u64, length: usize) -> Vec<u8> {
    numbers(seed)
        .flat_map(u64::to_le_bytes)
        .take(length)
        .collect()
}

/// splitmix64.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

fn transforms(seed: u64, count: usize) -> Transforms {
    let pairs: Vec<(u32, u32)> = numbers(seed)
        .take(count)
        .map(|number| (number as u32, (number >> 32) as u32))
        .collect();
    Transforms::new(&pairs)
}

/// What a kernel must give for these samples.
fn expected(transforms: &Transforms, samples: &[u32]) -> (bool, Vec<u32>) {
    (!samples.is_empty(), scalar::minima(transforms, samples))
}

/// What a kernel gives on a level.
fn given(transforms: &Transforms, kernel: impl FnOnce(&mut [u32]) -> bool) -> (bool, Vec<u32>) {
    let mut minima = vec![7; transforms.count()];
    (kernel(&mut minima), minima)
}

/// Every kernel, on every level, on a chunk.
fn check(chunk: &[u8], transforms: &Transforms, rate_bits: u32) {
    let table: crate::gear::GearTable = {
        let mut numbers = numbers(99);
        std::array::from_fn(|_| numbers.next().expect("endless"))
    };
    let rabin = FeatureRabin::new(POLYNOMIAL);
    let all = expected(transforms, &scalar::rabin_fingerprints(POLYNOMIAL, chunk));
    let parts: Vec<(usize, Option<Vec<u32>>)> = [1, 12, 24, 64]
        .map(|parts| (parts, scalar::rabin_maxima(POLYNOMIAL, chunk, parts)))
        .into();
    for isa in Isa::available() {
        for windows in SubWindows::ALL {
            let share = (windows.hash_highest() >> rate_bits).saturating_add(1);
            let boundary = windows.hash_highest().saturating_sub(share);
            let samples = scalar::swpr_samples(windows, boundary, chunk);
            let found = given(transforms, |minima| {
                swpr::minima(isa, (windows, boundary), transforms, chunk, minima)
            });
            let context = (isa, windows, chunk.len(), rate_bits);
            assert_eq!(found, expected(transforms, &samples), "{context:?}");
        }
        for (hash_bits, shift) in [(32, 0), (32, 13), (64, 30)] {
            let mask = ((1 << rate_bits) - 1) << shift;
            let samples = scalar::gear_samples(&table, hash_bits, mask, chunk);
            let gear = SampledGear::new(&table, hash_bits, mask);
            let found = given(transforms, |minima| {
                gear.minima(isa, transforms, chunk, minima)
            });
            let context = (isa, hash_bits, shift, chunk.len(), rate_bits);
            assert_eq!(found, expected(transforms, &samples), "{context:?}");
        }
        let found = given(transforms, |minima| {
            rabin.minima(isa, transforms, chunk, minima)
        });
        assert_eq!(found, all, "{isa} {}", chunk.len());
        for (parts, expected) in &parts {
            let mut maxima = vec![0; *parts];
            let found = rabin
                .maxima(isa, chunk, &mut maxima)
                .then(|| maxima.clone());
            assert_eq!(&found, expected, "{isa} {parts} {}", chunk.len());
        }
    }
}

#[test]
fn specification_by_hand() {
    let mut window = [0; WINDOW_BYTES];
    window[31] = 1;
    window[28] = 2;
    window[27] = 3;
    // The sub-window before the last is 3, shifted by 4 bits.
    let hash = scalar::sub_window_hash(SubWindows::Four, &window);
    assert_eq!(hash, 0x0200_0001 + 0x30);
    // [3] [2 0] [0 1], from the last back.
    let hash = scalar::sub_window_hash(SubWindows::Two, &window);
    assert_eq!(hash, 1 + (0x200 << 4) + (3 << 8));
    // Only the last two of eight bytes are left in 16 bits.
    assert_eq!(scalar::sub_window_hash(SubWindows::Eight, &window), 1);
    // The first byte of a window: shifted by 28 bits and 24 more it has left 32 bits, the last byte
    // of its sub-window has not.
    let mut window = [0; WINDOW_BYTES];
    window[0] = 0xff;
    assert_eq!(scalar::sub_window_hash(SubWindows::Four, &window), 0);
    window[3] = 0x1f;
    assert_eq!(
        scalar::sub_window_hash(SubWindows::Four, &window),
        0xf000_0000
    );
    assert_eq!(scalar::rabin_fingerprint(POLYNOMIAL, &[1, 2]), 0x102);
    assert_eq!(
        scalar::rabin_fingerprint(POLYNOMIAL, &[1, 0, 0, 0, 0]),
        POLYNOMIAL
    );
    assert_eq!(fold(0x0000_0003_0000_0005), 6);
    let transforms = Transforms::new(&[(1, 0), (3, 1), (u32::MAX, 0)]);
    assert_eq!(scalar::minima(&transforms, &[5, 2]), [2, 7, u32::MAX - 4]);
    assert_eq!(scalar::minima(&transforms, &[]), [u32::MAX; 3]);
}

#[test]
fn every_short_length() {
    let data = random(5, 1200);
    let transforms = transforms(3, 12);
    for length in 0..700 {
        check(&data[..length], &transforms, 4);
    }
}

/// All ones are sampled everywhere, zeros by no bound: collections overflow, or stay empty.
#[test]
fn everything_and_nothing_counts() {
    let transforms = transforms(4, 12);
    for byte in [0, 0xff] {
        for length in [31, 32, 33, 63, 64, 5000] {
            check(&vec![byte; length], &transforms, 7);
        }
    }
    check(&random(1, 20_000), &transforms, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_level_gives_the_same(
        seed: u64,
        count in 1usize..=64,
        rate_bits in 1u32..10,
        symbols in prop::sample::select(vec![1u8, 2, 16, 255]),
        start in 0usize..70,
        length in 0usize..9000,
    ) {
        let data = random(seed, start + length);
        let data: Vec<u8> = data.iter().map(|byte| !(byte % symbols)).collect();
        check(&data[start..], &transforms(seed, count), rate_bits);
    }

    #[test]
    fn transforms_are_those_of_the_specification(
        seed: u64,
        count in 1usize..=64,
        length in 0usize..200,
    ) {
        let transforms = transforms(seed, count);
        let values: Vec<u32> = numbers(!seed).take(length).map(|number| number as u32).collect();
        for isa in Isa::available() {
            let mut minima = vec![u32::MAX; count];
            let (first, second) = values.split_at(length / 3);
            transforms.apply(isa, first, &mut minima);
            transforms.apply(isa, second, &mut minima);
            prop_assert_eq!(&minima, &scalar::minima(&transforms, &values));
        }
    }
}

//! Every form of `shield` beside its specification, and the specification beside FIPS 197 and its own claims.

use super::{Masks, Shield, WINDOW_BYTES, scalar};
use crate::isa::Isa;
use proptest::prelude::*;

fn secrets(seed: u64) -> ([u128; 8], [u8; 16]) {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        u128::from(mixed ^ mixed >> 31)
    };
    let constants = std::array::from_fn(|_| random() | random() << 64);
    (constants, (random() | random() << 64).to_le_bytes())
}

/// FIPS 197, appendices A.1, B and C.1.
#[test]
fn the_cipher_is_aes_128() {
    let number = |text: &str| {
        u128::from_str_radix(text, 16)
            .expect("digits")
            .to_be_bytes()
    };
    let keys = scalar::round_keys(&number("2b7e151628aed2a6abf7158809cf4f3c"));
    assert_eq!(keys[1], number("a0fafe1788542cb123a339392a6c7605"));
    assert_eq!(keys[10], number("d014f9a8c9ee2589e13f0cc8b6630ca6"));
    let text = scalar::encrypt(&keys, number("3243f6a8885a308d313198a2e0370734"));
    assert_eq!(text, number("3925841d02dc09fbdc118597196a0b32"));
    let keys = scalar::round_keys(&number("000102030405060708090a0b0c0d0e0f"));
    let text = scalar::encrypt(&keys, number("00112233445566778899aabbccddeeff"));
    assert_eq!(text, number("69c4e0d86a7b0430d8cdb78070b4c55a"));
}

/// The coefficient of x^e is bit e / 16 of byte e mod 16.
fn stored(polynomial: u128) -> u128 {
    (0..128)
        .filter(|e| polynomial >> e & 1 == 1)
        .fold(0, |number, e| number | 1 << (8 * (e % 16) + e / 16))
}

#[test]
fn times_x_is_the_product_in_the_field_of_gcm() {
    let mut polynomial = 0x0123_4567_89ab_cdef_0fed_cba9_8765_4321u128;
    for _ in 0..1000 {
        let product = polynomial << 1 ^ if polynomial >> 127 == 1 { 0x87 } else { 0 };
        assert_eq!(scalar::times_x(stored(polynomial)), stored(product));
        polynomial = product;
    }
}

/// x^(2^128) = x and x^(2^64) − x has no divisor in common with the modulus (Rabin 1980): it is
/// irreducible, on which the bound of the hash rests.
#[test]
fn the_modulus_is_irreducible() {
    let product = |mut left: u128, right: u128| {
        let mut sum = 0;
        for bit in 0..128 {
            if right >> bit & 1 == 1 {
                sum ^= left;
            }
            left = left << 1 ^ if left >> 127 == 1 { 0x87 } else { 0 };
        }
        sum
    };
    let mut power = 2;
    let mut half = 0;
    for exponent in 1..=128 {
        power = product(power, power);
        if exponent == 64 {
            half = power ^ 2;
        }
    }
    assert_eq!(power, 2);
    // In a field every number but 0 has an inverse: half^(2^128 − 1) = 1.
    let mut inverse_times = 1;
    let mut square = half;
    for _ in 0..128 {
        inverse_times = product(inverse_times, square);
        square = product(square, square);
    }
    assert_eq!(inverse_times, 1);
}

/// Every difference of one bit, at every place, changes the hash by its constant, moved: all places
/// of the window count alike, and none beyond does.
#[test]
fn every_bit_of_the_window_counts() {
    let (constants, _) = secrets(1);
    let window = [0x5a; WINDOW_BYTES];
    let hash = scalar::hash(&constants, &window);
    for place in 0..WINDOW_BYTES {
        for bit in 0..8 {
            let mut other = window;
            other[WINDOW_BYTES - 1 - place] ^= 1 << bit;
            let moved = (0..place).fold(constants[bit], |number, _| scalar::times_x(number));
            assert_eq!(scalar::hash(&constants, &other), hash ^ moved);
        }
    }
}

/// As [`scalar::find_cut`], for every position, with hashes that slide.
fn cuts((constants, key): &([u128; 8], [u8; 16]), masks: Masks, data: &[u8]) -> Vec<usize> {
    let keys = scalar::round_keys(key);
    (WINDOW_BYTES..data.len())
        .filter(|&i| {
            let hash = scalar::hash(constants, &data[i + 1 - WINDOW_BYTES..=i]);
            scalar::value(&keys, hash) & masks.at(i) == 0
        })
        .collect()
}

fn assert_finds(secrets: &([u128; 8], [u8; 16]), masks: Masks, data: &[u8]) {
    let expected = cuts(secrets, masks, data);
    let shield = Shield::new(&secrets.0, &secrets.1);
    for isa in Isa::available() {
        let mut first = WINDOW_BYTES;
        for &cut in &expected {
            assert_eq!(shield.find_cut(isa, masks, data, first), Some(cut), "{isa}");
            first = cut + 1;
        }
        assert_eq!(shield.find_cut(isa, masks, data, first), None, "{isa}");
    }
}

fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let numbers = (0..).flat_map(|n| secrets(seed.wrapping_add(n << 20)).0);
    numbers.flat_map(u128::to_le_bytes).take(length).collect()
}

#[test]
fn the_specification_finds_what_it_defines() {
    let secrets = secrets(3);
    let data = random_bytes(4, 700);
    let masks = Masks {
        strict: 0x7f,
        loose: 0xf,
        normal: 300,
    };
    let found = cuts(&secrets, masks, &data);
    assert!(found.iter().any(|&cut| cut >= 300));
    let keys = (&secrets.0, &secrets.1);
    for first in WINDOW_BYTES..=data.len() {
        let expected = found.iter().copied().find(|&cut| cut >= first);
        assert_eq!(scalar::find_cut(keys, masks, &data, first), expected);
    }
}

/// Each level, at lengths around the blocks, strips and groups of all of them, from odd places.
#[test]
fn every_level_finds_every_cut() {
    let masks = Masks {
        strict: 0x3ff,
        loose: 0x3f,
        normal: 2500,
    };
    let data = random_bytes(5, 9500);
    for length in [
        64, 65, 66, 127, 128, 200, 319, 575, 576, 577, 1087, 1088, 1089, 4159, 4160, 4161, 4223,
        8255, 8256, 8257, 9000,
    ] {
        for offset in [0, 1, 33] {
            assert_finds(
                &secrets(length as u64),
                masks,
                &data[offset..offset + length],
            );
        }
    }
}

/// Runs: the same window again and again, which is the same answer each time.
#[test]
fn runs_of_one_byte_cut_everywhere_or_nowhere() {
    let masks = Masks {
        strict: 1,
        loose: 1,
        normal: 0,
    };
    for byte in [0, 1, 0x80, 255] {
        let data = vec![byte; 1200];
        let secrets = secrets(u64::from(byte));
        let count = cuts(&secrets, masks, &data).len();
        assert!(count == 0 || count == data.len() - WINDOW_BYTES);
        assert_finds(&secrets, masks, &data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equal_to_the_specification(
        seed: u64,
        bits in 3u32..9,
        level in 0u32..3,
        normal in 0usize..6000,
        symbols in prop::sample::select(vec![1u8, 2, 3, 255]),
        length in 64usize..6000,
    ) {
        let mut data = random_bytes(seed, length);
        data.iter_mut().for_each(|byte| *byte %= symbols);
        let masks = Masks {
            strict: (1 << (bits + level)) - 1,
            loose: (1 << (bits - level)) - 1,
            normal,
        };
        assert_finds(&secrets(seed ^ 1), masks, &data);
    }
}

//! Every level against the specification.

use super::{Fold, PATTERN, ROWS, Rule, SIGNS_FEWEST, SIGNS_MOST, scalar};
use crate::isa::Isa;
use crate::marks::Marks;
use proptest::prelude::*;

/// Deterministic bytes.
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 31).to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}

const TAPS: [u32; 4] = [0x9a3c_51d7, 0x1f4b_7728, 0xe03d_9c15, 0x56b2_8a4f];

#[test]
fn a_short_period_never_cuts() {
    for (signs, period_most) in [(5, 5), (8, 10), (11, 23), (27, 23)] {
        let rule = Rule::new(signs);
        for period in 1..=period_most {
            // A one and a zero are asked of the same place of the period.
            let asked = &PATTERN[..signs];
            assert!(
                asked.iter().any(|&(ago, sign)| {
                    let other = |&(other, is_one): &(u32, bool)| {
                        is_one != sign && other.abs_diff(ago) % period == 0
                    };
                    asked.iter().any(other)
                }),
                "{signs} signs, period {period}"
            );
            for word in 0u64..1 << period.min(12) {
                let history = (0..64).fold(0, |history, bit| {
                    history | (word >> (bit % period) & 1) << bit
                });
                assert!(!rule.is_cut(history), "{signs} signs, period {period}");
            }
        }
    }
}

#[test]
fn patterns_contain_one_another() {
    for count in SIGNS_FEWEST..SIGNS_MOST {
        let (fewer, more) = (Rule::new(count), Rule::new(count + 1));
        assert_eq!(fewer.mask & more.mask, fewer.mask);
        assert_eq!(more.value & fewer.mask, fewer.value);
        assert_eq!(more.mask.count_ones() as usize, count + 1);
    }
    assert!(PATTERN.iter().all(|&(ago, _)| ago < 32));
}

#[test]
fn few_differences_of_bytes_are_not_seen() {
    let is_seen = |difference: u8| {
        ROWS.iter()
            .any(|row| (row & difference).count_ones() % 2 == 1)
    };
    let unseen: Vec<u8> = (1..=255)
        .filter(|&difference| !is_seen(difference))
        .collect();
    assert_eq!(unseen.len(), 15);
    assert!(unseen.iter().all(|difference| difference.count_ones() >= 3));
    assert!(is_seen(0xff));
    let space = b" \n\t\r";
    assert!(
        space
            .iter()
            .all(|a| space.iter().all(|b| a == b || is_seen(a ^ b)))
    );
}

#[test]
fn a_hash_knows_63_bytes() {
    let fold = Fold::new(TAPS, 15, 11);
    let mut bytes = random(1, 200);
    let rule = Rule::new(27);
    let seen = |bytes: &[u8]| scalar::hash(&fold, bytes) & rule.mask;
    let before = seen(&bytes);
    bytes[200 - 64] ^= 1;
    assert_eq!(seen(&bytes), before);
    let own = seen(&bytes[200 - 63..]);
    assert_eq!(own, before);
}

#[test]
fn every_length_start_and_alignment() {
    let data = random(7, 2500);
    let fold = Fold::new(TAPS, 8, 5);
    for isa in Isa::available() {
        for start in [0, 1, 3, 63, 64] {
            let data = &data[start..];
            for first in [64, 65, 100, 127, 128, 200, 511, 600, 1100] {
                for length in (first - 1..first + 600).chain([1990, 2047, 2048, 2300]) {
                    let data = &data[..length.min(data.len())];
                    for normal in [
                        0,
                        first,
                        first + 1,
                        first + 77,
                        first + 449,
                        5000,
                        (1 << 32) + first + 10,
                    ] {
                        assert_eq!(
                            fold.find_cut(data, first, normal, isa),
                            scalar::find_cut(&fold, data, first, normal),
                            "{isa} start {start} first {first} length {length} normal {normal}"
                        );
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn marks_are_equal_to_the_specification(
        seed: u64,
        taps: [u32; 4],
        strict in 5usize..=27,
        loose in 5usize..=9,
        first in 64usize..700,
        count in 0usize..3000,
        more in 0usize..600,
        symbols in 1u8..=255,
    ) {
        let fold = Fold::new(taps, strict.max(loose), loose);
        let data = random(seed, first + count + more);
        let data: Vec<u8> = data.into_iter().map(|byte| byte % symbols).collect();
        let marked = |mark: &dyn Fn(&mut Marks<'_>)| {
            let (mut strict, mut loose) = (vec![7; 50], vec![7; 50]);
            mark(&mut Marks::cleared(&mut strict, &mut loose, count));
            (strict, loose)
        };
        let expected = marked(&|marks| scalar::mark(&fold, &data, first, count, marks));
        for isa in Isa::available() {
            let marks = marked(&|marks| fold.mark(isa, &data, first, count, marks));
            prop_assert_eq!(&marks, &expected, "{}", isa);
        }
    }

    #[test]
    fn equal_to_the_specification(
        seed: u64,
        taps: [u32; 4],
        strict in 5usize..=27,
        loose in 5usize..=27,
        length in 0usize..9000,
        symbols in 1u8..=255,
        first in 64usize..1200,
        normal in 0usize..5000,
    ) {
        let fold = Fold::new(taps, strict.max(loose), loose.min(strict));
        let data: Vec<u8> = random(seed, length).into_iter().map(|byte| byte % symbols).collect();
        let expected = scalar::find_cut(&fold, &data, first, normal);
        for isa in Isa::available() {
            prop_assert_eq!(fold.find_cut(&data, first, normal, isa), expected, "{}", isa);
        }
    }
}

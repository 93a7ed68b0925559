//! Every form of marking beside the specification.

use super::{GearTable, Tables, mark, mark_in_lanes, planes, scalar, window_bytes};
use crate::isa::Isa;
use crate::marks::{Marks, Masks, words_for};
use proptest::prelude::*;

fn table_from(seed: u64) -> GearTable {
    let mut state = seed;
    std::array::from_fn(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb)
    })
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let words = length.div_ceil(2048) as u64;
    let tables = (0..words).flat_map(|k| table_from(seed.wrapping_mul(977) + k));
    let mut bytes: Vec<u8> = tables.flat_map(u64::to_be_bytes).collect();
    bytes.truncate(length);
    bytes
}

/// Both arrays of the positions from `first` to the end, by every form.
fn assert_all_equal(table: &GearTable, masks: Masks<u64>, data: &[u8], first: usize) {
    let count = data.len() - first;
    let run = |mark: &dyn Fn(&mut Marks<'_>)| {
        let mut arrays = [vec![!0; words_for(count)], vec![!0; words_for(count)]];
        let [strict, loose] = &mut arrays;
        mark(&mut Marks::cleared(strict, loose, count));
        arrays
    };
    let expected = run(&|marks| scalar::mark(table, masks, data, first, count, marks));
    let planes = planes(table);
    let tables = Tables {
        numbers: table,
        planes: &planes,
    };
    for isa in Isa::available() {
        let marks = run(&|marks| mark(isa, tables, masks, data, first, count, marks));
        assert_eq!(marks, expected, "{isa} {first} {count} {masks:x?}");
    }
}

const PUBLISHED: Masks<u64> = Masks {
    strict: 0x0000_d9f0_0353_0000,
    loose: 0x0000_d900_0353_0000,
    value: 0,
};

#[test]
fn every_length_and_start_near_the_edges() {
    let table = table_from(1);
    let data = noise(1, 40_000);
    let short = Masks {
        strict: 0x0000_0000_0300_0000,
        loose: 0x0000_0000_0100_0000,
        value: 0,
    };
    for masks in [short, PUBLISHED] {
        let window = window_bytes(masks);
        for length in (window - 1..window + 70)
            .chain(1000..1100)
            .chain([16_447, 16_448, 33_000])
        {
            for start in [0, 1, 63] {
                let data = &data[start..start + length];
                assert_all_equal(&table, masks, data, window - 1);
            }
        }
    }
}

/// Every sum carries, and carries through words of all ones.
#[test]
fn carries_go_all_the_way() {
    let mut table = [u64::MAX; 256];
    table[1] = 1;
    table[2] = 0xffff_ffff;
    table[3] = 0x7fff_ffff_7fff_ffff;
    table[4] = 0x8000_8000_8000_8000;
    table[5] = 0xffff;
    let data: Vec<u8> = noise(3, 5000).iter().map(|byte| byte % 6).collect();
    for bit in 0..64 {
        let masks = Masks {
            strict: 3 << bit,
            loose: 1 << bit,
            value: 0,
        };
        assert_all_equal(&table, masks, &data, 100);
    }
}

/// Where every position matches, and where none does.
#[test]
fn all_and_none() {
    let masks = Masks {
        strict: 0xffff,
        loose: 0xffff,
        value: 0x8000,
    };
    for number in [0x8000, 1] {
        assert_all_equal(&[number; 256], masks, &[7; 3000], 60);
    }
}

proptest! {
    #[test]
    fn equal_to_the_specification(
        seed: u64,
        strict in any::<u64>().prop_flat_map(|a| (Just(a), any::<u64>())),
        shift in 0u32..64,
        value_bits in 0u32..20,
        symbols in 1u16..=256,
        start in 0usize..80,
        length in 0usize..6000,
    ) {
        // About one in 16 and one in 4.
        let strict = (strict.0 & strict.1 & seed) >> shift | 1 << (63 - shift);
        let loose = strict & 0x1111_1111_1111_1111u64.rotate_left(shift);
        let masks = Masks { strict, loose, value: seed & ((1 << value_bits) - 1) };
        let data: Vec<u8> =
            noise(seed, length + 64).iter().map(|byte| (u16::from(*byte) % symbols) as u8).collect();
        let first = (window_bytes(masks).max(1) - 1 + start).min(data.len());
        assert_all_equal(&table_from(seed ^ 5), masks, &data, first);
    }

    #[test]
    fn usual_masks(
        seed: u64,
        bits in 1u32..14,
        place in prop::sample::select(vec![0u32, 16, 18, 31, 50]),
        symbols in 1u16..=256,
        length in 64usize..20_000,
    ) {
        let strict = ((1u64 << bits) - 1) << place;
        let masks = Masks { strict, loose: strict & (strict << (bits / 4)), value: 0 };
        let data: Vec<u8> =
            noise(seed, length).iter().map(|byte| (u16::from(*byte) % symbols) as u8).collect();
        assert_all_equal(&table_from(seed), masks, &data, 63);
    }
}

#[test]
fn lanes_are_the_specification_behind_any_beginning() {
    let (table, data) = (table_from(2), noise(2, 3000));
    let masks = Masks {
        strict: 0xf00_0000,
        loose: 0x300_0000,
        value: 0,
    };
    for done in [0, 1, 500, 2900] {
        let run = |from: usize, in_lanes: bool| {
            let (mut strict, mut loose) = (vec![0; 47], vec![0; 47]);
            let mut marks = Marks::cleared(&mut strict, &mut loose, 2900);
            if in_lanes {
                mark_in_lanes(&table, masks, &data, 100, from, &mut marks);
            } else {
                scalar::mark(&table, masks, &data, 100, 2900, &mut marks);
            }
            (strict, loose)
        };
        let (lanes, all) = (run(done, true), run(0, false));
        for index in 0..2900 {
            let bit = |words: &[u64]| words[index / 64] >> (index % 64) & 1;
            let expected = if index < done { 0 } else { bit(&all.1) };
            assert_eq!(bit(&lanes.1), expected, "{index}");
        }
    }
}

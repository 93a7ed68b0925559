//! The chunker beside Algorithm 2 as printed, on any parameters, tables and data.

use crate::random::{Splitmix64, any_data, random_bytes};
use crate::{algorithm2, fastcdc, lengths, unkeyed};
use chunking::{Chunker, GearTable, KeyMaterial, Parameters, Rolling, UNKEYED_GEAR_TABLE};
use proptest::prelude::*;

/// Small possible parameters, so that short data has many chunks.
fn any_parameters() -> impl Strategy<Value = Parameters> {
    (8u32..=13, 0u8..=3)
        .prop_flat_map(|(avg_bits, level)| {
            let avg_bytes = 1u32 << avg_bits;
            (
                64..avg_bytes,
                Just(avg_bytes),
                avg_bytes + 1..=avg_bytes * 9,
                Just(level),
            )
        })
        .prop_map(|(min_bytes, avg_bytes, max_bytes, level)| {
            fastcdc(min_bytes, avg_bytes, max_bytes, level)
        })
}

fn any_table() -> impl Strategy<Value = GearTable> {
    any::<Option<u64>>().prop_map(|seed| {
        let Some(seed) = seed else {
            return UNKEYED_GEAR_TABLE;
        };
        let mut numbers = Splitmix64(seed);
        std::array::from_fn(|_| numbers.next().expect("endless"))
    })
}

proptest! {
    #[test]
    fn equal_to_algorithm_2(
        parameters in any_parameters(),
        table in any_table(),
        data in any_data(),
    ) {
        let key = KeyMaterial::Table(Box::new(table));
        let chunker = Chunker::new(&parameters, key).expect("possible parameters");
        let expected = algorithm2::lengths(&parameters, &table, &data);
        prop_assert_eq!(lengths(&chunker, &data), expected);
    }

    /// Two bytes at a time (FC' of the paper), or one: the same cuts.
    #[test]
    fn rolling_is_a_matter_of_speed(parameters in any_parameters(), data in any_data()) {
        let chunker = unkeyed(&parameters);
        let expected = lengths(&chunker, &data);
        for rolling in [Rolling::OneByte, Rolling::TwoBytes] {
            let chunker = chunker.clone().with_rolling(rolling);
            prop_assert_eq!(lengths(&chunker, &data), &expected[..]);
        }
    }

    #[test]
    fn size_hints_hold(parameters in any_parameters(), data in any_data()) {
        let chunker = unkeyed(&parameters);
        let mut chunks = chunker.chunks(&data);
        loop {
            let (least, most) = chunks.size_hint();
            let left = chunks.clone().count();
            prop_assert!(least <= left && left <= most.expect("bounded"));
            if chunks.next().is_none() { break };
        }
        prop_assert_eq!(chunks.next(), None);
    }
}

#[test]
fn tiny_inputs() {
    let parameters = fastcdc(64, 256, 1024, 1);
    let chunker = unkeyed(&parameters);
    let data = random_bytes(4, 66);
    for length in 0..=66 {
        let lengths = lengths(&chunker, &data[..length]);
        let expected = algorithm2::lengths(&parameters, &UNKEYED_GEAR_TABLE, &data[..length]);
        assert_eq!(lengths, expected);
        if (1..=64).contains(&length) {
            assert_eq!(lengths, [length]);
        }
    }
    assert_eq!(chunker.cut(&[]), 0);
    assert_eq!(chunker.chunks(&[]).next(), None);
}

#[test]
fn zeros_are_cut_at_the_maximum() {
    let zeros = vec![0u8; 200_000];
    let chunker = unkeyed(&Parameters::default());
    assert_eq!(lengths(&chunker, &zeros), [65_536, 65_536, 65_536, 3_392]);
}

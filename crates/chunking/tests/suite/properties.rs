//! The chunker beside Algorithm 2 as printed, on any parameters, tables and data.

use crate::random::{Splitmix64, random_bytes};
use crate::{algorithm2, fastcdc, lengths, unkeyed};
use chunking::{Chunker, GearTable, KeyMaterial, Parameters, UNKEYED_GEAR_TABLE};
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

/// Bytes of 1 to 256 symbols, with a run of one byte somewhere.
fn any_data() -> impl Strategy<Value = Vec<u8>> {
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

    #[test]
    fn chunks_tile_the_data_within_bounds(parameters in any_parameters(), data in any_data()) {
        let chunker = unkeyed(&parameters);
        let mut chunks = chunker.chunks(&data);
        let mut end = 0;
        loop {
            let (least, most) = chunks.size_hint();
            let left = chunks.clone().count();
            prop_assert!(least <= left && left <= most.expect("bounded"));
            let Some(chunk) = chunks.next() else { break };
            prop_assert_eq!(chunk.start, end);
            prop_assert!(!chunk.is_empty() && chunk.len() <= parameters.max_bytes as usize);
            end = chunk.end;
            prop_assert!(chunk.len() >= parameters.min_bytes as usize || end == data.len());
        }
        prop_assert_eq!(end, data.len());
        prop_assert_eq!(chunks.next(), None);
    }

    /// `cut` looks at no more than `max_bytes` bytes.
    #[test]
    fn bytes_beyond_the_maximum_do_not_matter(parameters in any_parameters(), data in any_data()) {
        let chunker = unkeyed(&parameters);
        let seen = &data[..data.len().min(parameters.max_bytes as usize)];
        prop_assert_eq!(chunker.cut(&data), chunker.cut(seen));
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

/// The point of content-defined chunking: an insertion changes the chunks near it, no others.
#[test]
fn an_insertion_moves_few_cuts() {
    let chunker = unkeyed(&Parameters::default());
    let data = random_bytes(5, 1 << 20);
    let mut edited = data.clone();
    edited.splice(300_000..300_000, *b"inserted");
    let ends = |data: &[u8], shift: usize| -> Vec<usize> {
        let behind = chunker
            .chunks(data)
            .filter(|chunk| chunk.start > 400_000 + shift);
        behind.map(|chunk| chunk.end - shift).collect()
    };
    assert_eq!(ends(&data, 0), ends(&edited, 8));
}

//! The hashless methods on odd input, and their means.

use crate::{Algorithm, Chunker, KeyMaterial, OwnParameter, ParameterError, Parameters};

const HASHLESS: [Algorithm; 5] = [
    Algorithm::Ae,
    Algorithm::Ae2,
    Algorithm::Ram,
    Algorithm::Maxp,
    Algorithm::SeqCdc,
];

fn of_sizes(algorithm: Algorithm, min_bytes: u32, avg_bytes: u32, max_bytes: u32) -> Parameters {
    Parameters {
        min_bytes,
        avg_bytes,
        max_bytes,
        ..Parameters::new(algorithm)
    }
}

fn lengths(parameters: &Parameters, data: &[u8]) -> Vec<usize> {
    let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed).expect("possible parameters");
    chunker.chunks(data).map(|chunk| chunk.len()).collect()
}

/// splitmix64 from a seed.
fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    };
    (0..length.div_ceil(8))
        .flat_map(|_| next())
        .take(length)
        .collect()
}

/// The lengths tile the data, and only the last may be below min.
fn assert_bounds(parameters: &Parameters, data: &[u8]) {
    let lengths = lengths(parameters, data);
    assert_eq!(lengths.iter().sum::<usize>(), data.len(), "{parameters:?}");
    for (index, &length) in lengths.iter().enumerate() {
        assert!(length > 0 && length <= parameters.max_bytes as usize);
        let is_last = index + 1 == lengths.len();
        assert!(
            is_last || length >= parameters.min_bytes as usize,
            "{parameters:?}"
        );
    }
}

#[test]
fn odd_data_stays_within_bounds() {
    let rising: Vec<u8> = (0..20_000u32).map(|index| (index / 7) as u8).collect();
    let sawtooth: Vec<u8> = (0..20_000u32).map(|index| index as u8).collect();
    let falling: Vec<u8> = rising.iter().rev().copied().collect();
    let random = random_bytes(1, 20_000);
    for algorithm in HASHLESS {
        let tight = of_sizes(algorithm, 100, 600, 606);
        let small = of_sizes(algorithm, 1, 600, 5000);
        for parameters in [tight, small, Parameters::new(algorithm)] {
            for data in [&rising, &sawtooth, &falling, &random] {
                assert_bounds(&parameters, data);
            }
            for byte in [0, 1, 0x20, 0x7f, 0x80, 255] {
                assert_bounds(&parameters, &[byte; 20_000]);
            }
            for length in 0..620 {
                assert_bounds(&parameters, &random[..length]);
                assert_bounds(&parameters, &[7; 620][..length]);
            }
        }
    }
}

#[test]
fn no_data_no_chunk_and_less_than_min_one() {
    for algorithm in HASHLESS {
        let parameters = Parameters::new(algorithm);
        assert_eq!(lengths(&parameters, &[]), [0; 0]);
        for length in [1, 7, 8, 100, 2048] {
            assert_eq!(lengths(&parameters, &random_bytes(2, length)), [length]);
        }
    }
}

/// What each makes of runs: equal chunks, of its window or of max.
#[test]
fn runs_of_one_byte() {
    for byte in [0, 0x20, 255] {
        let data = vec![byte; 200_000];
        for (algorithm, length) in [
            (Algorithm::Ae, 4768 + 1),
            (Algorithm::Ae2, 2048 + 3576 + 1),
            (Algorithm::Ram, 7936 + 1),
            (Algorithm::Maxp, 65_536),
            (Algorithm::SeqCdc, 65_536),
        ] {
            let lengths = lengths(&Parameters::new(algorithm), &data);
            let (_, full) = lengths.split_last().expect("chunks");
            assert!(full.iter().all(|&found| found == length), "{algorithm}");
        }
    }
}

#[test]
fn an_insertion_moves_few_cuts() {
    let data = random_bytes(3, 1 << 20);
    let mut edited = data.clone();
    edited.splice(300_000..300_000, *b"inserted");
    for algorithm in HASHLESS {
        let parameters = Parameters::new(algorithm);
        let ends = |data: &[u8], shift: usize| -> Vec<usize> {
            let mut end = 0;
            let ends = lengths(&parameters, data).into_iter().map(|length| {
                end += length;
                end - shift
            });
            ends.filter(|&end| end > 500_000).collect()
        };
        assert_eq!(ends(&data, 0), ends(&edited, 8), "{algorithm}");
    }
}

#[test]
fn the_mean_on_random_data_is_about_avg() {
    let data = random_bytes(4, 16 << 20);
    for algorithm in HASHLESS {
        for kib in [4, 8, 16] {
            let parameters = of_sizes(algorithm, kib << 8, kib << 10, kib << 13);
            let mean = data.len() as f64 / lengths(&parameters, &data).len() as f64;
            let ratio = mean / f64::from(kib << 10);
            assert!((0.95..1.06).contains(&ratio), "{algorithm} {kib}: {ratio}");
        }
    }
}

#[test]
fn impossible_sizes_are_named() {
    use ParameterError::{AvgOutOfRange, MaxTooSmall, MinTooLarge, OwnImpossible};
    for (algorithm, avg_bytes, highest) in [
        (Algorithm::Ae, 256, 149),
        (Algorithm::Ae2, 300, 299),
        (Algorithm::Ram, 700, 444),
        (Algorithm::Maxp, 300, 149),
    ] {
        let at_most = of_sizes(algorithm, highest, avg_bytes, avg_bytes + 10);
        assert_eq!(at_most.validate(), Ok(()));
        let error = of_sizes(algorithm, highest + 1, avg_bytes, 2000).validate();
        assert!(
            matches!(error, Err(MinTooLarge { highest: found, .. }) if found == highest),
            "{algorithm}: {error:?}"
        );
        let error = of_sizes(algorithm, 1, avg_bytes, avg_bytes).validate();
        assert!(
            matches!(error, Err(MaxTooSmall { .. })),
            "{algorithm}: {error:?}"
        );
    }
    let error = of_sizes(Algorithm::Ram, 1, 512, 2000).validate();
    assert!(
        matches!(error, Err(AvgOutOfRange { lowest: 513, .. })),
        "{error:?}"
    );
    for (parameter, impossible, edges) in [
        (OwnParameter::SequenceBytes, [1, 9], [2, 8]),
        (OwnParameter::JumpTrigger, [0, 65_536], [1, 65_535]),
        (
            OwnParameter::JumpBytes,
            [(64 << 20) + 1, u64::MAX],
            [0, 64 << 20],
        ),
    ] {
        let with = |value| {
            let mut parameters = Parameters::new(Algorithm::SeqCdc);
            parameters.own.set(parameter, value);
            parameters
        };
        for value in impossible {
            let error = with(value).validate();
            assert!(matches!(error, Err(OwnImpossible { .. })), "{error:?}");
        }
        for value in edges {
            assert_eq!(with(value).validate(), Ok(()));
            assert_bounds(&with(value), &random_bytes(5, 200_000));
        }
    }
}

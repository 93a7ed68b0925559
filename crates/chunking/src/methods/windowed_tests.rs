//! The chunkers of a hash over a window, beside the definitions in their headers, odd data, keys
//! and possible parameters.

use super::rabin::LBFS_POLYNOMIAL;
use crate::{
    Algorithm, Chunker, KeyMaterial, OwnParameter, ParameterError, Parameters, UNKEYED_GEAR_TABLE,
    polynomial,
};
use kernels::{adler, crc32, rabin};
use proptest::prelude::*;
use rustic_cdc::{Rabin64, RollingHash64};

const WINDOWED: [Algorithm; 4] = [
    Algorithm::Rabin,
    Algorithm::RabinNc,
    Algorithm::Adler,
    Algorithm::Crc32,
];

fn sizes(algorithm: Algorithm, min_bytes: u32, avg_bytes: u32, max_bytes: u32) -> Parameters {
    Parameters {
        min_bytes,
        avg_bytes,
        max_bytes,
        ..Parameters::new(algorithm)
    }
}

fn with(mut parameters: Parameters, own: OwnParameter, value: u64) -> Parameters {
    parameters.own.set(own, value);
    parameters
}

fn chunker(parameters: &Parameters) -> Chunker {
    Chunker::new(parameters, KeyMaterial::Unkeyed).expect("possible parameters")
}

fn lengths(chunker: &Chunker, data: &[u8]) -> Vec<usize> {
    chunker.chunks(data).map(|chunk| chunk.len()).collect()
}

fn key(seed: u64) -> KeyMaterial {
    let table = UNKEYED_GEAR_TABLE.map(|number| (number ^ seed).wrapping_mul(seed | 1));
    KeyMaterial::Table(Box::new(table))
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
    };
    (0..length).map(|_| next() as u8).collect()
}

/// Whether the window that ends the bytes cuts, by the definition of the unkeyed algorithm.
fn is_cut(parameters: &Parameters, length: usize, data: &[u8]) -> bool {
    let own = |own, default| parameters.own.get(own).unwrap_or(default);
    let default = if parameters.algorithm == Algorithm::Crc32 {
        256
    } else {
        48
    };
    let size = own(OwnParameter::WindowBytes, default) as usize;
    let window = &data[length + 1 - size..=length];
    let mask = u64::from(parameters.avg_bytes) - 1;
    let polynomial = own(OwnParameter::Polynomial, LBFS_POLYNOMIAL);
    match parameters.algorithm {
        Algorithm::Rabin => rabin::scalar::fingerprint(polynomial, window) & mask == 0x78 & mask,
        Algorithm::RabinNc => {
            let normal = own(OwnParameter::NormalBytes, parameters.avg_bytes.into());
            let avg = u64::from(parameters.avg_bytes);
            let mask = if (length as u64) < normal {
                (avg << parameters.normalization) - 1
            } else {
                (avg >> parameters.normalization) - 1
            };
            rabin::scalar::fingerprint(polynomial, window) & mask == 0x78 & mask
        }
        Algorithm::Adler => {
            let table = UNKEYED_GEAR_TABLE.map(|number| number as u16);
            adler::scalar::hash(&table, window).leading_ones() >= parameters.avg_bytes.ilog2()
        }
        Algorithm::Crc32 => {
            u64::from(crc32::scalar::crc(0xedb8_8320, window)) & mask == 0x78 & mask
        }
        _ => unreachable!(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cuts_are_those_of_the_headers(
        algorithm in prop::sample::select(WINDOWED.to_vec()),
        window in prop::sample::select(vec![32u32, 48, 64, 256]),
        min_more in 0u32..200,
        avg_bits in 8u32..=10,
        level in 0u8..=3,
        seed: u64,
        symbols in 1u16..=256,
        length in 0usize..6000,
    ) {
        let mut parameters = sizes(algorithm, window + min_more, 1 << avg_bits, 4096);
        parameters = with(parameters, OwnParameter::WindowBytes, window.into());
        if algorithm == Algorithm::RabinNc {
            parameters.normalization = level;
            let normal = u64::from(window + min_more) + 1 + seed % 600;
            parameters = with(parameters, OwnParameter::NormalBytes, normal);
        }
        let mut data = noise(seed, length);
        data.iter_mut().for_each(|byte| *byte = (u16::from(*byte) % symbols) as u8);
        let chunker = chunker(&parameters);
        for chunk in chunker.chunks(&data) {
            let rest = &data[chunk.start..];
            let end = rest.len().min(4096);
            let min = parameters.min_bytes as usize;
            let expected = (min..end)
                .find(|&length| is_cut(&parameters, length, rest))
                .unwrap_or(end);
            prop_assert_eq!(chunk.len(), expected);
        }
    }

    /// What restic's rule says, with the fingerprints of rustic_cdc.
    #[test]
    fn restic_cuts_as_rustic_cdc_hashes(
        seed: u64,
        length in 0usize..20_000,
        symbols in 1u16..=256,
        min_bytes in 64u32..1000,
        avg_bits in 8u32..=11,
        polynomial in prop::sample::select(vec![0x003d_a335_8b4d_c173, 0x003a_bc9b_ff07_d9e5]),
    ) {
        let parameters = sizes(Algorithm::Restic, min_bytes, 1 << avg_bits, 4096);
        let parameters = with(parameters, OwnParameter::Polynomial, polynomial);
        let mut data = noise(seed, length);
        data.iter_mut().for_each(|byte| *byte = (u16::from(*byte) % symbols) as u8);
        let mut rabin = Rabin64::new_with_polynom(6, &polynomial);
        let mut expected = Vec::new();
        let mut rest = &data[..];
        while !rest.is_empty() {
            rabin.reset();
            let end = rest.len().min(4096);
            let length = (1..=end).find(|&length| {
                rabin.slide(rest[length - 1]);
                length >= min_bytes as usize && rabin.hash & ((1 << avg_bits) - 1) == 0
            });
            expected.push(length.unwrap_or(end));
            rest = &rest[length.unwrap_or(end)..];
        }
        prop_assert_eq!(lengths(&chunker(&parameters), &data), expected);
    }

    #[test]
    fn level_0_is_rabin_whatever_the_normal_size(
        seed: u64,
        normal in 101u64..4095,
        length in 0usize..10_000,
    ) {
        let rabin = sizes(Algorithm::Rabin, 100, 256, 4096);
        let mut normalized = sizes(Algorithm::RabinNc, 100, 256, 4096);
        normalized.normalization = 0;
        let normalized = with(normalized, OwnParameter::NormalBytes, normal);
        let data = noise(seed, length);
        prop_assert_eq!(
            lengths(&chunker(&rabin), &data),
            lengths(&chunker(&normalized), &data)
        );
    }
}

#[test]
fn odd_data() {
    for algorithm in WINDOWED.into_iter().chain([Algorithm::Restic]) {
        let chunker = chunker(&sizes(algorithm, 256, 512, 4096));
        assert_eq!(lengths(&chunker, &[]), [0; 0]);
        let data = noise(1, 300);
        for length in 1..=256 {
            assert_eq!(lengths(&chunker, &data[..length]), [length]);
        }
        let zeros = lengths(&chunker, &[0; 10_000]);
        if algorithm == Algorithm::Restic {
            assert_eq!(zeros[..2], [256, 256], "as restic does");
        } else {
            assert_eq!(zeros, [4096, 4096, 1808], "{algorithm}");
        }
    }
}

/// With the usual parameters no run of one byte is cut before the maximum.
#[test]
fn runs_of_one_byte() {
    for algorithm in WINDOWED {
        let chunker = chunker(&Parameters::new(algorithm));
        for byte in 0..=255 {
            assert_eq!(chunker.cut(&[byte; 70_000]), 65_536, "{algorithm} {byte}");
        }
    }
}

#[test]
fn a_key_decides_the_cuts_and_stays_secret() {
    let data = noise(2, 200_000);
    for algorithm in WINDOWED
        .into_iter()
        .filter(|algorithm| algorithm.info().keyed)
    {
        let parameters = sizes(algorithm, 256, 1024, 8192);
        let keyed = |seed| Chunker::new(&parameters, key(seed)).expect("possible parameters");
        let cuts = lengths(&keyed(7), &data);
        assert_eq!(cuts, lengths(&keyed(7), &data));
        assert_ne!(cuts, lengths(&keyed(8), &data), "{algorithm}");
        assert_ne!(cuts, lengths(&chunker(&parameters), &data));
        let KeyMaterial::Table(table) = key(7) else {
            unreachable!()
        };
        let shown = format!("{:?}", keyed(7));
        let secret = polynomial::from_table(&table);
        assert!(shown.contains("avg_bytes: 1024") && !shown.contains(&secret.to_string()));
        assert!(!shown.contains(&table[0].to_string()));
    }
    for algorithm in [Algorithm::Crc32, Algorithm::Restic] {
        let refused = Chunker::new(&Parameters::new(algorithm), key(1)).map(|_| ());
        assert_eq!(refused, Err(ParameterError::NotKeyed { algorithm }));
    }
}

/// A secret polynomial is used as a given one is.
#[test]
fn a_key_is_its_polynomial() {
    let data = noise(3, 100_000);
    let KeyMaterial::Table(table) = key(5) else {
        unreachable!()
    };
    let secret = polynomial::from_table(&table);
    for algorithm in [Algorithm::Rabin, Algorithm::RabinNc] {
        let parameters = Parameters::new(algorithm);
        let given = with(parameters, OwnParameter::Polynomial, secret);
        let keyed = Chunker::new(&parameters, key(5)).expect("possible parameters");
        assert_eq!(lengths(&keyed, &data), lengths(&chunker(&given), &data));
        let refused = Chunker::new(&given, key(5)).map(|_| ());
        assert_eq!(refused, Err(ParameterError::PolynomialBesideKey));
    }
}

#[test]
fn possible_and_impossible_parameters() {
    let window = |algorithm, min_bytes, window| {
        let parameters = sizes(algorithm, min_bytes, 1024, 8192);
        with(parameters, OwnParameter::WindowBytes, window).validate()
    };
    for algorithm in WINDOWED {
        assert_eq!(Parameters::new(algorithm).validate(), Ok(()));
        assert_eq!(window(algorithm, 64, 64), Ok(()));
        let lowest = if algorithm == Algorithm::Crc32 {
            256
        } else {
            48
        };
        assert_eq!(sizes(algorithm, lowest, 1024, 8192).validate(), Ok(()));
        let error = sizes(algorithm, lowest - 1, 1024, 8192).validate();
        let text = error.expect_err("the window does not fit").to_string();
        assert!(text.contains("the window of the hash"), "{text}");
        let error = window(algorithm, 63, 64).expect_err("the window does not fit");
        assert!(error.to_string().contains("at least 64"), "{error}");
        assert!(window(algorithm, 300, 40).is_err());
    }
    let polynomial = |algorithm, value| {
        with(Parameters::new(algorithm), OwnParameter::Polynomial, value).validate()
    };
    let (of_53, of_52) = (0x003d_a335_8b4d_c173, 1 << 52 | 1 << 3 | 1);
    for algorithm in [Algorithm::Rabin, Algorithm::RabinNc] {
        assert_eq!(polynomial(algorithm, of_53), Ok(()));
        assert_eq!(polynomial(algorithm, 1 << 63 | 3), Ok(()));
        for value in [0, 1, of_52, of_53 ^ 2, u64::MAX] {
            let error = polynomial(algorithm, value).expect_err("an impossible polynomial");
            assert!(error.to_string().contains("irreducible"), "{error}");
        }
    }
    assert_eq!(polynomial(Algorithm::Restic, of_53), Ok(()));
    for value in [0, 1 << 63 | 3, of_52, of_53 ^ 2] {
        assert!(polynomial(Algorithm::Restic, value).is_err());
    }
    assert!(polynomial(Algorithm::Crc32, of_53).is_err());
    assert_eq!(sizes(Algorithm::Restic, 64, 256, 257).validate(), Ok(()));
    let error = sizes(Algorithm::Restic, 63, 256, 1024).validate();
    assert!(
        error
            .expect_err("less than the window")
            .to_string()
            .contains("at least 64")
    );
}

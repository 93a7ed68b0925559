//! Impossible parameters are refused by name, possible ones at the edges are taken.

use crate::{fastcdc, sized};
use chunking::{Algorithm, Chunker, KeyMaterial, OwnParameter, ParameterError, Parameters};

#[test]
fn edges_are_possible() {
    for parameters in [
        Parameters::default(),
        fastcdc(1, 256, 257, 0),
        fastcdc(64, 256, 257, 0),
        sized(Algorithm::Fixed, 1, 10_240, 10_240),
        sized(Algorithm::Gear, 8192, 256, 8193),
        fastcdc(255, 256, 64 << 20, 3),
        fastcdc((16 << 20) - 1, 16 << 20, 64 << 20, 3),
        fastcdc(64, 16 << 20, (16 << 20) + 1, 0),
    ] {
        assert_eq!(parameters.validate(), Ok(()), "{parameters:?}");
        assert!(Chunker::new(&parameters, KeyMaterial::Unkeyed).is_ok());
    }
}

/// Each case: parameters, the error, and words that its text must have.
fn impossible() -> Vec<(Parameters, ParameterError, &'static str)> {
    use ParameterError::*;
    let avg_out_of_range = |avg_bytes| AvgOutOfRange {
        avg_bytes,
        algorithm: Algorithm::FastCdc,
        lowest: 256,
        highest: 16 << 20,
    };
    vec![
        (
            fastcdc(0, 256, 1024, 0),
            MinTooSmall {
                min_bytes: 0,
                lowest: 1,
                reason: "for an empty chunk would never end",
            },
            "at least 1",
        ),
        (
            fastcdc(64, 128, 1024, 0),
            avg_out_of_range(128),
            "avg_bytes = 128",
        ),
        (
            fastcdc(64, 32 << 20, 64 << 20, 0),
            avg_out_of_range(32 << 20),
            "to 16777216 bytes",
        ),
        (fastcdc(64, 0, 1024, 0), avg_out_of_range(0), "from 256"),
        (
            fastcdc(64, 300, 1024, 0),
            AvgNotPowerOfTwo { avg_bytes: 300 },
            "power of two",
        ),
        (
            fastcdc(256, 256, 1024, 0),
            MinNotBelowNormal {
                min_bytes: 256,
                normal_bytes: 256,
            },
            "below the normal size, 256",
        ),
        (
            fastcdc(64, 256, 256, 0),
            MaxTooSmall {
                max_bytes: 256,
                lowest: 257,
                reason: "or chunks are cut by size and not by contents",
            },
            "max_bytes = 256",
        ),
        (
            fastcdc(64, 256, (64 << 20) + 1, 0),
            MaxTooLarge {
                max_bytes: (64 << 20) + 1,
                highest: 64 << 20,
            },
            "at most 67108864",
        ),
        (
            fastcdc(64, 256, 1024, 4),
            NormalizationTooHigh { normalization: 4 },
            "normalization = 4",
        ),
        (
            fastcdc(64, 256, 1024, 255),
            NormalizationTooHigh { normalization: 255 },
            "at most 3",
        ),
    ]
}

/// The same for other algorithms and their own parameters.
fn impossible_elsewhere() -> Vec<(Parameters, ParameterError, &'static str)> {
    use ParameterError::*;
    let with_normal = |value| {
        let mut parameters = fastcdc(6144, 8192, 65_536, 2);
        parameters.own.set(OwnParameter::NormalBytes, value);
        parameters
    };
    let mut gear_with_level = sized(Algorithm::Gear, 64, 256, 1024);
    gear_with_level.normalization = 1;
    vec![
        (
            with_normal(6144),
            MinNotBelowNormal {
                min_bytes: 6144,
                normal_bytes: 6144,
            },
            "below the normal size, 6144",
        ),
        (
            with_normal(65_536),
            MaxTooSmall {
                max_bytes: 65_536,
                lowest: 65537,
                reason: "or chunks are cut by size and not by contents",
            },
            "at least 65537",
        ),
        (
            {
                let mut parameters = fastcdc(64, 16 << 20, 101, 0);
                parameters.own.set(OwnParameter::NormalBytes, 100);
                parameters
            },
            MaxTooSmall {
                max_bytes: 101,
                lowest: (16 << 20) + 1,
                reason: "or chunks are cut by size and not by contents",
            },
            "at least 16777217",
        ),
        (
            with_normal(1 << 32),
            OwnImpossible {
                parameter: OwnParameter::NormalBytes,
                value: 1 << 32,
                wanted: "between min_bytes and max_bytes",
            },
            "normal_bytes = 4294967296",
        ),
        (
            gear_with_level,
            NoNormalization {
                normalization: 1,
                algorithm: Algorithm::Gear,
            },
            "gear has no levels",
        ),
        (
            sized(Algorithm::Gear, 1024, 256, 1024),
            MaxTooSmall {
                max_bytes: 1024,
                lowest: 1025,
                reason: "or chunks are cut by size and not by contents",
            },
            "at least 1025",
        ),
    ]
}

/// And for sizes that only some can't have.
fn impossible_for_some() -> Vec<(Parameters, ParameterError, &'static str)> {
    use ParameterError::*;
    let window_fits = "or the window never fits, and chunks are cut by size and not by contents";
    vec![
        (
            sized(Algorithm::Tttd, 64, 256, 4097),
            MaxTooManyMins {
                algorithm: Algorithm::Tttd,
                min_bytes: 64,
                max_bytes: 4097,
                times: 64,
            },
            "at most 64 times",
        ),
        (
            sized(Algorithm::Maxp, 1, 256, 261),
            MaxTooSmall {
                max_bytes: 261,
                lowest: 262,
                reason: window_fits,
            },
            "at least 262",
        ),
        (
            sized(Algorithm::Ae2, 1000, 1001, 1008),
            MaxTooSmall {
                max_bytes: 1008,
                lowest: 1009,
                reason: window_fits,
            },
            "at least 1009",
        ),
        (
            sized(Algorithm::FastCdcCrateV2020, 64, 256, (16 << 20) + 2),
            MaxTooLarge {
                max_bytes: (16 << 20) + 2,
                highest: 16 << 20,
            },
            "at most 16777216",
        ),
        (
            sized(Algorithm::GearHash, 63, 256, 1024),
            MinTooSmall {
                min_bytes: 63,
                lowest: 64,
                reason: "the reach of the rolling hash",
            },
            "at least 64, the reach",
        ),
        (
            sized(Algorithm::FastCdcCrateV2020, 65, 256, 1024),
            SizesNotEven {
                algorithm: Algorithm::FastCdcCrateV2020,
                min_bytes: 65,
                avg_bytes: 256,
                max_bytes: 1024,
            },
            "65, 256, 1024",
        ),
        (
            sized(Algorithm::Fixed, 300, 256, 1024),
            MinTooLarge {
                min_bytes: 300,
                highest: 256,
                reason: "the size of every chunk",
            },
            "at most 256",
        ),
        (
            sized(Algorithm::Fixed, 1, 256, 255),
            MaxTooSmall {
                max_bytes: 255,
                lowest: 256,
                reason: "the size of every chunk",
            },
            "max_bytes = 255",
        ),
    ]
}

#[test]
fn each_impossible_parameter_is_named() {
    for (parameters, error, words) in impossible()
        .into_iter()
        .chain(impossible_elsewhere())
        .chain(impossible_for_some())
    {
        assert_eq!(parameters.validate(), Err(error));
        let refused = Chunker::new(&parameters, KeyMaterial::Unkeyed).map(|_| ());
        assert_eq!(refused, Err(error));
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn debug_shows_parameters_and_no_secret() {
    let key = KeyMaterial::Table(Box::new([0x1234_5678_9abc; 256]));
    let chunker = Chunker::new(&Parameters::default(), key).expect("default parameters");
    for text in [
        format!("{chunker:?}"),
        format!("{:?}", chunker.chunks(b"private")),
    ] {
        assert!(text.contains("avg_bytes: 8192"), "{text}");
        assert!(!text.contains(&0x1234_5678_9abc_u64.to_string()), "{text}");
        assert!(!text.contains(&b'p'.to_string()), "{text}");
    }
    let mut parameters = Parameters::new(Algorithm::Restic);
    let polynomial = 0x003d_a335_8b4d_c173;
    parameters.own.set(OwnParameter::Polynomial, polynomial);
    let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed).expect("restic's own");
    let text = format!("{chunker:?}");
    assert!(!text.contains(&polynomial.to_string()), "{text}");
}

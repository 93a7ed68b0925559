//! Impossible parameters are refused by name, possible ones at the edges are taken.

use crate::fastcdc;
use chunking::{Chunker, KeyMaterial, ParameterError, Parameters};

#[test]
fn edges_are_possible() {
    for parameters in [
        Parameters::default(),
        fastcdc(64, 256, 257, 0),
        fastcdc(255, 256, 64 << 20, 3),
        fastcdc((16 << 20) - 1, 16 << 20, 64 << 20, 3),
        fastcdc(64, 16 << 20, (16 << 20) + 1, 0),
    ] {
        assert_eq!(parameters.validate(), Ok(()), "{parameters:?}");
        assert!(Chunker::new(&parameters, KeyMaterial::Unkeyed).is_ok());
    }
}

#[test]
fn each_impossible_parameter_is_named() {
    use ParameterError::*;
    let cases = [
        (
            fastcdc(63, 256, 1024, 0),
            MinTooSmall { min_bytes: 63 },
            "min_bytes = 63",
        ),
        (
            fastcdc(0, 256, 1024, 0),
            MinTooSmall { min_bytes: 0 },
            "at least 64",
        ),
        (
            fastcdc(64, 128, 1024, 0),
            AvgOutOfRange { avg_bytes: 128 },
            "avg_bytes = 128",
        ),
        (
            fastcdc(64, 32 << 20, 64 << 20, 0),
            AvgOutOfRange {
                avg_bytes: 32 << 20,
            },
            "16777216",
        ),
        (
            fastcdc(64, 0, 1024, 0),
            AvgOutOfRange { avg_bytes: 0 },
            "from 256",
        ),
        (
            fastcdc(64, 300, 1024, 0),
            AvgNotPowerOfTwo { avg_bytes: 300 },
            "power of two",
        ),
        (
            fastcdc(256, 256, 1024, 0),
            MinNotBelowAvg {
                min_bytes: 256,
                avg_bytes: 256,
            },
            "below avg_bytes = 256",
        ),
        (
            fastcdc(64, 256, 256, 0),
            MaxNotAboveAvg {
                max_bytes: 256,
                avg_bytes: 256,
            },
            "max_bytes = 256",
        ),
        (
            fastcdc(64, 256, (64 << 20) + 1, 0),
            MaxTooLarge {
                max_bytes: (64 << 20) + 1,
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
    ];
    for (parameters, error, words) in cases {
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
}

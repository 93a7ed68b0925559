//! The golden samples in `testdata/golden/similarity/deltas`, which were made by a reference that is
//! not this code (`reference/deltas.py` there; what zstd compressed, by zstd).
//!
//! A sample is a block of lines: `case NAME`, `base HEX`, `delta HEX`, `target_bytes N`, and
//! `target HEX` or `refused`.

use std::path::Path;

use engine::similarity::delta;
use engine::similarity::prefix::PrefixDecoder;

/// Least samples of each kind: a file that was emptied is noticed.
const SAMPLES_MIN: usize = 10;

struct Sample {
    name: String,
    base: Vec<u8>,
    delta: Vec<u8>,
    target_bytes: usize,
    /// `None`: must be refused.
    target: Option<Vec<u8>>,
}

fn samples(file: &str) -> Vec<Sample> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/similarity");
    let text = std::fs::read_to_string(directory.join("deltas").join(file)).unwrap();
    let samples: Vec<_> = text.split("\n\n").map(sample).collect();
    assert!(samples.len() >= SAMPLES_MIN);
    samples
}

fn sample(block: &str) -> Sample {
    let value = |key: &str| {
        let mut lines = block
            .lines()
            .map(|line| line.split_once(' ').unwrap_or((line, "")));
        lines
            .find(|(found, _)| *found == key)
            .map(|(_, value)| value)
    };
    let bytes = |key| value(key).map(from_hex);
    let sample = Sample {
        name: value("case").unwrap().to_owned(),
        base: bytes("base").unwrap(),
        delta: bytes("delta").unwrap(),
        target_bytes: value("target_bytes").unwrap().parse().unwrap(),
        target: bytes("target"),
    };
    assert_eq!(value("refused").is_some(), sample.target.is_none());
    sample
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn check(file: &str, mut decode: impl FnMut(&Sample, &mut Vec<u8>) -> Result<(), String>) {
    for sample in samples(file) {
        let mut out = Vec::new();
        match (decode(&sample, &mut out), &sample.target) {
            (Ok(()), Some(target)) => assert!(out == *target, "{}: other bytes", sample.name),
            (Ok(()), None) => panic!("{} was not refused", sample.name),
            (Err(error), Some(_)) => panic!("{}: {error}", sample.name),
            (Err(_), None) => assert!(out.is_empty(), "{}", sample.name),
        }
    }
}

#[test]
fn golden_instruction_deltas() {
    check("instructions.txt", |sample, out| {
        delta::decode(&sample.base, &sample.delta, sample.target_bytes, out)
            .map_err(|error| error.to_string())
    });
}

#[test]
fn golden_prefix_deltas() {
    let mut decoder = PrefixDecoder::new();
    check("prefix.txt", |sample, out| {
        decoder
            .decode(&sample.base, &sample.delta, sample.target_bytes, out)
            .map_err(|error| error.to_string())
    });
}

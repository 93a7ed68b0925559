//! Golden cuts: what is stored in repositories, so they never change for a given number.
//!
//! The files under testdata/golden/chunkers come from transcriptions of docs/format/chunkers.md in
//! Python (`reference/generate.py`), not from this crate.

use crate::random::{Splitmix64, random_bytes};
use chunking::{
    ALGORITHMS, Algorithm, AlgorithmInfo, Chunker, KeyMaterial, OwnParameter, Parameters,
};
use std::path::PathBuf;

/// One case of a golden file.
struct Case {
    line: String,
    kind: String,
    is_keyed: bool,
    data: Vec<u8>,
    chunker: Chunker,
    count: usize,
    checksum: u64,
    first: Vec<usize>,
}

fn golden_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/chunkers")
}

/// The data that a golden case names (docs/format/chunkers.md, Golden data).
fn data(kind: &str, seed: u64, length: usize) -> Vec<u8> {
    match kind {
        "random" => random_bytes(seed, length),
        "symbols" => random_bytes(seed, length)
            .iter()
            .map(|byte| b"0123456789abcdef"[usize::from(byte % 16)])
            .collect(),
        "runs" => runs(seed, length),
        _ => panic!("no such data: {kind}"),
    }
}

fn runs(seed: u64, length: usize) -> Vec<u8> {
    let mut numbers = Splitmix64(seed);
    let mut out = Vec::new();
    while out.len() < length {
        let number = numbers.next().expect("endless");
        let end = out.len() + 1 + (number >> 8) as usize % 4096;
        if number >> 40 & 1 == 0 {
            out.resize(end, number as u8);
        } else {
            while out.len() < end {
                let number = numbers.next().expect("endless");
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.truncate(end);
        }
    }
    out.truncate(length);
    out
}

/// The cases of `text`, blocks of four lines.
fn parse(algorithm: Algorithm, text: &str) -> Vec<Case> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines
        .chunks(4)
        .map(|block| parse_block(algorithm, block))
        .collect()
}

fn parse_block(algorithm: Algorithm, block: &[&str]) -> Case {
    let after = |index: usize, word: &str| -> &str {
        block[index].strip_prefix(word).expect(word).trim_start()
    };
    let mut parameters = Parameters::new(algorithm);
    let (mut kind, mut seed, mut length, mut key) = ("", 0, 0, KeyMaterial::Unkeyed);
    for word in after(0, "case").split_whitespace() {
        let (name, value) = word.split_once('=').expect("name=value");
        let number = || value.parse::<u64>().expect(word);
        match name {
            "data" => kind = value,
            "seed" => seed = number(),
            "bytes" => length = number() as usize,
            "key" if value == "none" => {}
            "key" => {
                let mut numbers = Splitmix64(number());
                let table = std::array::from_fn(|_| numbers.next().expect("endless"));
                key = KeyMaterial::Table(Box::new(table));
            }
            "min" => parameters.min_bytes = number() as u32,
            "avg" => parameters.avg_bytes = number() as u32,
            "max" => parameters.max_bytes = number() as u32,
            "level" => parameters.normalization = number() as u8,
            own => {
                let own = OwnParameter::from_name(own).expect(own);
                parameters.own.set(own, number());
            }
        }
    }
    let checksum = after(2, "checksum 0x");
    Case {
        line: block[0].to_owned(),
        kind: kind.to_owned(),
        is_keyed: !matches!(key, KeyMaterial::Unkeyed),
        data: data(kind, seed, length),
        chunker: Chunker::new(&parameters, key).expect(block[0]),
        count: after(1, "count").parse().expect("a number"),
        checksum: u64::from_str_radix(checksum, 16).expect("a checksum"),
        first: after(3, "first")
            .split_whitespace()
            .map(|number| number.parse().expect("a length"))
            .collect(),
    }
}

/// FNV-1a, 64 bits, over all lengths as little-endian u32.
fn checksum(lengths: &[usize]) -> u64 {
    let bytes = lengths
        .iter()
        .flat_map(|&length| (length as u32).to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325u64, |checksum, byte| {
        (checksum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn check(info: &AlgorithmInfo) {
    let path = golden_directory().join(format!("{}.txt", info.name));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} has no golden cuts: {error}", info.name));
    let cases = parse(info.algorithm, &text);
    for kind in ["random", "symbols", "runs"] {
        assert!(cases.iter().any(|case| case.kind == kind), "{kind}");
    }
    assert_eq!(
        cases.iter().any(|case| case.is_keyed),
        info.keyed,
        "{}: a keyed case for what is keyed, none for what is not",
        info.name
    );
    for case in cases {
        let lengths: Vec<usize> = case
            .chunker
            .chunks(&case.data)
            .map(|chunk| chunk.len())
            .collect();
        assert!(
            lengths.len() > 1,
            "{}: {} is too short",
            info.name,
            case.line
        );
        let first = &lengths[..lengths.len().min(20)];
        assert_eq!(first, case.first, "{}: {}", info.name, case.line);
        assert_eq!(lengths.len(), case.count, "{}: {}", info.name, case.line);
        assert_eq!(
            checksum(&lengths),
            case.checksum,
            "{}: {}",
            info.name,
            case.line
        );
    }
}

#[test]
fn every_algorithm_cuts_as_its_golden_file_says() {
    for info in ALGORITHMS {
        check(info);
    }
}

#[test]
fn no_golden_file_is_left_over() {
    for entry in std::fs::read_dir(golden_directory()).expect("golden cuts") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("a plain name");
        if let Some(algorithm) = name.strip_suffix(".txt") {
            assert!(Algorithm::from_name(algorithm).is_some(), "{name}");
        }
    }
}

/// The choice that the paper's `return i` makes: the byte that matches begins the next chunk.
#[test]
fn the_byte_that_matches_is_not_in_the_chunk() {
    // Every byte but 9 sets bit 47, which every mask judges; after a 9 all judged bits are zero.
    let mut table = [1 << 47; 256];
    table[9] = 0;
    let key = KeyMaterial::Table(Box::new(table));
    let parameters = crate::fastcdc(64, 256, 1024, 2);
    let chunker = Chunker::new(&parameters, key).expect("possible parameters");
    let mut data = vec![1u8; 3000];
    // The first byte that is hashed: a chunk of exactly min_bytes.
    data[64] = 9;
    assert_eq!(chunker.cut(&data), 64);
    // Bytes before min_bytes are not hashed.
    data[64] = 1;
    data[63] = 9;
    assert_eq!(chunker.cut(&data), 1024);
    // A stream that ends at min_bytes is one chunk; one byte more makes the cut possible.
    data[64] = 9;
    assert_eq!(chunker.cut(&data[..64]), 64);
    assert_eq!(crate::lengths(&chunker, &data[..65]), [64, 1]);
}

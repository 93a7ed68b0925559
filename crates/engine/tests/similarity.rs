//! Features: the golden ones (testdata/golden/similarity), which come from a transcription of
//! docs/format/similarity.md in Python, and what must hold of any.

use engine::similarity::{Detection, Detector, FeatureExtractor, MaskBits, Sampling, SubWindows};
use kernels::isa::Isa;
use proptest::prelude::*;
use std::path::PathBuf;

/// The outputs of splitmix64.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let bytes = numbers(seed).flat_map(u64::to_le_bytes);
    bytes.take(length).collect()
}

/// The data that a golden case names (docs/format/chunkers.md, Golden data).
fn data(kind: &str, seed: u64, length: usize) -> Vec<u8> {
    match kind {
        "random" => random(seed, length),
        "symbols" => random(seed, length)
            .iter()
            .map(|byte| b"0123456789abcdef"[usize::from(byte % 16)])
            .collect(),
        "runs" => runs(seed, length),
        _ => panic!("no such data: {kind}"),
    }
}

fn runs(seed: u64, length: usize) -> Vec<u8> {
    let mut numbers = numbers(seed);
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

/// A case of a golden file: its line, what detects, and the data.
fn case(detector: Detector, line: &str) -> (Detection, Vec<u8>) {
    let mut detection = Detection::new(detector);
    let (mut kind, mut seed, mut length) = ("", 0, 0);
    let (mut mask, mut hash_bits) = (None, 32);
    let (mut sub_windows, mut rate_bits) = (SubWindows::Four, 7);
    for word in line.split_whitespace().skip(1) {
        let (name, value) = word.split_once('=').expect("name=value");
        let number = || value.parse::<u64>().expect(word);
        match name {
            "data" => kind = value,
            "seed" => seed = number(),
            "bytes" => length = number() as usize,
            "features" => detection.features = number() as u32,
            "tiers" => {
                let groups = value.split(',').map(|group| group.parse().expect(word));
                detection.tiers = groups.collect();
            }
            "mask" => mask = u64::from_str_radix(value.trim_start_matches("0x"), 16).ok(),
            "hash_bits" => hash_bits = number() as u8,
            "sub_windows" => {
                let mut all = SubWindows::ALL.into_iter();
                let wanted = all.find(|windows| windows.count() as u64 == number());
                sub_windows = wanted.expect(word);
            }
            "rate_bits" => rate_bits = number() as u8,
            _ => panic!("no such word: {word}"),
        }
    }
    match detector {
        Detector::Odess => {
            let mask = mask.unwrap_or(0x4003_0341);
            detection.sampling = Sampling::Mask { hash_bits, mask };
        }
        Detector::OdessPlus => {
            detection.sampling = Sampling::Boundary {
                sub_windows,
                rate_bits,
            };
        }
        _ => {}
    }
    (detection, data(kind, seed, length))
}

/// The numbers of a line, none of the word "none".
fn numbers_of(line: &str, word: &str) -> Option<Vec<u32>> {
    let words = line.strip_prefix(word).expect(word).trim();
    let number = |word| u32::from_str_radix(word, 16).expect("a number");
    (words != "none").then(|| words.split(' ').map(number).collect())
}

#[test]
fn features_are_those_of_the_golden_files() {
    for detector in Detector::ALL {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let path = directory.join(format!("../../testdata/golden/similarity/{detector}.txt"));
        let text = std::fs::read_to_string(path).expect("golden features");
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let (mut some, mut none) = (0, 0);
        for block in lines.chunks(3) {
            let (detection, chunk) = case(detector, block[0]);
            let features = numbers_of(block[1], "features");
            let expected = numbers_of(block[2], "super");
            for isa in Isa::available() {
                let mut extractor = FeatureExtractor::new(&detection, isa).expect(block[0]);
                let found = extractor.features(&chunk).map(<[u32]>::to_vec);
                assert_eq!(found, features, "{isa} {}", block[0]);
                let mut out = vec![1, 2, 3];
                let has_features = extractor.super_features(&chunk, &mut out);
                let found = has_features.then_some(out);
                assert_eq!(found, expected, "{isa} {}", block[0]);
            }
            *(if features.is_some() {
                &mut some
            } else {
                &mut none
            }) += 1;
        }
        assert!(some > 20 && none > 5, "{detector}: {some} {none}");
    }
}

/// Everything that can be detected in many ways.
fn detections() -> Vec<Detection> {
    let mut all: Vec<Detection> = Detector::ALL.map(Detection::tiered).into();
    for bits in MaskBits::ALL {
        let mut detection = Detection::new(Detector::Odess);
        detection.sampling = Sampling::Mask {
            hash_bits: 32,
            mask: bits.mask(5),
        };
        all.push(detection);
    }
    for sub_windows in SubWindows::ALL {
        let mut detection = Detection::new(Detector::OdessPlus);
        detection.sampling = Sampling::Boundary {
            sub_windows,
            rate_bits: 5,
        };
        all.push(detection);
    }
    all
}

#[test]
fn what_is_not_sampled_is_similar_to_nothing() {
    for detection in detections() {
        let mut extractor = FeatureExtractor::new(&detection, Isa::best()).expect("possible");
        let mut out = vec![9];
        for length in [0, 1, 31] {
            assert_eq!(extractor.features(&vec![7; length]), None);
            assert!(!extractor.super_features(&vec![7; length], &mut out));
            assert!(out.is_empty());
        }
        // A chunk before does not leave its features behind.
        assert!(extractor.super_features(&random(1, 60_000), &mut out));
        assert_eq!(out.len(), detection.super_features());
        assert_eq!(extractor.features(&[]), None);
        assert!(!extractor.super_features(&[], &mut out));
        assert!(out.is_empty());
    }
}

/// Of two chunks that share nine tenths most detectors see it, of unrelated ones none does.
#[test]
fn similar_chunks_share_super_features() {
    for detector in [Detector::NTransform, Detector::Odess, Detector::OdessPlus] {
        let detection = Detection::tiered(detector);
        let mut extractor = FeatureExtractor::new(&detection, Isa::best()).expect("possible");
        let (mut found, mut wrong) = (0, 0);
        for seed in 0..100 {
            let base = random(seed, 8 << 10);
            // 400 bytes replaced, 100 inserted: whatever follows is moved.
            let mut similar = base.clone();
            similar.splice(3000..3400, random(seed + 1000, 500));
            let [mut a, mut b, mut c] = [vec![], vec![], vec![]];
            assert!(extractor.super_features(&base, &mut a));
            assert!(extractor.super_features(&similar, &mut b));
            assert!(extractor.super_features(&random(seed + 2000, 8 << 10), &mut c));
            found += u32::from(a.iter().zip(&b).any(|(a, b)| a == b));
            wrong += u32::from(a.iter().any(|feature| c.contains(feature)));
        }
        assert!(found >= 97, "{detector}: {found} of 100");
        assert_eq!(wrong, 0, "{detector}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_level_and_any_alignment_give_the_same(
        seed: u64,
        start in 0usize..64,
        length in 0usize..6000,
        symbols in prop::sample::select(vec![1u8, 3, 255]),
    ) {
        let data = random(seed, start + length);
        let data: Vec<u8> = data.iter().map(|byte| byte % symbols).collect();
        let chunk = &data[start..];
        let aligned = chunk.to_vec();
        for detection in detections() {
            let mut scalar = FeatureExtractor::new(&detection, Isa::Scalar).expect("possible");
            let expected = scalar.features(&aligned).map(<[u32]>::to_vec);
            for isa in Isa::available() {
                let mut extractor = FeatureExtractor::new(&detection, isa).expect("possible");
                prop_assert_eq!(extractor.features(chunk), expected.as_deref(), "{}", isa);
            }
        }
    }
}

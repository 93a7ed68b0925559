#![allow(clippy::unwrap_used)] // A test says no by panicking.
//! Deltas of both kinds against the plain model that what is decoded is what was encoded, and
//! against the golden samples in `testdata/golden/similarity`.

#[path = "deltas/golden.rs"]
mod golden;

use engine::container::{CHUNK_BYTES_MAX, CompressionLevel};
use engine::similarity::delta::{self, DeltaEncoder, DeltaError};
use engine::similarity::prefix::{PrefixDecoder, PrefixEncoder, PrefixError};
use proptest::collection::vec;
use proptest::prelude::*;
use testkit::generate::{Edits, edited, mixed, random_bytes, text};

/// What stands in `out` before a call, and must after it.
const BEFORE: &[u8] = b"before";

/// Both coders, with the working memory of all that they coded before.
struct Codecs {
    delta: DeltaEncoder,
    prefix: Vec<PrefixEncoder>,
    prefix_decoder: PrefixDecoder,
}

impl Codecs {
    fn new() -> Self {
        let levels = [-5, 1, 3, 9].map(|level| CompressionLevel::new(level).unwrap());
        Self {
            delta: DeltaEncoder::new(),
            prefix: levels.map(PrefixEncoder::new).into(),
            prefix_decoder: PrefixDecoder::new(),
        }
    }

    /// Encodes and decodes with all coders; gives the bytes of the instruction delta.
    fn check(&mut self, base: &[u8], target: &[u8]) -> usize {
        let mut out = BEFORE.to_vec();
        assert!(self.delta.encode(base, target, usize::MAX, &mut out));
        let delta = out.split_off(BEFORE.len());
        assert_eq!(out, BEFORE);
        delta::decode(base, &delta, target.len(), &mut out).unwrap();
        assert!(out[BEFORE.len()..] == *target, "instructions");
        // Whatever was encoded before: the same bytes.
        let mut again = Vec::new();
        assert!(DeltaEncoder::new().encode(base, target, usize::MAX, &mut again));
        assert!(again == delta, "another encoder, another delta");
        for encoder in &mut self.prefix {
            let mut out = BEFORE.to_vec();
            assert!(encoder.encode(base, target, usize::MAX, &mut out));
            let delta = out.split_off(BEFORE.len());
            let decoder = &mut self.prefix_decoder;
            decoder
                .decode(base, &delta, target.len(), &mut out)
                .unwrap();
            assert!(out[BEFORE.len()..] == *target, "{encoder:?}");
        }
        delta.len()
    }
}

/// Random bytes, words, or stretches of both, zeros and copies.
fn content(kind: u8, seed: u64, bytes: usize) -> Vec<u8> {
    match kind % 3 {
        0 => random_bytes(seed, bytes),
        1 => text(seed, bytes),
        _ => mixed(seed, bytes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn edited_chunks_come_back(
        kind in 0u8..3,
        seed in any::<u64>(),
        bytes in 0usize..80_000,
        count in 0usize..20,
        bytes_max in 2usize..3000,
    ) {
        let base = content(kind, seed, bytes);
        let edits = Edits { count, bytes: 1..bytes_max, ..Edits::default() };
        let target = edited(&base, seed ^ 1, &edits);
        let mut codecs = Codecs::new();
        codecs.check(&base, &target);
        codecs.check(&target, &base);
    }

    #[test]
    fn chunks_of_few_symbols_come_back(
        base in vec(0u8..3, 0..400),
        target in vec(0u8..3, 0..400),
    ) {
        Codecs::new().check(&base, &target);
    }

    #[test]
    fn limits_hold(
        seed in any::<u64>(),
        limit in 0usize..4000,
    ) {
        let base = text(seed, 9000);
        let edits = Edits { count: 5, ..Edits::default() };
        let target = edited(&base, seed, &edits);
        let mut codecs = Codecs::new();
        let mut whole = Vec::new();
        assert!(codecs.delta.encode(&base, &target, usize::MAX, &mut whole));
        let mut out = BEFORE.to_vec();
        let fits = codecs.delta.encode(&base, &target, limit, &mut out);
        prop_assert_eq!(fits, whole.len() <= limit);
        let added = if fits { whole.as_slice() } else { &[] };
        prop_assert_eq!(out, [BEFORE, added].concat());
        for encoder in &mut codecs.prefix {
            let mut whole = Vec::new();
            assert!(encoder.encode(&base, &target, usize::MAX, &mut whole));
            for limit in [limit, whole.len() - 1] {
                let mut out = BEFORE.to_vec();
                let fits = encoder.encode(&base, &target, limit, &mut out);
                prop_assert!(!fits || out.len() - BEFORE.len() <= limit);
                prop_assert!(fits || out == BEFORE);
            }
        }
    }
}

#[test]
fn edges_come_back() {
    let noise = random_bytes(1, 70_000);
    let words = text(2, 70_000);
    let zeros = vec![0; 300_000];
    let mut dotted = zeros.clone();
    dotted[150_000] = 1;
    let sides: [&[u8]; 12] = [
        &[],
        &[0],
        &noise[..7],
        &noise[..8],
        &noise[1..9],
        &noise[..9],
        &noise,
        &noise[30_000..],
        &words,
        &words[..100],
        &zeros,
        &dotted,
    ];
    let mut codecs = Codecs::new();
    for base in sides {
        for target in sides {
            codecs.check(base, target);
        }
    }
    for length in 0..40 {
        codecs.check(&noise[..length], &noise[1..=length]);
        codecs.check(&words[..length], &noise[..length]);
    }
}

#[test]
fn similar_chunks_have_small_deltas() {
    let mut codecs = Codecs::new();
    for kind in 0..3 {
        let base = content(kind, 5, 8192);
        assert!(codecs.check(&base, &base) <= 1, "an equal chunk");
        let edits = Edits {
            count: 3,
            bytes: 1..30,
            ..Edits::default()
        };
        for seed in 0..20 {
            let target = edited(&base, seed, &edits);
            let bytes = codecs.check(&base, &target);
            assert!(bytes < 250, "content {kind}, seed {seed}: {bytes} bytes");
        }
        // A part that moved.
        let target = [&base[5000..], &base[..5000]].concat();
        assert!(codecs.check(&base, &target) < 60, "content {kind}");
    }
}

#[test]
fn the_largest_chunks_come_back_and_larger_are_refused() {
    let mut base = random_bytes(1, 16 << 20);
    let target = edited(&base, 1, &Edits::default());
    let target = &target[..target.len().min(base.len())];
    assert!(Codecs::new().check(&base, target) < 5000);
    base.push(0);
    let mut codecs = Codecs::new();
    let mut out = BEFORE.to_vec();
    for (base, target) in [(base.as_slice(), &[][..]), (&[], &base)] {
        assert!(!codecs.delta.encode(base, target, usize::MAX, &mut out));
        assert!(!codecs.prefix[1].encode(base, target, usize::MAX, &mut out));
    }
    let bytes = base.len();
    let limit = CHUNK_BYTES_MAX as usize;
    for (side, base, target_bytes) in [("base", base.as_slice(), 0), ("target", &[][..], bytes)] {
        assert_eq!(
            delta::decode(base, &[0], target_bytes, &mut out),
            Err(DeltaError::TooLong { side, bytes, limit })
        );
        assert_eq!(
            codecs
                .prefix_decoder
                .decode(base, &[0], target_bytes, &mut out),
            Err(PrefixError::TooLong { side, bytes, limit })
        );
    }
    assert_eq!(out, BEFORE);
}

#[test]
fn dictionaries_are_no_bases_of_prefix_deltas() {
    let base = [b"\x37\xa4\x30\xec".as_slice(), &text(1, 5000)].concat();
    let mut codecs = Codecs::new();
    let mut out = BEFORE.to_vec();
    assert!(!codecs.prefix[1].encode(&base, &base, usize::MAX, &mut out));
    assert_eq!(
        codecs.prefix_decoder.decode(&base, &[0], 1, &mut out),
        Err(PrefixError::DictionaryBase)
    );
    assert!(codecs.delta.encode(&base, &base, 1, &mut out));
}

#[test]
fn another_base_or_length_is_noticed_or_gives_other_bytes() {
    let base = text(1, 9000);
    let target = edited(&base, 1, &Edits::default());
    let mut delta = Vec::new();
    assert!(DeltaEncoder::new().encode(&base, &target, usize::MAX, &mut delta));
    let decoded = |base: &[u8], delta: &[u8], target_bytes| {
        let mut out = BEFORE.to_vec();
        let result = delta::decode(base, delta, target_bytes, &mut out);
        let expected_bytes = if result.is_ok() { target_bytes } else { 0 };
        assert_eq!(out.len(), BEFORE.len() + expected_bytes);
        result.map(|()| out)
    };
    assert!(matches!(
        decoded(&base[..100], &delta, target.len()),
        Err(DeltaError::OutsideBase { .. })
    ));
    let other = decoded(&text(2, 9000), &delta, target.len()).unwrap();
    assert_ne!(other[BEFORE.len()..], target);
    assert!(decoded(&base, &delta, 10).is_err());
    assert!(decoded(&base, &delta, target.len() + 9000).is_err());
    for end in 0..delta.len() {
        // Every beginning and every end of it.
        let _ = decoded(&base, &delta[..end], target.len());
        let _ = decoded(&base, &delta[end + 1..], target.len());
    }
}

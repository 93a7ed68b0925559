//! All ways store the same, and what is stored is what there was.

use super::*;
use crate::chunk::data::fill_random;
use chunking::{Algorithm, KeyMaterial, Parameters};

const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::Rabin,
    Algorithm::Adler,
    Algorithm::Gear,
    Algorithm::Fold,
];

/// Versions of a file, with zeros inside; one of a few bytes, an empty one.
fn files() -> Vec<Vec<u8>> {
    let mut first = vec![0; 1_000_000];
    fill_random(7, 0, &mut first);
    first[300_000..500_000].fill(0);
    let mut second = first.clone();
    second.splice(400..400, b"some more".iter().copied());
    second.extend_from_slice(&first[..70_000]);
    vec![first, second, b"short".to_vec(), Vec::new()]
}

fn chunker(algorithm: Algorithm) -> Chunker {
    Chunker::new(&Parameters::new(algorithm), KeyMaterial::Unkeyed).unwrap()
}

fn setup(chunker: &Chunker, unit_bytes: usize) -> Setup<'_> {
    Setup {
        chunker,
        fingerprint: FingerprintKind::Sha1,
        unit_bytes,
    }
}

fn lengths(store: &Store, file: usize) -> Vec<usize> {
    let entries = store.recipe(file).iter();
    entries.map(|entry| entry.place.bytes as usize).collect()
}

#[test]
fn the_pipeline_stores_what_the_baseline_stores() {
    let bytes = files();
    let files: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    for algorithm in ALGORITHMS {
        let chunker = chunker(algorithm);
        let baseline = run(setup(&chunker, UNIT_BYTES), Way::Baseline, &files);
        for (number, data) in files.iter().enumerate() {
            assert_eq!(baseline.store.read(number), *data, "{algorithm}");
            let expected: Vec<usize> = chunker.chunks(data).map(|chunk| chunk.len()).collect();
            assert_eq!(lengths(&baseline.store, number), expected, "{algorithm}");
        }
        // Two versions that share nearly everything.
        assert!(baseline.store.bytes_unique() < 1_100_000, "{algorithm}");
        for unit_bytes in [1, 10_000, 10_000_000] {
            let setup = setup(&chunker, unit_bytes);
            for way in [Way::Baseline, Way::Pipeline] {
                let outcome = run(setup, way, &files);
                assert_eq!(outcome.store, baseline.store, "{algorithm} {unit_bytes}");
            }
        }
    }
}

#[test]
fn p_dedupe_stores_the_chunks_of_segments_on_any_number_of_threads() {
    let bytes = files();
    let files: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    for algorithm in ALGORITHMS {
        let chunker = chunker(algorithm);
        for has_jointing in [false, true] {
            let segments = Segments::new(chunker.clone(), 128 << 10, has_jointing).unwrap();
            let mut first: Option<Store> = None;
            for (chunking, fingerprinting) in [(1, 1), (1, 3), (2, 1), (4, 4), (3, 5), (40, 2)] {
                let split = Split {
                    chunking,
                    fingerprinting,
                };
                let unit_bytes = [1, UNIT_BYTES][chunking % 2];
                let way = Way::PDedupe(&segments, split);
                let outcome = run(setup(&chunker, unit_bytes), way, &files);
                let expected = first.get_or_insert_with(|| {
                    check_segments(&segments, &outcome.store, &files);
                    run(setup(&chunker, 1), way, &files).store
                });
                assert_eq!(outcome.store, *expected, "{algorithm} {split:?}");
            }
        }
    }
}

/// The chunks of a store are those of the segments, and its files what they were.
fn check_segments(segments: &Segments, store: &Store, files: &[&[u8]]) {
    for (number, data) in files.iter().enumerate() {
        assert_eq!(store.read(number), *data);
        let (chunks, _) = segments.chunks(data);
        let expected: Vec<usize> = chunks.iter().map(|chunk| chunk.len()).collect();
        assert_eq!(lengths(store, number), expected);
    }
}

#[test]
fn other_fingerprints_tell_the_same_chunks_apart() {
    let bytes = files();
    let files: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let chunker = chunker(Algorithm::Rabin);
    let of = |fingerprint| {
        let setup = Setup {
            fingerprint,
            ..setup(&chunker, UNIT_BYTES)
        };
        run(setup, Way::Baseline, &files).store
    };
    let [sha1, blake3] = [FingerprintKind::Sha1, FingerprintKind::Blake3].map(of);
    assert_eq!(sha1.bytes_unique(), blake3.bytes_unique());
    assert_eq!(lengths(&sha1, 1), lengths(&blake3, 1));
    assert_ne!(
        sha1.recipe(0)[0].fingerprint,
        blake3.recipe(0)[0].fingerprint
    );
}

#[test]
fn sha1_is_sha1() {
    let digest = format!("{:02x?}", FingerprintKind::Sha1.of(b"abc"));
    assert!(
        digest.contains("a9, 99, 3e, 36, 47, 06, 81, 6a"),
        "{digest}"
    );
}

#[test]
fn stages_that_work_are_busy() {
    let bytes = files();
    let files: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let chunker = chunker(Algorithm::Gear);
    let segments = Segments::new(chunker.clone(), 128 << 10, true).unwrap();
    let split = Split {
        chunking: 2,
        fingerprinting: 2,
    };
    for way in [Way::Baseline, Way::Pipeline, Way::PDedupe(&segments, split)] {
        let busy = run(setup(&chunker, UNIT_BYTES), way, &files).stages;
        for seconds in [busy.chunk, busy.fingerprint, busy.index, busy.write] {
            assert!(seconds > 0.0, "{busy:?}");
        }
        assert_eq!(busy.join > 0.0, matches!(way, Way::PDedupe(..)));
    }
}

#[test]
fn threads_are_split_by_cost() {
    let of = |threads, chunking, fingerprinting| {
        let split = Split::by_cost(threads, chunking, fingerprinting);
        (split.chunking, split.fingerprinting)
    };
    assert_eq!(of(8, 1.0, 1.0), (4, 4));
    assert_eq!(of(8, 1.0, 1.7), (3, 5));
    assert_eq!(of(8, 0.01, 1.0), (1, 7));
    assert_eq!(of(8, 1.0, 0.0), (7, 1));
    for threads in [0, 1, 2] {
        assert_eq!(of(threads, 1.0, 3.0), (1, 1));
    }
}

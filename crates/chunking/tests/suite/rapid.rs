//! RapidCDC: what holds whatever the hints are, and what each criterion keeps.

use crate::collection::any_parameters;
use crate::random::{Splitmix64, any_data, random_bytes};
use crate::{lengths, sized, unkeyed};
use chunking::rapid::{
    CRITERIA, Criterion, Hint, RapidChunker, RapidCounts, RapidStream, SizeLists,
};
use chunking::{Algorithm, Chunker, Parameters};
use proptest::prelude::*;
use std::collections::HashSet;

/// The bytes themselves: a fingerprint that can't collide.
fn fingerprint(chunk: &[u8]) -> Vec<u8> {
    chunk.to_vec()
}

fn run(
    rapid: &RapidChunker,
    history: &SizeLists<Vec<u8>>,
    data: &[u8],
) -> (Vec<usize>, RapidCounts) {
    let mut lengths = Vec::new();
    let counts = RapidStream::new(rapid, history).run(data, fingerprint, |chunk| {
        lengths.push(chunk.length);
    });
    (lengths, counts)
}

/// Some changes of up to 100 bytes: put in, taken out, written over.
fn changed(data: &[u8], seed: u64, changes: usize) -> Vec<u8> {
    let mut data = data.to_vec();
    let mut numbers = Splitmix64(seed);
    let mut below = |limit: usize| numbers.next().expect("endless") as usize % limit.max(1);
    for _ in 0..changes {
        let at = below(data.len());
        let bytes = random_bytes(below(1 << 30) as u64, below(100));
        let end = (at + bytes.len()).min(data.len());
        match below(3) {
            0 => drop(data.splice(at..at, bytes)),
            1 => drop(data.drain(at..end)),
            _ => drop(data.splice(at..end, bytes)),
        }
    }
    data
}

/// The last byte of an odd end goes unjudged there.
fn is_exact(parameters: &Parameters) -> bool {
    parameters.algorithm != Algorithm::FastCdcCrateV2020
}

fn assert_possible(parameters: &Parameters, lengths: &[usize], total: usize) {
    let (min, max) = (parameters.min_bytes as usize, parameters.max_bytes as usize);
    assert_eq!(lengths.iter().sum::<usize>(), total);
    for (index, &length) in lengths.iter().enumerate() {
        assert!((1..=max).contains(&length));
        assert!(length >= min || index + 1 == lengths.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_hints_make_possible_chunks(
        parameters in any_parameters(),
        data in any_data(),
        seed: u64,
        index in 0..CRITERIA.len(),
        is_known: bool,
    ) {
        let criterion = CRITERIA[index].criterion;
        let chunker = unkeyed(&parameters);
        let rapid = RapidChunker::new(chunker.clone(), criterion);
        let mut numbers = Splitmix64(seed);
        let (mut found, mut counts) = (Vec::new(), RapidCounts::default());
        let mut start = 0;
        while start < data.len() {
            let rest = &data[start..];
            let edges = [
                0,
                1,
                parameters.min_bytes.wrapping_sub(1),
                parameters.min_bytes,
                parameters.max_bytes,
                parameters.max_bytes + 1,
                u32::MAX,
                rest.len() as u32,
                rest.len() as u32 + 1,
                chunker.cut(rest) as u32,
            ];
            let mut number = || numbers.next().expect("endless");
            let hints: Vec<Hint> = (0..number() % 6)
                .map(|_| Hint {
                    bytes: match number() % 3 {
                        0 => edges[number() as usize % edges.len()],
                        _ => (number() % (u64::from(parameters.max_bytes) + 9)) as u32,
                    },
                    marker: number() as u8,
                })
                .collect();
            let cut = rapid.cut(rest, &hints, |_, _| is_known, &mut counts);
            match cut.accepted {
                None => prop_assert_eq!(cut.length, chunker.cut(rest)),
                Some(place) => {
                    prop_assert_eq!(hints[place].bytes as usize, cut.length);
                    let judged = chunker.is_cut_at(rest, cut.length);
                    match criterion {
                        Criterion::RollingWindow => {
                            let is_forced = cut.length == rest.len()
                                || cut.length == parameters.max_bytes as usize;
                            let is_marked = rest[cut.length - 1] == hints[place].marker;
                            prop_assert!(judged && (!is_forced || is_marked));
                        }
                        Criterion::RollingWindowAndFingerprint => prop_assert!(judged && is_known),
                        Criterion::Marker => {
                            prop_assert_eq!(rest[cut.length - 1], hints[place].marker);
                        }
                        _ => {}
                    }
                }
            }
            found.push(cut.length);
            start += cut.length;
        }
        assert_possible(&parameters, &found, data.len());
        prop_assert_eq!(counts.chunks, found.len() as u64);
        prop_assert_eq!(counts.bytes_skipped + counts.bytes_sought, data.len() as u64);
        prop_assert_eq!(rapid.cut(&[], &[], |_, _| true, &mut counts).length, 0);
        prop_assert_eq!(counts.chunks, found.len() as u64);
    }

    /// Versions one after the other: the strictest criterion cuts as the chunker alone.
    #[test]
    fn versions(
        parameters in any_parameters(),
        data in any_data(),
        seeds in proptest::collection::vec(any::<u64>(), 1..5),
        index in 0..CRITERIA.len(),
    ) {
        let criterion = CRITERIA[index].criterion;
        let chunker = unkeyed(&parameters);
        let rapid = RapidChunker::new(chunker.clone(), criterion);
        let worst = rapid.clone().refusing_all();
        let (history, worst_history) = (SizeLists::new(8), SizeLists::new(1));
        let mut version = data;
        let mut is_first = true;
        for seed in seeds {
            let expected = lengths(&chunker, &version);
            let (found, counts) = run(&rapid, &history, &version);
            assert_possible(&parameters, &found, version.len());
            let is_exact = is_exact(&parameters)
                && criterion == Criterion::RollingWindowAndFingerprint;
            let has_no_duplicate = found.iter().collect::<HashSet<_>>().len() == found.len();
            if is_exact || is_first && has_no_duplicate {
                prop_assert_eq!(&found, &expected);
            }
            prop_assert_eq!(counts.chunks, found.len() as u64);
            prop_assert_eq!(counts.bytes_skipped + counts.bytes_sought, version.len() as u64);
            let (found, counts) = run(&worst, &worst_history, &version);
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(counts.bytes_skipped, 0);
            prop_assert_eq!(counts.hits, [0; RapidCounts::PLACES]);
            version = changed(&version, seed, 1 + seed as usize % 9);
            is_first = false;
        }
    }
}

fn total_of_distinct(chunker: &RapidChunker, versions: &[Vec<u8>]) -> (u64, RapidCounts) {
    let history = SizeLists::<Vec<u8>>::new(16);
    let (mut unique, mut counts) = (0, RapidCounts::default());
    for version in versions {
        let run = RapidStream::new(chunker, &history);
        counts.add(&run.run(version, fingerprint, |chunk| {
            unique += if chunk.is_duplicate {
                0
            } else {
                chunk.length as u64
            };
        }));
    }
    (unique, counts)
}

fn plain_total_of_distinct(chunker: &Chunker, versions: &[Vec<u8>]) -> u64 {
    let mut met = HashSet::new();
    let mut unique = 0;
    for version in versions {
        for chunk in chunker.chunks(version) {
            if met.insert(&version[chunk.clone()]) {
                unique += chunk.len() as u64;
            }
        }
    }
    unique
}

#[test]
fn tests_keep_the_dedup_ratio_and_hints_hit() {
    for algorithm in [Algorithm::Rabin, Algorithm::FastCdc, Algorithm::Gear] {
        let chunker = unkeyed(&sized(algorithm, 512, 1024, 1536));
        let mut versions = vec![random_bytes(8, 3 << 20)];
        for seed in 0..5 {
            let last = versions.last().expect("there is one");
            versions.push(changed(last, seed, 60));
        }
        let plain = plain_total_of_distinct(&chunker, &versions);
        for info in CRITERIA {
            let rapid = RapidChunker::new(chunker.clone(), info.criterion);
            let (unique, counts) = total_of_distinct(&rapid, &versions);
            let share = unique as f64 / plain as f64 - 1.0;
            println!(
                "{algorithm} {}: {:+.3} %, {counts:?}",
                info.name,
                share * 100.0
            );
            let most = match info.criterion {
                Criterion::FastForward => 0.1,
                Criterion::Marker => 0.02,
                Criterion::RollingWindow => 0.01,
                _ => 0.0,
            };
            assert!(share <= most, "{algorithm} {}: {share}", info.name);
            let total: usize = versions.iter().map(Vec::len).sum();
            assert!(counts.bytes_skipped > total as u64 / 2, "{counts:?}");
            assert!(counts.hits[0] > 10 * counts.hits[1]);
        }
    }
}

#[test]
fn threads_share_a_history() {
    let chunker = unkeyed(&sized(Algorithm::Rabin, 512, 1024, 1536));
    let rapid = RapidChunker::new(chunker.clone(), Criterion::RollingWindowAndFingerprint);
    let files: Vec<Vec<u8>> = (0..8).map(|file| random_bytes(file % 3, 200_000)).collect();
    let history = SizeLists::<Vec<u8>>::new(4);
    let found: Vec<_> = std::thread::scope(|scope| {
        let (rapid, history) = (&rapid, &history);
        let runs = files
            .iter()
            .map(|file| scope.spawn(move || run(rapid, history, file).0));
        let runs: Vec<_> = runs.collect();
        runs.into_iter()
            .map(|run| run.join().expect("it ran"))
            .collect()
    });
    let mut distinct = HashSet::new();
    for (file, found) in files.iter().zip(&found) {
        assert_eq!(found, &lengths(&chunker, file));
        distinct.extend(chunker.chunks(file).map(|chunk| &file[chunk]));
    }
    assert_eq!(history.count(), distinct.len());
}

#[test]
fn names_and_numbers_of_criteria_are_frozen() {
    let rows: Vec<_> = CRITERIA.iter().map(|info| (info.id, info.name)).collect();
    assert_eq!(
        rows,
        [(1, "ff"), (2, "ff+rwt"), (3, "ff+mt"), (4, "ff+rwt+fpt")]
    );
    for info in CRITERIA {
        assert_eq!(info.criterion.info(), info);
        assert_eq!(Criterion::from_name(info.name), Some(info.criterion));
        assert_eq!(Criterion::from_id(info.id), Some(info.criterion));
        assert_eq!(info.criterion.to_string(), info.name);
    }
    assert_eq!(Criterion::from_name("fpt"), None);
    assert_eq!(Criterion::from_id(0), None);
}

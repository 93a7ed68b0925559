//! RapidCDC beside its own sequential chunker: chunking speed and dedup ratio on Ni's synthetic sets
//! (Fig. 3.7 and, with `overwrite`, its other half; the worst case of Fig. 3.11).
//!
//! `cargo run --release -p onefold-lab --example rapid_speed [MIB [ROUNDS [WORD ...]]]`; 100 MiB and
//! 3 rounds unless given. Words: `fastest` for the loop of four lanes instead of the papers' byte
//! after byte; `overwrite` for edits that move nothing; `worst` to measure the worst case as well;
//! `mean` for a mask of 4 KiB, whose chunks have the mean of 8 KiB that the paper may mean by its
//! "expected average", instead of the mask of 8 KiB behind the minimum.
//!
//! Ten versions in memory, Rabin with a window of 256 bytes and 4, 8, 12 KiB, edits in the paper's
//! density: 1000 to 20000 in 500 MiB. Rounds go through all criteria in turn, sequential chunking
//! first; printed are medians over rounds of the time of the sequential chunker over that of each.
//!
//! *Chunking only* is what is timed, as in the paper: each pass runs once with real fingerprints,
//! which are kept in the order in which they are asked for, and timed passes take them from there.
//! Look-ups and size lists are inside of the time, and so are fingerprints that the fingerprint
//! test made in vain, which no later stage could use.

use chunking::rapid::{CRITERIA, CriterionInfo, RapidChunker, RapidCounts, RapidStream, SizeLists};
use chunking::{Chunker, KeyMaterial, Rolling};
use lab::dataset::edits::{EditKind, EditPlan, EditedFile, paper_parameters};
use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// As long as SHA-1's.
type Fingerprint = [u8; 20];

const VERSIONS: usize = 10;

/// Edits in 500 MiB, with the dedup ratio and the speed-up of FF in the paper (§3.4.4, inserts and
/// deletes).
const PAPER: [(usize, f64, f64); 5] = [
    (1000, 7.9, 6.1),
    (2000, 6.6, 4.8),
    (5000, 4.3, 3.1),
    (10_000, 2.8, 2.1),
    (20_000, 1.8, 1.6),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| {
        let given = arguments.get(index).map(String::as_str);
        given.unwrap_or(default).to_owned()
    };
    let base_bytes = argument(0, "100").parse::<usize>()? << 20;
    let rounds = argument(1, "3").parse::<usize>()?.max(1);
    let has_word = |word: &str| arguments.iter().skip(2).any(|given| given == word);
    let rolling = match has_word("fastest") {
        true => Rolling::Fastest,
        false => Rolling::OneByte,
    };
    let kind = match has_word("overwrite") {
        true => EditKind::Overwrite,
        false => EditKind::InsertDelete,
    };
    let mut parameters = paper_parameters();
    if has_word("mean") {
        parameters.avg_bytes = 4 << 10;
    }
    let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed)?.with_rolling(rolling);
    println!(
        "{} MiB, {VERSIONS} versions, {}, {rolling:?}, avg {}, {rounds} rounds\n",
        base_bytes >> 20,
        kind.name(),
        parameters.avg_bytes
    );
    println!(
        "edits in 500 MiB  criterion   speed-up  worst   dedup ratio (to plain)  skipped  hits 1, 2        paper: FF, ratio"
    );
    for (edits, ratio, speed_up) in PAPER {
        let plan = EditPlan {
            edits: edits * (base_bytes >> 20) / 500,
            kind,
            range_percent: 100,
        };
        let mut file = EditedFile::start(1, base_bytes, plan);
        let mut versions = vec![file.data().to_vec()];
        for _ in 1..VERSIONS {
            file.step()?;
            versions.push(file.data().to_vec());
        }
        let paper = format!("{speed_up} of {ratio}");
        let worst = has_word("worst");
        measure(&chunker, &versions, edits, rounds, worst, &paper);
    }
    Ok(())
}

fn measure(
    chunker: &Chunker,
    versions: &[Vec<u8>],
    edits: usize,
    rounds: usize,
    has_worst: bool,
    paper: &str,
) {
    let total: usize = versions.iter().map(Vec::len).sum();
    let plain = total as f64 / plain_unique_bytes(chunker, versions) as f64;
    let rapid = |info: &CriterionInfo| RapidChunker::new(chunker.clone(), info.criterion);
    let record = |rapid| Pass::record(rapid, versions);
    let mut passes: Vec<Pass> = CRITERIA.iter().map(rapid).map(record).collect();
    if has_worst {
        // FF checks nothing that could be refused.
        let worst = CRITERIA[1..].iter().map(|info| rapid(info).refusing_all());
        passes.extend(worst.map(record));
    }
    let mut sequential = Vec::new();
    let mut seconds = vec![Vec::new(); passes.len()];
    for _ in 0..rounds {
        let start = Instant::now();
        for version in versions {
            black_box(chunker.chunks(black_box(version)).count());
        }
        sequential.push(start.elapsed().as_secs_f64());
        for (pass, seconds) in passes.iter().zip(&mut seconds) {
            seconds.push(pass.replay(versions));
        }
    }
    let sequential = median(sequential);
    println!(
        "{edits:16}  {:10}  {:8.2}  {:6}  {plain:11.4}{:11}    {:6}  {:15}  {paper}",
        "plain", 1.0, "", "", "", ""
    );
    let speed_ups = seconds
        .into_iter()
        .map(|seconds| sequential / median(seconds));
    let speed_ups: Vec<f64> = speed_ups.collect();
    for (index, pass) in passes.iter().take(CRITERIA.len()).enumerate() {
        let worst = match index
            .checked_sub(1)
            .map(|it| speed_ups.get(CRITERIA.len() + it))
        {
            Some(Some(speed_up)) => format!("{speed_up:.2}"),
            _ => "-".to_owned(),
        };
        let ratio = total as f64 / pass.unique_bytes as f64;
        let skipped = pass.counts.bytes_skipped as f64 / total as f64 * 100.0;
        println!(
            "{edits:16}  {:10}  {:8.2}  {worst:>6}  {ratio:11.4} ({:+.3} %)   {skipped:5.1} %  {:?}",
            pass.rapid.criterion(),
            speed_ups[index],
            (ratio / plain - 1.0) * 100.0,
            &pass.counts.hits[..2]
        );
    }
}

/// A way to chunk all versions, and the fingerprints that it asks for.
struct Pass {
    rapid: RapidChunker,
    /// In the order of asking; `None` for those made in vain.
    asked: Vec<Option<Fingerprint>>,
    unique_bytes: u64,
    counts: RapidCounts,
}

impl Pass {
    /// Runs it with real fingerprints.
    fn record(rapid: RapidChunker, versions: &[Vec<u8>]) -> Self {
        let history = SizeLists::<Fingerprint>::new(16);
        let mut asked = Vec::new();
        let (mut unique_bytes, mut counts) = (0, RapidCounts::default());
        for version in versions {
            let mut stream = RapidStream::new(&rapid, &history);
            let mut start = 0;
            loop {
                let before = asked.len();
                let chunk = stream.next_chunk(&version[start..], |chunk| {
                    let fingerprint = fingerprint(chunk);
                    asked.push(Some(fingerprint));
                    fingerprint
                });
                let Some(chunk) = chunk else { break };
                let last = asked.len() - 1;
                asked[before..last].fill(None);
                start += chunk.length;
                unique_bytes += if chunk.is_duplicate {
                    0
                } else {
                    chunk.length as u64
                };
            }
            counts.add(stream.counts());
        }
        Self {
            rapid,
            asked,
            unique_bytes,
            counts,
        }
    }

    /// Runs it with these fingerprints; how long it takes.
    fn replay(&self, versions: &[Vec<u8>]) -> f64 {
        let start = Instant::now();
        let history = SizeLists::<Fingerprint>::new(16);
        let mut asked = self.asked.iter();
        for version in versions {
            let stream = RapidStream::new(&self.rapid, &history);
            let known = |chunk: &[u8]| {
                let asked = asked
                    .next()
                    .expect("the same chunks as when it was recorded");
                asked.unwrap_or_else(|| fingerprint(chunk))
            };
            black_box(stream.run(black_box(version), known, |chunk| {
                black_box(chunk);
            }));
        }
        start.elapsed().as_secs_f64()
    }
}

fn fingerprint(chunk: &[u8]) -> Fingerprint {
    let hash = blake3::hash(chunk);
    *hash.as_bytes().first_chunk().expect("20 of 32 bytes")
}

fn plain_unique_bytes(chunker: &Chunker, versions: &[Vec<u8>]) -> usize {
    let mut met = HashSet::new();
    let chunks = versions
        .iter()
        .flat_map(|version| chunker.chunks(version).map(|chunk| &version[chunk]));
    let new = chunks.filter(|chunk| met.insert(fingerprint(chunk)));
    new.map(<[u8]>::len).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

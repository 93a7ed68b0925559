//! What the paper measures of segments, measured here.
//!
//! *Normalized* (Fig. 9): what is saved, of what sequential chunking saves. *Missed* (Fig. 11, Table 3):
//! the difference of the two, of all bytes; its curve "Math" is Eq. 8 over the segment. *Dirty*:
//! chunks that the sequential chunker would not have made.

use chunking::segments::{JoinCounts, Segments, dirty, expected_dirty_bytes};
use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};
use std::ops::Range;

use super::system::FingerprintKind;
use super::{RANDOM, published, whole};
use crate::failure::Failure;
use crate::interrupt;
use crate::paper::dedup::{self, Dedup, Lengths};
use crate::paper::figure::{Figure, PREDICTED, SAVED, SPEED, SPEED_UP};
use crate::paper::loaded::LoadedSet;
use crate::paper::timing::{Way, alternate};
use crate::paper::{GivenSet, Plan, Results, threads};
use crate::progress::Progress;

/// The paper's approaches.
pub const BASELINE: &str = "Baseline";
/// Segments that are left as they are.
pub const WITHOUT: &str = "P-Dedupe without jointing";
/// Segments that are joined.
pub const WITH: &str = "P-Dedupe with jointing";
/// Eq. 8.
pub const MATH: &str = "Math (Eq. 8)";

/// Segments of Figs. 9, 10 and 11.
pub const SEGMENTS: [u32; 6] = [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20];
/// Segments of Tables 3, 5 and 6 (§4.3).
const TABLE_SEGMENT: u32 = 4 << 20;
/// Segments on random numbers: small ones, for borders are what is counted.
const RANDOM_SEGMENTS: [u32; 3] = [128 << 10, 256 << 10, 1 << 20];
const RANDOM_SEED: u64 = 8;
/// One stream of random numbers.
const RANDOM_FILE: usize = 32 << 20;
/// Threads for which speed is predicted.
const WIDER: [usize; 5] = [4, 8, 16, 32, 64];

/// The tables and the hashes that cut in them.
const TABLES: [(&str, Algorithm); 3] = [
    ("table3", Algorithm::Rabin),
    ("table5", Algorithm::Adler),
    ("table6", Algorithm::Gear),
];

/// The paper's sizes: 2, 8 and 64 KiB.
pub fn chunker(algorithm: Algorithm) -> Result<Chunker, Failure> {
    chunker_of(algorithm, 8 << 10)
}

/// The same with another expected size, and a least and a greatest that stand to it as those do.
pub fn chunker_of(algorithm: Algorithm, avg_bytes: u32) -> Result<Chunker, Failure> {
    let parameters = Parameters {
        min_bytes: avg_bytes / 4,
        avg_bytes,
        max_bytes: 8 * avg_bytes,
        ..Parameters::new(algorithm)
    };
    Chunker::new(&parameters, KeyMaterial::Unkeyed)
        .map_err(|error| Failure::usage(format!("{algorithm}: {error}")))
}

/// Segments of so many bytes, joined or left.
pub fn segments(chunker: &Chunker, bytes: u32, has_jointing: bool) -> Result<Segments, Failure> {
    Segments::new(chunker.clone(), bytes, has_jointing)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Chunks of files by segments, and what happened at borders.
pub fn cut(segments: &Segments, files: &[&[u8]], threads: usize) -> (Vec<Lengths>, JoinCounts) {
    let parts = threads::run(threads, 1, files.len(), |index| {
        let (chunks, counts) = segments.chunks(files[index]);
        let lengths = chunks.iter().map(|chunk| chunk.len() as u32).collect();
        (lengths, counts)
    });
    let mut all = JoinCounts::default();
    let add = |(lengths, counts): (Lengths, JoinCounts)| {
        for (sum, case) in all.cases.iter_mut().zip(counts.cases) {
            *sum += case;
        }
        all.early += counts.early;
        lengths
    };
    (parts.into_iter().map(add).collect(), all)
}

/// Runs what is wanted on one data set.
pub fn on_set(
    given: &GivenSet,
    plan: &Plan,
    fingerprint: FingerprintKind,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let set = LoadedSet::load_for(given, plan, results, progress)?;
    warn_of_short_files(&set, results);
    if plan.has("fig9") || plan.has("fig11") {
        over_segments(&set, plan, results, progress)?;
    }
    for (table, algorithm) in TABLES {
        if plan.has(table) {
            on_table(table, algorithm, &set, plan, results, progress)?;
        }
    }
    let bench = whole::Bench {
        set: &set,
        plan,
        fingerprint,
    };
    whole::on_set(bench, results, progress)
}

/// In files that are shorter than a segment there are no borders.
fn warn_of_short_files(set: &LoadedSet, results: &mut Results) {
    let files = set.files();
    let long = files
        .iter()
        .filter(|file| file.len() > TABLE_SEGMENT as usize);
    if long.count() == 0 {
        results.notes.push(format!(
            "{}: no file is longer than a segment of 4 MiB: segments can't differ from sequential chunking there",
            set.name
        ));
    }
}

/// Figs. 9 and 11.
fn over_segments(
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = set.files();
    let chunker = chunker(Algorithm::Rabin)?;
    progress.expect(set.bytes() * (1 + 2 * SEGMENTS.len() as u64));
    let sequential = Dedup::of(
        &files,
        &dedup::cut(&chunker, &files, plan.threads),
        plan.threads,
    );
    progress.advance(set.bytes(), "sequential");
    for bytes in SEGMENTS {
        let mut saved = [0.0; 2];
        for (saved, has_jointing) in saved.iter_mut().zip([false, true]) {
            interrupt::check()?;
            let (cuts, _) = cut(
                &segments(&chunker, bytes, has_jointing)?,
                &files,
                plan.threads,
            );
            *saved = Dedup::of(&files, &cuts, plan.threads).saved_percent();
            progress.advance(set.bytes(), "segments");
        }
        let all = sequential.saved_percent();
        let mut add = |experiment, approach: &str, metric, ours: f64| {
            if plan.has(experiment) {
                let figure = Figure::new(experiment, &set.name, approach, metric);
                results
                    .figures
                    .push(figure.at(f64::from(bytes)).with(ours, None));
            }
        };
        for (approach, saved) in [WITHOUT, WITH].into_iter().zip(saved) {
            let normalized = 100.0 * saved / all.max(f64::MIN_POSITIVE);
            add("fig9", approach, "normalized_ratio_percent", normalized);
        }
        add("fig11", WITH, "missed_percent", all - saved[1]);
        let parameters = chunker.parameters();
        let math = expected_dirty_bytes(parameters.min_bytes, parameters.avg_bytes);
        add(
            "fig11",
            MATH,
            "missed_percent",
            100.0 * math / f64::from(bytes),
        );
    }
    Ok(())
}

/// Tables 3, 5 and 6.
fn on_table(
    table: &'static str,
    algorithm: Algorithm,
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = set.files();
    let chunker = chunker(algorithm)?;
    let without = segments(&chunker, TABLE_SEGMENT, false)?;
    let with = segments(&chunker, TABLE_SEGMENT, true)?;
    let sequential = dedup::cut(&chunker, &files, plan.threads);
    let (joined, _) = cut(&with, &files, plan.threads);
    let (left, _) = cut(&without, &files, plan.threads);
    let saved = |cuts: &[Lengths]| Dedup::of(&files, cuts, plan.threads).saved_percent();
    let [baseline, without_saved, with_saved] = [saved(&sequential), saved(&left), saved(&joined)];
    let paper = match table {
        "table3" => published::table3(&set.name).map(|row| [row[0], row[1], row[2]]),
        _ => published::other_hashes(table, &set.name).map(|row| [row[0], f64::NAN, row[1]]),
    };
    let printed = |column: usize| {
        paper
            .map(|row| row[column])
            .filter(|percent| !percent.is_nan())
    };
    let mut add = |approach: &str, metric, ours, paper| {
        let figure = Figure::new(table, &set.name, approach, metric);
        results.figures.push(figure.with(ours, paper));
    };
    let rows = [
        (BASELINE, baseline, printed(0)),
        (WITHOUT, without_saved, printed(1)),
        (WITH, with_saved, printed(2)),
    ];
    for (approach, saved, paper) in rows {
        add(approach, SAVED, saved, paper);
    }
    let missed = published::table3(&set.name).filter(|_| table == "table3");
    add(
        WITH,
        "missed_percent",
        baseline - with_saved,
        missed.map(|row| row[3]),
    );
    let dirty = dirty_bytes(&sequential, &joined);
    let dirty_percent = 100.0 * dirty as f64 / set.bytes() as f64;
    add(WITH, "dirty_percent", dirty_percent, None);
    speeds(table, &chunker, &with, set, plan, results, progress)
}

fn ranges(lengths: &Lengths) -> Vec<Range<usize>> {
    let mut start = 0;
    let range = |&length: &u32| {
        start += length as usize;
        start - length as usize..start
    };
    lengths.iter().map(range).collect()
}

fn dirty_bytes(sequential: &[Lengths], cuts: &[Lengths]) -> u64 {
    let pairs = sequential.iter().zip(cuts);
    pairs
        .map(|(sequential, cuts)| dirty(&ranges(sequential), &ranges(cuts)).bytes)
        .sum()
}

/// Speeds of chunking: sequential, and by segments on one thread and more.
fn speeds(
    table: &'static str,
    chunker: &Chunker,
    segments: &Segments,
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = set.files();
    let map = |threads: usize, file: &[u8]| {
        let jobs: Vec<_> = segments.jobs(file).collect();
        threads::run(threads, 1, jobs.len(), |index| jobs[index].run())
    };
    let parts: Vec<_> = files.iter().map(|file| map(1, file)).collect();
    let reduce = || {
        for (file, cuts) in files.iter().zip(&parts) {
            std::hint::black_box(segments.join(file, cuts));
        }
    };
    let parallel = |threads: usize| {
        for file in &files {
            let cuts = map(threads, file);
            std::hint::black_box(segments.join(file, &cuts));
        }
    };
    let mut ways = vec![
        Way::new("sequential", || {
            for file in &files {
                std::hint::black_box(dedup::lengths(chunker, file));
            }
        }),
        Way::new("jointing", reduce),
        Way::new("one thread", || parallel(1)),
    ];
    if plan.threads > 1 {
        ways.push(Way::new("threads", || parallel(plan.threads)));
    }
    for count in [1, plan.threads] {
        ways.push(Way::new(threads::COMPUTING, move || {
            threads::compute(count);
        }));
    }
    let seconds = alternate(plan.runs, set.bytes(), &mut ways, progress)?;
    drop(ways);
    let jobs: Vec<usize> = parts.iter().map(Vec::len).collect();
    let mut add = |approach: &str, metric, ours| {
        let figure = Figure::new(table, &set.name, approach, metric);
        results.figures.push(figure.with(ours, None));
    };
    add(BASELINE, SPEED, set.bytes() as f64 / seconds[0]);
    let mut counts = vec![1];
    if plan.threads > 1 {
        counts.push(plan.threads);
        if let [.., one, all] = seconds[..] {
            let approach = crate::units::counted(plan.threads as u64, "thread", "threads");
            let approach = format!("{}, {approach}", threads::COMPUTING);
            add(&approach, SPEED_UP, plan.threads as f64 * one / all);
        }
    }
    for (threads, seconds_of) in counts.iter().zip(&seconds[2..]) {
        let approach = with_threads(*threads);
        add(&approach, SPEED, set.bytes() as f64 / seconds_of);
        add(&approach, SPEED_UP, seconds[0] / seconds_of);
    }
    for threads in WIDER {
        let map_seconds = (seconds[2] - seconds[1]).max(0.0);
        let wider = threads::one_file_seconds(map_seconds, seconds[1], &jobs, 1, threads);
        add(&with_threads(threads), PREDICTED, seconds[0] / wider);
    }
    Ok(())
}

fn with_threads(threads: usize) -> String {
    let threads = crate::units::counted(threads as u64, "thread", "threads");
    format!("{WITH}, {threads}")
}

/// Eq. 8 on random numbers.
pub fn equation_8(
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let set = LoadedSet::random(RANDOM, RANDOM_SEED, plan.synthetic_bytes, RANDOM_FILE)?;
    results.sets.push(set.measured());
    let files = set.files();
    let chunker = chunker(Algorithm::Rabin)?;
    progress.expect(set.bytes() * (1 + RANDOM_SEGMENTS.len() as u64));
    let sequential = dedup::cut(&chunker, &files, plan.threads);
    progress.advance(set.bytes(), "sequential");
    for bytes in RANDOM_SEGMENTS {
        interrupt::check()?;
        let joining = segments(&chunker, bytes, true)?;
        let (cuts, counts) = cut(&joining, &files, plan.threads);
        progress.advance(set.bytes(), "segments");
        let borders = counts.borders();
        let mut add = |approach: &str, metric, ours, paper| {
            let figure = Figure::new("eq8", RANDOM, approach, metric);
            results
                .figures
                .push(figure.at(f64::from(bytes)).with(ours, paper));
        };
        if borders == 0 {
            continue;
        }
        let dirty = dirty_bytes(&sequential, &cuts) as f64 / borders as f64;
        let metric = "dirty_bytes_per_segment";
        add(WITH, metric, dirty, Some(published::EQUATION_8_BYTES));
        add(
            MATH,
            metric,
            expected_dirty_bytes(2 << 10, 8 << 10),
            Some(published::EQUATION_8_BYTES),
        );
        for (index, case) in counts.cases.iter().enumerate() {
            let share = 100.0 * *case as f64 / borders as f64;
            let approach = format!("case {}", index + 1);
            add(
                &approach,
                "borders_percent",
                share,
                published::CASES_PERCENT[index],
            );
        }
    }
    Ok(())
}

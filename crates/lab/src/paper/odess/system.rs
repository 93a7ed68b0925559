//! Fig. 23: features, throughput and compression of a whole system (Fig. 15), with each detector.
//!
//! One thread does what the paper's five stages do, chunk by chunk: cutting (FastCDC), SHA-1, looking
//! the fingerprint up, and for what is new super-features, a base, a delta, and writing into memory.
//! Reading is left out: files lie in memory. *Pipelined* is computed: the speed of the slowest stage,
//! where features, look-ups and deltas belong to deduplication, as in the paper.

use std::collections::HashSet;
use std::time::Instant;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use chunking::Chunker;
use engine::container::CompressionLevel;
use engine::similarity::{Detection, Detector};

use super::detections;
use super::prototype::{chunker, feature_seconds};
use super::published;
use crate::chunk::sizes::median;
use crate::interrupt;
use crate::paper::figure::{FEATURE_SPEED, Figure, GLOBAL_RATIO, PIPELINED, RATIO, SYSTEM_SPEED};
use crate::paper::timing::thread_seconds;
use crate::paper::{Plan, Results};
use crate::progress::Progress;
use crate::similar::chunks::UniqueChunks;
use crate::similar::coder::{Codec, Coder};
use crate::similar::reduction::{Reducer, Reduction, Rule};

/// Seconds of the stages of one run.
#[derive(Debug, Clone, Copy, Default)]
struct Stages {
    chunking: f64,
    hashing: f64,
    /// Looking fingerprints up.
    dedup: f64,
    /// Super-features.
    features: f64,
    /// Finding bases and encoding.
    delta: f64,
    writing: f64,
}

impl Stages {
    /// What the slowest stage of the pipeline takes.
    fn slowest(&self) -> f64 {
        let deduplicating = self.dedup + self.features + self.delta;
        [self.chunking, self.hashing, deduplicating, self.writing]
            .into_iter()
            .fold(0.0, f64::max)
    }

    /// The same without the share of the time in which the thread did not run.
    fn scaled(self, scale: f64) -> Self {
        Self {
            chunking: self.chunking * scale,
            hashing: self.hashing * scale,
            dedup: self.dedup * scale,
            features: self.features * scale,
            delta: self.delta * scale,
            writing: self.writing * scale,
        }
    }

    /// Names and seconds.
    fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("chunking", self.chunking),
            ("SHA-1", self.hashing),
            ("fingerprint look-up", self.dedup),
            ("features", self.features),
            ("base and delta", self.delta),
            ("writing", self.writing),
        ]
    }
}

/// One run of the system.
struct Run {
    seconds: f64,
    stages: Stages,
    reduction: Reduction,
}

/// The experiment on a data set.
///
/// # Errors
/// When somebody asked for a stop.
pub fn run(
    name: &str,
    files: &[&[u8]],
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    if !plan.has("fig23") && !plan.has("stages") {
        return Ok(());
    }
    let chunker = chunker(8 << 10)?;
    let unique = UniqueChunks::of(files, &chunker, plan.threads);
    let approaches: Vec<(String, Detection)> = Detector::ALL
        .iter()
        .map(|detector| {
            (
                detections::name(*detector).to_owned(),
                detections::standard(*detector),
            )
        })
        .collect();
    let seconds = feature_seconds(
        &unique.chunks,
        unique.bytes,
        &approaches,
        plan.runs,
        progress,
    )?;
    let place = |approach: &str, metric| Figure::new("fig23", name, approach, metric);
    let ratio =
        place("chunks of 8 KB", RATIO).with(unique.dedup_ratio(), published::dedup_ratio(name));
    results.figures.push(ratio);
    progress.expect(unique.logical_bytes * (plan.runs * approaches.len()) as u64);
    let mut runs: Vec<Vec<Run>> = approaches.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.runs {
        for ((approach, detection), runs) in approaches.iter().zip(&mut runs) {
            interrupt::check()?;
            runs.push(system(files, &chunker, detection)?);
            progress.advance(unique.logical_bytes, approach);
        }
    }
    for (((approach, _), seconds), runs) in approaches.iter().zip(seconds).zip(&runs) {
        let bytes = unique.logical_bytes as f64;
        let median_of = |of: fn(&Run) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>());
        let mut add = |metric, ours| {
            results
                .figures
                .push(place(approach, metric).with(ours, None))
        };
        add(FEATURE_SPEED, unique.bytes as f64 / seconds);
        add(SYSTEM_SPEED, bytes / median_of(|run| run.seconds));
        add(PIPELINED, bytes / median_of(|run| run.stages.slowest()));
        if let Some(run) = runs.first() {
            add(
                GLOBAL_RATIO,
                bytes / run.reduction.bytes_left().max(1) as f64,
            );
        }
    }
    if plan.has("stages") {
        let figures = stage_figures(name, &approaches, &runs, unique.logical_bytes);
        results.figures.extend(figures);
    }
    Ok(())
}

/// What stages take, for 10⁹ bytes of the stream.
fn stage_figures(
    name: &str,
    approaches: &[(String, Detection)],
    runs: &[Vec<Run>],
    bytes: u64,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for ((approach, _), runs) in approaches.iter().zip(runs) {
        let named: Vec<_> = runs.iter().map(|run| run.stages.named()).collect();
        let Some(first) = named.first() else { continue };
        for (index, (stage, _)) in first.iter().enumerate() {
            let seconds: Vec<f64> = named.iter().map(|run| run[index].1).collect();
            let figure = Figure::new(
                "stages",
                name,
                &format!("{approach}: {stage}"),
                "stage_seconds_per_gigabyte",
            );
            figures.push(figure.with(1e9 * median(&seconds) / bytes.max(1) as f64, None));
        }
    }
    figures
}

/// Everything once, in one thread.
fn system(files: &[&[u8]], chunker: &Chunker, detection: &Detection) -> anyhow::Result<Run> {
    let mut coder = Coder::new(Codec::Instructions, CompressionLevel::DEFAULT);
    let mut reducer = Reducer::new(Rule::PAPER, &mut coder);
    let mut extractor = detections::extractor(detection);
    let (mut own, mut chunks, mut written) = (Vec::new(), Vec::new(), Vec::new());
    let mut met: HashSet<[u8; 20]> = HashSet::new();
    let mut stages = Stages::default();
    let (started, clock) = (Instant::now(), thread_seconds());
    for file in files {
        interrupt::check()?;
        let mut rest = *file;
        while !rest.is_empty() {
            let clock = Instant::now();
            let (chunk, behind) = rest.split_at(chunker.cut(rest));
            rest = behind;
            let cut = Instant::now();
            let mut fingerprint = [0; 20];
            fingerprint.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, chunk).as_ref());
            let hashed = Instant::now();
            let is_new = met.insert(fingerprint);
            let looked_up = Instant::now();
            stages.chunking += (cut - clock).as_secs_f64();
            stages.hashing += (hashed - cut).as_secs_f64();
            stages.dedup += (looked_up - hashed).as_secs_f64();
            if !is_new {
                continue;
            }
            chunks.push(chunk);
            extractor.super_features(chunk, &mut own);
            let featured = Instant::now();
            let is_whole = reducer.add(&chunks, &own);
            let coded = Instant::now();
            // Deltas are written where they are made.
            if is_whole {
                written.extend_from_slice(chunk);
            }
            stages.features += (featured - looked_up).as_secs_f64();
            stages.delta += (coded - featured).as_secs_f64();
            stages.writing += coded.elapsed().as_secs_f64();
        }
    }
    let seconds = thread_seconds() - clock;
    let scale = seconds / started.elapsed().as_secs_f64().max(1e-9);
    std::hint::black_box(&written);
    Ok(Run {
        seconds,
        stages: stages.scaled(scale),
        reduction: reducer.finish(),
    })
}

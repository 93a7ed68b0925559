//! What the paper measures of whole systems, measured here: Fig. 14, the throughput of Tables 5 and 6,
//! the same with `fold`, and Eqs. 3 to 6. Figs. 10, 12 and 13 are [`sweeps`].
//!
//! Every number is a median of passes that take turns with all others of the same figure. A row for
//! nothing but computing tells how many cores were free meanwhile: threads beyond those gain nothing.

use std::cell::RefCell;

use chunking::{Algorithm, Chunker, Rolling};

use super::equations::StageTimes;
use super::experiments::{self, BASELINE, WITH, WITHOUT};
use super::system::{self, FingerprintKind, Setup, Split, StageSeconds, UNIT_BYTES};
use super::{published, sweeps};
use crate::chunk::sizes::median;
use crate::paper::figure::{Figure, PREDICTED, SAVED, SPEED_UP};
use crate::paper::loaded::LoadedSet;
use crate::paper::timing::{Way, alternate};
use crate::paper::{Plan, Results, threads};
use crate::progress::Progress;

/// A thread for each stage.
pub const PIPELINE: &str = "Pipeline";
/// The same, without units of many chunks.
pub const CHUNK_BY_CHUNK: &str = "Pipeline, a chunk at a time";
/// Speed of a whole system.
pub const THROUGHPUT: &str = "dedup_bytes_per_second";
/// How many times as fast as the baseline.
pub const GAIN: &str = "dedup_speed_up";
/// Throughput by an equation.
pub const COMPUTED: &str = "predicted_bytes_per_second";
/// What a stage takes.
pub const STAGE: &str = "stage_seconds_per_gigabyte";

/// Segments of Fig. 14 and the tables (§4.3).
const SEGMENT: u32 = 4 << 20;
/// Cores for which throughput is predicted.
const CORES: [u16; 5] = [4, 8, 16, 32, 64];
/// The paper's threads of the parallel stages together; so many show how many cores are free.
const COMPUTING_THREADS: usize = 8;

/// A chunker in a system.
pub struct Contender {
    /// What it is called beside the others.
    pub label: &'static str,
    /// What stands behind its approaches, where one experiment has two contenders.
    suffix: &'static str,
    /// The figure or table that it is in.
    pub experiment: &'static str,
    algorithm: Algorithm,
    rolling: Rolling,
    /// The paper's threads; by cost, of eight, where it has none.
    split: Option<Split>,
}

/// All of them.
pub const CONTENDERS: [Contender; 5] = [
    contender("Rabin", "fig14", Algorithm::Rabin, Some(published::SPLIT)),
    Contender {
        suffix: ", loop as printed",
        rolling: Rolling::OneByte,
        ..contender(
            "Rabin, loop as printed",
            "fig14",
            Algorithm::Rabin,
            Some(published::SPLIT),
        )
    },
    contender("Adler", "table5", Algorithm::Adler, Some(published::SPLIT)),
    contender(
        "Gear",
        "table6",
        Algorithm::Gear,
        Some(published::SPLIT_OF_GEAR),
    ),
    contender("fold", "fold", Algorithm::Fold, None),
];

const fn contender(
    label: &'static str,
    experiment: &'static str,
    algorithm: Algorithm,
    split: Option<Split>,
) -> Contender {
    Contender {
        label,
        suffix: "",
        experiment,
        algorithm,
        rolling: Rolling::Fastest,
        split,
    }
}

impl Contender {
    /// P-Dedupe with the threads of the paper.
    pub fn published_approach(&self) -> Option<String> {
        let approach = with_split(WITH, self.split?);
        Some(format!("{approach}{}", self.suffix))
    }
}

/// What was measured of a contender on a data set.
struct Measured {
    times: StageTimes,
    /// Of all stages for a byte, as P-Dedupe with jointing runs them, with all handing on.
    parallel_seconds: f64,
    baseline: f64,
    pipeline: f64,
    chunk_by_chunk: f64,
    /// Without jointing, on the first split.
    without: f64,
    /// With it, on each split.
    with: Vec<(Split, f64)>,
    free_cores: f64,
    saved_percent: f64,
}

/// A data set, and how it is measured.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The data.
    pub set: &'a LoadedSet,
    /// What is wanted.
    pub plan: &'a Plan,
    /// What tells chunks apart.
    pub fingerprint: FingerprintKind,
}

/// Runs what is wanted on one data set.
pub fn on_set(
    bench: Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let plan = bench.plan;
    if plan.has("fig10") {
        sweeps::over_segments(bench, results, progress)?;
    }
    if plan.has("fig12") {
        sweeps::ratios_over_chunks(bench, results, progress)?;
    }
    if plan.has("fig13") {
        sweeps::over_chunks(bench, results, progress)?;
    }
    let has_equations = ["stages", "eq6", "cores"].iter().any(|name| plan.has(name));
    for contender in &CONTENDERS {
        if has_equations || plan.has(contender.experiment) {
            let measured = measure(bench, contender, progress)?;
            add_throughput(bench, contender, &measured, results);
            add_stages(bench, contender, &measured, results);
            add_equations(bench, contender, &measured, results);
            add_cores(bench, contender, &measured, results);
        }
    }
    Ok(())
}

impl<'a> Bench<'a> {
    /// What all systems do alike.
    pub fn setup(self, chunker: &'a Chunker) -> Setup<'a> {
        Setup {
            chunker,
            fingerprint: self.fingerprint,
            unit_bytes: UNIT_BYTES,
        }
    }

    /// Adds a number, if its experiment is wanted.
    pub fn add(
        self,
        results: &mut Results,
        (experiment, approach): (&'static str, &str),
        x: Option<f64>,
        (metric, ours, paper): (&'static str, f64, Option<f64>),
    ) {
        if self.plan.has(experiment) {
            let mut figure = Figure::new(experiment, &self.set.name, approach, metric);
            figure.x = x;
            results.figures.push(figure.with(ours, paper));
        }
    }

    /// Adds the row that tells how many cores were free.
    pub fn add_free_cores(self, results: &mut Results, experiment: &'static str, free: f64) {
        let approach = computing(self.plan);
        self.add(
            results,
            (experiment, &approach),
            None,
            (SPEED_UP, free, None),
        );
    }
}

/// Threads that show how many cores there are.
fn computing_threads(plan: &Plan) -> usize {
    plan.threads.max(COMPUTING_THREADS)
}

/// What the row for nothing but computing is called.
pub fn computing(plan: &Plan) -> String {
    let count = crate::units::counted(computing_threads(plan) as u64, "thread", "threads");
    format!("{}, {count}", threads::COMPUTING)
}

/// Two ways that show how many cores are free: see [`free_cores`].
pub fn computing_ways<'a>(plan: &Plan) -> [Way<'a>; 2] {
    [1, computing_threads(plan)]
        .map(|count| Way::new(threads::COMPUTING, move || threads::compute(count)))
}

/// How many cores were free, by the times of all ways, of which the last two are those.
pub fn free_cores(plan: &Plan, seconds: &[f64]) -> f64 {
    match seconds {
        [.., one, all] => computing_threads(plan) as f64 * one / all,
        _ => f64::NAN,
    }
}

/// A way that is a system; what its stages took is kept.
pub fn way<'a>(
    name: &str,
    setup: Setup<'a>,
    how: system::Way<'a>,
    files: &'a [&'a [u8]],
    kept: &'a RefCell<Vec<StageSeconds>>,
) -> Way<'a> {
    Way::telling(name, move || {
        let outcome = system::run(setup, how, files);
        kept.borrow_mut().push(outcome.stages);
        outcome.seconds
    })
}

/// The times of stages that baselines took, for a byte.
fn stage_times(baselines: &[StageSeconds], bytes: u64, unique: u64) -> StageTimes {
    let of = |stage: fn(&StageSeconds) -> f64| {
        let seconds: Vec<f64> = baselines.iter().map(stage).collect();
        median(&seconds) / bytes.max(1) as f64
    };
    StageTimes {
        chunk: of(|it| it.chunk),
        join: of(|it| it.join),
        fingerprint: of(|it| it.fingerprint),
        index: of(|it| it.index),
        write: of(|it| it.write),
        factor: bytes as f64 / unique.max(1) as f64,
    }
}

/// What jointing takes for a byte in P-Dedupe, and all stages together. Handing on is part of it, and
/// costs less the less threads wait: for jointing the shortest is nearest to the work alone.
fn of_parallel(passes: &[StageSeconds], bytes: u64) -> (f64, f64) {
    let joins = passes.iter().map(|busy| busy.join);
    let sums: Vec<f64> = passes.iter().map(StageSeconds::sum).collect();
    let bytes = bytes.max(1) as f64;
    (
        joins.fold(f64::INFINITY, f64::min) / bytes,
        median(&sums) / bytes,
    )
}

/// All ways with one chunker.
fn measure(
    bench: Bench<'_>,
    contender: &Contender,
    progress: &mut Progress,
) -> anyhow::Result<Measured> {
    let files = bench.set.files();
    let bytes = bench.set.bytes();
    let chunker = experiments::chunker(contender.algorithm)?.with_rolling(contender.rolling);
    let left = experiments::segments(&chunker, SEGMENT, false)?;
    let joined = experiments::segments(&chunker, SEGMENT, true)?;
    let setup = bench.setup(&chunker);
    let chunk_by_chunk = Setup {
        unit_bytes: 1,
        ..setup
    };
    // Tells what the stages cost, before threads are split by that.
    let first = system::run(setup, system::Way::Baseline, &files);
    let unique = first.store.bytes_unique();
    let rough = stage_times(&[first.stages], bytes, unique);
    drop(first.store);
    let published = contender.split.unwrap_or(rough.split(COMPUTING_THREADS));
    let mut splits = vec![published];
    let fitting = rough.split(bench.plan.threads);
    if fitting != published {
        splits.push(fitting);
    }
    let (baselines, joining, others) = (RefCell::default(), RefCell::default(), RefCell::default());
    let mut ways = vec![
        way(BASELINE, setup, system::Way::Baseline, &files, &baselines),
        way(PIPELINE, setup, system::Way::Pipeline, &files, &others),
        way(
            CHUNK_BY_CHUNK,
            chunk_by_chunk,
            system::Way::Pipeline,
            &files,
            &others,
        ),
        way(
            WITHOUT,
            setup,
            system::Way::PDedupe(&left, published),
            &files,
            &others,
        ),
    ];
    for split in &splits {
        let how = system::Way::PDedupe(&joined, *split);
        ways.push(way(WITH, setup, how, &files, &joining));
    }
    ways.extend(computing_ways(bench.plan));
    let seconds = alternate(bench.plan.runs, bytes, &mut ways, progress)?;
    drop(ways);
    let (join, parallel_seconds) = of_parallel(&joining.into_inner(), bytes);
    let times = stage_times(&baselines.into_inner(), bytes, unique);
    Ok(Measured {
        times: StageTimes { join, ..times },
        parallel_seconds,
        baseline: bytes as f64 / seconds[0],
        pipeline: bytes as f64 / seconds[1],
        chunk_by_chunk: bytes as f64 / seconds[2],
        without: bytes as f64 / seconds[3],
        with: splits
            .into_iter()
            .zip(seconds[4..].iter().map(|seconds| bytes as f64 / seconds))
            .collect(),
        free_cores: free_cores(bench.plan, &seconds),
        saved_percent: 100.0 * (1.0 - unique as f64 / bytes.max(1) as f64),
    })
}

/// `P-Dedupe with jointing, 4 + 4 threads`.
pub fn with_split(approach: &str, split: Split) -> String {
    format!(
        "{approach}, {} + {} threads",
        split.chunking, split.fingerprinting
    )
}

/// Fig. 14, Tables 5 and 6.
fn add_throughput(
    bench: Bench<'_>,
    contender: &Contender,
    measured: &Measured,
    results: &mut Results,
) {
    let experiment = contender.experiment;
    let printed = published::speeds(experiment, &bench.set.name);
    let paper = |row: usize| printed.map(|speeds| speeds[row]);
    let drawn = |speed_up: f64| Some(speed_up).filter(|_| experiment == "fig14");
    let ratio = printed.map(|[baseline, with]| with / baseline);
    let published = measured.with[0].0;
    let mut rows = vec![
        (BASELINE.to_owned(), measured.baseline, paper(0), None),
        (
            PIPELINE.to_owned(),
            measured.pipeline,
            None,
            drawn(published::SPEED_UP / published::SPEED_UP_OF_PIPELINE),
        ),
        (
            CHUNK_BY_CHUNK.to_owned(),
            measured.chunk_by_chunk,
            None,
            None,
        ),
        (with_split(WITHOUT, published), measured.without, None, None),
    ];
    for (number, (split, speed)) in measured.with.iter().enumerate() {
        let is_published = number == 0 && contender.split.is_some();
        rows.push((
            with_split(WITH, *split),
            *speed,
            paper(1).filter(|_| is_published),
            drawn(published::SPEED_UP)
                .or(ratio)
                .filter(|_| is_published),
        ));
    }
    for (approach, speed, paper, paper_speed_up) in rows {
        let approach = format!("{approach}{}", contender.suffix);
        let key = (experiment, approach.as_str());
        bench.add(results, key, None, (THROUGHPUT, speed, paper));
        let speed_up = speed / measured.baseline;
        bench.add(results, key, None, (GAIN, speed_up, paper_speed_up));
    }
    if experiment == "fold" {
        let saved = (SAVED, measured.saved_percent, None);
        bench.add(results, (experiment, BASELINE), None, saved);
    }
    if contender.suffix.is_empty() {
        bench.add_free_cores(results, experiment, measured.free_cores);
    }
}

/// What the stages of the baseline take.
fn add_stages(bench: Bench<'_>, contender: &Contender, measured: &Measured, results: &mut Results) {
    let times = &measured.times;
    let is_rabin = contender.algorithm == Algorithm::Rabin;
    let is_sha1 = bench.fingerprint == FingerprintKind::Sha1;
    let chunk = Some(1e9 * published::STAGES.chunk).filter(|_| is_rabin);
    let fingerprint = Some(1e9 * published::STAGES.fingerprint).filter(|_| is_sha1);
    for (stage, seconds, paper) in [
        ("chunking", times.chunk, chunk),
        ("jointing", times.join, None),
        ("fingerprinting", times.fingerprint, fingerprint),
        ("indexing", times.index, None),
        ("writing, Tw/D", times.write, None),
        ("all, one thread", 1.0 / times.serial(), None),
        ("all, P-Dedupe", measured.parallel_seconds, None),
    ] {
        let approach = format!("{}: {stage}", contender.label);
        let value = (STAGE, 1e9 * seconds, paper);
        bench.add(results, ("stages", &approach), None, value);
    }
}

/// Eqs. 3 to 6 beside what was measured.
fn add_equations(
    bench: Bench<'_>,
    contender: &Contender,
    measured: &Measured,
    results: &mut Results,
) {
    let times = measured.times;
    let free = measured.free_cores;
    let serial = StageTimes { join: 0.0, ..times };
    let one = Split {
        chunking: 1,
        fingerprinting: 1,
    };
    let mut rows = vec![
        ("Eq. 3, only writing".to_owned(), times.only_writing(), None),
        (
            format!("Eq. 4, {BASELINE}"),
            times.serial(),
            Some(measured.baseline),
        ),
        (
            format!("Eq. 5, {PIPELINE}"),
            times.pipelined(),
            Some(measured.pipeline),
        ),
        (
            format!("Eq. 5{SHARING}, {PIPELINE}"),
            serial.on_cores(one, free),
            Some(measured.pipeline),
        ),
    ];
    for (split, speed) in &measured.with {
        rows.push((
            with_split("Eq. 6", *split),
            times.parallel(*split),
            Some(*speed),
        ));
        rows.push((
            with_split(&format!("Eq. 6{SHARING}"), *split),
            times.on_cores(*split, free),
            Some(*speed),
        ));
    }
    for (equation, computed, speed) in rows {
        let approach = format!("{}: {equation}", contender.label);
        let key = ("eq6", approach.as_str());
        bench.add(results, key, None, (COMPUTED, computed, None));
        if let Some(speed) = speed {
            bench.add(results, key, None, (THROUGHPUT, speed, None));
        }
    }
    if contender.experiment == "fig14" && contender.suffix.is_empty() {
        bench.add_free_cores(results, "eq6", free);
    }
}

/// The equations with cores that all threads share: as many as were free.
pub const SHARING: &str = " sharing cores";

/// What more cores than there are would give.
fn add_cores(bench: Bench<'_>, contender: &Contender, measured: &Measured, results: &mut Results) {
    let times = &measured.times;
    for cores in CORES {
        let split = times.split(usize::from(cores));
        let speed = times.on_cores(split, f64::from(cores));
        let key = ("cores", contender.label);
        let x = Some(f64::from(cores));
        let equation = times.parallel(split);
        bench.add(
            results,
            key,
            x,
            ("equation_6_bytes_per_second", equation, None),
        );
        bench.add(results, key, x, (COMPUTED, speed, None));
        bench.add(results, key, x, (PREDICTED, speed / times.serial(), None));
    }
}

/// What stands for the paper's machine among data sets.
pub const PAPERS_MACHINE: &str = "§2.2's Tc and Tf";

/// Eqs. 4 to 6 with the times that the paper gives for chunking and fingerprinting alone, beside
/// what it measured: upper bounds, for looking up and writing take time too.
pub fn papers_equations(results: &mut Results) {
    let times = published::STAGES;
    let baseline = published::BASELINE_SPEED;
    let measured = baseline * published::SPEED_UP;
    let rows = [
        (
            format!("Rabin: Eq. 4, {BASELINE}"),
            times.serial(),
            baseline,
        ),
        (
            format!("Rabin: Eq. 5, {PIPELINE}"),
            times.pipelined(),
            measured / published::SPEED_UP_OF_PIPELINE,
        ),
        (
            format!("Rabin: {}", with_split("Eq. 6", published::SPLIT)),
            times.parallel(published::SPLIT),
            measured,
        ),
        (
            format!(
                "Rabin: {}",
                with_split(&format!("Eq. 6{SHARING}"), published::SPLIT)
            ),
            times.on_cores(published::SPLIT, published::CORES),
            measured,
        ),
    ];
    for (approach, computed, paper) in rows {
        let figure = Figure::new("eq6", PAPERS_MACHINE, &approach, COMPUTED);
        results.figures.push(figure.with(computed, Some(paper)));
    }
}

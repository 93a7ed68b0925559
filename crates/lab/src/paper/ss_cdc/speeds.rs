//! How much faster two stages are, on one thread and more: Figs. 2.5 to 2.8.

use std::hint::black_box;

use chunking::two_stage::TwoStage;
use chunking::{Algorithm, Isa};

use super::SIZES;
use super::forms::{Form, marked, sequential, sized};
use super::published;
use crate::paper::figure::{Figure, PREDICTED, SPEED, SPEED_UP};
use crate::paper::loaded::LoadedSet;
use crate::paper::timing::{Way, alternate};
use crate::paper::{Plan, Results, threads};
use crate::progress::Progress;

/// What speed-ups are over.
pub const SEQUENTIAL: &str = "sequential";
/// The paper's form of two stages.
pub const SS_CDC: &str = "SS-CDC";
/// The form that skips.
pub const LAZY: &str = "SS-CDC, lazy";

/// Least sizes of Fig. 2.6.
const MINS: [u32; 4] = [1 << 10, 2 << 10, 4 << 10, 8 << 10];
/// Threads for which speed is predicted.
const WIDER: [usize; 5] = [4, 8, 16, 32, 64];
/// Chunkers of Fig. 2.5: the paper's and two of today.
const CHUNKERS: [Algorithm; 3] = [Algorithm::Crc32, Algorithm::Gear, Algorithm::FastCdc];

/// Runs what is wanted on one data set.
pub fn on_set(
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    if plan.has("fig2.5") {
        for algorithm in CHUNKERS {
            one_thread(algorithm, set, plan, results, progress)?;
        }
    }
    if plan.has("fig2.6") {
        for min_bytes in MINS {
            by_min(min_bytes, set, plan, results, progress)?;
        }
    }
    if plan.has("fig2.7") {
        one_file(set, plan, results, progress)?;
    }
    if plan.has("fig2.8") {
        file_a_thread(set, plan, results, progress)?;
    }
    Ok(())
}

/// Seconds of forms, each on one thread, a file at a time.
fn times(
    forms: &[(String, Form)],
    set: &LoadedSet,
    plan: &Plan,
    progress: &mut Progress,
) -> anyhow::Result<Vec<f64>> {
    let files = set.files();
    let mut ways = Vec::new();
    for (name, form) in forms {
        ways.push(Way::new(name, || {
            black_box(form.file_a_thread(1, black_box(&files)));
        }));
    }
    alternate(plan.runs, set.bytes(), &mut ways, progress)
}

/// Fig. 2.5 for one chunker.
fn one_thread(
    algorithm: Algorithm,
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let chunker = sequential(&sized(algorithm, SIZES))?;
    let named = |what: &str| format!("{algorithm}, {what}");
    let mut forms = vec![(named(SEQUENTIAL), Form::Sequential(chunker.clone()))];
    for isa in Isa::available() {
        let form = Form::two_stage(&chunker, isa, TwoStage::SEGMENT_BYTES)?;
        forms.push((named(&format!("{SS_CDC} {isa}")), form));
    }
    forms.push((named(LAZY), Form::lazy(&chunker)));
    let seconds = times(&forms, set, plan, progress)?;
    for ((approach, _), of_form) in forms.iter().zip(&seconds) {
        let is_papers = *approach == format!("crc32, {SS_CDC} {}", Isa::Avx512);
        let paper = is_papers.then_some(published::ONE_CORE);
        let figure = |metric| Figure::new("fig2.5", &set.name, approach, metric);
        let speed = set.bytes() as f64 / of_form;
        results.figures.push(figure(SPEED).with(speed, None));
        let gain = seconds[0] / of_form;
        results.figures.push(figure(SPEED_UP).with(gain, paper));
    }
    Ok(())
}

/// Fig. 2.6 for one least size.
fn by_min(
    min_bytes: u32,
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let [_, avg, max] = SIZES;
    let chunker = sequential(&sized(Algorithm::Crc32, [min_bytes, avg, max]))?;
    let best = Form::two_stage(&chunker, Isa::best(), TwoStage::SEGMENT_BYTES)?;
    let forms = [
        (SEQUENTIAL.to_owned(), Form::Sequential(chunker.clone())),
        (SS_CDC.to_owned(), best),
        (LAZY.to_owned(), Form::lazy(&chunker)),
    ];
    let seconds = times(&forms, set, plan, progress)?;
    for ((approach, _), of_form) in forms.iter().zip(&seconds).skip(1) {
        let paper = published::by_min(min_bytes).filter(|_| approach == SS_CDC);
        let figure = Figure::new("fig2.6", &set.name, approach, SPEED_UP);
        let gain = seconds[0] / of_form;
        results
            .figures
            .push(figure.at(f64::from(min_bytes)).with(gain, paper));
    }
    Ok(())
}

/// Adds a speed-up on some threads.
fn add(
    results: &mut Results,
    place: (&'static str, &LoadedSet),
    approach: &str,
    metric: &'static str,
    threads: usize,
    gain: f64,
) {
    let (experiment, set) = place;
    let paper = published::on_threads(&set.name, approach, threads);
    let figure = Figure::new(experiment, &set.name, approach, metric);
    results
        .figures
        .push(figure.at(threads as f64).with(gain, paper));
}

/// One thread, and as many as may run.
fn counts(plan: &Plan) -> Vec<usize> {
    let mut counts = vec![1];
    counts.extend((plan.threads > 1).then_some(plan.threads));
    counts
}

/// Seconds of these ways, and last of nothing but computing on one thread and on all, in turn with
/// them.
fn with_computing<'a>(
    ways: &mut Vec<Way<'a>>,
    set: &LoadedSet,
    plan: &'a Plan,
    progress: &mut Progress,
) -> anyhow::Result<Vec<f64>> {
    for count in [1, plan.threads] {
        ways.push(Way::new(threads::COMPUTING, move || {
            threads::compute(count);
        }));
    }
    alternate(plan.runs, set.bytes(), ways, progress)
}

/// How much more computing all threads did than one: as many cores were there for them.
fn add_computing(
    results: &mut Results,
    place: (&'static str, &LoadedSet),
    plan: &Plan,
    seconds: &[f64],
) {
    if let [.., one, all] = seconds
        && plan.threads > 1
    {
        let gain = plan.threads as f64 * one / all;
        let approach = threads::COMPUTING;
        add(results, place, approach, SPEED_UP, plan.threads, gain);
    }
}

/// Fig. 2.7.
fn one_file(
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = set.files();
    let chunker = sequential(&sized(Algorithm::Crc32, SIZES))?;
    let whole = Form::Sequential(chunker.clone());
    let sfss = Form::Segments(chunker.clone(), TwoStage::SEGMENT_BYTES);
    let two_stage = TwoStage::new(
        chunker.clone().with_isa(Isa::best()),
        TwoStage::SEGMENT_BYTES,
    )?;
    let marks: Vec<_> = files
        .iter()
        .map(|file| marked(&two_stage, plan.threads, file))
        .collect();
    let sfms = Form::TwoStage(two_stage.clone());
    let counts = counts(plan);
    let mut ways = vec![
        Way::new(SEQUENTIAL, || {
            black_box(whole.one_file(1, &files));
        }),
        Way::new("stage 2", || {
            for (file, marks) in files.iter().zip(&marks) {
                black_box(two_stage.join(file, marks));
            }
        }),
    ];
    for threads in &counts {
        for form in [&sfss, &sfms] {
            ways.push(Way::new("one file on threads", || {
                black_box(form.one_file(*threads, &files));
            }));
        }
    }
    let seconds = with_computing(&mut ways, set, plan, progress)?;
    drop(ways);
    let (all, stage_two) = (seconds[0], seconds[1]);
    let place = ("fig2.7", set);
    add_computing(results, place, plan, &seconds);
    for (index, threads) in counts.iter().enumerate() {
        let [sfss, sfms] = [seconds[2 + 2 * index], seconds[3 + 2 * index]];
        add(results, place, "SFSS", SPEED_UP, *threads, all / sfss);
        add(results, place, "SFMS", SPEED_UP, *threads, all / sfms);
    }
    let share = 100.0 * stage_two / seconds[3];
    let figure = Figure::new("fig2.7", &set.name, "SFMS", "stage_two_percent");
    results.figures.push(figure.at(1.0).with(share, Some(2.0)));
    let jobs: Vec<usize> = files
        .iter()
        .map(|file| file.len().div_ceil(TwoStage::SEGMENT_BYTES))
        .collect();
    for threads in WIDER {
        let sfss = threads::one_file_seconds(seconds[2], 0.0, &jobs, 1, threads);
        let stage_one = (seconds[3] - stage_two).max(0.0);
        let sfms = threads::one_file_seconds(stage_one, stage_two, &jobs, TwoStage::BATCH, threads);
        add(results, place, "SFSS", PREDICTED, threads, all / sfss);
        add(results, place, "SFMS", PREDICTED, threads, all / sfms);
    }
    Ok(())
}

/// Fig. 2.8.
fn file_a_thread(
    set: &LoadedSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let files = set.files();
    let chunker = sequential(&sized(Algorithm::Crc32, SIZES))?;
    let mfss = Form::Sequential(chunker.clone());
    let mfms = Form::two_stage(&chunker, Isa::best(), TwoStage::SEGMENT_BYTES)?;
    let counts = counts(plan);
    let mut ways = Vec::new();
    for threads in &counts {
        for form in [&mfss, &mfms] {
            ways.push(Way::new("a file a thread", || {
                black_box(form.file_a_thread(*threads, &files));
            }));
        }
    }
    let seconds = with_computing(&mut ways, set, plan, progress)?;
    drop(ways);
    // On one thread, MFSS is sequential chunking.
    let all = seconds[0];
    let place = ("fig2.8", set);
    add_computing(results, place, plan, &seconds);
    for (index, threads) in counts.iter().enumerate() {
        let [mfss, mfms] = [seconds[2 * index], seconds[2 * index + 1]];
        add(results, place, "MFSS", SPEED_UP, *threads, all / mfss);
        add(results, place, "MFMS", SPEED_UP, *threads, all / mfms);
    }
    let lengths: Vec<usize> = files.iter().map(|file| file.len()).collect();
    for threads in WIDER {
        let share = threads::file_a_thread_share(&lengths, threads);
        add(results, place, "MFSS", PREDICTED, threads, 1.0 / share);
        let gain = all / (seconds[1] * share);
        add(results, place, "MFMS", PREDICTED, threads, gain);
    }
    Ok(())
}

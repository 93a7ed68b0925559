//! The experiments on data sets that are given (§3.1, §3.2, §3.4.5): Figs. 3.1 to 3.3, 3.12 to 3.17.

use std::hint::black_box;

use chunking::rapid::{CRITERIA, Criterion, RapidChunker};
use chunking::{Algorithm, Chunker, Parameters};

use super::experiments::{REGULAR, chunker, name, times};
use super::locality::growth;
use super::passes::{LISTS, Pass};
use super::published::{self, DISKS};
use crate::dataset::edits::paper_parameters;
use crate::interrupt;
use crate::paper::dedup::{self, Dedup, Lengths};
use crate::paper::figure::{Figure, RATIO, SPEED, SPEED_UP};
use crate::paper::loaded::LoadedSet;
use crate::paper::timing::{Way, alternate};
use crate::paper::{GivenSet, Plan, Results, threads};
use crate::progress::Progress;

/// Fixed-size chunking (Fig. 3.16).
pub const FIXED: &str = "FSC, 8 KiB";
/// Lengths of lists (Fig. 3.14).
const LIST_LENGTHS: [usize; 4] = [1, 2, 3, 4];
/// Threads for which speed is predicted.
const WIDER: [usize; 5] = [4, 8, 16, 32, 64];

/// A set and what it is measured with.
struct Bench<'a> {
    set: &'a LoadedSet,
    files: &'a [&'a [u8]],
    chunker: &'a Chunker,
    plan: &'a Plan,
}

impl Bench<'_> {
    fn rapid(&self, criterion: Criterion) -> RapidChunker {
        RapidChunker::new(self.chunker.clone(), criterion)
    }

    fn figure(&self, experiment: &'static str, approach: &str, metric: &'static str) -> Figure {
        Figure::new(experiment, &self.set.name, approach, metric)
    }

    fn wants(&self, experiments: &[&str]) -> bool {
        experiments.iter().any(|name| self.plan.has(name))
    }
}

/// Runs what is wanted on one data set.
pub fn on_set(
    given: &GivenSet,
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let set = LoadedSet::load_for(given, plan, results, progress)?;
    let files = set.files();
    let chunker = chunker(&paper_parameters())?;
    let bench = Bench {
        set: &set,
        files: &files,
        chunker: &chunker,
        plan,
    };
    let regular = dedup::cut(&chunker, &files, plan.threads);
    if bench.wants(&["fig3.2", "fig3.3"]) {
        show_locality(&bench, &regular, results);
    }
    interrupt::check()?;
    if bench.wants(&["fig3.1", "fig3.12", "fig3.15", "fig3.16"]) {
        criteria(&bench, &regular, results, progress)?;
    }
    if bench.wants(&["fig3.13", "fig3.14"]) {
        lists(&bench, results, progress)?;
    }
    if bench.wants(&["fig3.17"]) {
        on_threads(&bench, results, progress)?;
    }
    Ok(())
}

/// Figs. 3.2 and 3.3.
fn show_locality(bench: &Bench<'_>, regular: &[Lengths], results: &mut Results) {
    let fingerprints = dedup::fingerprints(bench.files, regular, bench.plan.threads);
    for step in growth(&fingerprints) {
        let files = step.files as f64;
        let metric = "duplicate_chunks_percent";
        let rows = [
            ("all duplicates", step.duplicates_percent()),
            ("in LQ sequences", step.sequences_percent(u64::MAX)),
        ];
        for (approach, percent) in rows {
            if bench.plan.has("fig3.2") {
                let figure = bench.figure("fig3.2", approach, metric);
                results.figures.push(figure.at(files).with(percent, None));
            }
        }
        let approach = crate::units::counted(step.files as u64, "file", "files");
        let lengths = (0..).map(|power| 1u64 << power);
        for length in lengths.take_while(|length| length / 2 < step.longest().max(1)) {
            if bench.plan.has("fig3.3") {
                let figure = bench.figure("fig3.3", &approach, metric);
                let percent = step.sequences_percent(length);
                results
                    .figures
                    .push(figure.at(length as f64).with(percent, None));
            }
        }
    }
}

/// Figs. 3.1, 3.12, 3.15 and 3.16 (d): every criterion.
fn criteria(
    bench: &Bench<'_>,
    regular: &[Lengths],
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let (files, plan) = (bench.files, bench.plan);
    let passes: Vec<Pass<'_>> = CRITERIA
        .iter()
        .map(|info| Pass::record(bench.rapid(info.criterion), files, LISTS))
        .collect();
    let regular_dedup = Dedup::of(files, regular, plan.threads);
    let seconds = times(bench.chunker, files, &passes, plan, progress)?;
    let cuts = passes[0].cuts();
    let mut ways = [regular, &cuts].map(|cuts| {
        Way::new("fingerprints", || {
            black_box(dedup::fingerprints(files, cuts, 1));
        })
    });
    let fingerprinting = alternate(plan.runs, bench.set.bytes(), &mut ways, progress)?;
    let mut add = |experiment: &'static str, approach: &str, metric, ours, paper| {
        if plan.has(experiment) {
            let figure = bench.figure(experiment, approach, metric);
            results.figures.push(figure.with(ours, paper));
        }
    };
    let paper = published::ratio(&bench.set.name);
    add("fig3.12", REGULAR, RATIO, regular_dedup.ratio(), paper);
    add("fig3.16", REGULAR, RATIO, regular_dedup.ratio(), paper);
    for (index, info) in CRITERIA.iter().enumerate() {
        let approach = name(info.criterion);
        let pass = &passes[index];
        let chunking = seconds[index + 1];
        add("fig3.12", &approach, SPEED_UP, seconds[0] / chunking, None);
        add("fig3.12", &approach, RATIO, pass.dedup.ratio(), None);
        let skipped = 100.0 * pass.counts.bytes_skipped as f64 / bench.set.bytes() as f64;
        add("fig3.12", &approach, "skipped_percent", skipped, None);
        let both = (seconds[0] + fingerprinting[0]) / (chunking + fingerprinting[1]);
        add("fig3.15", &approach, SPEED_UP, both, None);
    }
    let rapid_dedup = passes[0].dedup;
    add("fig3.16", "RapidCDC, FF", RATIO, rapid_dedup.ratio(), None);
    if plan.has("fig3.16") {
        let fixed = fixed_ratio(bench)?;
        let paper = published::fixed_ratio(&bench.set.name);
        add("fig3.16", FIXED, RATIO, fixed, paper);
    }
    for (disk, bytes_per_second) in DISKS {
        let rows = [
            (REGULAR, seconds[0], fingerprinting[0], regular_dedup),
            ("RapidCDC, FF", seconds[1], fingerprinting[1], rapid_dedup),
        ];
        for (approach, chunking, fingerprints, dedup) in rows {
            let writing = dedup.bytes_unique as f64 / bytes_per_second;
            let whole = (chunking + fingerprints).max(writing);
            let approach = format!("{approach}, {disk}");
            let percent = |seconds: f64| 100.0 * seconds / whole;
            add(
                "fig3.1",
                &approach,
                "chunking_percent",
                percent(chunking),
                None,
            );
            add(
                "fig3.1",
                &approach,
                "fingerprint_percent",
                percent(fingerprints),
                None,
            );
            add("fig3.1", &approach, "disk_percent", percent(writing), None);
        }
    }
    Ok(())
}

fn fixed_ratio(bench: &Bench<'_>) -> anyhow::Result<f64> {
    let parameters = Parameters {
        min_bytes: 8 << 10,
        avg_bytes: 8 << 10,
        max_bytes: 8 << 10,
        ..Parameters::new(Algorithm::Fixed)
    };
    let fixed = chunker(&parameters)?;
    let cuts = dedup::cut(&fixed, bench.files, bench.plan.threads);
    Ok(Dedup::of(bench.files, &cuts, bench.plan.threads).ratio())
}

/// Figs. 3.13 and 3.14: lists of several lengths, under FF+RWT.
fn lists(bench: &Bench<'_>, results: &mut Results, progress: &mut Progress) -> anyhow::Result<()> {
    let approach = name(Criterion::RollingWindow);
    let pass =
        |length: usize| Pass::record(bench.rapid(Criterion::RollingWindow), bench.files, length);
    let passes = LIST_LENGTHS.map(pass);
    if bench.plan.has("fig3.13") {
        let longest = &passes[LIST_LENGTHS.len() - 1];
        for (place, hits) in longest.counts.hits.iter().enumerate() {
            let percent = 100.0 * *hits as f64 / longest.counts.chunks_hinted.max(1) as f64;
            let first = published::first_hit_percent(&bench.set.name);
            let paper = first.filter(|_| place == 0);
            let figure = bench.figure("fig3.13", &approach, "hit_percent");
            results
                .figures
                .push(figure.at(place as f64 + 1.0).with(percent, paper));
        }
    }
    if bench.plan.has("fig3.14") {
        let seconds = times(bench.chunker, bench.files, &passes, bench.plan, progress)?;
        for (length, of_length) in LIST_LENGTHS.iter().zip(&seconds[1..]) {
            let figure = bench.figure("fig3.14", &approach, SPEED_UP);
            let gain = seconds[0] / of_length;
            results
                .figures
                .push(figure.at(*length as f64).with(gain, None));
        }
    }
    Ok(())
}

/// Fig. 3.17: measured on the threads there are, predicted for more.
fn on_threads(
    bench: &Bench<'_>,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let (files, plan) = (bench.files, bench.plan);
    let bytes = bench.set.bytes();
    let in_turns = |turns| {
        let rapid = bench.rapid(Criterion::FastForward);
        Pass::record_in_turns(rapid, files, LISTS, turns)
    };
    let mut counts = vec![1];
    counts.extend((plan.threads > 1).then_some(plan.threads));
    let measured: Vec<Pass<'_>> = counts.iter().map(|count| in_turns(*count)).collect();
    let wider = WIDER.map(in_turns);
    let mut ways: Vec<Way<'_>> = Vec::new();
    for (pass, count) in measured.iter().zip(&counts) {
        ways.push(Way::telling("threads", || pass.replay_on_threads(*count)));
    }
    for pass in &wider {
        ways.push(Way::new("in turns", || pass.replay()));
    }
    for count in [1, plan.threads] {
        ways.push(Way::new(threads::COMPUTING, move || {
            threads::compute(count);
        }));
    }
    let seconds = alternate(plan.runs, bytes, &mut ways, progress)?;
    drop(ways);
    if let [.., one, all] = seconds[..]
        && plan.threads > 1
    {
        let gain = plan.threads as f64 * one / all;
        let figure = bench.figure("fig3.17", threads::COMPUTING, SPEED_UP);
        let figure = figure.at(plan.threads as f64);
        results.figures.push(figure.with(gain, None));
    }
    let approach = "RapidCDC, FF";
    let lengths: Vec<usize> = files.iter().map(|file| file.len()).collect();
    for (index, count) in counts.iter().enumerate() {
        let speed = bytes as f64 / seconds[index];
        let figure = bench.figure("fig3.17", approach, SPEED);
        results
            .figures
            .push(figure.at(*count as f64).with(speed, None));
    }
    for (index, count) in WIDER.iter().enumerate() {
        let share = threads::file_a_thread_share(&lengths, *count);
        let speed = bytes as f64 / (seconds[counts.len() + index] * share);
        let figure = bench.figure("fig3.17", approach, "predicted_bytes_per_second");
        results
            .figures
            .push(figure.at(*count as f64).with(speed, None));
    }
    Ok(())
}

//! The experiments of the ThinDedup paper (Ni, ch. 5): what metadata costs in the path of writes.
//!
//! Enters: which experiments, traces if there are any. Leaves: figures beside the paper's, and whether what it says
//! holds. Volumes of the product take the writes, with each persistence; what the store under them is
//! asked is counted (`counting`), and a model of the paper's disks makes time of it (`device`): no disk
//! is timed, but for the experiment `speed`.

mod bench;
mod claims;
mod counting;
mod device;
mod driving;
mod experiments;
pub mod published;
mod real;
mod sources;
mod speeds;

use std::path::PathBuf;

use super::about::{About, ExperimentInfo, experiment};
use super::{MeasuredSet, Plan, Results};
use crate::progress::Progress;
use crate::report::chunk_report::DataReport;
use crate::report::ticks::Unit;

use self::bench::Bench;
use self::device::Device;
use self::sources::GivenTrace;

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 14] = [
    over_windows(
        "counts",
        "What the disk is asked, a window: blocks, flushes, seeks",
    ),
    over_windows("fig5.3", "Fig. 5.3: throughput by window, by the model"),
    over_shares("fig5.4", "Fig. 5.4: latency on the hard disk, by the model"),
    over_shares("fig5.5", "Fig. 5.5: latency on the SSD, by the model"),
    over_windows(
        "latency",
        "§5.4: how much less the latency is at no less throughput than `ordered` with this window",
    ),
    over_ratios(
        "fig5.6",
        "Fig. 5.6: throughput by dedup ratio, window 8, by the model",
    ),
    over_ratios(
        "fig5.7",
        "Fig. 5.7: metadata that did not go into blocks of data",
    ),
    experiment(
        "fig5.8",
        "Fig. 5.8: throughput on the hard disk by compressibility, by the model",
    )
    .over("COMPRESSIBLE", "blocks that compress", Unit::Percent, false),
    experiment(
        "fig5.9",
        "Fig. 5.9: throughput of FIU's days on the hard disk, window 8, by the model",
    ),
    experiment("fig5.10", "Fig. 5.10: the same on the SSD"),
    over_ratios(
        "fig5.11",
        "Fig. 5.11: throughput of traces without contents on the hard disk, window 8, by the model",
    ),
    over_ratios("fig5.12", "Fig. 5.12: the same on the SSD"),
    experiment(
        "commits",
        "Beyond the paper: what commits cost by how many C-zones are filled before one, window 32",
    )
    .over("C-ZONES", "zones before a commit", Unit::Number, true),
    over_windows(
        "speed",
        "Beyond the paper: our own speed on this machine's clock, random writes",
    ),
];

const fn over_windows(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("WINDOW", "window (blocks)", Unit::Number, true)
}

const fn over_shares(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("REQUESTS", "share of the requests", Unit::Percent, false)
}

const fn over_ratios(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("DEDUP RATIO", "dedup ratio", Unit::Number, false)
}

/// What reports say of it.
pub const ABOUT: About = About {
    name: "thindedup",
    title: "ThinDedup (Ni, ch. 5)",
    citation: "Ni, “Data deduplication in storage systems” (dissertation, UT Arlington 2019), chapter 5, ThinDedup",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "counts of real volumes, times by a model",
    stand_ins: "Synthetic writes are the paper's; where no trace is given, random writes with its published ratio stand in.",
    tolerances: "in every case; “close” is within 10 %",
    comparison: "thin: ThinDedup, ordered: OrderedWrites, cow: Dmdedup, ram: Ideal, all of them persistences of one volume with policy full. The model sorts what is written between two flushes by address, and charges seeks, hops (seeks behind the first), blocks and flushes by the paper's latencies; “queued”: hops as short as the paper's OrderedWrites needs them.",
    synthetic_bytes: 0,
};

/// What only this paper is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// Blocks that a run writes.
    pub writes: u64,
    /// Where volumes lie whose syncs are timed; none: in memory alone.
    pub scratch: Option<PathBuf>,
}

/// Runs the experiments.
///
/// # Errors
/// When a trace can't be read, a volume fails, or somebody asked for a stop.
pub fn run(plan: &Plan, options: &Options, progress: &mut Progress) -> anyhow::Result<Results> {
    let mut results = Results::default();
    let mut given = Vec::new();
    for set in &plan.sets {
        let trace = GivenTrace::read(set, options.writes)?;
        results.sets.push(measured(set, &trace));
        if trace.malformed > 0 {
            let (name, lines) = (&trace.name, trace.malformed);
            let note = format!("{name}: {lines} lines are no requests, and were left out");
            results.notes.push(note);
        }
        anyhow::ensure!(trace.len() > 0, "{} has no writes", trace.name);
        given.push(trace);
    }
    let wanted = |name: &str| plan.has(name);
    let mut bench = Bench::new(&given, options.writes, plan.threads);
    experiments::windows(&mut bench, &wanted, &mut results, progress)?;
    if wanted("fig5.6") || wanted("fig5.7") {
        experiments::ratios(&mut bench, &wanted, &mut results, progress)?;
    }
    if wanted("fig5.8") {
        experiments::compressibility(&mut bench, &mut results, progress)?;
    }
    real::traces(&mut bench, &wanted, &mut results, progress)?;
    if wanted("commits") {
        experiments::commits(&mut bench, &mut results, progress)?;
    }
    if wanted("speed") {
        let scratch = options.scratch.as_deref();
        speeds::speeds(&bench, scratch, plan.runs, &mut results, progress)?;
    }
    notes(&mut results);
    results.claims = claims::claims(&results.figures);
    Ok(results)
}

fn measured(set: &super::GivenSet, trace: &GivenTrace) -> MeasuredSet {
    MeasuredSet {
        name: trace.name.clone(),
        is_sample: trace.is_sample,
        data: DataReport::of_trace(&set.paths, trace.len() * volume::trace::BLOCK_BYTES),
        notices: Vec::new(),
    }
}

fn notes(results: &mut Results) {
    let model = |device: &Device| {
        format!(
            "Model of the {}: {:.2} ms a seek, {:.2} ms a hop, {:.4} ms a block, {:.2} ms a flush",
            device.name,
            device.seek_ms(),
            device.hop_ms.unwrap_or(device.seek_ms()),
            device.transfer_ms(),
            device.flush_ms()
        )
    };
    results
        .notes
        .extend(published::DEVICES.each_ref().map(model));
    results.notes.extend(NOTES.map(str::to_owned));
}

/// What is done where the paper is silent, or otherwise than there.
const NOTES: [&str; 5] = [
    "A window is so many blocks written, then a flush; a request's latency is the time of its window, what was committed in it included",
    "“With commits”: those in the run, and one more at its end for everything that is not committed then",
    "ordered writes pages of the mapping and of reference counts in place; “mapping only”: if it wrote none but those of the mapping, computed",
    "Dedup ratios of made-up writes are those aimed at; blocks that compress do so to 1/1.25; BLAKE3 instead of MD5",
    "Every volume begins empty but for one block in each two hundred thousand, so that `ordered` has its arrays in place",
];

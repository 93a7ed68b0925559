//! The experiments of the Odess paper: how well resemblance is detected, how fast, and what it saves.
//!
//! Enters: data sets, which experiments. Leaves: figures beside the paper's, and whether what it says
//! holds. Chunks are cut by FastCDC, told apart by SHA-1 where that is timed, and coded by our
//! instruction coder where the paper has Xdelta3 without inner compression (`prototype`). Accuracy is
//! measured on random chunks whose similarity is known (`benchmark`, `accuracy`), and computed
//! (`analytic`).

mod accuracy;
mod analytic;
mod benchmark;
mod claims;
mod curves;
mod detections;
mod prototype;
pub mod published;
mod system;

use super::about::{About, ExperimentInfo, experiment};
use super::loaded::LoadedSet;
use super::{Plan, Results};
use crate::interrupt;
use crate::progress::Progress;
use crate::report::ticks::Unit;

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 11] = [
    experiment(
        "fig6",
        "Fig. 6: what the place of the mask's bits does, 1/128 sampled, chunks of 8 KB",
    ),
    experiment(
        "fig7",
        "Fig. 7: estimates up to a share, by Eqs. 6 and 9 (12 features, chunks of 8 KB)",
    )
    .over("ESTIMATE", "estimated similarity", Unit::Percent, false),
    over_modifications("fig11", "Fig. 11: similarity of the pairs of the benchmark"),
    over_modifications(
        "fig12",
        "Fig. 12: estimating error of the four detectors, beside Eqs. 6 and 9",
    ),
    over_rates(
        "fig13",
        "Fig. 13: estimating error by sampling rate, over all of a series",
    ),
    experiment(
        "fig14",
        "Fig. 14: estimating error by the number of features, over all of a series",
    )
    .over("FEATURES", "features", Unit::Number, false),
    experiment(
        "fig16-21",
        "Figs. 16 to 21: DCE, DCR and SCR by expected chunk size",
    )
    .over("CHUNKS", "expected chunk size (bytes)", Unit::Bytes, true),
    over_rates(
        "fig22",
        "Fig. 22: speed, DCR and DCE by sampling rate, chunks of 8 KB",
    ),
    experiment(
        "table3",
        "Table 3: windows in parallel of Odess+, chunks of 8 KB",
    ),
    experiment(
        "fig23",
        "Fig. 23: feature speed, throughput and compression of the system, chunks of 8 KB",
    ),
    experiment(
        "stages",
        "Fig. 15: what the stages of the system take, chunks of 8 KB",
    ),
];

const fn over_modifications(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("MOL, 1/MOR", "MoL (bytes), or 1/MoR", Unit::Number, true)
}

const fn over_rates(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("1 IN", "one hash sampled in so many", Unit::Number, true)
}

/// Those that need no data.
const WITHOUT_DATA: [&str; 5] = ["fig7", "fig11", "fig12", "fig13", "fig14"];

/// What reports say of it.
pub const ABOUT: About = About {
    name: "odess",
    title: "Odess (Xia et al., TOS 2022)",
    citation: "Xia et al., “The Design of Fast and Lightweight Resemblance Detection for Efficient Post-Deduplication Delta Compression” (ACM Transactions on Storage, 2022)",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "one thread, other programs not counted",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. Levels differ with the data; what counts is how the detectors stand to each other.",
    tolerances: "in every case; \"about n×\" from 80 % of n on",
    comparison: "Chunks are cut by FastCDC; distinct chunks alone are looked at. Every detector runs by the best instructions of this machine, N-Transform and Finesse too. DCR: bytes of distinct chunks over what deltas leave of them (Eq. 12); DCE: the share that a delta saves, on average over detected chunks (Eq. 13); SCR: detected chunks over the others (Eq. 14). Bases are stored whole, the first that matches is taken, nothing else compresses.",
    synthetic_bytes: 16 << 20,
};

/// Runs the experiments.
///
/// # Errors
/// When data can't be read, a delta does not give its chunk back, or somebody asked for a stop.
pub fn run(plan: &Plan, progress: &mut Progress) -> anyhow::Result<Results> {
    let mut results = Results::default();
    if plan.has("fig7") {
        results.figures.extend(curves::figures());
    }
    accuracy::run(plan, &mut results, progress)?;
    if plan.sets.is_empty() {
        let wanting = EXPERIMENTS
            .iter()
            .filter(|info| plan.has(info.name) && !WITHOUT_DATA.contains(&info.name));
        for info in wanting {
            let note = format!("{}: not run, for it needs --data NAME=PATH", info.title);
            results.notes.push(note);
        }
    }
    for set in &plan.sets {
        interrupt::check()?;
        let loaded = LoadedSet::load_for(set, plan, &mut results, progress)?;
        let files = loaded.files();
        prototype::run(&set.name, &files, plan, &mut results, progress)?;
        system::run(&set.name, &files, plan, &mut results, progress)?;
    }
    if !plan.sets.is_empty() {
        results.notes.extend(NOTES.map(str::to_owned));
    }
    results.claims = claims::claims(&results.figures);
    Ok(results)
}

/// What is done where the paper is silent.
const NOTES: [&str; 4] = [
    "Deltas are those of onefold's instruction coder (copies and inserts, nothing compressed), where the paper has Xdelta3 without inner compression; a delta that is not shorter than its chunk is not kept, its chunk counts as detected all the same, with nothing saved",
    "A chunk in which nothing was sampled has no features and is similar to none",
    "Odess samples 32-bit Gear hashes by a mask, Odess+ hashes of sub-windows by a bound (Alg. 1, whose minima begin at 2^32 − 1, not at 0 as printed); every window within a chunk counts",
    "Fig. 23: system GB/s are those of one thread that does everything, from memory into memory; pipelined GB/s are computed of its slowest stage",
];

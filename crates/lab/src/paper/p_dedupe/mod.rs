//! The experiments of the P-Dedupe paper: segments that are cut at the same time, left as they are or
//! joined at their borders (`experiments`), and the whole system of four stages around them (`system`,
//! `whole`, `sweeps`), with the equations for its speed (`equations`).
//!
//! Enters: data sets, which experiments, which fingerprints. Leaves: figures beside the paper's, and
//! whether what it says holds.

mod claims;
mod equations;
pub mod experiments;
pub mod published;
mod sweeps;
mod system;
mod whole;
mod whole_claims;

use super::about::{About, ExperimentInfo, experiment};
use super::{Plan, Results};
use crate::progress::Progress;
use crate::report::ticks::Unit;
pub use system::FingerprintKind;

/// The name of the random numbers among the data sets.
pub const RANDOM: &str = "RANDOM";

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 14] = [
    over_segments(
        "fig9",
        "Fig. 9: what is saved with segments of several sizes, of what sequential chunking saves",
    ),
    over_segments(
        "fig10",
        "Fig. 10: throughput with segments of several sizes, cut by Rabin's hash",
    ),
    over_segments(
        "fig11",
        "Fig. 11: duplicates that P-Dedupe with jointing does not find, beside Eq. 8",
    ),
    over_chunks(
        "fig12",
        "Fig. 12: what is saved with chunks of several sizes",
    ),
    over_chunks("fig13", "Fig. 13: throughput with chunks of several sizes"),
    experiment(
        "fig14",
        "Fig. 14: throughput with segments of 4 MiB, cut by Rabin's hash",
    ),
    over_segments(
        "eq8",
        "Eq. 8: dirty chunks and the cases at borders, on random numbers",
    ),
    experiment(
        "table3",
        "Table 3: dedup with segments of 4 MiB, cut by Rabin's hash",
    ),
    experiment(
        "table5",
        "Table 5: dedup with segments of 4 MiB, cut by Adler's hash",
    ),
    experiment(
        "table6",
        "Table 6: dedup with segments of 4 MiB, cut by Gear",
    ),
    experiment(
        "fold",
        "Beyond the paper: throughput with segments of 4 MiB, cut by fold",
    ),
    experiment(
        "stages",
        "Tc, Tf, Ti and Tw/D: what the stages of the baseline take",
    ),
    experiment(
        "eq6",
        "Eqs. 3 to 6: throughput computed of what the stages take, beside what was measured",
    ),
    experiment(
        "cores",
        "Prediction: throughput on more cores by what the stages take here",
    )
    .over("CORES", "cores", Unit::Number, true),
];

const fn over_segments(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("SEGMENT", "segment size (bytes)", Unit::Bytes, true)
}

const fn over_chunks(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("CHUNKS", "expected chunk size (bytes)", Unit::Bytes, true)
}

/// Those that need no data.
const WITHOUT_DATA: [&str; 2] = ["eq8", "eq6"];

/// What reports say of it.
pub const ABOUT: About = About {
    name: "p-dedupe",
    title: "P-Dedupe (Xia et al.)",
    citation: "Xia et al., “P-Dedupe: Exploiting Parallelism in Data Deduplication System” in its journal form",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "one thread and more, as named",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. Levels differ with the data; what counts is how segments stand to sequential chunking of the same bytes.",
    tolerances: "in every case",
    comparison: "All with chunks of 2, 8 and 64 KiB (least, expected, greatest) but for Figs. 12 and 13, by the fastest loops of onefold, whose cuts are those of the loops that papers print, unless a row says otherwise. GB/S is chunking alone, which the paper does not give; DEDUP GB/S is the whole: chunks are cut from data in memory, fingerprinted, looked up in memory, written to containers and recipes in memory. The paper's machine: a quad-core i7 of 2.8 GHz without SHA extensions, its data on a RAM disk.",
    synthetic_bytes: 256 << 20,
};

/// Runs the experiments.
///
/// # Errors
/// When data can't be read or held in memory, and when somebody asked for a stop.
pub fn run(
    plan: &Plan,
    fingerprint: FingerprintKind,
    progress: &mut Progress,
) -> anyhow::Result<Results> {
    let mut results = Results::default();
    if plan.has("eq8") {
        experiments::equation_8(plan, &mut results, progress)?;
    }
    if plan.has("eq6") {
        whole::papers_equations(&mut results);
    }
    if plan.sets.is_empty() {
        let needs_data = |info: &&ExperimentInfo| !WITHOUT_DATA.contains(&info.name);
        for info in EXPERIMENTS.iter().filter(needs_data) {
            if plan.has(info.name) {
                let note = format!("{}: not run, for it needs --data NAME=PATH", info.title);
                results.notes.push(note);
            }
        }
    }
    for set in &plan.sets {
        experiments::on_set(set, plan, fingerprint, &mut results, progress)?;
    }
    results.notes.extend(notes(plan, fingerprint));
    results.claims = claims::claims(&results.figures);
    let computing = whole::computing(plan);
    let of_systems = whole_claims::claims(&results.figures, &computing);
    results.claims.extend(of_systems);
    Ok(results)
}

/// What was done otherwise than in the paper, and how predictions are made.
fn notes(plan: &Plan, fingerprint: FingerprintKind) -> Vec<String> {
    let mut notes = vec![
        "Eq. 8: the paper prints 0.6258 KB; its own terms give 0.614 KB, which is the curve here".to_owned(),
        "Predicted speed-ups of chunking: of times on one thread, cutting segments over ⌈segments / T⌉ rounds, and joining; what threads take from each other is left out".to_owned(),
        format!(
            "Whole systems: fingerprints are {}; data, index, containers and recipes lie in memory, reading is left out; stages hand on {} of chunks at a time, but for rows with a chunk at a time",
            match fingerprint {
                FingerprintKind::Sha1 => "SHA-1",
                FingerprintKind::Blake3 => "the first 20 bytes of BLAKE3",
            },
            crate::units::bytes(system::UNIT_BYTES as u64)
        ),
        "P-Dedupe, N + M threads: N cut, M make fingerprints, one each joins, looks up, writes; first the paper's threads, then those of --threads, split by the costs of the two stages".to_owned(),
        "Predictions for cores: as many threads cut and make fingerprints as there are cores, split by cost; Eq. 6 as printed, and, as predicted GB/s, with joining and no more than the cores can do; memory bandwidth, clocks and waiting are left out".to_owned(),
    ];
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores < published::SPLIT.threads() {
        notes.push(format!(
            "This machine has {}: more threads than that gain nothing, and the paper's speed-ups, of four cores, can't be reached; at most {} threads were asked for",
            crate::units::counted(cores as u64, "core", "cores"),
            plan.threads
        ));
    }
    notes
}

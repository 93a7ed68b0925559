//! The experiments of RapidCDC (Ni ch. 3): chunks cut by the sizes that followed before.
//!
//! Enters: data sets, and which experiments. Leaves: figures beside the paper's, and whether what it
//! says holds. The synthetic sets of §3.4.2 are made up here: ten versions of a random file with edits
//! of 100 bytes, in the paper's density. What needs disks (Fig. 3.16 (a) to (c)) is not run, and disk
//! time in Fig. 3.1 is computed, as the paper computes it.

mod claims;
pub mod experiments;
mod locality;
mod passes;
pub mod published;
mod real;

use super::about::{About, ExperimentInfo, experiment};
use super::{Plan, Results};
use crate::progress::Progress;
use crate::report::ticks::Unit;

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 14] = [
    experiment(
        "fig3.1",
        "Fig. 3.1: shares of chunking, fingerprints and disk in the time to write",
    ),
    experiment(
        "fig3.2",
        "Fig. 3.2: duplicate chunks, and those in LQ sequences, as files come in",
    )
    .over("FILES", "files", Unit::Number, false),
    experiment(
        "fig3.3",
        "Fig. 3.3: chunks in LQ sequences up to a length, as files come in",
    )
    .over(
        "LENGTH",
        "length of the sequence (chunks)",
        Unit::Number,
        true,
    ),
    experiment(
        "fig3.7",
        "Fig. 3.7: speed-up and dedup ratio by the number of edits in 500 MiB",
    )
    .over("EDITS", "edits in 500 MiB", Unit::Number, false),
    experiment(
        "fig3.8",
        "Fig. 3.8: 1000 edits in 500 MiB, in a part of the file",
    )
    .over("PART", "part of the file with edits", Unit::Percent, false),
    experiment(
        "fig3.9",
        "Fig. 3.9: least chunk sizes, with 16 and 64 KiB, 1000 edits in 500 MiB",
    )
    .over("MIN", "least chunk size (bytes)", Unit::Bytes, false),
    experiment("fig3.10", "Fig. 3.10: the same as Fig. 3.7, cut by Gear").over(
        "EDITS",
        "edits in 500 MiB",
        Unit::Number,
        false,
    ),
    experiment(
        "fig3.11",
        "Fig. 3.11: slow-down when every hint is refused after its check",
    )
    .over("EDITS", "edits in 500 MiB", Unit::Number, false),
    experiment(
        "fig3.12",
        "Fig. 3.12: speed-up and dedup ratio on the data sets",
    ),
    experiment(
        "fig3.13",
        "Fig. 3.13: hits at the places of a list of four (FF+RWT)",
    )
    .over("PLACE", "place in the list", Unit::Number, false),
    experiment(
        "fig3.14",
        "Fig. 3.14: speed-up of FF+RWT by the length of lists",
    )
    .over("LISTS", "length of lists", Unit::Number, false),
    experiment(
        "fig3.15",
        "Fig. 3.15: speed-up of chunking and fingerprints together",
    ),
    experiment(
        "fig3.16",
        "Fig. 3.16 (d): dedup ratio of fixed-size chunking beside CDC and RapidCDC",
    ),
    experiment(
        "fig3.17",
        "Fig. 3.17: chunking speed of RapidCDC (FF) on threads, a file each",
    )
    .over("THREADS", "threads", Unit::Number, true),
];

/// The experiments on files that are made up.
const SYNTHETIC: [&str; 5] = ["fig3.7", "fig3.8", "fig3.9", "fig3.10", "fig3.11"];

/// What reports say of it.
pub const ABOUT: About = About {
    name: "rapidcdc",
    title: "RapidCDC (Ni, dissertation 2019, ch. 3)",
    citation: "Ni, “Optimizing Deduplication” (dissertation, UT Arlington 2019), chapter 3: RapidCDC (SoCC 2019)",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "one thread unless named",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. Its synthetic sets are made up as it says (§3.4.2), smaller, with edits in the same density.",
    tolerances: "\"about\" within 25 %, \"the same dedup ratio\" within 0.1 %, in every case",
    comparison: "Rabin's hash over 256 bytes (Gear where named), 4, 8 and 12 KiB, by the loop that papers print, one byte after another, in RapidCDC as in what it is compared with: onefold's own loops are 2 to 10 times as fast, and leave RapidCDC less to skip. Fingerprints are BLAKE3; the paper's are SHA-1.",
    synthetic_bytes: 160 << 20,
};

/// Runs the experiments.
///
/// # Errors
/// When data can't be read or held in memory, and when somebody asked for a stop.
pub fn run(plan: &Plan, progress: &mut Progress) -> anyhow::Result<Results> {
    let mut results = Results::default();
    experiments::synthetic(plan, &mut results, progress)?;
    if plan.sets.is_empty() {
        for info in EXPERIMENTS {
            if plan.has(info.name) && !SYNTHETIC.contains(&info.name) {
                let note = format!("{}: not run, for it needs --data NAME=PATH", info.title);
                results.notes.push(note);
            }
        }
    }
    for set in &plan.sets {
        real::on_set(set, plan, &mut results, progress)?;
    }
    if plan.has("fig3.16") {
        results.notes.push(
            "Fig. 3.16 (a) to (c): not run, for they are of a whole system with disks".to_owned(),
        );
    }
    if plan.has("fig3.1") && !plan.sets.is_empty() {
        results.notes.push("Fig. 3.1: chunking and fingerprints are measured; disk time is what is not duplicate over the paper's disks (138 and 520 MB/s, 1.2 GB/s), and the whole is the longer of processor and disk, for the paper writes while it computes".to_owned());
    }
    if plan.has("fig3.17") && !plan.sets.is_empty() {
        results.notes.push("Fig. 3.17, predicted speed for T threads: bytes / (seconds for T files in turn on one thread, a chunk of each after the other with one history · the share of bytes of the busiest of T threads). What threads take from each other (memory, locks) is left out".to_owned());
    }
    results.claims = claims::claims(&results.figures);
    Ok(results)
}

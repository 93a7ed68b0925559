//! The chunking experiments of the P-Dedupe paper: segments that are cut at the same time, left as
//! they are or joined at their borders.
//!
//! Enters: data sets, and which experiments. Leaves: figures beside the paper's, and whether what it
//! says holds. What the paper says of whole systems (Figs. 10, 13, 14, and the throughput in Tables 5
//! and 6) is not run.

mod claims;
pub mod experiments;
pub mod published;

use super::about::{About, ExperimentInfo, experiment};
use super::{Plan, Results};
use crate::progress::Progress;
use crate::report::ticks::Unit;

/// The name of the random numbers among the data sets.
pub const RANDOM: &str = "RANDOM";

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 6] = [
    experiment(
        "fig9",
        "Fig. 9: what is saved with segments of several sizes, of what sequential chunking saves",
    )
    .over("SEGMENT", "segment size (bytes)", Unit::Bytes, true),
    experiment(
        "fig11",
        "Fig. 11: duplicates that P-Dedupe with jointing does not find, beside Eq. 8",
    )
    .over("SEGMENT", "segment size (bytes)", Unit::Bytes, true),
    experiment(
        "eq8",
        "Eq. 8: dirty chunks and the cases at borders, on random numbers",
    )
    .over("SEGMENT", "segment size (bytes)", Unit::Bytes, true),
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
];

/// What reports say of it.
pub const ABOUT: About = About {
    name: "p-dedupe",
    title: "P-Dedupe (Xia et al.)",
    citation: "Xia et al., “P-Dedupe: Exploiting Parallelism in Data Deduplication System” in its journal form, as far as they are about chunking",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "one thread and more, as named",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. Levels differ with the data; what counts is how segments stand to sequential chunking of the same bytes.",
    tolerances: "in every case",
    comparison: "All with chunks of 2, 8 and 64 KiB (least, expected, greatest), by the fastest loops of onefold, whose cuts are those of the loops that papers print. Speeds are of chunking alone, so that nothing in the paper stands beside them: its throughputs are those of a whole system.",
    synthetic_bytes: 256 << 20,
};

/// Runs the experiments.
///
/// # Errors
/// When data can't be read or held in memory, and when somebody asked for a stop.
pub fn run(plan: &Plan, progress: &mut Progress) -> anyhow::Result<Results> {
    let mut results = Results::default();
    if plan.has("eq8") {
        experiments::equation_8(plan, &mut results, progress)?;
    }
    if plan.sets.is_empty() {
        for info in EXPERIMENTS.iter().filter(|info| info.name != "eq8") {
            if plan.has(info.name) {
                let note = format!("{}: not run, for it needs --data NAME=PATH", info.title);
                results.notes.push(note);
            }
        }
    }
    for set in &plan.sets {
        experiments::on_set(set, plan, &mut results, progress)?;
    }
    results.notes.push(
        "Figs. 10, 13 and 14 and the throughputs of Tables 5 and 6 are not run, for they are of a whole system of four stages; nor is Fig. 12, which varies the size of chunks".to_owned(),
    );
    results.notes.push(format!(
        "{}: the paper prints 0.6258 KB; its own terms give 0.614 KB, which is the curve here",
        EXPERIMENTS[2].title
    ));
    results.notes.push(
        "Predicted speeds: of times on one thread, cutting segments over ⌈segments / T⌉ rounds, and joining; what threads take from each other is left out".to_owned(),
    );
    results.claims = claims::claims(&results.figures);
    Ok(results)
}

//! The experiments of SS-CDC (Ni ch. 2): chunking in two stages, on SIMD and threads.
//!
//! Enters: data sets, and which experiments. Leaves: figures beside the paper's, and whether what it
//! says holds. Whether cuts are invariant (Table 2.1) is found by comparing lists of cuts, on the data
//! that is given and on random numbers.

mod claims;
mod dedup_loss;
mod forms;
mod invariance;
pub mod published;
mod speeds;

use super::about::{About, ExperimentInfo, experiment};
use super::loaded::LoadedSet;
use super::{Plan, Results};
use crate::interrupt;
use crate::progress::Progress;
use crate::report::ticks::Unit;

/// The paper's sizes of chunks: 2, 16 and 64 KiB (§2.4).
const SIZES: [u32; 3] = [2 << 10, 16 << 10, 64 << 10];

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 8] = [
    experiment(
        "fig2.1",
        "Fig. 2.1: dedup ratio that segments of 1 MiB lose, with chunks of 4, 8 and 12 KiB",
    ),
    experiment(
        "table2.1",
        "Table 2.1: whether cuts are those of sequential chunking, tested",
    ),
    experiment(
        "fig2.5",
        "Fig. 2.5: speed-up of two stages on one thread, with chunks of 2, 16 and 64 KiB",
    ),
    experiment("fig2.6", "Fig. 2.6: the same with other least chunk sizes").over(
        "MIN",
        "least chunk size (bytes)",
        Unit::Bytes,
        false,
    ),
    experiment(
        "fig2.7",
        "Fig. 2.7: speed-up of one file on several threads: SFSS (regular), SFMS (SS-CDC)",
    )
    .over("THREADS", "threads", Unit::Number, true),
    experiment(
        "fig2.8",
        "Fig. 2.8: speed-up of a file a thread: MFSS (regular), MFMS (SS-CDC)",
    )
    .over("THREADS", "threads", Unit::Number, true),
    experiment(
        "fig2.9",
        "Fig. 2.9: dedup ratio lost by the size of segments",
    )
    .over("SEGMENT", "segment size (bytes)", Unit::Bytes, true),
    experiment(
        "fig2.10",
        "Fig. 2.10: dedup ratio that SFSS loses with segments of 1 MiB, by the sizes of chunks",
    )
    .over("SIZE", "size that varies (bytes)", Unit::Bytes, true),
];

/// What reports say of it.
pub const ABOUT: About = About {
    name: "ss-cdc",
    title: "SS-CDC (Ni, dissertation 2019, ch. 2)",
    citation: "Ni, “Optimizing Deduplication” (dissertation, UT Arlington 2019), chapter 2: SS-CDC",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "one thread unless named",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. Levels differ with the data; what counts is how the approaches stand to each other.",
    tolerances: "in every case",
    comparison: "CRC-32 over 256 bytes unless named. Speed-ups are over the sequential loop that papers print, one byte after another, of the same chunker. SS-CDC marks every position, as in the paper, but by linear maps on planes of bits instead of gathers; its lazy form, which the paper does not have, skips what lies between a cut and the least size behind it.",
    synthetic_bytes: 64 << 20,
};

/// Runs the experiments.
///
/// # Errors
/// When data can't be read or held in memory, and when somebody asked for a stop.
pub fn run(plan: &Plan, progress: &mut Progress) -> anyhow::Result<Results> {
    let mut results = Results::default();
    if plan.has("table2.1") {
        let random = LoadedSet::random("RANDOM", 2, plan.synthetic_bytes, 16 << 20)?;
        results.sets.push(random.measured());
        invariance::on_set(&random, plan, &mut results, progress)?;
        results.notes.push("Table 2.1 has three columns more. Several cores: P-Dedupe, MUCH and SS-CDC yes, Shredder no (here all run on threads); AVX: SS-CDC yes, Shredder maybe, the others no (here SS-CDC alone has kernels that mark); graphics processors are not tried".to_owned());
    }
    if plan.sets.is_empty() {
        for info in EXPERIMENTS.iter().filter(|info| info.name != "table2.1") {
            if plan.has(info.name) {
                let note = format!("{}: not run, for it needs --data NAME=PATH", info.title);
                results.notes.push(note);
            }
        }
    }
    for given in &plan.sets {
        let set = LoadedSet::load_for(given, plan, &mut results, progress)?;
        if plan.has("table2.1") {
            invariance::on_set(&set, plan, &mut results, progress)?;
        }
        interrupt::check()?;
        dedup_loss::on_set(&set, plan, &mut results, progress)?;
        speeds::on_set(&set, plan, &mut results, progress)?;
    }
    if (plan.has("fig2.7") || plan.has("fig2.8")) && !plan.sets.is_empty() {
        results.notes.push("Predicted speed-ups on T threads, of times on one: SFSS and SFMS: stage 2 + the sum over files of stage 1 · ⌈batches / T⌉ / batches (batches of 1 segment and of 4, of 1 MiB); MFSS and MFMS: the share of bytes of the busiest of T threads, each taking the next file once it is free. Memory bandwidth and clocks that fall with more cores are left out. \"Nothing but computing\" ran in turn with them: it tells how many cores there were".to_owned());
    }
    results.claims = claims::claims(&results.figures);
    Ok(results)
}

//! The experiments of the MACS paper: what containers are filled with, how many are read to restore, and
//! how often the metadata of a container is in memory.
//!
//! Enters: data sets whose versions are backups, and which experiments. Leaves: figures beside the
//! paper's, and whether what it says holds. Chunks are cut by AE and stored in real containers of three
//! schemes (`layout`, `container_bytes`, `stored`; onefold's own form: `own_form`) in a scratch
//! directory; files are put together from them again and compared. Container reads are counted
//! (`crate::restore_caches`), no time is measured.

mod claims;
mod container_bytes;
mod experiments;
mod fragments;
mod layout;
mod locality;
mod metadata;
mod own_form;
pub mod published;
mod rewriting;
mod stored;
mod trace;

use std::path::PathBuf;

use clap::ValueEnum;

pub use layout::Scheme;

use super::about::{About, ExperimentInfo, experiment};
use super::{Plan, Results};
use crate::progress::Progress;
use crate::report::ticks::Unit;

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 12] = [
    experiment(
        "fig1",
        "Fig. 1: small files, by what counts as small, in number and space",
    )
    .over("BELOW", "size below which a file is small (bytes)", Unit::Bytes, true),
    over_chunks("fig2", "Fig. 2: mean chunk size by the expected one"),
    over_chunks("fig3", "Fig. 3: filling ratio of containers with a fixed metadata region"),
    over_chunks("fig6", "Fig. 6: filling ratio of the three container schemes"),
    experiment(
        "regions",
        "Beyond the paper: filling ratio by the size of the fixed metadata region, expected 4 KB",
    )
    .over("REGION", "metadata region (bytes)", Unit::Bytes, true),
    over_chunks(
        "fig7",
        "Fig. 7: speed factor of the three schemes, LRU cache of 30 containers",
    ),
    experiment(
        "versions",
        "Fig. 7, version by version: speed factor, expected 4 KB, LRU cache of 30 containers",
    )
    .over("VERSION", "version", Unit::Number, false),
    experiment(
        "caches",
        "Beyond the paper: speed factor by restore cache and memory, expected 4 KB, all versions",
    )
    .over("MEMORY", "memory (bytes)", Unit::Bytes, true),
    experiment(
        "fig8",
        "Fig. 8: speed factor at equal dedup ratios, by rewriting policy, expected 4 KB",
    )
    .over("KEPT", "dedup ratio kept, of that without rewriting", Unit::Percent, false),
    experiment(
        "rewriting",
        "Fig. 8, version by version: dedup ratio and speed factor by rewriting policy, expected 4 KB",
    )
    .over("VERSION", "version", Unit::Number, false),
    experiment(
        "fig9",
        "Fig. 9: duplicates whose container's metadata is in memory, expected 4 KB, cache of 1 MiB",
    )
    .over("VERSION", "version", Unit::Number, false),
    experiment(
        "lookups",
        "§III-C, §III-D: hit ratio and disk reads by the size of the metadata cache, from version 2 on",
    )
    .over("CACHE", "metadata cache (bytes)", Unit::Bytes, true),
];

const fn over_chunks(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("CHUNKS", "expected chunk size (bytes)", Unit::Bytes, true)
}

/// What reports say of it.
pub const ABOUT: About = About {
    name: "macs",
    title: "MACS (Mo et al.)",
    citation: "Mo et al., “A Cost-Efficient Metadata Scheme for High-Performance Deduplication Systems”",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "no time measured",
    stand_ins: "The paper's own data can't be had: what is given stands in for it. It draws its figures without numbers.",
    tolerances: "in every case",
    comparison: "Chunks are cut by AE, at most 8 times the expected size; containers of 4 MiB, entries of 28 bytes, SHA-1. Filling ratio: chunks, their entries, tag or head, over what containers take. \"ours\": compressed and sealed groups in containers of the product, closed after each version.",
    synthetic_bytes: 0,
};

/// In which form containers are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ContainerForm {
    /// As in the paper: uncompressed, entries of 28 bytes
    Paper,
    /// As in onefold: compressed, sealed
    Ours,
    /// Both
    #[default]
    Both,
}

/// What only this paper is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where containers lie while it runs.
    pub scratch: PathBuf,
    /// Their form.
    pub form: ContainerForm,
    /// By which schemes they are filled.
    pub schemes: Vec<Scheme>,
}

/// Runs the experiments; returns also how many bytes of data lay in memory at most.
///
/// # Errors
/// When data can't be read or containers not be written, what comes back is not what went in, or
/// somebody asked for a stop.
pub fn run(
    plan: &Plan,
    options: &Options,
    progress: &mut Progress,
) -> anyhow::Result<(Results, u64)> {
    let mut results = Results::default();
    let mut largest = 0;
    if plan.sets.is_empty() {
        for info in EXPERIMENTS.iter().filter(|info| plan.has(info.name)) {
            let note = format!("{}: not run, for it needs --data NAME=PATH", info.title);
            results.notes.push(note);
        }
    }
    for set in &plan.sets {
        largest = largest.max(experiments::on_set(
            set,
            plan,
            options,
            &mut results,
            progress,
        )?);
    }
    if !plan.sets.is_empty() {
        results.notes.extend(NOTES.map(str::to_owned));
    }
    results.claims = claims::claims(&results.figures);
    Ok((results, largest))
}

/// What is done where the paper is silent.
const NOTES: [&str; 5] = [
    "In the paper's form a container stays open from version to version; \"closed\": it is closed after each version, and takes 4 MiB all the same",
    "The fixed metadata region has 4 MiB / expected size entries (Eq. 1 with ε = 0); SACS's table doubles when it is full and still fits",
    "Memory of restore caches is counted in containers of 4 MiB; in our form those are compressed, and chunks count with their plain bytes",
    "Restore caches: all versions together, MiB over container reads; every version restored from its containers through the LRU cache, files compared, at 4 KB all versions, otherwise the last",
    "Fig. 9: a duplicate of a chunk in the open container is a hit; the paper says that version 1 has none, here its own duplicates count",
];

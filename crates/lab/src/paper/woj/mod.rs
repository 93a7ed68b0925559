//! The experiments of the WOJ paper (Ni, ch. 4): data journaling that writes once.
//!
//! Enters: how much is written, where volumes lie, directories to copy. Leaves: figures beside the
//! paper's, and whether what it says holds. The policies are those of the volume (`approaches`), under a real ext4 (`ext4`,
//! `workloads`) or a journal that is made up (`synthetic`); what comes back wrong is counted (`observed`).
//! Blocks and flushes are counted; times are those of a model of the paper's disks (`model`), with the hashes as
//! fast as they are here (`hashes`).

mod approaches;
mod claims;
mod experiments;
mod ext4;
mod hashes;
mod memory;
mod model;
mod observed;
pub mod published;
mod synthetic;
mod workloads;

pub use approaches::FINGERPRINTS;

use std::path::PathBuf;

use super::about::{About, ExperimentInfo, experiment};
use super::{MeasuredSet, Plan, Results};
use crate::chunk::data::DataSet;
use crate::chunk::loader::Reading;
use crate::progress::Progress;
use crate::report::chunk_report::DataReport;
use crate::report::ticks::Unit;

/// The experiments.
pub const EXPERIMENTS: [ExperimentInfo; 10] = [
    experiment(
        "table4.1",
        "Table 4.1: hash functions on blocks of 4 KiB, MiB/s, one thread",
    ),
    over_windows(
        "fig4.2",
        "Fig. 4.2: sequential writes on ext4, by the flush window",
    ),
    over_windows(
        "fig4.3",
        "Fig. 4.3: WOJ by hash function, sequential writes",
    ),
    experiment(
        "fig4.4",
        "Fig. 4.4: latency of flush windows, sequential writes, by the model",
    )
    .over("WINDOWS", "share of the windows", Unit::Percent, false),
    over_windows(
        "fig4.5",
        "Fig. 4.5: random writes on ext4, by the flush window",
    ),
    experiment("fig4.6", "Fig. 4.6: jobs like Filebench's"),
    experiment(
        "fig4.7",
        "Fig. 4.7: a job like LevelDB's, by the size of values",
    )
    .over("VALUE", "value (bytes)", Unit::Bytes, true),
    experiment("fig4.8", "Fig. 4.8: real files copied twice"),
    experiment(
        "memory",
        "§4.3.6: memory of the pool, by the size of the journal",
    )
    .over("JOURNAL", "journal (bytes)", Unit::Bytes, true),
    over_windows(
        "synthetic",
        "Beyond the paper: a journal that is made up, without a file system, by the flush window",
    ),
];

/// Those that need a file system.
const ON_FILE_SYSTEMS: [&str; 7] = [
    "fig4.2", "fig4.3", "fig4.4", "fig4.5", "fig4.6", "fig4.7", "fig4.8",
];

const fn over_windows(name: &'static str, title: &'static str) -> ExperimentInfo {
    experiment(name, title).over("WINDOW", "writes to an fsync", Unit::Number, true)
}

/// What reports say of it.
pub const ABOUT: About = About {
    name: "woj",
    title: "WOJ (Ni, ch. 4)",
    citation: "Ni, dissertation, UT Arlington 2019, ch. 4: “WOJ: Enabling Write-Once Full-data Journaling in SSDs by Using Weak-Hashing-based Deduplication”",
    experiments: &EXPERIMENTS,
    data_sets: &published::DATA_SETS,
    threads: "jobs of one thread",
    stand_ins: "The paper has ext3 on Dmdedup on three SSDs; here ext4 is on a volume of ours, through FUSE and a loop device. It draws most figures without numbers.",
    tolerances: "in every case",
    comparison: "Writes: blocks that the volume writes, data and metadata, over blocks that the program writes, until everything in the journal has gone home. MB/s and latencies of the SSDs are those of a model; wall: here, FUSE and comparing included. Full_sha1 stands for Dmdedup_sha1.",
    synthetic_bytes: 0,
};

/// What only this paper is asked.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of the disks.
    pub disk_bytes: u64,
    /// Bytes of the file systems' journals.
    pub journal_bytes: u64,
    /// Where volumes lie; none: in memory.
    pub work: Option<PathBuf>,
    /// Names of the fingerprints by which blocks are looked up ([`FINGERPRINTS`]); none: all of them. What looks nothing up
    /// runs in any case, to compare with.
    pub fingerprints: Vec<String>,
}

/// Runs the experiments.
///
/// # Errors
/// When a volume or a file system fails, or somebody asked for a stop.
pub fn run(plan: &Plan, options: &Options, progress: &mut Progress) -> anyhow::Result<Results> {
    let mut results = Results::default();
    let costs = hashes::measure(plan.runs, plan.synthetic_bytes, progress)?;
    if plan.has("table4.1") {
        hashes::table(&costs, &mut results);
    }
    if plan.has("memory") {
        memory::memory(&mut results);
    }
    let mut bench = experiments::Bench::new(plan, options, &costs);
    if plan.has("synthetic") {
        bench.synthetic(&mut results, progress)?;
    }
    let wanted: Vec<&str> = ON_FILE_SYSTEMS
        .into_iter()
        .filter(|name| plan.has(name))
        .collect();
    if !wanted.is_empty() {
        match ext4::missing() {
            None => bench.on_file_systems(&mut results, progress)?,
            Some(what) => results.notes.push(format!(
                "{} not run, for they need a real ext4, and {what}",
                wanted.join(", ")
            )),
        }
    }
    if plan.has("fig4.8") && plan.sets.is_empty() {
        let note = "fig4.8 not run, for it needs --data NAME=PATH";
        results.notes.push(note.to_owned());
    }
    for set in &plan.sets {
        let mut reading = Reading::default();
        for path in &set.paths {
            workloads::count(path, &mut reading.streams, &mut reading.bytes)?;
        }
        let is_sample = reading.bytes > plan.size_bytes;
        reading.bytes = reading.bytes.min(plan.size_bytes);
        results.sets.push(MeasuredSet {
            name: set.name.clone(),
            is_sample,
            data: DataReport::new(&set.paths, &DataSet::default(), &reading),
            notices: Vec::new(),
        });
    }
    results.notes.append(&mut bench.mishaps);
    results.notes.extend(bench.pools());
    results.notes.extend(published::SSDS.map(|ssd| {
        format!(
            "Model of the {}: {:.0} MB/s, {} ms a flush (assumed)",
            ssd.name,
            ssd.write_bytes_per_second / 1e6,
            ssd.flush_ms
        )
    }));
    results.notes.extend(NOTES.map(str::to_owned));
    results.claims = claims::claims(&results.figures);
    Ok(results)
}

/// What is done where the paper is silent, or otherwise than there.
const NOTES: [&str; 5] = [
    "`ram` keeps the mapping in memory, as the paper's INRAM does; `thin` makes it durable, metadata counted apart",
    "The published fingerprint (64 bytes) can return wrong data: wrong blocks are those of the disk at the end, wrong writes those that a read behind the next flush found wrong, each time",
    "Windows of one write: an eighth of the writes",
    "varmail-like and fileserver-like: one thread; the latter syncs each hundredth round in place of time that passes. LevelDB-like is a log, sorted files of 2 MiB and merges of two levels, no LevelDB",
    "Journals of the paper are 256 MB, of ext3; jobs there write 8 GB",
];

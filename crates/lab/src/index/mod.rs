//! The fingerprint index alone, on synthetic fingerprints: how fast it is built, how large it is, how
//! fast look-ups are, and in how much memory.
//!
//! Enter: a number of fingerprints and a limit of memory. Leaves: what was measured. The index is the
//! one that backups use (`engine::index::RunSet` on a local store, sealed and synced as theirs is);
//! fingerprints are random, as keyed hashes are, in containers of 512, and come in the order of a
//! first backup. Nothing is kept of them: the n-th can be made again.
//!
//! All runs on one thread, merges too, which a backup does beside its other work.
//!
//! *Cold* means that the pages of the runs were dropped from the page cache before (`posix_fadvise`),
//! *warm* that what is measured was done before. A measurement ends after so many look-ups or seconds.

pub mod control_group;
mod process;
mod synthetic;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::ensure;
use engine::format::Vault;
use engine::index::{IndexStatistics, RunSet};
use engine::object::{LocalStore, ObjectId, ObjectStore};
use serde::Serialize;
use zeroize::Zeroizing;

use crate::interrupt;
use crate::progress::Progress;
use synthetic::{CONTAINER_CHUNKS, Fingerprints, METADATA_BYTES};

/// Entries that a run is written of: what a backup gathers of recent chunks before it writes one, in
/// 64 MiB of memory for the index.
const RUN_ENTRIES: u64 = 160_000;

/// Look-ups between two looks at the clock.
const LOOKUPS_A_ROUND: u64 = 1000;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Fingerprints in the index.
    pub entries: u64,
    /// Limit of its memory in bytes.
    pub memory_bytes: usize,
    /// Most look-ups of a measurement.
    pub lookups: u64,
    /// Most seconds of a measurement.
    pub seconds: u64,
}

/// Building it.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// Seconds, merges and syncs included.
    pub seconds: f64,
    /// Seconds of processor.
    pub cpu_seconds: f64,
    /// Those of merges alone.
    pub merge_seconds: f64,
    /// Fingerprints a second.
    pub entries_per_second: f64,
    /// How often an entry was written, the first time included.
    pub writes_per_entry: f64,
    /// Most runs that were there after a merge.
    pub runs_most: u64,
    /// Runs in the end.
    pub runs: u64,
    /// Bytes in the store for each fingerprint.
    pub bytes_per_entry: f64,
    /// Most memory that the index counted as its own.
    pub counted_bytes_most: u64,
    /// Most memory of the process so far.
    pub peak_rss_bytes: Option<u64>,
}

/// Look-ups of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// What was looked up, and how.
    pub what: &'static str,
    /// Was the page cache cold?
    pub is_cold: bool,
    /// Fingerprints asked for.
    pub lookups: u64,
    /// Those that the index itself was asked for.
    pub index_lookups: u64,
    /// Seconds for all of them.
    pub seconds: f64,
    /// Seconds of processor: on a machine that has other work, what they would have taken at least.
    pub cpu_seconds: f64,
    /// Fingerprints a second.
    pub lookups_per_second: f64,
    /// Blocks read for each that the index was asked for.
    pub block_reads: f64,
    /// Planes of filters read meanwhile.
    pub filter_reads: u64,
    /// Runs that a filter let pass in error, for each.
    pub false_positives: f64,
    /// Runs without a filter in memory that had to be searched in vain, for each.
    pub unfiltered_misses: f64,
}

/// Opening it.
#[derive(Debug, Clone, Serialize)]
pub struct Opening {
    /// Was the page cache cold?
    pub is_cold: bool,
    /// Seconds until the first look-up can be made.
    pub seconds: f64,
}

/// Memory in the end, with filters loaded.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    /// The limit.
    pub limit_bytes: u64,
    /// All that the index counts.
    pub counted_bytes: u64,
    /// Footers of runs.
    pub footer_bytes: u64,
    /// Planes of filters.
    pub filter_bytes: u64,
    /// Blocks.
    pub block_bytes: u64,
    /// Most memory of the process.
    pub peak_rss_bytes: Option<u64>,
}

/// What came out.
#[derive(Debug, Clone, Serialize)]
pub struct Results {
    /// Building it.
    pub build: Build,
    /// Opening it, cold and warm.
    pub openings: Vec<Opening>,
    /// Look-ups.
    pub measurements: Vec<Measurement>,
    /// Memory.
    pub memory: Memory,
}

/// Builds an index in `directory`, which must be empty, and measures it.
///
/// # Errors
/// When the store fails, an answer is wrong, or somebody asked for a stop.
pub fn measure(
    experiment: &Experiment,
    directory: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Results> {
    let place = Place::new(directory, experiment.memory_bytes)?;
    let fingerprints = Fingerprints::new(experiment.entries);
    let build = build(experiment, &place, &fingerprints, progress)?;
    let mut openings = Vec::new();
    for is_cold in [true, false] {
        if is_cold {
            process::drop_pages(directory)?;
        }
        let start = Instant::now();
        place.open()?;
        openings.push(Opening {
            is_cold,
            seconds: start.elapsed().as_secs_f64(),
        });
    }
    let mut lab = LookUps {
        experiment,
        place: &place,
        fingerprints: &fingerprints,
        set: place.open()?,
        measurements: Vec::new(),
    };
    lab.all(directory, progress)?;
    let LookUps {
        set, measurements, ..
    } = lab;
    ensure!(set.damaged().is_empty(), "the index is damaged");
    let statistics = set.statistics();
    Ok(Results {
        build,
        openings,
        measurements,
        memory: Memory {
            limit_bytes: experiment.memory_bytes as u64,
            counted_bytes: statistics.memory_bytes(),
            footer_bytes: statistics.footer_bytes,
            filter_bytes: statistics.filter_bytes,
            block_bytes: statistics.cache_bytes,
            peak_rss_bytes: process::peak_rss_bytes(),
        },
    })
}

/// Where the index lies, and what it is opened with.
struct Place {
    store: Arc<dyn ObjectStore>,
    vault: Arc<Vault>,
    memory_bytes: usize,
}

impl Place {
    fn new(directory: &Path, memory_bytes: usize) -> anyhow::Result<Self> {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
        Ok(Self {
            store: Arc::new(LocalStore::create(directory)?),
            vault: Arc::new(Vault::new(ObjectId([1; 16]), secrets, true)),
            memory_bytes,
        })
    }

    fn open(&self) -> anyhow::Result<RunSet> {
        let (store, vault) = (Arc::clone(&self.store), Arc::clone(&self.vault));
        Ok(RunSet::open(store, vault, self.memory_bytes)?)
    }
}

fn build(
    experiment: &Experiment,
    place: &Place,
    fingerprints: &Fingerprints,
    progress: &mut Progress,
) -> anyhow::Result<Build> {
    let set = place.open()?;
    let cancel = AtomicBool::new(false);
    let start = Instant::now();
    let cpu_start = process::cpu_seconds();
    let mut merging = Duration::ZERO;
    let (mut runs_most, mut rewritten) = (0, 0);
    progress.expect(experiment.entries);
    let mut first = 0;
    let mut entries = Vec::new();
    while first < experiment.entries {
        interrupt::check()?;
        // Whole containers, as runs have them.
        let end =
            (first + RUN_ENTRIES / CONTAINER_CHUNKS * CONTAINER_CHUNKS).min(experiment.entries);
        entries.clear();
        entries.extend((first..end).map(|number| fingerprints.entry(number)));
        set.write_run_with(&mut entries, &[], &|_| METADATA_BYTES)?;
        let merge_start = Instant::now();
        rewritten += set.merge(&|_| true, &cancel)?.entries_after;
        merging += merge_start.elapsed();
        let statistics = set.statistics();
        runs_most = runs_most.max(statistics.runs);
        progress.advance(end - first, "building");
        first = end;
    }
    let seconds = start.elapsed().as_secs_f64();
    let statistics = set.statistics();
    let each = |number: u64| number as f64 / experiment.entries as f64;
    ensure!(
        statistics.entries == experiment.entries,
        "{} entries are in the index, not {}",
        statistics.entries,
        experiment.entries
    );
    Ok(Build {
        seconds,
        cpu_seconds: process::cpu_seconds() - cpu_start,
        merge_seconds: merging.as_secs_f64(),
        entries_per_second: experiment.entries as f64 / seconds,
        writes_per_entry: 1.0 + each(rewritten),
        runs_most,
        runs: statistics.runs,
        bytes_per_entry: each(statistics.store_bytes),
        counted_bytes_most: statistics.memory_bytes_most,
        peak_rss_bytes: process::peak_rss_bytes(),
    })
}

/// Look-ups of every kind.
struct LookUps<'a> {
    experiment: &'a Experiment,
    place: &'a Place,
    fingerprints: &'a Fingerprints,
    set: RunSet,
    measurements: Vec<Measurement>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Fingerprints in the order in which they were stored; those of a container that was found are
    /// then known without the index.
    Stream,
    Hits,
    Misses,
}

impl LookUps<'_> {
    fn all(&mut self, directory: &Path, progress: &mut Progress) -> anyhow::Result<()> {
        // A backup that begins: no filter is in memory, no page is cached.
        for (what, kind) in [
            ("stream order, just opened", Kind::Stream),
            ("hits, just opened", Kind::Hits),
            ("misses, just opened", Kind::Misses),
        ] {
            self.set = self.place.open()?;
            process::drop_pages(directory)?;
            self.run(what, kind, true, self.experiment.lookups / 10)?;
            progress.note(what);
        }
        self.load_filters()?;
        for is_cold in [true, false] {
            for (what, kind) in [
                ("stream order", Kind::Stream),
                ("hits", Kind::Hits),
                ("misses", Kind::Misses),
            ] {
                let lookups = if is_cold {
                    process::drop_pages(directory)?;
                    self.experiment.lookups / 10
                } else {
                    self.experiment.lookups
                };
                self.run(what, kind, is_cold, lookups)?;
                progress.note(what);
            }
        }
        Ok(())
    }

    /// Asks for what is not there until no more filters come.
    fn load_filters(&mut self) -> anyhow::Result<()> {
        let mut reads = u64::MAX;
        for round in 0.. {
            interrupt::check()?;
            for number in 0..100 * LOOKUPS_A_ROUND {
                let absent = self
                    .fingerprints
                    .absent(round * 100 * LOOKUPS_A_ROUND + number);
                self.set.candidates(absent, &mut Vec::new());
            }
            let now = self.set.statistics().filter_reads;
            if now == reads || round == 100 {
                break;
            }
            reads = now;
        }
        Ok(())
    }

    fn run(
        &mut self,
        what: &'static str,
        kind: Kind,
        is_cold: bool,
        lookups: u64,
    ) -> anyhow::Result<()> {
        let before = self.set.statistics();
        // Other fingerprints each time, the same ones in every run of the program.
        let salt = self.measurements.len() as u64 + 1;
        let limit = Duration::from_secs(self.experiment.seconds);
        let (start, cpu_start) = (Instant::now(), process::cpu_seconds());
        let mut done = 0;
        let mut near = HashMap::new();
        while done < lookups && start.elapsed() < limit {
            interrupt::check()?;
            let count = LOOKUPS_A_ROUND.min(lookups - done);
            match kind {
                Kind::Stream => self.stream(salt, done, count, &mut near)?,
                Kind::Hits => self.hits(salt, done, count)?,
                Kind::Misses => self.misses(salt, done, count)?,
            }
            done += count;
        }
        let seconds = [
            start.elapsed().as_secs_f64(),
            process::cpu_seconds() - cpu_start,
        ];
        self.note(what, is_cold, done, seconds, &before);
        Ok(())
    }

    fn stream(
        &self,
        salt: u64,
        done: u64,
        count: u64,
        near: &mut HashMap<u64, u64>,
    ) -> anyhow::Result<()> {
        let mut out = Vec::new();
        let first = self.fingerprints.pick(salt, 0) / CONTAINER_CHUNKS * CONTAINER_CHUNKS;
        for number in done..done + count {
            let number = (first + number) % self.experiment.entries;
            let entry = self.fingerprints.entry(number);
            if near.contains_key(&entry.prefix) {
                continue;
            }
            out.clear();
            self.set.candidates(entry.prefix, &mut out);
            ensure!(out.contains(&entry.address), "fingerprint {number} is lost");
            // A backup reads the metadata of that container now.
            near.clear();
            let container = number / CONTAINER_CHUNKS * CONTAINER_CHUNKS;
            let end = (container + CONTAINER_CHUNKS).min(self.experiment.entries);
            near.extend((container..end).map(|n| (self.fingerprints.entry(n).prefix, n)));
        }
        Ok(())
    }

    fn hits(&self, salt: u64, done: u64, count: u64) -> anyhow::Result<()> {
        let mut out = Vec::new();
        for number in done..done + count {
            let number = self.fingerprints.pick(salt, number);
            let entry = self.fingerprints.entry(number);
            out.clear();
            self.set.candidates(entry.prefix, &mut out);
            ensure!(out.contains(&entry.address), "fingerprint {number} is lost");
        }
        Ok(())
    }

    fn misses(&self, salt: u64, done: u64, count: u64) -> anyhow::Result<()> {
        let mut out = Vec::new();
        for number in done..done + count {
            let absent = self.fingerprints.absent(salt << 40 | number);
            self.set.candidates(absent, &mut out);
        }
        ensure!(out.is_empty(), "what was never stored was found");
        Ok(())
    }

    fn note(
        &mut self,
        what: &'static str,
        is_cold: bool,
        lookups: u64,
        [seconds, cpu_seconds]: [f64; 2],
        before: &IndexStatistics,
    ) {
        let now = self.set.statistics();
        let index_lookups = now.lookups - before.lookups;
        let each = |count: u64| count as f64 / index_lookups.max(1) as f64;
        self.measurements.push(Measurement {
            what,
            is_cold,
            lookups,
            index_lookups,
            seconds,
            cpu_seconds,
            lookups_per_second: lookups as f64 / seconds,
            block_reads: each(now.block_reads - before.block_reads),
            filter_reads: now.filter_reads - before.filter_reads,
            false_positives: each(now.filter_false_positives - before.filter_false_positives),
            unfiltered_misses: each(now.unfiltered_misses - before.unfiltered_misses),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_index_is_built_and_asked() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = Experiment {
            entries: 400_000,
            memory_bytes: 8 << 20,
            lookups: 20_000,
            seconds: 20,
        };
        let results = measure(&experiment, directory.path(), &mut Progress::new(true)).unwrap();
        let build = &results.build;
        assert!(
            build.bytes_per_entry > 8.0 && build.bytes_per_entry < 14.0,
            "{build:?}"
        );
        assert!(build.writes_per_entry > 1.0 && build.runs >= 1);
        assert!(results.memory.counted_bytes <= 8 << 20);
        assert!(build.counted_bytes_most <= 8 << 20);
        assert_eq!(results.measurements.len(), 9);
        for measured in &results.measurements {
            assert!(measured.lookups > 0 && measured.block_reads <= build.runs as f64 + 0.1);
            let is_stream = measured.what.starts_with("stream");
            assert!(!is_stream || measured.index_lookups <= measured.lookups / 512 + 2);
        }
        let misses = &results.measurements[8];
        assert!(
            misses.block_reads < 0.1 && misses.false_positives < 0.1,
            "{misses:?}"
        );
    }
}

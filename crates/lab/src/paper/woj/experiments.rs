//! Runs: a job on a file system on a volume, or the made-up journal; and the figures of each.
//!
//! Each approach has a new volume and a new file system. What counts begins when it is mounted for the job, and
//! ends when it is unmounted and flushed, so that everything in the journal has gone home. Runs are kept: figures
//! that share one do not run it again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use volume::BlockDevice;
use volume::address::BLOCK_BYTES;
use volume::backing::{Backing, FileBacking, MemoryBacking};
use volume::stat::{Counters, Usage};

use super::Options;
use super::approaches::{Approach, BY_HASH, FULL, MAIN, NO_DEDUP, PUBLISHED, THIN, WHOLE};
use super::ext4::Disk;
use super::hashes::Costs;
use super::model::percentile;
use super::published::{AMPLIFICATIONS, SSDS, WINDOWS, WOJ_MEGABYTES};
use super::synthetic;
use super::workloads::{Client, Job};
use crate::interrupt;
use crate::paper::figure::Figure;
use crate::paper::{Plan, Results};
use crate::progress::Progress;

/// Metrics.
pub const AMPLIFICATION: &str = "write_amplification";
pub const DATA: &str = "data_amplification";
pub const METADATA: &str = "metadata_amplification";
pub const OF_NO_DEDUP: &str = "writes_of_no_dedup_percent";
pub const HOME_HITS: &str = "home_hits_percent";
pub const WRONG: &str = "wrong_blocks";
pub const WRONG_WRITES: &str = "wrong_writes";
pub const LATENCY: &str = "window_latency_ms";
pub const WALL: &str = "wall_megabytes_per_second";
/// Throughput by the model, in the order of the SSDs.
pub const SPEEDS: [&str; 3] = [
    "fast_ssd_megabytes_per_second",
    "moderate_ssd_megabytes_per_second",
    "slow_ssd_megabytes_per_second",
];

/// Random writes have one window more, that of an earlier measurement.
const RANDOM_WINDOWS: [u32; 5] = [1, 10, 32, 100, 1000];
/// Shares of windows, of 100.
const SHARES: [f64; 7] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];
/// Bytes of values of Fig. 4.7.
const VALUES: [u32; 3] = [100, 1000, 4000];
/// Blocks of the made-up journal.
const SYNTHETIC_JOURNAL_BLOCKS: u64 = 4096;

/// What a run gave.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Blocks that the program wrote.
    blocks: u64,
    counted: Counters,
    /// Of each window.
    windows: Vec<Counters>,
    seconds: f64,
    wrong_blocks: u64,
    /// Only of the published pool.
    wrong_writes: u64,
    usage: Usage,
}

impl Measured {
    fn amplification(&self, blocks: u64) -> f64 {
        blocks as f64 / self.blocks.max(1) as f64
    }

    /// MB that programs write in so many seconds.
    fn megabytes(&self, seconds: f64) -> f64 {
        self.blocks as f64 * BLOCK_BYTES as f64 / 1e6 / seconds.max(1e-9)
    }
}

/// Everything that runs share.
pub struct Bench<'a> {
    plan: &'a Plan,
    options: &'a Options,
    costs: &'a Costs,
    runs: HashMap<(Job, Approach), Measured>,
    /// What went wrong on volumes that return wrong data.
    pub mishaps: Vec<String>,
}

/// Where a volume's blocks are; the directory is gone at the end.
fn backing(work: Option<&Path>, bytes: u64) -> Result<(Arc<dyn Backing>, Option<TempDir>)> {
    let Some(work) = work else {
        return Ok((Arc::new(MemoryBacking::new(bytes)), None));
    };
    let place = tempfile::tempdir_in(work).context("making a place for volumes")?;
    let file = FileBacking::create(&place.path().join("volume"), bytes);
    Ok((
        Arc::new(file.context("making a volume's file")?),
        Some(place),
    ))
}

impl<'a> Bench<'a> {
    /// Nothing has run yet.
    pub fn new(plan: &'a Plan, options: &'a Options, costs: &'a Costs) -> Self {
        Self {
            plan,
            options,
            costs,
            runs: HashMap::new(),
            mishaps: Vec::new(),
        }
    }

    /// A job on real ext4.
    fn run(&mut self, job: &Job, approach: &Approach, progress: &mut Progress) -> Result<Measured> {
        let key = (job.clone(), *approach);
        if let Some(known) = self.runs.get(&key) {
            return Ok(known.clone());
        }
        interrupt::check()?;
        progress.expect(self.plan.size_bytes);
        let what = || format!("{} on {}", job.name(), approach.name);
        let measured = self.on_ext4(job, approach).with_context(what)?;
        progress.advance(self.plan.size_bytes, &what());
        self.runs.insert(key, measured.clone());
        Ok(measured)
    }

    fn on_ext4(&mut self, job: &Job, approach: &Approach) -> Result<Measured> {
        let options = self.options;
        let bytes = approach.backing_bytes(options.disk_bytes);
        let (backing, _place) = backing(options.work.as_deref(), bytes)?;
        let device = approach.make(backing, options.disk_bytes, "auto")?;
        let mut disk = Disk::new(device.clone(), options.journal_bytes)?;
        device.flush()?;
        if approach.has_journal() {
            let (ranges, problem) = device.volume().journal();
            let why = problem.unwrap_or_default();
            ensure!(!ranges.is_empty(), "no journal was found: {why}");
        }
        let size = self.plan.size_bytes;
        job.prepare(&mut Client::new(disk.mount()?, &device, size, 1))?;
        disk.unmount()?;
        let root = disk.mount()?;
        device.flush()?;
        let before = device.volume().counters();
        let clock = Instant::now();
        let mut client = Client::new(root, &device, size, 2);
        let done = job.run(&mut client).and_then(|()| disk.unmount());
        device.flush()?;
        let seconds = clock.elapsed().as_secs_f64();
        let (blocks, ends) = (client.blocks, client.windows);
        if let Err(error) = done {
            // Wrong data may be too much for a file system.
            if !approach.is_published || interrupt::check().is_err() {
                return Err(error);
            }
            let mishap = format!("{} on {} ended early: {error:#}", job.name(), approach.name);
            self.mishaps.push(mishap);
        }
        let mut measured = Measured {
            blocks,
            counted: device.volume().counters().since(&before),
            seconds,
            usage: device.volume().usage(),
            ..Measured::default()
        };
        let mut last = before;
        for end in ends {
            measured.windows.push(end.since(&last));
            last = end;
        }
        measured.wrong_blocks = device.wrong_blocks()?;
        measured.wrong_writes = device.wrong_writes();
        disk.close()?;
        Ok(measured)
    }

    /// What every run gives.
    fn figures(
        &self,
        place: (&'static str, &str, Option<f64>),
        approach: &Approach,
        measured: &Measured,
        no_dedup: &Measured,
        results: &mut Results,
    ) {
        let (experiment, set, x) = place;
        let mut add = |metric, ours: f64, paper| {
            let figure = Figure::new(experiment, set, approach.name, metric);
            let figure = Figure { x, ..figure }.with(ours, paper);
            results.figures.push(figure);
        };
        let printed = Printed::of(experiment, approach, x);
        let counted = &measured.counted;
        let all = counted.blocks_written();
        add(
            AMPLIFICATION,
            measured.amplification(all),
            printed.amplification,
        );
        add(
            DATA,
            measured.amplification(counted.data_blocks_written),
            None,
        );
        let metadata = counted.metadata_blocks_written();
        add(METADATA, measured.amplification(metadata), None);
        let of =
            measured.amplification(all) / no_dedup.amplification(no_dedup.counted.blocks_written());
        add(OF_NO_DEDUP, 100.0 * of, None);
        if approach.has_journal() {
            let home = counted.user_blocks_written - counted.journal_blocks_written;
            let share = counted.journal_hits as f64 / home.max(1) as f64;
            add(HOME_HITS, 100.0 * share, None);
        }
        add(WRONG, measured.wrong_blocks as f64, None);
        if approach.is_published {
            add(WRONG_WRITES, measured.wrong_writes as f64, None);
        }
        for (number, ssd) in SSDS.iter().enumerate() {
            let seconds = ssd.seconds(counted, self.hash_seconds(approach));
            let paper = printed.fast_megabytes.filter(|_| number == 0);
            add(SPEEDS[number], measured.megabytes(seconds), paper);
        }
        if measured.seconds > 0.0 {
            add(WALL, measured.megabytes(measured.seconds), None);
        }
    }

    fn hash_seconds(&self, approach: &Approach) -> f64 {
        approach.hash().map_or(0.0, |hash| self.costs.seconds(hash))
    }

    /// A job by some approaches.
    fn compare(
        &mut self,
        (experiment, set, x): (&'static str, &str, Option<f64>),
        job: &Job,
        approaches: &[Approach],
        results: &mut Results,
        progress: &mut Progress,
    ) -> Result<()> {
        let no_dedup = self.run(job, &NO_DEDUP, progress)?;
        let fingerprints = &self.options.fingerprints;
        let wanted = approaches.iter().filter(|it| it.is_among(fingerprints));
        for approach in wanted.copied().collect::<Vec<_>>() {
            let approach = &approach;
            let measured = self.run(job, approach, progress)?;
            self.figures(
                (experiment, set, x),
                approach,
                &measured,
                &no_dedup,
                results,
            );
        }
        Ok(())
    }

    /// Figs. 4.2 to 4.8.
    pub fn on_file_systems(
        &mut self,
        results: &mut Results,
        progress: &mut Progress,
    ) -> Result<()> {
        let sequential = |window| Job::Sequential { window };
        for window in WINDOWS {
            let x = Some(f64::from(window));
            for (experiment, approaches) in [("fig4.2", &MAIN[..]), ("fig4.3", &BY_HASH)] {
                if self.plan.has(experiment) {
                    let place = (experiment, "sequential", x);
                    self.compare(place, &sequential(window), approaches, results, progress)?;
                }
            }
            if self.plan.has("fig4.4") {
                self.latencies(window, results, progress)?;
            }
        }
        if self.plan.has("fig4.5") {
            for window in RANDOM_WINDOWS {
                let place = ("fig4.5", "random", Some(f64::from(window)));
                self.compare(place, &Job::Random { window }, &MAIN, results, progress)?;
            }
        }
        if self.plan.has("fig4.6") {
            let jobs = [
                Job::Varmail,
                Job::Fileserver,
                Job::CopyLarge,
                Job::CopySmall,
            ];
            for job in jobs {
                let name = job.name();
                self.compare(("fig4.6", &name, None), &job, &MAIN, results, progress)?;
            }
        }
        if self.plan.has("fig4.7") {
            for value_bytes in VALUES {
                let place = ("fig4.7", "LevelDB-like", Some(f64::from(value_bytes)));
                let job = Job::LevelDb { value_bytes };
                self.compare(place, &job, &MAIN, results, progress)?;
            }
        }
        if self.plan.has("fig4.8") {
            for set in self.plan.sets.clone() {
                let (name, paths) = (set.name, set.paths);
                let job = Job::Given {
                    name: name.clone(),
                    paths,
                };
                self.compare(("fig4.8", &name, None), &job, &MAIN, results, progress)?;
            }
        }
        Ok(())
    }

    /// Fig. 4.4: the latency that a share of the windows do not exceed.
    fn latencies(
        &mut self,
        window: u32,
        results: &mut Results,
        progress: &mut Progress,
    ) -> Result<()> {
        for approach in [NO_DEDUP, PUBLISHED, WHOLE, FULL, THIN] {
            if !approach.is_among(&self.options.fingerprints) {
                continue;
            }
            let measured = self.run(&Job::Sequential { window }, &approach, progress)?;
            let hash = self.hash_seconds(&approach);
            for ssd in &SSDS {
                let all = measured.windows.iter();
                let mut latencies: Vec<f64> = all.map(|one| 1e3 * ssd.seconds(one, hash)).collect();
                let set = format!("window {window}, {}", ssd.name);
                for share in SHARES {
                    let value = percentile(&mut latencies, share / 100.0);
                    let figure = Figure::new("fig4.4", &set, approach.name, LATENCY);
                    results.figures.push(figure.at(share).with(value, None));
                }
            }
        }
        Ok(())
    }

    /// The made-up journal.
    pub fn synthetic(&mut self, results: &mut Results, progress: &mut Progress) -> Result<()> {
        let blocks = (self.plan.synthetic_bytes / BLOCK_BYTES as u64).max(1000);
        for window in WINDOWS {
            let mut no_dedup = Measured::default();
            let fingerprints = &self.options.fingerprints;
            for approach in MAIN.iter().filter(|it| it.is_among(fingerprints)) {
                interrupt::check()?;
                progress.expect(blocks * BLOCK_BYTES as u64);
                let journal = SYNTHETIC_JOURNAL_BLOCKS;
                let disk = synthetic::disk_bytes(journal, blocks);
                let (backing, _) = backing(None, approach.backing_bytes(disk))?;
                let device = approach.make(backing, disk, &synthetic::setting(journal))?;
                let before = device.volume().counters();
                synthetic::write(&device, journal, blocks, window)?;
                let measured = Measured {
                    blocks,
                    counted: device.volume().counters().since(&before),
                    wrong_blocks: device.wrong_blocks()?,
                    wrong_writes: device.wrong_writes(),
                    usage: device.volume().usage(),
                    ..Measured::default()
                };
                if *approach == NO_DEDUP {
                    no_dedup = measured.clone();
                }
                let place = ("synthetic", "sequential", Some(f64::from(window)));
                self.figures(place, approach, &measured, &no_dedup, results);
                progress.advance(blocks * BLOCK_BYTES as u64, "a journal that is made up");
            }
        }
        Ok(())
    }

    /// What pools held in the end, where a file system ran.
    pub fn pools(&self) -> Option<String> {
        let of = |approach: Approach| {
            let all = self
                .runs
                .iter()
                .filter(move |((_, other), _)| *other == approach);
            all.map(|(_, run)| run.usage)
                .max_by_key(|usage| usage.memory_bytes)
        };
        let (with, without) = (of(WHOLE)?, of(NO_DEDUP)?);
        Some(format!(
            "A volume of {} MiB took at most {} KiB of memory without dedup, {} KiB with WOJ_xxh3, {} blocks in its pool at the end",
            self.options.disk_bytes >> 20,
            without.memory_bytes >> 10,
            with.memory_bytes >> 10,
            with.pool_entries
        ))
    }
}

/// What the paper prints of a run.
#[derive(Debug, Default)]
pub struct Printed {
    amplification: Option<f64>,
    fast_megabytes: Option<f64>,
}

impl Printed {
    /// Of an experiment, an approach, a window.
    pub fn of(experiment: &str, approach: &Approach, x: Option<f64>) -> Self {
        let at = |window: u32| x == Some(f64::from(window));
        let amplification = AMPLIFICATIONS
            .iter()
            .find(|(window, _)| experiment == "fig4.2" && *approach == NO_DEDUP && at(*window));
        let speed = match experiment {
            "fig4.2" | "fig4.3" => Some(WOJ_MEGABYTES[0]),
            "fig4.5" => Some(WOJ_MEGABYTES[1]),
            _ => None,
        };
        Self {
            amplification: amplification.map(|(_, ratio)| *ratio),
            fast_megabytes: speed.filter(|_| *approach == PUBLISHED && at(1000)),
        }
    }
}

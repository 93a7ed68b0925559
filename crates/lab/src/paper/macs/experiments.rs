//! What the paper measures of containers: Figs. 1, 2, 3, 6 and 7, and caches beyond.
//!
//! Enters: a data set. Leaves: figures. A data set is gone through once for each expected size: cut,
//! stored by every scheme in the forms that are wanted, restored and compared.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use engine::rewriting::Rewriting;

use super::layout::{CONTAINER_BYTES, Layout, Scheme, entries_of};
use super::own_form::OwnStored;
use super::published::{CACHE_CONTAINERS, EXPECTED};
use super::stored::Stored;
use super::trace::{self, ChunkSink, Reading, Trace, chunker};
use super::{ContainerForm, Options, fragments, metadata, rewriting};
use crate::chunk::data::DataSet;
use crate::paper::figure::{FILLING, Figure, MEAN, SPEED_FACTOR};
use crate::paper::{GivenSet, Plan, Results};
use crate::progress::Progress;
use crate::restore_caches::{Memory, Reference, RestoreCache};
use crate::units;

/// What counts as a small file (Fig. 1 does not say).
const SMALL_FILES: [u64; 7] = [
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
];
/// Fixed metadata regions, over that of the baseline.
const REGION_FACTORS: [u32; 5] = [1, 2, 3, 4, 8];
/// Memory of restore caches.
const MEMORIES: [usize; 5] = [4, 8, 15, CACHE_CONTAINERS, 60];

/// The expected size of the experiments that have but one.
pub const ONE_SIZE: u32 = EXPECTED[0];

/// Names of approaches.
pub const ALL_CHUNKS: &str = "all chunks";
pub const STORED_CHUNKS: &str = "stored chunks";

/// A scheme in onefold's form.
pub fn ours(scheme: Scheme) -> String {
    format!("{}, ours", scheme.name())
}

/// A scheme whose containers are closed after each version.
pub fn closed(scheme: Scheme) -> String {
    format!("{}, closed", scheme.name())
}

/// Memory for so many containers.
pub fn memory(containers: usize) -> Memory {
    Memory {
        containers,
        container_bytes: u64::from(CONTAINER_BYTES),
    }
}

/// A data set, cut and stored.
pub struct Bench<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is wanted.
    pub plan: &'a Plan,
    /// By which schemes containers are filled.
    pub schemes: &'a [Scheme],
    /// Its chunks.
    pub trace: Trace,
    /// Containers of the paper's form.
    pub stored: Vec<Stored>,
    /// Containers of onefold's.
    pub own: Vec<OwnStored>,
}

/// Runs what is wanted on one data set; returns the bytes of its largest version, which lay in memory.
pub fn on_set(
    set: &GivenSet,
    plan: &Plan,
    options: &Options,
    results: &mut Results,
    progress: &mut Progress,
) -> Result<u64> {
    let bytes = DataSet::of_paths(&set.paths)?.bytes().min(plan.size_bytes);
    let is_over_chunks = ["fig2", "fig3", "fig6", "fig7"]
        .iter()
        .any(|name| plan.has(name));
    let sizes = if is_over_chunks {
        &EXPECTED[..]
    } else {
        &EXPECTED[..1]
    };
    // Each size is cut and restored; what is done at one size counts as much again.
    progress.expect(bytes * (2 * sizes.len() as u64 + 3));
    let mut largest = 0;
    for &expected in sizes {
        let (bench, measured) = prepare(set, plan, options, expected, progress)?;
        if expected == ONE_SIZE {
            let of = units::counted(bench.trace.versions.len() as u64, "version", "versions");
            progress.note(&format!(
                "{}: {} in {of}",
                set.name,
                units::bytes(bench.trace.bytes())
            ));
            results.sets.push(measured);
            bench.small_files(results);
        }
        bench.filling(results);
        bench.restoring(results)?;
        progress.advance(bytes, &format!("{}, restored", set.name));
        if expected == ONE_SIZE {
            bench.regions(results);
            bench.caches(results)?;
            progress.advance(bytes, &format!("{}, restore caches", set.name));
            rewriting::on_bench(&bench, results)?;
            progress.advance(bytes, &format!("{}, rewriting", set.name));
            metadata::on_bench(&bench, results)?;
            progress.advance(bytes, &format!("{}, look-ups", set.name));
        }
        let versions = bench.trace.versions.iter();
        largest = versions
            .map(|version| version.bytes)
            .fold(largest, u64::max);
    }
    Ok(largest)
}

/// Cuts and stores a data set.
fn prepare<'a>(
    set: &'a GivenSet,
    plan: &'a Plan,
    options: &'a Options,
    expected: u32,
    progress: &mut Progress,
) -> Result<(Bench<'a>, crate::paper::MeasuredSet)> {
    let scratch: &Path = &options.scratch;
    let schemes = |is_wanted| if is_wanted { &options.schemes[..] } else { &[] };
    let entries = entries_of(expected);
    let mut stored = Vec::new();
    for &scheme in schemes(options.form != ContainerForm::Ours) {
        stored.push(Stored::new(scheme, entries, scratch)?);
    }
    let mut own = Vec::new();
    let is_own_wanted = plan.has("fig6") || plan.has("fig7");
    for &scheme in schemes(options.form != ContainerForm::Paper && is_own_wanted) {
        own.push(OwnStored::new(scheme, expected, scratch)?);
    }
    let mut sinks: Vec<&mut dyn ChunkSink> = Vec::new();
    sinks.extend(stored.iter_mut().map(|one| one as &mut dyn ChunkSink));
    sinks.extend(own.iter_mut().map(|one| one as &mut dyn ChunkSink));
    let reading = Reading {
        size_bytes: plan.size_bytes,
        threads: plan.threads,
    };
    let chunker = chunker(expected)?;
    let (trace, measured) = trace::trace(set, &chunker, reading, &mut sinks, progress)?;
    for one in &mut stored {
        one.close()?;
    }
    let bench = Bench {
        name: &set.name,
        plan,
        schemes: &options.schemes,
        trace,
        stored,
        own,
    };
    Ok((bench, measured))
}

impl Bench<'_> {
    /// Adds a figure if its experiment is wanted.
    pub fn add(
        &self,
        results: &mut Results,
        experiment: &'static str,
        approach: &str,
        metric: &'static str,
        x: f64,
        ours: f64,
    ) {
        if self.plan.has(experiment) {
            let figure = Figure::new(experiment, self.name, approach, metric);
            results.figures.push(figure.at(x).with(ours, None));
        }
    }

    /// Fig. 1.
    fn small_files(&self, results: &mut Results) {
        let files = || {
            self.trace
                .versions
                .iter()
                .flat_map(|version| &version.files)
        };
        let all = files().count() as f64;
        for limit in SMALL_FILES {
            let small = || files().filter(|file| file.bytes < limit);
            let bytes: u64 = small().map(|file| file.bytes).sum();
            let count = 100.0 * small().count() as f64 / all;
            let space = 100.0 * bytes as f64 / self.trace.bytes() as f64;
            let x = limit as f64;
            self.add(
                results,
                "fig1",
                "small files",
                "small_files_percent",
                x,
                count,
            );
            self.add(
                results,
                "fig1",
                "small files",
                "small_bytes_percent",
                x,
                space,
            );
        }
    }

    /// Figs. 2, 3 and 6.
    fn filling(&self, results: &mut Results) {
        let x = f64::from(self.trace.expected_bytes);
        let versions = self.trace.versions.iter();
        let chunks: usize = versions.map(|version| version.chunks.len()).sum();
        let mean = self.trace.bytes() as f64 / chunks as f64;
        let stored = self.trace.bytes_unique() as f64 / self.trace.chunks.len() as f64;
        self.add(results, "fig2", ALL_CHUNKS, MEAN, x, mean);
        self.add(results, "fig2", STORED_CHUNKS, MEAN, x, stored);
        for one in &self.stored {
            let layout = &one.layout;
            let name = one.scheme.name();
            if one.scheme == Scheme::Baseline {
                self.add(results, "fig3", name, FILLING, x, layout.filling_percent());
            }
            self.of_layout(results, name, x, layout);
            let closed_layout = self.closed_layout(one.scheme);
            self.of_layout(results, &closed(one.scheme), x, &closed_layout);
        }
        for one in &self.own {
            let name = ours(one.scheme);
            let count = one.containers.len() as f64;
            self.add(results, "fig6", &name, FILLING, x, one.filling_percent());
            self.add(results, "fig6", &name, "containers", x, count);
        }
    }

    fn of_layout(&self, results: &mut Results, name: &str, x: f64, layout: &Layout) {
        let count = layout.containers().len() as f64;
        self.add(results, "fig6", name, FILLING, x, layout.filling_percent());
        self.add(
            results,
            "fig6",
            name,
            "data_percent",
            x,
            layout.data_percent(),
        );
        self.add(results, "fig6", name, "containers", x, count);
    }

    /// The containers of a scheme that closes them after each version.
    fn closed_layout(&self, scheme: Scheme) -> Layout {
        let mut layout = Layout::new(scheme, entries_of(self.trace.expected_bytes));
        for version in &self.trace.versions {
            for &chunk in &version.chunks {
                if u64::from(chunk) == layout.placed() {
                    layout.place(self.trace.chunks[chunk as usize].bytes);
                }
            }
            layout.close();
        }
        layout
    }

    /// Filling by the size of the fixed region.
    fn regions(&self, results: &mut Results) {
        for factor in REGION_FACTORS {
            let entries = entries_of(self.trace.expected_bytes) * factor;
            let mut layout = Layout::new(Scheme::Baseline, entries);
            for chunk in &self.trace.chunks {
                layout.place(chunk.bytes);
            }
            let x = f64::from(layout.containers()[0].region_bytes());
            let name = Scheme::Baseline.name();
            self.add(
                results,
                "regions",
                name,
                FILLING,
                x,
                layout.filling_percent(),
            );
            self.add(
                results,
                "regions",
                name,
                "data_percent",
                x,
                layout.data_percent(),
            );
        }
    }

    /// The chunks of a version with their containers.
    fn references(&self, version: usize, places: &[u32]) -> Vec<Reference<u32>> {
        let chunks = self.trace.versions[version].chunks.iter();
        let reference = |&chunk: &u32| Reference {
            container: places[chunk as usize],
            chunk,
            bytes: self.trace.chunks[chunk as usize].bytes,
        };
        chunks.map(reference).collect()
    }

    /// Container reads of each version.
    fn reads(&self, places: &[u32], cache: RestoreCache, containers: usize) -> Vec<u64> {
        let of = |version| {
            let references = self.references(version, places);
            cache.reads(&references, memory(containers)).len() as u64
        };
        (0..self.trace.versions.len()).map(of).collect()
    }

    /// Fig. 7: files restored and compared, reads counted.
    fn restoring(&self, results: &mut Results) -> Result<()> {
        if !self.plan.has("fig7") && !self.plan.has("versions") {
            return Ok(());
        }
        let versions = self.trace.versions.len();
        let first_restored = if self.trace.expected_bytes == ONE_SIZE {
            0
        } else {
            versions - 1
        };
        for one in &self.stored {
            let reads = self.reads(&one.places, RestoreCache::Lru, CACHE_CONTAINERS);
            for (version, &counted) in reads.iter().enumerate().skip(first_restored) {
                let read = one.restore(&self.trace, version, CACHE_CONTAINERS)?;
                ensure!(
                    read == counted,
                    "{}: version {} took {read} container reads, counted were {counted}",
                    one.scheme.name(),
                    version + 1
                );
            }
            self.of_reads(results, one.scheme.name(), &reads);
        }
        for one in &self.own {
            let reads = self.reads(&one.places, RestoreCache::Lru, CACHE_CONTAINERS);
            let read = one.restore(&self.trace, versions - 1, CACHE_CONTAINERS)?;
            let counted = reads.last().context("a version")?;
            ensure!(
                read == *counted,
                "{read} container reads, counted were {counted}"
            );
            self.of_reads(results, &ours(one.scheme), &reads);
        }
        Ok(())
    }

    fn of_reads(&self, results: &mut Results, name: &str, reads: &[u64]) {
        let x = f64::from(self.trace.expected_bytes);
        let all: u64 = reads.iter().sum();
        let versions = &self.trace.versions;
        let factors: Vec<f64> = versions
            .iter()
            .zip(reads)
            .map(|(version, reads)| speed_factor(version.bytes, *reads))
            .collect();
        let whole = speed_factor(self.trace.bytes(), all);
        let last = factors.last().copied().unwrap_or(0.0);
        self.add(results, "fig7", name, SPEED_FACTOR, x, whole);
        self.add(results, "fig7", name, "last_speed_factor", x, last);
        self.add(results, "fig7", name, "container_reads", x, all as f64);
        if self.trace.expected_bytes == ONE_SIZE {
            for (number, factor) in (1..).zip(factors) {
                self.add(
                    results,
                    "versions",
                    name,
                    SPEED_FACTOR,
                    f64::from(number),
                    factor,
                );
            }
        }
    }

    /// Caches and memories.
    fn caches(&self, results: &mut Results) -> Result<()> {
        if !self.plan.has("caches") {
            return Ok(());
        }
        for one in &self.stored {
            for cache in RestoreCache::ALL {
                for containers in MEMORIES {
                    crate::interrupt::check()?;
                    let reads: u64 = self.reads(&one.places, cache, containers).iter().sum();
                    let name = format!("{}, {}", one.scheme.name(), cache.name());
                    let x = containers as f64 * f64::from(CONTAINER_BYTES);
                    let factor = speed_factor(self.trace.bytes(), reads);
                    self.add(results, "caches", &name, SPEED_FACTOR, x, factor);
                    self.add(results, "caches", &name, "container_reads", x, reads as f64);
                }
            }
        }
        Ok(())
    }

    /// All versions by a scheme under a rewriting policy.
    pub fn fragments(&self, scheme: Scheme, policy: &Rewriting) -> Vec<fragments::Fragments> {
        let entries = entries_of(self.trace.expected_bytes);
        fragments::versions(&self.trace, scheme, entries, policy)
    }
}

/// MiB a container read.
pub fn speed_factor(bytes: u64, reads: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64 / reads.max(1) as f64
}

//! P-Dedupe as a whole (§2.3, §3, §4.1): chunking, fingerprinting, indexing, writing.
//!
//! Enters: files in memory, each a stream. Leaves: a [`Store`] of containers and recipes in memory, the
//! time from the first byte to the last, and what each stage took of processors. Three ways:
//! - *Baseline*: one thread, a unit of chunks through all stages after another;
//! - *Pipeline*: four threads, a stage each, queues between them;
//! - *P-Dedupe*: N threads cut segments of 1 MiB or so, one joins them in order, M threads make
//!   fingerprints, one looks them up in order, one writes.
//!
//! What holds: the store of Pipeline is that of Baseline; that of P-Dedupe depends on the segments and
//! whether they are joined, on no number of threads. Queues hold references to the files, up to
//! [`QUEUE_UNITS`] or [`QUEUE_SEGMENTS`] a lane.
//!
//! Otherwise than in the paper: reading is left out, for the data lies in memory; a unit is many
//! chunks ([`UNIT_BYTES`]), because threads that meet for every chunk do little else; the paper's pool
//! hands chunks to any thread that is free, where here each has its turn, and the order comes of itself.

mod lanes;
mod stages;
mod store;

#[cfg(test)]
mod tests;

use std::panic::resume_unwind;
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Instant;

use chunking::Chunker;
use chunking::segments::{Joiner, SegmentCuts, SegmentJob, Segments};

use lanes::{Inlet, queue};
pub use stages::{FingerprintKind, StageSeconds};
use stages::{Index, Unit, timed};
pub use store::Store;

use crate::paper::timing::thread_seconds;

/// Units that each lane of a queue holds.
const QUEUE_UNITS: usize = 4;
/// Cut segments that each thread may be ahead of the one that joins them.
const QUEUE_SEGMENTS: usize = 2;
/// Chunks of so many bytes go from stage to stage together.
pub const UNIT_BYTES: usize = 128 << 10;

/// What all ways do alike.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// What cuts, but for P-Dedupe.
    pub chunker: &'a Chunker,
    /// What tells chunks apart.
    pub fingerprint: FingerprintKind,
    /// Chunks of at least so many bytes go from stage to stage together; 1 for chunk after chunk.
    pub unit_bytes: usize,
}

/// How the stages run.
#[derive(Debug, Clone, Copy)]
pub enum Way<'a> {
    /// After one another.
    Baseline,
    /// A thread each.
    Pipeline,
    /// Segments at the same time, fingerprints too.
    PDedupe(&'a Segments, Split),
}

/// Threads of the stages that are parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// They cut segments.
    pub chunking: usize,
    /// They make fingerprints.
    pub fingerprinting: usize,
}

impl Split {
    /// So many threads, by the costs of the two stages, as far as whole threads can be: the paper's
    /// rule for its 4 + 4 and 3 + 5 (§4.4). Each stage has one at least.
    pub fn by_cost(threads: usize, chunking: f64, fingerprinting: f64) -> Self {
        let highest = threads.saturating_sub(1).max(1);
        let slowest = |count: usize| {
            let others = threads.saturating_sub(count).max(1);
            (chunking / count as f64).max(fingerprinting / others as f64)
        };
        let best = (1..=highest).min_by(|one, other| slowest(*one).total_cmp(&slowest(*other)));
        let chunking = best.unwrap_or(1);
        Self {
            chunking,
            fingerprinting: threads.saturating_sub(chunking).max(1),
        }
    }

    /// All of them.
    pub fn threads(self) -> usize {
        self.chunking + self.fingerprinting
    }
}

/// What a way gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What it stored.
    pub store: Store,
    /// What its stages took of processors; in a pipeline with what they do to hand units on.
    pub stages: StageSeconds,
    /// From the beginning to the end.
    pub seconds: f64,
}

/// Deduplicates files.
pub fn run(setup: Setup<'_>, way: Way<'_>, files: &[&[u8]]) -> Outcome {
    let clock = Instant::now();
    let (store, stages) = match way {
        Way::Baseline => one_after_another(setup, files),
        Way::Pipeline => scope(|scope| {
            pipeline(scope, setup, files.len(), 1, |units| {
                scope.spawn(move || chunk_in_order(setup, files, units))
            })
        }),
        Way::PDedupe(segments, split) => scope(|scope| {
            pipeline(scope, setup, files.len(), split.fingerprinting, |units| {
                chunk_segments(scope, setup, segments, split.chunking, files, units)
            })
        }),
    };
    Outcome {
        store,
        stages,
        seconds: clock.elapsed().as_secs_f64(),
    }
}

fn one_after_another(setup: Setup<'_>, files: &[&[u8]]) -> (Store, StageSeconds) {
    let mut busy = StageSeconds::default();
    let mut index = Index::default();
    let mut store = Store::new(files.len());
    for (file, data) in files.iter().enumerate() {
        let mut units = stages::cut(setup.chunker, file, data, setup.unit_bytes);
        while let Some(unit) = timed(&mut busy.chunk, || units.next()) {
            let unit = timed(&mut busy.fingerprint, || {
                stages::fingerprint(setup.fingerprint, unit)
            });
            let unit = timed(&mut busy.index, || index.look_up(unit));
            timed(&mut busy.write, || store.write(&unit));
        }
    }
    (store, busy)
}

/// Stages 2 to 4, on so many threads and two; `chunking` starts stage 1, which puts units in.
fn pipeline<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    setup: Setup<'env>,
    files: usize,
    fingerprinting: usize,
    chunking: impl FnOnce(Inlet<Unit<'env>>) -> ScopedJoinHandle<'scope, StageSeconds>,
) -> (Store, StageSeconds) {
    let (units_in, units_out) = queue(fingerprinting, QUEUE_UNITS);
    let (fingerprints_in, mut fingerprints_out) = queue(fingerprinting, QUEUE_UNITS);
    let (numbers_in, mut numbers_out) = queue(1, QUEUE_UNITS);
    let chunking = chunking(units_in);
    let lanes = units_out.split().zip(fingerprints_in.split());
    let fingerprinting: Vec<_> = lanes
        .map(|(mut units, mut done)| {
            scope.spawn(move || {
                while let Some(unit) = units.take() {
                    if !done.put(stages::fingerprint(setup.fingerprint, unit)) {
                        break;
                    }
                }
                StageSeconds {
                    fingerprint: thread_seconds(),
                    ..StageSeconds::default()
                }
            })
        })
        .collect();
    let indexing = scope.spawn(move || {
        let mut numbers_in = numbers_in;
        let mut index = Index::default();
        while let Some(unit) = fingerprints_out.take() {
            if !numbers_in.put(index.look_up(unit)) {
                break;
            }
        }
        StageSeconds {
            index: thread_seconds(),
            ..StageSeconds::default()
        }
    });
    let writing = scope.spawn(move || {
        let mut store = Store::new(files);
        while let Some(unit) = numbers_out.take() {
            store.write(&unit);
        }
        let busy = StageSeconds {
            write: thread_seconds(),
            ..StageSeconds::default()
        };
        (store, busy)
    });
    let (store, mut all) = finished(writing);
    for thread in fingerprinting.into_iter().chain([chunking, indexing]) {
        all.add(&finished(thread));
    }
    (store, all)
}

/// What a thread returns; its panic goes on here.
fn finished<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Stage 1 on one thread.
fn chunk_in_order<'a>(
    setup: Setup<'a>,
    files: &[&'a [u8]],
    mut units_in: Inlet<Unit<'a>>,
) -> StageSeconds {
    let units = files.iter().enumerate();
    let mut units =
        units.flat_map(|(file, data)| stages::cut(setup.chunker, file, data, setup.unit_bytes));
    while units.next().is_some_and(|unit| units_in.put(unit)) {}
    StageSeconds {
        chunk: thread_seconds(),
        ..StageSeconds::default()
    }
}

/// Stage 1 on so many threads, *map*, and one more, *reduce*, whose handle is returned: it waits for
/// the others. The segments of all files are cut in order, round and round; files that are shorter
/// than a segment so have a thread each (§3.3).
fn chunk_segments<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    setup: Setup<'env>,
    segments: &'env Segments,
    threads: usize,
    files: &'env [&'env [u8]],
    units_in: Inlet<Unit<'env>>,
) -> ScopedJoinHandle<'scope, StageSeconds> {
    let threads = threads.max(1);
    let (cuts_in, cuts_out) = queue::<SegmentCuts>(threads, QUEUE_SEGMENTS);
    let jobs = |first: usize| {
        let all = files.iter().flat_map(|data| segments.jobs(data));
        all.skip(first).step_by(threads)
    };
    let mapping: Vec<_> = cuts_in
        .split()
        .enumerate()
        .map(|(first, mut cuts_in)| {
            let jobs: Vec<SegmentJob<'env>> = jobs(first).collect();
            scope.spawn(move || {
                let mut jobs = jobs.into_iter();
                while jobs.next().is_some_and(|job| cuts_in.put(job.run())) {}
                StageSeconds {
                    chunk: thread_seconds(),
                    ..StageSeconds::default()
                }
            })
        })
        .collect();
    scope.spawn(move || {
        let mut reduce = Reduce {
            setup,
            segments,
            units_in,
        };
        let mut cuts_out = cuts_out;
        for (file, data) in files.iter().enumerate() {
            if !reduce.file(file, data, || cuts_out.take()) {
                break;
            }
        }
        drop(cuts_out);
        drop(reduce);
        let mut busy = StageSeconds {
            join: thread_seconds(),
            ..StageSeconds::default()
        };
        for thread in mapping {
            busy.add(&finished(thread));
        }
        busy
    })
}

/// Joins segments and hands their chunks on.
struct Reduce<'a> {
    setup: Setup<'a>,
    segments: &'a Segments,
    units_in: Inlet<Unit<'a>>,
}

impl<'a> Reduce<'a> {
    /// Does so for a file; false when another stage is gone.
    fn file(
        &mut self,
        file: usize,
        data: &'a [u8],
        mut next_cuts: impl FnMut() -> Option<SegmentCuts>,
    ) -> bool {
        let mut joiner = Joiner::new(self.segments);
        let mut rest = data;
        let mut end = 0;
        while end < data.len() {
            let Some(cuts) = next_cuts() else {
                return false;
            };
            let mut lengths = Vec::new();
            let start = end - joiner.pending_bytes();
            end = (end + self.segments.segment_bytes()).min(data.len());
            joiner.push(&data[start..end], &cuts, &mut |length| {
                lengths.push(length as u32);
            });
            if !self.hand_on(file, &mut rest, lengths) {
                return false;
            }
        }
        let mut lengths = Vec::new();
        joiner.finish(&mut |length| lengths.push(length as u32));
        self.hand_on(file, &mut rest, lengths)
    }

    fn hand_on(&mut self, file: usize, rest: &mut &'a [u8], lengths: Vec<u32>) -> bool {
        let mut lengths = lengths.into_iter();
        let unit_bytes = self.setup.unit_bytes;
        while let Some(unit) = stages::gather(file, rest, &mut lengths, unit_bytes) {
            if !self.units_in.put(unit) {
                return false;
            }
        }
        true
    }
}

impl StageSeconds {
    /// Adds what another thread did.
    fn add(&mut self, other: &Self) {
        self.chunk += other.chunk;
        self.join += other.join;
        self.fingerprint += other.fingerprint;
        self.index += other.index;
        self.write += other.write;
    }
}

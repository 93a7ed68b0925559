//! What each stage of the pipeline is doing: busy, waiting, how much, how full its queue is.
//!
//! Enters: the stages' own threads report with a [`StageMeter`]. Leaves: [`StageReport`]s, at any
//! time and from any thread. Meters are counters; reading the clock twice a piece of work (a
//! segment, a small file, a container) costs some 50 ns. Times are of the wall clock: a thread that
//! the system has not let run counts as busy.
//!
//! The *bottleneck* is looked for among teams of threads, for some stages share theirs: of the team
//! with the most busy time a thread, the stage with the most. Were every queue endless, and every
//! thread on a processor of its own, the whole would take as long as that team (P-Dedupe, §2.3,
//! Eq. 5: the slowest stage bounds a pipeline).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A stage of storing or of reading back, in the order of the data's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Storing: directories are listed, entries inspected, and compared with the parent.
    Walk,
    /// Storing: files are opened and read.
    Read,
    /// Storing: bytes are cut into chunks.
    Chunk,
    /// Storing: chunks are fingerprinted.
    Fingerprint,
    /// Storing: fingerprints are looked up, new chunks join groups, entries join pages.
    Index,
    /// Storing: new chunks that resemble others become deltas.
    Delta,
    /// Storing: groups are compressed.
    Compress,
    /// Storing: groups are placed into containers and sealed.
    Pack,
    /// Storing: containers are made durable.
    Put,
    /// Reading back: recipes and container metadata are read, directories made, the plan drawn up.
    Plan,
    /// Reading back: containers are read from the store.
    Fetch,
    /// Reading back: seals are opened.
    Unseal,
    /// Reading back: groups are decompressed.
    Decompress,
    /// Reading back: chunks are compared with their fingerprints.
    Verify,
    /// Reading back: files are made, filled, and given their metadata.
    Write,
}

impl Stage {
    /// All stages, those of storing first.
    pub const ALL: [Stage; 15] = [
        Stage::Walk,
        Stage::Read,
        Stage::Chunk,
        Stage::Fingerprint,
        Stage::Index,
        Stage::Delta,
        Stage::Compress,
        Stage::Pack,
        Stage::Put,
        Stage::Plan,
        Stage::Fetch,
        Stage::Unseal,
        Stage::Decompress,
        Stage::Verify,
        Stage::Write,
    ];

    /// The stage whose threads do its work.
    fn team(self) -> Stage {
        match self {
            Stage::Chunk => Stage::Read,
            Stage::Decompress | Stage::Verify | Stage::Write => Stage::Unseal,
            stage => stage,
        }
    }

    /// Its name, as users see it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Walk => "walk",
            Stage::Read => "read",
            Stage::Chunk => "chunk",
            Stage::Fingerprint => "fingerprint",
            Stage::Index => "index",
            Stage::Delta => "delta",
            Stage::Compress => "compress",
            Stage::Pack => "pack",
            Stage::Put => "put",
            Stage::Plan => "plan",
            Stage::Fetch => "fetch",
            Stage::Unseal => "unseal",
            Stage::Decompress => "decompress",
            Stage::Verify => "verify",
            Stage::Write => "write",
        }
    }
}

/// Counters of one stage.
#[derive(Debug, Default)]
pub struct StageMeter {
    threads: AtomicUsize,
    busy_ns: AtomicU64,
    starved_ns: AtomicU64,
    blocked_ns: AtomicU64,
    items: AtomicU64,
    bytes: AtomicU64,
    queued_items: AtomicU64,
    queued_bytes: AtomicU64,
    queued_bytes_max: AtomicU64,
}

impl StageMeter {
    /// So many threads do this stage's work (those that share stages count in each).
    pub fn set_threads(&self, threads: usize) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    /// So many more do.
    pub fn add_threads(&self, threads: usize) {
        self.threads.fetch_add(threads, Ordering::Relaxed);
    }

    /// Does a piece of work on so many bytes.
    pub fn busy<R>(&self, bytes: u64, work: impl FnOnce() -> R) -> R {
        let started = Instant::now();
        let result = work();
        self.worked(started.elapsed(), bytes);
        result
    }

    /// A piece of work on so many bytes is done, which took that long.
    pub fn worked(&self, time: Duration, bytes: u64) {
        add_time(&self.busy_ns, time);
        self.items.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Time that belongs to work which was or will be counted: no item, no bytes.
    pub fn worked_more(&self, time: Duration) {
        add_time(&self.busy_ns, time);
    }

    /// Bytes of a piece of work that is counted otherwise.
    pub fn count_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Does a piece of work that may itself wait: what is counted as [`starved`](Self::starved) or
    /// [`blocked`](Self::blocked) meanwhile is not busy. For stages of one thread.
    pub fn busy_but_for_waits<R>(&self, bytes: u64, work: impl FnOnce() -> R) -> R {
        let waits = || {
            let starved = self.starved_ns.load(Ordering::Relaxed);
            starved + self.blocked_ns.load(Ordering::Relaxed)
        };
        let (started, waits_before) = (Instant::now(), waits());
        let result = work();
        let waited = Duration::from_nanos(waits() - waits_before);
        self.worked(started.elapsed().saturating_sub(waited), bytes);
        result
    }

    /// Waits for input.
    pub fn starved<R>(&self, wait: impl FnOnce() -> R) -> R {
        timed(&self.starved_ns, wait)
    }

    /// Waits for room in the stage after.
    pub fn blocked<R>(&self, wait: impl FnOnce() -> R) -> R {
        timed(&self.blocked_ns, wait)
    }

    /// Something of so many bytes waits for this stage.
    pub fn queue(&self, bytes: u64) {
        self.queued_items.fetch_add(1, Ordering::Relaxed);
        let queued = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.queued_bytes_max.fetch_max(queued, Ordering::Relaxed);
    }

    /// What was queued with so many bytes is taken up.
    pub fn unqueue(&self, bytes: u64) {
        self.queued_items.fetch_sub(1, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn report(&self, stage: Stage) -> StageReport {
        let time = |counter: &AtomicU64| Duration::from_nanos(counter.load(Ordering::Relaxed));
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        StageReport {
            stage,
            threads: self.threads.load(Ordering::Relaxed),
            busy: time(&self.busy_ns),
            starved: time(&self.starved_ns),
            blocked: time(&self.blocked_ns),
            items: count(&self.items),
            bytes: count(&self.bytes),
            queued_items: count(&self.queued_items),
            queued_bytes: count(&self.queued_bytes),
            queued_bytes_max: count(&self.queued_bytes_max),
        }
    }
}

fn add_time(counter: &AtomicU64, time: Duration) {
    // 2^64 ns are 584 years.
    counter.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
}

fn timed<R>(counter: &AtomicU64, wait: impl FnOnce() -> R) -> R {
    let started = Instant::now();
    let result = wait();
    add_time(counter, started.elapsed());
    result
}

/// What a stage has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageReport {
    /// Which.
    pub stage: Stage,
    /// Threads that do its work.
    pub threads: usize,
    /// Time spent working, all threads together.
    pub busy: Duration,
    /// Time spent waiting for input.
    pub starved: Duration,
    /// Time spent waiting for room in what comes after.
    pub blocked: Duration,
    /// Pieces of work done.
    pub items: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Pieces that wait for it just now.
    pub queued_items: u64,
    /// Bytes in those.
    pub queued_bytes: u64,
    /// Most bytes that ever waited.
    pub queued_bytes_max: u64,
}

impl StageReport {
    /// Busy time a thread.
    #[must_use]
    pub fn busy_a_thread(&self) -> Duration {
        self.busy / u32::try_from(self.threads.max(1)).unwrap_or(u32::MAX)
    }
}

/// The meters of all stages; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Stages(Arc<[StageMeter; Stage::ALL.len()]>);

impl Stages {
    /// The meter of a stage.
    #[must_use]
    pub fn meter(&self, stage: Stage) -> &StageMeter {
        &self.0[stage as usize]
    }

    /// What the stages that have threads or have done anything report, in order.
    #[must_use]
    pub fn reports(&self) -> Vec<StageReport> {
        let reports = Stage::ALL.map(|stage| self.meter(stage).report(stage));
        let takes_part = |report: &StageReport| report.threads > 0 || report.items > 0;
        reports.into_iter().filter(takes_part).collect()
    }
}

/// The stage that bounds the whole, and the busy time a thread of the team that does its work.
#[must_use]
pub fn bottleneck(reports: &[StageReport]) -> Option<(Stage, Duration)> {
    let of_team = |team| {
        reports
            .iter()
            .filter(move |report| report.stage.team() == team)
    };
    let busy = |team| {
        of_team(team)
            .map(StageReport::busy_a_thread)
            .sum::<Duration>()
    };
    let team = Stage::ALL.into_iter().max_by_key(|&team| busy(team))?;
    let busiest = of_team(team).max_by_key(|report| report.busy)?;
    (busiest.busy > Duration::ZERO).then_some((busiest.stage, busy(team)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottleneck_is_the_stage_with_the_most_work_a_thread() {
        let stages = Stages::default();
        assert_eq!(bottleneck(&stages.reports()), None);
        let clone = stages.clone();
        clone.meter(Stage::Compress).set_threads(4);
        clone
            .meter(Stage::Compress)
            .worked(Duration::from_secs(8), 100);
        stages.meter(Stage::Read).set_threads(1);
        stages.meter(Stage::Read).worked(Duration::from_secs(3), 10);
        stages
            .meter(Stage::Read)
            .worked_more(Duration::from_secs(1));
        let reports = stages.reports();
        assert_eq!(
            bottleneck(&reports),
            Some((Stage::Read, Duration::from_secs(4)))
        );
        let named: Vec<&str> = reports.iter().map(|report| report.stage.name()).collect();
        assert_eq!(named, ["read", "compress"]);
        assert_eq!(reports[0].busy, Duration::from_secs(4));
        assert_eq!((reports[0].items, reports[0].bytes), (1, 10));
    }

    #[test]
    fn stages_of_the_same_threads_count_together() {
        let stages = Stages::default();
        let worked = |stage, seconds, threads| {
            stages.meter(stage).set_threads(threads);
            stages.meter(stage).worked(Duration::from_secs(seconds), 0);
        };
        worked(Stage::Fetch, 5, 1);
        worked(Stage::Unseal, 2, 2);
        worked(Stage::Decompress, 6, 2);
        assert_eq!(
            bottleneck(&stages.reports()),
            Some((Stage::Fetch, Duration::from_secs(5)))
        );
        worked(Stage::Verify, 4, 2);
        assert_eq!(
            bottleneck(&stages.reports()),
            Some((Stage::Decompress, Duration::from_secs(6)))
        );
    }

    #[test]
    fn waits_are_not_work() {
        let stages = Stages::default();
        let meter = stages.meter(Stage::Index);
        let nap = || std::thread::sleep(Duration::from_millis(20));
        let started = Instant::now();
        meter.busy_but_for_waits(3, || {
            meter.starved(nap);
            meter.blocked(nap);
            meter.count_bytes(4);
        });
        let report = stages.reports()[0];
        assert!(report.starved >= Duration::from_millis(20));
        assert!(report.blocked >= Duration::from_millis(20));
        // What is counted twice would not fit.
        assert!(report.busy + report.starved + report.blocked <= started.elapsed());
        assert_eq!(report.bytes, 7);
    }

    #[test]
    fn queues_are_counted() {
        let stages = Stages::default();
        let meter = stages.meter(Stage::Put);
        meter.queue(5);
        meter.queue(7);
        meter.unqueue(5);
        meter.busy(5, || ());
        let report = stages.reports()[0];
        assert_eq!((report.queued_items, report.queued_bytes), (1, 7));
        assert_eq!(report.queued_bytes_max, 12);
    }

    #[test]
    fn stages_stand_at_their_own_places() {
        for (place, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place);
        }
    }
}

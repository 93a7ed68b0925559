//! The threads that read back: some fetch from the store, others make of it what was stored.
//!
//! Enter: jobs in an order, and what to do with them ([`ReadingWork`]). *Fetch* threads take the
//! jobs in that order and read what each needs, ahead of the *compute* threads, which unseal,
//! decompress, verify, and hand on what comes out: to files, or to nobody where it is only
//! checked. What is fetched and not done with is bounded in bytes: a fetch thread waits for room
//! before it reads, and the room is free again when a compute thread is done with the bytes. Only
//! fetch threads wait for room, and never while they hold some: nothing here can wait for itself.
//!
//! A job is fetched by one thread, and what it fetched may be computed by several at once, in any
//! order. Whoever cancels ends fetching, and computing after what is in hand just now. A thread
//! that panics ends the others in the same way; the panic is passed on when all have ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::budget::{ByteBudget, Permit, Stopped};
use super::stages::{Stage, Stages};
use crate::container::{GroupOpener, READ_BYTES_MAX};

/// What something fetched counts for at least: it is more than its bytes.
const ITEM_BYTES_MIN: usize = 4 << 10;

/// Reads that fit into what may be fetched ahead: one that waits, one that is computed, for each
/// of two threads.
const READS_AHEAD: usize = 4;

/// Fewer bytes are not worth a read of their own.
const READ_BYTES_MIN: usize = 64 << 10;

/// What is done with jobs.
pub trait ReadingWork: Sync {
    /// What a fetch thread takes up.
    type Job: Sync;
    /// What a compute thread takes up: bytes that were read, and what they are for.
    type Fetched: Send;

    /// Reads what a job needs, on a fetch thread; blocks on the store.
    ///
    /// # Errors
    /// [`Stopped`] when [`Fetching::reserve`] says so.
    fn fetch(&self, job: &Self::Job, fetching: &Fetching<'_, Self::Fetched>)
    -> Result<(), Stopped>;

    /// Opens what was fetched, on a compute thread; blocks on whatever takes the outcome.
    fn compute(&self, fetched: Self::Fetched, opener: &mut GroupOpener);

    /// Is nothing more to be done?
    fn is_cancelled(&self) -> bool;
}

/// How many threads read back, and how far ahead.
#[derive(Debug, Clone)]
pub struct ReadingRoom {
    fetch_threads: usize,
    compute_threads: usize,
    ahead_bytes_max: usize,
    stages: Stages,
}

/// What runs share for one call of [`ReadingRoom::run`].
struct Run<'a, W: ReadingWork> {
    jobs: &'a [W::Job],
    next: AtomicUsize,
    work: &'a W,
    budget: ByteBudget,
    stages: &'a Stages,
}

/// Something fetched, and the room it takes.
struct Item<T> {
    fetched: T,
    room: Reserved,
}

/// Room for something that is about to be fetched.
#[derive(Debug)]
pub struct Reserved {
    bytes: u64,
    _permit: Permit,
}

/// Where a fetch thread gets room from, and puts what it has read.
#[derive(Debug)]
pub struct Fetching<'a, T> {
    budget: &'a ByteBudget,
    queue: &'a Sender<Item<T>>,
    stages: &'a Stages,
}

impl<T> std::fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.room.fmt(f)
    }
}

impl<T> Fetching<'_, T> {
    /// Waits until so many bytes may be read.
    ///
    /// # Errors
    /// [`Stopped`] when nothing more is to be read.
    pub fn reserve(&self, bytes: usize) -> Result<Reserved, Stopped> {
        let wait = || self.budget.acquire(bytes.max(ITEM_BYTES_MIN));
        let permit = self.stages.meter(Stage::Fetch).blocked(wait)?;
        Ok(Reserved {
            bytes: bytes as u64,
            _permit: permit,
        })
    }

    /// Hands on what was read into the room that was reserved for it.
    ///
    /// # Errors
    /// [`Stopped`] when nobody takes it any more.
    pub fn hand_on(&self, room: Reserved, fetched: T) -> Result<(), Stopped> {
        self.stages.meter(Stage::Unseal).queue(room.bytes);
        let item = Item { fetched, room };
        self.queue.send(item).map_err(|_| Stopped)
    }

    /// Reads so many bytes by `read`, under the eyes of the meter.
    pub fn read<R>(&self, bytes: usize, read: impl FnOnce() -> R) -> R {
        self.stages.meter(Stage::Fetch).busy(bytes as u64, read)
    }
}

/// Ends fetching when its thread panics.
struct StopOnPanic<'a>(&'a ByteBudget);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

impl ReadingRoom {
    /// A room of so many threads of each kind, at least one; `ahead_bytes_max` is what may be
    /// fetched and not done with (a larger read is alone).
    #[must_use]
    pub fn new(
        fetch_threads: usize,
        compute_threads: usize,
        ahead_bytes_max: usize,
        stages: &Stages,
    ) -> Self {
        Self {
            fetch_threads: fetch_threads.max(1),
            compute_threads: compute_threads.max(1),
            ahead_bytes_max,
            stages: stages.clone(),
        }
    }

    /// Threads that fetch.
    #[must_use]
    pub fn fetch_threads(&self) -> usize {
        self.fetch_threads
    }

    /// Threads that compute.
    #[must_use]
    pub fn compute_threads(&self) -> usize {
        self.compute_threads
    }

    /// What its threads report to.
    #[must_use]
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The most that should be read at once, so that reading goes on while others compute.
    #[must_use]
    pub fn read_bytes_max(&self) -> usize {
        (self.ahead_bytes_max / READS_AHEAD).clamp(READ_BYTES_MIN, READ_BYTES_MAX)
    }

    /// Does the work on all jobs, and `meanwhile` on the calling thread. Returns when all is done,
    /// or, once the work is cancelled, when the threads have noticed.
    ///
    /// # Panics
    /// When one of its threads did, or the system can't start even one of each kind; with fewer than
    /// asked for it makes do.
    pub fn run<W: ReadingWork, R>(
        &self,
        jobs: &[W::Job],
        work: &W,
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        let run = Run {
            jobs,
            next: AtomicUsize::new(0),
            work,
            budget: ByteBudget::new(self.ahead_bytes_max),
            stages: &self.stages,
        };
        let fetch_threads = self.fetch_threads.min(jobs.len());
        self.stages.meter(Stage::Fetch).set_threads(fetch_threads);
        for stage in [Stage::Unseal, Stage::Decompress, Stage::Verify] {
            self.stages.meter(stage).set_threads(self.compute_threads);
        }
        let (sender, queue) = unbounded();
        let named = |name: &str, number| thread::Builder::new().name(format!("{name}-{number}"));
        thread::scope(|scope| {
            let _guard = StopOnPanic(&run.budget);
            let compute_threads = match jobs.is_empty() {
                true => 0,
                false => self.compute_threads,
            };
            for number in 0..fetch_threads.max(compute_threads) {
                let (run, sender, queue) = (&run, sender.clone(), queue.clone());
                let fetch =
                    || named("fetch", number).spawn_scoped(scope, move || run.fetch(&sender));
                let compute =
                    || named("compute", number).spawn_scoped(scope, move || run.compute(&queue));
                let is_started = (number >= fetch_threads || fetch().is_ok())
                    && (number >= compute_threads || compute().is_ok());
                if !is_started {
                    assert!(number > 0, "the system starts a thread of each kind");
                    break;
                }
            }
            drop(sender);
            drop(queue);
            meanwhile()
        })
    }
}

impl<W: ReadingWork> Run<'_, W> {
    fn fetch(&self, sender: &Sender<Item<W::Fetched>>) {
        let _guard = StopOnPanic(&self.budget);
        let fetching = Fetching {
            budget: &self.budget,
            queue: sender,
            stages: self.stages,
        };
        while let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.is_cancelled() || self.work.fetch(job, &fetching).is_err() {
                return;
            }
        }
    }

    fn compute(&self, queue: &Receiver<Item<W::Fetched>>) {
        let _guard = StopOnPanic(&self.budget);
        let mut opener = GroupOpener::new(self.stages);
        let meter = self.stages.meter(Stage::Unseal);
        while let Ok(Item { fetched, room }) = meter.starved(|| queue.recv()) {
            meter.unqueue(room.bytes);
            if !self.is_cancelled() {
                self.work.compute(fetched, &mut opener);
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        let is_cancelled = self.work.is_cancelled();
        if is_cancelled {
            self.budget.stop();
        }
        is_cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    /// Work whose jobs are sizes: counts what is fetched and not done with.
    #[derive(Default)]
    struct Sizes {
        in_flight: AtomicUsize,
        most_in_flight: AtomicUsize,
        done: Mutex<Vec<usize>>,
        cancel_at: usize,
        is_cancelled: AtomicBool,
        fetch_panics_at: usize,
        compute_panics_at: usize,
    }

    impl ReadingWork for Sizes {
        type Job = usize;
        type Fetched = usize;

        fn fetch(&self, &bytes: &usize, fetching: &Fetching<'_, usize>) -> Result<(), Stopped> {
            // Two parts of a job.
            for _ in 0..2 {
                let room = fetching.reserve(bytes)?;
                assert!(bytes != self.fetch_panics_at, "meant to happen");
                fetching.read(bytes, || {
                    let now = self.in_flight.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    self.most_in_flight.fetch_max(now, Ordering::SeqCst);
                });
                fetching.hand_on(room, bytes)?;
            }
            Ok(())
        }

        fn compute(&self, bytes: usize, _: &mut GroupOpener) {
            assert!(bytes != self.compute_panics_at, "meant to happen");
            self.in_flight.fetch_sub(bytes, Ordering::SeqCst);
            self.done.lock().unwrap().push(bytes);
            if bytes == self.cancel_at {
                self.is_cancelled.store(true, Ordering::SeqCst);
            }
        }

        fn is_cancelled(&self) -> bool {
            self.is_cancelled.load(Ordering::SeqCst)
        }
    }

    fn room(fetch_threads: usize, compute_threads: usize, stages: &Stages) -> ReadingRoom {
        ReadingRoom::new(fetch_threads, compute_threads, 100_000, stages)
    }

    #[test]
    fn everything_is_done_and_little_is_in_flight() {
        let jobs: Vec<usize> = (0..400).map(|job| 5_000 + job * 7_919 % 60_000).collect();
        let expected = {
            let mut both = [&jobs[..], &jobs[..]].concat();
            both.sort_unstable();
            both
        };
        for (fetch_threads, compute_threads) in [(1, 1), (4, 1), (1, 8), (4, 8), (0, 0)] {
            let stages = Stages::default();
            let work = Sizes::default();
            let room = room(fetch_threads, compute_threads, &stages);
            assert_eq!(room.run(&jobs, &work, || 7), 7);
            let mut done = work.done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, expected);
            let most = work.most_in_flight.into_inner();
            assert!(most <= 100_000, "{most} bytes are in flight");
            let reports = stages.reports();
            let fetched = reports.iter().find(|report| report.stage == Stage::Fetch);
            let total: usize = expected.iter().sum();
            assert_eq!(fetched.map(|report| report.bytes), Some(total as u64));
            let unseal = reports.iter().find(|report| report.stage == Stage::Unseal);
            let queued = unseal.map(|report| (report.queued_items, report.queued_bytes));
            assert_eq!(queued, Some((0, 0)));
        }
    }

    #[test]
    fn what_is_larger_than_the_room_goes_alone() {
        let work = Sizes::default();
        let jobs = [1_000_000, 10, 2_000_000, 10];
        room(2, 2, &Stages::default()).run(&jobs, &work, || ());
        assert_eq!(work.done.into_inner().unwrap().len(), 8);
        assert_eq!(work.most_in_flight.into_inner(), 2_000_000);
    }

    #[test]
    fn a_stop_is_noticed() {
        for (fetch_threads, compute_threads) in [(1, 1), (4, 8)] {
            let work = Sizes {
                cancel_at: 50_003,
                ..Sizes::default()
            };
            let jobs: Vec<usize> = (50_000..60_000).collect();
            room(fetch_threads, compute_threads, &Stages::default()).run(&jobs, &work, || ());
            let done = work.done.into_inner().unwrap().len();
            // Of 20,000; how many exactly is up to the system's scheduler.
            assert!((1..10_000).contains(&done), "{done} are done");
        }
        let none: [usize; 0] = [];
        room(2, 2, &Stages::default()).run(&none, &Sizes::default(), || ());
    }

    #[test]
    fn a_panic_ends_the_others_and_is_passed_on() {
        let jobs: Vec<usize> = (50_000..60_000).collect();
        for threads in [1, 4] {
            for (fetch_panics_at, compute_panics_at) in [(50_009, 0), (0, 50_009)] {
                let work = Sizes {
                    fetch_panics_at,
                    compute_panics_at,
                    ..Sizes::default()
                };
                let room = room(threads, threads, &Stages::default());
                let run = || room.run(&jobs, &work, || ());
                assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
                let done = work.done.into_inner().unwrap().len();
                assert!(done < 10_000, "{done} are done");
            }
            let room = room(threads, threads, &Stages::default());
            let work = Sizes::default();
            let run = || room.run(&jobs, &work, || panic!("meant to happen"));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }
}

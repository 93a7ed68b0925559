//! How hard and with how many threads groups are compressed: as the user says, or, only when asked
//! (`--compression auto`), as hard as costs no time.
//!
//! Every few groups the writer looks at what the stages did since the last time:
//!
//! | what it sees | what follows |
//! |---|---|
//! | the packer waited for the store | a level more: fewer bytes are worth the time |
//! | deciding waited for room among the groups | a compressing thread more; when all are at work, a level less |
//! | compressors idle, processors too | a level more: time is to be had |
//! | compressors idle, processors busy | a thread less: others need it |
//!
//! What is stored with `auto` depends on the machine and its load; with a level it never does.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::budget::lock;
use super::stages::{Stage, Stages};
use crate::container::{CompressionChoice, CompressionLevel};

/// Levels between which `auto` chooses: below, a group shrinks too little; above, zstd is several
/// times slower for a percent.
const LEVEL_MIN: i32 = 1;
const LEVEL_MAX: i32 = 9;

/// Groups from one look to the next.
const GROUPS_A_LOOK: u32 = 8;

/// Share of the time that counts as waiting much.
const MUCH: f64 = 0.25;

/// Share of the processors' time up to which they count as idle.
const BUSY: f64 = 0.75;

/// What was seen between two looks, as shares of the time between.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Observed {
    /// The packer waited for the store.
    store_waits: f64,
    /// Deciding waited for room.
    full: f64,
    /// Of the threads that may compress, so much was at work.
    compressing: f64,
    /// Of the processors, so much was at work.
    processors: f64,
}

/// A level and a number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effort {
    level: i32,
    workers: usize,
}

impl Effort {
    fn after(self, seen: Observed, workers_max: usize) -> Self {
        let Self { level, workers } = self;
        let harder = (level + 1).min(LEVEL_MAX);
        if seen.store_waits > MUCH {
            Self {
                level: harder,
                ..self
            }
        } else if seen.full > MUCH && workers < workers_max {
            Self {
                workers: workers + 1,
                ..self
            }
        } else if seen.full > MUCH {
            Self {
                level: (level - 1).max(LEVEL_MIN),
                ..self
            }
        } else if seen.compressing < 0.5 && seen.processors < BUSY {
            Self {
                level: harder,
                ..self
            }
        } else if seen.compressing < 0.5 {
            Self {
                workers: (workers - 1).max(1),
                ..self
            }
        } else {
            self
        }
    }
}

/// How hard groups are compressed just now; clones share it.
#[derive(Debug, Clone)]
pub(super) struct CompressionEffort(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_auto: bool,
    level: AtomicI32,
    workers: AtomicUsize,
    workers_max: usize,
    at_work: Mutex<usize>,
    left: Condvar,
}

impl CompressionEffort {
    pub fn new(choice: CompressionChoice, workers_max: usize) -> Self {
        let (is_auto, level) = match choice {
            CompressionChoice::Level(level) => (false, level),
            CompressionChoice::Auto => (true, CompressionLevel::DEFAULT),
        };
        Self(Arc::new(Shared {
            is_auto,
            level: AtomicI32::new(level.number()),
            workers: AtomicUsize::new(workers_max),
            workers_max,
            at_work: Mutex::new(0),
            left: Condvar::new(),
        }))
    }

    /// The level to compress with.
    pub fn level(&self) -> CompressionLevel {
        let level = self.0.level.load(Ordering::Relaxed);
        CompressionLevel::new(level).unwrap_or(CompressionLevel::DEFAULT)
    }

    /// Compresses, once few enough others do.
    pub fn at_work<R>(&self, compress: impl FnOnce() -> R) -> R {
        if !self.0.is_auto {
            return compress();
        }
        let mut at_work = lock(&self.0.at_work);
        while *at_work >= self.0.workers.load(Ordering::Relaxed) {
            let waited = self.0.left.wait(at_work);
            at_work = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *at_work += 1;
        drop(at_work);
        let _leaving = Leaving(&self.0);
        compress()
    }

    fn effort(&self) -> Effort {
        Effort {
            level: self.0.level.load(Ordering::Relaxed),
            workers: self.0.workers.load(Ordering::Relaxed),
        }
    }

    fn set(&self, effort: Effort) {
        self.0.level.store(effort.level, Ordering::Relaxed);
        let at_work = lock(&self.0.at_work);
        self.0.workers.store(effort.workers, Ordering::Relaxed);
        drop(at_work);
        self.0.left.notify_all();
    }
}

/// Makes room when a compressor is done, even if it panics.
struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        *lock(&self.0.at_work) -= 1;
        self.0.left.notify_one();
    }
}

/// Sums of times at one look.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Instant,
    store_waits: Duration,
    full: Duration,
    compressing: Duration,
    processing: Duration,
}

impl Look {
    /// `full` is how long deciding has waited for room among the groups so far.
    fn now(stages: &Stages, full: Duration) -> Self {
        let mut look = Self {
            at: Instant::now(),
            store_waits: Duration::ZERO,
            full,
            compressing: Duration::ZERO,
            processing: Duration::ZERO,
        };
        for report in stages.reports() {
            match report.stage {
                Stage::Pack => look.store_waits = report.blocked,
                Stage::Compress => look.compressing = report.busy,
                _ => {}
            }
            // What waits for a disk is counted as busy by these two.
            if !matches!(report.stage, Stage::Read | Stage::Put) {
                look.processing += report.busy;
            }
        }
        look
    }

    fn since(&self, before: &Look, workers: usize, processors: usize) -> Observed {
        let time = self.at.duration_since(before.at).as_secs_f64().max(1e-9);
        let share = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / time;
        Observed {
            store_waits: share(self.store_waits, before.store_waits),
            full: share(self.full, before.full),
            compressing: share(self.compressing, before.compressing) / workers as f64,
            processors: share(self.processing, before.processing) / processors as f64,
        }
    }
}

/// Changes the effort as time goes by: the writer's side.
#[derive(Debug)]
pub(super) struct Adaptation {
    effort: CompressionEffort,
    stages: Stages,
    last: Look,
    groups: u32,
    waited: Duration,
}

impl Adaptation {
    pub fn new(effort: &CompressionEffort, stages: &Stages) -> Self {
        Self {
            effort: effort.clone(),
            stages: stages.clone(),
            last: Look::now(stages, Duration::ZERO),
            groups: 0,
            waited: Duration::ZERO,
        }
    }

    /// A group went to the compressors, after it had waited for room.
    pub fn group(&mut self, waited: Duration) {
        self.groups += 1;
        self.waited += waited;
        if !self.effort.0.is_auto || !self.groups.is_multiple_of(GROUPS_A_LOOK) {
            return;
        }
        let look = Look::now(&self.stages, self.waited);
        let effort = self.effort.effort();
        let workers_max = self.effort.0.workers_max;
        let seen = look.since(&self.last, effort.workers, workers_max);
        self.effort.set(effort.after(seen, workers_max));
        self.last = look;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Observed = Observed {
        store_waits: 0.0,
        full: 0.0,
        compressing: 0.8,
        processors: 0.9,
    };

    fn effort(level: i32, workers: usize) -> Effort {
        Effort { level, workers }
    }

    #[test]
    fn effort_follows_the_bottleneck() {
        let slow_store = Observed {
            store_waits: 0.5,
            full: 0.9,
            ..CALM
        };
        let full = Observed { full: 0.5, ..CALM };
        let idle = Observed {
            compressing: 0.1,
            processors: 0.3,
            ..CALM
        };
        let others_busy = Observed {
            compressing: 0.1,
            ..CALM
        };
        let cases = [
            (CALM, effort(3, 2), effort(3, 2)),
            (slow_store, effort(3, 2), effort(4, 2)),
            (slow_store, effort(LEVEL_MAX, 2), effort(LEVEL_MAX, 2)),
            (full, effort(3, 2), effort(3, 3)),
            (full, effort(3, 4), effort(2, 4)),
            (full, effort(LEVEL_MIN, 4), effort(LEVEL_MIN, 4)),
            (idle, effort(3, 2), effort(4, 2)),
            (others_busy, effort(3, 2), effort(3, 1)),
            (others_busy, effort(3, 1), effort(3, 1)),
        ];
        for (seen, before, after) in cases {
            assert_eq!(before.after(seen, 4), after, "{seen:?} {before:?}");
        }
    }

    #[test]
    fn a_level_stays_what_it_is() {
        let stages = Stages::default();
        let level = CompressionLevel::new(7).unwrap();
        let effort = CompressionEffort::new(CompressionChoice::Level(level), 4);
        let mut adaptation = Adaptation::new(&effort, &stages);
        let wait = stages.meter(Stage::Pack);
        for _ in 0..100 {
            wait.blocked(std::thread::yield_now);
            adaptation.group(Duration::ZERO);
        }
        assert_eq!(effort.level(), level);
    }

    #[test]
    fn auto_leaves_its_level_when_the_store_is_slow() {
        let stages = Stages::default();
        let effort = CompressionEffort::new(CompressionChoice::Auto, 2);
        assert_eq!(effort.level(), CompressionLevel::DEFAULT);
        let mut adaptation = Adaptation::new(&effort, &stages);
        let pack = stages.meter(Stage::Pack);
        for _ in 0..10 * GROUPS_A_LOOK {
            pack.blocked(|| std::thread::sleep(Duration::from_micros(200)));
            adaptation.group(Duration::ZERO);
        }
        assert_eq!(effort.level().number(), LEVEL_MAX);
    }

    #[test]
    fn no_more_work_than_may() {
        let effort = CompressionEffort::new(CompressionChoice::Auto, 8);
        effort.set(Effort {
            level: 3,
            workers: 2,
        });
        let (at_work, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        effort.at_work(|| {
                            let now = at_work.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            std::thread::yield_now();
                            at_work.fetch_sub(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
    }
}

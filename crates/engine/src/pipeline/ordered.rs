//! A pool of workers whose results come back in the order of submission.
//!
//! A job may emit several results; they come as they are made once the job is at the front.
//! The submitter takes a job's bytes from a budget in submission order, and workers take jobs
//! in that order too, so the job at the front always has a worker and its memory: the pool
//! can't block itself. A worker that panics in a job ends the results there and stops the
//! budget: what follows would stand in the wrong place.
//!
//! To hand something to another thread costs system calls and often a sleep, which is more than
//! many a small job takes. So small jobs can be handed on in batches of [`BATCH_BYTES`]: one
//! worker does all of a batch, and their results come back together. A batch does not wait for
//! room: when a job does not fit into the budget at once, what was gathered before goes first.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use std::{io, thread, vec};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, unbounded};

use super::budget::{ByteBudget, Permit, Stopped, lock};
use super::stages::{Stage, StageMeter, Stages};

/// A batch of this many bytes (of the budget) goes to a worker.
const BATCH_BYTES: usize = 256 << 10;

/// Results of one small job that are kept until its batch is done. A file that has grown since it
/// was found may have more: those are handed on as they come.
const RESULTS_KEPT_MAX: usize = 3;

/// What a pool is like.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// The stage whose work it does.
    pub stage: Stage,
    /// Where that is reported.
    pub stages: Stages,
    /// Threads.
    pub workers: usize,
    /// Bytes that jobs may hold together, until their results are taken.
    pub budget: ByteBudget,
}

impl PoolOptions {
    fn meter(&self) -> &StageMeter {
        self.stages.meter(self.stage)
    }
}

/// Both ends of a pool: where jobs go in, and where their results come out.
pub type OrderedPool<J, R> = (JobSender<J, R>, Results<R>);

/// Takes jobs into the pool.
#[derive(Debug)]
pub struct JobSender<J, R> {
    batches: Sender<Batch<J, R>>,
    order: Sender<Waiting<R>>,
    options: PoolOptions,
    gathered: Mutex<Option<Gathered<J>>>,
}

/// Small jobs that wait for others.
#[derive(Debug)]
struct Gathered<J> {
    jobs: Vec<J>,
    permit: Permit,
    bytes: usize,
}

/// What a worker takes at a time.
#[derive(Debug)]
struct Batch<J, R> {
    jobs: Vec<J>,
    bytes: usize,
    emitter: Emitter<R>,
}

#[derive(Debug)]
struct Waiting<R> {
    messages: Receiver<Message<R>>,
    permit: Permit,
}

/// What a worker makes of a batch.
#[derive(Debug)]
struct Message<R> {
    results: Vec<R>,
    is_last: bool,
}

impl<J, R> JobSender<J, R> {
    /// Waits until `bytes` fit into the budget, then queues the job and those gathered before. So
    /// many of its results may wait before it must be at the front.
    ///
    /// # Errors
    /// [`Stopped`] when the pool's budget was stopped or nobody takes results any more.
    pub fn submit(&self, job: J, bytes: usize, results_waiting: usize) -> Result<(), Stopped> {
        let mut gathered = lock(&self.gathered);
        self.send_gathered(&mut gathered)?;
        let permit = self.options.budget.acquire(bytes)?;
        self.send(vec![job], bytes, permit, results_waiting)
    }

    /// Like [`JobSender::submit`], for a job that may wait for others if it is small. They are
    /// queued when there are enough of them, before any other job, and when the sender is dropped.
    ///
    /// # Errors
    /// [`Stopped`] when the pool's budget was stopped or nobody takes results any more.
    pub fn gather(&self, job: J, bytes: usize, results_waiting: usize) -> Result<(), Stopped> {
        if bytes >= BATCH_BYTES {
            return self.submit(job, bytes, results_waiting);
        }
        let mut gathered = lock(&self.gathered);
        let has_room = match &mut *gathered {
            Some(batch) => batch.permit.grow(bytes)?,
            None => false,
        };
        if !has_room {
            self.send_gathered(&mut gathered)?;
            let permit = self.options.budget.acquire(bytes)?;
            *gathered = Some(Gathered {
                jobs: Vec::new(),
                permit,
                bytes: 0,
            });
        }
        if let Some(batch) = &mut *gathered {
            batch.jobs.push(job);
            batch.bytes += bytes;
            if batch.bytes >= BATCH_BYTES {
                self.send_gathered(&mut gathered)?;
            }
        }
        Ok(())
    }

    fn send_gathered(&self, gathered: &mut Option<Gathered<J>>) -> Result<(), Stopped> {
        match gathered.take() {
            Some(batch) => self.send(batch.jobs, batch.bytes, batch.permit, 1),
            None => Ok(()),
        }
    }

    fn send(
        &self,
        jobs: Vec<J>,
        bytes: usize,
        permit: Permit,
        results_waiting: usize,
    ) -> Result<(), Stopped> {
        // One more, for the word that there are no more.
        let (sender, messages) = bounded(results_waiting.max(1) + 1);
        let kept_max = if jobs.len() > 1 { RESULTS_KEPT_MAX } else { 0 };
        let emitter = Emitter {
            sender,
            kept: RefCell::default(),
            kept_max,
            of_job: Cell::new(0),
            options: self.options.clone(),
        };
        self.order
            .send(Waiting { messages, permit })
            .map_err(|_| Stopped)?;
        self.options.meter().queue(bytes as u64);
        let batch = Batch {
            jobs,
            bytes,
            emitter,
        };
        self.batches.send(batch).map_err(|_| Stopped)
    }
}

impl<J, R> Drop for JobSender<J, R> {
    fn drop(&mut self) {
        let gathered = self.gathered.get_mut();
        if let Some(batch) = gathered.unwrap_or_else(|error| error.into_inner()).take() {
            // If nobody takes results any more, nobody misses these.
            let _ = self.send(batch.jobs, batch.bytes, batch.permit, 1);
        }
    }
}

/// Where a worker puts the results of a job.
#[derive(Debug)]
pub struct Emitter<R> {
    sender: Sender<Message<R>>,
    /// Results to be handed on with others.
    kept: RefCell<Vec<R>>,
    /// How many results of a job are kept.
    kept_max: usize,
    /// How many results the job in hand has had.
    of_job: Cell<usize>,
    options: PoolOptions,
}

impl<R> Emitter<R> {
    /// Hands on a result, waiting until there is room for it.
    ///
    /// # Errors
    /// [`Stopped`] when nobody takes results any more.
    pub fn emit(&self, result: R) -> Result<(), Stopped> {
        self.kept.borrow_mut().push(result);
        self.of_job.set(self.of_job.get() + 1);
        if self.of_job.get() <= self.kept_max {
            return Ok(());
        }
        self.hand_on(false)
    }

    fn hand_on(&self, is_last: bool) -> Result<(), Stopped> {
        let results = self.kept.take();
        let message = Message { results, is_last };
        match self.sender.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Stopped),
            Err(TrySendError::Full(message)) => {
                let wait = || self.sender.send(message).map_err(|_| Stopped);
                self.options.meter().blocked(wait)
            }
        }
    }
}

/// Results in the order of their jobs.
#[derive(Debug)]
pub struct Results<R> {
    order: Receiver<Waiting<R>>,
    current: Option<Waiting<R>>,
    /// What has come of the current batch and was not taken.
    ready: vec::IntoIter<R>,
    is_last: bool,
    is_broken: bool,
}

impl<R> Results<R> {
    /// The next result; nothing when the sender is gone and all jobs are done, or when a worker
    /// died. Whoever must know which sends a last job and looks whether its result came.
    pub fn next_result(&mut self) -> Option<R> {
        while !self.is_broken {
            if let Some(result) = self.ready.next() {
                return Some(result);
            }
            if self.is_last {
                self.current = None;
                self.is_last = false;
            }
            let Some(waiting) = &self.current else {
                self.current = Some(self.order.recv().ok()?);
                continue;
            };
            match waiting.messages.recv() {
                Ok(message) => {
                    self.ready = message.results.into_iter();
                    self.is_last = message.is_last;
                }
                Err(_) => {
                    self.is_broken = true;
                    waiting.permit.stop();
                    self.current = None;
                }
            }
        }
        None
    }
}

/// Starts threads that run `work` on jobs. They end when the sender is dropped and all jobs are
/// done. Time spent waiting is reported here; busy time by `work`, which may do the work of more
/// than one stage.
///
/// # Errors
/// When the system starts no more threads.
pub fn ordered_pool<J, R, W>(options: &PoolOptions, work: W) -> io::Result<OrderedPool<J, R>>
where
    J: Send + 'static,
    R: Send + 'static,
    W: Fn() -> Box<dyn FnMut(J, &Emitter<R>)> + Send + Sync + 'static,
{
    let (batches, batch_queue) = unbounded::<Batch<J, R>>();
    let (order, order_queue) = unbounded();
    let work = Arc::new(work);
    let workers = options.workers.max(1);
    options.meter().set_threads(workers);
    for number in 0..workers {
        let queue = batch_queue.clone();
        let work = Arc::clone(&work);
        let options = options.clone();
        thread::Builder::new()
            .name(format!("{}-{number}", options.stage.name()))
            .spawn(move || run_worker(&options, &queue, work()))?;
    }
    let sender = JobSender {
        batches,
        order,
        options: options.clone(),
        gathered: Mutex::default(),
    };
    let results = Results {
        order: order_queue,
        current: None,
        ready: Vec::new().into_iter(),
        is_last: false,
        is_broken: false,
    };
    Ok((sender, results))
}

fn run_worker<J, R>(
    options: &PoolOptions,
    queue: &Receiver<Batch<J, R>>,
    mut work: impl FnMut(J, &Emitter<R>),
) {
    let meter = options.meter();
    while let Ok(batch) = meter.starved(|| queue.recv()) {
        meter.unqueue(batch.bytes as u64);
        for job in batch.jobs {
            batch.emitter.of_job.set(0);
            work(job, &batch.emitter);
        }
        // If nobody takes results any more, nobody misses the end either.
        let _ = batch.emitter.hand_on(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn options(workers: usize, limit_bytes: usize) -> PoolOptions {
        PoolOptions {
            stage: Stage::Read,
            stages: Stages::default(),
            workers,
            budget: ByteBudget::new(limit_bytes),
        }
    }

    #[test]
    fn results_keep_the_order_of_jobs() {
        let (sender, mut results) = ordered_pool(&options(4, 10), || {
            Box::new(|job: u64, out: &Emitter<(u64, u64)>| {
                thread::sleep(Duration::from_micros((job * 7919) % 300));
                for part in 0..job % 5 {
                    let _ = out.emit((job, part));
                }
            })
        })
        .unwrap();
        let submitter = thread::spawn(move || {
            for job in 0..300 {
                sender.submit(job, 3, 2).unwrap();
            }
        });
        let mut seen = Vec::new();
        while let Some(result) = results.next_result() {
            seen.push(result);
        }
        submitter.join().unwrap();
        let expected: Vec<_> = (0..300u64)
            .flat_map(|job| (0..job % 5).map(move |part| (job, part)))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn gathered_jobs_keep_the_order_too() {
        // Jobs of all sizes, from those that fill a batch to those that go alone, and budgets that
        // are always, often and never short.
        for limit in [1, BATCH_BYTES / 2, 3 * BATCH_BYTES, 100 * BATCH_BYTES] {
            let (sender, mut results) = ordered_pool(&options(4, limit), || {
                Box::new(|job: usize, out: &Emitter<(usize, usize)>| {
                    // More than may be kept, now and then.
                    for part in 0..job % 9 {
                        let _ = out.emit((job, part));
                    }
                })
            })
            .unwrap();
            let submitter = thread::spawn(move || {
                for job in 0..500 {
                    let bytes = (job * 7919) % (BATCH_BYTES / 10) * (1 + job % 40);
                    match job % 50 {
                        49 => sender.submit(job, 1, 2).unwrap(),
                        _ => sender.gather(job, bytes, 2).unwrap(),
                    }
                }
            });
            let seen: Vec<_> = std::iter::from_fn(|| results.next_result()).collect();
            submitter.join().unwrap();
            let expected: Vec<_> = (0..500)
                .flat_map(|job| (0..job % 9).map(move |part| (job, part)))
                .collect();
            assert_eq!(seen, expected, "a budget of {limit}");
        }
    }

    #[test]
    fn results_end_where_a_worker_dies() {
        let (sender, mut results) = ordered_pool(&options(2, 10), || {
            Box::new(|job: u64, out: &Emitter<u64>| {
                let _ = out.emit(job);
                assert!(job != 5, "this worker is meant to die");
            })
        })
        .unwrap();
        let submitter = thread::spawn(move || (0..100).all(|job| sender.submit(job, 3, 2).is_ok()));
        let mut seen = Vec::new();
        while let Some(result) = results.next_result() {
            seen.push(result);
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
        assert_eq!(results.next_result(), None);
        assert!(!submitter.join().unwrap(), "submitters are stopped");
    }

    #[test]
    fn no_later_result_comes_when_a_worker_dies_in_a_batch() {
        let (sender, mut results) = ordered_pool(&options(2, 1 << 30), || {
            Box::new(|job: usize, out: &Emitter<usize>| {
                let _ = out.emit(job);
                assert!(job != 100, "this worker is meant to die");
            })
        })
        .unwrap();
        for job in 0..1000 {
            sender.gather(job, BATCH_BYTES / 16, 2).unwrap();
        }
        drop(sender);
        let seen: Vec<_> = std::iter::from_fn(|| results.next_result()).collect();
        assert_eq!(seen, (0..96).collect::<Vec<_>>(), "whole batches before");
    }

    #[test]
    fn a_dropped_consumer_stops_submitters() {
        let (sender, results) = ordered_pool(&options(1, 10), || {
            Box::new(|job: u8, out: &Emitter<u8>| {
                let _ = out.emit(job);
            })
        })
        .unwrap();
        drop(results);
        assert_eq!(sender.submit(1, 1, 2), Err(Stopped));
        assert_eq!(sender.gather(1, BATCH_BYTES - 1, 2), Ok(()), "it waits");
        assert_eq!(sender.gather(1, 1, 2), Err(Stopped));
    }
}

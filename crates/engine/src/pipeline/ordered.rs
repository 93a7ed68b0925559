//! A pool of workers whose results come back in the order of submission.
//!
//! A job may emit several results; they come as they are made once the job is at the front.
//! The submitter takes a job's bytes from a budget in submission order, and workers take jobs
//! in that order too, so the job at the front always has a worker and its memory: the pool
//! can't block itself. A worker that panics in a job ends the results there and stops the
//! budget: what follows would stand in the wrong place.

use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::budget::{ByteBudget, Permit, Stopped};

/// Results that a job may have waiting before it must be at the front.
const RESULTS_WAITING_MAX: usize = 2;

/// Takes jobs into the pool.
#[derive(Debug)]
pub struct JobSender<J, R> {
    jobs: Sender<(J, Emitter<R>)>,
    order: Sender<Waiting<R>>,
    budget: ByteBudget,
}

#[derive(Debug)]
struct Waiting<R> {
    results: Receiver<Part<R>>,
    permit: Permit,
}

/// What a worker makes of a job: results, and the word that there are no more.
#[derive(Debug)]
enum Part<R> {
    Result(R),
    End,
}

impl<J, R> JobSender<J, R> {
    /// Waits until `bytes` fit into the budget, then queues the job.
    ///
    /// # Errors
    /// [`Stopped`] when the pool's budget was stopped or nobody takes results any more.
    pub fn submit(&self, job: J, bytes: usize) -> Result<(), Stopped> {
        let permit = self.budget.acquire(bytes)?;
        let (emit, results) = bounded(RESULTS_WAITING_MAX + 1);
        self.order
            .send(Waiting { results, permit })
            .map_err(|_| Stopped)?;
        self.jobs.send((job, Emitter(emit))).map_err(|_| Stopped)
    }
}

/// Where a worker puts the results of a job.
#[derive(Debug)]
pub struct Emitter<R>(Sender<Part<R>>);

impl<R> Emitter<R> {
    /// Hands on a result, waiting until there is room for it.
    ///
    /// # Errors
    /// [`Stopped`] when nobody takes results any more.
    pub fn emit(&self, result: R) -> Result<(), Stopped> {
        self.0.send(Part::Result(result)).map_err(|_| Stopped)
    }
}

/// Results in the order of their jobs.
#[derive(Debug)]
pub struct Results<R> {
    order: Receiver<Waiting<R>>,
    current: Option<Waiting<R>>,
    is_broken: bool,
}

impl<R> Results<R> {
    /// The next result; nothing when the sender is gone and all jobs are done, or when a worker
    /// died. Whoever must know which sends a last job and looks whether its result came.
    pub fn next_result(&mut self) -> Option<R> {
        while !self.is_broken {
            if let Some(waiting) = &self.current {
                match waiting.results.recv() {
                    Ok(Part::Result(result)) => return Some(result),
                    Ok(Part::End) => {}
                    Err(_) => {
                        self.is_broken = true;
                        waiting.permit.stop();
                    }
                }
                self.current = None;
            } else {
                self.current = Some(self.order.recv().ok()?);
            }
        }
        None
    }
}

/// Starts `workers` threads that run `work` on jobs, which may hold `budget` bytes together.
/// The threads end when the sender is dropped and all jobs are done.
///
/// # Panics
/// When the system can't start a thread.
pub fn ordered_pool<J, R, W>(
    name: &str,
    workers: usize,
    budget: ByteBudget,
    work: W,
) -> (JobSender<J, R>, Results<R>)
where
    J: Send + 'static,
    R: Send + 'static,
    W: Fn() -> Box<dyn FnMut(J, &Emitter<R>)> + Send + Sync + 'static,
{
    let (jobs, job_queue) = unbounded::<(J, Emitter<R>)>();
    let (order, order_queue) = unbounded();
    let work = Arc::new(work);
    for number in 0..workers.max(1) {
        let queue = job_queue.clone();
        let work = Arc::clone(&work);
        thread::Builder::new()
            .name(format!("{name}-{number}"))
            .spawn(move || {
                let mut work = work();
                for (job, emitter) in queue {
                    work(job, &emitter);
                    // If nobody takes results any more, nobody misses the end either.
                    let _ = emitter.0.send(Part::End);
                }
            })
            .expect("the system starts a thread");
    }
    let sender = JobSender {
        jobs,
        order,
        budget,
    };
    let results = Results {
        order: order_queue,
        current: None,
        is_broken: false,
    };
    (sender, results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn results_keep_the_order_of_jobs() {
        let budget = ByteBudget::new(10);
        let (sender, mut results) = ordered_pool("test", 4, budget, || {
            Box::new(|job: u64, out: &Emitter<(u64, u64)>| {
                thread::sleep(Duration::from_micros((job * 7919) % 300));
                for part in 0..job % 5 {
                    let _ = out.emit((job, part));
                }
            })
        });
        let submitter = thread::spawn(move || {
            for job in 0..300 {
                sender.submit(job, 3).unwrap();
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
    fn results_end_where_a_worker_dies() {
        let budget = ByteBudget::new(10);
        let (sender, mut results) = ordered_pool("test", 2, budget, || {
            Box::new(|job: u64, out: &Emitter<u64>| {
                let _ = out.emit(job);
                assert!(job != 5, "this worker is meant to die");
            })
        });
        let submitter = thread::spawn(move || (0..100).all(|job| sender.submit(job, 3).is_ok()));
        let mut seen = Vec::new();
        while let Some(result) = results.next_result() {
            seen.push(result);
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
        assert_eq!(results.next_result(), None);
        assert!(!submitter.join().unwrap(), "submitters are stopped");
    }

    #[test]
    fn a_dropped_consumer_stops_submitters() {
        let budget = ByteBudget::new(10);
        let (sender, results) = ordered_pool("test", 1, budget, || {
            Box::new(|job: u8, out: &Emitter<u8>| {
                let _ = out.emit(job);
            })
        });
        drop(results);
        assert_eq!(sender.submit(1, 1), Err(Stopped));
    }
}

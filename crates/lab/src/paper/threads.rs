//! Jobs on threads, and what more threads than there are would give.
//!
//! Prediction, of times that one thread takes (S1: all jobs, S2: what only one thread can do), for T
//! threads:
//! - one file at a time, its jobs in batches: S2 + the sum over files of S1(file) · ⌈batches / T⌉ /
//!   batches ([`one_file_seconds`]);
//! - a file a thread: the next file goes to the thread that is free first; the time is that of the
//!   thread that is last ([`file_a_thread_share`]).
//!
//! Both leave out what threads take from each other: the bandwidth of memory, the clock, locks. They
//! are what a machine of T like cores can reach at most.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs jobs `0..count` on so many threads, `batch` after one another by the same; what they
/// return is in order. One thread, or one batch, runs here.
pub fn run<R: Send>(
    threads: usize,
    batch: usize,
    count: usize,
    job: impl Fn(usize) -> R + Sync,
) -> Vec<R> {
    let batch = batch.max(1);
    let threads = threads.clamp(1, count.div_ceil(batch).max(1));
    if threads == 1 {
        return (0..count).map(job).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(batch, Ordering::Relaxed);
            if first >= count {
                return done;
            }
            for index in first..(first + batch).min(count) {
                done.push((index, job(index)));
            }
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut all = worker();
        for other in others {
            // A panic goes on in this thread.
            all.extend(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Work that needs nothing but a core, the same on each of so many threads: how much more of it they
/// do than one tells how many cores there are for this program just now.
pub fn compute(threads: usize) {
    run(threads, 1, threads, |seed| {
        let mut state = seed as u64;
        for _ in 0..COMPUTE_STEPS {
            state = std::hint::black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ state >> 29);
        }
        state
    });
}

/// About 20 ms.
const COMPUTE_STEPS: u64 = 10_000_000;
/// What [`compute`] is called in figures.
pub const COMPUTING: &str = "nothing but computing";

/// Seconds for one file after another, whose jobs run on so many threads: `parallel` and `serial` are
/// what one thread takes for all files, `jobs` how many each file has.
pub fn one_file_seconds(
    parallel: f64,
    serial: f64,
    jobs: &[usize],
    batch: usize,
    threads: usize,
) -> f64 {
    let batches = |jobs: &usize| jobs.div_ceil(batch.max(1));
    let all: usize = jobs.iter().map(batches).sum();
    let rounds: usize = jobs
        .iter()
        .map(|jobs| batches(jobs).div_ceil(threads.max(1)))
        .sum();
    serial + parallel * rounds as f64 / all.max(1) as f64
}

/// The share of all bytes that the busiest thread gets when each takes the next file once it is
/// free, and time goes by bytes.
pub fn file_a_thread_share(files: &[usize], threads: usize) -> f64 {
    let mut busy = vec![0usize; threads.max(1)];
    for bytes in files {
        if let Some(first) = busy.iter_mut().min() {
            *first += bytes;
        }
    }
    let all: usize = files.iter().sum();
    busy.into_iter().max().unwrap_or(0) as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|index| index * index).collect();
        for threads in [1, 2, 3, 7] {
            for batch in [0, 1, 4, 1000] {
                assert_eq!(run(threads, batch, 100, |index| index * index), expected);
            }
        }
        assert!(run(4, 1, 0, |index| index).is_empty());
    }

    #[test]
    fn predictions_go_by_batches_and_files() {
        // 40 jobs in batches of 4: ten batches on four threads are three rounds.
        let seconds = one_file_seconds(10.0, 1.0, &[40], 4, 4);
        assert!((seconds - 4.0).abs() < 1e-9);
        assert!((one_file_seconds(10.0, 1.0, &[40], 4, 1) - 11.0).abs() < 1e-9);
        let share = file_a_thread_share(&[5, 5, 10, 10], 2);
        assert!((share - 0.5).abs() < 1e-9);
        assert!((file_a_thread_share(&[5, 5], 8) - 0.5).abs() < 1e-9);
    }
}

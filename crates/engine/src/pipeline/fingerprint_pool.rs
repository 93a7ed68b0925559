//! Fingerprints the segments of a stream on several threads.
//!
//! One thread reads and cuts a stream. Where more of it is to come, it hands a segment's chunks to
//! a worker of this pool that is free, and goes on reading; when none is free it fingerprints the
//! segment itself. Either way it emits a [`SegmentInTurn`] at the segment's place, and whoever
//! takes these in turn has the fingerprints in the order of the stream (P-Dedupe, §3.4): what comes
//! out never depends on who did the work.
//!
//! Limits: a segment a worker; none waits for one. Nothing here waits for anything but jobs, so the
//! pool can't block those who use it.

use std::io;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use super::budget::Stopped;
use super::chunk_stream::{ChunkedSegment, CutSegment};
use super::stages::{Stage, Stages};
use crate::container::ContainerKind;
use crate::fingerprint::{Fingerprint, Fingerprinter};

/// A segment whose fingerprints are there, or on their way.
#[derive(Debug)]
pub enum SegmentInTurn {
    /// They are there.
    Ready(ChunkedSegment),
    /// A worker makes them.
    Later {
        /// Where they come from.
        segment: Receiver<ChunkedSegment>,
        /// Bytes of the chunks.
        bytes: u64,
    },
}

impl SegmentInTurn {
    /// Bytes of its chunks.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        match self {
            SegmentInTurn::Ready(segment) => segment.chunk_bytes(),
            SegmentInTurn::Later { bytes, .. } => *bytes,
        }
    }

    /// Waits for the fingerprints.
    ///
    /// # Errors
    /// [`Stopped`] when the worker died.
    pub fn wait(self) -> Result<ChunkedSegment, Stopped> {
        match self {
            SegmentInTurn::Ready(segment) => Ok(segment),
            SegmentInTurn::Later { segment, .. } => segment.recv().map_err(|_| Stopped),
        }
    }
}

struct Job {
    segment: CutSegment,
    done: Sender<ChunkedSegment>,
}

/// Threads that fingerprint; clones share them. They end with the last clone.
#[derive(Debug, Clone)]
pub struct FingerprintPool {
    fingerprinter: Arc<Fingerprinter>,
    /// None when there are no workers.
    jobs: Option<Sender<Job>>,
    stages: Stages,
}

impl FingerprintPool {
    /// Starts `threads` workers; none for one thread, which does better without handing over.
    ///
    /// # Errors
    /// When the system starts no more threads.
    pub fn start(
        fingerprinter: Arc<Fingerprinter>,
        threads: usize,
        stages: &Stages,
    ) -> io::Result<Self> {
        let mut pool = Self {
            fingerprinter,
            jobs: None,
            stages: stages.clone(),
        };
        if threads > 1 {
            stages.meter(Stage::Fingerprint).set_threads(threads);
            // Without room: a segment goes to a worker that waits for one, or nowhere.
            let (sender, jobs) = bounded::<Job>(0);
            for number in 0..threads {
                let (worker, jobs) = (pool.clone(), jobs.clone());
                thread::Builder::new()
                    .name(format!("fingerprint-{number}"))
                    .spawn(move || worker.run(&jobs))?;
            }
            pool.jobs = Some(sender);
        }
        Ok(pool)
    }

    /// The fingerprinter that it uses.
    #[must_use]
    pub fn fingerprinter(&self) -> &Fingerprinter {
        &self.fingerprinter
    }

    fn run(&self, jobs: &Receiver<Job>) {
        let meter = self.stages.meter(Stage::Fingerprint);
        while let Ok(job) = meter.starved(|| jobs.recv()) {
            // Nobody takes it once the pipeline has stopped.
            let _ = job.done.send(self.fingerprint(job.segment));
        }
    }

    /// Fingerprints a segment here.
    #[must_use]
    pub fn fingerprint(&self, segment: CutSegment) -> ChunkedSegment {
        let bytes = segment.chunk_bytes();
        let meter = self.stages.meter(Stage::Fingerprint);
        let chunks = meter.busy(bytes, || self.chunks_of(&segment));
        ChunkedSegment {
            bytes: segment.bytes,
            chunks,
        }
    }

    fn chunks_of(&self, segment: &CutSegment) -> Vec<(Fingerprint, u32)> {
        let CutSegment { bytes, lengths } = segment;
        let kind = ContainerKind::Data;
        let fingerprints = self.fingerprinter.fingerprints(kind, bytes, lengths);
        fingerprints
            .into_iter()
            .zip(lengths.iter().copied())
            .collect()
    }

    /// Has a segment fingerprinted: by a worker, if one is free and there is something else to do
    /// meanwhile, which is for the caller to say; else here.
    #[must_use]
    pub fn take(&self, segment: CutSegment, is_more_to_come: bool) -> SegmentInTurn {
        let Some(jobs) = self.jobs.as_ref().filter(|_| is_more_to_come) else {
            return SegmentInTurn::Ready(self.fingerprint(segment));
        };
        let bytes = segment.chunk_bytes();
        let (done, later) = bounded(1);
        match jobs.try_send(Job { segment, done }) {
            Ok(()) => SegmentInTurn::Later {
                segment: later,
                bytes,
            },
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                SegmentInTurn::Ready(self.fingerprint(job.segment))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32) -> CutSegment {
        let lengths = vec![1000 + number, 1, 30_000 - number];
        let total: u32 = lengths.iter().sum();
        CutSegment {
            bytes: (0..total + 50).map(|i| (i * (number + 3)) as u8).collect(),
            lengths,
        }
    }

    #[test]
    fn segments_come_in_turn_whoever_fingerprints_them() {
        let fingerprinter = Arc::new(Fingerprinter::new(&[7; 32]));
        let stages = Stages::default();
        let alone = FingerprintPool::start(Arc::clone(&fingerprinter), 1, &stages).unwrap();
        for threads in [1, 2, 5] {
            let stages = Stages::default();
            let pool =
                FingerprintPool::start(Arc::clone(&fingerprinter), threads, &stages).unwrap();
            let turns: Vec<_> = (0..40)
                .map(|number| pool.take(segment(number), number % 7 != 6))
                .collect();
            for (number, turn) in (0..40).zip(turns) {
                let expected = alone.fingerprint(segment(number));
                assert_eq!(turn.wait().unwrap(), expected, "{threads} threads");
            }
            let report = stages.reports()[0];
            assert_eq!((report.items, report.bytes), (40, 40 * 31_001));
            assert_eq!((report.queued_items, report.queued_bytes), (0, 0));
        }
    }
}

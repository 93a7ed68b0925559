//! How far a long operation is: counters that another thread may read while it runs, problems
//! as they are met, and a way to stop it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::pipeline::Stages;

/// Something that could not be done, while the operation goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, or the object of the repository.
    pub path: Vec<u8>,
    /// What went wrong.
    pub message: String,
    /// Does it make the outcome incomplete? Notes (a skipped socket) do not.
    pub is_error: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}",
            String::from_utf8_lossy(&self.path),
            self.message
        )
    }
}

/// Called with each problem, from any thread of the operation.
type ProblemHandler = Box<dyn Fn(&Problem) + Send + Sync>;

/// Progress of one operation. All counters only grow.
#[derive(Default)]
pub struct Progress {
    /// Files found so far, or expected.
    pub files_total: AtomicU64,
    /// Bytes of those files.
    pub bytes_total: AtomicU64,
    /// Have all files been found, so that the totals are final?
    pub is_total_known: AtomicBool,
    /// Files dealt with.
    pub files_done: AtomicU64,
    /// Bytes of those, and of the current one so far.
    pub bytes_done: AtomicU64,
    /// Bytes that were new to the repository (backup).
    pub bytes_new: AtomicU64,
    /// Problems that make the outcome incomplete.
    pub errors: AtomicU64,
    /// Set it to stop the operation at the next safe place.
    pub is_cancelled: AtomicBool,
    /// What the stages of the operation are doing.
    pub stages: Stages,
    current: Mutex<Vec<u8>>,
    handler: Option<ProblemHandler>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("files_done", &self.files_done)
            .field("bytes_done", &self.bytes_done)
            .finish_non_exhaustive()
    }
}

impl Progress {
    /// Progress whose problems go to `handler`.
    #[must_use]
    pub fn with_handler(handler: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        Self {
            handler: Some(Box::new(handler)),
            ..Self::default()
        }
    }

    /// The file being dealt with.
    #[must_use]
    pub fn current(&self) -> Vec<u8> {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_current(&self, path: &[u8]) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clear();
        current.extend_from_slice(path);
    }

    pub(crate) fn report(&self, problem: &Problem) {
        if problem.is_error {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(handler) = &self.handler {
            handler(problem);
        }
    }

    /// So many files or containers, and bytes, are to be dealt with, beside those that were expected before.
    pub(crate) fn expect(&self, files: u64, bytes: u64) {
        Self::add(&self.files_total, files);
        Self::add(&self.bytes_total, bytes);
        self.is_total_known.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

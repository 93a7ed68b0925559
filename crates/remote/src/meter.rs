//! What a store on a server was asked for: operations, requests, bytes, tries that were repeated.
//!
//! Operations are counted where [`RemoteStore`](crate::RemoteStore) begins them, requests where they
//! go out: one operation may be several requests (a listing in pages, an object in parts, a try that is
//! repeated). Only HTTP has requests of its own; for SFTP operations stand for them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::object::OperationCounts;

/// What was asked for so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoteCounts {
    /// Calls of the store, by kind, with bytes of contents.
    pub operations: OperationCounts,
    /// HTTP requests, repeated ones with them.
    pub requests: u64,
    /// Tries that failed for a passing reason and were repeated.
    pub retries: u64,
}

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    operations: Mutex<OperationCounts>,
    requests: AtomicU64,
    retries: AtomicU64,
}

impl Meter {
    pub fn count(&self, change: impl FnOnce(&mut OperationCounts)) {
        change(&mut crate::lock(&self.operations));
    }

    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub fn counts(&self) -> RemoteCounts {
        RemoteCounts {
            operations: *crate::lock(&self.operations),
            requests: self.requests.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
        }
    }
}

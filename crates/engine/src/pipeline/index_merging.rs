//! Merging index runs beside a backup: the thread that does it.
//!
//! Enters: an index whose runs want merging. Leaves: fewer runs. One thread at most; it reads and
//! writes as it comes, while look-ups and new runs go on. Whoever needs it done joins it; dropping it
//! cancels it, and then it leaves nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::index::Index;

/// A merge that goes on, or none.
#[derive(Default)]
pub(super) struct IndexMerging {
    cancel: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl IndexMerging {
    /// Starts merging if the runs need it and nobody is at it.
    pub(super) fn start_if_needed(&mut self, index: &Index) {
        if self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            return;
        }
        self.join();
        let Some(job) = index.merge_job() else {
            return;
        };
        let cancel = Arc::clone(&self.cancel);
        // Where this fails, or no thread can be started, the runs stay as they are: at its end the
        // backup merges them itself, and tells what is wrong.
        let merge = move || {
            let _ = job.run(&cancel);
        };
        self.thread = thread::Builder::new()
            .name("merge".to_owned())
            .spawn(merge)
            .ok();
    }

    /// Waits for it.
    pub(super) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // One that panicked has left the index as it was.
            let _ = thread.join();
        }
    }
}

impl Drop for IndexMerging {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.join();
    }
}

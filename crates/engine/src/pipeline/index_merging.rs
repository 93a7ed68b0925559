//! Merging index runs beside a backup: the thread that does it.
//!
//! Enters: an index whose runs want merging. Leaves: fewer runs. One thread at most; it reads and
//! writes as it comes, while look-ups and new runs go on. Whoever needs it done joins it; dropping it
//! cancels it, and then it leaves nothing. A merge that failed is not tried again beside the same
//! backup. It needs as much room in the store as it merges: who gets no room for a container makes it
//! give way ([`Merging::give_way`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::budget::lock;
use crate::index::Index;

/// What the thread and others know of it.
#[derive(Debug, Default)]
pub(super) struct Merging {
    cancel: AtomicBool,
    has_failed: AtomicBool,
    is_running: Mutex<bool>,
    ended: Condvar,
}

impl Merging {
    /// Ends a merge that goes on, and lets none begin any more; says whether there was one.
    pub(super) fn give_way(&self) -> bool {
        self.cancel.store(true, Ordering::Relaxed);
        let mut is_running = lock(&self.is_running);
        let was_running = *is_running;
        while *is_running {
            is_running = self
                .ended
                .wait(is_running)
                .unwrap_or_else(PoisonError::into_inner);
        }
        was_running
    }
}

/// Says that the merge has ended, however it did.
struct EndNotice(Arc<Merging>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        *lock(&self.0.is_running) = false;
        self.0.ended.notify_all();
    }
}

/// A merge that goes on, or none.
#[derive(Debug, Default)]
pub(super) struct IndexMerging {
    merging: Arc<Merging>,
    thread: Option<JoinHandle<()>>,
}

impl IndexMerging {
    /// What others may stop it by.
    pub(super) fn merging(&self) -> &Arc<Merging> {
        &self.merging
    }

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
        let merging = &self.merging;
        let is_over = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if is_over(&merging.cancel) || is_over(&merging.has_failed) {
            return;
        }
        let Some(job) = index.merge_job() else {
            return;
        };
        *lock(&merging.is_running) = true;
        let notice = EndNotice(Arc::clone(merging));
        // Where this fails, or no thread can be started, the runs stay as they are: at its end the
        // backup merges them itself, and tells what is wrong.
        let merge = move || {
            let merging = &notice.0;
            if job.run(&merging.cancel).is_err() {
                merging.has_failed.store(true, Ordering::Relaxed);
            }
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

    /// Ends it.
    pub(super) fn cancel(&mut self) {
        self.merging.give_way();
        self.join();
    }
}

impl Drop for IndexMerging {
    fn drop(&mut self) {
        self.cancel();
    }
}

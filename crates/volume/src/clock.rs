//! Threads that keep a volume going while clients use it: one closes windows that grow old (Ni, §5.2.1: windows
//! by time), so that what a client wrote and did not flush does not stay in memory alone for long; one does
//! commits aside, so that nobody who writes waits for one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::VolumeError;
use crate::volume::Volume;

/// How long a thread that waits for a commit does not notice that it is to end.
const COMMIT_WAIT: Duration = Duration::from_millis(100);

/// Steps of a commit after which what was written is made durable, without waiting for its end.
const SYNC_STEPS: usize = 8;

/// A thread that closes the open window of a volume at every tick, and one that does its commits; they end
/// when this is dropped.
#[derive(Debug)]
pub struct Clock {
    ticks: Option<Sender<()>>,
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Clock {
    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(volume: &Arc<Volume>, tick: Duration) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let mut clock = Self {
            ticks: Some(sender),
            ends: Arc::default(),
            threads: Vec::new(),
        };
        let weak = Arc::downgrade(volume);
        clock.spawn("volume-clock", move || {
            while receiver.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                let Some(volume) = weak.upgrade() else {
                    return;
                };
                // A failure is told to the client that writes or flushes next.
                let _ = volume.close_window();
            }
        })?;
        let (weak, ends) = (Arc::downgrade(volume), Arc::clone(&clock.ends));
        clock.spawn("volume-commits", move || do_commits(&weak, &ends))?;
        Ok(clock)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(work)?);
        Ok(())
    }
}

fn do_commits(volume: &Weak<Volume>, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let Some(volume) = volume.upgrade() else {
            return;
        };
        volume.wait_for_commit(COMMIT_WAIT);
        // As above; after a failure there are no more commits.
        if do_commit(&volume, ends).is_err() {
            return;
        }
    }
}

fn do_commit(volume: &Volume, ends: &AtomicBool) -> Result<(), VolumeError> {
    let mut steps = 0;
    while !ends.load(Ordering::Relaxed) && volume.commit_step()? {
        steps += 1;
        if steps % SYNC_STEPS == 0 {
            volume.sync_ahead()?;
        }
    }
    Ok(())
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.ticks = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

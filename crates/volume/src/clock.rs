//! Closes windows that grow old (Ni, §5.2.1: windows by time), so that what a client wrote and did not
//! flush does not stay in memory alone for long.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::volume::Volume;

/// A thread that closes the open window of a volume at every tick; it ends when this is dropped.
#[derive(Debug)]
pub struct Clock {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Clock {
    /// Starts it.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(volume: &Arc<Volume>, tick: Duration) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let volume: Weak<Volume> = Arc::downgrade(volume);
        let thread = std::thread::Builder::new().name("volume-clock".to_owned());
        let thread = thread.spawn(move || {
            while receiver.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                let Some(volume) = volume.upgrade() else {
                    return;
                };
                // A failure is told to the client that writes or flushes next.
                let _ = volume.close_window();
            }
        })?;
        Ok(Self {
            running: Some((sender, thread)),
        })
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

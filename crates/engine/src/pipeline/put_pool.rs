//! Threads that put finished containers into the store, so that the wait for durability does
//! not hold up the rest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{Sender, bounded};

use super::WriteError;
use super::budget::{Failure, Stopped, lock};
use crate::container::SealedContainer;
use crate::object::ObjectStore;

/// Containers being written at the same time.
const PUT_THREADS: usize = 3;

/// Containers that wait for a thread.
const WAITING_MAX: usize = 2;

/// Puts containers into a store in the background.
#[derive(Debug, Clone)]
pub(super) struct PutPool {
    queue: Sender<SealedContainer>,
    open: Arc<Open>,
    failure: Failure,
}

#[derive(Debug, Default)]
struct Open {
    count: Mutex<usize>,
    changed: Condvar,
}

impl PutPool {
    pub fn start(store: &Arc<dyn ObjectStore>, failure: &Failure) -> Self {
        let (queue, containers) = bounded::<SealedContainer>(WAITING_MAX);
        let open = Arc::new(Open::default());
        for number in 0..PUT_THREADS {
            let containers = containers.clone();
            let store = Arc::clone(store);
            let open = Arc::clone(&open);
            let failure = failure.clone();
            thread::Builder::new()
                .name(format!("put-{number}"))
                .spawn(move || {
                    for container in containers {
                        if !failure.happened() {
                            // A store that panics must not leave others waiting for this put.
                            let put = || store.put(&container.key, &container.bytes);
                            match catch_unwind(AssertUnwindSafe(put)) {
                                Ok(Ok(())) => {}
                                Ok(Err(error)) => failure.report(error.into()),
                                Err(_) => failure.report(WriteError::Stopped),
                            }
                        }
                        drop(container);
                        *lock(&open.count) -= 1;
                        open.changed.notify_all();
                    }
                })
                .expect("the system starts a thread");
        }
        Self {
            queue,
            open,
            failure: failure.clone(),
        }
    }

    /// Hands over a container; waits while too many are on their way.
    pub fn put(&self, container: SealedContainer) -> Result<(), Stopped> {
        *lock(&self.open.count) += 1;
        self.queue.send(container).map_err(|_| Stopped)
    }

    /// Waits until every container handed over is durable.
    pub fn wait(&self) -> Result<(), Stopped> {
        let mut count = lock(&self.open.count);
        while *count > 0 {
            count = self
                .open
                .changed
                .wait(count)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if self.failure.happened() {
            return Err(Stopped);
        }
        Ok(())
    }
}

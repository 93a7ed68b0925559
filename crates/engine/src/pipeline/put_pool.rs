//! Threads that put finished containers into the store, so that the wait for durability does
//! not hold up the rest.
//!
//! Enter: sealed containers. Leave: a note of each when it is durable, and not before: whoever looks a
//! chunk up by a note finds its container.

use std::collections::HashSet;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::WriteError;
use super::budget::{ByteBudget, Failure, Permit, Stopped, lock};
use super::index_merging::Merging;
use super::packer::SealedNote;
use super::stages::{Stage, Stages};
use crate::container::{ContainerKind, SealedContainer};
use crate::object::{ObjectKey, ObjectStore, StoreError};

/// Containers being written at the same time, where nobody knows better: enough for a disk.
pub const PUT_THREADS_DEFAULT: usize = 3;

/// Puts containers into a store in the background.
#[derive(Debug, Clone)]
pub(super) struct PutPool {
    queue: Sender<QueuedPut>,
    budget: ByteBudget,
    open: Arc<Open>,
    stages: Stages,
    failure: Failure,
}

/// A container on its way; its bytes count until it is durable.
#[derive(Debug)]
struct QueuedPut {
    container: SealedContainer,
    _permit: Permit,
}

/// The containers on their way.
#[derive(Debug, Default)]
struct Open {
    keys: Mutex<HashSet<ObjectKey>>,
    changed: Condvar,
}

impl PutPool {
    /// A pool of `threads` that has at most `memory_bytes` of containers in its hands, or one, and
    /// sends a note of each when it is durable.
    pub fn start(
        store: &Arc<dyn ObjectStore>,
        notes: &Sender<SealedNote>,
        merging: &Arc<Merging>,
        threads: usize,
        memory_bytes: usize,
        stages: &Stages,
        failure: &Failure,
    ) -> io::Result<Self> {
        let (queue, containers) = unbounded::<QueuedPut>();
        let budget = ByteBudget::new(memory_bytes);
        failure.watch(&budget);
        stages.meter(Stage::Put).set_threads(threads);
        let open = Arc::new(Open::default());
        for number in 0..threads {
            let worker = PutWorker {
                store: Arc::clone(store),
                notes: notes.clone(),
                merging: Arc::clone(merging),
                open: Arc::clone(&open),
                stages: stages.clone(),
                failure: failure.clone(),
            };
            let containers = containers.clone();
            thread::Builder::new()
                .name(format!("put-{number}"))
                .spawn(move || worker.run(&containers))?;
        }
        Ok(Self {
            queue,
            budget,
            open,
            stages: stages.clone(),
            failure: failure.clone(),
        })
    }

    /// Hands over a container; waits while too many are on their way.
    pub fn put(&self, container: SealedContainer) -> Result<(), Stopped> {
        let _permit = self.budget.acquire(container.bytes.len())?;
        lock(&self.open.keys).insert(container.key);
        let bytes = container.bytes.len() as u64;
        self.stages.meter(Stage::Put).queue(bytes);
        let queued = QueuedPut { container, _permit };
        self.queue.send(queued).map_err(|_| Stopped)
    }

    /// Waits until every container handed over is durable, and its note sent.
    pub fn wait(&self) -> Result<(), Stopped> {
        self.wait_while(|keys| !keys.is_empty());
        if self.failure.happened() {
            return Err(Stopped);
        }
        Ok(())
    }

    /// Waits until that container, if it was handed over, can be read from the store, or has failed.
    pub fn wait_for(&self, key: ObjectKey) {
        self.wait_while(|keys| keys.contains(&key));
    }

    fn wait_while(&self, is_waiting: impl Fn(&HashSet<ObjectKey>) -> bool) {
        let mut keys = lock(&self.open.keys);
        while is_waiting(&keys) {
            let waited = self.open.changed.wait(keys);
            keys = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What one of the threads holds.
struct PutWorker {
    store: Arc<dyn ObjectStore>,
    notes: Sender<SealedNote>,
    merging: Arc<Merging>,
    open: Arc<Open>,
    stages: Stages,
    failure: Failure,
}

impl PutWorker {
    /// Puts a container; where there is no room left, a merge of the index gives way first.
    fn put(&self, container: &SealedContainer) -> Result<(), StoreError> {
        let put = || match container.section.kind {
            ContainerKind::Metadata => self.store.put_metadata(&container.key, &container.bytes),
            ContainerKind::Data | ContainerKind::Deltas => {
                self.store.put(&container.key, &container.bytes)
            }
        };
        match put() {
            Err(StoreError::Full { .. }) if self.merging.give_way() => put(),
            outcome => outcome,
        }
    }

    fn run(&self, containers: &Receiver<QueuedPut>) {
        let meter = self.stages.meter(Stage::Put);
        while let Ok(queued) = meter.starved(|| containers.recv()) {
            let container = &queued.container;
            let key = container.key;
            let bytes = container.bytes.len() as u64;
            meter.unqueue(bytes);
            if !self.failure.happened() {
                // A store that panics must not leave others waiting for this put.
                let put = || self.put(container);
                match meter.busy(bytes, || catch_unwind(AssertUnwindSafe(put))) {
                    // Nobody listens any more when the writer is gone.
                    Ok(Ok(())) => drop(self.notes.send(SealedNote::of(container))),
                    Ok(Err(error)) => self.failure.report(error.into()),
                    Err(_) => self.failure.report(WriteError::WorkerLost),
                }
            }
            drop(queued);
            lock(&self.open.keys).remove(&key);
            self.open.changed.notify_all();
        }
    }
}

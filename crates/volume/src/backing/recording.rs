//! A store that writes down what is done to it, for crash tests and for counting.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Backing;

/// What was done to a store, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Bytes were written.
    Write {
        /// Where they start.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
    },
    /// A range was given back.
    Discard {
        /// Where it starts.
        offset: u64,
        /// Its length in bytes.
        length_bytes: u64,
    },
    /// Everything before became durable.
    Sync,
}

/// A handle to a store that keeps a list of writes, discards and syncs; clones share it.
#[derive(Debug)]
pub struct RecordingBacking<B> {
    inner: Arc<B>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    events: Vec<Event>,
    /// Syncs from this one on, counted from 0, up to that one do nothing.
    ignored_syncs: std::ops::Range<u64>,
    syncs: u64,
}

impl<B> Clone for RecordingBacking<B> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            state: Arc::clone(&self.state),
        }
    }
}

impl<B> RecordingBacking<B> {
    /// Records what is done to `inner`.
    pub fn new(inner: B) -> Self {
        Self {
            inner: Arc::new(inner),
            state: Arc::default(),
        }
    }

    /// Syncs of these numbers (from 0) are answered and neither done nor recorded: what a disk
    /// does that lies.
    pub fn ignore_syncs(&self, numbers: std::ops::Range<u64>) {
        self.state().ignored_syncs = numbers;
    }

    /// How many events there are.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.state().events.len()
    }

    /// Takes the events so far.
    #[must_use]
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().events)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B: Backing> Backing for RecordingBacking<B> {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        self.inner.write_at(offset, data)?;
        state.events.push(Event::Write {
            offset,
            data: data.to_vec(),
        });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        let number = state.syncs;
        state.syncs += 1;
        if state.ignored_syncs.contains(&number) {
            return Ok(());
        }
        self.inner.sync()?;
        state.events.push(Event::Sync);
        Ok(())
    }

    fn discard(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        self.inner.discard(offset, length_bytes)?;
        state.events.push(Event::Discard {
            offset,
            length_bytes,
        });
        Ok(())
    }
}

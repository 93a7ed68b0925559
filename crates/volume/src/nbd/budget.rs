//! Bytes that large transfers of all connections share.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A sum of bytes that is taken from in shares.
pub(super) struct Budget {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free_bytes: usize,
    is_closed: bool,
}

/// A part of the sum, given back when dropped.
pub(super) struct Share<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Budget {
    pub fn new(bytes: usize) -> Self {
        Self {
            state: Mutex::new(State {
                free_bytes: bytes,
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits until so many bytes are free, which must not be more than the sum; `None` when nobody
    /// gets any more.
    pub fn take(&self, bytes: usize) -> Option<Share<'_>> {
        let lacks = |state: &mut State| state.free_bytes < bytes && !state.is_closed;
        let waited = self.changed.wait_while(self.state(), lacks);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        state.free_bytes -= bytes;
        Some(Share {
            budget: self,
            bytes,
        })
    }

    /// From now on nobody gets any.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.state().free_bytes += self.bytes;
        self.budget.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_more_than_is_free_waits() {
        let budget = Budget::new(10);
        let first = budget.take(7).expect("open");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| budget.take(4).is_some());
            assert!(budget.take(3).is_some());
            drop(first);
            assert!(second.join().expect("no panic"));
        });
        assert_eq!(budget.state().free_bytes, 10);
    }

    #[test]
    fn nobody_waits_for_a_closed_one() {
        let budget = Budget::new(10);
        let held = budget.take(10).expect("open");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.take(1).is_none());
            budget.close();
            assert!(waiting.join().expect("no panic"));
        });
        drop(held);
        assert!(budget.take(1).is_none());
    }
}

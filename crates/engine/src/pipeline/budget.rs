//! Bounds on what is in flight, and the one place where a failure is kept.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::WriteError;

/// The pipeline has stopped because something failed; the failure says what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the pipeline stopped after a failure")]
pub struct Stopped;

/// Bytes that a queue may hold. Whoever wants to put something in waits for room.
#[derive(Debug, Clone)]
pub struct ByteBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    limit_bytes: usize,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    bytes: usize,
    stopped: bool,
    /// Threads that wait for room: without any, nobody needs to be woken.
    waiting: usize,
}

impl ByteBudget {
    /// A budget of `limit_bytes`. Something larger than that goes through alone.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self(Arc::new(BudgetState {
            limit_bytes,
            used: Mutex::default(),
            freed: Condvar::new(),
        }))
    }

    /// Waits until `bytes` fit and takes them until the permit is dropped.
    ///
    /// # Errors
    /// [`Stopped`] when the budget was stopped.
    pub fn acquire(&self, bytes: usize) -> Result<Permit, Stopped> {
        let mut used = lock(&self.0.used);
        while !used.stopped && used.bytes > 0 && used.bytes + bytes > self.0.limit_bytes {
            used.waiting += 1;
            used = self
                .0
                .freed
                .wait(used)
                .unwrap_or_else(PoisonError::into_inner);
            used.waiting -= 1;
        }
        if used.stopped {
            return Err(Stopped);
        }
        used.bytes += bytes;
        Ok(Permit {
            budget: self.clone(),
            bytes,
        })
    }

    /// Lets nobody in any more and wakes those who wait.
    pub fn stop(&self) {
        lock(&self.0.used).stopped = true;
        self.0.freed.notify_all();
    }
}

/// Bytes taken from a budget; dropping it gives them back.
#[derive(Debug)]
pub struct Permit {
    budget: ByteBudget,
    bytes: usize,
}

impl Permit {
    /// Takes more bytes, if they fit at once; says whether they did.
    ///
    /// # Errors
    /// [`Stopped`] when the budget was stopped.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<bool, Stopped> {
        let mut used = lock(&self.budget.0.used);
        if used.stopped {
            return Err(Stopped);
        }
        let fits = used.bytes + bytes <= self.budget.0.limit_bytes;
        if fits {
            used.bytes += bytes;
            self.bytes += bytes;
        }
        Ok(fits)
    }

    /// Stops the budget that it was taken from.
    pub(super) fn stop(&self) {
        self.budget.stop();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = lock(&self.budget.0.used);
        used.bytes -= self.bytes;
        let is_awaited = used.waiting > 0;
        drop(used);
        // A system call, whether somebody waits or not.
        if is_awaited {
            self.budget.0.freed.notify_all();
        }
    }
}

/// Keeps the first failure of any stage, and stops the budgets it knows.
#[derive(Debug, Clone, Default)]
pub struct Failure(Arc<Mutex<FailureState>>);

#[derive(Debug, Default)]
struct FailureState {
    first: Option<WriteError>,
    happened: bool,
    budgets: Vec<ByteBudget>,
}

impl Failure {
    /// Has this budget stopped when something fails.
    pub fn watch(&self, budget: &ByteBudget) {
        let mut state = lock(&self.0);
        if state.happened {
            budget.stop();
        }
        state.budgets.push(budget.clone());
    }

    /// Reports a failure; only the first is kept.
    pub fn report(&self, error: WriteError) {
        let mut state = lock(&self.0);
        state.happened = true;
        state.first.get_or_insert(error);
        for budget in &state.budgets {
            budget.stop();
        }
    }

    /// Did anything fail?
    #[must_use]
    pub fn happened(&self) -> bool {
        lock(&self.0).happened
    }

    /// The failure behind a [`Stopped`]; the first caller gets it, later ones learn that there
    /// was one. When none was reported, a thread has died.
    #[must_use]
    pub fn take(&self) -> WriteError {
        let mut state = lock(&self.0);
        match state.happened {
            true => state.first.take().unwrap_or(WriteError::Stopped),
            false => WriteError::WorkerLost,
        }
    }
}

/// Locks a mutex whose holder can't leave it in a bad state.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_bounds_and_frees() {
        let budget = ByteBudget::new(100);
        let large = budget.acquire(1000).unwrap();
        let waiter = std::thread::spawn({
            let budget = budget.clone();
            move || budget.acquire(60).map(|permit| permit.bytes)
        });
        drop(large);
        assert_eq!(waiter.join().unwrap(), Ok(60));
        let held = budget.acquire(50).unwrap();
        let waiter = std::thread::spawn({
            let budget = budget.clone();
            move || budget.acquire(60).map(|permit| permit.bytes)
        });
        budget.stop();
        assert_eq!(waiter.join().unwrap(), Err(Stopped));
        drop(held);
    }

    #[test]
    fn a_permit_grows_while_there_is_room() {
        let budget = ByteBudget::new(100);
        let mut permit = budget.acquire(40).unwrap();
        assert_eq!(permit.grow(60), Ok(true));
        assert_eq!(permit.grow(1), Ok(false));
        drop(permit);
        let mut permit = budget.acquire(100).unwrap();
        budget.stop();
        assert_eq!(permit.grow(0), Err(Stopped));
    }

    #[test]
    fn the_first_failure_is_kept_and_stops() {
        let failure = Failure::default();
        let budget = ByteBudget::new(1);
        failure.watch(&budget);
        failure.report(WriteError::Stopped);
        assert!(failure.happened());
        assert!(budget.acquire(1).is_err());
    }
}

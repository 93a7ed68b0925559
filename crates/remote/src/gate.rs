//! A limit on how many threads do something at a time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets so many threads in at a time.
#[derive(Debug)]
pub(crate) struct Gate {
    free: Mutex<usize>,
    changed: Condvar,
}

pub(crate) struct Turn<'a>(&'a Gate);

impl Gate {
    pub fn new(places: usize) -> Self {
        Self {
            free: Mutex::new(places.max(1)),
            changed: Condvar::new(),
        }
    }

    pub fn enter(&self) -> Turn<'_> {
        let free = crate::lock(&self.free);
        let waited = self.changed.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *crate::lock(&self.0.free) += 1;
        self.0.changed.notify_one();
    }
}

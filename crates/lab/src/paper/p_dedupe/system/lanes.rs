//! Queues between threads that keep the order of what goes through (§3.4).
//!
//! A queue has a lane for each thread of the stage that is parallel. What comes first goes through
//! the first lane, the next through the second, and round again; whoever takes goes round as well, and
//! so meets everything in order without a lock of its own. Each lane holds so many things, those who
//! are ahead wait. When one side is gone the other learns it at the lane whose turn it is.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The side that puts in.
#[derive(Debug)]
pub struct Inlet<T> {
    lanes: Vec<SyncSender<T>>,
    turn: usize,
}

/// The side that takes out.
#[derive(Debug)]
pub struct Outlet<T> {
    lanes: Vec<Receiver<T>>,
    turn: usize,
}

/// A queue of so many lanes, each of which holds up to `depth` things.
pub fn queue<T>(lanes: usize, depth: usize) -> (Inlet<T>, Outlet<T>) {
    let lanes = (0..lanes.max(1)).map(|_| sync_channel(depth));
    let (inlets, outlets) = lanes.unzip();
    let inlet = Inlet {
        lanes: inlets,
        turn: 0,
    };
    let outlet = Outlet {
        lanes: outlets,
        turn: 0,
    };
    (inlet, outlet)
}

impl<T> Inlet<T> {
    /// Puts something in, waiting for room; false when nobody takes it out any more.
    #[must_use]
    pub fn put(&mut self, thing: T) -> bool {
        let turn = self.turn;
        self.turn = (turn + 1) % self.lanes.len();
        self.lanes[turn].send(thing).is_ok()
    }

    /// Its lanes, each as an inlet of its own.
    pub fn split(self) -> impl Iterator<Item = Self> {
        self.lanes.into_iter().map(|lane| Self {
            lanes: vec![lane],
            turn: 0,
        })
    }
}

impl<T> Outlet<T> {
    /// Takes the next thing out, waiting for it; none when nobody puts in any more.
    pub fn take(&mut self) -> Option<T> {
        let thing = self.lanes[self.turn].recv().ok()?;
        self.turn = (self.turn + 1) % self.lanes.len();
        Some(thing)
    }

    /// Its lanes, each as an outlet of its own.
    pub fn split(self) -> impl Iterator<Item = Self> {
        self.lanes.into_iter().map(|lane| Self {
            lanes: vec![lane],
            turn: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_through_lanes_stays_in_order() {
        for lanes in [0, 1, 3, 8] {
            let (mut jobs, waiting) = queue(lanes, 2);
            let (done, mut results) = queue(lanes, 2);
            std::thread::scope(|scope| {
                for (mut waiting, mut done) in waiting.split().zip(done.split()) {
                    scope.spawn(move || {
                        while let Some(job) = waiting.take() {
                            std::thread::sleep(std::time::Duration::from_micros(job * 7919 % 97));
                            assert!(done.put(job));
                        }
                    });
                }
                scope.spawn(move || (0..200).for_each(|job| assert!(jobs.put(job))));
                let found: Vec<u64> = std::iter::from_fn(|| results.take()).collect();
                assert_eq!(found, (0..200).collect::<Vec<_>>());
            });
        }
    }

    #[test]
    fn whoever_puts_in_learns_that_nobody_takes() {
        let (mut inlet, outlet) = queue(2, 1);
        drop(outlet);
        assert!(!inlet.put(1));
    }
}

//! Who gets the memory: footers, planes of filters, cached blocks, and a run being written.
//!
//! Enter: the runs of a set and its limit. Leaves: which planes are in memory, and the limit of the
//! cache of blocks.
//!
//! Footers are there while a run is open. What others need (recent chunks, containers, a run being
//! written) is *reserved*. Of the rest [`blocks_bytes_min`] belongs to blocks whatever happens, and
//! blocks have all that no plane takes; planes come when they are paid for (`planes.rs`).
//!
//! **What a plane is worth**, as in Monkey (Dayan, Athanassoulis and Idreos, SIGMOD 2017): a miss
//! asks one partition of each run, so a byte of filter is worth the more the fewer entries the run
//! has, and one of the second plane 1/16 of one of the first. A plane displaces another only where
//! it is worth more than twice as much: small runs have both planes, the largest one the first.
//! Nothing is displaced for a plane of equal worth, so with too little memory a part of the filters
//! stays, and the other partitions are read: one block a look-up, and no filter.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};

use super::RunSet;
use super::filter::PLANES;
use super::run_reader::{PlaneWish, RunReader, is_missing};

/// Least memory for blocks: a 32nd of all.
pub(super) fn blocks_bytes_min(memory_bytes: usize) -> usize {
    (memory_bytes / 32).max(256 << 10)
}

/// How little the plane of a run is worth, a byte.
fn cheapness(run: &RunReader, plane: usize) -> u64 {
    run.footer().entries << (4 * plane)
}

impl RunSet {
    /// Loads a plane that a look-up has paid for, if there is room for it or it displaces another.
    pub(super) fn load_plane(&self, run: &RunReader, wish: PlaneWish) {
        let _one_at_a_time = match self.loading().try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            // Another thread loads one; this one is paid for anew.
            Err(TryLockError::WouldBlock) => return,
        };
        let runs = self.runs();
        if !runs.iter().any(|open| open.key() == run.key()) {
            return;
        }
        let own = cheapness(run, wish.plane);
        let room = self.planes_limit();
        let Some(left) = room.checked_sub(wish.bytes) else {
            return;
        };
        if !self.shrink_planes(&runs, left, own.saturating_mul(2)) {
            return;
        }
        match run.read_plane(wish.partition, wish.plane) {
            Ok(bytes) => {
                // Blocks make room before.
                self.limit_blocks(wish.bytes);
                run.planes().set(wish.partition, wish.plane, Some(bytes));
            }
            Err(error) => {
                if run.note_damage(&error) {
                    run.planes().set(wish.partition, wish.plane, None);
                }
                if !is_missing(&error) {
                    self.report(run.key(), error);
                }
            }
        }
    }

    /// Keeps everything within the memory there is now: after runs came or went, or something was
    /// reserved.
    pub(super) fn fit(&self) {
        let _one_at_a_time = self
            .loading()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.shrink_planes(&self.runs(), self.planes_limit(), 0);
        self.limit_blocks(0);
        self.note_peak();
    }

    /// Drops planes, the least worthy first, until all take at most `limit` bytes. Those no cheaper
    /// than `cheaper_than` stay; were there too many of them?
    fn shrink_planes(&self, runs: &[Arc<RunReader>], limit: usize, cheaper_than: u64) -> bool {
        loop {
            let used = self.planes_bytes();
            if used <= limit {
                return true;
            }
            let kinds = runs
                .iter()
                .flat_map(|run| (0..PLANES).map(move |plane| (run, plane)));
            let least = kinds
                .filter(|(run, plane)| run.planes().own_bytes(*plane) > 0)
                .max_by_key(|(run, plane)| cheapness(run, *plane));
            match least {
                Some((run, plane)) if cheapness(run, plane) > cheaper_than => {
                    run.planes().drop_some(plane, used - limit);
                }
                // A run that was merged is still in use by another thread: its planes go with it.
                _ => return false,
            }
        }
    }

    /// What footers, reservations and the least for blocks leave to planes.
    fn planes_limit(&self) -> usize {
        let blocks = blocks_bytes_min(self.memory_bytes());
        self.free_bytes().saturating_sub(blocks)
    }

    /// Gives blocks what planes, and `coming` bytes of them, leave.
    fn limit_blocks(&self, coming: usize) {
        let left = self
            .free_bytes()
            .saturating_sub(self.planes_bytes() + coming);
        let least = blocks_bytes_min(self.memory_bytes());
        self.blocks().set_limit(left.max(least));
    }

    /// What is neither taken by footers nor reserved.
    fn free_bytes(&self) -> usize {
        self.memory_bytes()
            .saturating_sub(self.footer_bytes() + self.reserved().load(Ordering::Relaxed))
    }

    /// Takes `bytes` for something that is not the set's own, until the reservation is dropped.
    pub(super) fn reserve(&self, bytes: usize) -> Reservation<'_> {
        self.reserved().fetch_add(bytes, Ordering::Relaxed);
        self.fit();
        Reservation { set: self, bytes }
    }
}

/// Memory that is used for a while: planes and blocks make room until it is dropped.
pub(super) struct Reservation<'a> {
    set: &'a RunSet,
    bytes: usize,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.set.note_peak();
        self.set.reserved().fetch_sub(self.bytes, Ordering::Relaxed);
        self.set.fit();
    }
}

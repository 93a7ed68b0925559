//! Which container objects are there and may be used.
//!
//! Enter: the ids that the store lists, those sealed since, those found damaged. Leaves: yes or no.
//! Kept are the first eight bytes of each id, which are random: 10 to 20 B a container with the table's
//! free places (2.3 MiB for 200,000). Should the first bytes of a container that is gone be those of
//! one that is there (one in 10¹⁴ where there are 200,000), it is looked for in the store, found
//! missing and passed over.
//!
//! A chunk stored as a delta is there if all that it is made of is. That is looked at only where
//! containers are known to be gone or set aside: otherwise they are all there.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use super::hashing::AlreadyHashed;
use crate::container::{ChunkAddress, ContainerReader, DELTA_DEPTH_MAX};
use crate::object::ObjectId;

type Ids = HashSet<u64, BuildHasherDefault<AlreadyHashed>>;

/// A set of container objects. Safe from several threads.
#[derive(Debug, Default)]
pub struct LiveObjects {
    ids: RwLock<Ids>,
    /// Is some container gone or set aside?
    has_gaps: AtomicBool,
}

fn beginning(id: ObjectId) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&id.0[..8]);
    u64::from_le_bytes(first)
}

impl LiveObjects {
    /// Is that object there, and may it be used?
    #[must_use]
    pub fn contains(&self, id: ObjectId) -> bool {
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        ids.contains(&beginning(id))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn insert(&self, id: ObjectId) {
        self.change().insert(beginning(id));
    }

    /// Some container is known to be gone.
    pub(super) fn note_gap(&self) {
        self.has_gaps.store(true, Ordering::Relaxed);
    }

    /// Are the containers there, and may they be used, of all that a chunk is made of, which is stored in
    /// one that is there itself? Reads their metadata where some container is gone.
    #[must_use]
    pub fn has_bases(&self, containers: &ContainerReader, chunk: ChunkAddress) -> bool {
        if !self.has_gaps.load(Ordering::Relaxed) {
            return true;
        }
        let mut at = chunk;
        let mut depth = DELTA_DEPTH_MAX + 1;
        loop {
            let Ok(loaded) = containers.section(at.container) else {
                return false;
            };
            let Some(found) = loaded.section.chunk_in(at.slot) else {
                return false;
            };
            let Some(delta) = loaded.section.delta(found) else {
                return true;
            };
            let base = containers.remaps().object_of(delta.base.container);
            if delta.depth >= depth || !self.contains(base.id) {
                return false;
            }
            (at, depth) = (delta.base, delta.depth);
        }
    }

    pub(super) fn remove(&self, id: ObjectId) {
        self.note_gap();
        self.change().remove(&beginning(id));
    }

    /// Memory that it takes: a table is at most 7/8 full, with a byte beside each place.
    pub(super) fn memory_bytes(&self) -> usize {
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        ids.capacity() / 7 * 8 * 9
    }

    fn change(&self) -> std::sync::RwLockWriteGuard<'_, Ids> {
        self.ids.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_and_go_in_little_memory() {
        let live = LiveObjects::default();
        let ids: Vec<_> = (0..200_000).map(|_| ObjectId::random()).collect();
        for &id in &ids {
            live.insert(id);
        }
        live.remove(ids[7]);
        assert!(!live.contains(ids[7]) && live.contains(ids[8]));
        assert!(!live.contains(ObjectId::random()));
        assert_eq!((live.len(), live.is_empty()), (199_999, false));
        assert!(live.memory_bytes() < 12 * 200_000);
    }
}

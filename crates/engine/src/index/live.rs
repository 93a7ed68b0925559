//! Which container objects are there and may be used.
//!
//! Enter: the ids that the store lists, those sealed since, those found damaged. Leaves: yes or no.
//! Kept are the first eight bytes of each id, which are random: 10 to 20 B a container with the table's
//! free places (2.3 MiB for 200,000). Should the first bytes of a container that is gone be those of
//! one that is there (one in 10¹⁴ where there are 200,000), it is looked for in the store, found
//! missing and passed over.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::{PoisonError, RwLock};

use super::hashing::AlreadyHashed;
use crate::object::ObjectId;

type Ids = HashSet<u64, BuildHasherDefault<AlreadyHashed>>;

/// A set of container objects. Safe from several threads.
#[derive(Debug, Default)]
pub struct LiveObjects(RwLock<Ids>);

fn beginning(id: ObjectId) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&id.0[..8]);
    u64::from_le_bytes(first)
}

impl LiveObjects {
    /// Is that object there, and may it be used?
    #[must_use]
    pub fn contains(&self, id: ObjectId) -> bool {
        let ids = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ids.contains(&beginning(id))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn insert(&self, id: ObjectId) {
        self.change().insert(beginning(id));
    }

    pub(super) fn remove(&self, id: ObjectId) {
        self.change().remove(&beginning(id));
    }

    /// Memory that it takes: a table is at most 7/8 full, with a byte beside each place.
    pub(super) fn memory_bytes(&self) -> usize {
        let ids = self.0.read().unwrap_or_else(PoisonError::into_inner);
        ids.capacity() / 7 * 8 * 9
    }

    fn change(&self) -> std::sync::RwLockWriteGuard<'_, Ids> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
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

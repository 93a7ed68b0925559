//! Which container objects are there and may be used.
//!
//! Enter: the ids that the store lists, those sealed since, those found damaged. Leaves: yes or no.
//! Kept are the first eight bytes of each id, which are random: 10 to 20 B a container with the table's
//! free places (2.3 MiB for 200,000). Should the first bytes of a container that is gone be those of
//! one that is there (one in 10¹⁴ where there are 200,000), it is looked for in the store, found
//! missing and passed over.
//!
//! A logical container is there if one of its places is; a chunk, if one of these has its slot; and one stored as
//! a delta if all that it is made of is. Slots and bases are looked at only where something may be *missing*: where
//! containers are known to be gone, condemned or set aside, or a remap says that somebody compacted.
//! Otherwise every container that is there has all of its slots, and their bases.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::hashing::AlreadyHashed;
use crate::container::{
    ChunkAddress, ContainerId, ContainerReader, Delta, LoadedSection, RemapSet, SectionPlace, Slot,
};
use crate::object::ObjectId;

type Ids = HashSet<u64, BuildHasherDefault<AlreadyHashed>>;

/// A set of container objects. Safe from several threads.
#[derive(Debug, Default)]
pub struct LiveObjects {
    ids: RwLock<Ids>,
    /// May some container be gone or set aside, or lack slots?
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

    /// Some container may be gone, or lack slots.
    pub(super) fn note_gap(&self) {
        self.has_gaps.store(true, Ordering::Relaxed);
    }

    /// Is that logical container there, in an object that may be used?
    #[must_use]
    pub fn has_container(&self, remaps: &RemapSet, container: ContainerId) -> bool {
        let ids = self.ids.read().unwrap_or_else(PoisonError::into_inner);
        let mut places = remaps.places(container);
        places.any(|object| ids.contains(&beginning(object)))
    }

    /// The chunk in the first place that is there and has it; nothing where it can't be read, either.
    fn find(
        &self,
        containers: &ContainerReader,
        chunk: ChunkAddress,
    ) -> Option<(Arc<LoadedSection>, usize)> {
        let container = chunk.container;
        let remaps = containers.remaps();
        let mut places = remaps.places(container);
        places.find_map(|object| {
            if !self.contains(object) {
                return None;
            }
            let place = SectionPlace { container, object };
            let loaded = containers.section_in(place, None).ok()?;
            let found = loaded.section.chunk_in(chunk.slot)?;
            Some((loaded, found))
        })
    }

    /// Is a chunk there, and all that it is made of? Reads the metadata of containers where something may be
    /// missing.
    #[must_use]
    pub fn has_chunk(&self, containers: &ContainerReader, chunk: ChunkAddress) -> bool {
        self.has_chunks(containers, chunk.container, chunk.slot, 1)
    }

    /// The same of `count` chunks in consecutive slots from `first`.
    #[must_use]
    pub fn has_chunks(
        &self,
        containers: &ContainerReader,
        container: ContainerId,
        first: Slot,
        count: u32,
    ) -> bool {
        if !self.has_gaps.load(Ordering::Relaxed) {
            return self.contains(container.0);
        }
        let (mut slot, mut left) = (first, count);
        while left > 0 {
            let chunk = ChunkAddress { container, slot };
            let Some((loaded, found)) = self.find(containers, chunk) else {
                return false;
            };
            let section = &loaded.section;
            let front = section.front_in(slot, left).unwrap_or(found..found + 1);
            let mut deltas = front.clone().filter_map(|chunk| section.delta(chunk));
            if !deltas.all(|delta| self.has_base(containers, delta)) {
                return false;
            }
            left -= front.len() as u32;
            match section.slots[front.end - 1].0.checked_add(1) {
                Some(next) => slot = Slot(next),
                None => return left == 0,
            }
        }
        true
    }

    /// Is the base of a delta there, and all that it is made of?
    fn has_base(&self, containers: &ContainerReader, delta: &Delta) -> bool {
        let mut delta = *delta;
        loop {
            let Some((loaded, found)) = self.find(containers, delta.base) else {
                return false;
            };
            match loaded.section.delta(found) {
                None => return true,
                Some(next) if next.depth < delta.depth => delta = *next,
                Some(_) => return false,
            }
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

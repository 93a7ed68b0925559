//! Chunks that will be asked for soon, so that of their groups no more is decompressed than they need.
//!
//! Enter: addresses, by whoever decides that a chunk will be read; they leave when it was. Asked: the last
//! wanted chunk of a group that is about to be opened. What is not known costs time, nothing else.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::container::{ChunkAddress, ContainerId, Slot};

/// The chunks; may be shared by threads. An address is there as often as it was added.
#[derive(Debug, Default)]
pub struct WantedChunks(Mutex<HashMap<ContainerId, Vec<Slot>>>);

impl WantedChunks {
    /// That chunk will be asked for.
    pub fn add(&self, address: ChunkAddress) {
        let mut wanted = self.lock();
        wanted
            .entry(address.container)
            .or_default()
            .push(address.slot);
    }

    /// It was.
    pub fn remove(&self, address: ChunkAddress) {
        let mut wanted = self.lock();
        let Some(slots) = wanted.get_mut(&address.container) else {
            return;
        };
        if let Some(at) = slots.iter().position(|&slot| slot == address.slot) {
            slots.swap_remove(at);
        }
        if slots.is_empty() {
            wanted.remove(&address.container);
        }
    }

    /// The last wanted one of these slots.
    #[must_use]
    pub fn last_in(&self, container: ContainerId, slots: &RangeInclusive<Slot>) -> Option<Slot> {
        let wanted = self.lock();
        let of_container = wanted.get(&container)?.iter();
        of_container
            .filter(|slot| slots.contains(slot))
            .max()
            .copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ContainerId, Vec<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectId;

    #[test]
    fn what_is_wanted_twice_stays_until_it_was_had_twice() {
        let [here, there] = [1, 2].map(|byte| ContainerId(ObjectId([byte; 16])));
        let place = |container, slot| ChunkAddress {
            container,
            slot: Slot(slot),
        };
        let wanted = WantedChunks::default();
        for slot in [9, 3, 5, 5] {
            wanted.add(place(here, slot));
        }
        let last = |first, last| wanted.last_in(here, &(Slot(first)..=Slot(last)));
        assert_eq!(last(0, 100), Some(Slot(9)));
        assert_eq!(last(0, 8), Some(Slot(5)));
        assert_eq!(last(6, 8), None);
        assert_eq!(wanted.last_in(there, &(Slot(0)..=Slot(100))), None);
        wanted.remove(place(there, 5));
        wanted.remove(place(here, 4));
        wanted.remove(place(here, 5));
        assert_eq!(last(0, 8), Some(Slot(5)));
        wanted.remove(place(here, 5));
        assert_eq!(last(0, 8), Some(Slot(3)));
        wanted.remove(place(here, 3));
        wanted.remove(place(here, 9));
        assert_eq!(last(0, 100), None);
        assert!(wanted.lock().is_empty());
    }
}

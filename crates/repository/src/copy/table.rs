//! Which chunk of the source is which in the target: by container and slot there, length and fingerprint here.
//!
//! Memory: about 40 bytes for each slot of a container up to the last that was needed. Between batches the table shrinks to
//! half its limit, by the containers that were not needed for longest: their chunks are read again if they are needed
//! again, and found in the target.

use std::collections::HashMap;

use engine::container::ContainerId;
use engine::fingerprint::Fingerprint;

/// Bytes that a slot takes.
pub(super) const CHUNK_BYTES: usize = size_of::<Option<Known>>();

/// Bytes that a container takes beside its slots.
const CONTAINER_BYTES: usize = 96;

/// What is known of a chunk of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub length: u32,
    /// Its fingerprint in the target; none while it waits to be read.
    pub fingerprint: Option<Fingerprint>,
}

#[derive(Default)]
struct Container {
    slots: Vec<Option<Known>>,
    last_used: u64,
}

pub(super) struct ChunkTable {
    containers: HashMap<ContainerId, Container>,
    slots: usize,
    limit_bytes: usize,
    now: u64,
}

impl ChunkTable {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            containers: HashMap::new(),
            slots: 0,
            limit_bytes,
            now: 0,
        }
    }

    /// What is known of the chunk in that place.
    pub fn get(&mut self, container: ContainerId, slot: u16) -> Option<Known> {
        let container = self.containers.get_mut(&container)?;
        container.last_used = self.now;
        container.slots.get(usize::from(slot)).copied().flatten()
    }

    /// The chunk in that place is the one of that fingerprint.
    pub fn set(&mut self, container: ContainerId, slot: u16, length: u32, is: Fingerprint) {
        let fingerprint = Some(is);
        self.enter(
            container,
            slot,
            Known {
                length,
                fingerprint,
            },
        );
    }

    /// The chunk in that place waits to be read.
    pub fn set_waiting(&mut self, container: ContainerId, slot: u16, length: u32) {
        let fingerprint = None;
        self.enter(
            container,
            slot,
            Known {
                length,
                fingerprint,
            },
        );
    }

    /// Nobody waits for what was not read.
    pub fn forget_waiting(&mut self) {
        let slots = self
            .containers
            .values_mut()
            .flat_map(|container| &mut container.slots);
        for slot in slots {
            *slot = slot.filter(|known| known.fingerprint.is_some());
        }
    }

    fn enter(&mut self, container: ContainerId, slot: u16, known: Known) {
        let container = self.containers.entry(container).or_default();
        container.last_used = self.now;
        let wanted = usize::from(slot) + 1;
        if container.slots.len() < wanted {
            self.slots += wanted - container.slots.len();
            container.slots.resize(wanted, None);
        }
        container.slots[wanted - 1] = Some(known);
    }

    /// Is it half full of what need not be there?
    pub fn is_full(&self) -> bool {
        self.bytes() >= self.limit_bytes / 2
    }

    fn bytes(&self) -> usize {
        self.slots * CHUNK_BYTES + self.containers.len() * CONTAINER_BYTES
    }

    /// A batch ends: what is too much goes.
    pub fn shrink(&mut self) {
        self.now += 1;
        if self.bytes() <= self.limit_bytes {
            return;
        }
        let used = self.containers.iter();
        let mut used: Vec<(u64, ContainerId)> = used
            .map(|(id, container)| (container.last_used, *id))
            .collect();
        used.sort_unstable_by_key(|(last_used, id)| (*last_used, id.0));
        for (_, id) in used {
            if !self.is_full() {
                break;
            }
            if let Some(container) = self.containers.remove(&id) {
                self.slots -= container.slots.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::object::ObjectId;

    #[test]
    fn what_was_not_needed_for_longest_goes() {
        let id = |byte| ContainerId(ObjectId([byte; 16]));
        let print = |byte| Fingerprint([byte; 32]);
        let mut table = ChunkTable::new(10 * (100 * CHUNK_BYTES + CONTAINER_BYTES));
        for round in 0..30u8 {
            table.set_waiting(id(round), 99, 7);
            table.set(id(round), 3, 5, print(round));
            assert!(table.get(id(0), 3).is_some(), "used in every round");
            table.shrink();
            assert!(table.bytes() <= table.limit_bytes);
        }
        let expected = Known {
            length: 5,
            fingerprint: Some(print(29)),
        };
        assert_eq!(table.get(id(29), 3), Some(expected));
        assert_eq!(
            table.get(id(29), 99).and_then(|known| known.fingerprint),
            None
        );
        assert_eq!(table.get(id(5), 3), None);
        table.forget_waiting();
        assert_eq!(table.get(id(29), 3), Some(expected));
        assert_eq!(table.get(id(29), 99), None);
        assert_eq!(table.get(id(29), 4), None);
        assert_eq!(table.get(id(29), 1000), None);
    }
}

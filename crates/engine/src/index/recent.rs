//! Chunks whose containers no index run covers yet: those sealed in this run, and what runs that
//! died have left.
//!
//! Enter: sections of containers. Leave: candidates by prefix; all of it as a run, when it is full or
//! the backup commits. One open-addressed table of entries, 16 B a place, at most three quarters
//! full, several entries of one prefix side by side; it doubles as entries come, up to the limit
//! given, of which the old table takes a third while it grows. Containers take 20 B each.
//!
//! A run is written from the table itself, in place: no second copy of the entries.

use super::{RunEntry, RunSet};
use crate::container::{ChunkAddress, ContainerId, Section, Slot};
use crate::format::ObjectError;

/// Least places in the table.
const PLACES_MIN: usize = 1 << 12;

/// Most containers until a run should be written: there is room for them in one.
const CONTAINERS_MAX: usize = 1 << 19;

/// A place without an entry.
const EMPTY: RunEntry = RunEntry {
    prefix: 0,
    container: u32::MAX,
    slot: Slot(0),
};

/// Containers sealed lately: prefix to place.
pub(super) struct Recent {
    /// Each with the length of its sealed metadata, 0 where unknown.
    containers: Vec<(ContainerId, u32)>,
    table: Vec<RunEntry>,
    entries: usize,
    places_max: usize,
}

impl Recent {
    /// Nothing yet; full when the table takes so much memory, or would when it grows.
    pub(super) fn new(limit_bytes: usize) -> Self {
        let places = limit_bytes * 2 / 3 / size_of::<RunEntry>();
        Self {
            containers: Vec::new(),
            table: Vec::new(),
            entries: 0,
            places_max: (1 << places.max(PLACES_MIN).ilog2()).max(PLACES_MIN),
        }
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Its containers, with the length of their metadata (0: unknown).
    pub(super) fn containers(&self) -> &[(ContainerId, u32)] {
        &self.containers
    }

    /// Should it be written as a run? What comes until then is taken all the same.
    pub(super) fn is_full(&self) -> bool {
        self.entries >= self.places_max / 8 * 5 || self.containers.len() >= CONTAINERS_MAX
    }

    /// Memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.table.capacity() * size_of::<RunEntry>()
            + self.containers.capacity() * size_of::<(ContainerId, u32)>()
    }

    /// Enters the chunks of a container whose sealed metadata has so many bytes (0: unknown).
    pub(super) fn insert(&mut self, section: &Section, metadata_bytes: u32) {
        let container = self.containers.len() as u32;
        self.containers.push((section.id, metadata_bytes));
        for (fingerprint, &slot) in section.fingerprints.iter().zip(&section.slots) {
            if (self.entries + 1) * 4 > self.table.len() * 3 {
                self.grow();
            }
            let entry = RunEntry {
                prefix: fingerprint.prefix(),
                container,
                slot,
            };
            place(&mut self.table, entry);
            self.entries += 1;
        }
    }

    fn grow(&mut self) {
        let places = (self.table.len() * 2).max(PLACES_MIN);
        let before = std::mem::replace(&mut self.table, vec![EMPTY; places]);
        for entry in before.into_iter().filter(|entry| *entry != EMPTY) {
            place(&mut self.table, entry);
        }
    }

    /// Appends where chunks of that prefix lie.
    pub(super) fn candidates(&self, prefix: u64, out: &mut Vec<ChunkAddress>) {
        if self.table.is_empty() {
            return;
        }
        let mask = self.table.len() - 1;
        let mut at = prefix as usize & mask;
        while self.table[at] != EMPTY {
            let entry = self.table[at];
            if entry.prefix == prefix {
                out.push(ChunkAddress {
                    container: self.containers[entry.container as usize].0,
                    slot: entry.slot,
                });
            }
            at = (at + 1) & mask;
        }
    }

    /// Writes everything as a run, and is empty then, whatever the outcome.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) fn write_to(&mut self, runs: &RunSet) -> Result<(), ObjectError> {
        let containers = std::mem::take(&mut self.containers);
        let mut entries = std::mem::take(&mut self.table);
        self.entries = 0;
        if containers.is_empty() {
            return Ok(());
        }
        entries.retain(|entry| *entry != EMPTY);
        // They come in together, after all that is there.
        let generation = runs.next_generation();
        runs.write_numbered(&containers, &mut entries, &|_| generation)
    }
}

/// Puts an entry into the next free place; there is one.
fn place(table: &mut [RunEntry], entry: RunEntry) {
    let mask = table.len() - 1;
    let mut at = entry.prefix as usize & mask;
    while table[at] != EMPTY {
        at = (at + 1) & mask;
    }
    table[at] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::ContainerKind;
    use crate::fingerprint::Fingerprint;
    use crate::index::MEMORY_BYTES_MIN;
    use crate::index::test_support::{candidates, container, model_of, open_set};
    use crate::index::{IndexEntry, test_support};
    use crate::object::MemoryStore;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn section(number: u64, prefixes: &[u64]) -> Section {
        let fingerprint = |(slot, prefix): (usize, &u64)| {
            let mut bytes = [slot as u8; 32];
            bytes[..8].copy_from_slice(&prefix.to_be_bytes());
            Fingerprint(bytes)
        };
        Section {
            id: container(number),
            kind: ContainerKind::Data,
            slots: (0..prefixes.len() as u16).map(Slot).collect(),
            lengths: vec![1; prefixes.len()],
            fingerprints: prefixes.iter().enumerate().map(fingerprint).collect(),
            markers: Vec::new(),
            deltas: Vec::new(),
            features: Default::default(),
            groups: Vec::new(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn recent_chunks_are_a_map_and_become_a_run(
            sections in prop::collection::vec(
                prop::collection::vec(prop_oneof![any::<u64>(), 0..9u64, Just(u64::MAX)], 0..900),
                0..12,
            ),
        ) {
            let mut recent = Recent::new(1 << 20);
            let mut all: Vec<IndexEntry> = Vec::new();
            for (number, prefixes) in sections.iter().enumerate() {
                recent.insert(&section(number as u64, prefixes), number as u32);
                let entry = |(slot, &prefix)| test_support::entry(prefix, number as u64, slot);
                all.extend((0u16..).zip(prefixes).map(entry));
            }
            prop_assert_eq!(recent.len(), all.len());
            let model = model_of(&all);
            let of = |prefix| {
                let mut out = Vec::new();
                recent.candidates(prefix, &mut out);
                out.into_iter().collect::<BTreeSet<_>>()
            };
            for (&prefix, expected) in &model {
                prop_assert_eq!(&of(prefix), expected);
            }
            let store = Arc::new(MemoryStore::new());
            let set = open_set(&store, MEMORY_BYTES_MIN);
            recent.write_to(&set).unwrap();
            prop_assert_eq!((recent.len(), recent.memory_bytes()), (0, 0));
            for (&prefix, expected) in &model {
                prop_assert_eq!(&candidates(&set, prefix), expected);
            }
            for number in 0..sections.len() as u64 {
                prop_assert!(set.covered(container(number)));
            }
        }
    }

    #[test]
    fn it_is_full_before_it_takes_more_than_its_share() {
        let limit = 3 << 20;
        let mut recent = Recent::new(limit);
        let mut number = 0;
        while !recent.is_full() {
            let prefixes: Vec<u64> = (0..500)
                .map(|slot| (number * 500 + slot as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            recent.insert(&section(number, &prefixes), 0);
            number += 1;
        }
        assert!(recent.memory_bytes() <= limit * 2 / 3 + 20 * 1000);
        assert!(recent.len() > limit / 48);
    }
}

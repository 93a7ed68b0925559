//! The index from the containers: for what was lost of it.
//!
//! Enter: sections, as containers that are durable have them. Leave: index runs. [`RunBuilder`] gathers
//! entries up to a limit of memory and writes them as a run; containers keep the generation that the
//! runs before said (0, unknown, where none can be read); [`RunSet::merge`] makes few of many. What is left out
//! of a set before ([`RunSet::leave_out`]) covers nothing any more; it is deleted
//! ([`RunSet::delete_left_out`]) when what takes its place is durable: at a crash between there is
//! too much, which harms nobody.

use std::collections::HashMap;

use super::footer::{Footer, RUN_CONTAINERS_MAX};
use super::{RUN_ENTRIES_MAX, RunEntry, RunSet};
use crate::container::{ContainerId, SLOTS_MAX, Section};
use crate::format::ObjectError;
use crate::object::{ObjectKey, StoreError};

/// Memory that a container takes besides its entries: its id, the length of its metadata, and what
/// sorting them takes.
const CONTAINER_BYTES: usize = 64;

/// Entries of containers that go into a run together.
#[derive(Debug)]
pub struct RunBuilder {
    limit_bytes: usize,
    generations: HashMap<ContainerId, u32>,
    containers: Vec<(ContainerId, u32)>,
    entries: Vec<RunEntry>,
}

impl RunBuilder {
    /// A builder that takes at most `limit_bytes`, or what the largest container needs.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            generations: HashMap::new(),
            containers: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Remembers how new the containers are that these runs name: before they are left out. Takes
    /// some 40 B a container.
    pub fn keep_generations(&mut self, runs: &RunSet) {
        for run in runs.runs().iter() {
            let footer = run.footer();
            for &container in &footer.containers {
                let kept = self.generations.entry(container).or_default();
                *kept = footer.generation_of(container).max(*kept);
            }
        }
    }

    /// Entries gathered and not written yet.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Takes the entries of a section in, whose sealed metadata has so many bytes (0: unknown);
    /// writes a run when there is no room for them.
    ///
    /// # Errors
    /// When a run can't be stored.
    pub fn add(
        &mut self,
        runs: &RunSet,
        section: &Section,
        metadata_bytes: u32,
    ) -> Result<(), ObjectError> {
        let entries = self.entries.len() + section.chunk_count();
        let containers = self.containers.len() + 1;
        let bytes = entries * size_of::<RunEntry>() + containers * CONTAINER_BYTES;
        let is_full = bytes > self.limit_bytes
            || entries > RUN_ENTRIES_MAX
            || containers > RUN_CONTAINERS_MAX;
        if is_full {
            self.write(runs)?;
        }
        if self.entries.capacity() == 0 {
            // At once, so that growing takes no more.
            let entries_max = self.limit_bytes / size_of::<RunEntry>();
            let entries_max = entries_max.clamp(SLOTS_MAX, RUN_ENTRIES_MAX);
            self.entries.reserve_exact(entries_max);
        }
        let container = self.containers.len() as u32;
        self.containers.push((section.id, metadata_bytes));
        let chunks = section.fingerprints.iter().zip(&section.slots);
        self.entries
            .extend(chunks.map(|(fingerprint, &slot)| RunEntry {
                prefix: fingerprint.prefix(),
                container,
                slot,
            }));
        Ok(())
    }

    /// Covers a container without entries: it was set aside.
    ///
    /// # Errors
    /// When a run can't be stored.
    pub fn cover(&mut self, runs: &RunSet, container: ContainerId) -> Result<(), ObjectError> {
        if self.containers.len() == RUN_CONTAINERS_MAX {
            self.write(runs)?;
        }
        self.containers.push((container, 0));
        Ok(())
    }

    /// Writes what was gathered as a run, and is empty then in any case.
    ///
    /// # Errors
    /// When it can't be stored.
    pub fn write(&mut self, runs: &RunSet) -> Result<(), ObjectError> {
        if self.containers.is_empty() {
            return Ok(());
        }
        let generation = |id| self.generations.get(&id).copied().unwrap_or(0);
        let written = runs.write_numbered(&self.containers, &mut self.entries, &generation);
        self.containers.clear();
        self.entries.clear();
        written
    }
}

impl RunSet {
    /// The runs that can be read, by their names in the store.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.runs().iter().map(|run| run.key()).collect()
    }

    /// Containers that runs cover without an entry of their own, unless another run has some.
    #[must_use]
    pub fn covered_without_entries(&self) -> Vec<ContainerId> {
        let runs = self.runs();
        let covered = runs.iter().flat_map(|run| &run.footer().covered).copied();
        let mut covered: Vec<_> = covered
            .filter(|container| {
                let has_entries =
                    |footer: &Footer| footer.containers.binary_search(container).is_ok();
                !runs.iter().any(|run| has_entries(run.footer()))
            })
            .collect();
        covered.sort_unstable();
        covered.dedup();
        covered
    }

    /// Looks nothing up any more in the runs of which `is_out` says so, nor takes them for covering
    /// anything. They are still stored.
    pub fn leave_out(&self, is_out: &dyn Fn(ObjectKey) -> bool) {
        let _changing = self.changing();
        self.replace(|runs| runs.retain(|run| !is_out(run.key())));
    }

    /// Deletes runs that were left out; those that are gone already are no error.
    ///
    /// # Errors
    /// When the store fails.
    pub fn delete_left_out(&self, keys: &[ObjectKey]) -> Result<(), ObjectError> {
        for key in keys {
            match self.store().delete(key) {
                Ok(()) | Err(StoreError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::container::{ContainerKind, Slot};
    use crate::fingerprint::Fingerprint;
    use crate::index::test_support::{container, open_set};
    use crate::object::MemoryStore;

    const MEMORY_BYTES: usize = 4 << 20;

    fn section(number: u64, chunks: u16) -> Section {
        let fingerprint = |slot: u16| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(number * 7919 + u64::from(slot)).to_be_bytes());
            Fingerprint(bytes)
        };
        Section {
            id: container(number),
            kind: ContainerKind::Data,
            slots: (0..chunks).map(Slot).collect(),
            lengths: vec![10; usize::from(chunks)],
            fingerprints: (0..chunks).map(fingerprint).collect(),
            markers: Vec::new(),
            deltas: Vec::new(),
            features: Default::default(),
            groups: Vec::new(),
        }
    }

    #[test]
    fn an_index_is_built_again() {
        let store = Arc::new(MemoryStore::new());
        let set = open_set(&store, MEMORY_BYTES);
        let sections: Vec<Section> = (0..40).map(|n| section(n, 50 + n as u16)).collect();
        let mut old = RunBuilder::new(1 << 20);
        for section in &sections[..30] {
            old.add(&set, section, 5).unwrap();
        }
        old.cover(&set, container(99)).unwrap();
        old.write(&set).unwrap();
        assert_eq!(old.entries(), 0);
        let keys = set.keys();
        assert_eq!(keys.len(), 1);
        assert_eq!(
            set.generation(container(3)),
            0,
            "nobody knows how new they are"
        );
        let mut newer = RunBuilder::new(1 << 20);
        newer.generations.insert(container(7), 9);
        newer.add(&set, &sections[7], 5).unwrap();
        newer.write(&set).unwrap();
        let keys = set.keys();
        assert_eq!(set.covered_without_entries(), [container(99)]);

        let mut new = RunBuilder::new(20_000);
        new.keep_generations(&set);
        set.leave_out(&|key| keys.contains(&key));
        assert!(!set.covered(container(3)));
        assert_eq!(set.generation(container(7)), 0);
        for section in &sections {
            new.add(&set, section, 6).unwrap();
        }
        new.cover(&set, container(99)).unwrap();
        new.write(&set).unwrap();
        set.delete_left_out(&keys).unwrap();
        set.delete_left_out(&keys).unwrap();
        assert!(set.keys().len() > 1, "several runs in little memory");
        set.merge(&|_| true, &AtomicBool::new(false)).unwrap();

        let set = open_set(&store, MEMORY_BYTES);
        assert_eq!(set.damaged().len(), 0);
        assert_eq!(set.covered_without_entries(), [container(99)]);
        assert_eq!(set.generation(container(7)), 9);
        for section in &sections {
            assert_eq!(set.metadata_bytes(section.id), Some(6));
            for (fingerprint, &slot) in section.fingerprints.iter().zip(&section.slots) {
                let mut found = Vec::new();
                set.candidates(fingerprint.prefix(), &mut found);
                let is_it = |address: &crate::container::ChunkAddress| {
                    address.container == section.id && address.slot == slot
                };
                assert!(found.iter().any(is_it));
            }
        }
    }
}

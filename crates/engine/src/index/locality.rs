//! The locality cache: the metadata of containers whose chunks were met lately, by the prefixes of
//! their fingerprints (MACS, §III-C: a hit brings the metadata of its container, for what follows).
//!
//! Enter: sections. Leave: addresses of chunks whose full fingerprint is equal. The container unused for
//! longest goes first; the paper's replacement by the length of metadata is in `replacement.rs`,
//! and is no better on any data measured (docs/guide/macs.md). A chunk that several containers here
//! have is found in the newest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::hashing::HashedMap;
use crate::container::{ChunkAddress, ContainerId, Section};
use crate::fingerprint::Fingerprint;

/// Containers that are kept whatever the limit.
const CACHED_CONTAINERS_MIN: usize = 16;

/// Memory that a chunk takes beside its section.
const CACHED_CHUNK_BYTES: usize = 32;

/// Containers whose chunks were met lately; the one unused for longest goes first.
pub(super) struct LocalityCache {
    limit_bytes: usize,
    used_bytes: usize,
    clock: u64,
    next_number: u32,
    sections: HashMap<u32, CachedSection>,
    numbers: HashMap<ContainerId, u32>,
    by_use: BTreeMap<u64, u32>,
    places: HashedMap<u64, (u32, u32)>,
}

struct CachedSection {
    section: Arc<Section>,
    used: u64,
    /// A chunk that several containers in the cache have is found in the newest.
    generation: u32,
}

impl LocalityCache {
    /// An empty cache of at most `limit_bytes`, but for a few containers.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            used_bytes: 0,
            clock: 0,
            next_number: 0,
            sections: HashMap::new(),
            numbers: HashMap::new(),
            by_use: BTreeMap::new(),
            places: HashedMap::default(),
        }
    }

    /// Where the chunk is, if a container here has it, and whether it is stored as a delta.
    pub(super) fn find(&mut self, fingerprint: &Fingerprint) -> Option<(ChunkAddress, bool)> {
        let &(number, chunk) = self.places.get(&fingerprint.prefix())?;
        let cached = self.sections.get_mut(&number)?;
        let chunk = chunk as usize;
        if cached.section.fingerprints[chunk] != *fingerprint {
            return None;
        }
        // The most recent one need not be moved to the front again.
        if cached.used != self.clock {
            self.clock += 1;
            self.by_use.remove(&cached.used);
            cached.used = self.clock;
            self.by_use.insert(self.clock, number);
        }
        let is_delta = cached.section.delta(chunk).is_some();
        Some((cached.section.address(chunk), is_delta))
    }

    /// Takes a container in, which is the newer the higher its generation; false when it is there.
    pub(super) fn insert(&mut self, section: &Arc<Section>, generation: u32) -> bool {
        if self.numbers.contains_key(&section.id) {
            return false;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.clock += 1;
        self.numbers.insert(section.id, number);
        for (chunk, fingerprint) in section.fingerprints.iter().enumerate() {
            let place = (number, chunk as u32);
            let taken = self.places.entry(fingerprint.prefix()).or_insert(place);
            let before = self.sections.get(&taken.0);
            if before.is_none_or(|before| before.generation <= generation) {
                *taken = place;
            }
        }
        self.used_bytes += bytes_of(section);
        self.by_use.insert(self.clock, number);
        let cached = CachedSection {
            section: Arc::clone(section),
            used: self.clock,
            generation,
        };
        self.sections.insert(number, cached);
        while self.used_bytes > self.limit_bytes && self.sections.len() > CACHED_CONTAINERS_MIN {
            self.evict_oldest();
        }
        true
    }

    fn evict_oldest(&mut self) {
        if let Some((_, number)) = self.by_use.pop_first() {
            self.evict(number);
        }
    }

    /// Drops the containers that are gone.
    pub(super) fn forget(&mut self, is_gone: impl Fn(ContainerId) -> bool) {
        let numbers = self.numbers.iter();
        let gone: Vec<u32> = numbers
            .filter(|(container, _)| is_gone(**container))
            .map(|(_, &number)| number)
            .collect();
        for number in gone {
            if let Some(cached) = self.sections.get(&number) {
                self.by_use.remove(&cached.used);
            }
            self.evict(number);
        }
    }

    fn evict(&mut self, number: u32) {
        let Some(evicted) = self.sections.remove(&number) else {
            return;
        };
        self.numbers.remove(&evicted.section.id);
        self.used_bytes -= bytes_of(&evicted.section);
        for fingerprint in &evicted.section.fingerprints {
            let prefix = fingerprint.prefix();
            if self
                .places
                .get(&prefix)
                .is_some_and(|place| place.0 == number)
            {
                self.places.remove(&prefix);
            }
        }
    }
}

fn bytes_of(section: &Section) -> usize {
    section.memory_bytes() + section.chunk_count() * CACHED_CHUNK_BYTES
}

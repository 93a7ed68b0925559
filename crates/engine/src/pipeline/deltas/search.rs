//! Looks for the base of a new chunk (Odess, §2.2): the thread that decides asks.
//!
//! Enter: chunks that are new, and the metadata of containers. Leave: bases that can be had, best first
//! by the rule in force. What can be had: chunks that were stored before this run; of this run whole
//! chunks in a container that is sealed, deltas in one that is sealed or as long as they are in memory.
//!
//! Super-features of earlier containers come from their metadata, in two ways: a container that was
//! fetched because a duplicate was met there brings those of its chunks; and, as much as
//! [`LOAD_SHARE`] of the new bytes pay for, the newest containers do. So what a backup reads is in
//! proportion to what it stores, and an unchanged tree costs nothing.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::numbers::{Known, Numbers};
use super::{DeltaSettings, DeltaSettingsError};
use crate::container::{ContainerId, ContainerKind, Section};
use crate::format::ObjectError;
use crate::index::Index;
use crate::similarity::FeatureExtractor;
use crate::similarity::index::{Candidate, SuperFeatureIndex};

/// Metadata of earlier containers that the first new chunk pays for, in bytes.
const LOAD_BYTES_FIRST: i64 = 4 << 20;

/// For so many new bytes a byte of metadata is read.
const LOAD_SHARE: i64 = 8;

/// What a container's metadata counts for where its length is not known.
const METADATA_BYTES_GUESS: u32 = 64 << 10;

/// Earlier containers that are loaded at most: their features fill any index.
const CONTAINERS_MAX: usize = 1 << 14;

/// Containers that are ordered by what is in them, not by their ids, so that what is found in them does
/// not depend on these.
const LOADED_TOGETHER: usize = 64;

/// Earlier containers are no longer loaded when the index had room for less than one of so many of
/// their chunks,
const FULL_SHARE: usize = 4;

/// judged by so many of them.
const FULL_CHUNKS: usize = 4096;

/// Chunks of earlier containers that the index was given, and those of them that it had room for.
#[derive(Debug, Clone, Copy, Default)]
struct Learnt {
    chunks: usize,
    with_room: usize,
}

/// A base that may be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseCandidate {
    /// Where it is.
    pub known: Known,
    /// Deltas from it to a chunk stored whole.
    pub depth: u8,
}

/// Knows the super-features of chunks, and looks for those that resemble a new one.
pub struct BaseSearch {
    settings: DeltaSettings,
    extractor: FeatureExtractor,
    index: SuperFeatureIndex,
    numbers: Numbers,
    /// Those of the chunk looked at.
    super_features: Vec<u32>,
    candidates: Vec<Candidate>,
    /// Containers whose features are known or will not be.
    seen: HashSet<ContainerId>,
    /// Earlier containers yet to load, the newest first; nothing before the first is needed.
    waiting: Option<VecDeque<(ContainerId, u32)>>,
    /// Bytes of metadata that may be read.
    paid_bytes: i64,
    learnt: Learnt,
    /// The container of the base that was taken last.
    near: Option<ContainerId>,
}

impl std::fmt::Debug for BaseSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BaseSearch")
            .field("index", &self.index.len())
            .finish_non_exhaustive()
    }
}

impl BaseSearch {
    /// Knows nothing yet; its index takes at most `memory_bytes`.
    ///
    /// # Errors
    /// When the settings are impossible.
    pub fn new(settings: &DeltaSettings, memory_bytes: usize) -> Result<Self, DeltaSettingsError> {
        settings.check()?;
        let isa = kernels::isa::Isa::best();
        Ok(Self {
            extractor: FeatureExtractor::new(&settings.detection, isa)?,
            settings: settings.clone(),
            index: SuperFeatureIndex::new(memory_bytes),
            numbers: Numbers::default(),
            super_features: Vec::new(),
            candidates: Vec::new(),
            seen: HashSet::new(),
            waiting: None,
            paid_bytes: LOAD_BYTES_FIRST,
            learnt: Learnt::default(),
            near: None,
        })
    }

    /// Takes up a chunk: its super-features are those of everything that follows.
    pub fn look_at(&mut self, chunk: &[u8], index: &mut Index) -> Result<(), ObjectError> {
        for section in index.take_fetched() {
            self.learn(&section, index);
        }
        if !self
            .extractor
            .super_features(chunk, &mut self.super_features)
        {
            return Ok(());
        }
        self.load(index)?;
        self.paid_bytes += chunk.len() as i64 / LOAD_SHARE;
        Ok(())
    }

    /// The super-features of the chunk.
    pub fn super_features(&self) -> &[u32] {
        &self.super_features
    }

    /// The first base for the chunk that `can_be_had`, in the order of the rule.
    pub fn find<R>(
        &mut self,
        mut can_be_had: impl FnMut(BaseCandidate) -> Option<R>,
    ) -> Option<(R, u8)> {
        if self.super_features.is_empty() {
            return None;
        }
        self.index
            .candidates(&self.super_features, &mut self.candidates);
        let depth_max = self.settings.depth_max;
        self.candidates
            .retain(|candidate| candidate.depth < depth_max);
        let (numbers, near) = (&self.numbers, self.near);
        self.settings
            .choice
            .sort(&mut self.candidates, |candidate| {
                match numbers.known(candidate.number) {
                    Some(Known::Stored { container, .. }) => Some(container) == near,
                    Some(Known::New { .. }) => true,
                    None => false,
                }
            });
        for candidate in &self.candidates {
            let Some(known) = self.numbers.known(candidate.number) else {
                continue;
            };
            let depth = candidate.depth;
            if let Some(had) = can_be_had(BaseCandidate { known, depth }) {
                if let Known::Stored { container, .. } = known {
                    self.near = Some(container);
                }
                return Some((had, depth));
            }
        }
        None
    }

    /// May a chunk of that depth be a base?
    pub fn may_be_base(&self, depth: u8) -> bool {
        depth < self.settings.depth_max
    }

    /// The chunk was stored under this number of its row.
    pub fn stored(&mut self, kind: ContainerKind, sequence: u64, depth: u8) {
        if self.super_features.is_empty() || !self.may_be_base(depth) {
            return;
        }
        let index = &mut self.index;
        let number = self
            .numbers
            .of_new(kind, sequence, |step| index.renumber(step));
        self.index.insert(&self.super_features, number, depth);
    }

    /// Loads features of earlier containers, as far as that is paid for.
    fn load(&mut self, index: &mut Index) -> Result<(), ObjectError> {
        let waiting = self
            .waiting
            .get_or_insert_with(|| index.newest_containers(CONTAINERS_MAX).into());
        if waiting.is_empty() || self.paid_bytes <= 0 {
            return Ok(());
        }
        let mut sections: Vec<Arc<Section>> = Vec::new();
        while self.paid_bytes > 0
            && sections.len() < LOADED_TOGETHER
            && let Some((container, bytes)) = self.waiting.as_mut().and_then(VecDeque::pop_front)
        {
            if self.seen.contains(&container) {
                continue;
            }
            let counted = if bytes > 0 {
                bytes
            } else {
                METADATA_BYTES_GUESS
            };
            self.paid_bytes -= i64::from(counted);
            sections.extend(index.section(container, bytes)?);
        }
        sections.sort_by_key(|section| section.fingerprints.first().copied());
        for section in sections {
            self.learn(&section, index);
        }
        if self.learnt.chunks >= FULL_CHUNKS {
            if self.learnt.with_room * FULL_SHARE < self.learnt.chunks {
                self.waiting = Some(VecDeque::new());
            }
            self.learnt = Learnt::default();
        }
        Ok(())
    }

    /// Takes in the features of a container that was there before this run, but for those of chunks made of others
    /// that are gone or will be.
    fn learn(&mut self, section: &Section, index: &Index) {
        if !self.seen.insert(section.id) {
            return;
        }
        let expected = self.settings.detection.super_features();
        if section.features.per_chunk() != expected {
            return;
        }
        let slots = section.slots.last().map_or(0, |slot| u32::from(slot.0) + 1);
        let (live, containers) = (index.live_objects(), index.containers());
        let is_there = |chunk| {
            section.delta(chunk).is_none() || live.has_chunk(containers, section.address(chunk))
        };
        let Some(first) = self.numbers.of_container(section.id, slots) else {
            return;
        };
        for (chunk, slot) in section.slots.iter().enumerate() {
            let depth = section.delta(chunk).map_or(0, |delta| delta.depth);
            if let Some(features) = section.features.of(chunk)
                && depth < self.settings.depth_max
                && is_there(chunk)
            {
                let number = first + u32::from(slot.0);
                let had_room = self.index.insert(features, number, depth);
                self.learnt.chunks += 1;
                self.learnt.with_room += usize::from(had_room);
            }
        }
    }

    /// That container was stored in this run: its features are known.
    pub fn note_own(&mut self, container: ContainerId) {
        self.seen.insert(container);
    }
}

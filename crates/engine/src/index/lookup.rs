//! The exact decision whether a chunk is stored already, and where (design.md, 'Dedup decision').
//!
//! A fingerprint is looked for, in this order, among
//! 1. *open* chunks: new in this run, their container not sealed yet;
//! 2. the *locality cache*: containers whose metadata was fetched because a chunk of theirs
//!    was met before (its neighbours tend to follow);
//! 3. *recent* containers: sealed in this run or found without an index run, by prefix;
//! 4. the index *runs*, by prefix.
//!
//! A chunk may lie in several containers (`crate::rewriting`). Among candidates the newest comes
//! first, as the generations in the index runs say, so that a chunk that was stored again is found
//! where it was stored last; so it is in the cache among the containers that are there.
//!
//! 3 and 4 name candidates; the full fingerprint is compared in the container's metadata,
//! which thereby comes into the cache, in one read where the directory of the runs says how long it
//! is. Candidates of one generation are tried in the order of their ids, so that the answer does not
//! depend on how runs were merged. A container that is gone or damaged is passed over:
//! its chunks are stored again, and so are those made of them (`live.rs`). One that was found damaged is *set aside* for good: a run covers
//! it, and none has entries of it, so that no later backup takes it for a good one, while
//! what is intact in it can still be restored.
//!
//! **Memory**: 1 is bounded by the pipeline's queues, 2 by a setting, 3 and 4 together by another:
//! recent chunks take at most an eighth of it (`recent.rs`), the containers that are there 10 to 20 B each
//! (`live.rs`), and runs keep to what is left (`run_set.rs`).

use std::cmp::Reverse;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::fetched::Fetched;
use super::hashing::HashedMap;
use super::live::LiveObjects;
use super::locality::LocalityCache;
use super::merge_job::MergeJob;
use super::moved::{ObjectsToIndex, objects_aside, set_aside_before};
use super::recent::Recent;
use super::run_reader::is_missing;
use super::{IndexStatistics, RunSet};
use crate::container::{
    ChunkAddress, ContainerId, ContainerKind, ContainerReader, Section, SectionPlace,
};
use crate::fingerprint::Fingerprint;
use crate::format::ObjectError;
use crate::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};

/// Which part of the memory of runs recent chunks may take.
const RECENT_SHARE: usize = 8;

/// A change in what recent chunks and containers take that runs are told of.
const RESERVED_STEP_BYTES: usize = 64 << 10;

/// Part of the locality cache's bytes that fetched sections have until somebody takes them.
const FETCHED_SHARE: usize = 4;

/// A new chunk's place while its container is not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenPlace {
    /// A chunk of data: its number among the new chunks of this run that go to containers of the same
    /// kind, and the bytes before it.
    Sequence {
        /// The kind of containers that it goes to.
        kind: ContainerKind,
        /// Its number.
        sequence: u64,
        /// Bytes of all those before it.
        offset: u64,
    },
    /// A page of metadata, whose address is known at once.
    Address(ChunkAddress),
}

/// Where a chunk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// In a sealed container.
    Stored(ChunkAddress),
    /// In one that is still open.
    Open(OpenPlace),
}

/// What an index has to work with.
#[derive(Debug, Clone, Copy)]
pub struct IndexMemory {
    /// Bytes for runs, recent chunks and the list of containers.
    pub run_bytes: usize,
    /// Bytes for the locality cache.
    pub locality_bytes: usize,
}

/// Looks fingerprints up, exactly, in bounded memory.
pub struct Index {
    store: Arc<dyn ObjectStore>,
    reader: Arc<ContainerReader>,
    runs: Arc<RunSet>,
    /// Container objects that are there and not set aside.
    live: Arc<LiveObjects>,
    /// Containers that were set aside, as the runs say.
    aside: Arc<HashSet<ContainerId>>,
    /// Objects set aside since.
    aside_now: HashSet<ObjectId>,
    /// Containers sealed in this run, where that is to be noted: about 32 B each.
    own: Option<HashSet<ContainerId>>,
    open: HashedMap<Fingerprint, OpenPlace>,
    recent: Recent,
    /// What the runs were told that others take.
    reserved_bytes: usize,
    cache: LocalityCache,
    /// The last sections that came into the cache since they were taken, where somebody takes them.
    fetched: Option<Fetched>,
    /// What they may take.
    fetched_bytes: usize,
    damaged: Vec<ObjectError>,
    candidates: Vec<ChunkAddress>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index")
            .field("containers", &self.live.len())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index of a repository: its runs, and whatever containers they do not cover
    /// (left by runs that died, or moved), which are made durable and taken in. Container objects that are
    /// `condemned` count as gone: nothing in them is found, although it may still be read.
    ///
    /// # Errors
    /// When the store can't be listed or read. Damaged index runs or unreferenced containers
    /// are no error: see [`Index::damaged`].
    pub fn open(
        store: Arc<dyn ObjectStore>,
        vault: Arc<crate::format::Vault>,
        reader: Arc<ContainerReader>,
        memory: IndexMemory,
        condemned: &HashSet<ObjectId>,
    ) -> Result<Self, ObjectError> {
        let runs = RunSet::open(Arc::clone(&store), vault, memory.run_bytes)?;
        let live = LiveObjects::default();
        store.list(ObjectKind::Container, &mut |id, _| {
            if !condemned.contains(&id) {
                live.insert(id);
            }
        })?;
        let aside = set_aside_before(&runs);
        let remaps = reader.remaps();
        objects_aside(&aside, &remaps).for_each(|object| live.remove(object));
        let is_gone = |&container: &ContainerId| !live.has_container(&remaps, container);
        let read = runs.runs();
        if remaps.generation() > 0
            || !condemned.is_empty()
            || read
                .iter()
                .any(|run| run.footer().containers.iter().any(is_gone))
        {
            live.note_gap();
        }
        let mut index = Self {
            store,
            reader,
            runs: Arc::new(runs),
            live: Arc::new(live),
            aside: Arc::new(aside),
            aside_now: HashSet::new(),
            own: None,
            open: HashedMap::default(),
            recent: Recent::new(memory.run_bytes / RECENT_SHARE),
            reserved_bytes: 0,
            cache: LocalityCache::new(memory.locality_bytes),
            fetched: None,
            fetched_bytes: memory.locality_bytes / FETCHED_SHARE,
            damaged: Vec::new(),
            candidates: Vec::new(),
        };
        index.adopt_uncovered()?;
        Ok(index)
    }

    /// Takes in containers that no run covers.
    fn adopt_uncovered(&mut self) -> Result<(), ObjectError> {
        self.account();
        let remaps = self.reader.remaps();
        let moved_uncovered = self.runs.moved_uncovered(&remaps);
        let objects = ObjectsToIndex::new(&remaps, &moved_uncovered);
        let mut uncovered = Vec::new();
        self.store.list(ObjectKind::Container, &mut |id, _| {
            if self.live.contains(id) && objects.contains(&self.runs, id) {
                uncovered.push(id);
            }
        })?;
        uncovered.sort_unstable();
        for id in uncovered {
            let key = ObjectKey::new(ObjectKind::Container, id);
            let (sections, summary) = match self.reader.object(key) {
                Ok((metadata, summary)) => (metadata.sections, summary),
                Err(error) if is_unusable(&error) => {
                    self.live.remove(id);
                    self.damaged.push(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.store.persist(&[key])?;
            for section in sections {
                if objects.is_wanted(&self.runs, section.id, id) {
                    let is_alone = section.id.0 == id;
                    let metadata_bytes = if is_alone { summary.metadata_bytes } else { 0 };
                    self.recent.insert(&section, metadata_bytes as u32);
                }
            }
            self.account();
            if self.recent.is_full() {
                self.write_recent()?;
            }
        }
        Ok(())
    }

    /// Tells the runs what others take of their memory.
    fn account(&mut self) {
        let aside_bytes = self.aside.capacity() * 2 * size_of::<ContainerId>();
        let bytes = self.recent.memory_bytes() + self.live.memory_bytes() + aside_bytes;
        if bytes.abs_diff(self.reserved_bytes) >= RESERVED_STEP_BYTES {
            self.runs.set_reserved(bytes, self.reserved_bytes);
            self.reserved_bytes = bytes;
        }
    }

    /// Takes nothing from that container object any more, in this run and, once
    /// [`Index::merge_runs`] has noted it, in later ones: it was found damaged.
    pub fn set_aside(&mut self, object: ObjectId) {
        self.live.remove(object);
        self.aside_now.insert(object);
        let remaps = self.reader.remaps();
        self.cache
            .forget(|container| remaps.is_place(container, object));
    }

    /// Does an object of this logical container exist, and may it be used?
    #[must_use]
    pub fn is_live(&self, container: ContainerId) -> bool {
        self.live.has_container(&self.reader.remaps(), container)
    }

    /// What it reads the metadata of containers by, and keeps some of them.
    #[must_use]
    pub fn containers(&self) -> &Arc<ContainerReader> {
        &self.reader
    }

    /// The generation of remaps that containers are found by.
    #[must_use]
    pub fn remap_generation(&self) -> u64 {
        self.reader.remaps().generation()
    }

    /// The container objects that exist and may be used.
    #[must_use]
    pub fn live_objects(&self) -> &Arc<LiveObjects> {
        &self.live
    }

    /// What was found damaged and is passed over.
    #[must_use]
    pub fn damaged(&self) -> Vec<String> {
        let runs = self.runs.damaged();
        let runs = runs.iter().map(|(_, error)| error.to_string());
        self.damaged
            .iter()
            .map(ToString::to_string)
            .chain(runs)
            .collect()
    }

    /// Chunks whose containers no index run on the store covers yet.
    #[must_use]
    pub fn recent_chunks(&self) -> usize {
        self.recent.len()
    }

    /// Are there so many of them that they should be written as a run?
    #[must_use]
    pub fn is_recent_full(&self) -> bool {
        self.recent.is_full()
    }

    /// What the runs hold, take and did; memory with that of recent chunks and of the list of
    /// containers.
    #[must_use]
    pub fn statistics(&self) -> IndexStatistics {
        self.runs.statistics()
    }

    /// Where the chunk of that fingerprint is stored, if it is.
    ///
    /// # Errors
    /// When the store fails; damage is passed over.
    pub fn find(&mut self, fingerprint: &Fingerprint) -> Result<Option<Found>, ObjectError> {
        if let Some(place) = self.open.get(fingerprint) {
            return Ok(Some(Found::Open(*place)));
        }
        // A copy of this run that no index run covers yet counts whatever the cache happens to hold.
        if let Some((address, is_delta)) = self.cache.find(fingerprint)
            && (self.is_own(address.container) || !self.may_be_own(fingerprint))
            && (!is_delta || self.live.has_chunk(&self.reader, address))
        {
            return Ok(Some(Found::Stored(address)));
        }
        self.find_candidate(fingerprint)
    }

    /// Where the chunk of that fingerprint is stored, if it is: the newest of its places, whatever
    /// the cache has. To be asked rarely.
    ///
    /// # Errors
    /// When the store fails; damage is passed over.
    pub fn find_newest(&mut self, fingerprint: &Fingerprint) -> Result<Option<Found>, ObjectError> {
        if let Some(place) = self.open.get(fingerprint) {
            return Ok(Some(Found::Open(*place)));
        }
        self.find_candidate(fingerprint)
    }

    /// May a container of this run that no index run covers yet have that chunk?
    fn may_be_own(&mut self, fingerprint: &Fingerprint) -> bool {
        if self.own.is_none() {
            return false;
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.recent
            .candidates(fingerprint.prefix(), &mut candidates);
        let mut own = candidates.iter();
        let is_own = own.any(|candidate| self.is_own(candidate.container));
        self.candidates = candidates;
        is_own
    }

    /// Notes from now on which containers are sealed in this run.
    pub fn note_own(&mut self) {
        self.own.get_or_insert_default();
    }

    /// Keeps from now on what [`Self::take_fetched`] takes.
    pub fn note_fetched(&mut self) {
        let limit_bytes = self.fetched_bytes;
        self.fetched
            .get_or_insert_with(|| Fetched::new(limit_bytes));
    }

    /// The containers of earlier runs whose metadata was fetched since the last call because a chunk of
    /// theirs was met, each once in a run, the last ones: chunks that resemble theirs tend to follow.
    pub fn take_fetched(&mut self) -> VecDeque<Arc<Section>> {
        self.fetched.as_mut().map(Fetched::take).unwrap_or_default()
    }

    /// The containers that are there with the length of their metadata, if that is known, the newest
    /// first, at most so many: those that no run covers, then by generation. In what order those
    /// of one run come is not said.
    #[must_use]
    pub fn newest_containers(&self, count_max: usize) -> Vec<(ContainerId, u32)> {
        let mut newest = self.recent.containers().to_vec();
        newest.truncate(count_max);
        newest.extend(self.runs.newest_containers(count_max - newest.len()));
        newest.retain(|(container, _)| self.is_live(*container));
        newest
    }

    /// The section of a container that [`Index::newest_containers`] named; damage is passed over.
    ///
    /// # Errors
    /// When the store fails.
    pub fn section(
        &mut self,
        container: ContainerId,
        metadata_bytes: u32,
    ) -> Result<Option<Arc<Section>>, ObjectError> {
        let remaps = self.reader.remaps();
        for object in remaps.places(container) {
            if !self.live.contains(object) {
                continue;
            }
            let is_known = object == container.0 && metadata_bytes > 0;
            let place = SectionPlace { container, object };
            match self
                .reader
                .section_in(place, is_known.then_some(metadata_bytes))
            {
                Ok(loaded) => return Ok(Some(Arc::clone(&loaded.section))),
                Err(error) if is_unusable(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Was that container sealed in this run? Never, unless that is noted.
    #[must_use]
    pub fn is_own(&self, container: ContainerId) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| own.contains(&container))
    }

    /// The higher, the newer a container: those of this run before those that a run left which died
    /// (no index run covers them), before all others.
    fn generation(&self, container: ContainerId) -> u32 {
        if self.is_own(container) {
            u32::MAX
        } else if !self.runs.covered(container) {
            u32::MAX - 1
        } else {
            self.runs.generation(container)
        }
    }

    /// Looks among what recent containers and runs name.
    fn find_candidate(&mut self, fingerprint: &Fingerprint) -> Result<Option<Found>, ObjectError> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.recent
            .candidates(fingerprint.prefix(), &mut candidates);
        self.runs.candidates(fingerprint.prefix(), &mut candidates);
        candidates.sort_unstable();
        candidates.dedup();
        if candidates.len() > 1 {
            candidates
                .sort_by_cached_key(|candidate| Reverse(self.generation(candidate.container)));
        }
        let mut found = Ok(None);
        for &candidate in &candidates {
            found = self.confirm(candidate, fingerprint);
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        self.candidates = candidates;
        Ok(found?.map(Found::Stored))
    }

    /// Looks for a candidate in the places of its container. In one that a compaction moved its slot may have been
    /// dropped.
    fn confirm(
        &mut self,
        candidate: ChunkAddress,
        fingerprint: &Fingerprint,
    ) -> Result<Option<ChunkAddress>, ObjectError> {
        let remaps = self.reader.remaps();
        for object in remaps.places(candidate.container) {
            if !self.live.contains(object) {
                continue;
            }
            let Some(section) = self.fetch(candidate.container, object)? else {
                continue;
            };
            let Some(chunk) = section.chunk_in(candidate.slot) else {
                continue;
            };
            let is_whole = section.fingerprints[chunk] == *fingerprint
                && (section.delta(chunk).is_none() || self.live.has_chunk(&self.reader, candidate));
            return Ok(is_whole.then_some(candidate));
        }
        Ok(None)
    }

    /// Fetches a container in one of its places into the cache; nothing when that can't be used.
    fn fetch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
    ) -> Result<Option<Arc<Section>>, ObjectError> {
        // Runs know it of containers in objects of their own.
        let known_bytes = match object == container.0 {
            true => self.runs.metadata_bytes(container),
            false => None,
        };
        let place = SectionPlace { container, object };
        let loaded = match self.reader.section_in(place, known_bytes) {
            Ok(loaded) => loaded,
            Err(error) if is_unusable(&error) => {
                if error.is_damage() && !is_missing(&error) {
                    self.set_aside(object);
                } else {
                    self.live.remove(object);
                }
                self.damaged.push(error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let generation = self.generation(container);
        if self.cache.insert(&loaded.section, generation)
            && let Some(fetched) = &mut self.fetched
        {
            fetched.push(&loaded.section);
        }
        Ok(Some(Arc::clone(&loaded.section)))
    }

    /// Enters a chunk that is new.
    pub fn insert_open(&mut self, fingerprint: Fingerprint, place: OpenPlace) {
        self.open.insert(fingerprint, place);
    }

    /// The container of open chunks was sealed, with a metadata region of so many bytes: they are
    /// looked up there from now on.
    pub fn sealed(&mut self, section: &Arc<Section>, metadata_bytes: u64) {
        for fingerprint in &section.fingerprints {
            self.open.remove(fingerprint);
        }
        self.live.insert(section.id.0);
        if let Some(own) = &mut self.own {
            own.insert(section.id);
        }
        if let Some(fetched) = &mut self.fetched {
            fetched.note_own(section.id);
        }
        let metadata_bytes = u32::try_from(metadata_bytes).unwrap_or(0);
        self.recent.insert(section, metadata_bytes);
        self.cache.insert(section, u32::MAX);
        self.account();
    }

    /// Writes an index run of all recent chunks. Their containers must be durable.
    ///
    /// # Errors
    /// When the store fails.
    pub fn write_recent(&mut self) -> Result<(), ObjectError> {
        // The table stays reserved until it is written.
        let written = self.recent.write_to(&self.runs);
        self.account();
        written
    }

    /// Merging, for a thread of its own, where runs need it.
    #[must_use]
    pub fn merge_job(&self) -> Option<MergeJob> {
        self.runs.needs_merge().then(|| self.merging())
    }

    fn merging(&self) -> MergeJob {
        MergeJob {
            runs: Arc::clone(&self.runs),
            live: Arc::clone(&self.live),
            aside: Arc::clone(&self.aside),
            reader: Arc::clone(&self.reader),
        }
    }

    /// Notes what was set aside, and merges index runs where they need it.
    ///
    /// # Errors
    /// When the store fails; the index is whole all the same.
    pub fn merge_runs(&mut self, cancel: &AtomicBool) -> Result<(), ObjectError> {
        self.note_set_aside()?;
        self.merging().run(cancel)?;
        Ok(())
    }

    /// Rewrites the runs that have entries of what was set aside without these, and covers it
    /// without entries, so that it is not taken in again. After a crash between the two it is
    /// taken in by the next backup, and set aside when it is found damaged again.
    fn note_set_aside(&mut self) -> Result<(), ObjectError> {
        if self.aside_now.is_empty() {
            return Ok(());
        }
        let remaps = self.reader.remaps();
        let is_aside = |container: ContainerId| {
            let mut places = remaps.places(container);
            places.any(|object| self.aside_now.contains(&object))
                && !self.live.has_container(&remaps, container)
        };
        // What no run names yet lies in the object of its own id: that is all there is to know.
        let own = self.aside_now.iter().copied().map(ContainerId);
        let mut containers: Vec<_> = own.filter(|&container| is_aside(container)).collect();
        for run in self.runs.runs().iter() {
            let footer = run.footer();
            let named = footer.containers.iter().chain(&footer.covered).copied();
            containers.extend(named.filter(|&container| is_aside(container)));
        }
        containers.sort_unstable();
        containers.dedup();
        self.runs.drop_dead(&|container| !is_aside(container))?;
        self.runs.write_run(&mut [], &containers)?;
        Arc::make_mut(&mut self.aside).extend(containers);
        self.aside_now.clear();
        Ok(())
    }
}

/// Is a container with this error to be passed over? Not when the store fails: then nobody knows
/// what it holds.
fn is_unusable(error: &ObjectError) -> bool {
    error.is_damage() || matches!(error, ObjectError::UnknownEpoch { .. })
}

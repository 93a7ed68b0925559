//! Reads containers: the metadata of an object and its sections (docs/format/v1.md, §6).
//!
//! One read of the object's tail usually brings the length tag and all the metadata. The metadata
//! of recently used containers is kept, bounded in bytes. Which object a container is looked for in:
//! `places.rs`; groups: `groups.rs`; whole objects: `verify.rs`.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::RemapSet;
use super::metadata::{ObjectMetadata, Section};
use super::places::{CurrentRemaps, SectionPlace};
use crate::fingerprint::Fingerprinter;
use crate::format::{
    DecodeError, InObject, LENGTH_TAG_BYTES, ObjectError, ObjectSealer, SEAL_TAG_BYTES, Vault,
};
use crate::object::{ObjectId, ObjectKey, ObjectStore, StoreError, Tail};

/// Piece number of the padding.
pub const PADDING_PIECE: u32 = 2;

/// Bytes of an object's tail read at first: enough for the metadata of most containers.
pub(super) const TAIL_BYTES: usize = 128 << 10;

/// Most bytes in a container object.
pub(super) const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// A section with what is needed to read its groups.
#[derive(Debug)]
pub struct LoadedSection {
    /// The object it lies in.
    pub object: ObjectKey,
    /// Its chunks and groups.
    pub section: Arc<Section>,
    pub(super) sealer: Arc<ObjectSealer>,
}

/// What a verified container object consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContainerSummary {
    /// Bytes of the object.
    pub object_bytes: u64,
    /// Bytes of sealed groups.
    pub data_bytes: u64,
    /// Bytes of the sealed metadata region.
    pub metadata_bytes: u64,
    /// Chunks in all its sections.
    pub chunks: u64,
    /// Those of them that are stored as deltas.
    pub delta_chunks: u64,
    /// Bytes of all chunks, however they are stored.
    pub plain_bytes: u64,
}

impl ContainerSummary {
    /// Data, metadata and tag: what the filling ratio counts.
    #[must_use]
    pub fn filled_bytes(&self) -> u64 {
        self.data_bytes + self.metadata_bytes + LENGTH_TAG_BYTES as u64
    }
}

/// The metadata of an object as read from its tail.
pub(super) struct OpenObject {
    pub sealer: Arc<ObjectSealer>,
    pub metadata: ObjectMetadata,
    pub summary: ContainerSummary,
}

/// Reads the containers of one repository.
pub struct ContainerReader {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) vault: Arc<Vault>,
    fingerprinter: Arc<Fingerprinter>,
    pub(super) remaps: CurrentRemaps,
    cache: Mutex<SectionCache>,
    reads: AtomicU64,
    read_bytes: AtomicU64,
}

/// What was read to know the metadata of containers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetadataReads {
    /// Reads from the store.
    pub reads: u64,
    /// Bytes that they brought.
    pub bytes: u64,
}

impl std::fmt::Debug for ContainerReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerReader").finish_non_exhaustive()
    }
}

impl ContainerReader {
    /// A reader of the containers in `store`; at most `cache_bytes` of metadata are kept.
    #[must_use]
    pub fn new(
        store: Arc<dyn ObjectStore>,
        vault: Arc<Vault>,
        fingerprinter: Arc<Fingerprinter>,
        remaps: RemapSet,
        cache_bytes: usize,
    ) -> Self {
        Self {
            store,
            vault,
            fingerprinter,
            remaps: CurrentRemaps::new(remaps),
            cache: Mutex::new(SectionCache::new(cache_bytes)),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
        }
    }

    /// What was read so far for [`ContainerReader::section`] and [`ContainerReader::object`].
    #[must_use]
    pub fn metadata_reads(&self) -> MetadataReads {
        MetadataReads {
            reads: self.reads.load(Ordering::Relaxed),
            bytes: self.read_bytes.load(Ordering::Relaxed),
        }
    }

    /// The keys under which it verifies chunks.
    #[must_use]
    pub fn fingerprinter(&self) -> &Fingerprinter {
        &self.fingerprinter
    }

    /// The section of a logical container in one of its places. Where somebody knows how long the metadata
    /// region of that object is, one read brings it and nothing else; a wrong length costs a second read.
    ///
    /// # Errors
    /// When the object is missing, unreadable or damaged, or holds no such section.
    pub fn section_in(
        &self,
        place: SectionPlace,
        metadata_bytes: Option<u32>,
    ) -> Result<Arc<LoadedSection>, ObjectError> {
        if let Some(found) = self.lock_cache().get(place) {
            return Ok(found);
        }
        let key = place.object_key();
        let open = self.open(key, metadata_bytes)?;
        let remaps = self.remaps();
        let mut wanted = None;
        for section in open.metadata.sections {
            let container = section.id;
            let loaded = Arc::new(LoadedSection {
                object: key,
                section: Arc::new(section),
                sealer: Arc::clone(&open.sealer),
            });
            if container == place.container {
                wanted = Some(loaded);
            } else if remaps.is_place(container, key.id) {
                self.lock_cache()
                    .insert(SectionPlace { container, ..place }, loaded);
            }
        }
        let wanted = wanted.ok_or_else(|| ObjectError::Corrupt {
            key,
            part: "metadata",
            reason: DecodeError::new(format!("it does not hold container {}", place.container)),
        })?;
        self.lock_cache().insert(place, Arc::clone(&wanted));
        Ok(wanted)
    }

    /// Forgets the metadata of an object.
    pub(super) fn forget(&self, object: ObjectId) {
        self.lock_cache().forget(object);
    }

    /// The metadata of an object, whatever containers it holds; nothing is cached.
    ///
    /// # Errors
    /// When it is missing, unreadable or damaged.
    pub fn object(
        &self,
        key: ObjectKey,
    ) -> Result<(ObjectMetadata, ContainerSummary), ObjectError> {
        let open = self.open(key, None)?;
        Ok((open.metadata, open.summary))
    }

    fn open(&self, key: ObjectKey, metadata_bytes: Option<u32>) -> Result<OpenObject, ObjectError> {
        let length = match metadata_bytes.map(|bytes| bytes as usize) {
            Some(bytes) if bytes < OBJECT_BYTES_MAX as usize => bytes + LENGTH_TAG_BYTES,
            _ => TAIL_BYTES,
        };
        let tail = self.store.get_tail(&key, length)?;
        self.count_read(tail.bytes.len());
        self.open_tail(key, &tail)
    }

    fn count_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The metadata of an object, of which `tail` was read; reads more where that is not enough.
    pub(super) fn open_tail(&self, key: ObjectKey, tail: &Tail) -> Result<OpenObject, ObjectError> {
        if tail.object_bytes > OBJECT_BYTES_MAX {
            return Err(StoreError::TooLong {
                key,
                location: self.store.location(),
                object_bytes: tail.object_bytes,
                limit_bytes: OBJECT_BYTES_MAX,
            }
            .into());
        }
        let Some((before, tag)) = tail.bytes.split_last_chunk::<LENGTH_TAG_BYTES>() else {
            let reason = DecodeError::new(format!("it has only {} bytes", tail.object_bytes));
            return Err(reason).in_object(key, "length tag");
        };
        let sealer = self
            .vault
            .object(key, &tag[..12])
            .in_object(key, "length tag")?;
        let metadata_bytes = sealer.open_length_tag(tag).in_object(key, "length tag")?;
        let metadata_bytes = u64::from(metadata_bytes);
        let before_bytes = tail.object_bytes - LENGTH_TAG_BYTES as u64;
        if metadata_bytes > before_bytes {
            let reason = DecodeError::new(format!(
                "{metadata_bytes} bytes of metadata in an object of {}",
                tail.object_bytes
            ));
            return Err(reason).in_object(key, "length tag");
        }
        let mut sealed = if metadata_bytes <= before.len() as u64 {
            before[before.len() - metadata_bytes as usize..].to_vec()
        } else {
            let offset = before_bytes - metadata_bytes;
            self.count_read(metadata_bytes as usize);
            self.store
                .get_range(&key, offset, metadata_bytes as usize)?
        };
        sealer.open(1, &mut sealed).in_object(key, "metadata")?;
        let metadata = ObjectMetadata::decode(&sealed).in_object(key, "metadata")?;
        let data_bytes = metadata.data_bytes();
        let padding_bytes = before_bytes.checked_sub(metadata_bytes + data_bytes);
        if !padding_bytes.is_some_and(|bytes| bytes == 0 || bytes >= SEAL_TAG_BYTES as u64) {
            let reason = DecodeError::new("its groups and its metadata do not meet");
            return Err(reason).in_object(key, "metadata");
        }
        let chunks = metadata.sections.iter().map(|s| s.chunk_count() as u64);
        let deltas = metadata.sections.iter().flat_map(|s| &s.deltas);
        let lengths = metadata.sections.iter().flat_map(|s| &s.lengths);
        let summary = ContainerSummary {
            object_bytes: tail.object_bytes,
            data_bytes,
            metadata_bytes,
            chunks: chunks.sum(),
            delta_chunks: deltas.flatten().count() as u64,
            plain_bytes: lengths.map(|&length| u64::from(length)).sum(),
        };
        Ok(OpenObject {
            sealer: Arc::new(sealer),
            metadata,
            summary,
        })
    }

    fn lock_cache(&self) -> std::sync::MutexGuard<'_, SectionCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sections used lately, bounded in bytes; the one unused for longest goes first.
struct SectionCache {
    limit_bytes: usize,
    used_bytes: usize,
    clock: u64,
    sections: HashMap<SectionPlace, (u64, Arc<LoadedSection>)>,
    by_use: BTreeMap<u64, SectionPlace>,
}

impl SectionCache {
    fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            used_bytes: 0,
            clock: 0,
            sections: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    fn get(&mut self, place: SectionPlace) -> Option<Arc<LoadedSection>> {
        self.clock += 1;
        let (used, section) = self.sections.get_mut(&place)?;
        self.by_use.remove(used);
        *used = self.clock;
        self.by_use.insert(self.clock, place);
        Some(Arc::clone(section))
    }

    fn insert(&mut self, place: SectionPlace, section: Arc<LoadedSection>) {
        self.clock += 1;
        self.used_bytes += section.section.memory_bytes();
        if let Some((used, old)) = self.sections.insert(place, (self.clock, section)) {
            self.by_use.remove(&used);
            self.used_bytes -= old.section.memory_bytes();
        }
        self.by_use.insert(self.clock, place);
        while self.used_bytes > self.limit_bytes && self.sections.len() > 1 {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            if let Some((_, section)) = self.sections.remove(&oldest) {
                self.used_bytes -= section.section.memory_bytes();
            }
        }
    }

    /// Drops the sections of an object.
    fn forget(&mut self, object: ObjectId) {
        let (by_use, used_bytes) = (&mut self.by_use, &mut self.used_bytes);
        self.sections.retain(|place, (used, section)| {
            let stays = place.object != object;
            if !stays {
                by_use.remove(used);
                *used_bytes -= section.section.memory_bytes();
            }
            stays
        });
    }
}

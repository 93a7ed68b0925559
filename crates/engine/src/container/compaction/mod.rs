//! Packs what is still needed of containers into new objects (docs/format/v1.md, §6 and §7).
//!
//! Enter: logical containers, each with the slots to keep ([`SlotSet`]). Leave: new container objects, durable, that hold
//! their sections under the same ids and slot numbers, with gaps where chunks were dropped; and where each
//! container lies now, for a [`Remap`](super::Remap). Until that is stored nothing refers to the new objects, and the old ones
//! are never touched: whatever ends a compaction leaves everything as it was.
//!
//! Chunks keep their fingerprints, lengths, markers, features and deltas: the addresses of bases stay. Objects are
//! of one kind, and at most as long as a container; what takes more becomes two sections. In encrypted repositories they
//! are padded as those of a backup are. How groups are kept or made again is said in `gathering.rs`, how equal chunks of
//! several containers are stored once in `merging.rs`.
//!
//! Memory: the kept groups of one container, a read, two open objects of each kind that occurs, and for containers of deltas
//! the reader's cache for their bases.

mod gathering;
mod merging;
mod object;
mod slot_set;

pub use merging::MergedSlots;
pub use slot_set::SlotSet;

use std::collections::HashMap;
use std::sync::Arc;

use gathering::Sources;
use object::OpenObject;

use super::compression::{Compressor, Decompressor};
use super::reader::LoadedSection;
use super::{ChunkAddress, ContainerId, ContainerKind, Slot};
use crate::engine::Engine;
use crate::format::ObjectError;
use crate::object::{ObjectId, ObjectKey};
use crate::restore::{ReadError, Reader, StoredChunk};

/// Why a compaction ended. Nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum CompactionError {
    /// A chunk can't be read, or is not what was stored.
    #[error("cannot move the chunk in {chunk}, which lies in {object}: {error}")]
    Chunk {
        /// Its slot and logical container.
        chunk: ChunkAddress,
        /// The object that it lies in.
        object: ObjectKey,
        /// What is wrong.
        error: Box<ReadError>,
    },
    /// No object has a chunk that is to be kept.
    #[error("there is no chunk in {chunk}")]
    Missing {
        /// Its slot and logical container.
        chunk: ChunkAddress,
    },
    /// A container's metadata can't be read.
    #[error("cannot move container {container}: {error}")]
    Container {
        /// The logical container.
        container: ContainerId,
        /// What is wrong.
        error: ObjectError,
    },
    /// A single chunk takes more than an object may have: not where it was written by a backup with the same settings.
    #[error("a chunk of container {container} takes more than a container may have")]
    TooLarge {
        /// The logical container.
        container: ContainerId,
    },
    /// Two chunks that were taken for the same are not.
    #[error("the chunks in {one} and {other} were to be stored as one, and differ")]
    Differ {
        /// One of them.
        one: ChunkAddress,
        /// The other.
        other: ChunkAddress,
    },
    /// The store can't be read or written.
    #[error(transparent)]
    Store(#[from] ObjectError),
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionTotals {
    /// Logical containers of which something was kept.
    pub containers: u64,
    /// Objects written.
    pub objects: u64,
    /// Bytes of groups read, with what lay between them; metadata and bases of deltas not counted.
    pub bytes_read: u64,
    /// Bytes of the objects written.
    pub bytes_written: u64,
    /// Chunks kept.
    pub chunks_kept: u64,
    /// Other chunks of these containers: they are not in the new objects.
    pub chunks_dropped: u64,
    /// Groups that were not compressed again.
    pub groups_kept: u64,
    /// Groups that were compressed.
    pub groups_made: u64,
}

/// What was moved, and nothing refers to yet.
#[derive(Debug, Clone, Default)]
#[must_use = "the remap is to be stored"]
pub struct Compacted {
    /// Where each container lies now, ascending by container; only those of which something was kept. One of which
    /// something was merged may lie in several objects.
    pub moved: Vec<(ContainerId, ObjectId)>,
    /// What was done.
    pub totals: CompactionTotals,
}

/// Open objects of a kind: what is left of one container may lie in two.
const OPEN_MAX: usize = 2;

/// Packs containers into new objects.
pub struct Compactor {
    engine: Engine,
    reader: Reader,
    compressor: Compressor,
    decompressor: Decompressor,
    /// At most [`OPEN_MAX`] of each kind.
    open: Vec<OpenObject>,
    moved: Vec<(ContainerId, ObjectId)>,
    totals: CompactionTotals,
    /// Are chunks kept that are stored as deltas, although what they are made of can't be had?
    keeps_orphans: bool,
    /// Slots that are damaged where they lie, by container and object.
    damaged: HashMap<(ContainerId, ObjectId), SlotSet>,
}

impl std::fmt::Debug for Compactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compactor")
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// What packs containers of this repository into new objects. Reads the remaps now.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn compactor(&self) -> Result<Compactor, ObjectError> {
        Ok(Compactor {
            engine: self.clone(),
            reader: self.reader()?,
            compressor: Compressor::new(self.settings().compression.level()),
            decompressor: Decompressor::default(),
            open: Vec::new(),
            moved: Vec::new(),
            totals: CompactionTotals::default(),
            keeps_orphans: false,
            damaged: HashMap::new(),
        })
    }

    /// Stores a remap of what was moved, durably: from then on readers find it in the new objects. Nothing is stored
    /// when nothing was moved. Where containers are to be deleted a remap must be there before, if of nothing:
    /// [`Engine::store_remap`].
    ///
    /// # Errors
    /// When the remaps can't be read or the store does not take it.
    pub fn store_moved(&self, compacted: &Compacted) -> Result<Option<ObjectId>, ObjectError> {
        match compacted.moved.is_empty() {
            true => Ok(None),
            false => Ok(Some(self.store_remap(compacted.moved.clone())?)),
        }
    }

    /// Stores a remap, durably, of a higher generation than all that there are, or several where containers lie in
    /// several objects, and returns the last. One of nothing says that containers may have been deleted.
    ///
    /// # Errors
    /// As [`Engine::store_moved`].
    pub fn store_remap(
        &self,
        mut moved: Vec<(ContainerId, ObjectId)>,
    ) -> Result<ObjectId, ObjectError> {
        let (store, vault) = (self.store().as_ref(), self.vault());
        moved.sort_unstable();
        // A remap names a container once.
        let mut rounds: Vec<Vec<(ContainerId, ObjectId)>> = vec![Vec::new()];
        for places in moved.chunk_by(|one, other| one.0 == other.0) {
            for (round, place) in places.iter().enumerate() {
                if rounds.len() == round {
                    rounds.push(Vec::new());
                }
                rounds[round].push(*place);
            }
        }
        let mut remaps = super::RemapSet::load(store, vault)?;
        let mut last = None;
        for round in rounds {
            let remap = remaps.next(round);
            last = Some(remap.store(store, vault)?);
            remaps.merge(&remap);
        }
        Ok(last.expect("there is one round at least"))
    }
}

impl Compactor {
    /// What it reads by.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What was done so far; objects that are still open are not counted as written.
    #[must_use]
    pub fn totals(&self) -> CompactionTotals {
        self.totals
    }

    /// From now on chunks stored as deltas are kept even where what they are made of is lost: their own bytes are
    /// whole, and a base may be brought back. For repairs.
    pub fn keep_orphans(&mut self) {
        self.keeps_orphans = true;
    }

    /// Takes these slots of a container from other places than that object, for they are damaged there.
    pub fn pass_over(&mut self, container: ContainerId, object: ObjectId, slots: SlotSet) {
        self.damaged.insert((container, object), slots);
    }

    fn is_damaged(&self, container: ContainerId, object: ObjectId, slot: Slot) -> bool {
        let slots = self.damaged.get(&(container, object));
        slots.is_some_and(|slots| slots.contains(slot))
    }

    /// Keeps these slots of a container, in a new object; of one of which nothing is to be kept nothing is read or
    /// written.
    /// Blocks. Each container may come once; after an error the compaction must not go on.
    ///
    /// # Errors
    /// When one of the slots is in no object, can't be read or does not have its fingerprint, or an object can't be
    /// written.
    pub fn keep(&mut self, container: ContainerId, slots: &SlotSet) -> Result<(), CompactionError> {
        if slots.is_empty() {
            return Ok(());
        }
        let sources = Sources::find(self, container, slots)?;
        let mut dropped = sources.dropped(slots);
        let whole_groups = sources.whole_groups(self);
        let mut gathered = sources.gather(self)?;
        let empty = self.new_object(gathered.section.kind);
        if !empty.has_room(&gathered) && gathered.section.kind == ContainerKind::Deltas {
            // Whole groups would bring back deltas whose bases go.
            return self.keep_in_two(container, slots);
        }
        if !empty.has_room(&gathered) {
            // Compressed again it takes more than before. Then groups stay whole, with what is not needed.
            let sources = Sources::find(self, container, &whole_groups)?;
            dropped = sources.dropped(&whole_groups);
            gathered = sources.gather(self)?;
            if !empty.has_room(&gathered) {
                return self.keep_in_two(container, slots);
            }
        }
        self.totals.containers += 1;
        self.totals.chunks_kept += gathered.section.chunk_count() as u64;
        self.totals.chunks_dropped += dropped;
        let kind = gathered.section.kind;
        let takes = |open: &OpenObject| {
            open.kind == kind && open.has_room(&gathered) && !open.holds(container)
        };
        let mut object = match self.open.iter().position(takes) {
            Some(at) => self.open.swap_remove(at),
            None => {
                self.close_fullest(kind)?;
                empty
            }
        };
        let id = object.push(gathered);
        self.moved.push((container, id));
        self.open.push(object);
        Ok(())
    }

    /// Writes the fullest of the open objects of a kind, if there are as many as may be.
    fn close_fullest(&mut self, kind: ContainerKind) -> Result<(), ObjectError> {
        let of_kind = || (0..self.open.len()).filter(|&at| self.open[at].kind == kind);
        if of_kind().count() < OPEN_MAX {
            return Ok(());
        }
        match of_kind().max_by_key(|&at| self.open[at].data_bytes()) {
            Some(at) => {
                let fullest = self.open.swap_remove(at);
                self.put(fullest, false)
            }
            None => Ok(()),
        }
    }

    /// Keeps slots that take more than an object may have: groups that were cut short, when chunks of several
    /// containers were merged, compress less well than those of a backup did.
    fn keep_in_two(
        &mut self,
        container: ContainerId,
        slots: &SlotSet,
    ) -> Result<(), CompactionError> {
        let half = slots.len() / 2;
        if half == 0 {
            return Err(CompactionError::TooLarge { container });
        }
        self.keep(container, &slots.iter().take(half).collect())?;
        self.keep(container, &slots.iter().skip(half).collect())
    }

    /// Writes what is still open. Durable on return.
    ///
    /// # Errors
    /// When an object can't be written.
    pub fn finish(mut self) -> Result<Compacted, CompactionError> {
        let mut open = std::mem::take(&mut self.open);
        open.sort_by_key(|object| (object.kind as u8, object.data_bytes()));
        let mut before = None;
        for object in open {
            // Of each kind one may be shorter: the emptiest.
            let is_last = before.replace(object.kind) != Some(object.kind);
            self.put(object, is_last)?;
        }
        self.moved.sort_unstable();
        Ok(Compacted {
            moved: self.moved,
            totals: self.totals,
        })
    }

    fn new_object(&self, kind: ContainerKind) -> OpenObject {
        let settings = self.engine.settings();
        let bytes = match kind {
            ContainerKind::Metadata => settings.metadata_container_bytes(),
            ContainerKind::Data | ContainerKind::Deltas => settings.container_bytes,
        };
        OpenObject::new(self.engine.vault(), kind, bytes as usize)
    }

    fn put(&mut self, object: OpenObject, is_last: bool) -> Result<(), ObjectError> {
        let (key, bytes) = object.finish(is_last);
        self.engine.store().put(&key, &bytes)?;
        self.totals.objects += 1;
        self.totals.bytes_written += bytes.len() as u64;
        Ok(())
    }

    /// Plain bytes at which a group of that kind is closed.
    fn group_bytes(&self, kind: ContainerKind) -> usize {
        let settings = self.engine.settings();
        let bytes = match kind {
            ContainerKind::Metadata => settings.metadata_group_bytes(),
            ContainerKind::Data | ContainerKind::Deltas => settings.group_bytes,
        };
        bytes as usize
    }

    /// Compares a chunk with its fingerprint, where `stored` is what is stored of it.
    fn verify(
        &self,
        loaded: &Arc<LoadedSection>,
        chunk: usize,
        stored: &[u8],
    ) -> Result<(), ReadError> {
        let containers = self.reader.containers();
        let Some(delta) = loaded.section.delta(chunk) else {
            return Ok(containers.verify_chunk(loaded, chunk, stored)?);
        };
        let address = loaded.section.address(chunk);
        let stored_chunk = StoredChunk {
            loaded: Arc::clone(loaded),
            chunk,
        };
        let base = stored_chunk.base(containers, delta);
        let base = base.and_then(|_| {
            let base = self.reader.chunk(delta.base);
            base.map_err(|error| ReadError::base(address, delta.base, error))
        });
        let base = match base {
            // Its base may be made good some day: what there is of the chunk must not go.
            Err(error) if self.keeps_orphans && error.is_damage() => return Ok(()),
            base => base?,
        };
        let made = self.reader.undelta(&stored_chunk, &base, stored)?;
        Ok(containers.verify_chunk(loaded, chunk, &made)?)
    }
}

//! Containers: objects that hold groups of chunks and the metadata to find them
//! (docs/format/v1.md, §6; MACS, §III-B).
//!
//! [`ContainerBuilder`] puts groups in until the container is full (Eq. 4) and seals it;
//! [`ContainerReader`] finds the metadata of a container, wherever its remap says it lies,
//! and reads groups out of it; [`Compactor`] packs what is still needed into new objects; [`RemapSet`] knows what was
//! moved.

mod builder;
mod compaction;
mod compression;
mod delta_columns;
mod group_column;
mod groups;
mod metadata;
mod places;
mod reader;
mod remap;
mod verify;

pub use builder::{ContainerBuilder, MetadataCount, NewChunk, SealedContainer};
pub use compaction::{
    Compacted, CompactionError, CompactionTotals, Compactor, MergedSlots, SlotSet,
};
pub use compression::{
    Compression, CompressionChoice, CompressionLevel, Compressor, Decompressor, FrontDecompressor,
    decompress,
};
pub use delta_columns::{DELTA_DEPTH_MAX, Delta, DeltaMethod, Features, SUPER_FEATURES_MAX};
pub(crate) use groups::READ_BYTES_MAX;
pub use groups::{ChunkPlaces, GroupOpener, GroupRead};
pub use metadata::{CHUNK_BYTES_MAX, GROUP_BYTES_MAX, Group, ObjectMetadata, SLOTS_MAX, Section};
pub use places::{FoundFront, SectionPlace};
pub use reader::{ContainerReader, ContainerSummary, LoadedSection, MetadataReads, PADDING_PIECE};
pub use remap::{ReadableRemaps, Remap, RemapSet};
pub use verify::{
    Examined, ExaminedSection, FetchedGroups, FetchedObject, GroupChoice, SampleRead,
};

use std::fmt;

use crate::object::{ObjectId, ObjectKey, ObjectKind};

/// The id of a *logical* container: what recipes and the index name. Which object it lies in
/// is decided by the remaps; without one, the object of the same id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerId(pub ObjectId);

impl ContainerId {
    /// A new random id.
    #[must_use]
    pub fn random() -> Self {
        Self(ObjectId::random())
    }

    /// The object that holds this container unless a remap says otherwise.
    #[must_use]
    pub fn own_object(self) -> ObjectKey {
        ObjectKey::new(ObjectKind::Container, self.0)
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContainerId({})", self.0)
    }
}

/// A chunk's number in its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u16);

/// Where a chunk lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkAddress {
    /// Its logical container.
    pub container: ContainerId,
    /// Its number there.
    pub slot: Slot,
}

impl fmt::Display for ChunkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slot(slot) = self.slot;
        write!(f, "slot {slot} of container {}", self.container)
    }
}

impl ChunkAddress {
    /// Stands where an address is not known yet.
    pub(crate) const UNKNOWN: Self = Self {
        container: ContainerId(ObjectId([0; 16])),
        slot: Slot(0),
    };
}

/// What the chunks of a container are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ContainerKind {
    /// Contents of files and streams.
    Data = 1,
    /// Directory pages and pages of long recipes.
    Metadata = 2,
    /// Contents of files and streams, mostly as deltas to chunks elsewhere.
    Deltas = 3,
}

impl ContainerKind {
    /// The kind of that stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Data),
            2 => Some(Self::Metadata),
            3 => Some(Self::Deltas),
            _ => None,
        }
    }
}

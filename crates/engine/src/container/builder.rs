//! Builds one container object (MACS, §III-B; docs/format/v1.md, §6).
//!
//! Compressed groups go in at the front; the metadata grows with them and goes in at the end,
//! so that the boundary between the two is decided by what arrives. Eq. 4, applied to
//! compressed groups, says whether one more fits.

use std::collections::HashSet;
use std::sync::Arc;

use super::delta_columns::{Delta, Features};
use super::metadata::{Group, ObjectMetadata, SLOTS_MAX, Section};
use super::{Compression, ContainerId, ContainerKind, PADDING_PIECE, Slot};
use crate::fingerprint::Fingerprint;
use crate::format::{LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES, Vault, padme, varint_bytes};
use crate::object::ObjectKey;

/// Metadata bytes of a section apart from its groups and chunks, at most: version, section
/// count, id, kind, column heads, the run of slots, the seal's tag.
const SECTION_BYTES_MAX: usize = 1 + 3 + 16 + 1 + 5 + 8 * 6 + 6 + 2 + SEAL_TAG_BYTES;

/// Metadata bytes of a delta, at most, beside those of its base's container: number of the base, stored
/// bytes, method and depth; the base's slot.
const DELTA_ENTRY_BYTES_MAX: usize = 3 + 4 + 1 + 3;

/// Metadata bytes of a container of bases, at most.
const FOREIGN_ENTRY_BYTES_MAX: usize = 16 + 3;

/// A chunk on its way into a container.
#[derive(Debug, Clone)]
pub struct NewChunk {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Its length in bytes.
    pub length: u32,
    /// How it is stored, if not whole.
    pub delta: Option<Delta>,
    /// Its super-features, if it may be a base.
    pub features: Vec<u32>,
    /// Its last byte, which containers with markers keep.
    pub last_byte: u8,
}

impl NewChunk {
    /// A chunk that is stored whole and is no base.
    #[must_use]
    pub fn whole(fingerprint: Fingerprint, length: u32) -> Self {
        Self {
            fingerprint,
            length,
            delta: None,
            features: Vec::new(),
            last_byte: 0,
        }
    }

    /// Bytes that it has in its group's plaintext.
    #[must_use]
    pub fn stored_bytes(&self) -> u32 {
        self.delta.map_or(self.length, |delta| delta.stored_bytes)
    }
}

/// Adds up what chunks would add to the metadata of a container.
#[derive(Debug)]
pub struct MetadataCount<'a> {
    builder: &'a ContainerBuilder,
    new_foreign: HashSet<ContainerId>,
    chunks: usize,
    bytes: usize,
}

impl MetadataCount<'_> {
    /// Counts one more chunk.
    pub fn add(&mut self, chunk: &NewChunk) {
        self.chunks += 1;
        self.bytes += ContainerBuilder::chunk_metadata_bytes(chunk.length)
            + chunk.features.len() * size_of::<u32>();
        if self.builder.section.kind == ContainerKind::Deltas {
            self.bytes += 1;
        }
        if let Some(delta) = chunk.delta {
            self.bytes += DELTA_ENTRY_BYTES_MAX;
            let container = delta.base.container;
            if !self.builder.foreign.contains(&container) && self.new_foreign.insert(container) {
                self.bytes += FOREIGN_ENTRY_BYTES_MAX;
            }
        }
    }

    /// How many bytes a group of these chunks may have before sealing; 0 when there is no room.
    #[must_use]
    pub fn group_room(&self) -> usize {
        self.builder.group_room(self.chunks, self.bytes)
    }
}

/// Metadata bytes of a group, at most.
const GROUP_ENTRY_BYTES_MAX: usize = 5 + 1 + 3;

/// A container under construction.
#[derive(Debug)]
pub struct ContainerBuilder {
    sealer: ObjectSealer,
    padded: bool,
    container_bytes: usize,
    data: Vec<u8>,
    chunk_metadata_bytes: usize,
    has_markers: bool,
    /// Containers of bases.
    foreign: HashSet<ContainerId>,
    /// The metadata region's length where it is fixed.
    metadata_region_bytes: Option<usize>,
    section: Section,
}

/// A finished container: what to store, and what its metadata says.
#[derive(Debug)]
pub struct SealedContainer {
    /// The object's key.
    pub key: ObjectKey,
    /// The object's bytes.
    pub bytes: Vec<u8>,
    /// Its only section.
    pub section: Arc<Section>,
    /// Bytes of data, metadata and tag: the filling ratio is this over the container size.
    pub filled_bytes: u64,
    /// Bytes of the metadata region with its seal.
    pub metadata_bytes: u64,
}

impl ContainerBuilder {
    /// An empty container of a new random id; it will have at most `container_bytes` bytes.
    #[must_use]
    pub fn new(vault: &Vault, kind: ContainerKind, container_bytes: u32) -> Self {
        let id = ContainerId::random();
        Self {
            sealer: vault.new_object(id.own_object()),
            padded: vault.is_padded(),
            container_bytes: container_bytes as usize,
            data: Vec::new(),
            chunk_metadata_bytes: 0,
            has_markers: false,
            foreign: HashSet::new(),
            metadata_region_bytes: None,
            section: Section {
                id,
                kind,
                slots: Vec::new(),
                lengths: Vec::new(),
                fingerprints: Vec::new(),
                markers: Vec::new(),
                deltas: Vec::new(),
                features: Features::default(),
                groups: Vec::new(),
            },
        }
    }

    /// The same, which keeps the last byte of each chunk.
    #[must_use]
    pub fn with_markers(mut self) -> Self {
        self.has_markers = true;
        self
    }

    /// The same, which keeps so many super-features of each chunk that has any; 0 for none.
    #[must_use]
    pub fn with_features(mut self, per_chunk: usize) -> Self {
        self.section.features = Features::new(per_chunk);
        self
    }

    /// Begins to count what chunks would add to the metadata.
    #[must_use]
    pub fn count(&self) -> MetadataCount<'_> {
        MetadataCount {
            builder: self,
            new_foreign: HashSet::new(),
            chunks: 0,
            bytes: 0,
        }
    }

    /// Keeps so many bytes for the metadata, with its seal, and no more: the fixed boundary of
    /// schemes that are measured beside MACS. What was put in must fit. Without this, the boundary is
    /// decided by what arrives.
    pub fn fix_metadata_region(&mut self, bytes: usize) {
        self.metadata_region_bytes = Some(bytes);
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ContainerId {
        self.section.id
    }

    /// How many chunks are in it; the next one gets this slot.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.section.chunk_count()
    }

    /// Metadata bytes that a chunk of that length adds.
    #[must_use]
    pub fn chunk_metadata_bytes(length: u32) -> usize {
        varint_bytes(u64::from(length)) + Fingerprint::BYTES
    }

    /// How many bytes a group of `chunks` chunks, whose metadata takes `chunk_metadata_bytes`,
    /// may have before sealing (Eq. 4); 0 when there is no room.
    #[must_use]
    pub fn group_room(&self, chunks: usize, chunk_metadata_bytes: usize) -> usize {
        if self.chunk_count() + chunks > SLOTS_MAX {
            return 0;
        }
        let marker_bytes = match self.has_markers {
            true => self.chunk_count() + chunks,
            false => 0,
        };
        let feature_bits = match self.section.features.per_chunk() {
            0 => 0,
            _ => self.chunk_count() + chunks,
        };
        let metadata_bytes = SECTION_BYTES_MAX
            + marker_bytes
            + feature_bits.div_ceil(8)
            + (self.section.groups.len() + 1) * GROUP_ENTRY_BYTES_MAX
            + self.chunk_metadata_bytes
            + chunk_metadata_bytes;
        let region_bytes = match self.metadata_region_bytes {
            Some(fixed) if metadata_bytes > fixed => return 0,
            Some(fixed) => fixed,
            None => metadata_bytes,
        };
        self.container_bytes
            .saturating_sub(self.data.len() + SEAL_TAG_BYTES + region_bytes + LENGTH_TAG_BYTES)
    }

    /// Seals a group of whole chunks, given by fingerprint and length, and puts it in. `stored` is its
    /// plaintext under `compression`.
    ///
    /// # Panics
    /// When it does not fit: ask [`ContainerBuilder::group_room`] first.
    pub fn push_group(
        &mut self,
        stored: &[u8],
        compression: Compression,
        chunks: &[(Fingerprint, u32)],
    ) {
        let whole =
            |&(fingerprint, length): &(Fingerprint, u32)| NewChunk::whole(fingerprint, length);
        let chunks: Vec<_> = chunks.iter().map(whole).collect();
        self.push_chunks(stored, compression, &chunks);
    }

    /// Seals a group of chunks and puts it in. `stored` is its plaintext under `compression`.
    ///
    /// # Panics
    /// When it does not fit: ask [`MetadataCount::group_room`] first. When a chunk is a delta and this is
    /// no container of deltas.
    pub fn push_chunks(&mut self, stored: &[u8], compression: Compression, chunks: &[NewChunk]) {
        let mut count = self.count();
        chunks.iter().for_each(|chunk| count.add(chunk));
        let (room, entry_bytes) = (count.group_room(), count.bytes);
        self.foreign.extend(count.new_foreign);
        assert!(!chunks.is_empty() && stored.len() <= room, "a group fits");
        let number = self.section.groups.len() as u32;
        let offset = self.data.len();
        self.data.extend_from_slice(stored);
        self.sealer.seal(3 + number, &mut self.data, offset);
        let stored_bytes = |chunk: &NewChunk| u64::from(chunk.stored_bytes());
        self.section.groups.push(Group {
            offset: offset as u64,
            sealed_bytes: (stored.len() + SEAL_TAG_BYTES) as u32,
            compression,
            number,
            first_chunk: self.chunk_count() as u32,
            chunk_count: chunks.len() as u32,
            plain_bytes: chunks.iter().map(stored_bytes).sum(),
        });
        self.chunk_metadata_bytes += entry_bytes;
        for chunk in chunks {
            let section = &mut self.section;
            section.slots.push(Slot(section.slots.len() as u16));
            section.lengths.push(chunk.length);
            section.fingerprints.push(chunk.fingerprint);
            section.features.push(&chunk.features);
            if self.has_markers {
                section.markers.push(chunk.last_byte);
            }
            match section.kind {
                ContainerKind::Deltas => section.deltas.push(chunk.delta),
                _ => assert!(chunk.delta.is_none(), "deltas have containers of their own"),
            }
        }
    }

    /// Seals the metadata, pads, and ends the object with its length tag. The last container
    /// of a run is padded to a Padmé length, others to the container size; without
    /// encryption there is no padding.
    ///
    /// # Panics
    /// When it is empty.
    #[must_use]
    pub fn finish(self, is_last: bool) -> SealedContainer {
        assert!(self.chunk_count() > 0, "a container has chunks");
        let section = Arc::new(self.section);
        let metadata = ObjectMetadata {
            sections: vec![Section::clone(&section)],
        };
        let metadata = metadata.encode();
        let metadata_bytes = metadata.len() + SEAL_TAG_BYTES;
        let limit_bytes = self.padded.then_some(self.container_bytes);
        let closed = close_object(&self.sealer, self.data, metadata, limit_bytes, is_last);
        SealedContainer {
            key: section.id.own_object(),
            bytes: closed.bytes,
            section,
            filled_bytes: closed.filled_bytes as u64,
            metadata_bytes: metadata_bytes as u64,
        }
    }
}

/// A finished object.
pub(super) struct ClosedObject {
    pub bytes: Vec<u8>,
    /// Bytes of data, metadata and tag.
    pub filled_bytes: usize,
}

/// Puts padding, sealed metadata and the length tag behind sealed groups. Padded is to the container size, which is given
/// where there is padding; the last object of a run to a Padmé length.
pub(super) fn close_object(
    sealer: &ObjectSealer,
    data: Vec<u8>,
    mut metadata: Vec<u8>,
    container_bytes: Option<usize>,
    is_last: bool,
) -> ClosedObject {
    let mut bytes = data;
    let filled_bytes = bytes.len() + metadata.len() + SEAL_TAG_BYTES + LENGTH_TAG_BYTES;
    let object_bytes = match container_bytes {
        None => filled_bytes,
        Some(container_bytes) if is_last => {
            (padme(filled_bytes as u64) as usize).min(container_bytes)
        }
        Some(container_bytes) => container_bytes,
    };
    let padding_bytes = object_bytes - filled_bytes;
    if padding_bytes >= SEAL_TAG_BYTES {
        let start = bytes.len();
        bytes.resize(start + padding_bytes - SEAL_TAG_BYTES, 0);
        sealer.seal(PADDING_PIECE, &mut bytes, start);
    } else {
        metadata.resize(metadata.len() + padding_bytes, 0);
    }
    let start = bytes.len();
    bytes.extend_from_slice(&metadata);
    sealer.seal(1, &mut bytes, start);
    let tag = sealer.length_tag((bytes.len() - start) as u32);
    bytes.extend_from_slice(&tag);
    assert_eq!(
        bytes.len(),
        object_bytes,
        "the padding is what it should be"
    );
    ClosedObject {
        bytes,
        filled_bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use zeroize::Zeroizing;

    use super::*;
    use crate::object::ObjectId;

    fn builder() -> ContainerBuilder {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
        let vault = Vault::new(ObjectId([1; 16]), secrets, true);
        ContainerBuilder::new(&vault, ContainerKind::Data, 64 << 10)
    }

    #[test]
    fn a_fixed_metadata_region_bounds_data_and_entries() {
        let mut fixed = builder();
        fixed.fix_metadata_region(4096);
        let entry = ContainerBuilder::chunk_metadata_bytes(300);
        let fits = (4096 - SECTION_BYTES_MAX - GROUP_ENTRY_BYTES_MAX) / entry;
        let room = fixed.group_room(fits, fits * entry);
        assert_eq!(room, (64 << 10) - 4096 - SEAL_TAG_BYTES - LENGTH_TAG_BYTES);
        assert_eq!(fixed.group_room(fits + 1, (fits + 1) * entry), 0);
        assert!(builder().group_room(fits + 1, (fits + 1) * entry) > 0);
        let chunk = (Fingerprint([3; 32]), 300);
        fixed.push_group(&[5; 300], Compression::Stored, &[chunk]);
        assert_eq!(fixed.finish(false).bytes.len(), 64 << 10);
    }
}

//! One container object of several sections while it is filled.
//!
//! What it will take is known exactly: the sealed groups, the metadata as it will be stored, seals and tag. So a section
//! is put in if the object is at most as long as a container may be with it (Eq. 4).

use super::gathering::Gathered;
use crate::container::builder::close_object;
use crate::container::metadata::{ObjectMetadata, SLOTS_MAX, Section};
use crate::container::{ContainerId, ContainerKind};
use crate::format::{LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES, Vault, varint_bytes};
use crate::object::{ObjectId, ObjectKey, ObjectKind};

/// Most sections in an object.
const SECTIONS_MAX: usize = SLOTS_MAX;

/// An object of sections of one kind.
pub(super) struct OpenObject {
    key: ObjectKey,
    pub kind: ContainerKind,
    sealer: ObjectSealer,
    is_padded: bool,
    container_bytes: usize,
    /// Sealed groups.
    data: Vec<u8>,
    groups: u32,
    sections: Vec<Section>,
    /// Bytes of the sections in the metadata.
    section_bytes: usize,
}

/// Bytes that a section takes in the metadata of an object.
fn encoded_bytes(section: &Section) -> usize {
    let mut encoded = Vec::new();
    // It shares no groups.
    let mut next_group = section.groups.first().map_or(0, |group| group.number);
    section.encode(&mut next_group, &mut encoded);
    encoded.len()
}

/// Bytes of an object with so many bytes of sealed groups and of sections in its metadata.
pub(super) fn object_bytes(data_bytes: usize, sections: usize, section_bytes: usize) -> usize {
    let head_bytes = 1 + varint_bytes(sections as u64);
    data_bytes + head_bytes + section_bytes + SEAL_TAG_BYTES + LENGTH_TAG_BYTES
}

impl OpenObject {
    /// An empty one under a new random id, at most `container_bytes` long.
    pub fn new(vault: &Vault, kind: ContainerKind, container_bytes: usize) -> Self {
        let key = ObjectKey::new(ObjectKind::Container, ObjectId::random());
        Self {
            key,
            kind,
            sealer: vault.new_object(key),
            is_padded: vault.is_padded(),
            container_bytes,
            data: Vec::new(),
            groups: 0,
            sections: Vec::new(),
            section_bytes: 0,
        }
    }

    /// Is a section of that container in it?
    pub fn holds(&self, container: ContainerId) -> bool {
        self.sections.iter().any(|section| section.id == container)
    }

    /// Bytes of sealed groups in it.
    pub fn data_bytes(&self) -> usize {
        self.data.len()
    }

    /// Does that section fit?
    pub fn has_room(&self, gathered: &Gathered) -> bool {
        let Gathered { section, stored } = gathered;
        let data_bytes = self.data.len() + stored.len() + section.groups.len() * SEAL_TAG_BYTES;
        let section_bytes = self.section_bytes + encoded_bytes(section);
        let sections = self.sections.len() + 1;
        sections <= SECTIONS_MAX
            && object_bytes(data_bytes, sections, section_bytes) <= self.container_bytes
    }

    /// Seals the groups of a section and puts it in.
    ///
    /// # Panics
    /// When it does not fit.
    pub fn push(&mut self, gathered: Gathered) -> ObjectId {
        assert!(self.has_room(&gathered), "a section fits");
        let Gathered {
            mut section,
            stored,
        } = gathered;
        let mut rest = &stored[..];
        for group in &mut section.groups {
            let stored_bytes = group.sealed_bytes as usize - SEAL_TAG_BYTES;
            let (front, after) = rest.split_at(stored_bytes);
            rest = after;
            let offset = self.data.len();
            self.data.extend_from_slice(front);
            self.sealer.seal(3 + self.groups, &mut self.data, offset);
            (group.offset, group.number) = (offset as u64, self.groups);
            self.groups += 1;
        }
        self.section_bytes += encoded_bytes(&section);
        self.sections.push(section);
        self.key.id
    }

    /// Ends the object, padded as [`crate::container::ContainerBuilder::finish`] says. Its key and its bytes.
    pub fn finish(self, is_last: bool) -> (ObjectKey, Vec<u8>) {
        let length = object_bytes(self.data.len(), self.sections.len(), self.section_bytes);
        let sections = self.sections;
        let metadata = ObjectMetadata { sections }.encode();
        let limit_bytes = self.is_padded.then_some(self.container_bytes);
        let closed = close_object(&self.sealer, self.data, metadata, limit_bytes, is_last);
        assert_eq!(
            closed.filled_bytes, length,
            "the room was worked out exactly"
        );
        (self.key, closed.bytes)
    }
}

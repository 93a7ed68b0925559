//! Stores once what several containers have (docs/format/v1.md, §6, shared groups).
//!
//! Enter: classes of slots with equal chunks, stored whole, in containers of data. Leave: objects in which each chunk lies
//! once, in a group that the sections of all its containers name. Every container keeps its id and its slots. What would
//! make small groups, or does not lie in the same order everywhere, is passed over, and stays where it is.
//!
//! Memory: one open object and one group.

use std::collections::{BTreeMap, HashMap};

use super::object::object_bytes;
use super::{CompactionError, Compactor, SlotSet};
use crate::container::builder::close_object;
use crate::container::metadata::{Group, ObjectMetadata, Section};
use crate::container::{
    ChunkAddress, Compression, ContainerId, ContainerKind, Features, LoadedSection, Slot,
};
use crate::engine::Engine;
use crate::format::{ObjectSealer, SEAL_TAG_BYTES};
use crate::object::{ObjectId, ObjectKey, ObjectKind};

/// Equal chunks that would make a group of less than one part in so many of a full one are passed over.
const SMALL_SHARE: usize = 16;

/// A group takes at most one part in so many of a container: several sections name its chunks, and all must fit.
const GROUP_SHARE: usize = 4;

/// What was merged, by container: its slots that lie in the new objects.
pub type MergedSlots = HashMap<ContainerId, SlotSet>;

impl Compactor {
    /// Packs equal chunks into objects that hold each of them once. Each class is of slots of different containers,
    /// ascending, with equal chunks that are stored whole; the classes ascend by their first slots, and none comes twice.
    /// Returns what was merged; what was not is to be kept otherwise. Blocks; the objects are durable on return.
    ///
    /// # Errors
    /// When a chunk can't be read or is not what was stored, two of a class differ, or an object can't be written.
    pub fn merge(&mut self, classes: &[Vec<ChunkAddress>]) -> Result<MergedSlots, CompactionError> {
        let mut merged = MergedSlots::new();
        let mut object = MergedObject::new(&self.engine);
        let group_bytes_max = {
            let settings = self.engine.settings();
            (settings.group_bytes as usize).min(settings.container_bytes as usize / GROUP_SHARE)
        };
        let mut rest = classes;
        while !rest.is_empty() {
            let (group, count) = self.next_group(rest, group_bytes_max)?;
            rest = &rest[count..];
            if group.plain.len() < group_bytes_max / SMALL_SHARE {
                continue;
            }
            let sealed = self.compressed(&group.plain);
            if !object.has_room(&group, &sealed) && object.is_half_full() {
                let full = std::mem::replace(&mut object, MergedObject::new(&self.engine));
                self.put_merged(full, false)?;
            }
            if object.has_room(&group, &sealed) {
                for section in &group.sections {
                    let slots = merged.entry(section.id).or_default();
                    section.slots.iter().for_each(|&slot| {
                        slots.insert(slot);
                    });
                    self.totals.chunks_kept += section.slots.len() as u64;
                }
                self.totals.groups_made += 1;
                object.push(group, sealed);
            }
        }
        if object.groups > 0 {
            self.put_merged(object, true)?;
        }
        Ok(merged)
    }

    /// The group that the first of these classes make, and how many they are.
    fn next_group(
        &self,
        classes: &[Vec<ChunkAddress>],
        bytes_max: usize,
    ) -> Result<(SharedGroup, usize), CompactionError> {
        let mut group = SharedGroup::default();
        for (count, class) in classes.iter().enumerate() {
            let members = self.members(class)?;
            let length = members[0].0.section.lengths[members[0].1] as usize;
            if !group.takes(class) || (count > 0 && group.plain.len() + length > bytes_max) {
                return Ok((group, count));
            }
            let chunk_error = |error| CompactionError::Chunk {
                chunk: class[0],
                object: members[0].0.object,
                error: Box::new(error),
            };
            let bytes = self.reader.chunk(class[0]).map_err(chunk_error)?;
            group.push(&members, &bytes);
        }
        Ok((group, classes.len()))
    }

    /// Where the chunks of a class lie; all of them are the same.
    fn members(
        &self,
        class: &[ChunkAddress],
    ) -> Result<Vec<(std::sync::Arc<LoadedSection>, usize)>, CompactionError> {
        let containers = self.reader.containers();
        let mut members: Vec<(std::sync::Arc<LoadedSection>, usize)> = Vec::new();
        for &chunk in class {
            let container = chunk.container;
            let found = containers.find(chunk);
            let found = found.map_err(|error| CompactionError::Container { container, error })?;
            let (loaded, index) = found.ok_or(CompactionError::Missing { chunk })?;
            let section = &loaded.section;
            let is_whole = section.kind == ContainerKind::Data && section.delta(index).is_none();
            let is_same = members.first().is_none_or(|(first, at)| {
                first.section.fingerprints[*at] == section.fingerprints[index]
                    && first.section.lengths[*at] == section.lengths[index]
            });
            if !is_whole || !is_same {
                return Err(CompactionError::Differ {
                    one: class[0],
                    other: chunk,
                });
            }
            members.push((loaded, index));
        }
        Ok(members)
    }

    fn compressed(&mut self, plain: &[u8]) -> (Vec<u8>, Compression) {
        match self.compressor.compress(plain) {
            Some(compressed) => (compressed, Compression::Zstd),
            None => (plain.to_vec(), Compression::Stored),
        }
    }

    fn put_merged(&mut self, object: MergedObject, is_last: bool) -> Result<(), CompactionError> {
        let containers: Vec<ContainerId> = object.sections.keys().copied().collect();
        let (key, bytes) = object.finish(is_last);
        self.engine
            .store()
            .put(&key, &bytes)
            .map_err(crate::format::ObjectError::from)?;
        self.totals.objects += 1;
        self.totals.bytes_written += bytes.len() as u64;
        self.moved
            .extend(containers.into_iter().map(|container| (container, key.id)));
        Ok(())
    }
}

/// Chunks that the same containers have, in the same order, and what each of these says of them.
#[derive(Default)]
struct SharedGroup {
    plain: Vec<u8>,
    /// Ascending by container, each with the same number of chunks and without groups.
    sections: Vec<Section>,
}

impl SharedGroup {
    /// Are these slots of the same containers, behind those that are there?
    fn takes(&self, class: &[ChunkAddress]) -> bool {
        let follows = |(section, address): (&Section, &ChunkAddress)| {
            let last = section.slots.last();
            section.id == address.container && last.is_none_or(|&last| last < address.slot)
        };
        self.sections.is_empty()
            || (self.sections.len() == class.len() && self.sections.iter().zip(class).all(follows))
    }

    fn push(&mut self, members: &[(std::sync::Arc<LoadedSection>, usize)], bytes: &[u8]) {
        if self.sections.is_empty() {
            let empty = |(loaded, _): &(std::sync::Arc<LoadedSection>, usize)| Section {
                id: loaded.section.id,
                kind: ContainerKind::Data,
                slots: Vec::new(),
                lengths: Vec::new(),
                fingerprints: Vec::new(),
                markers: Vec::new(),
                deltas: Vec::new(),
                features: Features::new(loaded.section.features.per_chunk()),
                groups: Vec::new(),
            };
            self.sections = members.iter().map(empty).collect();
        }
        for (section, (loaded, chunk)) in self.sections.iter_mut().zip(members) {
            append(section, &loaded.section, *chunk);
        }
        self.plain.extend_from_slice(bytes);
    }
}

/// Appends what `from` says of a chunk.
fn append(section: &mut Section, from: &Section, chunk: usize) {
    section.slots.push(from.slots[chunk]);
    section.lengths.push(from.lengths[chunk]);
    section.fingerprints.push(from.fingerprints[chunk]);
    // Places of one container have markers all or none.
    section.markers.extend(from.markers.get(chunk));
    let is_same = from.features.per_chunk() == section.features.per_chunk();
    let features = from.features.of(chunk).unwrap_or_default();
    section.features.push(if is_same { features } else { &[] });
}

/// An object of sections that share groups, while it is filled.
struct MergedObject {
    key: ObjectKey,
    sealer: ObjectSealer,
    is_padded: bool,
    container_bytes: usize,
    data: Vec<u8>,
    groups: u32,
    /// In the order in which they are stored, so that the first container of a class is the one that names
    /// the group first.
    sections: BTreeMap<ContainerId, Section>,
}

impl MergedObject {
    fn new(engine: &Engine) -> Self {
        let vault = engine.vault();
        let key = ObjectKey::new(ObjectKind::Container, ObjectId::random());
        Self {
            key,
            sealer: vault.new_object(key),
            is_padded: vault.is_padded(),
            container_bytes: engine.settings().container_bytes as usize,
            data: Vec::new(),
            groups: 0,
            sections: BTreeMap::new(),
        }
    }

    fn is_half_full(&self) -> bool {
        self.data.len() >= self.container_bytes / 2
    }

    /// Does a group fit, and come its slots behind those of each container that are there?
    fn has_room(&self, group: &SharedGroup, (stored, _): &(Vec<u8>, Compression)) -> bool {
        let comes_behind = |new: &Section| {
            let last = self
                .sections
                .get(&new.id)
                .and_then(|section| section.slots.last());
            last.is_none_or(|&last: &Slot| new.slots.first().is_some_and(|&first| last < first))
        };
        if !group.sections.iter().all(comes_behind) {
            return false;
        }
        let mut sections = self.sections.clone();
        self.put_in(&mut sections, group, stored.len(), Compression::Stored);
        let data_bytes = self.data.len() + stored.len() + SEAL_TAG_BYTES;
        let (mut encoded, mut next_group) = (Vec::new(), 0);
        for section in sections.values() {
            section.encode(&mut next_group, &mut encoded);
        }
        object_bytes(data_bytes, sections.len(), encoded.len()) <= self.container_bytes
    }

    /// Puts a group's chunks into sections.
    fn put_in(
        &self,
        sections: &mut BTreeMap<ContainerId, Section>,
        group: &SharedGroup,
        stored_bytes: usize,
        compression: Compression,
    ) {
        for new in &group.sections {
            let section = sections.entry(new.id).or_insert_with(|| Section {
                slots: Vec::new(),
                lengths: Vec::new(),
                fingerprints: Vec::new(),
                markers: Vec::new(),
                features: Features::new(new.features.per_chunk()),
                ..new.clone()
            });
            section.groups.push(Group {
                offset: self.data.len() as u64,
                sealed_bytes: (stored_bytes + SEAL_TAG_BYTES) as u32,
                compression,
                number: self.groups,
                first_chunk: section.slots.len() as u32,
                chunk_count: new.slots.len() as u32,
                plain_bytes: group.plain.len() as u64,
            });
            (0..new.slots.len()).for_each(|chunk| append(section, new, chunk));
        }
    }

    /// Seals a group and puts it in, which fits.
    fn push(&mut self, group: SharedGroup, (stored, compression): (Vec<u8>, Compression)) {
        let mut sections = std::mem::take(&mut self.sections);
        self.put_in(&mut sections, &group, stored.len(), compression);
        self.sections = sections;
        let offset = self.data.len();
        self.data.extend_from_slice(&stored);
        self.sealer.seal(3 + self.groups, &mut self.data, offset);
        self.groups += 1;
    }

    /// Ends the object: its key and its bytes.
    fn finish(self, is_last: bool) -> (ObjectKey, Vec<u8>) {
        let sections = self.sections.into_values().collect();
        let metadata = ObjectMetadata { sections }.encode();
        let limit_bytes = self.is_padded.then_some(self.container_bytes);
        let closed = close_object(&self.sealer, self.data, metadata, limit_bytes, is_last);
        (self.key, closed.bytes)
    }
}

//! The metadata region of a container object: its sections, their groups and chunks
//! (docs/format/v1.md, §6).
//!
//! A section is one logical container: chunks with explicit slot numbers, which lie in groups.
//! An object written by a backup has one section; compaction may pack several, with gaps in
//! their slot numbers.

use super::delta_columns::{
    Delta, Features, decode_deltas, decode_foreign, encode_deltas, encode_foreign,
};
use super::group_column::{EarlierGroups, decode_groups, encode_groups};
use super::{ChunkAddress, Compression, ContainerId, ContainerKind, Slot};
use crate::fingerprint::Fingerprint;
use crate::format::{DecodeError, Decoder, FieldList, FieldWriter, put_varint};
use crate::object::ObjectId;

/// Version of the metadata region.
const METADATA_VERSION: u8 = 1;

/// Most chunks (and slot numbers) in a logical container.
pub const SLOTS_MAX: usize = 65_535;

/// Most bytes in a chunk.
pub const CHUNK_BYTES_MAX: u32 = 16 << 20;

/// Most bytes in the plaintext of a group.
pub const GROUP_BYTES_MAX: u64 = 32 << 20;

/// Column tags of a section.
mod column {
    pub const FOREIGN: u64 = 1;
    pub const SLOTS: u64 = 3;
    pub const GROUPS: u64 = 5;
    pub const LENGTHS: u64 = 7;
    pub const MARKERS: u64 = 8;
    pub const FINGERPRINTS: u64 = 9;
    pub const DELTAS: u64 = 11;
    pub const FEATURES: u64 = 12;
}

/// Consecutive chunks that are compressed and sealed as one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Where its sealed bytes begin in the object.
    pub offset: u64,
    /// Length of its sealed bytes, with the seal's tag.
    pub sealed_bytes: u32,
    /// How its plaintext is stored.
    pub compression: Compression,
    /// Number of the group in the object (its piece number is 3 more).
    pub number: u32,
    /// Index in the section of its first chunk.
    pub first_chunk: u32,
    /// How many chunks, at least one.
    pub chunk_count: u32,
    /// Bytes of its plaintext: of chunks, and of deltas that stand for chunks.
    pub plain_bytes: u64,
}

/// One logical container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its id.
    pub id: ContainerId,
    /// What its chunks are.
    pub kind: ContainerKind,
    /// Slot of each chunk, ascending.
    pub slots: Vec<Slot>,
    /// Length of each chunk in bytes.
    pub lengths: Vec<u32>,
    /// Fingerprint of each chunk.
    pub fingerprints: Vec<Fingerprint>,
    /// Last byte of each chunk, or empty: for RapidCDC's marker test.
    pub markers: Vec<u8>,
    /// How chunks are stored that are not stored whole; empty but for containers of deltas, which have
    /// an entry a chunk.
    pub deltas: Vec<Option<Delta>>,
    /// Super-features of the chunks that may be bases of deltas.
    pub features: Features,
    /// The groups, in order; together they hold all the chunks.
    pub groups: Vec<Group>,
}

impl Section {
    /// How many chunks it has.
    #[must_use]
    pub fn chunk_count(&self) -> usize {
        self.slots.len()
    }

    /// Where the chunk of that index lies.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn address(&self, chunk: usize) -> ChunkAddress {
        ChunkAddress {
            container: self.id,
            slot: self.slots[chunk],
        }
    }

    /// How the chunk of that index is stored, if it is not stored whole.
    #[must_use]
    pub fn delta(&self, chunk: usize) -> Option<&Delta> {
        self.deltas.get(chunk)?.as_ref()
    }

    /// Bytes that the chunk of that index has in its group's plaintext.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn stored_bytes(&self, chunk: usize) -> u32 {
        match self.delta(chunk) {
            Some(delta) => delta.stored_bytes,
            None => self.lengths[chunk],
        }
    }

    /// The index of the chunk in `slot`, if there is one.
    #[must_use]
    pub fn chunk_in(&self, slot: Slot) -> Option<usize> {
        let guess = usize::from(slot.0);
        if self.slots.get(guess) == Some(&slot) {
            return Some(guess);
        }
        self.slots.binary_search(&slot).ok()
    }

    /// The indices of the chunks in `count` consecutive slots from `first`, if all are there.
    #[must_use]
    pub fn chunks_in(&self, first: Slot, count: u32) -> Option<std::ops::Range<usize>> {
        let start = self.chunk_in(first)?;
        let end = start.checked_add(count as usize)?;
        let last = self.slots.get(end.checked_sub(1)?)?;
        (u32::from(last.0) == u32::from(first.0) + count - 1).then_some(start..end)
    }

    /// The index of the group that holds the chunk of that index.
    ///
    /// # Panics
    /// When there is no such chunk.
    #[must_use]
    pub fn group_of(&self, chunk: usize) -> usize {
        assert!(chunk < self.chunk_count(), "chunk {chunk} is there");
        self.groups
            .partition_point(|group| group.first_chunk as usize <= chunk)
            - 1
    }

    /// Bytes of memory it takes, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.slots.len() * (2 + 4 + Fingerprint::BYTES)
            + self.markers.len()
            + self.deltas.len() * size_of::<Option<Delta>>()
            + self.features.memory_bytes()
            + self.groups.len() * size_of::<Group>()
    }

    /// Appends the stored form. `next_group` is the number of the first group that no section before it has.
    pub(super) fn encode(&self, next_group: &mut u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.0);
        out.push(self.kind as u8);
        let mut columns = FieldWriter::new();
        if self.deltas.iter().any(Option::is_some) {
            columns.field(column::FOREIGN, |out| encode_foreign(&self.deltas, out));
        }
        columns.field(column::SLOTS, |out| encode_slots(&self.slots, out));
        columns.field(column::GROUPS, |out| {
            encode_groups(&self.groups, next_group, out)
        });
        columns.field(column::LENGTHS, |out| {
            for &length in &self.lengths {
                put_varint(out, u64::from(length));
            }
        });
        if !self.markers.is_empty() {
            columns.field(column::MARKERS, |out| out.extend_from_slice(&self.markers));
        }
        columns.field(column::FINGERPRINTS, |out| {
            for fingerprint in &self.fingerprints {
                out.extend_from_slice(&fingerprint.0);
            }
        });
        if self.kind == ContainerKind::Deltas {
            columns.field(column::DELTAS, |out| encode_deltas(&self.deltas, out));
        }
        if self.features.per_chunk() > 0 {
            columns.field(column::FEATURES, |out| self.features.encode(out));
        }
        let mut bytes = Vec::new();
        columns.finish(&mut bytes);
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(&bytes);
    }

    fn decode(decoder: &mut Decoder<'_>, earlier: &mut EarlierGroups) -> Result<Self, DecodeError> {
        let id = ContainerId(ObjectId(decoder.array()?));
        let number = decoder.u8()?;
        let kind = ContainerKind::from_number(number).ok_or_else(|| {
            DecodeError::new(format!(
                "a section of kind {number}, which this version does not know"
            ))
        })?;
        let columns = Columns::split(decoder.bytes()?)?;
        let slots = decode_slots(columns.slots)?;
        let lengths = decode_lengths(columns.lengths, slots.len())?;
        let fingerprints = decode_fingerprints(columns.fingerprints, slots.len())?;
        let markers = decode_markers(columns.markers, slots.len())?;
        let deltas = match (kind, columns.deltas) {
            (ContainerKind::Deltas, Some(bytes)) => {
                let bases = decode_foreign(columns.foreign)?;
                decode_deltas(bytes, &bases, id, &slots)?
            }
            (ContainerKind::Data | ContainerKind::Metadata, None) if columns.foreign.is_empty() => {
                Vec::new()
            }
            _ => {
                return Err(DecodeError::new(
                    "deltas are missing, or stand where none can be",
                ));
            }
        };
        let features = Features::decode(columns.features, slots.len())?;
        let groups = decode_groups(columns.groups, &lengths, &deltas, earlier)?;
        Ok(Self {
            id,
            kind,
            slots,
            lengths,
            fingerprints,
            markers,
            deltas,
            features,
            groups,
        })
    }
}

/// The columns of a section as stored.
#[derive(Default)]
struct Columns<'a> {
    slots: &'a [u8],
    groups: &'a [u8],
    lengths: &'a [u8],
    markers: &'a [u8],
    fingerprints: &'a [u8],
    foreign: &'a [u8],
    deltas: Option<&'a [u8]>,
    features: &'a [u8],
}

impl<'a> Columns<'a> {
    fn split(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut columns = Self::default();
        let mut fields = FieldList::new(bytes);
        while let Some(field) = fields.next_field()? {
            match field.tag {
                column::SLOTS => columns.slots = field.value,
                column::GROUPS => columns.groups = field.value,
                column::LENGTHS => columns.lengths = field.value,
                column::MARKERS => columns.markers = field.value,
                column::FINGERPRINTS => columns.fingerprints = field.value,
                column::FOREIGN => columns.foreign = field.value,
                column::DELTAS => columns.deltas = Some(field.value),
                column::FEATURES => columns.features = field.value,
                tag if tag % 2 == 0 => {}
                tag => {
                    return Err(DecodeError::new(format!(
                        "a section has the mandatory column {tag}, which this version does not know"
                    )));
                }
            }
        }
        Ok(columns)
    }
}

fn encode_slots(slots: &[Slot], out: &mut Vec<u8>) {
    let mut end = 0u32;
    for run in slots.chunk_by(|a, b| u32::from(a.0) + 1 == u32::from(b.0)) {
        let first = u32::from(run[0].0);
        put_varint(out, u64::from(first - end));
        put_varint(out, run.len() as u64);
        end = first + run.len() as u32;
    }
}

fn decode_slots(bytes: &[u8]) -> Result<Vec<Slot>, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let mut slots = Vec::new();
    let mut end = 0u64;
    while !decoder.is_empty() {
        let first = end + decoder.varint_at_most(SLOTS_MAX as u64, "a gap between slots")?;
        let count = decoder.varint_at_most(SLOTS_MAX as u64, "a run of slots")?;
        end = first + count;
        if count == 0 || end > SLOTS_MAX as u64 + 1 || slots.len() + count as usize > SLOTS_MAX {
            return Err(DecodeError::new(format!(
                "slots {first} to {end} are not possible"
            )));
        }
        slots.extend((first..end).map(|slot| Slot(slot as u16)));
    }
    Ok(slots)
}

fn decode_lengths(bytes: &[u8], count: usize) -> Result<Vec<u32>, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    if bytes.len() < count {
        return Err(DecodeError::new("chunk lengths are missing"));
    }
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        let length = decoder.varint_at_most(u64::from(CHUNK_BYTES_MAX), "a chunk's length")?;
        if length == 0 {
            return Err(DecodeError::new("a chunk is empty"));
        }
        lengths.push(length as u32);
    }
    decoder.finish()?;
    Ok(lengths)
}

fn decode_fingerprints(bytes: &[u8], count: usize) -> Result<Vec<Fingerprint>, DecodeError> {
    let (fingerprints, rest) = bytes.as_chunks::<{ Fingerprint::BYTES }>();
    if fingerprints.len() != count || !rest.is_empty() {
        return Err(DecodeError::new(format!(
            "{} bytes of fingerprints for {count} chunks",
            bytes.len()
        )));
    }
    Ok(fingerprints.iter().copied().map(Fingerprint).collect())
}

fn decode_markers(bytes: &[u8], count: usize) -> Result<Vec<u8>, DecodeError> {
    if !bytes.is_empty() && bytes.len() != count {
        return Err(DecodeError::new(format!(
            "{} last bytes for {count} chunks",
            bytes.len()
        )));
    }
    Ok(bytes.to_vec())
}

/// The metadata of a container object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// Its sections, in the order in which their groups lie. Sections of data may share groups.
    pub sections: Vec<Section>,
}

impl ObjectMetadata {
    /// The stored form, to be sealed; zero bytes may be appended to it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![METADATA_VERSION];
        put_varint(&mut out, self.sections.len() as u64);
        let mut next_group = 0;
        for section in &self.sections {
            section.encode(&mut next_group, &mut out);
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is not the metadata of a container.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let version = decoder.u8()?;
        if version != METADATA_VERSION {
            return Err(DecodeError::new(format!(
                "container metadata of version {version}, which this version does not know"
            )));
        }
        let count = decoder.count(ObjectId::BYTES + 2, "sections")?;
        if count == 0 {
            return Err(DecodeError::new("a container has no sections"));
        }
        let mut earlier = EarlierGroups::default();
        let mut sections = Vec::with_capacity(count);
        for _ in 0..count {
            sections.push(Section::decode(&mut decoder, &mut earlier)?);
        }
        decoder.finish_zero()?;
        Ok(Self { sections })
    }

    /// End of the data region: what the groups take.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.sections
            .iter()
            .flat_map(|section| section.groups.last())
            .map(|group| group.offset + u64::from(group.sealed_bytes))
            .max()
            .unwrap_or(0)
    }

    /// The section of that logical container.
    #[must_use]
    pub fn section(&self, id: ContainerId) -> Option<&Section> {
        self.sections.iter().find(|section| section.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where the next group lies.
    #[derive(Default)]
    struct Place {
        offset: u64,
        number: u32,
    }

    fn section(id: u8, gaps: &[(u16, u16)], per_group: usize, place: &mut Place) -> Section {
        let mut slots = Vec::new();
        let mut end = 0;
        for &(gap, count) in gaps {
            slots.extend((end + gap..end + gap + count).map(Slot));
            end += gap + count;
        }
        let lengths: Vec<u32> = (0..slots.len()).map(|i| 1 + 97 * i as u32).collect();
        let fingerprints = (0..slots.len())
            .map(|i| Fingerprint(*blake3::hash(&[id, i as u8]).as_bytes()))
            .collect();
        let count = slots.len();
        let mut groups = Vec::new();
        for first in (0..slots.len()).step_by(per_group) {
            let in_group = &lengths[first..(first + per_group).min(slots.len())];
            groups.push(Group {
                offset: place.offset,
                sealed_bytes: 100,
                compression: Compression::Zstd,
                number: place.number,
                first_chunk: first as u32,
                chunk_count: in_group.len() as u32,
                plain_bytes: in_group.iter().map(|&length| u64::from(length)).sum(),
            });
            place.offset += 100;
            place.number += 1;
        }
        Section {
            id: ContainerId(ObjectId([id; 16])),
            kind: ContainerKind::Data,
            slots,
            lengths,
            fingerprints,
            // Every other section, as repositories have them that need them.
            markers: markers_of(id, count),
            deltas: Vec::new(),
            features: Default::default(),
            groups,
        }
    }

    fn markers_of(id: u8, count: usize) -> Vec<u8> {
        let count = if id.is_multiple_of(2) { count } else { 0 };
        (0..count).map(|i| i as u8).collect()
    }

    fn sample() -> ObjectMetadata {
        let mut place = Place::default();
        ObjectMetadata {
            sections: vec![
                section(1, &[(0, 5)], 2, &mut place),
                section(2, &[(3, 2), (10, 4)], 3, &mut place),
            ],
        }
    }

    #[test]
    fn metadata_comes_back() {
        let metadata = sample();
        let mut bytes = metadata.encode();
        assert_eq!(ObjectMetadata::decode(&bytes).as_ref(), Ok(&metadata));
        bytes.extend([0; 15]);
        assert_eq!(ObjectMetadata::decode(&bytes).as_ref(), Ok(&metadata));
        bytes.push(1);
        assert!(ObjectMetadata::decode(&bytes).is_err());
        assert_eq!(metadata.data_bytes(), 500);
    }

    #[test]
    fn chunks_are_found_by_slot() {
        let metadata = sample();
        let gappy = &metadata.sections[1];
        assert_eq!(gappy.chunk_in(Slot(3)), Some(0));
        assert_eq!(gappy.chunk_in(Slot(15)), Some(2));
        assert_eq!(gappy.chunk_in(Slot(5)), None);
        assert_eq!(gappy.chunks_in(Slot(15), 4), Some(2..6));
        assert_eq!(gappy.chunks_in(Slot(4), 2), None);
        assert_eq!(gappy.chunks_in(Slot(15), 5), None);
        assert_eq!(gappy.chunks_in(Slot(15), 0), None);
        assert_eq!(gappy.group_of(2), 0);
        assert_eq!(gappy.group_of(3), 1);
    }

    #[test]
    fn cut_off_metadata_is_an_error() {
        let bytes = sample().encode();
        for end in 0..bytes.len() {
            assert!(ObjectMetadata::decode(&bytes[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn hostile_metadata_never_panics(place in 0usize..400, value: u8, more: Vec<u8>) {
            let mut bytes = sample().encode();
            let place = place % bytes.len();
            bytes[place] = value;
            let _ = ObjectMetadata::decode(&bytes);
            bytes.splice(place..place, more);
            let _ = ObjectMetadata::decode(&bytes);
        }
    }
}

//! The footer of an index run: what it holds and where (docs/format/v1.md, §11).
//!
//! A footer stays in memory while its run is open: 8 B a block and 24 B a container, about
//! 0.052 B an entry where containers hold 500 chunks. Beside its id stands how long a container's
//! sealed metadata is, so that it can be fetched in one read of the right length (MACS, §III-C: the
//! paper keeps these lengths for the containers of the last version; here all that an open run
//! names are there). And there stands its generation: of several copies of a chunk the one in the
//! container of the highest generation is the newest (`crate::rewriting`).
//!
//! Checked on reading: limits before anything is allocated, ascending containers and fences,
//! partitions that cover all blocks in order, and that everything together makes up exactly
//! the length of the object ([`Footer::check_layout`]).

use crate::container::ContainerId;
use crate::format::{
    DecodeError, Decoder, FieldList, FieldWriter, LENGTH_TAG_BYTES, SEAL_TAG_BYTES, UnknownFields,
    padme, put_varint,
};
use crate::object::ObjectId;

use super::block::BLOCK_BYTES;
use super::filter::{FilterShape, PARTITION_KEYS_MAX, PLANES};

/// Most partitions in a run that a reader accepts: a writer makes fewer even with little memory.
const PARTITIONS_MAX: usize = 1 << 16;

/// Most entries in one run: what a reader must be prepared to meet.
pub const RUN_ENTRIES_MAX: usize = 1 << 27;

/// Most containers in one run, those with and those without entries together.
pub(super) const RUN_CONTAINERS_MAX: usize = 1 << 20;

/// Longest footer that a reader accepts, sealed.
pub(super) const FOOTER_BYTES_MAX: u64 = 32 << 20;

/// Longest piece of padding but the last, sealed.
pub(super) const PADDING_PIECE_BYTES: u64 = 1 << 20;

/// Lengths of the sealed pieces that make up `padding_bytes`, none or at least 16: each but the last
/// has [`PADDING_PIECE_BYTES`], and the last leaves nothing that would be too short for a seal.
pub(super) fn padding_pieces(padding_bytes: u64) -> impl Iterator<Item = u64> {
    let mut left = padding_bytes;
    std::iter::from_fn(move || {
        let piece = match left {
            0 => return None,
            _ if left >= PADDING_PIECE_BYTES + SEAL_TAG_BYTES as u64 => PADDING_PIECE_BYTES,
            _ => left,
        };
        left -= piece;
        Some(piece)
    })
}

/// Consecutive blocks that share a filter. Its planes follow the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partition {
    /// The first of its blocks; the last is the one before the next partition's first.
    pub(super) first_block: u32,
    /// Entries in its blocks.
    pub(super) keys: u64,
    /// Of its filter.
    pub(super) shape: FilterShape,
}

impl Partition {
    /// Stored length of a plane of its filter.
    pub(super) fn plane_bytes(&self) -> u64 {
        self.shape.plane_bytes() + SEAL_TAG_BYTES as u64
    }
}

/// What a run holds and where.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    /// Number of entries.
    pub(super) entries: u64,
    /// The container of each number, ascending.
    pub(super) containers: Vec<ContainerId>,
    /// Of each container how long its metadata region is, sealed; 0 where nobody knows. All of them,
    /// or none at all.
    pub(super) metadata_bytes: Vec<u32>,
    /// Of each container its generation: higher than that of any container that was in the index
    /// when it came in; 0 where nobody knows. All of them, or none at all.
    pub(super) generations: Vec<u32>,
    /// First prefix of each block.
    pub(super) fences: Vec<u64>,
    /// The filters, in the order of their blocks.
    pub(super) partitions: Vec<Partition>,
    /// Containers that the run covers without an entry of their own, ascending.
    pub(super) covered: Vec<ContainerId>,
    /// Are there fields of a newer version? Such a run is read, and never merged.
    pub(super) has_unknown_fields: bool,
}

impl Footer {
    /// Appends the plaintext.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = FieldWriter::new();
        writer.field(1, |out| {
            put_varint(out, self.entries);
            put_varint(out, self.fences.len() as u64);
            put_varint(out, self.partitions.len() as u64);
        });
        writer.field(3, |out| put_ids(out, &self.containers));
        writer.field(5, |out| {
            out.extend(self.fences.iter().flat_map(|fence| fence.to_le_bytes()));
        });
        writer.field(7, |out| {
            for partition in &self.partitions {
                put_varint(out, u64::from(partition.first_block));
                put_varint(out, partition.keys);
                put_varint(out, u64::from(partition.shape.segment_bits));
                put_varint(out, u64::from(partition.shape.segments));
                put_varint(out, u64::from(partition.shape.seed));
            }
        });
        if !self.covered.is_empty() {
            writer.field(8, |out| put_ids(out, &self.covered));
        }
        if self.metadata_bytes.iter().any(|&bytes| bytes != 0) {
            writer.field(10, |out| put_numbers(out, &self.metadata_bytes));
        }
        if self.generations.iter().any(|&generation| generation != 0) {
            writer.field(12, |out| put_numbers(out, &self.generations));
        }
        writer.finish(out);
    }

    /// Reads the plaintext.
    ///
    /// # Errors
    /// When no writer would have written this.
    pub(super) fn decode(plain: &[u8]) -> Result<Self, DecodeError> {
        let mut footer = Self::default();
        let mut unknown = UnknownFields::default();
        let mut counts = None;
        let mut containers = None;
        let mut list = FieldList::new(plain);
        while let Some(field) = list.next_field()? {
            match field.tag {
                1 => counts = Some(Counts::decode(field.value)?),
                3 => containers = Some(ids(field.value)?),
                5 => footer.fences = fences(field.value)?,
                7 => footer.partitions = partitions(field.value)?,
                8 => footer.covered = ids(field.value)?,
                10 => footer.metadata_bytes = numbers(field.value)?,
                12 => footer.generations = numbers(field.value)?,
                _ => unknown.keep(field)?,
            }
        }
        let missing = |what| DecodeError::new(format!("it has no {what}"));
        let counts = counts.ok_or_else(|| missing("counts"))?;
        footer.containers = containers.ok_or_else(|| missing("table of containers"))?;
        footer.entries = counts.entries;
        footer.has_unknown_fields = !unknown.is_empty();
        if footer.containers.len() + footer.covered.len() > RUN_CONTAINERS_MAX {
            return Err(DecodeError::new("it has too many containers"));
        }
        let lengths = footer.metadata_bytes.len();
        if lengths != 0 && lengths != footer.containers.len() {
            return Err(DecodeError::new(
                "its lengths of metadata are not as many as its containers",
            ));
        }
        let generations = footer.generations.len();
        if generations != 0 && generations != footer.containers.len() {
            return Err(DecodeError::new(
                "its generations are not as many as its containers",
            ));
        }
        footer.check_partitions(&counts)?;
        Ok(footer)
    }

    fn check_partitions(&self, counts: &Counts) -> Result<(), DecodeError> {
        let blocks = self.fences.len() as u64;
        if blocks != counts.blocks || self.partitions.len() as u64 != counts.partitions {
            return Err(DecodeError::new("its counts are not those of its lists"));
        }
        if blocks > self.entries || (blocks == 0) != (self.entries == 0) {
            return Err(DecodeError::new("its blocks can't hold its entries"));
        }
        let mut next_block = 0;
        let mut keys = 0;
        for (index, partition) in self.partitions.iter().enumerate() {
            let expected = index == 0 || partition.first_block > next_block;
            if !expected || (index == 0 && partition.first_block != 0) {
                return Err(DecodeError::new(
                    "its partitions do not ascend from block 0",
                ));
            }
            next_block = partition.first_block;
            keys += partition.keys;
        }
        let in_range = self.partitions.is_empty() || u64::from(next_block) < blocks;
        if !in_range || keys != self.entries {
            return Err(DecodeError::new("its partitions do not cover its blocks"));
        }
        Ok(())
    }

    /// Bytes of all blocks and filters: where they end, from the object's start.
    pub(super) fn body_bytes(&self) -> u64 {
        let planes = self.partitions.iter().map(Partition::plane_bytes);
        (self.fences.len() * BLOCK_BYTES) as u64 + planes.sum::<u64>() * PLANES as u64
    }

    /// Where the blocks of each partition begin.
    pub(super) fn partition_offsets(&self) -> Vec<u64> {
        let mut planes_before = 0;
        self.partitions
            .iter()
            .map(|partition| {
                let offset = u64::from(partition.first_block) * BLOCK_BYTES as u64 + planes_before;
                planes_before += PLANES as u64 * partition.plane_bytes();
                offset
            })
            .collect()
    }

    /// How long the metadata of `container` is, if this run knows.
    pub(super) fn metadata_bytes_of(&self, container: ContainerId) -> Option<u32> {
        let place = self.containers.binary_search(&container).ok()?;
        self.metadata_bytes
            .get(place)
            .copied()
            .filter(|&bytes| bytes != 0)
    }

    /// The generation of `container`; 0 when this run does not know.
    pub(super) fn generation_of(&self, container: ContainerId) -> u32 {
        let place = self.containers.binary_search(&container);
        let generation = place.ok().and_then(|place| self.generations.get(place));
        generation.copied().unwrap_or(0)
    }

    /// Do the parts make up an object of `object_bytes` with a footer of `footer_bytes`?
    ///
    /// # Errors
    /// When bytes are missing or too many. Padding is there or not, but never below 16 bytes,
    /// and for no other length than one of Padmé.
    pub(super) fn check_layout(
        &self,
        object_bytes: u64,
        footer_bytes: u64,
    ) -> Result<(), DecodeError> {
        let parts = self.body_bytes() + footer_bytes + LENGTH_TAG_BYTES as u64;
        match object_bytes.checked_sub(parts) {
            Some(0) => Ok(()),
            Some(padding)
                if padding >= SEAL_TAG_BYTES as u64 && padme(object_bytes) == object_bytes =>
            {
                Ok(())
            }
            _ => Err(DecodeError::new(format!(
                "its parts make {parts} bytes, it has {object_bytes}"
            ))),
        }
    }

    /// Blocks of partition `index`.
    pub(super) fn blocks_of(&self, index: usize) -> std::ops::Range<usize> {
        let end = self
            .partitions
            .get(index + 1)
            .map_or(self.fences.len(), |next| next.first_block as usize);
        self.partitions[index].first_block as usize..end
    }

    /// Does the run know all chunks of `container`?
    pub(super) fn covers(&self, container: ContainerId) -> bool {
        self.containers.binary_search(&container).is_ok()
            || self.covered.binary_search(&container).is_ok()
    }

    /// Memory that the footer takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + (self.containers.capacity() + self.covered.capacity()) * size_of::<ContainerId>()
            + (self.metadata_bytes.capacity() + self.generations.capacity()) * size_of::<u32>()
            + self.fences.capacity() * size_of::<u64>()
            + self.partitions.capacity() * size_of::<Partition>()
    }
}

/// Field 1.
struct Counts {
    entries: u64,
    blocks: u64,
    partitions: u64,
}

impl Counts {
    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(value);
        let counts = Self {
            entries: decoder.varint_at_most(RUN_ENTRIES_MAX as u64, "the number of entries")?,
            blocks: decoder.varint()?,
            partitions: decoder.varint()?,
        };
        decoder.finish()?;
        Ok(counts)
    }
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_ids(out: &mut Vec<u8>, ids: &[ContainerId]) {
    out.reserve(ids.len() * ObjectId::BYTES);
    out.extend(ids.iter().flat_map(|id| id.0.0));
}

fn ids(value: &[u8]) -> Result<Vec<ContainerId>, DecodeError> {
    if value.len() / ObjectId::BYTES > RUN_CONTAINERS_MAX {
        return Err(DecodeError::new("it has too many containers"));
    }
    let mut decoder = Decoder::new(value);
    let mut ids = Vec::with_capacity(value.len() / ObjectId::BYTES);
    while !decoder.is_empty() {
        ids.push(ContainerId(ObjectId(decoder.array()?)));
    }
    if !ids.is_sorted_by(|before, after| before < after) {
        return Err(DecodeError::new("its containers do not ascend"));
    }
    Ok(ids)
}

fn fences(value: &[u8]) -> Result<Vec<u64>, DecodeError> {
    let mut decoder = Decoder::new(value);
    let mut fences = Vec::with_capacity(value.len() / 8);
    while !decoder.is_empty() {
        fences.push(decoder.u64()?);
    }
    if !fences.is_sorted() {
        return Err(DecodeError::new("its fences do not ascend"));
    }
    Ok(fences)
}

fn numbers(value: &[u8]) -> Result<Vec<u32>, DecodeError> {
    let mut decoder = Decoder::new(value);
    let mut numbers = Vec::with_capacity(value.len() / 4);
    while !decoder.is_empty() {
        numbers.push(decoder.u32()?);
    }
    Ok(numbers)
}

fn partitions(value: &[u8]) -> Result<Vec<Partition>, DecodeError> {
    let mut decoder = Decoder::new(value);
    let mut partitions = Vec::new();
    while !decoder.is_empty() {
        let first_block = decoder.varint_at_most(u64::from(u32::MAX), "the number of a block")?;
        let keys = decoder.varint_at_most(PARTITION_KEYS_MAX, "the keys of a partition")?;
        let mut small = |what| decoder.varint_at_most(u64::from(u32::MAX), what);
        let shape = FilterShape {
            segment_bits: u8::try_from(small("the segment of a filter")?).unwrap_or(u8::MAX),
            segments: small("the segments of a filter")? as u32,
            seed: small("the seed of a filter")? as u32,
        };
        if keys == 0 {
            return Err(DecodeError::new("a partition has no keys"));
        }
        if partitions.len() == PARTITIONS_MAX {
            return Err(DecodeError::new("it has too many partitions"));
        }
        let partition = Partition {
            first_block: first_block as u32,
            keys,
            shape: shape.checked()?,
        };
        partitions.push(partition);
    }
    partitions.shrink_to_fit();
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(number: u8) -> ContainerId {
        ContainerId(ObjectId([number; 16]))
    }

    fn shape(segment_bits: u8, segments: u32) -> FilterShape {
        FilterShape {
            segment_bits,
            segments,
            seed: 1,
        }
    }

    fn sample() -> Footer {
        Footer {
            entries: 5000,
            containers: vec![id(1), id(7)],
            metadata_bytes: vec![0, 33_000],
            generations: vec![3, 0],
            fences: vec![0, 9, 9, u64::MAX],
            partitions: vec![
                Partition {
                    first_block: 0,
                    keys: 4000,
                    shape: shape(7, 40),
                },
                Partition {
                    first_block: 3,
                    keys: 1000,
                    shape: shape(6, 19),
                },
            ],
            covered: vec![id(2)],
            has_unknown_fields: false,
        }
    }

    fn encoded(footer: &Footer) -> Vec<u8> {
        let mut out = Vec::new();
        footer.encode(&mut out);
        out
    }

    fn refused(change: impl FnOnce(&mut Footer)) -> bool {
        let mut footer = sample();
        change(&mut footer);
        Footer::decode(&encoded(&footer)).is_err()
    }

    #[test]
    fn footers_come_back() {
        let footer = sample();
        assert_eq!(Footer::decode(&encoded(&footer)), Ok(footer));
        let empty = Footer {
            covered: vec![id(4)],
            ..Footer::default()
        };
        assert_eq!(Footer::decode(&encoded(&empty)), Ok(empty));
        assert_eq!(sample().blocks_of(0), 0..3);
        assert_eq!(sample().blocks_of(1), 3..4);
        assert!(sample().covers(id(7)) && sample().covers(id(2)) && !sample().covers(id(3)));
    }

    #[test]
    fn lengths_of_metadata_are_told_where_they_are_known() {
        let mut footer = sample();
        assert_eq!(footer.metadata_bytes_of(id(7)), Some(33_000));
        for unknown in [1, 2, 5] {
            assert_eq!(footer.metadata_bytes_of(id(unknown)), None);
        }
        // Where nothing is known, nothing is stored.
        footer.metadata_bytes = vec![0, 0];
        let decoded = Footer::decode(&encoded(&footer)).expect("it is good");
        assert_eq!(decoded.metadata_bytes, []);
        assert_eq!(decoded.metadata_bytes_of(id(7)), None);
    }

    #[test]
    fn padding_is_cut_into_pieces_that_can_be_sealed() {
        let pieces = |bytes| padding_pieces(bytes).collect::<Vec<_>>();
        const WHOLE: u64 = PADDING_PIECE_BYTES;
        assert_eq!(pieces(0), []);
        assert_eq!(pieces(16), [16]);
        assert_eq!(pieces(WHOLE + 15), [WHOLE + 15]);
        assert_eq!(pieces(WHOLE + 16), [WHOLE, 16]);
        assert_eq!(pieces(3 * WHOLE), [WHOLE; 3]);
    }

    #[test]
    fn parts_lie_where_partitions_say() {
        let footer = sample();
        let first_planes = 2 * (43 * 128 / 2 + 16);
        assert_eq!(footer.partition_offsets(), [0, 3 * 16_384 + first_planes]);
    }

    #[test]
    fn layouts_are_checked_to_the_byte() {
        let footer = sample();
        let filters = 43 * 128 + 22 * 64 + 4 * 16;
        let whole = 4 * 16_384 + filters + 100 + 32;
        let padded = padme(whole + 16);
        for (object_bytes, good) in [
            (whole, true),
            (whole - 1, false),
            (whole + 15, false),
            (padded, true),
            (padded + 1, false),
            (0, false),
        ] {
            assert_eq!(
                footer.check_layout(object_bytes, 100).is_ok(),
                good,
                "{object_bytes}"
            );
        }
    }

    #[test]
    fn malformed_footers_are_refused() {
        assert!(
            refused(|footer| footer.entries += 1),
            "keys of the partitions"
        );
        assert!(refused(|footer| footer.entries = RUN_ENTRIES_MAX as u64 + 1));
        assert!(refused(|footer| footer.entries = 0));
        assert!(refused(|footer| footer.containers.reverse()));
        assert!(refused(|footer| footer.containers.push(id(7))));
        assert!(refused(|footer| footer.covered.push(id(2))));
        assert!(refused(|footer| footer.fences.reverse()));
        assert!(
            refused(|footer| footer.fences.truncate(3)),
            "a partition past the last block"
        );
        assert!(refused(|footer| footer.partitions[0].first_block = 1));
        assert!(refused(|footer| footer.partitions[1].first_block = 0));
        assert!(refused(|footer| footer.partitions[1].first_block = 4));
        assert!(refused(|footer| footer.partitions.truncate(1)));
        assert!(refused(|footer| footer.partitions[1].keys = 0));
        assert!(refused(|footer| footer.partitions[1].shape = shape(1, 19)));
        assert!(refused(|footer| footer.partitions[1].shape.segments = 0));
        assert!(refused(|footer| footer.metadata_bytes.push(5)));
        assert!(refused(|footer| footer.generations.push(5)));
        assert!(refused(|footer| {
            footer.entries = 4000 + PARTITION_KEYS_MAX + 1;
            footer.partitions[1].keys = PARTITION_KEYS_MAX + 1;
        }));
        let many = (0..=RUN_CONTAINERS_MAX as u128).map(|n| ContainerId(ObjectId(n.to_be_bytes())));
        assert!(refused(|footer| footer.covered = many.collect()));
    }

    #[test]
    fn fields_of_newer_versions() {
        let mut plain = encoded(&sample());
        plain.extend_from_slice(&[200, 1, 0]);
        assert!(Footer::decode(&plain).is_ok_and(|footer| footer.has_unknown_fields));
        let mut plain = encoded(&sample());
        plain.extend_from_slice(&[201, 1, 0]);
        assert!(Footer::decode(&plain).is_err());
        assert!(Footer::decode(&[]).is_err());
    }

    proptest! {
        #[test]
        fn hostile_footers_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut: prop::sample::Index,
            cuts: bool,
        ) {
            let mut plain = encoded(&sample());
            for (place, value) in changes {
                let place = place.index(plain.len());
                plain[place] = value;
            }
            if cuts {
                plain.truncate(cut.index(plain.len()));
            }
            if let Ok(footer) = Footer::decode(&plain) {
                let _ = footer.check_layout(1 << 20, 100);
                for index in 0..footer.partitions.len() {
                    prop_assert!(footer.blocks_of(index).end <= footer.fences.len());
                }
            }
        }

        #[test]
        fn random_bytes_never_panic(plain in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Footer::decode(&plain);
        }
    }
}

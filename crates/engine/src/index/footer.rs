//! The footer of an index run: what it holds and where (docs/format/v1.md, §11).
//!
//! A footer stays in memory while its run is open: 8 B a block and 16 B a container, about
//! 0.04 B an entry where containers hold 500 chunks.
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
use super::filter::{PARTITION_KEYS_MAX, filter_bytes};

/// Most entries in one run: what a reader must be prepared to meet.
pub const RUN_ENTRIES_MAX: usize = 1 << 24;

/// Most containers in one run, those with and those without entries together.
pub(super) const RUN_CONTAINERS_MAX: usize = 1 << 20;

/// Longest footer that a reader accepts, sealed.
pub(super) const FOOTER_BYTES_MAX: u64 = 32 << 20;

/// Consecutive blocks that share a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Partition {
    /// The first of its blocks; the last is the one before the next partition's first.
    pub(super) first_block: u32,
    /// Entries in its blocks.
    pub(super) keys: u64,
}

impl Partition {
    /// Stored length of its filter.
    pub(super) fn sealed_bytes(&self) -> u64 {
        filter_bytes(self.keys) + SEAL_TAG_BYTES as u64
    }
}

/// What a run holds and where.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Footer {
    /// Number of entries.
    pub(super) entries: u64,
    /// The container of each number, ascending.
    pub(super) containers: Vec<ContainerId>,
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
                put_varint(out, partition.sealed_bytes());
            }
        });
        if !self.covered.is_empty() {
            writer.field(8, |out| put_ids(out, &self.covered));
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
        let filters: u64 = self.partitions.iter().map(Partition::sealed_bytes).sum();
        (self.fences.len() * BLOCK_BYTES) as u64 + filters
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

fn partitions(value: &[u8]) -> Result<Vec<Partition>, DecodeError> {
    let mut decoder = Decoder::new(value);
    let mut partitions = Vec::new();
    while !decoder.is_empty() {
        let first_block = decoder.varint_at_most(u64::from(u32::MAX), "the number of a block")?;
        let keys = decoder.varint_at_most(PARTITION_KEYS_MAX, "the keys of a partition")?;
        let partition = Partition {
            first_block: first_block as u32,
            keys,
        };
        if keys == 0 || decoder.varint()? != partition.sealed_bytes() {
            return Err(DecodeError::new(
                "a filter's length is not that of its keys",
            ));
        }
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

    fn sample() -> Footer {
        Footer {
            entries: 5000,
            containers: vec![id(1), id(7)],
            fences: vec![0, 9, 9, u64::MAX],
            partitions: vec![
                Partition {
                    first_block: 0,
                    keys: 4000,
                },
                Partition {
                    first_block: 3,
                    keys: 1000,
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
    fn layouts_are_checked_to_the_byte() {
        let footer = sample();
        let filters = filter_bytes(4000) + filter_bytes(1000) + 2 * 16;
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

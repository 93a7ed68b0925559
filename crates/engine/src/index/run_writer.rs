//! Writes one run of the index: entries in, the bytes of an object out
//! (docs/format/v1.md, §11).
//!
//! Enter: a table of containers and entries in strictly ascending order. Leaves: the whole
//! object, to be put at once. Invariants: ascending tables, fences and entries are asserted
//! here, so that no reader has to refuse what we wrote.
//!
//! Memory: stores take objects whole, so a run grows in memory, about 10 B an entry and 1.5 B
//! for its filter, at most [`WRITE_BYTES_PER_ENTRY`] for entries of the greatest width. Whoever
//! writes bounds the number of entries (see `run_set`).

use crate::container::{ContainerId, Slot};
use crate::format::{LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES, Vault, padme};
use crate::object::{ObjectId, ObjectKey, ObjectKind};

use super::RunEntry;
use super::block::{BLOCK_BYTES, BlockBuilder};
use super::filter::{Filter, filter_bytes};
use super::footer::{Footer, Partition, RUN_CONTAINERS_MAX, RUN_ENTRIES_MAX};

/// Keys at which a partition is closed. A filter that is not cached costs a look-up one read of
/// 48 KiB; larger ones would read more for nothing, smaller ones cost longer footers.
const PARTITION_KEYS: usize = 1 << 15;

/// Piece number of the footer.
pub(super) const FOOTER_PIECE: u32 = 1;

/// Piece number of block 0; the blocks, the filters and the padding follow each other.
pub(super) const FIRST_PIECE: u32 = 2;

/// Memory that an entry takes while a run is written: 112 bits in a block, 12 in a filter.
pub(super) const WRITE_BYTES_PER_ENTRY: usize = 16;

/// Writes one run.
#[derive(Debug)]
pub(super) struct RunWriter {
    key: ObjectKey,
    sealer: ObjectSealer,
    is_padded: bool,
    footer: Footer,
    builder: BlockBuilder,
    last: Option<RunEntry>,
    /// Prefixes of the partition that is still open.
    open_prefixes: Vec<u64>,
    /// Filters of the closed partitions, plain: their piece numbers follow those of all blocks.
    filters: Vec<u8>,
    object: Vec<u8>,
}

impl RunWriter {
    /// Starts the run `id`. Entries name containers by their place in `containers`, which
    /// ascends; `entries_expected` only saves growing.
    ///
    /// # Panics
    /// When `containers` do not ascend or are too many.
    pub(super) fn new(
        vault: &Vault,
        id: ObjectId,
        containers: Vec<ContainerId>,
        entries_expected: usize,
    ) -> Self {
        assert!(
            containers.is_sorted_by(|before, after| before < after),
            "the containers of a run ascend"
        );
        assert!(
            containers.len() <= RUN_CONTAINERS_MAX,
            "a run has too many containers"
        );
        let key = ObjectKey::new(ObjectKind::Index, id);
        let entries = entries_expected.clamp(1, RUN_ENTRIES_MAX);
        // The mean delta and 16 times that, a container number, a slot.
        let entry_bits = 64 - entries.ilog2() + 4 + containers.len().max(1).ilog2() + 1 + 16;
        let block_bytes = entries * entry_bits as usize / 8 + BLOCK_BYTES;
        let partitions = 1 + entries / (PARTITION_KEYS / 2);
        let filter_bytes = filter_bytes(entries as u64) as usize + partitions * 32;
        Self {
            key,
            sealer: vault.new_object(key),
            is_padded: vault.is_padded(),
            footer: Footer {
                containers,
                ..Footer::default()
            },
            builder: BlockBuilder::default(),
            last: None,
            open_prefixes: Vec::new(),
            filters: Vec::with_capacity(filter_bytes),
            object: Vec::with_capacity(block_bytes),
        }
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// When it is not above the last one, names no container of the table, or is one too many.
    pub(super) fn push(&mut self, prefix: u64, container: u32, slot: Slot) {
        let entry = RunEntry {
            prefix,
            container,
            slot,
        };
        assert!(
            self.last.is_none_or(|last| last < entry),
            "the entries of a run ascend"
        );
        assert!(
            (container as usize) < self.footer.containers.len(),
            "containers are in the table"
        );
        assert!(
            self.footer.entries < RUN_ENTRIES_MAX as u64,
            "a run has too many entries"
        );
        if !self.builder.push(entry) {
            self.close_block();
            assert!(
                self.builder.push(entry),
                "an empty block has room for an entry"
            );
        }
        self.footer.entries += 1;
        self.last = Some(entry);
    }

    /// The finished run; it covers `covered`, which ascend, as well.
    ///
    /// # Panics
    /// When `covered` do not ascend, or are too many with the others.
    pub(super) fn finish(mut self, covered: Vec<ContainerId>) -> (ObjectKey, Vec<u8>) {
        assert!(
            covered.is_sorted_by(|before, after| before < after),
            "the containers that a run covers ascend"
        );
        let containers = self.footer.containers.len() + covered.len();
        assert!(
            containers <= RUN_CONTAINERS_MAX,
            "a run has too many containers"
        );
        self.footer.covered = covered;
        self.close_block();
        self.close_partition();
        let mut footer = Vec::new();
        self.footer.encode(&mut footer);
        let bytes =
            self.footer.body_bytes() as usize + footer.len() + SEAL_TAG_BYTES + LENGTH_TAG_BYTES;
        let padding = if self.is_padded {
            padding_bytes(bytes)
        } else {
            0
        };
        self.object
            .reserve_exact(bytes + padding - self.object.len());
        let mut piece = FIRST_PIECE + self.footer.fences.len() as u32;
        let mut filters = self.filters.as_slice();
        for partition in &self.footer.partitions {
            let (filter, rest) = filters.split_at(filter_bytes(partition.keys) as usize);
            append_sealed(&self.sealer, &mut self.object, piece, filter);
            filters = rest;
            piece += 1;
        }
        assert_eq!(
            self.object.len() as u64,
            self.footer.body_bytes(),
            "parts are where readers look"
        );
        if padding > 0 {
            let zeros = vec![0; padding - SEAL_TAG_BYTES];
            append_sealed(&self.sealer, &mut self.object, piece, &zeros);
        }
        append_sealed(&self.sealer, &mut self.object, FOOTER_PIECE, &footer);
        let footer_bytes = (footer.len() + SEAL_TAG_BYTES) as u32;
        self.object
            .extend_from_slice(&self.sealer.length_tag(footer_bytes));
        (self.key, self.object)
    }

    fn close_block(&mut self) {
        let entries = self.builder.entries();
        let Some(first) = entries.first() else {
            return;
        };
        let first_prefix = first.prefix;
        let (open, new) = (self.open_prefixes.len(), entries.len());
        if open > 0 && open + new > PARTITION_KEYS {
            self.close_partition();
        }
        if self.open_prefixes.is_empty() {
            let first_block = self.footer.fences.len() as u32;
            self.footer.partitions.push(Partition {
                first_block,
                keys: 0,
            });
        }
        self.open_prefixes
            .extend(self.builder.entries().iter().map(|entry| entry.prefix));
        let piece = FIRST_PIECE + self.footer.fences.len() as u32;
        self.footer.fences.push(first_prefix);
        let start = self.object.len();
        if self.object.capacity() < start + BLOCK_BYTES {
            // Doubling would take twice what the entries need.
            self.object.reserve_exact(start / 8 + BLOCK_BYTES);
        }
        self.builder.encode(&mut self.object);
        self.sealer.seal(piece, &mut self.object, start);
    }

    fn close_partition(&mut self) {
        if let Some(partition) = self.footer.partitions.last_mut() {
            partition.keys = self.open_prefixes.len() as u64;
            self.filters
                .extend_from_slice(Filter::of(&self.open_prefixes).as_bytes());
            self.open_prefixes.clear();
        }
    }
}

fn append_sealed(sealer: &ObjectSealer, object: &mut Vec<u8>, piece: u32, plain: &[u8]) {
    let start = object.len();
    object.extend_from_slice(plain);
    sealer.seal(piece, object, start);
}

/// Sealed padding that brings an object of `bytes` to a Padmé length: none, or room for a seal.
fn padding_bytes(bytes: usize) -> usize {
    let bytes = bytes as u64;
    let gap = padme(bytes) - bytes;
    let padding = match gap {
        1..SEAL_TAG_BYTES_U64 => padme(bytes + SEAL_TAG_BYTES_U64) - bytes,
        _ => gap,
    };
    padding as usize
}

const SEAL_TAG_BYTES_U64: u64 = SEAL_TAG_BYTES as u64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::test_support::{container, synthetic, vault_of};

    #[test]
    fn memory_is_bounded_by_the_entries() {
        for (count, slots) in [(1 << 16, 500), (300_000, 40), (300_000, 60_000)] {
            let mut entries = synthetic(1, 0, count, slots);
            entries.sort_unstable();
            let mut table: Vec<_> = (0..count.div_ceil(slots) as u64).map(container).collect();
            table.sort_unstable();
            let vault = vault_of(1..=1, true);
            let mut writer = RunWriter::new(&vault, ObjectId([3; 16]), table.clone(), count);
            for entry in &entries {
                let number = table.binary_search(&entry.address.container).unwrap();
                writer.push(entry.prefix, number as u32, entry.address.slot);
            }
            let capacity = writer.object.capacity() + writer.filters.capacity();
            assert!(
                capacity <= count * WRITE_BYTES_PER_ENTRY,
                "{capacity} for {count}"
            );
            let (_, object) = writer.finish(Vec::new());
            assert!(object.capacity() <= count * WRITE_BYTES_PER_ENTRY);
        }
    }

    #[test]
    fn paddings_are_none_or_have_room_for_a_seal() {
        for bytes in 64..100_000 {
            let padding = padding_bytes(bytes);
            assert!(padding == 0 || padding >= SEAL_TAG_BYTES);
            assert_eq!(padme((bytes + padding) as u64), (bytes + padding) as u64);
        }
    }
}

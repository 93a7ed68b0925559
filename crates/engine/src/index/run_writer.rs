//! Writes one run of the index as a stream: entries in, an object out (docs/format/v1.md, §11).
//!
//! Enter: a table of containers and entries in strictly ascending order. Leaves: the object, part
//! by part, visible and durable when [`RunWriter::finish`] returns; a writer that is dropped leaves
//! nothing. Invariants: ascending tables, fences and entries are asserted here, so that no reader
//! has to refuse what we wrote.
//!
//! Memory: the prefixes of one partition and what its filter is built in
//! ([`BUILD_BYTES_PER_KEY`](super::filter::BUILD_BYTES_PER_KEY) a key), the footer so far, and
//! [`BUFFER_BYTES`] on their way to the store; a run may be of any length.

use crate::container::{ContainerId, Slot};
use crate::format::{LENGTH_TAG_BYTES, ObjectSealer, SEAL_TAG_BYTES, Vault, padme};
use crate::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, StoreError};

use super::RunEntry;
use super::block::{BLOCK_BYTES, BlockBuilder};
use super::filter::{BUILD_BYTES_PER_KEY, FilterBuilder};
use super::footer::{Footer, Partition, RUN_CONTAINERS_MAX, RUN_ENTRIES_MAX, padding_pieces};

/// Keys at which a partition is closed where memory allows it. Filters of fewer keys need more
/// slots a key (2^16: 1.12, 2^18: 1.09), those of more are dearer to build (2^20: 35 MiB) and to
/// load for a look-up.
const PARTITION_KEYS: usize = 1 << 18;

/// Least keys at which a partition is closed.
const PARTITION_KEYS_LEAST: usize = 1 << 13;

/// Bytes handed to the store at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Piece number of the footer.
pub(super) const FOOTER_PIECE: u32 = 1;

/// Piece number of what the object begins with; from there pieces are numbered as they lie.
pub(super) const FIRST_PIECE: u32 = 2;

/// What a run says of its containers.
#[derive(Debug, Default)]
pub(super) struct ContainerTable {
    /// Their ids, ascending.
    pub(super) ids: Vec<ContainerId>,
    /// How long the metadata of each is, 0 where unknown; or nothing at all.
    pub(super) metadata_bytes: Vec<u32>,
    /// The generation of each, 0 where unknown; or nothing at all.
    pub(super) generations: Vec<u32>,
}

/// Keys of a partition that a writer with `memory_bytes` makes, and the memory it then takes.
pub(super) fn partition_keys(memory_bytes: usize) -> (usize, usize) {
    let keys = (memory_bytes / BUILD_BYTES_PER_KEY).clamp(PARTITION_KEYS_LEAST, PARTITION_KEYS);
    (keys, keys * BUILD_BYTES_PER_KEY + 2 * BUFFER_BYTES)
}

/// Writes one run.
pub(super) struct RunWriter<'a> {
    key: ObjectKey,
    sealer: ObjectSealer,
    is_padded: bool,
    partition_keys: usize,
    footer: Footer,
    builder: BlockBuilder,
    last: Option<RunEntry>,
    /// Prefixes of the partition that is still open.
    open_prefixes: Vec<u64>,
    filters: FilterBuilder,
    next_piece: u32,
    buffer: Vec<u8>,
    object: Box<dyn ObjectWriter + 'a>,
    object_bytes: u64,
}

impl<'a> RunWriter<'a> {
    /// Starts the run `id`. Entries name containers by their place in `containers`;
    /// `partition_keys` says when a partition is closed.
    ///
    /// # Errors
    /// When the store can't take it.
    ///
    /// # Panics
    /// When the containers do not ascend or are too many, or their lengths are not as many.
    pub(super) fn begin(
        store: &'a dyn ObjectStore,
        vault: &Vault,
        id: ObjectId,
        containers: ContainerTable,
        partition_keys: usize,
    ) -> Result<Self, StoreError> {
        let ContainerTable {
            ids,
            metadata_bytes,
            generations,
        } = containers;
        assert!(
            ids.is_sorted_by(|before, after| before < after),
            "the containers of a run ascend"
        );
        assert!(
            ids.len() <= RUN_CONTAINERS_MAX,
            "a run has too many containers"
        );
        assert!(
            metadata_bytes.is_empty() || metadata_bytes.len() == ids.len(),
            "a length for each container"
        );
        assert!(
            generations.is_empty() || generations.len() == ids.len(),
            "a generation for each container"
        );
        let key = ObjectKey::new(ObjectKind::Index, id);
        Ok(Self {
            key,
            sealer: vault.new_object(key),
            is_padded: vault.is_padded(),
            partition_keys,
            footer: Footer {
                containers: ids,
                metadata_bytes,
                generations,
                ..Footer::default()
            },
            builder: BlockBuilder::default(),
            last: None,
            open_prefixes: Vec::new(),
            filters: FilterBuilder::default(),
            next_piece: FIRST_PIECE,
            buffer: Vec::new(),
            object: store.create(&key)?,
            object_bytes: 0,
        })
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// When the store can't take it; nothing more may be written then.
    ///
    /// # Panics
    /// When it is not above the last one, names no container of the table, or is one too many.
    pub(super) fn push(
        &mut self,
        prefix: u64,
        container: u32,
        slot: Slot,
    ) -> Result<(), StoreError> {
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
            self.close_block()?;
            assert!(
                self.builder.push(entry),
                "an empty block has room for an entry"
            );
        }
        self.footer.entries += 1;
        self.last = Some(entry);
        Ok(())
    }

    /// Finishes the run, which covers `covered`, ascending, as well. Returns its key and length.
    ///
    /// # Errors
    /// When the store can't take it.
    ///
    /// # Panics
    /// When `covered` do not ascend, or are too many with the others.
    pub(super) fn finish(
        mut self,
        covered: Vec<ContainerId>,
    ) -> Result<(ObjectKey, u64), StoreError> {
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
        self.close_block()?;
        self.close_partition()?;
        self.filters = FilterBuilder::default();
        self.open_prefixes = Vec::new();
        let mut footer = Vec::new();
        self.footer.encode(&mut footer);
        let footer_bytes = footer.len() + SEAL_TAG_BYTES;
        let body_bytes = self.object_bytes + self.buffer.len() as u64;
        assert_eq!(
            body_bytes,
            self.footer.body_bytes(),
            "parts are where readers look"
        );
        if self.is_padded {
            let parts = body_bytes + (footer_bytes + LENGTH_TAG_BYTES) as u64;
            for piece in padding_pieces(padding_bytes(parts)) {
                let zeros = vec![0; piece as usize - SEAL_TAG_BYTES];
                self.append_sealed(&zeros)?;
            }
        }
        self.next_piece = FOOTER_PIECE;
        self.append_sealed(&footer)?;
        drop(footer);
        let tag = self.sealer.length_tag(footer_bytes as u32);
        self.buffer.extend_from_slice(&tag);
        self.write_out()?;
        self.object.finish()?;
        Ok((self.key, self.object_bytes))
    }

    fn close_block(&mut self) -> Result<(), StoreError> {
        let entries = self.builder.entries();
        let Some(first) = entries.first() else {
            return Ok(());
        };
        let first_prefix = first.prefix;
        let (open, new) = (self.open_prefixes.len(), entries.len());
        if open > 0 && open + new > self.partition_keys {
            self.close_partition()?;
        }
        if self.open_prefixes.is_empty() {
            self.footer.partitions.push(Partition {
                first_block: self.footer.fences.len() as u32,
                keys: 0,
                shape: Default::default(),
            });
        }
        let prefixes = self.builder.entries().iter().map(|entry| entry.prefix);
        self.open_prefixes.extend(prefixes);
        self.footer.fences.push(first_prefix);
        let start = self.buffer.len();
        self.builder.encode(&mut self.buffer);
        self.seal_buffer(start)
    }

    fn close_partition(&mut self) -> Result<(), StoreError> {
        let Some(partition) = self.footer.partitions.last_mut() else {
            return Ok(());
        };
        let (shape, planes) = self.filters.build(&self.open_prefixes);
        partition.keys = self.open_prefixes.len() as u64;
        partition.shape = shape;
        self.open_prefixes.clear();
        planes
            .iter()
            .try_for_each(|plane| self.append_sealed(plane))
    }

    fn append_sealed(&mut self, plain: &[u8]) -> Result<(), StoreError> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(plain);
        self.seal_buffer(start)
    }

    /// Seals what the buffer holds from `start` on as the next piece.
    fn seal_buffer(&mut self, start: usize) -> Result<(), StoreError> {
        self.sealer.seal(self.next_piece, &mut self.buffer, start);
        self.next_piece += 1;
        if self.buffer.len() >= BUFFER_BYTES - BLOCK_BYTES {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), StoreError> {
        self.object.write(&self.buffer)?;
        self.object_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }
}

/// Sealed padding that brings an object of `bytes` to a Padmé length: none, or room for a seal.
fn padding_bytes(bytes: u64) -> u64 {
    let gap = padme(bytes) - bytes;
    match gap {
        1..SEAL_TAG_BYTES_U64 => padme(bytes + SEAL_TAG_BYTES_U64) - bytes,
        _ => gap,
    }
}

const SEAL_TAG_BYTES_U64: u64 = SEAL_TAG_BYTES as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paddings_are_none_or_have_room_for_a_seal() {
        for bytes in 64..100_000 {
            let padding = padding_bytes(bytes);
            assert!(padding == 0 || padding >= SEAL_TAG_BYTES_U64);
            assert_eq!(padme(bytes + padding), bytes + padding);
        }
    }

    #[test]
    fn partitions_are_as_large_as_memory_allows() {
        let (keys, bytes) = partition_keys(10 << 20);
        assert_eq!(keys, PARTITION_KEYS);
        assert!(bytes < 10 << 20);
        let (keys, bytes) = partition_keys(1 << 20);
        assert!(keys < PARTITION_KEYS && bytes < 2 << 20);
    }
}

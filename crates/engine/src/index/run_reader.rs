//! Reads one run of the index (docs/format/v1.md, §11).
//!
//! Enter: a prefix. Leave: the addresses of its candidates. On the way, each step only if the
//! one before allows it: partition (by its first prefix, in memory), filter (as far as its planes
//! are in memory: `planes.rs`), block (by the fences, in memory; cached, or one read of 16 KiB).
//! Equal prefixes may straddle blocks and partitions, so a look-up walks from the last fence below
//! the prefix to the last one not above it.
//!
//! Reads are by position, never mapped: a truncated object is an error, not a signal. What is
//! read is opened (AES-GCM) and checked once, then cached as it is. A piece that is damaged is
//! passed over and reported once; the other pieces keep serving.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::container::{ChunkAddress, ContainerId};
use crate::format::{DecodeError, InObject, LENGTH_TAG_BYTES, ObjectError, ObjectSealer, Vault};
use crate::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, StoreError};

use super::block::{BLOCK_BYTES, Block};
use super::cache::{Piece, PieceCache, PieceKey};
use super::filter::{PLANES, passes};
use super::footer::{FOOTER_BYTES_MAX, Footer, padding_pieces};
use super::planes::{RunPlanes, Verdict, plane_bytes};
use super::run_writer::{FIRST_PIECE, FOOTER_PIECE};
use super::statistics::Counters;

/// First read of a run: enough for the footers of all but large ones.
const TAIL_BYTES: usize = 64 << 10;

/// What the runs of a set share.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) cache: Arc<PieceCache>,
    pub(super) counters: Arc<Counters>,
    /// Bytes of all planes in memory.
    pub(super) planes_bytes: Arc<AtomicUsize>,
}

/// A plane that look-ups have paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaneWish {
    pub(super) partition: usize,
    pub(super) plane: usize,
    /// What it takes in memory.
    pub(super) bytes: usize,
}

/// One open run.
pub(super) struct RunReader {
    context: RunContext,
    key: ObjectKey,
    sealer: ObjectSealer,
    footer: Footer,
    /// First prefix of each partition: few enough to stay in a processor's cache.
    partition_fences: Vec<u64>,
    /// Where the blocks of each partition begin.
    partition_offsets: Vec<u64>,
    planes: RunPlanes,
    object_bytes: u64,
    /// Where the footer begins, and padding, if there is any, ends.
    padding_end: u64,
    /// Our name in the piece cache.
    number: u32,
    is_damaged: AtomicBool,
}

impl std::fmt::Debug for RunReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunReader")
            .field("key", &self.key)
            .field("entries", &self.footer.entries)
            .finish_non_exhaustive()
    }
}

impl RunReader {
    /// Opens the run `id` by its end: one read, two if the footer is long. `number` names it in
    /// the cache and must never have been used there.
    ///
    /// # Errors
    /// When it is missing, unreadable, sealed in an unknown epoch, or damaged.
    pub(super) fn open(
        context: &RunContext,
        vault: &Vault,
        id: ObjectId,
        number: u32,
    ) -> Result<Self, ObjectError> {
        let key = ObjectKey::new(ObjectKind::Index, id);
        let tail = context.store.get_tail(&key, TAIL_BYTES)?;
        let Some((before_tag, tag)) = tail.bytes.split_last_chunk::<LENGTH_TAG_BYTES>() else {
            let reason = DecodeError::new(format!("it has only {} bytes", tail.object_bytes));
            return Err(reason).in_object(key, "tag");
        };
        let sealer = vault.object(key, &tag[..12]).in_object(key, "tag")?;
        let footer_bytes = u64::from(sealer.open_length_tag(tag).in_object(key, "tag")?);
        let end = tail.object_bytes - LENGTH_TAG_BYTES as u64;
        if footer_bytes > end || footer_bytes > FOOTER_BYTES_MAX {
            let reason = DecodeError::new(format!("a footer of {footer_bytes} bytes can't be"));
            return Err(reason).in_object(key, "tag");
        }
        let length = footer_bytes as usize;
        let mut sealed = match before_tag.len().checked_sub(length) {
            Some(start) => before_tag[start..].to_vec(),
            None => context.store.get_range(&key, end - footer_bytes, length)?,
        };
        let plain = sealer
            .open_slice(FOOTER_PIECE, &mut sealed)
            .in_object(key, "footer")?;
        let footer = Footer::decode(plain).in_object(key, "footer")?;
        footer
            .check_layout(tail.object_bytes, footer_bytes)
            .in_object(key, "footer")?;
        let partition_fences = footer
            .partitions
            .iter()
            .map(|partition| footer.fences[partition.first_block as usize])
            .collect();
        let partition_offsets = footer.partition_offsets();
        let used_bytes = Arc::clone(&context.planes_bytes);
        let planes = RunPlanes::new(footer.partitions.len(), used_bytes);
        Ok(Self {
            context: context.clone(),
            key,
            sealer,
            footer,
            partition_fences,
            partition_offsets,
            planes,
            object_bytes: tail.object_bytes,
            padding_end: end - footer_bytes,
            number,
            is_damaged: AtomicBool::new(false),
        })
    }

    /// Its name in the store.
    pub(super) fn key(&self) -> ObjectKey {
        self.key
    }

    /// What it holds.
    pub(super) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Its length in the store.
    pub(super) fn object_bytes(&self) -> u64 {
        self.object_bytes
    }

    /// Memory that it takes while open.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<Footer>()
            + self.footer.memory_bytes()
            + (self.partition_fences.capacity() + self.partition_offsets.capacity()) * 8
            + self.planes.memory_bytes()
    }

    /// Its planes in memory.
    pub(super) fn planes(&self) -> &RunPlanes {
        &self.planes
    }

    /// Was a piece of it found damaged? Then some of its entries are lost.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Does it know all chunks of `container`?
    pub(super) fn covers(&self, container: ContainerId) -> bool {
        !self.is_damaged() && self.footer.covers(container)
    }

    /// Appends where chunks of that prefix lie; `wish` becomes the plane that is paid for by that,
    /// if there is one.
    ///
    /// # Errors
    /// When a piece can't be read; candidates from other pieces are appended all the same. Of a
    /// damaged piece only the first look-up that meets it says so.
    pub(super) fn candidates(
        &self,
        prefix: u64,
        out: &mut Vec<ChunkAddress>,
        wish: &mut Option<PlaneWish>,
    ) -> Result<(), ObjectError> {
        let counters = &self.context.counters;
        let before = out.len();
        let mut outcome = Ok(());
        let mut strictest = Verdict::Absent;
        for number in places(&self.partition_fences, prefix) {
            let partition = &self.footer.partitions[number];
            let verdict = self.planes.ask(number, partition.shape, prefix);
            if verdict == Verdict::Absent {
                continue;
            }
            strictest = verdict;
            let found_before = out.len();
            let mut was_read = false;
            let blocks = self.footer.blocks_of(number);
            for block in places(&self.footer.fences[blocks.clone()], prefix) {
                let block = blocks.start + block;
                let searched = self.search_block(number, block, prefix, out, &mut was_read);
                outcome = outcome.and(searched);
            }
            if out.len() == found_before
                && let Some(plane) = self.planes.pay(number, partition.plane_bytes(), was_read)
            {
                *wish = Some(PlaneWish {
                    partition: number,
                    plane,
                    bytes: plane_bytes(partition),
                });
            }
        }
        match strictest {
            Verdict::Absent => counters.filter_rejects.add(1),
            Verdict::Maybe if out.len() == before => counters.filter_false_positives.add(1),
            Verdict::Unknown if out.len() == before => counters.unfiltered_misses.add(1),
            _ => {}
        }
        outcome
    }

    /// Reads a plane of a filter.
    ///
    /// # Errors
    /// When it is missing, unreadable or damaged.
    pub(super) fn read_plane(
        &self,
        partition: usize,
        plane: usize,
    ) -> Result<Vec<u8>, ObjectError> {
        let blocks = self.footer.blocks_of(partition);
        let length = self.footer.partitions[partition].plane_bytes() as usize;
        let offset = self.partition_offsets[partition]
            + (blocks.len() * BLOCK_BYTES + plane * length) as u64;
        let counters = &self.context.counters;
        counters.filter_reads.add(1);
        counters.filter_read_bytes.add(length as u64);
        let mut sealed = self.context.store.get_range(&self.key, offset, length)?;
        let piece = FIRST_PIECE + (blocks.end + PLANES * partition + plane) as u32;
        self.sealer
            .open(piece, &mut sealed)
            .in_object(self.key, "filter")?;
        Ok(sealed)
    }

    /// The number of the piece that a block is.
    fn block_piece(partition: usize, block: usize) -> u32 {
        FIRST_PIECE + (block + PLANES * partition) as u32
    }

    fn search_block(
        &self,
        partition: usize,
        block: usize,
        prefix: u64,
        out: &mut Vec<ChunkAddress>,
        was_read: &mut bool,
    ) -> Result<(), ObjectError> {
        let piece = self.piece(Self::block_piece(partition, block), || {
            *was_read = true;
            self.context.counters.block_reads.add(1);
            let sealed = self.read_sealed_blocks(partition, block..block + 1)?;
            Ok(Piece::Block(self.open_block(partition, block, sealed)?))
        })?;
        if let Piece::Block(block) = &*piece {
            out.extend(block.search(prefix).map(|entry| ChunkAddress {
                container: self.footer.containers[entry.container as usize],
                slot: entry.slot,
            }));
        }
        Ok(())
    }

    /// The piece from the cache, or as `read` gives it.
    fn piece(
        &self,
        number: u32,
        read: impl FnOnce() -> Result<Piece, ObjectError>,
    ) -> Result<Arc<Piece>, ObjectError> {
        let key = PieceKey::new(self.number, number);
        if let Some(piece) = self.context.cache.get(key) {
            return Ok(piece);
        }
        match read() {
            Ok(piece) => {
                let piece = Arc::new(piece);
                self.context.cache.insert(key, Arc::clone(&piece));
                Ok(piece)
            }
            Err(error) => {
                if self.note_damage(&error) {
                    self.context.cache.insert(key, Arc::new(Piece::Damaged));
                }
                Err(error)
            }
        }
    }

    /// Reads the next blocks past the cache, from `first` on, for a merge that needs each of them
    /// once: at most `count`, and all of one partition.
    ///
    /// # Errors
    /// When one is missing, unreadable or damaged.
    pub(super) fn read_blocks(
        &self,
        first: usize,
        count: usize,
    ) -> Result<Vec<Block>, ObjectError> {
        let partitions = &self.footer.partitions;
        let partition = partitions.partition_point(|part| part.first_block as usize <= first) - 1;
        let end = self.footer.blocks_of(partition).end.min(first + count);
        self.context
            .counters
            .merge_block_reads
            .add((end - first) as u64);
        let sealed = self.read_sealed_blocks(partition, first..end)?;
        let opened = (first..end).zip(sealed.chunks(BLOCK_BYTES));
        opened
            .map(|(number, sealed)| self.open_block(partition, number, sealed.to_vec()))
            .collect()
    }

    /// Reads every piece past the cache: seals, order, fences, filters that let their own entries
    /// pass, padding.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn verify(&self) -> Result<(), ObjectError> {
        let corrupt = |reason: &str| Err(DecodeError::new(reason)).in_object(self.key, "blocks");
        let mut last = None;
        let mut entries = 0;
        for (number, partition) in self.footer.partitions.iter().enumerate() {
            let planes = [self.read_plane(number, 0)?, self.read_plane(number, 1)?];
            let mut keys = 0;
            for block in self.footer.blocks_of(number) {
                for block in self.read_blocks(block, 1)? {
                    let mut place = block.start();
                    while let Some(entry) = block.next(&mut place) {
                        if last.is_some_and(|last| entry <= last) {
                            return corrupt("its entries are out of order");
                        }
                        let mut planes = planes.iter().enumerate();
                        if !planes.all(|(plane, bytes)| {
                            passes(partition.shape, plane, bytes, entry.prefix)
                        }) {
                            return corrupt("a filter rejects an entry that is there");
                        }
                        last = Some(entry);
                        keys += 1;
                    }
                }
            }
            if keys != partition.keys {
                return corrupt("a partition's entries are not as many as its footer says");
            }
            entries += keys;
        }
        if entries != self.footer.entries {
            return corrupt("its entries are not as many as its footer says");
        }
        self.verify_padding()
    }

    fn verify_padding(&self) -> Result<(), ObjectError> {
        let mut start = self.footer.body_bytes();
        let pieces = self.footer.fences.len() + PLANES * self.footer.partitions.len();
        let padding = padding_pieces(self.padding_end - start);
        for (piece, length) in (FIRST_PIECE + pieces as u32..).zip(padding) {
            let mut sealed = self
                .context
                .store
                .get_range(&self.key, start, length as usize)?;
            start += length;
            self.sealer
                .open(piece, &mut sealed)
                .in_object(self.key, "padding")?;
            if sealed.iter().any(|&byte| byte != 0) {
                return Err(DecodeError::new("it is not zero")).in_object(self.key, "padding");
            }
        }
        Ok(())
    }

    /// Remembers that bytes of this run are gone, if that is what `error` says.
    pub(super) fn note_damage(&self, error: &ObjectError) -> bool {
        let is_damage = error.is_damage() && !is_missing(error);
        if is_damage {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        is_damage
    }

    /// Blocks of one partition, as they are stored.
    fn read_sealed_blocks(
        &self,
        partition: usize,
        blocks: Range<usize>,
    ) -> Result<Vec<u8>, StoreError> {
        let first = self.footer.partitions[partition].first_block as usize;
        let offset =
            self.partition_offsets[partition] + ((blocks.start - first) * BLOCK_BYTES) as u64;
        self.context
            .store
            .get_range(&self.key, offset, blocks.len() * BLOCK_BYTES)
    }

    fn open_block(
        &self,
        partition: usize,
        number: usize,
        mut sealed: Vec<u8>,
    ) -> Result<Block, ObjectError> {
        self.sealer
            .open(Self::block_piece(partition, number), &mut sealed)
            .in_object(self.key, "block")?;
        let block =
            Block::decode(sealed, self.footer.containers.len()).in_object(self.key, "block")?;
        let fences = &self.footer.fences;
        let is_below_next = fences
            .get(number + 1)
            .is_none_or(|&next| block.last_prefix() <= next);
        if block.first_prefix() != fences[number] || !is_below_next {
            let reason = DecodeError::new("its prefixes are not those of the footer");
            return Err(reason).in_object(self.key, "block");
        }
        Ok(block)
    }
}

/// Which of the parts that begin with these prefixes may hold `prefix`: the last one that
/// begins below it (its end may), and all that begin with it.
fn places(fences: &[u64], prefix: u64) -> Range<usize> {
    let end = fences.partition_point(|&fence| fence <= prefix);
    let mut start = end;
    while start > 0 && fences[start - 1] == prefix {
        start -= 1;
    }
    start.saturating_sub(1)..end
}

/// Is the object not there (any more)?
pub(super) fn is_missing(error: &ObjectError) -> bool {
    matches!(error, ObjectError::Store(error) if error.is_missing())
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn places_of_straddling_prefixes() {
        assert_eq!(places(&[], 5), 0..0);
        assert_eq!(places(&[5], 4), 0..0);
        assert_eq!(places(&[5], 5), 0..1);
        assert_eq!(places(&[1, 5, 5, 9], 5), 0..3);
        assert_eq!(places(&[1, 5, 5, 9], 6), 2..3);
        assert_eq!(places(&[1, 5, 5, 9], u64::MAX), 3..4);
        assert_eq!(places(&[0, 0], 0), 0..2);
    }
}

//! Places compressed groups into containers of one kind, in sequence (MACS, §III-B, Eq. 4).
//!
//! A group that does not fit is cut short at a chunk: its front fills the container, the rest
//! opens the next one. The outcome depends on the sequence of groups alone. A delta to a delta of this
//! run learns here where that lies.
//!
//! A container is put when those that its deltas rest on are durable: these were sealed before it.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};

use super::adaptive::CompressionEffort;
use super::budget::{Stopped, lock};
use super::ordered::Results;
use super::pending::{Placement, Placements};
use super::put_pool::PutPool;
use super::stages::{Stage, Stages};
use crate::container::{
    ChunkAddress, Compression, Compressor, ContainerBuilder, ContainerKind, NewChunk,
    SealedContainer, Section, Slot,
};
use crate::format::Vault;

/// A front of a group smaller than this is not worth a group of its own.
const FRONT_BYTES_MIN: usize = 8 << 10;

/// How often a front that came out too large is made smaller.
const FRONT_TRIES: usize = 3;

/// Where the base of a delta lies, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BasePlace {
    /// There.
    At(ChunkAddress),
    /// Wherever the chunk of that number is placed, which goes to containers of the same kind, and
    /// before.
    Numbered(u64),
}

/// Consecutive new chunks to be stored as one unit.
#[derive(Debug, Default)]
pub(super) struct PlainGroup {
    /// Chunks, or deltas in their stead, one after the other; others may look at them as well.
    pub bytes: Arc<Vec<u8>>,
    /// Which of the bytes belong to it.
    pub range: Range<usize>,
    pub chunks: Vec<NewChunk>,
    /// The base of each chunk that is a delta: what [`NewChunk::delta`] says of it is decided when it is
    /// placed. Empty where no chunk is.
    pub bases: Vec<Option<BasePlace>>,
}

impl PlainGroup {
    /// A group of everything in `bytes`.
    pub fn new(bytes: Vec<u8>, chunks: Vec<NewChunk>, bases: Vec<Option<BasePlace>>) -> Self {
        Self {
            range: 0..bytes.len(),
            bytes: Arc::new(bytes),
            chunks,
            bases,
        }
    }

    /// What is to be compressed.
    pub fn plain(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// Takes the first `count` chunks out of it, which have so many bytes.
    fn split(&mut self, count: usize, plain_bytes: usize) -> PlainGroup {
        let middle = self.range.start + plain_bytes;
        let rest = PlainGroup {
            bytes: Arc::clone(&self.bytes),
            range: middle..self.range.end,
            chunks: self.chunks.split_off(count),
            bases: self.bases.split_off(count.min(self.bases.len())),
        };
        self.range.end = middle;
        std::mem::replace(self, rest)
    }
}

/// What goes through the compressing workers.
#[derive(Debug)]
pub(super) enum GroupJob {
    Group(PlainGroup),
    /// Close the container after all groups before this.
    Flush,
}

/// What comes out of them.
#[derive(Debug)]
pub(super) enum GroupDone {
    Group {
        group: PlainGroup,
        /// Nothing when the group is stored as it is.
        compressed: Option<Vec<u8>>,
    },
    Flush,
}

/// Places known so far, shared with the writer.
#[derive(Debug, Default)]
pub(super) struct SharedPlacements {
    pub state: Mutex<Placements>,
    pub changed: Condvar,
}

/// The packer's own thread.
pub(super) struct Packer {
    /// What its containers are.
    pub kind: ContainerKind,
    /// Super-features that chunks have which may be bases; 0 where there are none.
    pub features_per_chunk: usize,
    pub vault: Arc<Vault>,
    pub container_bytes: u32,
    pub effort: CompressionEffort,
    /// Whether containers keep the last bytes of chunks.
    pub has_markers: bool,
    pub placements: Arc<SharedPlacements>,
    pub puts: PutPool,
    pub stages: Stages,
}

/// What the writer learns of a container once it is durable.
#[derive(Debug)]
pub(super) struct SealedNote {
    pub section: Arc<Section>,
    pub object_bytes: u64,
    pub filled_bytes: u64,
    pub metadata_bytes: u64,
}

impl SealedNote {
    pub fn of(container: &SealedContainer) -> Self {
        Self {
            section: Arc::clone(&container.section),
            object_bytes: container.bytes.len() as u64,
            filled_bytes: container.filled_bytes,
            metadata_bytes: container.metadata_bytes,
        }
    }
}

/// Tells the writer that no more places will come, even if the packer panics.
pub(super) struct EndNotice(pub Arc<SharedPlacements>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        lock(&self.0.state).ended = true;
        self.0.changed.notify_all();
    }
}

impl Packer {
    /// Runs until there are no more groups, or until something failed.
    pub fn run(self, groups: Results<GroupDone>) {
        let _end = EndNotice(Arc::clone(&self.placements));
        // Not an error here: whoever stopped the pipeline has reported why.
        let _ = self.place_all(groups);
    }

    fn place_all(&self, mut groups: Results<GroupDone>) -> Result<(), Stopped> {
        let mut builder = None;
        let mut compressor = Compressor::new(self.effort.level());
        let meter = self.stages.meter(Stage::Pack);
        meter.set_threads(1);
        while let Some(done) = meter.starved(|| groups.next_result()) {
            match done {
                GroupDone::Group { group, compressed } => {
                    let stored = compressed.as_deref().unwrap_or(group.plain()).len();
                    meter.unqueue(stored as u64);
                    meter.busy_but_for_waits(stored as u64, || {
                        self.place(&mut builder, &mut compressor, group, compressed)
                    })?;
                }
                GroupDone::Flush => {
                    if let Some(last) = builder.take() {
                        meter.busy_but_for_waits(0, || self.seal(last, true))?;
                    }
                    self.flushed();
                }
            }
            self.placements.changed.notify_all();
        }
        Ok(())
    }

    /// Says that all that came before a flush is placed.
    pub fn flushed(&self) {
        let mut state = lock(&self.placements.state);
        state.of_mut(self.kind).flushes += 1;
    }

    /// Places a group, sealing containers that are full.
    pub fn place(
        &self,
        builder: &mut Option<ContainerBuilder>,
        compressor: &mut Compressor,
        mut group: PlainGroup,
        mut compressed: Option<Vec<u8>>,
    ) -> Result<(), Stopped> {
        loop {
            let open = builder.get_or_insert_with(|| self.open());
            self.find_bases(open, &mut group);
            let stored = compressed.as_deref().unwrap_or(group.plain());
            if stored.len() <= room_for(open, &group.chunks) {
                self.push(open, &group, compressed.as_deref());
                return Ok(());
            }
            let stored_bytes = stored.len();
            compressor.set_level(self.effort.level());
            let is_empty = open.chunk_count() == 0;
            if let Some((front, front_compressed)) =
                cut_front(open, compressor, &mut group, stored_bytes, is_empty)
            {
                self.push(open, &front, front_compressed.as_deref());
                if group.chunks.is_empty() {
                    return Ok(());
                }
                compressed = compressor.compress(group.plain());
            }
            if let Some(full) = builder.take() {
                self.seal(full, false)?;
            }
        }
    }

    /// Says of every delta of a group that is about to be placed in `builder` where its base lies.
    fn find_bases(&self, builder: &ContainerBuilder, group: &mut PlainGroup) {
        if group.bases.iter().all(Option::is_none) {
            return;
        }
        let state = lock(&self.placements.state);
        let row = state.of(self.kind);
        let placed_end = row.placed_end;
        for (chunk, base) in group.chunks.iter_mut().zip(&group.bases) {
            let (Some(delta), Some(base)) = (&mut chunk.delta, base) else {
                continue;
            };
            delta.base = match *base {
                BasePlace::At(address) => address,
                BasePlace::Numbered(sequence) if sequence < placed_end => row
                    .address(sequence)
                    .expect("what is placed has an address"),
                // It is in this very group, and comes before.
                BasePlace::Numbered(sequence) => {
                    let slot = builder.chunk_count() as u64 + sequence - placed_end;
                    ChunkAddress {
                        container: builder.id(),
                        slot: Slot(slot as u16),
                    }
                }
            };
        }
    }

    fn open(&self) -> ContainerBuilder {
        let mut builder = ContainerBuilder::new(&self.vault, self.kind, self.container_bytes)
            .with_features(self.features_per_chunk);
        if self.has_markers {
            builder = builder.with_markers();
        }
        let mut placements = lock(&self.placements.state);
        let row = placements.of_mut(self.kind);
        let (first_sequence, first_offset) = (row.placed_end, row.placed_offset);
        row.starts.push(Placement {
            first_sequence,
            first_offset,
            container: builder.id(),
        });
        builder
    }

    fn push(&self, builder: &mut ContainerBuilder, group: &PlainGroup, compressed: Option<&[u8]>) {
        let (stored, compression) = match compressed {
            Some(bytes) => (bytes, Compression::Zstd),
            None => (group.plain(), Compression::Stored),
        };
        builder.push_chunks(stored, compression, &group.chunks);
        let mut placements = lock(&self.placements.state);
        let row = placements.of_mut(self.kind);
        row.placed_end += group.chunks.len() as u64;
        let lengths = group.chunks.iter().map(|chunk| u64::from(chunk.length));
        row.placed_offset += lengths.sum::<u64>();
    }

    /// Closes a container and has it put, after those that its deltas rest on.
    pub fn seal(&self, builder: ContainerBuilder, is_last: bool) -> Result<(), Stopped> {
        let container = builder.finish(is_last);
        let deltas = container.section.deltas.iter().flatten();
        let bases: HashSet<_> = deltas.map(|delta| delta.base.container).collect();
        let meter = self.stages.meter(Stage::Pack);
        meter.blocked(|| {
            for base in bases {
                self.puts.wait_for(base.own_object());
            }
            self.puts.put(container)
        })
    }
}

fn room_for(builder: &ContainerBuilder, chunks: &[NewChunk]) -> usize {
    let mut count = builder.count();
    chunks.iter().for_each(|chunk| count.add(chunk));
    count.group_room()
}

/// Cuts from a group as many chunks as the container has room for, judging by how the whole
/// group compressed, and leaves the rest in `group`. Nothing when the room is too small to be
/// worth it; at least one chunk when `must` is set (an empty container takes any chunk).
fn cut_front(
    builder: &ContainerBuilder,
    compressor: &mut Compressor,
    group: &mut PlainGroup,
    stored_bytes: usize,
    must: bool,
) -> Option<(PlainGroup, Option<Vec<u8>>)> {
    let mut share = stored_bytes as f64 / group.plain().len() as f64 * 1.02;
    for _ in 0..FRONT_TRIES {
        let count = chunks_that_fit(builder, group, share);
        let count = if must { count.max(1) } else { count };
        let plain_bytes = plain_bytes_of(&group.chunks[..count]);
        if count == 0 || (plain_bytes < FRONT_BYTES_MIN && !must) {
            return None;
        }
        let compressed = compressor.compress(&group.plain()[..plain_bytes]);
        let front_bytes = compressed.as_ref().map_or(plain_bytes, Vec::len);
        if front_bytes <= room_for(builder, &group.chunks[..count]) {
            return Some((group.split(count, plain_bytes), compressed));
        }
        share = (front_bytes as f64 / plain_bytes as f64).max(share) * 1.05;
    }
    if must {
        let plain_bytes = plain_bytes_of(&group.chunks[..1]);
        return Some((group.split(1, plain_bytes), None));
    }
    None
}

/// How many chunks fit if each stored byte takes `share` bytes.
fn chunks_that_fit(builder: &ContainerBuilder, group: &PlainGroup, share: f64) -> usize {
    let mut plain_bytes = 0u64;
    let mut metadata = builder.count();
    for (index, chunk) in group.chunks.iter().enumerate() {
        plain_bytes += u64::from(chunk.stored_bytes());
        metadata.add(chunk);
        if plain_bytes as f64 * share > metadata.group_room() as f64 {
            return index;
        }
    }
    // The whole group was tried and did not fit.
    group.chunks.len() - 1
}

fn plain_bytes_of(chunks: &[NewChunk]) -> usize {
    let stored = chunks.iter().map(|chunk| chunk.stored_bytes() as usize);
    stored.sum()
}

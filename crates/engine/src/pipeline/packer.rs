//! Places compressed groups into containers, in sequence (MACS, §III-B, Eq. 4).
//!
//! A group that does not fit is cut short at a chunk: its front fills the container, the rest
//! opens the next one. The outcome depends on the sequence of groups alone.

use std::sync::{Arc, Condvar, Mutex};

use super::adaptive::CompressionEffort;
use super::budget::{Stopped, lock};
use super::ordered::Results;
use super::pending::{Placement, Placements};
use super::put_pool::PutPool;
use super::stages::{Stage, Stages};
use crate::container::{
    Compression, Compressor, ContainerBuilder, ContainerKind, SealedContainer, Section,
};
use crate::fingerprint::Fingerprint;
use crate::format::Vault;

/// A front of a group smaller than this is not worth a group of its own.
const FRONT_BYTES_MIN: usize = 8 << 10;

/// How often a front that came out too large is made smaller.
const FRONT_TRIES: usize = 3;

/// Consecutive new chunks to be stored as one unit.
#[derive(Debug, Default)]
pub(super) struct PlainGroup {
    pub plain: Vec<u8>,
    pub chunks: Vec<(Fingerprint, u32)>,
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
struct EndNotice(Arc<SharedPlacements>);

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
                    let stored = compressed.as_ref().unwrap_or(&group.plain).len();
                    meter.unqueue(stored as u64);
                    meter.busy_but_for_waits(stored as u64, || {
                        self.place(&mut builder, &mut compressor, group, compressed)
                    })?;
                }
                GroupDone::Flush => {
                    if let Some(last) = builder.take() {
                        meter.busy_but_for_waits(0, || self.seal(last, true))?;
                    }
                    lock(&self.placements.state).flushes += 1;
                }
            }
            self.placements.changed.notify_all();
        }
        Ok(())
    }

    fn place(
        &self,
        builder: &mut Option<ContainerBuilder>,
        compressor: &mut Compressor,
        mut group: PlainGroup,
        mut compressed: Option<Vec<u8>>,
    ) -> Result<(), Stopped> {
        loop {
            let open = builder.get_or_insert_with(|| self.open());
            let stored = compressed.as_deref().unwrap_or(&group.plain);
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
                compressed = compressor.compress(&group.plain);
            }
            if let Some(full) = builder.take() {
                self.seal(full, false)?;
            }
        }
    }

    fn open(&self) -> ContainerBuilder {
        let kind = ContainerKind::Data;
        let mut builder = ContainerBuilder::new(&self.vault, kind, self.container_bytes);
        if self.has_markers {
            builder = builder.with_markers();
        }
        let mut placements = lock(&self.placements.state);
        let first_offset = placements.placed_offset;
        let first_sequence = placements.placed_end;
        placements.starts.push(Placement {
            first_sequence,
            first_offset,
            container: builder.id(),
        });
        builder
    }

    fn push(&self, builder: &mut ContainerBuilder, group: &PlainGroup, compressed: Option<&[u8]>) {
        match compressed {
            Some(bytes) => builder.push_group(bytes, Compression::Zstd, &group.chunks),
            None => builder.push_group(&group.plain, Compression::Stored, &group.chunks),
        }
        builder.push_markers(&group.plain);
        let mut placements = lock(&self.placements.state);
        placements.placed_end += group.chunks.len() as u64;
        placements.placed_offset += group.plain.len() as u64;
    }

    fn seal(&self, builder: ContainerBuilder, is_last: bool) -> Result<(), Stopped> {
        let container = builder.finish(is_last);
        let meter = self.stages.meter(Stage::Pack);
        meter.blocked(|| self.puts.put(container))
    }
}

fn room_for(builder: &ContainerBuilder, chunks: &[(Fingerprint, u32)]) -> usize {
    let metadata_bytes = chunks
        .iter()
        .map(|&(_, length)| ContainerBuilder::chunk_metadata_bytes(length))
        .sum();
    builder.group_room(chunks.len(), metadata_bytes)
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
    let mut share = stored_bytes as f64 / group.plain.len() as f64 * 1.02;
    for _ in 0..FRONT_TRIES {
        let count = chunks_that_fit(builder, group, share);
        let count = if must { count.max(1) } else { count };
        let plain_bytes = plain_bytes_of(&group.chunks[..count]);
        if count == 0 || (plain_bytes < FRONT_BYTES_MIN && !must) {
            return None;
        }
        let compressed = compressor.compress(&group.plain[..plain_bytes]);
        let front_bytes = compressed.as_ref().map_or(plain_bytes, Vec::len);
        if front_bytes <= room_for(builder, &group.chunks[..count]) {
            return Some((split(group, count, plain_bytes), compressed));
        }
        share = (front_bytes as f64 / plain_bytes as f64).max(share) * 1.05;
    }
    if must {
        let plain_bytes = plain_bytes_of(&group.chunks[..1]);
        return Some((split(group, 1, plain_bytes), None));
    }
    None
}

/// How many chunks fit if each stored byte takes `share` bytes.
fn chunks_that_fit(builder: &ContainerBuilder, group: &PlainGroup, share: f64) -> usize {
    let mut plain_bytes = 0u64;
    let mut metadata_bytes = 0;
    for (index, &(_, length)) in group.chunks.iter().enumerate() {
        plain_bytes += u64::from(length);
        metadata_bytes += ContainerBuilder::chunk_metadata_bytes(length);
        let room = builder.group_room(index + 1, metadata_bytes);
        if plain_bytes as f64 * share > room as f64 {
            return index;
        }
    }
    // The whole group was tried and did not fit.
    group.chunks.len() - 1
}

fn plain_bytes_of(chunks: &[(Fingerprint, u32)]) -> usize {
    chunks.iter().map(|&(_, length)| length as usize).sum()
}

/// Takes the first `count` chunks out of a group.
fn split(group: &mut PlainGroup, count: usize, plain_bytes: usize) -> PlainGroup {
    let rest = PlainGroup {
        plain: group.plain.split_off(plain_bytes),
        chunks: group.chunks.split_off(count),
    };
    std::mem::replace(group, rest)
}

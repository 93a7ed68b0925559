//! Chunks that wait until it is decided which duplicates are stored again ([`crate::rewriting`]).
//!
//! Enter: segments of streams in walk order, each chunk with its place in a container of an
//! earlier backup, if it has one. Leave: the same chunks in the same order, each with its
//! decision, and the segment's part of the recipe, filled in when its last chunk is decided.
//!
//! The window goes on from stream to stream, for a backup of small files is one stream to whoever
//! restores it. **Memory**: segments wait whole, so beside the window (a share of the memory,
//! [`super::MemoryShares`]) stands at most what the oldest of them has decided already.

use std::collections::VecDeque;

use super::chunk_stream::ChunkedSegment;
use super::pending::{PendingRecipe, Undecided};
use crate::container::{ChunkAddress, ContainerId};
use crate::fingerprint::Fingerprint;
use crate::rewriting::{ChunkPlace, Decision, Rewriter, Rewriting, StreamChunk};

/// What waits.
#[derive(Debug)]
pub(super) struct DecisionWindow {
    rewriter: Rewriter<ContainerId, Option<ChunkAddress>>,
    segments: VecDeque<WaitingSegment>,
    /// Decisions on the chunks that come first in `segments`.
    decided: VecDeque<(Option<ChunkAddress>, Decision)>,
}

#[derive(Debug)]
struct WaitingSegment {
    bytes: Vec<u8>,
    chunks: std::vec::IntoIter<(Fingerprint, u32)>,
    /// Where the next chunk begins.
    offset: usize,
    /// What is decided of it.
    recipe: PendingRecipe,
    part: Undecided,
}

/// A chunk and what was decided.
pub(super) struct DecidedChunk<'a> {
    pub fingerprint: Fingerprint,
    pub bytes: &'a [u8],
    /// Where it lay when it came.
    pub address: Option<ChunkAddress>,
    pub decision: Decision,
}

impl DecisionWindow {
    /// Nothing when nothing is ever rewritten. The window is made to fit `window_bytes`.
    pub fn new(rewriting: Rewriting, container_bytes: u32, window_bytes: usize) -> Option<Self> {
        if rewriting == Rewriting::Off {
            return None;
        }
        let (rewriting, container_bytes) = rewriting.within(container_bytes, window_bytes as u64);
        Some(Self {
            rewriter: Rewriter::new(&rewriting, container_bytes),
            segments: VecDeque::new(),
            decided: VecDeque::new(),
        })
    }

    /// Adds a segment to a recipe; `places` are those of its chunks.
    pub fn push(
        &mut self,
        recipe: &mut PendingRecipe,
        segment: ChunkedSegment,
        places: &[Option<ChunkAddress>],
    ) {
        if segment.chunks.is_empty() {
            return;
        }
        let chunk_bytes = segment.chunk_bytes();
        let ChunkedSegment { mut bytes, chunks } = segment;
        bytes.truncate(chunk_bytes as usize);
        if bytes.capacity() / 2 > bytes.len() {
            bytes.shrink_to_fit();
        }
        for ((_, length), address) in chunks.iter().zip(places) {
            let place = address.map_or(ChunkPlace::New, |address| {
                ChunkPlace::Stored(address.container)
            });
            let chunk = StreamChunk {
                bytes: *length,
                place,
            };
            let decided = &mut self.decided;
            let mut take = |address, decision| decided.push_back((address, decision));
            self.rewriter.push(chunk, *address, &mut take);
        }
        let part = Undecided::default();
        recipe.push_undecided(part.clone(), chunk_bytes);
        self.segments.push_back(WaitingSegment {
            bytes,
            chunks: chunks.into_iter(),
            offset: 0,
            recipe: PendingRecipe::default(),
            part,
        });
    }

    /// Decides on all that waits.
    pub fn finish(&mut self) {
        let decided = &mut self.decided;
        let mut take = |address, decision| decided.push_back((address, decision));
        self.rewriter.finish(&mut take);
    }

    /// Hands out what is decided, each chunk with the recipe that it belongs to.
    pub fn take_decided<E>(
        &mut self,
        mut store: impl FnMut(&mut PendingRecipe, &DecidedChunk<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(segment) = self.segments.front_mut() {
            while !self.decided.is_empty()
                && let Some((fingerprint, length)) = segment.chunks.next()
                && let Some((address, decision)) = self.decided.pop_front()
            {
                let end = segment.offset + length as usize;
                let chunk = DecidedChunk {
                    fingerprint,
                    bytes: &segment.bytes[segment.offset..end],
                    address,
                    decision,
                };
                segment.offset = end;
                store(&mut segment.recipe, &chunk)?;
            }
            if segment.chunks.len() > 0 {
                return Ok(());
            }
            if let Some(whole) = self.segments.pop_front() {
                whole.part.decide(whole.recipe);
            }
        }
        Ok(())
    }
}

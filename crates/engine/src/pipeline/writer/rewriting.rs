//! Storing duplicates again: what the writer does with chunks that waited for that decision.
//!
//! Enter: segments as [`Writer::push_segment`] takes them. They wait in a [`DecisionWindow`]; what is
//! decided goes on as it would have gone at once. Invariants:
//! * new chunks, and those stored again, join groups in the order of the streams;
//! * only the newest copy of a chunk is ever stored again, at most once in a run, and what this run
//!   stored never is: the chunk is found at its new place from then on;
//! * decisions, and so what is packed, follow from input and settings alone.

use super::{WriteError, Writer};
use crate::container::ChunkAddress;
use crate::index::Found;
use crate::pipeline::chunk_stream::ChunkedSegment;
use crate::pipeline::decision_window::{DecidedChunk, DecisionWindow};
use crate::pipeline::pending::PendingRecipe;
use crate::recipe::Run;
use crate::rewriting::Decision;

impl Writer {
    /// Decides now on all chunks that wait to be decided, with what is known of the streams by now.
    /// Call it at places that the input alone decides.
    ///
    /// # Errors
    /// When the store fails, here or in the background.
    pub fn decide_waiting(&mut self) -> Result<(), WriteError> {
        if let Some(ahead) = &mut self.deciding {
            ahead.finish();
            self.store_decided()?;
        }
        Ok(())
    }

    /// Puts a segment behind what waits, and stores what is decided by then.
    pub(super) fn push_ahead(
        &mut self,
        ahead: &mut DecisionWindow,
        recipe: &mut PendingRecipe,
        segment: ChunkedSegment,
    ) -> Result<(), WriteError> {
        let mut places = Vec::with_capacity(segment.chunks.len());
        for (fingerprint, _) in &segment.chunks {
            let found = self.index.find(fingerprint)?;
            places.push(match found {
                Some(Found::Stored(address)) if !self.index.is_own(address.container) => {
                    Some(address)
                }
                _ => None,
            });
        }
        ahead.push(recipe, segment, &places);
        self.store_decided_of(ahead)
    }

    fn store_decided(&mut self) -> Result<(), WriteError> {
        let Some(mut ahead) = self.deciding.take() else {
            return Ok(());
        };
        let stored = self.store_decided_of(&mut ahead);
        self.deciding = Some(ahead);
        stored
    }

    fn store_decided_of(&mut self, ahead: &mut DecisionWindow) -> Result<(), WriteError> {
        ahead.take_decided(|recipe, chunk| match (chunk.decision, chunk.address) {
            (Decision::Rewrite, Some(_)) => self.rewrite_chunk(recipe, chunk),
            (_, address) => self.keep_chunk(recipe, chunk, address),
        })
    }

    /// Refers to a chunk where it lies; a new one is stored.
    fn keep_chunk(
        &mut self,
        recipe: &mut PendingRecipe,
        chunk: &DecidedChunk<'_>,
        address: Option<ChunkAddress>,
    ) -> Result<(), WriteError> {
        // It may have been stored again since it was looked up, or its container was set aside.
        let is_as_before = self.totals.chunks_rewritten == 0;
        match address {
            Some(address) if is_as_before && self.index.is_live(address.container) => {
                self.totals.chunks += 1;
                recipe.push_placed(Run::Slots {
                    container: address.container,
                    first: address.slot,
                    count: 1,
                    bytes: chunk.bytes.len() as u64,
                });
                Ok(())
            }
            _ => self.push_chunk(recipe, chunk.fingerprint, chunk.bytes),
        }
    }

    /// Stores a duplicate again, unless this run has done so already.
    fn rewrite_chunk(
        &mut self,
        recipe: &mut PendingRecipe,
        chunk: &DecidedChunk<'_>,
    ) -> Result<(), WriteError> {
        let bytes = chunk.bytes.len() as u64;
        self.totals.chunks += 1;
        match self.index.find_newest(&chunk.fingerprint)? {
            Some(Found::Stored(newest)) if Some(newest) == chunk.address => {
                self.totals.chunks_rewritten += 1;
                self.totals.bytes_rewritten += bytes;
            }
            // A newer copy, of this run or an earlier one.
            Some(found) => {
                Self::refer(recipe, found, bytes);
                return Ok(());
            }
            // Set aside since it was looked up.
            None => {
                self.totals.chunks_new += 1;
                self.totals.bytes_new += bytes;
            }
        }
        // Whole: what it is stored again for is not to read other containers.
        self.store_whole(recipe, chunk.fingerprint, chunk.bytes, Vec::new())
    }
}

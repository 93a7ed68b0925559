//! A stream whose chunks come in, one segment after the other: its recipe and its check value.

use super::budget::Stopped;
use super::fingerprint_pool::SegmentInTurn;
use super::pending::PendingRecipe;
use super::stages::Stage;
use super::writer::{WriteError, Writer};
use crate::fingerprint::{CheckValue, Fingerprint, Fingerprinter, StreamCheck};
use crate::recipe::Run;

/// What is known of a stream so far.
#[derive(Debug)]
pub struct IncomingStream {
    recipe: PendingRecipe,
    check: StreamCheck,
    /// The hole at the end so far: what is one in the recipe is one in the check value.
    hole_bytes: u64,
}

impl IncomingStream {
    /// The beginning of a stream.
    #[must_use]
    pub fn new(fingerprinter: &Fingerprinter) -> Self {
        Self {
            recipe: PendingRecipe::default(),
            check: fingerprinter.check(),
            hole_bytes: 0,
        }
    }

    /// Stores chunks that follow, once they are fingerprinted; says how many bytes they have.
    ///
    /// # Errors
    /// When the store fails, here or in the background.
    pub fn segment(
        &mut self,
        segment: SegmentInTurn,
        writer: &mut Writer,
    ) -> Result<u64, WriteError> {
        let stages = writer.stream_chunking().stages.clone();
        let waiting = stages.meter(Stage::Index);
        let segment = waiting
            .starved(|| segment.wait())
            .map_err(|Stopped| WriteError::WorkerLost)?;
        self.end_hole();
        let mut bytes = 0;
        for (fingerprint, length) in &segment.chunks {
            self.check.chunk(*length, fingerprint);
            bytes += u64::from(*length);
        }
        waiting.count_bytes(bytes);
        writer.push_segment(&mut self.recipe, segment)?;
        Ok(bytes)
    }

    /// A hole follows.
    pub fn hole(&mut self, bytes: u64) {
        self.hole_bytes += bytes;
        self.recipe.push_placed(Run::Hole { bytes });
    }

    /// Chunks follow that are stored already: a run of slots, with their lengths and fingerprints.
    pub fn stored(&mut self, run: Run, chunks: impl Iterator<Item = (u32, Fingerprint)>) {
        self.end_hole();
        for (length, fingerprint) in chunks {
            self.check.chunk(length, &fingerprint);
        }
        self.recipe.push_placed(run);
    }

    /// A chunk follows that is stored, or handed in already; says whether it is there ([`Writer::push_known`]).
    ///
    /// # Errors
    /// When the index can't be read.
    pub fn known(
        &mut self,
        fingerprint: &Fingerprint,
        length: u32,
        writer: &mut Writer,
    ) -> Result<bool, WriteError> {
        self.end_hole();
        self.check.chunk(length, fingerprint);
        writer.push_known(&mut self.recipe, fingerprint, length)
    }

    fn end_hole(&mut self) {
        if self.hole_bytes > 0 {
            self.check.hole(self.hole_bytes);
            self.hole_bytes = 0;
        }
    }

    /// The recipe so far.
    pub fn recipe_mut(&mut self) -> &mut PendingRecipe {
        &mut self.recipe
    }

    /// What it came to; the next stream begins.
    pub fn take(&mut self, fingerprinter: &Fingerprinter) -> (PendingRecipe, CheckValue) {
        self.end_hole();
        let whole = std::mem::replace(self, Self::new(fingerprinter));
        (whole.recipe, whole.check.finish())
    }
}

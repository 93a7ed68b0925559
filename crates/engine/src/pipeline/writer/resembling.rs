//! Storing new chunks: as deltas where they resemble others, whole otherwise.

use super::{WriteError, Writer};
use crate::container::ContainerKind;
use crate::fingerprint::Fingerprint;
use crate::index::OpenPlace;
use crate::pipeline::budget::Stopped;
use crate::pipeline::deltas::DeltaStage;
use crate::pipeline::pending::PendingRecipe;

impl Writer {
    /// Stores a new chunk.
    pub(super) fn store_new(
        &mut self,
        recipe: &mut PendingRecipe,
        fingerprint: Fingerprint,
        chunk: &[u8],
    ) -> Result<(), WriteError> {
        let Some(mut deltas) = self.deltas.take() else {
            return self.store_whole(recipe, fingerprint, chunk, Vec::new());
        };
        let features = self.store_similar(&mut deltas, recipe, fingerprint, chunk);
        self.deltas = Some(deltas);
        match features? {
            Some(features) => self.store_whole(recipe, fingerprint, chunk, features),
            None => Ok(()),
        }
    }

    /// Stores a chunk for which there is a base. Where there is none, says by which super-features it may
    /// be one itself.
    fn store_similar(
        &mut self,
        deltas: &mut DeltaStage,
        recipe: &mut PendingRecipe,
        fingerprint: Fingerprint,
        chunk: &[u8],
    ) -> Result<Option<Vec<u32>>, WriteError> {
        let Some((base, depth)) = deltas.find_base(chunk, &mut self.index)? else {
            deltas.stored_whole(self.next_sequence);
            return Ok(Some(deltas.super_features().to_vec()));
        };
        let kind = ContainerKind::Deltas;
        let pushed = deltas.push(fingerprint, chunk, base, depth);
        let (sequence, offset) = pushed.map_err(|Stopped| self.failure.take())?;
        let place = OpenPlace::Sequence {
            kind,
            sequence,
            offset,
        };
        self.index.insert_open(fingerprint, place);
        recipe.push_new(kind, sequence, offset, chunk.len() as u64);
        Ok(None)
    }
}

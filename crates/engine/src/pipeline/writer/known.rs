//! Chunks whose fingerprints are known before their bytes: of a copy from another repository.

use super::{WriteError, Writer};
use crate::fingerprint::Fingerprint;
use crate::pipeline::pending::PendingRecipe;

impl Writer {
    /// Is a chunk of that fingerprint stored, or handed in already?
    ///
    /// # Errors
    /// When the index can't be read.
    pub fn has_chunk(&mut self, fingerprint: &Fingerprint) -> Result<bool, WriteError> {
        Ok(self.index.find(fingerprint)?.is_some())
    }

    /// Adds a chunk of that length to a recipe if [`Writer::has_chunk`] says that it is there; says whether it is.
    ///
    /// # Errors
    /// When the index can't be read.
    pub fn push_known(
        &mut self,
        recipe: &mut PendingRecipe,
        fingerprint: &Fingerprint,
        bytes: u32,
    ) -> Result<bool, WriteError> {
        let Some(found) = self.index.find(fingerprint)? else {
            return Ok(false);
        };
        Self::refer(recipe, found, u64::from(bytes));
        Ok(true)
    }
}

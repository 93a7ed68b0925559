//! Forgets snapshots: removes the objects `snapshots/ID`, and nothing else.
//!
//! Enters: what was listed, and which of it goes (by a policy: [`crate::retention`]). A snapshot
//! that can't be read is in no list of those that go. Chunks that only these snapshots used stay
//! stored until they are pruned. No lock is taken: whoever backs up or restores meanwhile finds a
//! snapshot there or gone; a backup whose parent goes has read what it needs, or reads files again.

use crate::repository::{Repository, RepositoryError};
use crate::snapshot::{Snapshot, SnapshotError, SnapshotList};

impl Repository {
    /// Deletes these snapshots of the list, the oldest first, and what changes that were cut off
    /// have left of any. Nothing is deleted when one of them is protected.
    ///
    /// # Errors
    /// [`SnapshotError::Protected`]; when the repository may not be written to; when the store
    /// fails: some are gone then.
    pub fn forget(
        &self,
        list: &SnapshotList,
        snapshots: &[&Snapshot],
    ) -> Result<(), RepositoryError> {
        self.check_forgettable(snapshots)?;
        let mut sorted = snapshots.to_vec();
        sorted.sort_by_key(|snapshot| snapshot.order());
        for snapshot in sorted {
            list.delete(snapshot, self.store())?;
        }
        list.delete_replaced(self.store())?;
        Ok(())
    }

    /// Whether these snapshots could be deleted. Touches nothing.
    ///
    /// # Errors
    /// [`SnapshotError::Protected`]; when the repository may not be written to.
    pub fn check_forgettable(&self, snapshots: &[&Snapshot]) -> Result<(), RepositoryError> {
        self.check_writable()?;
        let protected = snapshots.iter().filter(|snapshot| snapshot.is_protected);
        let ids: Vec<_> = protected.map(|snapshot| snapshot.id).collect();
        if !ids.is_empty() {
            return Err(SnapshotError::Protected { ids }.into());
        }
        Ok(())
    }
}

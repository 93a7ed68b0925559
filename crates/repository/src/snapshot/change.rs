//! What can be changed of a snapshot: its tags, and whether it is protected.
//!
//! Enters: a snapshot and a change. Leaves: a snapshot with a new id that names the ids which it
//! had before ([`Snapshot::replaces`]).
//!
//! Method: the new object is stored durably, then the old one is deleted. At every instant at least
//! one of them is there; where both are (a change that was cut off, or is at work), the old one is
//! known by the new one's list, and whoever lists snapshots shows the new one only. There is no
//! lock. Of two clients that change the same snapshot at the same time, the one that comes second
//! finds the old object gone, takes its own back and says so; had neither deleted it yet, two
//! snapshots are left, each with its change, so that none is lost.
//!
//! Limit: [`REPLACES_MAX`] earlier ids; then the one after the first is dropped.

use engine::format::{ObjectError, Vault};
use engine::object::{ObjectId, ObjectStore};

use super::body::REPLACES_MAX;
use super::{Snapshot, SnapshotError, SnapshotList, key_of};

/// A change of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotChange {
    /// It gets these tags, beside those that it has.
    AddTags(Vec<String>),
    /// It has these tags no more.
    RemoveTags(Vec<String>),
    /// It has these tags and no others.
    SetTags(Vec<String>),
    /// Nobody forgets it.
    Protect,
    /// It may be forgotten again.
    Unprotect,
}

impl SnapshotChange {
    /// The snapshot with the change; nothing when it is like that already.
    #[must_use]
    pub fn of(&self, snapshot: &Snapshot) -> Option<Snapshot> {
        let mut changed = snapshot.clone();
        match self {
            SnapshotChange::AddTags(tags) => add(&mut changed.tags, tags),
            SnapshotChange::RemoveTags(tags) => changed.tags.retain(|tag| !tags.contains(tag)),
            SnapshotChange::SetTags(tags) => {
                changed.tags.clear();
                add(&mut changed.tags, tags);
            }
            SnapshotChange::Protect => changed.is_protected = true,
            SnapshotChange::Unprotect => changed.is_protected = false,
        }
        (changed != *snapshot).then_some(changed)
    }
}

fn add(tags: &mut Vec<String>, new: &[String]) {
    for tag in new {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
}

impl Snapshot {
    /// The id that it had when it was made.
    #[must_use]
    pub fn original(&self) -> ObjectId {
        self.replaces.first().copied().unwrap_or(self.id)
    }

    /// Stores `changed`, which is this snapshot with other tags or the like, in the place of this
    /// one, and returns it with its new id.
    ///
    /// # Errors
    /// [`SnapshotError::TooLarge`]; [`SnapshotError::Vanished`] when this one is gone, nothing is
    /// left of the change then; and when the store fails: at least one of the two is there.
    pub fn replace(
        &self,
        changed: Snapshot,
        store: &dyn ObjectStore,
        vault: &Vault,
    ) -> Result<Snapshot, SnapshotError> {
        let replaced = self.replace_unless(changed, store, vault, &|| Ok(false))?;
        Ok(replaced.expect("nobody is taken for dead here"))
    }

    /// The same, unless `is_dead` says, after the new object was written, that its writer was taken for dead: then
    /// that object is taken back, this one stays, and nothing comes back.
    ///
    /// # Errors
    /// As [`Snapshot::replace`].
    pub(crate) fn replace_unless(
        &self,
        mut changed: Snapshot,
        store: &dyn ObjectStore,
        vault: &Vault,
        is_dead: &dyn Fn() -> Result<bool, ObjectError>,
    ) -> Result<Option<Snapshot>, SnapshotError> {
        changed.replaces.clone_from(&self.replaces);
        changed.replaces.push(self.id);
        if changed.replaces.len() > REPLACES_MAX {
            changed.replaces.remove(1);
        }
        if !changed.write_unless(store, vault, is_dead)? {
            return Ok(None);
        }
        // Had it been deleted before the new one was there, it would come back by this.
        match store.get_tail(&key_of(self.id), 0) {
            Ok(_) => {}
            Err(error) if error.is_missing() => {
                delete(store, changed.id)?;
                return Err(SnapshotError::Vanished { id: self.id });
            }
            Err(error) => return Err(ObjectError::from(error).into()),
        }
        delete(store, self.id)?;
        Ok(Some(changed))
    }

    /// Stores the snapshot, unless `is_dead` says, after that, that its writer was taken for dead: then it is taken
    /// back. Says whether it stands.
    ///
    /// # Errors
    /// As [`Snapshot::write`].
    pub(crate) fn write_unless(
        &mut self,
        store: &dyn ObjectStore,
        vault: &Vault,
        is_dead: &dyn Fn() -> Result<bool, ObjectError>,
    ) -> Result<bool, SnapshotError> {
        self.write(store, vault)?;
        if is_dead()? {
            delete(store, self.id)?;
            return Ok(false);
        }
        Ok(true)
    }
}

impl SnapshotList {
    /// Deletes a snapshot of the list, and first what is still there of its earlier forms, so that
    /// none of them comes back. Its data stays until it is pruned.
    ///
    /// # Errors
    /// [`SnapshotError::Protected`]; and when the store fails: the snapshot may still be there.
    pub fn delete(
        &self,
        snapshot: &Snapshot,
        store: &dyn ObjectStore,
    ) -> Result<(), SnapshotError> {
        if snapshot.is_protected {
            return Err(SnapshotError::Protected {
                ids: vec![snapshot.id],
            });
        }
        for id in self.replaced_by(snapshot) {
            delete(store, id)?;
        }
        delete(store, snapshot.id)
    }

    /// Deletes what changes that were cut off have left of earlier forms of snapshots. Returns how
    /// many objects that were.
    ///
    /// # Errors
    /// When the store fails.
    pub fn delete_replaced(&self, store: &dyn ObjectStore) -> Result<u64, SnapshotError> {
        let mut deleted = 0;
        for snapshot in &self.snapshots {
            let replaced: Vec<ObjectId> = self.replaced_by(snapshot).collect();
            if replaced.is_empty() {
                continue;
            }
            // Whoever wrote it may have died before it was durable.
            match store.persist(&[key_of(snapshot.id)]) {
                Err(error) if error.is_missing() => continue,
                outcome => outcome.map_err(ObjectError::from)?,
            }
            for id in replaced {
                delete(store, id)?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// Objects that are there of a snapshot's earlier forms.
    fn replaced_by(&self, snapshot: &Snapshot) -> impl Iterator<Item = ObjectId> {
        let is_there = |id: &ObjectId| self.replaced.binary_search(id).is_ok();
        snapshot.replaces.iter().copied().filter(is_there)
    }
}

fn delete(store: &dyn ObjectStore, id: ObjectId) -> Result<(), SnapshotError> {
    Ok(store.delete(&key_of(id)).map_err(ObjectError::from)?)
}

#[cfg(test)]
mod tests;

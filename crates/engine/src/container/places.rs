//! In which object a logical container is read that may lie in several (docs/format/v1.md, §7).
//!
//! Enter: a logical container, and the slots that are wanted. Leaves: the section of the first of its
//! places that exists and has them. Where an object is missing, the remaps are read again: a compaction
//! may have moved what it held since this reader was opened. That is done once for an object, and for at most
//! [`VAIN_MAX`] objects without learning of a new remap, so that what is lost costs little.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::metadata::Section;
use super::reader::{ContainerReader, LoadedSection};
use super::{ChunkAddress, ContainerId, RemapSet, Slot};
use crate::format::ObjectError;
use crate::object::{ObjectId, ObjectKey, ObjectKind};

/// Missing objects for which remaps are read again until that brings something new.
const VAIN_MAX: usize = 64;

/// A logical container in one of the objects that it may lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionPlace {
    /// The logical container.
    pub container: ContainerId,
    /// The object.
    pub object: ObjectId,
}

impl SectionPlace {
    /// The key of the object.
    #[must_use]
    pub fn object_key(self) -> ObjectKey {
        ObjectKey::new(ObjectKind::Container, self.object)
    }
}

/// A section, and the indices of chunks in it that follow each other.
pub type FoundFront = (Arc<LoadedSection>, Range<usize>);

/// The remaps that a reader goes by, which it may read again.
pub(super) struct CurrentRemaps {
    set: RwLock<Arc<RemapSet>>,
    /// Missing objects for which reading them again brought nothing new.
    vain: Mutex<HashSet<ObjectId>>,
}

impl CurrentRemaps {
    pub fn new(remaps: RemapSet) -> Self {
        Self {
            set: RwLock::new(Arc::new(remaps)),
            vain: Mutex::default(),
        }
    }
}

impl Section {
    /// The indices of the chunks in the first of `count` consecutive slots from `first`, as many as are there;
    /// nothing when the first is not.
    #[must_use]
    pub fn front_in(&self, first: Slot, count: u32) -> Option<Range<usize>> {
        if let Some(all) = self.chunks_in(first, count) {
            return Some(all);
        }
        let start = self.chunk_in(first)?;
        let consecutive = self.slots[start..].iter().enumerate();
        let front = consecutive
            .take(count as usize)
            .take_while(|(at, slot)| usize::from(slot.0) == usize::from(first.0) + at);
        let end = start + front.count();
        (end > start).then_some(start..end)
    }
}

impl LoadedSection {
    /// Where it was loaded from.
    #[must_use]
    pub fn place(&self) -> SectionPlace {
        SectionPlace {
            container: self.section.id,
            object: self.object.id,
        }
    }
}

impl ContainerReader {
    /// The remaps it reads by: those that there were when it was opened, or when an object was last found
    /// missing.
    #[must_use]
    pub fn remaps(&self) -> Arc<RemapSet> {
        let set = self.remaps.set.read();
        Arc::clone(&set.unwrap_or_else(PoisonError::into_inner))
    }

    /// The section of a logical container in the first of its places that exists. Of one that lies in several,
    /// others may have slots that this one lacks: [`ContainerReader::find`].
    ///
    /// # Errors
    /// When none can be read.
    pub fn section(&self, id: ContainerId) -> Result<Arc<LoadedSection>, ObjectError> {
        let found = self.find_where(id, &mut |loaded| Some(Arc::clone(loaded)))?;
        Ok(found.expect("what exists is taken"))
    }

    /// The section that holds a chunk, in the first place that has it, and the chunk's index there; nothing
    /// when no place has it.
    ///
    /// # Errors
    /// When no place has it, and not all could be read: missing ones beside others that exist are no error.
    pub fn find(
        &self,
        address: ChunkAddress,
    ) -> Result<Option<(Arc<LoadedSection>, usize)>, ObjectError> {
        self.find_where(address.container, &mut |loaded| {
            let chunk = loaded.section.chunk_in(address.slot)?;
            Some((Arc::clone(loaded), chunk))
        })
    }

    /// The same of the first of `count` consecutive slots, and as many of those after it as the same place has.
    ///
    /// # Errors
    /// As [`ContainerReader::find`].
    pub fn find_front(
        &self,
        container: ContainerId,
        first: Slot,
        count: u32,
    ) -> Result<Option<FoundFront>, ObjectError> {
        self.find_where(container, &mut |loaded| {
            let chunks = loaded.section.front_in(first, count)?;
            Some((Arc::clone(loaded), chunks))
        })
    }

    /// The section of a logical container in each of its places, in the order in which they are tried, but for those
    /// that do not exist; one error where none does.
    pub(super) fn sections(
        &self,
        container: ContainerId,
    ) -> Vec<Result<Arc<LoadedSection>, ObjectError>> {
        // Reads the remaps again where that is needed.
        if let Err(error) = self.section(container) {
            return vec![Err(error)];
        }
        let remaps = self.remaps();
        let places = remaps.places(container);
        let sections =
            places.map(|object| self.section_in(SectionPlace { container, object }, None));
        sections
            .filter(|loaded| !matches!(loaded, Err(error) if error.is_missing()))
            .collect()
    }

    /// An object turned out to be gone whose metadata is known, or was: it is looked for no more under that, and
    /// the remaps are read again.
    pub fn note_gone(&self, object: ObjectId) {
        self.forget(object);
        let remaps = self.remaps();
        self.read_remaps_again(object, &remaps);
    }

    /// What `wanted` takes of the first place that has it.
    fn find_where<T>(
        &self,
        container: ContainerId,
        wanted: &mut dyn FnMut(&Arc<LoadedSection>) -> Option<T>,
    ) -> Result<Option<T>, ObjectError> {
        loop {
            let remaps = self.remaps();
            let (mut is_there, mut failure, mut missing) = (false, None, None);
            for object in remaps.places(container) {
                match self.section_in(SectionPlace { container, object }, None) {
                    Ok(loaded) => match wanted(&loaded) {
                        Some(found) => return Ok(Some(found)),
                        None => is_there = true,
                    },
                    Err(error) if error.is_missing() => {
                        missing.get_or_insert((object, error));
                    }
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
            }
            if let Some((object, _)) = &missing
                && self.read_remaps_again(*object, &remaps)
            {
                continue;
            }
            return match (failure, missing) {
                (Some(failure), _) => Err(failure),
                (None, Some((_, missing))) if !is_there => Err(missing),
                (None, _) => Ok(None),
            };
        }
    }

    /// Reads the remaps again because an object is missing, unless that was done for it; true when there are others
    /// than in `known` now. A store that can't be read now has nothing new: what is missing is told in any
    /// case.
    fn read_remaps_again(&self, missing: ObjectId, known: &Arc<RemapSet>) -> bool {
        let vain = self.remaps.vain.lock();
        let mut vain = vain.unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&self.remaps(), known) {
            return true; // Another thread has already looked.
        }
        if vain.len() >= VAIN_MAX || !vain.insert(missing) {
            return false;
        }
        match known.with_new(self.store.as_ref(), &self.vault) {
            Ok(Some(new)) => {
                let set = self.remaps.set.write();
                *set.unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                vain.clear();
                true
            }
            Ok(None) | Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::ContainerKind;

    #[test]
    fn fronts_of_runs_end_at_gaps() {
        let slots = [3, 4, 15, 16, 17, 18, u16::MAX].map(Slot).to_vec();
        let gappy = Section {
            id: ContainerId::random(),
            kind: ContainerKind::Data,
            slots,
            lengths: Vec::new(),
            fingerprints: Vec::new(),
            markers: Vec::new(),
            deltas: Vec::new(),
            features: Default::default(),
            groups: Vec::new(),
        };
        assert_eq!(gappy.front_in(Slot(15), 4), Some(2..6));
        assert_eq!(gappy.front_in(Slot(3), 5), Some(0..2));
        assert_eq!(gappy.front_in(Slot(15), 0), None);
        assert_eq!(gappy.front_in(Slot(5), 2), None);
        assert_eq!(gappy.front_in(Slot(u16::MAX), 9), Some(6..7));
    }
}

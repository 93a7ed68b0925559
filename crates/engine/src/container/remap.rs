//! Remaps: where logical containers lie that compaction moved (docs/format/v1.md, §7).
//!
//! Remaps are a grow-only set of (logical container, object, generation). Merging two sets is
//! their union; of several entries for one logical container the highest generation wins,
//! then the greatest object id. So every reader of the same set comes to the same answer,
//! whatever the order in which it reads.

use std::collections::HashMap;

use super::ContainerId;
use crate::format::{
    DecodeError, Decoder, InObject, ObjectError, Vault, put_varint, read_document,
};
use crate::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};

/// One remap object: the containers that one compaction moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remap {
    /// One more than the highest generation that its writer had read.
    pub generation: u64,
    /// Where each logical container lies now, ascending by logical container.
    pub moved: Vec<(ContainerId, ObjectId)>,
}

impl Remap {
    /// The stored form, to be sealed as a document.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10 + self.moved.len() * 32);
        put_varint(&mut out, self.generation);
        put_varint(&mut out, self.moved.len() as u64);
        for (logical, object) in &self.moved {
            out.extend_from_slice(&logical.0.0);
            out.extend_from_slice(&object.0);
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When it is cut off or out of order.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        let generation = decoder.varint()?;
        let count = decoder.count(32, "moved containers")?;
        let mut moved: Vec<(ContainerId, ObjectId)> = Vec::with_capacity(count);
        for _ in 0..count {
            let logical = ContainerId(ObjectId(decoder.array()?));
            let object = ObjectId(decoder.array()?);
            if moved.last().is_some_and(|(last, _)| *last >= logical) {
                return Err(DecodeError::new("moved containers are out of order"));
            }
            moved.push((logical, object));
        }
        decoder.finish()?;
        Ok(Self { generation, moved })
    }
}

/// All remaps of a repository, merged.
#[derive(Debug, Clone, Default)]
pub struct RemapSet {
    places: HashMap<ContainerId, (u64, ObjectId)>,
    generation: u64,
}

impl RemapSet {
    /// Reads every remap object of a repository.
    ///
    /// # Errors
    /// When one can't be read: without it, moved containers would seem to be missing.
    pub fn load(store: &dyn ObjectStore, vault: &Vault) -> Result<Self, ObjectError> {
        let mut ids = Vec::new();
        store.list(ObjectKind::Remap, &mut |id, _| ids.push(id))?;
        let mut set = Self::default();
        for id in ids {
            let key = ObjectKey::new(ObjectKind::Remap, id);
            let body = read_document(store, vault, key)?;
            set.merge(&Remap::decode(&body).in_object(key, "remap")?);
        }
        Ok(set)
    }

    /// Takes in one more remap.
    pub fn merge(&mut self, remap: &Remap) {
        self.generation = self.generation.max(remap.generation);
        for &(logical, object) in &remap.moved {
            let place = (remap.generation, object);
            let entry = self.places.entry(logical).or_insert(place);
            *entry = (*entry).max(place);
        }
    }

    /// The object that holds a logical container.
    #[must_use]
    pub fn object_of(&self, container: ContainerId) -> ObjectKey {
        match self.places.get(&container) {
            Some((_, object)) => ObjectKey::new(ObjectKind::Container, *object),
            None => container.own_object(),
        }
    }

    /// The highest generation read; 0 when nothing was ever moved.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(number: u8) -> ObjectId {
        ObjectId([number; 16])
    }

    fn any_remap() -> impl Strategy<Value = Remap> {
        let moved = proptest::collection::btree_map(0u8..6, 0u8..6, 0..6);
        (0u64..4, moved).prop_map(|(generation, moved)| Remap {
            generation,
            moved: moved
                .into_iter()
                .map(|(a, b)| (ContainerId(id(a)), id(b)))
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn remaps_come_back(remap in any_remap()) {
            let bytes = remap.encode();
            prop_assert_eq!(Remap::decode(&bytes), Ok(remap));
            for end in 0..bytes.len() {
                prop_assert!(Remap::decode(&bytes[..end]).is_err());
            }
        }

        #[test]
        fn merging_has_no_order(mut remaps in proptest::collection::vec(any_remap(), 0..6)) {
            let merged = |remaps: &[Remap]| {
                let mut set = RemapSet::default();
                remaps.iter().for_each(|remap| set.merge(remap));
                (0..6).map(|n| set.object_of(ContainerId(id(n)))).collect::<Vec<_>>()
            };
            let forward = merged(&remaps);
            remaps.reverse();
            prop_assert_eq!(merged(&remaps), forward.clone());
            remaps.extend(remaps.clone());
            prop_assert_eq!(merged(&remaps), forward);
        }
    }

    #[test]
    fn the_newest_place_counts() {
        let logical = ContainerId(id(1));
        let mut set = RemapSet::default();
        assert_eq!(set.object_of(logical), logical.own_object());
        for (generation, object) in [(2, 7), (1, 9), (2, 8)] {
            set.merge(&Remap {
                generation,
                moved: vec![(logical, id(object))],
            });
        }
        assert_eq!(set.object_of(logical).id, id(8));
        assert_eq!(set.generation(), 2);
    }
}

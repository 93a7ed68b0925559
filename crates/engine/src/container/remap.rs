//! Remaps: where logical containers lie that compaction moved (docs/format/v1.md, §7).
//!
//! Remaps are a grow-only set of (logical container, object, generation). Merging two sets is
//! their union. Of several *places* of one logical container the one of the highest generation comes
//! first, then the one of the greatest object id; the container's own object is the last. A reader takes the first
//! that exists and has the slot. So every reader of the same set comes to the same answer, whatever
//! the order in which it reads.

use std::collections::{HashMap, HashSet};

use super::ContainerId;
use crate::format::{
    DecodeError, Decoder, InObject, ObjectError, Vault, is_writer_epoch, put_varint,
    read_document_and_epoch, write_document,
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

    /// Stores it, durably, under a new id. The objects that it names must be durable before.
    ///
    /// # Errors
    /// When the store does not take it.
    pub fn store(&self, store: &dyn ObjectStore, vault: &Vault) -> Result<ObjectId, ObjectError> {
        let id = ObjectId::random();
        let key = ObjectKey::new(ObjectKind::Remap, id);
        write_document(store, vault, key, &self.encode())?;
        Ok(id)
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

/// All remaps of a repository, merged. Takes some 100 B for each container that was moved.
#[derive(Debug, Clone, Default)]
pub struct RemapSet {
    /// Where moved containers lie beside their own objects: generation and object, the newest first.
    places: HashMap<ContainerId, Vec<(u64, ObjectId)>>,
    generation: u64,
    /// The remap objects that were read.
    read: HashSet<ObjectId>,
}

/// Remaps as far as they can be read.
#[derive(Debug)]
pub struct ReadableRemaps {
    /// Those that can be read, merged.
    pub set: RemapSet,
    /// Those that are there and damaged, in ascending order, and what is wrong with them.
    pub damaged: Vec<(ObjectKey, ObjectError)>,
}

impl RemapSet {
    /// Reads every remap object of a repository.
    ///
    /// # Errors
    /// When one can't be read: without it, moved containers would seem to be missing.
    pub fn load(store: &dyn ObjectStore, vault: &Vault) -> Result<Self, ObjectError> {
        let set = Self::default();
        Ok(set.with_new(store, vault)?.unwrap_or_default())
    }

    /// Reads every remap object that can be read; the others, with what is wrong with each, and all that were listed.
    /// For repairs alone: without the others, moved containers seem to be missing.
    ///
    /// # Errors
    /// When the store fails, or a remap is sealed in an epoch for which there is no secret.
    pub fn load_readable(
        store: &dyn ObjectStore,
        vault: &Vault,
    ) -> Result<ReadableRemaps, ObjectError> {
        let mut listed = Vec::new();
        store.list(ObjectKind::Remap, &mut |id, _| listed.push(id))?;
        listed.sort_unstable();
        let (mut set, mut damaged) = (Self::default(), Vec::new());
        for &id in &listed {
            match set.take(store, vault, id) {
                Err(error) if error.is_missing() => {}
                Err(error) if error.is_damage() => {
                    damaged.push((ObjectKey::new(ObjectKind::Remap, id), error));
                }
                taken => taken?,
            }
        }
        Ok(ReadableRemaps { set, damaged })
    }

    /// The remap objects that it was made of.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.read.iter().copied()
    }

    /// The same set with the remap objects that it has not read yet; nothing when there are none.
    ///
    /// # Errors
    /// As [`RemapSet::load`].
    pub fn with_new(
        &self,
        store: &dyn ObjectStore,
        vault: &Vault,
    ) -> Result<Option<Self>, ObjectError> {
        let mut new = Vec::new();
        store.list(ObjectKind::Remap, &mut |id, _| {
            if !self.read.contains(&id) {
                new.push(id);
            }
        })?;
        if new.is_empty() {
            return Ok(None);
        }
        let mut set = self.clone();
        for id in new {
            set.take(store, vault, id)?;
        }
        Ok(Some(set))
    }

    /// Reads a remap object and takes it in.
    fn take(
        &mut self,
        store: &dyn ObjectStore,
        vault: &Vault,
        id: ObjectId,
    ) -> Result<(), ObjectError> {
        let key = ObjectKey::new(ObjectKind::Remap, id);
        let (body, epoch) = read_document_and_epoch(store, vault, key)?;
        // A client that can only write moves nothing: it could put containers of its own before others.
        if !is_writer_epoch(epoch) {
            self.merge(&Remap::decode(&body).in_object(key, "remap")?);
        }
        self.read.insert(id);
        Ok(())
    }

    /// Takes in one more remap.
    pub fn merge(&mut self, remap: &Remap) {
        self.generation = self.generation.max(remap.generation);
        for &(logical, object) in &remap.moved {
            let places = self.places.entry(logical).or_default();
            match places.iter_mut().find(|(_, known)| *known == object) {
                Some((generation, _)) => *generation = remap.generation.max(*generation),
                None => places.push((remap.generation, object)),
            }
            places.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// The remap that says of these containers that they were moved, after all that this set knows.
    #[must_use]
    pub fn next(&self, mut moved: Vec<(ContainerId, ObjectId)>) -> Remap {
        moved.sort_unstable();
        Remap {
            generation: self.generation + 1,
            moved,
        }
    }

    /// The objects that a logical container may lie in, in the order in which readers try them.
    pub fn places(&self, container: ContainerId) -> impl Iterator<Item = ObjectId> + '_ {
        let moved = self.places.get(&container).map_or(&[][..], Vec::as_slice);
        let has_own = moved.iter().any(|(_, object)| *object == container.0);
        let own = (!has_own).then_some(container.0);
        moved.iter().map(|(_, object)| *object).chain(own)
    }

    /// May that logical container lie in that object?
    #[must_use]
    pub fn is_place(&self, container: ContainerId, object: ObjectId) -> bool {
        self.places(container).any(|place| place == object)
    }

    /// Is it named by a remap?
    #[must_use]
    pub fn is_moved(&self, container: ContainerId) -> bool {
        self.places.contains_key(&container)
    }

    /// Every place that a remap names, in no order.
    pub fn moved(&self) -> impl Iterator<Item = (ContainerId, ObjectId)> + '_ {
        let all = self.places.iter();
        all.flat_map(|(&container, places)| places.iter().map(move |&(_, at)| (container, at)))
    }

    /// The first place of a logical container.
    #[must_use]
    pub fn object_of(&self, container: ContainerId) -> ObjectKey {
        let first = self.places(container).next();
        ObjectKey::new(ObjectKind::Container, first.unwrap_or(container.0))
    }

    /// The highest generation read; 0 when nothing was ever moved or deleted.
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

    #[test]
    fn a_client_that_can_only_write_moves_nothing() {
        use crate::format::{WRITER_EPOCHS_FROM, write_document};
        use crate::object::MemoryStore;
        use std::collections::BTreeMap;
        use zeroize::Zeroizing;
        let vault = |epoch| {
            let secrets = BTreeMap::from([(epoch, Zeroizing::new([7; 32]))]);
            Vault::new(id(1), secrets, true)
                .finding(Box::new(|_| Ok(Some(Zeroizing::new([7; 32])))))
        };
        let remap = Remap {
            generation: 3,
            moved: vec![(ContainerId(id(4)), id(5))],
        };
        let store = MemoryStore::new();
        let places = |store: &MemoryStore| {
            let set = RemapSet::load(store, &vault(1)).unwrap();
            (set.places(ContainerId(id(4))).count(), set.generation)
        };
        for (number, epoch, expected) in [(8, WRITER_EPOCHS_FROM, (1, 0)), (9, 1, (2, 3))] {
            let key = ObjectKey::new(ObjectKind::Remap, id(number));
            write_document(&store, &vault(epoch), key, &remap.encode()).unwrap();
            assert_eq!(places(&store), expected);
        }
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
                (0..6).map(|n| set.places(ContainerId(id(n))).collect()).collect::<Vec<Vec<_>>>()
            };
            let forward = merged(&remaps);
            remaps.reverse();
            prop_assert_eq!(merged(&remaps), forward.clone());
            remaps.extend(remaps.clone());
            prop_assert_eq!(merged(&remaps), forward);
        }
    }

    #[test]
    fn the_newest_place_comes_first() {
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
        let places: Vec<_> = set.places(logical).collect();
        assert_eq!(places, [8, 7, 9, 1].map(id), "and its own object last");
        assert!(set.is_moved(logical) && set.is_place(logical, id(9)));
        assert!(!set.is_place(logical, id(2)));
        assert_eq!(set.moved().count(), 3);
        let next = set.next(vec![(ContainerId(id(5)), id(6)), (logical, id(4))]);
        assert_eq!((next.generation, next.moved[0]), (3, (logical, id(4))));
        assert_eq!(set.generation(), 2);
    }
}

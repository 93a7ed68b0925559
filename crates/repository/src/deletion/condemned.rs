//! What is condemned: objects that go once nobody is at work who may not know it.
//!
//! An object `condemned/M` lists container objects. Its *waiting list*, an object of the same kind that names M, lists
//! the runs that were registered after M was written. What is condemned is never pardoned.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use engine::format::{
    DecodeError, Decoder, FieldList, FieldWriter, InObject, ObjectError, UnknownFields, Vault,
    is_writer_epoch, put_varint, read_document_and_epoch, write_document,
};
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};

use crate::timestamp::Timestamp;

/// Container objects in one marker at most: 16 MiB.
pub const OBJECTS_MAX: usize = 1 << 20;

/// Tags of the fields.
mod tag {
    pub const OBJECTS: u64 = 1;
    pub const WAITING_FOR: u64 = 3;
    pub const TIME: u64 = 4;
    pub const MARKER: u64 = 5;
}

/// A marker: objects that are to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Its id.
    pub id: ObjectId,
    /// Container objects, ascending.
    pub objects: Vec<ObjectId>,
    /// Whom it waits for, once that is written down: several if several prunes did so.
    pub waiting: Vec<WaitingList>,
}

/// The runs that may not know of a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingList {
    /// The object's id.
    pub id: ObjectId,
    /// When it was written, by the writer's clock.
    pub time: Timestamp,
    /// The runs, and how many signs of life each had shown by then.
    pub runs: BTreeMap<ObjectId, u64>,
}

enum Document {
    Objects(Vec<ObjectId>),
    Waiting {
        marker: ObjectId,
        time: Timestamp,
        runs: BTreeMap<ObjectId, u64>,
    },
}

fn decode(body: &[u8]) -> Result<Document, DecodeError> {
    let (mut objects, mut runs, mut marker) = (None, None, None);
    let mut time = Timestamp::default();
    let mut unknown = UnknownFields::default();
    let mut fields = FieldList::new(body);
    while let Some(field) = fields.next_field()? {
        let mut value = Decoder::new(field.value);
        match field.tag {
            tag::OBJECTS => {
                let count = value.count(16, "condemned objects")?;
                let ids: Result<Vec<_>, _> =
                    (0..count).map(|_| value.array().map(ObjectId)).collect();
                objects = Some(ids?);
            }
            tag::WAITING_FOR => {
                let count = value.count(17, "runs")?;
                let mut listed = BTreeMap::new();
                for _ in 0..count {
                    listed.insert(ObjectId(value.array()?), value.varint()?);
                }
                runs = Some(listed);
            }
            tag::TIME => time = Timestamp::decode(&mut value)?,
            tag::MARKER => marker = Some(ObjectId(value.array()?)),
            _ => {
                unknown.keep(field)?;
                continue;
            }
        }
        value.finish()?;
    }
    match (objects, runs, marker) {
        (Some(objects), None, None) => Ok(Document::Objects(objects)),
        (None, Some(runs), Some(marker)) => Ok(Document::Waiting { marker, time, runs }),
        _ => Err(DecodeError::new(
            "it is neither a marker nor a waiting list",
        )),
    }
}

fn key_of(id: ObjectId) -> ObjectKey {
    ObjectKey::new(ObjectKind::Condemned, id)
}

/// Condemns objects; returns the marker's id.
///
/// # Errors
/// When the store can't be written.
pub fn condemn(
    store: &dyn ObjectStore,
    vault: &Vault,
    objects: &BTreeSet<ObjectId>,
) -> Result<ObjectId, ObjectError> {
    let mut fields = FieldWriter::new();
    fields.field(tag::OBJECTS, |out| {
        put_varint(out, objects.len() as u64);
        for object in objects {
            out.extend_from_slice(&object.0);
        }
    });
    fields.field(tag::TIME, |out| Timestamp::now().encode(out));
    write(store, vault, fields)
}

/// Writes down which runs a marker waits for: those that are registered, listed after it was written.
///
/// # Errors
/// When the store can't be written.
pub fn wait_for(
    store: &dyn ObjectStore,
    vault: &Vault,
    marker: ObjectId,
    runs: &BTreeMap<ObjectId, u64>,
) -> Result<ObjectId, ObjectError> {
    let mut fields = FieldWriter::new();
    fields.field(tag::WAITING_FOR, |out| {
        put_varint(out, runs.len() as u64);
        for (run, signs) in runs {
            out.extend_from_slice(&run.0);
            put_varint(out, *signs);
        }
    });
    fields.field(tag::TIME, |out| Timestamp::now().encode(out));
    fields.field(tag::MARKER, |out| out.extend_from_slice(&marker.0));
    write(store, vault, fields)
}

fn write(
    store: &dyn ObjectStore,
    vault: &Vault,
    fields: FieldWriter,
) -> Result<ObjectId, ObjectError> {
    let mut body = Vec::new();
    fields.finish(&mut body);
    let id = ObjectId::random();
    write_document(store, vault, key_of(id), &body)?;
    Ok(id)
}

/// Everything that is condemned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condemned {
    /// The markers, by their ids.
    pub markers: BTreeMap<ObjectId, Marker>,
    /// Waiting lists whose marker is gone: what a prune left that died at its end. And what clients wrote that
    /// may not condemn.
    pub orphans: Vec<ObjectId>,
}

impl Condemned {
    /// Reads all markers and waiting lists.
    ///
    /// # Errors
    /// When one can't be read: what is condemned must be known before anything is referred to.
    pub fn load(store: &dyn ObjectStore, vault: &Vault) -> Result<Self, ObjectError> {
        let mut ids = Vec::new();
        store.list(ObjectKind::Condemned, &mut |id, _| ids.push(id))?;
        let mut condemned = Self::default();
        let mut lists = Vec::new();
        for id in ids {
            let key = key_of(id);
            let (body, epoch) = match read_document_and_epoch(store, vault, key) {
                // Done with since it was listed.
                Err(error) if error.is_missing() => continue,
                read => read?,
            };
            if is_writer_epoch(epoch) {
                // A client that can only write condemns nothing.
                condemned.orphans.push(id);
                continue;
            }
            match decode(&body).in_object(key, "condemned")? {
                Document::Objects(objects) => {
                    let waiting = Vec::new();
                    condemned.markers.insert(
                        id,
                        Marker {
                            id,
                            objects,
                            waiting,
                        },
                    );
                }
                Document::Waiting { marker, time, runs } => {
                    lists.push((marker, WaitingList { id, time, runs }));
                }
            }
        }
        for (marker, list) in lists {
            match condemned.markers.get_mut(&marker) {
                Some(marker) => marker.waiting.push(list),
                None => condemned.orphans.push(list.id),
            }
        }
        Ok(condemned)
    }

    /// All condemned objects.
    #[must_use]
    pub fn objects(&self) -> HashSet<ObjectId> {
        let markers = self.markers.values();
        markers
            .flat_map(|marker| marker.objects.iter().copied())
            .collect()
    }
}

impl Marker {
    /// Removes a marker whose objects are deleted.
    ///
    /// # Errors
    /// When the store can't delete.
    pub fn remove(&self, store: &dyn ObjectStore) -> Result<(), ObjectError> {
        // A list without its marker is nothing; a marker without its list would be waited for anew.
        store.delete(&key_of(self.id))?;
        for list in &self.waiting {
            store.delete(&key_of(list.id))?;
        }
        Ok(())
    }
}

/// Removes a waiting list whose marker is gone.
///
/// # Errors
/// When the store can't delete.
pub fn remove_orphan(store: &dyn ObjectStore, list: ObjectId) -> Result<(), ObjectError> {
    Ok(store.delete(&key_of(list))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::format::WRITER_EPOCHS_FROM;
    use engine::object::MemoryStore;
    use zeroize::Zeroizing;

    fn vault() -> Vault {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
        Vault::new(ObjectId([1; 16]), secrets, true)
    }

    fn id(number: u8) -> ObjectId {
        ObjectId([number; 16])
    }

    #[test]
    fn markers_and_their_lists_come_and_go() {
        let (store, vault) = (MemoryStore::new(), vault());
        let objects = BTreeSet::from([id(4), id(2)]);
        let marker = condemn(&store, &vault, &objects).unwrap();
        let found = Condemned::load(&store, &vault).unwrap();
        assert_eq!(found.markers[&marker].objects, [id(2), id(4)]);
        assert_eq!(found.markers[&marker].waiting, []);
        let runs = BTreeMap::from([(id(7), 0), (id(8), 300)]);
        wait_for(&store, &vault, marker, &runs).unwrap();
        let other = condemn(&store, &vault, &BTreeSet::from([id(9)])).unwrap();
        let found = Condemned::load(&store, &vault).unwrap();
        assert_eq!(found.markers[&marker].waiting[0].runs, runs);
        assert_eq!(found.objects(), HashSet::from([id(2), id(4), id(9)]));
        // A prune that dies between the two deletions.
        let marker = found.markers[&marker].clone();
        store.delete(&key_of(marker.id)).unwrap();
        let found = Condemned::load(&store, &vault).unwrap();
        assert_eq!(found.orphans, [marker.waiting[0].id]);
        assert_eq!(found.markers.keys().copied().collect::<Vec<_>>(), [other]);
        remove_orphan(&store, found.orphans[0]).unwrap();
        found.markers[&other].remove(&store).unwrap();
        assert_eq!(
            Condemned::load(&store, &vault).unwrap(),
            Condemned::default()
        );
    }

    #[test]
    fn a_client_that_can_only_write_condemns_nothing() {
        let store = MemoryStore::new();
        let secret = |epoch| BTreeMap::from([(epoch, Zeroizing::new([7; 32]))]);
        let writer = Vault::new(ObjectId([1; 16]), secret(WRITER_EPOCHS_FROM), true);
        let marker = condemn(&store, &writer, &BTreeSet::from([id(2)])).unwrap();
        wait_for(&store, &writer, id(3), &BTreeMap::new()).unwrap();
        let find = |_| Ok(Some(Zeroizing::new([7; 32])));
        let reader = vault().finding(Box::new(find));
        let found = Condemned::load(&store, &reader).unwrap();
        assert!(found.markers.is_empty() && found.objects().is_empty());
        assert_eq!(found.orphans.len(), 2);
        assert!(found.orphans.contains(&marker));
    }

    #[test]
    fn what_can_not_be_read_is_an_error() {
        let (store, vault) = (MemoryStore::new(), vault());
        store.put(&key_of(id(1)), b"damaged").unwrap();
        assert!(Condemned::load(&store, &vault).is_err());
        for body in [&b""[..], &[0], &[1, 16], &[255; 40]] {
            assert!(decode(body).is_err(), "{body:?}");
        }
    }
}

//! [`MemoryStore`]: objects in memory, for tests and measurements.
//!
//! Behaves as [`LocalStore`](super::LocalStore) does (the same conformance suite runs on both)
//! except that "durable" means "until dropped". Two things are there for tests: reaching in to
//! damage what is stored, and counting operations so that a test can assert I/O.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::key::{ObjectId, ObjectKey, ObjectKind};
use super::{ObjectStore, ObjectWriter, PutOutcome, StoreError, Tail, WholeWriter};

/// How often a [`MemoryStore`] was asked for what; calls that failed count too, bytes count
/// when they were stored or handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Calls of `put` and `put_if_absent`, and objects that were finished.
    pub puts: u64,
    /// Bytes stored.
    pub put_bytes: u64,
    /// Calls of `get`.
    pub gets: u64,
    /// Bytes handed out by `get`.
    pub get_bytes: u64,
    /// Calls of `get_range`.
    pub ranges: u64,
    /// Bytes handed out by `get_range`.
    pub range_bytes: u64,
    /// Calls of `get_tail`.
    pub tails: u64,
    /// Bytes handed out by `get_tail`.
    pub tail_bytes: u64,
    /// Calls of `list`.
    pub lists: u64,
    /// Calls of `delete`.
    pub deletes: u64,
    /// Keys named in calls of `persist`.
    pub persists: u64,
}

impl OperationCounts {
    /// Calls that read an object or a part of one.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.gets + self.ranges + self.tails
    }

    /// Bytes that such calls handed out.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.get_bytes + self.range_bytes + self.tail_bytes
    }
}

/// An object store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ObjectKey, Vec<u8>>,
    counts: OperationCounts,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was asked of the store so far.
    #[must_use]
    pub fn counts(&self) -> OperationCounts {
        self.lock().counts
    }

    /// Starts counting anew; returns the counts until now.
    pub fn reset_counts(&self) -> OperationCounts {
        std::mem::take(&mut self.lock().counts)
    }

    /// A second store with the same objects and counts of its own, all zero.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = State {
            objects: self.lock().objects.clone(),
            counts: OperationCounts::default(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// The keys of all objects, in order. Not counted.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.lock().objects.keys().copied().collect()
    }

    /// The bytes of an object. Not counted.
    #[must_use]
    pub fn object(&self, key: &ObjectKey) -> Option<Vec<u8>> {
        self.lock().objects.get(key).cloned()
    }

    /// Length of all objects together in bytes. Not counted.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.lock()
            .objects
            .values()
            .map(|bytes| bytes.len() as u64)
            .sum()
    }

    /// Changes the bytes of an object; false if it is not there. Not counted.
    pub fn corrupt(&self, key: &ObjectKey, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.lock().objects.get_mut(key).map(change).is_some()
    }

    /// Puts an object, replacing any; returns the bytes that were there. Not counted.
    pub fn insert_raw(&self, key: ObjectKey, bytes: Vec<u8>) -> Option<Vec<u8>> {
        self.lock().objects.insert(key, bytes)
    }

    /// Takes an object out; returns its bytes. Not counted.
    pub fn remove_raw(&self, key: &ObjectKey) -> Option<Vec<u8>> {
        self.lock().objects.remove(key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whatever panicked was the closure of a test: the map itself is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn get(&self, key: &ObjectKey) -> Result<&Vec<u8>, StoreError> {
        self.objects.get(key).ok_or_else(|| StoreError::Missing {
            key: *key,
            location: location(),
        })
    }

    fn insert_if_absent(&mut self, key: &ObjectKey, bytes: &[u8]) -> PutOutcome {
        self.counts.puts += 1;
        if self.objects.contains_key(key) {
            return PutOutcome::Exists;
        }
        self.counts.put_bytes += bytes.len() as u64;
        self.objects.insert(*key, bytes.to_vec());
        PutOutcome::Created
    }
}

impl ObjectStore for MemoryStore {
    fn location(&self) -> String {
        location()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        match self.lock().insert_if_absent(key, bytes) {
            PutOutcome::Created => Ok(()),
            PutOutcome::Exists => Err(StoreError::Io {
                action: "write",
                subject: key.to_string(),
                location: location(),
                source: io::Error::from(ErrorKind::AlreadyExists),
            }),
        }
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        Ok(Box::new(WholeWriter::new(self, key)))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        Ok(self.lock().insert_if_absent(key, bytes))
    }

    fn replace(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.lock().objects.insert(*key, bytes.to_vec());
        Ok(())
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.counts.persists += keys.len() as u64;
        keys.iter().try_for_each(|key| state.get(key).map(|_| ()))
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        let mut state = self.lock();
        state.counts.gets += 1;
        let object = state.get(key)?;
        let object_bytes = object.len() as u64;
        if object_bytes > limit_bytes {
            return Err(StoreError::TooLong {
                key: *key,
                location: location(),
                object_bytes,
                limit_bytes,
            });
        }
        let bytes = object.clone();
        state.counts.get_bytes += object_bytes;
        Ok(bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let mut state = self.lock();
        state.counts.ranges += 1;
        let object = state.get(key)?;
        let object_bytes = object.len() as u64;
        let wanted_end = offset.saturating_add(length as u64);
        if wanted_end > object_bytes {
            return Err(StoreError::TooShort {
                key: *key,
                location: location(),
                wanted_end,
                object_bytes,
            });
        }
        // The end lies in the object, so both fit its length, a usize.
        let bytes = object[offset as usize..wanted_end as usize].to_vec();
        state.counts.range_bytes += length as u64;
        Ok(bytes)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        let mut state = self.lock();
        state.counts.tails += 1;
        let object = state.get(key)?;
        let tail = Tail {
            bytes: object[object.len().saturating_sub(length)..].to_vec(),
            object_bytes: object.len() as u64,
        };
        state.counts.tail_bytes += tail.bytes.len() as u64;
        Ok(tail)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        // Collected first: the visitor may call the store.
        let found: Vec<(ObjectId, u64)> = {
            let mut state = self.lock();
            state.counts.lists += 1;
            let of_kind = state.objects.iter().filter(|(key, _)| key.kind == kind);
            of_kind
                .map(|(key, bytes)| (key.id, bytes.len() as u64))
                .collect()
        };
        found
            .into_iter()
            .for_each(|(id, object_bytes)| visit(id, object_bytes));
        Ok(())
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        let mut state = self.lock();
        state.counts.deletes += 1;
        state.objects.remove(key);
        Ok(())
    }
}

fn location() -> String {
    "memory".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> ObjectKey {
        ObjectKey::new(ObjectKind::Container, ObjectId([number; 16]))
    }

    #[test]
    fn operations_are_counted() {
        let store = MemoryStore::new();
        store.put(&key(1), b"hello").expect("put");
        store.put_if_absent(&key(1), b"again").expect("put");
        store.get(&key(1), 5).expect("get");
        store.get_range(&key(1), 1, 3).expect("range");
        store.get_tail(&key(1), 2).expect("tail");
        store.get(&key(2), 5).expect_err("missing");
        store.persist(&[key(1)]).expect("persist");
        store
            .list(ObjectKind::Container, &mut |_, _| {})
            .expect("list");
        store.delete(&key(2)).expect("delete");
        let counts = OperationCounts {
            puts: 2,
            put_bytes: 5,
            gets: 2,
            get_bytes: 5,
            ranges: 1,
            range_bytes: 3,
            tails: 1,
            tail_bytes: 2,
            lists: 1,
            deletes: 1,
            persists: 1,
        };
        assert_eq!(store.reset_counts(), counts);
        assert_eq!((counts.reads(), counts.read_bytes()), (4, 10));
        assert_eq!(store.counts(), OperationCounts::default());
    }

    #[test]
    fn tests_can_reach_in() {
        let store = MemoryStore::new();
        store.put(&key(1), b"hello").expect("put");
        let copy = store.fork();
        assert!(store.corrupt(&key(1), |bytes| bytes[0] ^= 1));
        assert!(!store.corrupt(&key(2), |_| {}));
        assert_eq!(store.object(&key(1)).as_deref(), Some(&b"iello"[..]));
        assert_eq!(copy.object(&key(1)).as_deref(), Some(&b"hello"[..]));
        assert_eq!(store.insert_raw(key(2), vec![7]), None);
        assert_eq!(store.keys(), [key(1), key(2)]);
        assert_eq!(store.stored_bytes(), 6);
        assert_eq!(store.remove_raw(&key(2)), Some(vec![7]));
        assert_eq!(store.counts().puts, 1);
    }
}

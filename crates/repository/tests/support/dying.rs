//! A store that takes so many changes, and then nothing any more: what a process leaves that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use engine::object::{
    MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, PutOutcome,
    StoreError, Tail, WholeWriter,
};

pub struct DyingStore {
    medium: Arc<MemoryStore>,
    changes_left: AtomicI64,
}

impl DyingStore {
    pub fn after(medium: &Arc<MemoryStore>, changes: i64) -> Arc<Self> {
        Arc::new(Self {
            medium: Arc::clone(medium),
            changes_left: AtomicI64::new(changes),
        })
    }

    fn change(&self, key: &ObjectKey) -> Result<(), StoreError> {
        if self.changes_left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Ok(());
        }
        let (key, location) = (*key, self.location());
        Err(StoreError::Full { key, location })
    }
}

impl ObjectStore for DyingStore {
    fn location(&self) -> String {
        self.medium.location()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.change(key)?;
        self.medium.put(key, bytes)
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        Ok(Box::new(WholeWriter::new(self, key)))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        self.change(key)?;
        self.medium.put_if_absent(key, bytes)
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.medium.persist(keys)
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.medium.get(key, limit_bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        self.medium.get_range(key, offset, length)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        self.medium.get_tail(key, length)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        self.medium.list(kind, visit)
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        self.change(key)?;
        self.medium.delete(key)
    }
}

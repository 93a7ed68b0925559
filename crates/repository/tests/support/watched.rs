//! A store that does something at a certain read.

use std::sync::atomic::{AtomicUsize, Ordering};

use engine::object::{
    MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, PutOutcome,
    StoreError, Tail,
};

/// A store that does something when containers of data were read so often.
pub struct Watched {
    pub store: MemoryStore,
    pub data: Vec<ObjectKey>,
    pub reads_left: AtomicUsize,
    pub then: Box<dyn Fn() + Send + Sync>,
}

impl Watched {
    fn read(&self, key: &ObjectKey) {
        if self.data.contains(key) && self.reads_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            (self.then)();
        }
    }
}

impl ObjectStore for Watched {
    fn location(&self) -> String {
        self.store.location()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.store.put(key, bytes)
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        self.store.create(key)
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        self.store.put_if_absent(key, bytes)
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.store.persist(keys)
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.read(key);
        self.store.get(key, limit_bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        self.read(key);
        self.store.get_range(key, offset, length)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        self.store.get_tail(key, length)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        self.store.list(kind, visit)
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        self.store.delete(key)
    }
}

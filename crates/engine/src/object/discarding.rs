//! A store for dry runs: reads come from another store, writes go nowhere.

use std::sync::Arc;

use super::{
    ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, PutOutcome, StoreError, Tail,
};

/// Gives what another store has; takes everything and keeps nothing.
pub struct DiscardingStore(Arc<dyn ObjectStore>);

impl DiscardingStore {
    /// Reads from `store`.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self(store)
    }
}

/// An object that goes nowhere.
struct Discarded;

impl ObjectWriter for Discarded {
    fn write(&mut self, _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl ObjectStore for DiscardingStore {
    fn location(&self) -> String {
        self.0.location()
    }

    fn put(&self, _: &ObjectKey, _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    fn create(&self, _: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        Ok(Box::new(Discarded))
    }

    fn put_if_absent(&self, _: &ObjectKey, _: &[u8]) -> Result<PutOutcome, StoreError> {
        Ok(PutOutcome::Created)
    }

    fn persist(&self, _: &[ObjectKey]) -> Result<(), StoreError> {
        Ok(())
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.0.get(key, limit_bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        self.0.get_range(key, offset, length)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        self.0.get_tail(key, length)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        self.0.list(kind, visit)
    }

    fn delete(&self, _: &ObjectKey) -> Result<(), StoreError> {
        Ok(())
    }
}

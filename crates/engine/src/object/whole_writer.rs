//! [`WholeWriter`]: an object in parts for stores that take objects whole.
//!
//! Enter: the parts of an object. Leaves: one put of the whole. The object lies in memory until then,
//! so this is for stores that keep it there anyway, and for tests.

use super::{ObjectKey, ObjectStore, ObjectWriter, StoreError};

/// Gathers an object, and puts it when it is finished.
pub struct WholeWriter<'a, S: ObjectStore + ?Sized> {
    store: &'a S,
    key: ObjectKey,
    bytes: Vec<u8>,
}

impl<'a, S: ObjectStore + ?Sized> WholeWriter<'a, S> {
    /// Begins the object `key` of `store`.
    pub fn new(store: &'a S, key: &ObjectKey) -> Self {
        Self {
            store,
            key: *key,
            bytes: Vec::new(),
        }
    }
}

impl<S: ObjectStore + ?Sized> ObjectWriter for WholeWriter<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        self.store.put(&self.key, &self.bytes)
    }
}

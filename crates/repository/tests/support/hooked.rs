//! A store in memory with something that is asked, or done, before each change and each read.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use engine::object::{
    MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, PutOutcome,
    StoreError, Tail, WholeWriter,
};

pub struct Hooked {
    store: Arc<MemoryStore>,
    before_change: Box<dyn Fn() -> bool + Send + Sync>,
    before_read: Box<dyn Fn(&ObjectKey) + Send + Sync>,
    may_delete: bool,
}

/// Takes objects, and lets nobody delete one: a bucket whose rules are like that.
pub fn append_only(medium: &Arc<MemoryStore>) -> Arc<Hooked> {
    Arc::new(Hooked {
        store: Arc::clone(medium),
        before_change: Box::new(|| true),
        before_read: Box::new(|_| ()),
        may_delete: false,
    })
}

/// Takes so many changes, and then none any more: what a process leaves that dies.
pub fn dying(medium: &Arc<MemoryStore>, changes: i64) -> Arc<Hooked> {
    let left = AtomicI64::new(changes);
    Arc::new(Hooked {
        store: Arc::clone(medium),
        before_change: Box::new(move || left.fetch_sub(1, Ordering::SeqCst) > 0),
        before_read: Box::new(|_| ()),
        may_delete: true,
    })
}

/// Does something at the given read of one of these objects, but for reads of their ends.
pub fn watched(
    store: Arc<MemoryStore>,
    keys: &[ObjectKey],
    reads: usize,
    then: impl Fn() + Send + Sync + 'static,
) -> Hooked {
    let keys = keys.to_vec();
    let left = AtomicUsize::new(reads);
    Hooked {
        store,
        before_change: Box::new(|| true),
        before_read: Box::new(move |key| {
            if keys.contains(key) && left.fetch_sub(1, Ordering::SeqCst) == 1 {
                then();
            }
        }),
        may_delete: true,
    }
}

/// Does something before the given change.
pub fn meddled(
    store: &Arc<MemoryStore>,
    change: i64,
    then: impl Fn() + Send + Sync + 'static,
) -> Arc<Hooked> {
    let left = AtomicI64::new(change);
    Arc::new(Hooked {
        store: Arc::clone(store),
        before_change: Box::new(move || {
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                then();
            }
            true
        }),
        before_read: Box::new(|_| ()),
        may_delete: true,
    })
}

impl Hooked {
    fn change(&self, key: &ObjectKey) -> Result<(), StoreError> {
        if (self.before_change)() {
            return Ok(());
        }
        let (key, location) = (*key, self.location());
        Err(StoreError::Full { key, location })
    }
}

impl ObjectStore for Hooked {
    fn location(&self) -> String {
        self.store.location()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.change(key)?;
        self.store.put(key, bytes)
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        Ok(Box::new(WholeWriter::new(self, key)))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        self.change(key)?;
        self.store.put_if_absent(key, bytes)
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.store.persist(keys)
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        (self.before_read)(key);
        self.store.get(key, limit_bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        (self.before_read)(key);
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
        self.change(key)?;
        if !self.may_delete {
            return Err(StoreError::Io {
                action: "delete",
                subject: key.to_string(),
                location: self.location(),
                source: ErrorKind::PermissionDenied.into(),
            });
        }
        self.store.delete(key)
    }
}

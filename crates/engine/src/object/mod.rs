//! Object stores: a flat map from key to immutable bytes.
//!
//! Everything onefold keeps is an object: written once, whole, never changed. The trait
//! [`ObjectStore`] is the seam between the engine and where the bytes lie; [`LocalStore`]
//! keeps objects as files below a directory, [`MemoryStore`] keeps them in memory.
//!
//! Invariants that every store upholds:
//! * an object is visible whole or not at all (no partial object after a crash);
//! * when [`ObjectStore::put`] or [`ObjectWriter::finish`] returns `Ok`, the object survives a crash
//!   of the machine;
//! * names that are no [`ObjectKey`] are left alone: never listed, never deleted.

mod directories;
mod discarding;
mod filesystem;
mod key;
mod local;
mod memory;
mod os_filesystem;
mod whole_writer;

pub use discarding::DiscardingStore;
pub use filesystem::{FileStatus, FileSystem};
pub use key::{BadObjectId, ObjectId, ObjectKey, ObjectKind};
pub use local::{LocalStore, TEMPORARY_STALE_AFTER};
pub use memory::{MemoryStore, OperationCounts};
pub use os_filesystem::OsFileSystem;
pub use whole_writer::WholeWriter;

use std::io;

/// What [`ObjectStore::put_if_absent`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was not there; now it is.
    Created,
    /// An object of that key was there already and was left as it is.
    Exists,
}

/// The end of an object, and how long the object is as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The last `min(asked, object_bytes)` bytes.
    pub bytes: Vec<u8>,
    /// Length of the whole object in bytes.
    pub object_bytes: u64,
}

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No object of that key.
    #[error("{key} is missing from {location}")]
    Missing {
        /// The object asked for.
        key: ObjectKey,
        /// The store, for a person.
        location: String,
    },
    /// The object ends before the range asked for.
    #[error("{key} in {location} is too short: {wanted_end} bytes wanted, {object_bytes} there")]
    TooShort {
        /// The object asked for.
        key: ObjectKey,
        /// The store, for a person.
        location: String,
        /// End (exclusive) of the range asked for, in bytes.
        wanted_end: u64,
        /// Length of the object in bytes.
        object_bytes: u64,
    },
    /// The object is longer than the reader is willing to hold.
    #[error(
        "{key} in {location} is too long: {object_bytes} bytes, at most {limit_bytes} make sense"
    )]
    TooLong {
        /// The object asked for.
        key: ObjectKey,
        /// The store, for a person.
        location: String,
        /// Length of the object in bytes.
        object_bytes: u64,
        /// The reader's limit in bytes.
        limit_bytes: u64,
    },
    /// There is no room left for more objects.
    #[error(
        "no space left in {location} while writing {key}: free some space and run the command again; what is already stored is kept and used"
    )]
    Full {
        /// The object being written.
        key: ObjectKey,
        /// The store, for a person.
        location: String,
    },
    /// Anything else the medium says.
    #[error("cannot {action} {subject} in {location}: {source}")]
    Io {
        /// What was tried: "read", "write", "list", "delete", "create", "open", "persist".
        action: &'static str,
        /// The object or directory concerned.
        subject: String,
        /// The store, for a person.
        location: String,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    /// Is this the absence of an object, rather than a failure to look?
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, StoreError::Missing { .. })
    }
}

/// An object on its way into a store. All calls block.
pub trait ObjectWriter: Send {
    /// Appends `bytes`: neither visible nor durable yet.
    ///
    /// # Errors
    /// As [`ObjectStore::put`]. A writer that failed once stays failed.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Makes the object visible, and durable: after `Ok` it survives a crash.
    ///
    /// # Errors
    /// As [`ObjectStore::put`]; the object is then not visible, or whole.
    fn finish(self: Box<Self>) -> Result<(), StoreError>;
}

/// A flat map from [`ObjectKey`] to immutable bytes. All calls block; all are safe from
/// several threads and several processes at once.
pub trait ObjectStore: Send + Sync {
    /// Where the objects lie, for messages to a person.
    fn location(&self) -> String;

    /// Stores `bytes` under `key`, durably: after `Ok` the object survives a crash.
    /// The key must be new (ids are random); a store may overwrite or refuse an old one.
    ///
    /// # Errors
    /// [`StoreError::Full`] or [`StoreError::Io`]; the object is then not visible, or whole.
    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError>;

    /// As [`ObjectStore::put`], of metadata that later runs begin with (pages of trees): a store that is far
    /// away may keep a copy nearby.
    ///
    /// # Errors
    /// As [`ObjectStore::put`].
    fn put_metadata(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.put(key, bytes)
    }

    /// Begins an object that is written in parts, in the memory of a part. Nothing is visible under
    /// `key`, which must be new, before [`ObjectWriter::finish`]; dropped before that, the writer
    /// leaves nothing.
    ///
    /// # Errors
    /// As [`ObjectStore::put`]. Stores may find out only when it is finished.
    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError>;

    /// Stores `bytes` under `key` durably unless an object is there already. Only the
    /// creation of a repository may rest on this: some servers ignore the condition.
    /// [`PutOutcome::Exists`] says nothing about durability: [`ObjectStore::persist`] does.
    ///
    /// # Errors
    /// As [`ObjectStore::put`].
    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError>;

    /// Stores `bytes` under a key that may have an object: at every instant of a crash there is the old one, whole, or the
    /// new one, whole, and after `Ok` the new one. For `config` alone; everything else is written once.
    ///
    /// A store that overwrites in [`ObjectStore::put`], at once for all who read, needs no more than that. Others have to
    /// say how they do it.
    ///
    /// # Errors
    /// As [`ObjectStore::put`]; the old object is there then, or the new one.
    fn replace(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.put(key, bytes)
    }

    /// Makes sure that visible objects are durable. An object written by a process that died
    /// may be visible and yet be lost in a power failure: call this before referring to it.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if one is not there, [`StoreError::Io`].
    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError>;

    /// The whole object, refused when longer than `limit_bytes` (before allocating).
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::TooLong`], [`StoreError::Io`].
    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError>;

    /// Exactly `length` bytes from `offset`.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::TooShort`], [`StoreError::Io`].
    fn get_range(&self, key: &ObjectKey, offset: u64, length: usize)
    -> Result<Vec<u8>, StoreError>;

    /// As [`ObjectStore::get_range`], of metadata that later runs will want again: a store that is far away
    /// may keep a copy nearby, and answer by one.
    ///
    /// # Errors
    /// As [`ObjectStore::get_range`].
    fn get_metadata_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        self.get_range(key, offset, length)
    }

    /// The last bytes of an object, at most `length` of them, and its size.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Io`].
    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError>;

    /// Calls `visit(id, object_bytes)` for every object of a kind, in no order.
    /// Names that are no key of that kind are passed over.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError>;

    /// Removes an object; one that is not there is no error. A container may come back after
    /// a crash (nothing refers to it then, so it is garbage); an object of any other kind that
    /// was removed stays away, so that what it referred to may be deleted next.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError>;
}

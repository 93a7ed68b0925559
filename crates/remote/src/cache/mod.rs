//! [`CachingStore`]: copies of metadata on this machine, before a store on a server.
//!
//! Kept are objects and pieces of objects that later runs want again and that never change: snapshots, remaps,
//! runs of the index, the metadata at the end of containers, pages of trees. They lie below a directory of
//! the repository's id, bounded in bytes ([`directory`](self::directory)), as the server has them: sealed.
//! A copy is checked before it is used ([`entry`](self::entry)); one that is damaged is dropped and fetched anew, so that
//! nothing a disk or a crash does to the cache looks like damage of the repository.
//!
//! What is never answered from copies is whether something *is there*: listings, `runs/`, `condemned/`,
//! `expired/`, keys, the configuration, and questions for zero bytes. A copy of an object counts only if this process
//! has listed its kind and found it, or has put it: so what was deleted before a run began is gone for that
//! run, as the deletion protocol wants it (docs/design/0015-prune.md). Containers of a run that lists none
//! (it only reads) are the exception: their metadata can mislead nobody, for data is read from the server.

mod directory;
mod entry;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::object::{
    ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, PutOutcome, StoreError, Tail,
};

use directory::{CacheDirectory, Growing};
use entry::Piece;

/// Bytes of the end of a container of data that are kept when it is put: its metadata, mostly.
const TAIL_BYTES_KEPT: usize = 64 << 10;

/// What was answered from copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Reads that needed no request.
    pub hits: u64,
    /// Their bytes.
    pub hit_bytes: u64,
    /// Reads that a copy might have answered, but none was there.
    pub misses: u64,
}

/// A store with copies of metadata before it.
pub struct CachingStore {
    inner: Arc<dyn ObjectStore>,
    directory: CacheDirectory,
    /// What this process knows to be there, by kinds that it has listed.
    known: Mutex<HashMap<ObjectKind, HashSet<ObjectId>>>,
    hits: AtomicU64,
    hit_bytes: AtomicU64,
    misses: AtomicU64,
}

impl std::fmt::Debug for CachingStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CachingStore({})", self.inner.location())
    }
}

/// Kinds of which copies are kept.
fn is_kept(kind: ObjectKind) -> bool {
    matches!(
        kind,
        ObjectKind::Snapshot | ObjectKind::Index | ObjectKind::Remap | ObjectKind::Container
    )
}

impl CachingStore {
    /// Copies in `directory` of what is in `inner`, at most `limit_bytes` of them. The directory is made, readable
    /// for this user alone.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        directory: &Path,
        limit_bytes: u64,
    ) -> std::io::Result<Self> {
        Ok(Self {
            inner,
            directory: CacheDirectory::open(directory, limit_bytes)?,
            known: Mutex::default(),
            hits: AtomicU64::new(0),
            hit_bytes: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// What was answered from copies so far.
    #[must_use]
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            hits: self.hits.load(Ordering::Relaxed),
            hit_bytes: self.hit_bytes.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// May a copy of that object be used?
    fn counts_as_there(&self, key: &ObjectKey) -> bool {
        if !is_kept(key.kind) {
            return false;
        }
        match crate::lock(&self.known).get(&key.kind) {
            Some(known) => known.contains(&key.id),
            None => key.kind == ObjectKind::Container,
        }
    }

    /// Notes that an object is there, in kinds that were listed.
    fn note_put(&self, key: &ObjectKey) {
        if let Some(known) = crate::lock(&self.known).get_mut(&key.kind) {
            known.insert(key.id);
        }
    }

    fn kept<T>(&self, key: &ObjectKey, look: impl FnOnce() -> Option<(T, usize)>) -> Option<T> {
        if !self.counts_as_there(key) {
            return None;
        }
        match look() {
            Some((found, bytes)) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                self.hit_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                Some(found)
            }
            None => {
                self.misses.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    fn kept_range(&self, key: &ObjectKey, offset: u64, length: usize) -> Option<Vec<u8>> {
        self.kept(key, || {
            let end = offset.checked_add(length as u64)?;
            let pieces = [
                Piece::Whole,
                Piece::Range(offset, length as u64),
                Piece::Tail,
            ];
            let read = |piece| {
                self.directory
                    .read(key, piece, |entry| entry.range(offset, end))
            };
            pieces
                .into_iter()
                .find_map(read)
                .map(|bytes| (bytes, length))
        })
    }
}

impl ObjectStore for CachingStore {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.put(key, bytes)?;
        self.note_put(key);
        match key.kind {
            ObjectKind::Snapshot | ObjectKind::Remap | ObjectKind::Index => {
                self.directory
                    .keep(key, Piece::Whole, 0, bytes.len() as u64, bytes);
            }
            ObjectKind::Container => {
                let start = bytes.len().saturating_sub(TAIL_BYTES_KEPT);
                let (offset, object_bytes) = (start as u64, bytes.len() as u64);
                self.directory
                    .keep(key, Piece::Tail, offset, object_bytes, &bytes[start..]);
            }
            _ => {}
        }
        Ok(())
    }

    fn put_metadata(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.put_metadata(key, bytes)?;
        self.note_put(key);
        if is_kept(key.kind) {
            self.directory
                .keep(key, Piece::Whole, 0, bytes.len() as u64, bytes);
        }
        Ok(())
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        let inner = self.inner.create(key)?;
        if key.kind != ObjectKind::Index {
            return Ok(inner);
        }
        Ok(Box::new(KeepingWriter {
            store: self,
            key: *key,
            inner,
            copy: self.directory.begin(key),
        }))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        let outcome = self.inner.put_if_absent(key, bytes)?;
        self.note_put(key);
        Ok(outcome)
    }

    fn replace(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        // What is replaced is what no copy is kept of; should there be one, it is of the old object.
        self.directory.forget(key);
        self.inner.replace(key, bytes)?;
        self.note_put(key);
        Ok(())
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.inner.persist(keys)
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        // Whole containers and runs of the index are read to be checked: the server's are meant.
        if !matches!(key.kind, ObjectKind::Snapshot | ObjectKind::Remap) {
            return self.inner.get(key, limit_bytes);
        }
        let kept = self.kept(key, || {
            let whole = |entry: &entry::Entry| {
                let is_short = entry.object_bytes() <= limit_bytes;
                is_short.then(|| entry.range(0, entry.object_bytes()))?
            };
            let bytes = self.directory.read(key, Piece::Whole, whole)?;
            let length = bytes.len();
            Some((bytes, length))
        });
        if let Some(bytes) = kept {
            return Ok(bytes);
        }
        let bytes = self.inner.get(key, limit_bytes)?;
        self.directory
            .keep(key, Piece::Whole, 0, bytes.len() as u64, &bytes);
        Ok(bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        match key.kind {
            ObjectKind::Index if length > 0 => self.get_metadata_range(key, offset, length),
            _ => self.inner.get_range(key, offset, length),
        }
    }

    fn get_metadata_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        if let Some(bytes) = self.kept_range(key, offset, length) {
            return Ok(bytes);
        }
        let bytes = self.inner.get_metadata_range(key, offset, length)?;
        if is_kept(key.kind) && length > 0 {
            // Its own length does for that of an object of which nobody asked for the end.
            let piece = Piece::Range(offset, length as u64);
            let end = offset + length as u64;
            self.directory.keep(key, piece, offset, end, &bytes);
        }
        Ok(bytes)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        let has_copies = matches!(key.kind, ObjectKind::Container | ObjectKind::Index);
        if length == 0 || !has_copies {
            return self.inner.get_tail(key, length);
        }
        let kept = self.kept(key, || {
            let tail = |entry: &entry::Entry| {
                let object_bytes = entry.object_bytes();
                let start = object_bytes.saturating_sub(length as u64);
                let bytes = entry.range(start, object_bytes)?;
                Some(Tail {
                    bytes,
                    object_bytes,
                })
            };
            let read = |piece| self.directory.read(key, piece, tail);
            let found = [Piece::Whole, Piece::Tail].into_iter().find_map(read)?;
            let bytes = found.bytes.len();
            Some((found, bytes))
        });
        if let Some(tail) = kept {
            return Ok(tail);
        }
        let tail = self.inner.get_tail(key, length)?;
        let offset = tail.object_bytes - tail.bytes.len() as u64;
        self.directory
            .keep(key, Piece::Tail, offset, tail.object_bytes, &tail.bytes);
        Ok(tail)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        if !is_kept(kind) {
            return self.inner.list(kind, visit);
        }
        let mut there = HashSet::new();
        let mut notice = |id: ObjectId, bytes: u64| {
            there.insert(id);
            visit(id, bytes);
        };
        self.inner.list(kind, &mut notice)?;
        self.directory.keep_only(kind, &there);
        crate::lock(&self.known).insert(kind, there);
        Ok(())
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        self.inner.delete(key)?;
        if let Some(known) = crate::lock(&self.known).get_mut(&key.kind) {
            known.remove(&key.id);
        }
        self.directory.forget(key);
        Ok(())
    }
}

/// A run of the index that goes to the server, and into a copy beside.
struct KeepingWriter<'a> {
    store: &'a CachingStore,
    key: ObjectKey,
    inner: Box<dyn ObjectWriter + 'a>,
    /// None once it could not be written: the cache may do without.
    copy: Option<Growing>,
}

impl ObjectWriter for KeepingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.inner.write(bytes)?;
        if let Some(copy) = &mut self.copy
            && copy.write(bytes).is_err()
        {
            self.copy = None;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        self.inner.finish()?;
        self.store.note_put(&self.key);
        if let Some(copy) = self.copy {
            self.store.directory.finish(copy);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

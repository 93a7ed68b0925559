//! [`LocalStore`]: objects as files below a directory.
//!
//! Layout: `config`, `keys/ID`, `containers/xx/ID`, … ([`ObjectKey`] prints as the path), and
//! `tmp/` for files on their way in. A put is: write a file in `tmp/`, sync the file, publish
//! it under its name without replacing, sync the directory of the name. A crash before the
//! last step leaves nothing, a file in `tmp/`, or the whole object; never a part of one under
//! its name. The directories above an object are durable before it is (`directories.rs`).
//!
//! A sync that failed is never repeated: the file is removed and the error returned; a failed
//! sync of a directory closes it for writing until the store is opened again.
//!
//! An object in parts goes the same way: its file in `tmp/` grows, and is synced when it is whole.
//!
//! One put costs two syncs; puts from several threads overlap but for the sync of one and the same
//! directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use super::directories::{Directories, Directory, shard_of_name};
use super::filesystem::FileSystem;
use super::key::{ObjectId, ObjectKey, ObjectKind};
use super::os_filesystem::{CLAIM_SUFFIX, OsFileSystem};
use super::{ObjectStore, ObjectWriter, PutOutcome, StoreError, Tail};

/// Where files lie until they are whole and durable.
const TEMPORARY_DIRECTORY: &str = "tmp";

/// A name that a new file system puts into its root; a store may be created beside it.
const LOST_AND_FOUND: &str = "lost+found";

/// Age from which a file in `tmp/` surely belongs to no living writer, for
/// [`LocalStore::remove_stale_temporaries`].
pub const TEMPORARY_STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// An object store in a directory of a file system.
#[derive(Debug)]
pub struct LocalStore<F: FileSystem = OsFileSystem> {
    filesystem: F,
    location: String,
    directories: Directories,
}

impl LocalStore<OsFileSystem> {
    /// The store in the directory `root`, which must be there; what is in it is not looked at.
    ///
    /// # Errors
    /// [`StoreError::Io`] if `root` is no directory that can be read.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let location = root.display().to_string();
        match OsFileSystem::open(root) {
            Ok(filesystem) => Ok(Self::with_filesystem(filesystem, location)),
            Err(source) => Err(root_error("open", location, source)),
        }
    }

    /// Makes an empty store in the directory `root`, durably; missing directories above are
    /// made as well. Fine if `root` is there and empty, or laid out already.
    ///
    /// # Errors
    /// [`StoreError::Io`], of kind `DirectoryNotEmpty` if something else lies there.
    pub fn create(root: &Path) -> Result<Self, StoreError> {
        let location = root.display().to_string();
        match OsFileSystem::create(root) {
            Ok(filesystem) => Self::create_with_filesystem(filesystem, location),
            Err(source) => Err(root_error("create", location, source)),
        }
    }
}

impl<F: FileSystem> LocalStore<F> {
    /// The store in the root of `filesystem`; what is in it is not looked at.
    pub fn with_filesystem(filesystem: F, location: impl Into<String>) -> Self {
        Self {
            filesystem,
            location: location.into(),
            directories: Directories::new(),
        }
    }

    /// Makes an empty store in the root of `filesystem`, durably; fine if the root is empty or
    /// laid out already.
    ///
    /// # Errors
    /// As [`LocalStore::create`].
    pub fn create_with_filesystem(
        filesystem: F,
        location: impl Into<String>,
    ) -> Result<Self, StoreError> {
        let store = Self::with_filesystem(filesystem, location);
        match store.lay_out() {
            Ok(()) => Ok(store),
            Err(source) => Err(root_error("create", store.location, source)),
        }
    }

    /// The file system below, for tests that look behind the store.
    pub fn filesystem(&self) -> &F {
        &self.filesystem
    }

    /// Removes what writers that died have left in `tmp/`, if at least `age` old; returns how
    /// many files. Writers that live are safe if `age` is longer than a put can take:
    /// [`TEMPORARY_STALE_AFTER`].
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn remove_stale_temporaries(&self, age: Duration) -> Result<u64, StoreError> {
        let mut removed = 0;
        for name in self.names(TEMPORARY_DIRECTORY)? {
            if name.parse::<ObjectId>().is_err() && !name.ends_with(CLAIM_SUFFIX) {
                continue;
            }
            let path = format!("{TEMPORARY_DIRECTORY}/{name}");
            let result = match self.filesystem.status(&path) {
                Ok(status) if status.is_file && status.age >= age => {
                    self.filesystem.remove_file(&path).map(|()| 1)
                }
                Ok(_) => Ok(0),
                Err(error) => Err(error),
            };
            match result {
                Ok(count) => removed += count,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(self.io_error("delete", path, source)),
            }
        }
        Ok(removed)
    }

    fn lay_out(&self) -> io::Result<()> {
        let kinds = ObjectKind::ALL.map(ObjectKind::directory);
        let names = self.filesystem.list_dir(Directory::Root.path().as_str())?;
        let is_ours = |name: &str| name == TEMPORARY_DIRECTORY || kinds.contains(&name);
        let foreign = names
            .iter()
            .find(|name| !is_ours(name) && *name != LOST_AND_FOUND);
        let laid_out = names.iter().filter(|name| is_ours(name)).count() >= kinds.len();
        if let (Some(foreign), false) = (foreign, laid_out) {
            let reason = format!("the directory holds other things, \"{foreign}\" among them");
            return Err(io::Error::new(ErrorKind::DirectoryNotEmpty, reason));
        }
        self.create_temporary_directory()?;
        for kind in ObjectKind::ALL {
            if kind != ObjectKind::Config {
                self.directories
                    .prepare(&self.filesystem, Directory::Kind(kind))?;
            }
        }
        Ok(())
    }

    /// Nothing in `tmp/` is worth keeping after a crash, so its name is not synced.
    fn create_temporary_directory(&self) -> io::Result<()> {
        match self.filesystem.create_dir(TEMPORARY_DIRECTORY) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// The whole of a put; see the top of this file.
    fn store(&self, key: &ObjectKey, bytes: &[u8]) -> io::Result<PutOutcome> {
        self.directories
            .prepare(&self.filesystem, Directory::of(key))?;
        let (temporary, file) = self.begin_temporary(bytes)?;
        self.publish(key, &temporary, &file)
    }

    /// Makes a file in `tmp/` durable and gives it its name, or removes it.
    fn publish(&self, key: &ObjectKey, temporary: &str, file: &F::File) -> io::Result<PutOutcome> {
        let path = key.to_string();
        let published = self
            .filesystem
            .sync_file(file)
            .and_then(|()| self.filesystem.publish(temporary, &path));
        if let Err(error) = published {
            self.discard(temporary);
            return match error.kind() {
                ErrorKind::AlreadyExists => Ok(PutOutcome::Exists),
                _ => Err(error),
            };
        }
        match self.directories.sync(&self.filesystem, Directory::of(key)) {
            Ok(()) => Ok(PutOutcome::Created),
            Err(error) => {
                self.discard(&path);
                Err(error)
            }
        }
    }

    /// Writes `bytes` to a new file in `tmp/`, and returns its path with it.
    fn begin_temporary(&self, bytes: &[u8]) -> io::Result<(String, F::File)> {
        let path = format!("{TEMPORARY_DIRECTORY}/{}", ObjectId::random());
        let written = match self.filesystem.write_new_file(&path, bytes) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Empty directories get lost where people copy stores about.
                self.create_temporary_directory()?;
                self.filesystem.write_new_file(&path, bytes)
            }
            result => result,
        };
        match written {
            Ok(file) => Ok((path, file)),
            Err(error) => {
                if error.kind() != ErrorKind::AlreadyExists {
                    self.discard(&path);
                }
                Err(error)
            }
        }
    }

    /// What a put that should have created its object has come to.
    fn created(&self, key: &ObjectKey, outcome: io::Result<PutOutcome>) -> Result<(), StoreError> {
        match outcome {
            Ok(PutOutcome::Created) => Ok(()),
            Ok(PutOutcome::Exists) => {
                let source = io::Error::from(ErrorKind::AlreadyExists);
                Err(self.io_error("write", key.to_string(), source))
            }
            Err(source) => Err(self.write_error("write", key, source)),
        }
    }

    /// Removes a file of a put that has failed. If that fails too, the file is garbage that
    /// nothing refers to, and the first error is the one worth telling.
    fn discard(&self, path: &str) {
        let _ = self.filesystem.remove_file(path);
    }

    /// Removes an object, durably if others may be removed because it is gone.
    fn remove(&self, key: &ObjectKey) -> io::Result<()> {
        match self.filesystem.remove_file(&key.to_string()) {
            // Not there may mean removed, and not synced: by a process that died, or by a
            // call whose sync failed. So the directory is synced in this case, too.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if key.kind == ObjectKind::Container {
            // One that comes back after a crash is garbage: nothing refers to it.
            return Ok(());
        }
        match self.directories.sync(&self.filesystem, Directory::of(key)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn persist_all(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        let mut directories: BTreeMap<Directory, ObjectKey> = BTreeMap::new();
        for key in keys.iter().collect::<BTreeSet<_>>() {
            let directory = Directory::of(key);
            let file = self.open_object(key)?;
            if let Err(source) = self.filesystem.sync_file(&file) {
                // Not removed: a reader may rely on it, and it may well be intact below.
                self.directories.lose(directory);
                return Err(self.write_error("persist", key, source));
            }
            directories.insert(directory, *key);
        }
        for (directory, key) in directories {
            self.directories
                .prepare(&self.filesystem, directory)
                .and_then(|()| self.directories.sync(&self.filesystem, directory))
                .map_err(|source| self.write_error("persist", &key, source))?;
        }
        Ok(())
    }

    fn open_object(&self, key: &ObjectKey) -> Result<F::File, StoreError> {
        self.filesystem
            .open_file(&key.to_string())
            .map_err(|source| self.read_error(key, source))
    }

    fn open_with_length(&self, key: &ObjectKey) -> Result<(F::File, u64), StoreError> {
        let file = self.open_object(key)?;
        match self.filesystem.file_bytes(&file) {
            Ok(bytes) => Ok((file, bytes)),
            Err(source) => Err(self.read_error(key, source)),
        }
    }

    fn read_exactly(
        &self,
        key: &ObjectKey,
        file: &F::File,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let mut bytes = vec![0u8; length];
        let mut filled = 0;
        while filled < length {
            let place = offset + filled as u64;
            match self.filesystem.read_at(file, place, &mut bytes[filled..]) {
                Ok(0) => {
                    return Err(StoreError::TooShort {
                        key: *key,
                        location: self.location.clone(),
                        wanted_end: offset + length as u64,
                        object_bytes: place,
                    });
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.read_error(key, source)),
            }
        }
        Ok(bytes)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>, StoreError> {
        match self.filesystem.list_dir(directory) {
            Ok(names) => Ok(names),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(self.io_error("list", directory.to_owned(), source)),
        }
    }

    /// Visits the files of one directory whose names are ids that belong there.
    fn list_directory(
        &self,
        kind: ObjectKind,
        directory: Directory,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        for name in self.names(&directory.path())? {
            let Ok(id) = name.parse() else { continue };
            let key = ObjectKey::new(kind, id);
            if Directory::of(&key) == directory {
                self.visit_object(&key, visit)?;
            }
        }
        Ok(())
    }

    fn visit_object(
        &self,
        key: &ObjectKey,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        match self.filesystem.status(&key.to_string()) {
            Ok(status) if status.is_file => visit(key.id, status.bytes),
            Ok(_) => {}
            // Deleted since the directory was read.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(self.io_error("list", key.to_string(), source)),
        }
        Ok(())
    }

    fn io_error(&self, action: &'static str, subject: String, source: io::Error) -> StoreError {
        StoreError::Io {
            action,
            subject,
            location: self.location.clone(),
            source,
        }
    }

    fn read_error(&self, key: &ObjectKey, source: io::Error) -> StoreError {
        match source.kind() {
            ErrorKind::NotFound => StoreError::Missing {
                key: *key,
                location: self.location.clone(),
            },
            _ => self.io_error("read", key.to_string(), source),
        }
    }

    fn write_error(&self, action: &'static str, key: &ObjectKey, source: io::Error) -> StoreError {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full {
                key: *key,
                location: self.location.clone(),
            },
            _ => self.io_error(action, key.to_string(), source),
        }
    }
}

/// An object in parts: its file in `tmp/`.
struct LocalWriter<'a, F: FileSystem> {
    store: &'a LocalStore<F>,
    key: ObjectKey,
    /// Where the file is, until it is published or removed.
    temporary: Option<String>,
    file: F::File,
    is_failed: bool,
}

impl<F: FileSystem> ObjectWriter for LocalWriter<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let appended = if self.is_failed {
            Err(io::Error::other("an earlier write has failed"))
        } else {
            self.store.filesystem.append(&self.file, bytes)
        };
        appended.map_err(|source| {
            self.is_failed = true;
            self.store.write_error("write", &self.key, source)
        })
    }

    fn finish(mut self: Box<Self>) -> Result<(), StoreError> {
        if self.is_failed {
            self.write(&[])?;
        }
        let outcome = match self.temporary.take() {
            Some(temporary) => self.store.publish(&self.key, &temporary, &self.file),
            None => Err(io::Error::other("it was finished before")),
        };
        self.store.created(&self.key, outcome)
    }
}

impl<F: FileSystem> Drop for LocalWriter<'_, F> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            self.store.discard(temporary);
        }
    }
}

impl<F: FileSystem> ObjectStore for LocalStore<F> {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.created(key, self.store(key, bytes))
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        let begun = self
            .directories
            .prepare(&self.filesystem, Directory::of(key))
            .and_then(|()| self.begin_temporary(&[]));
        let (temporary, file) = begun.map_err(|source| self.write_error("write", key, source))?;
        Ok(Box::new(LocalWriter {
            store: self,
            key: *key,
            temporary: Some(temporary),
            file,
            is_failed: false,
        }))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        // Spares the writing; `publish` decides.
        match self.filesystem.status(&key.to_string()) {
            Ok(_) => return Ok(PutOutcome::Exists),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(self.io_error("write", key.to_string(), source)),
        }
        self.store(key, bytes)
            .map_err(|source| self.write_error("write", key, source))
    }

    fn replace(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        let replaced = self.begin_temporary(bytes).and_then(|(temporary, file)| {
            let moved = self
                .filesystem
                .sync_file(&file)
                .and_then(|()| self.filesystem.replace(&temporary, &key.to_string()));
            if let Err(error) = moved {
                self.discard(&temporary);
                return Err(error);
            }
            self.directories.sync(&self.filesystem, Directory::of(key))
        });
        replaced.map_err(|source| self.write_error("replace", key, source))
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.persist_all(keys)
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        let (file, object_bytes) = self.open_with_length(key)?;
        match usize::try_from(object_bytes) {
            Ok(length) if object_bytes <= limit_bytes => self.read_exactly(key, &file, 0, length),
            _ => Err(StoreError::TooLong {
                key: *key,
                location: self.location.clone(),
                object_bytes,
                limit_bytes,
            }),
        }
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let (file, object_bytes) = self.open_with_length(key)?;
        let wanted_end = offset.saturating_add(length as u64);
        if wanted_end > object_bytes {
            return Err(StoreError::TooShort {
                key: *key,
                location: self.location.clone(),
                wanted_end,
                object_bytes,
            });
        }
        self.read_exactly(key, &file, offset, length)
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        let (file, object_bytes) = self.open_with_length(key)?;
        let length = usize::try_from(object_bytes).map_or(length, |whole| whole.min(length));
        let offset = object_bytes - length as u64;
        Ok(Tail {
            bytes: self.read_exactly(key, &file, offset, length)?,
            object_bytes,
        })
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        match kind {
            ObjectKind::Config => self.visit_object(&ObjectKey::CONFIG, visit),
            ObjectKind::Container => {
                for name in self.names(kind.directory())? {
                    if let Some(shard) = shard_of_name(&name) {
                        self.list_directory(kind, Directory::Shard(shard), visit)?;
                    }
                }
                Ok(())
            }
            kind => self.list_directory(kind, Directory::Kind(kind), visit),
        }
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        self.remove(key)
            .map_err(|source| self.io_error("delete", key.to_string(), source))
    }
}

fn root_error(action: &'static str, location: String, source: io::Error) -> StoreError {
    StoreError::Io {
        action,
        subject: "the store".to_owned(),
        location,
        source,
    }
}

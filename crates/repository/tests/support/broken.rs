//! Disks and stores that promise durability too early: a test of reliability must find them out.

use std::io;
use std::sync::{Arc, Mutex};

use engine::object::{
    FileStatus, FileSystem, LocalStore, ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter,
    PutOutcome, StoreError, Tail, WholeWriter,
};
use testkit::CrashDisk;

/// A broken file system: it says that it has synced.
pub struct Forgetful {
    pub disk: CrashDisk,
    pub forgets: Forgets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgets {
    Nothing,
    Files,
    Containers,
    Snapshots,
}

impl FileSystem for Forgetful {
    type File = <CrashDisk as FileSystem>::File;

    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn write_new_file(&self, path: &str, bytes: &[u8]) -> io::Result<Self::File> {
        self.disk.write_new_file(path, bytes)
    }

    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()> {
        self.disk.append(file, bytes)
    }

    fn open_file(&self, path: &str) -> io::Result<Self::File> {
        self.disk.open_file(path)
    }

    fn file_bytes(&self, file: &Self::File) -> io::Result<u64> {
        self.disk.file_bytes(file)
    }

    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.read_at(file, offset, buffer)
    }

    fn sync_file(&self, file: &Self::File) -> io::Result<()> {
        match self.forgets {
            Forgets::Files => Ok(()),
            _ => self.disk.sync_file(file),
        }
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        match self.forgets {
            Forgets::Containers if path.starts_with("containers/") => Ok(()),
            Forgets::Snapshots if path == "snapshots" => Ok(()),
            _ => self.disk.sync_dir(path),
        }
    }

    fn publish(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.publish(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.replace(from, to)
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn status(&self, path: &str) -> io::Result<FileStatus> {
        self.disk.status(path)
    }

    fn list_dir(&self, path: &str) -> io::Result<Vec<String>> {
        self.disk.list_dir(path)
    }
}

/// A broken store.
pub struct Broken {
    store: Arc<LocalStore<CrashDisk>>,
    breaks: Breaks,
    waiting: Mutex<Option<(ObjectKey, Vec<u8>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaks {
    /// A container is put when the next one comes.
    PutsLater,
    /// What a dead process left is not made durable.
    Persisting,
}

impl Broken {
    pub fn new(disk: &CrashDisk, breaks: Breaks) -> Arc<Self> {
        Arc::new(Self {
            store: Arc::new(LocalStore::with_filesystem(disk.clone(), "crash disk")),
            breaks,
            waiting: Mutex::default(),
        })
    }
}

impl ObjectStore for Broken {
    fn location(&self) -> String {
        self.store.location()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        if key.kind != ObjectKind::Container || self.breaks != Breaks::PutsLater {
            return self.store.put(key, bytes);
        }
        let mut waiting = self.waiting.lock().expect("no panic");
        match waiting.replace((*key, bytes.to_vec())) {
            Some((key, bytes)) => self.store.put(&key, &bytes),
            None => Ok(()),
        }
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        Ok(Box::new(WholeWriter::new(self, key)))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        self.store.put_if_absent(key, bytes)
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        match self.breaks {
            Breaks::Persisting => Ok(()),
            Breaks::PutsLater => self.store.persist(keys),
        }
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.store.get(key, limit_bytes)
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
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

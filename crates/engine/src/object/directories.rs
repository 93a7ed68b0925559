//! Which directories of a local store exist durably, and which can no longer be trusted.
//!
//! An object is durable only if the name of every directory above it is. A directory that is
//! *there* may have been made by a process that died before syncing, so each one is prepared
//! once a process: created if missing, and its parent synced in either case. The shards of
//! `containers/` that are there already share one sync.
//!
//! After a failed sync a directory is *lost* to this handle: names made by other threads may
//! be gone although their own sync would report success. A sync and the verdict on it happen
//! under the directory's lock, so that no other thread slips in between; a lock is only ever
//! taken from child to parent.

use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::filesystem::FileSystem;
use super::key::{ObjectKey, ObjectKind};

/// Number of directories that containers are spread over, by the first byte of their id.
const SHARDS: usize = 256;

/// A directory that holds objects, or directories of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Directory {
    /// The root of the store.
    Root,
    /// The directory of a kind of object (`config` is a file and has none).
    Kind(ObjectKind),
    /// `containers/xx`.
    Shard(u8),
}

impl Directory {
    /// The directory that the object's file lies in.
    pub(super) fn of(key: &ObjectKey) -> Self {
        match key.kind {
            ObjectKind::Config => Directory::Root,
            ObjectKind::Container => Directory::Shard(key.id.0[0]),
            kind => Directory::Kind(kind),
        }
    }

    /// Its path below the root of the store.
    pub(super) fn path(self) -> String {
        match self {
            Directory::Root => String::new(),
            Directory::Kind(kind) => kind.directory().to_owned(),
            Directory::Shard(shard) => {
                format!("{}/{shard:02x}", ObjectKind::Container.directory())
            }
        }
    }

    /// The directory that holds its name, inside the store.
    fn parent(self) -> Option<Self> {
        match self {
            Directory::Root => None,
            Directory::Kind(_) => Some(Directory::Root),
            Directory::Shard(_) => Some(Directory::Kind(ObjectKind::Container)),
        }
    }
}

/// The shard that a directory name in `containers/` stands for.
pub(super) fn shard_of_name(name: &str) -> Option<u8> {
    let shard = u8::from_str_radix(name, 16).ok()?;
    (format!("{shard:02x}") == name).then_some(shard)
}

/// What this process knows of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Nothing yet.
    Unknown,
    /// It is there, and its name is durable.
    Durable,
    /// A sync failed: what it holds may be lost.
    Lost,
}

/// The directories of one open store.
#[derive(Debug)]
pub(super) struct Directories {
    root: Mutex<Trust>,
    /// By number of kind; the place of `config` stays unused.
    kinds: Vec<Mutex<Trust>>,
    shards: Vec<Mutex<Trust>>,
    /// Shards that were there, and synced, when `containers` was prepared.
    shards_found: OnceLock<[bool; SHARDS]>,
}

impl Directories {
    /// Knows nothing yet, but that the root is there.
    pub(super) fn new() -> Self {
        let unknown = |count: usize| (0..count).map(|_| Mutex::new(Trust::Unknown)).collect();
        Self {
            root: Mutex::new(Trust::Durable),
            kinds: unknown(ObjectKind::ALL.len()),
            shards: unknown(SHARDS),
            shards_found: OnceLock::new(),
        }
    }

    /// Makes sure that `directory` is there, durably, with all above it.
    ///
    /// # Errors
    /// What the medium says; or that the directory, or one above, is lost to this handle.
    pub(super) fn prepare<F: FileSystem>(
        &self,
        filesystem: &F,
        directory: Directory,
    ) -> io::Result<()> {
        let mut trust = self.trust(directory);
        match *trust {
            Trust::Durable => return Ok(()),
            Trust::Lost => return Err(lost(directory)),
            Trust::Unknown => {}
        }
        if let Some(parent) = directory.parent() {
            self.prepare(filesystem, parent)?;
            if !self.was_found(directory) {
                match filesystem.create_dir(&directory.path()) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                    _ => self.sync(filesystem, parent)?,
                }
            }
        }
        if directory == Directory::Kind(ObjectKind::Container) {
            let found = find_shards(filesystem, directory)?;
            if found.contains(&true) {
                sync_or_lose(filesystem, directory, &mut trust)?;
            }
            let _ = self.shards_found.set(found);
        }
        *trust = Trust::Durable;
        Ok(())
    }

    /// Makes the names in `directory` durable.
    ///
    /// # Errors
    /// `NotFound` if the directory is not there. What else the medium says, or that the
    /// directory is lost already; from then on it is lost to this handle.
    pub(super) fn sync<F: FileSystem>(
        &self,
        filesystem: &F,
        directory: Directory,
    ) -> io::Result<()> {
        let mut trust = self.trust(directory);
        if *trust == Trust::Lost {
            return Err(lost(directory));
        }
        sync_or_lose(filesystem, directory, &mut trust)
    }

    /// Something in `directory` was not made durable: no more promises are made about it.
    pub(super) fn lose(&self, directory: Directory) {
        *self.trust(directory) = Trust::Lost;
    }

    fn was_found(&self, directory: Directory) -> bool {
        match (directory, self.shards_found.get()) {
            (Directory::Shard(shard), Some(found)) => found[usize::from(shard)],
            _ => false,
        }
    }

    fn trust(&self, directory: Directory) -> MutexGuard<'_, Trust> {
        let trust = match directory {
            Directory::Root => &self.root,
            Directory::Kind(kind) => &self.kinds[kind as usize - 1],
            Directory::Shard(shard) => &self.shards[usize::from(shard)],
        };
        // A thread that panicked left a verdict or none: both are whole.
        trust.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sync_or_lose<F: FileSystem>(
    filesystem: &F,
    directory: Directory,
    trust: &mut Trust,
) -> io::Result<()> {
    let synced = filesystem.sync_dir(&directory.path());
    if let Err(error) = &synced
        && error.kind() != ErrorKind::NotFound
    {
        *trust = Trust::Lost;
    }
    synced
}

fn find_shards<F: FileSystem>(filesystem: &F, containers: Directory) -> io::Result<[bool; SHARDS]> {
    let mut found = [false; SHARDS];
    for name in filesystem.list_dir(&containers.path())? {
        if let Some(shard) = shard_of_name(&name) {
            found[usize::from(shard)] = true;
        }
    }
    Ok(found)
}

fn lost(directory: Directory) -> io::Error {
    io::Error::other(format!(
        "an earlier sync of the directory \"{}\" failed, so what it holds may not be durable; \
         check the medium and run the command again",
        directory.path()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_two_lower_case_digits() {
        assert_eq!(shard_of_name("0f"), Some(0x0f));
        assert_eq!(shard_of_name("ff"), Some(0xff));
        for bad in ["", "f", "0F", "+f", "00f", "zz", "100"] {
            assert_eq!(shard_of_name(bad), None, "{bad}");
        }
    }
}

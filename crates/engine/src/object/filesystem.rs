//! The few things a local store asks of a file system, and what each promises of durability.
//!
//! A seam with two implementations: [`OsFileSystem`](super::OsFileSystem) is the operating
//! system, `testkit::CrashDisk` a model that loses what was not synced. Paths are relative to
//! the root of the store, parts joined by `/`; the empty path is the root itself.
//!
//! The model of the medium, as POSIX gives it and no stronger:
//! * bytes written are visible at once, durable only after [`FileSystem::sync_file`] of the
//!   handle that wrote them (or of a later one, if no writing back failed in between);
//! * a name made, moved or removed is visible at once, durable only after
//!   [`FileSystem::sync_dir`] of the directory that holds the name, in no order before that;
//! * a sync that failed says that something is lost. Asking again may succeed although it
//!   stays lost (Rebello et al., "Can applications recover from fsync failures?", ATC 2020),
//!   so nobody may ask again: drop the file, distrust the directory.
//!
//! All calls block; all are safe from several threads and processes.

use std::io;
use std::time::Duration;

/// What [`FileSystem::status`] says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatus {
    /// Is it a regular file?
    pub is_file: bool,
    /// Length in bytes.
    pub bytes: u64,
    /// Time since the content last changed; zero if that lies in the future.
    pub age: Duration,
}

/// A file system as [`LocalStore`](super::LocalStore) sees it.
pub trait FileSystem: Send + Sync {
    /// An open file. Closing says nothing about durability.
    type File: Send + Sync;

    /// Creates a directory whose parent is there. Durable after `sync_dir` of the parent.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken, by a directory or anything else.
    fn create_dir(&self, path: &str) -> io::Result<()>;

    /// Creates a file that was not there and writes `bytes` to it. The bytes are durable after
    /// `sync_file` of the handle returned, the name after `sync_dir` of its directory.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken: nothing was changed. After any other error a file
    /// with a part of the bytes may be left, for the caller to remove.
    fn write_new_file(&self, path: &str, bytes: &[u8]) -> io::Result<Self::File>;

    /// Appends `bytes` to a file that [`FileSystem::write_new_file`] of this process returned, and
    /// that nobody else writes to. Durable after `sync_file` of the same handle.
    ///
    /// # Errors
    /// What the medium says; a part of the bytes may be written then.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Opens a file for reading and for `sync_file`.
    ///
    /// # Errors
    /// `NotFound`, or what the medium says.
    fn open_file(&self, path: &str) -> io::Result<Self::File>;

    /// Length of an open file in bytes.
    ///
    /// # Errors
    /// What the medium says; anything but a regular file is an error.
    fn file_bytes(&self, file: &Self::File) -> io::Result<u64>;

    /// Reads from `offset` into `buffer`; returns how many bytes, maybe fewer than asked for,
    /// zero only at the end of the file (or for an empty buffer).
    ///
    /// # Errors
    /// What the medium says, `Interrupted` among it.
    fn read_at(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Makes the bytes and the length of a file durable; not its name.
    ///
    /// # Errors
    /// What the medium says. Bytes may be lost then, and a further call may falsely succeed.
    fn sync_file(&self, file: &Self::File) -> io::Result<()>;

    /// Makes the names in a directory durable: those made, moved and removed so far.
    ///
    /// # Errors
    /// What the medium says. Changes may be lost then, and a further call may falsely succeed.
    fn sync_dir(&self, path: &str) -> io::Result<()>;

    /// Gives the file `from` the name `to`, in one step for every observer, unless `to` is
    /// taken. Durable after `sync_dir` of `to`'s directory; until then a power failure may
    /// leave either name, both or none. `from` may be left as a second name of the file.
    ///
    /// # Errors
    /// `AlreadyExists` if `to` is taken: it is left as it is, and so is `from`.
    fn publish(&self, from: &str, to: &str) -> io::Result<()>;

    /// Moves a file to a name that another file may have, in one step: who looks finds the old one or the new one, and so
    /// does who looks after a crash. Seen; durable after a sync of the directories.
    ///
    /// # Errors
    /// As the system says.
    fn replace(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes the name of a file. Durable after `sync_dir` of its directory.
    ///
    /// # Errors
    /// `NotFound`, or what the medium says.
    fn remove_file(&self, path: &str) -> io::Result<()>;

    /// What is under a name.
    ///
    /// # Errors
    /// `NotFound`, or what the medium says.
    fn status(&self, path: &str) -> io::Result<FileStatus>;

    /// The names in a directory, in no order; a name that is not UTF-8 is given with
    /// replacement characters (it is no name of ours).
    ///
    /// # Errors
    /// `NotFound`, or what the medium says.
    fn list_dir(&self, path: &str) -> io::Result<Vec<String>>;
}

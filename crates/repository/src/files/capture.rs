//! Captures what is known about one entry of a directory, without opening it.
//!
//! What enters is an open directory and a name, what leaves is an [`Entry`] without content.
//! System calls: one `stat`, one list of extended attributes (unless they are not wanted), one
//! more for each attribute and for the target of a symlink. Symlinks are not followed unless the caller says so.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::attributes::AttributeReader;
use super::owners::OwnerNames;
use super::problem::{Action, FilesError, Problem};
use super::status::Status;
use crate::tree::{Entry, EntryKind, HardLink, Metadata};

/// An entry as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The entry; a file's size is there, its content and check value are not.
    pub entry: Entry,
    /// What the system said about it.
    pub status: Status,
}

/// Captures entries; knows the names of users and keeps its buffers.
#[derive(Debug)]
pub struct Capturer {
    owners: OwnerNames,
    attributes: Option<AttributeReader>,
}

impl Default for Capturer {
    fn default() -> Self {
        Self::new(OwnerNames::of_system())
    }
}

impl Capturer {
    /// A capturer that names owners by these tables.
    #[must_use]
    pub fn new(owners: OwnerNames) -> Self {
        Self {
            owners,
            attributes: Some(AttributeReader::new()),
        }
    }

    /// The same, but entries have no extended attributes.
    #[must_use]
    pub(super) fn without_attributes(self) -> Self {
        Self {
            attributes: None,
            ..self
        }
    }

    /// Captures `name` in `directory`. Attributes that can't be read are added to `problems`,
    /// where `path` is what to call the entry.
    ///
    /// # Errors
    /// When there is no such entry any more, when the system refuses, or when it is of a type
    /// that is not stored (sockets).
    pub fn capture(
        &mut self,
        directory: impl AsFd,
        name: &OsStr,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) -> Result<Captured, Problem> {
        let status = Status::at(&directory, name, false)
            .map_err(|errno| problem(path, Action::Inspect, FilesError::of_second_look(errno)))?;
        self.capture_known(directory.as_fd(), name, path, (status, false), problems)
    }

    /// Captures an entry whose status is known; that of a symlink's target if `follow`.
    pub(super) fn capture_known(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        (status, follow): (Status, bool),
        problems: &mut Vec<Problem>,
    ) -> Result<Captured, Problem> {
        let kind = kind_of(directory, name, &status)
            .map_err(|(what, error)| problem(path, what, error))?;
        let mut failed = |what, error| problems.push(problem(path, what, error));
        let subject = (status.file_type, follow);
        let attributes = match &mut self.attributes {
            Some(reader) => reader.read(directory, name, subject, &mut failed),
            None => Vec::new(),
        };
        let metadata = Metadata {
            mode: status.permissions(),
            uid: status.uid,
            gid: status.gid,
            user: self.owners.user(status.uid).to_vec(),
            group: self.owners.group(status.gid).to_vec(),
            modified: status.modified,
            changed: status.changed,
            inode: status.identity.inode,
            attributes,
        };
        let mut entry = Entry::new(name.as_bytes().to_vec(), kind, metadata);
        if entry.kind == EntryKind::File {
            entry.size = status.size;
        }
        if status.links > 1 && entry.kind != EntryKind::Directory {
            entry.hard_link = Some(HardLink {
                device: status.identity.device,
                inode: status.identity.inode,
            });
        }
        Ok(Captured { entry, status })
    }
}

fn problem(path: &Path, what: Action, error: FilesError) -> Problem {
    Problem {
        path: path.to_owned(),
        what,
        error,
    }
}

fn kind_of(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    status: &Status,
) -> Result<EntryKind, (Action, FilesError)> {
    let (major, minor) = status.device_numbers;
    Ok(match status.file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink {
            target: target_of(directory, name).map_err(|error| (Action::ReadTarget, error))?,
        },
        FileType::Fifo => EntryKind::Fifo,
        FileType::CharacterDevice => EntryKind::CharacterDevice { major, minor },
        FileType::BlockDevice => EntryKind::BlockDevice { major, minor },
        FileType::Socket => return Err((Action::Inspect, FilesError::Socket)),
        FileType::Unknown => {
            let mode = status.mode;
            return Err((Action::Inspect, FilesError::UnknownType { mode }));
        }
    })
}

fn target_of(directory: BorrowedFd<'_>, name: &OsStr) -> Result<Vec<u8>, FilesError> {
    match rustix::fs::readlinkat(directory, name, Vec::new()) {
        Ok(target) => Ok(target.into_bytes()),
        // Not a symlink any more.
        Err(Errno::INVAL) => Err(FilesError::Replaced),
        Err(errno) => Err(FilesError::of_second_look(errno)),
    }
}

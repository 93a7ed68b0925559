//! Creates entries below a directory that is open, at restore.
//!
//! Nothing is created or opened through a symlink, whatever stands in the target: names are
//! single components, relative to directories whose identity is checked each time they are
//! opened again. New files have mode 0600 and new directories 0700 until their metadata is
//! applied, so that nobody sees content that was not for them.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::apply::file_type;
use super::directory::{DirectoryHandle, open_directory};
use super::problem::FilesError;
use super::status::Status;
use crate::tree::{EntryKind, check_name};

/// What happens to something that stands under the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It stays: [`FilesError::Exists`].
    #[default]
    Keep,
    /// It is removed, unless it is a directory: then [`FilesError::Exists`].
    Replace,
}

/// Opens the directory that a restore goes into; makes it, and its parents, where it is missing.
/// Symlinks on the way to it are followed: the user named it.
///
/// # Errors
/// What the system says.
pub fn open_target(path: &Path, open_max: usize) -> Result<DirectoryHandle, FilesError> {
    DirBuilder::new().recursive(true).create(path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))?;
    DirectoryHandle::root(descriptor, open_max)
}

/// The directory `name` in `parent`, made if there is none; says whether it was made. A directory
/// that is there is used whatever `existing` says.
///
/// # Errors
/// [`FilesError::Exists`] for something else than a directory that is to stay; what the system
/// says.
pub fn create_directory(
    parent: &DirectoryHandle,
    name: &[u8],
    existing: Existing,
) -> Result<(DirectoryHandle, bool), FilesError> {
    let name = checked(name)?;
    let open = parent.open()?;
    let make = || rustix::fs::mkdirat(&open, name, Mode::RWXU);
    let is_new = match make() {
        Ok(()) => true,
        Err(Errno::EXIST) => {
            let status = Status::at(&open, name, false).map_err(FilesError::of_second_look)?;
            if status.file_type == FileType::Directory {
                false
            } else {
                remove(&open, name, existing)?;
                make()?;
                true
            }
        }
        Err(errno) => return Err(errno.into()),
    };
    let opened = open_directory(&open, name, false)?;
    let identity = Status::of(&opened)?.identity;
    Ok((parent.open_child(name, identity, opened), is_new))
}

/// A new, empty file for writing.
///
/// # Errors
/// [`FilesError::Exists`], or what the system says.
pub fn create_file(
    directory: impl AsFd,
    name: &[u8],
    existing: Existing,
) -> Result<File, FilesError> {
    let name = checked(name)?;
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::EXCL
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NOCTTY;
    let mode = Mode::RUSR | Mode::WUSR;
    make(&directory, name, existing, || {
        rustix::fs::openat(&directory, name, flags, mode)
    })
    .map(File::from)
}

/// A new symlink.
///
/// # Errors
/// [`FilesError::Exists`], or what the system says.
pub fn create_symlink(
    directory: impl AsFd,
    name: &[u8],
    target: &[u8],
    existing: Existing,
) -> Result<(), FilesError> {
    let name = checked(name)?;
    make(&directory, name, existing, || {
        rustix::fs::symlinkat(target, &directory, name)
    })
}

/// A new FIFO or device.
///
/// # Errors
/// [`FilesError::Exists`], or what the system says: devices take a privileged user.
///
/// # Panics
/// For kinds that are neither.
pub fn create_special(
    directory: impl AsFd,
    name: &[u8],
    kind: &EntryKind,
    existing: Existing,
) -> Result<(), FilesError> {
    let name = checked(name)?;
    let numbers = match *kind {
        EntryKind::Fifo => (0, 0),
        EntryKind::CharacterDevice { major, minor } | EntryKind::BlockDevice { major, minor } => {
            (major, minor)
        }
        _ => panic!("{kind:?} is neither a FIFO nor a device"),
    };
    make(&directory, name, existing, || {
        make_special(&directory, name, file_type(kind), numbers)
    })
}

/// Another name for a file, symlink, FIFO or device that was restored before.
///
/// # Errors
/// [`FilesError::Exists`], or what the system says.
pub fn create_hard_link(
    (original_directory, original_name): (impl AsFd, &[u8]),
    (directory, name): (impl AsFd, &[u8]),
    existing: Existing,
) -> Result<(), FilesError> {
    let (original_name, name) = (checked(original_name)?, checked(name)?);
    make(&directory, name, existing, || {
        let flags = AtFlags::empty();
        rustix::fs::linkat(&original_directory, original_name, &directory, name, flags)
    })
}

fn checked(name: &[u8]) -> Result<&OsStr, FilesError> {
    match check_name(name) {
        Ok(()) => Ok(OsStr::from_bytes(name)),
        Err(_) => Err(FilesError::BadName {
            name: name.to_vec(),
        }),
    }
}

/// Creates by `create`; where something is in the way, once more when that is removed.
fn make<T>(
    directory: impl AsFd,
    name: &OsStr,
    existing: Existing,
    create: impl Fn() -> Result<T, Errno>,
) -> Result<T, FilesError> {
    let create = || retry_on_intr(&create);
    match create() {
        Err(Errno::EXIST) => {
            remove(directory, name, existing)?;
            Ok(create()?)
        }
        result => Ok(result?),
    }
}

/// Removes what is in the way, if it may be.
fn remove(directory: impl AsFd, name: &OsStr, existing: Existing) -> Result<(), FilesError> {
    if existing == Existing::Keep {
        return Err(FilesError::Exists);
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => Err(FilesError::Exists),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make_special(
    directory: impl AsFd,
    name: &OsStr,
    file_type: FileType,
    (major, minor): (u32, u32),
) -> Result<(), Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let device = rustix::fs::makedev(major, minor);
    rustix::fs::mknodat(directory, name, file_type, mode, device)
}

#[cfg(target_vendor = "apple")]
fn make_special(_: impl AsFd, _: &OsStr, _: FileType, _: (u32, u32)) -> Result<(), Errno> {
    Err(Errno::NOTSUP)
}

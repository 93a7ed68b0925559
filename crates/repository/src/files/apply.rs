//! Gives restored entries their metadata.
//!
//! The order matters. The owner comes first, because giving a file away drops set-id bits and
//! capabilities; then extended attributes, while the owner may still write; then the mode, which
//! agrees with the mask of an ACL because both were captured together; the times come last.
//! Files are given their metadata when their content is complete, directories when everything
//! in them is. An ACL that an entry inherited from the directory it was restored into is
//! removed unless it had one.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{FileType, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid};

use super::owners::OwnerNames;
use super::place::Place;
use super::problem::{Action, FilesError, Problem};
use crate::tree::{Entry, EntryKind, Metadata};

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;

/// The names of POSIX ACLs as extended attributes.
const ACCESS_ACL: &[u8] = b"system.posix_acl_access";
const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Not a number of a user or group: it means 'leave as it is' to the system.
const NO_OWNER: u32 = u32::MAX;

/// Whom restored entries are to belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnerRule {
    /// The user and group of the same names on this machine; of the same numbers where there
    /// are none.
    #[default]
    Names,
    /// The user and group of the same numbers.
    Numbers,
    /// Whoever restores them.
    Restorer,
}

/// Applies metadata to entries. Can be shared by threads.
#[derive(Debug, Clone)]
pub struct Applier {
    rule: OwnerRule,
    owners: OwnerNames,
}

/// Collects what goes wrong with one entry.
struct Report<'a> {
    path: &'a Path,
    problems: &'a mut Vec<Problem>,
}

impl Report<'_> {
    fn add(&mut self, what: Action, error: impl Into<FilesError>) {
        self.problems.push(Problem {
            path: self.path.to_owned(),
            what,
            error: error.into(),
        });
    }
}

impl Applier {
    /// An applier that knows the users of this machine.
    #[must_use]
    pub fn new(rule: OwnerRule) -> Self {
        Self::with_names(rule, OwnerNames::of_system())
    }

    /// An applier that knows these users.
    #[must_use]
    pub fn with_names(rule: OwnerRule, owners: OwnerNames) -> Self {
        Self { rule, owners }
    }

    /// Gives an open file or directory the metadata of `entry`. What fails is added to
    /// `problems`, where `path` is what to call it; the rest is applied all the same.
    pub fn apply_open(
        &self,
        file: impl AsFd,
        entry: &Entry,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) {
        let place = Place::Open(file.as_fd());
        self.apply(&place, entry, &mut Report { path, problems });
    }

    /// Gives an entry that can't be opened (symlink, FIFO, device), or need not be, the metadata
    /// of `entry`, whose name it has in `directory`.
    pub fn apply_at(
        &self,
        directory: impl AsFd,
        entry: &Entry,
        path: &Path,
        problems: &mut Vec<Problem>,
    ) {
        let name = OsStr::from_bytes(&entry.name);
        let mut report = Report { path, problems };
        match Place::hold(directory.as_fd(), name, file_type(&entry.kind)) {
            Ok(place) => self.apply(&place, entry, &mut report),
            Err(error) => report.add(Action::SetOwner, error),
        }
    }

    fn apply(&self, place: &Place<'_>, entry: &Entry, report: &mut Report<'_>) {
        let (has_user, has_group) = self.apply_owner(place, &entry.metadata, report);
        apply_attributes(place, entry, report);
        if !matches!(entry.kind, EntryKind::Symlink { .. }) {
            let mut mode = entry.metadata.mode;
            // Running a program as somebody else than it was meant to is worse than not at all.
            if !has_user {
                mode &= !SET_USER_ID;
            }
            if !has_group && entry.kind != EntryKind::Directory {
                mode &= !SET_GROUP_ID;
            }
            if let Err(errno) = place.set_mode(Mode::from_raw_mode(mode as _)) {
                report.add(Action::SetMode, errno);
            }
        }
        if let Err(errno) = place.set_times(&times(&entry.metadata)) {
            report.add(Action::SetTimes, errno);
        }
    }

    /// Sets owner and group, and says which of them the entry has now.
    fn apply_owner(
        &self,
        place: &Place<'_>,
        metadata: &Metadata,
        report: &mut Report<'_>,
    ) -> (bool, bool) {
        let (mut uid, mut gid) = (metadata.uid, metadata.gid);
        match self.rule {
            OwnerRule::Restorer => return (false, false),
            OwnerRule::Numbers => {}
            OwnerRule::Names => {
                uid = self.owners.uid(&metadata.user).unwrap_or(uid);
                gid = self.owners.gid(&metadata.group).unwrap_or(gid);
            }
        }
        if uid == NO_OWNER || gid == NO_OWNER {
            report.add(Action::SetOwner, FilesError::BadOwner { uid, gid });
            return (false, false);
        }
        let group = Some(Gid::from_raw(gid));
        match place.set_owner(Some(Uid::from_raw(uid)), group) {
            Ok(()) => (true, true),
            Err(errno) => {
                report.add(Action::SetOwner, errno);
                // Whoever may not give files away may still give them to an own group.
                (false, place.set_owner(None, group).is_ok())
            }
        }
    }
}

fn apply_attributes(place: &Place<'_>, entry: &Entry, report: &mut Report<'_>) {
    let attributes = &entry.metadata.attributes;
    for acl in [ACCESS_ACL, DEFAULT_ACL] {
        let has_acl = attributes.iter().any(|(name, _)| name == acl);
        let may_have_acl = acl == ACCESS_ACL || entry.kind == EntryKind::Directory;
        if may_have_acl
            && !has_acl
            && let Err(errno) = place.remove_attribute(acl)
        {
            let name = acl.to_vec();
            report.add(Action::SetAttribute { name }, errno);
        }
    }
    for (name, value) in attributes {
        if let Err(errno) = place.set_attribute(name, value) {
            let name = name.clone();
            report.add(Action::SetAttribute { name }, errno);
        }
    }
}

/// The times to set: when it was accessed last is not known, so that stays.
fn times(metadata: &Metadata) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: metadata.modified.seconds,
            tv_nsec: metadata.modified.nanoseconds.into(),
        },
    }
}

/// The type of file that entries of a kind are.
pub(super) fn file_type(kind: &EntryKind) -> FileType {
    match kind {
        EntryKind::File => FileType::RegularFile,
        EntryKind::Directory => FileType::Directory,
        EntryKind::Symlink { .. } => FileType::Symlink,
        EntryKind::Fifo => FileType::Fifo,
        EntryKind::CharacterDevice { .. } => FileType::CharacterDevice,
        EntryKind::BlockDevice { .. } => FileType::BlockDevice,
    }
}

/// Makes a file `bytes` long; what it did not have is a hole.
///
/// # Errors
/// What the system says, for example that the file system is full or has smaller files.
pub fn set_length(file: impl AsFd, bytes: u64) -> Result<(), FilesError> {
    Ok(rustix::fs::ftruncate(file, bytes)?)
}

/// Asks the file system to set aside room for data, so that it lies together. Says whether it
/// did: one that can't is no problem.
///
/// # Errors
/// What the system says, above all that the file system is full.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub fn preallocate(file: impl AsFd, offset: u64, bytes: u64) -> Result<bool, FilesError> {
    use rustix::fs::FallocateFlags;
    use rustix::io::Errno;

    if bytes == 0 {
        return Ok(false);
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, bytes) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NODEV) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Asks the file system to set aside room for data: not on this system.
///
/// # Errors
/// None.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub fn preallocate(_: impl AsFd, _: u64, _: u64) -> Result<bool, FilesError> {
    Ok(false)
}

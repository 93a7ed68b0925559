//! What the operating system says about a file: its `stat`, with the same types everywhere.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::timestamp::Timestamp;

/// Unit of `st_blocks`, whatever the file system's block size.
const BLOCK_BYTES: u64 = 512;

/// Which file it is, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The device it lies on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
}

/// Type, size, owner, times of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Which file it is.
    pub identity: Identity,
    /// Its type.
    pub file_type: FileType,
    /// Type and permission bits as the system codes them.
    pub mode: u32,
    /// How many names it has.
    pub links: u64,
    /// Number of the owner.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
    /// Major and minor number of the device that it stands for, if it is a device file.
    pub device_numbers: (u32, u32),
    /// Length of its content in bytes.
    pub size: u64,
    /// Bytes that the content takes on the medium; less than the size where it has holes.
    pub stored_bytes: u64,
    /// When the content was modified last.
    pub modified: Timestamp,
    /// When content or metadata were changed last.
    pub changed: Timestamp,
}

impl Status {
    /// The status of `name` in a directory; of a symlink itself unless `follow`.
    ///
    /// # Errors
    /// What the system says.
    pub fn at(directory: impl AsFd, name: impl Arg, follow: bool) -> Result<Self, Errno> {
        let flags = if follow {
            AtFlags::empty()
        } else {
            AtFlags::SYMLINK_NOFOLLOW
        };
        rustix::fs::statat(directory, name, flags).map(|stat| Self::from_stat(&stat))
    }

    /// The status of an open file.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(file: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(file).map(|stat| Self::from_stat(&stat))
    }

    /// The permission, set-id and sticky bits.
    #[must_use]
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        reason = "the widths of these fields differ between systems"
    )]
    fn from_stat(stat: &Stat) -> Self {
        let time = |seconds, nanoseconds: u32| Timestamp {
            seconds,
            nanoseconds: nanoseconds.min(999_999_999),
        };
        Self {
            identity: Identity {
                device: stat.st_dev as u64,
                inode: stat.st_ino as u64,
            },
            file_type: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            uid: stat.st_uid,
            gid: stat.st_gid,
            device_numbers: (
                rustix::fs::major(stat.st_rdev) as u32,
                rustix::fs::minor(stat.st_rdev) as u32,
            ),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            stored_bytes: (stat.st_blocks as u64).saturating_mul(BLOCK_BYTES),
            modified: time(stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: time(stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

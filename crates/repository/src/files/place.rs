//! An entry whose metadata is being restored, held so that nothing else can take its place.
//!
//! Files and directories are held by the descriptor they are open on. What can't be opened
//! (symlinks, FIFOs, devices) is held by an `O_PATH` descriptor on Linux, through which the
//! calls go by way of `/proc/self/fd`; elsewhere by its directory and name, never following
//! symlinks.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, Gid, Mode, Timestamps, Uid};
use rustix::io::Errno;

use super::problem::FilesError;
use super::status::Status;

/// The entry.
pub(super) enum Place<'a> {
    /// A file or directory, open.
    Open(BorrowedFd<'a>),
    /// Something that is not opened.
    Held(Held<'a>),
}

impl<'a> Place<'a> {
    /// Takes hold of `name` in `directory`, which must be of that type.
    pub fn hold(
        directory: BorrowedFd<'a>,
        name: &'a OsStr,
        file_type: FileType,
    ) -> Result<Self, FilesError> {
        let (held, status) = Held::new(directory, name).map_err(FilesError::of_second_look)?;
        if status.file_type != file_type {
            return Err(FilesError::Replaced);
        }
        Ok(Place::Held(held))
    }

    pub fn set_owner(&self, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
        match self {
            Place::Open(file) => rustix::fs::fchown(file, uid, gid),
            Place::Held(held) => held.set_owner(uid, gid),
        }
    }

    pub fn set_mode(&self, mode: Mode) -> Result<(), Errno> {
        match self {
            Place::Open(file) => rustix::fs::fchmod(file, mode),
            Place::Held(held) => held.set_mode(mode),
        }
    }

    pub fn set_times(&self, times: &Timestamps) -> Result<(), Errno> {
        match self {
            Place::Open(file) => rustix::fs::futimens(file, times),
            Place::Held(held) => held.set_times(times),
        }
    }

    pub fn set_attribute(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        match self {
            Place::Open(file) => system::set_attribute(*file, name, value),
            Place::Held(held) => held.set_attribute(name, value),
        }
    }

    /// Removes an attribute, if there is one of that name.
    pub fn remove_attribute(&self, name: &[u8]) -> Result<(), Errno> {
        match self {
            Place::Open(file) => system::remove_attribute(*file, name),
            Place::Held(held) => held.remove_attribute(name),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod held {
    use super::*;
    use crate::files::attributes::{means_no_attribute, write_descriptor_path};
    use rustix::fs::{AtFlags, CWD, OFlags, XattrFlags};
    use std::marker::PhantomData;
    use std::os::fd::{AsFd, OwnedFd};

    /// An entry held by a descriptor that neither reads nor writes it.
    pub struct Held<'a> {
        descriptor: OwnedFd,
        path: Vec<u8>,
        lifetime: PhantomData<&'a OsStr>,
    }

    impl Held<'_> {
        pub fn new(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(Self, Status), Errno> {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let descriptor = rustix::fs::openat(directory, name, flags, Mode::empty())?;
            let status = Status::of(&descriptor)?;
            let mut path = Vec::new();
            write_descriptor_path(&mut path, descriptor.as_fd());
            let held = Self {
                descriptor,
                path,
                lifetime: PhantomData,
            };
            Ok((held, status))
        }

        pub fn set_owner(&self, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
            rustix::fs::chownat(&self.descriptor, "", uid, gid, AtFlags::EMPTY_PATH)
        }

        pub fn set_mode(&self, mode: Mode) -> Result<(), Errno> {
            rustix::fs::chmod(self.path.as_slice(), mode)
        }

        pub fn set_times(&self, times: &Timestamps) -> Result<(), Errno> {
            rustix::fs::utimensat(CWD, self.path.as_slice(), times, AtFlags::empty())
        }

        pub fn set_attribute(&self, name: &[u8], value: &[u8]) -> Result<(), Errno> {
            let flags = XattrFlags::empty();
            rustix::fs::setxattr(self.path.as_slice(), name, value, flags)
        }

        pub fn remove_attribute(&self, name: &[u8]) -> Result<(), Errno> {
            match rustix::fs::getxattr(self.path.as_slice(), name, &mut [0u8; 0]) {
                Err(errno) if means_no_attribute(errno) => Ok(()),
                _ => rustix::fs::removexattr(self.path.as_slice(), name),
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod held {
    use super::*;
    use rustix::fs::AtFlags;

    /// An entry reached by its name, not through symlinks.
    pub struct Held<'a> {
        directory: BorrowedFd<'a>,
        name: &'a OsStr,
    }

    impl<'a> Held<'a> {
        pub fn new(directory: BorrowedFd<'a>, name: &'a OsStr) -> Result<(Self, Status), Errno> {
            let status = Status::at(directory, name, false)?;
            Ok((Self { directory, name }, status))
        }

        pub fn set_owner(&self, uid: Option<Uid>, gid: Option<Gid>) -> Result<(), Errno> {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(self.directory, self.name, uid, gid, flags)
        }

        pub fn set_mode(&self, mode: Mode) -> Result<(), Errno> {
            rustix::fs::chmodat(self.directory, self.name, mode, AtFlags::SYMLINK_NOFOLLOW)
        }

        pub fn set_times(&self, times: &Timestamps) -> Result<(), Errno> {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(self.directory, self.name, times, flags)
        }

        #[allow(clippy::unused_self, reason = "the same call as on Linux")]
        pub fn set_attribute(&self, _: &[u8], _: &[u8]) -> Result<(), Errno> {
            Err(Errno::NOTSUP)
        }

        #[allow(clippy::unused_self, reason = "the same call as on Linux")]
        pub fn remove_attribute(&self, _: &[u8]) -> Result<(), Errno> {
            Ok(())
        }
    }
}

use held::Held;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
mod system {
    use super::{BorrowedFd, Errno};
    use crate::files::attributes::means_no_attribute;
    use rustix::fs::XattrFlags;

    pub fn set_attribute(file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        rustix::fs::fsetxattr(file, name, value, XattrFlags::empty())
    }

    pub fn remove_attribute(file: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
        // Looking is cheaper than a removal that finds nothing.
        let found = rustix::fs::fgetxattr(file, name, &mut [0u8; 0]);
        match found {
            Err(errno) if means_no_attribute(errno) => Ok(()),
            _ => rustix::fs::fremovexattr(file, name),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod system {
    use super::{BorrowedFd, Errno};

    pub fn set_attribute(_: BorrowedFd<'_>, _: &[u8], _: &[u8]) -> Result<(), Errno> {
        Err(Errno::NOTSUP)
    }

    pub fn remove_attribute(_: BorrowedFd<'_>, _: &[u8]) -> Result<(), Errno> {
        Ok(())
    }
}

//! Reading extended attributes, POSIX ACLs among them, of entries that are not open.
//!
//! There is no system call that takes a directory and a name. On Linux the path
//! `/proc/self/fd/DIRECTORY/NAME` does the same: one call for an entry without attributes,
//! nothing opened, no symlink followed. Without `/proc`, and on other systems, files and
//! directories are opened for it, and other types have no attributes that can be reached.
//! Limits: 512 KiB of names and values an entry; what would exceed them is named and left out.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::problem::{Action, FilesError};

/// Most bytes of names and values that an entry may have.
pub(super) const ATTRIBUTES_BYTES_MAX: usize = 512 << 10;

/// Room that is enough for nearly all lists and values.
const BUFFER_BYTES: usize = 256;

/// Room that is enough for all that Linux allows: XATTR_LIST_MAX, XATTR_SIZE_MAX.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Are there extended attributes on this system?
const HAS_ATTRIBUTES: bool = cfg!(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple"
));

/// Name and value of each attribute.
pub(super) type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads extended attributes; keeps its buffers.
#[derive(Debug)]
pub(super) struct AttributeReader {
    has_proc: bool,
    path: Vec<u8>,
    buffer: Vec<u8>,
}

/// Does this say that there is no such attribute, or that there can't be one?
pub(super) fn means_no_attribute(errno: Errno) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let is_missing = errno == Errno::NODATA;
    #[cfg(target_vendor = "apple")]
    let is_missing = errno == Errno::NOATTR;
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    let is_missing = false;
    is_missing || matches!(errno, Errno::NOTSUP | Errno::NOSYS)
}

/// The path below `/proc` by which the descriptor of this process can be reached.
pub(super) fn write_descriptor_path(path: &mut Vec<u8>, descriptor: BorrowedFd<'_>) {
    path.clear();
    write!(path, "/proc/self/fd/{}", descriptor.as_raw_fd()).expect("a vector takes every write");
}

impl AttributeReader {
    pub fn new() -> Self {
        let has_proc = cfg!(any(target_os = "linux", target_os = "android"))
            && rustix::fs::stat("/proc/self/fd").is_ok();
        Self {
            has_proc,
            path: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// The attributes of `name` in `directory`, ascending by name. What can't be read is told
    /// to `failed` and left out.
    pub fn read(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        (file_type, follow): (FileType, bool),
        failed: &mut dyn FnMut(Action, FilesError),
    ) -> Attributes {
        if self.has_proc {
            write_descriptor_path(&mut self.path, directory);
            self.path.push(b'/');
            self.path.extend_from_slice(name.as_bytes());
            let path = std::mem::take(&mut self.path);
            let subject = Subject::Path {
                path: &path,
                follow,
            };
            let attributes = self.read_of(&subject, failed);
            self.path = path;
            return attributes;
        }
        let can_be_opened = matches!(file_type, FileType::RegularFile | FileType::Directory);
        if !HAS_ATTRIBUTES || !can_be_opened {
            return Vec::new();
        }
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        match retry_on_intr(|| rustix::fs::openat(directory, name, flags, Mode::empty())) {
            Ok(file) => self.read_of(&Subject::Open(file.as_fd()), failed),
            Err(errno) => {
                failed(Action::ListAttributes, FilesError::of_second_look(errno));
                Vec::new()
            }
        }
    }

    fn read_of(
        &mut self,
        subject: &Subject<'_>,
        failed: &mut dyn FnMut(Action, FilesError),
    ) -> Attributes {
        let list = match self.fill(|buffer| subject.list(buffer)) {
            Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Vec::new(),
            Ok(length) => self.buffer[..length].to_vec(),
            Err(errno) => {
                failed(Action::ListAttributes, FilesError::of_second_look(errno));
                return Vec::new();
            }
        };
        let mut attributes = Vec::new();
        let mut bytes = 0;
        for name in list
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
        {
            let read = match self.fill(|buffer| subject.get(name, buffer)) {
                Ok(length) => Ok(&self.buffer[..length]),
                // Removed since it was listed, or listed for the sake of another interface.
                Err(errno) if means_no_attribute(errno) => continue,
                Err(errno) => Err(FilesError::of_second_look(errno)),
            };
            let read = read.and_then(|value| {
                bytes += name.len() + value.len();
                if bytes <= ATTRIBUTES_BYTES_MAX {
                    return Ok(value.to_vec());
                }
                bytes -= name.len() + value.len();
                let limit = ATTRIBUTES_BYTES_MAX;
                Err(FilesError::AttributesTooLarge { limit })
            });
            match read {
                Ok(value) => attributes.push((name.to_vec(), value)),
                Err(error) => {
                    let name = name.to_vec();
                    failed(Action::ReadAttribute { name }, error);
                }
            }
        }
        attributes.sort_unstable();
        attributes.dedup_by(|right, left| right.0 == left.0);
        attributes
    }

    /// Calls `read` with a buffer that is small at first, and then as large as it may have to
    /// be: the kernel allocates what the buffer could hold.
    fn fill(&mut self, read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<usize, Errno> {
        let small = BUFFER_BYTES.min(self.buffer.len());
        match read(&mut self.buffer[..small]) {
            Err(Errno::RANGE) => {
                self.buffer.resize(BUFFER_BYTES_MAX, 0);
                read(&mut self.buffer)
            }
            result => result,
        }
    }
}

/// Whose attributes are read.
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android", target_vendor = "apple")),
    allow(dead_code, reason = "nothing is read there")
)]
enum Subject<'a> {
    Path { path: &'a [u8], follow: bool },
    Open(BorrowedFd<'a>),
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
impl Subject<'_> {
    fn list(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        match *self {
            Subject::Path { path, follow: true } => rustix::fs::listxattr(path, buffer),
            Subject::Path { path, .. } => rustix::fs::llistxattr(path, buffer),
            Subject::Open(file) => rustix::fs::flistxattr(file, buffer),
        }
    }

    fn get(&self, name: &[u8], buffer: &mut [u8]) -> Result<usize, Errno> {
        match *self {
            Subject::Path { path, follow: true } => rustix::fs::getxattr(path, name, buffer),
            Subject::Path { path, .. } => rustix::fs::lgetxattr(path, name, buffer),
            Subject::Open(file) => rustix::fs::fgetxattr(file, name, buffer),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
#[allow(
    clippy::unused_self,
    reason = "the same calls as where there are attributes"
)]
impl Subject<'_> {
    fn list(&self, _: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::NOTSUP)
    }

    fn get(&self, _: &[u8], _: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::NOTSUP)
    }
}

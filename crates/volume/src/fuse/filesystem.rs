//! What the kernel asks for, and what it is told.
//!
//! Two inodes, the directory and the file. The kernel checks permissions. Attributes are asked for
//! again after a second, so a disk that grew shows.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite,
    Request, TimeOrNow, WriteFlags,
};
use rustix::fs::FallocateFlags;

use super::bytes::{Bytes, Zeroing};
use crate::device::{BlockDevice, DeviceError, ExtentKind};

/// How long the kernel may keep names and attributes.
const KEPT: Duration = Duration::from_secs(1);

/// Requests that the kernel may have in flight without anybody waiting for one: as many as a
/// loop device has.
const BACKGROUND_MAX: u16 = 128;

/// The inode of the file; the directory's is [`INodeNo::ROOT`].
const FILE: INodeNo = INodeNo(2);

/// `lseek` for what is stored.
const SEEK_DATA: i32 = 3;
/// `lseek` for what is not.
const SEEK_HOLE: i32 = 4;

thread_local! {
    /// What a thread reads into, as long as its longest read.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file system with one file.
pub(super) struct DiskFilesystem {
    bytes: Bytes,
    name: OsString,
    mounted: SystemTime,
    /// When it was changed, in milliseconds after 1970.
    changed_ms: AtomicU64,
}

impl DiskFilesystem {
    pub fn new(device: Arc<dyn BlockDevice>, name: &str) -> Self {
        let filesystem = Self {
            bytes: Bytes::new(device),
            name: name.into(),
            mounted: SystemTime::now(),
            changed_ms: AtomicU64::new(0),
        };
        filesystem.changed();
        filesystem
    }

    /// Programs that skip what has not changed must see that it has.
    fn changed(&self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since_ms = since.map_or(0, |since| since.as_millis() as u64);
        self.changed_ms.store(since_ms, Ordering::Relaxed);
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let geometry = self.bytes.device().geometry();
        let is_file = match inode {
            FILE => true,
            INodeNo::ROOT => false,
            _ => return None,
        };
        let changed_ms = self.changed_ms.load(Ordering::Relaxed);
        let changed = UNIX_EPOCH + Duration::from_millis(changed_ms);
        let modified = if is_file { changed } else { self.mounted };
        let size = if is_file { geometry.size_bytes } else { 0 };
        let perm = match (is_file, geometry.read_only) {
            (true, false) => 0o600,
            (true, true) => 0o400,
            (false, _) => 0o500,
        };
        Some(FileAttr {
            ino: inode,
            size,
            // As if it were full: less would have to be counted, and there are programs that take
            // a file of no blocks for one of zeros.
            blocks: size / 512,
            atime: self.mounted,
            mtime: modified,
            ctime: modified,
            crtime: self.mounted,
            kind: if is_file {
                FileType::RegularFile
            } else {
                FileType::Directory
            },
            perm,
            nlink: if is_file { 1 } else { 2 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: geometry.preferred_bytes.max(geometry.sector_bytes),
            flags: 0,
        })
    }

    fn write_bytes(&self, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        let written = self.bytes.write(offset, data).map_err(errno)?;
        if written == 0 && !data.is_empty() {
            return Err(Errno::ENOSPC);
        }
        self.changed();
        Ok(written as u32)
    }

    fn allocate(&self, offset: u64, length: u64, mode: i32) -> Result<(), Errno> {
        let flags = FallocateFlags::from_bits_retain(mode as u32);
        let end = offset.checked_add(length).ok_or(Errno::EFBIG)?;
        let how = match flags - FallocateFlags::KEEP_SIZE {
            FallocateFlags::PUNCH_HOLE => Zeroing::Trim,
            FallocateFlags::ZERO_RANGE => Zeroing::Write,
            // Room can't be promised.
            _ => return Err(Errno::EOPNOTSUPP),
        };
        if end > self.bytes.size_bytes() && !flags.contains(FallocateFlags::KEEP_SIZE) {
            return Err(Errno::ENOSPC);
        }
        self.bytes.zero(offset, length, how).map_err(errno)?;
        self.changed();
        Ok(())
    }

    fn seek(&self, offset: i64, whence: i32) -> Result<i64, Errno> {
        let size = self.bytes.size_bytes();
        let start = u64::try_from(offset).map_err(|_| Errno::ENXIO)?;
        if start >= size {
            return Err(Errno::ENXIO);
        }
        let found = match whence {
            SEEK_DATA => {
                let found = self.bytes.find(start, ExtentKind::Data).map_err(errno)?;
                found.ok_or(Errno::ENXIO)?
            }
            // There is always one at the end.
            SEEK_HOLE => {
                let found = self.bytes.find(start, ExtentKind::Hole).map_err(errno)?;
                found.unwrap_or(size)
            }
            _ => return Err(Errno::EINVAL),
        };
        i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
    }

    fn flush_disk(&self, reply: ReplyEmpty) {
        match self.bytes.device().flush() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        }
    }
}

impl Filesystem for DiskFilesystem {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = InitFlags::FUSE_ASYNC_READ
            | InitFlags::FUSE_ASYNC_DIO
            | InitFlags::FUSE_BIG_WRITES
            | InitFlags::FUSE_MAX_PAGES
            | InitFlags::FUSE_PARALLEL_DIROPS;
        // Of what the kernel has; the largest write is then the largest that both allow.
        let available = wanted & config.capabilities();
        let _ = config.add_capabilities(available);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_congestion_threshold(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let is_ours = parent == INodeNo::ROOT && name == self.name;
        match self.attributes(FILE).filter(|_| is_ours) {
            Some(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&KEPT, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Times are ours; the size is the disk's, and the owner is who mounted it.
    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes(inode) else {
            return reply.error(Errno::ENOENT);
        };
        let changes_size = size.is_some_and(|size| size != attributes.size);
        if changes_size || mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        reply.attr(&KEPT, &attributes);
    }

    fn open(&self, _request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if inode != FILE {
            return reply.error(Errno::EISDIR);
        }
        let only_reads = flags.acc_mode() == OpenAccMode::O_RDONLY;
        if !only_reads && self.bytes.device().geometry().read_only {
            return reply.error(Errno::EROFS);
        }
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        let quiet = if only_reads {
            FopenFlags::FOPEN_NOFLUSH
        } else {
            FopenFlags::empty()
        };
        reply.opened(FileHandle(0), direct | quiet);
    }

    fn read(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(
            |buffer| match self.bytes.read(offset, u64::from(size), buffer) {
                Ok(range) => reply.data(&buffer[range]),
                Err(error) => reply.error(errno(error)),
            },
        );
    }

    fn write(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_bytes(offset, data) {
            Ok(written) => reply.written(written),
            Err(errno) => reply.error(errno),
        }
    }

    fn flush(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        self.flush_disk(reply);
    }

    fn fsync(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.flush_disk(reply);
    }

    fn readdir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, OsStr::new(".")),
            (INodeNo::ROOT, FileType::Directory, OsStr::new("..")),
            (FILE, FileType::RegularFile, self.name.as_os_str()),
        ];
        for (index, (inode, kind, name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(inode, index, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// Loop devices discard in blocks of this file system.
    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let geometry = self.bytes.device().geometry();
        let block = geometry.preferred_bytes.max(geometry.sector_bytes);
        let blocks = geometry.size_bytes / u64::from(block);
        reply.statfs(blocks, 0, 0, 2, 0, block, 255, block);
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match self.allocate(offset, length, mode) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn lseek(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.seek(offset, whence) {
            Ok(found) => reply.offset(found),
            Err(errno) => reply.error(errno),
        }
    }
}

fn errno(error: DeviceError) -> Errno {
    match error {
        DeviceError::OutOfRange { .. } | DeviceError::Full(_) => Errno::ENOSPC,
        DeviceError::Unaligned { .. } => Errno::EINVAL,
        DeviceError::ReadOnly => Errno::EROFS,
        DeviceError::Damaged(_) | DeviceError::Failed(_) | DeviceError::Io { .. } => Errno::EIO,
    }
}

//! A file or a raw block device.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FlockOperation};

use super::Backing;

/// A file or block device, locked against other processes that use it as a volume.
#[derive(Debug)]
pub struct FileBacking {
    file: File,
    path: PathBuf,
    is_device: bool,
}

impl FileBacking {
    /// Opens what is at `path`; `writable` takes it for this process alone, otherwise readers share it.
    ///
    /// # Errors
    /// When it can't be opened, is neither file nor block device, or another process has it
    /// (`WouldBlock`).
    pub fn open(path: &Path, writable: bool) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(writable).open(path)?;
        Self::of(file, path, writable)
    }

    /// Makes a file of `size_bytes`, which takes no room yet.
    ///
    /// # Errors
    /// When there is something of that name (`AlreadyExists`), or it can't be made.
    pub fn create(path: &Path, size_bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.set_len(size_bytes)?;
        Self::of(file, path, true)
    }

    fn of(file: File, path: &Path, writable: bool) -> io::Result<Self> {
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "neither a file nor a block device",
            ));
        }
        let lock = if writable {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        rustix::fs::flock(&file, lock)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            is_device: kind.is_block_device(),
        })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file longer. A device is as long as it is.
    ///
    /// # Errors
    /// When the file can't be extended, or the device is shorter.
    pub fn grow(&self, size_bytes: u64) -> io::Result<()> {
        if self.size_bytes()? >= size_bytes {
            return Ok(());
        }
        if self.is_device {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the device is shorter than that",
            ));
        }
        self.file.set_len(size_bytes)
    }
}

impl Backing for FileBacking {
    fn size_bytes(&self) -> io::Result<u64> {
        // A block device says its length only to those who seek.
        (&self.file).seek(SeekFrom::End(0))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn discard(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, offset, length_bytes) {
            // Some stores have no holes.
            Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
            done => Ok(done?),
        }
    }
}

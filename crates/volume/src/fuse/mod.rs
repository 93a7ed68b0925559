//! A disk as a file: a file system with one regular file in it, for programs that know files, and
//! for loop devices.
//!
//! What enters: requests of the kernel at a mount point (FUSE); what leaves: calls of
//! [`BlockDevice`]. Offsets and lengths may be any bytes ([`bytes`]).
//!
//! The file is opened with direct I/O: nothing is cached between it and the disk, so what NBD
//! clients of the same disk write is seen, and a loop device on it should be one with direct I/O,
//! too (`losetup --direct-io=on`), whose requests then are in flight together. The file system on
//! the loop device has its cache above.
//!
//! Durability: `fsync`, `fdatasync` and closing a file that was open for writing flush the disk;
//! so does the end of the mount. Punched holes are trims, zeroed ranges are write-zeroes. The file
//! has the disk's size, which can't be changed here: truncating fails, and so does opening it with
//! `O_TRUNC` (`dd` wants `conv=notrunc`). Writing beyond the end is `ENOSPC`.
//!
//! No library of FUSE is needed: root mounts by itself, others through `fusermount3`.

mod bytes;
mod filesystem;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::mount::UnmountFlags;

use crate::device::{BlockDevice, DeviceError};
use filesystem::DiskFilesystem;

/// Most threads that a mount may have.
const THREADS_MAX: usize = 64;

/// Who may use the mount. Users other than root need `user_allow_other` in `/etc/fuse.conf` for
/// anything but [`Access::Owner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Who mounted it.
    #[default]
    Owner,
    /// Who mounted it, and root, whom loop devices need.
    OwnerAndRoot,
}

/// How to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What the file is called.
    pub name: String,
    /// Who may use it.
    pub access: Access,
    /// Threads that serve requests, each with a buffer that grows with the largest write.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "disk".to_string(),
            access: Access::Owner,
            threads: std::thread::available_parallelism()
                .map_or(4, |count| count.get().clamp(4, 8)),
        }
    }
}

/// Why mounting or unmounting did not work.
#[derive(Debug, thiserror::Error)]
pub enum FuseError {
    /// The name can't be a file's.
    #[error("a file can't be called '{0}'")]
    Name(String),
    /// There can't be so many threads.
    #[error("{0} threads, but there must be 1 to {THREADS_MAX}")]
    Threads(usize),
    /// The operating system refused.
    #[error("mounting at {}: {source}", mountpoint.display())]
    Mount {
        /// Where.
        mountpoint: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// Somebody uses it; it is still mounted.
    #[error("{} is in use", .0.display())]
    Busy(PathBuf),
    /// The operating system refused; it may be mounted still.
    #[error("unmounting {}: {source}", mountpoint.display())]
    Unmount {
        /// Where.
        mountpoint: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// The last flush failed: what was written since the one before may be lost.
    #[error("the disk could not be flushed: {0}")]
    Flush(#[from] DeviceError),
}

/// A mounted disk. Dropping it unmounts it, unless it is in use, and does not tell how that went.
pub struct Mount {
    mountpoint: PathBuf,
    device: Arc<dyn BlockDevice>,
    session: Option<BackgroundSession>,
}

impl Mount {
    /// Mounts a disk at a directory, and serves it in threads of its own.
    ///
    /// # Errors
    /// When a setting makes no sense, or the operating system refuses.
    pub fn start(
        device: Arc<dyn BlockDevice>,
        mountpoint: &Path,
        settings: &Settings,
    ) -> Result<Self, FuseError> {
        let name = settings.name.as_str();
        let is_special = matches!(name, "" | "." | "..");
        if is_special || name.contains(['/', '\0']) || name.len() > 255 {
            return Err(FuseError::Name(settings.name.clone()));
        }
        if !(1..=THREADS_MAX).contains(&settings.threads) {
            return Err(FuseError::Threads(settings.threads));
        }
        let failed = |source| FuseError::Mount {
            mountpoint: mountpoint.to_path_buf(),
            source,
        };
        // Later the current directory may be another.
        let mountpoint = mountpoint.canonicalize().map_err(failed)?;
        let filesystem = DiskFilesystem::new(Arc::clone(&device), name);
        let config = configuration(&*device, settings);
        let session = Session::new(filesystem, &mountpoint, &config).map_err(failed)?;
        let session = session.spawn().map_err(failed)?;
        Ok(Self {
            mountpoint,
            device,
            session: Some(session),
        })
    }

    /// Whether it is mounted: others can unmount it as well.
    #[must_use]
    pub fn is_mounted(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| !session.guard.is_finished())
    }

    /// Unmounts, waits for requests in hand, and flushes the disk. When it is not mounted any more,
    /// only the flush remains.
    ///
    /// # Errors
    /// [`FuseError::Busy`] when a file is open or a loop device uses it: it stays mounted, and
    /// another try is possible. Otherwise when the operating system or the disk fails.
    pub fn unmount(&mut self) -> Result<(), FuseError> {
        if self.is_mounted() {
            unmount(&self.mountpoint)?;
        }
        self.wait()
    }

    /// Waits until somebody unmounts it, and flushes the disk.
    ///
    /// # Errors
    /// When serving it or the last flush failed.
    pub fn wait(&mut self) -> Result<(), FuseError> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        let served = session.join().map_err(|source| FuseError::Unmount {
            mountpoint: self.mountpoint.clone(),
            source,
        });
        self.device.flush()?;
        served
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Who wants to know calls unmount. What is in use stays mounted as long as the process
        // lives: its threads go on.
        if self.unmount().is_err() {
            let _ = self.device.flush();
            std::mem::forget(self.session.take());
        }
    }
}

fn configuration(device: &dyn BlockDevice, settings: &Settings) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("onefold".to_string()),
        MountOption::Subtype("onefold".to_string()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
        MountOption::NoExec,
    ];
    if device.geometry().read_only {
        config.mount_options.push(MountOption::RO);
    }
    config.acl = match settings.access {
        Access::Owner => SessionACL::Owner,
        Access::OwnerAndRoot => SessionACL::RootAndOwner,
    };
    config.n_threads = Some(settings.threads);
    config.clone_fd = true;
    config
}

/// Like fuser's, which can be tried only once.
fn unmount(mountpoint: &Path) -> Result<(), FuseError> {
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(code) if code == rustix::io::Errno::BUSY.raw_os_error() => {
            FuseError::Busy(mountpoint.to_path_buf())
        }
        _ => FuseError::Unmount {
            mountpoint: mountpoint.to_path_buf(),
            source,
        },
    };
    match rustix::mount::unmount(mountpoint, UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::PERM) => {
            let fusermount = Command::new("fusermount3")
                .args(["-u", "--"])
                .arg(mountpoint)
                .output()
                .map_err(failed)?;
            if fusermount.status.success() {
                return Ok(());
            }
            let said = String::from_utf8_lossy(&fusermount.stderr);
            if said.contains("busy") {
                return Err(FuseError::Busy(mountpoint.to_path_buf()));
            }
            Err(failed(io::Error::other(said.trim().to_string())))
        }
        Err(error) => Err(failed(error.into())),
    }
}

//! A disk as a file: what programs see that read, write, punch, seek, and put a loop device on it.
//!
//! Mounting takes root, `/dev/fuse`, and the right to mount. Without them these tests say so and
//! pass.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test says no by panicking.

#[path = "../nbd/disk.rs"]
#[allow(dead_code)] // The tests of the other front use the rest.
mod disk;
mod file;
mod loop_device;

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use disk::TestDisk;
use tempfile::TempDir;
use volume::fuse::{Mount, Settings};

/// The bit of the right to mount among a process's capabilities.
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// A program that one test starts has for a moment all files open that other tests have, and closing
/// them counts. So there is one mount at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A mounted disk. What a failed test leaves open is detached.
struct Mounted {
    mount: Mount,
    disk: Arc<TestDisk>,
    directory: TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Mounted {
    /// `None` where one can't mount.
    fn new(disk: TestDisk) -> Option<Self> {
        if !can_mount() {
            println!("mounting is not possible here: skipped");
            return None;
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(disk);
        let settings = Settings::default();
        let mount = Mount::start(disk.clone(), directory.path(), &settings).unwrap();
        Some(Self {
            mount,
            disk,
            directory,
            _one: one,
        })
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("disk")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.mount.unmount().is_err() {
            let detach = rustix::mount::UnmountFlags::DETACH;
            let _ = rustix::mount::unmount(self.directory.path(), detach);
        }
    }
}

fn can_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    capabilities.is_some_and(|bits| bits & CAP_SYS_ADMIN != 0) && fuse.is_ok()
}

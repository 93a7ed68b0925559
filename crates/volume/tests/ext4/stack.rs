//! A device as a file, loop devices on it, ext4 on these; and images that are dumped from it. Whatever a
//! failed test leaves is unmounted and detached.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use volume::BlockDevice;
use volume::fuse::{Mount, Settings};

use crate::programs::{patiently, run, try_run};

/// Bytes at the beginning of a disk where an external journal is.
pub const EXTERNAL_JOURNAL_BYTES: u64 = 16 << 20;

/// What a file system is like.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Its block.
    pub block_bytes: u32,
    /// The sector of the loop device.
    pub sector_bytes: u32,
    /// What it is mounted with.
    pub options: &'static str,
    /// Whether the journal is a device of its own: the first part of the disk.
    pub external_journal: bool,
}

/// A device as a file.
struct Mounted {
    mount: Mount,
    directory: TempDir,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.mount.unmount().is_err() {
            let detach = rustix::mount::UnmountFlags::DETACH;
            let _ = rustix::mount::unmount(self.directory.path(), detach);
        }
    }
}

/// A loop device, detached when dropped.
struct Loop(String);

impl Loop {
    fn attach(file: &Path, sector_bytes: u32, offset: u64, length_bytes: Option<u64>) -> Self {
        let (sector, offset) = (sector_bytes.to_string(), offset.to_string());
        let length = length_bytes.map(|length| length.to_string());
        let mut arguments = vec!["--direct-io=on", "--sector-size", &sector];
        arguments.extend(["--offset", &offset, "--show", "--find"]);
        if let Some(length) = &length {
            arguments.extend(["--sizelimit", length]);
        }
        arguments.push(file.to_str().unwrap());
        Self(run("losetup", &arguments).trim().to_owned())
    }

    fn detach(self) {
        run("losetup", &["--detach", &self.0]);
        std::mem::forget(self);
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// A mounted file system, unmounted when dropped.
pub struct Ext4(TempDir);

impl Ext4 {
    fn mount(device: &str, options: &str) -> Result<Self, String> {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().to_str().unwrap().to_owned();
        try_run("mount", &["-t", "ext4", "-o", options, device, &place])?;
        Ok(Self(directory))
    }

    /// An image, to be read.
    pub fn of_image(image: &Path, options: &str) -> Result<Self, String> {
        Self::mount(image.to_str().unwrap(), &format!("ro,loop,{options}"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn unmount(self) {
        let place = self.path().to_str().unwrap();
        patiently(|| try_run("umount", &[place]).map(drop));
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // After `unmount` there is nothing to unmount, and it fails.
        let lazily = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(self.path(), lazily);
    }
}

/// All of it, in the order in which it is taken down.
pub struct Stack {
    ext4: Option<Ext4>,
    disk: Loop,
    journal: Option<Loop>,
    mounted: Mounted,
    layout: Layout,
}

impl Stack {
    /// A device as a disk; nothing on it is mounted yet.
    pub fn new(device: Arc<dyn BlockDevice>, layout: Layout) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mount = Mount::start(device, directory.path(), &Settings::default()).unwrap();
        let mounted = Mounted { mount, directory };
        let (file, sector) = (mounted.directory.path().join("disk"), layout.sector_bytes);
        let length = layout.external_journal.then_some(EXTERNAL_JOURNAL_BYTES);
        let journal = length.map(|length| Loop::attach(&file, sector, 0, Some(length)));
        Self {
            ext4: None,
            disk: Loop::attach(&file, sector, length.unwrap_or(0), None),
            journal,
            mounted,
            layout,
        }
    }

    /// Makes the file system.
    pub fn make(&self) {
        let block = self.layout.block_bytes.to_string();
        let mut arguments = vec!["-q", "-F", "-t", "ext4", "-b", &block];
        // A small journal is written around and around.
        let mut journal_is = "size=4".to_owned();
        if let Some(journal) = &self.journal {
            let make = ["-q", "-F", "-O", "journal_dev", "-b", &block, &journal.0];
            run("mke2fs", &make);
            journal_is = format!("device={}", journal.0);
        }
        arguments.extend(["-J", &journal_is, &self.disk.0]);
        run("mke2fs", &arguments);
    }

    /// Mounts the file system; where it is.
    pub fn mount(&mut self) -> PathBuf {
        let mut options = self.layout.options.to_owned();
        if let Some(journal) = &self.journal {
            options.push_str(&format!(",journal_path={}", journal.0));
        }
        let ext4 = Ext4::mount(&self.disk.0, &options).unwrap();
        self.ext4.insert(ext4).path().to_path_buf()
    }

    /// Unmounts the file system, and mounts it again.
    pub fn mount_again(&mut self) -> PathBuf {
        self.ext4.take().unwrap().unmount();
        self.mount()
    }

    /// Takes everything down.
    pub fn end(self) {
        let Self {
            ext4,
            disk,
            journal,
            mut mounted,
            ..
        } = self;
        if let Some(ext4) = ext4 {
            ext4.unmount();
        }
        disk.detach();
        if let Some(journal) = journal {
            journal.detach();
        }
        patiently(|| mounted.mount.unmount());
    }
}

/// Copies bytes of a device to a file.
pub fn dump(device: &dyn BlockDevice, range: std::ops::Range<u64>, path: &Path) {
    const STEP: u64 = 1 << 20;
    const PIECE: usize = 64 << 10;
    let file = File::create(path).unwrap();
    file.set_len(range.end - range.start).unwrap();
    let mut bytes = vec![0; STEP as usize];
    for start in range.clone().step_by(STEP as usize) {
        let bytes = &mut bytes[..(range.end - start).min(STEP) as usize];
        device.read(start, bytes).unwrap();
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            if *piece != [0; PIECE][..piece.len()] {
                let at = start - range.start + (number * PIECE) as u64;
                file.write_all_at(piece, at).unwrap();
            }
        }
    }
}

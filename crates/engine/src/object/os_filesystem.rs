//! [`FileSystem`] of the operating system, below one directory.
//!
//! The directory is opened once and everything is reached through that descriptor: a store
//! keeps talking to the medium it was opened on, whatever is mounted over the path later.
//! New files have mode 0600, new directories 0700, less what the umask takes away.
//!
//! Publishing without replacing is one call where the kernel and the file system have it.
//! Where they do not, the next of three ways is taken, and remembered:
//! 1. `renameat2(RENAME_NOREPLACE)`: ext4, XFS, Btrfs, tmpfs, APFS;
//! 2. hard link, then unlink of the old name: NFS, older kernels;
//! 3. *claim*, look, rename: FAT, exFAT, SMB and other file systems without hard links.
//!    The claim is a file created exclusively beside `from`; whoever holds it may look and
//!    rename, anybody else gets `ResourceBusy`. A claim outlives a process that dies, and is
//!    swept with stale temporary files.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::filesystem::{FileStatus, FileSystem};

/// Ending of the names of claims (third way of publishing).
pub(super) const CLAIM_SUFFIX: &str = ".claim";

/// The ways of publishing, best first.
const BY_RENAME: u8 = 0;
const BY_LINK: u8 = 1;
const BY_CLAIM: u8 = 2;

/// The operating system's files below one directory.
#[derive(Debug)]
pub struct OsFileSystem {
    root: OwnedFd,
    /// The best way of publishing that has not been refused yet.
    publishing: AtomicU8,
}

impl OsFileSystem {
    /// Opens the directory `root`, which must be there.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`, `PermissionDenied`, or what the medium says.
    pub fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = retry_on_intr(|| rustix::fs::open(root, flags, Mode::empty()))?;
        Ok(Self {
            root,
            publishing: AtomicU8::new(BY_RENAME),
        })
    }

    /// Creates the directory `root` where it is missing, and its missing parents, durably,
    /// and opens it.
    ///
    /// # Errors
    /// As [`OsFileSystem::open`].
    pub fn create(root: &Path) -> io::Result<Self> {
        create_durably(root)?;
        Self::open(root)
    }

    fn open_at(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        let path = if path.is_empty() { "." } else { path };
        let flags = flags | OFlags::CLOEXEC;
        let descriptor = retry_on_intr(|| rustix::fs::openat(&self.root, path, flags, mode))?;
        Ok(File::from(descriptor))
    }

    fn publish_by_link(&self, from: &str, to: &str) -> Result<(), Errno> {
        let linked = rustix::fs::linkat(&self.root, from, &self.root, to, AtFlags::empty());
        if let Err(error) = linked {
            // A lost reply makes an NFS client ask twice and hear "exists" of its own link:
            // the number of names tells (open(2), on O_EXCL).
            let status = rustix::fs::statat(&self.root, from, AtFlags::empty())?;
            if status.st_nlink < 2 {
                return Err(error);
            }
        }
        // The object has its name. A second name that stays is swept as a stale temporary.
        let _ = rustix::fs::unlinkat(&self.root, from, AtFlags::empty());
        Ok(())
    }

    fn publish_by_claim(&self, from: &str, to: &str) -> io::Result<()> {
        let directory = from.rsplit_once('/').map_or("", |(directory, _)| directory);
        let claim = format!("{directory}/{}{CLAIM_SUFFIX}", to.replace('/', "-"));
        let claim = claim.trim_start_matches('/');
        match self.write_new_file(claim, &[]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let advice = format!(
                    "another process is creating {to}; if none is running, remove the file {claim}"
                );
                return Err(io::Error::new(ErrorKind::ResourceBusy, advice));
            }
            Err(error) => return Err(error),
        }
        let renamed = match self.status(to) {
            Ok(_) => Err(io::Error::from(Errno::EXIST)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                rustix::fs::renameat(&self.root, from, &self.root, to).map_err(io::Error::from)
            }
            Err(error) => Err(error),
        };
        // A claim that stays is swept as a stale temporary.
        let _ = self.remove_file(claim);
        renamed
    }

    /// Gives up a way of publishing that the file system has just refused.
    fn publish_next_by(&self, way: u8) {
        self.publishing.fetch_max(way, Ordering::Relaxed);
    }
}

impl FileSystem for OsFileSystem {
    type File = File;

    fn create_dir(&self, path: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.root, path, Mode::RWXU)?)
    }

    fn write_new_file(&self, path: &str, bytes: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let mut file = self.open_at(path, flags, Mode::RUSR | Mode::WUSR)?;
        file.write_all(bytes)?;
        Ok(file)
    }

    fn append(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        // Its own writes have left the file's position at its end.
        file.write_all(bytes)
    }

    fn open_file(&self, path: &str) -> io::Result<File> {
        // NONBLOCK: opening a pipe that somebody left under our name must not hang.
        self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
    }

    fn file_bytes(&self, file: &File) -> io::Result<u64> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        Ok(metadata.len())
    }

    fn read_at(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    fn sync_file(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let directory = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        sync_directory(&directory)
    }

    fn publish(&self, from: &str, to: &str) -> io::Result<()> {
        if self.publishing.load(Ordering::Relaxed) == BY_RENAME {
            match rename_without_replacing(&self.root, from, to) {
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    self.publish_next_by(BY_LINK);
                }
                result => return Ok(result?),
            }
        }
        if self.publishing.load(Ordering::Relaxed) == BY_LINK {
            match self.publish_by_link(from, to) {
                Err(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    self.publish_next_by(BY_CLAIM);
                }
                result => return Ok(result?),
            }
        }
        self.publish_by_claim(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.root, from, &self.root, to)?)
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.root, path, AtFlags::empty())?)
    }

    fn status(&self, path: &str) -> io::Result<FileStatus> {
        let status = rustix::fs::statat(&self.root, path, AtFlags::empty())?;
        let changed = Duration::from_secs(u64::try_from(status.st_mtime).unwrap_or(0));
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Ok(FileStatus {
            is_file: FileType::from_raw_mode(status.st_mode) == FileType::RegularFile,
            bytes: u64::try_from(status.st_size).unwrap_or(0),
            age: now.saturating_sub(changed),
        })
    }

    fn list_dir(&self, path: &str) -> io::Result<Vec<String>> {
        let directory = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(directory)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_without_replacing(root: &OwnedFd, from: &str, to: &str) -> Result<(), Errno> {
    rustix::fs::renameat_with(root, from, root, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_without_replacing(_: &OwnedFd, _: &str, _: &str) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Syncs a directory. Some file systems (SMB, some in user space) have no such call and say
/// "invalid" or "unsupported"; names are as durable there as the server makes them.
fn sync_directory(directory: &File) -> io::Result<()> {
    match directory.sync_all() {
        Err(error)
            if matches!(
                Errno::from_io_error(&error),
                Some(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
            ) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Creates a directory and its missing parents, each name synced into its parent.
fn create_durably(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    let created = match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create_durably(parent)?;
            DirBuilder::new().mode(0o700).create(path)?;
            true
        }
        Err(error) => return Err(error),
    };
    match File::open(parent).and_then(|directory| sync_directory(&directory)) {
        // A directory of long standing below one that we may not read: nothing to sync.
        Err(error) if !created && error.kind() == ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(filesystem: &OsFileSystem, path: &str) -> Vec<u8> {
        let file = filesystem.open_file(path).expect("the file is there");
        let mut bytes = vec![0; 64];
        let length = filesystem.read_at(&file, 0, &mut bytes).expect("read");
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn every_way_of_publishing_moves_and_never_replaces() {
        for way in [BY_RENAME, BY_LINK, BY_CLAIM] {
            let directory = tempfile::tempdir().expect("a directory");
            let filesystem = OsFileSystem::open(directory.path()).expect("open");
            filesystem.publish_next_by(way);
            filesystem.create_dir("tmp").expect("create");
            filesystem.write_new_file("tmp/a", b"first").expect("write");
            filesystem.publish("tmp/a", "final").expect("publish");
            assert_eq!(content(&filesystem, "final"), b"first");
            filesystem
                .write_new_file("tmp/b", b"second")
                .expect("write");
            let error = filesystem.publish("tmp/b", "final").expect_err("taken");
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "way {way}");
            assert_eq!(content(&filesystem, "final"), b"first");
            assert_eq!(
                filesystem.list_dir("tmp").expect("list"),
                ["b"],
                "way {way}"
            );
            assert_eq!(filesystem.publishing.load(Ordering::Relaxed), way);
        }
    }

    #[test]
    fn racing_publishers_leave_one_winner() {
        for way in [BY_RENAME, BY_LINK, BY_CLAIM] {
            let directory = tempfile::tempdir().expect("a directory");
            OsFileSystem::create(&directory.path().join("tmp")).expect("create");
            let winners: usize = std::thread::scope(|scope| {
                let racers: Vec<_> = (0..8)
                    .map(|racer| {
                        let root = directory.path();
                        scope.spawn(move || {
                            let filesystem = OsFileSystem::open(root).expect("open");
                            filesystem.publish_next_by(way);
                            let from = format!("tmp/{racer}");
                            filesystem.write_new_file(&from, &[racer]).expect("write");
                            usize::from(filesystem.publish(&from, "final").is_ok())
                        })
                    })
                    .collect();
                racers
                    .into_iter()
                    .map(|racer| racer.join().expect("no panic"))
                    .sum()
            });
            assert_eq!(winners, 1, "way {way}");
        }
    }

    #[test]
    fn a_claim_of_a_dead_process_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let filesystem = OsFileSystem::open(directory.path()).expect("open");
        filesystem.publish_next_by(BY_CLAIM);
        filesystem.create_dir("tmp").expect("create");
        filesystem
            .write_new_file("tmp/keys-1.claim", b"")
            .expect("write");
        filesystem.write_new_file("tmp/a", b"a").expect("write");
        let error = filesystem.publish("tmp/a", "keys/1").expect_err("claimed");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        assert!(error.to_string().contains("tmp/keys-1.claim"), "{error}");
    }

    #[test]
    fn missing_parents_are_created() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().join("one/two/three");
        assert!(OsFileSystem::open(&root).is_err());
        OsFileSystem::create(&root).expect("create");
        OsFileSystem::create(&root).expect("again");
        std::fs::write(directory.path().join("file"), b"").expect("write");
        assert!(OsFileSystem::create(&directory.path().join("file")).is_err());
    }
}

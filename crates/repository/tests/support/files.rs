//! A place for tests of metadata: a directory to back up, one to restore into, and ways to
//! give files what the standard library can't.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use engine::object::MemoryStore;
use repository::snapshot::Snapshot;
use repository::{
    BackupReport, Overwrite, Problem, Repository, RestoreOptions, RestoreReport, RunSettings,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;

use super::sources::{differences, picture};
use super::{backup, check_clean, recorder, settings};

/// A directory to back up, one to restore into, and a repository.
pub struct Place {
    pub place: tempfile::TempDir,
    pub repository: Repository,
}

impl Place {
    pub fn new() -> Self {
        Self::with(settings())
    }

    pub fn with(settings: RunSettings) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        fs::create_dir(place.path().join("source")).expect("made");
        let store = Arc::new(MemoryStore::new());
        let options = super::create_options();
        let repository = Repository::create(store, None, &options, settings).expect("created");
        Self { place, repository }
    }

    pub fn source(&self) -> PathBuf {
        self.place.path().join("source")
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.source().join(name)
    }

    pub fn target(&self) -> PathBuf {
        self.place.path().join("target")
    }

    pub fn back_up(&self) -> BackupReport {
        // A file that changed just now would be read again: clocks of file systems are slow.
        std::thread::sleep(Duration::from_millis(50));
        let report = backup(&self.repository, &self.source()).expect("backed up");
        assert_eq!(report.errors, 0, "{:?}", report.snapshot.errors);
        report
    }

    pub fn restore(
        &self,
        snapshot: &Snapshot,
        overwrite: Overwrite,
    ) -> (RestoreReport, Vec<Problem>) {
        let (progress, problems) = recorder();
        let options = RestoreOptions {
            overwrite,
            ..RestoreOptions::default()
        };
        let source = self.source();
        let subpath = Some(source.as_os_str().as_bytes());
        let target = self.target();
        let report = self
            .repository
            .restore(snapshot, subpath, &target, &options, &progress);
        let problems = std::mem::take(&mut *problems.lock().expect("no panic"));
        (report.expect("restored"), problems)
    }

    /// Backs up, restores, and compares all that a picture shows.
    pub fn there_and_back(&self) {
        let report = self.back_up();
        let (restored, problems) = self.restore(&report.snapshot, Overwrite::Never);
        assert_eq!((restored.failed, problems), (0, Vec::new()));
        let (before, after) = (picture(&self.source()), picture(&self.target()));
        assert_eq!(differences(&before, &after), []);
        check_clean(&self.repository).expect("clean");
    }
}

impl Drop for Place {
    /// `tempfile` can't remove what may not be listed.
    fn drop(&mut self) {
        let chmod = Command::new("chmod")
            .args(["-R", "u+rwx"])
            .arg(self.place.path())
            .output();
        drop(chmod);
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

pub fn set_modified(path: &Path, seconds: i64, nanoseconds: i64) {
    let time = Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("a time");
}

/// Sets an attribute, not through a symlink; says whether the file system takes it.
pub fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    match rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()) {
        Ok(()) => true,
        Err(Errno::NOTSUP | Errno::PERM) => {
            eprintln!("skipped: no attribute {name} on {}", path.display());
            false
        }
        Err(errno) => panic!("{}: {name}: {errno}", path.display()),
    }
}

pub fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    match rustix::fs::lgetxattr(path, name, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Some(value)
        }
        Err(Errno::NODATA | Errno::NOTSUP) => None,
        Err(errno) => panic!("{}: {name}: {errno}", path.display()),
    }
}

/// The value of a POSIX ACL attribute: the three classes, and a right for one more user.
pub fn acl_of(user: u32) -> Vec<u8> {
    let none = u32::MAX;
    let mut value = 2u32.to_le_bytes().to_vec();
    let entries = [
        (1u16, 6u16, none),
        (2, 4, user),
        (4, 4, none),
        (0x10, 4, none),
        (0x20, 0, none),
    ];
    for (tag, rights, id) in entries {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&rights.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

pub fn make_special(path: &Path, file_type: FileType, device: u64) {
    rustix::fs::mknodat(CWD, path, file_type, Mode::from_raw_mode(0o640), device).expect("made");
}

/// Runs the test `name` again without privileges. Says whether this process is the one in which
/// its body is to run.
pub fn is_unprivileged(name: &str) -> bool {
    const CHILD: &str = "ONEFOLD_TEST_CHILD";
    if !is_root() || std::env::var_os(CHILD).is_some() {
        return true;
    }
    let status = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .current_dir("/")
        .status();
    match status.map(|status| (status.code(), status)) {
        Ok((Some(0), _)) => {}
        // What the test harness says of a test that fails; else it could not be run.
        Ok((Some(101) | None, status)) => panic!("{name} without privileges: {status}"),
        other => eprintln!("skipped {name}: setpriv gave {other:?}"),
    }
    false
}

//! Tests of the whole room, on real file systems.
//!
//! Some need another user, a limit or a mount: those start this test program once more, below
//! `setpriv`, `prlimit` or `unshare`, and are skipped where these can't run.

mod capture;
mod exclude;
mod restore;
mod unprivileged;
mod walk;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Filter, FilterOptions, FoundFile, Problem, Walk, WalkEvent, WalkOptions};
use crate::tree::Entry;

/// Tells the child which test it is.
const CHILD_VARIABLE: &str = "ONEFOLD_TEST_CHILD";

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs the test `name` (its full path) again below `wrapper`. Says whether this process is the
/// one in which its body is to run.
pub fn in_child(name: &str, wrapper: &[&str]) -> bool {
    let (_, name) = name.split_once("::").unwrap();
    if std::env::var_os(CHILD_VARIABLE).is_some_and(|child| child == name) {
        return true;
    }
    let status = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD_VARIABLE, name)
        .status();
    match status.map(|status| (status.code(), status)) {
        Ok((Some(0), _)) => {}
        // What the test harness says of a test that fails; else the wrapper could not run it.
        Ok((Some(101) | None, status)) => panic!("{name} below {wrapper:?}: {status}"),
        other => eprintln!("skipped {name}: {wrapper:?} gave {other:?}"),
    }
    false
}

/// Like [`in_child`], as a user without privileges.
pub fn is_unprivileged(name: &str) -> bool {
    let wrapper = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    !is_root() || in_child(name, &wrapper)
}

/// A directory for one test. Unlike `tempfile`'s, it goes away however deep it is.
pub struct Place(Option<tempfile::TempDir>);

impl Place {
    pub fn new() -> Self {
        Self(Some(tempfile::tempdir().unwrap()))
    }

    /// A place in memory, where there is one.
    pub fn in_memory() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::new(), |place| Self(Some(place)))
    }

    pub fn path(&self) -> &Path {
        self.0.as_ref().unwrap().path()
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let path = self.0.take().unwrap().keep();
        if !is_root() {
            let _ = Command::new("chmod")
                .args(["-R", "u+rwx"])
                .arg(&path)
                .status();
        }
        let _ = Command::new("rm").arg("-rf").arg(&path).status();
    }
}

pub fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

pub fn walk_of(given: &[&Path], options: &FilterOptions) -> Walk {
    let given: Vec<PathBuf> = given.iter().map(|&path| path.to_owned()).collect();
    let options = WalkOptions {
        filter: Filter::new(options).unwrap(),
        ..WalkOptions::default()
    };
    Walk::new(&given, Path::new("/"), options).unwrap()
}

/// What a walk found below `base` and `base` itself, its events in short: `+dir`, `file`, `=other`,
/// `-dir`, `!problem`, with paths relative to `base`. Directories above it are not ours: others
/// change them meanwhile.
pub struct Found {
    pub events: Vec<String>,
    pub files: Vec<FoundFile>,
    pub entries: Vec<(PathBuf, Entry)>,
    pub problems: Vec<Problem>,
}

pub fn gather(walk: impl Iterator<Item = WalkEvent>, base: &Path) -> Found {
    let mut found = Found {
        events: Vec::new(),
        files: Vec::new(),
        entries: Vec::new(),
        problems: Vec::new(),
    };
    let mut keep = |path: &Path, entry: Entry| {
        if path.starts_with(base) {
            found.entries.push((path.to_owned(), entry));
        }
    };
    for event in walk {
        let (sign, path) = match event {
            WalkEvent::EnterDirectory(directory) => {
                keep(&directory.path, directory.entry);
                ("+", directory.path)
            }
            WalkEvent::File(file) => {
                let path = file.path.clone();
                keep(&path, file.entry.clone());
                found.files.push(*file);
                ("", path)
            }
            WalkEvent::Other(other) => {
                keep(&other.path, other.entry);
                ("=", other.path)
            }
            WalkEvent::LeaveDirectory { path } => ("-", path),
            WalkEvent::Problem(problem) => {
                let path = problem.path.clone();
                found.problems.push(*problem);
                ("!", path)
            }
        };
        if let Ok(path) = path.strip_prefix(base)
            && !path.as_os_str().is_empty()
        {
            found.events.push(format!("{sign}{}", path.display()));
        } else if sign == "!" {
            found.events.push(format!("!{}", path.display()));
        }
    }
    found
}

pub fn events_of(given: &[&Path], options: &FilterOptions, base: &Path) -> Vec<String> {
    gather(walk_of(given, options), base).events
}

/// The value of a POSIX ACL attribute: the three classes, and a right for one more user.
pub fn acl_of(user: u32) -> Vec<u8> {
    let mut value = 2u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, rights, id) in [
        (1u16, 6u16, none),
        (2, 4, user),
        (4, 4, none),
        (0x10, 4, none),
        (0x20, 0, none),
    ] {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&rights.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

/// Sets an attribute on a path, not through a symlink; says whether the file system took it.
pub fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    use rustix::io::Errno;
    match rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()) {
        Ok(()) => true,
        Err(Errno::NOTSUP | Errno::PERM) => {
            eprintln!("no attribute {name} here");
            false
        }
        Err(errno) => panic!("{}: {name}: {errno}", path.display()),
    }
}

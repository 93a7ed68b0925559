//! Handles of directories that open and close themselves.
//!
//! A handle knows its parent, its name there, and which directory it was when it was first
//! seen. It is opened when it is needed, relative to the nearest ancestor that is open, never
//! through a symlink, and every opening checks that it is still the same directory. At most
//! a set number of directories stay open, the least recently used is closed first; so
//! neither the depth of a tree nor the number of handles in flight meets a limit of the system.
//! Limits: open directories besides those in use at the moment: the number given to
//! [`DirectoryHandle::root`], and the root itself.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

use super::problem::FilesError;
use super::status::{Identity, Status};

/// A directory of the operating system.
#[derive(Clone)]
pub struct DirectoryHandle(Arc<Node>);

struct Node {
    parent: Option<Arc<Node>>,
    name: OsString,
    /// May the name be a symlink to the directory? Only where the user named it so.
    follow: bool,
    identity: Identity,
    open: Mutex<Option<Arc<OpenDirectory>>>,
    used: AtomicU64,
    pool: Arc<Pool>,
}

/// The handles of one tree that are open.
struct Pool {
    open_max: usize,
    clock: AtomicU64,
    open: Mutex<Vec<Weak<Node>>>,
}

/// An open directory; closes when the last user is done with it.
#[derive(Debug)]
pub struct OpenDirectory {
    descriptor: OwnedFd,
    may_list: bool,
}

impl OpenDirectory {
    /// Can its names be read? Otherwise what it holds can only be reached by name.
    #[must_use]
    pub fn may_list(&self) -> bool {
        self.may_list
    }
}

impl AsFd for OpenDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl fmt::Debug for DirectoryHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryHandle")
            .field("name", &self.0.name)
            .field("identity", &self.0.identity)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DirectoryHandle {
    /// The root of a tree of handles, which stays open; of the others at most `open_max` do.
    ///
    /// # Errors
    /// When the system tells nothing about `descriptor`.
    pub fn root(descriptor: OwnedFd, open_max: usize) -> Result<Self, FilesError> {
        let identity = Status::of(&descriptor)?.identity;
        let open = OpenDirectory {
            descriptor,
            may_list: true,
        };
        Ok(Self(Arc::new(Node {
            parent: None,
            name: OsString::new(),
            follow: false,
            identity,
            open: Mutex::new(Some(Arc::new(open))),
            used: AtomicU64::new(0),
            pool: Arc::new(Pool {
                open_max: open_max.max(1),
                clock: AtomicU64::new(1),
                open: Mutex::new(Vec::new()),
            }),
        })))
    }

    /// The directory `name` in this one, seen there as `identity`; not opened yet.
    #[must_use]
    pub fn child(&self, name: &OsStr, identity: Identity) -> Self {
        self.make_child(name, identity, false)
    }

    /// Like [`DirectoryHandle::child`] for a directory that was just opened.
    #[must_use]
    pub(super) fn open_child(
        &self,
        name: &OsStr,
        identity: Identity,
        opened: OpenDirectory,
    ) -> Self {
        let child = self.make_child(name, identity, false);
        child.0.keep(opened);
        child
    }

    /// Like [`DirectoryHandle::child`] for a name that may be a symlink to the directory,
    /// because a user named the path so.
    #[must_use]
    pub(super) fn child_through_symlink(&self, name: &OsStr, identity: Identity) -> Self {
        self.make_child(name, identity, true)
    }

    fn make_child(&self, name: &OsStr, identity: Identity, follow: bool) -> Self {
        Self(Arc::new(Node {
            parent: Some(Arc::clone(&self.0)),
            name: name.to_owned(),
            follow,
            identity,
            open: Mutex::new(None),
            used: AtomicU64::new(0),
            pool: Arc::clone(&self.0.pool),
        }))
    }

    /// Which directory it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.0.identity
    }

    /// Its path, relative to the root of the handles; empty for the root.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let mut names = Vec::new();
        let mut node = &self.0;
        while let Some(parent) = &node.parent {
            names.push(&node.name);
            node = parent;
        }
        names.iter().rev().collect()
    }

    /// The open directory; opens it, and ancestors on the way, where that is needed.
    ///
    /// # Errors
    /// [`FilesError::Vanished`] or [`FilesError::Replaced`] when it or an ancestor is not what
    /// it was; else what the system says.
    pub fn open(&self) -> Result<Arc<OpenDirectory>, FilesError> {
        let mut closed = Vec::new();
        let mut node = &self.0;
        let mut open = loop {
            if let Some(open) = node.open_now() {
                break open;
            }
            closed.push(node);
            node = node.parent.as_ref().ok_or(FilesError::Vanished)?;
        };
        for node in closed.into_iter().rev() {
            let opened = open_directory(&open, &node.name, node.follow)?;
            if Status::of(&opened)?.identity != node.identity {
                return Err(FilesError::Replaced);
            }
            open = node.keep(opened);
        }
        Ok(open)
    }
}

/// Opens a directory to list it, or at least to reach what it holds by name.
pub(super) fn open_directory(
    parent: impl AsFd,
    name: &OsStr,
    follow: bool,
) -> Result<OpenDirectory, FilesError> {
    let mut flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    let open =
        |access| retry_on_intr(|| rustix::fs::openat(&parent, name, flags | access, Mode::empty()));
    match open(OFlags::RDONLY) {
        Ok(descriptor) => Ok(OpenDirectory {
            descriptor,
            may_list: true,
        }),
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Err(rustix::io::Errno::ACCESS) => {
            let descriptor = open(OFlags::PATH).map_err(FilesError::of_second_look)?;
            // With PATH | NOFOLLOW a symlink itself is opened on old kernels.
            if Status::of(&descriptor)?.file_type != rustix::fs::FileType::Directory {
                return Err(FilesError::Replaced);
            }
            Ok(OpenDirectory {
                descriptor,
                may_list: false,
            })
        }
        Err(errno) => Err(FilesError::of_second_look(errno)),
    }
}

impl Node {
    fn open_now(&self) -> Option<Arc<OpenDirectory>> {
        let open = lock(&self.open).clone();
        if open.is_some() {
            let now = self.pool.clock.fetch_add(1, Ordering::Relaxed);
            self.used.store(now, Ordering::Relaxed);
        }
        open
    }

    /// Keeps what was opened, closes others beyond the limit. Another thread may have been
    /// faster: then its opening is the one that stays.
    fn keep(self: &Arc<Self>, opened: OpenDirectory) -> Arc<OpenDirectory> {
        let mut slot = lock(&self.open);
        if let Some(open) = &*slot {
            return Arc::clone(open);
        }
        let open = Arc::new(opened);
        *slot = Some(Arc::clone(&open));
        drop(slot);
        let now = self.pool.clock.fetch_add(1, Ordering::Relaxed);
        self.used.store(now, Ordering::Relaxed);
        self.pool.add(self);
        open
    }
}

impl Pool {
    fn add(&self, node: &Arc<Node>) {
        // Handles that are given up here close after the lock is released.
        let mut closing = Vec::new();
        let mut open = lock(&self.open);
        open.retain(|node| node.strong_count() > 0);
        open.push(Arc::downgrade(node));
        while open.len() > self.open_max {
            let used = |node: &Weak<Node>| {
                let used = |node: Arc<Node>| node.used.load(Ordering::Relaxed);
                node.upgrade().map_or(0, used)
            };
            let Some(oldest) = (0..open.len()).min_by_key(|&place| used(&open[place])) else {
                break;
            };
            closing.push(open.swap_remove(oldest));
        }
        drop(open);
        for node in closing.iter().filter_map(Weak::upgrade) {
            lock(&node.open).take();
        }
    }
}

impl Drop for Node {
    /// Frees a chain of parents one by one: a deep tree must not exhaust the stack.
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(node) = parent {
            parent = Arc::into_inner(node).and_then(|mut node| node.parent.take());
        }
    }
}

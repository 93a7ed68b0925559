//! Walks over given paths in a fixed order.
//!
//! What enters are paths and a filter, what leaves are [`WalkEvent`]s: depth first, the names of
//! a directory in byte order, each directory entered and left, all within `/`. The order
//! depends on the names alone. Whatever can't be looked at becomes a [`Problem`] and the walk
//! goes on: a directory that can't be listed is stored empty, and said to be.
//!
//! A walk does no reading of files: it can run ahead on a thread of its own, while others open
//! what it found ([`FoundFile::open`]). Limits: names of the directories on the way are held in
//! memory; open directories as [`WalkOptions::open_directories_max`] says.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, Uid};
use rustix::io::{Errno, retry_on_intr};

use super::capture::{Captured, Capturer};
use super::directory::{DirectoryHandle, OpenDirectory};
use super::exclude::{CACHE_TAG, Filter};
use super::ignore_files::IgnoreFiles;
use super::listing::{Names, list};
use super::problem::{Action, FilesError, Problem};
use super::sources::{SourceNode, Sources};
use super::status::{Identity, Status};
use crate::tree::{Entry, EntryKind};

/// How a walk is done.
#[derive(Debug, Clone)]
pub struct WalkOptions {
    /// What is left out.
    pub filter: Filter,
    /// How many directories may stay open beside the root and those in use at the moment.
    pub open_directories_max: usize,
    /// Are extended attributes read? Whoever only counts what is there does without.
    pub attributes: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            open_directories_max: 64,
            attributes: true,
        }
    }
}

/// What a walk comes upon, in order.
#[derive(Debug)]
pub enum WalkEvent {
    /// A directory; what follows lies in it until it is left. The first is `/`.
    EnterDirectory(Box<FoundDirectory>),
    /// A regular file.
    File(Box<FoundFile>),
    /// A symlink, FIFO or device: the entry is all there is to it.
    Other(Box<FoundOther>),
    /// The end of the directory that was entered last and not left yet.
    LeaveDirectory {
        /// Its path.
        path: PathBuf,
    },
    /// Something that is not stored, or not in full.
    Problem(Box<Problem>),
}

/// A directory that is entered.
#[derive(Debug)]
pub struct FoundDirectory {
    /// Its path.
    pub path: PathBuf,
    /// Its entry, without content; that of `/` has an empty name.
    pub entry: Entry,
    /// The directory itself.
    pub directory: DirectoryHandle,
}

/// A symlink, FIFO or device.
#[derive(Debug)]
pub struct FoundOther {
    /// Its path.
    pub path: PathBuf,
    /// Its entry.
    pub entry: Entry,
}

/// A file that can be opened.
#[derive(Debug)]
pub struct FoundFile {
    /// Its path.
    pub path: PathBuf,
    /// Its entry, with the size it had, without content.
    pub entry: Entry,
    /// The directory that it lies in.
    pub directory: DirectoryHandle,
    /// What the system said about it.
    pub status: Status,
    /// May whoever walks read it without leaving a trace in its time of access?
    may_leave_no_trace: bool,
}

/// A file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// What the system says about it now: it may have changed since it was found, but is the
    /// same file.
    pub status: Status,
}

impl FoundFile {
    /// Opens it for reading; without leaving a trace in its time of access, where that is
    /// allowed.
    ///
    /// # Errors
    /// When it can't be opened, or another file has taken its place.
    pub fn open(&self) -> Result<OpenFile, Problem> {
        self.open_checked().map_err(|error| Problem {
            path: self.path.clone(),
            what: Action::Open,
            error,
        })
    }

    fn open_checked(&self) -> Result<OpenFile, FilesError> {
        let directory = self.directory.open()?;
        let name = OsStr::from_bytes(&self.entry.name);
        let file = open_to_read(&directory, name, self.may_leave_no_trace)
            .map_err(FilesError::of_second_look)?;
        let status = Status::of(&file)?;
        let is_same =
            status.identity == self.status.identity && status.file_type == FileType::RegularFile;
        if !is_same {
            return Err(FilesError::Replaced);
        }
        Ok(OpenFile { file, status })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_to_read(directory: &OpenDirectory, name: &OsStr, no_trace: bool) -> Result<File, Errno> {
    if no_trace {
        match open_with(directory, name, OFlags::NOATIME) {
            // Root of a container may not, for files of others.
            Err(Errno::PERM) => {}
            result => return result,
        }
    }
    open_with(directory, name, OFlags::empty())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_to_read(directory: &OpenDirectory, name: &OsStr, _: bool) -> Result<File, Errno> {
    open_with(directory, name, OFlags::empty())
}

fn open_with(directory: &OpenDirectory, name: &OsStr, extra: OFlags) -> Result<File, Errno> {
    let flags = OFlags::RDONLY
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | extra;
    retry_on_intr(|| rustix::fs::openat(directory, name, flags, Mode::empty())).map(File::from)
}

/// A walk that is under way. Its items are the events.
#[derive(Debug)]
pub struct Walk {
    options: WalkOptions,
    sources: Sources,
    capturer: Capturer,
    /// Who walks.
    user: Uid,
    /// Directories entered and not left.
    stack: Vec<Level>,
    /// Path of the last of them.
    path: PathBuf,
    pending: VecDeque<WalkEvent>,
}

/// What is to be done in a directory or below it.
#[derive(Debug, Clone)]
struct Scope {
    /// The node of the directory among the given paths, if it is one or leads to some.
    source: Option<SourceNode>,
    /// Is everything meant, or only what leads to given paths?
    whole: bool,
    /// The device that the walk stays on, if it is to stay on one.
    device: Option<u64>,
    ignore: Option<Arc<IgnoreFiles>>,
}

/// A directory that is entered.
#[derive(Debug)]
struct Level {
    directory: DirectoryHandle,
    names: Names,
    scope: Scope,
}

impl Walk {
    /// A walk over `given` paths, relative ones meant in `current_directory`.
    ///
    /// # Errors
    /// When none of the paths is there, or `/` can't be opened.
    pub fn new(
        given: &[PathBuf],
        current_directory: &Path,
        options: WalkOptions,
    ) -> Result<Self, FilesError> {
        let sources = Sources::new(given, current_directory)?;
        Self::over(sources, options)
    }

    /// A walk over sources.
    ///
    /// # Errors
    /// When `/` can't be opened.
    pub fn over(sources: Sources, options: WalkOptions) -> Result<Self, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = retry_on_intr(|| rustix::fs::open("/", flags, Mode::empty()))?;
        let status = Status::of(&descriptor)?;
        let root = DirectoryHandle::root(descriptor, options.open_directories_max)?;
        let mut capturer = Capturer::default();
        if !options.attributes {
            capturer = capturer.without_attributes();
        }
        let mut walk = Self {
            options,
            sources,
            capturer,
            user: rustix::process::geteuid(),
            stack: Vec::new(),
            path: PathBuf::from("/"),
            pending: VecDeque::new(),
        };
        let open = root.open()?;
        let mut captured = walk
            .capture(&open, OsStr::new("."), (status, false))
            .map_err(|problem| problem.error)?;
        captured.entry.name.clear();
        let whole = walk.sources.is_given(Sources::ROOT);
        let scope = Scope {
            source: Some(Sources::ROOT),
            whole,
            device: (whole && walk.options.filter.one_file_system())
                .then_some(status.identity.device),
            ignore: None,
        };
        walk.enter(root, captured.entry, scope);
        for problem in walk.sources.take_missing() {
            walk.pending
                .push_back(WalkEvent::Problem(Box::new(problem)));
        }
        Ok(walk)
    }

    /// The paths walked over: absolute, in the order given, each once.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        self.sources.paths()
    }

    fn problem(&mut self, what: Action, error: FilesError) {
        let path = self.path.clone();
        let problem = Problem { path, what, error };
        self.pending
            .push_back(WalkEvent::Problem(Box::new(problem)));
    }

    /// Captures the entry at the current path.
    fn capture(
        &mut self,
        directory: &OpenDirectory,
        name: &OsStr,
        (status, follow): (Status, bool),
    ) -> Result<Captured, Problem> {
        let mut problems = Vec::new();
        let subject = (status, follow);
        let captured = self.capturer.capture_known(
            directory.as_fd(),
            name,
            &self.path,
            subject,
            &mut problems,
        );
        let problems = problems
            .into_iter()
            .map(|problem| WalkEvent::Problem(Box::new(problem)));
        self.pending.extend(problems);
        captured
    }

    /// Takes up one name of the current directory.
    fn visit(&mut self, name: &OsStr) {
        let Some(level) = self.stack.last_mut() else {
            return;
        };
        let directory = match level.directory.open() {
            Ok(directory) => directory,
            Err(error) => {
                // Nothing of the rest can be reached either.
                level.names.clear();
                self.problem(Action::List, error);
                return;
            }
        };
        let (handle, scope) = (level.directory.clone(), level.scope.clone());
        let depth = self.stack.len();
        self.path.push(name);
        if let Err((what, error)) = self.visit_in((&directory, &handle), name, scope) {
            self.problem(what, error);
        }
        if self.stack.len() == depth {
            self.path.pop();
        }
    }

    fn visit_in(
        &mut self,
        (directory, handle): (&OpenDirectory, &DirectoryHandle),
        name: &OsStr,
        above: Scope,
    ) -> Result<(), (Action, FilesError)> {
        let source = above.source.and_then(|node| self.sources.child(node, name));
        let is_given = source.is_some_and(|node| self.sources.is_given(node));
        let leads_on = source.is_some_and(|node| self.sources.has_children(node));
        let (is_file_out, is_directory_out) = if is_given || !above.whole {
            (false, false)
        } else {
            self.options
                .filter
                .is_left_out(&self.path, above.ignore.as_deref())
        };
        if is_file_out && is_directory_out && !leads_on {
            return Ok(());
        }
        let inspect = |follow| {
            Status::at(directory, name, follow)
                .map_err(|errno| (Action::Inspect, FilesError::of_second_look(errno)))
        };
        let mut status = inspect(false)?;
        let follow = leads_on && status.file_type == FileType::Symlink;
        let mut whole = is_given || above.whole;
        if follow {
            if whole && !is_file_out {
                self.problem(Action::Inspect, FilesError::SymlinkTakenAsDirectory);
            }
            whole = false;
            status = inspect(true)?;
        }
        let is_directory = status.file_type == FileType::Directory;
        if leads_on && !is_directory {
            self.problem(Action::List, FilesError::Replaced);
            if !whole {
                return Ok(());
            }
        }
        if is_directory && is_directory_out || !is_directory && is_file_out {
            if !(leads_on && is_directory) {
                return Ok(());
            }
            whole = false;
        }
        let captured = match self.capture(directory, name, (status, follow)) {
            Ok(captured) => captured,
            Err(problem) => return Err((problem.what, problem.error)),
        };
        let path = self.path.clone();
        match captured.entry.kind {
            EntryKind::Directory => {
                let scope = self.scope_below(above, source, whole, is_given, status.identity);
                let child = if follow {
                    handle.child_through_symlink(name, status.identity)
                } else {
                    handle.child(name, status.identity)
                };
                self.enter(child, captured.entry, scope);
            }
            EntryKind::File => self.pending.push_back(WalkEvent::File(Box::new(FoundFile {
                path,
                entry: captured.entry,
                directory: handle.clone(),
                status,
                may_leave_no_trace: self.user.is_root() || self.user.as_raw() == status.uid,
            }))),
            _ => self
                .pending
                .push_back(WalkEvent::Other(Box::new(FoundOther {
                    path,
                    entry: captured.entry,
                }))),
        }
        Ok(())
    }

    fn scope_below(
        &self,
        above: Scope,
        source: Option<SourceNode>,
        mut whole: bool,
        is_given: bool,
        identity: Identity,
    ) -> Scope {
        let mut device = above.device;
        if is_given && self.options.filter.one_file_system() {
            device = Some(identity.device);
        }
        if device.is_some_and(|device| device != identity.device) {
            whole = false;
        }
        Scope {
            source,
            whole,
            device,
            ignore: above.ignore,
        }
    }

    /// Enters the directory at the current path.
    fn enter(&mut self, directory: DirectoryHandle, entry: Entry, mut scope: Scope) {
        let found = FoundDirectory {
            path: self.path.clone(),
            entry,
            directory: directory.clone(),
        };
        self.pending
            .push_back(WalkEvent::EnterDirectory(Box::new(found)));
        let mut names = Names::default();
        if scope.whole {
            match directory.open() {
                Ok(open) => self.read_names(&open, &mut names, &mut scope),
                Err(error) => self.problem(Action::List, error),
            }
        }
        if let Some(source) = scope.source {
            for name in self.sources.names(source) {
                names.push(name.as_bytes());
            }
            names.sort();
        }
        self.stack.push(Level {
            directory,
            names,
            scope,
        });
    }

    /// Reads what is in the directory at the current path, and the rules that lie there.
    fn read_names(&mut self, directory: &OpenDirectory, names: &mut Names, scope: &mut Scope) {
        if let Err(errno) = list(directory, names) {
            self.problem(Action::List, errno.into());
        }
        names.sort();
        let filter = &self.options.filter;
        if filter.caches() && names.contains(CACHE_TAG.as_bytes()) {
            match filter.is_cache(directory) {
                Ok(true) => names.retain(|name| name == CACHE_TAG.as_bytes()),
                Ok(false) => {}
                Err(error) => self.problem(Action::ReadRules, error),
            }
        }
        if self.options.filter.ignore_files() {
            let mut problems = Vec::new();
            let place = (directory, &*names);
            let above = scope.ignore.as_ref();
            scope.ignore = IgnoreFiles::read(above, place, &self.path, &mut problems);
            for problem in problems {
                self.pending
                    .push_back(WalkEvent::Problem(Box::new(problem)));
            }
        }
    }

    fn leave(&mut self) {
        self.stack.pop();
        let path = self.path.clone();
        self.path.pop();
        self.pending.push_back(WalkEvent::LeaveDirectory { path });
    }
}

impl Iterator for Walk {
    type Item = WalkEvent;

    fn next(&mut self) -> Option<WalkEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let level = self.stack.last_mut()?;
            let name: Option<OsString> = level.names.next_name().map(OsStr::to_owned);
            match name {
                Some(name) => self.visit(&name),
                None => self.leave(),
            }
        }
    }
}

//! The tree of a snapshot: entries by path, in order, page by page.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use engine::format::DecodeError;
use engine::recipe::Recipe;
use engine::restore::{ReadError, Reader, StreamReader};

use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::tree::{DirectoryReader, Entry, EntryKind, LONE_ENTRY_PAGE_BYTES_MAX};

/// Directories below each other that are followed; deeper ones are refused.
const DEPTH_MAX: usize = 65_536;

/// Why the tree of a snapshot can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The chunks of a directory can't be read.
    #[error("cannot read directory {}: {error}", Shown(path))]
    Read {
        /// The directory.
        path: Vec<u8>,
        /// What is wrong.
        error: ReadError,
    },
    /// A page of a directory is not one.
    #[error("directory {} is damaged: {reason}", Shown(path))]
    Page {
        /// The directory.
        path: Vec<u8>,
        /// What is wrong.
        reason: DecodeError,
    },
    /// There is no such path in the snapshot.
    #[error("{} is not in snapshot {snapshot}", Shown(path))]
    NotFound {
        /// The path asked for.
        path: Vec<u8>,
        /// The snapshot, for a person.
        snapshot: String,
    },
    /// A directory is wanted and it is something else.
    #[error("{} is not a directory", Shown(path))]
    NotADirectory {
        /// The path asked for.
        path: Vec<u8>,
    },
    /// Directories lie too deep below each other.
    #[error("{} lies more than {DEPTH_MAX} directories deep", Shown(path))]
    TooDeep {
        /// The directory.
        path: Vec<u8>,
    },
}

impl ListError {
    /// Does this mean that stored bytes are gone or wrong?
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            ListError::Read { error, .. } => error.is_damage(),
            ListError::Page { .. } => true,
            _ => false,
        }
    }
}

/// A path for a person.
struct Shown<'a>(&'a [u8]);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}

/// The entries of one directory, in order.
#[derive(Debug)]
pub struct DirectoryEntries {
    path: Vec<u8>,
    stream: StreamReader,
    order: DirectoryReader,
    waiting: VecDeque<Entry>,
    ended: bool,
}

impl DirectoryEntries {
    /// The entries of the directory with that recipe; `path` is for messages.
    #[must_use]
    pub fn new(reader: &Reader, recipe: &Recipe, path: &[u8]) -> Self {
        Self {
            path: path.to_vec(),
            stream: reader.stream(recipe),
            order: DirectoryReader::new(),
            waiting: VecDeque::new(),
            ended: false,
        }
    }

    fn next_page(&mut self) -> Result<bool, ListError> {
        let read = |error| ListError::Read {
            path: self.path.clone(),
            error,
        };
        let Some(page) = self.stream.next_chunk().map_err(read)? else {
            return Ok(false);
        };
        debug_assert!(page.len() <= LONE_ENTRY_PAGE_BYTES_MAX || cfg!(test));
        let entries = self.order.page(&page).map_err(|reason| ListError::Page {
            path: self.path.clone(),
            reason,
        })?;
        self.waiting.extend(entries);
        Ok(true)
    }
}

impl Iterator for DirectoryEntries {
    type Item = Result<Entry, ListError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.waiting.is_empty() && !self.ended {
            match self.next_page() {
                Ok(true) => {}
                Ok(false) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
        self.waiting.pop_front().map(Ok)
    }
}

/// The tree of one snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotTree {
    reader: Reader,
    root: Recipe,
    snapshot: String,
}

impl Repository {
    /// The tree of a snapshot.
    ///
    /// # Errors
    /// When the store's remaps can't be read.
    pub fn tree(&self, snapshot: &Snapshot) -> Result<SnapshotTree, RepositoryError> {
        Ok(SnapshotTree::new(self.engine().reader()?, snapshot))
    }
}

/// The parts of a path, without empty ones and `.`.
pub(crate) fn path_parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
}

/// `path` with `name` below it. The root is the empty path.
#[must_use]
pub fn join_path(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    joined.extend_from_slice(path);
    joined.push(b'/');
    joined.extend_from_slice(name);
    joined
}

impl SnapshotTree {
    /// The tree of `snapshot`, read by `reader`.
    #[must_use]
    pub fn new(reader: Reader, snapshot: &Snapshot) -> Self {
        Self {
            reader,
            root: snapshot.root.clone(),
            snapshot: snapshot.id.short(),
        }
    }

    /// What it is read by.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The recipe of the root directory.
    #[must_use]
    pub fn root(&self) -> &Recipe {
        &self.root
    }

    /// The entries of a directory, given by its recipe.
    #[must_use]
    pub fn directory(&self, recipe: &Recipe, path: &[u8]) -> DirectoryEntries {
        DirectoryEntries::new(&self.reader, recipe, path)
    }

    /// The entry at `path`; nothing for the root itself.
    ///
    /// # Errors
    /// [`ListError::NotFound`], and when a directory on the way can't be read.
    pub fn entry(&self, path: &[u8]) -> Result<Option<Entry>, ListError> {
        let mut found: Option<Entry> = None;
        let mut so_far = Vec::new();
        for part in path_parts(path) {
            let recipe = match &found {
                None => &self.root,
                Some(entry) if entry.kind == EntryKind::Directory => &entry.content,
                Some(_) => return Err(self.not_found(path)),
            };
            let next = self.entry_in(recipe, &so_far, part)?;
            so_far = join_path(&so_far, part);
            found = Some(next.ok_or_else(|| self.not_found(path))?);
        }
        Ok(found)
    }

    fn entry_in(
        &self,
        recipe: &Recipe,
        path: &[u8],
        name: &[u8],
    ) -> Result<Option<Entry>, ListError> {
        for entry in self.directory(recipe, path) {
            let entry = entry?;
            if entry.name.as_slice() >= name {
                return Ok((entry.name == name).then_some(entry));
            }
        }
        Ok(None)
    }

    fn not_found(&self, path: &[u8]) -> ListError {
        ListError::NotFound {
            path: path.to_vec(),
            snapshot: self.snapshot.clone(),
        }
    }

    /// Visits the entry at `path` if it is no directory, or else the entries of that directory
    /// (and of those below it, if `recursive`): parents before children, names in order. Paths
    /// begin with `/`. `visit` may end it.
    ///
    /// # Errors
    /// [`ListError::NotFound`], and when a directory can't be read.
    pub fn visit(
        &self,
        path: &[u8],
        recursive: bool,
        visit: &mut dyn FnMut(&[u8], &Entry) -> ControlFlow<()>,
    ) -> Result<(), ListError> {
        let mut start = Vec::new();
        for part in path_parts(path) {
            start = join_path(&start, part);
        }
        let recipe = match self.entry(path)? {
            None => self.root.clone(),
            Some(entry) if entry.kind == EntryKind::Directory => entry.content,
            Some(entry) => {
                let _ = visit(&start, &entry);
                return Ok(());
            }
        };
        let mut stack = vec![self.directory(&recipe, &start)];
        while let Some(directory) = stack.last_mut() {
            let Some(entry) = directory.next() else {
                stack.pop();
                continue;
            };
            let entry = entry?;
            let entry_path = join_path(&directory.path, &entry.name);
            if visit(&entry_path, &entry).is_break() {
                return Ok(());
            }
            if recursive && entry.kind == EntryKind::Directory {
                if stack.len() >= DEPTH_MAX {
                    return Err(ListError::TooDeep { path: entry_path });
                }
                stack.push(self.directory(&entry.content, &entry_path));
            }
        }
        Ok(())
    }
}

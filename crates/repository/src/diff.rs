//! What changed between two snapshots: their trees side by side. Directories with the same
//! recipe hold the same and are not looked into.

use std::cmp::Ordering;
use std::iter::Peekable;

use engine::recipe::Recipe;

use crate::listing::{DirectoryEntries, ListError, SnapshotTree, join_path};
use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::tree::{Entry, EntryKind};

/// How an entry differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is in the second snapshot only.
    Added,
    /// It is in the first only.
    Removed,
    /// It is in both.
    Changed {
        /// Its bytes or its target differ.
        content: bool,
        /// Its mode, owner, time of modification or extended attributes differ.
        metadata: bool,
        /// It is of another type.
        kind: bool,
    },
}

/// One entry that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its path, beginning with `/`.
    pub path: Vec<u8>,
    /// How it differs.
    pub change: Change,
    /// Is it a directory (in the snapshot that has it; in the second, if both)?
    pub is_directory: bool,
    /// Its size in the first snapshot, 0 if it is not there.
    pub size_before: u64,
    /// Its size in the second.
    pub size_after: u64,
}

/// Counts of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffSummary {
    /// Entries in the second snapshot only.
    pub added: u64,
    /// Entries in the first only.
    pub removed: u64,
    /// Entries whose content or type differs.
    pub changed: u64,
    /// Entries of which only metadata differs.
    pub metadata_changed: u64,
    /// Bytes of files that were added.
    pub bytes_added: u64,
    /// Bytes of files that were removed.
    pub bytes_removed: u64,
}

/// Why two snapshots can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// A tree.
    #[error(transparent)]
    List(#[from] ListError),
}

impl Repository {
    /// Calls `visit` with every entry that differs between two snapshots, in path order.
    ///
    /// # Errors
    /// When a directory can't be read.
    pub fn diff(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        visit: &mut dyn FnMut(Difference),
    ) -> Result<DiffSummary, DiffError> {
        let reader = self.engine().reader().map_err(RepositoryError::from)?;
        let before = SnapshotTree::new(reader.clone(), before);
        let after = SnapshotTree::new(reader, after);
        let mut comparison = Comparison {
            summary: DiffSummary::default(),
            visit,
        };
        if before.root() != after.root() {
            let mut stack = vec![Pair::open(
                &before,
                Some(before.root()),
                &after,
                Some(after.root()),
                &[],
            )];
            while let Some(pair) = stack.last_mut() {
                match pair.next()? {
                    None => drop(stack.pop()),
                    Some((old, new)) => {
                        let entry = new
                            .as_ref()
                            .or(old.as_ref())
                            .expect("one of the two is there");
                        let path = join_path(&pair.path, &entry.name);
                        comparison.compare(&path, old.as_ref(), new.as_ref());
                        let old = old.as_ref().and_then(directory_of);
                        let new = new.as_ref().and_then(directory_of);
                        if (old.is_some() || new.is_some()) && old != new {
                            stack.push(Pair::open(&before, old, &after, new, &path));
                        }
                    }
                }
            }
        }
        Ok(comparison.summary)
    }
}

fn directory_of(entry: &Entry) -> Option<&Recipe> {
    (entry.kind == EntryKind::Directory).then_some(&entry.content)
}

/// What two directories have under one name; one side at least has something.
type BothSides = (Option<Entry>, Option<Entry>);

/// The same directory in two snapshots.
struct Pair {
    path: Vec<u8>,
    old: Option<Peekable<DirectoryEntries>>,
    new: Option<Peekable<DirectoryEntries>>,
}

impl Pair {
    fn open(
        before: &SnapshotTree,
        old: Option<&Recipe>,
        after: &SnapshotTree,
        new: Option<&Recipe>,
        path: &[u8],
    ) -> Self {
        Self {
            path: path.to_vec(),
            old: old.map(|recipe| before.directory(recipe, path).peekable()),
            new: new.map(|recipe| after.directory(recipe, path).peekable()),
        }
    }

    /// The entries of the next name, from either side or both.
    fn next(&mut self) -> Result<Option<BothSides>, ListError> {
        let name_of = |side: &mut Option<Peekable<DirectoryEntries>>| {
            let next = side.as_mut()?.peek()?;
            Some(
                next.as_ref()
                    .map_or_else(|_| Vec::new(), |entry| entry.name.clone()),
            )
        };
        let order = match (name_of(&mut self.old), name_of(&mut self.new)) {
            (None, None) => return Ok(None),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => old.cmp(&new),
        };
        let take = |side: &mut Option<Peekable<DirectoryEntries>>, wanted: bool| {
            if !wanted {
                return Ok(None);
            }
            side.as_mut().and_then(Iterator::next).transpose()
        };
        let old = take(&mut self.old, order.is_le())?;
        let new = take(&mut self.new, order.is_ge())?;
        Ok(Some((old, new)))
    }
}

struct Comparison<'a> {
    summary: DiffSummary,
    visit: &'a mut dyn FnMut(Difference),
}

impl Comparison<'_> {
    fn compare(&mut self, path: &[u8], old: Option<&Entry>, new: Option<&Entry>) {
        let change = match (old, new) {
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
            (Some(old), Some(new)) => {
                let (content, metadata, kind) = differences(old, new);
                if !(content || metadata || kind) {
                    return;
                }
                Change::Changed {
                    content,
                    metadata,
                    kind,
                }
            }
        };
        let size_before = old.map_or(0, |entry| entry.size);
        let size_after = new.map_or(0, |entry| entry.size);
        match change {
            Change::Added => {
                self.summary.added += 1;
                self.summary.bytes_added += size_after;
            }
            Change::Removed => {
                self.summary.removed += 1;
                self.summary.bytes_removed += size_before;
            }
            Change::Changed {
                content: false,
                kind: false,
                ..
            } => self.summary.metadata_changed += 1,
            Change::Changed { .. } => self.summary.changed += 1,
        }
        (self.visit)(Difference {
            path: path.to_vec(),
            change,
            is_directory: new
                .or(old)
                .is_some_and(|entry| entry.kind == EntryKind::Directory),
            size_before,
            size_after,
        });
    }
}

/// Do content, metadata, type differ? A directory's content is compared entry by entry.
fn differences(old: &Entry, new: &Entry) -> (bool, bool, bool) {
    let kind = std::mem::discriminant(&old.kind) != std::mem::discriminant(&new.kind);
    let content = !kind
        && match (&old.kind, &new.kind) {
            (EntryKind::File, EntryKind::File) => old.check != new.check || old.size != new.size,
            (EntryKind::Directory, EntryKind::Directory) => false,
            (old, new) => old != new,
        };
    let (a, b) = (&old.metadata, &new.metadata);
    let metadata = (a.mode, a.uid, a.gid, a.modified) != (b.mode, b.uid, b.gid, b.modified)
        || a.attributes != b.attributes;
    (content, metadata, kind)
}

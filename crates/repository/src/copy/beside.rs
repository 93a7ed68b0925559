//! An earlier snapshot and its copy, followed beside the snapshot that is copied.
//!
//! Names are asked for in the order of the tree. Both trees have the same names, so they are merged with the one that
//! is copied: each directory of theirs is read once, page by page. Where one of them can't be read, nothing is taken over
//! from there on; what is copied is read then.

use engine::container::Slot;
use engine::recipe::{Recipe, Run};
use engine::restore::{LocatedRun, Reader, Runs};

use super::table::ChunkTable;
use crate::backup::parent::LiveContainers;
use crate::listing::{DirectoryEntries, SnapshotTree};
use crate::tree::{Entry, EntryKind};

/// What both have under a name.
pub(super) struct Before {
    pub source: Entry,
    pub target: Entry,
}

/// The entries of a directory, of which the next one may be looked at.
struct Side {
    entries: DirectoryEntries,
    next: Option<Entry>,
}

impl Side {
    fn new(tree: &SnapshotTree, recipe: &Recipe, path: &[u8]) -> Self {
        let mut side = Self {
            entries: tree.directory(recipe, path),
            next: None,
        };
        side.advance();
        side
    }

    fn advance(&mut self) -> Option<Entry> {
        let next = self.entries.next().and_then(Result::ok);
        std::mem::replace(&mut self.next, next)
    }

    /// The entry of that name; names come in order.
    fn find(&mut self, name: &[u8]) -> Option<Entry> {
        while self.next.as_ref()?.name.as_slice() < name {
            self.advance();
        }
        if self.next.as_ref()?.name != name {
            return None;
        }
        self.advance()
    }
}

pub(super) struct Beside {
    source: SnapshotTree,
    target: SnapshotTree,
    live: LiveContainers,
    stack: Vec<Option<(Side, Side)>>,
}

impl Beside {
    pub fn new(source: SnapshotTree, target: SnapshotTree, live: LiveContainers) -> Self {
        let root = (
            Side::new(&source, source.root(), b""),
            Side::new(&target, target.root(), b""),
        );
        Self {
            source,
            target,
            live,
            stack: vec![Some(root)],
        }
    }

    /// The pages of the copy's root, if `root` is that of the earlier snapshot.
    pub fn same_root(&self, root: &Recipe) -> Option<Recipe> {
        let is_same = root == self.source.root() && self.is_there(self.target.root());
        is_same.then(|| self.target.root().clone())
    }

    /// What both have under that name in the current directory.
    pub fn find(&mut self, name: &[u8]) -> Option<Before> {
        let (source, target) = self.stack.last_mut()?.as_mut()?;
        let (source, target) = (source.find(name), target.find(name));
        Some(Before {
            source: source?,
            target: target?,
        })
    }

    /// Goes into a directory, of which `before` is what both have.
    pub fn enter(&mut self, before: Option<Before>, path: &[u8]) {
        let is_directory = |entry: &Entry| entry.kind == EntryKind::Directory;
        let sides = before
            .filter(|before| is_directory(&before.source) && is_directory(&before.target))
            .map(|before| {
                (
                    Side::new(&self.source, &before.source.content, path),
                    Side::new(&self.target, &before.target.content, path),
                )
            });
        self.stack.push(sides);
    }

    /// Leaves the current directory.
    pub fn leave(&mut self) {
        self.stack.pop();
    }

    /// Are the contents of a file or directory those of before, and still there in the target? Of a directory its own
    /// pages are looked for; what is below them was there when its copy was made.
    pub fn is_same(&self, entry: &Entry, before: &Before) -> bool {
        let kinds = [&before.source.kind, &before.target.kind];
        matches!(entry.kind, EntryKind::File | EntryKind::Directory)
            && kinds.iter().all(|kind| **kind == entry.kind)
            && entry.content == before.source.content
            && entry.size == before.target.size
            && self.is_there(&before.target.content)
    }

    fn is_there(&self, recipe: &Recipe) -> bool {
        self.live.has_all(&self.target, recipe).unwrap_or(false)
    }

    /// Enters the chunks of a file that changed since into the table: both repositories have it in the same chunks.
    pub fn learn(&self, before: &Before, table: &mut ChunkTable) {
        let mut source = Chunks::new(self.source.reader(), &before.source.content);
        let mut target = Chunks::new(self.target.reader(), &before.target.content);
        while let (Some((from, at)), Some((to, place))) = (source.next(), target.next()) {
            let (from, to) = (&from.section.section, &to.section.section);
            if from.lengths[at] != to.lengths[place] || table.is_full() {
                return;
            }
            let Slot(slot) = from.slots[at];
            let run = Run::Slots {
                container: to.id,
                first: to.slots[place],
                count: 1,
                bytes: u64::from(to.lengths[place]),
            };
            if self.is_there(&Recipe::Runs(vec![run])) {
                table.set(from.id, slot, from.lengths[at], to.fingerprints[place]);
            }
        }
    }
}

/// The chunks of a stream, one by one; it ends where something can't be read.
struct Chunks {
    runs: Runs,
    current: Option<LocatedRun>,
}

impl Chunks {
    fn new(reader: &Reader, recipe: &Recipe) -> Self {
        Self {
            runs: reader.runs(recipe),
            current: None,
        }
    }

    fn next(&mut self) -> Option<(LocatedRun, usize)> {
        loop {
            if let Some(located) = &mut self.current
                && let Some(chunk) = located.chunks.next()
            {
                return Some((located.clone(), chunk));
            }
            let (_, located) = self.runs.next_located().ok()??;
            self.current = located;
        }
    }
}

//! The parent snapshot beside the walk: which files are unchanged.
//!
//! The walk goes through directories in the order in which the parent's tree is stored, so the
//! two are merged: each directory of the parent is read once, page by page.
//!
//! Where the parent can't be read, files count as new and are read again; the containers at
//! fault are told ([`Parents::next_damage`]), lest what is stored now rests on them.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::index::LiveObjects;
use engine::object::ObjectId;
use engine::pipeline::Trail;
use engine::recipe::{Recipe, Run};
use engine::restore::{ReadError, Reader};

use crate::listing::{DirectoryEntries, ListError, SnapshotTree};
use crate::tree::{Entry, EntryKind};

/// Which containers are there.
pub(crate) struct LiveContainers {
    objects: Arc<LiveObjects>,
}

impl LiveContainers {
    pub fn new(objects: Arc<LiveObjects>) -> Self {
        Self { objects }
    }

    /// Are all chunks of a recipe there, also those that hold its pages, and what they are made of?
    pub fn has_all(&self, tree: &SnapshotTree, recipe: &Recipe) -> Result<bool, ReadError> {
        let containers = tree.reader().containers();
        for run in tree.reader().runs(recipe) {
            if let Run::Slots {
                container,
                first,
                count,
                ..
            } = run?
                && !self.objects.has_chunks(containers, container, first, count)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A part of the parent that can't be read.
#[derive(Debug)]
pub(super) struct ParentDamage {
    /// What is wrong.
    pub message: String,
    /// The container at fault, if one is.
    pub container: Option<ObjectId>,
}

impl ParentDamage {
    /// Why a trail has no more hints, if it is not that the recipe has ended.
    pub fn of_trail(trail: &mut Trail) -> Option<Self> {
        let error = trail.take_problem()?;
        Some(Self {
            message: format!("cannot follow what a file was: {error}"),
            container: damaged_container(trail.reader(), &error),
        })
    }

    /// Why a part of an earlier image can't be taken over.
    pub fn of_image(reader: &Reader, error: &ReadError) -> Self {
        Self {
            message: format!("cannot take over all of the image before: {error}"),
            container: damaged_container(reader, error),
        }
    }

    fn of_directory(tree: &SnapshotTree, error: &ListError) -> Self {
        let mut container = None;
        if let ListError::Read { error, .. } = error {
            container = damaged_container(tree.reader(), error);
        }
        Self {
            message: error.to_string(),
            container,
        }
    }
}

/// The container object that is damaged (rather than missing, or out of reach just now).
fn damaged_container(reader: &Reader, error: &ReadError) -> Option<ObjectId> {
    match error {
        ReadError::Object(error) if error.is_damage() => Some(error.key()?.id),
        // What a moved one lacks was dropped, because no snapshot needed it: the object is as it should be.
        ReadError::Recipe { container, .. } => {
            let is_moved = reader.containers().remaps().is_moved(*container);
            (!is_moved).then_some(container.0)
        }
        ReadError::Base { error, .. } => damaged_container(reader, error),
        _ => None,
    }
}

/// The trees that unchanged files are taken from, followed along the walk: what an interrupted
/// backup left behind, if there is something, then the latest snapshot.
pub(super) struct Parents(Vec<ParentCursor>);

/// What parents have under a name, and which of them.
pub(super) struct Before(Vec<(usize, Entry)>);

impl Before {
    /// Does none have anything?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry of the first that has one.
    pub fn into_first(self) -> Option<Entry> {
        self.0.into_iter().next().map(|(_, entry)| entry)
    }
}

impl Parents {
    pub fn new(trees: Vec<SnapshotTree>, live: &Arc<LiveContainers>) -> Self {
        let cursor = |tree| ParentCursor::new(tree, Arc::clone(live));
        Self(trees.into_iter().map(cursor).collect())
    }

    /// What was found damaged since the last call, one by one.
    pub fn next_damage(&mut self) -> Option<ParentDamage> {
        self.0.iter_mut().find_map(ParentCursor::next_damage)
    }

    /// The walk enters a directory of the current one.
    pub fn enter(&mut self, path: &[u8], name: &[u8]) {
        for cursor in &mut self.0 {
            cursor.enter(path, name);
        }
    }

    /// The walk leaves the current directory.
    pub fn leave(&mut self) {
        for cursor in &mut self.0 {
            cursor.leave();
        }
    }

    /// What there is under that name in the current directory.
    pub fn find(&mut self, name: &[u8]) -> Before {
        let found = self.0.iter_mut().map(|cursor| cursor.find(name));
        let found = found.enumerate();
        Before(
            found
                .filter_map(|(place, entry)| Some((place, entry?)))
                .collect(),
        )
    }

    /// Takes from `before` the entry that says that the file is as it was.
    pub fn take_unchanged(
        &mut self,
        file: &Entry,
        size: u64,
        before: &mut Before,
    ) -> Option<Entry> {
        let parents = &mut self.0;
        let is_unchanged =
            |(place, entry): &(usize, Entry)| parents[*place].is_unchanged(file, size, entry);
        let found = before.0.iter().position(is_unchanged)?;
        Some(before.0.swap_remove(found).1)
    }
}

/// A parent's tree, followed along the walk.
struct ParentCursor {
    tree: SnapshotTree,
    live: Arc<LiveContainers>,
    stack: Vec<Option<Level>>,
    damage: VecDeque<ParentDamage>,
}

struct Level {
    entries: DirectoryEntries,
    next: Option<Entry>,
}

impl Level {
    fn open(
        tree: &SnapshotTree,
        recipe: &Recipe,
        path: &[u8],
        damage: &mut VecDeque<ParentDamage>,
    ) -> Self {
        let mut level = Self {
            entries: tree.directory(recipe, path),
            next: None,
        };
        level.next = level.next_readable(tree, damage);
        level
    }

    /// The entry of that name, if the directory has one; names must be asked for in order.
    fn find(
        &mut self,
        tree: &SnapshotTree,
        name: &[u8],
        damage: &mut VecDeque<ParentDamage>,
    ) -> Option<Entry> {
        while self.next.as_ref()?.name.as_slice() < name {
            self.next = self.next_readable(tree, damage);
        }
        if self.next.as_ref()?.name != name {
            return None;
        }
        let next = self.next_readable(tree, damage);
        std::mem::replace(&mut self.next, next)
    }

    /// The next entry. A damaged directory of the parent ends where the damage is: the files
    /// after it are read.
    fn next_readable(
        &mut self,
        tree: &SnapshotTree,
        damage: &mut VecDeque<ParentDamage>,
    ) -> Option<Entry> {
        match self.entries.next()? {
            Ok(entry) => Some(entry),
            Err(error) => {
                damage.push_back(ParentDamage::of_directory(tree, &error));
                None
            }
        }
    }
}

impl ParentCursor {
    fn new(tree: SnapshotTree, live: Arc<LiveContainers>) -> Self {
        let mut damage = VecDeque::new();
        let root = Level::open(&tree, tree.root(), b"", &mut damage);
        Self {
            tree,
            live,
            stack: vec![Some(root)],
            damage,
        }
    }

    /// What was found damaged since the last call, one by one.
    fn next_damage(&mut self) -> Option<ParentDamage> {
        self.damage.pop_front()
    }

    /// The walk enters a directory of the current one.
    fn enter(&mut self, path: &[u8], name: &[u8]) {
        let level = self
            .find(name)
            .filter(|entry| entry.kind == EntryKind::Directory)
            .map(|entry| Level::open(&self.tree, &entry.content, path, &mut self.damage));
        self.stack.push(level);
    }

    /// The walk leaves the current directory.
    fn leave(&mut self) {
        self.stack.pop();
    }

    /// What the parent snapshot has under that name in the current directory.
    fn find(&mut self, name: &[u8]) -> Option<Entry> {
        let level = self.stack.last_mut()?.as_mut()?;
        level.find(&self.tree, name, &mut self.damage)
    }

    /// Is the file as it was (type, size, mtime, ctime, inode), and is its content still there?
    fn is_unchanged(&mut self, file: &Entry, size: u64, before: &Entry) -> bool {
        let seems_unchanged = file.kind == EntryKind::File
            && before.kind == EntryKind::File
            && before.size == size
            && before.metadata.modified == file.metadata.modified
            && before.metadata.changed == file.metadata.changed
            && before.metadata.inode == file.metadata.inode;
        if !seems_unchanged {
            return false;
        }
        match self.live.has_all(&self.tree, &before.content) {
            Ok(has_all) => has_all,
            Err(error) => {
                let name = String::from_utf8_lossy(&before.name);
                self.damage.push_back(ParentDamage {
                    message: format!("cannot read the recipe of {name}: {error}"),
                    container: damaged_container(self.tree.reader(), &error),
                });
                false
            }
        }
    }
}

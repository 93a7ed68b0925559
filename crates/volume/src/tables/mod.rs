//! Paged arrays: the mapping, the records of blocks, the index of fingerprints, the zones.
//!
//! A table is an array of entries of equal size in pages of 4 KiB ([`crate::page`]). Pages are never
//! changed where they are, but for [`Tables::write_in_place`]: a changed page goes to a new place at the
//! next commit, and so do the directory page that says where it is and the root page that says where
//! that is; the superblock says where roots are. So a commit is whole or did not happen, and an older
//! tree of the mapping stays what it was: that is what a pinned generation is.
//!
//! In memory: 12 bytes a page (where it is, where it is cached), and as many pages as the cache may hold.
//! Changed pages stay in the cache until they are committed; whoever changes tables looks at
//! [`Tables::dirty_pages`] and commits in time. A page that was never written has no place and is zeros.
//! While a commit is written, its pages are [`Frozen`]: they stay in the cache, and one that is changed is
//! copied first, so that what is being committed does not change.

mod freezing;
mod io;
mod layout;

pub use freezing::{Frozen, FrozenPage};
pub use io::{PageSink, read_map_leaf, read_map_tree};
pub use layout::{DIRECTORY_ENTRIES, MapTree, TableKind, tree_shape};

use std::sync::Arc;

use crate::address::{BLOCK_BYTES, Pba, Reference};
use crate::backing::Backing;
use crate::error::VolumeError;
use crate::page::{PageBytes, entries_per_page, entry_offset};

const ABSENT: u32 = u32::MAX;

/// One array.
#[derive(Debug)]
struct Table {
    kind: TableKind,
    /// Entries there are.
    entries: u64,
    /// Where each page is.
    leaves: Vec<Reference>,
    /// Where each page is cached.
    slots: Vec<u32>,
    directories: Vec<Reference>,
    directory_dirty: Vec<bool>,
    roots: Vec<Reference>,
    root_dirty: Vec<bool>,
}

/// A page in memory.
#[derive(Debug)]
struct Slot {
    table: usize,
    page: usize,
    dirty: bool,
    /// The freeze that it was part of last; it is frozen as long as that one is [`Tables::frozen`].
    freeze: u64,
    /// Used since the clock's hand came by.
    used: bool,
    bytes: Arc<PageBytes>,
}

/// All tables of a volume, and the cache of their pages.
#[derive(Debug)]
pub struct Tables {
    backing: Arc<dyn Backing>,
    tables: Vec<Table>,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    hand: usize,
    /// Pages that are cached and changed: table, page.
    dirty: Vec<(usize, usize)>,
    cache_pages: usize,
    /// Places that the committed trees will not refer to after the next commit.
    retired: Vec<Pba>,
    /// Freezes so far.
    freezes: u64,
    /// The freeze whose pages are not written yet.
    frozen: Option<u64>,
    /// Frozen pages that were copied because they were changed.
    copied_pages: usize,
    /// The generation that new pages are written in.
    generation: u32,
    /// The newest pinned generation: pages of the mapping that are as old stay.
    newest_pin: Option<u32>,
}

impl Tables {
    /// Tables of these sizes (in [`TableKind::ALL`]'s order), all zeros.
    #[must_use]
    pub fn new(
        backing: Arc<dyn Backing>,
        entries: [u64; TableKind::COUNT],
        cache_bytes: u64,
    ) -> Self {
        let tables = TableKind::ALL
            .into_iter()
            .zip(entries)
            .map(|(kind, entries)| Table::new(kind, entries))
            .collect();
        Self {
            backing,
            tables,
            slots: Vec::new(),
            free_slots: Vec::new(),
            hand: 0,
            dirty: Vec::new(),
            cache_pages: (cache_bytes as usize / BLOCK_BYTES).max(64),
            retired: Vec::new(),
            freezes: 0,
            frozen: None,
            copied_pages: 0,
            generation: 0,
            newest_pin: None,
        }
    }

    /// In which generation pages are written from now on, and up to which one they are kept.
    pub fn set_generations(&mut self, generation: u32, newest_pin: Option<u32>) {
        self.generation = generation;
        self.newest_pin = newest_pin;
    }

    /// Entries of a table.
    #[must_use]
    pub fn entries(&self, kind: TableKind) -> u64 {
        self.tables[kind.index()].entries
    }

    /// Makes a table longer.
    pub fn extend(&mut self, kind: TableKind, entries: u64) {
        self.tables[kind.index()].extend(entries);
    }

    /// Makes a table all zeros, of another size. What it had is free after the next commit.
    pub fn reset(&mut self, kind: TableKind, entries: u64) {
        let number = kind.index();
        self.dirty.retain(|(table, _)| *table != number);
        let table = &mut self.tables[number];
        for slot in table.slots.iter().copied().filter(|slot| *slot != ABSENT) {
            self.slots[slot as usize].dirty = false;
            self.free_slots.push(slot);
        }
        for level in [&table.leaves, &table.directories, &table.roots] {
            self.retired
                .extend(level.iter().filter_map(|page| page.pba()));
        }
        *table = Table::new(kind, entries);
    }

    /// Pages that a commit would write, directories and roots included.
    #[must_use]
    pub fn pages_to_write(&self) -> usize {
        let mut pages = self.dirty.len();
        for (number, table) in self.tables.iter().enumerate() {
            let mut directories = table.directory_dirty.clone();
            for &(_, page) in self.dirty.iter().filter(|(of, _)| *of == number) {
                directories[page / DIRECTORY_ENTRIES] = true;
            }
            let mut roots = table.root_dirty.clone();
            for (directory, _) in directories.iter().enumerate().filter(|(_, dirty)| **dirty) {
                roots[directory / DIRECTORY_ENTRIES] = true;
                pages += 1;
            }
            pages += roots.iter().filter(|dirty| **dirty).count();
        }
        pages
    }

    /// Cached pages that were changed.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        self.dirty.len()
    }

    /// Changed pages from this many on should be committed.
    #[must_use]
    pub fn dirty_pages_max(&self) -> usize {
        self.cache_pages / 2
    }

    /// Bytes that the cache may take.
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        (self.cache_pages * BLOCK_BYTES) as u64
    }

    /// Bytes in memory that this takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let pages: usize = self.tables.iter().map(|table| table.leaves.len()).sum();
        (pages * 12 + self.slots.len() * (BLOCK_BYTES + size_of::<Slot>())) as u64
    }

    /// The bytes of an entry; `None` when its page was never written: zeros.
    ///
    /// # Errors
    /// When its page can't be read, or is not what was written.
    ///
    /// # Panics
    /// When there is no such entry.
    pub fn entry(&mut self, kind: TableKind, index: u64) -> Result<Option<&[u8]>, VolumeError> {
        let (page, at) = self.locate(kind, index);
        let table = &self.tables[kind.index()];
        if table.slots[page] == ABSENT && table.leaves[page] == Reference::NONE {
            return Ok(None);
        }
        let slot = self.load(kind.index(), page)?;
        Ok(Some(&self.slots[slot].bytes[at..at + kind.entry_bytes()]))
    }

    /// The bytes of an entry, to be changed.
    ///
    /// # Errors
    /// When its page can't be read, or is not what was written.
    ///
    /// # Panics
    /// When there is no such entry.
    pub fn entry_mut(&mut self, kind: TableKind, index: u64) -> Result<&mut [u8], VolumeError> {
        let (page, at) = self.locate(kind, index);
        let slot = self.load(kind.index(), page)?;
        let slot = &mut self.slots[slot];
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push((kind.index(), page));
            self.copied_pages += usize::from(self.frozen == Some(slot.freeze));
        }
        Ok(&mut Arc::make_mut(&mut slot.bytes)[at..at + kind.entry_bytes()])
    }

    /// Whether the page with that entry is all zeros for sure: it was never written.
    #[must_use]
    pub fn is_absent(&self, kind: TableKind, index: u64) -> bool {
        let (page, _) = self.locate(kind, index);
        let table = &self.tables[kind.index()];
        table.slots[page] == ABSENT && table.leaves[page] == Reference::NONE
    }

    /// Forgets pages that were not changed, until the cache is within its limit.
    pub fn trim_cache(&mut self) {
        let mut steps = self.slots.len() * 2;
        let slots_max = self.cache_pages.saturating_sub(self.copied_pages);
        while self.slots.len() - self.free_slots.len() > slots_max && steps > 0 {
            steps -= 1;
            self.hand = (self.hand + 1) % self.slots.len();
            let slot = &mut self.slots[self.hand];
            let cached = &mut self.tables[slot.table].slots[slot.page];
            let is_frozen = self.frozen == Some(slot.freeze);
            if *cached != self.hand as u32 || slot.dirty || is_frozen {
                continue;
            }
            if std::mem::replace(&mut slot.used, false) {
                continue;
            }
            *cached = ABSENT;
            self.free_slots.push(self.hand as u32);
        }
    }

    /// Whether a page is in memory and changed.
    fn is_dirty(&self, kind: TableKind, page: usize) -> bool {
        match self.tables[kind.index()].slots[page] {
            ABSENT => false,
            slot => self.slots[slot as usize].dirty,
        }
    }

    fn locate(&self, kind: TableKind, index: u64) -> (usize, usize) {
        assert!(
            index < self.tables[kind.index()].entries,
            "entry {index} of {kind:?}"
        );
        let per_page = entries_per_page(kind.entry_bytes()) as u64;
        let within = (index % per_page) as usize;
        (
            (index / per_page) as usize,
            entry_offset(within, kind.entry_bytes()),
        )
    }

    /// The slot of a page, which is read if it is not in memory.
    fn load(&mut self, table: usize, page: usize) -> Result<usize, VolumeError> {
        let cached = self.tables[table].slots[page];
        if cached != ABSENT {
            self.slots[cached as usize].used = true;
            return Ok(cached as usize);
        }
        let number = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                table,
                page,
                dirty: false,
                freeze: 0,
                used: true,
                bytes: Arc::new([0; BLOCK_BYTES]),
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[number as usize];
        let kind = self.tables[table].kind;
        let bytes = Arc::make_mut(&mut slot.bytes);
        match self.tables[table].leaves[page].pba() {
            Some(pba) => {
                let identity = kind.leaf(page as u64);
                if let Err(error) = io::read_page(&*self.backing, pba, identity, bytes) {
                    self.free_slots.push(number);
                    return Err(error);
                }
            }
            None => bytes.fill(0),
        }
        (slot.table, slot.page, slot.dirty, slot.used) = (table, page, false, true);
        slot.freeze = 0;
        self.tables[table].slots[page] = number;
        Ok(number as usize)
    }
}

impl Table {
    fn new(kind: TableKind, entries: u64) -> Self {
        let mut table = Self {
            kind,
            entries: 0,
            leaves: Vec::new(),
            slots: Vec::new(),
            directories: Vec::new(),
            directory_dirty: Vec::new(),
            roots: Vec::new(),
            root_dirty: Vec::new(),
        };
        table.extend(entries);
        table
    }

    fn extend(&mut self, entries: u64) {
        self.entries = self.entries.max(entries);
        let shape = tree_shape(self.kind, self.entries);
        self.leaves.resize(shape.leaves, Reference::NONE);
        self.slots.resize(shape.leaves, ABSENT);
        self.directories.resize(shape.directories, Reference::NONE);
        self.directory_dirty.resize(shape.directories, false);
        self.roots.resize(shape.roots, Reference::NONE);
        self.root_dirty.resize(shape.roots, false);
    }
}

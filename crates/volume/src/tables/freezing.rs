//! Freezing: what a commit writes of the tables is fixed at one moment, and can be written later.
//!
//! Every changed page gets a new place at once, and so do directories and roots above them; the tables
//! refer to these places from then on, and what they hold stays in memory until it is written there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{DIRECTORY_ENTRIES, Table, TableKind, Tables};
use crate::address::{BLOCK_BYTES, Pba, Reference};
use crate::page::{PageBytes, PageIdentity, entry_offset};

/// A page that is to be written; it has no checksums yet.
#[derive(Debug, Clone)]
pub struct FrozenPage {
    /// Where to.
    pub place: Pba,
    /// What it is.
    pub identity: PageIdentity,
    /// What it holds.
    pub bytes: Arc<PageBytes>,
}

/// Which level of a table's tree.
#[derive(Debug, Clone, Copy)]
enum Level {
    Directory,
    Root,
}

/// Pages of one freeze that are not written yet.
#[derive(Debug)]
pub struct Frozen {
    leaves: VecDeque<FrozenPage>,
    /// Place, table, level, number in that level. What they hold is what the tables say: it changes with
    /// the next freeze only.
    upper: VecDeque<(Pba, usize, Level, usize)>,
}

impl Frozen {
    /// Pages that are left.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.leaves.len() + self.upper.len()
    }
}

impl Tables {
    /// Fixes what is changed: everything gets a new place, the next of `places`; [`Tables::pages_to_write`]
    /// says how many it takes.
    ///
    /// # Panics
    /// When there are fewer, or an earlier freeze is not over.
    pub fn freeze(&mut self, places: &mut dyn Iterator<Item = Pba>) -> Frozen {
        let mut next = || places.next().expect("a place for every page");
        assert!(self.frozen.is_none(), "two commits at once");
        self.freezes += 1;
        self.frozen = Some(self.freezes);
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        let mut leaves = VecDeque::with_capacity(dirty.len());
        for (number, page) in dirty {
            let place = next();
            let table = &mut self.tables[number];
            let slot = &mut self.slots[table.slots[page] as usize];
            (slot.dirty, slot.freeze) = (false, self.freezes);
            leaves.push_back(FrozenPage {
                place,
                identity: table.kind.leaf(page as u64),
                bytes: Arc::clone(&slot.bytes),
            });
            let now = Reference::new(place, self.generation);
            let before = std::mem::replace(&mut table.leaves[page], now);
            table.directory_dirty[page / DIRECTORY_ENTRIES] = true;
            retire(&mut self.retired, table.kind, before, self.newest_pin);
        }
        let mut upper = VecDeque::new();
        for (of, table) in self.tables.iter_mut().enumerate() {
            for number in 0..table.directories.len() {
                if !std::mem::replace(&mut table.directory_dirty[number], false) {
                    continue;
                }
                let place = next();
                upper.push_back((place, of, Level::Directory, number));
                let now = Reference::new(place, self.generation);
                let before = std::mem::replace(&mut table.directories[number], now);
                table.root_dirty[number / DIRECTORY_ENTRIES] = true;
                retire(&mut self.retired, table.kind, before, self.newest_pin);
            }
            for number in 0..table.roots.len() {
                if !std::mem::replace(&mut table.root_dirty[number], false) {
                    continue;
                }
                let place = next();
                upper.push_back((place, of, Level::Root, number));
                let now = Reference::new(place, self.generation);
                let before = std::mem::replace(&mut table.roots[number], now);
                retire(&mut self.retired, table.kind, before, self.newest_pin);
            }
        }
        Frozen { leaves, upper }
    }

    /// Takes pages of a freeze to write, at most so many.
    pub fn take_frozen(&self, frozen: &mut Frozen, pages_max: usize) -> Vec<FrozenPage> {
        let here = frozen.leaves.len().min(pages_max);
        let mut pages: Vec<FrozenPage> = frozen.leaves.drain(..here).collect();
        let here = frozen.upper.len().min(pages_max - pages.len());
        pages.extend(
            frozen
                .upper
                .drain(..here)
                .map(|(place, of, level, number)| {
                    let table = &self.tables[of];
                    let (identity, references) = table.references(level, number);
                    FrozenPage {
                        place,
                        identity,
                        bytes: Arc::new(references_page(references)),
                    }
                }),
        );
        pages
    }

    /// All pages of the freeze are written: they are pages as any.
    pub fn thaw(&mut self) {
        self.frozen = None;
        self.copied_pages = 0;
    }

    /// These places, too, are free once the superblock is written.
    pub fn retire(&mut self, places: Vec<Pba>) {
        self.retired.extend(places);
    }

    /// Places that are free once the superblock is written.
    pub fn take_retired(&mut self) -> Vec<Pba> {
        std::mem::take(&mut self.retired)
    }
}

impl Table {
    /// What a page of references is, and what it holds.
    fn references(&self, level: Level, number: usize) -> (PageIdentity, &[Reference]) {
        let (identity, below) = match level {
            Level::Directory => (self.kind.directory(number as u64), &self.leaves),
            Level::Root => (self.kind.root(number as u64), &self.directories),
        };
        let start = number * DIRECTORY_ENTRIES;
        (
            identity,
            &below[start..below.len().min(start + DIRECTORY_ENTRIES)],
        )
    }
}

/// A page of references.
fn references_page(references: &[Reference]) -> PageBytes {
    let mut bytes = [0; BLOCK_BYTES];
    for (number, reference) in references.iter().enumerate() {
        let at = entry_offset(number, 8);
        bytes[at..at + 8].copy_from_slice(&reference.bits().to_le_bytes());
    }
    bytes
}

/// The place that a page had is free after the commit, unless a pinned generation has it.
fn retire(retired: &mut Vec<Pba>, kind: TableKind, before: Reference, newest_pin: Option<u32>) {
    let kept = kind == TableKind::Map && newest_pin.is_some_and(|pin| before.generation() <= pin);
    if let Some(pba) = before.pba().filter(|_| !kept) {
        retired.push(pba);
    }
}

//! Tables on the backing store: loading directories, writing changed pages.

use std::sync::Arc;

use super::{DIRECTORY_ENTRIES, MapTree, TableKind, Tables, tree_shape};
use crate::address::{BLOCK_BYTES, Pba, Reference};
use crate::backing::Backing;
use crate::error::VolumeError;
use crate::page::{PageBytes, PageIdentity, entry_offset, first_damaged_sector, read_u64, seal};
use crate::superblock::TableRoot;

/// Bytes that are written at once, at most.
const RUN_BYTES: usize = 1 << 20;

/// Reads a page and looks at its checksums.
pub(super) fn read_page(
    backing: &dyn Backing,
    pba: Pba,
    identity: PageIdentity,
    bytes: &mut PageBytes,
) -> Result<(), VolumeError> {
    backing
        .read_at(pba.offset(), bytes)
        .map_err(VolumeError::reading(pba))?;
    match first_damaged_sector(identity, bytes) {
        None => Ok(()),
        Some(sector) => Err(VolumeError::Damaged(format!(
            "page {} of table {}, in block {}: sector {sector} has a wrong checksum",
            identity.page, identity.table, pba.0
        ))),
    }
}

/// Collects pages whose places follow each other, and writes them at once.
#[derive(Debug)]
pub struct PageSink<'a> {
    backing: &'a dyn Backing,
    start: Pba,
    bytes: Vec<u8>,
    written: u64,
}

impl<'a> PageSink<'a> {
    /// A sink that writes to `backing`.
    #[must_use]
    pub fn new(backing: &'a dyn Backing) -> Self {
        Self {
            backing,
            start: Pba(0),
            bytes: Vec::new(),
            written: 0,
        }
    }

    /// Takes a block for that place.
    ///
    /// # Errors
    /// When an earlier one can't be written.
    pub fn put(&mut self, pba: Pba, block: &[u8]) -> Result<(), VolumeError> {
        let next = self.start.0 + (self.bytes.len() / BLOCK_BYTES) as u64;
        if self.bytes.is_empty() || next != pba.0 || self.bytes.len() >= RUN_BYTES {
            self.write()?;
            self.start = pba;
        }
        self.bytes.extend_from_slice(block);
        Ok(())
    }

    /// Writes what is left; how many blocks were written in all.
    ///
    /// # Errors
    /// When they can't be.
    pub fn finish(mut self) -> Result<u64, VolumeError> {
        self.write()?;
        Ok(self.written)
    }

    fn write(&mut self) -> Result<(), VolumeError> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let context = format!("writing block {}", self.start.0);
        self.backing
            .write_at(self.start.offset(), &self.bytes)
            .map_err(VolumeError::io(context))?;
        self.written += (self.bytes.len() / BLOCK_BYTES) as u64;
        self.bytes.clear();
        Ok(())
    }
}

/// Reads the places that a page of references holds.
fn read_references(
    backing: &dyn Backing,
    page: Reference,
    identity: PageIdentity,
    into: &mut [Reference],
    physical_blocks: u64,
) -> Result<(), VolumeError> {
    let Some(pba) = page.pba() else {
        into.fill(Reference::NONE);
        return Ok(());
    };
    let mut bytes = [0; BLOCK_BYTES];
    read_page(backing, pba, identity, &mut bytes)?;
    for (number, reference) in into.iter_mut().enumerate() {
        *reference = Reference::from_bits(read_u64(&bytes, entry_offset(number, 8)));
        if reference.pba().is_some_and(|pba| pba.0 >= physical_blocks) {
            return Err(VolumeError::Damaged(format!(
                "block {} of the tables names a page beyond the end",
                pba.0
            )));
        }
    }
    Ok(())
}

/// Reads where all pages of a tree are, from its roots on.
fn read_tree(
    backing: &dyn Backing,
    kind: TableKind,
    entries: u64,
    roots: &[Reference],
    physical_blocks: u64,
) -> Result<MapTree, VolumeError> {
    let shape = tree_shape(kind, entries);
    let mut tree = MapTree {
        roots: roots.to_vec(),
        directories: vec![Reference::NONE; shape.directories],
        leaves: vec![Reference::NONE; shape.leaves],
    };
    tree.roots.resize(shape.roots, Reference::NONE);
    for (number, part) in tree.directories.chunks_mut(DIRECTORY_ENTRIES).enumerate() {
        let identity = kind.root(number as u64);
        read_references(backing, tree.roots[number], identity, part, physical_blocks)?;
    }
    for (number, part) in tree.leaves.chunks_mut(DIRECTORY_ENTRIES).enumerate() {
        let identity = kind.directory(number as u64);
        let page = tree.directories[number];
        read_references(backing, page, identity, part, physical_blocks)?;
    }
    Ok(tree)
}

/// Reads where all pages of a tree of the mapping are.
///
/// # Errors
/// When one can't be read, or is not what was written.
pub fn read_map_tree(
    backing: &dyn Backing,
    entries: u64,
    roots: &[Reference],
    physical_blocks: u64,
) -> Result<MapTree, VolumeError> {
    read_tree(backing, TableKind::Map, entries, roots, physical_blocks)
}

impl Tables {
    /// Loads where pages are, as the superblock has it.
    ///
    /// # Errors
    /// When directories can't be read, or are not what was written.
    pub fn load_directories(
        &mut self,
        roots: &[TableRoot],
        physical_blocks: u64,
    ) -> Result<(), VolumeError> {
        for root in roots {
            let Some(table) = self
                .tables
                .iter_mut()
                .find(|table| table.kind as u8 == root.table)
            else {
                return Err(VolumeError::Unsupported(format!("table {}", root.table)));
            };
            if root.entries != table.entries || root.roots.len() > table.roots.len() {
                return Err(VolumeError::Damaged(format!(
                    "table {} has {} entries where {} are expected",
                    root.table, root.entries, table.entries
                )));
            }
            let backing = &*self.backing;
            let tree = read_tree(
                backing,
                table.kind,
                table.entries,
                &root.roots,
                physical_blocks,
            )?;
            (table.roots, table.directories, table.leaves) =
                (tree.roots, tree.directories, tree.leaves);
        }
        Ok(())
    }

    /// What the superblock says of the tables.
    #[must_use]
    pub fn roots(&self) -> Vec<TableRoot> {
        self.tables
            .iter()
            .map(|table| TableRoot {
                table: table.kind as u8,
                entries: table.entries,
                roots: table.roots.clone(),
            })
            .collect()
    }

    /// The tree of the mapping as it is now; only pages that were committed are in it.
    #[must_use]
    pub fn map_tree(&self) -> MapTree {
        let table = &self.tables[TableKind::Map.index()];
        MapTree {
            roots: table.roots.clone(),
            directories: table.directories.clone(),
            leaves: table.leaves.clone(),
        }
    }

    /// Places of all pages, of all levels.
    pub fn places(&self) -> impl Iterator<Item = Pba> + '_ {
        self.tables.iter().flat_map(|table| {
            [&table.leaves, &table.directories, &table.roots]
                .into_iter()
                .flatten()
                .filter_map(|reference| reference.pba())
        })
    }

    /// Writes changed pages of these tables where they are, if all of them have a place that no pinned
    /// generation needs; otherwise does nothing and says `None`. Sectors of pages survive a crash one by one.
    ///
    /// # Errors
    /// When a page can't be written.
    pub fn write_in_place(&mut self, kinds: &[TableKind]) -> Result<Option<u64>, VolumeError> {
        let wanted = |number: usize| kinds.iter().any(|kind| kind.index() == number);
        let stays = |reference: Reference| {
            reference.pba().is_some()
                && self
                    .newest_pin
                    .is_none_or(|pin| reference.generation() > pin)
        };
        let possible = self
            .dirty
            .iter()
            .filter(|(number, _)| wanted(*number))
            .all(|&(number, page)| stays(self.tables[number].leaves[page]));
        if !possible {
            return Ok(None);
        }
        let (mut now, later): (Vec<_>, Vec<_>) =
            self.dirty.iter().partition(|(number, _)| wanted(*number));
        self.dirty = later;
        let place = |&(number, page): &(usize, usize)| self.tables[number].leaves[page].pba();
        now.sort_unstable_by_key(place);
        let backing = Arc::clone(&self.backing);
        let mut sink = PageSink::new(&*backing);
        for (number, page) in now {
            let table = &self.tables[number];
            let slot = &mut self.slots[table.slots[page] as usize];
            seal(table.kind.leaf(page as u64), Arc::make_mut(&mut slot.bytes));
            slot.dirty = false;
            if let Some(pba) = table.leaves[page].pba() {
                sink.put(pba, &slot.bytes[..])?;
            }
        }
        sink.finish().map(Some)
    }

    /// Makes pages that were never written part of the next commit, where a neighbour of theirs (one
    /// of the same directory) is: so that later changes of them can be written in place.
    ///
    /// # Errors
    /// Never in practice: nothing is read.
    pub fn claim_neighbours(&mut self, kinds: &[TableKind]) -> Result<(), VolumeError> {
        for kind in kinds {
            let number = kind.index();
            let mut directories: Vec<usize> = self
                .dirty
                .iter()
                .filter(|&&(of, page)| {
                    of == number && self.tables[of].leaves[page] == Reference::NONE
                })
                .map(|(_, page)| page / DIRECTORY_ENTRIES)
                .collect();
            directories.sort_unstable();
            directories.dedup();
            for directory in directories {
                let start = directory * DIRECTORY_ENTRIES;
                let end = self.tables[number]
                    .leaves
                    .len()
                    .min(start + DIRECTORY_ENTRIES);
                for page in start..end {
                    if self.tables[number].leaves[page] != Reference::NONE {
                        continue;
                    }
                    let slot = self.load(number, page)?;
                    if !std::mem::replace(&mut self.slots[slot].dirty, true) {
                        self.dirty.push((number, page));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a page of the mapping is at that place and was not changed since.
    #[must_use]
    pub fn is_map_leaf_at(&self, page: usize, place: Reference) -> bool {
        let table = &self.tables[TableKind::Map.index()];
        table.leaves[page] == place && !self.is_dirty(TableKind::Map, page)
    }

    /// A page of the mapping as it is now.
    ///
    /// # Errors
    /// When it can't be read, or is not what was written.
    pub fn copy_map_leaf(&mut self, page: usize, bytes: &mut PageBytes) -> Result<(), VolumeError> {
        let slot = self.load(TableKind::Map.index(), page)?;
        *bytes = *self.slots[slot].bytes;
        Ok(())
    }

    /// As [`read_map_leaf`].
    ///
    /// # Errors
    /// As there.
    pub fn read_map_leaf(
        &self,
        page: usize,
        place: Reference,
        bytes: &mut PageBytes,
    ) -> Result<(), VolumeError> {
        read_map_leaf(&*self.backing, page, place, bytes)
    }
}

/// Reads a page of entries of a tree of the mapping that is not the current one.
///
/// # Errors
/// When it can't be read, or is not what was written.
pub fn read_map_leaf(
    backing: &dyn Backing,
    page: usize,
    place: Reference,
    bytes: &mut PageBytes,
) -> Result<(), VolumeError> {
    match place.pba() {
        Some(pba) => read_page(backing, pba, TableKind::Map.leaf(page as u64), bytes),
        None => {
            bytes.fill(0);
            Ok(())
        }
    }
}

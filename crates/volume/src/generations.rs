//! Pinned generations: the mapping as it was, kept while the volume goes on.
//!
//! A reference knows the generation it was made in. Pinning one keeps its tree of the mapping (trees are
//! copied on write, [`crate::tables`]) and begins the next; from then on pages and blocks whose references are
//! as old are not given back when the newer mapping leaves them. So pinning costs a commit, and which blocks
//! changed between two generations is seen by comparing trees, where equal pages need not be read.
//! A generation is removed by giving back what the next newer tree and the next older one have not; that goes on
//! in steps, between which the volume is used, and how far it got is stored with every commit.

use std::ops::Range;
use std::sync::Arc;

use crate::address::{Lba, Reference};
use crate::backing::Backing;
use crate::core::{Core, page_references};
use crate::error::VolumeError;
use crate::page::{
    PAGE_SECTORS, PageBytes, PageIdentity, SECTOR_BYTES, SECTOR_PAYLOAD_BYTES, entries_per_page,
    read_u16, read_u32, read_u64, seal,
};
use crate::superblock::{GENERATION_PAGES_MAX, Superblock};
use crate::tables::{MapTree, TableKind, read_map_leaf, read_map_tree, tree_shape};

/// Number in checksums of the pages of the list.
const LIST_TABLE: u8 = 20;

/// Bytes of a generation in the list, without its roots.
const HEAD_BYTES: usize = 64;

/// Bytes of the list in a page.
const PAGE_PAYLOAD_BYTES: usize = PAGE_SECTORS * SECTOR_PAYLOAD_BYTES;

/// Tells generations apart that have the same number: a copy of a volume that goes its own way gives
/// numbers anew, and ids never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GenerationId(pub [u8; 16]);

/// Who pinned a generation and is to remove it: the repository that it was backed up to, say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct OwnerId(pub [u8; 16]);

impl OwnerId {
    /// A person, who removes it by hand.
    pub const NOBODY: OwnerId = OwnerId([0; 16]);
}

/// A pinned generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// Its number; higher is newer.
    pub number: u32,
    /// What tells it from those of copies of the volume.
    pub id: GenerationId,
    /// Who pinned it.
    pub owner: OwnerId,
    /// When it was pinned: seconds since 1970.
    pub created: u64,
    /// Blocks of the disk at that time.
    pub logical_blocks: u64,
    /// It is being removed, and the references of the first so many blocks are given back.
    pub removed_blocks: u64,
    /// Root pages of its tree of the mapping.
    pub(crate) roots: Vec<Reference>,
}

/// The list as pages with checksums.
pub(crate) fn encode(generations: &[Generation]) -> Vec<PageBytes> {
    if generations.is_empty() {
        return Vec::new();
    }
    let mut bytes = (generations.len() as u32).to_le_bytes().to_vec();
    for generation in generations {
        bytes.extend_from_slice(&generation.number.to_le_bytes());
        bytes.extend_from_slice(&(generation.roots.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&generation.created.to_le_bytes());
        bytes.extend_from_slice(&generation.logical_blocks.to_le_bytes());
        bytes.extend_from_slice(&generation.removed_blocks.to_le_bytes());
        bytes.extend_from_slice(&generation.id.0);
        bytes.extend_from_slice(&generation.owner.0);
        for root in &generation.roots {
            bytes.extend_from_slice(&root.bits().to_le_bytes());
        }
    }
    bytes
        .chunks(PAGE_PAYLOAD_BYTES)
        .enumerate()
        .map(|(number, part)| {
            let mut page = [0; crate::address::BLOCK_BYTES];
            for (sector, payload) in part.chunks(SECTOR_PAYLOAD_BYTES).enumerate() {
                let at = sector * SECTOR_BYTES;
                page[at..at + payload.len()].copy_from_slice(payload);
            }
            seal(list_page(number), &mut page);
            page
        })
        .collect()
}

pub(crate) fn list_page(number: usize) -> PageIdentity {
    PageIdentity {
        table: LIST_TABLE,
        page: number as u64,
    }
}

/// Reads the list.
pub(crate) fn load(
    backing: &dyn Backing,
    superblock: &Superblock,
) -> Result<Vec<Generation>, VolumeError> {
    let damaged = || VolumeError::Damaged("the list of pinned generations".to_owned());
    let mut bytes = Vec::new();
    for (number, place) in superblock.generation_pages.iter().enumerate() {
        let mut page = [0; crate::address::BLOCK_BYTES];
        let pba = place.pba().ok_or_else(damaged)?;
        backing
            .read_at(pba.offset(), &mut page)
            .map_err(VolumeError::reading(pba))?;
        if crate::page::first_damaged_sector(list_page(number), &page).is_some() {
            return Err(damaged());
        }
        for sector in page.chunks_exact(SECTOR_BYTES) {
            bytes.extend_from_slice(&sector[..SECTOR_PAYLOAD_BYTES]);
        }
    }
    let mut generations: Vec<Generation> = Vec::new();
    if bytes.is_empty() {
        return Ok(generations);
    }
    let count = read_u32(&bytes, 0);
    let mut at = 4;
    for _ in 0..count {
        let head = bytes.get(at..at + HEAD_BYTES).ok_or_else(damaged)?;
        let roots = usize::from(read_u16(head, 4));
        let stored = bytes
            .get(at + HEAD_BYTES..at + HEAD_BYTES + 8 * roots)
            .ok_or_else(damaged)?;
        let generation = Generation {
            number: read_u32(head, 0),
            id: GenerationId(id_at(head, 32)),
            owner: OwnerId(id_at(head, 48)),
            created: read_u64(head, 8),
            logical_blocks: read_u64(head, 16),
            removed_blocks: read_u64(head, 24),
            roots: stored
                .chunks_exact(8)
                .map(|bits| Reference::from_bits(read_u64(bits, 0)))
                .collect(),
        };
        let possible = generation.number < superblock.generation
            && generation.logical_blocks <= superblock.settings.logical_blocks()
            && generation.roots.len()
                == tree_shape(TableKind::Map, generation.logical_blocks).roots
            && generations.last().is_none_or(|before| {
                before.number < generation.number
                    && before.logical_blocks <= generation.logical_blocks
            })
            && generation.roots.iter().all(|root| {
                root.pba()
                    .is_none_or(|pba| pba.0 < superblock.physical_blocks)
            });
        if !possible {
            return Err(damaged());
        }
        generations.push(generation);
        at += HEAD_BYTES + 8 * roots;
    }
    Ok(generations)
}

fn id_at(bytes: &[u8], at: usize) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&bytes[at..at + 16]);
    id
}

/// References that are given back in one step of a removal, some more; and pages that are looked at.
const STEP_REFERENCES: usize = 256;
const STEP_PAGES: usize = 1024;

/// A pinned generation that is being removed.
#[derive(Debug)]
pub(crate) struct Removal {
    number: u32,
    tree: MapTree,
    newer: Newer,
    /// The next page of its tree to give back.
    page: usize,
}

/// What a generation is compared with.
#[derive(Debug)]
enum Newer {
    /// The tree of another generation.
    Tree(MapTree),
    /// The mapping as it is, committed or not.
    Current,
}

impl Core {
    /// Pins the disk as it is now; what was written before is in it.
    pub(crate) fn pin(
        &mut self,
        created: u64,
        id: GenerationId,
        owner: OwnerId,
    ) -> Result<Generation, VolumeError> {
        self.check_writable()?;
        self.flush()?;
        if self.persistence() == crate::settings::Persistence::Ram {
            return Err(VolumeError::Settings(
                "a volume of persistence `ram` has no generations".to_owned(),
            ));
        }
        if !self.has_room_for_trees(2) {
            return Err(VolumeError::Full(
                "no room for another tree of the mapping".to_owned(),
            ));
        }
        let number = self.superblock.generation;
        if number + 2 >= crate::address::GENERATIONS_MAX {
            return Err(VolumeError::Settings(
                "there were too many generations".to_owned(),
            ));
        }
        let generation = self.whole(|core| {
            core.commit(false)?;
            let generation = Generation {
                number,
                id,
                owner,
                created,
                logical_blocks: core.settings().logical_blocks(),
                removed_blocks: 0,
                roots: core.tables.map_tree().roots,
            };
            core.generations.push(generation.clone());
            Ok(generation)
        })?;
        if encode(&self.generations).len() > GENERATION_PAGES_MAX {
            self.generations.pop();
            return Err(VolumeError::Settings(format!(
                "{} generations are pinned: remove some first",
                self.generations.len()
            )));
        }
        self.whole(|core| {
            core.superblock.generation += 1;
            core.tables
                .set_generations(core.superblock.generation, core.newest_pin());
            core.commit(false)
        })?;
        Ok(generation)
    }

    fn generation(&self, number: u32) -> Result<usize, VolumeError> {
        self.generations
            .iter()
            .position(|generation| generation.number == number)
            .ok_or(VolumeError::NoGeneration(number))
    }

    /// Whether a generation is pinned still.
    pub(crate) fn check_pinned(&self, number: u32) -> Result<(), VolumeError> {
        self.check_usable()?;
        match self.generations[self.generation(number)?].removed_blocks {
            0 => Ok(()),
            _ => Err(VolumeError::NoGeneration(number)),
        }
    }

    /// The tree of the mapping of a pinned generation, and how many blocks it has.
    pub(crate) fn generation_tree(&self, number: u32) -> Result<(MapTree, u64), VolumeError> {
        let generation = &self.generations[self.generation(number)?];
        if generation.removed_blocks > 0 {
            return Err(VolumeError::NoGeneration(number));
        }
        let tree = self.tree_of(generation)?;
        Ok((tree, generation.logical_blocks))
    }

    fn tree_of(&self, generation: &Generation) -> Result<MapTree, VolumeError> {
        read_map_tree(
            &*self.backing,
            generation.logical_blocks,
            &generation.roots,
            self.superblock.physical_blocks,
        )
    }

    /// What is next newer than the generation at `position`: another generation's tree, or the mapping as it
    /// is now.
    fn newer(&self, position: usize) -> Result<Newer, VolumeError> {
        match self.generations.get(position + 1) {
            Some(newer) => Ok(Newer::Tree(self.tree_of(newer)?)),
            None => Ok(Newer::Current),
        }
    }

    fn older_pin(&self, position: usize) -> Option<u32> {
        let before = position.checked_sub(1)?;
        Some(self.generations[before].number)
    }

    /// Visits references that only pinned generations hold, each once: for each generation those that the
    /// next newer tree does not have.
    pub(crate) fn visit_exclusive(
        &mut self,
        visit: &mut dyn FnMut(&mut Self, Lba, Reference) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        for position in 0..self.generations.len() {
            let generation = self.generations[position].clone();
            let (tree, newer) = (self.tree_of(&generation)?, self.newer(position)?);
            let older = self.older_pin(position);
            for page in 0..tree.leaves.len() {
                let first = (page * entries_per_page(8)) as u64;
                for (number, reference) in self.not_in_newer(&tree, &newer, page, None)? {
                    let lba = first + number as u64;
                    // What an older one has, too, was not given back, and is counted here alone.
                    let is_older = older.is_some_and(|pin| reference.generation() <= pin);
                    if lba >= generation.removed_blocks || is_older {
                        visit(self, Lba(lba), reference)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// References in a page of a tree that are neither in the next newer one, nor in the pinned generation
    /// `older`: a reference that is as old as that one is there, too. Entry, reference.
    fn not_in_newer(
        &mut self,
        tree: &MapTree,
        newer: &Newer,
        page: usize,
        older: Option<u32>,
    ) -> Result<Vec<(usize, Reference)>, VolumeError> {
        let mine = tree.leaves[page];
        let is_older =
            |reference: Reference| older.is_some_and(|pin| reference.generation() <= pin);
        if mine == Reference::NONE || is_older(mine) {
            return Ok(Vec::new());
        }
        let mut theirs = [0; crate::address::BLOCK_BYTES];
        match newer {
            Newer::Tree(newer) if newer.leaves[page] == mine => return Ok(Vec::new()),
            Newer::Tree(newer) => {
                self.tables
                    .read_map_leaf(page, newer.leaves[page], &mut theirs)?;
            }
            Newer::Current if self.tables.is_map_leaf_at(page, mine) => return Ok(Vec::new()),
            Newer::Current => self.tables.copy_map_leaf(page, &mut theirs)?,
        }
        let mut bytes = [0; crate::address::BLOCK_BYTES];
        self.tables.read_map_leaf(page, mine, &mut bytes)?;
        Ok(page_references(&bytes)
            .zip(page_references(&theirs))
            .enumerate()
            .filter(|(_, (mine, theirs))| {
                mine != theirs && *mine != Reference::NONE && !is_older(*mine)
            })
            .map(|(number, (mine, _))| (number, mine))
            .collect())
    }

    /// Goes on with removals that a crash ended: what of a generation was given back must not be counted
    /// as its own.
    pub(crate) fn finish_removals(&mut self) -> Result<(), VolumeError> {
        while let Some(generation) = self.generations.iter().find(|pin| pin.removed_blocks > 0) {
            let mut removal = self.begin_removal(generation.number)?;
            while self.removal_step(&mut removal)? {}
            self.whole(Self::finish_commit)?;
        }
        Ok(())
    }

    /// Begins to remove a pinned generation. Until it is removed no other is, and none is pinned.
    pub(crate) fn begin_removal(&self, number: u32) -> Result<Removal, VolumeError> {
        self.check_writable()?;
        let position = self.generation(number)?;
        let generation = &self.generations[position];
        Ok(Removal {
            number,
            tree: self.tree_of(generation)?,
            newer: self.newer(position)?,
            page: (generation.removed_blocks / entries_per_page(8) as u64) as usize,
        })
    }

    /// Gives back some of what a generation alone holds. `false`: all of it is, and the generation is
    /// gone with the commit that began.
    pub(crate) fn removal_step(&mut self, removal: &mut Removal) -> Result<bool, VolumeError> {
        self.check_writable()?;
        self.whole(|core| core.removal_step_whole(removal))
    }

    fn removal_step_whole(&mut self, removal: &mut Removal) -> Result<bool, VolumeError> {
        let position = self.generation(removal.number)?;
        if self.tables.dirty_pages() >= self.tables.dirty_pages_max() / 2 {
            self.commit_aside()?;
        }
        let older = self.older_pin(position);
        let (mut dropped, mut looked_at) = (0, 0);
        while removal.page < removal.tree.leaves.len()
            && dropped < STEP_REFERENCES
            && looked_at < STEP_PAGES
        {
            let page = removal.page;
            for (_, reference) in self.not_in_newer(&removal.tree, &removal.newer, page, older)? {
                if let Some(pba) = reference.pba() {
                    self.drop_reference(pba)?;
                    dropped += 1;
                }
            }
            removal.page += 1;
            looked_at += 1;
        }
        self.tables.trim_cache();
        let removed_blocks = removal.page as u64 * entries_per_page(8) as u64;
        self.generations[position].removed_blocks = removed_blocks;
        if removal.page < removal.tree.leaves.len() {
            return Ok(true);
        }
        self.forget_generation(position, removal);
        self.commit_aside()?;
        Ok(false)
    }

    /// Nothing but pages of its tree is a generation's own any more.
    fn forget_generation(&mut self, position: usize, removal: &Removal) {
        let older = self.older_pin(position);
        let current;
        let newer = match &removal.newer {
            Newer::Tree(tree) => tree,
            // A page that was changed and has its old place still gives that back when it gets another.
            Newer::Current => {
                current = self.tables.map_tree();
                &current
            }
        };
        let exclusive = |mine: &[Reference], theirs: &[Reference]| {
            mine.iter()
                .enumerate()
                .filter(|(number, page)| {
                    theirs.get(*number) != Some(*page)
                        && older.is_none_or(|pin| page.generation() > pin)
                })
                .filter_map(|(_, page)| page.pba())
                .collect::<Vec<_>>()
        };
        let tree = &removal.tree;
        let mut pages = exclusive(&tree.leaves, &newer.leaves);
        pages.extend(exclusive(&tree.directories, &newer.directories));
        pages.extend(exclusive(&tree.roots, &newer.roots));
        self.generations.remove(position);
        self.tables
            .set_generations(self.superblock.generation, self.newest_pin());
        self.tables.retire(pages);
    }

    /// A pinned generation beside a newer one, or the disk as it is now.
    pub(crate) fn comparison(
        &mut self,
        from: u32,
        to: Option<u32>,
    ) -> Result<Comparison, VolumeError> {
        let (old, old_blocks) = self.generation_tree(from)?;
        let (new, new_blocks) = match to {
            Some(number) => self.generation_tree(number)?,
            None => {
                self.flush()?;
                if !self.is_read_only() {
                    self.whole(|core| core.commit(false))?;
                }
                (self.tables.map_tree(), self.settings().logical_blocks())
            }
        };
        Ok(Comparison {
            backing: Arc::clone(&self.backing),
            old,
            new,
            blocks: new_blocks.max(old_blocks),
        })
    }
}

/// Two trees of the mapping that are compared. Pages of pinned ones stay where they are, so nobody has to be held up for
/// that.
pub(crate) struct Comparison {
    backing: Arc<dyn Backing>,
    old: MapTree,
    new: MapTree,
    blocks: u64,
}

impl Comparison {
    /// Calls `visit` with ranges of blocks of the disk that differ: ascending, apart from each other.
    pub(crate) fn visit(
        &self,
        visit: &mut dyn FnMut(Range<u64>) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        let per_page = entries_per_page(8);
        let mut open: Option<Range<u64>> = None;
        let mut bytes = [[0; crate::address::BLOCK_BYTES]; 2];
        for page in 0..self.new.leaves.len().max(self.old.leaves.len()) {
            let place = |tree: &MapTree| tree.leaves.get(page).copied().unwrap_or_default();
            let (before, after) = (place(&self.old), place(&self.new));
            if before == after {
                continue;
            }
            read_map_leaf(&*self.backing, page, before, &mut bytes[0])?;
            read_map_leaf(&*self.backing, page, after, &mut bytes[1])?;
            let pairs = page_references(&bytes[0]).zip(page_references(&bytes[1]));
            for (number, (before, after)) in pairs.enumerate() {
                let lba = (page * per_page + number) as u64;
                if before == after || lba >= self.blocks {
                    continue;
                }
                match &mut open {
                    Some(range) if range.end == lba => range.end += 1,
                    _ => {
                        if let Some(range) = open.replace(lba..lba + 1) {
                            visit(range)?;
                        }
                    }
                }
            }
        }
        open.map_or(Ok(()), visit)
    }
}

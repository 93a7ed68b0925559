//! Opening a volume: its tables, and after a crash the windows since the last commit.
//!
//! Only the zones that the superblock names as uncommitted are read, so that this takes as long as they
//! are large and not as long as the volume is. Windows are taken in order. A window counts when all its parts are
//! there and, unless a later window says that it was durable before, all its new blocks have their fingerprints;
//! the first that does not count ends it: none that a client's flush covered can be lost by that. What a
//! disk of persistence `ordered` has instead is its mapping: references and fingerprints are counted again from it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Core;
use crate::address::{BLOCK_BYTES, Pba, Reference};
use crate::backing::Backing;
use crate::check::CheckReport;
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::generations;
use crate::index;
use crate::page::read_u64;
use crate::records::{self, BlockRecord};
use crate::settings::{OpenOptions, Persistence};
use crate::superblock::Superblock;
use crate::tables::{TableKind, read_map_tree};
use crate::window::parts::{self, Entry, Part};
use crate::zones::{Zone, ZoneKind};

/// What was found when a volume was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Blocks that were read to find windows.
    pub blocks_scanned: u64,
    /// Windows that were not in the tables yet.
    pub windows_replayed: u64,
    /// Windows that were not whole, or came after one that was not: nothing a flush covered.
    pub windows_discarded: u64,
    /// Whether references were counted again from the mapping.
    pub rebuilt: bool,
}

impl Core {
    /// Opens a volume.
    pub(crate) fn open(
        backing: Arc<dyn Backing>,
        options: &OpenOptions,
    ) -> Result<(Self, Recovery), VolumeError> {
        let superblock = read_superblock(&*backing)?;
        let persistence = superblock.settings.persistence;
        if persistence == Persistence::Ram && !options.allow_volatile {
            return Err(VolumeError::Settings(
                "a volume of persistence `ram` loses everything when it is closed; say that this is meant (--volatile)"
                    .to_owned(),
            ));
        }
        let bytes = backing
            .size_bytes()
            .map_err(VolumeError::io("asking for the size of the backing store"))?;
        if bytes < superblock.physical_blocks * BLOCK_BYTES as u64 {
            return Err(VolumeError::Damaged(format!(
                "the backing store has {bytes} bytes where the volume takes {}",
                superblock.physical_blocks * BLOCK_BYTES as u64
            )));
        }
        let mut core = Self::new(backing, superblock, options.cache_bytes, options.read_only);
        let mut recovery = Recovery::default();
        if persistence == Persistence::Ram {
            core.superblock.mapped_blocks = 0;
        } else {
            core.load()?;
            if !core.superblock.clean && persistence == Persistence::Thin {
                recovery = core.replay()?;
            }
            if !core.superblock.clean && persistence == Persistence::Ordered {
                core.rebuild()?;
                recovery.rebuilt = true;
            }
        }
        if core
            .settings()
            .journal
            .parse::<crate::journal::JournalSetting>()
            .is_err()
        {
            return Err(VolumeError::Damaged(format!(
                "where the journal is: {:?}",
                core.settings().journal
            )));
        }
        if !options.read_only {
            core.whole(|core| core.commit(false))?;
            core.finish_removals()?;
        }
        core.start_journal()?;
        Ok((core, recovery))
    }

    /// What a superblock names, for reading: while a volume goes on that holds it ([`Core::hold`]).
    pub(crate) fn open_committed(
        backing: Arc<dyn Backing>,
        superblock: Superblock,
        cache_bytes: u64,
    ) -> Result<Self, VolumeError> {
        let mut core = Self::new(backing, superblock, cache_bytes, true);
        core.load()?;
        Ok(core)
    }

    /// Loads directories, zones and generations.
    fn load(&mut self) -> Result<(), VolumeError> {
        let physical_blocks = self.superblock.physical_blocks;
        let roots = self.superblock.tables.clone();
        self.tables.load_directories(&roots, physical_blocks)?;
        self.generations = generations::load(&*self.backing, &self.superblock)?;
        self.tables
            .set_generations(self.superblock.generation, self.newest_pin());
        for number in 0..self.zones.count() {
            let Some(bytes) = self.tables.entry(TableKind::Zones, number as u64)? else {
                continue;
            };
            let mut zone = Zone::decode(bytes)
                .filter(|zone| u32::from(zone.free_blocks) <= self.zones.zone_blocks())
                .ok_or_else(|| {
                    VolumeError::Damaged(format!("zone {number} is of no known kind"))
                })?;
            // An entry that was never written is zeros.
            if zone.kind == ZoneKind::Free {
                zone.free_blocks = self.zones.zone_blocks() as u16;
            }
            if number != 0 {
                self.zones.set(number, zone);
            }
        }
        self.zones.all_written();
        self.load_page_space()
    }

    /// Finds out which blocks of zones of pages are taken.
    fn load_page_space(&mut self) -> Result<(), VolumeError> {
        let zone_blocks = self.zones.zone_blocks();
        for number in 1..self.zones.count() {
            if self.zones.get(number).kind == ZoneKind::Pages {
                self.space.add_zone(number, zone_blocks);
            }
        }
        let mut places: HashSet<Pba> = self.tables.places().collect();
        places.extend(
            self.superblock
                .generation_pages
                .iter()
                .filter_map(|page| page.pba()),
        );
        for generation in &self.generations {
            let tree = read_map_tree(
                &*self.backing,
                generation.logical_blocks,
                &generation.roots,
                self.superblock.physical_blocks,
            )?;
            for level in [&tree.roots, &tree.directories, &tree.leaves] {
                places.extend(level.iter().filter_map(|page| page.pba()));
            }
        }
        for pba in places {
            let zone = self.zones.of(pba);
            let block = (pba.0 - self.zones.first_block(zone).0) as usize;
            if !self.space.claim(zone, block) {
                return Err(VolumeError::Damaged(format!(
                    "block {} is a page of metadata in a zone of something else",
                    pba.0
                )));
            }
        }
        for zone in self.space.drop_empty_zones() {
            self.zones.set(
                zone,
                Zone {
                    kind: ZoneKind::Free,
                    free_blocks: zone_blocks as u16,
                    ..self.zones.get(zone)
                },
            );
        }
        Ok(())
    }

    /// Takes windows back that are not in the tables yet.
    fn replay(&mut self) -> Result<Recovery, VolumeError> {
        let mut recovery = Recovery::default();
        let windows = self.read_windows(&mut recovery)?;
        let durable = windows
            .values()
            .flatten()
            .map(|part| part.header.durable_window)
            .max()
            .unwrap_or(0);
        let newest = windows.keys().next_back().copied().unwrap_or(self.window);
        while let Some(parts) = windows.get(&(self.window + 1)) {
            let was_durable = self.window < durable;
            let whole = whole_window(parts);
            let counts = match &whole {
                Some(entries) => {
                    self.check_entries(entries)?;
                    was_durable || self.has_all_blocks(entries)?
                }
                None => false,
            };
            let Some(entries) = whole.filter(|_| counts) else {
                break;
            };
            for entry in entries {
                if let Entry::New { pba, .. } = entry {
                    self.adopt(pba)?;
                }
                self.apply(&entry)?;
            }
            self.window += 1;
            recovery.windows_replayed += 1;
        }
        if self.window < durable {
            return Err(VolumeError::Damaged(format!(
                "window {} was durable and is not whole any more; the windows to {newest} come after it",
                self.window + 1
            )));
        }
        recovery.windows_discarded = newest.saturating_sub(self.window);
        // Numbers that were used are not used again: parts that were discarded stay where they are.
        self.window = self.window.max(newest);
        self.durable_window = self.window;
        Ok(recovery)
    }

    /// Reads the uncommitted zones: parts of windows since the last commit.
    fn read_windows(
        &self,
        recovery: &mut Recovery,
    ) -> Result<BTreeMap<u64, Vec<Part>>, VolumeError> {
        let zone_bytes = self.zones.zone_blocks() as usize * BLOCK_BYTES;
        let mut bytes = vec![0; zone_bytes];
        let mut windows: BTreeMap<u64, Vec<Part>> = BTreeMap::new();
        for &zone in &self.superblock.uncommitted_zones {
            let first = self.zones.first_block(zone as usize);
            self.backing
                .read_at(first.offset(), &mut bytes)
                .map_err(VolumeError::reading(first))?;
            for (number, block) in bytes.chunks_exact(BLOCK_BYTES).enumerate() {
                let pba = Pba(first.0 + number as u64);
                recovery.blocks_scanned += 1;
                if let Some(part) = parts::decode(block, &self.superblock.uuid, pba)
                    && part.header.window > self.superblock.committed_window
                {
                    windows.entry(part.header.window).or_default().push(part);
                }
            }
        }
        Ok(windows)
    }

    /// Whether entries name what there is.
    fn check_entries(&self, entries: &[Entry]) -> Result<(), VolumeError> {
        let logical = self.settings().logical_blocks();
        let possible = |pba: Pba| {
            pba.0 < self.superblock.physical_blocks
                && self.zones.of(pba) != 0
                && self.zones.get(self.zones.of(pba)).kind != ZoneKind::Pages
        };
        for entry in entries {
            let fine = match *entry {
                Entry::New { lba, pba, .. } | Entry::Duplicate { lba, pba, .. } => {
                    lba.0 < logical && possible(pba)
                }
                Entry::Unmap { lba, blocks } => {
                    lba.0.checked_add(blocks).is_some_and(|end| end <= logical)
                }
            };
            if !fine {
                return Err(VolumeError::Damaged(format!(
                    "window {} says what can't be: {entry:?}",
                    self.window + 1
                )));
            }
        }
        Ok(())
    }

    /// Whether every new block of a window has the bytes it should have.
    fn has_all_blocks(&self, entries: &[Entry]) -> Result<bool, VolumeError> {
        let mut bytes = vec![0; BLOCK_BYTES];
        for entry in entries {
            let Entry::New {
                pba, fingerprint, ..
            } = entry
            else {
                continue;
            };
            match self.read_stored(*pba, &mut bytes) {
                Ok(()) if self.fingerprinter.of(&bytes) == *fingerprint => {}
                Ok(()) | Err(VolumeError::Damaged(_)) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// A zone that was taken after the last commit holds data.
    fn adopt(&mut self, pba: Pba) -> Result<(), VolumeError> {
        if records::references(&mut self.tables, pba)? != 0 {
            return Err(VolumeError::Damaged(format!(
                "window {} wrote to block {}, which was in use",
                self.window + 1,
                pba.0
            )));
        }
        let number = self.zones.of(pba);
        let zone = self.zones.get(number);
        if zone.kind == ZoneKind::Free {
            let kind = ZoneKind::Data;
            self.zones.set(number, Zone { kind, ..zone });
        }
        Ok(())
    }

    /// Counts references again, and from that what is free, from the mapping. Pages that are right already are
    /// not changed: a store that is full has no room for all of them twice.
    fn rebuild(&mut self) -> Result<(), VolumeError> {
        let passes = self.passes();
        let mut counted = Vec::new();
        // Zones first: commits take pages from those that are free.
        for range in &passes {
            counted = self.count_for_rebuild(range.clone())?;
            self.rebuild_zones(range.start, &counted);
        }
        for range in &passes {
            if passes.len() > 1 {
                counted = self.count_for_rebuild(range.clone())?;
            }
            self.rebuild_records(range.start, &counted)?;
        }
        Ok(())
    }

    fn count_for_rebuild(&mut self, range: std::ops::Range<u64>) -> Result<Vec<u32>, VolumeError> {
        let mut report = CheckReport::default();
        let first_pass = range.start == 0;
        let counted = self.count_references(range, &mut report)?;
        if let Some(problem) = report.problems.into_iter().next() {
            return Err(VolumeError::Damaged(problem));
        }
        if first_pass {
            self.superblock.mapped_blocks = report.mapped_blocks;
        }
        Ok(counted)
    }

    fn rebuild_zones(&mut self, start: u64, counted: &[u32]) {
        let zone_blocks = self.zones.zone_blocks() as usize;
        for (number, counts) in counted.chunks_exact(zone_blocks).enumerate() {
            let number = self.zones.of(Pba(start)) + number;
            if number == 0 || self.space.has_zone(number) {
                continue;
            }
            let used = counts.iter().filter(|count| **count > 0).count();
            let before = self.zones.get(number);
            let kind = match before.kind {
                _ if used == 0 => ZoneKind::Free,
                ZoneKind::Free => ZoneKind::Data,
                kind => kind,
            };
            let free_blocks = (zone_blocks - used) as u16;
            let zone = Zone {
                kind,
                free_blocks,
                ..before
            };
            self.zones.set(number, zone);
        }
    }

    fn rebuild_records(&mut self, start: u64, counted: &[u32]) -> Result<(), VolumeError> {
        for (number, &count) in counted.iter().enumerate() {
            let pba = Pba(start + number as u64);
            if count == 0 && self.tables.is_absent(TableKind::Blocks, pba.0) {
                continue;
            }
            let before = records::record(&mut self.tables, pba)?;
            let is_known = before.fingerprint != Fingerprint::UNKNOWN;
            let mut now = BlockRecord {
                references: count,
                ..before
            };
            if count == 0 {
                now = BlockRecord::default();
            }
            if now != before {
                records::set_record(&mut self.tables, pba, &now)?;
            }
            if self.settings().policy.is_full() && is_known {
                if count == 0 {
                    index::remove(&mut self.tables, before.fingerprint, pba)?;
                } else if !index::contains(&mut self.tables, before.fingerprint, pba)? {
                    index::insert(&mut self.tables, before.fingerprint, pba)?;
                }
            }
            if !self.is_read_only() && self.tables.dirty_pages() >= self.tables.dirty_pages_max() {
                self.commit(false)?;
            }
            self.tables.trim_cache();
        }
        Ok(())
    }
}

/// Reads the superblock that counts.
pub(crate) fn read_superblock(backing: &dyn Backing) -> Result<Superblock, VolumeError> {
    let mut copies = vec![0; 2 * BLOCK_BYTES];
    backing.read_at(0, &mut copies).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return VolumeError::NotAVolume("it is too short".to_owned());
        }
        VolumeError::io("reading the superblock")(error)
    })?;
    let (first, second) = copies.split_at(BLOCK_BYTES);
    Superblock::choose(first, second)
}

/// The entries of a window, if all its parts are there.
fn whole_window(parts: &[Part]) -> Option<Vec<Entry>> {
    let header = parts.first()?.header;
    let mut sorted: Vec<&Part> = parts.iter().collect();
    sorted.sort_by_key(|part| part.part);
    let numbered = sorted
        .iter()
        .enumerate()
        .all(|(number, part)| usize::from(part.part) == number && part.header == header);
    if !numbered || sorted.len() != usize::from(header.parts) {
        return None;
    }
    let entries: Vec<Entry> = sorted
        .iter()
        .flat_map(|part| part.entries.iter().copied())
        .collect();
    (entries.len() == header.entries as usize).then_some(entries)
}

/// The references in a page of the mapping.
pub(crate) fn page_references(
    bytes: &crate::page::PageBytes,
) -> impl Iterator<Item = Reference> + '_ {
    let count = crate::page::entries_per_page(8);
    (0..count)
        .map(|number| Reference::from_bits(read_u64(bytes, crate::page::entry_offset(number, 8))))
}

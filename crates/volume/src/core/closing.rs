//! Closing the window: duplicates are found, new blocks get places, everything is written.
//!
//! Changes are taken in the order in which clients sent them. In persistence `thin` new blocks are
//! compressed, one after the other, until those that are have room for all entries of the window (Ni,
//! §5.2.1); compressed ones go to a compressed zone, with the entries, all others to a data zone as they
//! are. What has no room goes to parts of entries alone. One window, one sync, and none where no client asks.

use super::Core;
use crate::address::{BLOCK_BYTES, Lba, Pba};
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::index;
use crate::records;
use crate::settings::Persistence;
use crate::tables::{PageSink, TableKind};
use crate::window::buffer::Change;
use crate::window::parts::{self, Entry, PART_ENTRIES_MAX, WindowHeader};

/// Blocks of a window that may turn out not to be compressible before no more are tried; fewer after a
/// window where none was.
pub(super) const FAILURES_MAX: usize = 16;

/// A compressed block is worth it when so many entries fit beside it.
const ENTRIES_MIN: usize = 4;

/// Parts that so many entries take when no block is compressed.
fn parts_alone(entries: usize) -> usize {
    entries.div_ceil(PART_ENTRIES_MAX)
}

/// What closing a window finds out.
#[derive(Debug, Default)]
pub(super) struct Closing {
    pub(super) entries: Vec<Entry>,
    /// Blocks as they are: where to, and where in the window.
    plain: Vec<(Pba, u32)>,
    /// Compressed blocks.
    compressed: Vec<(Pba, Vec<u8>)>,
    /// Where new blocks are, until they are written: to compare duplicates with.
    placed: Vec<(Pba, u32)>,
    /// Entries that fit beside compressed blocks.
    room: usize,
    failures: usize,
}

impl Core {
    /// Closes the open window, if anything is in it.
    pub(crate) fn close_window(&mut self) -> Result<(), VolumeError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.check_usable()?;
        self.whole(Self::close_whole)
    }

    fn close_whole(&mut self) -> Result<(), VolumeError> {
        let live = |change: &&Change| **change != Change::Gone;
        let expected = self.buffer.changes().iter().filter(live).count();
        self.prepare_window(expected)?;
        let mut closing = Closing::default();
        let changes = self.buffer.changes().to_vec();
        let wants_room = self.persistence() == Persistence::Thin && !self.is_short();
        for change in changes {
            let entry = match change {
                Change::Gone => continue,
                Change::Unmap { lba, blocks } => {
                    if let Some(pool) = &mut self.pool {
                        pool.forget_range(&(lba.0..lba.0 + blocks));
                    }
                    Entry::Unmap { lba, blocks }
                }
                Change::Write {
                    lba,
                    fingerprint,
                    place,
                } => self.decide(
                    lba,
                    fingerprint,
                    place,
                    if wants_room { expected } else { 0 },
                    &mut closing,
                )?,
            };
            self.apply(&entry)?;
            closing.entries.push(entry);
        }
        self.finish_window(&closing)
    }

    /// Commits if a window of so many entries could not be written, or its pages not be kept. Commits
    /// begin while there is room for windows still, to be done aside.
    pub(super) fn prepare_window(&mut self, entries: usize) -> Result<(), VolumeError> {
        let thin = self.persistence() == Persistence::Thin;
        // A volume that was closed is not from now on: a crash must be noticed.
        if self.superblock.clean {
            return self.commit(false);
        }
        let changed = 4 * entries + 3 * self.buffer.unmapped_blocks() as usize;
        self.pace_commit(changed)?;
        let parts = (2 * parts_alone(entries) + 8) as u64;
        let is_late = |core: &Self| thin && core.part_places() < parts;
        let is_large =
            |core: &Self| core.tables.dirty_pages() + changed > core.tables.dirty_pages_max();
        if is_late(self) || is_large(self) {
            self.finish_commit()?;
        }
        if is_late(self) {
            self.commit(false)?;
        }
        let zone_blocks = u64::from(self.zones.zone_blocks());
        let named = u64::from(self.settings().commit_zones) * zone_blocks;
        let is_due = thin && self.part_places() < parts + named / 8;
        if is_large(self) || (is_due && !self.is_committing() && self.is_roomy()) {
            self.commit_aside()?;
        }
        Ok(())
    }

    /// Writes a window whose entries are in the tables already.
    pub(super) fn finish_window(&mut self, closing: &Closing) -> Result<(), VolumeError> {
        if !closing.compressed.is_empty() {
            self.failures_max = FAILURES_MAX;
        } else if closing.failures > 0 {
            self.failures_max = (self.failures_max / 2).max(1);
        }
        self.window += 1;
        self.counters.windows += 1;
        match self.persistence() {
            Persistence::Thin => self.write_thin(closing)?,
            Persistence::Ordered => self.write_ordered(closing)?,
            Persistence::Cow => {
                self.write_plain(closing)?;
                self.buffer.clear();
                self.commit(false)?;
            }
            Persistence::Ram => {
                self.write_plain(closing)?;
                self.free_freed();
                self.unsynced = true;
            }
        }
        self.buffer.clear();
        self.tables.trim_cache();
        Ok(())
    }

    /// What happens to a block that was written: a reference to one that is there, or a place.
    fn decide(
        &mut self,
        lba: Lba,
        fingerprint: Fingerprint,
        place: u32,
        room_wanted: usize,
        closing: &mut Closing,
    ) -> Result<Entry, VolumeError> {
        let mut key = None;
        if fingerprint == Fingerprint::ZEROS {
            if let Some(pool) = &mut self.pool {
                pool.forget(lba);
            }
            return Ok(Entry::Unmap { lba, blocks: 1 });
        }
        if let Some(pool) = &mut self.pool {
            let found = pool.key(fingerprint, self.buffer.bytes_at(place));
            key = Some(found);
            pool.forget(lba);
        }
        let in_journal = self.pool.as_ref().is_some_and(|pool| pool.is_journal(lba));
        self.counters.journal_blocks_written += u64::from(in_journal);
        if let Some(pba) = self.find_duplicate(fingerprint, key, place, in_journal, closing)? {
            self.counters.duplicate_hits += 1;
            return Ok(Entry::Duplicate {
                lba,
                pba,
                fingerprint,
            });
        }
        let pba = self.place_new(place, room_wanted, closing)?;
        if in_journal
            && let Some(pool) = &mut self.pool
            && let Some(key) = key
        {
            pool.insert(lba, key);
        }
        closing.placed.push((pba, place));
        Ok(Entry::New {
            lba,
            pba,
            fingerprint,
        })
    }

    /// A block with the same bytes. Home blocks look into the journal first, blocks of the journal do not;
    /// then, where the policy is full, everywhere.
    fn find_duplicate(
        &mut self,
        fingerprint: Fingerprint,
        key: Option<Fingerprint>,
        place: u32,
        in_journal: bool,
        closing: &Closing,
    ) -> Result<Option<Pba>, VolumeError> {
        if let (Some(key), false) = (key, in_journal)
            && let Some(pba) = self.find_in_journal(key, fingerprint, place, closing)?
        {
            return Ok(Some(pba));
        }
        if !self.settings().policy.is_full() {
            return Ok(None);
        }
        let (candidates, count) = index::candidates(&mut self.tables, fingerprint)?;
        for &pba in candidates[..count].iter().rev() {
            if pba.0 < self.superblock.physical_blocks
                && self.has_content(pba, fingerprint, place, closing)?
            {
                return Ok(Some(pba));
            }
        }
        Ok(None)
    }

    fn find_in_journal(
        &mut self,
        key: Fingerprint,
        fingerprint: Fingerprint,
        place: u32,
        closing: &Closing,
    ) -> Result<Option<Pba>, VolumeError> {
        let Some(pool) = &self.pool else {
            return Ok(None);
        };
        let published = pool.kind() == crate::pool::PoolKind::Prefix64;
        let Some(source) = pool.find(key) else {
            return Ok(None);
        };
        let Some(pba) = self.mapped(source)?.pba() else {
            return Ok(None);
        };
        // As published nothing else is looked at.
        if !published && !self.has_content(pba, fingerprint, place, closing)? {
            return Ok(None);
        }
        if let Some(pool) = &mut self.pool {
            pool.forget(source);
        }
        self.counters.journal_hits += 1;
        Ok(Some(pba))
    }

    /// Whether a block that is in use has these bytes.
    fn has_content(
        &mut self,
        pba: Pba,
        fingerprint: Fingerprint,
        place: u32,
        closing: &Closing,
    ) -> Result<bool, VolumeError> {
        let record = records::record(&mut self.tables, pba)?;
        if record.references == 0
            || record.references == u32::MAX
            || record.fingerprint != fingerprint
        {
            return Ok(false);
        }
        if !self.fingerprinter.kind().needs_comparison() {
            return Ok(true);
        }
        let wanted = self.buffer.bytes_at(place);
        if let Some((_, there)) = closing.placed.iter().find(|(placed, _)| *placed == pba) {
            return Ok(self.buffer.bytes_at(*there) == wanted);
        }
        let mut bytes = [0; BLOCK_BYTES];
        // A block that can't be read is no duplicate of anything.
        Ok(self.read_stored(pba, &mut bytes).is_ok() && bytes == wanted)
    }

    /// A place for a new block, compressed if its window needs room for entries.
    pub(super) fn place_new(
        &mut self,
        place: u32,
        room_wanted: usize,
        closing: &mut Closing,
    ) -> Result<Pba, VolumeError> {
        if closing.room < room_wanted
            && closing.failures < self.failures_max
            && self.part_places() > parts_alone(room_wanted) as u64
        {
            let compressed = lz4_flex::block::compress(self.buffer.bytes_at(place));
            let room = parts::room_beside(compressed.len());
            if room >= ENTRIES_MIN.min(room_wanted) {
                let pba = self.place_part()?;
                closing.room += room;
                closing.compressed.push((pba, compressed));
                return Ok(pba);
            }
            closing.failures += 1;
        }
        let pba = self.place_data()?;
        closing.plain.push((pba, place));
        Ok(pba)
    }

    /// Writes blocks as they are.
    fn write_plain(&mut self, closing: &Closing) -> Result<(), VolumeError> {
        let mut sink = PageSink::new(&*self.backing);
        for &(pba, place) in &closing.plain {
            sink.put(pba, self.buffer.bytes_at(place))?;
        }
        self.counters.data_blocks_written += sink.finish()?;
        Ok(())
    }

    /// Writes the window with its entries inside; in no order.
    fn write_thin(&mut self, closing: &Closing) -> Result<(), VolumeError> {
        let mut places: Vec<(Pba, &[u8], usize)> = closing
            .compressed
            .iter()
            .map(|(pba, bytes)| (*pba, &bytes[..], parts::room_beside(bytes.len())))
            .collect();
        let mut left = closing.entries.len().saturating_sub(closing.room);
        let mut alone = 0;
        while left > 0 {
            places.push((self.place_part()?, &[], PART_ENTRIES_MAX));
            left = left.saturating_sub(PART_ENTRIES_MAX);
            alone += 1;
        }
        let header = WindowHeader {
            uuid: self.superblock.uuid,
            window: self.window,
            durable_window: self.durable_window,
            parts: places.len() as u16,
            entries: closing.entries.len() as u32,
        };
        let mut sink = PageSink::new(&*self.backing);
        let mut rest = &closing.entries[..];
        for (number, (pba, compressed, room)) in places.iter().enumerate() {
            let (here, after) = rest.split_at(rest.len().min(*room));
            rest = after;
            let block = parts::encode(&header, number as u16, compressed, here, *pba);
            sink.put(*pba, &block)?;
        }
        assert!(rest.is_empty(), "a window's entries have no room");
        sink.finish()?;
        self.counters.compressed_blocks_written += closing.compressed.len() as u64;
        self.counters.data_blocks_written += closing.compressed.len() as u64;
        self.counters.window_metadata_blocks_written += alone;
        self.write_plain(closing)?;
        self.unsynced = true;
        Ok(())
    }

    /// Data, sync, then the pages of the mapping where they are, sync.
    fn write_ordered(&mut self, closing: &Closing) -> Result<(), VolumeError> {
        self.write_plain(closing)?;
        self.sync()?;
        let critical = [TableKind::Map, TableKind::Blocks];
        match self.tables.write_in_place(&critical)? {
            Some(pages) => {
                self.counters.page_blocks_written += pages;
                self.sync()?;
                self.free_freed();
            }
            // Pages without a place, or pinned ones: those of the whole directory get theirs now.
            None => {
                self.tables.claim_neighbours(&critical)?;
                self.buffer.clear();
                self.commit(false)?;
            }
        }
        Ok(())
    }

    /// Whether blocks are being written to a zone.
    pub(super) fn is_open(&self, zone: usize) -> bool {
        [&self.data_zone, &self.compressed_zone]
            .into_iter()
            .flatten()
            .any(|open| open.zone == zone)
            || self.compressed_next.contains(&zone)
    }
}

//! The state of an open volume, and what changes it. One thread at a time has it
//! ([`crate::Volume`] holds it behind a lock).
//!
//! The life of a write: into the open window ([`window::buffer`](crate::window::buffer)); when the window is
//! full, old, or a client flushes, it is *closed* (`closing.rs`): duplicates are found, new blocks get places,
//! some are compressed to make room for the window's metadata, everything is written, the tables are changed in
//! memory. Now and then the tables are *committed* (`commit.rs`). After a crash windows since the last commit
//! are read back (`recovery.rs`).
//!
//! Invariants:
//! * the tables in memory are what the windows up to [`Core::window`] say;
//! * the durable tables are those of [`Superblock::committed_window`]; all later windows are whole in the zones that
//!   [`Superblock::uncommitted_zones`] names;
//! * a block is written only when nothing durable refers to it: blocks that become free wait for the next
//!   commit;
//! * after a failed write or sync nothing is changed any more.

mod allocation;
mod closing;
mod commit;
mod compaction;
mod freed;
mod job;
mod journalling;
mod mapping;
mod recovery;
mod resizing;

pub use compaction::Compaction;
pub use recovery::Recovery;
pub(crate) use recovery::{page_references, read_superblock};

use std::sync::{Arc, Condvar};

use crate::address::{BLOCK_BYTES, Lba, Pba};
use crate::backing::Backing;
use crate::error::VolumeError;
use crate::fingerprint::Fingerprinter;
use crate::generations::Generation;
use crate::index;
use crate::journal::JournalFinder;
use crate::pool::{JournalPool, PoolKind};
use crate::settings::{Persistence, VolumeSettings};
use crate::stat::{Counters, Usage};
use crate::superblock::Superblock;
use crate::tables::{TableKind, Tables, tree_shape};
use crate::window::buffer::{Buffered, WindowBuffer};
use crate::zones::{PageSpace, ZoneKind, Zones};

use allocation::OpenZone;
use commit::Running;
use freed::{Freed, Held};
pub(crate) use job::Job;

/// The state of an open volume.
#[derive(Debug)]
pub struct Core {
    pub(crate) backing: Arc<dyn Backing>,
    pub(crate) superblock: Superblock,
    pub(crate) tables: Tables,
    pub(crate) zones: Zones,
    pub(crate) space: PageSpace,
    pub(crate) fingerprinter: Fingerprinter,
    pub(crate) generations: Vec<Generation>,
    pub(crate) pool: Option<JournalPool>,
    /// What blocks of the journal are recognised by.
    pub(crate) pool_kind: PoolKind,
    /// Keeps the pool's ranges true; `None` where the policy looks at no journal.
    pub(crate) finder: Option<JournalFinder>,
    pub(crate) counters: Counters,
    buffer: WindowBuffer,
    /// The newest closed window.
    window: u64,
    /// The newest window that is durable.
    durable_window: u64,
    /// Whether something was written since the last sync.
    unsynced: bool,
    data_zone: Option<OpenZone>,
    compressed_zone: Option<OpenZone>,
    /// Uncommitted zones that are not open yet.
    compressed_next: Vec<usize>,
    /// Blocks that nothing refers to any more, free after the next commit.
    freed: Freed,
    /// A commit that began and is not over.
    running: Option<Running>,
    /// What a reader of an older state keeps from being used.
    held: Option<Held>,
    /// Told when a commit began that is to be done aside.
    pub(crate) commit_begun: Arc<Condvar>,
    /// Zones that are being emptied: nothing is put there as long as there are others.
    closed_zones: Vec<usize>,
    /// Whether the window that is being written moves blocks out of them.
    moves: bool,
    /// Blocks of a window that may turn out not to be compressible before no more are tried.
    failures_max: usize,
    /// Why nothing is changed any more.
    failed: Option<String>,
    read_only: bool,
}

/// Sizes of the tables of a volume.
pub(crate) fn table_entries(
    logical_blocks: u64,
    physical_blocks: u64,
    zone_blocks: u32,
) -> [u64; TableKind::COUNT] {
    [
        logical_blocks,
        physical_blocks,
        index::bucket_count(physical_blocks),
        physical_blocks / u64::from(zone_blocks),
    ]
}

/// Whether a volume can be that large.
///
/// # Errors
/// When its tables have more root pages than a superblock names.
pub(crate) fn check_size(
    logical_blocks: u64,
    physical_blocks: u64,
    zone_blocks: u32,
) -> Result<(), VolumeError> {
    let entries = table_entries(logical_blocks, physical_blocks, zone_blocks);
    let roots = TableKind::ALL
        .into_iter()
        .zip(entries)
        .map(|(kind, entries)| tree_shape(kind, entries).roots);
    if crate::superblock::has_room_for_roots(roots) {
        return Ok(());
    }
    Err(VolumeError::Settings(format!(
        "a disk of {} on a store of {} TiB is too large: some 25 TiB are possible",
        logical_blocks >> 28,
        physical_blocks >> 28
    )))
}

/// Blocks of a backing store that hold a disk of that size when no block is stored twice and none is
/// saved: data, tables twice (as they are copied on write), room to move.
#[must_use]
pub fn physical_blocks_for(settings: &VolumeSettings) -> u64 {
    let logical = settings.logical_blocks();
    let zone = u64::from(settings.zone_blocks);
    let mut physical = logical + logical / 64;
    // Tables of the blocks that hold tables: twice is enough.
    for _ in 0..2 {
        let pages: usize = TableKind::ALL
            .into_iter()
            .zip(table_entries(logical, physical, settings.zone_blocks))
            .map(|(kind, entries)| {
                let shape = tree_shape(kind, entries);
                shape.leaves + shape.directories + shape.roots
            })
            .sum();
        physical = logical + logical / 64 + 2 * pages as u64;
    }
    let spare = u64::from(settings.commit_zones) + 6;
    (physical.div_ceil(zone) + spare) * zone
}

impl Core {
    /// The state of a volume before its tables are loaded.
    pub(crate) fn new(
        backing: Arc<dyn Backing>,
        superblock: Superblock,
        cache_bytes: u64,
        read_only: bool,
    ) -> Self {
        let settings = &superblock.settings;
        let mut entries = table_entries(
            settings.logical_blocks(),
            superblock.physical_blocks,
            settings.zone_blocks,
        );
        // After the store has grown there may be fewer buckets than a new one would have.
        let index = TableKind::Index;
        let stored = superblock.tables.iter();
        if let Some(root) = stored.clone().find(|root| root.table == index as u8) {
            let bounds = 1..=superblock.physical_blocks;
            entries[index.index()] = root.entries.clamp(*bounds.start(), *bounds.end());
        }
        let zones = Zones::new(settings.zone_blocks, entries[3] as usize);
        Self {
            tables: Tables::new(Arc::clone(&backing), entries, cache_bytes),
            zones,
            space: PageSpace::default(),
            fingerprinter: Fingerprinter::new(settings.fingerprint, superblock.fingerprint_key),
            generations: Vec::new(),
            pool: None,
            pool_kind: PoolKind::default(),
            finder: None,
            counters: superblock.counters,
            buffer: WindowBuffer::new(settings.window_blocks as usize),
            window: superblock.committed_window,
            durable_window: superblock.committed_window,
            unsynced: false,
            data_zone: None,
            compressed_zone: None,
            compressed_next: Vec::new(),
            freed: Freed::default(),
            running: None,
            held: None,
            commit_begun: Arc::default(),
            closed_zones: Vec::new(),
            moves: false,
            failures_max: closing::FAILURES_MAX,
            failed: None,
            read_only,
            backing,
            superblock,
        }
    }

    pub(crate) fn settings(&self) -> &VolumeSettings {
        &self.superblock.settings
    }

    pub(crate) fn persistence(&self) -> Persistence {
        self.superblock.settings.persistence
    }

    /// Whether the volume can be used: nothing failed.
    pub(crate) fn check_usable(&self) -> Result<(), VolumeError> {
        match &self.failed {
            Some(why) => Err(VolumeError::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// See [`crate::Volume::usage`].
    pub(crate) fn usage(&self) -> Usage {
        let zone_blocks = u64::from(self.zones.zone_blocks());
        let mut usage = Usage {
            mapped_blocks: self.superblock.mapped_blocks,
            logical_blocks: self.settings().logical_blocks(),
            physical_blocks: self.superblock.physical_blocks,
            page_blocks: self.space.taken_blocks(),
            memory_bytes: self.tables.memory_bytes()
                + 16 * self.zones.count() as u64
                + self.pool.as_ref().map_or(0, |pool| pool.memory_bytes().1),
            pool_entries: self.pool.as_ref().map_or(0, JournalPool::len) as u64,
            ..Usage::default()
        };
        for number in 1..self.zones.count() {
            let zone = self.zones.get(number);
            let used = zone_blocks - u64::from(zone.free_blocks);
            match zone.kind {
                ZoneKind::Free => usage.free_zones += 1,
                ZoneKind::Data => {
                    usage.data_zones += 1;
                    usage.data_blocks += used;
                }
                ZoneKind::Compressed => {
                    usage.compressed_zones += 1;
                    usage.data_blocks += used;
                }
                ZoneKind::Pages => usage.page_zones += 1,
            }
        }
        usage.uncommitted_zones = self.superblock.uncommitted_zones.len() as u64;
        usage
    }

    /// Whether the open window has bytes of a block of a range.
    pub(crate) fn has_bytes_in(&self, range: std::ops::Range<u64>) -> bool {
        self.buffer.has_bytes_in(range)
    }

    /// What the open window says of a block.
    pub(crate) fn buffered(&self, lba: Lba) -> Buffered<'_> {
        self.buffer.get(lba)
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(crate) fn check_writable(&self) -> Result<(), VolumeError> {
        if self.read_only {
            return Err(VolumeError::ReadOnly);
        }
        self.check_usable()
    }

    /// Runs something that must not stop halfway; if it does, nothing is changed any more.
    pub(crate) fn whole<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, VolumeError>,
    ) -> Result<T, VolumeError> {
        let done = work(self);
        if let Err(error) = &done {
            self.failed = Some(error.to_string());
        }
        done
    }

    /// Takes a block that a client wrote.
    pub(crate) fn write_block(
        &mut self,
        lba: Lba,
        fingerprint: crate::fingerprint::Fingerprint,
        bytes: &[u8],
    ) -> Result<(), VolumeError> {
        self.check_writable()?;
        self.make_room(1)?;
        self.buffer.write(lba, fingerprint, bytes);
        self.counters.user_blocks_written += 1;
        if let Some(finder) = &mut self.finder {
            finder.on_write(lba.0, bytes);
        }
        if self.buffer.is_full() {
            self.close_window()?;
        }
        Ok(())
    }

    /// Blocks that may become zeros in a window before it is closed. Each may have a record and a place in
    /// the index in pages of their own, and all of these must fit the cache.
    pub(super) fn unmap_step(&self) -> u64 {
        let per_page = crate::page::entries_per_page(TableKind::Map.entry_bytes()) as u64;
        per_page * (self.tables.dirty_pages_max() as u64 / 8 / per_page).clamp(1, 512)
    }

    /// Makes blocks zeros.
    pub(crate) fn unmap(&mut self, lba: Lba, blocks: u64) -> Result<(), VolumeError> {
        self.check_writable()?;
        let end = lba.0 + blocks;
        let step = self.unmap_step();
        let mut start = lba.0;
        while start < end {
            let stop = end.min(start - start % step + step);
            if self.is_mapped(start..stop) {
                self.make_room(0)?;
                self.buffer.unmap(Lba(start), stop - start);
                if self.buffer.is_full() || self.buffer.unmapped_blocks() >= step {
                    self.close_window()?;
                }
            }
            start = stop;
        }
        self.counters.user_blocks_unmapped += blocks;
        if let Some(finder) = &mut self.finder {
            finder.on_zeroes(lba.0..lba.0 + blocks);
        }
        Ok(())
    }

    /// Whether some block of a range may hold something.
    fn is_mapped(&self, range: std::ops::Range<u64>) -> bool {
        if !self.buffer.is_empty() {
            return true;
        }
        let per_page = crate::page::entries_per_page(TableKind::Map.entry_bytes()) as u64;
        let (first, last) = (range.start / per_page, (range.end - 1) / per_page);
        (first..=last).any(|page| !self.tables.is_absent(TableKind::Map, page * per_page))
    }

    /// Reads a block.
    pub(crate) fn read_block(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), VolumeError> {
        self.check_usable()?;
        match self.buffer.get(lba) {
            Buffered::Bytes(bytes) => into.copy_from_slice(bytes),
            Buffered::Zeros => into.fill(0),
            Buffered::Untouched => match self.mapped(lba)?.pba() {
                Some(pba) => self.read_stored(pba, into)?,
                None => into.fill(0),
            },
        }
        self.tables.trim_cache();
        Ok(())
    }

    /// Reads blocks that follow each other; those that lie one after the other are read at once.
    pub(crate) fn read_blocks(&mut self, lba: Lba, into: &mut [u8]) -> Result<(), VolumeError> {
        self.check_usable()?;
        let mut run: Option<(Pba, usize)> = None;
        for number in 0..into.len() / BLOCK_BYTES {
            let at = number * BLOCK_BYTES;
            let block = Lba(lba.0 + number as u64);
            let found = match self.buffer.get(block) {
                Buffered::Bytes(bytes) => {
                    into[at..at + BLOCK_BYTES].copy_from_slice(bytes);
                    None
                }
                Buffered::Zeros => {
                    into[at..at + BLOCK_BYTES].fill(0);
                    None
                }
                Buffered::Untouched => {
                    let pba = self.mapped(block)?.pba();
                    if pba.is_none() {
                        into[at..at + BLOCK_BYTES].fill(0);
                    }
                    pba
                }
            };
            if let (Some((start, from)), Some(pba)) = (run, found)
                && pba.0 == start.0 + ((at - from) / BLOCK_BYTES) as u64
            {
                continue;
            }
            if let Some((start, from)) = run.take() {
                self.read_run(start, &mut into[from..at])?;
            }
            match found {
                Some(pba) if self.zones.get(self.zones.of(pba)).kind == ZoneKind::Data => {
                    run = Some((pba, at));
                }
                Some(pba) => self.read_stored(pba, &mut into[at..at + BLOCK_BYTES])?,
                None => {}
            }
        }
        if let Some((start, from)) = run {
            self.read_run(start, &mut into[from..])?;
        }
        self.tables.trim_cache();
        Ok(())
    }

    /// Reads blocks of data zones that lie one after the other; a run may go on into a zone of another
    /// kind.
    fn read_run(&self, start: Pba, into: &mut [u8]) -> Result<(), VolumeError> {
        let blocks = (into.len() / BLOCK_BYTES) as u64;
        let zones = self.zones.of(start)..=self.zones.of(Pba(start.0 + blocks - 1));
        if zones
            .clone()
            .all(|zone| self.zones.get(zone).kind == ZoneKind::Data)
        {
            return self
                .backing
                .read_at(start.offset(), into)
                .map_err(VolumeError::reading(start));
        }
        for (number, block) in into.chunks_exact_mut(BLOCK_BYTES).enumerate() {
            self.read_stored(Pba(start.0 + number as u64), block)?;
        }
        Ok(())
    }

    /// Reads a physical block, and decompresses it if need be.
    pub(crate) fn read_stored(&self, pba: Pba, into: &mut [u8]) -> Result<(), VolumeError> {
        self.backing
            .read_at(pba.offset(), into)
            .map_err(VolumeError::reading(pba))?;
        if self.zones.get(self.zones.of(pba)).kind != ZoneKind::Compressed {
            return Ok(());
        }
        crate::window::parts::decompress_in_place(into, &self.superblock.uuid, pba)
    }

    /// Closes the open window and makes everything durable.
    pub(crate) fn flush(&mut self) -> Result<(), VolumeError> {
        if let Some((job, window)) = self.begin_flush()? {
            let done = job.run(&*self.backing);
            self.end_flush(window, done)?;
        }
        self.after_flush();
        Ok(())
    }

    /// Closes the open window; gives what is to be done then, and the window that is durable after it.
    pub(crate) fn begin_flush(&mut self) -> Result<Option<(Job, u64)>, VolumeError> {
        if self.read_only {
            return Ok(None);
        }
        self.check_usable()?;
        self.close_window()?;
        Ok(self.unsynced.then(|| (Job::sync(), self.window)))
    }

    /// The sync of a flush is over.
    pub(crate) fn end_flush(
        &mut self,
        window: u64,
        done: Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        self.whole(|_| done)?;
        self.counters.syncs += 1;
        self.is_synced(window);
        self.check_usable()
    }

    /// What can wait until a flush is done.
    pub(crate) fn after_flush(&mut self) {
        // Where the journal is is advice: what was to be durable is.
        if !self.read_only && self.look_for_journal().is_err() {
            self.pool = None;
        }
    }

    /// Makes what was written durable.
    fn sync(&mut self) -> Result<(), VolumeError> {
        self.backing
            .sync()
            .map_err(VolumeError::io("making writes durable"))?;
        self.counters.syncs += 1;
        self.is_synced(self.window);
        Ok(())
    }

    /// A sync is over that began when `window` was the newest.
    fn is_synced(&mut self, window: u64) {
        self.durable_window = self.durable_window.max(window);
        self.unsynced &= window < self.window;
    }

    /// Commits everything and marks the volume as closed.
    pub(crate) fn close(&mut self) -> Result<(), VolumeError> {
        if self.read_only || self.failed.is_some() {
            return Ok(());
        }
        self.close_window()?;
        if self.persistence() != Persistence::Ram {
            self.whole(|core| core.commit(true))?;
        }
        Ok(())
    }
}

//! A volume as a disk: [`BlockDevice`] over the core, behind a lock.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::address::{BLOCK_BYTES, Lba};
use crate::backing::Backing;
use crate::check::CheckReport;
use crate::core::{Compaction, Core, Recovery, check_size, physical_blocks_for, read_superblock};
use crate::device::{BlockDevice, DeviceError, Extent, ExtentKind, Geometry, collect_extents};
use crate::error::VolumeError;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::generations::{Generation, GenerationId, OwnerId};
use crate::journal::JournalRanges;
use crate::pool::PoolKind;
use crate::settings::{OpenOptions, VolumeSettings};
use crate::stat::{Counters, Usage};
use crate::superblock::Superblock;

/// What upkeep waits between two steps: a lock that is taken again at once is not had by those who wait.
const GIVE_WAY: Duration = Duration::from_micros(20);

/// A deduplicating disk.
#[derive(Debug)]
pub struct Volume {
    core: Mutex<Core>,
    backing: Arc<dyn Backing>,
    /// Whoever compacts, and whoever changes pinned generations, does so alone. Taken before the core, in
    /// this order.
    compacting: Mutex<()>,
    pinning: Mutex<()>,
    fingerprinter: Fingerprinter,
    sector_bytes: u32,
    /// Whether blocks of zeros take no room.
    drops_zeros: bool,
    recovery: Recovery,
}

impl Volume {
    /// Makes a volume on a backing store, which then holds nothing else. `physical_bytes` of it are used;
    /// `None`: as many as the disk may need ([`Volume::backing_bytes_for`]).
    ///
    /// # Errors
    /// When the settings can't be, or the store can't be written.
    pub fn create(
        backing: &dyn Backing,
        settings: &VolumeSettings,
        physical_bytes: Option<u64>,
    ) -> Result<(), VolumeError> {
        settings.check()?;
        let zone_bytes = u64::from(settings.zone_blocks) * BLOCK_BYTES as u64;
        let bytes = physical_bytes.unwrap_or_else(|| Self::backing_bytes_for(settings));
        let zones = bytes / zone_bytes;
        let zones_min = u64::from(settings.commit_zones) + 7;
        if zones < zones_min {
            return Err(VolumeError::Settings(format!(
                "{bytes} bytes for the volume are {zones} zones of {zone_bytes} bytes: at least {zones_min} are needed"
            )));
        }
        check_size(
            settings.logical_blocks(),
            zones * u64::from(settings.zone_blocks),
            settings.zone_blocks,
        )?;
        let found = backing
            .size_bytes()
            .map_err(VolumeError::io("asking for the size of the backing store"))?;
        if found < zones * zone_bytes {
            return Err(VolumeError::Settings(format!(
                "the backing store has {found} bytes, {} are needed",
                zones * zone_bytes
            )));
        }
        let mut random = [0; 48];
        random_bytes(&mut random)?;
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&random[..16]);
        let mut fingerprint_key = [0; 32];
        fingerprint_key.copy_from_slice(&random[16..]);
        let mut superblock = Superblock {
            uuid,
            sequence: 0,
            settings: settings.clone(),
            physical_blocks: zones * u64::from(settings.zone_blocks),
            clean: true,
            generation: 1,
            committed_window: 0,
            fingerprint_key,
            generation_pages: Vec::new(),
            counters: Counters::default(),
            mapped_blocks: 0,
            uncommitted_zones: Vec::new(),
            tables: Vec::new(),
        };
        // Both copies: what was there before must not be taken for the newer one.
        for sequence in 0..2 {
            superblock.sequence = sequence;
            backing
                .write_at(superblock.place().offset(), &superblock.encode())
                .map_err(VolumeError::io("writing the superblock"))?;
        }
        backing
            .sync()
            .map_err(VolumeError::io("making the superblock durable"))
    }

    /// Bytes of a backing store that hold a disk of these settings even if no block is saved.
    #[must_use]
    pub fn backing_bytes_for(settings: &VolumeSettings) -> u64 {
        physical_blocks_for(settings) * BLOCK_BYTES as u64
    }

    /// What a volume was made with.
    ///
    /// # Errors
    /// When there is none.
    pub fn settings_of(backing: &dyn Backing) -> Result<VolumeSettings, VolumeError> {
        Ok(read_superblock(backing)?.settings)
    }

    /// Opens a volume; after a crash that takes back what was durable.
    ///
    /// # Errors
    /// When there is none, or it is damaged, or can't be read.
    pub fn open(backing: Arc<dyn Backing>, options: &OpenOptions) -> Result<Self, VolumeError> {
        let (core, recovery) = Core::open(Arc::clone(&backing), options)?;
        let settings = core.settings();
        Ok(Self {
            fingerprinter: core.fingerprinter.clone(),
            sector_bytes: settings.sector_bytes,
            drops_zeros: settings.policy.is_full(),
            recovery,
            backing,
            compacting: Mutex::default(),
            pinning: Mutex::default(),
            core: Mutex::new(core),
        })
    }

    /// Makes everything durable and marks the volume as closed, so that it opens at once.
    ///
    /// # Errors
    /// When that fails; what was flushed before is safe.
    pub fn close(&self) -> Result<(), VolumeError> {
        self.core().close()
    }

    /// What opening it found.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// What it did in its life.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core().counters
    }

    /// Its id: random, and the same in copies of it.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        self.core().superblock.uuid
    }

    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> VolumeSettings {
        self.core().settings().clone()
    }

    /// Blocks of the disk that are known to be a file system's journal, and why none are although there
    /// should be some.
    #[must_use]
    pub fn journal(&self) -> (JournalRanges, Option<String>) {
        let core = self.core();
        match &core.finder {
            Some(finder) => (
                finder.ranges().clone(),
                finder.problem().map(ToString::to_string),
            ),
            None => (JournalRanges::default(), None),
        }
    }

    /// What blocks of the journal are recognised by; what is known of them is forgotten.
    ///
    /// # Errors
    /// When the mapping can't be read.
    pub fn set_pool_kind(&self, kind: PoolKind) -> Result<(), VolumeError> {
        self.core().set_pool_kind(kind)
    }

    /// Moves blocks out of zones that are mostly empty, and gives what is free back to the store.
    ///
    /// # Errors
    /// When blocks can't be read or written.
    pub fn compact(&self) -> Result<Compaction, VolumeError> {
        let _alone = lock(&self.compacting);
        self.commit_ahead()?;
        let mut compacting = self.core().begin_compaction()?;
        loop {
            let goes_on = self.core().compaction_step(&mut compacting)?;
            while self.commit_step()? {}
            if !goes_on {
                return Ok(compacting.done);
            }
            std::thread::sleep(GIVE_WAY);
        }
    }

    /// Makes the disk, or what is used of the backing store, larger; the store must be as long already.
    ///
    /// # Errors
    /// When sizes shrink, or the store is shorter.
    pub fn grow(&self, size_bytes: u64, physical_bytes: u64) -> Result<(), VolumeError> {
        let _alone = (lock(&self.compacting), lock(&self.pinning));
        self.commit_ahead()?;
        self.core().grow(size_bytes, physical_bytes)
    }

    /// How full it is, and what it takes. What the open window holds is not counted.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.core().usage()
    }

    /// Pins the disk as it is; gives the generation's number.
    ///
    /// # Errors
    /// When it can't be committed, or too many are pinned.
    pub fn pin(&self) -> Result<u32, VolumeError> {
        Ok(self.pin_for(OwnerId::NOBODY)?.number)
    }

    /// Pins the disk as it is for somebody who will remove the generation.
    ///
    /// # Errors
    /// As [`pin`](Self::pin).
    pub fn pin_for(&self, owner: OwnerId) -> Result<Generation, VolumeError> {
        let _alone = lock(&self.pinning);
        self.commit_ahead()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut id = [0; 16];
        random_bytes(&mut id)?;
        let created = now.map_or(0, |since| since.as_secs());
        self.core().pin(created, GenerationId(id), owner)
    }

    /// Removes a pinned generation.
    ///
    /// # Errors
    /// When there is none of that number, or the tables can't be read or committed.
    pub fn unpin(&self, generation: u32) -> Result<(), VolumeError> {
        let _alone = lock(&self.pinning);
        let mut removal = self.core().begin_removal(generation)?;
        loop {
            let goes_on = self.core().removal_step(&mut removal)?;
            while self.commit_step()? {}
            if !goes_on {
                return Ok(());
            }
            std::thread::sleep(GIVE_WAY);
        }
    }

    /// Pinned generations, oldest first.
    #[must_use]
    pub fn generations(&self) -> Vec<Generation> {
        self.core().generations.clone()
    }

    /// Bytes of the disk that differ between a pinned generation and a newer one (`None`: the disk as it is
    /// now), in whole blocks.
    ///
    /// # Errors
    /// When there is no such generation, or trees can't be read.
    pub fn changed_ranges(
        &self,
        from: u32,
        to: Option<u32>,
    ) -> Result<Vec<Range<u64>>, VolumeError> {
        let mut ranges = Vec::new();
        self.visit_changes(from, to, &mut |range| {
            ranges.push(range);
            Ok(())
        })?;
        Ok(ranges)
    }

    /// Calls `visit` with the ranges of [`changed_ranges`](Self::changed_ranges), ascending. Between two pinned
    /// generations the volume is not held up meanwhile, and no range is in memory but the one that is visited.
    ///
    /// # Errors
    /// When there is no such generation, or one is removed meanwhile, or trees can't be read; and those
    /// of `visit`.
    pub fn visit_changes(
        &self,
        from: u32,
        to: Option<u32>,
        visit: &mut dyn FnMut(Range<u64>) -> Result<(), VolumeError>,
    ) -> Result<(), VolumeError> {
        // Of the mapping as it is most is committed beside clients.
        let _alone = to.is_none().then(|| lock(&self.pinning));
        if to.is_none() {
            self.commit_ahead()?;
        }
        let block = BLOCK_BYTES as u64;
        let mut visit = |range: Range<u64>| visit(range.start * block..range.end * block);
        let mut core = self.core();
        let comparison = core.comparison(from, to)?;
        let Some(to) = to else {
            // Pages of the mapping as it is may be written over; whoever visits may take long.
            let mut ranges = Vec::new();
            comparison.visit(&mut |range| {
                ranges.push(range);
                Ok(())
            })?;
            drop(core);
            return ranges.into_iter().try_for_each(visit);
        };
        drop(core);
        let outcome = comparison.visit(&mut visit);
        // What was read of a tree that is gone means nothing, be it damage.
        let core = self.core();
        core.check_pinned(from)?;
        core.check_pinned(to)?;
        outcome
    }

    /// Recomputes references, zones and index from what is stored, and compares; with `read_data` every
    /// block in use is read and compared with its fingerprint.
    ///
    /// # Errors
    /// When tables can't be read at all. What is wrong otherwise is in the report.
    pub fn check(&self, read_data: bool) -> Result<CheckReport, VolumeError> {
        self.commit_ahead()?;
        if let Some(report) = self.check_aside(read_data)? {
            return Ok(report);
        }
        let mut core = self.core();
        core.close_window()?;
        core.check(read_data)
    }

    /// Checks what the last commit made durable while the volume goes on. `None` where that can't be done:
    /// where pages are changed in place, where there is no room to keep what is free meanwhile.
    fn check_aside(&self, read_data: bool) -> Result<Option<CheckReport>, VolumeError> {
        let (superblock, cache_bytes) = {
            let mut core = self.core();
            let Some(superblock) = core.hold()? else {
                return Ok(None);
            };
            (superblock, core.tables.cache_bytes() / 4)
        };
        let committed = Core::open_committed(Arc::clone(&self.backing), superblock, cache_bytes);
        let report = committed.and_then(|mut committed| committed.check(read_data));
        // Where it did not stay what it was, nothing that was found counts.
        match self.core().release_held() {
            true => report.map(Some),
            false => Ok(None),
        }
    }

    /// Commits what there is without holding up others, so that a commit that must be whole has little to do.
    fn commit_ahead(&self) -> Result<(), VolumeError> {
        let mut core = self.core();
        if core.is_read_only() {
            return Ok(());
        }
        core.close_window()?;
        if !core.is_committed() {
            core.whole(Core::commit_aside)?;
        }
        drop(core);
        while self.commit_step()? {}
        Ok(())
    }

    /// Closes the open window if it has something, without making it durable: for a clock to call.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn close_window(&self) -> Result<(), VolumeError> {
        let mut core = self.core();
        if core.is_read_only() {
            return Ok(());
        }
        core.close_window()
    }

    /// Does the next step of a commit that began, without holding up others; `false` when there is none.
    /// For a clock to call: without that, whoever writes does it.
    ///
    /// # Errors
    /// When it can't be done: the volume takes no more then.
    pub fn commit_step(&self) -> Result<bool, VolumeError> {
        let Some(job) = self.core().next_job()? else {
            return Ok(false);
        };
        let done = job.run(&*self.backing);
        self.core().whole(|_| done)?;
        Ok(true)
    }

    /// Makes durable what was written so far, without holding up others, so that the sync at the end of a
    /// commit has little left to do.
    pub(crate) fn sync_ahead(&self) -> Result<(), VolumeError> {
        let done = self.backing.sync();
        let mut core = self.core();
        core.counters.syncs += 1;
        core.whole(|_| done.map_err(VolumeError::io("making writes durable")))
    }

    /// Waits until a commit is to be done aside, at most so long.
    pub(crate) fn wait_for_commit(&self, timeout: Duration) {
        let core = self.core();
        if !core.is_committing() {
            let begun = Arc::clone(&core.commit_begun);
            drop(begun.wait_timeout(core, timeout));
        }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fingerprint that a block is taken in with.
    fn fingerprint(&self, block: &[u8]) -> Fingerprint {
        if self.drops_zeros && is_zero(block) {
            return Fingerprint::ZEROS;
        }
        self.fingerprinter.of(block)
    }

    /// Writes part of a block: the rest stays.
    fn write_within(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        let (lba, within) = (
            Lba(offset / BLOCK_BYTES as u64),
            (offset % BLOCK_BYTES as u64) as usize,
        );
        let mut core = self.core();
        let mut block = [0; BLOCK_BYTES];
        core.read_block(lba, &mut block)?;
        block[within..within + data.len()].copy_from_slice(data);
        core.write_block(lba, self.fingerprint(&block), &block)
    }
}

fn random_bytes(into: &mut [u8]) -> Result<(), VolumeError> {
    getrandom::fill(into).map_err(|error| VolumeError::Io {
        context: "asking for random bytes".to_owned(),
        source: std::io::Error::other(error.to_string()),
    })
}

fn lock(alone: &Mutex<()>) -> MutexGuard<'_, ()> {
    alone.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_zero(block: &[u8]) -> bool {
    let (prefix, words, suffix) = (&block[..16], &block[..block.len() - 16], &block[16..]);
    prefix == [0; 16] && words == suffix
}

/// Parts of a range: up to the first whole block, whole blocks, after the last; (offset, length) each.
pub(crate) fn parts(offset: u64, length: u64) -> [(u64, u64); 3] {
    let block = BLOCK_BYTES as u64;
    let end = offset + length;
    let first = offset.next_multiple_of(block).min(end);
    let last = (end - end % block).max(first);
    [
        (offset, first - offset),
        (first, last - first),
        (last, end - last),
    ]
}

impl BlockDevice for Volume {
    fn geometry(&self) -> Geometry {
        let core = self.core();
        Geometry {
            size_bytes: core.settings().size_bytes,
            sector_bytes: self.sector_bytes,
            preferred_bytes: BLOCK_BYTES as u32,
            read_only: core.is_read_only(),
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.geometry().check(offset, buffer.len() as u64)?;
        let mut rest = buffer;
        for (start, length) in parts(offset, rest.len() as u64) {
            let (part, after) = rest.split_at_mut(length as usize);
            rest = after;
            if length == 0 {
                continue;
            }
            let lba = Lba(start / BLOCK_BYTES as u64);
            if length.is_multiple_of(BLOCK_BYTES as u64) {
                self.core().read_blocks(lba, part)?;
                continue;
            }
            let within = (start % BLOCK_BYTES as u64) as usize;
            let mut block = [0; BLOCK_BYTES];
            self.core().read_block(lba, &mut block)?;
            part.copy_from_slice(&block[within..within + part.len()]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.geometry().check(offset, data.len() as u64)?;
        let mut rest = data;
        for (start, length) in parts(offset, data.len() as u64) {
            let (part, after) = rest.split_at(length as usize);
            rest = after;
            if length == 0 {
                continue;
            }
            if !length.is_multiple_of(BLOCK_BYTES as u64) {
                self.write_within(start, part)?;
                continue;
            }
            for (number, block) in part.chunks_exact(BLOCK_BYTES).enumerate() {
                let lba = Lba(start / BLOCK_BYTES as u64 + number as u64);
                // Before the lock: other threads go on.
                let fingerprint = self.fingerprint(block);
                self.core().write_block(lba, fingerprint, block)?;
            }
        }
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        self.geometry().check(offset, length_bytes)?;
        for (start, length) in parts(offset, length_bytes) {
            if length == 0 {
                continue;
            }
            let block = BLOCK_BYTES as u64;
            if length.is_multiple_of(block) {
                self.core().unmap(Lba(start / block), length / block)?;
            } else {
                self.write_within(start, &vec![0; length as usize])?;
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let begun = self.core().begin_flush()?;
        if let Some((job, window)) = begun {
            // Without the lock: others go on meanwhile.
            let done = job.run(&*self.backing);
            self.core().end_flush(window, done)?;
        }
        self.core().after_flush();
        Ok(())
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.geometry().check(offset, length_bytes)?;
        let mut core = self.core();
        let block = BLOCK_BYTES as u64;
        collect_extents(offset..offset + length_bytes, extents_max, |at| {
            let (is_data, run_end) = core.extent_at(at / block)?;
            let kind = if is_data {
                ExtentKind::Data
            } else {
                ExtentKind::Hole
            };
            Ok((kind, run_end.saturating_mul(block)))
        })
    }
}

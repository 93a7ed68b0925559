//! Commits: the tables in memory become the durable ones, whole or not at all.
//!
//! Changed pages go to new places, then a sync, then the superblock that names them, then a sync. With it
//! go the zones: blocks that nothing refers to are free, full zones of compressed blocks are committed, and
//! the zones that the next windows go to are named *before* they are used, so that no window costs
//! a change of a zone's state. Counts of references are written in no other way: batched, and never ahead of or
//! behind the mapping (Ni, §5.2.1, orders increments before decrements; a commit that is whole needs no
//! order).
//!
//! A commit begins at one moment: what it writes is fixed then. All else is [`Job`]s, one after the other. Either
//! whoever began it does them at once, and nothing else happens meanwhile. Or they are done
//! *aside* ([`Core::next_job`]), while the volume goes on; then what becomes free with the commit waits until
//! the last job is done, and windows go to zones that both the old and the new superblock name.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Core;
use super::freed::Freed;
use super::job::{JOB_PAGES_MAX, Job};
use crate::address::{Pba, Reference};
use crate::error::VolumeError;
use crate::generations;
use crate::settings::Persistence;
use crate::superblock::{Superblock, UNCOMMITTED_ZONES_MAX};
use crate::tables::{Frozen, FrozenPage, TableKind, tree_shape};
use crate::zones::{Zone, ZoneKind};

/// Pages of the tree of zones that a commit may add to those that are changed already.
fn zone_pages(zones: u64) -> usize {
    let shape = tree_shape(TableKind::Zones, zones);
    shape.leaves + shape.directories + shape.roots
}

/// What a commit does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pages,
    Sync,
    Superblock,
}

/// A commit that began.
#[derive(Debug)]
pub(super) struct Running {
    /// As it will be.
    superblock: Superblock,
    frozen: Frozen,
    /// Pages of the list of generations.
    lists: VecDeque<FrozenPage>,
    pages: usize,
    phase: Phase,
    /// What is being done.
    job: Option<Arc<Job>>,
    /// The newest window when the sync began.
    synced_window: u64,
    /// Blocks that are free when it is over.
    freed: Freed,
    /// Their zones as the table has them.
    freed_zones: Vec<(usize, Zone)>,
    /// Pages that are free when it is over.
    retired: Vec<Pba>,
    /// Zones of compressed blocks that the new superblock does not name any more.
    dropped: Vec<usize>,
    /// Those that it alone names: windows may go there when it is over.
    named: Vec<usize>,
}

impl Running {
    /// Blocks that are free when it is over.
    pub(super) fn freed(&self) -> &Freed {
        &self.freed
    }
}

impl Core {
    /// Commits the tables. With `closing` the volume is marked as closed, and no zone is open.
    pub(crate) fn commit(&mut self, closing: bool) -> Result<(), VolumeError> {
        self.finish_commit()?;
        if self.persistence() == Persistence::Ram {
            self.free_freed();
            return Ok(());
        }
        let aside = self.keeps_held(closing);
        self.begin_commit(closing, aside)?;
        self.finish_commit()
    }

    /// Begins a commit that others may do aside, if there is room enough for what that keeps back; else
    /// does all of it.
    pub(crate) fn commit_aside(&mut self) -> Result<(), VolumeError> {
        if self.persistence() != Persistence::Thin || self.superblock.clean || !self.is_roomy() {
            return self.commit(false);
        }
        self.finish_commit()?;
        self.begin_commit(false, true)?;
        self.commit_begun.notify_all();
        // Pages took zones.
        if !self.is_roomy() {
            self.finish_commit()?;
        }
        Ok(())
    }

    /// Does what is left of a commit that began.
    pub(crate) fn finish_commit(&mut self) -> Result<(), VolumeError> {
        while let Some(job) = self.next_job()? {
            job.run(&*self.backing)?;
        }
        Ok(())
    }

    /// Writes some of a commit that began, so that it is over before so many pages are changed again as are
    /// possible: for every page that has been changed since, one and a third are written.
    pub(super) fn pace_commit(&mut self, changed_pages: usize) -> Result<(), VolumeError> {
        loop {
            let Some(running) = &self.running else {
                return Ok(());
            };
            let left = running.frozen.pages();
            let changed = self.tables.dirty_pages() + changed_pages;
            let due = running.pages * changed * 4 / 3 / self.tables.dirty_pages_max();
            if running.phase != Phase::Pages || left == 0 || running.pages - left >= due {
                return Ok(());
            }
            if let Some(job) = self.next_job()? {
                job.run(&*self.backing)?;
            }
        }
    }

    /// Whether the durable tables are what they are in memory.
    pub(crate) fn is_committed(&self) -> bool {
        self.running.is_none() && self.tables.dirty_pages() == 0 && self.freed.is_empty()
    }

    /// Whether a commit began and is not over.
    pub(crate) fn is_committing(&self) -> bool {
        self.running.is_some()
    }

    /// What is to be done next of a commit that began: first the last one must be. `None`: it is over.
    pub(crate) fn next_job(&mut self) -> Result<Option<Arc<Job>>, VolumeError> {
        if self.running.is_none() {
            return Ok(None);
        }
        self.check_usable()?;
        self.whole(Self::next_job_whole)
    }

    fn next_job_whole(&mut self) -> Result<Option<Arc<Job>>, VolumeError> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        if let Some(job) = running.job.take() {
            if !job.is_done()? {
                running.job = Some(Arc::clone(&job));
                return Ok(Some(job));
            }
            self.counters.syncs += u64::from(running.phase != Phase::Pages);
            match running.phase {
                Phase::Pages => {}
                Phase::Sync => {
                    running.phase = Phase::Superblock;
                    let window = running.synced_window;
                    self.is_synced(window);
                }
                Phase::Superblock => {
                    self.end_commit();
                    return Ok(None);
                }
            }
        }
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        if running.phase == Phase::Pages {
            let mut pages = self.tables.take_frozen(&mut running.frozen, JOB_PAGES_MAX);
            if pages.is_empty() {
                pages = running.lists.drain(..).collect();
            }
            if pages.is_empty() {
                self.tables.thaw();
                running.phase = Phase::Sync;
                running.synced_window = self.window;
            } else {
                let job = Arc::new(Job::pages(pages));
                running.job = Some(Arc::clone(&job));
                return Ok(Some(job));
            }
        }
        let job = Arc::new(match running.phase {
            Phase::Superblock => Job::superblock(&running.superblock),
            _ => Job::sync(),
        });
        running.job = Some(Arc::clone(&job));
        Ok(Some(job))
    }

    /// Fixes what a commit writes.
    fn begin_commit(&mut self, closing: bool, aside: bool) -> Result<(), VolumeError> {
        // Before blocks become free: pages must not go where the durable tables still have something.
        let generation_pages = generations::encode(&self.generations);
        self.reserve_pages(generation_pages.len())?;
        let freed = if aside {
            std::mem::take(&mut self.freed)
        } else {
            self.free_freed();
            Freed::default()
        };
        let mut superblock = self.superblock.clone();
        let (mut dropped, mut named) = (Vec::new(), Vec::new());
        if self.persistence() == Persistence::Thin {
            (dropped, named) = self.rotate_compressed_zones(closing, aside)?;
            let open = self.compressed_zone.iter().map(|open| open.zone);
            let all = open.chain(self.compressed_next.iter().copied());
            let all = all.chain(named.iter().copied());
            superblock.uncommitted_zones = all.map(|zone| zone as u32).collect();
        }
        if closing {
            self.leave_data_zone();
        }
        let freed_zones = self.write_zones(&freed, &dropped, &named)?;
        let places = self
            .space
            .take_many(generation_pages.len() + self.tables.pages_to_write())
            .ok_or_else(|| VolumeError::Full("no room for pages of metadata".to_owned()))?;
        let zones = &self.zones;
        let mut places = places
            .into_iter()
            .map(|(zone, block)| Pba(zones.first_block(zone).0 + block as u64));
        let mut lists = VecDeque::new();
        let with_places = generation_pages.into_iter().zip(&mut places);
        for (number, (page, place)) in with_places.enumerate() {
            lists.push_back(FrozenPage {
                place,
                identity: generations::list_page(number),
                bytes: Arc::new(page),
            });
        }
        let frozen = self.tables.freeze(&mut places);
        let pages = frozen.pages();
        self.counters.page_blocks_written += (pages + lists.len()) as u64;
        self.counters.commits += 1;
        self.counters.superblocks_written += 1;
        let generation = superblock.generation;
        let places = lists
            .iter()
            .map(|page| Reference::new(page.place, generation));
        let old_lists = std::mem::replace(&mut superblock.generation_pages, places.collect());
        let mut retired = self.tables.take_retired();
        retired.extend(old_lists.into_iter().filter_map(Reference::pba));
        superblock.sequence += 1;
        superblock.clean = closing;
        superblock.committed_window = self.window;
        superblock.counters = self.counters;
        superblock.counters.syncs += 2;
        superblock.tables = self.tables.roots();
        self.running = Some(Running {
            superblock,
            frozen,
            lists,
            pages,
            phase: Phase::Pages,
            job: None,
            synced_window: 0,
            freed,
            freed_zones,
            retired,
            dropped,
            named,
        });
        Ok(())
    }

    /// The superblock of a commit is durable.
    fn end_commit(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        let mapped_blocks = self.superblock.mapped_blocks;
        self.superblock = running.superblock;
        self.superblock.mapped_blocks = mapped_blocks;
        self.compressed_next.extend(running.named);
        if let Some(held) = &mut self.held {
            held.freed.append(running.freed);
            held.pages.extend(running.retired);
        } else {
            self.free_blocks(running.freed);
            for (zone, written) in running.freed_zones {
                if self.zones.get(zone) == written {
                    self.zones.is_written(zone);
                }
            }
            for pba in running.retired {
                self.free_page(pba);
            }
        }
        self.free_if_empty(&running.dropped);
    }

    /// Takes zones for pages until everything that a commit may write has a place.
    fn reserve_pages(&mut self, others: usize) -> Result<(), VolumeError> {
        let wanted = self.tables.pages_to_write() + zone_pages(self.zones.count() as u64) + others;
        while self.space.free_blocks() < wanted {
            let zone = self
                .zones
                .take_free(ZoneKind::Pages)
                .ok_or_else(|| VolumeError::Full("no zone is free for metadata".to_owned()))?;
            self.space.add_zone(zone, self.zones.zone_blocks());
        }
        Ok(())
    }

    /// Full zones of compressed blocks are committed; new ones are named for the next windows. Gives
    /// those that are not named any more; and, of a commit that is done aside, those that it alone names.
    fn rotate_compressed_zones(
        &mut self,
        closing: bool,
        aside: bool,
    ) -> Result<(Vec<usize>, Vec<usize>), VolumeError> {
        if closing
            || self
                .compressed_zone
                .as_ref()
                .is_some_and(|open| open.blocks_left() == 0)
        {
            self.compressed_zone = None;
        }
        if closing {
            self.compressed_next.clear();
        }
        let mut dropped = Vec::new();
        for zone in self.superblock.uncommitted_zones.clone() {
            let number = zone as usize;
            let mut now = self.zones.get(number);
            now.committed_window = self.window;
            self.zones.set(number, now);
            if !self.is_open(number) {
                dropped.push(number);
            }
        }
        if !aside {
            self.free_if_empty(&dropped);
        }
        let before = self.compressed_next.len();
        if !closing {
            self.name_compressed_zones()?;
        }
        let named = if aside {
            self.compressed_next.split_off(before)
        } else {
            Vec::new()
        };
        Ok((dropped, named))
    }

    /// Zones that hold nothing any more are free.
    fn free_if_empty(&mut self, zones: &[usize]) {
        for &number in zones {
            let zone = self.zones.get(number);
            if u32::from(zone.free_blocks) == self.zones.zone_blocks() && !self.is_open(number) {
                let kind = ZoneKind::Free;
                self.zones.set(number, Zone { kind, ..zone });
            }
        }
    }

    fn name_compressed_zones(&mut self) -> Result<(), VolumeError> {
        let zone_blocks = u64::from(self.zones.zone_blocks());
        let wanted = u64::from(self.settings().commit_zones) * zone_blocks;
        while self.part_places() < wanted && self.compressed_next.len() + 1 < UNCOMMITTED_ZONES_MAX
        {
            let open = self.compressed_zone.as_ref().map(|open| open.zone);
            let next = &self.compressed_next;
            let partial = self.zones.most_free(ZoneKind::Compressed, |zone| {
                Some(zone) != open && !next.contains(&zone)
            });
            // What clients were answered for has room yet.
            let spare = self.buffer.blocks() + zone_blocks;
            let found = if !self.is_short()
                && (self.buffer.is_empty() || self.placeable_blocks() >= spare)
            {
                self.zones.take_free(ZoneKind::Compressed)
            } else if partial.is_some() {
                partial
            } else if self.part_places() < self.window_parts() {
                // The reserve has room for this.
                self.zones.take_free(ZoneKind::Compressed)
            } else {
                None
            };
            match found {
                Some(zone) => self.compressed_next.push(zone),
                None => break,
            }
        }
        if self.part_places() == 0 {
            return Err(VolumeError::Full(
                "no zone has a free block for metadata".to_owned(),
            ));
        }
        Ok(())
    }

    /// Writes what changed of the zones to their table: as they are when what is freed is free. Gives the
    /// zones with freed blocks as they are there.
    fn write_zones(
        &mut self,
        freed: &Freed,
        dropped: &[usize],
        named: &[usize],
    ) -> Result<Vec<(usize, Zone)>, VolumeError> {
        let mut zones = self.zones.changed();
        zones.extend(freed.zones());
        zones.extend(dropped);
        zones.sort_unstable();
        zones.dedup();
        let mut freed_zones = Vec::new();
        for zone in zones {
            let mut then = self.zones.get(zone);
            let held = self.held.as_ref().map_or(0, |held| held.freed.count(zone));
            let waiting = freed.count(zone) + held;
            let all = self.zones.zone_blocks();
            then.free_blocks = (u32::from(then.free_blocks) + waiting as u32).min(all) as u16;
            let holds_data = matches!(then.kind, ZoneKind::Data | ZoneKind::Compressed);
            if (waiting > 0 || dropped.contains(&zone))
                && u32::from(then.free_blocks) == all
                && holds_data
                && !self.is_open(zone)
                && !named.contains(&zone)
            {
                then.kind = ZoneKind::Free;
            }
            if freed.count(zone) > 0 {
                freed_zones.push((zone, then));
            }
            self.tables
                .entry_mut(TableKind::Zones, zone as u64)?
                .copy_from_slice(&then.encode());
        }
        self.zones.all_written();
        Ok(freed_zones)
    }

    pub(super) fn free_page(&mut self, pba: Pba) {
        let zone = self.zones.of(pba);
        let block = (pba.0 - self.zones.first_block(zone).0) as usize;
        if self.space.release(zone, block) {
            self.zones.set(
                zone,
                Zone {
                    kind: ZoneKind::Free,
                    free_blocks: self.zones.zone_blocks() as u16,
                    ..self.zones.get(zone)
                },
            );
        }
    }
}

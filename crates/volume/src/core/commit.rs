//! Commits: the tables in memory become the durable ones, whole or not at all.
//!
//! Changed pages go to new places, then a sync, then the superblock that names them, then a sync. With it
//! go the zones: blocks that nothing refers to are free, full zones of compressed blocks are committed, and
//! the zones that the next windows go to are named *before* they are used, so that no window costs
//! a change of a zone's state. Counts of references are written in no other way: batched, and never ahead of or
//! behind the mapping (Ni, §5.2.1, orders increments before decrements; a commit that is whole needs no
//! order).

use std::sync::Arc;

use super::Core;
use crate::address::{Pba, Reference};
use crate::error::VolumeError;
use crate::generations;
use crate::settings::Persistence;
use crate::superblock::UNCOMMITTED_ZONES_MAX;
use crate::tables::{PageSink, TableKind, tree_shape};
use crate::zones::ZoneKind;

/// Pages of the tree of zones that a commit may add to those that are changed already.
fn zone_pages(zones: u64) -> usize {
    let shape = tree_shape(TableKind::Zones, zones);
    shape.leaves + shape.directories + shape.roots
}

impl Core {
    /// Commits the tables. With `closing` the volume is marked as closed, and no zone is open.
    pub(crate) fn commit(&mut self, closing: bool) -> Result<(), VolumeError> {
        if self.persistence() == Persistence::Ram {
            self.free_freed();
            return Ok(());
        }
        // Before blocks become free: pages must not go where the durable tables still have something.
        let generation_pages = generations::encode(&self.generations);
        self.reserve_pages(generation_pages.len())?;
        self.free_freed();
        if self.persistence() == Persistence::Thin {
            self.rotate_compressed_zones(closing)?;
        }
        if closing {
            self.leave_data_zone();
        }
        self.write_zones()?;
        let space = &mut self.space;
        let zones = &self.zones;
        let mut allocate = || {
            let (zone, block) = space
                .take()
                .ok_or_else(|| VolumeError::Full("no room for pages of metadata".to_owned()))?;
            Ok(Pba(zones.first_block(zone).0 + block as u64))
        };
        let mut places = Vec::new();
        for _ in &generation_pages {
            places.push(allocate()?);
        }
        let mut written = self.tables.write_dirty(allocate)?;
        let backing = Arc::clone(&self.backing);
        let mut sink = PageSink::new(&*backing);
        for (place, page) in places.iter().zip(&generation_pages) {
            sink.put(*place, &page[..])?;
        }
        written += sink.finish()?;
        self.counters.page_blocks_written += written;
        self.sync()?;
        let generation = self.superblock.generation;
        let lists = places
            .into_iter()
            .map(|place| Reference::new(place, generation));
        let old_lists = std::mem::replace(&mut self.superblock.generation_pages, lists.collect());
        self.counters.commits += 1;
        self.write_superblock(closing)?;
        for pba in self
            .tables
            .take_retired()
            .into_iter()
            .chain(old_lists.into_iter().filter_map(Reference::pba))
        {
            self.free_page(pba);
        }
        Ok(())
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

    /// Full zones of compressed blocks are committed; new ones are named for the next windows.
    fn rotate_compressed_zones(&mut self, closing: bool) -> Result<(), VolumeError> {
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
        let open = self.compressed_zone.as_ref().map(|open| open.zone);
        for zone in std::mem::take(&mut self.superblock.uncommitted_zones) {
            let number = zone as usize;
            let mut now = self.zones.get(number);
            now.committed_window = self.window;
            let in_use = open == Some(number) || self.compressed_next.contains(&number);
            if !in_use && u32::from(now.free_blocks) == self.zones.zone_blocks() {
                now.kind = ZoneKind::Free;
            }
            self.zones.set(number, now);
        }
        if !closing {
            self.name_compressed_zones()?;
        }
        let named = self
            .compressed_zone
            .iter()
            .map(|open| open.zone)
            .chain(self.compressed_next.iter().copied());
        self.superblock.uncommitted_zones = named.map(|zone| zone as u32).collect();
        Ok(())
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

    /// Writes what changed of the zones to their table.
    fn write_zones(&mut self) -> Result<(), VolumeError> {
        let changed: Vec<usize> = self.zones.changed().collect();
        for zone in changed {
            let stored = self.zones.get(zone).encode();
            self.tables
                .entry_mut(TableKind::Zones, zone as u64)?
                .copy_from_slice(&stored);
        }
        self.zones.all_written();
        Ok(())
    }

    /// Writes the superblock; everything that it names must be durable.
    pub(super) fn write_superblock(&mut self, clean: bool) -> Result<(), VolumeError> {
        self.counters.superblocks_written += 1;
        self.counters.syncs += 1;
        let superblock = &mut self.superblock;
        superblock.sequence += 1;
        superblock.clean = clean;
        superblock.committed_window = self.window;
        superblock.counters = self.counters;
        superblock.tables = self.tables.roots();
        let place = superblock.place();
        self.backing
            .write_at(place.offset(), &superblock.encode())
            .map_err(VolumeError::io("writing the superblock"))?;
        self.backing
            .sync()
            .map_err(VolumeError::io("making the superblock durable"))
    }

    fn free_page(&mut self, pba: Pba) {
        let zone = self.zones.of(pba);
        let block = (pba.0 - self.zones.first_block(zone).0) as usize;
        if self.space.release(zone, block) {
            self.zones.set(
                zone,
                crate::zones::Zone {
                    kind: ZoneKind::Free,
                    free_blocks: self.zones.zone_blocks() as u16,
                    ..self.zones.get(zone)
                },
            );
        }
    }
}

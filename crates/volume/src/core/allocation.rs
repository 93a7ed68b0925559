//! Places for blocks: open zones, the reserve that a commit needs, what is free.

use super::Core;
use crate::address::{Lba, Pba};
use crate::error::VolumeError;
use crate::records;
use crate::tables::{TableKind, tree_shape};
use crate::window::buffer::UNMAPS_MAX;
use crate::window::parts::PART_ENTRIES_MAX;
use crate::zones::{ZoneKind, Zones};

/// A zone that blocks are written to: its free blocks, in order.
#[derive(Debug)]
pub(super) struct OpenZone {
    pub(super) zone: usize,
    /// Free blocks, the next one last.
    free: Vec<Pba>,
}

impl OpenZone {
    pub(super) fn take(&mut self) -> Option<Pba> {
        self.free.pop()
    }

    pub(super) fn blocks_left(&self) -> usize {
        self.free.len()
    }
}

impl Core {
    /// Zones that must stay free so that a commit can always be made, and one for its windows.
    pub(super) fn reserve_zones(&self) -> u32 {
        let all: usize = TableKind::ALL
            .into_iter()
            .map(|kind| {
                let shape = tree_shape(kind, self.tables.entries(kind));
                shape
                    .leaves
                    .min(self.tables.dirty_pages_max() + self.window_pages())
                    + shape.directories
                    + shape.roots
            })
            .sum();
        let missing = (all + 16).saturating_sub(self.space.free_blocks());
        let zone_blocks = self.zones.zone_blocks() as usize;
        missing.div_ceil(zone_blocks) as u32
            + (self.window_parts() as usize).div_ceil(zone_blocks) as u32
    }

    /// Parts that the largest window takes when nothing of it can be compressed.
    pub(super) fn window_parts(&self) -> u64 {
        let entries = self.settings().window_blocks as usize + UNMAPS_MAX;
        entries.div_ceil(PART_ENTRIES_MAX) as u64
    }

    /// Whether there is room for a commit and so many trees of the mapping.
    pub(crate) fn has_room_for_trees(&self, trees: u64) -> bool {
        let shape = tree_shape(TableKind::Map, self.tables.entries(TableKind::Map));
        let pages = trees * (shape.leaves + shape.directories + shape.roots) as u64;
        let zones = pages.div_ceil(u64::from(self.zones.zone_blocks()));
        u64::from(self.zones.free_zones()) >= u64::from(self.reserve_zones()) + zones
    }

    /// Zones that the next commit may take for pages that have no place yet.
    fn commit_zones(&self) -> u32 {
        let pages = self.tables.dirty_pages() + self.window_pages() + 16;
        let all: usize = TableKind::ALL
            .into_iter()
            .map(|kind| tree_shape(kind, self.tables.entries(kind)).leaves)
            .sum();
        (pages.min(all + 16) / self.zones.zone_blocks() as usize) as u32 + 1
    }

    /// Pages that closing one window may change, at most.
    fn window_pages(&self) -> usize {
        4 * self.settings().window_blocks as usize + 6 * self.unmap_step() as usize
    }

    /// Blocks of data that can be placed without touching the reserve.
    pub(crate) fn placeable_blocks(&self) -> u64 {
        // Pages of pinned trees stay: commits take room that they do not give back.
        if !self.generations.is_empty() && !self.has_room_for_trees(1) {
            return 0;
        }
        let open = self.data_zone.as_ref().map_or(0, OpenZone::blocks_left) as u64;
        let open_zone = self.data_zone.as_ref().map(|open| open.zone);
        let counted_twice = open_zone.map_or(0, |zone| u64::from(self.zones.get(zone).free_blocks));
        let partial = self.zones.free_blocks(ZoneKind::Data) - counted_twice;
        let kept = self.reserve_zones() + self.commit_zones();
        let free = self.zones.free_zones().saturating_sub(kept);
        open + partial + u64::from(free) * u64::from(self.zones.zone_blocks())
    }

    /// Whether the reserve is all there is: windows then take no more than their metadata.
    pub(super) fn is_short(&self) -> bool {
        self.zones.free_zones() <= self.reserve_zones()
    }

    /// Whether there is room for much more than a commit and a window: what is free then may stay unused for
    /// a while.
    pub(super) fn is_roomy(&self) -> bool {
        let window = self.settings().window_blocks as u64;
        !self.is_short()
            && self.zones.free_zones() > self.reserve_zones() + self.commit_zones()
            && self.placeable_blocks() >= self.buffer.blocks() + 2 * window
    }

    /// Sees to it that `blocks` more blocks of the open window can be placed.
    pub(super) fn make_room(&mut self, blocks: u64) -> Result<(), VolumeError> {
        let wanted = self.buffer.blocks() + blocks;
        if blocks == 0 || self.placeable_blocks() >= wanted {
            return Ok(());
        }
        // What a commit or a reader keeps back is free first of all.
        self.finish_commit()?;
        self.release_held();
        if self.placeable_blocks() >= wanted {
            return Ok(());
        }
        if !self.freed.is_empty() || !self.buffer.is_empty() {
            self.close_window()?;
            self.whole(|core| core.commit(false))?;
        }
        if self.placeable_blocks() >= self.buffer.blocks() + blocks {
            return Ok(());
        }
        Err(VolumeError::Full(format!(
            "{} blocks of 4 KiB, all in use; trim the file system (fstrim), or enlarge the backing store",
            self.superblock.physical_blocks
        )))
    }

    /// A place for a block of data.
    pub(super) fn place_data(&mut self) -> Result<Pba, VolumeError> {
        loop {
            if let Some(pba) = self.data_zone.as_mut().and_then(OpenZone::take) {
                return Ok(pba);
            }
            let current = self.leave_data_zone();
            let compacts = self.moves;
            let fuller = |core: &Self| {
                core.zones.most_free(ZoneKind::Data, |zone| {
                    Some(zone) != current && !core.closed_zones.contains(&zone)
                })
            };
            // Where there is room, a zone of its own: what is written together lies together. What is moved
            // goes where room is left.
            let zone = if compacts || self.is_short() {
                fuller(self)
            } else {
                None
            };
            let zone = zone
                .or_else(|| match self.is_short() {
                    false => self.zones.take_free(ZoneKind::Data),
                    true => None,
                })
                .or_else(|| fuller(self))
                // What clients were answered for has a place, even one that is being emptied.
                .or_else(|| match compacts {
                    false => self
                        .zones
                        .most_free(ZoneKind::Data, |zone| Some(zone) != current),
                    true => None,
                })
                .ok_or_else(|| VolumeError::Full("no zone has a free block".to_owned()))?;
            self.data_zone = Some(self.open_zone(zone)?);
        }
    }

    /// No zone is open for data any more; the one that was may have lost all its blocks meanwhile.
    pub(super) fn leave_data_zone(&mut self) -> Option<usize> {
        let zone = self.data_zone.take()?.zone;
        let now = self.zones.get(zone);
        if u32::from(now.free_blocks) == self.zones.zone_blocks() {
            let kind = ZoneKind::Free;
            self.zones.set(zone, crate::zones::Zone { kind, ..now });
        }
        Some(zone)
    }

    /// A place for a part of a window. Commits see to it that there always is one.
    pub(super) fn place_part(&mut self) -> Result<Pba, VolumeError> {
        loop {
            if let Some(pba) = self.compressed_zone.as_mut().and_then(OpenZone::take) {
                return Ok(pba);
            }
            if self.compressed_next.is_empty() {
                return Err(VolumeError::Full(
                    "no zone has a free block for metadata".to_owned(),
                ));
            }
            let zone = self.compressed_next.remove(0);
            // Recovery looks nowhere else.
            assert!(
                self.superblock.uncommitted_zones.contains(&(zone as u32)),
                "zone {zone} is not named by the durable superblock"
            );
            self.compressed_zone = Some(self.open_zone(zone)?);
        }
    }

    /// Places for parts that there are at least.
    pub(super) fn part_places(&self) -> u64 {
        let open = self
            .compressed_zone
            .as_ref()
            .map_or(0, OpenZone::blocks_left) as u64;
        let next: u64 = self
            .compressed_next
            .iter()
            .map(|&zone| u64::from(self.zones.get(zone).free_blocks))
            .sum();
        open + next
    }

    /// Finds the free blocks of a zone.
    fn open_zone(&mut self, zone: usize) -> Result<OpenZone, VolumeError> {
        let first = self.zones.first_block(zone).0;
        let mut free = Vec::new();
        let waiting = self.waiting_blocks(zone);
        for block in (first..first + u64::from(self.zones.zone_blocks())).rev() {
            let pba = Pba(block);
            if records::references(&mut self.tables, pba)? == 0 && !waiting.contains(&pba) {
                free.push(pba);
            }
        }
        Ok(OpenZone { zone, free })
    }

    /// A block now has its first reference.
    pub(super) fn occupy(zones: &mut Zones, pba: Pba) {
        let zone = zones.of(pba);
        let before = zones.get(zone);
        let now = crate::zones::Zone {
            free_blocks: before.free_blocks.saturating_sub(1),
            ..before
        };
        zones.set(zone, now);
    }

    /// Writes a new block's record, with one reference.
    pub(super) fn occupy_with(
        &mut self,
        pba: Pba,
        fingerprint: crate::fingerprint::Fingerprint,
        owner: Lba,
    ) -> Result<(), VolumeError> {
        let record = records::BlockRecord {
            fingerprint,
            references: 1,
            owner,
        };
        records::set_record(&mut self.tables, pba, &record)?;
        Self::occupy(&mut self.zones, pba);
        Ok(())
    }
}

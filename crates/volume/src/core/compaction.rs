//! Moving blocks out of zones that are mostly empty, so that these can be given back or used for anything.
//!
//! Who refers to a block is found by one pass over the mapping for as many zones as fit the memory. A move is a
//! window like any other: the first reference is a new block, the others are duplicates of it. Blocks that pinned
//! generations refer to stay: their mapping is not changed.

use std::collections::HashMap;

use super::Core;
use super::closing::Closing;
use crate::address::{BLOCK_BYTES, Lba, Pba};
use crate::error::VolumeError;
use crate::records;
use crate::tables::TableKind;
use crate::window::parts::Entry;
use crate::zones::ZoneKind;

/// Blocks that are moved after one pass over the mapping, at most.
const PASS_BLOCKS: u64 = 1 << 20;

/// A zone is emptied when at most so many quarters of it are in use.
const USED_QUARTERS_MAX: u64 = 3;

/// What compacting did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compaction {
    /// Blocks that were moved.
    pub blocks_moved: u64,
    /// Blocks that pinned generations hold where they are, or that can't be read.
    pub blocks_pinned: u64,
    /// Zones that hold nothing, before and after.
    pub free_zones: (u32, u32),
    /// Bytes of the backing store that were given back.
    pub bytes_discarded: u64,
}

impl Core {
    /// See [`crate::Volume::compact`].
    pub(crate) fn compact(&mut self) -> Result<Compaction, VolumeError> {
        self.check_writable()?;
        self.flush()?;
        let mut done = Compaction {
            free_zones: (self.zones.free_zones(), 0),
            ..Compaction::default()
        };
        if self.persistence() == crate::settings::Persistence::Ram {
            return Err(VolumeError::Settings(
                "a volume of persistence `ram` is not compacted".to_owned(),
            ));
        }
        self.whole(|core| {
            core.commit(false)?;
            core.empty_zones(&mut done)?;
            core.commit(false)
        })?;
        done.free_zones.1 = self.zones.free_zones();
        done.bytes_discarded = self.discard_free_zones()?;
        Ok(done)
    }

    /// Empties zones, fewest blocks first, as long as all their blocks fit into free ones of fuller zones.
    fn empty_zones(&mut self, done: &mut Compaction) -> Result<(), VolumeError> {
        let zone_blocks = u64::from(self.zones.zone_blocks());
        let mut victims: Vec<(u64, usize)> = (1..self.zones.count())
            .filter(|&zone| {
                matches!(
                    self.zones.get(zone).kind,
                    ZoneKind::Data | ZoneKind::Compressed
                ) && !self.is_open(zone)
            })
            .map(|zone| {
                (
                    zone_blocks - u64::from(self.zones.get(zone).free_blocks),
                    zone,
                )
            })
            .filter(|(used, _)| used * 4 <= zone_blocks * USED_QUARTERS_MAX)
            .collect();
        victims.sort_unstable();
        // Zones that are fuller take what the emptier ones have.
        let room: u64 = victims.iter().map(|(used, _)| zone_blocks - used).sum();
        let mut taken = 0;
        let mut start = 0;
        while start < victims.len() {
            let mut batch = HashMap::new();
            let mut end = start;
            while end < victims.len() && (batch.len() as u64) < PASS_BLOCKS {
                let (used, zone) = victims[end];
                let left = room
                    - victims[..=end]
                        .iter()
                        .map(|(used, _)| zone_blocks - used)
                        .sum::<u64>();
                if taken + used > left {
                    break;
                }
                taken += used;
                self.blocks_in_use(zone, &mut batch)?;
                end += 1;
            }
            if batch.is_empty() {
                break;
            }
            let emptied: Vec<usize> = victims[start..end].iter().map(|(_, zone)| *zone).collect();
            if !self.move_blocks(batch, &emptied, done)? {
                break;
            }
            start = end;
        }
        Ok(())
    }

    /// Blocks of a zone that are in use, with an empty list of those that refer to them.
    fn blocks_in_use(
        &mut self,
        zone: usize,
        into: &mut HashMap<Pba, Vec<Lba>>,
    ) -> Result<(), VolumeError> {
        let first = self.zones.first_block(zone).0;
        for pba in (first..first + u64::from(self.zones.zone_blocks())).map(Pba) {
            if records::references(&mut self.tables, pba)? > 0 {
                into.insert(pba, Vec::new());
            }
        }
        Ok(())
    }

    /// Moves blocks out of zones; `false` when there was no room for all of them.
    fn move_blocks(
        &mut self,
        mut batch: HashMap<Pba, Vec<Lba>>,
        emptied: &[usize],
        done: &mut Compaction,
    ) -> Result<bool, VolumeError> {
        let pin = self.newest_pin();
        for lba in (0..self.settings().logical_blocks()).map(Lba) {
            if self.tables.is_absent(TableKind::Map, lba.0) {
                continue;
            }
            let reference = self.mapped(lba)?;
            // What a pinned generation has, too, would be there twice.
            if let Some(pba) = reference.pba()
                && let Some(referrers) = batch.get_mut(&pba)
                && pin.is_none_or(|pin| reference.generation() > pin)
            {
                referrers.push(lba);
            }
            self.tables.trim_cache();
        }
        self.closed_zones = emptied.to_vec();
        if self
            .data_zone
            .as_ref()
            .is_some_and(|open| emptied.contains(&open.zone))
        {
            self.leave_data_zone();
        }
        let mut moves: Vec<(Pba, Vec<Lba>)> = batch.into_iter().collect();
        moves.sort_unstable_by_key(|(pba, _)| *pba);
        let entries_max = self.settings().window_blocks as usize;
        let (mut window, mut entries, mut has_room) = (Vec::new(), 0, true);
        for (pba, referrers) in moves {
            let record = records::record(&mut self.tables, pba)?;
            if record.references as usize != referrers.len() || referrers.is_empty() {
                done.blocks_pinned += 1;
                continue;
            }
            if entries + referrers.len() > entries_max {
                let moves = std::mem::take(&mut window);
                has_room = self.move_window(moves, done)?;
                entries = 0;
            }
            if !has_room {
                break;
            }
            if referrers.len() > entries_max {
                let fingerprint = record.fingerprint;
                has_room = self.move_in_steps(pba, fingerprint, &referrers, entries_max, done)?;
                continue;
            }
            entries += referrers.len();
            window.push((pba, record.fingerprint, referrers));
        }
        has_room = has_room && self.move_window(window, done)?;
        self.closed_zones.clear();
        self.commit(false)?;
        Ok(has_room)
    }

    /// Blocks that can be moved: what is free outside of zones that are being emptied.
    fn room_to_move(&self) -> u64 {
        let closed = self.closed_zones.iter().map(|&zone| self.zones.get(zone));
        let closed = closed.filter(|zone| zone.kind == ZoneKind::Data);
        let unusable: u64 = closed.map(|zone| u64::from(zone.free_blocks)).sum();
        self.placeable_blocks().saturating_sub(unusable)
    }

    /// Moves a block that more refer to than a window holds: the first of them have it at its new place, then
    /// the others follow; until the last one has, it is there twice.
    fn move_in_steps(
        &mut self,
        pba: Pba,
        fingerprint: crate::fingerprint::Fingerprint,
        referrers: &[Lba],
        entries_max: usize,
        done: &mut Compaction,
    ) -> Result<bool, VolumeError> {
        let (first, rest) = referrers.split_at(entries_max);
        if !self.move_window(vec![(pba, fingerprint, first.to_vec())], done)? {
            return Ok(false);
        }
        let Some(pba) = self.mapped(first[0])?.pba() else {
            return Ok(true);
        };
        let fingerprint = records::record(&mut self.tables, pba)?.fingerprint;
        for lbas in rest.chunks(entries_max) {
            self.prepare_window(lbas.len())?;
            let mut closing = Closing::default();
            for &lba in lbas {
                let entry = Entry::Duplicate {
                    lba,
                    pba,
                    fingerprint,
                };
                self.apply(&entry)?;
                closing.entries.push(entry);
            }
            self.finish_window(&closing)?;
        }
        Ok(true)
    }

    /// Writes blocks to new places, and everything that refers to them with it; `false` when there is no
    /// room for them.
    fn move_window(
        &mut self,
        moves: Vec<(Pba, crate::fingerprint::Fingerprint, Vec<Lba>)>,
        done: &mut Compaction,
    ) -> Result<bool, VolumeError> {
        if moves.is_empty() {
            return Ok(true);
        }
        let entries = moves.iter().map(|(_, _, referrers)| referrers.len()).sum();
        self.prepare_window(entries)?;
        if self.room_to_move() < moves.len() as u64 {
            self.commit(false)?;
            if self.room_to_move() < moves.len() as u64 {
                return Ok(false);
            }
        }
        done.blocks_moved += moves.len() as u64;
        let mut closing = Closing::default();
        let mut bytes = vec![0; BLOCK_BYTES];
        for (pba, mut fingerprint, referrers) in moves {
            // What can't be read stays where it is.
            if self.read_stored(pba, &mut bytes).is_err() {
                done.blocks_moved -= 1;
                done.blocks_pinned += 1;
                continue;
            }
            if fingerprint == crate::fingerprint::Fingerprint::UNKNOWN {
                fingerprint = self.fingerprinter.of(&bytes);
            }
            let place = self.buffer.stash(&bytes);
            let moved = self.place_new(place, 0, &mut closing)?;
            self.counters.blocks_moved += 1;
            for (number, lba) in referrers.into_iter().enumerate() {
                let pba = moved;
                let entry = if number == 0 {
                    Entry::New {
                        lba,
                        pba,
                        fingerprint,
                    }
                } else {
                    Entry::Duplicate {
                        lba,
                        pba,
                        fingerprint,
                    }
                };
                self.apply(&entry)?;
                closing.entries.push(entry);
            }
        }
        self.finish_window(&closing)?;
        Ok(true)
    }

    /// Gives zones that hold nothing back to the store.
    fn discard_free_zones(&mut self) -> Result<u64, VolumeError> {
        let zone_bytes = u64::from(self.zones.zone_blocks()) * BLOCK_BYTES as u64;
        let mut bytes = 0;
        for zone in 1..self.zones.count() {
            if self.zones.get(zone).kind == ZoneKind::Free {
                let offset = self.zones.first_block(zone).offset();
                self.backing
                    .discard(offset, zone_bytes)
                    .map_err(VolumeError::io("giving room back"))?;
                bytes += zone_bytes;
            }
        }
        Ok(bytes)
    }
}

//! Moving blocks out of zones that are mostly empty, so that these can be given back or used for anything.
//!
//! Who refers to a block is found by one pass over the mapping for as many zones as fit the memory. All goes on
//! in steps, between which the volume is used: a block is moved if then all that refer to it are known. A move is a
//! window like any other: the first reference is a new block, the others are duplicates of it. Blocks that pinned
//! generations refer to stay: their mapping is not changed.

use std::collections::{HashMap, VecDeque};

use super::Core;
use super::closing::Closing;
use crate::address::{BLOCK_BYTES, Lba, Pba};
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::records;
use crate::tables::TableKind;
use crate::window::parts::Entry;
use crate::zones::ZoneKind;

/// Blocks that are moved after one pass over the mapping, at most.
const PASS_BLOCKS: u64 = 1 << 20;

/// A zone is emptied when at most so many quarters of it are in use.
const USED_QUARTERS_MAX: u64 = 3;

/// Pages of the mapping that are looked through in one step.
const STEP_PAGES: usize = 16;

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

/// A block to be moved.
#[derive(Debug)]
enum Move {
    /// It gets another place; who refers to it.
    Block(Pba, Vec<Lba>),
    /// It is at another place already (the first), these refer to the old one still.
    Follow(Pba, Pba, Vec<Lba>),
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Blocks of zones are collected.
    Collect,
    /// Who refers to them is looked for; from this block of the disk on.
    Scan(u64),
    /// They are moved.
    Move,
    /// Free zones are given back; from this zone on.
    Discard(usize),
}

/// A compaction that began.
#[derive(Debug)]
pub(crate) struct Compacting {
    pub(crate) done: Compaction,
    phase: Phase,
    /// Blocks in use and zone, fewest first.
    victims: Vec<(u64, usize)>,
    /// The next of them.
    next: usize,
    /// Free blocks of those that are left: these take what the emptier ones have.
    room: u64,
    /// Blocks that were collected in all.
    taken: u64,
    batch: HashMap<Pba, Vec<Lba>>,
    moves: VecDeque<Move>,
    has_room: bool,
}

impl Core {
    /// Begins what [`crate::Volume::compact`] does.
    pub(crate) fn begin_compaction(&mut self) -> Result<Compacting, VolumeError> {
        self.check_writable()?;
        if self.persistence() == crate::settings::Persistence::Ram {
            return Err(VolumeError::Settings(
                "a volume of persistence `ram` is not compacted".to_owned(),
            ));
        }
        self.flush()?;
        let free_zones = self.zones.free_zones();
        if !self.is_committed() {
            self.whole(|core| core.commit(false))?;
        }
        let zone_blocks = u64::from(self.zones.zone_blocks());
        let mut victims: Vec<(u64, usize)> = (1..self.zones.count())
            .filter(|&zone| {
                let kind = self.zones.get(zone).kind;
                matches!(kind, ZoneKind::Data | ZoneKind::Compressed) && !self.is_open(zone)
            })
            .map(|zone| {
                let free = u64::from(self.zones.get(zone).free_blocks);
                (zone_blocks - free, zone)
            })
            .filter(|(used, _)| used * 4 <= zone_blocks * USED_QUARTERS_MAX)
            .collect();
        victims.sort_unstable();
        Ok(Compacting {
            done: Compaction {
                free_zones: (free_zones, 0),
                ..Compaction::default()
            },
            phase: Phase::Collect,
            room: victims.iter().map(|(used, _)| zone_blocks - used).sum(),
            victims,
            next: 0,
            taken: 0,
            batch: HashMap::new(),
            moves: VecDeque::new(),
            has_room: true,
        })
    }

    /// Goes on; `false` when it is over. Between two steps the volume is used.
    pub(crate) fn compaction_step(&mut self, work: &mut Compacting) -> Result<bool, VolumeError> {
        self.check_writable()?;
        match work.phase {
            Phase::Collect => self.whole(|core| core.collect(work))?,
            Phase::Scan(from) => self.whole(|core| core.find_referrers(work, from))?,
            Phase::Move => self.whole(|core| core.move_some(work))?,
            Phase::Discard(zone) => return self.discard(work, zone),
        }
        Ok(true)
    }

    /// Empties zones, fewest blocks first, as long as all their blocks fit into free ones of fuller zones.
    fn collect(&mut self, work: &mut Compacting) -> Result<(), VolumeError> {
        let zone_blocks = u64::from(self.zones.zone_blocks());
        let fits = match work.victims.get(work.next) {
            Some(&(used, _)) => {
                let left = work.room - (zone_blocks - used);
                work.has_room
                    && (work.batch.len() as u64) < PASS_BLOCKS
                    && work.taken + used <= left
            }
            None => false,
        };
        if fits {
            let (used, zone) = work.victims[work.next];
            work.room -= zone_blocks - used;
            work.taken += used;
            work.next += 1;
            self.closed_zones.push(zone);
            return self.blocks_in_use(zone, &mut work.batch);
        }
        if work.batch.is_empty() {
            self.closed_zones.clear();
            work.phase = Phase::Discard(1);
            return self.commit_aside();
        }
        work.phase = Phase::Scan(0);
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

    /// Looks through some pages of the mapping. What changes before blocks are moved is noticed then.
    fn find_referrers(&mut self, work: &mut Compacting, from: u64) -> Result<(), VolumeError> {
        let blocks = self.settings().logical_blocks();
        let per_page = crate::page::entries_per_page(TableKind::Map.entry_bytes()) as u64;
        let (mut lba, mut pages) = (from, 0);
        while lba < blocks && pages < STEP_PAGES {
            let end = blocks.min(lba + per_page);
            if !self.tables.is_absent(TableKind::Map, lba) {
                pages += 1;
                for lba in (lba..end).map(Lba) {
                    if let Some(pba) = self.mapped(lba)?.pba()
                        && let Some(referrers) = work.batch.get_mut(&pba)
                    {
                        referrers.push(lba);
                    }
                }
            }
            lba = end;
        }
        self.tables.trim_cache();
        work.phase = Phase::Scan(lba);
        if lba == blocks {
            let mut moves: Vec<_> = work.batch.drain().collect();
            moves.sort_unstable_by_key(|(pba, _)| *pba);
            let moves = moves.into_iter().map(|(pba, lbas)| Move::Block(pba, lbas));
            work.moves = moves.collect();
            work.phase = Phase::Move;
        }
        Ok(())
    }

    /// Those of a list that refer to a block, and that no pinned generation has as well: it would be there
    /// twice.
    fn still_refer(&mut self, pba: Pba, lbas: &[Lba]) -> Result<Vec<Lba>, VolumeError> {
        let pin = self.newest_pin();
        let mut those = Vec::new();
        for &lba in lbas {
            let reference = self.mapped(lba)?;
            if reference.pba() == Some(pba) && pin.is_none_or(|pin| reference.generation() > pin) {
                those.push(lba);
            }
        }
        Ok(those)
    }

    /// Moves as many blocks as a window has room for.
    fn move_some(&mut self, work: &mut Compacting) -> Result<(), VolumeError> {
        self.close_window()?;
        let entries_max = self.settings().window_blocks as usize;
        let (mut window, mut entries) = (Vec::new(), 0);
        while let Some(next) = work.moves.pop_front() {
            let (pba, lbas) = match next {
                Move::Block(pba, lbas) => (pba, lbas),
                Move::Follow(..) if !window.is_empty() => {
                    work.moves.push_front(next);
                    break;
                }
                Move::Follow(to, from, lbas) => return self.follow(to, from, &lbas, work),
            };
            let referrers = self.still_refer(pba, &lbas)?;
            let record = records::record(&mut self.tables, pba)?;
            if record.references as usize != referrers.len() || referrers.is_empty() {
                work.done.blocks_pinned += 1;
                continue;
            }
            if entries + referrers.len() > entries_max && !window.is_empty() {
                work.moves.push_front(Move::Block(pba, referrers));
                break;
            }
            if referrers.len() > entries_max {
                return self.move_in_steps(pba, record.fingerprint, &referrers, work);
            }
            entries += referrers.len();
            window.push((pba, record.fingerprint, referrers));
        }
        work.has_room = self.move_window(window, &mut work.done)?;
        if !work.has_room {
            work.moves.clear();
        }
        if work.moves.is_empty() {
            self.closed_zones.clear();
            work.phase = Phase::Collect;
            self.commit_aside()?;
        }
        Ok(())
    }

    /// Moves a block that more refer to than a window holds: the first of them have it at its new place, then
    /// the others follow; until the last one has, it is there twice.
    fn move_in_steps(
        &mut self,
        from: Pba,
        fingerprint: Fingerprint,
        referrers: &[Lba],
        work: &mut Compacting,
    ) -> Result<(), VolumeError> {
        let entries_max = self.settings().window_blocks as usize;
        let (first, rest) = referrers.split_at(entries_max);
        let one = vec![(from, fingerprint, first.to_vec())];
        work.has_room = self.move_window(one, &mut work.done)?;
        if !work.has_room {
            work.moves.clear();
        } else if let Some(to) = self.mapped(first[0])?.pba().filter(|to| *to != from) {
            work.moves.push_front(Move::Follow(to, from, rest.to_vec()));
        }
        Ok(())
    }

    /// Some of those that refer to a block's old place get the new one.
    fn follow(
        &mut self,
        to: Pba,
        from: Pba,
        referrers: &[Lba],
        work: &mut Compacting,
    ) -> Result<(), VolumeError> {
        let entries_max = self.settings().window_blocks as usize;
        let (here, rest) = referrers.split_at(referrers.len().min(entries_max));
        let lbas = self.still_refer(from, here)?;
        self.prepare_window(lbas.len())?;
        let record = records::record(&mut self.tables, to)?;
        let old = records::record(&mut self.tables, from)?;
        // Both places may have got something else meanwhile.
        let are_equal = record.references > 0
            && record.fingerprint == old.fingerprint
            && record.fingerprint != Fingerprint::UNKNOWN
            && self.have_same_bytes(to, from);
        if !are_equal {
            work.done.blocks_pinned += 1;
            return Ok(());
        }
        if !rest.is_empty() {
            work.moves.push_front(Move::Follow(to, from, rest.to_vec()));
        }
        if lbas.is_empty() {
            return Ok(());
        }
        let mut closing = Closing::default();
        for lba in lbas {
            let entry = Entry::Duplicate {
                lba,
                pba: to,
                fingerprint: record.fingerprint,
            };
            self.apply(&entry)?;
            closing.entries.push(entry);
        }
        self.finish_window(&closing)
    }

    fn have_same_bytes(&self, one: Pba, other: Pba) -> bool {
        let mut bytes = [[0; BLOCK_BYTES]; 2];
        self.read_stored(one, &mut bytes[0]).is_ok()
            && self.read_stored(other, &mut bytes[1]).is_ok()
            && bytes[0] == bytes[1]
    }

    /// Blocks that can be moved: what is free outside of zones that are being emptied.
    fn room_to_move(&self) -> u64 {
        let closed = self.closed_zones.iter().map(|&zone| self.zones.get(zone));
        let closed = closed.filter(|zone| zone.kind == ZoneKind::Data);
        let unusable: u64 = closed.map(|zone| u64::from(zone.free_blocks)).sum();
        self.placeable_blocks().saturating_sub(unusable)
    }

    /// Writes blocks to new places, and everything that refers to them with it; `false` when there is no
    /// room for them.
    fn move_window(
        &mut self,
        moves: Vec<(Pba, Fingerprint, Vec<Lba>)>,
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
            if fingerprint == Fingerprint::UNKNOWN {
                fingerprint = self.fingerprinter.of(&bytes);
            }
            let place = self.buffer.stash(&bytes);
            self.moves = true;
            let moved = self.place_new(place, 0, &mut closing);
            self.moves = false;
            let moved = moved?;
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

    /// Gives a zone that holds nothing back to the store, the next from `zone` on.
    fn discard(&mut self, work: &mut Compacting, zone: usize) -> Result<bool, VolumeError> {
        let zone_bytes = u64::from(self.zones.zone_blocks()) * BLOCK_BYTES as u64;
        let mut free = zone..self.zones.count();
        let Some(zone) = free.find(|&zone| self.zones.get(zone).kind == ZoneKind::Free) else {
            work.done.free_zones.1 = self.zones.free_zones();
            return Ok(false);
        };
        self.backing
            .discard(self.zones.first_block(zone).offset(), zone_bytes)
            .map_err(VolumeError::io("giving room back"))?;
        work.done.bytes_discarded += zone_bytes;
        work.phase = Phase::Discard(zone + 1);
        Ok(true)
    }
}

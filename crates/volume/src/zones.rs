//! Zones: what each holds, and which blocks of it are free.
//!
//! A zone holds one kind of block (Ni, §5.2.2): *data* (U-zone), *compressed* data with metadata of a
//! window (C-zone), or *pages* of metadata. Zone 0 begins with the superblocks and is never used otherwise.
//! Blocks that become free can be used again after the next commit; live ones stay where they are.
//! In memory: 16 bytes a zone.

use std::collections::BTreeMap;

use crate::address::Pba;
use crate::page::{read_u16, read_u64};
use crate::tables::TableKind;

/// What a zone holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum ZoneKind {
    /// Nothing.
    #[default]
    Free = 0,
    /// Blocks as clients wrote them.
    Data = 1,
    /// Compressed blocks, with metadata of windows.
    Compressed = 2,
    /// Pages of tables.
    Pages = 3,
}

impl ZoneKind {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Free, Self::Data, Self::Compressed, Self::Pages]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// What is known of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zone {
    /// What it holds.
    pub kind: ZoneKind,
    /// Blocks of it that hold nothing (of a zone of pages: 0).
    pub free_blocks: u16,
    /// The last window when its metadata was committed: the zone's timestamp.
    pub committed_window: u64,
}

/// Bytes of a zone's entry.
const ENTRY_BYTES: usize = TableKind::Zones.entry_bytes();

impl Zone {
    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = self.kind as u8;
        bytes[2..4].copy_from_slice(&self.free_blocks.to_le_bytes());
        bytes[4..].copy_from_slice(&self.committed_window.to_le_bytes());
        bytes
    }

    /// From the stored form; `None` when it can't be.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            kind: ZoneKind::from_number(bytes[0])?,
            free_blocks: read_u16(bytes, 2),
            committed_window: read_u64(bytes, 4),
        })
    }
}

/// All zones of a volume.
#[derive(Debug)]
pub struct Zones {
    zone_blocks: u32,
    zones: Vec<Zone>,
    /// Changed since they were written to the table.
    changed: Vec<bool>,
    /// All of those, and some that are not any more.
    changed_list: Vec<usize>,
    free_zones: u32,
    /// Free blocks by kind of zone.
    free_blocks: [u64; 4],
    /// Where the search for a free zone goes on.
    next_free: usize,
}

impl Zones {
    /// Zones that hold nothing.
    #[must_use]
    pub fn new(zone_blocks: u32, count: usize) -> Self {
        let mut zones = Self {
            zone_blocks,
            zones: Vec::new(),
            changed: Vec::new(),
            changed_list: Vec::new(),
            free_zones: 0,
            free_blocks: [0; 4],
            next_free: 1,
        };
        zones.extend(count);
        zones
    }

    /// More zones, that hold nothing.
    pub fn extend(&mut self, count: usize) {
        for number in self.zones.len()..count {
            let (kind, free_blocks) = if number == 0 {
                (ZoneKind::Pages, 0)
            } else {
                self.free_zones += 1;
                (ZoneKind::Free, self.zone_blocks as u16)
            };
            self.free_blocks[kind as usize] += u64::from(free_blocks);
            self.zones.push(Zone {
                kind,
                free_blocks,
                committed_window: 0,
            });
            self.changed.push(true);
            self.changed_list.push(number);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.zones.len()
    }

    /// Blocks of a zone.
    #[must_use]
    pub fn zone_blocks(&self) -> u32 {
        self.zone_blocks
    }

    /// The zone of a block.
    #[must_use]
    pub fn of(&self, pba: Pba) -> usize {
        (pba.0 / u64::from(self.zone_blocks)) as usize
    }

    /// The first block of a zone.
    #[must_use]
    pub fn first_block(&self, zone: usize) -> Pba {
        Pba(zone as u64 * u64::from(self.zone_blocks))
    }

    /// What is known of a zone.
    #[must_use]
    pub fn get(&self, zone: usize) -> Zone {
        self.zones[zone]
    }

    /// Changes what is known of a zone.
    pub fn set(&mut self, zone: usize, now: Zone) {
        let before = std::mem::replace(&mut self.zones[zone], now);
        if before != now {
            if !std::mem::replace(&mut self.changed[zone], true) {
                self.changed_list.push(zone);
            }
            self.free_zones -= u32::from(before.kind == ZoneKind::Free);
            self.free_zones += u32::from(now.kind == ZoneKind::Free);
            self.free_blocks[before.kind as usize] -= u64::from(before.free_blocks);
            self.free_blocks[now.kind as usize] += u64::from(now.free_blocks);
        }
    }

    /// Zones that hold nothing.
    #[must_use]
    pub fn free_zones(&self) -> u32 {
        self.free_zones
    }

    /// Takes a zone that holds nothing for something else.
    pub fn take_free(&mut self, kind: ZoneKind) -> Option<usize> {
        if self.free_zones == 0 {
            return None;
        }
        let count = self.zones.len();
        for step in 0..count {
            let zone = (self.next_free + step) % count;
            if self.zones[zone].kind == ZoneKind::Free {
                self.next_free = zone + 1;
                let free_blocks = if kind == ZoneKind::Pages {
                    0
                } else {
                    self.zone_blocks as u16
                };
                let now = Zone {
                    kind,
                    free_blocks,
                    ..self.zones[zone]
                };
                self.set(zone, now);
                return Some(zone);
            }
        }
        None
    }

    /// The zone of that kind with most free blocks, of those that `usable` admits.
    #[must_use]
    pub fn most_free(&self, kind: ZoneKind, usable: impl Fn(usize) -> bool) -> Option<usize> {
        (1..self.zones.len())
            .filter(|&zone| {
                self.zones[zone].kind == kind && self.zones[zone].free_blocks > 0 && usable(zone)
            })
            .max_by_key(|&zone| self.zones[zone].free_blocks)
    }

    /// Free blocks in zones of that kind.
    #[must_use]
    pub fn free_blocks(&self, kind: ZoneKind) -> u64 {
        self.free_blocks[kind as usize]
    }

    /// Zones that changed since they were written to their table, lowest first.
    #[must_use]
    pub fn changed(&self) -> Vec<usize> {
        let mut zones = self.changed_list.clone();
        zones.retain(|&zone| self.changed[zone]);
        zones.sort_unstable();
        zones.dedup();
        zones
    }

    /// Whether a zone changed since it was written to its table.
    #[must_use]
    pub fn is_changed(&self, zone: usize) -> bool {
        self.changed[zone]
    }

    /// A zone is as its table has it.
    pub fn is_written(&mut self, zone: usize) {
        self.changed[zone] = false;
    }

    /// They were written.
    pub fn all_written(&mut self) {
        for zone in self.changed_list.drain(..) {
            self.changed[zone] = false;
        }
    }
}

/// A zone of pages: which blocks are taken.
#[derive(Debug)]
struct PageZone {
    taken: Vec<bool>,
    free_blocks: usize,
}

/// Which blocks of zones of pages are taken.
#[derive(Debug, Default)]
pub struct PageSpace {
    zones: BTreeMap<usize, PageZone>,
    free_blocks: usize,
    /// Zone that blocks are taken from, and the first block of it that may be free.
    cursor: (usize, usize),
}

impl PageSpace {
    /// Blocks that can be taken.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        self.free_blocks
    }

    /// Blocks that are taken.
    #[must_use]
    pub fn taken_blocks(&self) -> u64 {
        let all: usize = self.zones.values().map(|zone| zone.taken.len()).sum();
        (all - self.free_blocks) as u64
    }

    /// A zone of pages, all free.
    pub fn add_zone(&mut self, zone: usize, zone_blocks: u32) {
        let fresh = PageZone {
            taken: vec![false; zone_blocks as usize],
            free_blocks: zone_blocks as usize,
        };
        let before = self.zones.insert(zone, fresh);
        assert!(before.is_none(), "zone {zone} twice");
        self.free_blocks += zone_blocks as usize;
    }

    /// Whether a zone is one of pages.
    #[must_use]
    pub fn has_zone(&self, zone: usize) -> bool {
        self.zones.contains_key(&zone)
    }

    /// Marks a block of a zone as taken; `false` when it is already, or the zone is none of pages.
    pub fn claim(&mut self, zone: usize, block: usize) -> bool {
        match self.zones.get_mut(&zone) {
            Some(blocks) if !blocks.taken[block] => {
                blocks.taken[block] = true;
                blocks.free_blocks -= 1;
                self.free_blocks -= 1;
                true
            }
            _ => false,
        }
    }

    /// Takes a free block: zone, block in it. Blocks come in ascending order from one zone, then from the
    /// emptiest: what is written together is to lie together.
    pub fn take(&mut self) -> Option<(usize, usize)> {
        if self.free_blocks == 0 {
            return None;
        }
        let (zone, block) = self.next_free().or_else(|| {
            let emptiest = self.zones.iter().max_by_key(|(_, zone)| zone.free_blocks);
            self.cursor = (*emptiest?.0, 0);
            self.next_free()
        })?;
        self.claim(zone, block);
        self.cursor = (zone, block + 1);
        Some((zone, block))
    }

    /// Takes so many free blocks, in the order of [`PageSpace::take`]; `None` when there are not as many.
    pub fn take_many(&mut self, count: usize) -> Option<Vec<(usize, usize)>> {
        if self.free_blocks < count {
            return None;
        }
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            taken.push(self.take()?);
            // The rest of the zone in one go.
            let (number, from) = self.cursor;
            let zone = self.zones.get_mut(&number)?;
            let mut block = from;
            while block < zone.taken.len() && taken.len() < count {
                if !std::mem::replace(&mut zone.taken[block], true) {
                    zone.free_blocks -= 1;
                    self.free_blocks -= 1;
                    taken.push((number, block));
                }
                block += 1;
            }
            self.cursor = (number, block);
        }
        Some(taken)
    }

    /// The next free block of the zone at the cursor.
    fn next_free(&self) -> Option<(usize, usize)> {
        let (zone, from) = self.cursor;
        let taken = &self.zones.get(&zone)?.taken;
        let block = (from..taken.len()).find(|&block| !taken[block])?;
        Some((zone, block))
    }

    /// Forgets zones that no block of is taken: they are no zones of pages any more.
    pub fn drop_empty_zones(&mut self) -> Vec<usize> {
        let empty: Vec<usize> = self
            .zones
            .iter()
            .filter(|(_, zone)| zone.free_blocks == zone.taken.len())
            .map(|(zone, _)| *zone)
            .collect();
        for zone in &empty {
            if let Some(zone) = self.zones.remove(zone) {
                self.free_blocks -= zone.free_blocks;
            }
        }
        empty
    }

    /// Gives a block back; `true` when its zone is all free now, and no zone of pages any more.
    pub fn release(&mut self, zone: usize, block: usize) -> bool {
        let Some(blocks) = self.zones.get_mut(&zone) else {
            return false;
        };
        if std::mem::replace(&mut blocks.taken[block], false) {
            blocks.free_blocks += 1;
            self.free_blocks += 1;
        }
        if blocks.free_blocks < blocks.taken.len() {
            return false;
        }
        self.free_blocks -= blocks.free_blocks;
        self.zones.remove(&zone);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_taken_and_counted() {
        let mut zones = Zones::new(16, 5);
        assert_eq!(zones.free_zones(), 4);
        let taken: Vec<_> = std::iter::from_fn(|| zones.take_free(ZoneKind::Data)).collect();
        assert_eq!(taken, [1, 2, 3, 4]);
        assert_eq!(zones.free_zones(), 0);
        zones.set(
            3,
            Zone {
                free_blocks: 16,
                ..Zone::default()
            },
        );
        assert_eq!(zones.take_free(ZoneKind::Pages), Some(3));
        assert_eq!(zones.most_free(ZoneKind::Data, |zone| zone != 1), Some(4));
        let stored = zones.get(4).encode();
        assert_eq!(Zone::decode(&stored), Some(zones.get(4)));
    }

    #[test]
    fn pages_are_taken_in_order_and_given_back() {
        let mut space = PageSpace::default();
        space.add_zone(4, 4);
        space.add_zone(2, 4);
        assert_eq!(space.take(), Some((4, 0)));
        assert_eq!(space.take_many(8), None);
        let mut taken = space.take_many(7).unwrap_or_default();
        taken.insert(0, (4, 0));
        assert_eq!(taken.len(), 8);
        assert_eq!(taken[..5], [(4, 0), (4, 1), (4, 2), (4, 3), (2, 0)]);
        assert!(!space.release(2, 1));
        assert_eq!(space.take(), Some((2, 1)));
        for block in 0..4 {
            assert_eq!(space.release(4, block), block == 3);
        }
        assert_eq!(space.free_blocks(), 0);
        assert!(!space.has_zone(4));
    }
}

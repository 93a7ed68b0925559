//! Blocks that nothing refers to any more and that must not be used yet, by zone.

use std::collections::BTreeMap;

use super::Core;
use crate::address::Pba;
use crate::error::VolumeError;
use crate::settings::Persistence;
use crate::superblock::Superblock;
use crate::zones::{ZoneKind, Zones};

/// A set of such blocks; each is in it once.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    zones: BTreeMap<usize, Vec<Pba>>,
}

impl Freed {
    pub(crate) fn push(&mut self, zones: &Zones, pba: Pba) {
        self.zones.entry(zones.of(pba)).or_default().push(pba);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.zones.is_empty()
    }

    /// Zones that have some.
    pub(crate) fn zones(&self) -> impl Iterator<Item = usize> + '_ {
        self.zones.keys().copied()
    }

    /// How many a zone has.
    pub(crate) fn count(&self, zone: usize) -> usize {
        self.zones.get(&zone).map_or(0, Vec::len)
    }

    /// Those of a zone.
    pub(crate) fn blocks(&self, zone: usize) -> &[Pba] {
        self.zones.get(&zone).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn append(&mut self, other: Self) {
        for (zone, mut blocks) in other.zones {
            self.zones.entry(zone).or_default().append(&mut blocks);
        }
    }
}

/// What commits leave unused as long as somebody reads an older state.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(super) freed: Freed,
    pub(super) pages: Vec<Pba>,
}

impl Core {
    /// Blocks of a zone that wait for a commit, or for a reader, before they can be used.
    pub(crate) fn waiting_blocks(&self, zone: usize) -> std::collections::HashSet<Pba> {
        let running = self.running.as_ref().map(super::commit::Running::freed);
        let held = self.held.as_ref().map(|held| &held.freed);
        [Some(&self.freed), running, held]
            .into_iter()
            .flatten()
            .flat_map(|freed| freed.blocks(zone))
            .copied()
            .collect()
    }

    /// What nothing refers to any more can be used again.
    pub(super) fn free_freed(&mut self) {
        let freed = std::mem::take(&mut self.freed);
        self.free_blocks(freed);
    }

    pub(super) fn free_blocks(&mut self, freed: Freed) {
        for (number, blocks) in freed.zones {
            let mut zone = self.zones.get(number);
            let all = self.zones.zone_blocks();
            let free = (u32::from(zone.free_blocks) + blocks.len() as u32).min(all);
            zone.free_blocks = free as u16;
            if free == all && !self.is_open(number) {
                zone.kind = ZoneKind::Free;
            }
            self.zones.set(number, zone);
        }
    }

    /// Whether a commit may keep back what is held for a reader; else the reader has lost.
    pub(super) fn keeps_held(&mut self, closing: bool) -> bool {
        if self.held.is_some() && (closing || !self.is_roomy()) {
            self.release_held();
        }
        self.held.is_some()
    }

    /// Keeps everything that the durable tables refer to as it is until [`Core::release_held`], or until
    /// there is no room for that; gives the superblock that names them. `None` where windows change
    /// them in place, or another reader is there.
    pub(crate) fn hold(&mut self) -> Result<Option<Superblock>, VolumeError> {
        let copies = matches!(self.persistence(), Persistence::Thin | Persistence::Cow);
        if !copies || self.read_only || self.held.is_some() || !self.is_roomy() {
            return Ok(None);
        }
        self.finish_commit()?;
        // The one in memory counts what came after the commit.
        let superblock = super::read_superblock(&*self.backing)?;
        self.held = Some(Held::default());
        Ok(Some(superblock))
    }

    /// Lets go of what was held; `false` when that had happened before.
    pub(crate) fn release_held(&mut self) -> bool {
        let Some(held) = self.held.take() else {
            return false;
        };
        self.free_blocks(held.freed);
        for pba in held.pages {
            self.free_page(pba);
        }
        true
    }
}

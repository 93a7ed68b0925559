//! A larger disk, a larger store.

use super::{Core, table_entries};
use crate::address::{BLOCK_BYTES, PHYSICAL_BLOCKS_MAX, Pba};
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::index;
use crate::records;
use crate::tables::TableKind;

impl Core {
    /// See [`crate::Volume::grow`]. One commit: it happened or did not.
    pub(crate) fn grow(&mut self, size_bytes: u64, physical_bytes: u64) -> Result<(), VolumeError> {
        self.check_writable()?;
        self.flush()?;
        let mut settings = self.settings().clone();
        let zone_blocks = u64::from(settings.zone_blocks);
        let physical = physical_bytes / BLOCK_BYTES as u64 / zone_blocks * zone_blocks;
        if size_bytes < settings.size_bytes || physical < self.superblock.physical_blocks {
            return Err(VolumeError::Settings(format!(
                "a volume can't shrink: it has {} bytes on {} bytes of the backing store",
                settings.size_bytes,
                self.superblock.physical_blocks * BLOCK_BYTES as u64
            )));
        }
        settings.size_bytes = size_bytes;
        settings.check()?;
        let there = self
            .backing
            .size_bytes()
            .map_err(VolumeError::io("asking for the size of the backing store"))?;
        if there < physical * BLOCK_BYTES as u64 || physical >= PHYSICAL_BLOCKS_MAX {
            return Err(VolumeError::Settings(format!(
                "the backing store has {there} bytes, {} are needed",
                physical * BLOCK_BYTES as u64
            )));
        }
        super::check_size(settings.logical_blocks(), physical, settings.zone_blocks)?;
        let entries = table_entries(settings.logical_blocks(), physical, settings.zone_blocks);
        self.whole(|core| {
            core.finish_commit()?;
            for kind in [TableKind::Map, TableKind::Blocks, TableKind::Zones] {
                core.tables.extend(kind, entries[kind.index()]);
            }
            core.zones
                .extend(entries[TableKind::Zones.index()] as usize);
            core.superblock.physical_blocks = physical;
            core.superblock.settings = settings;
            core.commit(false)
        })?;
        if let Some(finder) = &mut self.finder {
            finder.on_resize(size_bytes);
        }
        // More blocks, more buckets.
        let buckets = entries[TableKind::Index.index()];
        if self.settings().policy.is_full() && buckets > self.tables.entries(TableKind::Index) {
            self.whole(|core| core.build_index(buckets))?;
        }
        Ok(())
    }

    /// Makes the index anew. It is incomplete while that goes on, which costs hits and nothing else.
    fn build_index(&mut self, buckets: u64) -> Result<(), VolumeError> {
        self.tables.reset(TableKind::Index, buckets);
        self.commit(false)?;
        for pba in (0..self.superblock.physical_blocks).map(Pba) {
            if self.tables.is_absent(TableKind::Blocks, pba.0) {
                continue;
            }
            let record = records::record(&mut self.tables, pba)?;
            if record.references > 0 && record.fingerprint != Fingerprint::UNKNOWN {
                index::insert(&mut self.tables, record.fingerprint, pba)?;
            }
            if self.tables.dirty_pages() >= self.tables.dirty_pages_max() {
                self.commit(false)?;
            }
            self.tables.trim_cache();
        }
        self.commit(false)
    }
}

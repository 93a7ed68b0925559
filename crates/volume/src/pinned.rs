//! A pinned generation as a disk that is only read: for backups and for looking at what was.

use std::sync::{Arc, Mutex, PoisonError};

use crate::address::{BLOCK_BYTES, Pba, Reference};
use crate::device::{BlockDevice, DeviceError, Extent, ExtentKind, Geometry, collect_extents};
use crate::error::VolumeError;
use crate::page::{PageBytes, entries_per_page, entry_offset, read_u64};
use crate::tables::MapTree;
use crate::volume::Volume;

/// A pinned generation of a volume. Reads fail once it is removed.
#[derive(Debug)]
pub struct PinnedDisk {
    volume: Arc<Volume>,
    number: u32,
    tree: MapTree,
    blocks: u64,
    /// The page of the mapping that was read last.
    page: Mutex<(usize, Box<PageBytes>)>,
}

impl PinnedDisk {
    /// The generation of that number.
    ///
    /// # Errors
    /// When there is none, or its tree can't be read.
    pub fn new(volume: Arc<Volume>, number: u32) -> Result<Self, VolumeError> {
        let (tree, blocks) = volume.core().generation_tree(number)?;
        Ok(Self {
            volume,
            number,
            tree,
            blocks,
            page: Mutex::new((usize::MAX, Box::new([0; BLOCK_BYTES]))),
        })
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    fn mapped(&self, lba: u64) -> Result<Option<Pba>, VolumeError> {
        let per_page = entries_per_page(8) as u64;
        let page = (lba / per_page) as usize;
        if self.tree.leaves[page] == Reference::NONE {
            self.volume.core().check_pinned(self.number)?;
            return Ok(None);
        }
        let mut cached = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.0 != page {
            cached.0 = usize::MAX;
            let core = self.volume.core();
            core.check_pinned(self.number)?;
            core.tables
                .read_map_leaf(page, self.tree.leaves[page], &mut cached.1)?;
            cached.0 = page;
        }
        let at = entry_offset((lba % per_page) as usize, 8);
        let reference = Reference::from_bits(read_u64(&cached.1[..], at));
        drop(cached);
        let core = self.volume.core();
        Ok(core.checked(reference, crate::address::Lba(lba))?.pba())
    }

    fn read_block(&self, lba: u64, into: &mut [u8]) -> Result<(), VolumeError> {
        match self.mapped(lba)? {
            None => into.fill(0),
            Some(pba) => {
                let core = self.volume.core();
                core.check_pinned(self.number)?;
                core.read_stored(pba, into)?;
            }
        }
        Ok(())
    }
}

impl BlockDevice for PinnedDisk {
    fn geometry(&self) -> Geometry {
        Geometry {
            size_bytes: self.blocks * BLOCK_BYTES as u64,
            read_only: true,
            ..self.volume.geometry()
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.geometry().check(offset, buffer.len() as u64)?;
        let mut block = [0; BLOCK_BYTES];
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let within = (at % BLOCK_BYTES as u64) as usize;
            let length = (BLOCK_BYTES - within).min(buffer.len() - done);
            self.read_block(at / BLOCK_BYTES as u64, &mut block)?;
            buffer[done..done + length].copy_from_slice(&block[within..within + length]);
            done += length;
        }
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::ReadOnly)
    }

    fn write_zeroes(&self, _: u64, _: u64) -> Result<(), DeviceError> {
        Err(DeviceError::ReadOnly)
    }

    fn flush(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.geometry().check(offset, length_bytes)?;
        let per_page = entries_per_page(8) as u64;
        let block = BLOCK_BYTES as u64;
        collect_extents(offset..offset + length_bytes, extents_max, |at| {
            let lba = at / block;
            let page = (lba / per_page) as usize;
            if self.tree.leaves[page] == Reference::NONE {
                return Ok((ExtentKind::Hole, (lba - lba % per_page + per_page) * block));
            }
            let kind = match self.mapped(lba)? {
                Some(_) => ExtentKind::Data,
                None => ExtentKind::Hole,
            };
            Ok((kind, (lba + 1) * block))
        })
    }
}

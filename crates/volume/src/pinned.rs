//! A pinned generation as a disk that is only read: for backups and for looking at what was.

use std::sync::{Arc, Mutex, PoisonError};

use crate::address::{BLOCK_BYTES, Lba, Pba, Reference};
use crate::device::{BlockDevice, DeviceError, Extent, ExtentKind, Geometry, collect_extents};
use crate::error::VolumeError;
use crate::page::{PageBytes, entries_per_page, entry_offset, read_u64};
use crate::tables::MapTree;
use crate::volume::{Volume, parts};
use crate::window::parts::decompress_in_place;
use crate::zones::ZoneKind;

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

    /// Where so many blocks from `lba` on lie, all in one page of the mapping.
    fn mapped(&self, lba: u64, count: usize) -> Result<Vec<Option<Pba>>, VolumeError> {
        let per_page = entries_per_page(8) as u64;
        let page = (lba / per_page) as usize;
        if self.tree.leaves[page] == Reference::NONE {
            self.volume.core().check_pinned(self.number)?;
            return Ok(vec![None; count]);
        }
        let mut cached = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let core = self.volume.core();
        core.check_pinned(self.number)?;
        if cached.0 != page {
            cached.0 = usize::MAX;
            core.tables
                .read_map_leaf(page, self.tree.leaves[page], &mut cached.1)?;
            cached.0 = page;
        }
        let first = (lba % per_page) as usize;
        let place = |entry: usize| {
            let bits = read_u64(&cached.1[..], entry_offset(entry, 8));
            let lba = Lba(page as u64 * per_page + entry as u64);
            Ok(core.checked(Reference::from_bits(bits), lba)?.pba())
        };
        (first..first + count).map(place).collect()
    }

    /// Reads whole blocks. The volume is not held up while they come from the store: what a pinned generation
    /// refers to stays where it is, so it is enough that it is still pinned afterwards.
    fn read_blocks(&self, mut lba: u64, mut into: &mut [u8]) -> Result<(), VolumeError> {
        let per_page = entries_per_page(8) as u64;
        while !into.is_empty() {
            let in_page = ((per_page - lba % per_page) as usize).min(into.len() / BLOCK_BYTES);
            let (part, rest) = into.split_at_mut(in_page * BLOCK_BYTES);
            let mut places = &self.mapped(lba, in_page)?[..];
            let mut part = part;
            while let Some(first) = places.first() {
                let count = consecutive(places);
                let (run, behind) = part.split_at_mut(count * BLOCK_BYTES);
                match *first {
                    None => run.fill(0),
                    Some(pba) => self.read_stored(pba, run)?,
                }
                (places, part) = (&places[count..], behind);
            }
            lba += in_page as u64;
            into = rest;
        }
        Ok(())
    }

    /// Reads blocks that lie one behind the other.
    fn read_stored(&self, first: Pba, into: &mut [u8]) -> Result<(), VolumeError> {
        let count = (into.len() / BLOCK_BYTES) as u64;
        let (backing, uuid, compressed) = {
            let core = self.volume.core();
            let is_compressed =
                |pba| core.zones.get(core.zones.of(pba)).kind == ZoneKind::Compressed;
            let blocks = (first.0..first.0 + count).map(Pba);
            let compressed: Vec<Pba> = blocks.filter(|pba| is_compressed(*pba)).collect();
            (Arc::clone(&core.backing), core.superblock.uuid, compressed)
        };
        backing
            .read_at(first.offset(), into)
            .map_err(VolumeError::reading(first))?;
        self.volume.core().check_pinned(self.number)?;
        for pba in compressed {
            let at = (pba.0 - first.0) as usize * BLOCK_BYTES;
            decompress_in_place(&mut into[at..at + BLOCK_BYTES], &uuid, pba)?;
        }
        Ok(())
    }
}

/// How many places from the first on lie one behind the other, or nowhere.
fn consecutive(places: &[Option<Pba>]) -> usize {
    let follows = |pair: &[Option<Pba>]| match (pair[0], pair[1]) {
        (None, None) => true,
        (Some(one), Some(next)) => one.0 + 1 == next.0,
        _ => false,
    };
    1 + places.windows(2).take_while(|pair| follows(pair)).count()
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
        let mut rest = buffer;
        for (start, length) in parts(offset, rest.len() as u64) {
            let (part, after) = rest.split_at_mut(length as usize);
            rest = after;
            let (lba, within) = (
                start / BLOCK_BYTES as u64,
                (start % BLOCK_BYTES as u64) as usize,
            );
            if length.is_multiple_of(BLOCK_BYTES as u64) {
                self.read_blocks(lba, part)?;
                continue;
            }
            let mut block = [0; BLOCK_BYTES];
            self.read_blocks(lba, &mut block)?;
            part.copy_from_slice(&block[within..within + part.len()]);
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
            let in_page = (per_page - lba % per_page) as usize;
            let places = self.mapped(lba, in_page.min((self.blocks - lba) as usize))?;
            let same = |place: &&Option<Pba>| place.is_some() == places[0].is_some();
            let kind = match places[0] {
                Some(_) => ExtentKind::Data,
                None => ExtentKind::Hole,
            };
            let count = places.iter().take_while(same).count() as u64;
            Ok((kind, (lba + count) * block))
        })
    }
}

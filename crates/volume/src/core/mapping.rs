//! References: which block of the disk has which physical block, and what happens when it gets another.

use super::Core;
use crate::address::{Lba, Pba, Reference};
use crate::error::VolumeError;
use crate::index;
use crate::page::{entries_per_page, read_u64};
use crate::records;
use crate::tables::TableKind;
use crate::window::buffer::Buffered;
use crate::window::parts::Entry;

impl Core {
    /// What a block of the disk refers to.
    pub(crate) fn mapped(&mut self, lba: Lba) -> Result<Reference, VolumeError> {
        let reference = self.stored_reference(lba)?;
        self.checked(reference, lba)
    }

    /// The same as the table has it, whether it can be or not.
    pub(crate) fn stored_reference(&mut self, lba: Lba) -> Result<Reference, VolumeError> {
        let bits = self
            .tables
            .entry(TableKind::Map, lba.0)?
            .map_or(0, |bytes| read_u64(bytes, 0));
        Ok(Reference::from_bits(bits))
    }

    /// A reference that the tables say, if there is such a block.
    pub(crate) fn checked(&self, reference: Reference, lba: Lba) -> Result<Reference, VolumeError> {
        match reference.pba() {
            Some(pba) if pba.0 >= self.superblock.physical_blocks => {
                Err(VolumeError::Damaged(format!(
                    "block {} of the disk refers to block {}, which is not there",
                    lba.0, pba.0
                )))
            }
            _ => Ok(reference),
        }
    }

    fn set_mapped(&mut self, lba: Lba, reference: Reference) -> Result<Reference, VolumeError> {
        let bytes = self.tables.entry_mut(TableKind::Map, lba.0)?;
        let before = Reference::from_bits(read_u64(bytes, 0));
        bytes.copy_from_slice(&reference.bits().to_le_bytes());
        let mapped = &mut self.superblock.mapped_blocks;
        *mapped += u64::from(reference != Reference::NONE);
        *mapped = mapped.saturating_sub(u64::from(before != Reference::NONE));
        Ok(before)
    }

    /// Changes the tables as an entry of a window says. Recovery does the same with what it reads.
    pub(super) fn apply(&mut self, entry: &Entry) -> Result<(), VolumeError> {
        match *entry {
            Entry::New {
                lba,
                pba,
                fingerprint,
            } => {
                self.occupy_with(pba, fingerprint, lba)?;
                if self.settings().policy.is_full() {
                    index::insert(&mut self.tables, fingerprint, pba)?;
                }
                self.refer(lba, pba)
            }
            Entry::Duplicate { lba, pba, .. } => {
                let mut record = records::record(&mut self.tables, pba)?;
                if record.references == 0 {
                    return Err(VolumeError::Damaged(format!(
                        "block {} is to be shared, and not in use",
                        pba.0
                    )));
                }
                record.references = record.references.checked_add(1).ok_or_else(|| {
                    VolumeError::Damaged(format!("block {} has too many references", pba.0))
                })?;
                records::set_record(&mut self.tables, pba, &record)?;
                self.refer(lba, pba)
            }
            Entry::Unmap { lba, blocks } => self.unrefer(lba, blocks),
        }
    }

    fn refer(&mut self, lba: Lba, pba: Pba) -> Result<(), VolumeError> {
        let reference = Reference::new(pba, self.superblock.generation);
        let before = self.set_mapped(lba, reference)?;
        self.release(lba, before)
    }

    fn unrefer(&mut self, lba: Lba, blocks: u64) -> Result<(), VolumeError> {
        let per_page = entries_per_page(TableKind::Map.entry_bytes()) as u64;
        let end = lba.0 + blocks;
        let mut at = lba.0;
        while at < end {
            let stop = end.min(at - at % per_page + per_page);
            if !self.tables.is_absent(TableKind::Map, at) {
                for block in at..stop {
                    if self.mapped(Lba(block))? != Reference::NONE {
                        let before = self.set_mapped(Lba(block), Reference::NONE)?;
                        self.release(Lba(block), before)?;
                    }
                }
            }
            at = stop;
        }
        Ok(())
    }

    /// A reference of the mapping is gone. If a pinned generation has it, it stays. One that is being
    /// removed has given back those of its first blocks.
    fn release(&mut self, lba: Lba, reference: Reference) -> Result<(), VolumeError> {
        let Some(pba) = reference.pba() else {
            return Ok(());
        };
        let mut pins = self.generations.iter().rev();
        let holder = pins.find(|pin| pin.removed_blocks <= lba.0);
        if holder.is_some_and(|pin| reference.generation() <= pin.number) {
            return Ok(());
        }
        self.drop_reference(pba)
    }

    /// A block has one reference less.
    pub(crate) fn drop_reference(&mut self, pba: Pba) -> Result<(), VolumeError> {
        self.checked(Reference::new(pba, 0), Lba(0))?;
        let mut record = records::record(&mut self.tables, pba)?;
        if record.references == 0 {
            return Err(VolumeError::Damaged(format!(
                "block {} has lost more references than it had",
                pba.0
            )));
        }
        record.references -= 1;
        if record.references == 0 {
            if self.settings().policy.is_full() {
                index::remove(&mut self.tables, record.fingerprint, pba)?;
            }
            // Cleared, so that nothing that is written here later is taken for it.
            record = records::BlockRecord::default();
            self.freed.push(&self.zones, pba);
        }
        records::set_record(&mut self.tables, pba, &record)
    }

    /// The newest pinned generation.
    pub(crate) fn newest_pin(&self) -> Option<u32> {
        self.generations.last().map(|generation| generation.number)
    }

    /// Whether a block holds something, and up to which block that goes on at least.
    pub(crate) fn extent_at(&mut self, lba: u64) -> Result<(bool, u64), VolumeError> {
        self.check_usable()?;
        let per_page = entries_per_page(TableKind::Map.entry_bytes()) as u64;
        let page_end = lba - lba % per_page + per_page;
        if self.tables.is_absent(TableKind::Map, lba) && !self.has_bytes_in(lba..page_end) {
            return Ok((false, page_end));
        }
        let is_data = match self.buffered(Lba(lba)) {
            Buffered::Bytes(_) => true,
            Buffered::Zeros => false,
            Buffered::Untouched => self.mapped(Lba(lba))?.pba().is_some(),
        };
        self.tables.trim_cache();
        Ok((is_data, lba + 1))
    }
}

//! The journal of the file system: where it is, and what is in it (WOJ: Ni, ch. 4).

use super::Core;
use crate::address::Lba;
use crate::device::DeviceError;
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::journal::{BLOCK_BYTES, JournalFinder, JournalRanges, JournalSetting};
use crate::pool::{JournalPool, PoolKind};
use crate::records;

impl Core {
    /// Begins to look at the journal, if the policy wants it.
    pub(super) fn start_journal(&mut self) -> Result<(), VolumeError> {
        if !self.settings().policy.has_journal() {
            return Ok(());
        }
        let wrong = |error: &dyn std::error::Error| VolumeError::Settings(error.to_string());
        let setting: JournalSetting = self
            .settings()
            .journal
            .parse()
            .map_err(|error| wrong(&error))?;
        let finder = JournalFinder::new(&setting, self.settings().size_bytes)
            .map_err(|error| wrong(&error))?;
        let ranges = finder.ranges().clone();
        self.finder = Some(finder);
        self.set_ranges(&ranges)?;
        self.look_for_journal()
    }

    /// Looks where the journal is, if something changed that the answer rests on.
    pub(super) fn look_for_journal(&mut self) -> Result<(), VolumeError> {
        let Some(mut finder) = self.finder.take_if(|finder| finder.is_stale()) else {
            return Ok(());
        };
        let found = finder.on_flush(|offset, buffer| {
            let (first, whole) = (offset / BLOCK_BYTES, buffer.len().next_multiple_of(4096));
            if whole == buffer.len() {
                return self
                    .read_blocks(Lba(first), buffer)
                    .map_err(DeviceError::from);
            }
            let mut bytes = vec![0; whole];
            self.read_blocks(Lba(first), &mut bytes)?;
            let length = buffer.len();
            buffer.copy_from_slice(&bytes[..length]);
            Ok(())
        });
        self.finder = Some(finder);
        match found {
            Some(ranges) => self.set_ranges(&ranges),
            None => Ok(()),
        }
    }

    /// Changes what blocks of the journal are recognised by.
    pub(crate) fn set_pool_kind(&mut self, kind: PoolKind) -> Result<(), VolumeError> {
        self.close_window()?;
        self.pool_kind = kind;
        let ranges = self.finder.as_ref().map(|finder| finder.ranges().clone());
        self.set_ranges(&ranges.unwrap_or_default())
    }

    /// Takes in what is in the journal at these ranges. As published, a pool begins empty.
    fn set_ranges(&mut self, ranges: &JournalRanges) -> Result<(), VolumeError> {
        self.pool = None;
        if ranges.is_empty() {
            return Ok(());
        }
        let blocks: Vec<_> = ranges.iter().map(|range| range.first..range.end).collect();
        let mut pool = JournalPool::new(self.pool_kind, blocks);
        if self.pool_kind == PoolKind::Whole {
            for lba in pool.ranges().to_vec().into_iter().flatten().map(Lba) {
                let Some(pba) = self.mapped(lba)?.pba() else {
                    continue;
                };
                let record = records::record(&mut self.tables, pba)?;
                // One with a second owner has been written home already.
                if record.references == 1 && record.fingerprint != Fingerprint::UNKNOWN {
                    pool.insert(lba, record.fingerprint);
                }
            }
        }
        self.pool = Some(pool);
        Ok(())
    }
}

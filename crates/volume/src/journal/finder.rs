//! Keeps the ranges of the journal true while the disk is written.

use std::ops::Range;

use super::ext::{FileSystemIdentity, identify, look_up};
use super::source::{Source, Witness};
use super::{BLOCK_BYTES, JournalError, JournalRanges, JournalSetting};
use crate::device::DeviceError;

/// Where the journal of a disk is, now. The rule is in the [room's](super) documentation.
///
/// Whoever holds it says of every write, *after* reads see it: then each write is either seen by the
/// next lookup or compared with what that lookup read.
#[derive(Debug)]
pub struct JournalFinder {
    /// Whether to look at the disk at all.
    looks: bool,
    size_bytes: u64,
    ranges: JournalRanges,
    /// Whether something changed that the ranges rest on.
    is_stale: bool,
    identity: FileSystemIdentity,
    /// In the order of the disk.
    witnesses: Vec<Witness>,
    problem: Option<JournalError>,
}

impl JournalFinder {
    /// For a disk of `size_bytes`. With `auto` nothing is known until the first
    /// [`JournalFinder::on_flush`], which is to be called when the disk is opened.
    ///
    /// # Errors
    /// When the setting names blocks that the disk has not.
    pub fn new(setting: &JournalSetting, size_bytes: u64) -> Result<Self, JournalError> {
        let looks = *setting == JournalSetting::Auto;
        Ok(Self {
            looks,
            size_bytes,
            ranges: setting.ranges(size_bytes)?,
            is_stale: looks,
            identity: FileSystemIdentity::Other,
            witnesses: Vec::new(),
            problem: None,
        })
    }

    /// The journal, as far as is known.
    #[must_use]
    pub fn ranges(&self) -> &JournalRanges {
        &self.ranges
    }

    /// Why no journal is known although there should be one.
    #[must_use]
    pub fn problem(&self) -> Option<&JournalError> {
        self.problem.as_ref()
    }

    /// Whether the next flush looks at the disk.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Says that `data`, whole blocks, was written from a block on. Reads nothing; for a block that no
    /// answer rests on it costs a few comparisons.
    pub fn on_write(&mut self, block: u64, data: &[u8]) {
        if !self.is_watching() {
            return;
        }
        let blocks = data.len().div_ceil(BLOCK_BYTES as usize) as u64;
        if block == 0 && !data.is_empty() {
            let first = &data[..data.len().min(BLOCK_BYTES as usize)];
            self.is_stale = FileSystemIdentity::of(first) != self.identity;
        }
        let changed = self.watched(block..block + blocks).iter().any(|witness| {
            let start = (witness.block() - block) * BLOCK_BYTES;
            !witness.holds(&data[start as usize..])
        });
        self.is_stale |= changed;
    }

    /// Says that blocks read as zeros from now on: after a trim or a write of zeros.
    pub fn on_zeroes(&mut self, blocks: Range<u64>) {
        if !self.is_watching() || blocks.is_empty() {
            return;
        }
        let zeros = [0; BLOCK_BYTES as usize];
        if blocks.start == 0 {
            self.is_stale = self.identity != FileSystemIdentity::Other;
        }
        let changed = self
            .watched(blocks)
            .iter()
            .any(|witness| !witness.holds(&zeros));
        self.is_stale |= changed;
    }

    /// Says that the disk has another size, or that what was written is not known.
    pub fn on_resize(&mut self, size_bytes: u64) {
        self.size_bytes = size_bytes;
        self.is_stale = self.looks;
    }

    /// Looks at the disk if what the ranges rest on changed, and says which they are if that changed
    /// them. `read` fills a buffer from an offset of the disk, whole blocks or what it has of the
    /// last one, as clients see it.
    pub fn on_flush(
        &mut self,
        read: impl FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
    ) -> Option<JournalRanges> {
        if !self.is_stale {
            return None;
        }
        let mut source = Source::new(read, self.size_bytes);
        let found = identify(&mut source).and_then(|identity| {
            let found = look_up(&mut source, &identity);
            self.identity = identity;
            found
        });
        self.witnesses = source.into_witnesses();
        // A read that failed says nothing about the disk: the ranges stay, and it is tried again.
        self.is_stale = matches!(found, Err(JournalError::Read(_)));
        let ranges = match found {
            Ok(ranges) => {
                self.problem = None;
                ranges.unwrap_or_default()
            }
            Err(error) => {
                self.problem = Some(error);
                if self.is_stale {
                    return None;
                }
                JournalRanges::default()
            }
        };
        if ranges == self.ranges {
            return None;
        }
        self.ranges = ranges.clone();
        Some(ranges)
    }

    fn is_watching(&self) -> bool {
        self.looks && !self.is_stale
    }

    fn watched(&self, blocks: Range<u64>) -> &[Witness] {
        let from = |block| {
            self.witnesses
                .partition_point(|witness| witness.block() < block)
        };
        &self.witnesses[from(blocks.start)..from(blocks.end)]
    }
}

#[cfg(test)]
#[path = "finder_tests.rs"]
mod tests;

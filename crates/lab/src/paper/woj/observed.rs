//! A volume under watch: every block is known by its newest content, so that what comes back wrong is counted.
//!
//! Enters: writes and flushes of a file system. Leaves: the same to the volume; what it counted is read from its
//! own counters. With [`Watch::EachFlush`] blocks written since the last flush are read again after it; at
//! the end ([`Observed::wrong_blocks`]) every block of the disk is compared.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use volume::address::BLOCK_BYTES;
use volume::{BlockDevice, DeviceError, Extent, Geometry, Volume};

/// Blocks that are compared at a time.
const COMPARED: u64 = 256;

/// When blocks are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// At the end, all of them.
    End,
    /// After each flush what was written before it, too.
    EachFlush,
}

type Content = [u8; 16];

#[derive(Debug, Default)]
struct State {
    /// The newest content of blocks; of those that are missing, zeros.
    contents: HashMap<u64, Content>,
    /// Written since the last flush.
    written: Vec<u64>,
    /// Blocks that came back wrong after the flush behind them.
    wrong_writes: u64,
}

/// A volume, watched.
#[derive(Debug)]
pub struct Observed {
    volume: Volume,
    watch: Watch,
    state: Mutex<State>,
}

fn content(block: &[u8]) -> Content {
    let mut content = [0; 16];
    content.copy_from_slice(&blake3::hash(block).as_bytes()[..16]);
    content
}

impl Observed {
    /// Watches a volume that is empty yet.
    pub fn new(volume: Volume, watch: Watch) -> Self {
        Self {
            volume,
            watch,
            state: Mutex::default(),
        }
    }

    /// What is watched.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// Blocks that were wrong when they were read after the flush behind them, each time counted.
    pub fn wrong_writes(&self) -> u64 {
        self.state().wrong_writes
    }

    /// Compares every block of the disk with what was written last; how many differ.
    ///
    /// # Errors
    /// When blocks can't be read.
    pub fn wrong_blocks(&self) -> Result<u64> {
        let state = self.state();
        let blocks = self.volume.geometry().size_bytes / BLOCK_BYTES as u64;
        let mut bytes = vec![0; COMPARED as usize * BLOCK_BYTES];
        let mut wrong = 0;
        for first in (0..blocks).step_by(COMPARED as usize) {
            let count = COMPARED.min(blocks - first) as usize;
            let part = &mut bytes[..count * BLOCK_BYTES];
            self.volume
                .read(first * BLOCK_BYTES as u64, part)
                .context("reading what was written")?;
            for (number, block) in part.chunks_exact(BLOCK_BYTES).enumerate() {
                let expected = state.contents.get(&(first + number as u64));
                let is_right = match expected {
                    None => block.iter().all(|byte| *byte == 0),
                    Some(expected) => content(block) == *expected,
                };
                wrong += u64::from(!is_right);
            }
        }
        Ok(wrong)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BlockDevice for Observed {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.volume.read(offset, buffer)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let contents: Vec<Content> = data.chunks(BLOCK_BYTES).map(content).collect();
        // The order of writes is that of what is known of them.
        let mut state = self.state();
        self.volume.write(offset, data)?;
        let first = offset / BLOCK_BYTES as u64;
        for (number, content) in contents.into_iter().enumerate() {
            let block = first + number as u64;
            state.contents.insert(block, content);
            if self.watch == Watch::EachFlush {
                state.written.push(block);
            }
        }
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        let mut state = self.state();
        self.volume.write_zeroes(offset, length_bytes)?;
        let first = offset / BLOCK_BYTES as u64;
        let range = first..first + length_bytes / BLOCK_BYTES as u64;
        if range.end - range.start > state.contents.len() as u64 {
            state.contents.retain(|block, _| !range.contains(block));
        } else {
            for block in range {
                state.contents.remove(&block);
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), DeviceError> {
        let mut state = self.state();
        self.volume.flush()?;
        let mut written = std::mem::take(&mut state.written);
        written.sort_unstable();
        written.dedup();
        let mut bytes = [0; BLOCK_BYTES];
        for block in written {
            let Some(expected) = state.contents.get(&block).copied() else {
                continue;
            };
            self.volume.read(block * BLOCK_BYTES as u64, &mut bytes)?;
            state.wrong_writes += u64::from(content(&bytes) != expected);
        }
        Ok(())
    }

    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError> {
        self.volume.extents(offset, length_bytes, extents_max)
    }
}

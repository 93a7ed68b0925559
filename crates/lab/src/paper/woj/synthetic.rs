//! A journal without a file system: what jbd2 writes, made up, so that it can be run anywhere and is the same
//! each time.
//!
//! Enters: how many blocks are written between two flushes. Leaves: writes and flushes to a volume that
//! is told where the journal is. A transaction is a descriptor, blocks of data, a block of inodes and a bitmap,
//! a flush, a commit block, a flush. When the journal has no room for another, the newest content of every block in
//! it goes home. In a block of inodes all but one inode stay as they are, so that its first 64 bytes never change.
//! In the last transaction there is a block more, which begins with zeros and is revoked: its file is deleted before
//! it goes home. Then the superblock, whose first 1024 bytes are zeros, is written past the journal, as ext4 does when
//! it is unmounted. Who looks at 64 bytes takes one for the other.

use std::collections::BTreeMap;

use anyhow::Result;
use volume::BlockDevice;
use volume::address::BLOCK_BYTES;

use super::observed::Observed;
use crate::chunk::data::fill_random;

const BLOCK: u64 = BLOCK_BYTES as u64;
/// The journal begins here.
const JOURNAL_FIRST: u64 = 64;
const SUPERBLOCK: u64 = 0;
const BITMAP: u64 = 1;
const INODES: u64 = 2;
const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

type Block = Box<[u8; BLOCK_BYTES]>;

/// A file system that is not there.
struct MadeUp<'a> {
    device: &'a Observed,
    journal_blocks: u64,
    /// Blocks of the journal that are taken.
    used: u64,
    /// Where the next transaction begins.
    head: u64,
    transactions: u64,
    /// What is to go home.
    waiting: BTreeMap<u64, Block>,
}

/// Where the journal is, as volumes are told.
pub fn setting(journal_blocks: u64) -> String {
    format!("{JOURNAL_FIRST}-{}", JOURNAL_FIRST + journal_blocks - 1)
}

/// Bytes of a disk that has room for a file of so many blocks.
pub fn disk_bytes(journal_blocks: u64, blocks: u64) -> u64 {
    (JOURNAL_FIRST + journal_blocks + blocks) * BLOCK
}

/// Writes a file of so many blocks, one after the other.
///
/// # Errors
/// When the volume fails.
pub fn write(device: &Observed, journal_blocks: u64, blocks: u64, window: u32) -> Result<()> {
    let mut system = MadeUp {
        device,
        journal_blocks,
        used: 0,
        head: 0,
        transactions: 0,
        waiting: BTreeMap::new(),
    };
    let first = JOURNAL_FIRST + journal_blocks;
    for start in (0..blocks).step_by(window as usize) {
        let end = blocks.min(start + u64::from(window));
        system.transaction(first + start..first + end)?;
    }
    system.transaction(0..0)?;
    system.check_point()?;
    system.put(SUPERBLOCK, &zeros_then(2))?;
    Ok(device.flush()?)
}

/// A block that begins with zeros.
fn zeros_then(state: u64) -> Block {
    let mut block = Box::new([0; BLOCK_BYTES]);
    block[1024..1032].copy_from_slice(&state.to_le_bytes());
    block
}

impl MadeUp<'_> {
    fn put(&self, block: u64, bytes: &Block) -> Result<()> {
        Ok(self.device.write(block * BLOCK, &bytes[..])?)
    }

    fn log(&mut self, bytes: &Block) -> Result<()> {
        self.put(JOURNAL_FIRST + self.head, bytes)?;
        self.head = (self.head + 1) % self.journal_blocks;
        self.used += 1;
        Ok(())
    }

    /// Blocks of data, with what changes besides. The last one has none.
    fn transaction(&mut self, data: std::ops::Range<u64>) -> Result<()> {
        let is_last = data.is_empty();
        self.transactions += 1;
        let number = self.transactions;
        if self.used + (data.end - data.start) + 5 > self.journal_blocks {
            self.check_point()?;
        }
        let mut blocks: Vec<(u64, Block)> = data
            .map(|block| {
                let mut bytes = Box::new([0; BLOCK_BYTES]);
                fill_random(block, 0, &mut bytes[..]);
                (block, bytes)
            })
            .collect();
        let mut inodes = Box::new([0x11; BLOCK_BYTES]);
        inodes[256..264].copy_from_slice(&number.to_le_bytes());
        let mut bitmap = Box::new([0; BLOCK_BYTES]);
        fill_random(u64::MAX - number, 0, &mut bitmap[..]);
        blocks.extend([(INODES, inodes), (BITMAP, bitmap)]);
        self.log(&header(1, number))?;
        if is_last {
            self.log(&zeros_then(1))?;
        }
        for (_, bytes) in &blocks {
            self.log(bytes)?;
        }
        self.device.flush()?;
        self.log(&header(2, number))?;
        self.device.flush()?;
        self.waiting.extend(blocks);
        Ok(())
    }

    /// Everything goes home.
    fn check_point(&mut self) -> Result<()> {
        for (block, bytes) in std::mem::take(&mut self.waiting) {
            self.put(block, &bytes)?;
        }
        self.used = 0;
        Ok(self.device.flush()?)
    }
}

fn header(kind: u8, number: u64) -> Block {
    let mut block = Box::new([0; BLOCK_BYTES]);
    block[..4].copy_from_slice(&MAGIC);
    block[7] = kind;
    block[8..16].copy_from_slice(&number.to_be_bytes());
    block
}

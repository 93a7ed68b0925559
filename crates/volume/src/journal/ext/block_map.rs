//! The map of blocks of ext2 and ext3, walked from the left.
//!
//! 15 numbers of 4 bytes: 12 of blocks of the file, then a block of numbers, a block of blocks of
//! numbers, and one more level. A journal has no holes, so a 0 within its length is damage. Every
//! number stands for at least one block, and the blocks of a journal are bounded, and so is what is
//! read: loops end.

use std::ops::Range;

use super::inode::JournalInode;
use super::{JOURNAL_BLOCKS_MAX, Layout, Pieces, Source, u32_at};
use crate::device::DeviceError;
use crate::journal::JournalError;

const DIRECT: usize = 12;
const NUMBER_BYTES: usize = 4;

/// The pieces of a journal that has a map, as ranges of bytes.
pub fn walk<R>(
    source: &mut Source<R>,
    layout: &Layout,
    inode: &JournalInode,
    mut pieces: Pieces,
) -> Result<Vec<Range<u64>>, JournalError>
where
    R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
{
    if pieces.missing() > JOURNAL_BLOCKS_MAX {
        return Err(JournalError::Unsupported("a journal of so many blocks"));
    }
    let mut numbers = Vec::new();
    // The levels of the last three, then the twelve.
    let levels = [3, 2, 1].into_iter().chain([0; DIRECT]);
    for (index, level) in (0..DIRECT + 3).rev().zip(levels) {
        let at = index * NUMBER_BYTES;
        let block = u32_at(inode.root(), at);
        numbers.push((block, inode.root_offset() + at as u64, level));
    }
    // The leftmost waits last: a path's worth of numbers at most.
    while pieces.missing() > 0
        && let Some((block, at, level)) = numbers.pop()
    {
        let offset = layout.offset_of(u64::from(block), at)?;
        if level == 0 {
            pieces.push(offset, 1)?;
            continue;
        }
        let bytes = source.witnessed(offset, layout.block_bytes as usize)?;
        for at in (0..bytes.len()).step_by(NUMBER_BYTES).rev() {
            numbers.push((u32_at(&bytes, at), offset + at as u64, level - 1));
        }
    }
    pieces.finish(inode.offset)
}

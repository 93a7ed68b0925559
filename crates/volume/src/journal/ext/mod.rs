//! The journal of ext3 and ext4: superblock → group descriptor → inode → its blocks.
//!
//! Source: the layout as the kernel documents it (Documentation/filesystems/ext4), and what
//! `mke2fs` makes. Checksums are not verified: what follows is checked to be possible, and wrong
//! ranges do no harm.

mod block_map;
mod extents;
mod identity;
mod inode;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use identity::FileSystemIdentity;

use super::source::Source;
use super::{BLOCK_BYTES, JournalError, JournalRanges};
use crate::device::DeviceError;
use inode::JournalInode;

/// Most blocks of a journal; `mke2fs` makes none of more.
const JOURNAL_BLOCKS_MAX: u64 = 10_240_000;

/// Most pieces of a journal: with more, advice is not worth its memory (1 MiB).
const PIECES_MAX: usize = 1 << 16;

/// Where the journal of the ext2, ext3 or ext4 file system on a disk is; all of the disk when it is
/// a journal of another. `read` fills a buffer from an offset: whole blocks of 4 KiB, or what the
/// disk has of the last one.
///
/// `None` when there is no such file system, or it has no journal, or has it on another disk.
///
/// # Errors
/// When reads fail, or what is there is damaged or not supported.
pub fn find_ext_journal(
    read: impl FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
    size_bytes: u64,
) -> Result<Option<JournalRanges>, JournalError> {
    let mut source = Source::new(read, size_bytes);
    let identity = identify(&mut source)?;
    look_up(&mut source, &identity)
}

/// What the first block of a disk says.
pub fn identify<R>(source: &mut Source<R>) -> Result<FileSystemIdentity, JournalError>
where
    R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
{
    let length_bytes = source.size_bytes().min(BLOCK_BYTES) as usize;
    Ok(FileSystemIdentity::of(&source.bytes(0, length_bytes)?))
}

/// Where the journal is, given what the first block says.
pub fn look_up<R>(
    source: &mut Source<R>,
    identity: &FileSystemIdentity,
) -> Result<Option<JournalRanges>, JournalError>
where
    R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
{
    let superblock = match identity {
        FileSystemIdentity::Other => return Ok(None),
        FileSystemIdentity::JournalDevice => {
            return Ok(Some(JournalRanges::whole_disk(source.size_bytes())));
        }
        FileSystemIdentity::Ext(superblock) => superblock,
    };
    let Some(layout) = superblock.layout(source.size_bytes())? else {
        return Ok(None);
    };
    let inode = JournalInode::read(source, &layout)?;
    let pieces = Pieces::new(&layout, &inode);
    let bytes = if inode.has_extents() {
        extents::walk(source, &layout, &inode, pieces)?
    } else {
        block_map::walk(source, &layout, &inode, pieces)?
    };
    Ok(Some(JournalRanges::of_bytes(bytes)))
}

/// What the superblock says, checked: where things are.
#[derive(Debug)]
struct Layout {
    /// The journal's inode, not 0.
    journal_inode: u32,
    /// 1024 to 65536, a power of two.
    block_bytes: u64,
    /// Blocks of the file system, all on the disk.
    blocks: u64,
    /// First block after superblock and boot block.
    blocks_first: u64,
    /// Where the descriptor of the journal inode's group is.
    descriptor_offset: u64,
    /// Whether a descriptor has the high halves of block numbers.
    descriptor_is_wide: bool,
    /// Which inode of its group the journal's is.
    inode_in_group: u64,
    /// A power of two.
    inode_bytes: u64,
}

impl Layout {
    /// The offset of a block that may hold something of a file.
    fn offset_of(&self, block: u64, pointer_offset: u64) -> Result<u64, JournalError> {
        if block < self.blocks_first || block >= self.blocks {
            return Err(JournalError::Damaged {
                offset: pointer_offset,
                what: "a block is referred to that the file system has not",
            });
        }
        Ok(block * self.block_bytes)
    }
}

/// Pieces of the journal, as they come: each begins where that before it ended, in the journal's own
/// order.
struct Pieces {
    block_bytes: u64,
    blocks_wanted: u64,
    blocks: u64,
    bytes: Vec<Range<u64>>,
}

impl Pieces {
    fn new(layout: &Layout, inode: &JournalInode) -> Self {
        Self {
            block_bytes: layout.block_bytes,
            blocks_wanted: inode.size_bytes.div_ceil(layout.block_bytes),
            blocks: 0,
            bytes: Vec::new(),
        }
    }

    /// How many blocks are still to come.
    fn missing(&self) -> u64 {
        self.blocks_wanted.saturating_sub(self.blocks)
    }

    /// Adds blocks that lie at an offset of the disk.
    fn push(&mut self, offset: u64, blocks: u64) -> Result<(), JournalError> {
        self.blocks += blocks;
        if self.blocks > JOURNAL_BLOCKS_MAX {
            return Err(JournalError::Unsupported("a journal of so many blocks"));
        }
        let end = offset + blocks * self.block_bytes;
        match self.bytes.last_mut() {
            Some(last) if last.end == offset => last.end = end,
            _ => self.bytes.push(offset..end),
        }
        if self.bytes.len() > PIECES_MAX {
            return Err(JournalError::Unsupported("a journal in so many pieces"));
        }
        Ok(())
    }

    /// All pieces.
    fn finish(self, inode_offset: u64) -> Result<Vec<Range<u64>>, JournalError> {
        if self.missing() > 0 {
            return Err(JournalError::Damaged {
                offset: inode_offset,
                what: "the journal has fewer blocks than its length says",
            });
        }
        Ok(self.bytes)
    }
}

/// A little-endian number of 16 bits in a structure that is long enough.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// A little-endian number of 32 bits in a structure that is long enough.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

//! The journal's inode: 128 bytes or more, of which these matter.
//!
//! | at | field |
//! |---|---|
//! | 0 | mode: a regular file |
//! | 4, 108 | length in bytes, low and high half |
//! | 26 | links: not 0 |
//! | 32 | flags: whether the next are extents |
//! | 40 | 60 bytes: the root of a tree of extents, or 15 block numbers |

use super::{Layout, Source, u16_at, u32_at};
use crate::device::DeviceError;
use crate::journal::JournalError;

const FLAG_EXTENTS: u32 = 0x0008_0000;
const FLAG_INLINE_DATA: u32 = 0x1000_0000;
const MODE_KIND: u16 = 0xF000;
const MODE_REGULAR: u16 = 0x8000;
/// What matters lies within so many bytes.
const READ_BYTES: usize = 112;
/// Where the root of the tree, or the block numbers, are.
const ROOT: std::ops::Range<usize> = 40..100;

/// What the inode of a journal says.
#[derive(Debug)]
pub struct JournalInode {
    /// Where it is on the disk.
    pub offset: u64,
    /// The journal's length.
    pub size_bytes: u64,
    flags: u32,
    root: [u8; 60],
}

impl JournalInode {
    /// Reads the inode by way of its group's descriptor.
    pub fn read<R>(source: &mut Source<R>, layout: &Layout) -> Result<Self, JournalError>
    where
        R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
    {
        let offset = inode_offset(source, layout)?;
        let bytes = source.bytes(offset, READ_BYTES)?;
        // Not the times between these.
        for field in [0..2, 4..8, 26..28, 32..36, ROOT, 108..112] {
            source.witness(offset + field.start as u64, &bytes[field]);
        }
        let mode = u16_at(&bytes, 0);
        let links = u16_at(&bytes, 26);
        let flags = u32_at(&bytes, 32);
        let size_bytes = u64::from(u32_at(&bytes, 4)) | u64::from(u32_at(&bytes, 108)) << 32;
        if mode == 0 || links == 0 || size_bytes == 0 {
            let inode = layout.journal_inode;
            return Err(JournalError::Missing { inode });
        }
        if mode & MODE_KIND != MODE_REGULAR || flags & FLAG_INLINE_DATA != 0 {
            let what = "the journal's inode is of another kind";
            return Err(JournalError::Damaged { offset, what });
        }
        let mut root = [0; 60];
        root.copy_from_slice(&bytes[ROOT]);
        Ok(Self {
            offset,
            size_bytes,
            flags,
            root,
        })
    }

    /// Whether the root is that of a tree of extents.
    pub fn has_extents(&self) -> bool {
        self.flags & FLAG_EXTENTS != 0
    }

    /// The root of the tree, or the block numbers.
    pub fn root(&self) -> &[u8] {
        &self.root
    }

    /// Where the root is on the disk.
    pub fn root_offset(&self) -> u64 {
        self.offset + ROOT.start as u64
    }
}

fn inode_offset<R>(source: &mut Source<R>, layout: &Layout) -> Result<u64, JournalError>
where
    R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
{
    let low = source.witnessed(layout.descriptor_offset + 8, 4)?;
    let mut table = u64::from(u32_at(&low, 0));
    if layout.descriptor_is_wide {
        let high = source.witnessed(layout.descriptor_offset + 40, 4)?;
        table |= u64::from(u32_at(&high, 0)) << 32;
    }
    if table == 0 {
        let inode = layout.journal_inode;
        return Err(JournalError::Missing { inode });
    }
    let table_offset = layout.offset_of(table, layout.descriptor_offset)?;
    // No overflow: the table is below 2^64, and an inode's number and size are small; what is not
    // on the disk is refused when it is read.
    Ok(table_offset.saturating_add(layout.inode_in_group * layout.inode_bytes))
}

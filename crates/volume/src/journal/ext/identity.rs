//! What the first block of a disk says about a journal, and nothing else of it.
//!
//! The superblock is at byte 1024 and has 1024 bytes. The fields that matter:
//!
//! | at | field |
//! |---|---|
//! | 4, 336 (64bit) | blocks of the file system |
//! | 20 | first data block |
//! | 24 | log2 of the block size, less 10 |
//! | 40 | inodes per group |
//! | 56 | magic |
//! | 76, 88 | revision, inode size (of revision 1) |
//! | 92, 96 | compatible, incompatible features |
//! | 104 | uuid |
//! | 224 | inode of the journal |
//! | 254 | size of a group descriptor (64bit) |
//! | 260 | first group whose descriptors lie in its own meta group |
//! | 268 | backup of the journal inode's blocks and size |

use super::{Layout, u16_at, u32_at};
use crate::journal::JournalError;

const SUPERBLOCK_OFFSET: usize = 1024;
const SUPERBLOCK_BYTES: usize = 1024;
const MAGIC: u16 = 0xEF53;

const COMPATIBLE_HAS_JOURNAL: u32 = 0x4;
const INCOMPATIBLE_JOURNAL_DEVICE: u32 = 0x8;
const INCOMPATIBLE_META_GROUPS: u32 = 0x10;
const INCOMPATIBLE_64BIT: u32 = 0x80;
/// Bits that come and go otherwise, such as "needs recovery" with every mount, say nothing.
const COMPATIBLE_THAT_MATTERS: u32 = COMPATIBLE_HAS_JOURNAL;
const INCOMPATIBLE_THAT_MATTERS: u32 =
    INCOMPATIBLE_JOURNAL_DEVICE | INCOMPATIBLE_META_GROUPS | INCOMPATIBLE_64BIT;

/// What jbd2 begins its superblock with, big-endian: magic, and type 3 or 4.
const JBD2_MAGIC: [u8; 4] = [0xC0, 0x3B, 0x39, 0x98];

/// What the first block of a disk says about a journal. As long as it is equal, the answer is the
/// same as far as the first block goes: counters, times and mount states are not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSystemIdentity {
    /// No file system whose journal is known.
    Other,
    /// The disk is a journal.
    JournalDevice,
    /// ext2, ext3 or ext4.
    Ext(Box<Superblock>),
}

/// The fields of a superblock that matter, as they stand there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    blocks: u64,
    blocks_first: u32,
    block_log: u32,
    inodes_per_group: u32,
    revision: u32,
    inode_bytes: u16,
    compatible: u32,
    incompatible: u32,
    uuid: [u8; 16],
    journal_inode: u32,
    descriptor_bytes: u16,
    meta_group_first: u32,
    journal_backup: [u8; 68],
}

impl FileSystemIdentity {
    /// What this says; `block` is the first block of a disk, or what a small disk has of it.
    #[must_use]
    pub fn of(block: &[u8]) -> Self {
        if block.starts_with(&JBD2_MAGIC) && matches!(block.get(4..8), Some([0, 0, 0, 3 | 4])) {
            return Self::JournalDevice;
        }
        let end = SUPERBLOCK_OFFSET + SUPERBLOCK_BYTES;
        let Some(bytes) = block.get(SUPERBLOCK_OFFSET..end) else {
            return Self::Other;
        };
        if u16_at(bytes, 56) != MAGIC {
            return Self::Other;
        }
        let superblock = Superblock::of(bytes);
        if superblock.incompatible & INCOMPATIBLE_JOURNAL_DEVICE != 0 {
            return Self::JournalDevice;
        }
        Self::Ext(Box::new(superblock))
    }
}

impl Superblock {
    fn of(bytes: &[u8]) -> Self {
        let incompatible = u32_at(bytes, 96) & INCOMPATIBLE_THAT_MATTERS;
        let is_wide = incompatible & INCOMPATIBLE_64BIT != 0;
        let blocks_high = if is_wide { u32_at(bytes, 336) } else { 0 };
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[104..120]);
        let mut journal_backup = [0; 68];
        journal_backup.copy_from_slice(&bytes[268..336]);
        Self {
            blocks: u64::from(u32_at(bytes, 4)) | u64::from(blocks_high) << 32,
            blocks_first: u32_at(bytes, 20),
            block_log: u32_at(bytes, 24),
            inodes_per_group: u32_at(bytes, 40),
            revision: u32_at(bytes, 76),
            inode_bytes: u16_at(bytes, 88),
            compatible: u32_at(bytes, 92) & COMPATIBLE_THAT_MATTERS,
            incompatible,
            uuid,
            journal_inode: u32_at(bytes, 224),
            descriptor_bytes: u16_at(bytes, 254),
            meta_group_first: u32_at(bytes, 260),
            journal_backup,
        }
    }

    /// Where things are; `None` without a journal on this disk.
    ///
    /// # Errors
    /// When this can't be, or is not supported.
    pub(super) fn layout(&self, size_bytes: u64) -> Result<Option<Layout>, JournalError> {
        if self.compatible & COMPATIBLE_HAS_JOURNAL == 0 || self.journal_inode == 0 {
            return Ok(None);
        }
        if self.block_log > 6 {
            return Err(damaged("the block size is none"));
        }
        let block_bytes = 1024_u64 << self.block_log;
        let end = self.blocks.checked_mul(block_bytes);
        if end.is_none_or(|end| end > size_bytes) {
            return Err(damaged("the file system is larger than the disk"));
        }
        let inode_bytes = match self.revision {
            0 => 128,
            _ => u64::from(self.inode_bytes),
        };
        if inode_bytes < 128 || inode_bytes > block_bytes || !inode_bytes.is_power_of_two() {
            return Err(damaged("the size of an inode is none"));
        }
        if self.inodes_per_group == 0 {
            return Err(damaged("groups have no inodes"));
        }
        let index = self.journal_inode - 1;
        let group = u64::from(index / self.inodes_per_group);
        // The block of the superblock; what the superblock says of it is 0 with large clusters.
        let superblock_block = SUPERBLOCK_OFFSET as u64 / block_bytes;
        let descriptor_bytes = self.descriptor_bytes()?;
        let descriptors_block = group / (block_bytes / descriptor_bytes);
        let has_meta_groups = self.incompatible & INCOMPATIBLE_META_GROUPS != 0;
        // The first descriptors follow the superblock with meta groups, too.
        if descriptors_block > 0
            && has_meta_groups
            && descriptors_block >= u64::from(self.meta_group_first)
        {
            let what = "a journal whose inode is not in the first meta group";
            return Err(JournalError::Unsupported(what));
        }
        let descriptors_offset = (superblock_block + 1) * block_bytes;
        Ok(Some(Layout {
            journal_inode: self.journal_inode,
            block_bytes,
            blocks: self.blocks,
            blocks_first: u64::from(self.blocks_first).max(1),
            descriptor_offset: descriptors_offset + group * descriptor_bytes,
            descriptor_is_wide: descriptor_bytes > 32,
            inode_in_group: u64::from(index % self.inodes_per_group),
            inode_bytes,
        }))
    }

    fn descriptor_bytes(&self) -> Result<u64, JournalError> {
        if self.incompatible & INCOMPATIBLE_64BIT == 0 {
            return Ok(32);
        }
        let bytes = u64::from(self.descriptor_bytes);
        if !(64..=1024).contains(&bytes) || !bytes.is_power_of_two() {
            return Err(damaged("the size of a group descriptor is none"));
        }
        Ok(bytes)
    }
}

fn damaged(what: &'static str) -> JournalError {
    let offset = SUPERBLOCK_OFFSET as u64;
    JournalError::Damaged { offset, what }
}

//! A small ext4 for tests, by hand: what a lookup reads, and nothing else.

use super::BLOCK_BYTES;
use crate::device::DeviceError;

/// Blocks of 4 KiB of the disk.
pub const BLOCKS: u64 = 1024;
/// The block of the group descriptors.
pub const DESCRIPTORS: u64 = 1;
/// The block of the inode table.
pub const INODES: u64 = 40;
/// Where the superblock is.
pub const SUPERBLOCK: usize = 1024;
/// Where the journal's inode is.
pub const INODE: usize = INODES as usize * 4096 + 7 * 256;
/// Where the root of its tree is.
pub const ROOT: usize = INODE + 40;

/// A disk of [`BLOCKS`] blocks.
#[derive(Clone)]
pub struct Sample {
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Sample {
    /// A disk of zeros.
    pub fn empty() -> Self {
        let bytes = vec![0; (BLOCKS * BLOCK_BYTES) as usize];
        Self { bytes }
    }

    /// A file system whose journal has extents, by first block and length.
    pub fn with_extents(extents: &[(u32, u16)]) -> Self {
        let mut sample = Self::empty();
        sample.put_superblock();
        sample.put32(DESCRIPTORS as usize * 4096 + 8, INODES as u32);
        let total: u32 = extents.iter().map(|(_, length)| u32::from(*length)).sum();
        sample.put_inode(total * 4096, 0x0008_0000);
        sample.put_node(ROOT, extents.len() as u16, 0);
        let mut in_file = 0;
        for (index, (first, length)) in extents.iter().enumerate() {
            let at = ROOT + 12 * (index + 1);
            sample.put32(at, in_file);
            sample.put16(at + 4, *length);
            sample.put32(at + 8, *first);
            in_file += u32::from(*length);
        }
        sample
    }

    /// The superblock alone.
    pub fn put_superblock(&mut self) {
        for (at, value) in [
            (4, BLOCKS as u32),
            (24, 2),
            (40, 8),
            (76, 1),
            (88, 256),
            (92, 0x4),
            (96, 0x40),
            (224, 8),
        ] {
            self.put32(SUPERBLOCK + at, value);
        }
        self.put16(SUPERBLOCK + 56, 0xEF53);
    }

    /// The journal's inode.
    pub fn put_inode(&mut self, size_bytes: u32, flags: u32) {
        self.put16(INODE, 0x8180);
        self.put32(INODE + 4, size_bytes);
        self.put16(INODE + 26, 1);
        self.put32(INODE + 32, flags);
    }

    /// The header of a node of extents.
    pub fn put_node(&mut self, at: usize, entries: u16, depth: u16) {
        self.put16(at, 0xF30A);
        self.put16(at + 2, entries);
        self.put16(at + 6, depth);
    }

    /// A number of 16 bits.
    pub fn put16(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// A number of 32 bits.
    pub fn put32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// One of its blocks.
    pub fn block(&self, block: u64) -> &[u8] {
        &self.bytes[(block * BLOCK_BYTES) as usize..][..BLOCK_BYTES as usize]
    }

    /// Reads of it.
    pub fn read(&self) -> impl FnMut(u64, &mut [u8]) -> Result<(), DeviceError> + '_ {
        |offset, buffer| {
            let start = offset as usize;
            buffer.copy_from_slice(&self.bytes[start..start + buffer.len()]);
            Ok(())
        }
    }
}

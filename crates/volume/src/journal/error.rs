//! Why there is no answer to where the journal is.

use crate::device::DeviceError;

/// Why no journal could be found although there should be one.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk could not be read.
    #[error("looking for the journal: {0}")]
    Read(#[from] DeviceError),
    /// The superblock names an inode that holds nothing (yet).
    #[error("inode {inode}, the journal's, holds no file")]
    Missing {
        /// The inode.
        inode: u32,
    },
    /// What is there can't be.
    #[error("looking for the journal: at {offset} {what}")]
    Damaged {
        /// Where on the disk.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// It may be in order, but is not looked at.
    #[error("looking for the journal: {0} is not supported")]
    Unsupported(&'static str),
    /// The ranges that were named are not on the disk.
    #[error("journal blocks {first}-{last} are not within the disk of {blocks} blocks")]
    OutsideDisk {
        /// First block of the range.
        first: u64,
        /// Last block of the range.
        last: u64,
        /// Whole blocks of the disk.
        blocks: u64,
    },
}

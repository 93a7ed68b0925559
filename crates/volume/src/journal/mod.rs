//! Which blocks of a disk are a file system's journal.
//!
//! In: what the operator says ([`JournalSetting`]), the bytes of the disk, and every write to it.
//! Out: [`JournalRanges`], whole blocks of [`BLOCK_BYTES`].
//!
//! The ranges are advice. With data journalling everything is written twice, first to the journal,
//! and who knows the journal can expect the second copy (WOJ: Ni, dissertation, UT Arlington 2019,
//! ch. 4); no byte of the disk may depend on the ranges being right. And nothing on the disk is
//! trusted here: any bytes give ranges within the disk, "none" or an error, with bounded work and
//! memory.
//!
//! # When the disk is looked at again
//!
//! A lookup reads few bytes: the fields of the superblock that matter ([`FileSystemIdentity`]), a
//! field of a group descriptor, the journal's inode, its tree. **Its answer, and its failure too, is
//! a function of those bytes**, so [`JournalFinder`] keeps a digest of each, compares writes with
//! them, and looks again at the first flush after one of them changed. Nothing is polled, and
//! nothing needs to be known about the order in which `mkfs`, `tune2fs`, `resize2fs` or a checkpoint
//! write: a superblock without its inode table is a failure that rests on the empty descriptor, and
//! holds until the descriptor comes. Superblocks that differ in counters and times, and inode tables
//! in which other inodes differ, change nothing. Only a read that failed rests on no bytes: it is
//! tried again at every flush.
//!
//! A flush is the moment because file systems flush after they have made themselves consistent, and
//! because until then what is written may not be there after a crash.

mod error;
mod ext;
mod finder;
mod ranges;
#[cfg(test)]
mod sample;
mod setting;
mod source;

pub use error::JournalError;
pub use ext::{FileSystemIdentity, find_ext_journal};
pub use finder::JournalFinder;
pub use ranges::{BlockRange, JournalRanges};
pub use setting::{JournalSetting, SettingError};

/// Bytes of a block of the disk, in which ranges count.
pub const BLOCK_BYTES: u64 = 4096;

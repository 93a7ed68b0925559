//! The tar format: what [`export`](crate::Repository::export) writes and [`import`](crate::Repository::import_tar) reads.
//!
//! Written is the *pax interchange format* of POSIX.1-2017 (ustar headers, with records of what they have no room
//! for), with what GNU tar and star added to it: extended attributes (`SCHILY.xattr.*`), ACLs (`SCHILY.acl.*`) and
//! holes (`GNU.sparse`, version 1.0). Read are v7, ustar, pax and GNU's own format, with holes in all four of GNU's
//! forms. Sources: POSIX.1-2017, `pax`; the GNU tar manual, "Tar Internals"; star(5).
//!
//! Rooms: `header` (one block), `pax` (records), `acl` (their text), `sparse` (maps of holes), `writer`, `reader`.
//!
//! A tar comes from anywhere: nothing that it says is believed before it is checked, and every length has a limit
//! before memory is taken for it ([`TarError`]).

mod acl;
mod header;
mod pax;
mod reader;
mod sparse;
mod writer;

pub use reader::{Member, MemberKind, TarReader};
pub use sparse::{Extent, SPARSE_EXTENTS_MAX};
pub(crate) use writer::{NewMember, TarWriter};

use std::io;

/// Bytes of a block: everything in a tar begins at a multiple of it.
pub(crate) const BLOCK_BYTES: usize = 512;

/// A block.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// Bytes of all records of a member at most: attributes, names.
pub(crate) const RECORDS_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a member's path, or of what a link points to, at most.
pub(crate) const PATH_BYTES_MAX: usize = 64 << 10;

/// Why a tar can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// Its bytes can't be had.
    #[error("cannot read the archive: {0}")]
    Read(#[from] io::Error),
    /// It is compressed.
    #[error("the archive is compressed ({name})")]
    Compressed {
        /// The name of the format.
        name: &'static str,
        /// What decompresses it to the standard output.
        program: &'static str,
    },
    /// It ends where it should go on.
    #[error("the archive is cut off: it ends at byte {offset}, {what}")]
    CutOff {
        /// Where.
        offset: u64,
        /// In the middle of what.
        what: &'static str,
    },
    /// A block is no header of a member.
    #[error("what begins at byte {offset} of the archive is no header of a member: {reason}")]
    Header {
        /// Where.
        offset: u64,
        /// Why not.
        reason: String,
    },
    /// A member is not one that can be stored.
    #[error("member '{}' (at byte {offset} of the archive): {reason}", path.escape_ascii())]
    Member {
        /// Its name.
        path: Vec<u8>,
        /// Where its header is.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// A member lies below another one that is no directory.
    #[error(
        "the archive has '{}', and '{}' below it, which can't be: the first is no directory",
        above.escape_ascii(),
        path.escape_ascii()
    )]
    NotADirectory {
        /// The path of the member.
        path: Vec<u8>,
        /// That of what stands in its way.
        above: Vec<u8>,
    },
}

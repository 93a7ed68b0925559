//! Directory entries and pages: the stored form of a tree (docs/format/v1.md, §9).
//!
//! A directory is a stream of pages, each one chunk in a metadata container; a page holds
//! entries in ascending order of their names. [`PageWriter`] makes pages of entries,
//! [`DirectoryReader`] and [`decode_page`] give the entries back.

mod entry;
mod page;

pub use crate::timestamp::Timestamp;
pub use entry::{Entry, EntryKind, HardLink, Metadata, check_name};
pub use page::{
    DirectoryReader, LONE_ENTRY_PAGE_BYTES_MAX, PAGE_BYTES_MAX, PAGE_BYTES_MIN, PageWriter,
    decode_page,
};

use engine::format::DecodeError;

/// Why an entry can't be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// It breaks a rule of the format; storing it would make a page that nobody can read.
    #[error("entry '{}' can't be stored: {reason}", name.escape_ascii())]
    Invalid {
        /// Its name.
        name: Vec<u8>,
        /// The rule.
        reason: DecodeError,
    },
    /// Its name does not come after the one before it.
    #[error("entry '{}' comes after '{}'", name.escape_ascii(), before.escape_ascii())]
    OutOfOrder {
        /// Its name.
        name: Vec<u8>,
        /// The name of the entry before.
        before: Vec<u8>,
    },
    /// It would not fit into a page of its own.
    #[error(
        "entry '{}' needs a page of {bytes} bytes, at most {LONE_ENTRY_PAGE_BYTES_MAX} are allowed",
        name.escape_ascii()
    )]
    TooLarge {
        /// Its name.
        name: Vec<u8>,
        /// Length of a page that holds it alone.
        bytes: usize,
    },
}

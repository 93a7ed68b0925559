//! Which tables there are, and how many pages they have.

use crate::address::Reference;
use crate::page::{PageIdentity, entries_per_page};

/// References in a directory page or a root page.
pub const DIRECTORY_ENTRIES: usize = entries_per_page(8);

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TableKind {
    /// LBA → reference (8 bytes).
    Map = 1,
    /// PBA → record of the block: fingerprint, references, an owner (28 bytes).
    Blocks = 2,
    /// Bucket → 42 entries of fingerprint and PBA (a sector of 504 bytes).
    Index = 3,
    /// Zone → what it holds (12 bytes).
    Zones = 4,
}

impl TableKind {
    /// How many tables there are.
    pub const COUNT: usize = 4;

    /// All of them.
    pub const ALL: [TableKind; Self::COUNT] = [Self::Map, Self::Blocks, Self::Index, Self::Zones];

    /// Bytes of an entry.
    #[must_use]
    pub const fn entry_bytes(self) -> usize {
        match self {
            Self::Map => 8,
            Self::Blocks => 28,
            Self::Index => 504,
            Self::Zones => 12,
        }
    }

    /// Its place in [`TableKind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize - 1
    }

    /// A page of entries.
    #[must_use]
    pub fn leaf(self, page: u64) -> PageIdentity {
        self.page(0, page)
    }

    /// A page of places of leaves.
    #[must_use]
    pub fn directory(self, page: u64) -> PageIdentity {
        self.page(1, page)
    }

    /// A page of places of directories.
    #[must_use]
    pub fn root(self, page: u64) -> PageIdentity {
        self.page(2, page)
    }

    fn page(self, level: u8, page: u64) -> PageIdentity {
        PageIdentity {
            table: self as u8 * 4 + level,
            page,
        }
    }
}

/// Pages of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeShape {
    /// Pages of entries.
    pub leaves: usize,
    /// Pages of places of leaves.
    pub directories: usize,
    /// Pages of places of directories.
    pub roots: usize,
}

/// Pages of the tree of a table with that many entries, when all are there.
#[must_use]
pub fn tree_shape(kind: TableKind, entries: u64) -> TreeShape {
    let leaves = entries.div_ceil(entries_per_page(kind.entry_bytes()) as u64) as usize;
    let directories = leaves.div_ceil(DIRECTORY_ENTRIES);
    TreeShape {
        leaves,
        directories,
        roots: directories.div_ceil(DIRECTORY_ENTRIES),
    }
}

/// A whole tree of the mapping: where every page of it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MapTree {
    /// Root pages.
    pub roots: Vec<Reference>,
    /// Directory pages.
    pub directories: Vec<Reference>,
    /// Leaf pages.
    pub leaves: Vec<Reference>,
}

//! A tree of extents, walked from the left.
//!
//! A node, in the inode (60 bytes) or a block, is a header and entries, each of 12 bytes:
//!
//! | | |
//! |---|---|
//! | header | magic 0xF30A, entries, most entries, depth (2 bytes each), generation (4) |
//! | entry at depth 0 | first block in the file (4), blocks (2), high (2) and low (4) part of the first block on the disk |
//! | entry above | first block in the file (4), low (4) and high (2) part of the node's block, unused (2) |
//!
//! Lengths above 32768 are of extents that are not initialised, by 32768 too large: a journal may
//! have such, and they are its own. Depths fall by one a level, and no more than a bound is read, so
//! loops end.

use std::ops::Range;

use super::inode::JournalInode;
use super::{Layout, Pieces, Source, u16_at, u32_at};
use crate::device::DeviceError;
use crate::journal::JournalError;

const MAGIC: u16 = 0xF30A;
const ENTRY_BYTES: usize = 12;
const DEPTH_MAX: u16 = 5;
const INITIALISED_BLOCKS_MAX: u16 = 32768;

/// The pieces of a journal that has extents, as ranges of bytes.
pub fn walk<R>(
    source: &mut Source<R>,
    layout: &Layout,
    inode: &JournalInode,
    mut pieces: Pieces,
) -> Result<Vec<Range<u64>>, JournalError>
where
    R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>,
{
    let root = inode.root_offset();
    let depth = depth(inode.root(), root)?;
    let mut nodes = Vec::new();
    push_entries(&mut nodes, inode.root(), root, depth)?;
    // Nodes wait here, the leftmost last: a path's worth of entries at most.
    while let Some(entry) = nodes.pop() {
        match entry {
            Entry::Node { block, at, depth } => {
                let offset = layout.offset_of(block, at)?;
                let bytes = source.witnessed(offset, layout.block_bytes as usize)?;
                push_entries(&mut nodes, &bytes, offset, depth)?;
            }
            Entry::Extent(extent) => add(&mut pieces, layout, &extent)?,
        }
    }
    pieces.finish(inode.offset)
}

/// What an entry says.
enum Entry {
    /// There is more in a block.
    Node {
        /// The block.
        block: u64,
        /// Where the entry is.
        at: u64,
        /// What the node's header has to say.
        depth: u16,
    },
    /// There are blocks of the file.
    Extent(Extent),
}

struct Extent {
    at: u64,
    first_in_file: u32,
    blocks: u16,
    first: u64,
}

fn add(pieces: &mut Pieces, layout: &Layout, extent: &Extent) -> Result<(), JournalError> {
    let blocks = match extent.blocks {
        blocks if blocks > INITIALISED_BLOCKS_MAX => blocks - INITIALISED_BLOCKS_MAX,
        blocks => blocks,
    };
    let blocks = u64::from(blocks);
    if blocks == 0 || u64::from(extent.first_in_file) != pieces.blocks {
        return Err(damaged(
            extent.at,
            "an extent does not follow that before it",
        ));
    }
    let offset = layout.offset_of(extent.first, extent.at)?;
    // No overflow: numbers have 48 bits.
    layout.offset_of(extent.first + blocks - 1, extent.at)?;
    pieces.push(offset, blocks)
}

fn depth(node: &[u8], offset: u64) -> Result<u16, JournalError> {
    let depth = u16_at(node, 6);
    if u16_at(node, 0) != MAGIC || depth > DEPTH_MAX {
        return Err(damaged(offset, "there is no node of extents"));
    }
    Ok(depth)
}

/// Adds the entries of a node, the first last.
fn push_entries(
    nodes: &mut Vec<Entry>,
    node: &[u8],
    offset: u64,
    wanted_depth: u16,
) -> Result<(), JournalError> {
    if depth(node, offset)? != wanted_depth {
        return Err(damaged(offset, "a node of extents is of another depth"));
    }
    let count = usize::from(u16_at(node, 2));
    if count > node.len() / ENTRY_BYTES - 1 {
        return Err(damaged(offset, "a node of extents has too many entries"));
    }
    for index in (1..=count).rev() {
        let entry = &node[index * ENTRY_BYTES..][..ENTRY_BYTES];
        let at = offset + (index * ENTRY_BYTES) as u64;
        nodes.push(if wanted_depth == 0 {
            Entry::Extent(Extent {
                at,
                first_in_file: u32_at(entry, 0),
                blocks: u16_at(entry, 4),
                first: u64::from(u32_at(entry, 8)) | u64::from(u16_at(entry, 6)) << 32,
            })
        } else {
            Entry::Node {
                block: u64::from(u32_at(entry, 4)) | u64::from(u16_at(entry, 8)) << 32,
                at,
                depth: wanted_depth - 1,
            }
        });
    }
    Ok(())
}

fn damaged(offset: u64, what: &'static str) -> JournalError {
    JournalError::Damaged { offset, what }
}

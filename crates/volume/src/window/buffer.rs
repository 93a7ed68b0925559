//! The open window: changes that are in memory alone.
//!
//! Enter: blocks with their fingerprints, and ranges that become zeros, in the order in which clients
//! sent them. A later change of a block takes the place of an earlier one and moves to the end. Leave:
//! what is left, in order. Reads look here first.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::address::{BLOCK_BYTES, Lba};
use crate::fingerprint::Fingerprint;

/// Ranges of zeros that a window holds, at most.
pub const UNMAPS_MAX: usize = 64;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A block was written; its bytes are in that place of the window.
    Write {
        /// The block.
        lba: Lba,
        /// Of its bytes.
        fingerprint: Fingerprint,
        /// Where its bytes are: [`WindowBuffer::bytes`].
        place: u32,
    },
    /// Blocks became zeros.
    Unmap {
        /// The first of them.
        lba: Lba,
        /// How many.
        blocks: u64,
    },
    /// A change that a later one replaced.
    Gone,
}

/// What the open window says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffered<'a> {
    /// It was written.
    Bytes(&'a [u8]),
    /// It became zeros.
    Zeros,
    /// Nothing.
    Untouched,
}

/// The open window.
#[derive(Debug)]
pub struct WindowBuffer {
    capacity: usize,
    changes: Vec<Change>,
    bytes: Vec<u8>,
    /// Change that wrote a block last.
    written: BTreeMap<u64, u32>,
    /// Ranges of zeros, at most [`UNMAPS_MAX`] and one.
    unmaps: Vec<Range<u64>>,
    /// Blocks of ranges of zeros.
    unmapped_blocks: u64,
}

impl WindowBuffer {
    /// A window of at most `capacity` blocks.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            changes: Vec::new(),
            bytes: Vec::with_capacity(capacity * BLOCK_BYTES),
            written: BTreeMap::new(),
            unmaps: Vec::new(),
            unmapped_blocks: 0,
        }
    }

    /// Whether it must be closed before another change.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= self.capacity * BLOCK_BYTES || self.unmaps.len() >= UNMAPS_MAX
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Blocks that it holds bytes of.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.written.len() as u64
    }

    /// Blocks of ranges that became zeros.
    #[must_use]
    pub fn unmapped_blocks(&self) -> u64 {
        self.unmapped_blocks
    }

    /// Takes a block.
    ///
    /// # Panics
    /// When the window is full.
    pub fn write(&mut self, lba: Lba, fingerprint: Fingerprint, bytes: &[u8]) {
        assert!(!self.is_full() && bytes.len() == BLOCK_BYTES);
        let place = (self.bytes.len() / BLOCK_BYTES) as u32;
        self.bytes.extend_from_slice(bytes);
        let before = self.written.insert(lba.0, self.changes.len() as u32);
        if let Some(before) = before {
            self.changes[before as usize] = Change::Gone;
        }
        self.changes.push(Change::Write {
            lba,
            fingerprint,
            place,
        });
    }

    /// Takes bytes that are no client's change: of a block that moves. Their place.
    pub fn stash(&mut self, bytes: &[u8]) -> u32 {
        let place = (self.bytes.len() / BLOCK_BYTES) as u32;
        self.bytes.extend_from_slice(bytes);
        place
    }

    /// Makes blocks zeros.
    ///
    /// # Panics
    /// When the window is full.
    pub fn unmap(&mut self, lba: Lba, blocks: u64) {
        assert!(!self.is_full());
        let range = lba.0..lba.0 + blocks;
        while let Some((&block, &change)) = self.written.range(range.clone()).next() {
            self.changes[change as usize] = Change::Gone;
            self.written.remove(&block);
        }
        self.changes.push(Change::Unmap { lba, blocks });
        self.unmaps.push(range);
        self.unmapped_blocks += blocks;
    }

    /// What it says of a block.
    #[must_use]
    pub fn get(&self, lba: Lba) -> Buffered<'_> {
        if let Some(&change) = self.written.get(&lba.0)
            && let Change::Write {
                place, fingerprint, ..
            } = self.changes[change as usize]
        {
            if fingerprint == Fingerprint::ZEROS {
                return Buffered::Zeros;
            }
            return Buffered::Bytes(self.bytes_at(place));
        }
        if self.unmaps.iter().any(|range| range.contains(&lba.0)) {
            return Buffered::Zeros;
        }
        Buffered::Untouched
    }

    /// Whether it has bytes of a block of a range.
    #[must_use]
    pub fn has_bytes_in(&self, range: Range<u64>) -> bool {
        self.written.range(range).next().is_some()
    }

    /// What is in it, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The bytes of a block that was written.
    #[must_use]
    pub fn bytes_at(&self, place: u32) -> &[u8] {
        let start = place as usize * BLOCK_BYTES;
        &self.bytes[start..start + BLOCK_BYTES]
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.changes.clear();
        self.bytes.clear();
        self.written.clear();
        self.unmaps.clear();
        self.unmapped_blocks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_block_counts() {
        let mut window = WindowBuffer::new(8);
        let block = |value: u8| [value; BLOCK_BYTES];
        window.write(Lba(1), Fingerprint([1; 16]), &block(1));
        window.write(Lba(2), Fingerprint([2; 16]), &block(2));
        window.write(Lba(1), Fingerprint([3; 16]), &block(3));
        assert_eq!(window.get(Lba(1)), Buffered::Bytes(&block(3)));
        window.unmap(Lba(2), 5);
        assert_eq!(window.get(Lba(2)), Buffered::Zeros);
        assert_eq!(window.get(Lba(6)), Buffered::Zeros);
        assert_eq!(window.get(Lba(7)), Buffered::Untouched);
        window.write(Lba(3), Fingerprint([4; 16]), &block(4));
        assert_eq!(window.get(Lba(3)), Buffered::Bytes(&block(4)));
        assert_eq!(window.blocks(), 2);
        let order: Vec<_> = window
            .changes()
            .iter()
            .filter(|change| **change != Change::Gone)
            .collect();
        assert!(matches!(order[0], Change::Write { lba: Lba(1), .. }));
        assert!(matches!(order[1], Change::Unmap { lba: Lba(2), .. }));
        assert!(matches!(order[2], Change::Write { lba: Lba(3), .. }));
    }
}

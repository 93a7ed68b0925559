//! Sets of blocks, as few ranges.
//!
//! Invariants: ranges are not empty, ascend, and neither overlap nor touch.

use std::fmt;
use std::ops::Range;

use super::BLOCK_BYTES;

/// Consecutive blocks of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockRange {
    /// Number of the first block.
    pub first: u64,
    /// Number after that of the last block.
    pub end: u64,
}

/// The blocks of 4 KiB that are a journal. Usually one range; empty where there is no journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalRanges {
    ranges: Vec<BlockRange>,
}

impl JournalRanges {
    /// The blocks that are in some of `ranges`, which may overlap and have any order.
    #[must_use]
    pub fn of_blocks(mut ranges: Vec<BlockRange>) -> Self {
        ranges.retain(|range| range.first < range.end);
        ranges.sort_unstable();
        let mut united: Vec<BlockRange> = Vec::new();
        for range in ranges {
            match united.last_mut() {
                Some(last) if range.first <= last.end => last.end = last.end.max(range.end),
                _ => united.push(range),
            }
        }
        Self { ranges: united }
    }

    /// The blocks all of whose bytes are in some of `ranges`. Neighbours are united before blocks
    /// that are only partly covered are left out: blocks of a file system may be smaller.
    #[must_use]
    pub fn of_bytes(ranges: Vec<Range<u64>>) -> Self {
        let bytes = ranges.into_iter().map(|range| BlockRange {
            first: range.start,
            end: range.end,
        });
        let mut united = Self::of_blocks(bytes.collect());
        for range in &mut united.ranges {
            range.first = range.first.div_ceil(BLOCK_BYTES);
            range.end /= BLOCK_BYTES;
        }
        united.ranges.retain(|range| range.first < range.end);
        united
    }

    /// All whole blocks of a disk.
    #[must_use]
    pub fn whole_disk(size_bytes: u64) -> Self {
        Self::of_bytes(std::iter::once(0..size_bytes).collect())
    }

    /// Whether a block is among them.
    #[must_use]
    pub fn contains(&self, block: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.first <= block);
        after > 0 && block < self.ranges[after - 1].end
    }

    /// How many blocks there are.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.iter().map(|range| range.end - range.first).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = BlockRange> + '_ {
        self.ranges.iter().copied()
    }
}

/// `first-last`, comma, and so on: both are inside.
impl fmt::Display for JournalRanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{}-{}", range.first, range.end - 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_that_are_only_partly_covered_do_not_count() {
        let kib = 1024;
        // Two ranges that touch inside a block make it whole.
        let ranges = JournalRanges::of_bytes(vec![3 * kib..6 * kib, 6 * kib..17 * kib]);
        assert_eq!(ranges.to_string(), "1-3");
        let holed = JournalRanges::of_bytes(vec![3 * kib..6 * kib, 7 * kib..17 * kib]);
        assert_eq!(holed.to_string(), "2-3");
        let small = JournalRanges::of_bytes(vec![kib..4 * kib, 5 * kib..7 * kib]);
        assert!(small.is_empty());
        assert!(JournalRanges::whole_disk(4095).is_empty());
        assert_eq!(JournalRanges::whole_disk(9000).blocks(), 2);
        assert_eq!(JournalRanges::whole_disk(u64::MAX).blocks(), (1 << 52) - 1);
    }

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_blocks(parts in prop::collection::vec((0u64..300, 0u64..40), 0..20)) {
            let set: BTreeSet<u64> = parts.iter().flat_map(|(at, count)| *at..at + count).collect();
            let blocks = parts.iter().map(|(at, count)| BlockRange { first: *at, end: at + count });
            let ranges = JournalRanges::of_blocks(blocks.collect());
            prop_assert_eq!(ranges.blocks(), set.len() as u64);
            for block in 0..350 {
                prop_assert_eq!(ranges.contains(block), set.contains(&block));
            }
            prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.end < b.first));
            let bytes = parts.iter().map(|(at, count)| at * 1024..(at + count) * 1024);
            let whole = JournalRanges::of_bytes(bytes.collect());
            for block in 0..100 {
                let inside = (block * 4..block * 4 + 4).all(|part| set.contains(&part));
                prop_assert_eq!(whole.contains(block), inside);
            }
        }
    }
}

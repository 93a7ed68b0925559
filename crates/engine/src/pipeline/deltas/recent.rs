//! The new chunks of a row that came last: which of them may be bases.
//!
//! Enter: groups, in the order of their chunks' numbers. Leave, of chunks stored as deltas: bytes by
//! number, so that these need not be read back. What has left is stored, or on its way:
//! [`RecentGroups::sealed_before`] says which of it lies in containers that are sealed. All of it
//! follows from the input alone, so that which bases can be had does, too.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Consecutive new chunks in memory.
#[derive(Debug)]
pub struct RecentGroup {
    /// Number of the first.
    first: u64,
    bytes: Arc<Vec<u8>>,
    /// Where each ends in the bytes.
    ends: Vec<u32>,
}

impl RecentGroup {
    /// Chunks of these lengths, which make up `bytes`.
    pub fn new(first: u64, bytes: &Arc<Vec<u8>>, lengths: impl Iterator<Item = u32>) -> Self {
        let mut end = 0;
        let ends = lengths.map(|length| {
            end += length;
            end
        });
        Self {
            first,
            ends: ends.collect(),
            bytes: Arc::clone(bytes),
        }
    }

    fn range(&self, chunk: usize) -> Range<usize> {
        let start = chunk.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[chunk] as usize
    }
}

/// One chunk in memory.
#[derive(Debug, Clone)]
pub struct RecentChunk {
    group: Arc<RecentGroup>,
    chunk: usize,
}

impl RecentChunk {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.group.bytes[self.group.range(self.chunk)]
    }
}

/// The last groups of one row, bounded in bytes of chunks.
#[derive(Debug)]
pub struct RecentGroups<G> {
    limit_bytes: usize,
    bytes: usize,
    groups: VecDeque<G>,
    /// Chunks with smaller numbers lie in containers that are sealed.
    pub sealed_before: u64,
}

/// Groups whose chunks are in memory.
pub type RecentChunks = RecentGroups<Arc<RecentGroup>>;

/// Groups of which it counts alone when they are sealed.
pub type RecentEnds = RecentGroups<GroupEnd>;

/// What a group counts for, and where it ends.
pub trait Recent {
    /// Bytes of its chunks.
    fn bytes(&self) -> usize;
    /// Number of the first chunk after it.
    fn end(&self) -> u64;
}

/// A group without its bytes.
#[derive(Debug, Clone, Copy)]
pub struct GroupEnd {
    /// Bytes of its chunks.
    pub bytes: usize,
    /// Number of the first chunk after it.
    pub end: u64,
}

impl Recent for GroupEnd {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn end(&self) -> u64 {
        self.end
    }
}

impl Recent for Arc<RecentGroup> {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn end(&self) -> u64 {
        self.first + self.ends.len() as u64
    }
}

impl<G: Recent> RecentGroups<G> {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            bytes: 0,
            groups: VecDeque::new(),
            sealed_before: 0,
        }
    }

    /// Bytes that it may hold.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Takes the next group in.
    pub fn push(&mut self, group: G) {
        self.bytes += group.bytes();
        self.groups.push_back(group);
    }

    /// Lets the oldest group go, if there are too many; says at which number it ended. The last one
    /// stays.
    pub fn pop(&mut self) -> Option<u64> {
        if self.bytes <= self.limit_bytes || self.groups.len() < 2 {
            return None;
        }
        let oldest = self.groups.pop_front()?;
        self.bytes -= oldest.bytes();
        Some(oldest.end())
    }
}

impl RecentChunks {
    /// The chunk of that number, if it is still here.
    pub fn get(&self, number: u64) -> Option<RecentChunk> {
        let next = self.groups.partition_point(|group| group.first <= number);
        let group = self.groups.get(next.checked_sub(1)?)?;
        let chunk = (number - group.first) as usize;
        (chunk < group.ends.len()).then(|| RecentChunk {
            group: Arc::clone(group),
            chunk,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_chunks_are_here() {
        let mut recent = RecentChunks::new(25);
        for group in 0..4u8 {
            let bytes = Arc::new((0..10).map(|byte| group * 10 + byte).collect());
            let first = u64::from(group) * 3;
            let group = RecentGroup::new(first, &bytes, [2, 5, 3].into_iter());
            recent.push(Arc::new(group));
        }
        assert_eq!(recent.get(0).unwrap().bytes(), [0, 1]);
        assert_eq!(
            (recent.pop(), recent.pop(), recent.pop()),
            (Some(3), Some(6), None)
        );
        assert!(recent.get(5).is_none() && recent.get(12).is_none());
        assert_eq!(recent.get(6).unwrap().bytes(), [20, 21]);
        assert_eq!(recent.get(10).unwrap().bytes(), [32, 33, 34, 35, 36]);
    }

    #[test]
    fn a_group_beyond_the_limit_is_here_until_the_next() {
        let mut recent = RecentEnds::new(5);
        recent.push(GroupEnd { bytes: 9, end: 1 });
        assert_eq!(recent.pop(), None);
        recent.push(GroupEnd { bytes: 9, end: 3 });
        assert_eq!((recent.pop(), recent.pop()), (Some(1), None));
    }
}

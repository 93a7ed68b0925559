//! The new chunks that came last, as they are: bases that need not be read back.
//!
//! Enter: groups, in the order of their chunks' numbers. Leave: bytes by number. What has left is
//! stored, or on its way: [`RecentChunks::sealed_before`] says which of it lies in containers that are
//! sealed. Both follow from the input alone, so that which bases can be had does, too.

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

    /// Number of the first chunk after it.
    pub fn end(&self) -> u64 {
        self.first + self.ends.len() as u64
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

/// The last chunks of one row, bounded in bytes.
#[derive(Debug)]
pub struct RecentChunks {
    limit_bytes: usize,
    bytes: usize,
    groups: VecDeque<Arc<RecentGroup>>,
    /// Chunks with smaller numbers lie in containers that are sealed.
    pub sealed_before: u64,
}

impl RecentChunks {
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
    pub fn push(&mut self, group: RecentGroup) {
        self.bytes += group.bytes.len();
        self.groups.push_back(Arc::new(group));
    }

    /// Lets the oldest group go, if there are too many; says at which number it ended. The last one
    /// stays.
    pub fn pop(&mut self) -> Option<u64> {
        if self.bytes <= self.limit_bytes || self.groups.len() < 2 {
            return None;
        }
        let oldest = self.groups.pop_front()?;
        self.bytes -= oldest.bytes.len();
        Some(oldest.end())
    }

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
            recent.push(RecentGroup::new(first, &bytes, [2, 5, 3].into_iter()));
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
        let mut recent = RecentChunks::new(5);
        recent.push(RecentGroup::new(0, &Arc::new(vec![1; 9]), [9].into_iter()));
        assert_eq!(recent.pop(), None);
        recent.push(RecentGroup::new(1, &Arc::new(vec![2; 9]), [9].into_iter()));
        assert_eq!((recent.pop(), recent.pop()), (Some(1), None));
    }
}

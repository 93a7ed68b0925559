//! The fingerprint pool of WOJ (Ni, §4.2.2): blocks that were written to a file system's journal.
//!
//! A block that is then written home is most likely one of them, and needs only a reference.
//! Each entry is one block of the journal; a hit consumes it, so that a physical block has at most two
//! owners; the entry dies, too, when its block of the journal is overwritten or becomes zeros. The pool
//! holds as many entries as the journal has blocks. The fingerprint is the whole block's.
//!
//! The paper's own fingerprint is XXH64 of the first 64 bytes, valid while no second block of the journal
//! shares it. It returns wrong data on real file systems; [`PoolKind::Prefix64`] keeps it for experiments.

use std::collections::HashMap;
use std::ops::Range;

use twox_hash::XxHash64;

use crate::address::Lba;
use crate::fingerprint::Fingerprint;

/// What blocks are recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PoolKind {
    /// The fingerprint of the whole block.
    #[default]
    Whole,
    /// The first 64 bytes, as published: **wrong data** on real file systems.
    Prefix64,
}

/// Blocks of a journal, by content.
#[derive(Debug)]
pub struct JournalPool {
    kind: PoolKind,
    /// Blocks of the disk that are journal, ascending, disjoint.
    ranges: Vec<Range<u64>>,
    blocks: HashMap<Fingerprint, Vec<u64>>,
    fingerprints: HashMap<u64, Fingerprint>,
}

impl JournalPool {
    /// An empty pool of a journal in these blocks of the disk.
    #[must_use]
    pub fn new(kind: PoolKind, mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_by_key(|range| range.start);
        Self {
            kind,
            ranges,
            blocks: HashMap::new(),
            fingerprints: HashMap::new(),
        }
    }

    /// Blocks that are journal.
    #[must_use]
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// What blocks are recognised by.
    #[must_use]
    pub fn kind(&self) -> PoolKind {
        self.kind
    }

    /// Whether a block is journal.
    #[must_use]
    pub fn is_journal(&self, lba: Lba) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= lba.0);
        after > 0 && self.ranges[after - 1].contains(&lba.0)
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Whether it has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// Bytes in memory, by the paper's count (§4.3.6: 12 for an entry, 8 for the reverse mapping), and as
    /// it is here.
    #[must_use]
    pub fn memory_bytes(&self) -> (u64, u64) {
        let entries = self.fingerprints.len() as u64;
        let here = self.fingerprints.capacity() * (size_of::<(u64, Fingerprint)>() + 1)
            + self.blocks.capacity() * (size_of::<(Fingerprint, Vec<u64>)>() + 1)
            + self
                .blocks
                .values()
                .map(|list| list.capacity() * 8)
                .sum::<usize>();
        (entries * 20, here as u64)
    }

    /// What the pool calls a block.
    #[must_use]
    pub fn key(&self, whole: Fingerprint, bytes: &[u8]) -> Fingerprint {
        match self.kind {
            PoolKind::Whole => whole,
            PoolKind::Prefix64 => {
                let mut key = [0xff; 16];
                key[..8].copy_from_slice(&XxHash64::oneshot(0, &bytes[..64]).to_le_bytes());
                Fingerprint(key)
            }
        }
    }

    /// A block of the journal was written.
    pub fn insert(&mut self, lba: Lba, key: Fingerprint) {
        self.forget(lba);
        self.fingerprints.insert(lba.0, key);
        self.blocks.entry(key).or_default().push(lba.0);
    }

    /// A block of the journal has other contents now.
    pub fn forget(&mut self, lba: Lba) {
        let Some(key) = self.fingerprints.remove(&lba.0) else {
            return;
        };
        // Of two blocks with one key the one that is left can be found again.
        if let Some(list) = self.blocks.get_mut(&key) {
            list.retain(|block| *block != lba.0);
            if list.is_empty() {
                self.blocks.remove(&key);
            }
        }
    }

    /// Blocks of the journal became zeros.
    pub fn forget_range(&mut self, range: &Range<u64>) {
        if self
            .ranges
            .iter()
            .all(|journal| journal.end <= range.start || range.end <= journal.start)
        {
            return;
        }
        let gone: Vec<u64> = self
            .fingerprints
            .keys()
            .copied()
            .filter(|block| range.contains(block))
            .collect();
        for block in gone {
            self.forget(Lba(block));
        }
    }

    /// The oldest block of the journal with that content. What is oldest goes home first, and its block of the
    /// journal is the next to be overwritten: the newer ones live long enough for those that come later.
    #[must_use]
    pub fn find(&self, key: Fingerprint) -> Option<Lba> {
        let list = self.blocks.get(&key)?;
        if self.kind == PoolKind::Prefix64 && list.len() > 1 {
            return None;
        }
        list.first().map(|block| Lba(*block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: u8) -> Fingerprint {
        Fingerprint([value; 16])
    }

    #[test]
    fn entries_live_as_long_as_their_blocks_of_the_journal() {
        let mut pool = JournalPool::new(PoolKind::Whole, vec![100..110, 20..30]);
        assert!(pool.is_journal(Lba(20)) && pool.is_journal(Lba(109)));
        assert!(
            !pool.is_journal(Lba(19)) && !pool.is_journal(Lba(30)) && !pool.is_journal(Lba(110))
        );
        pool.insert(Lba(20), key(1));
        pool.insert(Lba(21), key(1));
        pool.insert(Lba(22), key(2));
        assert_eq!(pool.find(key(1)), Some(Lba(20)));
        pool.forget(Lba(20));
        assert_eq!(pool.find(key(1)), Some(Lba(21)));
        pool.insert(Lba(21), key(3));
        assert_eq!(pool.find(key(1)), None);
        pool.forget_range(&(22..23));
        assert_eq!((pool.find(key(2)), pool.len()), (None, 1));
    }

    #[test]
    fn as_published_a_collision_ends_an_entry() {
        let mut pool = JournalPool::new(PoolKind::Prefix64, vec![0..10, 20..30]);
        pool.insert(Lba(1), key(1));
        assert_eq!(pool.find(key(1)), Some(Lba(1)));
        pool.insert(Lba(2), key(1));
        assert_eq!(pool.find(key(1)), None);
    }

    #[test]
    fn the_published_key_sees_64_bytes() {
        let published = JournalPool::new(PoolKind::Prefix64, vec![]);
        let mut other = [0; 4096];
        other[64] = 1;
        let (a, b) = (
            published.key(key(1), &[0; 4096]),
            published.key(key(2), &other),
        );
        assert_eq!(a, b);
    }
}

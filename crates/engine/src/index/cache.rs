//! Blocks in memory: one cache for all runs of a set, bounded in bytes.
//!
//! Enter: pieces that were read, opened and checked, under (run number, piece number). The one
//! least recently used leaves when the limit is exceeded; a piece above the limit never enters.
//! Run numbers are never used twice, so pieces of a run that is gone just grow old.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::block::Block;

/// A part of a run, opened and checked.
#[derive(Debug)]
pub(super) enum Piece {
    /// A block.
    Block(Block),
    /// It is damaged, which was reported: no need to read it again.
    Damaged,
}

impl Piece {
    fn memory_bytes(&self) -> usize {
        let own = match self {
            Piece::Block(block) => block.memory_bytes(),
            Piece::Damaged => 0,
        };
        own + OVERHEAD_BYTES
    }
}

/// What an entry takes besides its piece: counters of the `Arc`, node, place in the map.
const OVERHEAD_BYTES: usize = 96;

/// Which piece of which run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PieceKey(u64);

impl PieceKey {
    pub(super) fn new(run: u32, piece: u32) -> Self {
        Self(u64::from(run) << 32 | u64::from(piece))
    }
}

/// Spreads keys, which are our own small numbers, not an enemy's.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// No node.
const NONE: u32 = u32::MAX;

/// A piece and its neighbours in the order of use.
#[derive(Debug)]
struct Node {
    key: PieceKey,
    piece: Arc<Piece>,
    newer: u32,
    older: u32,
}

/// The order of use as a doubly linked list through a vector.
#[derive(Debug)]
struct Lru {
    limit_bytes: usize,
    used_bytes: usize,
    places: HashMap<PieceKey, u32, BuildHasherDefault<KeyHasher>>,
    nodes: Vec<Node>,
    newest: u32,
    oldest: u32,
}

/// The cache. All methods are safe from several threads; none does I/O.
#[derive(Debug)]
pub(super) struct PieceCache {
    lru: Mutex<Lru>,
}

impl PieceCache {
    /// An empty cache of at most `limit_bytes`.
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self {
            lru: Mutex::new(Lru {
                limit_bytes,
                used_bytes: 0,
                places: HashMap::default(),
                nodes: Vec::new(),
                newest: NONE,
                oldest: NONE,
            }),
        }
    }

    /// The piece, if it is here; it is now the one most recently used.
    pub(super) fn get(&self, key: PieceKey) -> Option<Arc<Piece>> {
        let mut lru = self.lock();
        let place = *lru.places.get(&key)?;
        if lru.newest != place {
            lru.unlink(place);
            lru.link_newest(place);
        }
        Some(Arc::clone(&lru.nodes[place as usize].piece))
    }

    /// Keeps `piece`, if it is not larger than the whole cache.
    pub(super) fn insert(&self, key: PieceKey, piece: Arc<Piece>) {
        let mut lru = self.lock();
        if let Some(&place) = lru.places.get(&key) {
            lru.remove(place);
        }
        let bytes = piece.memory_bytes();
        if bytes > lru.limit_bytes {
            return;
        }
        let limit_bytes = lru.limit_bytes;
        lru.shrink_to(limit_bytes - bytes);
        let place = lru.nodes.len() as u32;
        lru.nodes.push(Node {
            key,
            piece,
            newer: NONE,
            older: NONE,
        });
        lru.places.insert(key, place);
        lru.used_bytes += bytes;
        lru.link_newest(place);
    }

    /// Sets the limit, and drops pieces until it is kept.
    pub(super) fn set_limit(&self, limit_bytes: usize) {
        let mut lru = self.lock();
        lru.limit_bytes = limit_bytes;
        lru.shrink_to(limit_bytes);
    }

    /// Memory that the pieces take now.
    pub(super) fn used_bytes(&self) -> usize {
        self.lock().used_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Lru> {
        self.lru.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lru {
    fn shrink_to(&mut self, bytes: usize) {
        while self.used_bytes > bytes && self.oldest != NONE {
            self.remove(self.oldest);
        }
    }

    fn link_newest(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        self.nodes[place as usize].newer = NONE;
        self.nodes[place as usize].older = before;
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.newer = place,
            None => self.oldest = place,
        }
    }

    fn unlink(&mut self, place: u32) {
        self.point_around(place, None);
    }

    /// Lets the neighbours of `place` point to `instead`, or to each other.
    fn point_around(&mut self, place: u32, instead: Option<u32>) {
        let Node { newer, older, .. } = self.nodes[place as usize];
        match self.nodes.get_mut(newer as usize) {
            Some(node) => node.older = instead.unwrap_or(older),
            None => self.newest = instead.unwrap_or(older),
        }
        match self.nodes.get_mut(older as usize) {
            Some(node) => node.newer = instead.unwrap_or(newer),
            None => self.oldest = instead.unwrap_or(newer),
        }
    }

    /// Takes a piece out; the last node moves to its place.
    fn remove(&mut self, place: u32) {
        self.unlink(place);
        let last = self.nodes.len() as u32 - 1;
        if last != place {
            self.point_around(last, Some(place));
            self.places.insert(self.nodes[last as usize].key, place);
        }
        let node = self.nodes.swap_remove(place as usize);
        self.places.remove(&node.key);
        self.used_bytes -= node.piece.memory_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::Slot;
    use crate::index::RunEntry;
    use crate::index::block::BlockBuilder;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn block(entries: usize) -> Arc<Piece> {
        let mut builder = BlockBuilder::default();
        for slot in 0..entries as u16 {
            assert!(builder.push(RunEntry {
                prefix: 7,
                container: 0,
                slot: Slot(slot),
            }));
        }
        let mut plain = Vec::new();
        builder.encode(&mut plain);
        Arc::new(Piece::Block(Block::decode(plain, 1).unwrap()))
    }

    #[test]
    fn the_least_recently_used_leaves() {
        let each = block(1000).memory_bytes();
        let cache = PieceCache::new(3 * each);
        for piece in 0..3 {
            cache.insert(PieceKey::new(1, piece), block(1000));
        }
        assert!(cache.get(PieceKey::new(1, 0)).is_some());
        cache.insert(PieceKey::new(2, 0), block(1000));
        assert!(cache.get(PieceKey::new(1, 1)).is_none());
        assert!(cache.get(PieceKey::new(1, 0)).is_some());
        assert_eq!(cache.used_bytes(), 3 * each);
        cache.set_limit(each);
        assert_eq!(cache.used_bytes(), each);
        cache.insert(PieceKey::new(3, 0), block(4000));
        assert!(
            cache.get(PieceKey::new(3, 0)).is_none(),
            "larger than the cache"
        );
        assert_eq!(cache.used_bytes(), each);
        cache.set_limit(0);
        assert_eq!(cache.used_bytes(), 0);
    }

    proptest! {
        #[test]
        fn behaves_as_a_list_in_order_of_use(
            steps in prop::collection::vec((0..12u32, 1..3000usize, 0..4u8), 1..200),
        ) {
            let limit = 100_000;
            let cache = PieceCache::new(limit);
            let mut model: VecDeque<(u32, usize)> = VecDeque::new();
            for (number, keys, step) in steps {
                let key = PieceKey::new(number % 2, number);
                let at = model.iter().position(|(other, _)| *other == number);
                if step == 0 {
                    let piece = block(keys);
                    let bytes = piece.memory_bytes();
                    cache.insert(key, piece);
                    if let Some(at) = at {
                        model.remove(at);
                    }
                    while model.iter().map(|(_, bytes)| bytes).sum::<usize>() + bytes > limit {
                        model.pop_front();
                    }
                    model.push_back((number, bytes));
                } else {
                    prop_assert_eq!(cache.get(key).is_some(), at.is_some());
                    if let Some(at) = at {
                        let used = model.remove(at).unwrap();
                        model.push_back(used);
                    }
                }
                let model_bytes: usize = model.iter().map(|(_, bytes)| bytes).sum();
                prop_assert_eq!(cache.used_bytes(), model_bytes);
                prop_assert_eq!(cache.lock().nodes.len(), model.len());
            }
        }
    }
}

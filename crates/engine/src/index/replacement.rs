//! Metadata of containers in memory, bounded in bytes, and which of it leaves
//! (MACS, §III-D and Fig. 5).
//!
//! Enter: metadata regions under their containers' ids, each with its length. Leave: those that
//! are still there, and the ids of those that had to go. Entries stand in a queue; one that is
//! used goes to its end. Invariant: the lengths of what is held never exceed the limit; what is
//! longer than the limit never enters.
//!
//! *Least recently used*: entries leave from the front of the queue until the new one fits.
//! *By length*: the first two thirds of the entries (rounded up; four of the six in Fig. 5) are the
//! part that is replaced by preference. With S the length of the new region, when it does not
//! fit, the first of these that holds in that part says what leaves:
//!
//! 1. an entry of at least S: the one nearest to S;
//! 2. two entries of at least S / 2: the two nearest to it;
//! 3. four entries of at least S / 4: the four nearest to it;
//! 4. otherwise entries from the front of the part until there is room, and then the others from
//!    the back of the queue.
//!
//! Of equally long ones the one nearer to the front leaves. The paper says "larger than S" where
//! "at least S" stands here (an entry as long as S frees just enough), and does not say how large
//! the part is.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Which entries leave when a new one needs room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used ones.
    Lru,
    /// As few as possible, by their lengths.
    ByLength,
}

/// Numerator and denominator of the share of entries that are replaced by preference.
const PREFERRED: (usize, usize) = (2, 3);

/// An entry that is held.
#[derive(Debug)]
struct Held<V> {
    /// Its place in the queue.
    used: u64,
    bytes: u64,
    value: V,
}

/// Values under keys, each of a length, bounded in the sum of lengths.
#[derive(Debug)]
pub struct MetadataCache<K, V> {
    replacement: Replacement,
    limit_bytes: u64,
    used_bytes: u64,
    clock: u64,
    held: HashMap<K, Held<V>>,
    /// From the front, used longest ago, to the end.
    queue: BTreeMap<u64, (K, u64)>,
}

impl<K: Copy + Eq + Hash, V> MetadataCache<K, V> {
    /// An empty cache of so many bytes.
    #[must_use]
    pub fn new(limit_bytes: u64, replacement: Replacement) -> Self {
        Self {
            replacement,
            limit_bytes,
            used_bytes: 0,
            clock: 0,
            held: HashMap::new(),
            queue: BTreeMap::new(),
        }
    }

    /// The sum of the lengths of what is held.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// How many entries are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The value of a key, which thereby goes to the end of the queue.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        let held = self.held.get_mut(key)?;
        self.queue.remove(&held.used);
        self.clock += 1;
        held.used = self.clock;
        self.queue.insert(self.clock, (*key, held.bytes));
        Some(&held.value)
    }

    /// Puts a value of `bytes` bytes in at the end of the queue, instead of one of the same key;
    /// returns the keys that left for it, in that order. A value longer than the limit is not
    /// kept, and nothing leaves for it but an old value of its key.
    pub fn insert(&mut self, key: K, value: V, bytes: u64) -> Vec<K> {
        self.remove(&key);
        if bytes > self.limit_bytes {
            return Vec::new();
        }
        let leaving = match self.limit_bytes - self.used_bytes {
            free if free >= bytes => Vec::new(),
            free => self.leaving(bytes, free),
        };
        for key in &leaving {
            self.remove(key);
        }
        self.clock += 1;
        self.used_bytes += bytes;
        self.queue.insert(self.clock, (key, bytes));
        let used = self.clock;
        self.held.insert(key, Held { used, bytes, value });
        leaving
    }

    fn remove(&mut self, key: &K) {
        if let Some(held) = self.held.remove(key) {
            self.queue.remove(&held.used);
            self.used_bytes -= held.bytes;
        }
    }

    /// What leaves for a new entry of `bytes` when `free` bytes are free.
    fn leaving(&self, bytes: u64, free: u64) -> Vec<K> {
        let preferred = match self.replacement {
            Replacement::Lru => self.queue.len(),
            Replacement::ByLength => (self.queue.len() * PREFERRED.0).div_ceil(PREFERRED.1),
        };
        if self.replacement == Replacement::ByLength {
            for parts in [1, 2, 4] {
                let found = self.nearest(bytes, parts, preferred);
                if found.len() == parts {
                    return found;
                }
            }
        }
        let front = self.queue.values().take(preferred);
        let back = self.queue.values().skip(preferred).rev();
        let mut free = free;
        let mut leaving = Vec::new();
        for (key, length) in front.chain(back) {
            if free >= bytes {
                break;
            }
            free += length;
            leaving.push(*key);
        }
        leaving
    }

    /// Up to `parts` entries of the preferred part that have at least the `parts`-th part of
    /// `bytes`, the nearest to that.
    fn nearest(&self, bytes: u64, parts: usize, preferred: usize) -> Vec<K> {
        let is_enough = |length: u64| u128::from(length) * parts as u128 >= u128::from(bytes);
        let part = self.queue.values().take(preferred);
        let mut found: Vec<(u64, K)> = part
            .filter(|(_, length)| is_enough(*length))
            .map(|(key, length)| (*length, *key))
            .collect();
        // Stable: of equal ones the first in the queue.
        found.sort_by_key(|(length, _)| *length);
        found.truncate(parts);
        found.into_iter().map(|(_, key)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A cache with M1 … M6 of these lengths, filled to the last byte.
    fn full(lengths: [u64; 6]) -> MetadataCache<u32, ()> {
        let mut cache = MetadataCache::new(lengths.iter().sum(), Replacement::ByLength);
        for (key, length) in (1..).zip(lengths) {
            assert!(cache.insert(key, (), length).is_empty());
        }
        cache
    }

    /// Fig. 5: M7 of length 100 comes into a queue of six.
    #[test]
    fn the_papers_four_conditions() {
        // One is larger than S: of M2 and M4 the nearer one.
        assert_eq!(full([60, 110, 40, 150, 90, 90]).insert(7, (), 100), [2]);
        // None, but two are larger than S / 2: of M1, M2 and M3 the two nearest.
        assert_eq!(full([60, 55, 80, 20, 90, 90]).insert(7, (), 100), [2, 1]);
        // One is, and four are larger than S / 4.
        assert_eq!(
            full([30, 26, 40, 60, 90, 90]).insert(7, (), 100),
            [2, 1, 3, 4]
        );
        // Nothing of that: from the head of the queue.
        assert_eq!(full([40, 24, 40, 20, 90, 90]).insert(7, (), 100), [1, 2, 3]);
    }

    #[test]
    fn the_other_part_leaves_from_the_back() {
        let mut cache = full([10, 10, 10, 10, 20, 30]);
        assert_eq!(cache.insert(7, (), 65), [1, 2, 3, 4, 6]);
        assert_eq!((cache.len(), cache.used_bytes()), (2, 85));
        assert!(cache.get(&5).is_some() && cache.get(&7).is_some());
    }

    #[test]
    fn one_that_is_used_goes_to_the_end_and_one_too_long_never_enters() {
        let mut cache = MetadataCache::new(30, Replacement::Lru);
        for key in 1..=3 {
            cache.insert(key, key * 10, 10);
        }
        assert_eq!(cache.get(&1), Some(&10));
        assert_eq!(cache.insert(4, 40, 10), [2]);
        assert!(cache.insert(5, 50, 31).is_empty());
        assert_eq!((cache.len(), cache.get(&5)), (3, None));
        assert_eq!(cache.insert(4, 41, 5), [0; 0]);
        assert_eq!((cache.get(&4).copied(), cache.used_bytes()), (Some(41), 25));
        assert!(!cache.is_empty());
    }

    /// The rules once more, on a list, from the words of the paper.
    fn model_leaving(
        queue: &[(u8, u64)],
        replacement: Replacement,
        new: u64,
        limit: u64,
    ) -> Vec<u8> {
        let used: u64 = queue.iter().map(|(_, length)| length).sum();
        if used + new <= limit {
            return Vec::new();
        }
        let mut order: Vec<(u8, u64)> = queue.to_vec();
        if replacement == Replacement::ByLength {
            let split = (2 * queue.len()).div_ceil(3);
            for count in [1u64, 2, 4] {
                let mut large: Vec<(u8, u64)> = Vec::new();
                for entry in &queue[..split] {
                    if entry.1 * count >= new {
                        large.push(*entry);
                    }
                }
                if large.len() as u64 >= count {
                    let mut chosen = Vec::new();
                    for _ in 0..count {
                        let least = large.iter().map(|entry| entry.1).min().unwrap();
                        let at = large.iter().position(|entry| entry.1 == least).unwrap();
                        chosen.push(large.remove(at).0);
                    }
                    return chosen;
                }
            }
            order[split..].reverse();
        }
        let mut used = used;
        let mut leaving = Vec::new();
        for (key, length) in order {
            if used + new <= limit {
                break;
            }
            used -= length;
            leaving.push(key);
        }
        leaving
    }

    proptest! {
        #[test]
        fn behaves_as_a_list(
            steps in prop::collection::vec((0..20u8, 1..60u64, 0..3u8), 1..150),
            limit in 1..300u64,
            is_lru: bool,
        ) {
            let replacement = if is_lru { Replacement::Lru } else { Replacement::ByLength };
            let mut cache = MetadataCache::new(limit, replacement);
            let mut model: Vec<(u8, u64)> = Vec::new();
            for (key, bytes, step) in steps {
                let at = model.iter().position(|(other, _)| *other == key);
                if step == 0 {
                    prop_assert_eq!(cache.get(&key).copied(), at.map(|at| model[at].1));
                    if let Some(at) = at {
                        let entry = model.remove(at);
                        model.push(entry);
                    }
                } else {
                    model.retain(|(other, _)| *other != key);
                    let leaving = match bytes > limit {
                        true => Vec::new(),
                        false => model_leaving(&model, replacement, bytes, limit),
                    };
                    prop_assert_eq!(cache.insert(key, bytes, bytes), leaving.clone());
                    model.retain(|(other, _)| !leaving.contains(other));
                    if bytes <= limit {
                        model.push((key, bytes));
                    }
                }
                let used: u64 = model.iter().map(|(_, length)| length).sum();
                prop_assert!(used <= limit);
                prop_assert_eq!((cache.used_bytes(), cache.len()), (used, model.len()));
            }
        }
    }
}

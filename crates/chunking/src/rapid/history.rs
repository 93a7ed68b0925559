//! Size lists: for every fingerprint, how long the chunks were that followed it (Ni §3.3.3).
//!
//! Enters: fingerprints of chunks in the order of a file, and what followed each. Leaves: hints,
//! the one most recently right first; a list forgets the one that was right longest ago. Nothing
//! is ever forgotten of fingerprints: memory is one entry for each distinct chunk, for the lab
//! and for tests.
//!
//! Several threads, a file each, may share one: fingerprints lie in buckets with a lock each
//! (§3.4.5), which is held for one operation.

use super::Hint;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// At most `LENGTH` hints, in the order in which they are to be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints<const LENGTH: usize> {
    hints: [Hint; LENGTH],
    count: u8,
}

impl<const LENGTH: usize> Default for Hints<LENGTH> {
    fn default() -> Self {
        const { assert!(LENGTH > 0 && LENGTH <= u8::MAX as usize) };
        Self {
            hints: [Hint::default(); LENGTH],
            count: 0,
        }
    }
}

impl<const LENGTH: usize> Hints<LENGTH> {
    /// The hints, the first to be tried first.
    #[must_use]
    pub fn as_slice(&self) -> &[Hint] {
        &self.hints[..usize::from(self.count)]
    }

    /// Puts `hint` in front. One of the same length leaves its place, else the last when all are
    /// taken.
    pub fn put_first(&mut self, hint: Hint) {
        let count = usize::from(self.count);
        let same = self.hints[..count]
            .iter()
            .position(|other| other.bytes == hint.bytes);
        let last = same.unwrap_or_else(|| {
            let count = (count + 1).min(LENGTH);
            self.count = count as u8;
            count - 1
        });
        self.hints[..=last].rotate_right(1);
        self.hints[0] = hint;
    }
}

/// What is known when a chunk comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Met<const LENGTH: usize> {
    /// The same chunk came before.
    pub is_duplicate: bool,
    /// What followed it then.
    pub hints: Hints<LENGTH>,
}

/// The size lists of all chunks that came; `LENGTH` hints for each.
pub struct SizeLists<F, const LENGTH: usize = 2> {
    buckets: Box<[Bucket<F, LENGTH>]>,
}

type Bucket<F, const LENGTH: usize> = Mutex<HashMap<F, Hints<LENGTH>, Folding>>;
type Folding = BuildHasherDefault<FoldingHasher>;

impl<F: Hash + Eq + Clone, const LENGTH: usize> SizeLists<F, LENGTH> {
    /// An empty history of so many buckets (rounded up to a power of two, at most 65536): some
    /// more than there are threads.
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        let count = buckets.clamp(1, 1 << 16).next_power_of_two();
        Self {
            buckets: (0..count).map(|_| Mutex::default()).collect(),
        }
    }

    /// Takes in a chunk: whether it came before, and what followed it.
    pub fn enter(&self, fingerprint: &F) -> Met<LENGTH> {
        let mut bucket = self.bucket(fingerprint);
        if let Some(&hints) = bucket.get(fingerprint) {
            return Met {
                is_duplicate: true,
                hints,
            };
        }
        bucket.insert(fingerprint.clone(), Hints::default());
        Met {
            is_duplicate: false,
            hints: Hints::default(),
        }
    }

    /// Whether the chunk came before.
    #[must_use]
    pub fn knows(&self, fingerprint: &F) -> bool {
        self.bucket(fingerprint).contains_key(fingerprint)
    }

    /// After the chunk `before`, which was entered, came `next`.
    pub fn follow(&self, before: &F, next: Hint) {
        if let Some(hints) = self.bucket(before).get_mut(before) {
            hints.put_first(next);
        }
    }

    /// How many distinct chunks came.
    #[must_use]
    pub fn count(&self) -> usize {
        let counts = self.buckets.iter().map(|bucket| lock(bucket).len());
        counts.sum()
    }

    fn bucket(&self, fingerprint: &F) -> MutexGuard<'_, HashMap<F, Hints<LENGTH>, Folding>> {
        let mut hasher = FoldingHasher::default();
        fingerprint.hash(&mut hasher);
        // Tables take the lowest bits, and the highest.
        let number = (hasher.finish() >> 32) as usize & (self.buckets.len() - 1);
        lock(&self.buckets[number])
    }
}

/// A thread that panicked between two operations leaves nothing half-done behind.
fn lock<T>(bucket: &Mutex<T>) -> MutexGuard<'_, T> {
    bucket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Never shows fingerprints.
impl<F, const LENGTH: usize> std::fmt::Debug for SizeLists<F, LENGTH> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SizeLists")
            .field("buckets", &self.buckets.len())
            .finish_non_exhaustive()
    }
}

/// Folds what it is given into 64 bits: enough for fingerprints, which nobody can choose.
#[derive(Debug, Default)]
struct FoldingHasher(u64);

impl Hasher for FoldingHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for &word in words {
            self.write_u64(u64::from_le_bytes(word));
        }
        for &byte in rest {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(29) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Hint, Hints, SizeLists};
    use proptest::prelude::*;

    fn hint(bytes: u32) -> Hint {
        Hint {
            bytes,
            marker: bytes as u8,
        }
    }

    #[test]
    fn lists_are_those_of_figure_3_6() {
        let history: SizeLists<&str> = SizeLists::new(4);
        assert!(!history.knows(&"FP1"));
        assert!(!history.enter(&"FP1").is_duplicate);
        assert!(history.knows(&"FP1"));
        history.follow(&"FP1", hint(2));
        assert_eq!(history.enter(&"FP1").hints.as_slice(), [hint(2)]);
        history.follow(&"FP1", hint(20));
        let met = history.enter(&"FP1");
        assert!(met.is_duplicate);
        assert_eq!(met.hints.as_slice(), [hint(20), hint(2)]);
        history.follow(&"FP1", hint(2));
        assert_eq!(history.enter(&"FP1").hints.as_slice(), [hint(2), hint(20)]);
        history.follow(&"FP1", hint(3));
        assert_eq!(history.enter(&"FP1").hints.as_slice(), [hint(3), hint(2)]);
        history.follow(&"never entered", hint(1));
        assert_eq!(history.count(), 1);
    }

    #[test]
    fn the_marker_is_the_latest() {
        let mut hints = Hints::<3>::default();
        hints.put_first(hint(5));
        let other = Hint {
            bytes: 5,
            marker: 99,
        };
        hints.put_first(other);
        assert_eq!(hints.as_slice(), [other]);
    }

    proptest! {
        #[test]
        fn a_list_is_a_list_in_the_order_of_use(
            sizes in proptest::collection::vec(0u32..6, 0..40),
        ) {
            let mut hints = Hints::<4>::default();
            let mut model: Vec<Hint> = Vec::new();
            for bytes in sizes {
                hints.put_first(hint(bytes));
                model.retain(|other| other.bytes != bytes);
                model.insert(0, hint(bytes));
                model.truncate(4);
                prop_assert_eq!(hints.as_slice(), &model[..]);
            }
        }
    }
}

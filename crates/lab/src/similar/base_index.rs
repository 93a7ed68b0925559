//! The index of super-features: which chunk is the base of another.
//!
//! Enters: the super-features of each chunk, in the order of the stream, and how many steps a chunk is
//! away from one that is stored whole. Leaves: a base. A chunk is similar to another that has one
//! super-feature of the same place (Odess, §2.2). Which of several is taken is a [`Choice`].
//!
//! A limited index holds so many super-features and forgets the oldest ones, or those that were not
//! found for the longest time; or it is the one that repositories use.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use clap::ValueEnum;
use engine::similarity::base_choice::BaseChoice;
use engine::similarity::index::{Candidate, SuperFeatureIndex};

/// Which of several similar chunks is the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Choice {
    /// By the first super-feature that is known, the first chunk that had it (FirstFit, as in the paper)
    First,
    /// By the first super-feature that is known, the last chunk that had it
    Latest,
    /// Of up to four chunks for each super-feature, the one that shares most of them; then the last
    Best,
}

impl Choice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::First, Self::Latest, Self::Best];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Latest => "latest",
            Self::Best => "best",
        }
    }
}

/// What a full index forgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgetting {
    /// The oldest.
    Oldest,
    /// What was neither put in nor found for the longest time.
    LeastUsed,
    /// As repositories do: the oldest, of a chunk's super-features the first last.
    AsStored,
}

impl Forgetting {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Oldest, Self::LeastUsed, Self::AsStored];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::LeastUsed => "least used",
            Self::AsStored => "as stored",
        }
    }
}

/// How much an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Most bytes.
    pub bytes: usize,
    /// What goes when it is full.
    pub forgetting: Forgetting,
}

/// Most chunks that [`Choice::Best`] looks at for one super-feature.
const CANDIDATES: usize = 4;

/// Chunks that have a super-feature, the oldest first.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    chunks: [u32; CANDIDATES],
    count: u8,
    /// The number of the last time that it was put in or found.
    used: u64,
}

/// The place of a super-feature in its chunk, and the super-feature.
type Key = u64;

/// Bytes of a super-feature in an index that is not [`Forgetting::AsStored`]: 32 bits of it, 32 that name
/// the chunk.
pub const ENTRY_BYTES: usize = 8;

/// The index.
pub struct BaseIndex {
    choice: Choice,
    limit: Option<Limit>,
    /// In the place of all that follows.
    as_stored: Option<SuperFeatureIndex>,
    candidates: Vec<Candidate>,
    known: HashMap<Key, Known, BuildHasherDefault<KeyHasher>>,
    /// Super-features in the order of their use; those that were used again later are passed over.
    uses: VecDeque<(Key, u64)>,
    clock: u64,
}

impl BaseIndex {
    /// An empty one, which holds everything unless it has a limit.
    pub fn new(choice: Choice, limit: Option<Limit>) -> Self {
        let as_stored = limit
            .filter(|limit| limit.forgetting == Forgetting::AsStored)
            .map(|limit| SuperFeatureIndex::new(limit.bytes));
        Self {
            choice,
            limit,
            as_stored,
            candidates: Vec::new(),
            known: HashMap::default(),
            uses: VecDeque::new(),
            clock: 0,
        }
    }

    /// The base of a chunk with these super-features, if there is any.
    pub fn find(&mut self, super_features: &[u32]) -> Option<u32> {
        if let Some(index) = &self.as_stored {
            index.candidates(super_features, &mut self.candidates);
            let rule = match self.choice {
                Choice::First => BaseChoice::FirstFit,
                Choice::Latest => BaseChoice::Latest,
                Choice::Best => BaseChoice::Best,
            };
            rule.sort(&mut self.candidates, |_| false);
            return self.candidates.first().map(|first| first.number - 1);
        }
        if self.choice == Choice::Best {
            return self.best(super_features);
        }
        let known = &self.known;
        let found = keys(super_features).find_map(|key| Some((key, known.get(&key)?.chunks[0])));
        let (key, chunk) = found?;
        self.touch(key);
        Some(chunk)
    }

    /// Makes a chunk known.
    pub fn insert(&mut self, chunk: u32, super_features: &[u32]) {
        if let Some(index) = &mut self.as_stored {
            index.insert(super_features, chunk + 1, 0);
            return;
        }
        for key in keys(super_features) {
            let known = self.known.entry(key).or_default();
            let is_new = known.count == 0;
            match self.choice {
                Choice::First if !is_new => continue,
                Choice::First | Choice::Latest => {
                    known.chunks[0] = chunk;
                    known.count = 1;
                }
                Choice::Best => {
                    if usize::from(known.count) == CANDIDATES {
                        known.chunks.rotate_left(1);
                        known.count -= 1;
                    }
                    known.chunks[usize::from(known.count)] = chunk;
                    known.count += 1;
                }
            }
            self.used(key);
            self.forget();
        }
    }

    /// Super-features that it holds.
    pub fn entries(&self) -> usize {
        let stored = self.as_stored.as_ref().map(SuperFeatureIndex::len);
        stored.unwrap_or(self.known.len())
    }

    fn best(&mut self, super_features: &[u32]) -> Option<u32> {
        let mut votes: Vec<(u32, u32)> = Vec::new();
        for key in keys(super_features) {
            let Some(known) = self.known.get(&key).copied() else {
                continue;
            };
            self.touch(key);
            for &chunk in &known.chunks[..usize::from(known.count)] {
                match votes.iter_mut().find(|(_, other)| *other == chunk) {
                    Some((votes, _)) => *votes += 1,
                    None => votes.push((1, chunk)),
                }
            }
        }
        votes.into_iter().max().map(|(_, chunk)| chunk)
    }

    /// A super-feature was found.
    fn touch(&mut self, key: Key) {
        let is_wanted = self
            .limit
            .is_some_and(|limit| limit.forgetting == Forgetting::LeastUsed);
        if is_wanted {
            self.used(key);
        }
    }

    fn used(&mut self, key: Key) {
        if self.limit.is_none() {
            return;
        }
        self.clock += 1;
        if let Some(known) = self.known.get_mut(&key) {
            known.used = self.clock;
        }
        self.uses.push_back((key, self.clock));
    }

    fn forget(&mut self) {
        let Some(limit) = self.limit else { return };
        while self.known.len() > limit.bytes / ENTRY_BYTES {
            let Some((key, used)) = self.uses.pop_front() else {
                return;
            };
            if self.known.get(&key).is_some_and(|known| known.used == used) {
                self.known.remove(&key);
            }
        }
    }
}

fn keys(super_features: &[u32]) -> impl Iterator<Item = Key> + '_ {
    let numbered = super_features.iter().enumerate();
    numbered.map(|(place, &value)| (place as u64) << 32 | u64::from(value))
}

/// Spreads keys that are hashes already: a multiplication.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        let product = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_differ_where_several_chunks_are_similar() {
        for (choice, base) in [(Choice::First, 0), (Choice::Latest, 2), (Choice::Best, 1)] {
            let mut index = BaseIndex::new(choice, None);
            index.insert(0, &[1, 5, 9]);
            index.insert(1, &[8, 2, 3]);
            index.insert(2, &[1, 4, 7]);
            assert_eq!(index.find(&[1, 2, 3]), Some(base), "{choice:?}");
            // The same number at another place is another super-feature.
            assert_eq!(index.find(&[2, 1, 1]), None);
        }
    }

    #[test]
    fn the_best_of_equals_is_the_last_and_old_candidates_go() {
        let mut index = BaseIndex::new(Choice::Best, None);
        for chunk in 0..6 {
            index.insert(chunk, &[1]);
        }
        assert_eq!(index.find(&[1]), Some(5));
        index.insert(9, &[7]);
        assert_eq!(index.entries(), 2);
    }

    #[test]
    fn a_full_index_forgets_what_is_old_or_unused() {
        for (forgetting, first) in [(Forgetting::Oldest, None), (Forgetting::LeastUsed, Some(0))] {
            let limit = Limit {
                bytes: 3 * ENTRY_BYTES,
                forgetting,
            };
            let mut index = BaseIndex::new(Choice::Latest, Some(limit));
            for chunk in 0..3 {
                index.insert(chunk, &[chunk]);
            }
            assert_eq!(index.find(&[0]), Some(0));
            index.insert(3, &[3]);
            assert_eq!(index.entries(), 3);
            assert_eq!(index.find(&[0]), first, "{forgetting:?}");
            assert_eq!(index.find(&[2]), Some(2));
        }
    }
}

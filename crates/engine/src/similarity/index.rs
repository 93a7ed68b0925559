//! Which chunks have a super-feature: bounded memory, newest first (Odess, §2.2 and §4.4).
//!
//! Enter: super-features of chunks that may be bases, each chunk under a number of the caller's choice
//! that is the higher the newer the chunk is. Leave: numbers of chunks that share some of given
//! super-features, and how many.
//!
//! A table of lines of 64 bytes, ten entries each: 19 bits of the hashed super-feature (which with the
//! number of the line are all 32 from 512 KiB on, so that only equal super-features meet), whether it is
//! the chunk's first, 4 bits of the chunk's depth, 24 of its number. The table starts small and doubles while its
//! limit allows; then a new entry takes the place of another in its line, or, where all of them are worth
//! more ([`SuperFeatureIndex::insert`]), none. 64 MiB hold 10.5 million entries.
//!
//! **What is worth more.** A newer chunk is a likelier base, and a chunk's first super-feature alone finds
//! most of what all of them find. So the others age [`OTHERS_AGE`] times as fast: of the newest chunks
//! all are there, of those far back the first: of 10 million chunks 64 MiB know 7.3 million. What that costs
//! is measured (docs/guide/odess.md). A super-feature that many chunks share keeps the newest
//! [`SAME_MAX`].

/// Greatest number of a chunk, plus one.
pub const NUMBER_END: u32 = 1 << 24;

/// Entries in a line.
const LINE_ENTRIES: usize = 10;

/// Chunks that are kept for one super-feature.
pub const SAME_MAX: usize = 4;

/// How much faster than a chunk's first super-feature the others age.
const OTHERS_AGE: u64 = 8;

/// Bits of the hash that an entry has.
const HASH_BITS: u32 = 19;
const HASH_MASK: u32 = (1 << HASH_BITS) - 1;

/// Lines of the smallest table that grows, as a power of two: with the bits of an entry, 32.
const LINE_BITS_MIN: u32 = 32 - HASH_BITS;

/// Lines of the largest table, as a power of two: 4 GiB.
const LINE_BITS_MAX: u32 = 26;

/// The table doubles, if it may, when so many entries a line are there on average: few lines are full
/// then.
const ENTRIES_A_LINE: usize = 4;

/// A chunk that shares super-features with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub number: u32,
    /// Deltas from it to a chunk that is stored whole.
    pub depth: u8,
    /// How many super-features the two share.
    pub shared: u8,
}

/// One entry, as 48 bits: hash 19, first 1, depth 4, number 24.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    fn new(hash: u32, is_first: bool, depth: u8, number: u32) -> Self {
        let hash = u64::from(hash & HASH_MASK);
        let first = u64::from(is_first);
        Self(hash << 29 | first << 28 | u64::from(depth & 15) << 24 | u64::from(number))
    }

    fn hash(self) -> u32 {
        (self.0 >> 29) as u32
    }

    fn is_first(self) -> bool {
        self.0 >> 28 & 1 == 1
    }

    fn depth(self) -> u8 {
        (self.0 >> 24 & 15) as u8
    }

    fn number(self) -> u32 {
        (self.0 & 0xff_ffff) as u32
    }

    /// How far back its chunk lies, as it counts.
    fn age(self, newest: u32) -> u64 {
        let behind = u64::from(newest.saturating_sub(self.number()));
        let faster = if self.is_first() { 1 } else { OTHERS_AGE };
        behind * faster
    }

    /// The same of a chunk of another number.
    fn renumbered(self, number: u32) -> Self {
        Self::new(self.hash(), self.is_first(), self.depth(), number)
    }
}

/// Ten entries in the cache line that holds them; number 0 is that of a free one.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line([u16; 32]);

impl Line {
    fn get(&self, at: usize) -> Option<Entry> {
        let parts = &self.0[3 * at..3 * at + 3];
        let entry = u64::from(parts[0]) << 32 | u64::from(parts[1]) << 16 | u64::from(parts[2]);
        (entry & 0xff_ffff != 0).then_some(Entry(entry))
    }

    fn set(&mut self, at: usize, entry: Option<Entry>) {
        let entry = entry.map_or(0, |entry| entry.0);
        let parts = [(entry >> 32) as u16, (entry >> 16) as u16, entry as u16];
        self.0[3 * at..3 * at + 3].copy_from_slice(&parts);
    }

    fn entries(&self) -> impl Iterator<Item = (usize, Entry)> {
        (0..LINE_ENTRIES).filter_map(|at| Some((at, self.get(at)?)))
    }
}

/// Finds chunks by their super-features.
#[derive(Debug)]
pub struct SuperFeatureIndex {
    lines: Vec<Line>,
    line_bits: u32,
    line_bits_max: u32,
    entries: usize,
    /// The highest number so far.
    newest: u32,
}

impl SuperFeatureIndex {
    /// An index that takes at most `memory_bytes`: of that the largest power of two, one line at
    /// least.
    #[must_use]
    pub fn new(memory_bytes: usize) -> Self {
        let lines = (memory_bytes / size_of::<Line>()).max(1);
        let line_bits_max = lines.ilog2().min(LINE_BITS_MAX);
        Self {
            lines: Vec::new(),
            line_bits: LINE_BITS_MIN.min(line_bits_max),
            line_bits_max,
            entries: 0,
            newest: 0,
        }
    }

    /// Memory that it takes just now.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }

    /// Entries that are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Is nothing in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The chunk of that number, from 1 to [`NUMBER_END`], may be a base for what shares one of these
    /// super-features. `depth`, at most 15, says how deep it lies itself. Says whether there was room for
    /// its first super-feature: there is, too, where newer chunks have that one and are kept instead.
    pub fn insert(&mut self, super_features: &[u32], number: u32, depth: u8) -> bool {
        assert!(number > 0 && number < NUMBER_END && depth < 16);
        if self.lines.is_empty() {
            self.lines = vec![Line::default(); 1 << self.line_bits];
        }
        self.newest = self.newest.max(number);
        let mut has_room = true;
        for (place, &super_feature) in super_features.iter().enumerate() {
            if self.entries >= self.lines.len() * ENTRIES_A_LINE {
                self.grow();
            }
            let hash = hashed(place, super_feature);
            let line = &mut self.lines[line_of(hash, self.line_bits)];
            let put = put(
                line,
                Entry::new(hash, place == 0, depth, number),
                self.newest,
            );
            self.entries += usize::from(put == Put::Added);
            has_room &= place > 0 || put != Put::Full;
        }
        has_room
    }

    fn grow(&mut self) {
        if self.line_bits >= self.line_bits_max {
            return;
        }
        let before = std::mem::take(&mut self.lines);
        self.line_bits += 1;
        self.lines = vec![Line::default(); 1 << self.line_bits];
        // Of the 32 bits of a hash a line's number has the first ones, an entry the last 19: the bit by
        // which a line falls into two is among these.
        let bit = 32 - self.line_bits;
        self.entries = 0;
        for (number, line) in before.iter().enumerate() {
            for (_, entry) in line.entries() {
                let half = (entry.hash() >> bit & 1) as usize;
                let put = put(&mut self.lines[2 * number + half], entry, self.newest);
                self.entries += usize::from(put == Put::Added);
            }
        }
    }

    /// The chunks that share some of these super-features, each once, in the order in which they are
    /// found: by the first super-feature that they share, among those the newest first.
    pub fn candidates(&self, super_features: &[u32], out: &mut Vec<Candidate>) {
        out.clear();
        if self.lines.is_empty() {
            return;
        }
        for (place, &super_feature) in super_features.iter().enumerate() {
            let hash = hashed(place, super_feature);
            let line = &self.lines[line_of(hash, self.line_bits)];
            let first = out.len();
            for (_, entry) in line.entries() {
                if entry.hash() != hash & HASH_MASK {
                    continue;
                }
                let number = entry.number();
                match out.iter_mut().find(|candidate| candidate.number == number) {
                    Some(candidate) => candidate.shared += 1,
                    None => out.push(Candidate {
                        number,
                        depth: entry.depth(),
                        shared: 1,
                    }),
                }
            }
            out[first..].sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.number));
        }
    }

    /// Subtracts `step` from all numbers and forgets the chunks that have none any more.
    pub fn renumber(&mut self, step: u32) {
        self.entries = 0;
        self.newest = self.newest.saturating_sub(step);
        for line in &mut self.lines {
            for at in 0..LINE_ENTRIES {
                let Some(entry) = line.get(at) else {
                    continue;
                };
                let number = entry
                    .number()
                    .checked_sub(step)
                    .filter(|&number| number > 0);
                let moved = number.map(|number| entry.renumbered(number));
                line.set(at, moved);
                self.entries += usize::from(moved.is_some());
            }
        }
    }
}

/// All bits of a super-feature, spread out; different for each place among a chunk's super-features, so
/// that only those of the same place meet.
fn hashed(place: usize, super_feature: u32) -> u32 {
    let salted = super_feature ^ (place as u32).wrapping_mul(0x85eb_ca6b);
    let mixed = (salted ^ salted >> 16).wrapping_mul(0x7feb_352d);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x846c_a68b);
    mixed ^ mixed >> 16
}

/// The line that a hash belongs to, of so many as a power of two.
fn line_of(hash: u32, line_bits: u32) -> usize {
    (u64::from(hash) >> (32 - line_bits)) as usize
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Put {
    /// The line has one more.
    Added,
    /// It took the place of another.
    Replaced,
    /// [`SAME_MAX`] newer chunks have the super-feature.
    Same,
    /// All others in the line are worth more.
    Full,
}

/// Puts an entry into a line.
fn put(line: &mut Line, entry: Entry, newest: u32) -> Put {
    let mut same = 0;
    let mut free = None;
    let mut oldest: Option<(u64, usize)> = None;
    let mut oldest_same: Option<(u64, usize)> = None;
    for at in 0..LINE_ENTRIES {
        let Some(there) = line.get(at) else {
            free = free.or(Some(at));
            continue;
        };
        let age = (there.age(newest), at);
        oldest = oldest.max(Some(age));
        if there.hash() == entry.hash() {
            same += 1;
            oldest_same = oldest_same.max(Some(age));
        }
    }
    let (leaving, refused) = match (free, oldest_same, oldest) {
        (_, Some(leaving), _) if same >= SAME_MAX => (Some(leaving), Put::Same),
        (Some(at), _, _) => {
            line.set(at, Some(entry));
            return Put::Added;
        }
        (None, _, leaving) => (leaving, Put::Full),
    };
    match leaving {
        Some((age, at)) if age > entry.age(newest) => {
            line.set(at, Some(entry));
            Put::Replaced
        }
        _ => refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::HashMap;

    fn numbers(index: &SuperFeatureIndex, super_features: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        index.candidates(super_features, &mut found);
        found.iter().map(|candidate| candidate.number).collect()
    }

    /// Any 32 bits that belong together.
    fn features(seed: u32) -> [u32; 3] {
        [1, 2, 3].map(|place| hashed(place, seed.wrapping_mul(0x9e37_79b9)))
    }

    #[test]
    fn chunks_are_found_by_what_they_share() {
        let mut index = SuperFeatureIndex::new(1 << 20);
        assert!(numbers(&index, &[1, 2, 3]).is_empty());
        index.insert(&[1, 2, 3], 7, 0);
        index.insert(&[9, 2, 3], 8, 5);
        index.insert(&[2, 3, 1], 9, 0);
        let mut found = Vec::new();
        index.candidates(&[4, 2, 3], &mut found);
        let expected = [(8, 5, 2), (7, 0, 2)].map(|(number, depth, shared)| Candidate {
            number,
            depth,
            shared,
        });
        assert_eq!(found, expected);
        assert_eq!(numbers(&index, &[1, 5, 5]), [7]);
        assert_eq!(
            numbers(&index, &[3, 9, 9]),
            [] as [u32; 0],
            "of another place"
        );
    }

    #[test]
    fn the_newest_of_many_with_the_same_are_kept() {
        let mut index = SuperFeatureIndex::new(1 << 20);
        for number in [5, 3, 9, 7, 2, 8] {
            assert!(index.insert(&[1], number, 0), "there is room");
        }
        assert_eq!(numbers(&index, &[1]), [9, 8, 7, 5]);
        assert!(index.insert(&[1], 1, 0), "newer ones are there");
        assert_eq!(numbers(&index, &[1]), [9, 8, 7, 5]);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_leave() {
        for (memory_bytes, expected_bytes) in [(1 << 20, 1 << 20), (100_000, 1 << 16), (64, 64)] {
            let mut index = SuperFeatureIndex::new(memory_bytes);
            let entries_most = expected_bytes / 64 * LINE_ENTRIES;
            let count = 5 * entries_most as u32 / 4;
            for number in 1..count {
                index.insert(&features(number), number, 0);
            }
            assert_eq!(index.memory_bytes(), expected_bytes);
            assert!(index.len() <= entries_most && index.len() * 100 >= entries_most * 95);
            if expected_bytes == 64 {
                continue;
            }
            let found = |number| numbers(&index, &features(number)).contains(&number);
            let share = |from: u32, to: u32| {
                let found = (from..to).filter(|&number| found(number)).count();
                found as f64 / f64::from(to - from)
            };
            // Five entries for each four chunks: all are known of the newest, most of the others.
            assert!(share(count - count / 20, count) > 0.99);
            assert!(share(count / 2, count / 5 * 3) > 0.7);
            assert!(share(1, count / 20) < 0.2);
        }
    }

    #[test]
    fn of_chunks_far_back_the_first_super_feature_is_known() {
        let mut index = SuperFeatureIndex::new(1 << 20);
        let count = 120_000;
        for number in 1..count {
            index.insert(&features(number), number, 0);
        }
        let known_by = |place: usize, from: u32, to: u32| {
            let known = (from..to).filter(|&number| {
                let mut asked = [0; 3].map(|_| hashed(9, number));
                asked[place] = features(number)[place];
                numbers(&index, &asked).contains(&number)
            });
            known.count() as f64 / f64::from(to - from)
        };
        let newest = count - 2_000;
        assert!((0..3).all(|place| known_by(place, newest, count) > 0.99));
        let (old, less_old) = (20_000, 40_000);
        let shares = [0, 1, 2].map(|place| known_by(place, old, less_old));
        assert!(shares[0] > 0.75, "{shares:?}");
        assert!(shares[1] < 0.05 && shares[2] < 0.05, "{shares:?}");
    }

    #[test]
    fn what_is_older_than_all_that_is_there_finds_no_place() {
        let mut index = SuperFeatureIndex::new(1 << 16);
        for number in 10_000..60_000 {
            index.insert(&features(number), number, 0);
        }
        let before = index.len();
        assert!(!index.insert(&features(1), 1, 0));
        assert_eq!(index.len(), before);
        assert!(index.insert(&features(2), 60_000, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn with_room_it_is_a_map(seeds in prop::collection::vec(0u32..3000, 0..20_000)) {
            let mut index = SuperFeatureIndex::new(64 << 20);
            let mut model: HashMap<u32, Vec<u32>> = HashMap::new();
            for (number, &seed) in (1..).zip(&seeds) {
                index.insert(&features(seed), number, (number % 16) as u8);
                model.entry(seed).or_default().push(number);
            }
            // A few leave because their line is full.
            let (mut found_all, mut expected_all) = (0, 0);
            for (&seed, all) in &model {
                let newest: Vec<u32> = all.iter().rev().take(SAME_MAX).copied().collect();
                let mut found = Vec::new();
                index.candidates(&features(seed), &mut found);
                found.retain(|found| newest.contains(&found.number));
                found_all += found.len();
                expected_all += newest.len();
                prop_assert!(found.is_sorted_by_key(|found| Reverse(found.number)));
                prop_assert!(found.iter().all(|found| u32::from(found.depth) == found.number % 16));
            }
            prop_assert!(found_all * 100 >= expected_all * 98, "{found_all} of {expected_all}");
            let before: Vec<_> = model.keys().map(|&seed| numbers(&index, &features(seed))).collect();
            index.renumber(1000);
            for (&seed, before) in model.keys().zip(before) {
                let moved = before.iter().filter_map(|number| number.checked_sub(1000));
                let left: Vec<u32> = moved.filter(|&number| number > 0).collect();
                let mut now = numbers(&index, &features(seed));
                now.sort_unstable_by_key(|&number| Reverse(number));
                let mut left = left;
                left.sort_unstable_by_key(|&number| Reverse(number));
                prop_assert_eq!(now, left);
            }
        }
    }
}

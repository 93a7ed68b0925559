//! Bit arrays of places where a chunk may end: what the first stage of two-stage chunking leaves and
//! the second walks over (SS-CDC; Ni §2.3.1).
//!
//! The bit of position `first + i` is bit `i % 64` of word `i / 64`. There are two arrays, for two
//! masks are judged in one pass: *loose* marks, and *strict* marks, which are some of the loose ones.
//!
//! Method of the walk: most words are zero, so that eight are joined before one look (the compiler
//! makes vectors of it).

use std::ops::Range;

/// Positions of a word.
const WORD: usize = u64::BITS as usize;

/// Words that are looked at together.
const GROUP: usize = 8;

/// Under which masks a hash must equal which value. Every one of `loose` is one of `strict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masks<Hash> {
    /// Marks in the strict array.
    pub strict: Hash,
    /// Marks in the loose array.
    pub loose: Hash,
    /// What the hash must equal under a mask.
    pub value: Hash,
}

/// Two arrays to mark in.
#[derive(Debug)]
pub struct Marks<'a> {
    strict: &'a mut [u64],
    loose: &'a mut [u64],
}

/// How many words hold the marks of so many positions.
#[must_use]
pub fn words_for(positions: usize) -> usize {
    positions.div_ceil(WORD)
}

impl<'a> Marks<'a> {
    /// No marks of `count` positions, in the first words of these arrays.
    ///
    /// # Panics
    /// When an array is too short.
    #[must_use]
    pub fn cleared(strict: &'a mut [u64], loose: &'a mut [u64], count: usize) -> Self {
        let words = words_for(count);
        let marks = Self {
            strict: &mut strict[..words],
            loose: &mut loose[..words],
        };
        marks.strict.fill(0);
        marks.loose.fill(0);
        marks
    }

    /// Marks 64 positions at once, `word` being their number among such words: for kernels that make
    /// words.
    #[inline(always)]
    pub fn set_word(&mut self, word: usize, strict: u64, loose: u64) {
        self.strict[word] = strict;
        self.loose[word] = loose;
    }

    /// Marks position `index` as a loose one, and as a strict one when it is.
    #[inline(always)]
    pub fn set(&mut self, index: usize, is_strict: bool) {
        let (word, bit) = (index / WORD, index % WORD);
        self.loose[word] |= 1 << bit;
        self.strict[word] |= u64::from(is_strict) << bit;
    }
}

/// The first mark in a range of positions.
#[must_use]
pub fn first(words: &[u64], positions: Range<usize>) -> Option<usize> {
    if positions.is_empty() {
        return None;
    }
    let mut index = positions.start / WORD;
    let mut word = words[index] & (!0 << (positions.start % WORD));
    if word == 0 {
        index += 1;
        let rest = &words[index..positions.end.div_ceil(WORD)];
        let groups = rest.chunks_exact(GROUP);
        let is_zero = |group: &[u64]| group.iter().fold(0, |joined, &word| joined | word) == 0;
        let zeros = groups.take_while(|group| is_zero(group)).count() * GROUP;
        let ahead = rest[zeros..].iter().position(|&word| word != 0)?;
        index += zeros + ahead;
        word = words[index];
    }
    let position = index * WORD + word.trailing_zeros() as usize;
    (position < positions.end).then_some(position)
}

/// The last mark in a range of positions.
#[must_use]
pub fn last(words: &[u64], positions: Range<usize>) -> Option<usize> {
    let mut end = positions.end;
    while end > positions.start {
        let index = (end - 1) / WORD;
        let word = words[index] & (!0 >> (WORD - 1 - (end - 1) % WORD));
        if word != 0 {
            let position = index * WORD + word.ilog2() as usize;
            return (position >= positions.start).then_some(position);
        }
        end = index * WORD;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Marks, first, last, words_for};
    use proptest::prelude::*;

    #[test]
    fn words_and_bits() {
        assert_eq!([0, 1, 64, 65].map(words_for), [0, 1, 1, 2]);
        let (mut strict, mut loose) = ([7; 3], [7; 3]);
        let mut marks = Marks::cleared(&mut strict, &mut loose, 65);
        marks.set(0, false);
        marks.set(64, true);
        assert_eq!((strict, loose), ([0, 1, 7], [1, 1, 7]));
        let mut marks = Marks::cleared(&mut strict, &mut loose, 128);
        marks.set_word(1, 4, 6);
        assert_eq!((strict, loose), ([0, 4, 7], [0, 6, 7]));
    }

    proptest! {
        #[test]
        fn first_and_last_of_any_range(
            places in proptest::collection::vec(0usize..3000, 0..6),
            start in 0usize..3000,
            length in 0usize..3000,
        ) {
            let mut words = vec![0u64; words_for(3000)];
            places.iter().for_each(|place| words[place / 64] |= 1 << (place % 64));
            let end = (start + length).min(3000);
            let inside = || places.iter().copied().filter(|place| (start..end).contains(place));
            prop_assert_eq!(first(&words, start..end), inside().min());
            prop_assert_eq!(last(&words, start..end), inside().max());
        }
    }
}

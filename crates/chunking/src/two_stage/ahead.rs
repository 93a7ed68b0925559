//! The lazy form: marks of a block of positions, made when a search comes there and kept.
//!
//! Marks stay true when a cut is taken and the search goes on behind it: positions are counted from
//! where the next chunk begins, and so a block may have begun before. Memory: two bits for each position
//! of a block.

use super::{Found, Windowed};
use kernels::isa::Isa;
use kernels::marks::{self, Marks};
use std::ops::Range;

/// Positions of a block that is remembered: the lanes of the kernels at their longest.
pub(super) const BLOCK: usize = 16 << 10;
const WORDS: usize = BLOCK / u64::BITS as usize;

/// Positions of a block where nothing is remembered: half of it is marked in vain.
pub(super) const BLOCK_ONCE: usize = 4 << 10;
const WORDS_ONCE: usize = BLOCK_ONCE / u64::BITS as usize;

/// Marks of some positions of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Ahead<Words = Vec<u64>> {
    strict: Words,
    loose: Words,
    /// How many bits belong to what was cut.
    passed: usize,
    /// Positions in front of the first mark, which are never asked for again; then there are no
    /// `passed` ones.
    from: usize,
    /// How many positions are marked or need no mark.
    to: usize,
}

impl Ahead {
    /// No marks yet, memory for a block.
    pub(crate) fn new() -> Self {
        Self {
            strict: vec![0; WORDS],
            loose: vec![0; WORDS],
            passed: 0,
            from: 0,
            to: 0,
        }
    }
}

impl Ahead<[u64; WORDS_ONCE]> {
    /// No marks yet, for one search.
    pub(crate) fn once() -> Self {
        Self {
            strict: [0; WORDS_ONCE],
            loose: [0; WORDS_ONCE],
            passed: 0,
            from: 0,
            to: 0,
        }
    }
}

impl<Words: AsMut<[u64]>> Ahead<Words> {
    /// Forgets the marks: another stream begins.
    pub(crate) fn clear(&mut self) {
        (self.passed, self.from, self.to) = (0, 0, 0);
    }

    /// The length of the first chunk of `data`, the beginning of what is left of a stream. The next
    /// call, if there is one, is for what is left behind this chunk.
    pub(crate) fn cut(&mut self, method: &dyn Windowed, isa: Isa, data: &[u8]) -> usize {
        let mut search = Search {
            ahead: self,
            method,
            isa,
            data,
        };
        let length = super::cut(method, data, 0, &mut search);
        self.pass(length);
        length
    }

    /// Counts from the end of a chunk of this length on.
    fn pass(&mut self, length: usize) {
        if length >= self.to {
            self.clear();
            return;
        }
        self.to -= length;
        self.passed += length.saturating_sub(self.from);
        self.from = self.from.saturating_sub(length);
    }
}

/// A search in data that may have to be marked first.
struct Search<'a, Words> {
    ahead: &'a mut Ahead<Words>,
    method: &'a dyn Windowed,
    isa: Isa,
    data: &'a [u8],
}

impl<Words: AsMut<[u64]>> Search<'_, Words> {
    /// Marks as many of these positions, and of those behind them, as there is room for.
    fn mark_from(&mut self, first: usize) {
        let ahead = &mut *self.ahead;
        let (strict, loose) = (ahead.strict.as_mut(), ahead.loose.as_mut());
        let room = strict.len() * u64::BITS as usize;
        let count = room.min(self.data.len() - first);
        let mut marks = Marks::cleared(strict, loose, count);
        self.method
            .mark(self.isa, self.data, first, count, &mut marks);
        (ahead.passed, ahead.from, ahead.to) = (0, first, first + count);
    }
}

impl<Words: AsMut<[u64]>> Found for Search<'_, Words> {
    fn first(&mut self, is_strict: bool, mut positions: Range<usize>) -> Option<usize> {
        while !positions.is_empty() {
            if !(self.ahead.from..self.ahead.to).contains(&positions.start) {
                self.mark_from(positions.start);
            }
            let ahead = &mut *self.ahead;
            let words = if is_strict {
                ahead.strict.as_mut()
            } else {
                ahead.loose.as_mut()
            };
            let end = positions.end.min(ahead.to);
            let bit = |position: usize| position - ahead.from + ahead.passed;
            if let Some(bit) = marks::first(words, bit(positions.start)..bit(end)) {
                return Some(bit + ahead.from - ahead.passed);
            }
            positions.start = end;
        }
        None
    }

    /// Block by block from the end on, for the last is wanted.
    fn last_loose(&mut self, positions: Range<usize>) -> Option<usize> {
        let room = self.ahead.strict.as_mut().len() * u64::BITS as usize;
        let mut end = positions.end;
        while end > positions.start {
            let start = end.saturating_sub(room).max(positions.start);
            self.mark_from(start);
            let ahead = &mut *self.ahead;
            if let Some(position) = marks::last(ahead.loose.as_mut(), 0..end - start) {
                return Some(start + position);
            }
            end = start;
        }
        None
    }
}

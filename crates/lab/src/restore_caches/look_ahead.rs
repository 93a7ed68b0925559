//! Chunks that the stream will want again, and nothing else.
//!
//! Enters: the references of a stream, memory, and how far ahead the recipe is known. Leaves: the
//! reads. A container that is read has its room beside the chunks. Of it those chunks are kept that
//! the stream wants later within the window; each stays until its last use there. When they do not
//! fit, the one that is wanted last leaves, and its container is read again then.
//!
//! What a whole-container cache wastes on chunks that nobody wants, and an assembly area on places
//! that are not filled yet, holds chunks here.

use std::collections::BTreeSet;
use std::hash::Hash;

use super::positions::{NEVER, Positions};
use super::{Memory, Read, Reference};

/// How much of the stream is looked ahead: its recipe takes a hundredth of the memory of 30 containers
/// at 4 KB a chunk, 16 bytes each.
pub const WINDOW_BYTES: u64 = 256 << 20;

/// Chunks in memory, by when they are wanted.
#[derive(Debug)]
pub struct WantedChunks {
    limit_bytes: u64,
    used_bytes: u64,
    /// For each chunk that is held, the position where it is wanted next.
    next_of: Vec<usize>,
    by_next: BTreeSet<(usize, u32)>,
}

impl WantedChunks {
    /// None of so many chunks.
    pub fn new(limit_bytes: u64, chunks: usize) -> Self {
        Self {
            limit_bytes,
            used_bytes: 0,
            next_of: vec![NEVER; chunks],
            by_next: BTreeSet::new(),
        }
    }

    /// Whether a chunk is held.
    pub fn holds(&self, chunk: u32) -> bool {
        self.next_of[chunk as usize] != NEVER
    }

    /// Keeps a chunk that is wanted next at `next`; what is wanted later than all that fits leaves.
    pub fn keep(&mut self, chunk: u32, next: usize, positions: &Positions) {
        if !self.holds(chunk) {
            self.used_bytes += u64::from(positions.chunk_bytes[chunk as usize]);
        } else {
            self.by_next.remove(&(self.next_of[chunk as usize], chunk));
        }
        self.next_of[chunk as usize] = next;
        self.by_next.insert((next, chunk));
        while self.used_bytes > self.limit_bytes {
            let Some((_, last)) = self.by_next.pop_last() else {
                return;
            };
            self.forget(last, positions);
        }
    }

    /// Lets go of a chunk that is held.
    pub fn release(&mut self, chunk: u32, positions: &Positions) {
        if self.holds(chunk) {
            self.by_next.remove(&(self.next_of[chunk as usize], chunk));
            self.forget(chunk, positions);
        }
    }

    fn forget(&mut self, chunk: u32, positions: &Positions) {
        self.next_of[chunk as usize] = NEVER;
        self.used_bytes -= u64::from(positions.chunk_bytes[chunk as usize]);
    }
}

/// The reads of a stream.
pub fn reads<C: Copy + Eq + Hash>(
    references: &[Reference<C>],
    memory: Memory,
    window_bytes: u64,
) -> Vec<Read<C>> {
    let positions = Positions::of(references);
    let mut wanted = WantedChunks::new(memory.beside_one(), positions.chunk_bytes.len());
    let mut reads = Vec::new();
    for (at, reference) in references.iter().enumerate() {
        let chunk = positions.chunk[at];
        let window_end = positions.start[at] + window_bytes;
        let is_seen = |next: usize| next != NEVER && positions.start[next + 1] <= window_end;
        let next = positions.next_of_chunk[at];
        if wanted.holds(chunk) {
            match is_seen(next) {
                true => wanted.keep(chunk, next, &positions),
                false => wanted.release(chunk, &positions),
            }
            continue;
        }
        let container = reference.container;
        reads.push(Read { at, container });
        for &position in &positions.within(at, window_bytes)[1..] {
            // The first of several positions of a chunk is when it is wanted next.
            if !wanted.holds(positions.chunk[position]) {
                wanted.keep(positions.chunk[position], position, &positions);
            }
        }
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::super::tests::{memory, references};
    use super::*;
    use proptest::prelude::*;

    type Key = (u16, u32);

    /// The same with lists that are searched from end to end.
    fn model(references: &[Reference<u16>], memory: Memory, window: u64) -> Vec<Read<u16>> {
        let limit = (memory.containers as u64 - 1) * memory.container_bytes;
        let key = |position: usize| (references[position].container, references[position].chunk);
        let mut held: Vec<(Key, usize)> = Vec::new();
        let mut reads = Vec::new();
        for at in 0..references.len() {
            let seen: Vec<usize> = (at..references.len())
                .filter(|end| {
                    let bytes = references[at..=*end].iter().map(|one| u64::from(one.bytes));
                    bytes.sum::<u64>() <= window
                })
                .filter(|position| *position > at)
                .collect();
            let mut news: Vec<usize> = Vec::new();
            if let Some(place) = held.iter().position(|(other, _)| *other == key(at)) {
                held.remove(place);
                news.extend(seen.iter().find(|position| key(**position) == key(at)));
            } else {
                let container = references[at].container;
                reads.push(Read { at, container });
                news.extend(
                    seen.iter()
                        .filter(|position| key(**position).0 == container),
                );
            }
            for position in news {
                if held.iter().any(|(other, _)| *other == key(position)) {
                    continue;
                }
                held.push((key(position), position));
                let bytes = |held: &[(Key, usize)]| -> u64 {
                    held.iter()
                        .map(|(_, next)| u64::from(references[*next].bytes))
                        .sum()
                };
                while bytes(&held) > limit {
                    held.sort_by_key(|(_, next)| *next);
                    held.pop();
                }
            }
        }
        reads
    }

    proptest! {
        #[test]
        fn behaves_as_lists_that_are_searched(
            references in references(),
            memory in memory(),
            window in 1..400u64,
        ) {
            let expected = model(&references, memory, window);
            prop_assert_eq!(reads(&references, memory, window), expected);
        }
    }
}

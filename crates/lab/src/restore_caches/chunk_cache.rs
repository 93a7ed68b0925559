//! A chunk cache behind an assembly area, led by a window that looks ahead.
//!
//! Enters: the references of a stream, and memory. Leaves: the reads. Of the memory beside the
//! container that is being read, half is an assembly area (as in `assembly`), half a cache of chunks.
//! The window sees [`WINDOW_AREAS`] times as many bytes ahead as the area. When a container is read, what the area wants
//! of it is filled, and chunks of it that the window wants behind the area go to the cache; when they
//! do not fit, the one that is wanted last leaves. A reference that enters the area is filled from the
//! cache if its chunk is there.
//!
//! Source: Cao et al., *ALACC: Accelerating Restore Performance of Data Deduplication Systems Using
//! Adaptive Look-Ahead Window Assisted Chunk Caching*, FAST 2018. There the sizes of area and window
//! adapt themselves and chunks that no window wants may stay as well; here both are fixed and such
//! chunks do not.

use std::hash::Hash;

use super::look_ahead::WantedChunks;
use super::positions::{NEVER, Positions};
use super::{Memory, Read, Reference};

/// The window over the area.
pub const WINDOW_AREAS: u64 = 8;

/// The reads of a stream.
pub fn reads<C: Copy + Eq + Hash>(references: &[Reference<C>], memory: Memory) -> Vec<Read<C>> {
    let positions = Positions::of(references);
    let area_bytes = memory.beside_one() / 2;
    let mut wanted = WantedChunks::new(
        memory.beside_one() - area_bytes,
        positions.chunk_bytes.len(),
    );
    let mut is_filled = vec![false; references.len()];
    let mut reads = Vec::new();
    // The first reference that was not in the area yet.
    let mut behind = 0;
    for (at, reference) in references.iter().enumerate() {
        let area_end = positions.start[at] + area_bytes;
        let window_end = positions.start[at] + WINDOW_AREAS * area_bytes;
        while behind < references.len() && (positions.start[behind + 1] <= area_end || behind <= at)
        {
            let chunk = positions.chunk[behind];
            if wanted.holds(chunk) {
                is_filled[behind] = true;
                let next = positions.next_of_chunk[behind];
                match next != NEVER && positions.start[next + 1] <= window_end {
                    true => wanted.keep(chunk, next, &positions),
                    false => wanted.release(chunk, &positions),
                }
            }
            behind += 1;
        }
        if is_filled[at] {
            continue;
        }
        let container = reference.container;
        reads.push(Read { at, container });
        for &position in positions.within(at, WINDOW_AREAS * area_bytes) {
            if position < behind {
                is_filled[position] = true;
            } else if !wanted.holds(positions.chunk[position]) {
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
    use std::collections::HashSet;

    /// The same with lists that are searched from end to end.
    fn model(references: &[Reference<u16>], memory: Memory) -> Vec<Read<u16>> {
        let beside = (memory.containers as u64 - 1) * memory.container_bytes;
        let area = beside / 2;
        let key = |position: usize| (references[position].container, references[position].chunk);
        let ends_within = |at: usize, bytes: u64| -> usize {
            let mut sum = 0;
            let inside = references[at..].iter().take_while(|reference| {
                sum += u64::from(reference.bytes);
                sum <= bytes
            });
            (at + inside.count()).max(at + 1)
        };
        let mut cached: Vec<((u16, u32), usize)> = Vec::new();
        let mut filled = HashSet::new();
        let mut entered = 0;
        let mut reads = Vec::new();
        for at in 0..references.len() {
            let area_end = ends_within(at, area).max(entered);
            let window_end = ends_within(at, WINDOW_AREAS * area);
            for position in entered..area_end {
                if let Some(place) = cached.iter().position(|(other, _)| *other == key(position)) {
                    filled.insert(position);
                    cached.remove(place);
                    let mut later = position + 1..window_end;
                    if let Some(next) = later.find(|later| key(*later) == key(position)) {
                        cached.push((key(position), next));
                    }
                }
            }
            entered = area_end;
            if filled.contains(&at) {
                continue;
            }
            let container = references[at].container;
            reads.push(Read { at, container });
            for position in at..window_end.max(area_end) {
                if key(position).0 != container || (position >= window_end && position > at) {
                    continue;
                }
                if position < entered {
                    filled.insert(position);
                } else if !cached.iter().any(|(other, _)| *other == key(position)) {
                    cached.push((key(position), position));
                    let bytes = |cached: &[((u16, u32), usize)]| -> u64 {
                        let lengths = cached
                            .iter()
                            .map(|(_, next)| u64::from(references[*next].bytes));
                        lengths.sum()
                    };
                    while bytes(&cached) > beside - area {
                        cached.sort_by_key(|(_, next)| *next);
                        cached.pop();
                    }
                }
            }
        }
        reads
    }

    proptest! {
        #[test]
        fn behaves_as_lists_that_are_searched(references in references(), memory in memory()) {
            prop_assert_eq!(reads(&references, memory), model(&references, memory));
        }
    }
}

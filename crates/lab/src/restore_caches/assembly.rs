//! Forward assembly: the next bytes of the stream are put together in an area of memory.
//!
//! Enters: the references of a stream, and memory. Leaves: the reads. One container has its room beside
//! the area, which takes the rest. When the reference at the front of the area is not filled, its
//! container is read, and everything of it in the area is filled; then the area moves on by one
//! reference (a ring, as Lillibridge et al. have it). An area that is too small for the chunk at its
//! front holds just that.
//!
//! Source: Lillibridge, Eshghi, Bhagwat, *Improving Restore Speed for Backup Systems that Use Inline
//! Chunk-Based Deduplication*, FAST 2013.

use std::hash::Hash;

use super::positions::Positions;
use super::{Memory, Read, Reference};

/// The reads of a stream.
pub fn reads<C: Copy + Eq + Hash>(references: &[Reference<C>], memory: Memory) -> Vec<Read<C>> {
    let positions = Positions::of(references);
    let area_bytes = memory.beside_one();
    let mut is_filled = vec![false; references.len()];
    let mut reads = Vec::new();
    for (at, reference) in references.iter().enumerate() {
        if is_filled[at] {
            continue;
        }
        let container = reference.container;
        reads.push(Read { at, container });
        for &position in positions.within(at, area_bytes) {
            is_filled[position] = true;
        }
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::super::tests::{memory, references};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_an_area_that_is_looked_through(
            references in references(),
            memory in memory(),
        ) {
            let area_bytes = (memory.containers as u64 - 1) * memory.container_bytes;
            let mut filled = vec![false; references.len()];
            let mut expected = Vec::new();
            for at in 0..references.len() {
                if filled[at] {
                    continue;
                }
                let container = references[at].container;
                expected.push(Read { at, container });
                let mut used = 0;
                for position in at..references.len() {
                    used += u64::from(references[position].bytes);
                    let is_inside = used <= area_bytes || position == at;
                    if is_inside && references[position].container == container {
                        filled[position] = true;
                    }
                }
            }
            prop_assert_eq!(reads(&references, memory), expected);
        }
    }
}

//! Whole containers; the one that is used again last, or never, leaves.
//!
//! Enters: the references of a stream, and how many containers are kept. Leaves: the reads, the fewest
//! that a cache of whole containers can have. Source: Belady; on recipes: Fu et al., *Accelerating
//! Restore and Garbage Collection*, ATC 2014.

use std::collections::BTreeSet;
use std::hash::Hash;

use super::positions::Positions;
use super::{Memory, Read, Reference};

/// The reads of a stream.
pub fn reads<C: Copy + Eq + Hash>(references: &[Reference<C>], memory: Memory) -> Vec<Read<C>> {
    let positions = Positions::of(references);
    // By next use. A container that is held stands there under its next position, which is `at` when
    // it is its turn; one that is never used again stands last.
    let mut held: BTreeSet<(usize, u32)> = BTreeSet::new();
    let mut reads = Vec::new();
    for (at, reference) in references.iter().enumerate() {
        let number = positions.container[at];
        if !held.remove(&(at, number)) {
            let container = reference.container;
            reads.push(Read { at, container });
            if held.len() == memory.containers.max(1) {
                held.pop_last();
            }
        }
        held.insert((positions.next_of_container[at], number));
    }
    reads
}

#[cfg(test)]
mod tests {
    use super::super::tests::references;
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The fewest reads: every choice of what leaves is tried.
    fn fewest(containers: &[u16], held: &BTreeSet<u16>, room: usize, known: &mut Known) -> usize {
        let Some((first, rest)) = containers.split_first() else {
            return 0;
        };
        let key = (containers.len(), held.clone());
        if let Some(count) = known.get(&key) {
            return *count;
        }
        let count = if held.contains(first) {
            fewest(rest, held, room, known)
        } else {
            let mut with = held.clone();
            with.insert(*first);
            let choices: Vec<u16> = match with.len() > room {
                true => held.iter().copied().collect(),
                false => Vec::new(),
            };
            let mut best = usize::MAX;
            if choices.is_empty() {
                best = fewest(rest, &with, room, known);
            }
            for leaving in choices {
                let mut left = with.clone();
                left.remove(&leaving);
                best = best.min(fewest(rest, &left, room, known));
            }
            1 + best
        };
        known.insert(key, count);
        count
    }

    type Known = BTreeMap<(usize, BTreeSet<u16>), usize>;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn no_choice_reads_less(mut references in references(), containers in 1..4usize) {
            references.truncate(40);
            for reference in &mut references {
                reference.container %= 6;
            }
            let memory = Memory { containers, container_bytes: 1 };
            let ids: Vec<u16> = references.iter().map(|reference| reference.container).collect();
            let expected = fewest(&ids, &BTreeSet::new(), containers, &mut Known::new());
            prop_assert_eq!(reads(&references, memory).len(), expected);
        }
    }
}

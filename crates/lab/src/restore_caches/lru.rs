//! Whole containers; the one that was not used for longest leaves.
//!
//! Enters: the references of a stream, and how many containers are kept. Leaves: the reads.
//! Source: MACS §IV-C, 30 containers.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::{Memory, Read, Reference};

/// Containers in the order of their last use.
#[derive(Debug)]
pub struct LruContainers<C, V> {
    containers_max: usize,
    clock: u64,
    held: HashMap<C, (u64, V)>,
    by_use: BTreeMap<u64, C>,
}

impl<C: Copy + Eq + Hash, V> LruContainers<C, V> {
    /// Room for so many, at least one.
    pub fn new(containers_max: usize) -> Self {
        Self {
            containers_max: containers_max.max(1),
            clock: 0,
            held: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// A container that is held, which now is the one used last.
    pub fn get(&mut self, container: C) -> Option<&V> {
        let (used, _) = self.held.get(&container)?;
        self.by_use.remove(used);
        self.clock += 1;
        self.by_use.insert(self.clock, container);
        let (used, value) = self.held.get_mut(&container)?;
        *used = self.clock;
        Some(value)
    }

    /// Takes in a container that is not held.
    pub fn insert(&mut self, container: C, value: V) {
        if self.held.len() == self.containers_max
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.held.remove(&oldest);
        }
        self.clock += 1;
        self.by_use.insert(self.clock, container);
        self.held.insert(container, (self.clock, value));
    }
}

/// The reads of a stream.
pub fn reads<C: Copy + Eq + Hash>(references: &[Reference<C>], memory: Memory) -> Vec<Read<C>> {
    let mut held = LruContainers::new(memory.containers);
    let mut reads = Vec::new();
    for (at, reference) in references.iter().enumerate() {
        let container = reference.container;
        if held.get(container).is_none() {
            held.insert(container, ());
            reads.push(Read { at, container });
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
        fn behaves_as_a_list_in_order_of_use(references in references(), memory in memory()) {
            let mut model: Vec<u16> = Vec::new();
            let mut expected = Vec::new();
            for (at, reference) in references.iter().enumerate() {
                match model.iter().position(|other| *other == reference.container) {
                    Some(place) => drop(model.remove(place)),
                    None => expected.push(Read { at, container: reference.container }),
                }
                model.push(reference.container);
                if model.len() > memory.containers {
                    model.remove(0);
                }
            }
            prop_assert_eq!(reads(&references, memory), expected);
        }
    }
}

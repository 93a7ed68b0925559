//! Where in a stream containers and chunks are wanted again: what every cache that knows the recipe
//! asks.
//!
//! Enters: references. Leaves: containers and chunks as small numbers, the positions of each
//! container in order, the next position of each chunk, and where in the stream each reference begins.

use std::collections::HashMap;
use std::hash::Hash;

use super::Reference;

/// No later position.
pub const NEVER: usize = usize::MAX;

/// What is known of a stream.
#[derive(Debug)]
pub struct Positions {
    /// For each reference the number of its container, counted by first use.
    pub container: Vec<u32>,
    /// For each reference the number of its chunk.
    pub chunk: Vec<u32>,
    /// For each reference where the same chunk comes again.
    pub next_of_chunk: Vec<usize>,
    /// For each reference where its container comes again.
    pub next_of_container: Vec<usize>,
    /// For each container where it is referenced, ascending.
    pub of_container: Vec<Vec<usize>>,
    /// For each reference, where it begins in the stream; then the end of the stream.
    pub start: Vec<u64>,
    /// For each chunk its length.
    pub chunk_bytes: Vec<u32>,
}

impl Positions {
    /// Those of a stream.
    pub fn of<C: Copy + Eq + Hash>(references: &[Reference<C>]) -> Self {
        let mut containers = HashMap::new();
        let mut chunks = HashMap::new();
        let mut positions = Self {
            container: Vec::with_capacity(references.len()),
            chunk: Vec::with_capacity(references.len()),
            next_of_chunk: vec![NEVER; references.len()],
            next_of_container: vec![NEVER; references.len()],
            of_container: Vec::new(),
            start: Vec::with_capacity(references.len() + 1),
            chunk_bytes: Vec::new(),
        };
        let mut start = 0;
        for (at, reference) in references.iter().enumerate() {
            let next = containers.len() as u32;
            let container = *containers.entry(reference.container).or_insert(next);
            if container == next {
                positions.of_container.push(Vec::new());
            }
            let next = chunks.len() as u32;
            let key = (reference.container, reference.chunk);
            let chunk = *chunks.entry(key).or_insert(next);
            if chunk == next {
                positions.chunk_bytes.push(reference.bytes);
            }
            positions.of_container[container as usize].push(at);
            positions.container.push(container);
            positions.chunk.push(chunk);
            positions.start.push(start);
            start += u64::from(reference.bytes);
        }
        positions.start.push(start);
        let mut later = vec![NEVER; chunks.len()];
        let mut later_container = vec![NEVER; containers.len()];
        for at in (0..references.len()).rev() {
            let chunk = positions.chunk[at] as usize;
            positions.next_of_chunk[at] = std::mem::replace(&mut later[chunk], at);
            let container = positions.container[at] as usize;
            positions.next_of_container[at] =
                std::mem::replace(&mut later_container[container], at);
        }
        positions
    }

    /// The positions of the container of reference `at`, from there on, that end within `window_bytes`
    /// of its beginning; `at` itself is the first, however small the window.
    pub fn within(&self, at: usize, window_bytes: u64) -> &[usize] {
        let all = &self.of_container[self.container[at] as usize];
        let first = all.partition_point(|position| *position < at);
        let end = self.start[at] + window_bytes;
        let last = all.partition_point(|position| self.start[position + 1] <= end);
        &all[first..last.max(first + 1)]
    }
}

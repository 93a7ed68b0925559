//! Capping: at most so many old containers a segment (Lillibridge et al., FAST 2013, §3).
//!
//! Enter and leave: as `rewriting`. The stream is cut into segments of so many bytes; a segment
//! is decided when it is full. Its duplicates may refer to at most [`Capping::containers_max`]
//! containers: those that give it most bytes, among equals those that come first. Duplicates of
//! the others are stored again. So a restore reads at most that many old containers a segment,
//! whatever the stream went through.
//!
//! Bytes count as often as they are referred to. Segments know nothing of each other: a container
//! that the segment before refers to is ranked like any other.

use std::collections::HashMap;
use std::hash::Hash;

use super::{ChunkPlace, Decision, StreamChunk};

/// Parameters of capping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capping {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Old containers that a segment refers to at most.
    pub containers_max: u32,
}

impl Capping {
    /// Segments as published, and as many containers as fill them twice.
    pub const DEFAULT: Self = Self {
        segment_bytes: 20 << 20,
        containers_max: 10,
    };
}

impl Default for Capping {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Decides segment by segment.
#[derive(Debug)]
pub(super) struct CappingRewriter<C, T> {
    parameters: Capping,
    /// The number of its container, in order of their first chunks, and what to hand back.
    waiting: Vec<(Option<u32>, T)>,
    waiting_bytes: u64,
    numbers: HashMap<C, u32>,
    /// Bytes that the segment has of each.
    referenced_bytes: Vec<u64>,
}

impl<C: Copy + Eq + Hash, T> CappingRewriter<C, T> {
    pub(super) fn new(parameters: Capping) -> Self {
        Self {
            parameters,
            waiting: Vec::new(),
            waiting_bytes: 0,
            numbers: HashMap::new(),
            referenced_bytes: Vec::new(),
        }
    }

    pub(super) fn push(
        &mut self,
        chunk: StreamChunk<C>,
        payload: T,
        decide: &mut dyn FnMut(T, Decision),
    ) {
        let number = match chunk.place {
            ChunkPlace::New => None,
            ChunkPlace::Stored(container) => {
                let next = self.numbers.len() as u32;
                let number = *self.numbers.entry(container).or_insert(next);
                if number == next {
                    self.referenced_bytes.push(0);
                }
                self.referenced_bytes[number as usize] += u64::from(chunk.bytes);
                Some(number)
            }
        };
        self.waiting_bytes += chunk.weight();
        self.waiting.push((number, payload));
        if self.waiting_bytes >= self.parameters.segment_bytes {
            self.finish(decide);
        }
    }

    pub(super) fn finish(&mut self, decide: &mut dyn FnMut(T, Decision)) {
        let referenced_bytes = std::mem::take(&mut self.referenced_bytes);
        let mut ranked: Vec<usize> = (0..referenced_bytes.len()).collect();
        ranked.sort_by_key(|&number| std::cmp::Reverse(referenced_bytes[number]));
        let mut decisions = vec![Decision::Rewrite; ranked.len()];
        for &number in ranked.iter().take(self.parameters.containers_max as usize) {
            decisions[number] = Decision::Keep;
        }
        for (number, payload) in self.waiting.drain(..) {
            let decision = number.map_or(Decision::Keep, |number| decisions[number as usize]);
            decide(payload, decision);
        }
        self.waiting_bytes = 0;
        self.numbers.clear();
    }
}

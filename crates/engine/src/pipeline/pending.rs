//! Recipes whose new chunks have no place yet.
//!
//! A new chunk gets a *sequence number* when it is found to be new; which container and slot it
//! lies in is known when the packer has placed its group. Placing follows sequence, so the
//! places of all chunks are known from where each container begins: a small table.

use std::collections::VecDeque;

use crate::container::{ContainerId, Slot};
use crate::recipe::{RecipePage, Run, RunJoiner};

/// Where a container begins in the sequence of new chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placement {
    pub first_sequence: u64,
    pub first_offset: u64,
    pub container: ContainerId,
}

/// What the packer has placed so far.
#[derive(Debug, Default)]
pub(super) struct Placements {
    /// Ascending by sequence.
    pub starts: Vec<Placement>,
    /// Chunks with smaller sequence numbers have a place.
    pub placed_end: u64,
    /// Bytes of those chunks.
    pub placed_offset: u64,
    /// How many flushes are done.
    pub flushes: u64,
    /// The packer has ended.
    pub ended: bool,
}

impl Placements {
    /// The runs of consecutive new chunks, if all of them have a place.
    fn runs(&self, span: NewSpan, mut emit: impl FnMut(Run)) -> bool {
        if span.sequence + u64::from(span.count) > self.placed_end {
            return false;
        }
        let mut left = span;
        while left.count > 0 {
            let next = self
                .starts
                .partition_point(|start| start.first_sequence <= left.sequence);
            let start = self.starts[next - 1];
            let (end_sequence, end_offset) = self
                .starts
                .get(next)
                .map_or((u64::MAX, u64::MAX), |s| (s.first_sequence, s.first_offset));
            let count = (end_sequence - left.sequence).min(u64::from(left.count)) as u32;
            let bytes = (end_offset - left.offset).min(left.bytes);
            emit(Run::Slots {
                container: start.container,
                first: Slot((left.sequence - start.first_sequence) as u16),
                count,
                bytes,
            });
            left.sequence += u64::from(count);
            left.offset += bytes;
            left.count -= count;
            left.bytes -= bytes;
        }
        true
    }
}

/// Consecutive new chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewSpan {
    /// Sequence number of the first.
    pub sequence: u64,
    /// Bytes of all new chunks before it.
    pub offset: u64,
    pub count: u32,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Placed(Run),
    New(NewSpan),
}

/// The recipe of a stream while some of its chunks may still lack a place.
#[derive(Debug, Default)]
pub struct PendingRecipe {
    waiting: VecDeque<Part>,
    placed: RunJoiner,
    pub(super) pages: Vec<RecipePage>,
    stream_bytes: u64,
}

impl PendingRecipe {
    /// Bytes of the stream so far.
    #[must_use]
    pub fn stream_bytes(&self) -> u64 {
        self.stream_bytes
    }

    /// Starts from runs that are known, such as those of an unchanged file.
    #[must_use]
    pub fn from_runs(runs: &[Run]) -> Self {
        let mut recipe = Self::default();
        for run in runs {
            recipe.push_placed(*run);
        }
        recipe
    }

    /// Adds a run that has its place, or a hole.
    pub fn push_placed(&mut self, run: Run) {
        self.stream_bytes += run.bytes();
        if self.waiting.is_empty() {
            self.placed.push(run);
        } else {
            self.waiting.push_back(Part::Placed(run));
        }
    }

    /// Adds a new chunk that has no place yet.
    pub(super) fn push_new(&mut self, sequence: u64, offset: u64, bytes: u64) {
        self.stream_bytes += bytes;
        if let Some(Part::New(last)) = self.waiting.back_mut()
            && last.sequence + u64::from(last.count) == sequence
            && last.offset + last.bytes == offset
            && last.count < u32::MAX
        {
            last.count += 1;
            last.bytes += bytes;
            return;
        }
        self.waiting.push_back(Part::New(NewSpan {
            sequence,
            offset,
            count: 1,
            bytes,
        }));
    }

    /// Gives places to what can have one. Returns whether all of it has.
    pub(super) fn settle(&mut self, placements: &Placements) -> bool {
        while let Some(part) = self.waiting.front() {
            match *part {
                Part::Placed(run) => self.placed.push(run),
                Part::New(span) => {
                    let placed = &mut self.placed;
                    if !placements.runs(span, |run| placed.push(run)) {
                        return false;
                    }
                }
            }
            self.waiting.pop_front();
        }
        true
    }

    /// The greatest sequence number that still lacks a place, plus one; 0 when none does.
    pub(super) fn needs(&self) -> u64 {
        self.waiting
            .iter()
            .map(|part| match part {
                Part::Placed(_) => 0,
                Part::New(span) => span.sequence + u64::from(span.count),
            })
            .max()
            .unwrap_or(0)
    }

    /// The first `count` placed runs, once more than that are there.
    pub(super) fn take_page(&mut self, count: usize) -> Option<Vec<Run>> {
        self.placed.split_front(count)
    }

    pub(super) fn into_placed(self) -> (Vec<RecipePage>, Vec<Run>) {
        debug_assert!(self.waiting.is_empty(), "all chunks have a place");
        (self.pages, self.placed.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectId;

    fn container(number: u8) -> ContainerId {
        ContainerId(ObjectId([number; 16]))
    }

    fn slots(number: u8, first: u16, count: u32, bytes: u64) -> Run {
        Run::Slots {
            container: container(number),
            first: Slot(first),
            count,
            bytes,
        }
    }

    #[test]
    fn spans_split_where_containers_begin() {
        let start = |first_sequence, first_offset, number| Placement {
            first_sequence,
            first_offset,
            container: container(number),
        };
        let mut placements = Placements {
            starts: vec![start(0, 0, 1)],
            placed_end: 4,
            ..Placements::default()
        };
        let mut recipe = PendingRecipe::default();
        recipe.push_placed(slots(9, 7, 1, 5));
        for sequence in 2..6 {
            recipe.push_new(sequence, sequence * 10, 10);
        }
        recipe.push_placed(Run::Hole { bytes: 3 });
        assert!(!recipe.settle(&placements));
        assert_eq!(recipe.needs(), 6);
        placements.starts.push(start(4, 40, 2));
        placements.placed_end = 8;
        assert!(recipe.settle(&placements));
        assert_eq!(recipe.needs(), 0);
        assert_eq!(recipe.stream_bytes(), 48);
        let (_, runs) = recipe.into_placed();
        let expected = [
            slots(9, 7, 1, 5),
            slots(1, 2, 2, 20),
            slots(2, 0, 2, 20),
            Run::Hole { bytes: 3 },
        ];
        assert_eq!(runs, expected);
    }
}

//! Recipes whose new chunks have no place yet.
//!
//! A new chunk gets a *sequence number* when it is found to be new; which container and slot it
//! lies in is known when the packer has placed its group. Placing follows sequence, so the
//! places of all chunks are known from where each container begins: a small table. Chunks that go to
//! containers of deltas have a row of numbers, and a table, of their own.
//!
//! Where duplicates may be stored again (`decision_window`), it is not even known at first which chunks
//! will be new: then a recipe has an [`Undecided`] part, filled in by whoever decides.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::budget::lock;

use crate::container::{ChunkAddress, ContainerId, ContainerKind, Slot};
use crate::recipe::{RecipePage, Run, RunJoiner};

/// Where a container begins in the sequence of new chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placement {
    pub first_sequence: u64,
    pub first_offset: u64,
    pub container: ContainerId,
}

/// What the packers have placed so far.
#[derive(Debug, Default)]
pub(super) struct Placements {
    data: PlacedRow,
    deltas: PlacedRow,
    /// A packer has ended.
    pub ended: bool,
}

impl Placements {
    /// What one of them has placed.
    pub fn of(&self, kind: ContainerKind) -> &PlacedRow {
        match kind {
            ContainerKind::Deltas => &self.deltas,
            ContainerKind::Data | ContainerKind::Metadata => &self.data,
        }
    }

    pub fn of_mut(&mut self, kind: ContainerKind) -> &mut PlacedRow {
        match kind {
            ContainerKind::Deltas => &mut self.deltas,
            ContainerKind::Data | ContainerKind::Metadata => &mut self.data,
        }
    }
}

/// What the packer of one kind of container has placed so far.
#[derive(Debug, Default)]
pub(super) struct PlacedRow {
    /// Ascending by sequence.
    pub starts: Vec<Placement>,
    /// Chunks with smaller sequence numbers have a place.
    pub placed_end: u64,
    /// Bytes of those chunks.
    pub placed_offset: u64,
    /// How many flushes are done.
    pub flushes: u64,
}

impl PlacedRow {
    /// Where the chunk of that number lies, if it has a place.
    pub fn address(&self, sequence: u64) -> Option<ChunkAddress> {
        if sequence >= self.placed_end {
            return None;
        }
        let next = self
            .starts
            .partition_point(|start| start.first_sequence <= sequence);
        let start = self.starts.get(next.checked_sub(1)?)?;
        Some(ChunkAddress {
            container: start.container,
            slot: Slot((sequence - start.first_sequence) as u16),
        })
    }

    /// The first number that is in the container of the chunk before `end`, which must have a place:
    /// chunks with smaller ones are in containers that were sealed by then. Follows from what is packed
    /// alone, never from how far the packer is.
    pub fn sealed_before(&self, end: u64) -> u64 {
        let next = self
            .starts
            .partition_point(|start| start.first_sequence < end);
        match next.checked_sub(1) {
            Some(last) => self.starts[last].first_sequence,
            None => 0,
        }
    }

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
    /// The kind of containers they go to.
    pub kind: ContainerKind,
    /// Sequence number of the first.
    pub sequence: u64,
    /// Bytes of all new chunks of its row before it.
    pub offset: u64,
    pub count: u32,
    pub bytes: u64,
}

#[derive(Debug, Clone)]
enum Part {
    Placed(Run),
    New(NewSpan),
    Undecided(Undecided),
}

/// A part of a recipe that somebody else fills in, once; clones are the same part.
#[derive(Debug, Clone, Default)]
pub(super) struct Undecided(Arc<Mutex<Option<VecDeque<Part>>>>);

impl Undecided {
    /// Fills it in.
    pub fn decide(&self, recipe: PendingRecipe) {
        let placed = recipe.placed.finish().into_iter().map(Part::Placed);
        *lock(&self.0) = Some(placed.chain(recipe.waiting).collect());
    }

    fn take(&self) -> Option<VecDeque<Part>> {
        lock(&self.0).take()
    }
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
    pub(super) fn push_new(&mut self, kind: ContainerKind, sequence: u64, offset: u64, bytes: u64) {
        self.stream_bytes += bytes;
        if let Some(Part::New(last)) = self.waiting.back_mut()
            && last.kind == kind
            && last.sequence + u64::from(last.count) == sequence
            && last.offset + last.bytes == offset
            && last.count < u32::MAX
        {
            last.count += 1;
            last.bytes += bytes;
            return;
        }
        self.waiting.push_back(Part::New(NewSpan {
            kind,
            sequence,
            offset,
            count: 1,
            bytes,
        }));
    }

    /// Adds chunks of so many bytes of which it is not decided yet whether they are new.
    pub(super) fn push_undecided(&mut self, part: Undecided, bytes: u64) {
        self.stream_bytes += bytes;
        self.waiting.push_back(Part::Undecided(part));
    }

    /// Gives places to what can have one. Returns whether all of it has.
    pub(super) fn settle(&mut self, placements: &Placements) -> bool {
        while let Some(part) = self.waiting.front() {
            match part {
                Part::Placed(run) => self.placed.push(*run),
                Part::New(span) => {
                    let placed = &mut self.placed;
                    let row = placements.of(span.kind);
                    if !row.runs(*span, |run| placed.push(run)) {
                        return false;
                    }
                }
                Part::Undecided(part) => {
                    let Some(parts) = part.take() else {
                        return false;
                    };
                    self.waiting.pop_front();
                    for part in parts.into_iter().rev() {
                        self.waiting.push_front(part);
                    }
                    continue;
                }
            }
            self.waiting.pop_front();
        }
        true
    }

    /// Takes in what was decided meanwhile. Returns whether all of it is.
    pub(super) fn take_decisions(&mut self) -> bool {
        let mut is_decided = true;
        for part in std::mem::take(&mut self.waiting) {
            match &part {
                Part::Undecided(undecided) => match undecided.take() {
                    Some(parts) => self.waiting.extend(parts),
                    None => {
                        is_decided = false;
                        self.waiting.push_back(part);
                    }
                },
                Part::Placed(_) | Part::New(_) => self.waiting.push_back(part),
            }
        }
        is_decided
    }

    /// The greatest sequence number for that kind of container that still lacks a place, plus one; 0
    /// when none does.
    pub(super) fn needs(&self, kind: ContainerKind) -> u64 {
        self.waiting
            .iter()
            .map(|part| match part {
                Part::New(span) if span.kind == kind => span.sequence + u64::from(span.count),
                Part::Placed(_) | Part::Undecided(_) | Part::New(_) => 0,
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

    const DATA: ContainerKind = ContainerKind::Data;
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
        let mut placements = Placements::default();
        placements.data.starts = vec![start(0, 0, 1)];
        placements.data.placed_end = 4;
        let mut recipe = PendingRecipe::default();
        recipe.push_placed(slots(9, 7, 1, 5));
        for sequence in 2..6 {
            recipe.push_new(DATA, sequence, sequence * 10, 10);
        }
        recipe.push_placed(Run::Hole { bytes: 3 });
        assert!(!recipe.settle(&placements));
        assert_eq!(recipe.needs(DATA), 6);
        placements.data.starts.push(start(4, 40, 2));
        placements.data.placed_end = 8;
        assert!(recipe.settle(&placements));
        assert_eq!(recipe.needs(DATA), 0);
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

    #[test]
    fn what_is_decided_later_takes_its_place() {
        let mut placements = Placements::default();
        placements.data.placed_end = 9;
        placements.data.starts.push(Placement {
            first_sequence: 0,
            first_offset: 0,
            container: container(1),
        });
        let (first, second) = (Undecided::default(), Undecided::default());
        let mut recipe = PendingRecipe::default();
        recipe.push_undecided(first.clone(), 15);
        recipe.push_placed(Run::Hole { bytes: 3 });
        recipe.push_undecided(second.clone(), 20);
        assert!(!recipe.settle(&placements));
        assert!(!recipe.take_decisions());
        let mut decided = PendingRecipe::default();
        decided.push_new(DATA, 2, 20, 10);
        decided.push_new(DATA, 3, 30, 10);
        second.decide(decided);
        assert!(!recipe.take_decisions());
        assert_eq!(recipe.needs(DATA), 4);
        let mut decided = PendingRecipe::default();
        decided.push_placed(slots(9, 7, 1, 5));
        decided.push_new(DATA, 1, 10, 10);
        first.decide(decided);
        assert!(recipe.settle(&placements));
        assert_eq!(recipe.stream_bytes(), 38);
        let (_, runs) = recipe.into_placed();
        let expected = [
            slots(9, 7, 1, 5),
            slots(1, 1, 1, 10),
            Run::Hole { bytes: 3 },
            slots(1, 2, 2, 20),
        ];
        assert_eq!(runs, expected);
    }

    #[test]
    fn rows_are_apart_and_say_what_is_sealed() {
        let start = |first_sequence, number| Placement {
            first_sequence,
            first_offset: first_sequence * 10,
            container: container(number),
        };
        let mut placements = Placements::default();
        placements.of_mut(DATA).starts = vec![start(0, 1)];
        placements.of_mut(DATA).placed_end = 3;
        let deltas = placements.of_mut(ContainerKind::Deltas);
        deltas.starts = vec![start(0, 2), start(5, 3)];
        deltas.placed_end = 9;
        let address = deltas.address(7).map(|found| (found.container, found.slot));
        assert_eq!(address, Some((container(3), Slot(2))));
        assert_eq!(deltas.address(9), None);
        // Whether the container of the next chunk is open already makes no difference.
        let sealed = |end| deltas.sealed_before(end);
        assert_eq!([0, 1, 5, 6, 9].map(sealed), [0, 0, 0, 5, 5]);
        let mut recipe = PendingRecipe::default();
        recipe.push_new(DATA, 2, 20, 10);
        recipe.push_new(ContainerKind::Deltas, 3, 30, 10);
        recipe.push_new(ContainerKind::Deltas, 4, 40, 10);
        assert_eq!(recipe.needs(ContainerKind::Deltas), 5);
        assert!(recipe.settle(&placements));
        let (_, runs) = recipe.into_placed();
        assert_eq!(runs, [slots(1, 2, 1, 10), slots(2, 3, 2, 20)]);
    }
}

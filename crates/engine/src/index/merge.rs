//! Merging runs: many sorted runs in, their union in order out, in bounded memory.
//!
//! Which runs: [`choose`] keeps sizes *geometric*: no run may be smaller than [`RATIO`] times all
//! smaller ones together; where one is, it is merged with these. So there are at most about
//! log₃(entries / entries of a backup) runs, the largest has at least two thirds of all entries,
//! and an entry is rewritten about as often as there are runs, give or take one or two
//! (measured: docs/design/0010-index-at-any-size.md).
//!
//! How: one cursor a run reads a few blocks ahead, past the cache; a heap gives the least entry.
//! Tables of containers ascend, so entries compare alike in all runs once container numbers
//! are those of the common table. Entries of containers that are not in it are dropped, equal
//! entries of several runs come out once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::Arc;

use crate::container::ContainerId;
use crate::format::{DecodeError, InObject, ObjectError};

use super::RunEntry;
use super::block::{Block, BlockPlace};
use super::footer::{RUN_CONTAINERS_MAX, RUN_ENTRIES_MAX};
use super::run_reader::RunReader;

/// How much larger than all smaller runs together a run has to be.
pub(super) const RATIO: u64 = 2;

/// A run that could not be read while it was merged.
#[derive(Debug)]
pub(super) struct InputError {
    /// Its place among the inputs.
    pub(super) input: usize,
    /// What was wrong.
    pub(super) error: ObjectError,
}

/// The number of a container that is dropped.
const DROPPED: u32 = u32::MAX;

/// The runs to merge next, so that each becomes at least `ratio` times as large as all smaller ones
/// together; nothing when that is so. The smallest `inputs_max` (≥ 2) of them: the next call goes
/// on. What would be too large for one run is left out.
pub(super) fn choose(
    mergeable: impl Iterator<Item = Arc<RunReader>>,
    ratio: u64,
    inputs_max: usize,
) -> Option<Vec<Arc<RunReader>>> {
    let mut runs: Vec<_> = mergeable.collect();
    runs.sort_by_cached_key(|run| Reverse((size_of_run(run), run.key())));
    loop {
        let mut smaller = 0u64;
        let mut first = None;
        for (place, run) in runs.iter().enumerate().rev() {
            let size = size_of_run(run);
            if smaller > 0 && size < smaller.saturating_mul(ratio) {
                first = Some(place);
            }
            smaller += size;
        }
        let first = first?;
        if fit_into_one(&runs[first..]) {
            let start = first.max(runs.len().saturating_sub(inputs_max.max(2)));
            return Some(runs.split_off(start));
        }
        runs.remove(first);
    }
}

/// Entries, and containers, so that a run without entries has a size, too.
fn size_of_run(run: &RunReader) -> u64 {
    let footer = run.footer();
    footer.entries + (footer.containers.len() + footer.covered.len()) as u64
}

fn fit_into_one(runs: &[Arc<RunReader>]) -> bool {
    let footers = || runs.iter().map(|run| run.footer());
    let entries: u64 = footers().map(|footer| footer.entries).sum();
    let containers: usize = footers()
        .map(|footer| footer.containers.len() + footer.covered.len())
        .sum();
    entries <= RUN_ENTRIES_MAX as u64 && containers <= RUN_CONTAINERS_MAX
}

/// The union of runs, in order and each entry once, with containers numbered anew.
pub(super) struct MergedEntries<'a> {
    cursors: Vec<Cursor<'a>>,
    /// The next entry of each input.
    heap: BinaryHeap<Reverse<(RunEntry, usize)>>,
    last: Option<RunEntry>,
}

impl<'a> MergedEntries<'a> {
    /// Begins with the first entries of `inputs`. Containers get their place in `containers`
    /// (ascending) as numbers; those that are not there are dropped.
    ///
    /// # Errors
    /// When an input can't be read or is not in order.
    pub(super) fn new(
        inputs: &'a [Arc<RunReader>],
        containers: &[ContainerId],
        read_ahead_blocks: usize,
    ) -> Result<Self, InputError> {
        let mut cursors: Vec<_> = inputs
            .iter()
            .map(|run| Cursor::new(run, containers, read_ahead_blocks))
            .collect();
        let mut heap = BinaryHeap::with_capacity(cursors.len());
        for (input, cursor) in cursors.iter_mut().enumerate() {
            if let Some(entry) = cursor.next().map_err(|error| InputError { input, error })? {
                heap.push(Reverse((entry, input)));
            }
        }
        Ok(Self {
            cursors,
            heap,
            last: None,
        })
    }

    /// The next entry.
    ///
    /// # Errors
    /// As [`MergedEntries::new`]; what came until then is of no use.
    pub(super) fn next(&mut self) -> Result<Option<RunEntry>, InputError> {
        while let Some(mut least) = self.heap.peek_mut() {
            let Reverse((entry, input)) = *least;
            match self.cursors[input]
                .next()
                .map_err(|error| InputError { input, error })?
            {
                Some(next) => *least = Reverse((next, input)),
                None => drop(PeekMut::pop(least)),
            }
            if self.last != Some(entry) {
                self.last = Some(entry);
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// Cuts a table of containers, of which `entries_of` says how many entries they have, into
/// ranges that a run can hold. A container is never cut: a run that names it has all of it.
pub(super) fn groups(entries_of: &[u64], entries_max: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut start = 0;
    let mut entries = 0;
    for (number, &own) in entries_of.iter().enumerate() {
        let is_full = number - start == RUN_CONTAINERS_MAX || entries + own > entries_max as u64;
        if number > start && is_full {
            groups.push(start..number);
            start = number;
            entries = 0;
        }
        entries += own;
    }
    if start < entries_of.len() {
        groups.push(start..entries_of.len());
    }
    groups
}

/// Reads a run from its first entry to its last.
struct Cursor<'a> {
    run: &'a RunReader,
    /// New number of each container of the run.
    numbers: Vec<u32>,
    read_ahead_blocks: usize,
    next_block: usize,
    blocks: std::vec::IntoIter<Block>,
    current: Option<(Block, BlockPlace)>,
    /// The entry before, as the run has it.
    last: Option<RunEntry>,
    entries_left: u64,
}

impl<'a> Cursor<'a> {
    fn new(run: &'a RunReader, containers: &[ContainerId], read_ahead_blocks: usize) -> Self {
        let number_of = |id| {
            containers
                .binary_search(id)
                .map_or(DROPPED, |place| place as u32)
        };
        Self {
            run,
            numbers: run.footer().containers.iter().map(number_of).collect(),
            read_ahead_blocks: read_ahead_blocks.max(1),
            next_block: 0,
            blocks: Vec::new().into_iter(),
            current: None,
            last: None,
            entries_left: run.footer().entries,
        }
    }

    /// The next entry that is kept, with its new number.
    fn next(&mut self) -> Result<Option<RunEntry>, ObjectError> {
        while let Some(entry) = self.next_stored()? {
            let container = self.numbers[entry.container as usize];
            if container != DROPPED {
                return Ok(Some(RunEntry { container, ..entry }));
            }
        }
        Ok(None)
    }

    /// The next entry as the run has it. Blocks check their own order; here the order from
    /// block to block is checked, and the number of entries.
    fn next_stored(&mut self) -> Result<Option<RunEntry>, ObjectError> {
        loop {
            if let Some((block, place)) = &mut self.current
                && let Some(entry) = block.next(place)
            {
                if self.last.is_some_and(|last| entry <= last) || self.entries_left == 0 {
                    return Err(self.corrupt("its entries are out of order, or too many"));
                }
                self.last = Some(entry);
                self.entries_left -= 1;
                return Ok(Some(entry));
            }
            match self.next_block()? {
                Some(block) => {
                    let start = block.start();
                    self.current = Some((block, start));
                }
                None if self.entries_left > 0 => {
                    return Err(self.corrupt("it has fewer entries than its footer says"));
                }
                None => return Ok(None),
            }
        }
    }

    fn next_block(&mut self) -> Result<Option<Block>, ObjectError> {
        if self.blocks.len() == 0 && self.next_block < self.run.footer().fences.len() {
            self.current = None;
            let read = self
                .run
                .read_blocks(self.next_block, self.read_ahead_blocks)?;
            self.next_block += read.len();
            self.blocks = read.into_iter();
        }
        Ok(self.blocks.next())
    }

    fn corrupt(&self, reason: &str) -> ObjectError {
        let outcome: Result<(), _> = Err(DecodeError::new(reason));
        outcome
            .in_object(self.run.key(), "blocks")
            .expect_err("an error stays one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_grouped_whole() {
        assert_eq!(groups(&[], 10), []);
        assert_eq!(
            groups(&[4, 4, 4, 10, 11, 1], 10),
            [0..2, 2..3, 3..4, 4..5, 5..6]
        );
        assert_eq!(groups(&[0; 5], 10), vec![0..5]);
        let many = vec![0; RUN_CONTAINERS_MAX + 1];
        assert_eq!(
            groups(&many, 10),
            [0..RUN_CONTAINERS_MAX, RUN_CONTAINERS_MAX..many.len()]
        );
    }
}

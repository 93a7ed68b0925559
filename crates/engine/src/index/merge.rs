//! Merging runs: many sorted runs in, their union in order out, in bounded memory.
//!
//! Which runs: [`choose`] takes the smallest ones, as few as bring the set back to its limit,
//! and the next ones while they are no larger than those before them together. So an entry is
//! rewritten about log₂(entries / entries of a backup) times, not at every merge.
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
use super::footer::RUN_CONTAINERS_MAX;
use super::run_reader::RunReader;

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

/// The runs to merge next so that at most `runs_max` runs are *small*, that is, hold at most
/// half of what a run may hold; nothing when that is so. Two small runs always fit into one.
/// At most `inputs_max` (≥ 2) at once: the next call goes on.
pub(super) fn choose(
    mergeable: impl Iterator<Item = Arc<RunReader>>,
    runs_max: usize,
    entries_max: usize,
    inputs_max: usize,
) -> Option<Vec<Arc<RunReader>>> {
    let size = |run: &RunReader| {
        let footer = run.footer();
        (
            footer.entries,
            (footer.containers.len() + footer.covered.len()) as u64,
        )
    };
    let fits = |(entries, containers): (u64, u64)| {
        entries <= entries_max as u64 && containers <= RUN_CONTAINERS_MAX as u64
    };
    let mut small: Vec<_> = mergeable
        .filter(|run| {
            let (entries, containers) = size(run);
            fits((entries * 2, containers * 2))
        })
        .collect();
    let needed = (small.len() + 1)
        .checked_sub(runs_max.max(1))
        .filter(|&needed| needed > 1)?;
    small.sort_by_key(|run| (size(run), run.key()));
    let mut chosen = Vec::new();
    let mut total = (0, 0);
    for run in small.into_iter().take(inputs_max) {
        let (entries, containers) = size(&run);
        let with_it = (total.0 + entries, total.1 + containers);
        let is_worth_it = chosen.len() < needed || entries <= total.0;
        if !fits(with_it) || !is_worth_it {
            break;
        }
        total = with_it;
        chosen.push(run);
    }
    Some(chosen)
}

/// Hands the union of `inputs` to `take`, in order and each entry once, with containers
/// numbered by their place in `containers` (ascending); those that are not there are dropped.
///
/// # Errors
/// When an input can't be read or is not in order; what was taken until then is of no use.
pub(super) fn merge_entries(
    inputs: &[Arc<RunReader>],
    containers: &[ContainerId],
    read_ahead_blocks: usize,
    mut take: impl FnMut(RunEntry),
) -> Result<(), InputError> {
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
    let mut last = None;
    while let Some(mut least) = heap.peek_mut() {
        let Reverse((entry, input)) = *least;
        if last != Some(entry) {
            take(entry);
            last = Some(entry);
        }
        match cursors[input]
            .next()
            .map_err(|error| InputError { input, error })?
        {
            Some(next) => *least = Reverse((next, input)),
            None => drop(PeekMut::pop(least)),
        }
    }
    Ok(())
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
        if self.blocks.len() == 0 {
            let start = self.next_block;
            let end = (start + self.read_ahead_blocks).min(self.run.footer().fences.len());
            if start < end {
                self.current = None;
                self.blocks = self.run.read_blocks(start..end)?.into_iter();
                self.next_block = end;
            }
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

//! Writing runs and merging them: the part of [`RunSet`] that changes the store.
//!
//! Enter: entries of new chunks, or runs that are there. Leave: new `index/` objects, each put
//! whole and durably; after a merge the old ones are deleted. How a large index is cut into
//! runs, what holds at a crash, and which memory is used stands at the top of `run_set`.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::container::{ChunkAddress, ContainerId};
use crate::format::ObjectError;
use crate::object::{ObjectId, ObjectKey, StoreError};

use super::block::BLOCK_BYTES;
use super::footer::{RUN_CONTAINERS_MAX, RUN_ENTRIES_MAX};
use super::merge::{InputError, choose, groups, merge_entries};
use super::run_reader::{RunReader, is_missing};
use super::run_writer::{RunWriter, WRITE_BYTES_PER_ENTRY};
use super::{IndexEntry, RunSet};

/// Small runs beyond which a backup merges.
pub const RUNS_MAX: usize = 8;

/// Least entries in a full run: all slots of a container fit.
const ENTRIES_MAX_LEAST: usize = 1 << 16;

/// Blocks that a merge reads from a run at once, at most.
const READ_AHEAD_BLOCKS_MAX: usize = 64;

/// What merging did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeSummary {
    /// Runs that were merged and deleted.
    pub runs_merged: u64,
    /// Runs that were written instead.
    pub runs_written: u64,
    /// Entries in the runs merged.
    pub entries_before: u64,
    /// Entries in the runs written: without duplicates and entries of dead containers.
    pub entries_after: u64,
}

impl RunSet {
    /// Stores `entries`, whose order is changed, as a run, or as several when they are too many
    /// for one. The containers named are covered from then on, so all their chunks must be here;
    /// `covered` are containers that may have no entries of their own. Durable on return;
    /// containers must be durable before.
    ///
    /// # Errors
    /// When the store can't take it: runs stored until then stay, and are in the set.
    pub fn write_run(
        &self,
        entries: &mut [IndexEntry],
        covered: &[ContainerId],
    ) -> Result<(), ObjectError> {
        let mut next_number = self.changing();
        let _room = Room::new(self);
        let containers = containers_of(entries);
        let mut covered = without(covered.to_vec(), &containers);
        for range in self.ranges_of_runs(entries, containers.len()) {
            let entries = &mut entries[range];
            entries.sort_unstable();
            let table = containers_of(entries);
            let covered_here = take_room(&mut covered, table.len());
            let numbers: HashMap<_, _> = table.iter().copied().zip(0u32..).collect();
            let id = ObjectId::random();
            let mut writer = RunWriter::new(self.vault(), id, table, entries.len());
            let mut last = None;
            for &mut entry in entries {
                if last != Some(entry) {
                    let ChunkAddress { container, slot } = entry.address;
                    writer.push(entry.prefix, numbers[&container], slot);
                    last = Some(entry);
                }
            }
            self.add_new_run(&mut next_number, writer, covered_here)?;
        }
        while !covered.is_empty() {
            let covered_here = take_room(&mut covered, 0);
            self.add_new_run(&mut next_number, self.empty_writer(), covered_here)?;
        }
        Ok(())
    }

    /// Merges small runs until at most `runs_max` of them are left. Entries of containers that
    /// are not `live` are dropped; `live` must know every container that was stored before the
    /// set was opened.
    ///
    /// # Errors
    /// When the store can't take a new run or delete an old one. The index is whole in any
    /// case. Runs that can't be read are left as they are ([`RunSet::damaged`]).
    pub fn merge_if_needed(
        &self,
        runs_max: usize,
        live: &dyn Fn(ContainerId) -> bool,
    ) -> Result<MergeSummary, ObjectError> {
        let mut next_number = self.changing();
        let mut summary = MergeSummary::default();
        let mut unreadable = HashSet::new();
        loop {
            let runs = self.runs();
            let mergeable = runs
                .iter()
                .filter(|run| is_mergeable(run) && !unreadable.contains(&run.key()))
                .cloned();
            let (entries_max, inputs_max) = (self.entries_max(), self.inputs_max());
            let Some(inputs) = choose(mergeable, runs_max, entries_max, inputs_max) else {
                return Ok(summary);
            };
            unreadable.extend(self.merge(&mut next_number, &inputs, live, &mut summary)?);
        }
    }

    /// Rewrites every run that names a container which is not `live`, without it. For after a
    /// prune: merges would do so only when they come to that run.
    ///
    /// # Errors
    /// As [`RunSet::merge_if_needed`].
    pub fn drop_dead(
        &self,
        live: &dyn Fn(ContainerId) -> bool,
    ) -> Result<MergeSummary, ObjectError> {
        let mut next_number = self.changing();
        let mut summary = MergeSummary::default();
        for run in self.runs().iter().filter(|run| is_mergeable(run)) {
            let footer = run.footer();
            if !footer
                .containers
                .iter()
                .chain(&footer.covered)
                .all(|&container| live(container))
            {
                self.merge(&mut next_number, &[Arc::clone(run)], live, &mut summary)?;
            }
        }
        Ok(summary)
    }

    /// Puts a finished run and adds it to the set. A run that can't be read back is reported:
    /// it is stored, and a later process may be luckier.
    fn add_new_run(
        &self,
        next_number: &mut u32,
        writer: RunWriter,
        covered: Vec<ContainerId>,
    ) -> Result<(), ObjectError> {
        let key = self.put(writer, covered)?;
        match self.open_run(next_number, key.id) {
            Ok(run) => self.replace(|runs| runs.push(Arc::new(run))),
            Err(error) => self.report(key, error),
        }
        Ok(())
    }

    fn put(&self, writer: RunWriter, covered: Vec<ContainerId>) -> Result<ObjectKey, StoreError> {
        let (key, object) = writer.finish(covered);
        self.store().put(&key, &object)?;
        self.counters().runs_written.add(1);
        self.counters().bytes_written.add(object.len() as u64);
        Ok(key)
    }

    fn empty_writer(&self) -> RunWriter {
        RunWriter::new(self.vault(), ObjectId::random(), Vec::new(), 0)
    }

    /// Merges `inputs` into as many runs as needed, mostly one. Returns the input that could
    /// not be read, if any: then nothing has changed but that it was reported.
    fn merge(
        &self,
        next_number: &mut u32,
        inputs: &[Arc<RunReader>],
        live: &dyn Fn(ContainerId) -> bool,
        summary: &mut MergeSummary,
    ) -> Result<Option<ObjectKey>, ObjectError> {
        let _room = Room::new(self);
        let mut written = Vec::new();
        let stop = match self.write_merged(inputs, live, &mut written) {
            Ok(()) => {
                let opened = written.iter().map(|key| self.open_run(next_number, key.id));
                match opened.collect::<Result<Vec<_>, _>>() {
                    Ok(outputs) => return self.swap(inputs, outputs, summary).map(|()| None),
                    Err(error) => MergeStop::Output(error),
                }
            }
            Err(stop) => stop,
        };
        for key in written {
            // If this fails too, some entries are there twice, which harms nobody.
            let _ = self.store().delete(&key);
        }
        let InputError { input, error } = match stop {
            MergeStop::Input(input_error) => input_error,
            MergeStop::Output(error) => return Err(error),
        };
        let run = &inputs[input];
        if is_missing(&error) {
            self.refresh(next_number)?;
        } else {
            run.note_damage(&error);
            self.report(run.key(), error);
        }
        Ok(Some(run.key()))
    }

    /// Writes the union of `inputs`; what was put stands in `written`, also after a failure.
    fn write_merged(
        &self,
        inputs: &[Arc<RunReader>],
        live: &dyn Fn(ContainerId) -> bool,
        written: &mut Vec<ObjectKey>,
    ) -> Result<(), MergeStop> {
        let footers = || inputs.iter().map(|run| run.footer());
        let containers = union(footers().map(|footer| &footer.containers), live);
        let covered = union(footers().map(|footer| &footer.covered), live);
        let mut covered = without(covered, &containers);
        let entries = footers().map(|footer| footer.entries as usize).sum();
        let read_ahead = self.read_ahead_blocks(inputs.len());
        for table in self.tables_of_merged(inputs, containers, entries, read_ahead)? {
            let covered_here = take_room(&mut covered, table.len());
            let expected = entries.min(self.entries_max());
            let id = ObjectId::random();
            let mut writer = RunWriter::new(self.vault(), id, table.clone(), expected);
            merge_entries(inputs, &table, read_ahead, |entry| {
                writer.push(entry.prefix, entry.container, entry.slot);
            })?;
            written.push(self.put(writer, covered_here)?);
        }
        while !covered.is_empty() {
            let covered_here = take_room(&mut covered, 0);
            written.push(self.put(self.empty_writer(), covered_here)?);
        }
        Ok(())
    }

    /// The tables of the runs that a merge writes: one, unless it would be more than full; then
    /// entries are counted first, by a merge that writes nothing.
    fn tables_of_merged(
        &self,
        inputs: &[Arc<RunReader>],
        containers: Vec<ContainerId>,
        entries: usize,
        read_ahead: usize,
    ) -> Result<Vec<Vec<ContainerId>>, InputError> {
        if containers.is_empty() {
            return Ok(Vec::new());
        }
        if entries <= self.entries_max() && containers.len() <= RUN_CONTAINERS_MAX {
            return Ok(vec![containers]);
        }
        let mut entries_of = vec![0u64; containers.len()];
        merge_entries(inputs, &containers, read_ahead, |entry| {
            entries_of[entry.container as usize] += 1;
        })?;
        let groups = groups(&entries_of, self.entries_max()).into_iter();
        Ok(groups.map(|group| containers[group].to_vec()).collect())
    }

    /// The outputs are durable: from now on they serve, and the inputs go.
    fn swap(
        &self,
        inputs: &[Arc<RunReader>],
        outputs: Vec<RunReader>,
        summary: &mut MergeSummary,
    ) -> Result<(), ObjectError> {
        summary.runs_merged += inputs.len() as u64;
        summary.runs_written += outputs.len() as u64;
        summary.entries_before += inputs.iter().map(|run| run.footer().entries).sum::<u64>();
        summary.entries_after += outputs.iter().map(|run| run.footer().entries).sum::<u64>();
        self.replace(|runs| {
            runs.retain(|run| inputs.iter().all(|input| input.key() != run.key()));
            runs.extend(outputs.into_iter().map(Arc::new));
        });
        let mut outcome = Ok(());
        for input in inputs {
            outcome = outcome.and(self.store().delete(&input.key()));
        }
        Ok(outcome?)
    }

    /// Where to cut `entries`, of so many `containers`, into runs; sorts them by container if
    /// they are too many for one.
    fn ranges_of_runs(&self, entries: &mut [IndexEntry], containers: usize) -> Vec<Range<usize>> {
        if entries.len() <= self.entries_max() && containers <= RUN_CONTAINERS_MAX {
            let all = 0..entries.len();
            return if all.is_empty() {
                Vec::new()
            } else {
                vec![all]
            };
        }
        let container_of = |entry: &IndexEntry| entry.address.container;
        entries.sort_unstable_by_key(container_of);
        let same = |a: &IndexEntry, b: &IndexEntry| container_of(a) == container_of(b);
        let lengths: Vec<u64> = entries.chunk_by(same).map(|own| own.len() as u64).collect();
        let mut start = 0;
        groups(&lengths, self.entries_max())
            .into_iter()
            .map(|group| {
                let end = start + lengths[group].iter().sum::<u64>() as usize;
                std::mem::replace(&mut start, end)..end
            })
            .collect()
    }

    /// Blocks that a merge may hold, opened and sealed: an eighth of the memory.
    fn inputs_max(&self) -> usize {
        (self.memory_bytes() / 8 / (2 * BLOCK_BYTES)).max(2)
    }

    /// Blocks that a merge reads at once from each of its inputs.
    fn read_ahead_blocks(&self, inputs: usize) -> usize {
        (self.inputs_max() / inputs.max(1)).clamp(1, READ_AHEAD_BLOCKS_MAX)
    }

    /// Entries of a full run.
    fn entries_max(&self) -> usize {
        (self.memory_bytes() / 2 / WRITE_BYTES_PER_ENTRY).clamp(ENTRIES_MAX_LEAST, RUN_ENTRIES_MAX)
    }
}

/// Room for a run being written: the cache is small until this is dropped.
struct Room<'a>(&'a RunSet);

impl<'a> Room<'a> {
    fn new(set: &'a RunSet) -> Self {
        set.limit_cache(set.memory_bytes() / 4);
        Self(set)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.limit_cache(self.0.memory_bytes());
    }
}

/// Why a merge did not come to its end.
enum MergeStop {
    Input(InputError),
    Output(ObjectError),
}

impl From<InputError> for MergeStop {
    fn from(error: InputError) -> Self {
        MergeStop::Input(error)
    }
}

impl From<StoreError> for MergeStop {
    fn from(error: StoreError) -> Self {
        MergeStop::Output(error.into())
    }
}

/// Can the run be rewritten without losing anything?
fn is_mergeable(run: &RunReader) -> bool {
    !run.is_damaged() && !run.footer().has_unknown_fields
}

/// Takes from `covered` what fits into a run beside a table of that length.
fn take_room(covered: &mut Vec<ContainerId>, table: usize) -> Vec<ContainerId> {
    let rest = covered.split_off(covered.len().min(RUN_CONTAINERS_MAX - table));
    std::mem::replace(covered, rest)
}

/// The containers of `entries`, ascending.
fn containers_of(entries: &[IndexEntry]) -> Vec<ContainerId> {
    let mut seen = HashSet::new();
    let mut last = None;
    for entry in entries {
        let container = entry.address.container;
        if last != Some(container) {
            seen.insert(container);
            last = Some(container);
        }
    }
    let mut containers: Vec<_> = seen.into_iter().collect();
    containers.sort_unstable();
    containers
}

/// The containers of `tables` that are `live`, ascending.
fn union<'a>(
    tables: impl Iterator<Item = &'a Vec<ContainerId>>,
    live: &dyn Fn(ContainerId) -> bool,
) -> Vec<ContainerId> {
    let mut all: Vec<_> = tables.flatten().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|&container| live(container));
    all
}

/// `containers`, brought to ascending order, without those in `others`, which ascend.
fn without(mut containers: Vec<ContainerId>, others: &[ContainerId]) -> Vec<ContainerId> {
    containers.sort_unstable();
    containers.dedup();
    containers.retain(|container| others.binary_search(container).is_err());
    containers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::MEMORY_BYTES_MIN;
    use crate::index::test_support::{candidates, open_set, synthetic};
    use crate::object::MemoryStore;

    #[test]
    fn the_cache_makes_room_for_a_run_being_written() {
        let store = Arc::new(MemoryStore::new());
        let set = open_set(&store, MEMORY_BYTES_MIN);
        let mut entries = synthetic(1, 0, 130_000, 500);
        set.write_run(&mut entries, &[]).unwrap();
        let look_around = || {
            for entry in entries.iter().step_by(100) {
                candidates(&set, entry.prefix);
            }
            set.statistics().cache_bytes as usize
        };
        let alone = look_around();
        assert!(alone > MEMORY_BYTES_MIN / 4);
        let room = Room::new(&set);
        assert!(look_around() <= MEMORY_BYTES_MIN / 4);
        drop(room);
        assert_eq!(look_around(), alone, "afterwards it may grow");
    }
}

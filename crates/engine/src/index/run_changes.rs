//! Writing runs and merging them: the part of [`RunSet`] that changes the store.
//!
//! Enter: entries of new chunks, or runs that are there. Leave: new `index/` objects, each written as
//! a stream and durable; after a merge the old ones are deleted. Which runs are merged stands at the
//! top of `merge`, what holds at a crash, and which memory is used, at the top of `run_set`.
//!
//! A merge may go on in one thread while others look up and write runs: it takes the runs that are
//! there when it begins, and holds nobody up but another merge. It can be cancelled at any time,
//! and leaves nothing then.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use crate::container::{ChunkAddress, ContainerId};
use crate::format::ObjectError;
use crate::object::{ObjectId, ObjectKey, StoreError};

use super::block::BLOCK_BYTES;
use super::footer::{RUN_CONTAINERS_MAX, RUN_ENTRIES_MAX};
use super::merge::{InputError, MergedEntries, RATIO, choose, groups};
use super::residency::Reservation;
use super::run_reader::{RunReader, is_missing};
use super::run_writer::{ContainerTable, RunWriter, partition_keys};
use super::{IndexEntry, RunEntry, RunSet};

/// Blocks that a merge reads from a run at once, at most.
const READ_AHEAD_BLOCKS_MAX: usize = 64;

/// Entries from one look whether a merge was cancelled to the next.
const CANCEL_ENTRIES: u64 = 1 << 14;

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

/// Does a container exist, so that its entries are kept?
pub type IsLive<'a> = &'a dyn Fn(ContainerId) -> bool;

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
        self.write_run_with(entries, covered, &|_| 0)
    }

    /// As [`RunSet::write_run`], and notes for each container how long its sealed metadata is,
    /// where `metadata_bytes` says so: 0 says nothing.
    ///
    /// # Errors
    /// As [`RunSet::write_run`].
    pub fn write_run_with(
        &self,
        entries: &mut [IndexEntry],
        covered: &[ContainerId],
        metadata_bytes: &dyn Fn(ContainerId) -> u32,
    ) -> Result<(), ObjectError> {
        let containers = containers_of(entries);
        let mut covered = without(covered.to_vec(), &containers);
        for range in ranges_of_runs(entries, containers.len()) {
            let entries = &mut entries[range];
            entries.sort_unstable();
            let ids = containers_of(entries);
            let numbers: HashMap<_, _> = ids.iter().copied().zip(0u32..).collect();
            let covered_here = take_room(&mut covered, ids.len());
            let table = ContainerTable {
                metadata_bytes: ids.iter().map(|&id| metadata_bytes(id)).collect(),
                generations: vec![self.next_generation(); ids.len()],
                ids,
            };
            let sorted = entries.iter().map(|entry| {
                let ChunkAddress { container, slot } = entry.address;
                RunEntry {
                    prefix: entry.prefix,
                    container: numbers[&container],
                    slot,
                }
            });
            self.write_new_run(table, sorted, covered_here)?;
        }
        while !covered.is_empty() {
            let covered_here = take_room(&mut covered, 0);
            self.write_new_run(ContainerTable::default(), std::iter::empty(), covered_here)?;
        }
        Ok(())
    }

    /// Stores entries that name containers by their place in `containers`, which says how long the
    /// metadata of each is, too; the order of both is changed. `generation` says how new each is. Otherwise as [`RunSet::write_run`],
    /// but takes no memory of its own for entries.
    ///
    /// # Panics
    /// When there are too many containers for a run.
    pub(super) fn write_numbered(
        &self,
        containers: &[(ContainerId, u32)],
        entries: &mut [RunEntry],
        generation: &dyn Fn(ContainerId) -> u32,
    ) -> Result<(), ObjectError> {
        let mut has_entries = vec![false; containers.len()];
        for entry in entries.iter() {
            has_entries[entry.container as usize] = true;
        }
        let mut order: Vec<u32> = (0..containers.len() as u32).collect();
        order.sort_unstable_by_key(|&number| containers[number as usize].0);
        let mut table = ContainerTable::default();
        let mut covered = Vec::new();
        let mut new_numbers = vec![0u32; containers.len()];
        for number in order {
            let (id, metadata_bytes) = containers[number as usize];
            if !has_entries[number as usize] {
                covered.push(id);
                continue;
            }
            if table.ids.last() != Some(&id) {
                table.ids.push(id);
                table.metadata_bytes.push(metadata_bytes);
            }
            new_numbers[number as usize] = table.ids.len() as u32 - 1;
        }
        for entry in entries.iter_mut() {
            entry.container = new_numbers[entry.container as usize];
        }
        entries.sort_unstable();
        let covered = without(covered, &table.ids);
        table.generations = table.ids.iter().map(|&id| generation(id)).collect();
        self.write_new_run(table, entries.iter().copied(), covered)
    }

    /// Writes sorted entries, equal ones once, and adds the run to the set.
    fn write_new_run(
        &self,
        table: ContainerTable,
        sorted: impl Iterator<Item = RunEntry>,
        covered: Vec<ContainerId>,
    ) -> Result<(), ObjectError> {
        let (partition_keys, bytes) = partition_keys(self.memory_bytes() / 7);
        let _room = self.reserve(bytes.min(32 * sorted.size_hint().1.unwrap_or(usize::MAX)));
        let mut writer = self.begin(table, partition_keys)?;
        let mut last = None;
        for entry in sorted {
            if last != Some(entry) {
                writer.push(entry.prefix, entry.container, entry.slot)?;
                last = Some(entry);
            }
        }
        let key = self.finish(writer, covered)?;
        let mut next_number = self.changing();
        match self.open_run(&mut next_number, key.id) {
            Ok(run) => self.replace(|runs| add(runs, run)),
            // It is stored, and a later process may be luckier.
            Err(error) => self.report(key, error),
        }
        Ok(())
    }

    /// The generation of containers that come in now.
    pub(super) fn next_generation(&self) -> u32 {
        let runs = self.runs();
        let footers = runs.iter().map(|run| run.footer());
        let known = footers.flat_map(|footer| footer.generations.iter());
        known
            .max()
            .map_or(1, |generation| generation.saturating_add(1))
    }

    /// Are there runs that [`RunSet::merge`] would merge?
    #[must_use]
    pub fn needs_merge(&self) -> bool {
        let mergeable = self.mergeable(&HashSet::new());
        choose(mergeable.into_iter(), RATIO, usize::MAX).is_some()
    }

    /// Merges runs until each is at least twice as large as all smaller ones together. Entries of
    /// containers that are not `live` are dropped; `live` must know every container that is named
    /// by a run that was there when this was opened, or was written through it. Stops soon after `cancel` is set.
    ///
    /// # Errors
    /// When the store can't take a new run or delete an old one. The index is whole in any
    /// case. Runs that can't be read are left as they are ([`RunSet::damaged`]).
    pub fn merge(
        &self,
        live: IsLive<'_>,
        cancel: &AtomicBool,
    ) -> Result<MergeSummary, ObjectError> {
        self.merge_by(RATIO, live, cancel)
    }

    /// Merges all runs into one, or as many as it takes; otherwise as [`RunSet::merge`].
    ///
    /// # Errors
    /// As [`RunSet::merge`].
    pub fn merge_all(&self, live: IsLive<'_>) -> Result<MergeSummary, ObjectError> {
        self.merge_by(u64::MAX, live, &AtomicBool::new(false))
    }

    fn merge_by(
        &self,
        ratio: u64,
        live: IsLive<'_>,
        cancel: &AtomicBool,
    ) -> Result<MergeSummary, ObjectError> {
        let _one_at_a_time = self
            .merging()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut summary = MergeSummary::default();
        let mut unreadable = HashSet::new();
        while !cancel.load(Ordering::Relaxed) {
            let mergeable = self.mergeable(&unreadable);
            let Some(inputs) = choose(mergeable.into_iter(), ratio, self.inputs_max()) else {
                break;
            };
            unreadable.extend(self.merge_inputs(&inputs, live, cancel, &mut summary)?);
        }
        Ok(summary)
    }

    /// Rewrites every run that names a container which is not `live`, without it. For after a
    /// prune: merges would do so only when they come to that run.
    ///
    /// # Errors
    /// As [`RunSet::merge`].
    pub fn drop_dead(&self, live: IsLive<'_>) -> Result<MergeSummary, ObjectError> {
        let _one_at_a_time = self
            .merging()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut summary = MergeSummary::default();
        let cancel = AtomicBool::new(false);
        for run in self.mergeable(&HashSet::new()) {
            let footer = run.footer();
            let mut named = footer.containers.iter().chain(&footer.covered);
            if !named.all(|&container| live(container)) {
                self.merge_inputs(&[run], live, &cancel, &mut summary)?;
            }
        }
        Ok(summary)
    }

    /// Runs that can be rewritten without losing anything: those of others that came later are left to others.
    fn mergeable(&self, unreadable: &HashSet<ObjectKey>) -> Vec<Arc<RunReader>> {
        let is_mergeable = |run: &&Arc<RunReader>| {
            !run.is_damaged()
                && !run.footer().has_unknown_fields
                && !unreadable.contains(&run.key())
                && !self.is_late(run.key())
        };
        self.runs().iter().filter(is_mergeable).cloned().collect()
    }

    /// Merges `inputs` into one run, or none when nothing in them is live. Returns the input that
    /// could not be read, if any: then nothing has changed but that it was reported.
    fn merge_inputs(
        &self,
        inputs: &[Arc<RunReader>],
        live: IsLive<'_>,
        cancel: &AtomicBool,
        summary: &mut MergeSummary,
    ) -> Result<Option<ObjectKey>, ObjectError> {
        let _room = self.room_for_merge(inputs);
        let stop = match self.write_merged(inputs, live, cancel) {
            Ok(written) => return self.swap(inputs, written, summary).map(|()| None),
            Err(stop) => stop,
        };
        let InputError { input, error } = match stop {
            MergeStop::Input(input_error) => input_error,
            MergeStop::Output(error) => return Err(error),
            MergeStop::Cancelled => return Ok(None),
        };
        let run = &inputs[input];
        if is_missing(&error) {
            self.refresh(&mut self.changing())?;
        } else {
            run.note_damage(&error);
            self.report(run.key(), error);
        }
        Ok(Some(run.key()))
    }

    /// Writes the union of `inputs`, durably.
    fn write_merged(
        &self,
        inputs: &[Arc<RunReader>],
        live: IsLive<'_>,
        cancel: &AtomicBool,
    ) -> Result<Option<ObjectKey>, MergeStop> {
        let footers = || inputs.iter().map(|run| run.footer());
        let ids = union(footers().map(|footer| &footer.containers), live);
        let covered = union(footers().map(|footer| &footer.covered), live);
        let covered = without(covered, &ids);
        if ids.is_empty() && covered.is_empty() {
            return Ok(None);
        }
        let read_ahead = self.read_ahead_blocks(inputs.len());
        let mut entries = MergedEntries::new(inputs, &ids, read_ahead)?;
        let known = |&id: &ContainerId| {
            let mut lengths = footers().filter_map(|footer| footer.metadata_bytes_of(id));
            lengths.next().unwrap_or(0)
        };
        let generation = |&id: &ContainerId| {
            let generations = footers().map(|footer| footer.generation_of(id));
            generations.max().unwrap_or(0)
        };
        let table = ContainerTable {
            metadata_bytes: ids.iter().map(known).collect(),
            generations: ids.iter().map(generation).collect(),
            ids,
        };
        let (partition_keys, _) = partition_keys(self.memory_bytes() / 7);
        let mut writer = self.begin(table, partition_keys)?;
        let mut count = 0u64;
        while let Some(entry) = entries.next()? {
            if count.is_multiple_of(CANCEL_ENTRIES) && cancel.load(Ordering::Relaxed) {
                return Err(MergeStop::Cancelled);
            }
            count += 1;
            writer.push(entry.prefix, entry.container, entry.slot)?;
        }
        drop(entries);
        Ok(Some(self.finish(writer, covered)?))
    }

    /// Calls `visit` with the entries of each prefix that has several, in the order of prefixes: chunks that are
    /// stored more than once, but for the rare ones that only begin alike. Reads all of the index once.
    ///
    /// # Errors
    /// When a run can't be read: what was visited until then is right.
    pub fn visit_repeated(
        &self,
        visit: &mut dyn FnMut(&[ChunkAddress]),
    ) -> Result<(), ObjectError> {
        let runs = self.runs();
        let ids = union(runs.iter().map(|run| &run.footer().containers), &|_| true);
        let read_ahead = self.read_ahead_blocks(runs.len());
        let failed = |InputError { error, .. }: InputError| error;
        let mut entries = MergedEntries::new(&runs, &ids, read_ahead).map_err(failed)?;
        let (mut prefix, mut same) = (0, Vec::new());
        while let Some(entry) = entries.next().map_err(failed)? {
            if entry.prefix != prefix {
                if same.len() > 1 {
                    visit(&same);
                }
                same.clear();
                prefix = entry.prefix;
            }
            same.push(ChunkAddress {
                container: ids[entry.container as usize],
                slot: entry.slot,
            });
        }
        if same.len() > 1 {
            visit(&same);
        }
        Ok(())
    }

    /// The output is durable: from now on it serves, and the inputs go.
    fn swap(
        &self,
        inputs: &[Arc<RunReader>],
        written: Option<ObjectKey>,
        summary: &mut MergeSummary,
    ) -> Result<(), ObjectError> {
        let mut next_number = self.changing();
        let output = match written.map(|key| self.open_run(&mut next_number, key.id)) {
            None => None,
            Some(Ok(run)) => Some(run),
            Some(Err(error)) => {
                // If this fails too, some entries are there twice, which harms nobody.
                let _ = written.map(|key| self.store().delete(&key));
                return Err(error);
            }
        };
        summary.runs_merged += inputs.len() as u64;
        summary.entries_before += inputs.iter().map(|run| run.footer().entries).sum::<u64>();
        if let Some(output) = &output {
            summary.runs_written += 1;
            summary.entries_after += output.footer().entries;
        }
        self.replace(|runs| {
            runs.retain(|run| inputs.iter().all(|input| input.key() != run.key()));
            if let Some(output) = output {
                add(runs, output);
            }
        });
        drop(next_number);
        let mut outcome = Ok(());
        for input in inputs {
            outcome = outcome.and(self.store().delete(&input.key()));
        }
        Ok(outcome?)
    }

    fn begin(
        &self,
        table: ContainerTable,
        partition_keys: usize,
    ) -> Result<RunWriter<'_>, StoreError> {
        let id = ObjectId::random();
        RunWriter::begin(self.store(), self.vault(), id, table, partition_keys)
    }

    fn finish(
        &self,
        writer: RunWriter<'_>,
        covered: Vec<ContainerId>,
    ) -> Result<ObjectKey, StoreError> {
        let (key, bytes) = writer.finish(covered)?;
        self.counters().runs_written.add(1);
        self.counters().bytes_written.add(bytes);
        Ok(key)
    }

    /// What a merge takes: the writer's partition, blocks read ahead, and the table three times
    /// over (in the writer, as numbers for each input and on the way to the store).
    fn room_for_merge(&self, inputs: &[Arc<RunReader>]) -> Reservation<'_> {
        let (_, writer_bytes) = partition_keys(self.memory_bytes() / 7);
        let blocks = self.read_ahead_blocks(inputs.len()) * inputs.len();
        let footers: usize = inputs.iter().map(|run| run.footer().memory_bytes()).sum();
        self.reserve(writer_bytes + blocks * 2 * BLOCK_BYTES + 3 * footers)
    }

    /// Blocks that a merge may hold, opened and sealed: a 16th of the memory.
    fn inputs_max(&self) -> usize {
        (self.memory_bytes() / 16 / (2 * BLOCK_BYTES)).max(2)
    }

    /// Blocks that a merge reads at once from each of its inputs.
    fn read_ahead_blocks(&self, inputs: usize) -> usize {
        (self.inputs_max() / inputs.max(1)).clamp(1, READ_AHEAD_BLOCKS_MAX)
    }
}

/// Adds a run, unless somebody who listed the store has found it before.
fn add(runs: &mut Vec<Arc<RunReader>>, run: RunReader) {
    if runs.iter().all(|open| open.key() != run.key()) {
        runs.push(Arc::new(run));
    }
}

/// Why a merge did not come to its end.
enum MergeStop {
    Input(InputError),
    Output(ObjectError),
    Cancelled,
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

/// Where to cut `entries`, of so many `containers`, into runs; sorts them by container if they are
/// too many for one.
fn ranges_of_runs(entries: &mut [IndexEntry], containers: usize) -> Vec<Range<usize>> {
    if entries.len() <= RUN_ENTRIES_MAX && containers <= RUN_CONTAINERS_MAX {
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
    groups(&lengths, RUN_ENTRIES_MAX)
        .into_iter()
        .map(|group| {
            let end = start + lengths[group].iter().sum::<u64>() as usize;
            std::mem::replace(&mut start, end)..end
        })
        .collect()
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
    live: IsLive<'_>,
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

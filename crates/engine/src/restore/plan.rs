//! Restores many streams at once: every container is read once.
//!
//! Streams enter with [`RestorePlan::add_stream`], or step by step through a [`StreamPlanner`], which
//! works out from the containers' metadata which chunks go where and whether the stream's check
//! value holds. Then [`RestorePlan::execute`] goes from container to container, in the order in which the
//! streams first need them, on the threads of a [`ReadingRoom`]: needed groups are read and
//! decompressed once, every chunk is verified by its full fingerprint, and neighbouring chunks of
//! one stream are handed to the sink in one piece. Memory: [`RestorePlan::memory_bytes`]; when it is
//! executed, what the room fetches ahead, with the metadata of the containers it comes from, and a
//! group a thread.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::reader::{ReadError, Reader, Runs, add_to_check};
use crate::container::{ContainerId, GroupOpener, GroupRead, LoadedSection};
use crate::fingerprint::{CheckValue, StreamCheck};
use crate::format::ObjectError;
use crate::pipeline::{Fetching, ReadingRoom, ReadingWork, Stage, Stopped};
use crate::recipe::{Recipe, Run};

/// Where restored bytes go. Called from several threads; writes of one stream come in any
/// order and never overlap.
pub trait ChunkSink: Sync {
    /// Bytes of a stream, verified.
    fn write(&self, stream: u32, offset: u64, bytes: &[u8]);

    /// Bytes of a stream from `offset` on that can't be had: the stream is incomplete. Stands for
    /// `parts` of the parts that [`RestorePlan::add_stream`] announced.
    fn lost(&self, stream: u32, offset: u64, parts: usize, error: &str);

    /// Is nothing more wanted? Streams that are not complete then stay so.
    fn is_cancelled(&self) -> bool;
}

/// Chunks of one container that are part of a stream.
#[derive(Debug, Clone, Copy)]
struct Piece {
    stream: u32,
    first_chunk: u32,
    chunk_count: u32,
    group_count: u32,
    offset: u64,
}

/// How a stream will come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamParts {
    /// In how many parts, each written or lost: zero for a stream without stored bytes.
    pub parts: usize,
    /// Bytes in them; the others are in holes.
    pub stored_bytes: u64,
}

/// What a step of a [`StreamPlanner`] added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedStep {
    /// What of the stream is in the plan now that was not before.
    pub parts: StreamParts,
    /// Is that the rest of it?
    pub is_end: bool,
}

/// A stream on its way into plans: one that is too long for a plan goes through several.
#[derive(Debug)]
pub struct StreamPlanner {
    reader: Reader,
    runs: Runs,
    offset: u64,
    actual: StreamCheck,
    check: Option<CheckValue>,
}

impl StreamPlanner {
    /// Begins with the stream of a recipe, whose check value, if one is given, must be right.
    #[must_use]
    pub fn new(reader: &Reader, recipe: &Recipe, check: Option<CheckValue>) -> Self {
        Self {
            reader: reader.clone(),
            runs: reader.runs(recipe),
            offset: 0,
            actual: reader.containers().fingerprinter().check(),
            check,
        }
    }

    /// Adds what comes next, to the end or until the plan takes `bytes_max` of memory, but at least
    /// one run, under a number of the caller's choice that no other stream of the plan has.
    ///
    /// # Errors
    /// As [`RestorePlan::add_stream`]. Nothing of this step is in the plan then.
    pub fn add_to(
        &mut self,
        plan: &mut RestorePlan,
        stream: u32,
        bytes_max: usize,
    ) -> Result<PlannedStep, ReadError> {
        let step = self.add_step(plan, stream, bytes_max);
        if step.is_err() {
            plan.take_back(stream);
        }
        step
    }

    fn add_step(
        &mut self,
        plan: &mut RestorePlan,
        stream: u32,
        bytes_max: usize,
    ) -> Result<PlannedStep, ReadError> {
        let mut parts = StreamParts::default();
        let is_end = loop {
            if plan.bytes >= bytes_max && parts.parts > 0 {
                break false;
            }
            let Some(run) = self.runs.next() else {
                break true;
            };
            let run = run?;
            let located = self.reader.locate(&run)?;
            add_to_check(&mut self.actual, &run, located.as_ref());
            if let (Run::Slots { container, .. }, Some(located)) = (&run, located) {
                let section = &located.section.section;
                let last = located.chunks.end - 1;
                let groups = section.group_of(last) - section.group_of(located.chunks.start) + 1;
                parts.parts += groups;
                parts.stored_bytes += run.bytes();
                let piece = Piece {
                    stream,
                    first_chunk: located.chunks.start as u32,
                    chunk_count: located.chunks.len() as u32,
                    group_count: groups as u32,
                    offset: self.offset,
                };
                plan.push(*container, piece);
            }
            self.offset += run.bytes();
        };
        let actual = || self.actual.finish();
        if is_end && self.check.is_some_and(|check| check != actual()) {
            return Err(ReadError::Check);
        }
        Ok(PlannedStep { parts, is_end })
    }
}

/// Streams to be restored together.
#[derive(Debug, Default)]
pub struct RestorePlan {
    containers: Vec<(ContainerId, Vec<Piece>)>,
    numbers: HashMap<ContainerId, usize>,
    bytes: usize,
}

/// Memory that a container takes in a plan: its place in the list, which grows by doubling, and in the
/// map.
const CONTAINER_BYTES: usize = 2 * size_of::<(ContainerId, Vec<Piece>)>() + 64;

impl RestorePlan {
    /// Memory that what waits to be restored takes: 24 to 48 bytes a run, and some 150 a container.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a whole stream under a number of the caller's choice, and returns in how many parts it
    /// will come.
    ///
    /// # Errors
    /// When its recipe does not agree with the containers' metadata, that metadata can't be
    /// read, or its check value differs; the stream is then not part of the plan.
    pub fn add_stream(
        &mut self,
        reader: &Reader,
        stream: u32,
        recipe: &Recipe,
        check: Option<CheckValue>,
    ) -> Result<StreamParts, ReadError> {
        let mut planner = StreamPlanner::new(reader, recipe, check);
        Ok(planner.add_to(self, stream, usize::MAX)?.parts)
    }

    /// Takes the pieces of the stream that came last out again.
    fn take_back(&mut self, stream: u32) {
        for (_, pieces) in &mut self.containers {
            while pieces.last().is_some_and(|piece| piece.stream == stream) {
                pieces.pop();
            }
        }
    }

    /// The containers that are needed for what is in the plan.
    pub fn containers(&self) -> impl Iterator<Item = ContainerId> {
        let needed = |(container, pieces): &(ContainerId, Vec<Piece>)| {
            (!pieces.is_empty()).then_some(*container)
        };
        self.containers.iter().filter_map(needed)
    }

    fn push(&mut self, container: ContainerId, piece: Piece) {
        let next = self.containers.len();
        let number = *self.numbers.entry(container).or_insert(next);
        if number == next {
            self.containers.push((container, Vec::new()));
            self.bytes += CONTAINER_BYTES;
        }
        let pieces = &mut self.containers[number].1;
        let before = pieces.capacity();
        pieces.push(piece);
        self.bytes += (pieces.capacity() - before) * size_of::<Piece>();
    }

    /// Restores all streams added so far, and empties the plan. Each (piece, group) of a stream
    /// becomes one call of the sink.
    pub fn execute(&mut self, reader: &Reader, room: &ReadingRoom, sink: &dyn ChunkSink) {
        let plan = std::mem::take(self);
        let work = Restoring {
            reader,
            read_bytes_max: room.read_bytes_max(),
            sink,
        };
        let meter = room.stages().meter(Stage::Write);
        meter.set_threads(room.compute_threads());
        room.run(&plan.containers, &work, || ());
    }
}

/// A plan on its way into the files.
struct Restoring<'a> {
    reader: &'a Reader,
    read_bytes_max: usize,
    sink: &'a dyn ChunkSink,
}

/// A container that is being read, and what each of its groups is needed for.
struct Wanted {
    loaded: Arc<LoadedSection>,
    needs: Vec<Vec<Need>>,
    /// What this takes in memory while it waits, shared out over its reads.
    bytes_a_read: usize,
}

/// Chunks of one group that are part of a stream.
#[derive(Debug, Clone)]
struct Need {
    stream: u32,
    offset: u64,
    chunks: Range<usize>,
}

/// Sealed groups of a container.
struct FetchedGroups {
    wanted: Arc<Wanted>,
    read: GroupRead,
    bytes: Vec<u8>,
}

impl ReadingWork for Restoring<'_> {
    type Job = (ContainerId, Vec<Piece>);
    type Fetched = FetchedGroups;

    fn fetch(
        &self,
        (container, pieces): &Self::Job,
        fetching: &Fetching<'_, FetchedGroups>,
    ) -> Result<(), Stopped> {
        if pieces.is_empty() {
            return Ok(());
        }
        let section = || self.reader.containers().section(*container);
        let loaded = match fetching.read(0, section) {
            Ok(loaded) => loaded,
            Err(error) => {
                let error = error.to_string();
                for piece in pieces {
                    let parts = piece.group_count as usize;
                    self.sink.lost(piece.stream, piece.offset, parts, &error);
                }
                return Ok(());
            }
        };
        let mut wanted = Wanted::new(loaded, pieces);
        let groups = wanted.groups();
        let reads = wanted
            .loaded
            .section
            .group_reads(&groups, self.read_bytes_max);
        wanted.bytes_a_read = wanted.memory_bytes() / reads.len().max(1);
        let wanted = Arc::new(wanted);
        for read in reads {
            self.fetch_groups(&wanted, read, fetching)?;
        }
        Ok(())
    }

    fn compute(&self, fetched: FetchedGroups, opener: &mut GroupOpener) {
        let FetchedGroups {
            wanted,
            read,
            mut bytes,
        } = fetched;
        let section = &wanted.loaded.section;
        for &group in &read.groups {
            if self.sink.is_cancelled() {
                return;
            }
            let sealed = &mut bytes[read.range_of(section, group)];
            self.restore_group(&wanted, group, sealed, opener);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }
}

impl Wanted {
    fn new(loaded: Arc<LoadedSection>, pieces: &[Piece]) -> Self {
        let section = &loaded.section;
        let mut needs: Vec<Vec<Need>> = vec![Vec::new(); section.groups.len()];
        for piece in pieces {
            let mut offset = piece.offset;
            let mut chunk = piece.first_chunk as usize;
            let end = chunk + piece.chunk_count as usize;
            while chunk < end {
                let index = section.group_of(chunk);
                let group = &section.groups[index];
                let group_end = (group.first_chunk + group.chunk_count) as usize;
                let chunks = chunk..end.min(group_end);
                let lengths = &section.lengths[chunks.clone()];
                chunk = chunks.end;
                needs[index].push(Need {
                    stream: piece.stream,
                    offset,
                    chunks,
                });
                offset += lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
            }
        }
        Self {
            loaded,
            needs,
            bytes_a_read: 0,
        }
    }

    fn memory_bytes(&self) -> usize {
        let needs: usize = self.needs.iter().map(Vec::capacity).sum();
        self.loaded.section.memory_bytes() + needs * size_of::<Need>()
    }

    /// The groups that are needed, ascending.
    fn groups(&self) -> Vec<usize> {
        let all = 0..self.needs.len();
        all.filter(|&index| !self.needs[index].is_empty()).collect()
    }
}

impl Restoring<'_> {
    /// Fetches groups, together if that can be done.
    fn fetch_groups(
        &self,
        wanted: &Arc<Wanted>,
        read: GroupRead,
        fetching: &Fetching<'_, FetchedGroups>,
    ) -> Result<(), Stopped> {
        let room = fetching.reserve(read.bytes + wanted.bytes_a_read)?;
        let containers = self.reader.containers();
        let fetch = || containers.fetch_groups(&wanted.loaded, &read);
        match fetching.read(read.bytes, fetch) {
            Ok(bytes) => {
                let wanted = Arc::clone(wanted);
                let fetched = FetchedGroups {
                    wanted,
                    read,
                    bytes,
                };
                fetching.hand_on(room, fetched)
            }
            Err(_) if read.groups.len() > 1 => {
                drop(room);
                for read in read.one_by_one(&wanted.loaded.section) {
                    self.fetch_groups(wanted, read, fetching)?;
                }
                Ok(())
            }
            Err(error) => {
                self.lose_group(wanted, read.groups[0], &error);
                Ok(())
            }
        }
    }

    fn lose_group(&self, wanted: &Wanted, group: usize, error: &ObjectError) {
        let error = error.to_string();
        for need in &wanted.needs[group] {
            self.sink.lost(need.stream, need.offset, 1, &error);
        }
    }

    fn restore_group(
        &self,
        wanted: &Wanted,
        group: usize,
        sealed: &mut [u8],
        opener: &mut GroupOpener,
    ) {
        let stages = opener.stages().clone();
        let plain = match opener.open(&wanted.loaded, group, sealed) {
            Ok(plain) => plain,
            Err(error) => return self.lose_group(wanted, group, &error),
        };
        let places = ChunkPlaces::of(&wanted.loaded, group);
        let needs = &wanted.needs[group];
        let verify = stages.meter(Stage::Verify);
        let damage = verify.busy(plain.len() as u64, || {
            self.damage(&wanted.loaded, &places, plain, needs)
        });
        for need in needs {
            let damaged = damage.iter().find(|(chunk, _)| need.chunks.contains(chunk));
            match damaged {
                None => {
                    let bytes = &plain[places.range(&need.chunks)];
                    self.sink.write(need.stream, need.offset, bytes);
                }
                Some((_, error)) => {
                    let error = error.to_string();
                    self.sink.lost(need.stream, need.offset, 1, &error);
                }
            }
        }
    }

    /// The needed chunks of a group that do not have their fingerprints. Each is looked at once,
    /// however many streams it goes to.
    fn damage(
        &self,
        loaded: &LoadedSection,
        places: &ChunkPlaces,
        plain: &[u8],
        needs: &[Need],
    ) -> Vec<(usize, ObjectError)> {
        let mut is_verified = vec![false; places.starts.len() - 1];
        let mut damage = Vec::new();
        for chunk in needs.iter().flat_map(|need| need.chunks.clone()) {
            let is_known = &mut is_verified[chunk - places.first];
            if std::mem::replace(is_known, true) {
                continue;
            }
            let bytes = &plain[places.range(&(chunk..chunk + 1))];
            if let Err(error) = self.reader.containers().verify_chunk(loaded, chunk, bytes) {
                damage.push((chunk, error));
            }
        }
        damage
    }
}

/// Where the chunks of a group stand in its plaintext.
struct ChunkPlaces {
    first: usize,
    /// One more than there are chunks.
    starts: Vec<usize>,
}

impl ChunkPlaces {
    fn of(loaded: &LoadedSection, group: usize) -> Self {
        let section = &loaded.section;
        let group = &section.groups[group];
        let first = group.first_chunk as usize;
        let mut starts = Vec::with_capacity(group.chunk_count as usize + 1);
        let mut start = 0usize;
        starts.push(start);
        for &length in &section.lengths[first..first + group.chunk_count as usize] {
            start += length as usize;
            starts.push(start);
        }
        Self { first, starts }
    }

    fn range(&self, chunks: &Range<usize>) -> Range<usize> {
        self.starts[chunks.start - self.first]..self.starts[chunks.end - self.first]
    }
}

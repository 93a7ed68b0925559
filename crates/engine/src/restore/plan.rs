//! Restores many streams at once: every container is read once.
//!
//! Streams enter with [`RestorePlan::add_stream`], or step by step through a [`StreamPlanner`], which
//! works out from the containers' metadata which chunks go where and whether the stream's check
//! value holds. Then [`RestorePlan::execute`] goes from container to container, in the order in which the
//! streams first need them, on the threads of a [`ReadingRoom`] (`restoring.rs`). Chunks that are stored as
//! deltas bring their bases into the plan (`delta_nodes.rs`). Memory: [`RestorePlan::memory_bytes`]; when
//! it is executed, what the room fetches ahead, with the metadata of the containers it comes from, and
//! for each thread a group and the chunks of one chain of deltas.

use std::collections::HashMap;
use std::sync::Arc;

use super::chunks::StoredChunk;
use super::delta_nodes::{DeltaNodes, Output};
use super::reader::{LocatedRun, ReadError, Reader, Runs, add_to_check};
use super::restoring;
use crate::container::{
    ContainerId, ContainerKind, ContainerReader, LoadedSection, Section, SectionPlace, Slot,
};
use crate::fingerprint::{CheckValue, StreamCheck};
use crate::pipeline::{ReadingRoom, Stage};
use crate::recipe::Recipe;

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

/// Chunks in consecutive slots of one container, stored whole, that are part of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub stream: u32,
    pub first: Slot,
    pub chunk_count: u32,
    pub group_count: u32,
    pub offset: u64,
}

/// What is needed of a container in one of its places.
#[derive(Debug)]
pub(super) struct Job {
    pub place: SectionPlace,
    /// Is it a container of deltas? Those come first.
    pub is_deltas: bool,
    pub pieces: Vec<Piece>,
    /// Deltas, and bases of deltas, by their numbers.
    pub nodes: Vec<u32>,
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
    /// What is left of the run that a step ended in.
    rest: Option<LocatedRun>,
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
            rest: None,
            offset: 0,
            actual: reader.containers().fingerprinter().check(),
            check,
        }
    }

    /// Adds what comes next, to the end or until the plan takes `bytes_max` of memory, but at least
    /// one part, under a number of the caller's choice that no other stream of the plan has.
    ///
    /// # Errors
    /// As [`RestorePlan::add_stream`]. Nothing of this step is in the plan then.
    pub fn add_to(
        &mut self,
        plan: &mut RestorePlan,
        stream: u32,
        bytes_max: usize,
    ) -> Result<PlannedStep, ReadError> {
        let before = plan.nodes.mark();
        let step = self.add_step(plan, stream, bytes_max);
        if step.is_err() {
            plan.take_back(stream);
            plan.take_back_nodes(before);
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
            if plan.memory_bytes() >= bytes_max && parts.parts > 0 {
                break false;
            }
            let located = match self.rest.take() {
                Some(located) => located,
                None => {
                    let Some((run, located)) = self.runs.next_located()? else {
                        break true;
                    };
                    add_to_check(&mut self.actual, &run, located.as_ref());
                    let Some(located) = located else {
                        self.offset += run.bytes();
                        continue;
                    };
                    located
                }
            };
            let added = self.add_front(plan, stream, located)?;
            parts.parts += added.parts;
            parts.stored_bytes += added.stored_bytes;
        };
        let actual = || self.actual.finish();
        if is_end && self.check.is_some_and(|check| check != actual()) {
            return Err(ReadError::Check);
        }
        Ok(PlannedStep { parts, is_end })
    }

    /// Adds the first chunks of a run: those up to the next delta, or one delta.
    fn add_front(
        &mut self,
        plan: &mut RestorePlan,
        stream: u32,
        mut located: LocatedRun,
    ) -> Result<StreamParts, ReadError> {
        let loaded = Arc::clone(&located.section);
        let section = &loaded.section;
        let first = located.chunks.start;
        let whole = |section: &Section, chunks: std::ops::Range<usize>| {
            let next = chunks.clone().find(|&chunk| section.delta(chunk).is_some());
            chunks.start..next.unwrap_or(chunks.end)
        };
        let whole = match section.kind {
            ContainerKind::Deltas => whole(section, located.chunks.clone()),
            ContainerKind::Data | ContainerKind::Metadata => located.chunks.clone(),
        };
        let (end, parts) = if whole.is_empty() {
            let output = Output {
                stream,
                offset: self.offset,
            };
            let chunk = first;
            plan.push_delta(
                self.reader.containers(),
                StoredChunk {
                    loaded: Arc::clone(&loaded),
                    chunk,
                },
                output,
            )?;
            (first + 1, 1)
        } else {
            let groups = section.group_of(whole.end - 1) - section.group_of(first) + 1;
            let piece = Piece {
                stream,
                first: section.slots[first],
                chunk_count: whole.len() as u32,
                group_count: groups as u32,
                offset: self.offset,
            };
            plan.push_piece(&loaded, piece);
            (whole.end, groups)
        };
        let lengths = &section.lengths[first..end];
        let stored_bytes = lengths.iter().map(|&length| u64::from(length)).sum();
        self.offset += stored_bytes;
        located.chunks.start = end;
        self.rest = Some(located).filter(|located| !located.chunks.is_empty());
        Ok(StreamParts {
            parts,
            stored_bytes,
        })
    }
}

/// Streams to be restored together.
#[derive(Debug, Default)]
pub struct RestorePlan {
    jobs: Vec<Job>,
    numbers: HashMap<SectionPlace, usize>,
    nodes: DeltaNodes,
    bytes: usize,
}

/// Memory that a container takes in a plan: its place in the list, which grows by doubling, and in the
/// map.
const CONTAINER_BYTES: usize = 2 * size_of::<Job>() + 64;

impl RestorePlan {
    /// Memory that what waits to be restored takes: 24 to 48 bytes a run, and some 240 a container; for a
    /// delta or a base 150 to 250, and the bytes of the delta.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.nodes.memory_bytes()
    }

    /// Adds a whole stream under a number of the caller's choice, and returns in how many parts it
    /// will come.
    ///
    /// # Errors
    /// When its recipe does not agree with the containers' metadata, that metadata can't be
    /// read, a base of one of its chunks is not there, or its check value differs; the stream is then not
    /// part of the plan.
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
        for Job { pieces, .. } in &mut self.jobs {
            while pieces.last().is_some_and(|piece| piece.stream == stream) {
                pieces.pop();
            }
        }
    }

    /// Takes out the nodes and outputs that came after a mark.
    fn take_back_nodes(&mut self, mark: (usize, usize)) {
        for place in self.nodes.take_back(mark) {
            let number = self.numbers[&place];
            self.jobs[number].nodes.pop();
        }
    }

    /// The containers that are needed for what is in the plan, once for each place that one is read in.
    pub fn containers(&self) -> impl Iterator<Item = ContainerId> {
        let needed = |job: &Job| {
            let is_needed = !job.pieces.is_empty() || !job.nodes.is_empty();
            is_needed.then_some(job.place.container)
        };
        self.jobs.iter().filter_map(needed)
    }

    fn job_of(&mut self, loaded: &LoadedSection) -> &mut Job {
        let next = self.jobs.len();
        let place = loaded.place();
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.jobs.push(Job {
                place,
                is_deltas: loaded.section.kind == ContainerKind::Deltas,
                pieces: Vec::new(),
                nodes: Vec::new(),
            });
            self.bytes += CONTAINER_BYTES;
        }
        &mut self.jobs[number]
    }

    fn push_piece(&mut self, loaded: &LoadedSection, piece: Piece) {
        let pieces = &mut self.job_of(loaded).pieces;
        let before = pieces.capacity();
        pieces.push(piece);
        let more = pieces.capacity() - before;
        self.bytes += more * size_of::<Piece>();
    }

    /// Adds a chunk stored as a delta, and the bases that it takes.
    fn push_delta(
        &mut self,
        containers: &ContainerReader,
        chunk: StoredChunk,
        output: Output,
    ) -> Result<(), ReadError> {
        for (number, chunk) in self.nodes.add(containers, chunk, output)? {
            let nodes = &mut self.job_of(&chunk.loaded).nodes;
            let before = nodes.capacity();
            nodes.push(number);
            let more = nodes.capacity() - before;
            self.bytes += more * size_of::<u32>();
        }
        Ok(())
    }

    /// Restores all streams added so far, and empties the plan. Each (piece, group) of a stream, and each
    /// chunk of it stored as a delta, becomes one call of the sink.
    pub fn execute(&mut self, reader: &Reader, room: &ReadingRoom, sink: &dyn ChunkSink) {
        let RestorePlan { jobs, nodes, .. } = std::mem::take(self);
        let meter = room.stages().meter(Stage::Write);
        meter.set_threads(room.compute_threads());
        restoring::execute(reader, room, sink, jobs, &nodes);
    }
}

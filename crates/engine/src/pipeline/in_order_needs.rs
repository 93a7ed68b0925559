//! What a stream that is read in order consists of: neighbouring chunks, holes, and for a chunk stored
//! as a delta the steps that make it.
//!
//! A chunk stored as a delta becomes a row of [`Step`]s: its root, which is stored whole, then delta after
//! delta, the last of which is its own. Each step needs one group, so that the look-ahead sees every
//! group in the order in which it is needed. Between the steps one chunk is in memory ([`Making`]).

use std::ops::Range;
use std::sync::Arc;

use crate::container::{
    ChunkAddress, ContainerKind, ContainerReader, DeltaMethod, SectionPlace, Slot,
};
use crate::fingerprint::Fingerprint;
use crate::format::{DecodeError, ObjectError};
use crate::restore::{GroupPlace, LocatedRun, ReadError, StoredChunk};
use crate::similarity::Undelta;

/// What the stream consists of, in order.
pub(super) enum Need {
    /// Neighbouring chunks of one group, stored whole: their numbers in the section, and their bytes.
    Chunks { chunks: Range<usize>, bytes: u64 },
    /// On the way to a chunk stored as a delta.
    Step(Box<Step>),
    /// So many zeros.
    Hole(u64),
    /// Planning came to its end here.
    Failed(ReadError),
}

impl Need {
    /// Bytes of the stream that it gives.
    pub fn bytes(&self) -> u64 {
        match self {
            Need::Chunks { bytes, .. } | Need::Hole(bytes) => *bytes,
            Need::Step(step) if step.is_last() => u64::from(step.length),
            Need::Step(_) | Need::Failed(_) => 0,
        }
    }
}

/// A chunk that is read, or made of the one before.
pub(super) struct Step {
    /// The chunk of the stream.
    pub of: ChunkAddress,
    /// This one.
    address: ChunkAddress,
    /// Its number in its section.
    pub chunk: usize,
    length: u32,
    fingerprint: Fingerprint,
    /// How it is made of the one before; nothing for the root.
    method: Option<DeltaMethod>,
}

impl Step {
    fn new(of: ChunkAddress, stored: &StoredChunk) -> Self {
        let section = &stored.loaded.section;
        Self {
            of,
            address: stored.address(),
            chunk: stored.chunk,
            length: section.lengths[stored.chunk],
            fingerprint: section.fingerprints[stored.chunk],
            method: stored.delta().map(|delta| delta.method),
        }
    }

    /// Is it what the stream wants?
    pub fn is_last(&self) -> bool {
        self.of == self.address
    }

    /// What it means for the chunk of the stream that this one can't be had.
    pub fn lost(&self, error: ReadError) -> ReadError {
        match self.is_last() {
            true => error,
            false => ReadError::base(self.of, self.address, error),
        }
    }
}

/// A group, and the bytes of its plaintext.
pub(super) type NeededGroup = (GroupPlace<SectionPlace>, u64);

/// The needs of a run, each with its group, in order. Stops with true when `push` says so by false.
///
/// # Errors
/// When a base is not what its delta says.
pub(super) fn push_needs(
    containers: &ContainerReader,
    located: &LocatedRun,
    push: &mut dyn FnMut(NeededGroup, Need) -> bool,
) -> Result<bool, ReadError> {
    let section = &located.section.section;
    let mut chunk = located.chunks.start;
    while chunk < located.chunks.end {
        if section.delta(chunk).is_some() {
            let loaded = Arc::clone(&located.section);
            if !push_steps(containers, StoredChunk { loaded, chunk }, push)? {
                return Ok(false);
            }
            chunk += 1;
            continue;
        }
        let index = section.group_of(chunk);
        let group = &section.groups[index];
        let group_end = (group.first_chunk + group.chunk_count) as usize;
        let mut end = group_end.min(located.chunks.end);
        if section.kind == ContainerKind::Deltas {
            let mut rest = chunk..end;
            end = rest.find(|&at| section.delta(at).is_some()).unwrap_or(end);
        }
        let lengths = section.lengths[chunk..end].iter();
        let bytes = lengths.map(|&length| u64::from(length)).sum();
        let place = GroupPlace {
            container: located.section.place(),
            group: index as u32,
        };
        let need = Need::Chunks {
            chunks: chunk..end,
            bytes,
        };
        if !push((place, group.plain_bytes), need) {
            return Ok(false);
        }
        chunk = end;
    }
    Ok(true)
}

fn push_steps(
    containers: &ContainerReader,
    wanted: StoredChunk,
    push: &mut dyn FnMut(NeededGroup, Need) -> bool,
) -> Result<bool, ReadError> {
    let of = wanted.address();
    let mut chain = vec![wanted];
    while let Some(last) = chain.last()
        && let Some(&delta) = last.delta()
    {
        let base = last.base(containers, &delta)?;
        chain.push(base);
    }
    for stored in chain.iter().rev() {
        let section = &stored.loaded.section;
        let group = section.group_of(stored.chunk);
        let place = GroupPlace {
            container: stored.loaded.place(),
            group: group as u32,
        };
        let step = Need::Step(Box::new(Step::new(of, stored)));
        if !push((place, section.groups[group].plain_bytes), step) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The chunk that steps have made so far.
#[derive(Debug, Default)]
pub(super) struct Making {
    bytes: Vec<u8>,
}

impl Making {
    /// Makes a step, of what is stored of its chunk. Gives the chunk's bytes, which are those of its
    /// fingerprint if it is the last.
    ///
    /// # Errors
    /// When the delta does not make them.
    pub fn step(
        &mut self,
        containers: &ContainerReader,
        undelta: &Undelta,
        step: &Step,
        stored: &[u8],
    ) -> Result<&[u8], ReadError> {
        let corrupt = |reason: String| ObjectError::Corrupt {
            key: containers.remaps().object_of(step.address.container),
            part: "delta",
            reason: DecodeError::new(reason),
        };
        match step.method {
            None => {
                self.bytes.clear();
                self.bytes.extend_from_slice(stored);
            }
            Some(method) => {
                let made = undelta.apply(method, &self.bytes, stored, step.length);
                self.bytes =
                    made.map_err(|error| corrupt(format!("that in {}: {error}", step.address)))?;
            }
        }
        if step.is_last() {
            let fingerprinter = containers.fingerprinter();
            let actual = fingerprinter.fingerprint(ContainerKind::Deltas, &self.bytes);
            if actual != step.fingerprint {
                let Slot(slot) = step.address.slot;
                let reason =
                    format!("the chunk made of that in slot {slot} does not have its fingerprint");
                return Err(corrupt(reason).into());
            }
        }
        Ok(&self.bytes)
    }
}

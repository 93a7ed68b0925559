//! The chunks of an earlier stream beside those of a later one: which may be taken over.
//!
//! Places are asked for in ascending order. An earlier chunk may be taken over when neither it nor the byte
//! behind it is in a changed range, and everything that it is made of is still stored. Of an earlier
//! hole any part may that is not in a changed range. Where runs can't be read, nothing may; the reason is kept.

use std::ops::Range;

use super::EarlierStream;
use crate::container::ChunkAddress;
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::recipe::Run;
use crate::restore::{LocatedRun, ReadError, Reader, Runs};

/// Problems that are kept.
const PROBLEMS_MAX: usize = 16;

/// What is taken over: chunks, or a part of a hole.
#[derive(Debug)]
pub(super) struct Kept {
    pub run: Run,
    /// Where the chunks lie; nothing for holes.
    pub located: Option<LocatedRun>,
}

impl Kept {
    /// Length and fingerprint of each chunk.
    pub fn chunks(&self) -> impl Iterator<Item = (u32, Fingerprint)> + '_ {
        let located = self.located.iter();
        located.flat_map(|located| {
            let section = &located.section.section;
            let chunks = located.chunks.clone();
            chunks.map(|chunk| (section.lengths[chunk], section.fingerprints[chunk]))
        })
    }
}

/// The run that the current place is in.
#[derive(Debug)]
struct CurrentRun {
    run: Run,
    end: u64,
    /// Where `chunk` begins.
    chunk_start: u64,
    /// An index in the section; nothing can be taken over if the run can't be located.
    chunk: usize,
    located: Located,
}

#[derive(Debug)]
enum Located {
    NotYet,
    Hole,
    Chunks(LocatedRun),
    Unknown,
}

/// An earlier stream that is followed beside the later one.
#[derive(Debug)]
pub(super) struct EarlierChunks<'a> {
    reader: Reader,
    runs: Option<Runs>,
    current: Option<CurrentRun>,
    /// Where the next run begins.
    runs_end: u64,
    changed: &'a [Range<u64>],
    /// Behind what is the same in both because one of them ends there.
    size_bytes: u64,
    problems: Vec<ReadError>,
}

impl<'a> EarlierChunks<'a> {
    /// The chunks of a stream of which the later state has `size_bytes`.
    pub fn new(earlier: EarlierStream<'a>, size_bytes: u64) -> Self {
        let same = earlier.recipe.stream_bytes().min(size_bytes);
        let is_resized = earlier.recipe.stream_bytes() != size_bytes;
        Self {
            runs: Some(earlier.reader.runs(earlier.recipe)),
            reader: earlier.reader,
            current: None,
            runs_end: 0,
            changed: earlier.changed,
            size_bytes: if is_resized { same } else { u64::MAX },
            problems: Vec::new(),
        }
    }

    /// Why some of it could not be followed.
    pub fn into_problems(self) -> Vec<ReadError> {
        self.problems
    }

    /// What may be taken over from `place` on: as much as one run has.
    pub fn kept_at(&mut self, place: u64, index: &Index) -> Option<Kept> {
        self.follow(place);
        let same_until = self.same_until(place);
        let current = self.current.as_ref()?;
        match &current.located {
            Located::NotYet | Located::Unknown => None,
            Located::Hole => {
                let bytes = current.end.min(same_until).checked_sub(place)?;
                (bytes > 0).then_some(Kept {
                    run: Run::Hole { bytes },
                    located: None,
                })
            }
            Located::Chunks(located) if current.chunk_start == place => {
                let section = &located.section.section;
                let (mut end, mut chunk) = (place, current.chunk);
                while chunk < located.chunks.end {
                    let after = end + u64::from(section.lengths[chunk]);
                    if after >= same_until || !self.is_stored(index, section.address(chunk)) {
                        break;
                    }
                    (end, chunk) = (after, chunk + 1);
                }
                (chunk > current.chunk).then(|| Kept {
                    run: Run::Slots {
                        container: section.id,
                        first: section.slots[current.chunk],
                        count: (chunk - current.chunk) as u32,
                        bytes: end - place,
                    },
                    located: Some(LocatedRun {
                        section: located.section.clone(),
                        chunks: current.chunk..chunk,
                    }),
                })
            }
            Located::Chunks(_) => None,
        }
    }

    /// Whether something may be taken over from `place` on, if it is still stored.
    pub fn may_be_kept_at(&mut self, place: u64) -> bool {
        self.follow(place);
        let same_until = self.same_until(place);
        let Some(current) = &self.current else {
            return false;
        };
        match &current.located {
            Located::NotYet | Located::Unknown => false,
            Located::Hole => same_until > place,
            Located::Chunks(located) => {
                let length = located.section.section.lengths[current.chunk];
                current.chunk_start == place && place + u64::from(length) < same_until
            }
        }
    }

    /// Bytes from `place` on that are in a changed range.
    pub fn changed_bytes_from(&self, place: u64) -> u64 {
        if place >= self.size_bytes {
            return u64::MAX;
        }
        let next = self.changed.partition_point(|range| range.end <= place);
        match self.changed.get(next) {
            Some(range) if range.start <= place => range.end - place,
            _ => 0,
        }
    }

    /// Up to where everything from `place` on is as it was; 0 if it is not.
    fn same_until(&self, place: u64) -> u64 {
        let next = self.changed.partition_point(|range| range.end <= place);
        let until = self.changed.get(next).map_or(u64::MAX, |range| range.start);
        match until.min(self.size_bytes) {
            until if until <= place => 0,
            until => until,
        }
    }

    fn is_stored(&self, index: &Index, chunk: ChunkAddress) -> bool {
        let live = index.live_objects();
        live.has_chunk(self.reader.containers(), chunk)
    }

    /// Goes on to what `place` is in.
    fn follow(&mut self, place: u64) {
        // What of a run lies elsewhere than its front becomes known, and a run of its own, only then.
        while self.go_to_run(place) {
            self.locate();
            if self.current.as_ref().is_some_and(|run| run.end > place) {
                break;
            }
        }
        let Some(current) = &mut self.current else {
            return;
        };
        if let Located::Chunks(located) = &current.located {
            // Before the run's end, so there is a chunk that ends behind the place.
            let lengths = &located.section.section.lengths;
            while current.chunk_start < place
                && current.chunk_start + u64::from(lengths[current.chunk]) <= place
            {
                current.chunk_start += u64::from(lengths[current.chunk]);
                current.chunk += 1;
            }
        }
    }

    /// Goes on to the run that `place` is in; false when there is none.
    fn go_to_run(&mut self, place: u64) -> bool {
        while self
            .current
            .as_ref()
            .is_none_or(|current| current.end <= place)
        {
            match self.runs.as_mut().and_then(Iterator::next) {
                Some(Ok(run)) => {
                    let start = self.runs_end;
                    self.runs_end = start.saturating_add(run.bytes());
                    self.current = Some(CurrentRun {
                        run,
                        end: self.runs_end,
                        chunk_start: start,
                        chunk: 0,
                        located: Located::NotYet,
                    });
                }
                end => {
                    if let Some(Err(error)) = end {
                        self.note(error);
                    }
                    self.runs = None;
                    self.current = None;
                    return false;
                }
            }
        }
        true
    }

    /// Finds the current run's chunks, unless that was tried.
    fn locate(&mut self) {
        let Some(current) = &mut self.current else {
            return;
        };
        if !matches!(current.located, Located::NotYet) {
            return;
        }
        match self.reader.locate(&current.run) {
            Ok(Some(front)) => {
                if let (Some(rest), Some(runs)) = (front.rest, &mut self.runs) {
                    current.end -= rest.bytes();
                    self.runs_end -= rest.bytes();
                    runs.put_back(front.rest);
                }
                current.chunk = front.located.chunks.start;
                current.located = Located::Chunks(front.located);
            }
            Ok(None) => current.located = Located::Hole,
            Err(error) => {
                current.located = Located::Unknown;
                self.note(error);
            }
        }
    }

    fn note(&mut self, error: ReadError) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(error);
        }
    }
}

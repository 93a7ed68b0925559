//! Reads a stream, cuts it into chunks and has them fingerprinted: what a reading worker does.
//!
//! Segments of a long stream are fingerprinted by other threads while the next are read and cut
//! (`fingerprint_pool`); a short one by this thread, while it is in the cache. With hints all of
//! it is one stage: a chunk's fingerprint is looked up in the
//! [`Trail`] of the stream at once, and what followed it there is where the next cut is tried.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use chunking::rapid::{Hint, RapidChunker, RapidCounts};
use chunking::structure::{Sections, Structure};
use chunking::two_stage::{MarkJob, TwoStage};

use super::cutter::Cutter;
use super::fingerprint_pool::{FingerprintPool, SegmentInTurn};
use super::segment_stream::{chunk_segments, map_on_threads};
use super::stages::{Stage, Stages};
use super::trail::{Followers, HINTS_MAX, Trail};
use crate::container::ContainerKind;
use crate::fingerprint::{Fingerprint, Fingerprinter};

/// Bytes of a stream handled at a time (more if the largest chunk needs it).
const SEGMENT_BYTES: usize = 1 << 20;

/// What it takes to turn a stream into chunks.
#[derive(Debug, Clone)]
pub struct StreamChunking {
    /// Cuts.
    pub cutter: Arc<Cutter>,
    /// Threads that cut one stream, where a cutter can use several.
    pub threads: usize,
    /// Fingerprints.
    pub fingerprints: FingerprintPool,
    /// What divides streams beforehand: chunks never cross the end of a section.
    pub structure: Structure,
    /// Where it is reported.
    pub stages: Stages,
}

/// Consecutive chunks of a stream, without fingerprints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CutSegment {
    /// The chunks' bytes, joined; there may be unrelated bytes behind them.
    pub bytes: Vec<u8>,
    /// Length of each chunk.
    pub lengths: Vec<u32>,
}

impl CutSegment {
    /// Bytes of its chunks.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        self.lengths.iter().map(|&length| u64::from(length)).sum()
    }
}

/// Consecutive chunks of a stream with their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkedSegment {
    /// The chunks' bytes, joined; there may be unrelated bytes behind them.
    pub bytes: Vec<u8>,
    /// Fingerprint and length of each chunk.
    pub chunks: Vec<(Fingerprint, u32)>,
}

impl ChunkedSegment {
    /// Bytes of its chunks.
    #[must_use]
    pub fn chunk_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.1)).sum()
    }
}

/// Reads `stream` to its end and calls `emit` with its chunks, segment by segment. When
/// `expected_bytes` have been read, that is taken as the end if the next read would not fit the
/// buffer made for them: a file of the size it was said to have costs one read. `trail` is what
/// the stream was in the parent, for a cutter that takes hints. Returns how many bytes were read.
///
/// # Errors
/// What the stream says. `emit` may stop the reading by returning false; that is no error.
pub fn chunk_stream(
    with: &StreamChunking,
    stream: &mut dyn Read,
    expected_bytes: Option<u64>,
    trail: Option<&mut Trail>,
    emit: &mut dyn FnMut(SegmentInTurn) -> bool,
) -> io::Result<u64> {
    if let Cutter::Segments(segments) = &*with.cutter {
        return chunk_segments(with, segments, stream, expected_bytes, emit);
    }
    let mut cutting = Cutting {
        with,
        trail,
        before: None,
        sections: Sections::new(with.structure, with.cutter.chunker()),
    };
    let segment_bytes = with.read_bytes();
    let capacity = expected_bytes.map_or(segment_bytes, |bytes| {
        usize::try_from(bytes).map_or(segment_bytes, |bytes| (bytes + 1).min(segment_bytes))
    });
    let mut buffer = vec![0; capacity];
    let mut filled = 0;
    let mut total = 0u64;
    loop {
        let (count, ended) = with.fill(stream, &mut buffer, filled, total, expected_bytes)?;
        total += count as u64;
        filled += count;
        let (cut, used) = cutting.cut(&buffer[..filled], ended);
        let carried = &buffer[used..filled];
        let mut next = Vec::new();
        if !ended {
            next = vec![0; segment_bytes];
            next[..carried.len()].copy_from_slice(carried);
        }
        filled = carried.len();
        let bytes = std::mem::replace(&mut buffer, next);
        if !cut.is_empty() && !emit(cut.with_bytes(bytes, !ended, &with.fingerprints)) {
            return Ok(total);
        }
        if ended {
            return Ok(total);
        }
    }
}

impl StreamChunking {
    /// Bytes of a stream that are read before they are cut: those of a segment.
    #[must_use]
    pub fn read_bytes(&self) -> usize {
        let chunk_bytes_max = self.cutter.chunker().parameters().max_bytes as usize;
        let threads_bytes = self.threads * self.cutter.segment_bytes().unwrap_or(0);
        SEGMENT_BYTES.max(threads_bytes).max(4 * chunk_bytes_max)
    }

    /// Fills a buffer from `filled` on, of a stream of which `total` bytes were read before. Returns
    /// how many came, and whether that is the end.
    fn fill(
        &self,
        stream: &mut dyn Read,
        buffer: &mut [u8],
        filled: usize,
        total: u64,
        expected_bytes: Option<u64>,
    ) -> io::Result<(usize, bool)> {
        let started = Instant::now();
        let mut end = filled;
        let mut ended = false;
        while end < buffer.len() && !ended {
            match stream.read(&mut buffer[end..]) {
                Ok(0) => ended = true,
                Ok(count) => {
                    end += count;
                    let read_bytes = total + (end - filled) as u64;
                    ended = Some(read_bytes) == expected_bytes && end < buffer.len();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let count = end - filled;
        let meter = self.stages.meter(Stage::Read);
        meter.worked(started.elapsed(), count as u64);
        Ok((count, ended))
    }
}

/// What came of cutting a buffer.
enum Cut {
    /// Lengths alone.
    Lengths(Vec<u32>),
    /// Lengths and fingerprints.
    Chunks(Vec<(Fingerprint, u32)>),
}

impl Cut {
    fn is_empty(&self) -> bool {
        match self {
            Cut::Lengths(lengths) => lengths.is_empty(),
            Cut::Chunks(chunks) => chunks.is_empty(),
        }
    }

    fn with_bytes(
        self,
        bytes: Vec<u8>,
        is_more_to_come: bool,
        fingerprints: &FingerprintPool,
    ) -> SegmentInTurn {
        match self {
            Cut::Chunks(chunks) => SegmentInTurn::Ready(ChunkedSegment { bytes, chunks }),
            Cut::Lengths(lengths) => {
                fingerprints.take(CutSegment { bytes, lengths }, is_more_to_come)
            }
        }
    }
}

/// A stream that is being cut.
struct Cutting<'a, 'trail> {
    with: &'a StreamChunking,
    trail: Option<&'trail mut Trail>,
    /// The chunk before.
    before: Option<Fingerprint>,
    sections: Sections,
}

impl Cutting<'_, '_> {
    /// Cuts what can be cut: up to the last place that later bytes could not change. With the
    /// number of bytes up to there.
    fn cut(&mut self, data: &[u8], ended: bool) -> (Cut, usize) {
        let with = self.with;
        let meter = with.stages.meter(Stage::Chunk);
        let bytes = data.len() as u64;
        match (&*with.cutter, self.trail.is_some()) {
            (Cutter::TwoStage(two_stage), _) => {
                meter.busy(bytes, || self.cut_on_threads(two_stage, data, ended))
            }
            (Cutter::Rapid(rapid), true) => {
                // Cuts are tried by fingerprints: one cannot be told from the other.
                meter.busy(bytes, || self.cut_rapidly(rapid, data, ended))
            }
            _ => meter.busy(bytes, || self.cut_in_turn(data, ended)),
        }
    }

    /// Calls `next` with what the chunker may see for each chunk that is certain: it begins at an
    /// offset of `data` and goes on to the end of its section, or far enough. `next` returns the
    /// chunk's length.
    fn each_chunk(
        sections: &mut Sections,
        data: &[u8],
        ended: bool,
        mut next: impl FnMut(usize, &[u8]) -> usize,
    ) -> usize {
        let mut used = 0;
        while let Some(section) = sections.next(&data[used..], ended) {
            let length = next(used, section);
            sections.pass(length);
            used += length;
        }
        used
    }

    fn cut_in_turn(&mut self, data: &[u8], ended: bool) -> (Cut, usize) {
        let chunker = self.with.cutter.chunker();
        let mut lengths = Vec::new();
        let mut used = 0;
        while let Some(length) = self.sections.cut(chunker, &data[used..], ended) {
            lengths.push(length as u32);
            used += length;
        }
        (Cut::Lengths(lengths), used)
    }

    /// Cuts, the first stage on several threads. Positions are judged whatever the sections are.
    fn cut_on_threads(&mut self, two_stage: &TwoStage, data: &[u8], ended: bool) -> (Cut, usize) {
        let threads = self.with.threads;
        let jobs: Vec<MarkJob<'_>> = two_stage.jobs(data, 1).collect();
        let marked = map_on_threads(&jobs, threads, |job| job.clone().run());
        let marked: Vec<_> = marked.into_iter().flatten().collect();
        let mut lengths = Vec::new();
        let used = Self::each_chunk(&mut self.sections, data, ended, |start, section| {
            let length = two_stage.cut_marked(data, start..start + section.len(), &marked);
            lengths.push(length as u32);
            length
        });
        (Cut::Lengths(lengths), used)
    }

    fn cut_rapidly(&mut self, rapid: &RapidChunker, data: &[u8], ended: bool) -> (Cut, usize) {
        let mut chunks = Vec::new();
        let mut before = self.before;
        let mut trail = self.trail.take();
        let fingerprinter = self.with.fingerprints.fingerprinter();
        let used = Self::each_chunk(&mut self.sections, data, ended, |_, section| {
            let followers = match (&mut trail, &before) {
                (Some(trail), Some(before)) => trail.after(before),
                _ => Followers::default(),
            };
            let (fingerprint, length) = rapid_chunk(rapid, section, &followers, fingerprinter);
            before = Some(fingerprint);
            if let Some(trail) = &mut trail {
                trail.pass(length as u64);
            }
            chunks.push((fingerprint, length as u32));
            length
        });
        self.before = before;
        self.trail = trail;
        (Cut::Chunks(chunks), used)
    }
}

/// Cuts where the chunk ends that followed the one before, if it does; with its fingerprint.
fn rapid_chunk(
    rapid: &RapidChunker,
    section: &[u8],
    followers: &Followers,
    fingerprinter: &Fingerprinter,
) -> (Fingerprint, usize) {
    let fingerprint = |chunk: &[u8]| fingerprinter.fingerprint(ContainerKind::Data, chunk);
    let mut hints = [Hint::default(); HINTS_MAX];
    let mut count = 0;
    for (slot, follower) in hints.iter_mut().zip(followers.iter()) {
        *slot = follower.hint;
        count += 1;
    }
    let mut tested = None;
    let is_known = |place: usize, chunk: &[u8]| {
        let candidate = fingerprint(chunk);
        tested = Some(candidate);
        followers
            .iter()
            .nth(place)
            .is_some_and(|follower| follower.fingerprint == candidate)
    };
    let mut counts = RapidCounts::default();
    let cut = rapid.cut(section, &hints[..count], is_known, &mut counts);
    // What was tested last is what was accepted, if any was.
    let tested = tested.filter(|_| cut.accepted.is_some());
    let fingerprint = tested.unwrap_or_else(|| fingerprint(&section[..cut.length]));
    (fingerprint, cut.length)
}

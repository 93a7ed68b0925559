//! Reads a stream, cuts it into chunks and fingerprints them: what a reading worker does.
//!
//! With hints it is one stage of three parts: a chunk's fingerprint is looked up in the
//! [`Trail`] of the stream at once, and what followed it there is where the next cut is tried.

use std::io::{self, Read};

use chunking::rapid::{Hint, RapidChunker, RapidCounts};
use chunking::two_stage::{MarkJob, TwoStage};

use super::cutter::Cutter;
use super::segment_stream::{chunk_segments, map_on_threads};
use super::trail::{Followers, HINTS_MAX, Trail};
use crate::container::ContainerKind;
use crate::fingerprint::{Fingerprint, Fingerprinter};

/// Bytes of a stream handled at a time (more if the largest chunk needs it).
const SEGMENT_BYTES: usize = 1 << 20;

/// How a stream is divided before chunking: chunks never cross the end of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sectioning {
    /// The stream is one section.
    #[default]
    WholeStream,
}

impl Sectioning {
    /// Bytes from the start of `window` to the end of the section, if it ends in there.
    fn end_within(self, _window: &[u8]) -> Option<usize> {
        match self {
            Sectioning::WholeStream => None,
        }
    }
}

/// What it takes to turn a stream into chunks.
#[derive(Debug, Clone, Copy)]
pub struct StreamChunking<'a> {
    /// Cuts.
    pub cutter: &'a Cutter,
    /// Threads that cut one stream, where a cutter can use several.
    pub threads: usize,
    /// Fingerprints.
    pub fingerprinter: &'a Fingerprinter,
    /// Divides beforehand.
    pub sectioning: Sectioning,
}

/// Consecutive chunks of a stream with their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkedSegment {
    /// The chunks' bytes, joined; there may be unrelated bytes behind them.
    pub bytes: Vec<u8>,
    /// Fingerprint and length of each chunk.
    pub chunks: Vec<(Fingerprint, u32)>,
}

/// Reads `stream` to its end (or for `limit_bytes`) and calls `emit` with its chunks, segment by
/// segment. When `expected_bytes` have been read, that is taken as the end if the next read
/// would not fit the buffer made for them: a file of the size it was said to have costs one
/// read. `trail` is what the stream was in the parent, for a cutter that takes hints. Returns how
/// many bytes were read.
///
/// # Errors
/// What the stream says. `emit` may stop the reading by returning false; that is no error.
pub fn chunk_stream(
    with: StreamChunking<'_>,
    stream: &mut dyn Read,
    expected_bytes: Option<u64>,
    trail: Option<&mut Trail>,
    emit: &mut dyn FnMut(ChunkedSegment) -> bool,
) -> io::Result<u64> {
    if let Cutter::Segments(segments) = with.cutter {
        return chunk_segments(with, segments, stream, expected_bytes, emit);
    }
    let chunk_bytes_max = with.cutter.chunker().parameters().max_bytes as usize;
    let mut cutting = Cutting {
        with,
        trail,
        before: None,
    };
    let threads_bytes = with.threads * with.cutter.segment_bytes().unwrap_or(0);
    let segment_bytes = SEGMENT_BYTES.max(threads_bytes).max(4 * chunk_bytes_max);
    let capacity = expected_bytes.map_or(segment_bytes, |bytes| {
        usize::try_from(bytes).map_or(segment_bytes, |bytes| (bytes + 1).min(segment_bytes))
    });
    let mut buffer = vec![0; capacity];
    let mut filled = 0;
    let mut total = 0u64;
    loop {
        let mut ended = false;
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(count) => {
                    filled += count;
                    total += count as u64;
                    if Some(total) == expected_bytes && filled < buffer.len() {
                        ended = true;
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut chunks = Vec::new();
        let used = cutting.cut(&buffer[..filled], ended, chunk_bytes_max, &mut chunks);
        let carried = buffer[used..filled].to_vec();
        if !chunks.is_empty() {
            let bytes = std::mem::take(&mut buffer);
            if !emit(ChunkedSegment { bytes, chunks }) {
                return Ok(total);
            }
        }
        if ended {
            return Ok(total);
        }
        filled = carried.len();
        let mut next = carried;
        next.resize(segment_bytes, 0);
        buffer = next;
    }
}

/// A stream that is being cut.
struct Cutting<'a, 'trail> {
    with: StreamChunking<'a>,
    trail: Option<&'trail mut Trail>,
    /// The chunk before.
    before: Option<Fingerprint>,
}

impl Cutting<'_, '_> {
    /// Cuts what can be cut: up to the last place that later bytes could not change.
    fn cut(
        &mut self,
        data: &[u8],
        ended: bool,
        chunk_bytes_max: usize,
        chunks: &mut Vec<(Fingerprint, u32)>,
    ) -> usize {
        if let Cutter::TwoStage(two_stage) = self.with.cutter {
            return self.cut_on_threads(two_stage, data, ended, chunks);
        }
        let mut used = 0;
        while used < data.len() {
            let rest = &data[used..];
            let section_end = self.with.sectioning.end_within(rest);
            let section = &rest[..section_end.unwrap_or(rest.len())];
            let is_whole = ended || section_end.is_some();
            if !is_whole && section.len() < chunk_bytes_max {
                break;
            }
            let (fingerprint, length) = self.next_chunk(section);
            chunks.push((fingerprint, length as u32));
            used += length;
        }
        used
    }

    /// The same, the first stage and the fingerprints on several threads.
    fn cut_on_threads(
        &self,
        two_stage: &TwoStage,
        data: &[u8],
        ended: bool,
        chunks: &mut Vec<(Fingerprint, u32)>,
    ) -> usize {
        let with = self.with;
        let Sectioning::WholeStream = with.sectioning;
        let jobs: Vec<MarkJob<'_>> = two_stage.jobs(data, 1).collect();
        let marked = map_on_threads(&jobs, with.threads, |job| job.clone().run());
        let marked: Vec<_> = marked.into_iter().flatten().collect();
        let chunk_bytes_max = two_stage.chunker().parameters().max_bytes as usize;
        let cut = two_stage.join(data, &marked).into_iter();
        let is_certain = |start| ended || data.len() - start >= chunk_bytes_max;
        let cut: Vec<_> = cut.take_while(|chunk| is_certain(chunk.start)).collect();
        let fingerprints = map_on_threads(&cut, with.threads, |chunk| {
            with.fingerprinter
                .fingerprint(ContainerKind::Data, &data[chunk.clone()])
        });
        let lengths = cut.iter().map(|chunk| chunk.len() as u32);
        chunks.extend(fingerprints.into_iter().zip(lengths));
        cut.last().map_or(0, |chunk| chunk.end)
    }

    fn next_chunk(&mut self, section: &[u8]) -> (Fingerprint, usize) {
        let with = self.with;
        let (fingerprint, length) = match (with.cutter, &mut self.trail) {
            (Cutter::Rapid(rapid), Some(trail)) => {
                let followers = match &self.before {
                    Some(before) => trail.after(before),
                    None => Followers::default(),
                };
                rapid_chunk(rapid, section, &followers, with.fingerprinter)
            }
            (cutter, _) => {
                let length = cutter.chunker().cut(section);
                let fingerprint = with
                    .fingerprinter
                    .fingerprint(ContainerKind::Data, &section[..length]);
                (fingerprint, length)
            }
        };
        self.before = Some(fingerprint);
        if let Some(trail) = &mut self.trail {
            trail.pass(length as u64);
        }
        (fingerprint, length)
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

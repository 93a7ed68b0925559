//! The eager form: every position of a stream in memory is marked, segment by segment, then cut.
//!
//! Enters: a chunker, the size of segments, data. Leaves: jobs for the first stage, one for some
//! segments each, that threads of the caller run in any order; then the chunks, once all marks are
//! brought back in order. The windows of a segment's first positions lie in the segment before, which
//! a job reads but does not mark.
//!
//! The forms of Ni §2.3.4: *SFMS* is several threads on one file: [`TwoStage::jobs`] with segments of
//! 1 MiB and batches of 4, run by a pool, then [`TwoStage::join`] on one thread. *MFMS* is a file a
//! thread: each calls [`TwoStage::cuts`].

use super::{Found, NotWindowed, WindowedChunker, cut, cuts, segments};
use crate::Chunker;
use kernels::marks::{self, Marks, words_for};
use std::ops::Range;

/// Cuts streams in memory in two stages. Has no state of its own: one serves any number of threads.
///
/// ```
/// use chunking::{Chunker, KeyMaterial, Parameters, two_stage::TwoStage};
/// let chunker = Chunker::new(&Parameters::default(), KeyMaterial::Unkeyed)?;
/// let two_stage = TwoStage::new(chunker.clone(), TwoStage::SEGMENT_BYTES)?;
/// let data: Vec<u8> = (0..3_000_000u64).map(|i| (i * i >> 9) as u8).collect();
/// // Each job could run on a thread of its own.
/// let marked = two_stage.jobs(&data, TwoStage::BATCH).flat_map(|job| job.run());
/// let chunks = two_stage.join(&data, &marked.collect::<Vec<_>>());
/// assert!(chunks.into_iter().eq(chunker.chunks(&data)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TwoStage {
    chunker: WindowedChunker,
    segment_bytes: usize,
}

impl TwoStage {
    /// The paper's size of segments (Ni §2.4).
    pub const SEGMENT_BYTES: usize = 1 << 20;
    /// The paper's number of segments that a thread takes at a time (Ni §2.3.4).
    pub const BATCH: usize = 4;

    /// Cuts as this chunker does, on its [`Isa`](crate::Isa).
    ///
    /// # Errors
    /// When the chunker judges no window.
    ///
    /// # Panics
    /// When segments have no bytes.
    pub fn new(chunker: Chunker, segment_bytes: usize) -> Result<Self, NotWindowed> {
        assert!(segment_bytes > 0, "segments have bytes");
        Ok(Self {
            chunker: WindowedChunker::new(chunker)?,
            segment_bytes,
        })
    }

    /// The chunker.
    #[must_use]
    pub fn chunker(&self) -> &Chunker {
        &self.chunker.0
    }

    /// The first stage of a stream in memory: jobs of `batch` segments, the last of fewer, to be run
    /// in any order.
    ///
    /// # Panics
    /// When a batch has no segments.
    pub fn jobs<'a>(&'a self, data: &'a [u8], batch: usize) -> impl Iterator<Item = MarkJob<'a>> {
        let batch_bytes = self.segment_bytes.saturating_mul(batch);
        segments(data.len(), batch_bytes).map(move |positions| MarkJob {
            chunker: &self.chunker,
            segment_bytes: self.segment_bytes,
            data,
            positions,
        })
    }

    /// The second stage: the chunks, from the marks of all segments, in order.
    ///
    /// # Panics
    /// When the marks are not those of the data from the first to the last byte.
    #[must_use]
    pub fn join(&self, data: &[u8], marked: &[MarkedSegment]) -> Vec<Range<usize>> {
        let mut end = 0;
        for segment in marked {
            assert_eq!(segment.from, end, "segments follow one another");
            end = segment.to;
        }
        assert_eq!(end, data.len(), "all is marked");
        cuts(self.chunker.method(), data, &mut Marked(marked))
    }

    /// The second stage of one chunk: its length, when it begins where `within` does. The data ends
    /// for it where `within` does: with the stream, with a section of it
    /// ([`structure`](crate::structure)), or at least `max_bytes` on.
    ///
    /// # Panics
    /// When `within` is not in the data.
    #[must_use]
    pub fn cut_marked(&self, data: &[u8], within: Range<usize>, marked: &[MarkedSegment]) -> usize {
        let Range { start, end } = within;
        let method = self.chunker.method();
        cut(method, &data[start..end], start, &mut Marked(marked))
    }

    /// Both stages on this thread: the chunks of a stream in memory.
    #[must_use]
    pub fn cuts(&self, data: &[u8]) -> Vec<Range<usize>> {
        let method = self.chunker.method();
        let max = method.rule().max;
        let mut chunks = Vec::new();
        let (mut start, mut marked, mut spare) = (0, Vec::<MarkedSegment>::new(), Vec::new());
        for positions in segments(data.len(), self.segment_bytes) {
            let end = positions.end;
            let old = spare.pop().unwrap_or_default();
            marked.push(mark(&self.chunker, data, positions, old));
            while start < end && (end - start >= max || end == data.len()) {
                let length = cut(method, &data[start..], start, &mut Marked(&marked));
                chunks.push(start..start + length);
                start += length;
            }
            let done = marked.partition_point(|segment| segment.to <= start);
            spare.extend(marked.drain(..done));
        }
        chunks
    }

    /// Marks some positions of data.
    pub(super) fn mark(&self, data: &[u8], positions: Range<usize>) -> MarkedSegment {
        mark(&self.chunker, data, positions, MarkedSegment::default())
    }

    pub(super) fn windowed(&self) -> &WindowedChunker {
        &self.chunker
    }

    /// Bytes of a segment.
    #[must_use]
    pub fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }
}

/// The first stage of some segments, for any thread.
#[derive(Clone, Debug)]
pub struct MarkJob<'a> {
    chunker: &'a WindowedChunker,
    segment_bytes: usize,
    data: &'a [u8],
    positions: Range<usize>,
}

impl MarkJob<'_> {
    /// Marks the segments, in order.
    #[must_use]
    pub fn run(self) -> Vec<MarkedSegment> {
        let Range { start, end } = self.positions;
        let inside = segments(end - start, self.segment_bytes);
        inside
            .map(|segment| {
                let positions = start + segment.start..start + segment.end;
                mark(self.chunker, self.data, positions, MarkedSegment::default())
            })
            .collect()
    }

    /// How many positions it marks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.positions.len()
    }
}

/// Marks these positions in the memory of a segment that is done with. No cut can be at the first
/// positions of a stream, whose windows are not whole: they have no marks.
fn mark(
    chunker: &WindowedChunker,
    data: &[u8],
    positions: Range<usize>,
    old: MarkedSegment,
) -> MarkedSegment {
    let method = chunker.method();
    let Range { start, end } = positions;
    let lead = method.rule().whole.saturating_sub(start).min(end - start);
    let first = start + lead;
    let count = end - first;
    let mut segment = MarkedSegment {
        from: start,
        to: end,
        first,
        ..old
    };
    segment.strict.resize(words_for(count), 0);
    segment.loose.resize(words_for(count), 0);
    let mut marks = Marks::cleared(&mut segment.strict, &mut segment.loose, count);
    if count > 0 {
        method.mark(chunker.0.isa(), data, first, count, &mut marks);
    }
    segment
}

/// The marks of a segment.
#[derive(Clone, Debug, Default)]
pub struct MarkedSegment {
    from: usize,
    to: usize,
    /// The position of bit 0.
    first: usize,
    strict: Vec<u64>,
    loose: Vec<u64>,
}

impl MarkedSegment {
    /// Its positions in the stream.
    #[must_use]
    pub fn positions(&self) -> Range<usize> {
        self.from..self.to
    }

    /// How many positions may be cuts: those that have the loose mask's value.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.loose
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Counts positions from so many bytes further on.
    pub(super) fn shift_back(&mut self, bytes: usize) {
        self.from -= bytes;
        self.to -= bytes;
        self.first -= bytes;
    }

    /// These positions, as far as they are its own, counted as bits are.
    fn bits(&self, positions: &Range<usize>) -> Range<usize> {
        let clamp = |position: usize| position.clamp(self.first, self.to) - self.first;
        clamp(positions.start)..clamp(positions.end)
    }
}

/// Segments that follow one another.
pub(super) struct Marked<'a>(pub(super) &'a [MarkedSegment]);

impl Marked<'_> {
    fn at(&self, position: usize) -> usize {
        self.0.partition_point(|segment| segment.to <= position)
    }
}

impl Found for Marked<'_> {
    fn first(&mut self, is_strict: bool, positions: Range<usize>) -> Option<usize> {
        let from = self.at(positions.start);
        let segments = self.0[from..].iter();
        segments
            .take_while(|segment| segment.from < positions.end)
            .find_map(|segment| {
                let words = if is_strict {
                    &segment.strict
                } else {
                    &segment.loose
                };
                let index = marks::first(words, segment.bits(&positions))?;
                Some(segment.first + index)
            })
    }

    fn last_loose(&mut self, positions: Range<usize>) -> Option<usize> {
        let from = self.at(positions.start);
        let end = from + self.0[from..].partition_point(|segment| segment.from < positions.end);
        let segments = self.0[from..end].iter().rev();
        segments
            .map(|segment| {
                let index = marks::last(&segment.loose, segment.bits(&positions))?;
                Some(segment.first + index)
            })
            .find(Option::is_some)?
    }
}

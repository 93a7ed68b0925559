//! P-Dedupe's parallel chunking: segments cut each on its own, and joined at their borders.
//!
//! Source: Xia et al., *P-Dedupe: Exploiting Parallelism in Data Deduplication System* and its
//! journal form, §3.3. Over any chunker. No thread starts here: what can run at the same time is
//! handed out as jobs, which the caller runs where it likes ([`SegmentJob::run`]), and their results
//! are taken in the order of the segments ([`Joiner`], [`SegmentStream`]).
//!
//! *Map*: a stream is divided into segments of equal size, the last may be shorter, and each is cut as
//! if it were a stream of its own. *Reduce*, with jointing: the last chunk of a segment, XY, ended
//! because the segment did, and the first of the next, YZ, began there. The two are cut again from X
//! on, as far as Z: O is where that cuts first. With Y1 = Y + min:
//!
//! | case | O | what is left, OZ | chunks |
//! |---|---|---|---|
//! | 1 | in [Y, Y1]: bytes that YZ had skipped | at least min | XO, OZ |
//! | 2 | in [Y, Y1] | less than min | XO, OZ |
//! | 3 | in (Y1, Z): XZ is longer than max | at least min | XO, OZ |
//! | 4 | in (Y1, Z) | less than min | XO, OZ |
//! | 5 | at Z: nothing cuts in between | none | XZ |
//!
//! In cases 2 and 4 a sequential chunker would not cut at Z, which is too near; Z is taken all the
//! same, as the paper has it, so that nothing behind it changes. The chunks that a sequential chunker
//! would not have made are called *dirty* ([`dirty`], [`expected_dirty_bytes`]).
//!
//! What holds, on any number of threads:
//! - chunks laid end to end are the data, and none is longer than `max_bytes`;
//! - without jointing the chunks of each segment are those of [`Chunker::chunks`] of its bytes; the
//!   last of each may be shorter than `min_bytes`;
//! - with jointing only the chunk that ends at the first cut of a segment (Z), and the last of the
//!   stream, may be shorter than `min_bytes`; all other cuts inside of a segment are those of
//!   the segment alone;
//! - with jointing, once a cut in a segment is also one of the sequential chunker, so are all that
//!   follow in it, up to the last chunk that begins in it. With a chunker that has no levels and
//!   judges whole windows (`rabin`, `adler`, `crc32`, `gearhash`, `xet`, `restic`) this also goes over a
//!   border of case 1, 3 or 5 whose YZ is not of `max_bytes`: where there are no others the
//!   result is the sequential one. With levels, or windows that begin with the chunk (`fastcdc`,
//!   `gear`), O and Z may be judged otherwise from X than from Y, which is rare, and dirty.
//!
//! A backup cut of `tttd`, and the last byte of a segment of odd length with `fastcdc-crate-v2020`, can
//! put O before Y; that is counted apart, and where OZ would be longer than max it is cut again.

mod dirty;
mod joiner;
mod stream;

pub use dirty::{Dirty, dirty, expected_dirty_bytes};
pub use joiner::{JoinCounts, Joiner};
pub use stream::{SegmentBatch, SegmentStream, SegmentedChunks};

use crate::Chunker;
use std::ops::Range;

/// Which sizes of segments are impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// Segments are too small or too large.
    #[error(
        "segment_bytes = {segment_bytes} is impossible: it must be at least {lowest}, twice max_bytes, and at most {}",
        Segments::BYTES_HIGHEST
    )]
    Size {
        /// What was given.
        segment_bytes: u32,
        /// The lowest that can be.
        lowest: u32,
    },
}

/// How a stream is cut by segments.
#[derive(Debug, Clone)]
pub struct Segments {
    chunker: Chunker,
    segment_bytes: usize,
    has_jointing: bool,
}

impl Segments {
    /// The highest `segment_bytes`.
    pub const BYTES_HIGHEST: u32 = 256 << 20;

    /// Cuts segments of `segment_bytes` by `chunker`; joins them, or leaves them as they are.
    ///
    /// # Errors
    /// When segments are not from 2 × `max_bytes` to [`Self::BYTES_HIGHEST`].
    pub fn new(
        chunker: Chunker,
        segment_bytes: u32,
        has_jointing: bool,
    ) -> Result<Self, SegmentError> {
        // At most twice 64 MiB.
        let lowest = 2 * chunker.parameters().max_bytes;
        if !(lowest..=Self::BYTES_HIGHEST).contains(&segment_bytes) {
            return Err(SegmentError::Size {
                segment_bytes,
                lowest,
            });
        }
        Ok(Self {
            chunker,
            segment_bytes: segment_bytes as usize,
            has_jointing,
        })
    }

    /// What cuts each segment.
    #[must_use]
    pub fn chunker(&self) -> &Chunker {
        &self.chunker
    }

    /// The size of every segment but the last.
    #[must_use]
    pub fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Whether segments are joined at their borders.
    #[must_use]
    pub fn has_jointing(&self) -> bool {
        self.has_jointing
    }

    /// The segments of a whole stream in memory, in order: each can be run by itself.
    pub fn jobs<'a>(&'a self, data: &'a [u8]) -> impl ExactSizeIterator<Item = SegmentJob<'a>> {
        let segments = data.chunks(self.segment_bytes);
        segments.map(|data| SegmentJob {
            chunker: &self.chunker,
            data,
        })
    }

    /// Makes chunks of what the jobs of `data` found, in order: ranges of `data`.
    ///
    /// # Panics
    /// When `cuts` are not the results of [`jobs`](Self::jobs) on the same data.
    #[must_use]
    pub fn join(&self, data: &[u8], cuts: &[SegmentCuts]) -> (Vec<Range<usize>>, JoinCounts) {
        assert_eq!(cuts.len(), data.len().div_ceil(self.segment_bytes));
        let mut joiner = Joiner::new(self);
        let mut chunks = Vec::new();
        let mut start = 0;
        let mut each = |length| {
            chunks.push(start..start + length);
            start += length;
        };
        for (number, cuts) in cuts.iter().enumerate() {
            let segment_start = number * self.segment_bytes;
            let end = (segment_start + self.segment_bytes).min(data.len());
            let pending_start = segment_start - joiner.pending_bytes();
            joiner.push(&data[pending_start..end], cuts, &mut each);
        }
        let counts = joiner.finish(&mut each);
        (chunks, counts)
    }

    /// Cuts a whole stream in memory on this thread: the chunks are those of any other.
    #[must_use]
    pub fn chunks(&self, data: &[u8]) -> (Vec<Range<usize>>, JoinCounts) {
        let cuts: Vec<_> = self.jobs(data).map(|job| job.run()).collect();
        self.join(data, &cuts)
    }
}

/// A segment that is to be cut: *map*.
#[derive(Clone, Copy)]
pub struct SegmentJob<'a> {
    chunker: &'a Chunker,
    data: &'a [u8],
}

impl SegmentJob<'_> {
    /// Cuts it. Blocks for nothing.
    #[must_use]
    pub fn run(&self) -> SegmentCuts {
        let chunks = self.chunker.chunks(self.data);
        SegmentCuts(chunks.map(|chunk| chunk.len() as u32).collect())
    }

    /// The bytes that it cuts.
    #[must_use]
    pub fn segment_bytes(&self) -> usize {
        self.data.len()
    }
}

/// Never shows the data.
impl std::fmt::Debug for SegmentJob<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentJob")
            .field("segment_bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// The chunks of one segment, before it is joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentCuts(Vec<u32>);

impl SegmentCuts {
    /// The lengths of its chunks.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.0
    }
}

//! MUCH: exact chunking on several threads without SIMD (Ni §2.2.3; Won, Lim, Min 2015).
//!
//! Enters: a chunker, the size of segments, data. Leaves: jobs, one a segment, each of which chunks its
//! segment with no minimum and no maximum, byte after byte with the window that stands before the
//! segment; then *marshalling* on one thread: chunks that are too small are joined to what follows,
//! those that are too large are split, so that what comes out is what one thread would have cut. For
//! chunkers with two masks a job says of each of its cuts whether it is a strict one.
//!
//! The article's *dual mode*, in which a thread begins to skip minima once its cuts are sure to be those
//! of the whole, is not described in Ni and not done here.

use super::{Found, NotWindowed, WindowedChunker, cuts, segments};
use crate::Chunker;
use kernels::isa::Isa;
use kernels::marks::{Marks, words_for};
use std::ops::Range;

/// Positions that a job judges at a time.
const BLOCK: usize = 4096;

/// Cuts streams in memory as MUCH does.
#[derive(Clone, Debug)]
pub struct Much {
    chunker: WindowedChunker,
    segment_bytes: usize,
}

impl Much {
    /// Cuts as this chunker does.
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

    /// Jobs, one a segment, to be run in any order.
    pub fn jobs<'a>(&'a self, data: &'a [u8]) -> impl Iterator<Item = MuchJob<'a>> {
        segments(data.len(), self.segment_bytes).map(move |positions| MuchJob {
            chunker: &self.chunker,
            data,
            positions,
        })
    }

    /// Marshalling: the chunks of the whole, from those of all segments, in order.
    ///
    /// # Panics
    /// When the segments are not those of the data from the first to the last byte.
    #[must_use]
    pub fn marshal(&self, data: &[u8], segments: &[MuchSegment]) -> Vec<Range<usize>> {
        let mut end = 0;
        for segment in segments {
            assert_eq!(segment.positions.start, end, "segments follow one another");
            end = segment.positions.end;
        }
        assert_eq!(end, data.len(), "all is chunked");
        let all = segments.iter().flat_map(|segment| &segment.cuts).copied();
        let mut cut = Sorted(all.collect());
        cuts(self.chunker.method(), data, &mut cut)
    }
}

/// A segment to chunk, on any thread.
#[derive(Clone, Debug)]
pub struct MuchJob<'a> {
    chunker: &'a WindowedChunker,
    data: &'a [u8],
    positions: Range<usize>,
}

impl MuchJob<'_> {
    /// Chunks the segment with no minimum and no maximum.
    #[must_use]
    pub fn run(self) -> MuchSegment {
        let method = self.chunker.method();
        let mut cuts = Vec::new();
        let mut first = self.positions.start.max(method.rule().whole);
        let (mut strict, mut loose) = ([0; BLOCK / 64], [0; BLOCK / 64]);
        while first < self.positions.end {
            let count = BLOCK.min(self.positions.end - first);
            let mut marks = Marks::cleared(&mut strict, &mut loose, count);
            method.mark(Isa::Scalar, self.data, first, count, &mut marks);
            for (index, &word) in loose[..words_for(count)].iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let bit = left.trailing_zeros();
                    let is_strict = strict[index] >> bit & 1 == 1;
                    cuts.push((first + index * 64 + bit as usize, is_strict));
                    left &= left - 1;
                }
            }
            first += count;
        }
        MuchSegment {
            positions: self.positions,
            cuts,
        }
    }
}

/// The cuts of a segment, its minimum and its maximum set aside.
#[derive(Clone, Debug)]
pub struct MuchSegment {
    positions: Range<usize>,
    /// Where, and whether it is a strict one.
    cuts: Vec<(usize, bool)>,
}

impl MuchSegment {
    /// How many cuts there are before marshalling.
    #[must_use]
    pub fn candidates(&self) -> usize {
        self.cuts.len()
    }
}

/// Cuts in order.
struct Sorted(Vec<(usize, bool)>);

impl Sorted {
    fn inside(&self, positions: Range<usize>) -> &[(usize, bool)] {
        let start = self.0.partition_point(|(at, _)| *at < positions.start);
        let end = start + self.0[start..].partition_point(|(at, _)| *at < positions.end);
        &self.0[start..end]
    }
}

impl Found for Sorted {
    fn first(&mut self, is_strict: bool, positions: Range<usize>) -> Option<usize> {
        let mut inside = self.inside(positions).iter();
        let (position, _) = inside.find(|(_, strict)| *strict || !is_strict)?;
        Some(*position)
    }

    fn last_loose(&mut self, positions: Range<usize>) -> Option<usize> {
        let (position, _) = self.inside(positions).last()?;
        Some(*position)
    }
}

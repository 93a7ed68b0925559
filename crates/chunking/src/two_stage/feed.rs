//! The eager form for a stream that is handed in piece by piece.
//!
//! Enters: pieces of any sizes. Leaves: the chunks of all pieces laid end to end, each as soon as it is
//! certain and a segment behind it is marked. Memory: fewer bytes than two segments and a longest
//! chunk, and their marks.

use super::segments::Marked;
use super::{MarkedSegment, NotWindowed, TwoStage, cut};
use crate::Chunker;
use std::fmt;

/// Cuts pieces that are fed to it, in two stages; see [`TwoStageFeed::feed`].
#[derive(Clone)]
pub struct TwoStageFeed {
    two_stage: TwoStage,
    /// What was fed, from the beginning of a segment on in which something is not yet cut.
    pending: Vec<u8>,
    /// The marks of `pending`, as far as it is marked.
    marked: Vec<MarkedSegment>,
    /// Where in `pending` the next chunk begins.
    start: usize,
    /// And where in the stream.
    offset: u64,
}

impl TwoStageFeed {
    /// A stream of which nothing was fed yet, marked by segments of so many bytes.
    ///
    /// # Errors
    /// When the chunker judges no window.
    ///
    /// # Panics
    /// When segments have no bytes.
    pub fn new(chunker: Chunker, segment_bytes: usize) -> Result<Self, NotWindowed> {
        Ok(Self {
            two_stage: TwoStage::new(chunker, segment_bytes)?,
            pending: Vec::new(),
            marked: Vec::new(),
            start: 0,
            offset: 0,
        })
    }

    /// Takes the next piece of the stream, and hands each chunk that is certain now to `each`, in
    /// order.
    pub fn feed(&mut self, mut piece: &[u8], mut each: impl FnMut(&[u8])) {
        let segment_bytes = self.two_stage.segment_bytes();
        let max = self.two_stage.windowed().method().rule().max;
        while !piece.is_empty() {
            let missing = self.marked_bytes() + segment_bytes - self.pending.len();
            let (taken, rest) = piece.split_at(missing.min(piece.len()));
            self.pending.extend_from_slice(taken);
            piece = rest;
            if taken.len() == missing {
                self.mark_rest();
                while self.pending.len() - self.start >= max {
                    self.cut_one(&mut each);
                }
                self.drop_segments();
            }
        }
    }

    /// Hands out what is left: the stream ends here. Returns its length in bytes.
    pub fn finish(mut self, mut each: impl FnMut(&[u8])) -> u64 {
        if self.pending.len() > self.marked_bytes() {
            self.mark_rest();
        }
        while self.start < self.pending.len() {
            self.cut_one(&mut each);
        }
        self.offset
    }

    /// Where in the stream the next chunk begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn marked_bytes(&self) -> usize {
        self.marked
            .last()
            .map_or(0, |segment| segment.positions().end)
    }

    fn mark_rest(&mut self) {
        let rest = self.marked_bytes()..self.pending.len();
        self.marked.push(self.two_stage.mark(&self.pending, rest));
    }

    fn cut_one(&mut self, each: &mut impl FnMut(&[u8])) {
        let rest = &self.pending[self.start..];
        let method = self.two_stage.windowed().method();
        let length = cut(method, rest, self.start, &mut Marked(&self.marked));
        each(&rest[..length]);
        self.start += length;
        self.offset += length as u64;
    }

    /// Drops the segments that are cut to their end.
    fn drop_segments(&mut self) {
        let is_cut = |segment: &MarkedSegment| segment.positions().end <= self.start;
        let count = self.marked.partition_point(is_cut);
        let Some(last) = self.marked.drain(..count).next_back() else {
            return;
        };
        let bytes = last.positions().end;
        self.pending.drain(..bytes);
        self.start -= bytes;
        for segment in &mut self.marked {
            segment.shift_back(bytes);
        }
    }
}

/// Never shows the key or the data.
impl fmt::Debug for TwoStageFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoStageFeed")
            .field("two_stage", &self.two_stage)
            .field("offset", &self.offset)
            .field("pending_bytes", &(self.pending.len() - self.start))
            .finish_non_exhaustive()
    }
}

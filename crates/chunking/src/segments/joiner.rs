//! *Reduce*: joins segments at their borders, in order.
//!
//! Enters: for each segment its chunks and its bytes, behind those of the chunk that waits. Leaves: the
//! lengths of chunks that are certain. One chunk waits at a time: the last of the segments so far.

use super::{SegmentCuts, Segments};

/// What happened at the borders between segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JoinCounts {
    /// How often each of the paper's cases came: case 1 first.
    pub cases: [u64; 5],
    /// Borders where the cut lay before the border; see [`segments`](super).
    pub early: u64,
}

impl JoinCounts {
    /// Borders that were joined.
    #[must_use]
    pub fn borders(&self) -> u64 {
        self.cases.iter().sum::<u64>() + self.early
    }

    /// Borders at which a chunk became shorter than `min_bytes`: the paper's dirty cases, 2 and 4.
    #[must_use]
    pub fn dirty_borders(&self) -> u64 {
        self.cases[1] + self.cases[3]
    }
}

/// Joins the segments of one stream; see [`Joiner::push`].
#[derive(Debug)]
pub struct Joiner<'a> {
    segments: &'a Segments,
    /// The length of the chunk that waits for the next segment.
    pending_bytes: usize,
    counts: JoinCounts,
}

impl<'a> Joiner<'a> {
    /// A stream of which no segment was taken yet.
    #[must_use]
    pub fn new(segments: &'a Segments) -> Self {
        Self::going_on(segments, 0, JoinCounts::default())
    }

    pub(super) fn going_on(
        segments: &'a Segments,
        pending_bytes: usize,
        counts: JoinCounts,
    ) -> Self {
        Self {
            segments,
            pending_bytes,
            counts,
        }
    }

    /// How many bytes in front of the next segment [`push`](Self::push) wants: those of the chunk
    /// that waits, at most `max_bytes`.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> JoinCounts {
        self.counts
    }

    /// Takes the next segment, `cuts`, and hands the length of each chunk that is certain now to
    /// `each`. `data` is the chunk that waits and the segment behind it.
    ///
    /// # Panics
    /// When `data` has another length than these two.
    pub fn push(&mut self, data: &[u8], cuts: &SegmentCuts, each: &mut impl FnMut(usize)) {
        let lengths = cuts.lengths().iter().map(|&length| length as usize);
        let segment_bytes: usize = lengths.clone().sum();
        assert_eq!(
            data.len(),
            self.pending_bytes + segment_bytes,
            "the segment lies behind the chunk that waits"
        );
        if !self.segments.has_jointing {
            lengths.for_each(each);
            return;
        }
        let mut lengths = lengths;
        let mut waiting = std::mem::take(&mut self.pending_bytes);
        if waiting > 0
            && let Some(first) = lengths.next()
        {
            waiting = self.join(&data[..waiting + first], waiting, each);
        }
        for length in lengths {
            if waiting > 0 {
                each(waiting);
            }
            waiting = length;
        }
        self.pending_bytes = waiting;
    }

    /// Hands out the chunk that waits: the stream ends here.
    pub fn finish(self, each: &mut impl FnMut(usize)) -> JoinCounts {
        if self.pending_bytes > 0 {
            each(self.pending_bytes);
        }
        self.counts
    }

    /// Cuts XZ again, whose border Y is at `border`; hands out all chunks but the last and returns
    /// the length of that.
    fn join(&mut self, data: &[u8], border: usize, each: &mut impl FnMut(usize)) -> usize {
        let chunker = &self.segments.chunker;
        let parameters = chunker.parameters();
        let length = chunker.cut(data);
        self.count(length, border, data.len());
        let mut start = length;
        let mut last = length;
        while start < data.len() {
            each(last);
            let rest = &data[start..];
            last = if rest.len() > parameters.max_bytes as usize {
                chunker.cut(rest)
            } else {
                rest.len()
            };
            start += last;
        }
        last
    }

    /// Which case it is: O, Y and Z as distances from X.
    fn count(&mut self, cut: usize, border: usize, end: usize) {
        let min_bytes = self.segments.chunker.parameters().min_bytes as usize;
        if cut == end {
            self.counts.cases[4] += 1;
        } else if cut < border {
            self.counts.early += 1;
        } else {
            let is_far = cut > border + min_bytes;
            let is_short = end - cut < min_bytes;
            self.counts.cases[2 * usize::from(is_far) + usize::from(is_short)] += 1;
        }
    }
}

//! Chunking in two stages (SS-CDC; Ni §2.3): first every position is judged, whatever chunks there
//! will be, and those that could be cuts are marked in bit arrays; then cuts are chosen among the
//! marks by the sizes. The first stage knows no order, so that it runs in SIMD and on many threads;
//! the second is short. Cut points are those of the loop that judges position after position, for any
//! size of segments, any number of threads, any instruction set.
//!
//! Two forms of it:
//! - *lazy* (`ahead.rs`): blocks of positions are marked as the search for a cut comes to them, and
//!   remembered for the next chunks. What lies between a cut and the minimum behind it is skipped, as
//!   far as it was not marked before. [`Chunker`] and its streams work so where it is
//!   faster, or when told to ([`Rolling::TwoStage`](crate::Rolling::TwoStage)).
//! - *eager* (`segments.rs`, `feed.rs`): whole segments, for which there are jobs to run on threads.
//!
//! Beside them the baselines of Ni's Tables 2.1 and 2.2: MUCH, exact without SIMD (`much.rs`), and
//! segments that are cut each by itself, which is not exact (`lossy.rs`).
//!
//! To add a windowed chunker: implement [`Windowed`] for its method, and name it in
//! `Method::windowed` (chunker.rs) and in [`Rolling::is_of`](crate::Rolling::is_of).
//!
//! Chunkers that start hashing at the minimum (`fastcdc`, `gear`) judge the first positions of a chunk
//! by a window that is not full. Those are judged by their own loop, at most 63 bytes a chunk, before
//! marks are asked for.

mod ahead;
mod feed;
mod lossy;
mod much;
mod segments;

use crate::{Algorithm, Chunker};
pub(crate) use ahead::Ahead;
pub use feed::TwoStageFeed;
use kernels::isa::Isa;
use kernels::marks::Marks;
pub use lossy::{LossyJob, lossy_jobs};
pub use much::{Much, MuchJob, MuchSegment};
pub use segments::{MarkJob, MarkedSegment, TwoStage};
use std::ops::Range;

/// A chunker that judges a hash of the last bytes: what the two stages need of it.
pub(crate) trait Windowed: Send + Sync {
    /// How cuts are chosen among marks.
    fn rule(&self) -> Rule;

    /// The length of the first chunk, by judging one position after the other.
    fn cut_in_order(&self, data: &[u8]) -> usize;

    /// Marks the positions `first..first + count` of the data, the first as bit 0, by whole windows,
    /// all of which lie in the data.
    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>);

    /// How many times as fast blocks are marked at this level as the fastest loop in order judges, as
    /// long as few positions are marked: measured. 0 where that does not pay.
    fn gain(&self, isa: Isa) -> f64;
}

/// Whether two stages are faster than the fastest loop in order, where marks behind a cut are
/// remembered and where they are not, if a cut is expected `wait` positions behind the minimum.
///
/// In order judges `wait` positions a chunk. Remembered blocks cover the bytes between cuts too, unless
/// the minimum is long; of a block that is not, half is lost and a third goes into its windows. Agrees
/// with what was measured for minima of a quarter and twice the average, from 256 bytes to 1 MiB.
pub(crate) fn is_faster(method: &dyn Windowed, isa: Isa, wait: u32, is_remembered: bool) -> bool {
    const WORTH_IT: f64 = 1.15;
    let (gain, wait) = (method.gain(isa), f64::from(wait));
    let judged = if is_remembered {
        let all = method.rule().min as f64 + wait;
        all.min(wait + ahead::BLOCK as f64 / 2.0)
    } else if isa == Isa::Avx512 {
        1.3 * (wait + ahead::BLOCK_ONCE as f64 / 2.0)
    } else {
        return false;
    };
    gain * wait >= WORTH_IT * judged
}

/// How cuts are chosen among marks. Positions are counted from the beginning of the chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// No chunk is smaller but the last of a stream.
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// The first position that is judged.
    pub(crate) first: usize,
    /// The first that is judged by a whole window, and so by its mark. Those before are judged in
    /// order.
    pub(crate) whole: usize,
    /// Strict marks count before, loose ones from here on.
    pub(crate) normal: usize,
    /// A cut at position i makes a chunk of i + `included` bytes.
    pub(crate) included: usize,
    /// The last loose mark is the cut where no other is before the maximum (`tttd`).
    pub(crate) has_backups: bool,
}

impl Rule {
    /// One kind of marks, all windows whole.
    pub(crate) fn whole_windows(first: usize, min: usize, max: usize) -> Self {
        Self {
            min,
            max,
            first,
            whole: first,
            normal: 0,
            included: 0,
            has_backups: false,
        }
    }

    /// One kind of marks, of a hash that starts with the byte at the minimum.
    pub(crate) fn started_at_min(min: usize, max: usize, window: usize) -> Self {
        Self {
            whole: min + window - 1,
            ..Self::whole_windows(min, min, max)
        }
    }
}

/// Marks that can be searched.
pub(crate) trait Found {
    /// The first mark of a kind at these positions of the stream.
    fn first(&mut self, is_strict: bool, positions: Range<usize>) -> Option<usize>;

    /// The last loose mark at these positions of the stream.
    fn last_loose(&mut self, positions: Range<usize>) -> Option<usize>;
}

/// The second stage: the length of the first chunk of `data`, which begins at `origin` in the stream
/// and has at least max bytes or ends with it.
pub(crate) fn cut(
    method: &dyn Windowed,
    data: &[u8],
    origin: usize,
    found: &mut dyn Found,
) -> usize {
    let rule = method.rule();
    let end = data.len().min(rule.max);
    if end <= rule.min {
        return end;
    }
    let whole = rule.whole.min(end);
    if whole > rule.first {
        let length = method.cut_in_order(&data[..whole]);
        if length < whole {
            return length;
        }
    }
    let normal = rule.normal.clamp(whole, end);
    let inside = |start: usize, end: usize| origin + start..origin + end;
    let position = found
        .first(true, inside(whole, normal))
        .or_else(|| found.first(false, inside(normal, end)))
        .or_else(|| {
            let is_wanted = rule.has_backups && data.len() >= rule.max;
            is_wanted.then(|| found.last_loose(inside(whole, end)))?
        });
    position.map_or(end, |position| position - origin + rule.included)
}

/// The chunks of a stream in memory, when all marks are known.
fn cuts(method: &dyn Windowed, data: &[u8], found: &mut dyn Found) -> Vec<Range<usize>> {
    let mut chunks = Vec::new();
    let mut start = 0;
    while start < data.len() {
        let length = cut(method, &data[start..], start, found);
        chunks.push(start..start + length);
        start += length;
    }
    chunks
}

/// Where segments of equal size begin and end.
fn segments(length: usize, segment_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..length).step_by(segment_bytes);
    starts.map(move |start| start..(start + segment_bytes).min(length))
}

/// The chunker judges no hash of a window, so that there is nothing to mark; or, as
/// `fastcdc-crate-v2020`, has no form in two stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{algorithm} can't be cut in two stages")]
pub struct NotWindowed {
    /// The algorithm.
    pub algorithm: Algorithm,
}

/// What can be cut in two stages.
#[derive(Clone, Debug)]
struct WindowedChunker(Chunker);

impl WindowedChunker {
    fn new(chunker: Chunker) -> Result<Self, NotWindowed> {
        let algorithm = chunker.parameters().algorithm;
        match chunker.windowed() {
            Some(_) => Ok(Self(chunker)),
            None => Err(NotWindowed { algorithm }),
        }
    }

    fn method(&self) -> &dyn Windowed {
        self.0.windowed().expect("looked at when it was made")
    }
}

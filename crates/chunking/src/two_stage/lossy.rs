//! Segments that are cut each by itself: parallel, and not what one thread would cut.
//!
//! What most parallel chunkers do, and what SS-CDC is compared with (Ni §2.2.3, Table 2.2): *SFSS*,
//! several threads on one file, a segment each, and *MFSS*, which is a file a thread and so loses
//! nothing but to the segments that a thread may cut its file into. A chunk ends with its segment, and
//! the window does not reach across (Shredder). P-Dedupe joins chunks at these ends.
//!
//! For any chunker, windowed or not.

use super::segments;
use crate::Chunker;
use std::ops::Range;

/// A segment to chunk, on any thread.
#[derive(Clone, Debug)]
pub struct LossyJob<'a> {
    chunker: &'a Chunker,
    data: &'a [u8],
    segment: Range<usize>,
}

/// Jobs, one a segment, to be run in any order; their chunks, laid end to end, are the data.
///
/// # Panics
/// When segments have no bytes.
pub fn lossy_jobs<'a>(
    chunker: &'a Chunker,
    data: &'a [u8],
    segment_bytes: usize,
) -> impl Iterator<Item = LossyJob<'a>> {
    segments(data.len(), segment_bytes).map(move |segment| LossyJob {
        chunker,
        data,
        segment,
    })
}

impl LossyJob<'_> {
    /// The chunks of the segment, as ranges of the whole.
    #[must_use]
    pub fn run(self) -> Vec<Range<usize>> {
        let start = self.segment.start;
        let chunks = self.chunker.chunks(&self.data[self.segment]);
        chunks
            .map(|chunk| start + chunk.start..start + chunk.end)
            .collect()
    }
}

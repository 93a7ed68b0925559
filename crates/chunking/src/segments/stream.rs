//! Segments of a reader, with bounded memory.
//!
//! Enters: anything that reads. Leaves: batches of segments whose jobs can run at the same time,
//! and their chunks once they have. The cuts are those of the whole stream in memory, whatever
//! sizes the reader hands out and however many segments a batch has.
//!
//! Memory: `max_bytes` and the segments of a batch, for each batch that the caller holds.

use super::{JoinCounts, Joiner, SegmentCuts, SegmentJob, Segments};
use std::fmt;
use std::io::{self, Read};

/// Cuts a reader by segments; see [`SegmentStream::next_batch`].
pub struct SegmentStream<R> {
    segments: Segments,
    reader: R,
    batch_segments: usize,
    /// How long the stream is said to be.
    expected_bytes: Option<u64>,
    /// `read[..filled]` is the chunk that waits, and what was read behind it.
    read: Vec<u8>,
    filled: usize,
    pending_bytes: usize,
    read_bytes: u64,
    has_ended: bool,
    counts: JoinCounts,
}

/// Segments that were read; see [`SegmentStream::join`].
pub struct SegmentBatch {
    /// The chunk that waits, and the segments behind it.
    bytes: Vec<u8>,
    pending_bytes: usize,
    is_last: bool,
}

/// Chunks that are certain.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SegmentedChunks {
    /// Their bytes, end to end; what stands behind is of the next.
    pub bytes: Vec<u8>,
    /// Their lengths.
    pub lengths: Vec<u32>,
}

impl<R: Read> SegmentStream<R> {
    /// A stream of the chunks of `reader`, read from where it stands by as many segments at a time.
    pub fn new(segments: Segments, reader: R, batch_segments: usize) -> Self {
        Self {
            segments,
            reader,
            batch_segments: batch_segments.max(1),
            expected_bytes: None,
            read: Vec::new(),
            filled: 0,
            pending_bytes: 0,
            read_bytes: 0,
            has_ended: false,
            counts: JoinCounts::default(),
        }
    }

    /// The same, for a stream that is said to have so many bytes: when they have been read and the
    /// batch has room for more, that is taken as the end, which saves a read and memory for what
    /// is short.
    #[must_use]
    pub fn expecting(mut self, bytes: Option<u64>) -> Self {
        self.expected_bytes = bytes;
        self
    }

    /// Reads the next batch of segments; `None` at the end of the stream. The batch before must
    /// have been [joined](Self::join): one that was not is lost.
    ///
    /// Blocks in the reader. Reads that were interrupted are tried again.
    ///
    /// # Errors
    /// What the reader fails with. No byte is lost: the next call goes on where the reader does.
    pub fn next_batch(&mut self) -> io::Result<Option<SegmentBatch>> {
        let full_bytes = self.pending_bytes + self.batch_segments * self.segments.segment_bytes;
        while !self.has_ended && self.filled < full_bytes {
            if self.filled == self.read.len() {
                let capacity = match self.expected_bytes {
                    // One byte more tells that the stream is longer.
                    Some(expected) if self.read_bytes <= expected => {
                        let left = usize::try_from(expected - self.read_bytes);
                        let left = left.unwrap_or(usize::MAX).saturating_add(1);
                        full_bytes.min(self.filled.saturating_add(left))
                    }
                    _ => full_bytes,
                };
                self.read.resize(capacity, 0);
            }
            self.fill()?;
        }
        if self.filled == 0 {
            return Ok(None);
        }
        let mut bytes = std::mem::take(&mut self.read);
        bytes.truncate(std::mem::take(&mut self.filled));
        Ok(Some(SegmentBatch {
            bytes,
            pending_bytes: std::mem::take(&mut self.pending_bytes),
            is_last: self.has_ended,
        }))
    }

    /// Makes chunks of a batch and of what its [jobs](SegmentBatch::jobs) found, in their order.
    ///
    /// # Panics
    /// When `cuts` are not the results of the batch's jobs.
    pub fn join(&mut self, batch: SegmentBatch, cuts: &[SegmentCuts]) -> SegmentedChunks {
        let segments = batch.segments(&self.segments);
        assert_eq!(cuts.len(), segments.len(), "a result for each segment");
        let mut joiner = Joiner::going_on(&self.segments, batch.pending_bytes, self.counts);
        let mut lengths = Vec::new();
        let mut each = |length| lengths.push(length as u32);
        let mut end = batch.pending_bytes;
        for (segment, cuts) in segments.zip(cuts) {
            let start = end - joiner.pending_bytes();
            end += segment.len();
            joiner.push(&batch.bytes[start..end], cuts, &mut each);
        }
        self.pending_bytes = joiner.pending_bytes();
        self.counts = joiner.counts();
        if batch.is_last {
            joiner.finish(&mut each);
            self.pending_bytes = 0;
        }
        let pending = &batch.bytes[batch.bytes.len() - self.pending_bytes..];
        self.read = pending.to_vec();
        self.filled = self.pending_bytes;
        SegmentedChunks {
            bytes: batch.bytes,
            lengths,
        }
    }

    /// What happened at the borders so far.
    #[must_use]
    pub fn counts(&self) -> JoinCounts {
        self.counts
    }

    /// How many bytes were read.
    #[must_use]
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// How it is cut.
    #[must_use]
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Reads once.
    fn fill(&mut self) -> io::Result<()> {
        let room = &mut self.read[self.filled..];
        match self.reader.read(room) {
            Ok(0) => self.has_ended = true,
            Ok(count) if count <= room.len() => {
                self.filled += count;
                self.read_bytes += count as u64;
                let has_room = self.filled < self.read.len();
                self.has_ended = has_room && Some(self.read_bytes) == self.expected_bytes;
            }
            Ok(_) => {
                return Err(io::Error::other(
                    "the reader claims more than it was given room for",
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl SegmentBatch {
    /// Its segments, in order: each can be run by itself.
    pub fn jobs<'a>(
        &'a self,
        segments: &'a Segments,
    ) -> impl ExactSizeIterator<Item = SegmentJob<'a>> {
        self.segments(segments).map(|data| SegmentJob {
            chunker: &segments.chunker,
            data,
        })
    }

    fn segments(&self, segments: &Segments) -> std::slice::Chunks<'_, u8> {
        self.bytes[self.pending_bytes..].chunks(segments.segment_bytes)
    }
}

/// Never shows the data.
impl<R> fmt::Debug for SegmentStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentStream")
            .field("segments", &self.segments)
            .field("read_bytes", &self.read_bytes)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Never shows the data.
impl fmt::Debug for SegmentBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentBatch")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Never shows the data.
impl fmt::Debug for SegmentedChunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentedChunks")
            .field("bytes", &self.bytes.len())
            .field("lengths", &self.lengths)
            .finish_non_exhaustive()
    }
}

//! Stores a stream of which only parts are read, because of the others it is known that they are as they were
//! in an earlier one that is stored: the image of a disk, with what changed since the last backup.
//!
//! Enters: a [`SparseStream`], which says where its holes are and can be read anywhere; the earlier stream's recipe,
//! and the ranges that may differ from it. Leaves: a recipe of runs taken over and of chunks stored now, and
//! the check value, for which fingerprints of chunks taken over come from container metadata.
//!
//! Method: from a place on that is not known to be as it was, the stream is cut as any stream is, until a cut falls
//! on the end of an earlier chunk behind which everything is as it was. From there on a chunker would cut
//! what it cut before, so earlier chunks are taken over, up to the one that touches the next change. An
//! earlier chunk whose end touches a change is cut again, since something may go on there now where the
//! stream, or what lay between two holes, ended before. So the chunks are those of a stream that was read in full, if
//! the earlier one was cut by the same chunker; if not, cuts meet later. (Chunkers that judge a cut by what is
//! behind it, too, `ae`, `maxp` and `tttd`, may have cut otherwise just before a change. It is the same stream all the
//! same.)
//!
//! Limits: read ahead of a cut is one largest chunk, which is what a change costs beside itself and the rest of its
//! chunk. Of the earlier recipe a run and its container's metadata are in memory.

mod earlier;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use chunking::Chunker;

use super::chunk_stream::CutSegment;
use super::fingerprint_pool::SegmentInTurn;
use super::incoming::IncomingStream;
use super::pending::PendingRecipe;
use super::stages::Stage;
use super::writer::{WriteError, Writer};
use crate::fingerprint::CheckValue;
use crate::recipe::{Recipe, Run};
use crate::restore::{ReadError, Reader};
use earlier::{EarlierChunks, Kept};

/// Runs taken over after which the open group is closed, so that what waits behind a new chunk stays short.
const RUNS_PER_GROUP_MAX: u64 = 64 << 10;

/// A stream with holes that can be read anywhere.
pub trait SparseStream {
    /// Its length in bytes.
    fn size_bytes(&self) -> u64;

    /// What is at `offset`, and up to where (exclusive, beyond `offset`) that goes on at least.
    ///
    /// # Errors
    /// When that can't be found out.
    fn extent_at(&mut self, offset: u64) -> io::Result<(SparseExtent, u64)>;

    /// Fills `buffer` with the bytes at `offset`. Blocks.
    ///
    /// # Errors
    /// When they can't be read.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// So many bytes more of the stream are stored.
    ///
    /// # Errors
    /// To stop.
    fn passed(&mut self, bytes: u64) -> io::Result<()>;
}

/// What is at a place of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparseExtent {
    /// Bytes.
    Data,
    /// Zeros that are not stored.
    Hole,
}

/// A stream that is stored, of which another is a later state.
#[derive(Debug)]
pub struct EarlierStream<'a> {
    /// Its recipe.
    pub recipe: &'a Recipe,
    /// What it is read by.
    pub reader: Reader,
    /// The ranges, ascending and apart from each other, that may differ now.
    pub changed: &'a [Range<u64>],
}

/// A stream that was stored.
#[derive(Debug)]
pub struct SplicedStream {
    /// Its recipe.
    pub recipe: PendingRecipe,
    /// Its check value.
    pub check: CheckValue,
    /// Bytes that were read of it.
    pub read_bytes: u64,
    /// Bytes of chunks that were taken over.
    pub kept_bytes: u64,
    /// Why no more of the earlier stream, or less, could be taken over.
    pub problems: Vec<ReadError>,
}

impl Writer {
    /// Stores a stream, taking over from an earlier one what did not change since.
    ///
    /// # Errors
    /// When the stream can't be read or the store can't be written.
    pub fn store_spliced(
        &mut self,
        stream: &mut dyn SparseStream,
        earlier: Option<EarlierStream<'_>>,
    ) -> Result<SplicedStream, WriteError> {
        let size_bytes = stream.size_bytes();
        let with = self.stream_chunking().clone();
        for stage in [Stage::Read, Stage::Chunk] {
            with.stages.meter(stage).set_threads(1);
        }
        with.stages.meter(Stage::Fingerprint).add_threads(1);
        let mut splicing = Splicing {
            incoming: IncomingStream::new(with.fingerprints.fingerprinter()),
            chunker: with.cutter.chunker().clone(),
            segment_bytes: with.read_bytes(),
            waiting: VecDeque::new(),
            waiting_max: self.stream_segments_max(),
            writer: self,
            stream,
            position: 0,
            size_bytes,
            buffer: Vec::new(),
            data_end: 0,
            is_data_end_known: false,
            read_bytes: 0,
            kept_bytes: 0,
            runs_in_group: 0,
        };
        let problems = match earlier {
            Some(earlier) => {
                let mut chunks = EarlierChunks::new(earlier, size_bytes);
                splicing.run(Some(&mut chunks))?;
                chunks.into_problems()
            }
            None => {
                splicing.run(None)?;
                Vec::new()
            }
        };
        let (recipe, check) = splicing.incoming.take(with.fingerprints.fingerprinter());
        Ok(SplicedStream {
            recipe,
            check,
            read_bytes: splicing.read_bytes,
            kept_bytes: splicing.kept_bytes,
            problems,
        })
    }
}

/// A stream while it is stored.
struct Splicing<'a> {
    writer: &'a mut Writer,
    stream: &'a mut dyn SparseStream,
    incoming: IncomingStream,
    chunker: Chunker,
    segment_bytes: usize,
    /// Segments whose fingerprints are being made.
    waiting: VecDeque<SegmentInTurn>,
    waiting_max: usize,
    /// How far it is cut, or taken over.
    position: u64,
    size_bytes: u64,
    /// Bytes from `position` on that were read ahead.
    buffer: Vec<u8>,
    /// Up to where there are data from `position` on, and whether a hole, or the end, is known to be there.
    data_end: u64,
    is_data_end_known: bool,
    read_bytes: u64,
    kept_bytes: u64,
    runs_in_group: u64,
}

impl Splicing<'_> {
    fn run(&mut self, mut earlier: Option<&mut EarlierChunks<'_>>) -> Result<(), WriteError> {
        while self.position < self.size_bytes {
            let kept = match &mut earlier {
                Some(earlier) => earlier.kept_at(self.position, self.writer.index()),
                None => None,
            };
            match kept {
                Some(kept) => self.keep(&kept)?,
                None => self.read_on(earlier.as_deref_mut())?,
            }
        }
        self.store_waiting(0)
    }

    /// Takes over what lies at the current place.
    fn keep(&mut self, kept: &Kept) -> Result<(), WriteError> {
        self.store_waiting(0)?;
        self.buffer.clear();
        let bytes = kept.run.bytes();
        match kept.run {
            Run::Hole { bytes } => self.incoming.hole(bytes),
            Run::Slots { .. } => {
                self.incoming.stored(kept.run, kept.chunks());
                self.kept_bytes += bytes;
            }
        }
        self.runs_in_group += 1;
        if self.runs_in_group >= RUNS_PER_GROUP_MAX {
            self.runs_in_group = 0;
            self.writer.decide_waiting()?;
            self.writer.close_group()?;
        }
        if self.runs_in_group.is_multiple_of(1024) {
            self.writer.page_out(self.incoming.recipe_mut())?;
        }
        self.pass(bytes)
    }

    fn pass(&mut self, bytes: u64) -> Result<(), WriteError> {
        self.position += bytes;
        Ok(self.stream.passed(bytes)?)
    }

    /// Passes a hole, or cuts what lies at the current place up to where earlier chunks may be taken over again, or as
    /// much as there is room for.
    fn read_on(&mut self, earlier: Option<&mut EarlierChunks<'_>>) -> Result<(), WriteError> {
        if self.position >= self.data_end {
            let (kind, end) = self.stream.extent_at(self.position)?;
            let end = end.min(self.size_bytes);
            if kind == SparseExtent::Hole {
                self.store_waiting(0)?;
                let bytes = end - self.position;
                self.incoming.hole(bytes);
                return self.pass(bytes);
            }
            (self.data_end, self.is_data_end_known) = (end, end == self.size_bytes);
        }
        let chunk_bytes_max = self.chunker.parameters().max_bytes as usize;
        let changed = match &earlier {
            Some(earlier) => earlier.changed_bytes_from(self.position),
            None => u64::MAX,
        };
        let changed = usize::try_from(changed).unwrap_or(usize::MAX);
        let wanted = changed.saturating_add(chunk_bytes_max);
        self.fill(wanted.min(self.segment_bytes))?;
        self.cut(earlier, chunk_bytes_max)
    }

    /// Reads ahead until there are so many bytes, or all up to the next hole.
    fn fill(&mut self, wanted_bytes: usize) -> Result<(), WriteError> {
        let wanted_end = self.position + wanted_bytes as u64;
        while self.data_end < wanted_end && !self.is_data_end_known {
            let (kind, end) = self.stream.extent_at(self.data_end)?;
            match kind {
                SparseExtent::Hole => self.is_data_end_known = true,
                SparseExtent::Data => self.data_end = end.min(self.size_bytes),
            }
            self.is_data_end_known |= self.data_end == self.size_bytes;
        }
        let wanted = (self.data_end.min(wanted_end) - self.position) as usize;
        let filled = self.buffer.len();
        if filled >= wanted {
            return Ok(());
        }
        self.buffer.resize(wanted, 0);
        let offset = self.position + filled as u64;
        let meter = self.writer.stream_chunking().stages.meter(Stage::Read);
        let (stream, buffer) = (&mut *self.stream, &mut self.buffer[filled..]);
        let bytes = buffer.len() as u64;
        meter.busy(bytes, || stream.read_at(offset, buffer))?;
        self.read_bytes += bytes;
        Ok(())
    }

    /// Cuts what was read ahead, and hands it on.
    fn cut(
        &mut self,
        mut earlier: Option<&mut EarlierChunks<'_>>,
        chunk_bytes_max: usize,
    ) -> Result<(), WriteError> {
        let is_end =
            self.is_data_end_known && self.position + self.buffer.len() as u64 == self.data_end;
        let mut lengths = Vec::new();
        let mut used = 0;
        let meter = self.writer.stream_chunking().stages.meter(Stage::Chunk);
        let mut is_met = false;
        meter.busy(0, || {
            while used < self.buffer.len()
                && (is_end || self.buffer.len() - used >= chunk_bytes_max)
                && !is_met
            {
                let length = self.chunker.cut(&self.buffer[used..]);
                lengths.push(length as u32);
                used += length;
                if let Some(earlier) = &mut earlier {
                    let place = self.position + used as u64;
                    is_met = earlier.may_be_kept_at(place);
                }
            }
        });
        meter.count_bytes(used as u64);
        let rest = if is_met {
            Vec::new()
        } else {
            self.buffer[used..].to_vec()
        };
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let is_more_to_come = !is_met && bytes.len() == self.segment_bytes;
        let fingerprints = &self.writer.stream_chunking().fingerprints;
        let segment = fingerprints.take(CutSegment { bytes, lengths }, is_more_to_come);
        self.waiting.push_back(segment);
        self.store_waiting(self.waiting_max)?;
        if is_met {
            // What there is is asked again where reading goes on.
            self.data_end = 0;
        }
        self.pass(used as u64)
    }

    /// Stores segments until at most so many wait.
    fn store_waiting(&mut self, left_max: usize) -> Result<(), WriteError> {
        let meter = self.writer.stream_chunking().stages.clone();
        let meter = meter.meter(Stage::Index);
        while self.waiting.len() > left_max
            && let Some(segment) = self.waiting.pop_front()
        {
            meter.busy_but_for_waits(0, || {
                self.incoming.segment(segment, self.writer)?;
                self.writer.page_out(self.incoming.recipe_mut())
            })?;
        }
        Ok(())
    }
}

//! Copies chunks as they are.
//!
//! What a batch needs and the target has not is read in the order of the source's containers, each visited once for the
//! batch, verified by the source's fingerprints, given the target's, and stored. Then files refer to their chunks in the
//! target by these.

use std::collections::VecDeque;
use std::io;

use engine::container::{ContainerId, Slot};
use engine::pipeline::{
    CutSegment, FingerprintPool, PendingRecipe, SegmentInTurn, StreamPiece, WriteError, Writer,
};
use engine::recipe::{Recipe, Run};
use engine::restore::ReadError;

use super::table::ChunkTable;
use super::{Batch, Copy, CopyError, Current, Item};
use crate::progress::Progress;
use crate::tree::Entry;

/// Bytes of chunks that are fingerprinted together.
const SEGMENT_BYTES: usize = 1 << 20;

/// Segments whose fingerprints are being made.
const SEGMENTS_WAITING_MAX: usize = 4;

/// Parts of a file after which a long recipe is paged, if it can be.
const PARTS_PER_PAGING: usize = 1 << 10;

impl Copy<'_> {
    /// Enters a file and what has to be read of it into the batch, and stores batches that are full.
    pub(super) fn gather_chunks(
        &mut self,
        entry: Entry,
        path: &[u8],
        current: &mut Current,
    ) -> Result<(), CopyError> {
        let read_error = |error: ReadError| CopyError::Read {
            path: path.to_vec(),
            error,
        };
        let mut check = self.reader.containers().fingerprinter().check();
        let mut runs = self.reader.runs(&entry.content);
        while let Some((run, located)) = runs.next_located().map_err(read_error)? {
            match (run, located) {
                (
                    Run::Slots {
                        container,
                        first,
                        count,
                        ..
                    },
                    Some(located),
                ) => {
                    let section = &located.section.section;
                    for chunk in located.chunks.clone() {
                        let (length, fingerprint) =
                            (section.lengths[chunk], section.fingerprints[chunk]);
                        check.chunk(length, &fingerprint);
                        let Slot(slot) = section.slots[chunk];
                        if self.table.get(container, slot).is_some() {
                            continue;
                        }
                        if self.has_same_fingerprints && self.writer.has_chunk(&fingerprint)? {
                            self.table.set(container, slot, length, fingerprint);
                        } else {
                            self.table.set_waiting(container, slot, length);
                            current.batch.want(container, slot, length);
                        }
                        current.batch.chunks += 1;
                    }
                    let Slot(first) = first;
                    current.batch.items.push(Item::Chunks {
                        container,
                        first,
                        count,
                    });
                }
                (run, _) => {
                    check.hole(run.bytes());
                    current.batch.items.push(Item::Hole(run.bytes()));
                }
            }
            // A file may be larger than all batches.
            if current.batch.chunks >= self.limits.chunks
                || current.batch.items.len() >= 2 * self.limits.items
            {
                self.store(current)?;
            }
        }
        if entry
            .check
            .is_some_and(|expected| expected != check.finish())
        {
            return Err(read_error(ReadError::Check));
        }
        let (entry, path) = (Box::new(entry), path.to_vec());
        current.batch.items.push(Item::File { entry, path });
        Ok(())
    }

    /// Reads what the batch wants, and stores it.
    pub(super) fn store_chunks(&mut self, batch: &mut Batch) -> Result<(), CopyError> {
        batch.chunks = 0;
        let path = match batch.items.last() {
            Some(Item::File { path, .. }) => path.clone(),
            _ => self.progress.current(),
        };
        let (recipe, wanted) = batch.take_wanted();
        if wanted.is_empty() {
            return Ok(());
        }
        let fingerprints = self.writer.stream_chunking().fingerprints.clone();
        let mut storing = Storing {
            writer: &mut self.writer,
            table: &mut self.table,
            progress: self.progress,
            fingerprints,
            wanted: wanted.into(),
            bytes: Vec::new(),
            whole_bytes: 0,
            lengths: Vec::new(),
            places: Vec::new(),
            waiting: VecDeque::new(),
            error: None,
        };
        let cache_bytes = self.source.settings().memory_bytes / 4;
        let mut take = |piece: StreamPiece<'_>| match piece {
            StreamPiece::Bytes(bytes) => storing.take(bytes),
            StreamPiece::Hole(_) => Ok(()),
        };
        let read = self
            .room
            .read_in_order(&self.reader, &recipe, None, cache_bytes, &mut take);
        let stored = storing.finish();
        match (read, stored) {
            (_, Err(error)) => Err(error.into()),
            (Err(error), _) => Err(Self::in_order_error(&path, error)),
            (Ok(report), Ok(())) => {
                self.report.bytes_read += report.bytes;
                self.report.containers_read += report.containers_read;
                Ok(())
            }
        }
    }

    /// Has the items of the batch refer to chunks that are stored by now.
    pub(super) fn refer(&mut self, current: &mut Current) -> Result<(), CopyError> {
        let mut parts = 0;
        for item in std::mem::take(&mut current.batch.items) {
            match item {
                Item::Chunks {
                    container,
                    first,
                    count,
                } => {
                    self.refer_to(container, first, count, current)?;
                    parts += 1;
                    if parts % PARTS_PER_PAGING == 0 && current.tree.settle(&mut self.writer)? {
                        self.writer.page_out(current.incoming.recipe_mut())?;
                    }
                }
                Item::Hole(bytes) => {
                    current.incoming.hole(bytes);
                    Progress::add(&self.progress.bytes_done, bytes);
                }
                Item::File { entry, .. } => {
                    self.end_file(*entry, &mut current.incoming, &mut current.tree)?;
                }
                item => self.plain_item(item, &mut current.tree)?,
            }
        }
        Ok(())
    }

    fn refer_to(
        &mut self,
        container: ContainerId,
        first: u16,
        count: u32,
        current: &mut Current,
    ) -> Result<(), CopyError> {
        for slot in u32::from(first)..u32::from(first) + count {
            // A run's slots are those of a container, which has at most 65,535.
            let known = self
                .table
                .get(container, slot as u16)
                .ok_or(CopyError::Lost)?;
            let fingerprint = known.fingerprint.ok_or(CopyError::Lost)?;
            let incoming = &mut current.incoming;
            if !incoming.known(&fingerprint, known.length, &mut self.writer)? {
                return Err(CopyError::Lost);
            }
            Progress::add(&self.progress.bytes_done, u64::from(known.length));
        }
        Ok(())
    }
}

/// Places of chunks, with their lengths, in the order in which they come.
type Wanted = Vec<(ContainerId, u16, u32)>;

impl Batch {
    fn want(&mut self, container: ContainerId, slot: u16, length: u32) {
        let slots = self.slots.entry(container).or_insert_with(|| {
            self.containers.push(container);
            Vec::new()
        });
        slots.push((slot, length));
    }

    /// What is to be read, container by container, as one stream.
    fn take_wanted(&mut self) -> (Recipe, Wanted) {
        let mut slots = std::mem::take(&mut self.slots);
        let mut runs: Vec<Run> = Vec::new();
        let mut wanted = Vec::new();
        for container in std::mem::take(&mut self.containers) {
            let mut slots = slots.remove(&container).unwrap_or_default();
            slots.sort_unstable();
            let mut next = None;
            for (slot, length) in slots {
                wanted.push((container, slot, length));
                match runs.last_mut() {
                    Some(Run::Slots { count, bytes, .. }) if next == Some(slot) => {
                        *count += 1;
                        *bytes += u64::from(length);
                    }
                    _ => runs.push(Run::Slots {
                        container,
                        first: Slot(slot),
                        count: 1,
                        bytes: u64::from(length),
                    }),
                }
                next = slot.checked_add(1);
            }
        }
        (Recipe::Runs(runs), wanted)
    }
}

/// Stores chunks as their bytes come.
struct Storing<'a> {
    writer: &'a mut Writer,
    table: &'a mut ChunkTable,
    progress: &'a Progress,
    fingerprints: FingerprintPool,
    wanted: VecDeque<(ContainerId, u16, u32)>,
    /// Bytes of chunks that are not handed on, the first of them whole.
    bytes: Vec<u8>,
    whole_bytes: usize,
    lengths: Vec<u32>,
    places: Vec<(ContainerId, u16, u32)>,
    waiting: VecDeque<(SegmentInTurn, Wanted)>,
    error: Option<WriteError>,
}

impl Storing<'_> {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.progress.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.bytes.extend_from_slice(bytes);
        while let Some(&place) = self.wanted.front()
            && self.whole_bytes + place.2 as usize <= self.bytes.len()
        {
            self.whole_bytes += place.2 as usize;
            self.lengths.push(place.2);
            self.places.push(place);
            self.wanted.pop_front();
        }
        if self.whole_bytes < SEGMENT_BYTES {
            return Ok(());
        }
        self.hand_on(true);
        self.store(SEGMENTS_WAITING_MAX).map_err(|error| {
            self.error = Some(error);
            io::Error::other("the target can't be written")
        })
    }

    fn hand_on(&mut self, is_more_to_come: bool) {
        let rest = self.bytes.split_off(self.whole_bytes);
        self.whole_bytes = 0;
        let segment = CutSegment {
            bytes: std::mem::replace(&mut self.bytes, rest),
            lengths: std::mem::take(&mut self.lengths),
        };
        let places = std::mem::take(&mut self.places);
        let segment = self.fingerprints.take(segment, is_more_to_come);
        self.waiting.push_back((segment, places));
    }

    /// Stores segments until at most so many wait.
    fn store(&mut self, left_max: usize) -> Result<(), WriteError> {
        while self.waiting.len() > left_max
            && let Some((segment, places)) = self.waiting.pop_front()
        {
            let segment = segment.wait().map_err(|_| WriteError::WorkerLost)?;
            for ((container, slot, length), (fingerprint, _)) in places.iter().zip(&segment.chunks)
            {
                self.table.set(*container, *slot, *length, *fingerprint);
            }
            // Nobody refers to chunks in this order.
            let mut recipe = PendingRecipe::default();
            self.writer.push_segment(&mut recipe, segment)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), WriteError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if !self.lengths.is_empty() {
            self.hand_on(false);
        }
        self.store(0)
    }
}

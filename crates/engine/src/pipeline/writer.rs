//! Stores chunks and pages, each once: the thread that decides.
//!
//! The caller hands in chunks in walk order. A chunk that is stored already becomes a run at
//! its place; a new one gets a sequence number, joins the open group, and goes to the
//! compressing workers and the packer. Its place is known a little later:
//! [`Writer::settle`] turns a [`PendingRecipe`] into a recipe once it is.

mod known;
mod resembling;
mod rewriting;
mod settling;
mod streams;
mod totals;

pub use totals::{WriteError, WriteTotals};

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crossbeam_channel::{Receiver, unbounded};

use super::adaptive::{Adaptation, CompressionEffort};
use super::budget::{Failure, Stopped, lock};
use super::chunk_stream::{ChunkedSegment, StreamChunking};
use super::compressing::start_compressing;
use super::decision_window::DecisionWindow;
use super::deltas::{DeltaParts, DeltaSettings, DeltaStage};
use super::index_merging::IndexMerging;
use super::metadata_packer::MetadataPacker;
use super::ordered::JobSender;
use super::packer::{GroupDone, GroupJob, Packer, PlainGroup, SealedNote, SharedPlacements};
use super::pending::{PendingRecipe, Placements};
use super::put_pool::PutPool;
use super::stages::Stage;
use crate::container::{ChunkAddress, Compressor, ContainerKind, NewChunk, SealedContainer};
use crate::engine::{Engine, EngineSettings};
use crate::fingerprint::Fingerprint;
use crate::format::ObjectError;
use crate::index::{Found, Index, IndexMemory, OpenPlace};
use crate::object::ObjectId;
use crate::recipe::Run;
use crate::restore::Reader;

/// Stores chunks and pages of one backup run.
pub struct Writer {
    chunking: StreamChunking,
    /// Segments of a stream that may wait to be stored while it is read on.
    stream_segments_max: usize,
    index: Index,
    /// Where duplicates may be stored again.
    deciding: Option<DecisionWindow>,
    index_merging: IndexMerging,
    /// Where similar chunks become deltas.
    deltas: Option<DeltaStage>,
    /// The open group: whole chunks, one after the other.
    group_plain: Vec<u8>,
    group_chunks: Vec<NewChunk>,
    group_bytes: usize,
    next_sequence: u64,
    next_offset: u64,
    groups: Option<JobSender<GroupJob, GroupDone>>,
    placements: Arc<SharedPlacements>,
    sealed: Receiver<SealedNote>,
    packer: Option<JoinHandle<()>>,
    metadata: MetadataPacker,
    puts: PutPool,
    adaptation: Adaptation,
    failure: Failure,
    flushes: u64,
    totals: WriteTotals,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("totals", &self.totals)
            .finish_non_exhaustive()
    }
}

impl Writer {
    /// Opens the index and starts the threads.
    pub(crate) fn start(engine: &Engine) -> Result<Self, WriteError> {
        let settings = engine.settings();
        let stages = engine.stages();
        let shares = settings.shares();
        let reader = Arc::new(engine.container_reader(shares.container_bytes)?);
        let memory = IndexMemory {
            run_bytes: shares.index_bytes,
            locality_bytes: shares.locality_bytes,
        };
        let mut index = Index::open(
            Arc::clone(engine.store()),
            Arc::clone(engine.vault()),
            Arc::clone(&reader),
            memory,
            engine.condemned(),
        )?;
        let deciding = DecisionWindow::new(
            settings.rewriting,
            settings.container_bytes,
            shares.window_bytes,
        );
        if deciding.is_some() {
            index.note_own();
        }
        let mut index_merging = IndexMerging::default();
        if engine.is_discarding() {
            index_merging.cancel(); // What it would write is not there afterwards.
        }
        index_merging.start_if_needed(&index);
        let failure = Failure::default();
        let (notes, sealed) = unbounded();
        let puts = PutPool::start(
            engine.store(),
            &notes,
            index_merging.merging(),
            settings.put_threads.max(1),
            shares.put_bytes,
            stages,
            &failure,
        )
        .map_err(WriteError::Threads)?;
        let effort = CompressionEffort::new(settings.compression, settings.threads.max(1));
        let (groups, done) =
            start_compressing(settings, stages, &effort, &failure).map_err(WriteError::Threads)?;
        let placements = Arc::new(SharedPlacements::default());
        let features_per_chunk = |deltas: &DeltaSettings| deltas.detection.super_features();
        let packer = |kind| Packer {
            kind,
            features_per_chunk: settings.deltas.as_ref().map_or(0, features_per_chunk),
            vault: Arc::clone(engine.vault()),
            container_bytes: settings.container_bytes,
            effort: effort.clone(),
            has_markers: engine.cutter().needs_markers(),
            placements: Arc::clone(&placements),
            puts: puts.clone(),
            stages: stages.clone(),
        };
        let deltas = settings.deltas.as_ref().map(|with| {
            DeltaStage::start(DeltaParts {
                settings,
                with,
                reader: &Reader::new(Arc::clone(&reader), shares.base_bytes),
                packer: packer(ContainerKind::Deltas),
                puts: &puts,
                stages,
                failure: &failure,
            })
        });
        let deltas = deltas.transpose()?;
        if deltas.is_some() {
            index.note_fetched();
        }
        let packer = packer(ContainerKind::Data);
        stages.meter(Stage::Index).set_threads(1);
        let packer = thread::Builder::new()
            .name("pack".to_owned())
            .spawn(move || packer.run(done))
            .map_err(WriteError::Threads)?;
        let chunking = engine.stream_chunking().map_err(WriteError::Threads)?;
        Ok(Self {
            stream_segments_max: stream_segments_max(&chunking, settings, shares.read_bytes),
            chunking,
            index,
            deciding,
            index_merging,
            deltas,
            group_plain: Vec::new(),
            group_chunks: Vec::new(),
            group_bytes: settings.group_bytes as usize,
            next_sequence: 0,
            next_offset: 0,
            groups: Some(groups),
            placements,
            sealed,
            packer: Some(packer),
            metadata: MetadataPacker::new(
                Arc::clone(engine.vault()),
                settings.metadata_container_bytes(),
                Compressor::new(settings.compression.level()),
            ),
            puts,
            adaptation: Adaptation::new(&effort, stages),
            failure,
            flushes: 0,
            totals: WriteTotals::default(),
        })
    }

    /// How streams are cut whose chunks it is to be given, and by which threads fingerprinted.
    #[must_use]
    pub fn stream_chunking(&self) -> &StreamChunking {
        &self.chunking
    }

    /// Segments of a stream that may wait to be stored while it is read on.
    pub(super) fn stream_segments_max(&self) -> usize {
        self.stream_segments_max
    }

    /// What was stored so far.
    #[must_use]
    pub fn totals(&self) -> WriteTotals {
        self.totals
    }

    /// The index it decides by.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Takes nothing from that container object any more: see [`Index::set_aside`].
    pub fn set_aside(&mut self, object: ObjectId) {
        self.index.set_aside(object);
    }

    /// Where the chunk or page of that fingerprint is stored, if it is, in a container that may be referred to: for
    /// repairs, which have no more of it. Those of this run are not looked for.
    ///
    /// # Errors
    /// When the store fails; damage is passed over.
    pub fn find_stored(
        &mut self,
        fingerprint: &Fingerprint,
    ) -> Result<Option<ChunkAddress>, ObjectError> {
        match self.index.find(fingerprint)? {
            Some(Found::Stored(address)) => Ok(Some(address)),
            Some(Found::Open(_)) | None => Ok(None),
        }
    }

    /// The generation of remaps that it reads by.
    #[must_use]
    pub fn remap_generation(&self) -> u64 {
        self.index.remap_generation()
    }

    /// Adds consecutive chunks to a recipe, storing those that are new.
    ///
    /// # Errors
    /// When the store fails, here or in the background.
    pub fn push_segment(
        &mut self,
        recipe: &mut PendingRecipe,
        segment: ChunkedSegment,
    ) -> Result<(), WriteError> {
        self.take_notes();
        if let Some(mut ahead) = self.deciding.take() {
            let pushed = self.push_ahead(&mut ahead, recipe, segment);
            self.deciding = Some(ahead);
            return pushed;
        }
        let mut offset = 0;
        for (fingerprint, length) in &segment.chunks {
            let end = offset + *length as usize;
            self.push_chunk(recipe, *fingerprint, &segment.bytes[offset..end])?;
            offset = end;
        }
        Ok(())
    }

    fn push_chunk(
        &mut self,
        recipe: &mut PendingRecipe,
        fingerprint: Fingerprint,
        chunk: &[u8],
    ) -> Result<(), WriteError> {
        let bytes = chunk.len() as u64;
        self.totals.chunks += 1;
        if let Some(found) = self.index.find(&fingerprint)? {
            Self::refer(recipe, found, bytes);
            return Ok(());
        }
        self.totals.chunks_new += 1;
        self.totals.bytes_new += bytes;
        self.store_new(recipe, fingerprint, chunk)
    }

    /// Adds a chunk that is stored already.
    fn refer(recipe: &mut PendingRecipe, found: Found, bytes: u64) {
        match found {
            Found::Stored(address) | Found::Open(OpenPlace::Address(address)) => {
                recipe.push_placed(Run::Slots {
                    container: address.container,
                    first: address.slot,
                    count: 1,
                    bytes,
                });
            }
            Found::Open(OpenPlace::Sequence {
                kind,
                sequence,
                offset,
            }) => {
                recipe.push_new(kind, sequence, offset, bytes);
            }
        }
    }

    /// Stores a chunk whole, which may be a base by these super-features, if there are any.
    fn store_whole(
        &mut self,
        recipe: &mut PendingRecipe,
        fingerprint: Fingerprint,
        chunk: &[u8],
        features: Vec<u32>,
    ) -> Result<(), WriteError> {
        let bytes = chunk.len() as u64;
        let kind = ContainerKind::Data;
        let (sequence, offset) = (self.next_sequence, self.next_offset);
        self.next_sequence += 1;
        self.next_offset += bytes;
        let place = OpenPlace::Sequence {
            kind,
            sequence,
            offset,
        };
        self.index.insert_open(fingerprint, place);
        recipe.push_new(kind, sequence, offset, bytes);
        if self.group_plain.capacity() == 0 {
            self.group_plain
                .reserve(self.group_bytes + (self.group_bytes >> 3));
        }
        self.group_plain.extend_from_slice(chunk);
        self.group_chunks.push(NewChunk {
            features,
            last_byte: chunk.last().copied().unwrap_or(0),
            ..NewChunk::whole(fingerprint, chunk.len() as u32)
        });
        if self.group_plain.len() >= self.group_bytes {
            self.close_group_of_whole()?;
        }
        Ok(())
    }

    /// Closes the open groups early, so that what waits for their chunks' places need not wait for
    /// them to fill. Call it at places that the input alone decides, or packing would depend on
    /// time.
    ///
    /// # Errors
    /// When the store failed.
    pub fn close_group(&mut self) -> Result<(), WriteError> {
        self.close_group_of_whole()?;
        if let Some(deltas) = &mut self.deltas {
            deltas.close().map_err(|Stopped| self.failure.take())?;
        }
        Ok(())
    }

    fn close_group_of_whole(&mut self) -> Result<(), WriteError> {
        if self.group_chunks.is_empty() {
            return Ok(());
        }
        let plain = std::mem::take(&mut self.group_plain);
        let group = PlainGroup::new(plain, std::mem::take(&mut self.group_chunks), Vec::new());
        if let Some(deltas) = &mut self.deltas {
            deltas.closed_whole(self.next_sequence - group.chunks.len() as u64, &group);
        }
        let bytes = 2 * group.plain().len();
        let started = Instant::now();
        self.submit(GroupJob::Group(group), bytes)?;
        self.adaptation.group(started.elapsed());
        if let Some(deltas) = &mut self.deltas {
            deltas.trim_whole().map_err(|Stopped| self.failure.take())?;
        }
        if self.index.is_recent_full() {
            // They are durable: what is not is not among them.
            self.index.write_recent()?;
            self.index_merging.start_if_needed(&self.index);
        }
        Ok(())
    }

    fn wait_for_puts(&self) -> Result<(), WriteError> {
        let meter = self.chunking.stages.meter(Stage::Index);
        meter
            .blocked(|| self.puts.wait())
            .map_err(|Stopped| self.failure.take())
    }

    fn submit(&self, job: GroupJob, bytes: usize) -> Result<(), WriteError> {
        let groups = self.groups.as_ref().ok_or(WriteError::Stopped)?;
        let meter = self.chunking.stages.meter(Stage::Index);
        meter
            .blocked(|| groups.submit(job, bytes, 1))
            .map_err(|Stopped| self.failure.take())
    }

    /// Learns of containers that are durable by now.
    fn take_notes(&mut self) {
        while let Ok(note) = self.sealed.try_recv() {
            self.take_note(&note);
        }
    }

    fn take_note(&mut self, note: &SealedNote) {
        self.totals.containers += 1;
        self.totals.stored_bytes += note.object_bytes;
        self.totals.filled_bytes += note.filled_bytes;
        self.totals.container_metadata_bytes += note.metadata_bytes;
        self.index.sealed(&note.section, note.metadata_bytes);
        for (chunk, delta) in note.section.deltas.iter().enumerate() {
            if let Some(delta) = delta {
                self.totals.delta_chunks += 1;
                self.totals.delta_chunk_bytes += u64::from(note.section.lengths[chunk]);
                self.totals.delta_bytes += u64::from(delta.stored_bytes);
            }
        }
        if let Some(deltas) = &mut self.deltas {
            deltas.note_own(note.section.id);
        }
    }

    /// Stores a page of metadata, unless it is there already, and says where.
    ///
    /// # Errors
    /// When the store fails.
    pub fn push_page(&mut self, page: &[u8]) -> Result<Run, WriteError> {
        let fingerprinter = self.chunking.fingerprints.fingerprinter();
        let fingerprint = fingerprinter.fingerprint(ContainerKind::Metadata, page);
        self.totals.pages += 1;
        let address = match self.index.find(&fingerprint)? {
            Some(Found::Stored(address) | Found::Open(OpenPlace::Address(address))) => address,
            Some(Found::Open(OpenPlace::Sequence { .. })) | None => {
                self.totals.pages_new += 1;
                self.totals.page_bytes_new += page.len() as u64;
                let (address, sealed) = self.metadata.push(fingerprint, page);
                self.index
                    .insert_open(fingerprint, OpenPlace::Address(address));
                self.put_metadata(sealed)?;
                address
            }
        };
        Ok(Run::Slots {
            container: address.container,
            first: address.slot,
            count: 1,
            bytes: page.len() as u64,
        })
    }

    fn put_metadata(&mut self, sealed: Option<SealedContainer>) -> Result<(), WriteError> {
        if let Some(container) = sealed {
            let meter = self.chunking.stages.meter(Stage::Index);
            meter
                .blocked(|| self.puts.put(container))
                .map_err(|Stopped| self.failure.take())?;
            self.take_notes();
        }
        Ok(())
    }

    /// Closes the open group and container of data: afterwards every chunk is decided and has a place.
    ///
    /// # Errors
    /// When the store failed.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.decide_waiting()?;
        self.close_group_of_whole()?;
        self.submit(GroupJob::Flush, 0)?;
        if let Some(deltas) = &mut self.deltas {
            deltas.flush().map_err(|Stopped| self.failure.take())?;
        }
        self.flushes += 1;
        let placements = Arc::clone(&self.placements);
        let meter = self.chunking.stages.meter(Stage::Index);
        let mut state = lock(&placements.state);
        let is_behind = |state: &Placements| {
            let flushes = |kind| state.of(kind).flushes;
            let deltas = self.deltas.is_some();
            flushes(ContainerKind::Data) < self.flushes
                || (deltas && flushes(ContainerKind::Deltas) < self.flushes)
        };
        while is_behind(&state) {
            if state.ended {
                return Err(self.failure.take());
            }
            let wait = || placements.changed.wait(state);
            state = meter.blocked(wait).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        Ok(())
    }

    /// Makes everything durable and writes the index run. Afterwards recipes may be referred
    /// to by something that is stored itself.
    ///
    /// # Errors
    /// When the store failed.
    pub fn commit(&mut self) -> Result<WriteTotals, WriteError> {
        self.flush()?;
        let last = self.metadata.close(true);
        self.put_metadata(last)?;
        self.wait_for_puts()?;
        self.take_notes();
        self.index.write_recent()?;
        Ok(self.totals)
    }

    /// Tidies the index when it has many runs, and notes there what was set aside. Call it after
    /// the snapshot is written; a failure here does no harm.
    ///
    /// # Errors
    /// When the store fails.
    pub fn merge_index(&mut self) -> Result<(), ObjectError> {
        self.index_merging.join();
        self.index.merge_runs(&AtomicBool::new(false))
    }

    /// Notes in the index what was set aside, and leaves the rest to the next run: for one that
    /// somebody has stopped.
    ///
    /// # Errors
    /// When the store fails.
    pub fn leave_index(&mut self) -> Result<(), ObjectError> {
        self.index_merging.cancel();
        self.index.merge_runs(&AtomicBool::new(true))
    }
}

/// As many segments as keep every thread busy, if they have room beside the two that are read and
/// handed on.
fn stream_segments_max(
    chunking: &StreamChunking,
    settings: &EngineSettings,
    read_bytes: usize,
) -> usize {
    let fitting = (read_bytes / chunking.read_bytes()).saturating_sub(2);
    fitting.clamp(1, settings.threads + 1)
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.groups = None;
        if let Some(packer) = self.packer.take() {
            // A packer that panicked has ended the placements' wait already.
            let _ = packer.join();
        }
        self.deltas = None;
        // Nothing is written any more once a writer is gone; a failure was told before, or
        // concerns what nobody refers to.
        let _ = self.puts.wait();
    }
}

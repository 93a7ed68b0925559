//! Stores chunks and pages, each once: the thread that decides.
//!
//! The caller hands in chunks in walk order. A chunk that is stored already becomes a run at
//! its place; a new one gets a sequence number, joins the open group, and goes to the
//! compressing workers and the packer. Its place is known a little later:
//! [`Writer::settle`] turns a [`PendingRecipe`] into a recipe once it is.

use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, unbounded};

use super::budget::{ByteBudget, Failure, Stopped, lock};
use super::chunk_stream::{ChunkedSegment, Sectioning, StreamChunking, chunk_stream};
use super::cutter::Cutter;
use super::metadata_packer::MetadataPacker;
use super::ordered::{Emitter, JobSender, ordered_pool};
use super::packer::{GroupDone, GroupJob, Packer, PlainGroup, SealedNote, SharedPlacements};
use super::pending::PendingRecipe;
use super::put_pool::PutPool;
use crate::container::{Compressor, ContainerKind, SealedContainer};
use crate::engine::Engine;
use crate::fingerprint::Fingerprint;
use crate::format::ObjectError;
use crate::index::{Found, Index, IndexMemory, OpenPlace, RECENT_CHUNKS_MAX};
use crate::object::{ObjectId, StoreError};
use crate::recipe::{
    ContainerTable, RECIPE_LEVEL_MAX, RUNS_PER_PAGE_MAX, Recipe, RecipePage, Run, RunJoiner,
};

/// Containers of metadata have at least this size, so that any page fits one.
const METADATA_CONTAINER_BYTES_MIN: u32 = 2 << 20;

/// Why nothing more can be stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An object could not be written or read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The stream to be stored could not be read.
    #[error("cannot read the stream: {0}")]
    Read(#[from] std::io::Error),
    /// A stream is so fragmented that its recipe exceeds the limits of the format.
    #[error("a stream's recipe exceeds {RECIPE_LEVEL_MAX} levels of pages")]
    RecipeTooLong,
    /// An earlier failure stopped the pipeline.
    #[error("the pipeline stopped after a failure")]
    Stopped,
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        WriteError::Object(error.into())
    }
}

/// What a writer stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteTotals {
    /// Chunks of data handed in.
    pub chunks: u64,
    /// Those that were new.
    pub chunks_new: u64,
    /// Bytes of the new ones.
    pub bytes_new: u64,
    /// Pages of metadata handed in.
    pub pages: u64,
    /// Those that were new.
    pub pages_new: u64,
    /// Bytes of the new ones.
    pub page_bytes_new: u64,
    /// Containers written.
    pub containers: u64,
    /// Bytes of container objects written.
    pub stored_bytes: u64,
    /// Bytes of data, metadata and tags in them.
    pub filled_bytes: u64,
    /// Bytes of container metadata in them.
    pub container_metadata_bytes: u64,
}

/// Stores chunks and pages of one backup run.
pub struct Writer {
    cutter: Arc<Cutter>,
    threads: usize,
    fingerprinter: Arc<crate::fingerprint::Fingerprinter>,
    index: Index,
    group: PlainGroup,
    group_bytes: usize,
    next_sequence: u64,
    next_offset: u64,
    groups: Option<JobSender<GroupJob, GroupDone>>,
    placements: Arc<SharedPlacements>,
    sealed: Receiver<SealedNote>,
    packer: Option<JoinHandle<()>>,
    metadata: MetadataPacker,
    puts: PutPool,
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
    pub(crate) fn start(engine: &Engine) -> Result<Self, ObjectError> {
        let settings = engine.settings();
        let share = settings.memory_bytes / 8;
        let reader = Arc::new(engine.container_reader(share)?);
        let memory = IndexMemory {
            run_bytes: share,
            locality_bytes: share,
        };
        let index = Index::open(
            Arc::clone(engine.store()),
            Arc::clone(engine.vault()),
            reader,
            memory,
        )?;
        let failure = Failure::default();
        let puts = PutPool::start(engine.store(), &failure);
        let budget = ByteBudget::new(settings.memory_bytes / 4);
        failure.watch(&budget);
        let level = settings.compression;
        let (groups, done) = ordered_pool("compress", settings.threads, budget, move || {
            let mut compressor = Compressor::new(level);
            Box::new(move |job, out: &Emitter<GroupDone>| {
                // Nobody takes results once something failed; then there is nothing to do.
                let _ = out.emit(match job {
                    GroupJob::Flush => GroupDone::Flush,
                    GroupJob::Group(group) => GroupDone::Group {
                        compressed: compressor.compress(&group.plain),
                        group,
                    },
                });
            })
        });
        let placements = Arc::new(SharedPlacements::default());
        let (sealed_sender, sealed) = unbounded();
        let packer = Packer {
            vault: Arc::clone(engine.vault()),
            container_bytes: settings.container_bytes,
            level,
            has_markers: engine.cutter().needs_markers(),
            placements: Arc::clone(&placements),
            sealed: sealed_sender,
            puts: puts.clone(),
        };
        let packer = thread::Builder::new()
            .name("pack".to_owned())
            .spawn(move || packer.run(done))
            .expect("the system starts a thread");
        Ok(Self {
            cutter: Arc::clone(engine.cutter()),
            threads: engine.threads_a_stream(),
            fingerprinter: Arc::clone(engine.fingerprinter()),
            index,
            group: PlainGroup::default(),
            group_bytes: settings.group_bytes as usize,
            next_sequence: 0,
            next_offset: 0,
            groups: Some(groups),
            placements,
            sealed,
            packer: Some(packer),
            metadata: MetadataPacker::new(
                Arc::clone(engine.vault()),
                settings.container_bytes.max(METADATA_CONTAINER_BYTES_MIN),
                Compressor::new(level),
            ),
            puts,
            failure,
            flushes: 0,
            totals: WriteTotals::default(),
        })
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

    /// The generation of remaps that it reads by.
    #[must_use]
    pub fn remap_generation(&self) -> u64 {
        self.index.remap_generation()
    }

    /// Reads a stream to its end and stores it.
    ///
    /// # Errors
    /// When the stream can't be read or the store can't be written.
    pub fn store_stream(
        &mut self,
        stream: &mut dyn std::io::Read,
    ) -> Result<PendingRecipe, WriteError> {
        let mut recipe = PendingRecipe::default();
        let mut stored = Ok(());
        let cutter = Arc::clone(&self.cutter);
        let fingerprinter = Arc::clone(&self.fingerprinter);
        let with = StreamChunking {
            cutter: &cutter,
            threads: self.threads,
            fingerprinter: &fingerprinter,
            sectioning: Sectioning::WholeStream,
        };
        chunk_stream(with, stream, None, None, &mut |segment| {
            stored = self.push_segment(&mut recipe, &segment);
            stored.is_ok()
        })?;
        stored?;
        Ok(recipe)
    }

    /// Adds consecutive chunks to a recipe, storing those that are new.
    ///
    /// # Errors
    /// When the store fails, here or in the background.
    pub fn push_segment(
        &mut self,
        recipe: &mut PendingRecipe,
        segment: &ChunkedSegment,
    ) -> Result<(), WriteError> {
        self.take_notes();
        let mut offset = 0;
        for (fingerprint, length) in &segment.chunks {
            let end = offset + *length as usize;
            self.push_chunk(recipe, *fingerprint, &segment.bytes[offset..end])?;
            offset = end;
        }
        self.page_out(recipe)
    }

    fn push_chunk(
        &mut self,
        recipe: &mut PendingRecipe,
        fingerprint: Fingerprint,
        chunk: &[u8],
    ) -> Result<(), WriteError> {
        let bytes = chunk.len() as u64;
        self.totals.chunks += 1;
        match self.index.find(&fingerprint)? {
            Some(Found::Stored(address)) | Some(Found::Open(OpenPlace::Address(address))) => {
                recipe.push_placed(Run::Slots {
                    container: address.container,
                    first: address.slot,
                    count: 1,
                    bytes,
                });
            }
            Some(Found::Open(OpenPlace::Sequence { sequence, offset })) => {
                recipe.push_new(sequence, offset, bytes);
            }
            None => {
                let (sequence, offset) = (self.next_sequence, self.next_offset);
                self.next_sequence += 1;
                self.next_offset += bytes;
                self.totals.chunks_new += 1;
                self.totals.bytes_new += bytes;
                let place = OpenPlace::Sequence { sequence, offset };
                self.index.insert_open(fingerprint, place);
                recipe.push_new(sequence, offset, bytes);
                if self.group.plain.capacity() == 0 {
                    self.group
                        .plain
                        .reserve(self.group_bytes + (self.group_bytes >> 3));
                }
                self.group.plain.extend_from_slice(chunk);
                self.group.chunks.push((fingerprint, chunk.len() as u32));
                if self.group.plain.len() >= self.group_bytes {
                    self.close_group()?;
                }
            }
        }
        Ok(())
    }

    /// Closes the open group early, so that what waits for its chunks' places need not wait for
    /// it to fill. Call it at places that the input alone decides, or packing would depend on
    /// time.
    ///
    /// # Errors
    /// When the store failed.
    pub fn close_group(&mut self) -> Result<(), WriteError> {
        if self.group.chunks.is_empty() {
            return Ok(());
        }
        let group = std::mem::take(&mut self.group);
        let bytes = 2 * group.plain.len();
        self.submit(GroupJob::Group(group), bytes)?;
        if self.index.recent_chunks() >= RECENT_CHUNKS_MAX {
            self.puts.wait().map_err(|Stopped| self.failure.take())?;
            self.index.write_recent()?;
        }
        Ok(())
    }

    fn submit(&self, job: GroupJob, bytes: usize) -> Result<(), WriteError> {
        let groups = self.groups.as_ref().ok_or(WriteError::Stopped)?;
        groups
            .submit(job, bytes)
            .map_err(|Stopped| self.failure.take())
    }

    /// Learns of containers that the packer sealed.
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
        self.index.sealed(&note.section);
    }

    /// Stores a page of metadata, unless it is there already, and says where.
    ///
    /// # Errors
    /// When the store fails.
    pub fn push_page(&mut self, page: &[u8]) -> Result<Run, WriteError> {
        let fingerprint = self
            .fingerprinter
            .fingerprint(ContainerKind::Metadata, page);
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
            self.take_note(&SealedNote::of(&container));
            self.puts
                .put(container)
                .map_err(|Stopped| self.failure.take())?;
        }
        Ok(())
    }

    /// Do all chunks of this recipe have their place by now?
    pub fn is_settled(&mut self, recipe: &mut PendingRecipe) -> bool {
        recipe.settle(&lock(&self.placements.state))
    }

    /// Turns a pending recipe into one that can be stored, waiting until all its chunks have a
    /// place. Long recipes are paged.
    ///
    /// # Errors
    /// When the store fails, here or in the background.
    pub fn settle(&mut self, mut recipe: PendingRecipe) -> Result<Recipe, WriteError> {
        self.wait_for_places(&mut recipe)?;
        self.page_out(&mut recipe)?;
        let (mut pages, runs) = recipe.into_placed();
        if pages.is_empty() {
            return Ok(Recipe::Runs(runs));
        }
        if !runs.is_empty() {
            pages.push(self.push_runs_page(&runs)?);
        }
        let mut level = 1;
        while pages.len() > RUNS_PER_PAGE_MAX {
            level += 1;
            if level > RECIPE_LEVEL_MAX {
                return Err(WriteError::RecipeTooLong);
            }
            let mut above = Vec::new();
            for below in pages.chunks(RUNS_PER_PAGE_MAX) {
                let recipe = Recipe::Paged {
                    level: level - 1,
                    pages: below.to_vec(),
                };
                above.push(self.push_recipe_page(&recipe)?);
            }
            pages = above;
        }
        Ok(Recipe::Paged { level, pages })
    }

    fn wait_for_places(&mut self, recipe: &mut PendingRecipe) -> Result<(), WriteError> {
        if self.is_settled(recipe) {
            return Ok(());
        }
        let first_in_group = self.next_sequence - self.group.chunks.len() as u64;
        if recipe.needs() > first_in_group {
            self.close_group()?;
        }
        let placements = Arc::clone(&self.placements);
        let mut state = lock(&placements.state);
        loop {
            if recipe.settle(&state) {
                return Ok(());
            }
            if state.ended {
                return Err(self.failure.take());
            }
            state = placements
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Moves the settled front of a long recipe into pages, so that memory stays bounded.
    fn page_out(&mut self, recipe: &mut PendingRecipe) -> Result<(), WriteError> {
        self.is_settled(recipe);
        while let Some(runs) = recipe.take_page(RUNS_PER_PAGE_MAX) {
            let page = self.push_runs_page(&runs)?;
            recipe.pages.push(page);
        }
        Ok(())
    }

    fn push_runs_page(&mut self, runs: &[Run]) -> Result<RecipePage, WriteError> {
        self.push_recipe_page(&Recipe::Runs(runs.to_vec()))
    }

    fn push_recipe_page(&mut self, recipe: &Recipe) -> Result<RecipePage, WriteError> {
        let mut table = ContainerTable::default();
        let mut body = Vec::new();
        recipe.encode(&mut table, &mut body);
        let mut page = Vec::with_capacity(body.len() + 18 * table.containers().len());
        table.encode(&mut page);
        page.extend_from_slice(&body);
        Ok(RecipePage {
            stream_bytes: recipe.stream_bytes(),
            page: vec![self.push_page(&page)?],
        })
    }

    /// Stores the pages of a directory (or any list of pages) and returns their recipe.
    ///
    /// # Errors
    /// When the store fails.
    pub fn push_pages(&mut self, pages: &[Vec<u8>]) -> Result<Recipe, WriteError> {
        let mut joiner = RunJoiner::default();
        for page in pages {
            let run = self.push_page(page)?;
            joiner.push(run);
        }
        self.settle(PendingRecipe::from_runs(&joiner.finish()))
    }

    /// Closes the open group and container of data: afterwards every chunk has a place.
    ///
    /// # Errors
    /// When the store failed.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.close_group()?;
        self.submit(GroupJob::Flush, 0)?;
        self.flushes += 1;
        let placements = Arc::clone(&self.placements);
        let mut state = lock(&placements.state);
        while state.flushes < self.flushes {
            if state.ended {
                return Err(self.failure.take());
            }
            state = placements
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.take_notes();
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
        self.puts.wait().map_err(|Stopped| self.failure.take())?;
        self.index.write_recent()?;
        Ok(self.totals)
    }

    /// Tidies the index when it has many runs, and notes there what was set aside. Call it after
    /// the snapshot is written; a failure here does no harm.
    ///
    /// # Errors
    /// When the store fails.
    pub fn merge_index(&mut self) -> Result<(), ObjectError> {
        self.index.merge_runs()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.groups = None;
        if let Some(packer) = self.packer.take() {
            // A packer that panicked has ended the placements' wait already.
            let _ = packer.join();
        }
        // Nothing is written any more once a writer is gone; a failure was told before, or
        // concerns what nobody refers to.
        let _ = self.puts.wait();
    }
}

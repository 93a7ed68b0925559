//! Backs files up: walk, read, chunk, store, and at last the snapshot.
//!
//! ```text
//! walk thread ──jobs──▶ reading workers ──results in walk order──▶ this thread
//!  walk + parent:         open, read,                               Writer (each chunk once),
//!  unchanged files        chunk, fingerprint                        TreeBuilder (directories)
//!  need no reading
//! ```
//!
//! The snapshot is written last, when everything it names is durable. A run that dies leaves
//! containers that no snapshot names; the next backup finds their chunks.

mod options;
mod parent;
mod producer;
mod read_file;
mod tree_builder;

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use engine::Engine;
use engine::format::ObjectError;
use engine::object::{ObjectId, ObjectKind};
use engine::pipeline::{ByteBudget, PendingRecipe, Trail, WriteError, Writer, ordered_pool};
use engine::recipe::Run;
use engine::restore::Reader;

pub use options::{BackupOptions, BackupReport, ExcludeOptions};

use crate::config::ConfigError;
use crate::files::FilesError;
use crate::listing::SnapshotTree;
use crate::progress::{Problem, Progress};
use crate::repository::{PROGRAM, Repository, RepositoryError};
use crate::snapshot::{Snapshot, SnapshotErrors, SnapshotFilter, Summary, latest};
use crate::timestamp::Timestamp;
use crate::tree::{Entry, EntryKind, Metadata};
use parent::{LiveContainers, ParentCursor, ParentDamage};
use producer::{Job, Kept, Producer, READ_WINDOW_BYTES, Reading, count_ahead};
use read_file::{Produced, ReadFile, read_file};
use tree_builder::{Content, TreeBuilder};

/// Pages of long recipes that are kept while their files are read.
const HINT_CACHE_BYTES: usize = 4 << 20;

/// Why no snapshot was made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The store, while chunks were being stored.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was to be backed up.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The stream to be backed up.
    #[error("cannot read the stream: {0}")]
    Stream(std::io::Error),
    /// Where the stream came from says that it is not whole.
    #[error("{0}")]
    Source(String),
    /// Somebody asked for a stop.
    #[error("interrupted; no snapshot was written, and the next backup uses what was stored")]
    Interrupted,
    /// A thread of the backup ended before its work was done.
    #[error("a worker thread ended unexpectedly; no snapshot was written")]
    WorkerLost,
}

impl From<ObjectError> for BackupError {
    fn from(error: ObjectError) -> Self {
        BackupError::Repository(error.into())
    }
}

/// A backup while it runs.
struct RunningBackup<'a> {
    repository: &'a Repository,
    engine: Engine,
    options: &'a BackupOptions,
    progress: &'a Progress,
    started: Instant,
    snapshot: Snapshot,
    /// Damage met in the repository.
    warnings: Vec<Problem>,
}

impl Repository {
    /// Backs up files and directories, given by their paths, as one snapshot.
    ///
    /// Files that can't be read are reported to `progress`, listed in the snapshot, and counted
    /// in the report: it is for the caller to look at [`BackupReport::errors`].
    ///
    /// # Errors
    /// When no snapshot was written.
    pub fn backup(
        &self,
        sources: &[PathBuf],
        options: &BackupOptions,
        progress: &Progress,
    ) -> Result<BackupReport, BackupError> {
        let mut run = RunningBackup::begin(self, options, progress)?;
        let mut writer = run.engine.writer().map_err(RepositoryError::from)?;
        let producer = Producer::new(sources, options, run.reading())?;
        run.snapshot.paths = producer.paths();
        let parent = run.parent()?;
        run.snapshot.parent = parent.as_ref().map(|parent| parent.id);
        let cursor = match &parent {
            Some(parent) => {
                let reader = run.engine.reader().map_err(RepositoryError::from)?;
                let live = LiveContainers::new(writer.index().live_objects().clone());
                Some(ParentCursor::new(SnapshotTree::new(reader, parent), live))
            }
            None => None,
        };
        let stop = AtomicBool::new(false);
        let root = std::thread::scope(|scope| {
            if options.count_ahead {
                scope.spawn(|| count_ahead(sources, options, progress, &stop));
            }
            let root = run.store_files(&mut writer, producer, cursor);
            stop.store(true, Ordering::Relaxed);
            root
        })?;
        run.snapshot.root = root;
        run.commit(writer)
    }

    /// Backs up a stream as one file called `name`. `finish` is called at the stream's end and
    /// may say that it was not whole: then there is no snapshot.
    ///
    /// # Errors
    /// When no snapshot was written.
    pub fn backup_stream(
        &self,
        name: &[u8],
        stream: &mut dyn Read,
        finish: &mut dyn FnMut() -> Result<(), String>,
        options: &BackupOptions,
        progress: &Progress,
    ) -> Result<BackupReport, BackupError> {
        let mut run = RunningBackup::begin(self, options, progress)?;
        run.snapshot.paths = vec![name.to_vec()];
        let mut writer = run.engine.writer().map_err(RepositoryError::from)?;
        let mut counted = CountedStream { stream, progress };
        progress.set_current(name);
        let mut trail = run.stream_trail(&writer, name)?;
        let stored =
            read_file::store_stream(&run.engine, &mut writer, &mut counted, trail.as_mut());
        if let Some(damage) = trail.as_mut().and_then(ParentDamage::of_trail) {
            run.take_damage(damage, &mut writer);
        }
        let (recipe, check) = match stored {
            Err(_) if progress.is_cancelled() => return Err(BackupError::Interrupted),
            Err(WriteError::Read(error)) => return Err(BackupError::Stream(error)),
            other => other?,
        };
        finish().map_err(BackupError::Source)?;
        let mut entry = Entry::new(name.to_vec(), EntryKind::File, stream_metadata());
        entry.size = recipe.stream_bytes();
        entry.check = (entry.size > 0).then_some(check);
        run.snapshot.summary.files = 1;
        run.snapshot.summary.files_new = 1;
        run.snapshot.summary.files_bytes = entry.size;
        run.snapshot.summary.bytes_read = entry.size;
        let mut tree = TreeBuilder::new(Arc::clone(run.engine.fingerprinter()));
        tree.entry(entry, Content::Pending(recipe));
        writer.flush()?;
        let (root, refused) = tree.finish(&mut writer)?;
        if let Some(refused) = refused.first() {
            return Err(BackupError::Source(refused.to_string()));
        }
        run.snapshot.root = root;
        Progress::add(&progress.files_done, 1);
        run.commit(writer)
    }
}

/// Metadata of a file that never lay on a disk.
fn stream_metadata() -> Metadata {
    let now = Timestamp::now();
    Metadata {
        mode: 0o600,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        modified: now,
        changed: now,
        ..Metadata::default()
    }
}

/// A stream whose bytes count as progress, and which ends when somebody asks for a stop.
struct CountedStream<'a> {
    stream: &'a mut dyn Read,
    progress: &'a Progress,
}

impl Read for CountedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(std::io::Error::other("stopped"));
        }
        let count = self.stream.read(buffer)?;
        Progress::add(&self.progress.bytes_done, count as u64);
        Ok(count)
    }
}

impl<'a> RunningBackup<'a> {
    fn begin(
        repository: &'a Repository,
        options: &'a BackupOptions,
        progress: &'a Progress,
    ) -> Result<Self, BackupError> {
        repository
            .config()
            .check_writable()
            .map_err(|error: ConfigError| RepositoryError::from(error))?;
        let engine = if options.dry_run {
            repository.engine().discarding()
        } else {
            repository.engine().clone()
        };
        let snapshot = Snapshot {
            time: Timestamp::now(),
            host: options.host.clone(),
            tags: options.tags.clone(),
            excludes: options.excludes.patterns.clone(),
            user: crate::files::current_user(),
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            run: Some(ObjectId::random()),
            program: PROGRAM.to_owned(),
            ..Snapshot::default()
        };
        Ok(Self {
            repository,
            engine,
            options,
            progress,
            started: Instant::now(),
            snapshot,
            warnings: Vec::new(),
        })
    }

    /// The snapshot that unchanged files are taken from.
    fn parent(&mut self) -> Result<Option<Snapshot>, BackupError> {
        if let Some(id) = self.options.parent {
            let vault = self.engine.vault();
            let parent = Snapshot::load(self.repository.store(), vault, id);
            return Ok(Some(parent.map_err(RepositoryError::from)?));
        }
        let list = self.repository.snapshots()?;
        for unreadable in &list.unreadable {
            self.warn(
                b"",
                format!("a snapshot can't be read: {}", unreadable.error),
            );
        }
        let filter = SnapshotFilter {
            hosts: vec![self.snapshot.host.clone()],
            paths: self.snapshot.paths.clone(),
            tags: Vec::new(),
        };
        Ok(latest(&list.snapshots, &filter).cloned())
    }

    /// How workers are to read files.
    fn reading(&self) -> Reading {
        let mut window_bytes = READ_WINDOW_BYTES;
        if let Some(segment_bytes) = self.engine.cutter().segment_bytes() {
            // What is cut, and what was handed on before.
            let batch = self.engine.threads_a_stream() * segment_bytes;
            window_bytes = window_bytes.max(2 * batch as u64);
        }
        Reading {
            takes_hints: self.engine.cutter().takes_hints(),
            window_bytes,
        }
    }

    /// What hints are read by: what the index reads by, so that nothing is fetched twice.
    fn hint_reader(&self, writer: &Writer) -> Option<Reader> {
        let containers = Arc::clone(writer.index().containers());
        let takes_hints = self.engine.cutter().takes_hints();
        takes_hints.then(|| Reader::new(containers, HINT_CACHE_BYTES))
    }

    /// What the stream called `name` was in the latest snapshot of it.
    fn stream_trail(&mut self, writer: &Writer, name: &[u8]) -> Result<Option<Trail>, BackupError> {
        let Some(reader) = self.hint_reader(writer) else {
            return Ok(None);
        };
        let Some(parent) = self.parent()? else {
            return Ok(None);
        };
        let tree = SnapshotTree::new(reader.clone(), &parent);
        for entry in tree.directory(tree.root(), b"") {
            match entry {
                Ok(entry) if entry.name == name && entry.kind == EntryKind::File => {
                    return Ok(Some(Trail::new(reader, &entry.content)));
                }
                Ok(_) => {}
                Err(error) => {
                    self.warn(b"", format!("the snapshot before is damaged: {error}"));
                    break;
                }
            }
        }
        Ok(None)
    }

    /// A part of the parent can't be read: nothing new may rest on it.
    fn take_damage(&mut self, damage: ParentDamage, writer: &mut Writer) {
        if let Some(object) = damage.container {
            writer.set_aside(object);
        }
        let message = format!("the parent snapshot is damaged: {}", damage.message);
        self.warn(b"", message);
    }

    fn store_files(
        &mut self,
        writer: &mut Writer,
        producer: Producer,
        cursor: Option<ParentCursor>,
    ) -> Result<engine::recipe::Recipe, BackupError> {
        let settings = self.repository.settings();
        let budget = ByteBudget::new((settings.memory_bytes / 4).max(8 << 20));
        let engine = self.engine.clone();
        let parent = self.hint_reader(writer);
        let (jobs, mut results) =
            ordered_pool("read", settings.read_threads, budget.clone(), move || {
                let (engine, parent) = (engine.clone(), parent.clone());
                Box::new(move |job, out| {
                    read_file(job, engine.stream_chunking(), parent.as_ref(), out);
                })
            });
        let mut tree = TreeBuilder::new(Arc::clone(self.engine.fingerprinter()));
        let progress = self.progress;
        let outcome = std::thread::scope(|scope| {
            let walk = scope.spawn(move || producer.run(&jobs, cursor, progress));
            let stored = self.take_results(writer, &mut tree, &mut results);
            // Whoever waits for room must not wait for a consumer that is gone.
            budget.stop();
            drop(results);
            let walked = walk.join().map_err(|_| BackupError::WorkerLost)?;
            stored.and(walked)
        });
        outcome?;
        writer.flush()?;
        let (root, refused) = tree.finish(writer)?;
        for problem in refused {
            self.record(&problem);
        }
        Ok(root)
    }

    fn take_results(
        &mut self,
        writer: &mut Writer,
        tree: &mut TreeBuilder,
        results: &mut engine::pipeline::Results<Produced>,
    ) -> Result<(), BackupError> {
        let mut open = PendingRecipe::default();
        let mut is_complete = false;
        while let Some(result) = results.next_result() {
            if self.progress.is_cancelled() {
                return Err(BackupError::Interrupted);
            }
            match result {
                Produced::Segment(segment) => {
                    let before = writer.totals().bytes_new;
                    let bytes: u64 = segment.chunks.iter().map(|c| u64::from(c.1)).sum();
                    self.snapshot.summary.bytes_read += bytes;
                    writer.push_segment(&mut open, &segment)?;
                    Progress::add(&self.progress.bytes_done, bytes);
                    let new = writer.totals().bytes_new - before;
                    Progress::add(&self.progress.bytes_new, new);
                }
                Produced::Hole(bytes) => {
                    open.push_placed(Run::Hole { bytes });
                    Progress::add(&self.progress.bytes_done, bytes);
                }
                Produced::File {
                    entry,
                    path,
                    is_new,
                } => {
                    self.progress.set_current(path.as_os_str().as_bytes());
                    self.count_file(&entry, Some(is_new));
                    tree.entry(*entry, Content::Pending(std::mem::take(&mut open)));
                    tree.advance(writer)?;
                }
                Produced::Unreadable(problem) => {
                    open = PendingRecipe::default();
                    self.record(&problem);
                }
                Produced::Job(job) => {
                    is_complete |= matches!(job, Job::End);
                    self.take_job(job, writer, tree)?;
                }
            }
        }
        if !is_complete {
            return Err(BackupError::WorkerLost);
        }
        Ok(())
    }

    fn take_job(
        &mut self,
        job: Job,
        writer: &mut Writer,
        tree: &mut TreeBuilder,
    ) -> Result<(), BackupError> {
        match job {
            Job::Enter(entry) => {
                self.snapshot.summary.directories += 1;
                tree.enter(*entry);
            }
            Job::Leave => tree.leave(),
            Job::Keep { entry, path, kept } => {
                self.progress.set_current(&path);
                match kept {
                    Kept::NoContent => self.snapshot.summary.other_entries += 1,
                    Kept::Unchanged => self.count_file(&entry, None),
                    Kept::Linked => self.count_file(&entry, Some(true)),
                }
                if kept != Kept::NoContent {
                    Progress::add(&self.progress.bytes_done, entry.size);
                }
                let content = match kept {
                    Kept::Linked => Content::Linked,
                    Kept::Unchanged | Kept::NoContent => Content::Settled,
                };
                tree.entry(*entry, content);
            }
            Job::Problem(problem) => self.record(&problem),
            Job::ParentDamage(damage) => self.take_damage(damage, writer),
            Job::End => return Ok(()),
            Job::Read(ReadFile { .. }) => return Err(BackupError::WorkerLost),
        }
        tree.advance(writer)?;
        Ok(())
    }

    /// Counts a file: read and new or changed, or taken over from the parent.
    fn count_file(&mut self, entry: &Entry, is_new: Option<bool>) {
        let summary: &mut Summary = &mut self.snapshot.summary;
        summary.files += 1;
        summary.files_bytes += entry.size;
        match is_new {
            Some(true) => summary.files_new += 1,
            Some(false) => summary.files_changed += 1,
            None => summary.files_unmodified += 1,
        }
        Progress::add(&self.progress.files_done, 1);
    }

    /// Tells of damage in the repository that the backup works around.
    fn warn(&mut self, path: &[u8], message: String) {
        let problem = Problem {
            path: path.to_vec(),
            message,
            is_error: false,
        };
        self.progress.report(&problem);
        self.warnings.push(problem);
    }

    fn record(&mut self, problem: &Problem) {
        if problem.is_error {
            let errors: &mut SnapshotErrors = &mut self.snapshot.errors;
            errors.record(problem.path.clone(), problem.message.clone());
        }
        self.progress.report(problem);
    }

    /// Makes everything durable, then writes the snapshot.
    fn commit(mut self, mut writer: Writer) -> Result<BackupReport, BackupError> {
        if self.progress.is_cancelled() {
            return Err(BackupError::Interrupted);
        }
        // In a dry run what is written can't be read back: that is no damage.
        let damaged_before = writer.index().damaged();
        let totals = writer.commit()?;
        let damaged = match self.options.dry_run {
            true => damaged_before,
            false => writer.index().damaged(),
        };
        for message in damaged {
            self.warn(b"", message);
        }
        let summary = &mut self.snapshot.summary;
        summary.bytes_new = totals.bytes_new;
        summary.bytes_stored = totals.stored_bytes;
        summary.chunks = totals.chunks;
        summary.chunks_new = totals.chunks_new;
        summary.milliseconds = self.started.elapsed().as_millis() as u64;
        self.snapshot.remap_generation = writer.remap_generation();
        let mut stored_bytes = totals.stored_bytes;
        if !self.options.dry_run {
            let vault = self.engine.vault();
            let store = self.engine.store().as_ref();
            let written = self.snapshot.write(store, vault);
            stored_bytes += written.map_err(RepositoryError::from)?;
            // The snapshot stands; an index with many runs is slower, not wrong.
            if let Err(error) = writer.merge_index() {
                let subject = ObjectKind::Index.directory().as_bytes();
                self.warn(subject, format!("the index could not be tidied: {error}"));
            }
        }
        self.progress.is_total_known.store(true, Ordering::Relaxed);
        Ok(BackupReport {
            errors: self.snapshot.errors.count,
            snapshot: self.snapshot,
            totals,
            stored_bytes,
            repository_warnings: self.warnings,
        })
    }
}

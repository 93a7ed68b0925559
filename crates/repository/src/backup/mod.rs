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

mod disk;
mod import;
mod options;
pub(crate) mod parent;
mod producer;
mod read_file;
mod stream;
pub(crate) mod tree_builder;

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use engine::Engine;
use engine::format::ObjectError;
use engine::object::{ObjectKey, ObjectKind};
use engine::pipeline::{
    ByteBudget, DeltaLevel, IncomingStream, PoolOptions, Results, Stage, WriteError, Writer,
    ordered_pool,
};
use engine::recipe::Recipe;
use engine::restore::Reader;

pub use disk::{DiskImage, EarlierImage};
pub use import::ImportOptions;
pub use options::{BackupOptions, BackupReport, ExcludeOptions};

use crate::deletion::runs::{Registration, RunKind};
use crate::files::FilesError;
use crate::listing::SnapshotTree;
use crate::progress::{Problem, Progress};
use crate::repository::{PROGRAM, Repository, RepositoryError};
use crate::snapshot::{
    Snapshot, SnapshotErrors, SnapshotFilter, Summary, interrupted_since, latest,
};
use crate::tar::TarError;
use crate::timestamp::Timestamp;
use crate::tree::Entry;
use parent::{LiveContainers, ParentDamage, Parents};
use producer::{Job, Jobs, Kept, Producer, Reading, WalkStep, count_ahead};
use read_file::{Produced, read_file};
use tree_builder::{Content, TreeBuilder};

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
    /// The archive to be imported.
    #[error(transparent)]
    Archive(#[from] TarError),
    /// Where the stream came from says that it is not whole.
    #[error("{0}")]
    Source(String),
    /// Somebody asked for a stop. What was stored until then is durable.
    #[error("interrupted; the next backup goes on from what was stored")]
    Interrupted(Box<BackupReport>),
    /// Deltas are asked for in a repository that was created without them.
    #[error("the repository was created without deltas (`init --delta off`): it can have none")]
    NoDeltas,
    /// A prune took the backup for dead, and may have deleted what it refers to.
    #[error(
        "the backup showed no sign of life for so long that a prune took it for dead, so its snapshot was taken back; run it again: what was stored is used"
    )]
    TakenForDead,
    /// A thread of the backup ended before its work was done.
    #[error("a worker thread ended unexpectedly; no snapshot was written")]
    WorkerLost,
}

impl From<ObjectError> for BackupError {
    fn from(error: ObjectError) -> Self {
        BackupError::Repository(error.into())
    }
}

/// Interrupted backups that a backup goes on from at most: each is asked for every file.
const INTERRUPTED_PARENTS_MAX: usize = 8;

/// What became of a tree.
struct StoredTree {
    root: Recipe,
    /// Nobody stopped it.
    is_whole: bool,
}

/// Tells others to stop when it goes, even by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
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
    /// That it is at work; none in a dry run.
    registration: Option<Registration>,
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
        let mut writer = run.engine.writer()?;
        let producer = Producer::new(sources, options)?;
        run.snapshot.paths = producer.paths();
        let parents = run.parents(&writer)?;
        let stop = AtomicBool::new(false);
        let stored = std::thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            if options.count_ahead {
                let count = || count_ahead(sources, options, progress, &stop);
                // Without it, progress has no total.
                let _ = std::thread::Builder::new().spawn_scoped(scope, count);
            }
            run.store_files(&mut writer, producer, parents)
        })?;
        run.snapshot.root = stored.root;
        run.commit(writer, stored.is_whole)
    }
}

impl<'a> RunningBackup<'a> {
    fn begin(
        repository: &'a Repository,
        options: &'a BackupOptions,
        progress: &'a Progress,
    ) -> Result<Self, BackupError> {
        repository.check_writable()?;
        // Before it looks at anything: what a prune deletes from now on, it knows of.
        let registration = match options.dry_run {
            true => None,
            false => Some(repository.register(RunKind::Writer, &options.host)?),
        };
        let engine = repository.engine_without_condemned()?;
        let engine = match options.dry_run {
            true => engine.discarding(),
            false => engine,
        };
        let engine = engine.metered(&progress.stages);
        let engine = match options.rewriting {
            Some(rewriting) => engine.rewriting(rewriting),
            None => engine,
        };
        let engine = match options.deltas {
            Some(level) if level != DeltaLevel::Off && !repository.config().may_have_deltas() => {
                return Err(BackupError::NoDeltas);
            }
            Some(level) => engine.with_deltas(level.settings()),
            None => engine,
        };
        let snapshot = Snapshot {
            time: Timestamp::now(),
            host: options.host.clone(),
            tags: options.tags.clone(),
            excludes: options.excludes.patterns.clone(),
            user: crate::files::current_user(),
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            run: registration.as_ref().map(Registration::id),
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
            registration,
            warnings: Vec::new(),
        })
    }

    /// Shows that it is at work still.
    fn show_life(&self) -> Result<(), BackupError> {
        match &self.registration {
            Some(registration) => Ok(registration.show_life()?),
            None => Ok(()),
        }
    }

    /// The trees that unchanged files are taken from.
    fn parents(&mut self, writer: &Writer) -> Result<Parents, BackupError> {
        let parents = self.parent_snapshots()?;
        // The last is the one that was not interrupted, if there is one.
        self.snapshot.parent = parents.last().map(|parent| parent.id);
        let reader = self.parent_reader(writer);
        let tree = |parent| SnapshotTree::new(reader.clone(), parent);
        let trees = parents.iter().map(tree).collect();
        let live = LiveContainers::new(Arc::clone(writer.index().live_objects()));
        Ok(Parents::new(trees, &Arc::new(live)))
    }

    /// The snapshots that unchanged files are taken from: what interrupted backups left behind
    /// since the latest one, and the latest one.
    fn parent_snapshots(&mut self) -> Result<Vec<Snapshot>, BackupError> {
        if let Some(id) = self.options.parent {
            let vault = self.engine.vault();
            let parent = Snapshot::load(self.repository.store(), vault, id);
            return Ok(vec![parent.map_err(RepositoryError::from)?]);
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
        let latest = latest(&list.snapshots, &filter);
        let interrupted = interrupted_since(&list.snapshots, &filter, latest);
        let interrupted = interrupted.into_iter().take(INTERRUPTED_PARENTS_MAX);
        Ok(interrupted.chain(latest).cloned().collect())
    }

    /// What parents are read by: what the index reads by, so that nothing is fetched twice.
    fn parent_reader(&self, writer: &Writer) -> Reader {
        let shares = self.engine.settings().shares();
        let containers = Arc::clone(writer.index().containers());
        Reader::new(containers, shares.tree_bytes)
    }

    /// What hints are read by, where they are taken.
    fn hint_reader(&self, writer: &Writer) -> Option<Reader> {
        let takes_hints = self.engine.cutter().takes_hints();
        takes_hints.then(|| self.parent_reader(writer))
    }

    /// A part of the parent can't be read: nothing new may rest on it.
    fn take_damage(&mut self, damage: ParentDamage, writer: &mut Writer) {
        if let Some(object) = damage.container {
            writer.set_aside(object);
        }
        let message = format!("the parent snapshot is damaged: {}", damage.message);
        self.warn(b"", message);
    }

    /// Walks, reads and stores. When somebody asks for a stop, what there is until then.
    fn store_files(
        &mut self,
        writer: &mut Writer,
        producer: Producer,
        parents: Parents,
    ) -> Result<StoredTree, BackupError> {
        let settings = self.repository.settings();
        let progress = self.progress;
        let with = writer.stream_chunking().clone();
        let read_bytes = self.engine.settings().shares().read_bytes;
        let options = PoolOptions {
            stage: Stage::Read,
            stages: progress.stages.clone(),
            workers: settings.read_threads,
            budget: ByteBudget::new(read_bytes),
        };
        let readers = settings.read_threads;
        progress.stages.meter(Stage::Chunk).set_threads(readers);
        progress
            .stages
            .meter(Stage::Fingerprint)
            .add_threads(readers);
        progress.stages.meter(Stage::Walk).set_threads(1);
        let reading = Reading::new(&with, settings.threads, read_bytes);
        let hints = self.hint_reader(writer);
        let (sender, mut results) = ordered_pool(&options, move || {
            let (with, hints) = (with.clone(), hints.clone());
            Box::new(move |job, out| match job {
                Job::Read(file) => read_file(file, &with, hints.as_ref(), out),
                // Nobody takes results any more: then there is nothing to be done.
                Job::Pass(step) => drop(out.emit(Produced::Step(step))),
            })
        })
        .map_err(WriteError::Threads)?;
        let mut tree = TreeBuilder::new(Arc::clone(self.engine.fingerprinter()));
        let is_whole = std::thread::scope(|scope| {
            let walk = std::thread::Builder::new().name("walk".to_owned());
            let walk = walk.spawn_scoped(scope, move || {
                let walk = progress.stages.meter(Stage::Walk);
                let jobs = Jobs {
                    sender,
                    reading,
                    walk,
                };
                producer.run(&jobs, parents, progress);
            });
            let walk = walk.map_err(WriteError::Threads)?;
            let stored = self.take_results(writer, &mut tree, &mut results);
            // Whoever waits for room must not wait for a consumer that is gone.
            options.budget.stop();
            drop(results);
            walk.join().map_err(|_| BackupError::WorkerLost)?;
            stored
        })?;
        let (root, refused) = progress
            .stages
            .meter(Stage::Index)
            .busy_but_for_waits(0, || {
                writer.flush()?;
                tree.finish(writer)
            })?;
        for problem in refused {
            self.record(&problem);
        }
        Ok(StoredTree { root, is_whole })
    }

    /// Stores what comes, until it is complete or somebody asks for a stop; says whether it is
    /// complete.
    fn take_results(
        &mut self,
        writer: &mut Writer,
        tree: &mut TreeBuilder,
        results: &mut Results<Produced>,
    ) -> Result<bool, BackupError> {
        let stages = self.progress.stages.clone();
        let meter = stages.meter(Stage::Index);
        let fingerprinter = Arc::clone(self.engine.fingerprinter());
        let mut file = IncomingStream::new(&fingerprinter);
        while let Some(result) = meter.starved(|| results.next_result()) {
            if self.progress.is_cancelled() {
                return Ok(false);
            }
            self.show_life()?;
            let before = writer.totals().bytes_new;
            let is_end = meter
                .busy_but_for_waits(0, || self.take_result(result, &mut file, writer, tree))?;
            let new = writer.totals().bytes_new - before;
            Progress::add(&self.progress.bytes_new, new);
            if is_end {
                return Ok(true);
            }
        }
        match self.progress.is_cancelled() {
            true => Ok(false),
            false => Err(BackupError::WorkerLost),
        }
    }

    /// Stores one thing; says whether it was the last.
    fn take_result(
        &mut self,
        result: Produced,
        file: &mut IncomingStream,
        writer: &mut Writer,
        tree: &mut TreeBuilder,
    ) -> Result<bool, BackupError> {
        match result {
            Produced::Segment(segment) => {
                let meter = self.progress.stages.meter(Stage::Index);
                meter.unqueue(segment.chunk_bytes());
                let bytes = file.segment(segment, writer)?;
                if tree.settle(writer)? {
                    writer.page_out(file.recipe_mut())?;
                }
                self.snapshot.summary.bytes_read += bytes;
                Progress::add(&self.progress.bytes_done, bytes);
            }
            Produced::Hole(bytes) => {
                file.hole(bytes);
                Progress::add(&self.progress.bytes_done, bytes);
            }
            Produced::File {
                mut entry,
                path,
                is_new,
            } => {
                self.progress.set_current(path.as_os_str().as_bytes());
                self.count_file(&entry, Some(is_new));
                let (recipe, check) = file.take(self.engine.fingerprinter());
                entry.check = (entry.size > 0).then_some(check);
                tree.entry(*entry, Content::Pending(recipe));
                tree.advance(writer)?;
            }
            Produced::Unreadable(problem) => {
                file.take(self.engine.fingerprinter());
                self.record(&problem);
            }
            Produced::Step(step) => return self.take_step(step, writer, tree),
        }
        Ok(false)
    }

    /// Does a step of the walk; says whether it was the last.
    fn take_step(
        &mut self,
        step: WalkStep,
        writer: &mut Writer,
        tree: &mut TreeBuilder,
    ) -> Result<bool, BackupError> {
        match step {
            WalkStep::Enter(entry) => {
                self.snapshot.summary.directories += 1;
                tree.enter(*entry);
            }
            WalkStep::Leave => tree.leave(),
            WalkStep::Keep { entry, path, kept } => {
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
            WalkStep::Problem(problem) => self.record(&problem),
            WalkStep::ParentDamage(damage) => self.take_damage(damage, writer),
            WalkStep::End => return Ok(true),
        }
        tree.advance(writer)?;
        Ok(false)
    }

    /// Counts a file: read and new or changed, or taken over from the parent.
    fn count_file(&mut self, entry: &Entry, is_new: Option<bool>) {
        let summary: &mut Summary = &mut self.snapshot.summary;
        summary.files += 1;
        summary.files_bytes = summary.files_bytes.saturating_add(entry.size);
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

    /// Makes everything durable, then writes the snapshot. One that is not whole is written when it
    /// has files that were read, so that the next backup need not read them again.
    fn commit(mut self, mut writer: Writer, is_whole: bool) -> Result<BackupReport, BackupError> {
        self.snapshot.is_interrupted = !is_whole;
        // In a dry run what is written can't be read back: that is no damage.
        let damaged_before = writer.index().damaged();
        let index = self.progress.stages.meter(Stage::Index);
        let totals = index.busy_but_for_waits(0, || writer.commit())?;
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
        summary.chunks_rewritten = totals.chunks_rewritten;
        summary.bytes_rewritten = totals.bytes_rewritten;
        summary.milliseconds = self.started.elapsed().as_millis() as u64;
        self.snapshot.remap_generation = writer.remap_generation();
        let is_written = !self.options.dry_run
            && (is_whole || self.snapshot.summary.files > self.snapshot.summary.files_unmodified);
        let mut stored_bytes = totals.stored_bytes;
        if is_written {
            stored_bytes += self.write_snapshot(&mut writer)?;
        }
        if let Some(registration) = self.registration.take()
            && let Err(error) = registration.end()
        {
            // The snapshot stands; prunes wait for this run until they take it for dead.
            let subject = ObjectKind::Run.directory().as_bytes();
            self.warn(subject, format!("cannot take leave: {error}"));
        }
        self.progress.is_total_known.store(true, Ordering::Relaxed);
        let report = BackupReport {
            errors: self.snapshot.errors.count,
            snapshot: self.snapshot,
            is_written,
            rewriting: self.engine.settings().rewriting,
            totals,
            stored_bytes,
            repository_warnings: self.warnings,
        };
        match report.snapshot.is_interrupted {
            true => Err(BackupError::Interrupted(Box::new(report))),
            false => Ok(report),
        }
    }

    /// Who was taken for dead may refer to what is deleted since: such a snapshot must not stay.
    fn take_back_if_dead(&self) -> Result<(), BackupError> {
        if let Some(registration) = &self.registration
            && registration.is_expired()?
        {
            let key = ObjectKey::new(ObjectKind::Snapshot, self.snapshot.id);
            let deleted = self.engine.store().delete(&key);
            deleted.map_err(RepositoryError::from)?;
            return Err(BackupError::TakenForDead);
        }
        Ok(())
    }

    /// Writes the snapshot; returns its size.
    fn write_snapshot(&mut self, writer: &mut Writer) -> Result<u64, BackupError> {
        let vault = self.engine.vault();
        let store = self.engine.store().as_ref();
        let written = self.snapshot.write(store, vault);
        let bytes = written.map_err(RepositoryError::from)?;
        self.take_back_if_dead()?;
        // The snapshot stands; an index with many runs is slower, not wrong.
        let tidied = match self.progress.is_cancelled() {
            true => writer.leave_index(), // Somebody waits for the end.
            false => writer.merge_index(),
        };
        if let Err(error) = tidied {
            let subject = ObjectKind::Index.directory().as_bytes();
            self.warn(subject, format!("the index could not be tidied: {error}"));
        }
        Ok(bytes)
    }
}

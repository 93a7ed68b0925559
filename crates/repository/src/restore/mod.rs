//! Restores a snapshot, or a part of it, into a directory.
//!
//! The tree is walked in order: directories, symlinks and special files are made at once, files
//! enter a plan. When the plan is large enough it is executed: each container is read once,
//! and its chunks go to all the files that want them. Then the hard links to those files are
//! made, and directories that are complete get their metadata, the deepest first.
//! Nothing leaves the target: entries are made relative to open directories that no symlink
//! can divert. A damaged file is reported and left out; the others are restored.

mod options;
mod selection;
mod sink;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use engine::container::ContainerId;
use engine::pipeline::{ReadingRoom, Stage};
use engine::restore::{Reader, RestorePlan, StreamPlanner};

pub use options::{Overwrite, RestoreOptions, RestoreReport};

use crate::files::{
    Applier, DirectoryHandle, Existing, FilesError, OwnerRule, create_directory, create_hard_link,
    create_special, create_symlink, open_target,
};
use crate::listing::{DirectoryEntries, ListError, SnapshotTree, join_path, path_parts};
use crate::progress::Progress;
use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::tree::{Entry, EntryKind, HardLink};
use selection::{Choice, Selection};
use sink::{Counts, FileJob, FileSink, report_failure, report_metadata};

/// Memory that a file or a directory takes in a plan.
const FILE_BYTES: usize = 1 << 10;

/// Directories of the target that are kept open.
const OPEN_DIRECTORIES_MAX: usize = 64;

/// Why a restore could not be done or went no further.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// What was asked for is not in the snapshot, or can't be read.
    #[error(transparent)]
    List(#[from] ListError),
    /// The target directory.
    #[error("cannot restore into {}: {error}", path.display())]
    Target {
        /// The target.
        path: PathBuf,
        /// Why not.
        error: FilesError,
    },
    /// A pattern makes no sense.
    #[error(transparent)]
    Pattern(#[from] FilesError),
    /// Somebody asked for a stop.
    #[error("interrupted; files restored so far are whole, others are missing")]
    Interrupted,
}

impl Repository {
    /// Restores a snapshot below `target`, which is created if need be: with whole paths, or,
    /// with `subpath`, that directory's contents (or that file) straight into it.
    ///
    /// # Errors
    /// When nothing can be restored at all. Entries that can't be restored are reported to
    /// `progress` and counted in the report.
    pub fn restore(
        &self,
        snapshot: &Snapshot,
        subpath: Option<&[u8]>,
        target: &Path,
        options: &RestoreOptions,
        progress: &Progress,
    ) -> Result<RestoreReport, RestoreError> {
        let engine = self.engine().metered(&progress.stages);
        let reader = engine.reader().map_err(RepositoryError::from)?;
        let tree = SnapshotTree::new(reader.clone(), snapshot);
        let selection = Selection::new(options)?;
        if subpath.is_none() && options.include.is_empty() && options.exclude.is_empty() {
            let summary = &snapshot.summary;
            progress.files_total.store(summary.files, Ordering::Relaxed);
            progress
                .bytes_total
                .store(summary.files_bytes, Ordering::Relaxed);
            progress.is_total_known.store(true, Ordering::Relaxed);
        }
        let start = subpath.map(|path| tree.entry(path)).transpose()?.flatten();
        let target_error = |error| RestoreError::Target {
            path: target.to_owned(),
            error,
        };
        let root = match options.dry_run {
            true => None,
            false => Some(open_target(target, OPEN_DIRECTORIES_MAX).map_err(target_error)?),
        };
        let rule = match options.numeric_ids {
            true => OwnerRule::Numbers,
            false => OwnerRule::Names,
        };
        let mut restore = Restore {
            reader,
            limits: PlanLimits::of(engine.settings().memory_bytes),
            containers: HashSet::new(),
            tree: &tree,
            selection,
            existing: match options.overwrite {
                Overwrite::Never => Existing::Keep,
                Overwrite::Always => Existing::Replace,
            },
            applier: Applier::new(rule),
            progress,
            room: engine.reading_room(),
            planning_since: Instant::now(),
            target: target.to_owned(),
            plan: RestorePlan::default(),
            jobs: Vec::new(),
            empty: Vec::new(),
            first_links: HashMap::new(),
            links: Vec::new(),
            left: Vec::new(),
            counts: Counts::default(),
            report: RestoreReport::default(),
        };
        restore.run(start, subpath.unwrap_or_default(), root)?;
        Ok(restore.finish())
    }
}

/// A directory of the snapshot on the way down.
struct Level {
    entries: DirectoryEntries,
    /// Its entry; none for the target itself.
    entry: Option<Entry>,
    /// Its path in the snapshot.
    path: Vec<u8>,
    /// Made when something in it is restored; nothing in a dry run.
    handle: Option<DirectoryHandle>,
    /// It failed: what is below is counted as failed too.
    failed: bool,
}

/// The first name of a file with several, and where it lies.
struct FirstLink {
    directory: DirectoryHandle,
    name: Vec<u8>,
    /// Its number in the current batch; none once that is done.
    job: usize,
    is_whole: bool,
}

/// A later name.
struct LaterLink {
    link: HardLink,
    directory: DirectoryHandle,
    name: Vec<u8>,
    path: PathBuf,
}

/// How much a plan may hold until it is executed. The more, the less often is a container read that
/// files far from each other need.
#[derive(Debug, Clone, Copy)]
struct PlanLimits {
    run_bytes: usize,
    files: usize,
}

impl PlanLimits {
    /// A quarter of the memory given.
    fn of(memory_bytes: usize) -> Self {
        let share = memory_bytes / 8;
        Self {
            run_bytes: share,
            files: (share / FILE_BYTES).max(1 << 8),
        }
    }
}

struct Restore<'a> {
    reader: Reader,
    limits: PlanLimits,
    tree: &'a SnapshotTree,
    selection: Selection,
    existing: Existing,
    applier: Applier,
    progress: &'a Progress,
    room: ReadingRoom,
    planning_since: Instant,
    target: PathBuf,
    plan: RestorePlan,
    jobs: Vec<FileJob>,
    /// Files without stored bytes, by their number.
    empty: Vec<usize>,
    first_links: HashMap<HardLink, FirstLink>,
    links: Vec<LaterLink>,
    /// Directories whose entries are all made or planned, children before parents.
    left: Vec<(DirectoryHandle, Entry, PathBuf)>,
    /// Containers read so far.
    containers: HashSet<ContainerId>,
    counts: Counts,
    report: RestoreReport,
}

impl<'a> Restore<'a> {
    fn run(
        &mut self,
        start: Option<Entry>,
        subpath: &[u8],
        root: Option<DirectoryHandle>,
    ) -> Result<(), RestoreError> {
        let mut path = Vec::new();
        for part in path_parts(subpath) {
            path = join_path(&path, part);
        }
        let (recipe, single) = match start {
            None => (self.tree.root().clone(), None),
            Some(entry) if entry.kind == EntryKind::Directory => (entry.content, None),
            Some(entry) => (engine::recipe::Recipe::default(), Some(entry)),
        };
        let mut stack = vec![Level {
            entries: self.tree.directory(&recipe, &path),
            entry: None,
            path,
            handle: root,
            failed: false,
        }];
        if let Some(entry) = single {
            let path = stack[0].path.clone();
            self.take(&mut stack, entry, path);
        }
        while let Some(level) = stack.last_mut() {
            if self.progress.is_cancelled() {
                break;
            }
            match level.entries.next() {
                Some(Ok(entry)) => {
                    let path = join_path(&level.path, &entry.name);
                    self.entry(&mut stack, entry, path);
                }
                Some(Err(error)) => {
                    let path = self.target_path(&stack, None);
                    report_failure(self.progress, &self.counts, &path, error.to_string());
                }
                None => self.leave(&mut stack),
            }
            let waiting = self.jobs.len() + self.left.len();
            let run_bytes = self.plan.memory_bytes();
            if run_bytes >= self.limits.run_bytes || waiting >= self.limits.files {
                self.execute();
            }
        }
        self.execute();
        if self.progress.is_cancelled() {
            return Err(RestoreError::Interrupted);
        }
        Ok(())
    }

    fn leave(&mut self, stack: &mut Vec<Level>) {
        let path = self.target_path(stack, None);
        if let Some(level) = stack.pop()
            && let (Some(handle), Some(entry)) = (level.handle, level.entry)
        {
            self.left.push((handle, entry, path));
        }
    }

    fn entry(&mut self, stack: &mut Vec<Level>, entry: Entry, path: Vec<u8>) {
        let is_directory = entry.kind == EntryKind::Directory;
        match self.selection.choose(&path, is_directory) {
            Choice::Skip => {}
            Choice::Take => self.take(stack, entry, path),
            Choice::LookBelow => self.descend(stack, entry, path),
        }
    }

    fn descend(&mut self, stack: &mut Vec<Level>, entry: Entry, path: Vec<u8>) {
        let failed = stack.last().is_some_and(|level| level.failed);
        stack.push(Level {
            entries: self.tree.directory(&entry.content, &path),
            entry: Some(entry),
            path,
            handle: None,
            failed,
        });
    }

    fn take(&mut self, stack: &mut Vec<Level>, entry: Entry, path: Vec<u8>) {
        if entry.kind == EntryKind::Directory {
            self.descend(stack, entry, path);
            self.make_directories(stack);
            return;
        }
        let target_path = self.target_path(stack, Some(&entry.name));
        let Some(directory) = self.make_directories(stack) else {
            self.take_without_directory(stack, &entry, &target_path);
            return;
        };
        match entry.kind {
            EntryKind::File => self.take_file(directory, entry, target_path),
            _ => self.take_other(&directory, &entry, &target_path),
        }
    }

    /// A dry run only counts; below a directory that could not be made, everything fails.
    fn take_without_directory(&mut self, stack: &[Level], entry: &Entry, path: &Path) {
        if stack.last().is_some_and(|level| level.failed) {
            let message = "its directory could not be made".to_owned();
            report_failure(self.progress, &self.counts, path, message);
        } else if entry.kind == EntryKind::File {
            self.counts.files.fetch_add(1, Ordering::Relaxed);
            self.report.bytes += entry.size;
            Progress::add(&self.progress.files_done, 1);
            Progress::add(&self.progress.bytes_done, entry.size);
        } else {
            self.report.others += 1;
        }
    }

    /// Makes the directories on the stack that are not there yet, and returns the innermost;
    /// nothing in a dry run or when one can't be made.
    fn make_directories(&mut self, stack: &mut [Level]) -> Option<DirectoryHandle> {
        let mut parent = stack.first()?.handle.clone();
        for depth in 1..stack.len() {
            if stack[depth].handle.is_none() && !stack[depth].failed {
                let path = self.target_path(&stack[..=depth], None);
                let name = stack[depth].entry.as_ref().map(|entry| entry.name.clone());
                match (&parent, name) {
                    (Some(parent), Some(name)) => {
                        match create_directory(parent, &name, self.existing) {
                            Ok((handle, _)) => {
                                stack[depth].handle = Some(handle);
                                self.report.directories += 1;
                            }
                            Err(error) => {
                                stack[depth].failed = true;
                                let error = error.to_string();
                                report_failure(self.progress, &self.counts, &path, error);
                            }
                        }
                    }
                    _ => stack[depth].failed = stack[depth - 1].failed,
                }
            }
            parent.clone_from(&stack[depth].handle);
        }
        parent
    }

    fn take_other(&mut self, directory: &DirectoryHandle, entry: &Entry, path: &Path) {
        if let Some(link) = entry.hard_link
            && self.first_links.contains_key(&link)
        {
            self.links.push(LaterLink {
                link,
                directory: directory.clone(),
                name: entry.name.clone(),
                path: path.to_owned(),
            });
            return;
        }
        let made = directory.open().and_then(|open| {
            match &entry.kind {
                EntryKind::Symlink { target } => {
                    create_symlink(&open, &entry.name, target, self.existing)?;
                }
                kind => create_special(&open, &entry.name, kind, self.existing)?,
            }
            Ok(open)
        });
        match made {
            Ok(open) => {
                let mut problems = Vec::new();
                self.applier.apply_at(&open, entry, path, &mut problems);
                report_metadata(self.progress, &self.counts, &problems);
                self.report.others += 1;
                if let Some(link) = entry.hard_link {
                    let first = FirstLink {
                        directory: directory.clone(),
                        name: entry.name.clone(),
                        job: usize::MAX,
                        is_whole: true,
                    };
                    self.first_links.insert(link, first);
                }
            }
            Err(error) => report_failure(self.progress, &self.counts, path, error.to_string()),
        }
    }

    fn take_file(&mut self, directory: DirectoryHandle, entry: Entry, path: PathBuf) {
        if let Some(link) = entry.hard_link {
            if self.first_links.contains_key(&link) {
                self.links.push(LaterLink {
                    link,
                    directory,
                    name: entry.name.clone(),
                    path,
                });
                return;
            }
            let first = FirstLink {
                directory: directory.clone(),
                name: entry.name.clone(),
                job: self.jobs.len(),
                is_whole: false,
            };
            self.first_links.insert(link, first);
        }
        let number = self.jobs.len();
        let mut planner = StreamPlanner::new(&self.reader, &entry.content, entry.check);
        // With some room beyond the limit, so that only long files are cut.
        let bytes_max = self.plan.memory_bytes() + self.limits.run_bytes / 4;
        let step = match planner.add_to(&mut self.plan, number as u32, bytes_max) {
            Ok(step) => step,
            Err(error) => {
                if let Some(link) = entry.hard_link
                    && let Some(first) = self.first_links.get_mut(&link)
                {
                    first.job = usize::MAX;
                }
                report_failure(self.progress, &self.counts, &path, error.to_string());
                return;
            }
        };
        if !step.is_end {
            let job = FileJob::long(directory, entry, path, step.parts);
            self.jobs.push(job);
            self.take_long_file(&mut planner);
            return;
        }
        if step.parts.parts == 0 {
            self.empty.push(number);
        }
        self.jobs
            .push(FileJob::new(directory, entry, path, step.parts));
    }

    /// The last file does not fit the plan: batch after batch is written until its rest does, or
    /// somebody asks for a stop.
    fn take_long_file(&mut self, planner: &mut StreamPlanner) {
        while let Some(job) = self.execute().pop() {
            if self.progress.is_cancelled() {
                self.jobs.push(job); // What was written of it goes at the end.
                return;
            }
            if let Some(link) = job.entry.hard_link
                && let Some(first) = self.first_links.get_mut(&link)
            {
                first.job = 0;
            }
            let step = planner.add_to(&mut self.plan, 0, self.limits.run_bytes);
            let is_end = match step {
                Ok(step) => {
                    job.add_parts(step.parts.parts, step.is_end);
                    step.is_end
                }
                Err(error) => {
                    job.lose_rest(error.to_string());
                    true
                }
            };
            if job.has_all_parts() {
                self.empty.push(0);
            }
            self.jobs.push(job);
            if is_end {
                return;
            }
        }
    }

    /// Writes the planned files, then what had to wait for them.
    fn execute(&mut self) -> Vec<FileJob> {
        let jobs = std::mem::take(&mut self.jobs);
        let sink = FileSink {
            jobs: &jobs,
            existing: self.existing,
            applier: &self.applier,
            progress: self.progress,
            counts: &self.counts,
            open_files: AtomicUsize::new(0),
        };
        let meter = self.progress.stages.meter(Stage::Plan);
        let bytes = jobs.iter().map(|job| job.entry.size).sum();
        meter.set_threads(1);
        meter.worked(self.planning_since.elapsed(), bytes);
        for number in self.empty.drain(..) {
            sink.write_empty(&jobs[number]);
        }
        self.report.containers_read += self.plan.containers().count() as u64;
        self.containers.extend(self.plan.containers());
        meter.blocked(|| self.plan.execute(&self.reader, &self.room, &sink));
        self.planning_since = Instant::now();
        sink.finish();
        for first in self.first_links.values_mut() {
            if let Some(job) = jobs.get(first.job)
                && !first.is_whole
            {
                first.is_whole = job.is_whole();
                first.job = usize::MAX;
            }
        }
        for later in std::mem::take(&mut self.links) {
            if !self.progress.is_cancelled() {
                self.make_link(&later);
            }
        }
        // A directory that had no metadata problems is done; later batches may still add
        // entries to those on the stack, which are not in `left` yet.
        for (handle, entry, path) in std::mem::take(&mut self.left) {
            let mut problems = Vec::new();
            match handle.open() {
                Ok(open) => self
                    .applier
                    .apply_open(open.as_ref(), &entry, &path, &mut problems),
                Err(error) => {
                    report_failure(self.progress, &self.counts, &path, error.to_string());
                }
            }
            report_metadata(self.progress, &self.counts, &problems);
        }
        jobs
    }

    fn make_link(&mut self, later: &LaterLink) {
        let Some(first) = self.first_links.get(&later.link) else {
            return;
        };
        if !first.is_whole {
            let message = "the file that it is a hard link to could not be restored".to_owned();
            report_failure(self.progress, &self.counts, &later.path, message);
            return;
        }
        let made = first.directory.open().and_then(|original| {
            let directory = later.directory.open()?;
            create_hard_link(
                (original.as_ref(), &first.name),
                (directory.as_ref(), &later.name),
                self.existing,
            )
        });
        match made {
            Ok(()) => {
                self.report.others += 1;
                Progress::add(&self.progress.files_done, 1);
            }
            Err(error) => {
                report_failure(self.progress, &self.counts, &later.path, error.to_string());
            }
        }
    }

    /// Where an entry goes, for messages.
    fn target_path(&self, stack: &[Level], name: Option<&[u8]>) -> PathBuf {
        let mut path = self.target.clone();
        let names = stack.iter().filter_map(|level| level.entry.as_ref());
        path.extend(names.map(|entry| OsStr::from_bytes(&entry.name)));
        path.extend(name.map(OsStr::from_bytes));
        path
    }

    fn finish(mut self) -> RestoreReport {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
        self.report.containers = self.containers.len() as u64;
        self.report.files = count(&self.counts.files);
        self.report.bytes += self.counts.bytes.load(Ordering::Relaxed);
        self.report.failed = count(&self.counts.failed);
        self.report.incomplete_metadata = count(&self.counts.incomplete_metadata);
        self.report
    }
}

//! The walk's side of a backup: turns what the walk finds into jobs, in order.
//!
//! Unchanged files are taken from the parent snapshot here and need no reading; a second name of
//! a file that was met before needs none either.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use engine::pipeline::{JobSender, StageMeter, Stopped, StreamChunking};
use engine::recipe::Recipe;

use super::BackupError;
use super::options::BackupOptions;
use super::parent::{ParentDamage, Parents};
use super::read_file::{Produced, ReadFile};
use crate::files::{Filter, FilterOptions, FoundFile, Walk, WalkEvent, WalkOptions};
use crate::progress::{Problem, Progress};
use crate::tree::{Entry, EntryKind, HardLink};

/// Bytes counted for a job beside the contents of its file, its attributes and its runs.
const JOB_BYTES: usize = 1 << 10;

/// Bytes that a run takes in memory.
const RUN_BYTES: usize = 48;

/// Why a file or other entry needs no reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is as the parent snapshot has it.
    Unchanged,
    /// Another name of a file that came before.
    Linked,
    /// Its entry is all there is to it.
    NoContent,
}

/// One step of the walk that needs no reading.
#[derive(Debug)]
pub(super) enum WalkStep {
    /// A directory begins.
    Enter(Box<Entry>),
    /// It ends.
    Leave,
    /// An entry that needs no reading.
    Keep {
        entry: Box<Entry>,
        path: Vec<u8>,
        kept: Kept,
    },
    /// Something went wrong, or is worth mentioning.
    Problem(Problem),
    /// The parent snapshot can't be read here.
    ParentDamage(ParentDamage),
    /// The walk is complete.
    End,
}

impl WalkStep {
    fn entry(&self) -> Option<&Entry> {
        match self {
            WalkStep::Enter(entry) | WalkStep::Keep { entry, .. } => Some(entry),
            _ => None,
        }
    }
}

/// Walks and makes jobs.
pub(super) struct Producer {
    walk: Walk,
    linked: HashSet<HardLink>,
    /// Read files that seem unchanged, too.
    force: bool,
}

/// How workers read files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// They are told what a file was in the parent.
    pub takes_hints: bool,
    /// Bytes of a file that are read at a time.
    pub segment_bytes: u64,
    /// Segments of a large file that may wait to be stored while it is read on.
    pub segments_waiting: u64,
}

impl Reading {
    /// How files are read by `with`, many at the same time, within `read_bytes` of memory.
    pub fn new(with: &StreamChunking, threads: usize, read_bytes: usize) -> Self {
        let segment_bytes = with.read_bytes() as u64;
        // As many as keep every thread busy with one file, if two such files have room.
        let fitting = (read_bytes as u64 / 2 / segment_bytes).saturating_sub(READER_SEGMENTS);
        Self {
            takes_hints: with.cutter.takes_hints(),
            segment_bytes,
            segments_waiting: fitting.clamp(1, threads as u64 + 1),
        }
    }

    /// Segments of a file of that size which may wait, and bytes of it that are in memory at
    /// most: what its reader holds and has handed on.
    fn window(self, size: u64) -> (usize, u64) {
        let segments = size.div_ceil(self.segment_bytes).max(1);
        let waiting = segments.min(self.segments_waiting);
        let most = (waiting + READER_SEGMENTS) * self.segment_bytes;
        (waiting as usize, size.min(most))
    }
}

/// Segments of a file beside those that wait: one that is read, one that is handed on, one that
/// stands in the place for the word that there are no more, and one that is being stored.
const READER_SEGMENTS: u64 = 4;

/// What workers get, many small ones at a time.
#[derive(Debug)]
pub(super) enum Job {
    /// Nothing is to be done with it but to hand it on at its place.
    Pass(WalkStep),
    /// A file is to be read.
    Read(ReadFile),
}

/// Bytes of what an entry may have much of.
fn bytes_of(entry: &Entry) -> usize {
    let attributes = entry.metadata.attributes.iter();
    let attributes: usize = attributes
        .map(|(name, value)| name.len() + value.len())
        .sum();
    let runs = match &entry.content {
        Recipe::Runs(runs) => runs.len(),
        Recipe::Paged { pages, .. } => pages.len(),
    };
    attributes + runs * RUN_BYTES
}

/// Where jobs go.
pub(super) struct Jobs<'a> {
    pub sender: JobSender<Job, Produced>,
    pub reading: Reading,
    pub walk: &'a StageMeter,
}

impl Jobs<'_> {
    /// Hands on a step of the walk that needs no reading.
    fn pass(&self, step: WalkStep) -> Result<(), Stopped> {
        let bytes = JOB_BYTES + step.entry().map_or(0, bytes_of);
        let job = Job::Pass(step);
        self.walk.blocked(|| self.sender.gather(job, bytes, 1))
    }

    /// Has a file read.
    fn read(&self, file: ReadFile, size: u64) -> Result<(), Stopped> {
        let (waiting, bytes) = self.reading.window(size);
        let bytes = bytes as usize + JOB_BYTES + bytes_of(&file.found.entry);
        self.walk.count_bytes(size);
        self.walk
            .blocked(|| self.sender.gather(Job::Read(file), bytes, waiting + 1))
    }
}

/// Starts a walk over `sources` with the options' filter; with or without extended attributes.
fn start_walk(
    sources: &[PathBuf],
    options: &BackupOptions,
    attributes: bool,
) -> Result<Walk, BackupError> {
    let excludes = &options.excludes;
    let mut patterns = excludes.patterns.clone();
    for directory in &excludes.directories {
        patterns.extend(literal_pattern(directory));
    }
    let filter = Filter::new(&FilterOptions {
        patterns,
        pattern_files: excludes.pattern_files.clone(),
        caches: excludes.caches,
        one_file_system: excludes.one_file_system,
        ignore_files: excludes.ignore_files,
        ..FilterOptions::default()
    })?;
    let walk_options = WalkOptions {
        filter,
        attributes,
        ..WalkOptions::default()
    };
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Ok(Walk::new(sources, &current, walk_options)?)
}

/// A pattern that matches exactly this absolute path; none for paths that are no UTF-8.
fn literal_pattern(path: &Path) -> Option<String> {
    let mut pattern = String::new();
    for character in path.to_str()?.chars() {
        if "\\*?[]{}!# ".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    Some(pattern)
}

impl Producer {
    pub fn new(sources: &[PathBuf], options: &BackupOptions) -> Result<Self, BackupError> {
        Ok(Self {
            walk: start_walk(sources, options, true)?,
            linked: HashSet::new(),
            force: options.force,
        })
    }

    /// The absolute paths that are backed up.
    pub fn paths(&self) -> Vec<Vec<u8>> {
        let paths = self.walk.paths().iter();
        paths
            .map(|path| path.as_os_str().as_bytes().to_vec())
            .collect()
    }

    /// Walks to the end, or until nobody wants jobs any more, or somebody asks for a stop.
    pub fn run(mut self, jobs: &Jobs<'_>, mut parents: Parents, progress: &Progress) {
        // `/` itself is the root of the tree, not an entry of a directory.
        let mut depth = 0usize;
        loop {
            if progress.is_cancelled() {
                return;
            }
            let step = || {
                let event = self.walk.next()?;
                Some(self.take(event, jobs, &mut parents, &mut depth))
            };
            match jobs.walk.busy_but_for_waits(0, step) {
                None => break,
                Some(Ok(())) => {}
                Some(Err(Stopped)) => return,
            }
        }
        // If nobody takes it, the consumer has stopped for a reason of its own.
        let _ = jobs.pass(WalkStep::End);
    }

    fn take(
        &mut self,
        event: WalkEvent,
        jobs: &Jobs<'_>,
        parents: &mut Parents,
        depth: &mut usize,
    ) -> Result<(), Stopped> {
        match event {
            WalkEvent::EnterDirectory(found) => {
                *depth += 1;
                if *depth == 1 {
                    return Ok(());
                }
                parents.enter(found.path.as_os_str().as_bytes(), &found.entry.name);
                tell_damage(jobs, parents)?;
                jobs.pass(WalkStep::Enter(Box::new(found.entry)))
            }
            WalkEvent::LeaveDirectory { .. } => {
                *depth -= 1;
                if *depth == 0 {
                    return Ok(());
                }
                parents.leave();
                jobs.pass(WalkStep::Leave)
            }
            WalkEvent::Other(found) => {
                parents.find(&found.entry.name);
                let path = found.path.into_os_string().into_encoded_bytes();
                let kept = Kept::NoContent;
                let entry = Box::new(found.entry);
                tell_damage(jobs, parents)?;
                jobs.pass(WalkStep::Keep { entry, path, kept })
            }
            WalkEvent::File(found) => self.file(jobs, parents, found),
            WalkEvent::Problem(problem) => jobs.pass(WalkStep::Problem(problem_of(&problem))),
        }
    }

    fn file(
        &mut self,
        jobs: &Jobs<'_>,
        parents: &mut Parents,
        found: Box<FoundFile>,
    ) -> Result<(), Stopped> {
        let mut before = parents.find(&found.entry.name);
        let is_new = before.is_empty();
        let size = found.status.size;
        let unchanged = match self.force {
            true => None,
            false => parents.take_unchanged(&found.entry, size, &mut before),
        };
        tell_damage(jobs, parents)?;
        if let Some(before) = unchanged {
            let path = found.path.into_os_string().into_encoded_bytes();
            let mut entry = Box::new(found.entry);
            entry.size = before.size;
            entry.content = before.content;
            entry.check = before.check;
            let kept = Kept::Unchanged;
            if let Some(link) = entry.hard_link {
                self.linked.insert(link);
            }
            return jobs.pass(WalkStep::Keep { entry, path, kept });
        }
        if let Some(link) = found.entry.hard_link
            && !self.linked.insert(link)
        {
            let path = found.path.into_os_string().into_encoded_bytes();
            let entry = Box::new(found.entry);
            let kept = Kept::Linked;
            return jobs.pass(WalkStep::Keep { entry, path, kept });
        }
        let before = before
            .into_first()
            .filter(|before| jobs.reading.takes_hints && before.kind == EntryKind::File)
            .map(|before| before.content);
        let file = ReadFile {
            found,
            is_new,
            before,
        };
        jobs.read(file, size)
    }
}

/// Passes on what was found damaged in the parent, before the job in whose place it was found:
/// the containers at fault must not be taken for good ones when that is stored.
fn tell_damage(jobs: &Jobs<'_>, parents: &mut Parents) -> Result<(), Stopped> {
    while let Some(damage) = parents.next_damage() {
        jobs.pass(WalkStep::ParentDamage(damage))?;
    }
    Ok(())
}

/// What a problem with files means for the backup.
pub(super) fn problem_of(problem: &crate::files::Problem) -> Problem {
    Problem {
        path: problem.path.as_os_str().as_bytes().to_vec(),
        message: format!("{}: {}", problem.what, problem.error),
        is_error: !problem.is_notice(),
    }
}

/// Counts files and bytes ahead of the backup, until `stop` is set.
pub(super) fn count_ahead(
    sources: &[PathBuf],
    options: &BackupOptions,
    progress: &Progress,
    stop: &AtomicBool,
) {
    // Whatever is wrong with the sources, the backup itself says so.
    let Ok(walk) = start_walk(sources, options, false) else {
        return;
    };
    for event in walk {
        if stop.load(Ordering::Relaxed) || progress.is_cancelled() {
            return;
        }
        if let WalkEvent::File(found) = event {
            Progress::add(&progress.files_total, 1);
            Progress::add(&progress.bytes_total, found.status.size);
        }
    }
    progress.is_total_known.store(true, Ordering::Relaxed);
}

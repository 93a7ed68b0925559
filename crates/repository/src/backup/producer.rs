//! The walk's side of a backup: turns what the walk finds into jobs, in order.
//!
//! Unchanged files are taken from the parent snapshot here and need no reading; a second name of
//! a file that was met before needs none either.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use engine::pipeline::{JobSender, Stopped};

use super::BackupError;
use super::options::BackupOptions;
use super::parent::{ParentCursor, ParentDamage};
use super::read_file::{Produced, ReadFile};
use crate::files::{Filter, FilterOptions, FoundFile, Walk, WalkEvent, WalkOptions};
use crate::progress::{Problem, Progress};
use crate::tree::{Entry, EntryKind, HardLink};

/// Bytes of a large file that are in flight at most: what its reader holds and has handed on.
pub(super) const READ_WINDOW_BYTES: u64 = 5 << 20;

/// Bytes counted for a job beside the contents of its file.
const JOB_BYTES: usize = 1 << 10;

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

/// One step of the walk.
#[derive(Debug)]
pub(super) enum Job {
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
    /// A file to be read.
    Read(ReadFile),
    /// Something went wrong, or is worth mentioning.
    Problem(Problem),
    /// The parent snapshot can't be read here.
    ParentDamage(ParentDamage),
    /// The walk is complete.
    End,
}

/// Walks and makes jobs.
pub(super) struct Producer {
    walk: Walk,
    linked: HashSet<HardLink>,
    /// Read files that seem unchanged, too.
    force: bool,
    reading: Reading,
}

/// How workers read files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// They are told what a file was in the parent.
    pub takes_hints: bool,
    /// Bytes of a large file that are in flight at most.
    pub window_bytes: u64,
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
    pub fn new(
        sources: &[PathBuf],
        options: &BackupOptions,
        reading: Reading,
    ) -> Result<Self, BackupError> {
        Ok(Self {
            walk: start_walk(sources, options, true)?,
            linked: HashSet::new(),
            force: options.force,
            reading,
        })
    }

    /// The absolute paths that are backed up.
    pub fn paths(&self) -> Vec<Vec<u8>> {
        let paths = self.walk.paths().iter();
        paths
            .map(|path| path.as_os_str().as_bytes().to_vec())
            .collect()
    }

    /// Walks to the end, or until nobody wants jobs any more.
    pub fn run(
        mut self,
        jobs: &JobSender<Job, Produced>,
        mut cursor: Option<ParentCursor>,
        progress: &Progress,
    ) -> Result<(), BackupError> {
        // `/` itself is the root of the tree, not an entry of a directory.
        let mut depth = 0usize;
        while let Some(event) = self.walk.next() {
            if progress.is_cancelled() {
                return Err(BackupError::Interrupted);
            }
            let submitted = match event {
                WalkEvent::EnterDirectory(found) => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                    if let Some(cursor) = &mut cursor {
                        cursor.enter(found.path.as_os_str().as_bytes(), &found.entry.name);
                    }
                    tell_damage(jobs, &mut cursor)
                        .and_then(|()| jobs.gather(Job::Enter(Box::new(found.entry)), JOB_BYTES))
                }
                WalkEvent::LeaveDirectory { .. } => {
                    depth -= 1;
                    if depth == 0 {
                        continue;
                    }
                    if let Some(cursor) = &mut cursor {
                        cursor.leave();
                    }
                    jobs.gather(Job::Leave, JOB_BYTES)
                }
                WalkEvent::Other(found) => {
                    if let Some(cursor) = &mut cursor {
                        cursor.find(&found.entry.name);
                    }
                    let path = found.path.into_os_string().into_encoded_bytes();
                    let kept = Kept::NoContent;
                    let entry = Box::new(found.entry);
                    tell_damage(jobs, &mut cursor)
                        .and_then(|()| jobs.gather(Job::Keep { entry, path, kept }, JOB_BYTES))
                }
                WalkEvent::File(found) => self.file(jobs, &mut cursor, found),
                WalkEvent::Problem(problem) => {
                    jobs.gather(Job::Problem(problem_of(&problem)), JOB_BYTES)
                }
            };
            if submitted == Err(Stopped) {
                return Ok(());
            }
        }
        // If nobody takes it, the consumer has stopped for a reason of its own.
        let _ = jobs.submit(Job::End, JOB_BYTES);
        Ok(())
    }

    fn file(
        &mut self,
        jobs: &JobSender<Job, Produced>,
        cursor: &mut Option<ParentCursor>,
        found: Box<FoundFile>,
    ) -> Result<(), Stopped> {
        let before = cursor
            .as_mut()
            .and_then(|cursor| cursor.find(&found.entry.name));
        let is_new = before.is_none();
        let size = found.status.size;
        let is_unchanged = match (cursor.as_mut(), &before) {
            (Some(cursor), Some(before)) if !self.force => {
                cursor.is_unchanged(&found.entry, size, before)
            }
            _ => false,
        };
        tell_damage(jobs, cursor)?;
        let (unchanged, before) = if is_unchanged {
            (before, None)
        } else {
            (None, before)
        };
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
            return jobs.gather(Job::Keep { entry, path, kept }, JOB_BYTES);
        }
        if let Some(link) = found.entry.hard_link
            && !self.linked.insert(link)
        {
            let path = found.path.into_os_string().into_encoded_bytes();
            let entry = Box::new(found.entry);
            let kept = Kept::Linked;
            return jobs.gather(Job::Keep { entry, path, kept }, JOB_BYTES);
        }
        let bytes = size.min(self.reading.window_bytes) as usize + JOB_BYTES;
        let before = before
            .filter(|before| self.reading.takes_hints && before.kind == EntryKind::File)
            .map(|before| before.content);
        let file = ReadFile {
            found,
            is_new,
            before,
        };
        jobs.gather(Job::Read(file), bytes)
    }
}

/// Passes on what was found damaged in the parent, before the job in whose place it was found:
/// the containers at fault must not be taken for good ones when that is stored.
fn tell_damage(
    jobs: &JobSender<Job, Produced>,
    cursor: &mut Option<ParentCursor>,
) -> Result<(), Stopped> {
    while let Some(damage) = cursor.as_mut().and_then(ParentCursor::next_damage) {
        jobs.gather(Job::ParentDamage(damage), JOB_BYTES)?;
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

//! Writes restored bytes into files: the receiving end of a restore plan.
//!
//! A file is created when its first bytes come, from whatever thread, and gets its metadata
//! when its last ones are written. A file of which anything was lost is removed, and reported when
//! the batch is done, in the order of the files: what stands in the target at the end is whole,
//! and what is said does not depend on which thread was faster. Where files may be replaced, a new one grows
//! under a name of its own and takes the place of the old one when it is whole: one that can't
//! be restored does not cost the one that was there.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use engine::object::ObjectId;
use engine::pipeline::Stage;
use engine::restore::{ChunkSink, StreamParts};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::files::{
    Applier, DirectoryHandle, Existing, FilesError, Identity, Status, create_file, preallocate,
    set_length,
};
use crate::progress::{Problem, Progress};
use crate::tree::Entry;

/// Files of a batch that stay open between their parts; more are closed and opened again.
const OPEN_FILES_MAX: usize = 256;

/// A file to be restored.
#[derive(Debug)]
pub(super) struct FileJob {
    pub directory: DirectoryHandle,
    pub entry: Entry,
    /// For messages.
    pub path: PathBuf,
    /// In how many parts its bytes come.
    parts: StreamParts,
    state: Mutex<FileState>,
}

#[derive(Debug)]
struct FileState {
    parts_left: usize,
    created: Option<Created>,
    open: Option<File>,
    /// What went wrong first in the file, and where.
    failure: Option<(u64, String)>,
    /// Metadata that could not be restored.
    problems: Vec<crate::files::Problem>,
    /// Parts of it are not planned yet: it can't be complete.
    is_unplanned: bool,
    is_complete: bool,
    is_whole: bool,
}

impl FileState {
    /// Something went wrong at `offset`: what is nearest to the start of the file is kept.
    fn fail(&mut self, offset: u64, message: String) {
        if self
            .failure
            .as_ref()
            .is_none_or(|(first, _)| offset < *first)
        {
            self.failure = Some((offset, message));
        }
    }
}

/// A file that was made.
#[derive(Debug, Clone)]
struct Created {
    /// Which file it is; not asked for where nobody will open it again.
    identity: Option<Identity>,
    /// Its name while it is not whole.
    name: Vec<u8>,
}

impl FileJob {
    pub fn new(
        directory: DirectoryHandle,
        entry: Entry,
        path: PathBuf,
        parts: StreamParts,
    ) -> Self {
        let state = FileState {
            parts_left: parts.parts,
            created: None,
            open: None,
            failure: None,
            problems: Vec::new(),
            is_unplanned: false,
            is_complete: false,
            is_whole: false,
        };
        Self {
            directory,
            entry,
            path,
            parts,
            state: Mutex::new(state),
        }
    }

    /// A file of which more than these parts will come: each step is announced to
    /// [`FileJob::add_parts`].
    pub fn long(
        directory: DirectoryHandle,
        entry: Entry,
        path: PathBuf,
        first: StreamParts,
    ) -> Self {
        let parts = StreamParts {
            // Not as long as the file, so that it is taken for one with holes, and at least two.
            stored_bytes: 0,
            parts: first.parts.max(2),
        };
        let job = Self::new(directory, entry, path, parts);
        job.lock().parts_left = first.parts;
        job.lock().is_unplanned = true;
        job
    }

    /// More parts of a long file will come; nothing after these if `is_end`. Between two batches.
    pub fn add_parts(&self, parts: usize, is_end: bool) {
        let mut state = self.lock();
        state.parts_left += parts;
        state.is_unplanned = !is_end;
    }

    /// The rest of a long file can't be planned: it is lost. Between two batches.
    pub fn lose_rest(&self, error: String) {
        let mut state = self.lock();
        state.fail(u64::MAX, error);
        state.is_unplanned = false;
    }

    /// Is there nothing left that will come? Between two batches.
    pub fn has_all_parts(&self) -> bool {
        let state = self.lock();
        state.parts_left == 0 && !state.is_unplanned
    }

    /// Gives the file its length. Parts are written in any order: so that they lie together, and a
    /// full disk is noticed at once, a file without holes gets all its room now; the holes of
    /// others stay holes.
    fn make_room(&self, file: &File) -> Result<(), FilesError> {
        let bytes = self.entry.size;
        let is_whole = self.parts.stored_bytes == bytes;
        if is_whole && preallocate(file, 0, bytes)? {
            return Ok(());
        }
        set_length(file, bytes)
    }

    /// Was it restored whole?
    pub fn is_whole(&self) -> bool {
        self.lock().is_whole
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of what was restored.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub files: AtomicUsize,
    pub bytes: AtomicU64,
    pub failed: AtomicUsize,
    pub incomplete_metadata: AtomicUsize,
}

/// Writes the files of a batch.
pub(super) struct FileSink<'a> {
    pub jobs: &'a [FileJob],
    pub existing: Existing,
    pub applier: &'a Applier,
    pub progress: &'a Progress,
    pub counts: &'a Counts,
    pub open_files: AtomicUsize,
}

impl FileSink<'_> {
    /// Restores a file that has no stored bytes.
    pub fn write_empty(&self, job: &FileJob) {
        let meter = self.progress.stages.meter(Stage::Write);
        meter.busy(0, || self.write_part(job, &mut job.lock(), 0, &[]));
    }

    /// Says what became of the files, in their order, but for one of which parts are to come. Those
    /// that are not complete by now, because somebody asked for a stop, are removed.
    pub fn finish(&self) {
        for job in self.jobs {
            let mut state = job.lock();
            if state.is_unplanned && !self.progress.is_cancelled() {
                self.close(&mut state);
                continue;
            }
            if !state.is_complete {
                if state.created.is_none() && state.failure.is_none() {
                    continue; // Never begun.
                }
                state.fail(u64::MAX, "the restore was interrupted".to_owned());
                self.complete(job, &mut state);
            }
            report_metadata(self.progress, self.counts, &state.problems);
            if let Some((_, message)) = state.failure.take() {
                report_failure(self.progress, self.counts, &job.path, message);
            }
        }
    }

    fn write_part(&self, job: &FileJob, state: &mut FileState, offset: u64, bytes: &[u8]) {
        if state.failure.is_none() {
            let is_all = job.parts.parts <= 1 && bytes.len() as u64 == job.entry.size;
            let written = self.open(job, state, is_all).and_then(|file| {
                let written = file.write_all_at(bytes, offset);
                state.open = Some(file);
                Ok(written?)
            });
            if let Err(error) = written {
                state.fail(offset, error.to_string());
            }
        }
        self.parts_done(job, state, 1);
    }

    fn parts_done(&self, job: &FileJob, state: &mut FileState, parts: usize) {
        state.parts_left = state.parts_left.saturating_sub(parts);
        if state.parts_left == 0 && !state.is_unplanned {
            self.complete(job, state);
        } else if state.open.is_some() && self.open_files.load(Ordering::Relaxed) > OPEN_FILES_MAX {
            self.close(state);
        }
    }

    /// The file, created if need be: with its length, unless all of it `is_all` written at once.
    fn open(&self, job: &FileJob, state: &mut FileState, is_all: bool) -> Result<File, FilesError> {
        if let Some(file) = state.open.take() {
            return Ok(file);
        }
        let directory = job.directory.open()?;
        let file = match &state.created {
            None => {
                let name = match self.existing {
                    Existing::Keep => job.entry.name.clone(),
                    Existing::Replace => temporary_name(),
                };
                let file = create_file(&directory, &name, Existing::Keep)?;
                let mut created = Created {
                    identity: None,
                    name,
                };
                if job.parts.parts > 1 {
                    created.identity = Some(Status::of(&file)?.identity);
                }
                state.created = Some(created);
                if !is_all {
                    job.make_room(&file)?;
                }
                file
            }
            Some(created) => {
                let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let name = OsStr::from_bytes(&created.name);
                let file = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
                if Some(Status::of(&file)?.identity) != created.identity {
                    return Err(FilesError::Replaced);
                }
                File::from(file)
            }
        };
        self.open_files.fetch_add(1, Ordering::Relaxed);
        Ok(file)
    }

    fn close(&self, state: &mut FileState) {
        if state.open.take().is_some() {
            self.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn complete(&self, job: &FileJob, state: &mut FileState) {
        state.is_complete = true;
        if state.failure.is_none()
            && let Some(file) = &state.open
        {
            self.applier
                .apply_open(file, &job.entry, &job.path, &mut state.problems);
            match take_place(job, state) {
                Ok(()) => {
                    state.is_whole = true;
                    self.counts.files.fetch_add(1, Ordering::Relaxed);
                    self.counts
                        .bytes
                        .fetch_add(job.entry.size, Ordering::Relaxed);
                }
                Err(error) => state.fail(0, error.to_string()),
            }
        }
        self.close(state);
        // Whether anything was written before depends on the threads: no word about it.
        if let (Some((_, message)), Some(created)) = (&mut state.failure, &state.created)
            && let Err(error) = remove(job, &created.name)
        {
            message.push_str(&format!("; an incomplete file is left there: {error}"));
        }
        Progress::add(&self.progress.files_done, 1);
    }
}

/// A name that nothing has.
fn temporary_name() -> Vec<u8> {
    format!(".onefold-{}", ObjectId::random()).into_bytes()
}

/// Gives a whole file its own name, in the place of what had it.
fn take_place(job: &FileJob, state: &FileState) -> Result<(), FilesError> {
    let name = OsStr::from_bytes(&job.entry.name);
    let Some(created) = state
        .created
        .as_ref()
        .filter(|created| created.name != job.entry.name)
    else {
        return Ok(());
    };
    let directory = job.directory.open()?;
    let temporary = OsStr::from_bytes(&created.name);
    match rustix::fs::renameat(&directory, temporary, &directory, name) {
        Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => Err(FilesError::Exists),
        outcome => Ok(outcome?),
    }
}

fn remove(job: &FileJob, name: &[u8]) -> Result<(), FilesError> {
    let directory = job.directory.open()?;
    let name = OsStr::from_bytes(name);
    Ok(rustix::fs::unlinkat(&directory, name, AtFlags::empty())?)
}

/// Reports an entry that was not restored.
pub(super) fn report_failure(progress: &Progress, counts: &Counts, path: &Path, message: String) {
    counts.failed.fetch_add(1, Ordering::Relaxed);
    progress.report(&Problem {
        path: path.as_os_str().as_bytes().to_vec(),
        message,
        is_error: true,
    });
}

/// Reports metadata that could not be restored for an entry.
pub(super) fn report_metadata(
    progress: &Progress,
    counts: &Counts,
    problems: &[crate::files::Problem],
) {
    if !problems.is_empty() {
        counts.incomplete_metadata.fetch_add(1, Ordering::Relaxed);
    }
    for problem in problems {
        progress.report(&Problem {
            path: problem.path.as_os_str().as_bytes().to_vec(),
            message: format!("{}: {}", problem.what, problem.error),
            is_error: false,
        });
    }
}

impl ChunkSink for FileSink<'_> {
    fn write(&self, stream: u32, offset: u64, bytes: &[u8]) {
        let job = &self.jobs[stream as usize];
        self.progress.set_current(job.path.as_os_str().as_bytes());
        let meter = self.progress.stages.meter(Stage::Write);
        let mut state = meter.blocked(|| job.lock());
        meter.busy(bytes.len() as u64, || {
            self.write_part(job, &mut state, offset, bytes);
        });
        drop(state);
        Progress::add(&self.progress.bytes_done, bytes.len() as u64);
    }

    fn lost(&self, stream: u32, offset: u64, parts: usize, error: &str) {
        let job = &self.jobs[stream as usize];
        let mut state = job.lock();
        state.fail(offset, error.to_owned());
        self.parts_done(job, &mut state, parts);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}

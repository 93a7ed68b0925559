//! What a reading worker does with a file: open, read, chunk, fingerprint, hand on.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use engine::pipeline::{Emitter, SegmentInTurn, Stage, StreamChunking, Trail, chunk_stream};
use engine::recipe::Recipe;
use engine::restore::Reader;

use super::parent::ParentDamage;
use super::producer::{WalkStep, problem_of};
use crate::files::{Extent, Extents, FoundFile, Status};
use crate::progress::Problem;
use crate::timestamp::Timestamp;
use crate::tree::Entry;

/// A file that a worker is to read.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub found: Box<FoundFile>,
    /// The parent snapshot has nothing under its name.
    pub is_new: bool,
    /// What it was in the parent, where that is to say where its chunks may end.
    pub before: Option<Recipe>,
}

/// What workers make of jobs, in the order of the walk.
#[derive(Debug)]
pub(super) enum Produced {
    /// Chunks of the file that ends with the next [`Produced::File`].
    Segment(SegmentInTurn),
    /// A hole in it.
    Hole(u64),
    /// It is read whole.
    File {
        entry: Box<Entry>,
        path: PathBuf,
        is_new: bool,
    },
    /// It can't be read (to its end): what came of it does not count.
    Unreadable(Problem),
    /// A step of the walk that needed no worker.
    Step(WalkStep),
}

/// Reads a file.
pub(super) fn read_file(
    file: ReadFile,
    with: &StreamChunking,
    parent: Option<&Reader>,
    out: &Emitter<Produced>,
) {
    let ReadFile {
        found,
        is_new,
        before,
    } = file;
    let mut trail = match (parent, &before) {
        (Some(parent), Some(before)) => Some(Trail::new(parent.clone(), before)),
        _ => None,
    };
    let read = read_content(&found, with, trail.as_mut(), out);
    // Nothing that is stored rests on hints: the index looks at containers itself.
    if let Some(damage) = trail.as_mut().and_then(ParentDamage::of_trail) {
        let _ = out.emit(Produced::Step(WalkStep::ParentDamage(damage)));
    }
    let result = match read {
        Ok(read) => {
            if let Some(note) = read.note {
                let _ = out.emit(Produced::Step(WalkStep::Problem(note)));
            }
            let mut entry = Box::new(found.entry);
            entry.size = read.bytes;
            // Times as they were before the reading: if the file changed meanwhile, the next
            // backup sees that.
            entry.metadata.modified = read.status.modified;
            entry.metadata.changed = read.changed;
            Produced::File {
                entry,
                path: found.path,
                is_new,
            }
        }
        Err(problem) => Produced::Unreadable(problem),
    };
    let _ = out.emit(result);
}

/// A file that was read.
struct ReadContent {
    bytes: u64,
    /// As it was when it was opened.
    status: Status,
    /// Its ctime, if a later change is sure to have another; else zero.
    changed: Timestamp,
    note: Option<Problem>,
}

fn read_content(
    found: &FoundFile,
    with: &StreamChunking,
    trail: Option<&mut Trail>,
    out: &Emitter<Produced>,
) -> Result<ReadContent, Problem> {
    let started = Instant::now();
    let open = found.open().map_err(|problem| problem_of(&problem))?;
    with.stages
        .meter(Stage::Read)
        .worked_more(started.elapsed());
    let status = open.status;
    let changed = reliable_change_time(status.changed, Timestamp::now());
    let failed = |error: &io::Error| message(found, format!("not read in full: {error}"), true);
    let bytes = if status.stored_bytes >= status.size {
        let size = Some(status.size);
        read_data(&mut &open.file, size, with, trail, out)
    } else {
        read_sparse(&open.file, &status, with, trail, out)
    };
    let bytes = bytes.map_err(|error| failed(&error))?;
    let after = Status::of(&open.file).map_err(|errno| failed(&errno.into()))?;
    let is_changing = bytes != status.size
        || after.size != status.size
        || after.modified != status.modified
        || after.changed != status.changed;
    let note = is_changing.then(|| {
        message(
            found,
            "changed while it was read; what was read is stored".to_owned(),
            false,
        )
    });
    Ok(ReadContent {
        bytes,
        status,
        changed,
        note,
    })
}

/// The ctime of a file opened at `now`, or zero when the clock that stamps files may not have
/// moved on since: then a change during the reading could leave the same ctime, and the
/// next backup must read the file again. Clocks of file systems tick every few milliseconds;
/// those that store whole seconds, every one or two.
fn reliable_change_time(changed: Timestamp, now: Timestamp) -> Timestamp {
    let tick = match changed.nanoseconds {
        0 => Duration::from_secs(2),
        _ => Duration::from_millis(15),
    };
    match now.since(changed) {
        Some(age) if age > tick => changed,
        _ => Timestamp::default(),
    }
}

fn message(found: &FoundFile, message: String, is_error: bool) -> Problem {
    Problem {
        path: found.path.as_os_str().as_bytes().to_vec(),
        message,
        is_error,
    }
}

fn read_data(
    stream: &mut dyn Read,
    expected_bytes: Option<u64>,
    with: &StreamChunking,
    trail: Option<&mut Trail>,
    out: &Emitter<Produced>,
) -> io::Result<u64> {
    let index = with.stages.meter(Stage::Index);
    chunk_stream(with, stream, expected_bytes, trail, &mut |segment| {
        index.queue(segment.chunk_bytes());
        out.emit(Produced::Segment(segment)).is_ok()
    })
}

fn read_sparse(
    file: &File,
    status: &Status,
    with: &StreamChunking,
    mut trail: Option<&mut Trail>,
    out: &Emitter<Produced>,
) -> io::Result<u64> {
    let mut total = 0;
    for extent in Extents::new(file, status.size, status.stored_bytes) {
        match extent {
            Extent::Hole { bytes, .. } => {
                if let Some(trail) = trail.as_deref_mut() {
                    trail.pass(bytes);
                }
                total += bytes;
                if out.emit(Produced::Hole(bytes)).is_err() {
                    break;
                }
            }
            Extent::Data { offset, bytes } => {
                let mut part = Part {
                    file,
                    offset,
                    end: offset + bytes,
                };
                let trail = trail.as_deref_mut();
                let read = read_data(&mut part, Some(bytes), with, trail, out)?;
                total += read;
                if read < bytes {
                    break; // The file became shorter.
                }
            }
        }
    }
    Ok(total)
}

/// A part of a file, read from its place.
struct Part<'a> {
    file: &'a File,
    offset: u64,
    end: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let count = self.file.read_at(&mut buffer[..length], self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

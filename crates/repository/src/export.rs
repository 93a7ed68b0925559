//! Writes a snapshot, or a part of it, as a tar.
//!
//! The tree is walked in order. Members gather until there are enough of them; then their contents are read back as
//! one stream (`engine::pipeline::ReadingRoom::read_in_order`), some way ahead and on several threads, and written
//! between their headers. A file with so many runs that its recipe is paged is read alone. Every chunk is verified
//! before it is written, and every file's check value before the first byte of it is.
//!
//! A tar can't take back what it has written: where a file can't be read, it ends there.
//!
//! Memory: a batch of members ([`BATCH_RUNS`], [`BATCH_MEMBERS`]), what the reading room keeps, and the path of each
//! file with several names.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::Ordering;

use engine::Engine;
use engine::fingerprint::CheckValue;
use engine::pipeline::{InOrderError, StreamPiece};
use engine::recipe::{Recipe, Run};
use engine::restore::{ReadError, Reader};

use crate::listing::{ListError, SnapshotTree, join_path};
use crate::progress::Progress;
use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::tar::{Extent, NewMember, SPARSE_EXTENTS_MAX, TarWriter};
use crate::tree::{Entry, EntryKind, HardLink};

/// Runs of a batch.
const BATCH_RUNS: usize = 16 << 10;

/// Members of a batch.
const BATCH_MEMBERS: usize = 4 << 10;

/// Zeros written at once for a hole that the tar can't have as one.
const ZEROS_BYTES: usize = 64 << 10;

/// Why an archive was not written whole.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// What is to be exported can't be found, or listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// A file can't be read; the archive ends before it, or in it.
    #[error("{}: {error}", String::from_utf8_lossy(path))]
    Read {
        /// The file in the snapshot.
        path: Vec<u8>,
        /// What is wrong.
        error: ReadError,
    },
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Threads(io::Error),
    /// The output does not take it.
    #[error("cannot write the archive: {0}")]
    Write(#[from] io::Error),
}

/// What was exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExportReport {
    /// Files, each of its names counted.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links, devices and the like.
    pub others: u64,
    /// Members that are another name of one before.
    pub links: u64,
    /// Lengths of all files, holes included, each once.
    pub bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Visits of containers to read groups.
    pub containers_read: u64,
}

impl Repository {
    /// Writes a snapshot to `out` as a tar: with whole paths, or, with `subpath`, the contents of that directory (or
    /// that file) by their paths in it.
    ///
    /// # Errors
    /// When there is no such path, something is damaged, or `out` fails: then the archive is cut off.
    pub fn export(
        &self,
        snapshot: &Snapshot,
        subpath: Option<&[u8]>,
        out: &mut dyn Write,
        progress: &Progress,
    ) -> Result<ExportReport, ExportError> {
        let engine = self.engine().metered(&progress.stages);
        let reader = engine.reader().map_err(RepositoryError::from)?;
        let tree = SnapshotTree::new(reader.clone(), snapshot);
        let start = subpath.map(|path| tree.entry(path)).transpose()?.flatten();
        if start.is_none() {
            let summary = &snapshot.summary;
            progress.files_total.store(summary.files, Ordering::Relaxed);
            progress
                .bytes_total
                .store(summary.files_bytes, Ordering::Relaxed);
            progress.is_total_known.store(true, Ordering::Relaxed);
        }
        let mut export = Export {
            engine: &engine,
            reader,
            progress,
            tar: TarWriter::new(out),
            links: HashMap::new(),
            batch: Batch::default(),
            report: ExportReport::default(),
        };
        match start {
            None => export.walk(&tree, tree.root())?,
            Some(entry) if entry.kind == EntryKind::Directory => {
                export.walk(&tree, &entry.content)?;
            }
            Some(entry) => {
                let path = entry.name.clone();
                export.entry(path, entry)?;
            }
        }
        export.write_batch()?;
        let Export {
            tar, mut report, ..
        } = export;
        report.archive_bytes = tar.finish()?;
        Ok(report)
    }
}

/// A member whose turn comes.
struct Waiting {
    path: Vec<u8>,
    entry: Entry,
    /// The member that it is another name of.
    link: Option<Vec<u8>>,
    sparse: Option<Vec<Extent>>,
}

impl Waiting {
    /// Bytes of the file that come when the batch is read, with holes.
    fn stream_bytes(&self) -> u64 {
        match self.link {
            Some(_) => 0,
            None => self.entry.size,
        }
    }
}

#[derive(Default)]
struct Batch {
    members: Vec<Waiting>,
    runs: Vec<Run>,
}

struct Export<'a> {
    engine: &'a Engine,
    reader: Reader,
    progress: &'a Progress,
    tar: TarWriter<'a>,
    /// Where the first name of a file with several is.
    links: HashMap<HardLink, Vec<u8>>,
    batch: Batch,
    report: ExportReport,
}

impl Export<'_> {
    fn walk(&mut self, tree: &SnapshotTree, root: &Recipe) -> Result<(), ExportError> {
        let mut stack = vec![(Vec::new(), tree.directory(root, b""))];
        while let Some((directory, entries)) = stack.last_mut() {
            if self.progress.is_cancelled() {
                return Err(ExportError::Write(io::ErrorKind::Interrupted.into()));
            }
            let Some(entry) = entries.next() else {
                stack.pop();
                continue;
            };
            let entry = entry?;
            let path = match directory.is_empty() {
                true => entry.name.clone(),
                false => join_path(directory, &entry.name),
            };
            if entry.kind == EntryKind::Directory {
                let below = tree.directory(&entry.content, &join_path(b"", &path));
                stack.push((path.clone(), below));
            }
            self.entry(path, entry)?;
        }
        Ok(())
    }

    /// Takes the next member.
    fn entry(&mut self, path: Vec<u8>, entry: Entry) -> Result<(), ExportError> {
        match entry.kind {
            EntryKind::File => self.report.files += 1,
            EntryKind::Directory => self.report.directories += 1,
            _ => self.report.others += 1,
        }
        let mut member = Waiting {
            path,
            entry,
            link: None,
            sparse: None,
        };
        if let Some(link) = member.entry.hard_link {
            match self.links.get(&link) {
                Some(first) => {
                    self.report.links += 1;
                    member.link = Some(first.clone());
                    return self.wait(member);
                }
                None => drop(self.links.insert(link, member.path.clone())),
            }
        }
        if member.entry.kind != EntryKind::File {
            return self.wait(member);
        }
        self.report.bytes += member.entry.size;
        if let Recipe::Runs(runs) = &member.entry.content {
            self.verify(&member)?;
            self.batch.runs.extend_from_slice(runs);
            let runs = runs.iter().copied().map(Ok);
            member.sparse = self.extents(&member, runs)?;
            return self.wait(member);
        }
        self.write_batch()?;
        let runs = self.reader.runs(&member.entry.content);
        member.sparse = self.extents(&member, runs)?;
        let recipe = member.entry.content.clone();
        let check = member.entry.check;
        self.batch.members.push(member);
        self.write(&recipe, check)
    }

    fn wait(&mut self, member: Waiting) -> Result<(), ExportError> {
        self.batch.members.push(member);
        let Batch { members, runs } = &self.batch;
        if members.len() >= BATCH_MEMBERS || runs.len() >= BATCH_RUNS {
            return self.write_batch();
        }
        Ok(())
    }

    /// Checks by the metadata of its containers that a file's chunks are those that were backed up.
    fn verify(&self, member: &Waiting) -> Result<(), ExportError> {
        let visited = self
            .reader
            .visit_runs(&member.entry.content, &mut |_, _| ());
        let (_, actual) = visited.map_err(|error| read_error(&member.path, error))?;
        match member.entry.check {
            Some(check) if check != actual => Err(read_error(&member.path, ReadError::Check)),
            _ => Ok(()),
        }
    }

    /// The parts of a file that are not holes; nothing when it has no hole, or too many.
    fn extents(
        &self,
        member: &Waiting,
        runs: impl Iterator<Item = Result<Run, ReadError>>,
    ) -> Result<Option<Vec<Extent>>, ExportError> {
        let mut extents: Vec<Extent> = Vec::new();
        let mut offset = 0;
        let mut has_hole = false;
        for run in runs {
            let run = run.map_err(|error| read_error(&member.path, error))?;
            let bytes = run.bytes();
            let count = extents.len();
            match (run, extents.last_mut()) {
                (Run::Hole { .. }, _) => has_hole = true,
                (_, Some(last)) if last.offset + last.bytes == offset => last.bytes += bytes,
                _ if count >= SPARSE_EXTENTS_MAX => return Ok(None),
                _ => extents.push(Extent { offset, bytes }),
            }
            offset += bytes;
        }
        Ok(has_hole.then_some(extents))
    }

    fn write_batch(&mut self) -> Result<(), ExportError> {
        let recipe = Recipe::Runs(std::mem::take(&mut self.batch.runs));
        self.write(&recipe, None)
    }

    /// Writes the members that wait, whose contents are `recipe`.
    fn write(&mut self, recipe: &Recipe, check: Option<CheckValue>) -> Result<(), ExportError> {
        let members = std::mem::take(&mut self.batch.members);
        if members.is_empty() {
            return Ok(());
        }
        let mut writing = Writing {
            tar: &mut self.tar,
            progress: self.progress,
            members: &members,
            current: 0,
            left: 0,
            zeros: Vec::new(),
        };
        writing.begin()?;
        let room = self.engine.reading_room();
        let cache_bytes = self.engine.settings().memory_bytes / 4;
        let mut take = |piece: StreamPiece<'_>| writing.take(piece);
        let read = room.read_in_order(&self.reader, recipe, check, cache_bytes, &mut take);
        let current = writing.current;
        let report = read.map_err(|error| match error {
            InOrderError::Read(error) => {
                let member = members.get(current).or(members.last());
                read_error(member.map_or(b"", |member| &member.path), error)
            }
            InOrderError::Take(error) => ExportError::Write(error),
            InOrderError::Threads(error) => ExportError::Threads(error),
        })?;
        self.report.containers_read += report.containers_read;
        Ok(())
    }
}

fn read_error(path: &[u8], error: ReadError) -> ExportError {
    ExportError::Read {
        path: join_path(b"", path),
        error,
    }
}

/// Members while their contents come as one stream.
struct Writing<'a, 'out> {
    tar: &'a mut TarWriter<'out>,
    progress: &'a Progress,
    members: &'a [Waiting],
    /// The member whose contents come.
    current: usize,
    /// Bytes of it that are still to come.
    left: u64,
    zeros: Vec<u8>,
}

impl Writing<'_, '_> {
    /// Begins members up to one that has contents.
    fn begin(&mut self) -> io::Result<()> {
        while let Some(member) = self.members.get(self.current) {
            self.progress.set_current(&member.path);
            self.tar.member(&NewMember {
                path: &member.path,
                entry: &member.entry,
                link: member.link.as_deref(),
                sparse: member.sparse.as_deref(),
            })?;
            self.left = member.stream_bytes();
            if self.left > 0 {
                return Ok(());
            }
            self.end()?;
        }
        Ok(())
    }

    /// Ends the current member.
    fn end(&mut self) -> io::Result<()> {
        self.tar.fill()?;
        if self.members[self.current].entry.kind == EntryKind::File {
            Progress::add(&self.progress.files_done, 1);
        }
        self.current += 1;
        Ok(())
    }

    fn take(&mut self, piece: StreamPiece<'_>) -> io::Result<()> {
        if self.progress.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match piece {
            StreamPiece::Bytes(mut bytes) => {
                while !bytes.is_empty() {
                    let count = usize::try_from(self.left).unwrap_or(usize::MAX);
                    let (now, later) = bytes.split_at(count.min(bytes.len()));
                    self.tar.content(now)?;
                    self.pass(now.len() as u64)?;
                    bytes = later;
                }
            }
            StreamPiece::Hole(mut bytes) => {
                while bytes > 0 {
                    let now = bytes.min(self.left);
                    let is_told = self.members.get(self.current);
                    if is_told.is_some_and(|member| member.sparse.is_none()) {
                        self.write_zeros(now)?;
                    }
                    self.pass(now)?;
                    bytes -= now;
                }
            }
        }
        Ok(())
    }

    /// So much of the current member has come.
    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        if self.left == 0 {
            // The recipe makes as many bytes as its files have: it was made of theirs.
            return Err(io::Error::other("more bytes than the members have"));
        }
        Progress::add(&self.progress.bytes_done, bytes);
        self.left -= bytes;
        if self.left == 0 {
            self.end()?;
            self.begin()?;
        }
        Ok(())
    }

    fn write_zeros(&mut self, mut bytes: u64) -> io::Result<()> {
        self.zeros.resize(ZEROS_BYTES, 0);
        while bytes > 0 {
            let count = bytes.min(ZEROS_BYTES as u64);
            self.tar.content(&self.zeros[..count as usize])?;
            bytes -= count;
        }
        Ok(())
    }
}

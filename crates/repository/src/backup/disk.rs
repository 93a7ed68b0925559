//! Backs the image of a disk up as one file, reading only what changed since an earlier image of it.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::pipeline::{
    EarlierStream, SparseExtent, SparseStream, SplicedStream, WriteError, Writer,
};

use super::parent::ParentDamage;
use super::stream::stream_metadata;
use super::tree_builder::{Content, TreeBuilder};
use super::{BackupError, BackupOptions, BackupReport, RunningBackup};
use crate::deletion::runs::Registration;
use crate::listing::{SnapshotTree, path_parts};
use crate::progress::Progress;
use crate::repository::Repository;
use crate::snapshot::{DiskState, Snapshot};
use crate::tree::{Entry, EntryKind, Metadata};

/// A disk that is to be backed up.
pub struct DiskImage<'a> {
    /// Where the image is in the snapshot: an absolute path.
    pub path: Vec<u8>,
    /// Which state of it this is.
    pub state: DiskState,
    /// What is in it.
    pub stream: &'a mut dyn SparseStream,
    /// An earlier image of it, if there is one.
    pub earlier: Option<EarlierImage<'a>>,
}

/// An image of a disk that is in the repository.
pub struct EarlierImage<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// Bytes of the disk that may differ now: ascending, apart from each other.
    pub changed: &'a [Range<u64>],
}

impl Repository {
    /// Backs up the image of a disk. What is not in a changed range is taken from the earlier image, and
    /// only the rest is read.
    ///
    /// # Errors
    /// When no snapshot was written.
    pub fn backup_disk(
        &self,
        mut disk: DiskImage<'_>,
        options: &BackupOptions,
        progress: &Progress,
    ) -> Result<BackupReport, BackupError> {
        let mut run = RunningBackup::begin(self, options, progress)?;
        run.snapshot.paths = vec![disk.path.clone()];
        run.snapshot.disk = Some(disk.state);
        let mut writer = run.engine.writer()?;
        progress.set_current(&disk.path);
        Progress::add(&progress.bytes_total, disk.stream.size_bytes());
        Progress::add(&progress.files_total, 1);
        progress.is_total_known.store(true, Ordering::Relaxed);
        let stored = run.store_image(&mut disk, &mut writer);
        let spliced = match stored {
            Err(BackupError::Write(WriteError::Read(error))) => {
                // What came before is there for the next attempt.
                run.snapshot.disk = None;
                return match run.commit(writer, false) {
                    Err(BackupError::Interrupted(_)) if !progress.is_cancelled() => {
                        Err(BackupError::Stream(error))
                    }
                    outcome => outcome,
                };
            }
            other => other?,
        };
        let mut parts: Vec<&[u8]> = path_parts(&disk.path).collect();
        let name = parts.pop().unwrap_or_default().to_vec();
        let mut entry = Entry::new(name, EntryKind::File, stream_metadata());
        entry.size = spliced.recipe.stream_bytes();
        entry.check = (entry.size > 0).then_some(spliced.check);
        run.snapshot.summary.files = 1;
        run.snapshot.summary.directories = parts.len() as u64;
        match disk.earlier {
            Some(_) => run.snapshot.summary.files_changed = 1,
            None => run.snapshot.summary.files_new = 1,
        }
        run.snapshot.summary.files_bytes = entry.size;
        run.snapshot.summary.bytes_read = spliced.read_bytes;
        let mut tree = TreeBuilder::new(Arc::clone(run.engine.fingerprinter()));
        for part in &parts {
            let metadata = Metadata {
                mode: 0o700,
                ..stream_metadata()
            };
            tree.enter(Entry::new(part.to_vec(), EntryKind::Directory, metadata));
        }
        tree.entry(entry, Content::Pending(spliced.recipe));
        for _ in &parts {
            tree.leave();
        }
        writer.flush()?;
        let (root, refused) = tree.finish(&mut writer)?;
        if let Some(refused) = refused.first() {
            return Err(BackupError::Source(refused.to_string()));
        }
        run.snapshot.root = root;
        Progress::add(&progress.files_done, 1);
        run.commit(writer, true)
    }
}

impl RunningBackup<'_> {
    fn store_image(
        &mut self,
        disk: &mut DiskImage<'_>,
        writer: &mut Writer,
    ) -> Result<SplicedStream, BackupError> {
        let mut stream = CountedDisk {
            stream: &mut *disk.stream,
            progress: self.progress,
            registration: self.registration.clone(),
        };
        let before = match &disk.earlier {
            Some(earlier) => self.image_before(earlier, writer),
            None => None,
        };
        let reader = self.parent_reader(writer);
        let earlier = match (&before, &disk.earlier) {
            (Some(entry), Some(earlier)) => {
                self.snapshot.parent = Some(earlier.snapshot.id);
                Some(EarlierStream {
                    recipe: &entry.content,
                    reader: reader.clone(),
                    changed: earlier.changed,
                })
            }
            _ => None,
        };
        let mut spliced = writer.store_spliced(&mut stream, earlier)?;
        for error in std::mem::take(&mut spliced.problems) {
            self.take_damage(ParentDamage::of_image(&reader, &error), writer);
        }
        Ok(spliced)
    }

    /// What the earlier image is in its snapshot; nothing, and a warning, when that is damaged.
    fn image_before(&mut self, earlier: &EarlierImage<'_>, writer: &Writer) -> Option<Entry> {
        let tree = SnapshotTree::new(self.parent_reader(writer), earlier.snapshot);
        let path = earlier.snapshot.paths.first()?;
        match tree.entry(path) {
            Ok(entry) => entry.filter(|entry| entry.kind == EntryKind::File),
            Err(error) => {
                self.warn(b"", format!("the snapshot before is damaged: {error}"));
                None
            }
        }
    }
}

/// A disk whose bytes count as progress, and which ends when somebody asks for a stop.
struct CountedDisk<'a> {
    stream: &'a mut dyn SparseStream,
    progress: &'a Progress,
    registration: Option<Registration>,
}

impl SparseStream for CountedDisk<'_> {
    fn size_bytes(&self) -> u64 {
        self.stream.size_bytes()
    }

    fn extent_at(&mut self, offset: u64) -> io::Result<(SparseExtent, u64)> {
        self.stream.extent_at(offset)
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.stream.read_at(offset, buffer)
    }

    fn passed(&mut self, bytes: u64) -> io::Result<()> {
        if self.progress.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        if let Some(registration) = &self.registration {
            registration.show_life().map_err(io::Error::other)?;
        }
        Progress::add(&self.progress.bytes_done, bytes);
        self.stream.passed(bytes)
    }
}

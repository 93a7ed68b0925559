//! Backs a stream up as one file: the standard input, or what a command prints.

use std::io::Read;
use std::sync::Arc;

use engine::pipeline::{Trail, WriteError, Writer};

use super::parent::ParentDamage;
use super::tree_builder::{Content, TreeBuilder};
use super::{BackupError, BackupOptions, BackupReport, RunningBackup};
use crate::deletion::runs::Registration;
use crate::listing::SnapshotTree;
use crate::progress::Progress;
use crate::repository::Repository;
use crate::timestamp::Timestamp;
use crate::tree::{Entry, EntryKind, Metadata};

impl Repository {
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
        let mut writer = run.engine.writer()?;
        let mut counted = CountedStream {
            stream,
            progress,
            registration: run.registration.clone(),
        };
        progress.set_current(name);
        let mut trail = run.stream_trail(&writer, name)?;
        let stored = writer.store_stream(&mut counted, trail.as_mut());
        if let Some(damage) = trail.as_mut().and_then(ParentDamage::of_trail) {
            run.take_damage(damage, &mut writer);
        }
        let (recipe, check) = match stored {
            Err(WriteError::Read(error)) => {
                // What came before is there for the next attempt.
                return match run.commit(writer, false) {
                    Err(BackupError::Interrupted(_)) if !progress.is_cancelled() => {
                        Err(BackupError::Stream(error))
                    }
                    outcome => outcome,
                };
            }
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
        run.commit(writer, true)
    }
}

/// Metadata of a file that never lay on a disk.
pub(super) fn stream_metadata() -> Metadata {
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
pub(super) struct CountedStream<'a> {
    pub stream: &'a mut dyn Read,
    pub progress: &'a Progress,
    pub registration: Option<Registration>,
}

impl Read for CountedStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(std::io::Error::other("stopped"));
        }
        if let Some(registration) = &self.registration {
            registration.show_life().map_err(std::io::Error::other)?;
        }
        let count = self.stream.read(buffer)?;
        Progress::add(&self.progress.bytes_done, count as u64);
        Ok(count)
    }
}

impl RunningBackup<'_> {
    /// What the stream called `name` was in the latest snapshot of it.
    fn stream_trail(&mut self, writer: &Writer, name: &[u8]) -> Result<Option<Trail>, BackupError> {
        let Some(reader) = self.hint_reader(writer) else {
            return Ok(None);
        };
        let Some(parent) = self.parent_snapshots()?.pop() else {
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
}

//! Writes the content of one file of a snapshot, in order, verified.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use engine::pipeline::{InOrderError, InOrderReport, StreamPiece};
use engine::restore::ReadError;

use crate::listing::{ListError, SnapshotTree};
use crate::progress::Progress;
use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::tree::EntryKind;

/// Zeros written at once for a hole.
const ZEROS_BYTES: usize = 64 << 10;

/// Why a file was not written out whole.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// It can't be found.
    #[error(transparent)]
    List(#[from] ListError),
    /// It is no file.
    #[error("{} is not a file", String::from_utf8_lossy(path))]
    NotAFile {
        /// The path asked for.
        path: Vec<u8>,
    },
    /// Its chunks can't be read; what was written before is right.
    #[error(
        "{}: {error} (after {bytes_written} bytes)",
        String::from_utf8_lossy(path)
    )]
    Read {
        /// The path asked for.
        path: Vec<u8>,
        /// Bytes written before.
        bytes_written: u64,
        /// What is wrong.
        error: ReadError,
    },
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Threads(io::Error),
    /// The output does not take it.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

impl Repository {
    /// Writes the file at `path` to `out`, and returns its length and what reading it took.
    ///
    /// # Errors
    /// When there is no such file, it is damaged, or `out` fails.
    pub fn dump(
        &self,
        snapshot: &Snapshot,
        path: &[u8],
        out: &mut dyn Write,
        progress: &Progress,
    ) -> Result<InOrderReport, DumpError> {
        let engine = self.engine().metered(&progress.stages);
        let reader = engine.reader().map_err(RepositoryError::from)?;
        let tree = SnapshotTree::new(reader.clone(), snapshot);
        let not_a_file = || DumpError::NotAFile {
            path: path.to_vec(),
        };
        let entry = tree.entry(path)?.ok_or_else(not_a_file)?;
        if entry.kind != EntryKind::File {
            return Err(not_a_file());
        }
        let mut bytes_written = 0;
        let zeros = vec![0; ZEROS_BYTES];
        progress.set_current(path);
        Progress::add(&progress.files_total, 1);
        Progress::add(&progress.bytes_total, entry.size);
        progress.is_total_known.store(true, Ordering::Relaxed);
        let mut take = |piece: StreamPiece<'_>| -> io::Result<()> {
            if progress.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let before = bytes_written;
            match piece {
                StreamPiece::Bytes(bytes) => {
                    out.write_all(bytes)?;
                    bytes_written += bytes.len() as u64;
                }
                StreamPiece::Hole(mut bytes) => {
                    while bytes > 0 {
                        let count = bytes.min(ZEROS_BYTES as u64);
                        out.write_all(&zeros[..count as usize])?;
                        bytes_written += count;
                        bytes -= count;
                    }
                }
            }
            Progress::add(&progress.bytes_done, bytes_written - before);
            Ok(())
        };
        let cache_bytes = engine.settings().memory_bytes / 4;
        let room = engine.reading_room();
        let read = room.read_in_order(&reader, &entry.content, entry.check, cache_bytes, &mut take);
        let report = read.map_err(|error| match error {
            InOrderError::Read(error) => DumpError::Read {
                path: path.to_vec(),
                bytes_written,
                error,
            },
            InOrderError::Take(error) => DumpError::Write(error),
            InOrderError::Threads(error) => DumpError::Threads(error),
        })?;
        Progress::add(&progress.files_done, 1);
        out.flush()?;
        Ok(report)
    }
}

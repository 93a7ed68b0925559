//! Writes the content of one file of a snapshot, in order, verified.

use std::io::{self, Write};

use engine::restore::ReadError;

use crate::listing::{ListError, SnapshotTree};
use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::tree::EntryKind;

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
    /// The output does not take it.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

impl Repository {
    /// Writes the file at `path` to `out` and returns its length.
    ///
    /// # Errors
    /// When there is no such file, it is damaged, or `out` fails.
    pub fn dump(
        &self,
        snapshot: &Snapshot,
        path: &[u8],
        out: &mut dyn Write,
    ) -> Result<u64, DumpError> {
        let reader = self.engine().reader().map_err(RepositoryError::from)?;
        let tree = SnapshotTree::new(reader.clone(), snapshot);
        let not_a_file = || DumpError::NotAFile {
            path: path.to_vec(),
        };
        let entry = tree.entry(path)?.ok_or_else(not_a_file)?;
        if entry.kind != EntryKind::File {
            return Err(not_a_file());
        }
        let mut stream = reader.stream(&entry.content);
        let mut bytes_written = 0;
        let failed = |bytes_written, error| DumpError::Read {
            path: path.to_vec(),
            bytes_written,
            error,
        };
        loop {
            match stream.next_chunk() {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    out.write_all(&chunk)?;
                    bytes_written += chunk.len() as u64;
                }
                Err(error) => return Err(failed(bytes_written, error)),
            }
        }
        if entry.check.is_some_and(|check| check != stream.check()) {
            return Err(failed(bytes_written, ReadError::Check));
        }
        out.flush()?;
        Ok(bytes_written)
    }
}

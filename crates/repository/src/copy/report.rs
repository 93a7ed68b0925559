//! What is asked of a copy, what becomes of it, and why it may end.

use engine::object::ObjectId;
use engine::pipeline::WriteError;
use engine::restore::ReadError;

use crate::listing::ListError;
use crate::progress::Problem;
use crate::repository::RepositoryError;

/// Why a snapshot, or none at all, was copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The repository that is copied from.
    #[error("the source: {0}")]
    Source(RepositoryError),
    /// The repository that is copied to.
    #[error("the target: {0}")]
    Target(RepositoryError),
    /// They are one.
    #[error("the source and the target are the same repository")]
    SameRepository,
    /// A directory of the source can't be read.
    #[error("the source: {0}")]
    List(#[from] ListError),
    /// A file of the source can't be read.
    #[error("the source: {}: {error}", String::from_utf8_lossy(path))]
    Read {
        /// The file, or one of those that were read together with it.
        path: Vec<u8>,
        /// What is wrong.
        error: ReadError,
    },
    /// The target can't be written.
    #[error("the target: {0}")]
    Write(#[from] WriteError),
    /// An entry has no place in the target's pages.
    #[error("the target: {0}")]
    Refused(Problem),
    /// A chunk that was stored a moment ago is not there any more.
    #[error("the target: a chunk that was stored is gone")]
    Lost,
    /// A prune of the target took the copy for dead.
    #[error(
        "the copy showed no sign of life for so long that a prune took it for dead, so its last snapshot was taken back; run it again: what was stored is used"
    )]
    TakenForDead,
    /// Somebody asked for a stop. What was stored until then is durable.
    #[error("interrupted; the next copy uses what was stored")]
    Interrupted,
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Threads(std::io::Error),
}

impl CopyError {
    /// Is it damage of the source, which other snapshots may not have?
    #[must_use]
    pub fn is_damage_of_source(&self) -> bool {
        match self {
            CopyError::List(error) => error.is_damage(),
            CopyError::Read { error, .. } => error.is_damage(),
            _ => false,
        }
    }
}

/// How snapshots are copied.
#[derive(Debug, Clone, Default)]
pub struct CopyOptions {
    /// The name of this machine, for those who wait for the copy to end.
    pub host: String,
    /// Copy what was copied before once more, and take nothing over from earlier copies without reading it.
    pub force: bool,
}

/// What became of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was copied: the id of the copy.
    Copied(ObjectId),
    /// It was there: the id of the copy.
    WasThere(ObjectId),
    /// Something of it is damaged.
    Failed,
}

/// What was copied, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Snapshots copied.
    pub copied: u64,
    /// Those that were there.
    pub there: u64,
    /// Those that could not be read.
    pub failed: u64,
    /// Chunks were not kept as they are, but cut again.
    pub is_cut_again: bool,
    /// Files whose contents were read or found.
    pub files: u64,
    /// Files taken over from an earlier copy, without those in directories that were.
    pub files_kept: u64,
    /// Directories taken over from an earlier copy, with all below them.
    pub directories_kept: u64,
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Bytes that the target did not have.
    pub bytes_new: u64,
    /// Bytes of objects written to the target.
    pub bytes_stored: u64,
    /// Visits of containers of the source to read chunks.
    pub containers_read: u64,
}

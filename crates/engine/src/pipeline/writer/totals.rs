//! What a writer did, and why it may stop.

use crate::format::ObjectError;
use crate::object::StoreError;
use crate::pipeline::deltas::DeltaSettingsError;
use crate::recipe::RECIPE_LEVEL_MAX;

/// Why nothing more can be stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// An object could not be written or read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The stream to be stored could not be read.
    #[error("cannot read the stream: {0}")]
    Read(#[from] std::io::Error),
    /// A stream is so fragmented that its recipe exceeds the limits of the format.
    #[error("a stream's recipe exceeds {RECIPE_LEVEL_MAX} levels of pages")]
    RecipeTooLong,
    /// Deltas can't be made with these settings.
    #[error(transparent)]
    Deltas(#[from] DeltaSettingsError),
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Threads(std::io::Error),
    /// A thread of the pipeline ended before its work was done.
    #[error("a thread of the pipeline ended unexpectedly")]
    WorkerLost,
    /// An earlier failure stopped the pipeline.
    #[error("the pipeline stopped after a failure")]
    Stopped,
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        WriteError::Object(error.into())
    }
}

/// What a writer stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteTotals {
    /// Chunks of data handed in.
    pub chunks: u64,
    /// Those that were new.
    pub chunks_new: u64,
    /// Bytes of the new ones.
    pub bytes_new: u64,
    /// Chunks that were there already and were stored again.
    pub chunks_rewritten: u64,
    /// Bytes of these.
    pub bytes_rewritten: u64,
    /// Pages of metadata handed in.
    pub pages: u64,
    /// Those that were new.
    pub pages_new: u64,
    /// Bytes of the new ones.
    pub page_bytes_new: u64,
    /// Containers written.
    pub containers: u64,
    /// Bytes of container objects written.
    pub stored_bytes: u64,
    /// Bytes of data, metadata and tags in them.
    pub filled_bytes: u64,
    /// Bytes of container metadata in them.
    pub container_metadata_bytes: u64,
    /// Chunks that are stored as deltas, in the containers written.
    pub delta_chunks: u64,
    /// Bytes of these chunks.
    pub delta_chunk_bytes: u64,
    /// Bytes of their deltas, before compression.
    pub delta_bytes: u64,
}

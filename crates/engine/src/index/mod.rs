//! The fingerprint index on disk: immutable sorted runs, fingerprint prefix → chunk address
//! (docs/format/v1.md, §11; design.md, "Repository format v1").
//!
//! ```text
//! IndexEntry ──▶ RunSet::write_run ──▶ RunWriter ──▶ one object `index/ID`, a stream
//!                      merge ──▶ ▲                         │
//! prefix ──▶ RunSet::candidates ─┴── each run: filter ──▶ fences ──▶ block ──▶ ChunkAddress
//!                                           RunPlanes            PieceCache
//! ```
//!
//! The index is a help, never the truth: a candidate says where a chunk of that prefix was
//! stored, and the caller compares the full fingerprint in the container's metadata. What is
//! lost or damaged here costs space (chunks are stored again) until it is rebuilt from the
//! containers; it never costs data. So look-ups can't fail: see [`RunSet::damaged`].

mod block;
mod cache;
mod filter;
mod footer;
mod lookup;
mod merge;
mod planes;
mod rebuild;
mod residency;
mod run_changes;
mod run_reader;
mod run_set;
mod run_writer;
mod statistics;

#[cfg(test)]
mod run_set_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_support;

pub use footer::RUN_ENTRIES_MAX;
pub use lookup::{Found, Index, IndexMemory, OpenPlace, RECENT_CHUNKS_MAX};
pub use rebuild::RunBuilder;
pub use run_changes::{IsLive, MergeSummary};
pub use run_set::{MEMORY_BYTES_MIN, RunSet};
pub use statistics::IndexStatistics;

use crate::container::{ChunkAddress, Slot};

/// What the index keeps of a chunk. Ordered as entries are in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The first eight bytes of its fingerprint ([`crate::fingerprint::Fingerprint::prefix`]).
    pub prefix: u64,
    /// Where it lies.
    pub address: ChunkAddress,
}

/// An entry as a run stores it: the container by its number in the run's table. Tables ascend
/// by container id, so this order is that of [`IndexEntry`], in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RunEntry {
    prefix: u64,
    container: u32,
    slot: Slot,
}

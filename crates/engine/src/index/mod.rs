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
//!
//! **Memory**, what each thing takes (all of it counted, and kept within one setting):
//!
//! | what | bytes |
//! |---|---|
//! | footers of open runs | 8 a block (≈ 1,800 entries), 20 a container, 100 a partition (≈ 260,000 entries) |
//! | first, second plane of filters | 0.545 a key each; loaded when they are paid for |
//! | blocks | 16 KiB each and 8 for every 64 entries, least recently used first out |
//! | recent chunks | 16 to 32 an entry and 20 a container, at most an eighth of the setting |
//! | containers that are there | 10 each |
//! | a run being written | at most a seventh of the setting; a merge up to 3/8, planes and blocks giving way |

mod block;
mod cache;
mod fetched;
mod filter;
mod footer;
mod hashing;
mod live;
mod locality;
mod lookup;
mod merge;
mod merge_job;
mod moved;
mod planes;
mod rebuild;
mod recent;
mod replacement;
mod residency;
mod run_changes;
mod run_reader;
mod run_set;
mod run_writer;
mod statistics;

#[cfg(test)]
mod directory_tests;
#[cfg(test)]
mod residency_tests;
#[cfg(test)]
mod run_set_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_support;

pub use footer::RUN_ENTRIES_MAX;
pub use live::LiveObjects;
pub use lookup::{Found, Index, IndexMemory, OpenPlace};
pub use merge_job::MergeJob;
pub use moved::ObjectsToIndex;
pub use rebuild::RunBuilder;
pub use replacement::{MetadataCache, Replacement};
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

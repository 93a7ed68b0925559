//! What the index did and what it takes, in numbers that tests can assert.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a [`RunSet`](super::RunSet) holds now and did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Runs open.
    pub runs: u64,
    /// Entries in them; one that several runs hold counts as often.
    pub entries: u64,
    /// Bytes of the runs in the store.
    pub store_bytes: u64,
    /// Memory that footers take, which stay while a run is open.
    pub footer_bytes: u64,
    /// Memory that planes of filters take.
    pub filter_bytes: u64,
    /// Memory that cached blocks take.
    pub cache_bytes: u64,
    /// Memory that is reserved: for a run being written, for recent chunks, for the containers that
    /// are there.
    pub reserved_bytes: u64,
    /// The most memory that all of these took together: looked at when runs come or go, something is
    /// reserved or given back, and when statistics are asked for.
    pub memory_bytes_most: u64,
    /// Look-ups so far.
    pub lookups: u64,
    /// Runs that a filter ruled out without reading a block.
    pub filter_rejects: u64,
    /// Runs where a filter said maybe and no entry was found.
    pub filter_false_positives: u64,
    /// Runs that had no filter in memory and no entry.
    pub unfiltered_misses: u64,
    /// Blocks read from the store for look-ups.
    pub block_reads: u64,
    /// Planes of filters read from the store.
    pub filter_reads: u64,
    /// Their bytes.
    pub filter_read_bytes: u64,
    /// Blocks read from the store for merges.
    pub merge_block_reads: u64,
    /// Runs written, by merges too.
    pub runs_written: u64,
    /// Bytes of these runs.
    pub bytes_written: u64,
}

impl IndexStatistics {
    /// All memory that the index counts.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.footer_bytes + self.filter_bytes + self.cache_bytes + self.reserved_bytes
    }
}

/// The counters behind [`IndexStatistics`], shared by all runs of a set.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) lookups: Counter,
    pub(super) filter_rejects: Counter,
    pub(super) filter_false_positives: Counter,
    pub(super) block_reads: Counter,
    pub(super) unfiltered_misses: Counter,
    pub(super) filter_reads: Counter,
    pub(super) filter_read_bytes: Counter,
    pub(super) merge_block_reads: Counter,
    pub(super) runs_written: Counter,
    pub(super) bytes_written: Counter,
}

/// A number that several threads count up.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

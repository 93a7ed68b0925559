//! Look-ups by containers' metadata (§III-C, §III-D): what is in memory and what is read.
//!
//! Enters: a trace, its containers by MACS, the size and kind of the metadata cache, and whose lengths
//! are known. Leaves: for each version how many duplicates found their fingerprint in memory, and how
//! many reads of how many bytes the others cost.
//!
//! A duplicate is looked up: in the open container (which lies in memory), in the cache of metadata,
//! then in the index, which is in memory as in the paper (§IV-A) and names the container. Its metadata
//! is read from disk (in one read of its length if that is known, otherwise with the whole
//! container, §III-C) and goes to the cache under its length. *Hit ratio*: duplicates found
//! before the index, of all duplicates of the version (§IV-D). Known lengths: of the containers that the
//! last version and this one used or wrote (*last*), or of all (*all*, what a directory of containers
//! knows).

use std::collections::HashSet;

use anyhow::Result;
use engine::index::{MetadataCache, Replacement};

use super::container_bytes::Fingerprint;
use super::stored::Stored;
use super::trace::Trace;
use crate::interrupt;

/// Whose metadata lengths are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Those of the last version and this one.
    Last,
    /// All.
    All,
}

/// How look-ups are done.
#[derive(Debug, Clone, Copy)]
pub struct Lookups {
    /// The cache.
    pub cache_bytes: u64,
    /// What leaves it.
    pub replacement: Replacement,
    /// Known lengths.
    pub known: Known,
}

/// What a version's look-ups came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Chunks that were stored before.
    pub duplicates: u64,
    /// Those found in memory.
    pub hits: u64,
    /// Disk reads of metadata.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
}

impl Counts {
    /// The sum of several.
    pub fn sum<'a>(counts: impl IntoIterator<Item = &'a Self>) -> Self {
        let add = |sum: Self, one: &Self| Self {
            duplicates: sum.duplicates + one.duplicates,
            hits: sum.hits + one.hits,
            reads: sum.reads + one.reads,
            read_bytes: sum.read_bytes + one.read_bytes,
        };
        counts.into_iter().fold(Self::default(), add)
    }

    /// Hits, of 100 duplicates.
    pub fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.duplicates.max(1) as f64
    }
}

/// Goes through the first versions.
///
/// # Errors
/// When metadata can't be read, or lacks what the index says is there.
pub fn replay(
    trace: &Trace,
    stored: &Stored,
    versions: usize,
    lookups: Lookups,
) -> Result<Vec<Counts>> {
    let mut cache: MetadataCache<u32, HashSet<Fingerprint>> =
        MetadataCache::new(lookups.cache_bytes, lookups.replacement);
    let containers = stored.layout.containers();
    let mut last: HashSet<u32> = HashSet::new();
    let mut stored_chunks = 0u64;
    let mut all = Vec::new();
    for version in trace.versions.iter().take(versions) {
        interrupt::check()?;
        let mut current: HashSet<u32> = HashSet::new();
        let mut counts = Counts::default();
        for &number in &version.chunks {
            let container = stored.places[number as usize];
            let is_known = lookups.known == Known::All
                || last.contains(&container)
                || current.contains(&container);
            current.insert(container);
            if u64::from(number) == stored_chunks {
                stored_chunks += 1;
                continue;
            }
            counts.duplicates += 1;
            let wanted = &trace.chunks[number as usize].fingerprint;
            let is_open = containers[container as usize].sealed_at >= stored_chunks;
            if is_open
                || cache
                    .get(&container)
                    .is_some_and(|found| found.contains(wanted))
            {
                counts.hits += 1;
                continue;
            }
            let known = is_known.then(|| stored.metadata_bytes(container));
            let (fingerprints, length, read) = stored.read_metadata(container, known)?;
            anyhow::ensure!(
                fingerprints.contains(wanted),
                "container {container} lacks chunk {number}"
            );
            counts.reads += read.reads;
            counts.read_bytes += read.bytes;
            let fingerprints = fingerprints.into_iter().collect();
            cache.insert(container, fingerprints, u64::from(length));
        }
        last = current;
        all.push(counts);
    }
    Ok(all)
}

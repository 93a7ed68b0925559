//! Caches with which a stream is put together again from containers.
//!
//! Enters: the references of a stream in its order, each a chunk in a container, and the memory there
//! is, in containers. Leaves: the [`Read`]s of containers that a cache makes, each at the reference
//! that wanted it. Ids of containers may be of any kind.
//!
//! Invariant: at every reference its chunk is held, or its container is read there; what is held never
//! takes more than the memory. *Speed factor* (Lillibridge et al., FAST 2013) is MiB restored over
//! reads.
//!
//! | cache | what is kept | source |
//! |---|---|---|
//! | [`lru`] | whole containers, the least recently used one leaves | MACS §IV-C |
//! | [`opt`] | whole containers, the one that is used again last leaves | Belady; Fu et al., ATC 2014 |
//! | [`assembly`] | the next bytes of the stream, filled from each container that is read | Lillibridge et al., FAST 2013 |
//! | [`chunk_cache`] | half of it as `assembly`, half chunks that a window ahead wants | Cao et al., FAST 2018, with fixed sizes |
//! | [`look_ahead`] | chunks that a window ahead wants and nothing else | ours, for streams |
//! | `Plan` | one container: it is written wherever it belongs, in any order | ours, for files |

pub mod assembly;
pub mod chunk_cache;
pub mod look_ahead;
pub mod lru;
pub mod opt;
mod positions;

use std::collections::HashSet;
use std::hash::Hash;

/// A chunk of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference<C> {
    /// The container in which it lies.
    pub container: C,
    /// Which chunk of it: equal chunks of a container have equal numbers.
    pub chunk: u32,
    /// Its length.
    pub bytes: u32,
}

/// A container is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<C> {
    /// For the reference of that index.
    pub at: usize,
    /// Which one.
    pub container: C,
}

/// Memory for restoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// So many containers have room in it; at least one.
    pub containers: usize,
    /// Bytes of a container.
    pub container_bytes: u64,
}

impl Memory {
    /// What is left beside one container, which is being read.
    fn beside_one(self) -> u64 {
        (self.containers as u64).saturating_sub(1) * self.container_bytes
    }
}

/// The caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreCache {
    /// [`lru`].
    Lru,
    /// [`opt`].
    Opt,
    /// [`assembly`].
    Assembly,
    /// [`chunk_cache`].
    ChunkCache,
    /// [`look_ahead`].
    LookAhead,
    /// Every container once.
    Plan,
}

impl RestoreCache {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Lru,
        Self::Opt,
        Self::Assembly,
        Self::ChunkCache,
        Self::LookAhead,
        Self::Plan,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "LRU",
            Self::Opt => "OPT",
            Self::Assembly => "forward assembly",
            Self::ChunkCache => "chunk cache",
            Self::LookAhead => "ours, streams",
            Self::Plan => "ours, files",
        }
    }

    /// The reads that it makes for a stream.
    pub fn reads<C: Copy + Eq + Hash>(
        self,
        references: &[Reference<C>],
        memory: Memory,
    ) -> Vec<Read<C>> {
        match self {
            Self::Lru => lru::reads(references, memory),
            Self::Opt => opt::reads(references, memory),
            Self::Assembly => assembly::reads(references, memory),
            Self::ChunkCache => chunk_cache::reads(references, memory),
            Self::LookAhead => look_ahead::reads(references, memory, look_ahead::WINDOW_BYTES),
            Self::Plan => plan(references),
        }
    }
}

/// Every container once, at its first reference.
fn plan<C: Copy + Eq + Hash>(references: &[Reference<C>]) -> Vec<Read<C>> {
    let mut met = HashSet::new();
    let mut reads = Vec::new();
    for (at, reference) in references.iter().enumerate() {
        let container = reference.container;
        if met.insert(container) {
            reads.push(Read { at, container });
        }
    }
    reads
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Streams of chunks in few containers; a chunk of a container always has the same length.
    pub(crate) fn references() -> impl Strategy<Value = Vec<Reference<u16>>> {
        let one = (0..12u16, 0..6u32).prop_map(|(container, chunk)| Reference {
            container,
            chunk,
            bytes: 1 + (u32::from(container) * 7 + chunk * 3) % 10,
        });
        prop::collection::vec(one, 0..120)
    }

    pub(crate) fn memory() -> impl Strategy<Value = Memory> {
        (1..8usize, 20..60u64).prop_map(|(containers, container_bytes)| Memory {
            containers,
            container_bytes,
        })
    }

    proptest! {
        #[test]
        fn none_reads_less_than_the_plan_and_opt_no_more_than_lru(
            references in references(),
            memory in memory(),
        ) {
            let counts = RestoreCache::ALL.map(|cache| cache.reads(&references, memory).len());
            let [lru, opt, .., plan] = counts;
            prop_assert!(counts.iter().all(|count| *count >= plan));
            prop_assert!(opt <= lru);
        }

        #[test]
        fn with_enough_memory_each_container_is_read_once(references in references()) {
            let memory = Memory { containers: 60, container_bytes: 60 };
            for cache in RestoreCache::ALL {
                let reads = cache.reads(&references, memory);
                prop_assert_eq!(reads, plan(&references), "{}", cache.name());
            }
        }
    }
}

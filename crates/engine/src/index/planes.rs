//! Which planes of filters are in memory, for one run (docs/format/v1.md, §11; which of them stay
//! when memory is short: `residency.rs`).
//!
//! Enter: prefixes to judge, and what look-ups paid that a filter would have saved. Leaves: yes or
//! no, and the wish for a plane. **Rent or buy** (ski rental: Karlin, Manasse, Rudolph and Sleator,
//! 1988): as long as a partition's plane is not here, look-ups read its blocks; once those that held
//! nothing have cost as many bytes as the plane has, it is worth loading, so that filters never cost
//! more than twice what the best foresight would have paid, and a look-up never more than one block.
//!
//! The second plane is paid for in the same way, by what passed the first in error.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::block::BLOCK_BYTES;
use super::filter::{FilterShape, PLANES, passes};
use super::footer::Partition;

/// What a block searched in vain costs if it had to be read.
const READ_PRICE_BYTES: u32 = BLOCK_BYTES as u32;

/// What it costs if it was cached: time, of which a read would have taken about 64 times as much.
const SEARCH_PRICE_BYTES: u32 = READ_PRICE_BYTES / 64;

/// A plane as it is in memory.
#[derive(Debug, Default)]
enum Plane {
    #[default]
    Absent,
    Here(Box<[u8]>),
    /// It could not be used, which was reported: no need to read it again.
    Damaged,
}

/// The planes of one partition.
#[derive(Debug, Default)]
struct PartitionPlanes {
    planes: [Plane; PLANES],
    paid_bytes: AtomicU32,
}

/// What the filter of a partition says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The prefix is not there.
    Absent,
    /// It may be there, says a plane.
    Maybe,
    /// No plane is here to ask.
    Unknown,
}

/// The planes of one run that are in memory. Safe from several threads.
#[derive(Debug)]
pub(super) struct RunPlanes {
    partitions: RwLock<Vec<PartitionPlanes>>,
    /// Bytes of all planes of the set that are in memory.
    used_bytes: Arc<AtomicUsize>,
    /// Those of this run, plane by plane.
    own_bytes: [AtomicUsize; PLANES],
}

impl RunPlanes {
    /// None of the planes of `partitions` partitions; `used_bytes` counts those of all runs.
    pub(super) fn new(partitions: usize, used_bytes: Arc<AtomicUsize>) -> Self {
        Self {
            partitions: RwLock::new((0..partitions).map(|_| Default::default()).collect()),
            used_bytes,
            own_bytes: Default::default(),
        }
    }

    /// May `prefix` be in this partition?
    pub(super) fn ask(&self, partition: usize, shape: FilterShape, prefix: u64) -> Verdict {
        let mut verdict = Verdict::Unknown;
        for (number, plane) in self.read()[partition].planes.iter().enumerate() {
            if let Plane::Here(bytes) = plane {
                if !passes(shape, number, bytes, prefix) {
                    return Verdict::Absent;
                }
                verdict = Verdict::Maybe;
            }
        }
        verdict
    }

    /// Notes that a block of the partition was searched in vain. Returns the plane that is paid for
    /// now, if one is missing.
    pub(super) fn pay(&self, partition: usize, plane_bytes: u64, was_read: bool) -> Option<usize> {
        let partitions = self.read();
        let PartitionPlanes { planes, paid_bytes } = &partitions[partition];
        let wanted = planes
            .iter()
            .position(|plane| matches!(plane, Plane::Absent))?;
        let price = if was_read {
            READ_PRICE_BYTES
        } else {
            SEARCH_PRICE_BYTES
        };
        let paid = paid_bytes.fetch_add(price, Ordering::Relaxed) + price;
        if u64::from(paid) < plane_bytes {
            return None;
        }
        paid_bytes.store(0, Ordering::Relaxed);
        Some(wanted)
    }

    /// Takes a plane in; nothing when it is damaged.
    pub(super) fn set(&self, partition: usize, plane: usize, bytes: Option<Vec<u8>>) {
        let mut partitions = self.write();
        let place = &mut partitions[partition].planes[plane];
        if let Plane::Here(_) = place {
            return;
        }
        *place = match bytes {
            Some(bytes) => {
                self.used_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
                self.own_bytes[plane].fetch_add(bytes.len(), Ordering::Relaxed);
                Plane::Here(bytes.into_boxed_slice())
            }
            None => Plane::Damaged,
        };
    }

    /// Drops planes of that number until `bytes` are free, or there are no more of them.
    pub(super) fn drop_some(&self, plane: usize, bytes: usize) {
        let mut dropped = 0;
        // From the end, as prefixes are all alike: those at the front stay.
        for partition in self.write().iter_mut().rev() {
            if dropped >= bytes {
                break;
            }
            if let Plane::Here(gone) = &partition.planes[plane] {
                dropped += gone.len();
                partition.planes[plane] = Plane::Absent;
            }
        }
        self.used_bytes.fetch_sub(dropped, Ordering::Relaxed);
        self.own_bytes[plane].fetch_sub(dropped, Ordering::Relaxed);
    }

    /// Bytes of the planes of that number that are here.
    pub(super) fn own_bytes(&self, plane: usize) -> usize {
        self.own_bytes[plane].load(Ordering::Relaxed)
    }

    /// Memory that it takes beside the planes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.read().capacity() * size_of::<PartitionPlanes>()
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<PartitionPlanes>> {
        self.partitions
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<PartitionPlanes>> {
        self.partitions
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunPlanes {
    fn drop(&mut self) {
        let own: usize = (0..PLANES).map(|plane| self.own_bytes(plane)).sum();
        self.used_bytes.fetch_sub(own, Ordering::Relaxed);
    }
}

/// What a plane of `partition` takes in memory, and costs to read.
pub(super) fn plane_bytes(partition: &Partition) -> usize {
    partition.shape.plane_bytes() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::filter::FilterBuilder;

    #[test]
    fn planes_are_paid_for_then_asked_then_dropped() {
        let keys: Vec<u64> = (0..30_000).map(|n: u64| n << 40).collect();
        let (shape, planes) = FilterBuilder::default().build(&keys);
        let bytes = planes[0].len();
        let used = Arc::new(AtomicUsize::new(0));
        let run = RunPlanes::new(2, Arc::clone(&used));
        let strangers = || (0..4096u64).map(|n| n << 40 | 1);
        let passing = |verdict| {
            strangers()
                .filter(|&prefix| run.ask(1, shape, prefix) == verdict)
                .count()
        };
        assert_eq!(passing(Verdict::Unknown), 4096);
        // A plane of 16.5 KB costs two blocks read in vain; then the next one is paid for.
        let mut bought = Vec::new();
        for read in 0..6 {
            if let Some(plane) = run.pay(1, bytes as u64, true) {
                bought.push((read, plane));
                run.set(1, plane, Some(planes[plane].clone()));
                assert!(
                    keys.iter()
                        .all(|&key| run.ask(1, shape, key) == Verdict::Maybe)
                );
            }
        }
        assert_eq!(bought, [(1, 0), (3, 1)]);
        assert!((4..40).contains(&passing(Verdict::Maybe)));
        assert_eq!(run.ask(0, shape, 1), Verdict::Unknown);
        assert_eq!(used.load(Ordering::Relaxed), 2 * bytes);
        run.drop_some(1, 1);
        assert!((150..350).contains(&passing(Verdict::Maybe)));
        assert_eq!((run.own_bytes(0), run.own_bytes(1)), (bytes, 0));
        assert_eq!(run.pay(1, bytes as u64, false), None, "a search is cheap");
        run.set(0, 0, None);
        let next = (0..10).find_map(|_| run.pay(0, bytes as u64, true));
        assert_eq!(next, Some(1), "the first plane is damaged");
        drop(run);
        assert_eq!(used.load(Ordering::Relaxed), 0);
    }
}

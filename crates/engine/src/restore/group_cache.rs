//! Decompressed groups used lately, shared by threads.
//!
//! A group is opened by the first thread that asks for it; others that ask meanwhile wait for that one.
//! Nothing is read, unsealed or decompressed under the lock. Of a group only the front may be here; who
//! needs more than that opens it again. Bounded in bytes, but for one group; first in, first out with a
//! second chance.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::container::ChunkPlaces;
use crate::object::ObjectId;

/// An object, and the number of a group in it.
type Key = (ObjectId, u32);

/// A group in memory. Its seal was right; its chunks are not compared with their fingerprints.
#[derive(Debug)]
pub(super) struct CachedGroup {
    /// Its plaintext, or the front of it.
    pub plain: Vec<u8>,
    pub places: ChunkPlaces,
}

impl CachedGroup {
    fn memory_bytes(&self) -> usize {
        self.plain.capacity() + self.places.memory_bytes()
    }
}

/// The groups.
#[derive(Debug)]
pub(super) struct GroupCache {
    state: Mutex<State>,
    /// A group was opened, or could not be.
    opened: Condvar,
}

#[derive(Debug)]
struct State {
    limit_bytes: usize,
    used_bytes: usize,
    groups: HashMap<Key, Known>,
    /// Those that are here, the oldest first.
    queue: VecDeque<Key>,
}

#[derive(Debug)]
enum Known {
    /// A thread is at it.
    Opening,
    Here {
        group: Arc<CachedGroup>,
        used_again: bool,
    },
}

/// A group that this thread opens: should it fail, others may try.
struct Opening<'a> {
    cache: &'a GroupCache,
    key: Key,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.lock();
        if let Some(Known::Opening) = state.groups.get(&self.key) {
            state.groups.remove(&self.key);
        }
        drop(state);
        self.cache.opened.notify_all();
    }
}

impl GroupCache {
    /// An empty cache of at most so many bytes.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            state: Mutex::new(State {
                limit_bytes,
                used_bytes: 0,
                groups: HashMap::new(),
                queue: VecDeque::new(),
            }),
            opened: Condvar::new(),
        }
    }

    /// The group, or as much of it as `is_enough`, which `open` opens if that is not here and nobody is at
    /// it. `open` is told whether too little of it was here: then it opens all.
    pub fn get<E>(
        &self,
        key: Key,
        is_enough: impl Fn(&CachedGroup) -> bool,
        open: impl FnOnce(bool) -> Result<CachedGroup, E>,
    ) -> Result<Arc<CachedGroup>, E> {
        let mut state = self.lock();
        let was_short = loop {
            match state.groups.get_mut(&key) {
                Some(Known::Here { group, .. }) if !is_enough(group) => break true,
                Some(Known::Here { group, used_again }) => {
                    *used_again = true;
                    return Ok(Arc::clone(group));
                }
                Some(Known::Opening) => {
                    let waited = self.opened.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                None => break false,
            }
        };
        state.forget(&key);
        state.groups.insert(key, Known::Opening);
        drop(state);
        let _opening = Opening { cache: self, key };
        let group = Arc::new(open(was_short)?);
        self.lock().insert(key, Arc::clone(&group));
        Ok(group)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Drops a group that is here.
    fn forget(&mut self, key: &Key) {
        if let Some(Known::Here { group, .. }) = self.groups.remove(key) {
            self.used_bytes -= group.memory_bytes();
            self.queue.retain(|queued| queued != key);
        }
    }

    fn insert(&mut self, key: Key, group: Arc<CachedGroup>) {
        self.used_bytes += group.memory_bytes();
        self.queue.push_back(key);
        let used_again = false;
        self.groups.insert(key, Known::Here { group, used_again });
        while self.used_bytes > self.limit_bytes && self.queue.len() > 1 {
            let Some(oldest) = self.queue.pop_front() else {
                break;
            };
            match self.groups.get_mut(&oldest) {
                Some(Known::Here { used_again, .. }) if *used_again => {
                    *used_again = false;
                    self.queue.push_back(oldest);
                }
                Some(Known::Here { group, .. }) => {
                    self.used_bytes -= group.memory_bytes();
                    self.groups.remove(&oldest);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::{Compression, ContainerBuilder, ContainerKind, Section};
    use crate::fingerprint::Fingerprint;
    use crate::format::Vault;
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use zeroize::Zeroizing;

    fn key(group: u32) -> Key {
        (ObjectId([1; 16]), group)
    }

    fn section() -> Section {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
        let vault = Vault::new(ObjectId([1; 16]), secrets, false);
        let mut builder = ContainerBuilder::new(&vault, ContainerKind::Data, 1 << 20);
        let chunk = (Fingerprint([0; 32]), 1000);
        builder.push_group(&[7; 1000], Compression::Stored, &[chunk]);
        Section::clone(&builder.finish(true).section)
    }

    fn group(section: &Section) -> CachedGroup {
        CachedGroup {
            plain: vec![7; 1000],
            places: section.places_in(0),
        }
    }

    #[test]
    fn a_group_is_opened_once_by_threads_that_ask_together() {
        let section = section();
        let cache = GroupCache::new(100_000);
        let opened = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for number in 0..20 {
                        let open = |_| {
                            opened.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                            Ok::<_, Infallible>(group(&section))
                        };
                        assert_eq!(
                            cache.get(key(number), |_| true, open).unwrap().plain.len(),
                            1000
                        );
                    }
                });
            }
        });
        assert_eq!(opened.into_inner(), 20);
    }

    #[test]
    fn what_is_used_again_stays_and_the_limit_holds() {
        let section = section();
        let cache = GroupCache::new(5000);
        let opened = AtomicUsize::new(0);
        let get = |number| {
            let open = |_| {
                opened.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(group(&section))
            };
            cache.get(key(number), |_| true, open).unwrap();
        };
        for number in 0..50 {
            get(number);
            get(1000);
        }
        assert_eq!(opened.load(Ordering::Relaxed), 51);
        let state = cache.lock();
        assert!(state.used_bytes <= 5000, "{} bytes", state.used_bytes);
        assert_eq!(state.groups.len(), state.queue.len());
    }

    #[test]
    fn a_front_serves_until_more_is_needed() {
        let section = section();
        let cache = GroupCache::new(5000);
        let get = |needed_bytes, opened_bytes, short| {
            let open = |was_short| {
                assert_eq!(Some(was_short), short, "{needed_bytes}");
                let mut group = group(&section);
                group.plain = vec![7; opened_bytes];
                Ok::<_, Infallible>(group)
            };
            let is_enough = |group: &CachedGroup| needed_bytes <= group.plain.len();
            let group = cache.get(key(1), is_enough, open).unwrap();
            assert!(group.plain.len() >= needed_bytes);
            let state = cache.lock();
            assert_eq!(state.used_bytes, group.memory_bytes());
            assert_eq!((state.groups.len(), state.queue.len()), (1, 1));
        };
        get(100, 300, Some(false));
        get(300, 0, None);
        get(301, 1000, Some(true));
        get(1000, 0, None);
        get(1, 0, None);
    }

    #[test]
    fn others_may_try_after_a_failure() {
        let section = section();
        let cache = GroupCache::new(5000);
        assert_eq!(
            cache.get(key(1), |_| true, |_| Err("not there")).err(),
            Some("not there")
        );
        let panics = || {
            cache
                .get::<()>(key(1), |_| true, |_| panic!("meant to happen"))
                .is_ok()
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let outcome = cache.get(key(1), |_| true, |_| Ok::<_, Infallible>(group(&section)));
        assert!(outcome.is_ok());
    }
}

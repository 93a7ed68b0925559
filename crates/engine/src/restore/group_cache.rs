//! Decompressed groups used lately, shared by threads.
//!
//! A group is opened by the first thread that asks for it; others that ask meanwhile wait for that one.
//! Nothing is read, unsealed or decompressed under the lock. Bounded in bytes, but for one group;
//! first in, first out with a second chance.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::container::{ChunkPlaces, ContainerId};

/// A group of a container.
type Key = (ContainerId, usize);

/// A group in memory. Its seal was right; its chunks are not compared with their fingerprints.
#[derive(Debug)]
pub(super) struct CachedGroup {
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

    /// The group, which `open` opens if it is not here and nobody is at it.
    pub fn get<E>(
        &self,
        key: Key,
        open: impl FnOnce() -> Result<CachedGroup, E>,
    ) -> Result<Arc<CachedGroup>, E> {
        let mut state = self.lock();
        loop {
            match state.groups.get_mut(&key) {
                Some(Known::Here { group, used_again }) => {
                    *used_again = true;
                    return Ok(Arc::clone(group));
                }
                Some(Known::Opening) => {
                    let waited = self.opened.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        state.groups.insert(key, Known::Opening);
        drop(state);
        let _opening = Opening { cache: self, key };
        let group = Arc::new(open()?);
        self.lock().insert(key, Arc::clone(&group));
        Ok(group)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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
    use crate::object::ObjectId;
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use zeroize::Zeroizing;

    fn key(group: usize) -> Key {
        (ContainerId(ObjectId([1; 16])), group)
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
                        let open = || {
                            opened.fetch_add(1, Ordering::Relaxed);
                            thread::yield_now();
                            Ok::<_, Infallible>(group(&section))
                        };
                        assert_eq!(cache.get(key(number), open).unwrap().plain.len(), 1000);
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
            let open = || {
                opened.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(group(&section))
            };
            cache.get(key(number), open).unwrap();
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
    fn others_may_try_after_a_failure() {
        let section = section();
        let cache = GroupCache::new(5000);
        assert_eq!(
            cache.get(key(1), || Err("not there")).err(),
            Some("not there")
        );
        let panics = || {
            cache
                .get::<()>(key(1), || panic!("meant to happen"))
                .is_ok()
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let outcome = cache.get(key(1), || Ok::<_, Infallible>(group(&section)));
        assert!(outcome.is_ok());
    }
}

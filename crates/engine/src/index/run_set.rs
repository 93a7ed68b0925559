//! All runs of the index: look-ups over them, new runs, merges, what is damaged.
//!
//! Enter: prefixes, and entries of chunks stored anew. Leave: candidates; `index/` objects.
//!
//! **How a large index is cut.** Every run stands for itself: it has all entries of the
//! containers that it names, over the whole range of prefixes. Runs are merged so that each is at
//! least twice as large as all smaller ones together (`merge.rs`): 100 M chunks (0.8 TB) are three
//! runs on average. A run holds at most [`RUN_ENTRIES_MAX`](super::RUN_ENTRIES_MAX) entries; larger
//! indexes are several full ones, which are not merged again, and the smaller ones beside them. The
//! other way, runs cut by ranges of prefixes, would need fewer filters a look-up, but prefixes are
//! hashes: every range would name every container, so that tables would grow with the square of the
//! repository; and a range lost would leave containers half covered.
//!
//! **Invariants.** A container that any run names is *covered*: all its chunks are in that run.
//! A merge stores the new run durably before it deletes the old ones; a crash between leaves
//! entries twice, which harms nobody. Other clients may merge at any time: a run that is gone
//! makes the set list `index/` again, once a look-up.
//!
//! **Damage** never fails a look-up: the piece is passed over, the run no longer covers its
//! containers, it is left out of merges, and [`RunSet::damaged`] names it. The index can be
//! rebuilt from the containers.
//!
//! **Memory**: `memory_bytes` bounds all of it. A run's footer takes 8 B a block (1,700 entries or
//! more), 24 B a container and 100 B a partition (2^18 entries): 5 MiB for 100 M entries in 195,000
//! containers. Planes of filters take 0.545 B a key each where all of them are in memory. Both, and
//! what is reserved, leave the rest to blocks (`residency.rs`). A merge of 100 M entries reserves
//! 26 MiB for as long as it goes on, so that a part of the filters has to leave. If footers alone
//! exceed the limit, a 32nd of it is kept for blocks all the same.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::container::{ChunkAddress, ContainerId};
use crate::format::{ObjectError, Vault};
use crate::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore, StoreError};

use super::cache::PieceCache;
use super::run_reader::{RunContext, RunReader, is_missing};
use super::statistics::{Counters, IndexStatistics};

/// Least memory that a set works with.
pub const MEMORY_BYTES_MIN: usize = 4 << 20;

/// How often `index/` is listed anew because runs vanish while they are opened.
const LISTINGS_MAX: usize = 4;

/// All runs of a repository's index. Safe from several threads: look-ups go on while a run is
/// written or merged.
pub struct RunSet {
    context: RunContext,
    vault: Arc<Vault>,
    memory_bytes: usize,
    runs: RwLock<Runs>,
    damaged: Mutex<Vec<(ObjectKey, Arc<ObjectError>)>>,
    /// Runs of others that were found after it was opened. They are looked up in, and merged by who opens later: who
    /// has opened this one may not know the containers that they name, and a merge drops what is not known to be
    /// there.
    late: Mutex<HashSet<ObjectKey>>,
    is_opened: AtomicBool,
    /// Held while the list of runs changes; the number that the next run gets in the cache.
    next_number: Mutex<u32>,
    /// Held by a merge from its beginning to its end.
    merging: Mutex<()>,
    /// Held while planes come and go.
    loading: Mutex<()>,
    /// Bytes that planes and blocks leave to others.
    reserved: AtomicUsize,
    /// The most that was counted at once.
    peak_bytes: AtomicUsize,
}

type Runs = Arc<Vec<Arc<RunReader>>>;

impl std::fmt::Debug for RunSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunSet")
            .field("runs", &self.runs())
            .finish_non_exhaustive()
    }
}

impl RunSet {
    /// Opens all runs in the store; those that do not open are [`RunSet::damaged`].
    /// `memory_bytes`, at least [`MEMORY_BYTES_MIN`], bounds what the index takes (file top).
    ///
    /// # Errors
    /// When the store can't be listed.
    pub fn open(
        store: Arc<dyn ObjectStore>,
        vault: Arc<Vault>,
        memory_bytes: usize,
    ) -> Result<Self, ObjectError> {
        let memory_bytes = memory_bytes.max(MEMORY_BYTES_MIN);
        let set = Self {
            context: RunContext {
                store,
                cache: Arc::new(PieceCache::new(memory_bytes)),
                counters: Arc::new(Counters::default()),
                planes_bytes: Arc::default(),
            },
            vault,
            memory_bytes,
            runs: RwLock::default(),
            damaged: Mutex::default(),
            late: Mutex::default(),
            is_opened: AtomicBool::new(false),
            next_number: Mutex::default(),
            merging: Mutex::default(),
            loading: Mutex::default(),
            reserved: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
        };
        set.refresh(&mut set.changing())?;
        set.is_opened.store(true, Ordering::Relaxed);
        Ok(set)
    }

    /// Appends the addresses of chunks whose fingerprint begins with `prefix`, in no order; an
    /// address may come twice while runs wait for a merge. Blocks on I/O unless cached; never
    /// fails (file top).
    pub fn candidates(&self, prefix: u64, out: &mut Vec<ChunkAddress>) {
        self.counters().lookups.add(1);
        let before = out.len();
        for _ in 0..LISTINGS_MAX {
            let Some((key, error)) = self.search(prefix, out, true) else {
                return;
            };
            out.truncate(before);
            self.after_vanishing(key, error);
        }
        self.search(prefix, out, false);
    }

    /// Reads every run whole, past the cache; what is damaged stands in [`RunSet::damaged`]
    /// then. A run that is gone meanwhile was merged by another client.
    pub fn verify(&self) {
        for run in self.runs().iter() {
            if let Err(error) = run.verify()
                && !is_missing(&error)
            {
                run.note_damage(&error);
                self.report(run.key(), error);
            }
        }
    }

    /// Are all chunks of `container` in a run? No I/O.
    #[must_use]
    pub fn covered(&self, container: ContainerId) -> bool {
        self.runs().iter().any(|run| run.covers(container))
    }

    /// How long the sealed metadata of `container` is, if a run knows. No I/O.
    #[must_use]
    pub fn metadata_bytes(&self, container: ContainerId) -> Option<u32> {
        let runs = self.runs();
        let mut lengths = runs
            .iter()
            .filter_map(|run| run.footer().metadata_bytes_of(container));
        lengths.next()
    }

    /// Containers that have entries, with the length of their metadata (0: unknown), at most so many:
    /// those of the highest generations, the newest first, and by id where they came together.
    #[must_use]
    pub fn newest_containers(&self, count_max: usize) -> Vec<(ContainerId, u32)> {
        let runs = self.runs();
        let mut newest = BinaryHeap::new();
        for run in runs.iter() {
            let footer = run.footer();
            for (number, &container) in footer.containers.iter().enumerate() {
                let generation = footer.generations.get(number).copied().unwrap_or(0);
                let bytes = footer.metadata_bytes.get(number).copied().unwrap_or(0);
                newest.push(Reverse((generation, Reverse(container), bytes)));
                if newest.len() > count_max {
                    newest.pop();
                }
            }
        }
        let ascending = newest.into_sorted_vec();
        let named = |Reverse((_, Reverse(container), bytes))| (container, bytes);
        let mut newest: Vec<_> = ascending.into_iter().map(named).collect();
        newest.dedup_by_key(|(container, _)| *container);
        newest
    }

    /// The generation of `container`, 0 when no run knows: of two containers that have the same chunk
    /// the one with the higher is the newer. No I/O.
    #[must_use]
    pub fn generation(&self, container: ContainerId) -> u32 {
        let runs = self.runs();
        let generations = runs.iter().map(|run| run.footer().generation_of(container));
        generations.max().unwrap_or(0)
    }

    /// Says how much memory belongs to others that is counted as the index's: planes and blocks
    /// keep away from it.
    pub fn set_reserved(&self, bytes: usize, before: usize) {
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        self.reserved.fetch_sub(before, Ordering::Relaxed);
        self.fit();
    }

    /// The objects in `index/` that could not be used, or only in part, and why: the first
    /// failure of each.
    #[must_use]
    pub fn damaged(&self) -> Vec<(ObjectKey, Arc<ObjectError>)> {
        self.lock_damaged().clone()
    }

    /// What the index holds, takes and did.
    #[must_use]
    pub fn statistics(&self) -> IndexStatistics {
        let runs = self.runs();
        let counters = &self.context.counters;
        IndexStatistics {
            memory_bytes_most: self.note_peak() as u64,
            runs: runs.len() as u64,
            entries: runs.iter().map(|run| run.footer().entries).sum(),
            store_bytes: runs.iter().map(|run| run.object_bytes()).sum(),
            footer_bytes: self.footer_bytes() as u64,
            filter_bytes: self.planes_bytes() as u64,
            reserved_bytes: self.reserved.load(Ordering::Relaxed) as u64,
            cache_bytes: self.context.cache.used_bytes() as u64,
            lookups: counters.lookups.get(),
            filter_rejects: counters.filter_rejects.get(),
            filter_false_positives: counters.filter_false_positives.get(),
            block_reads: counters.block_reads.get(),
            unfiltered_misses: counters.unfiltered_misses.get(),
            filter_reads: counters.filter_reads.get(),
            filter_read_bytes: counters.filter_read_bytes.get(),
            merge_block_reads: counters.merge_block_reads.get(),
            runs_written: counters.runs_written.get(),
            bytes_written: counters.bytes_written.get(),
        }
    }

    /// Looks into all runs. A run that is gone ends it, if `may_refresh`; otherwise, like other
    /// failures, it is reported.
    fn search(
        &self,
        prefix: u64,
        out: &mut Vec<ChunkAddress>,
        may_refresh: bool,
    ) -> Option<(ObjectKey, ObjectError)> {
        let mut wish = None;
        for run in self.runs().iter() {
            match run.candidates(prefix, out, &mut wish) {
                Ok(()) => {}
                Err(error) if may_refresh && is_missing(&error) => return Some((run.key(), error)),
                Err(error) => self.report(run.key(), error),
            }
            if let Some(wish) = wish.take() {
                self.load_plane(run, wish);
            }
        }
        None
    }

    /// A run is gone. Most likely another client merged it: look what there is now.
    fn after_vanishing(&self, key: ObjectKey, error: ObjectError) {
        let mut next_number = self.changing();
        let is_open = || self.runs().iter().any(|run| run.key() == key);
        if !is_open() {
            return; // Another thread has already looked.
        }
        let refreshed = self.refresh(&mut next_number);
        if refreshed.is_err() || is_open() {
            self.report(key, error);
            self.replace(|runs| runs.retain(|run| run.key() != key));
        }
    }

    fn lock_late(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run was found after the set was opened.
    pub(super) fn is_late(&self, run: ObjectKey) -> bool {
        self.lock_late().contains(&run)
    }

    /// Brings the set to what the store lists now; again if runs vanish meanwhile.
    pub(super) fn refresh(&self, next_number: &mut u32) -> Result<(), ObjectError> {
        for listing in 1..=LISTINGS_MAX {
            let mut listed = BTreeSet::new();
            self.store().list(ObjectKind::Index, &mut |id, _| {
                listed.insert(id);
            })?;
            let (kept, gone): (Vec<_>, Vec<_>) = self
                .runs()
                .iter()
                .cloned()
                .partition(|run| listed.contains(&run.key().id));
            for key in kept.iter().map(|run| run.key()) {
                listed.remove(&key.id);
            }
            for (key, _) in self.lock_damaged().iter() {
                listed.remove(&key.id);
            }
            let mut opened = Vec::new();
            let mut is_changing = false;
            for id in listed {
                match self.open_run(next_number, id) {
                    Ok(run) => {
                        if self.is_opened.load(Ordering::Relaxed) {
                            self.lock_late().insert(run.key());
                        }
                        opened.push(Arc::new(run));
                    }
                    Err(error) if is_missing(&error) && listing < LISTINGS_MAX => {
                        is_changing = true;
                    }
                    Err(error) => self.report(ObjectKey::new(ObjectKind::Index, id), error),
                }
            }
            let is_replaced = !opened.is_empty();
            self.replace(|runs| *runs = kept.into_iter().chain(opened).collect());
            if !is_changing {
                if !is_replaced {
                    self.report_gone(&gone);
                }
                break;
            }
        }
        Ok(())
    }

    /// Names the runs that went without another one taking over what they covered.
    fn report_gone(&self, gone: &[Arc<RunReader>]) {
        for run in gone {
            if !run
                .footer()
                .containers
                .iter()
                .all(|&container| self.covered(container))
            {
                let location = self.store().location();
                let error = StoreError::Missing {
                    key: run.key(),
                    location,
                };
                self.report(run.key(), error.into());
            }
        }
    }

    pub(super) fn open_run(
        &self,
        next_number: &mut u32,
        id: ObjectId,
    ) -> Result<RunReader, ObjectError> {
        let number = *next_number;
        *next_number += 1;
        RunReader::open(&self.context, &self.vault, id, number)
    }

    /// Changes the list of runs, while [`RunSet::changing`] is held.
    pub(super) fn replace(&self, change: impl FnOnce(&mut Vec<Arc<RunReader>>)) {
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = runs.to_vec();
        change(&mut changed);
        *runs = Arc::new(changed);
        drop(runs);
        self.fit();
    }

    /// Notes the first failure of an object.
    pub(super) fn report(&self, key: ObjectKey, error: ObjectError) {
        let mut damaged = self.lock_damaged();
        if damaged.iter().all(|(known, _)| *known != key) {
            damaged.push((key, Arc::new(error)));
        }
    }

    pub(super) fn runs(&self) -> Runs {
        Arc::clone(&self.runs.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The right to change the list of runs, and the number of the next one.
    pub(super) fn changing(&self) -> MutexGuard<'_, u32> {
        self.next_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn store(&self) -> &dyn ObjectStore {
        &*self.context.store
    }

    pub(super) fn vault(&self) -> &Vault {
        &self.vault
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.context.counters
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub(super) fn merging(&self) -> &Mutex<()> {
        &self.merging
    }

    pub(super) fn loading(&self) -> &Mutex<()> {
        &self.loading
    }

    pub(super) fn reserved(&self) -> &AtomicUsize {
        &self.reserved
    }

    pub(super) fn blocks(&self) -> &PieceCache {
        &self.context.cache
    }

    pub(super) fn planes_bytes(&self) -> usize {
        self.context.planes_bytes.load(Ordering::Relaxed)
    }

    /// The most memory that was counted at once, now included.
    pub(super) fn note_peak(&self) -> usize {
        let now = self.footer_bytes()
            + self.planes_bytes()
            + self.blocks().used_bytes()
            + self.reserved.load(Ordering::Relaxed);
        self.peak_bytes.fetch_max(now, Ordering::Relaxed).max(now)
    }

    pub(super) fn footer_bytes(&self) -> usize {
        self.runs().iter().map(|run| run.memory_bytes()).sum()
    }

    fn lock_damaged(&self) -> MutexGuard<'_, Vec<(ObjectKey, Arc<ObjectError>)>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

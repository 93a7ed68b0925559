//! All runs together: against a model, merges, crashes, damage, other clients; memory:
//! `residency_tests.rs`.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::block::BLOCK_BYTES;
use super::footer::{Footer, RUN_CONTAINERS_MAX};
use super::run_reader::RunReader;
use super::test_support::{
    FailingStore, TestRun, candidates, container, entry, index_keys, model_of, open_set, synthetic,
    vault, vault_of,
};
use super::{IndexEntry, MEMORY_BYTES_MIN, RunSet};
use crate::container::ContainerId;
use crate::format::ObjectError;
use crate::object::{MemoryStore, ObjectStore};

pub(super) const MEMORY_BYTES: usize = 32 << 20;

pub(super) fn all_live(_: ContainerId) -> bool {
    true
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

fn assert_sizes_are_geometric(set: &RunSet) {
    let size = |run: &Arc<RunReader>| {
        let footer = run.footer();
        footer.entries + (footer.containers.len() + footer.covered.len()) as u64
    };
    let mut sizes: Vec<_> = set.runs().iter().map(size).collect();
    sizes.sort_unstable();
    let mut smaller = 0;
    for size in sizes {
        assert!(size >= 2 * smaller, "{size} beside {smaller}");
        smaller += size;
    }
}

pub(super) fn new_store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new())
}

/// `runs` runs of `count` entries each, in containers 1000·k and following.
pub(super) fn fill(set: &RunSet, runs: u64, count: usize) -> Vec<IndexEntry> {
    let mut all = Vec::new();
    for number in 0..runs {
        let mut entries = synthetic(100 + number, number * 1000, count, 50);
        set.write_run(&mut entries, &[]).unwrap();
        all.extend(entries);
    }
    all
}

pub(super) fn assert_is_model(set: &RunSet, entries: &[IndexEntry], step: usize) {
    for (&prefix, expected) in model_of(entries).iter().step_by(step) {
        assert_eq!(candidates(set, prefix), *expected, "prefix {prefix:x}");
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Write these (prefix, container, slot); containers below 4 without entries are covered.
    Write(Vec<(u64, u64, u16)>),
    /// By size, or all into one.
    Merge(bool),
    /// Containers of this remainder modulo 5 die.
    Die(u64),
    Reopen,
}

fn step_strategy() -> impl Strategy<Value = Step> {
    let prefix = prop_oneof![0..30u64, Just(u64::MAX), any::<u64>()];
    let written = prop::collection::vec((prefix, 0..40u64, 0..4u16), 0..80);
    prop_oneof![
        4 => written.prop_map(Step::Write),
        2 => any::<bool>().prop_map(Step::Merge),
        1 => (0..5u64).prop_map(Step::Die),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_set_is_a_map(steps in prop::collection::vec(step_strategy(), 1..40)) {
        let store = new_store();
        let mut set = open_set(&store, MEMORY_BYTES);
        let mut model: HashSet<IndexEntry> = HashSet::new();
        let mut covered: BTreeSet<ContainerId> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Write(written) => {
                    let mut entries: Vec<_> =
                        written.iter().map(|&(prefix, number, slot)| entry(prefix, number, slot)).collect();
                    let empty: Vec<_> = (0..4).map(container).collect();
                    set.write_run(&mut entries, &empty).unwrap();
                    covered.extend(empty);
                    covered.extend(entries.iter().map(|entry| entry.address.container));
                    model.extend(entries);
                }
                Step::Merge(false) => {
                    set.merge(&all_live, &never()).unwrap();
                    assert_sizes_are_geometric(&set);
                }
                Step::Merge(true) => {
                    set.merge_all(&all_live).unwrap();
                    prop_assert!(set.statistics().runs <= 1);
                    prop_assert_eq!(set.statistics().entries as usize, model.len());
                }
                Step::Die(remainder) => {
                    let dead: HashSet<_> = (0..40).filter(|n| n % 5 == remainder).map(container).collect();
                    set.drop_dead(&|container| !dead.contains(&container)).unwrap();
                    model.retain(|entry| !dead.contains(&entry.address.container));
                    covered.retain(|container| !dead.contains(container));
                }
                Step::Reopen => set = open_set(&store, MEMORY_BYTES),
            }
            let by_prefix = model_of(&model);
            for prefix in (0..31).chain(by_prefix.keys().copied().step_by(3)).chain([u64::MAX]) {
                let expected = by_prefix.get(&prefix).cloned().unwrap_or_default();
                prop_assert_eq!(candidates(&set, prefix), expected);
            }
            for container in (0..41).map(container) {
                prop_assert_eq!(set.covered(container), covered.contains(&container));
            }
            prop_assert!(set.damaged().is_empty());
        }
    }
}

#[test]
fn covered_containers_find_room() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES_MIN);
    let covered: Vec<_> = (0..RUN_CONTAINERS_MAX as u64 + 10).map(container).collect();
    set.write_run(&mut [entry(1, 0, 0), entry(2, 3, 0)], &covered)
        .unwrap();
    assert_eq!(set.statistics().runs, 2);
    assert!(
        covered
            .iter()
            .step_by(1013)
            .all(|&container| set.covered(container))
    );
    assert!(set.covered(covered[covered.len() - 1]) && !set.covered(container(u64::MAX)));
    set.write_run(&mut [], &[]).unwrap();
    assert_eq!(
        index_keys(&store).len(),
        2,
        "nothing to say, nothing written"
    );
}

#[test]
fn merges_leave_large_runs_alone_and_keep_everything() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let mut large = synthetic(1, 5_000_000, 100_000, 500);
    set.write_run(&mut large, &[]).unwrap();
    let large_key = set.runs()[0].key();
    let mut all = fill(&set, 20, 500);
    // The same entries again, as after a crash between a merge and its deletions.
    set.write_run(&mut all[..2000], &[]).unwrap();
    assert!(set.needs_merge());
    let summary = set.merge(&all_live, &never()).unwrap();
    assert_sizes_are_geometric(&set);
    assert!(!set.needs_merge());
    assert_eq!(set.statistics().runs, 2);
    assert_eq!((summary.runs_merged, summary.runs_written), (21, 1));
    assert!(
        store.keys().contains(&large_key),
        "the large run was left alone"
    );
    assert_eq!(set.statistics().entries, 110_000, "duplicates are gone");
    set.merge_all(&all_live).unwrap();
    assert_eq!(index_keys(&store).len(), 1);
    all.extend(large);
    assert_is_model(&set, &all, 7);
    assert_is_model(&open_set(&store, MEMORY_BYTES), &all, 7);
}

#[test]
fn an_entry_is_rewritten_seldom() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let backups = 300;
    let (mut rewritten, mut runs_most) = (0, 0);
    for number in 0..backups {
        let mut entries = synthetic(number, number, 100, 100);
        set.write_run(&mut entries, &[]).unwrap();
        let summary = set.merge(&all_live, &never()).unwrap();
        rewritten += summary.entries_before;
        runs_most = runs_most.max(set.statistics().runs);
        assert_sizes_are_geometric(&set);
    }
    assert_eq!(set.statistics().entries, backups * 100);
    let each = rewritten as f64 / (backups * 100) as f64;
    println!(
        "an entry of {backups} backups was rewritten {each:.1} times, at most {runs_most} runs"
    );
    assert!(
        each < 7.0 && runs_most <= 6,
        "{each} times, {runs_most} runs"
    );
}

#[test]
fn a_cancelled_merge_leaves_nothing() {
    let store = new_store();
    let all = fill(&open_set(&store, MEMORY_BYTES), 5, 20_000);
    let set = open_set(&store, MEMORY_BYTES);
    let keys = index_keys(&store);
    let cancel = AtomicBool::new(false);
    // Cancelled while the containers are looked through, before the first entry.
    let live = |_| {
        cancel.store(true, Ordering::Relaxed);
        true
    };
    let summary = set.merge(&live, &cancel).unwrap();
    assert_eq!(summary, Default::default());
    assert_eq!(index_keys(&store), keys);
    assert_is_model(&set, &all, 101);
    assert_eq!(set.merge(&live, &cancel).unwrap(), Default::default());
    assert_eq!(set.statistics().reserved_bytes, 0);
}

#[test]
fn a_merge_may_die_at_any_change() {
    let origin = new_store();
    let all = fill(&open_set(&origin, MEMORY_BYTES), 10, 300);
    for changes in 0..12 {
        let medium = Arc::new(origin.fork());
        let failing = FailingStore::new(&medium, changes, i64::MAX);
        let set = open_set(&failing, MEMORY_BYTES);
        let outcome = set.merge_all(&all_live);
        assert_eq!(outcome.is_ok(), changes == 11, "one put and ten deletes");
        assert_is_model(&set, &all, 13);
        let reopened = open_set(&medium, MEMORY_BYTES);
        assert_is_model(&reopened, &all, 13);
        assert!(reopened.damaged().is_empty());
        reopened.merge_all(&all_live).unwrap();
        assert_eq!(reopened.statistics().entries as usize, all.len());
        assert_is_model(&reopened, &all, 13);
    }
}

#[test]
fn a_merge_drops_what_is_dead() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let mut all = fill(&set, 3, 500);
    let dead: HashSet<_> = (1000..2000).step_by(2).map(container).collect();
    let live = |container| !dead.contains(&container);
    let summary = set.merge_all(&live).unwrap();
    assert_eq!(
        (summary.entries_before, summary.entries_after),
        (1500, 1250)
    );
    assert!(!set.covered(container(1000)) && set.covered(container(1001)));
    let dropped = all.clone();
    all.retain(|entry| live(entry.address.container));
    assert_is_model(&set, &all, 3);
    for entry in dropped
        .iter()
        .filter(|entry| !live(entry.address.container))
    {
        assert!(candidates(&set, entry.prefix).is_empty());
    }
    set.drop_dead(&|_| false).unwrap();
    assert!(index_keys(&store).is_empty());
}

#[test]
fn damage_is_named_and_passed_over() {
    let store = new_store();
    let all = fill(&open_set(&store, MEMORY_BYTES), 5, 4000);
    let keys = index_keys(&store);
    store.corrupt(&keys[0], |object| object.truncate(object.len() - 7));
    store.corrupt(&keys[1], |object| object.clear());
    store.corrupt(&keys[2], |object| object[BLOCK_BYTES + 77] ^= 4);
    let set = open_set(&store, MEMORY_BYTES);
    let damaged = || {
        set.damaged()
            .iter()
            .map(|(key, _)| *key)
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(damaged(), BTreeSet::from([keys[0], keys[1]]));
    let table = set.runs()[0].footer().containers.clone();
    assert!(table.iter().all(|&container| set.covered(container)));

    let model = model_of(&all);
    let found: usize = model
        .iter()
        .filter(|(p, expected)| candidates(&set, **p) == **expected)
        .count();
    assert!(
        (8000..12_000).contains(&found),
        "two runs are lost, and a block: {found}"
    );
    assert_eq!(damaged(), BTreeSet::from([keys[0], keys[1], keys[2]]));
    assert!(
        set.damaged()
            .iter()
            .all(|(key, error)| error.key() == Some(*key))
    );
    assert!(
        table.iter().all(|&container| !set.covered(container)),
        "{table:?}"
    );

    // Merges leave it alone, found damaged before or while merging.
    let mut set = set;
    for _ in 0..2 {
        let summary = set.merge_all(&all_live).unwrap();
        assert!(summary.runs_merged <= 2);
        assert_eq!(set.damaged().len(), 3);
        assert!(keys[..3].iter().all(|key| store.keys().contains(key)));
        let after = model
            .iter()
            .filter(|(p, expected)| candidates(&set, **p) == **expected);
        assert_eq!(after.count(), found);
        set = open_set(&store, MEMORY_BYTES);
    }
}

#[test]
fn unknown_epochs_and_fields_are_passed_over() {
    let store = new_store();
    let dyn_store: Arc<dyn ObjectStore> = store.clone();
    let newer = RunSet::open(dyn_store, vault_of(1..=2, false), MEMORY_BYTES).unwrap();
    fill(&newer, 1, 100);
    let set = open_set(&store, MEMORY_BYTES);
    let damaged = set.damaged();
    assert!(matches!(
        *damaged[0].1,
        ObjectError::UnknownEpoch { epoch: 2, .. }
    ));
    assert_eq!(set.statistics().runs, 0);

    let run = TestRun::new(&synthetic(1, 7000, 300, 50), vault());
    let store = run.store.clone();
    run.store_object(run.with_footer(|footer| footer.extend_from_slice(&[100, 1, 7])));
    let set = open_set(&store, MEMORY_BYTES);
    let all = fill(&set, 4, 100);
    set.merge_all(&all_live).unwrap();
    assert_eq!(
        index_keys(&store).len(),
        2,
        "a run with unknown fields is not merged"
    );
    assert!(store.keys().contains(&run.key));
    assert_is_model(&set, &all, 3);
}

#[test]
fn another_client_may_merge() {
    let store = new_store();
    // No cache to speak of: every look-up meets the store.
    let set = open_set(&store, MEMORY_BYTES_MIN);
    let all = fill(&set, 12, 2000);
    let other = open_set(&store, MEMORY_BYTES);
    other.merge_all(&all_live).unwrap();
    store.reset_counts();
    let mut out = Vec::new();
    for entry in all.iter().step_by(17) {
        out.clear();
        set.candidates(entry.prefix, &mut out);
        assert_eq!(out, [entry.address], "found once, in what there is now");
    }
    assert_eq!(
        store.counts().lists,
        1,
        "listed once, then everything is known"
    );
    assert!(set.damaged().is_empty());
    assert_eq!(set.statistics().runs, 1);
    // Merging what another one has merged meanwhile.
    let set = open_set(&store, MEMORY_BYTES);
    let more = fill(&set, 3, 300);
    open_set(&store, MEMORY_BYTES).merge_all(&all_live).unwrap();
    set.merge_all(&all_live).unwrap();
    assert_is_model(&set, &more, 17);
    assert_is_model(&set, &all, 17);
    assert!(set.damaged().is_empty());
    assert_eq!(index_keys(&store).len(), 1);
}

#[test]
fn runs_that_came_later_are_left_to_others() {
    let store = new_store();
    let first = open_set(&store, MEMORY_BYTES);
    fill(&first, 6, 400);
    let set = open_set(&store, MEMORY_BYTES_MIN);
    // Another client merges them, and writes of a container that did not exist when `set` was opened.
    first.merge_all(&all_live).unwrap();
    let mut later = synthetic(1, 77_000, 300, 50);
    first.write_run(&mut later, &[]).unwrap();
    // It finds its runs gone, and those that are there instead.
    let mut found = Vec::new();
    set.candidates(later[0].prefix, &mut found);
    let known = |container: ContainerId| {
        later
            .iter()
            .all(|entry| entry.address.container != container)
    };
    set.merge_all(&known).unwrap();
    set.merge(&known, &never()).unwrap();
    let reopened = open_set(&store, MEMORY_BYTES);
    for entry in &later {
        assert!(reopened.covered(entry.address.container));
        assert!(!candidates(&reopened, entry.prefix).is_empty());
    }
}

#[test]
fn what_was_found_before_a_run_vanished_is_not_found_twice() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let (shared, own) = (entry(7, 0, 0), entry(3, 0, 1));
    set.write_run(&mut [shared, own], &[]).unwrap();
    let other = entry(7, 1, 0);
    set.write_run(&mut [other], &[]).unwrap();
    // The block of the first run is cached, but not the second run's, which begins above it.
    assert_eq!(candidates(&set, 3).len(), 1);
    open_set(&store, MEMORY_BYTES).merge_all(&all_live).unwrap();
    let mut out = Vec::new();
    set.candidates(7, &mut out);
    out.sort_unstable();
    let mut expected = [shared.address, other.address];
    expected.sort_unstable();
    assert_eq!(out, expected);
}

/// Stores a forged run beside good ones: merges must leave it, name it, and not panic.
fn assert_merges_refuse(run: &TestRun, forged: Vec<u8>) {
    run.store_object(forged);
    let set = open_set(&run.store, MEMORY_BYTES);
    let all = fill(&set, 3, 200);
    set.merge_all(&all_live).unwrap();
    assert!(matches!(&set.damaged()[..], [(key, _)] if *key == run.key));
    assert_eq!(set.statistics().runs, 2);
    assert_is_model(&set, &all, 3);
}

#[test]
fn merges_refuse_runs_that_contradict_themselves() {
    for change in [-1i64, 1] {
        let run = TestRun::new(&synthetic(1, 7000, 5000, 50), vault());
        let forged = run.with_footer(|plain| {
            let mut footer = Footer::decode(plain).unwrap();
            footer.entries = footer.entries.checked_add_signed(change).unwrap();
            footer.partitions[0].keys = footer.entries;
            plain.clear();
            footer.encode(plain);
        });
        assert_merges_refuse(&run, forged);
    }
    // Two blocks of one prefix, each in order, but not the second after the first.
    let equal: Vec<_> = (0..15_000).map(|slot| entry(7, 7000, slot)).collect();
    let run = TestRun::new(&equal, vault());
    let mut first = Vec::new();
    run.with_block(0, |plain| first = plain.to_vec());
    let forged = run.with_block(1, |plain| plain.copy_from_slice(&first));
    assert_merges_refuse(&run, forged);
}

#[test]
fn runs_that_are_just_gone_are_named() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let all = fill(&set, 2, 100);
    let keys: Vec<_> = set.runs().iter().map(|run| run.key()).collect();
    store.remove_raw(&keys[0]);
    assert!(candidates(&set, all[0].prefix).is_empty());
    assert!(matches!(&set.damaged()[..], [(key, error)] if *key == keys[0] && error.is_damage()));
    assert!(!set.covered(all[0].address.container));
    assert_is_model(&set, &all[100..], 1);
}

#[test]
fn runs_that_are_listed_and_gone_are_dropped() {
    let medium = new_store();
    let all = fill(&open_set(&medium, MEMORY_BYTES), 2, 100);
    let failing = FailingStore::new(&medium, 0, i64::MAX);
    let set = open_set(&failing, MEMORY_BYTES);
    let key = set.runs()[0].key();
    *failing.hidden.lock().unwrap() = Some(key);
    for entry in &all {
        candidates(&set, entry.prefix);
    }
    assert!(matches!(&set.damaged()[..], [(named, _)] if *named == key));
    assert_eq!(set.statistics().runs, 1);
    assert!(set.covered(container(0)) != set.covered(container(1000)));
}

#[test]
fn a_run_found_damaged_by_a_merge_covers_nothing() {
    let store = new_store();
    let all = fill(&open_set(&store, MEMORY_BYTES), 3, 1000);
    store.corrupt(&index_keys(&store)[0], |object| object[77] ^= 4);
    let set = open_set(&store, MEMORY_BYTES);
    let is_covered = |entry: &&IndexEntry| set.covered(entry.address.container);
    assert_eq!(all.iter().filter(is_covered).count(), 3000);
    set.merge_all(&all_live).unwrap();
    assert_eq!(all.iter().filter(is_covered).count(), 2000);
    assert_eq!((set.damaged().len(), set.statistics().runs), (1, 2));
}

#[test]
fn an_unreachable_store_fails_no_look_up() {
    let medium = new_store();
    let all = fill(&open_set(&medium, MEMORY_BYTES), 2, 2000);
    let failing = FailingStore::new(&medium, 0, 3);
    let set = open_set(&failing, MEMORY_BYTES);
    for entry in &all {
        candidates(&set, entry.prefix);
    }
    assert!(matches!(*set.damaged()[0].1, ObjectError::Store(_)));
    assert!(set.covered(container(0)), "unreachable is not lost");
    failing.ranges_left.store(i64::MAX, Ordering::Relaxed);
    assert_is_model(&set, &all, 1);
}

#[test]
fn look_ups_go_on_while_runs_are_merged() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let all = fill(&set, 12, 1000);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    assert_is_model(&set, &all, 97);
                }
            });
        }
        // One thread merges again and again while another writes.
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                set.merge(&all_live, &is_done).unwrap();
            }
        });
        for round in 0..40 {
            let mut entries = synthetic(900 + round, 100_000 + round, 50, 50);
            set.write_run(&mut entries, &[]).unwrap();
            assert_is_model(&set, &entries, 7);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert!(set.damaged().is_empty());
    set.merge_all(&all_live).unwrap();
    assert_is_model(&set, &all, 1);
    assert_eq!(set.statistics().entries, 12_000 + 40 * 50);
}

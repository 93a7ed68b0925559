//! Memory: limits that are kept, filters that come when they are paid for and go by worth.

use std::sync::Arc;

use testkit::random::Random;

use super::block::BLOCK_BYTES;
use super::run_reader::RunReader;
use super::run_set_tests::{MEMORY_BYTES, all_live, assert_is_model, fill, new_store};
use super::test_support::{candidates, index_keys, open_set, synthetic};
use super::{MEMORY_BYTES_MIN, RunSet};

#[test]
fn memory_stays_below_its_limit() {
    let store = new_store();
    let count = 900_000;
    let mut entries = synthetic(1, 0, count, 500);
    open_set(&store, 64 << 20)
        .write_run(&mut entries, &[])
        .unwrap();
    let set = open_set(&store, MEMORY_BYTES_MIN);
    let assert_bounded = || {
        let statistics = set.statistics();
        let used = statistics.memory_bytes();
        assert!(used <= MEMORY_BYTES_MIN as u64, "{statistics:?}");
    };
    let mut random = Random::new(2);
    for round in 0..6000 {
        let wanted = entries[random.index(count)];
        assert!(candidates(&set, wanted.prefix).contains(&wanted.address));
        candidates(&set, random.bits());
        if round % 100 == 0 {
            assert_bounded();
        }
    }
    let statistics = set.statistics();
    assert!(
        statistics.memory_bytes() > MEMORY_BYTES_MIN as u64 * 8 / 10,
        "it is used: {statistics:?}"
    );
    assert!(statistics.filter_bytes > 0, "{statistics:?}");
    assert!(statistics.store_bytes as f64 / (count as f64) < 11.0);
    // Runs that come make planes and blocks give way.
    let mut more = synthetic(3, 10_000, 30_000, 1);
    set.write_run(&mut more, &[]).unwrap();
    assert_bounded();
    // And so does what others need.
    set.set_reserved(3 << 20, 0);
    assert_bounded();
}

/// Blocks read a look-up of prefixes that are not there.
fn block_reads_a_miss(set: &RunSet, misses: u64) -> f64 {
    let mut random = Random::new(77);
    let before = set.statistics().block_reads;
    for _ in 0..misses {
        set.candidates(random.bits(), &mut Vec::new());
    }
    (set.statistics().block_reads - before) as f64 / misses as f64
}

#[test]
fn filters_come_and_small_runs_have_both_planes() {
    let store = new_store();
    let writing = open_set(&store, 64 << 20);
    for (number, count) in [1_500_000, 200_000, 20_000].into_iter().enumerate() {
        let mut entries = synthetic(number as u64, number as u64 * 10_000, count, 500);
        writing.write_run(&mut entries, &[]).unwrap();
    }
    let all_planes = 1_720_000.0 * 1.1;
    // Room for the first plane of the largest run and both of the others, and a few blocks.
    let set = open_set(&store, MEMORY_BYTES_MIN);
    set.set_reserved(MEMORY_BYTES_MIN - 1_600_000, 0);
    let cold = block_reads_a_miss(&set, 20_000);
    let warm = block_reads_a_miss(&set, 20_000);
    println!(
        "{cold:.3} blocks a miss at first, then {warm:.3}: {:?}",
        set.statistics()
    );
    assert!(warm < 0.1, "1/16 and two times 1/256: {warm}");
    let own = |run: &Arc<RunReader>, plane| run.planes().own_bytes(plane) as f64;
    for run in set.runs().iter() {
        let entries = run.footer().entries as f64;
        let is_small = entries < 1e6;
        assert!(own(run, 0) > 0.54 * entries, "{entries} entries");
        assert!(
            !is_small || own(run, 1) > 0.54 * entries,
            "{entries} entries"
        );
    }
    // With room for all, all are here; with less again, the least worthy go.
    let set = open_set(&store, 64 << 20);
    block_reads_a_miss(&set, 300_000);
    assert!(set.statistics().filter_bytes as f64 > all_planes * 0.98);
    set.set_reserved((64 << 20) - 3_200_000, 0);
    assert!((set.statistics().filter_bytes as f64) < all_planes * 0.7);
    assert!(block_reads_a_miss(&set, 20_000) < 0.1);
    assert!(set.damaged().is_empty());
}

#[test]
fn too_little_memory_costs_a_block_a_run_and_no_more() {
    let store = new_store();
    let writing = open_set(&store, 64 << 20);
    for number in 0..2 {
        let mut entries = synthetic(number, number * 10_000, 1_000_000, 500);
        writing.write_run(&mut entries, &[]).unwrap();
    }
    let set = open_set(&store, MEMORY_BYTES_MIN);
    set.set_reserved(MEMORY_BYTES_MIN - 500_000, 0);
    let misses = 5000;
    let reads = block_reads_a_miss(&set, misses);
    let statistics = set.statistics();
    println!("{reads:.2} blocks a miss: {statistics:?}");
    assert!(reads <= 2.0);
    let planes = statistics.filter_read_bytes as f64 / misses as f64;
    assert!(
        planes < 16_384.0,
        "filters do not thrash: {planes} B a miss"
    );
}

#[test]
fn a_damaged_plane_is_named_once() {
    let store = new_store();
    let all = fill(&open_set(&store, MEMORY_BYTES), 1, 4000);
    let key = index_keys(&store)[0];
    let set = open_set(&store, MEMORY_BYTES);
    let blocks = set.runs()[0].footer().fences.len();
    store.corrupt(&key, |object| object[blocks * BLOCK_BYTES + 5] ^= 1);
    block_reads_a_miss(&set, 3000);
    assert!(matches!(&set.damaged()[..], [(named, _)] if *named == key));
    assert!(!set.covered(all[0].address.container));
    assert_is_model(&set, &all, 1);
    let statistics = set.statistics();
    assert_eq!(statistics.filter_reads, 2, "the second plane still serves");
    assert!(statistics.filter_rejects > 1000);
}

#[test]
fn many_runs_are_merged_in_little_memory() {
    let store = new_store();
    let all = fill(&open_set(&store, MEMORY_BYTES), 60, 100);
    let set = open_set(&store, MEMORY_BYTES_MIN);
    let summary = set.merge_all(&all_live).unwrap();
    assert!(summary.runs_written > 1, "not all at once: {summary:?}");
    assert_eq!(index_keys(&store).len(), 1);
    assert_is_model(&set, &all, 3);
}

//! The container directory in the footers of runs: lengths of metadata, generations, containers by
//! their numbers.

use testkit::random::Random;

use super::run_set_tests::{MEMORY_BYTES, all_live, assert_is_model, new_store};
use super::test_support::{container, entry, open_set, synthetic};
use super::{RunEntry, RunSet};
use crate::container::Slot;

#[test]
fn lengths_of_metadata_outlive_merges() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    let length_of = |number: u64| {
        if number.is_multiple_of(3) {
            0
        } else {
            7000 + number as u32
        }
    };
    for part in 0..4 {
        let mut entries = synthetic(part, part * 10, 1000, 100);
        let numbers: Vec<_> = (part * 10..part * 10 + 10).collect();
        let metadata_bytes = |id| {
            let found = numbers.iter().find(|&&number| container(number) == id);
            found.map_or(0, |&number| length_of(number))
        };
        set.write_run_with(&mut entries, &[], &metadata_bytes)
            .unwrap();
    }
    let check = |set: &RunSet| {
        for number in 0..41 {
            let known = Some(length_of(number)).filter(|&length| length != 0 && number < 40);
            assert_eq!(set.metadata_bytes(container(number)), known, "{number}");
        }
    };
    check(&set);
    set.merge_all(&all_live).unwrap();
    check(&set);
    check(&open_set(&store, MEMORY_BYTES));
}

#[test]
fn generations_rise_with_every_run_and_outlive_merges() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    for part in [2, 0, 1] {
        let mut entries = synthetic(part, part * 10, 1000, 100);
        set.write_run(&mut entries, &[]).unwrap();
    }
    let check = |set: &RunSet| {
        for (part, generation) in [(2, 1), (0, 2), (1, 3)] {
            for number in part * 10..part * 10 + 10 {
                assert_eq!(set.generation(container(number)), generation, "{number}");
            }
        }
        assert_eq!(set.generation(container(77)), 0);
    };
    check(&set);
    set.merge_all(&all_live).unwrap();
    check(&set);
    let set = open_set(&store, MEMORY_BYTES);
    check(&set);
    // A container that comes in again is of the newest generation from then on.
    set.write_run(&mut synthetic(2, 20, 1000, 100), &[])
        .unwrap();
    assert_eq!(set.generation(container(20)), 4);
    set.merge_all(&all_live).unwrap();
    assert_eq!(set.generation(container(20)), 4);
    assert_eq!(set.generation(container(5)), 2);
}

#[test]
fn numbered_entries_are_written_as_others_are() {
    let store = new_store();
    let set = open_set(&store, MEMORY_BYTES);
    // Containers in no order, one of them twice, one without entries.
    let containers: Vec<_> = [5, 3, 9, 3, 7].map(|n| (container(n), n as u32)).to_vec();
    let mut numbered = Vec::new();
    let mut all = Vec::new();
    let mut random = Random::new(1);
    for slot in 0..4000 {
        let number = [0, 1, 2, 3][random.index(4)];
        let prefix = random.below(3000);
        numbered.push(RunEntry {
            prefix,
            container: number,
            slot: Slot(slot),
        });
        all.push(entry(prefix, [5, 3, 9, 3][number as usize], slot));
    }
    numbered.push(numbered[0]);
    set.write_numbered(&containers, &mut numbered, &|_| 1)
        .unwrap();
    assert_is_model(&set, &all, 1);
    assert!([3, 5, 7, 9].iter().all(|&n| set.covered(container(n))));
    assert_eq!(set.metadata_bytes(container(9)), Some(9));
    assert_eq!(set.statistics().entries, 4000);
}

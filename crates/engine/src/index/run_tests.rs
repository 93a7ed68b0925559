//! One run, written and read: against a model, hostile bytes, truncation, flips, counted I/O.

use std::collections::BTreeSet;

use proptest::prelude::*;
use testkit::random::Random;

use super::IndexEntry;
use super::block::BLOCK_BYTES;
use super::run_reader::{PlaneWish, RunReader};
use super::test_support::{TestRun, begin, container, entry, model_of, synthetic, vault, vault_of};
use crate::container::{ChunkAddress, Slot};
use crate::format::{ObjectError, padme};
use crate::object::{MemoryStore, ObjectId};

const CACHE_BYTES: usize = 8 << 20;

fn candidates(run: &RunReader, prefix: u64) -> Result<BTreeSet<ChunkAddress>, ObjectError> {
    let mut out = Vec::new();
    run.candidates(prefix, &mut out, &mut None)?;
    Ok(out.into_iter().collect())
}

/// Every prefix and its neighbours are answered as by a map.
fn assert_is_model(run: &RunReader, entries: &[IndexEntry], step: usize) {
    let model = model_of(entries);
    for &near in model.keys().step_by(step) {
        for prefix in [near.saturating_sub(1), near, near.saturating_add(1)] {
            let expected = model.get(&prefix).cloned().unwrap_or_default();
            assert_eq!(
                candidates(run, prefix).unwrap(),
                expected,
                "prefix {prefix:x}"
            );
        }
    }
}

fn entries_strategy() -> impl Strategy<Value = Vec<IndexEntry>> {
    let prefix = prop_oneof![
        4 => any::<u64>(),
        2 => 0..20u64,
        1 => Just(0),
        1 => Just(u64::MAX),
        1 => (u64::MAX - 9)..=u64::MAX,
        1 => any::<u64>().prop_map(|prefix| prefix >> 44 | 0x77 << 56),
    ];
    let one = (prefix, 0..9u64, any::<u16>())
        .prop_map(|(prefix, number, slot)| entry(prefix, number, slot));
    prop::collection::vec(one, 1..6000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_run_is_a_map(entries in entries_strategy(), is_padded: bool, is_cached: bool) {
        let run = TestRun::new(&entries, vault_of(1..=3, is_padded));
        let context = run.context(if is_cached { CACHE_BYTES } else { 0 });
        let reader = run.open(&context).unwrap();
        assert_is_model(&reader, &entries, 29);
        for prefix in [0, 1, u64::MAX - 1, u64::MAX] {
            let expected = model_of(&entries).remove(&prefix).unwrap_or_default();
            prop_assert_eq!(candidates(&reader, prefix).unwrap(), expected);
        }
        for number in 0..10 {
            let is_named = entries.iter().any(|entry| entry.address.container == container(number));
            prop_assert_eq!(reader.covers(container(number)), is_named);
        }
    }

    #[test]
    fn hostile_footers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let run = TestRun::new(&synthetic(1, 0, 5000, 100), vault());
        run.store_object(run.with_footer(|footer| {
            for (place, value) in changes {
                let place = place.index(footer.len());
                footer[place] = value;
            }
            if let Some(cut) = cut {
                footer.truncate(cut.index(footer.len()));
            }
        }));
        if let Ok(reader) = run.open(&run.context(CACHE_BYTES)) {
            let mut random = Random::new(5);
            for prefix in [0, u64::MAX].into_iter().chain((0..50).map(|_| random.bits())) {
                let _ = candidates(&reader, prefix);
            }
        }
    }

    #[test]
    fn hostile_blocks_never_panic(
        changes in prop::collection::vec((0..400usize, any::<u8>()), 1..4),
    ) {
        let entries = synthetic(1, 0, 4000, 100);
        let run = TestRun::new(&entries, vault());
        run.store_object(run.with_block(1, |block| {
            for (place, value) in changes {
                block[place] = value;
            }
        }));
        let reader = run.open(&run.context(CACHE_BYTES)).unwrap();
        for entry in entries.iter().step_by(50) {
            let _ = candidates(&reader, entry.prefix);
        }
    }
}

#[test]
fn prefixes_straddle_blocks_and_partitions() {
    // 80,000 entries of one prefix fill dozens of blocks and several partitions.
    let mut entries = synthetic(2, 0, 40_000, 500);
    let middle = entries[7].prefix;
    entries.extend((0..80_000).map(|n| entry(middle, 200 + n / 60_000, (n % 60_000) as u16)));
    let run = TestRun::new(&entries, vault());
    let reader = run.open(&run.context(CACHE_BYTES)).unwrap();
    assert!(reader.footer().partitions.len() >= 3);
    let of_prefix = reader
        .footer()
        .fences
        .iter()
        .filter(|&&fence| fence == middle)
        .count();
    assert!(of_prefix > 5, "{of_prefix} blocks begin with the prefix");
    assert_eq!(candidates(&reader, middle).unwrap().len(), 80_001);
    assert_is_model(&reader, &entries, 997);
    // Two entries on either side of every border between blocks.
    for &fence in &reader.footer().fences {
        assert_eq!(
            candidates(&reader, fence).unwrap(),
            model_of(&entries)[&fence]
        );
    }
}

#[test]
fn reads_are_counted() {
    let entries = synthetic(3, 0, 60_000, 500);
    let run = TestRun::new(&entries, vault());
    let context = run.context(CACHE_BYTES);
    let reader = run.open(&context).unwrap();
    let opened = run.store.reset_counts();
    assert_eq!(
        (opened.tails, opened.ranges, opened.gets, opened.lists),
        (1, 0, 0, 0)
    );

    let is_fence = |prefix| reader.footer().fences.contains(&prefix);
    let hit = entries
        .iter()
        .map(|entry| entry.prefix)
        .find(|&prefix| !is_fence(prefix))
        .unwrap();
    assert_eq!(candidates(&reader, hit).unwrap().len(), 1);
    let counts = run.store.reset_counts();
    assert_eq!(counts.ranges, 1, "a block");
    candidates(&reader, hit).unwrap();
    assert_eq!(run.store.reset_counts().reads(), 0, "it is cached");

    // Every wish is granted: filters come once they are paid for, and then rule out.
    let mut random = Random::new(4);
    let mut wishes = 0;
    for _ in 0..10_000 {
        let (mut out, mut wish) = (Vec::new(), None);
        reader
            .candidates(random.bits(), &mut out, &mut wish)
            .unwrap();
        assert!(out.is_empty());
        if let Some(PlaneWish {
            partition, plane, ..
        }) = wish
        {
            wishes += 1;
            let bytes = reader.read_plane(partition, plane).unwrap();
            reader.planes().set(partition, plane, Some(bytes));
        }
    }
    let counters = &context.counters;
    let passed = counters.filter_false_positives.get();
    let unfiltered = counters.unfiltered_misses.get();
    assert_eq!(counters.filter_rejects.get() + passed + unfiltered, 10_000);
    assert!(passed < 300 && unfiltered < 300, "{passed}, {unfiltered}");
    assert_eq!(wishes, 2 * reader.footer().partitions.len());
    assert_eq!(counters.filter_reads.get() as usize, wishes);
    let blocks = reader.footer().fences.len() as u64;
    assert!(counters.block_reads.get() <= blocks, "the cache holds all");
}

#[test]
fn large_footers_take_a_second_read() {
    let entries = synthetic(8, 0, 20_000, 4);
    let run = TestRun::new(&entries, vault());
    let reader = run.open(&run.context(CACHE_BYTES)).unwrap();
    let counts = run.store.reset_counts();
    assert_eq!((counts.tails, counts.ranges), (1, 1));
    assert_eq!(
        counts.range_bytes,
        run.object.len() as u64 - reader.footer().body_bytes() - 32
    );
    assert_is_model(&reader, &entries, 101);
}

/// Places that stand for every kind of place in an object.
fn places(object_bytes: usize, body_bytes: usize, blocks: usize) -> BTreeSet<usize> {
    let ends = [
        0,
        BLOCK_BYTES,
        blocks * BLOCK_BYTES,
        body_bytes,
        object_bytes - 32,
        object_bytes,
    ];
    ends.iter()
        .flat_map(|&end| [0, 1, 2, 11, 12, 15, 16, 17, 31, 32, 33].map(|step| (end, step)))
        .flat_map(|(end, step)| [end + step, end.saturating_sub(step)])
        .chain((0..object_bytes).step_by(4099))
        .filter(|&place| place < object_bytes)
        .collect()
}

#[test]
fn truncated_runs_do_not_open() {
    for is_padded in [false, true] {
        let run = TestRun::new(&synthetic(5, 0, 5000, 100), vault_of(1..=1, is_padded));
        let context = run.context(CACHE_BYTES);
        let footer = run.open(&context).unwrap();
        let (body, blocks) = (footer.footer().body_bytes(), footer.footer().fences.len());
        for length in places(run.object.len(), body as usize, blocks) {
            run.store_object(run.object[..length].to_vec());
            let error = run.open(&context).unwrap_err();
            assert!(
                error.is_damage() && error.key() == Some(run.key),
                "{length}: {error}"
            );
            // A part in front is missing, the end is there.
            if length > 0 {
                run.store_object(run.object[length..].to_vec());
                assert!(
                    run.open(&context).unwrap_err().is_damage(),
                    "{length} cut off"
                );
            }
        }
        // A run that was whole when it was opened.
        run.store_object(run.object.clone());
        let reader = run.open(&context).unwrap();
        run.store_object(run.object[..BLOCK_BYTES - 1].to_vec());
        let first = reader.footer().fences[0];
        assert!(candidates(&reader, first).unwrap_err().is_damage());
        assert!(reader.is_damaged() && !reader.covers(container(0)));
    }
}

#[test]
fn flipped_bits_are_noticed_and_lie_to_nobody() {
    let entries = synthetic(6, 0, 5000, 100);
    let model = model_of(&entries);
    let run = TestRun::new(&entries, vault_of(1..=1, true));
    let whole = run.open(&run.context(CACHE_BYTES)).unwrap();
    let (body, blocks) = (
        whole.footer().body_bytes() as usize,
        whole.footer().fences.len(),
    );
    let footer_end = run.object.len() - 32;
    for place in places(run.object.len(), body, blocks) {
        let mut object = run.object.clone();
        object[place] ^= 1 << (place % 8);
        run.store_object(object);
        let reader = match run.open(&run.context(CACHE_BYTES)) {
            Err(error) => {
                let is_epoch = matches!(error, ObjectError::UnknownEpoch { .. });
                assert!(
                    place >= body && (error.is_damage() || is_epoch),
                    "{place}: {error}"
                );
                continue;
            }
            Ok(reader) => reader,
        };
        assert!(place < footer_end, "byte {place} of the tag is checked");
        let mut errors = 0;
        for (&prefix, expected) in model.iter().step_by(7) {
            match candidates(&reader, prefix) {
                Ok(found) => assert!(found.is_subset(expected)),
                Err(error) => {
                    assert!(error.is_damage());
                    errors += 1;
                }
            }
        }
        // Nobody asked for the filters, or for padding.
        let is_in_block = place < blocks * BLOCK_BYTES;
        assert_eq!(
            errors,
            usize::from(is_in_block),
            "byte {place}: damage is told once"
        );
        assert_eq!(reader.is_damaged(), is_in_block);
        let fresh = run.open(&run.context(CACHE_BYTES)).unwrap();
        assert!(fresh.verify().unwrap_err().is_damage(), "byte {place}");
    }
}

#[test]
fn a_damaged_plane_lets_everything_pass() {
    let entries = synthetic(7, 0, 5000, 100);
    let run = TestRun::new(&entries, vault());
    let context = run.context(CACHE_BYTES);
    let blocks = run.open(&context).unwrap().footer().fences.len();
    let mut object = run.object.clone();
    object[blocks * BLOCK_BYTES] ^= 1;
    run.store_object(object);
    let reader = run.open(&run.context(CACHE_BYTES)).unwrap();
    let error = reader.read_plane(0, 0).unwrap_err();
    assert!(reader.note_damage(&error) && reader.is_damaged());
    reader.planes().set(0, 0, None);
    assert_is_model(&reader, &entries, 31);
    let second = reader.read_plane(0, 1).unwrap();
    reader.planes().set(0, 1, Some(second));
    assert_is_model(&reader, &entries, 31);
}

#[test]
fn verifying_reads_everything() {
    for is_padded in [false, true] {
        let run = TestRun::new(&synthetic(11, 0, 100_000, 500), vault_of(1..=1, is_padded));
        let reader = run.open(&run.context(0)).unwrap();
        let opened = run.store.reset_counts().read_bytes();
        reader.verify().unwrap();
        let read = run.store.reset_counts().read_bytes();
        assert!(opened + read >= run.object.len() as u64);
    }
}

#[test]
fn blocks_must_match_their_fences() {
    let run = TestRun::new(&synthetic(9, 0, 5000, 100), vault());
    let reader = run.open(&run.context(CACHE_BYTES)).unwrap();
    let second = reader.footer().fences[1];
    // The block is good by itself, but begins elsewhere than the footer says.
    run.store_object(run.with_block(1, |block| block[0] ^= 1));
    let reader = run.open(&run.context(CACHE_BYTES)).unwrap();
    assert!(candidates(&reader, second).unwrap_err().is_damage());
}

#[test]
fn lengths_are_padded_where_they_must_say_nothing() {
    let bytes_of = |count: usize, is_padded| {
        let run = TestRun::new(&synthetic(1, 0, count, 50), vault_of(1..=1, is_padded));
        run.open(&run.context(0)).unwrap();
        run.object.len()
    };
    for count in (1..4000).step_by(331) {
        let (plain, padded) = (bytes_of(count, false), bytes_of(count, true));
        assert_eq!(padme(padded as u64), padded as u64);
        assert!(padded >= plain && padded - plain <= plain / 8 + 16);
    }
}

#[test]
fn empty_runs_cover() {
    let vault = vault();
    let store = MemoryStore::new();
    let writer = begin(&store, &vault, ObjectId([3; 16]), Vec::new());
    let (key, _) = writer.finish(vec![container(4)]).unwrap();
    let run = TestRun::new(&[], vault);
    run.store_object(store.object(&key).unwrap());
    let reader = run.open(&run.context(0)).unwrap();
    assert!(reader.covers(container(4)) && !reader.covers(container(5)));
    assert!(candidates(&reader, 0).unwrap().is_empty());
}

#[test]
fn an_abandoned_writer_leaves_nothing() {
    let store = MemoryStore::new();
    let mut writer = begin(&store, &vault(), ObjectId([3; 16]), vec![container(1)]);
    for prefix in 0..200_000 {
        writer.push(prefix, 0, Slot(1)).unwrap();
    }
    drop(writer);
    assert!(store.keys().is_empty());
}

#[test]
#[should_panic(expected = "ascend")]
fn writers_refuse_disorder() {
    let store = MemoryStore::new();
    let mut writer = begin(&store, &vault(), ObjectId([3; 16]), vec![container(1)]);
    writer.push(5, 0, Slot(1)).unwrap();
    writer.push(5, 0, Slot(1)).unwrap();
}

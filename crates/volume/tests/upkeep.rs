//! Pinned generations, compaction, growing: the disk stays what it is, and what is free is free.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use volume::backing::{Backing, FileBacking, MemoryBacking};
use volume::{BlockDevice, Persistence, PinnedDisk, Policy, RamDisk, Volume, VolumeError};

const BLOCKS: u64 = 1500;

fn model_of(device: &dyn BlockDevice) -> RamDisk {
    let bytes = contents_of(device);
    let model = RamDisk::new(bytes.len(), 4096);
    model.write(0, &bytes).unwrap();
    model
}

fn work(volume: &Volume, model: &RamDisk, random: &mut Random, steps: usize) {
    let size = model.geometry().size_bytes;
    for _ in 0..steps {
        let operation = operation(random, size, 4096, 3000);
        apply(volume, &operation);
        apply(model, &operation);
    }
}

fn new_volume(
    policy: Policy,
    persistence: Persistence,
) -> (Arc<dyn Backing>, Arc<Volume>, RamDisk) {
    let settings = small(BLOCKS, policy, persistence);
    let bytes = 4 * Volume::backing_bytes_for(&settings);
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, &settings, Some(bytes)).unwrap();
    let volume = Arc::new(open(&backing));
    (
        backing,
        volume,
        RamDisk::new(settings.size_bytes as usize, 4096),
    )
}

#[test]
fn pinned_generations_stay_what_they_were() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        for policy in [Policy::None, Policy::FullAndJournal] {
            let (backing, mut volume, model) = new_volume(policy, persistence);
            let mut random = Random(7);
            let mut pins: Vec<(u32, RamDisk)> = Vec::new();
            for turn in 0..10 {
                work(&volume, &model, &mut random, 60);
                pins.push((volume.pin().unwrap(), model_of(&model)));
                if pins.len() > 3 {
                    let (number, _) = pins.remove(random.below(4) as usize);
                    volume.unpin(number).unwrap();
                    assert!(matches!(
                        volume.unpin(number),
                        Err(VolumeError::NoGeneration(_))
                    ));
                }
                if turn % 3 == 2 {
                    volume.close().unwrap();
                    drop(volume);
                    volume = Arc::new(open(&backing));
                }
                work(&volume, &model, &mut random, 20);
                let name = format!("{} {} turn {turn}", policy.name(), persistence.name());
                assert_fine(&volume, &name);
                for (number, then) in &pins {
                    let pinned = PinnedDisk::new(Arc::clone(&volume), *number).unwrap();
                    assert_equal(&pinned, then, &format!("{name}, generation {number}"));
                    assert_changes(&volume, *number, then, &model);
                }
                assert_equal(&*volume, &model, &name);
            }
            for (number, _) in pins {
                volume.unpin(number).unwrap();
            }
            volume.trim(0, model.geometry().size_bytes).unwrap();
            volume.flush().unwrap();
            volume.compact().unwrap();
            assert_fine(&volume, "emptied");
            assert_eq!(volume.usage().data_blocks, 0, "{persistence:?}");
        }
    }
}

/// Changed ranges name every block that changed.
fn assert_changes(volume: &Volume, from: u32, then: &RamDisk, now: &RamDisk) {
    let ranges = volume.changed_ranges(from, None).unwrap();
    let (then, now) = (contents_of(then), contents_of(now));
    for (block, (a, b)) in then.chunks(BLOCK).zip(now.chunks(BLOCK)).enumerate() {
        let at = (block * BLOCK) as u64;
        let named = ranges.iter().any(|range| range.contains(&at));
        assert!(
            named || a == b,
            "block {block} changed since generation {from}"
        );
    }
    assert!(
        !ranges.is_empty()
            && ranges
                .iter()
                .map(|range| range.end - range.start)
                .sum::<u64>()
                < now.len() as u64
    );
}

#[test]
fn compaction_frees_zones_and_changes_nothing() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let (backing, volume, model) = new_volume(Policy::Full, persistence);
        let mut random = Random(3);
        for lba in 0..BLOCKS {
            let data = content(lba * 8 + lba % 7);
            volume.write(lba * BLOCK as u64, &data).unwrap();
            model.write(lba * BLOCK as u64, &data).unwrap();
        }
        let pinned = volume.pin().unwrap();
        for _ in 0..BLOCKS {
            let lba = random.below(BLOCKS);
            volume.trim(lba * BLOCK as u64, BLOCK as u64).unwrap();
            model.trim(lba * BLOCK as u64, BLOCK as u64).unwrap();
        }
        volume.flush().unwrap();
        let held = volume.compact().unwrap();
        assert_eq!(held.blocks_moved, 0, "all blocks are pinned: {held:?}");
        volume.unpin(pinned).unwrap();
        let done = volume.compact().unwrap();
        assert!(done.blocks_moved > 100, "{done:?}");
        assert!(done.free_zones.1 > done.free_zones.0 + 5, "{done:?}");
        assert_equal(&*volume, &model, persistence.name());
        assert_fine(&volume, persistence.name());
        work(&volume, &model, &mut random, 200);
        volume.flush().unwrap();
        drop(volume);
        let volume = open(&backing);
        assert_equal(&volume, &model, persistence.name());
        assert_fine(&volume, persistence.name());
    }
}

#[test]
fn a_volume_grows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let settings = small(BLOCKS, Policy::Full, Persistence::Thin);
    let before = Volume::backing_bytes_for(&settings);
    let file = Arc::new(FileBacking::create(&path, before).unwrap());
    let backing: Arc<dyn Backing> = file.clone();
    Volume::create(&*backing, &settings, None).unwrap();
    let volume = open(&backing);
    let model = RamDisk::new(settings.size_bytes as usize, 4096);
    let mut random = Random(4);
    work(&volume, &model, &mut random, 100);
    let larger = settings.size_bytes * 5;
    assert!(matches!(
        volume.grow(larger, before * 5),
        Err(VolumeError::Settings(_))
    ));
    file.grow(before * 5).unwrap();
    volume.grow(larger, before * 5).unwrap();
    assert!(matches!(
        volume.grow(larger - 4096, before * 5),
        Err(VolumeError::Settings(_))
    ));
    let wide = RamDisk::new(larger as usize, 4096);
    wide.write(0, &contents_of(&model)).unwrap();
    assert_equal(&volume, &wide, "grown");
    work(&volume, &wide, &mut random, 400);
    assert_fine(&volume, "grown");
    assert_eq!(volume.check(false).unwrap().not_in_index, 0);
    volume.flush().unwrap();
    // A second process does not get it while it is open.
    assert!(FileBacking::open(&path, true).is_err());
    drop(volume);
    let volume = open(&backing);
    assert_equal(&volume, &wide, "opened again");
    assert_fine(&volume, "opened again");
}

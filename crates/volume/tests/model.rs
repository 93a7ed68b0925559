//! Volumes against a plain array: every policy, every persistence, every sector.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use volume::backing::{Backing, MemoryBacking};
use volume::{BlockDevice, Persistence, Policy, RamDisk, Volume, VolumeError};

const BLOCKS: u64 = 600;

fn run(policy: Policy, persistence: Persistence, sector: u32, seed: u64, steps: usize) {
    let settings = volume::VolumeSettings {
        sector_bytes: sector,
        ..small(BLOCKS, policy, persistence)
    };
    let backing: Arc<dyn Backing> =
        Arc::new(MemoryBacking::new(Volume::backing_bytes_for(&settings)));
    Volume::create(&*backing, &settings, None).unwrap();
    let model = RamDisk::new(settings.size_bytes as usize, sector);
    let mut random = Random(seed);
    let name = format!(
        "{} {} {sector} seed {seed}",
        policy.name(),
        persistence.name()
    );
    let mut volume = open(&backing);
    for step in 0..steps {
        let operation = operation(&mut random, settings.size_bytes, u64::from(sector), 400);
        apply(&volume, &operation);
        apply(&model, &operation);
        let at = random.below(BLOCKS);
        let mut bytes = [vec![0; BLOCK], vec![0; BLOCK]];
        volume.read(at * BLOCK as u64, &mut bytes[0]).unwrap();
        model.read(at * BLOCK as u64, &mut bytes[1]).unwrap();
        assert_eq!(bytes[0], bytes[1], "{name}: block {at} after step {step}");
        if step % 397 == 396 {
            assert_equal(&volume, &model, &name);
            assert_fine(&volume, &name);
            if persistence != Persistence::Ram {
                volume.close().unwrap();
                drop(volume);
                volume = open(&backing);
                assert_eq!(volume.recovery().windows_replayed, 0, "{name}");
                assert_equal(&volume, &model, &format!("{name}, opened again"));
                assert_fine(&volume, &format!("{name}, opened again"));
            }
        }
    }
    let counters = volume.counters();
    if policy.is_full() {
        assert!(counters.duplicate_hits > 100, "{name}: {counters:?}");
    }
    if policy.has_journal() {
        assert!(counters.journal_hits > 10, "{name}: {counters:?}");
    }
}

#[test]
fn every_policy_and_persistence_is_an_array() {
    for policy in Policy::ALL {
        for persistence in Persistence::ALL {
            run(policy, persistence, 4096, 1, 1600);
        }
    }
}

#[test]
fn small_sectors_are_an_array() {
    for sector in [512, 1024] {
        for policy in [Policy::None, Policy::FullAndJournal] {
            run(policy, Persistence::Thin, sector, 2, 1600);
        }
    }
}

#[test]
fn extents_say_what_is_there() {
    let settings = small(2000, Policy::Full, Persistence::Thin);
    let backing: Arc<dyn Backing> =
        Arc::new(MemoryBacking::new(Volume::backing_bytes_for(&settings)));
    Volume::create(&*backing, &settings, None).unwrap();
    let volume = open(&backing);
    let model = RamDisk::new(settings.size_bytes as usize, 4096);
    let mut random = Random(5);
    for _ in 0..60 {
        let operation = operation(&mut random, settings.size_bytes, 4096, 100);
        apply(&volume, &operation);
        apply(&model, &operation);
    }
    for offset in [0, 4096, 40 * 4096] {
        let length = settings.size_bytes - offset;
        let found = volume.extents(offset, length, usize::MAX).unwrap();
        assert_eq!(found, model.extents(offset, length, usize::MAX).unwrap());
        let few = volume.extents(offset, length, 2).unwrap();
        assert_eq!(few[..], found[..2]);
    }
}

#[test]
fn a_full_store_says_so_and_loses_nothing() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        // A disk that promises four times what the store holds.
        let settings = small(4000, Policy::Full, persistence);
        let bytes = 1000 * BLOCK as u64;
        let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
        Volume::create(&*backing, &settings, Some(bytes)).unwrap();
        let volume = open(&backing);
        let model = RamDisk::new(settings.size_bytes as usize, 4096);
        let mut written = 0;
        for turn in 0..3u64 {
            let mut full = false;
            for lba in 0..4000 {
                let data = content((turn * 5000 + lba) * 8 + 5);
                match volume.write(lba * BLOCK as u64, &data) {
                    Ok(()) => model.write(lba * BLOCK as u64, &data).unwrap(),
                    Err(volume::DeviceError::Full(_)) => {
                        full = true;
                        written = lba;
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(full, "{}: it was never full", persistence.name());
            let enough = if turn == 0 { 700 } else { 100 };
            assert!(
                written > enough,
                "{}: full after {written} blocks",
                persistence.name()
            );
            volume.flush().unwrap();
            assert_equal(&volume, &model, persistence.name());
            assert_fine(&volume, persistence.name());
            // What is given back can be used again.
            volume.trim(0, written / 2 * BLOCK as u64).unwrap();
            model.trim(0, written / 2 * BLOCK as u64).unwrap();
            volume.flush().unwrap();
            assert_equal(&volume, &model, persistence.name());
        }
        volume.close().unwrap();
        assert_equal(&open(&backing), &model, persistence.name());
    }
}

#[test]
fn what_is_no_volume_is_told_apart() {
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(1 << 20));
    let error = Volume::open(Arc::clone(&backing), &options()).unwrap_err();
    assert!(matches!(error, VolumeError::NotAVolume(_)), "{error}");
    let short: Arc<dyn Backing> = Arc::new(MemoryBacking::new(100));
    let error = Volume::open(short, &options()).unwrap_err();
    assert!(matches!(error, VolumeError::NotAVolume(_)), "{error}");
    let settings = small(300, Policy::None, Persistence::Ram);
    let backing: Arc<dyn Backing> =
        Arc::new(MemoryBacking::new(Volume::backing_bytes_for(&settings)));
    Volume::create(&*backing, &settings, None).unwrap();
    let error = Volume::open(backing, &volume::OpenOptions::default()).unwrap_err();
    assert!(matches!(error, VolumeError::Settings(_)), "{error}");
}

#[test]
fn what_has_no_room_in_a_superblock_is_refused() {
    let store = 20 << 30;
    let backing = MemoryBacking::new(store);
    let settings = volume::VolumeSettings::new(210 << 40);
    let error = Volume::create(&backing, &settings, Some(store)).unwrap_err();
    assert!(matches!(error, VolumeError::Settings(_)), "{error}");
    let settings = small(BLOCKS, Policy::Full, Persistence::Thin);
    let bytes = Volume::backing_bytes_for(&settings);
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, &settings, None).unwrap();
    let volume = open(&backing);
    let error = volume.grow(210 << 40, bytes).unwrap_err();
    assert!(matches!(error, VolumeError::Settings(_)), "{error}");
    volume.write(0, &content(1)).unwrap();
}

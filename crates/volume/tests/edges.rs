//! Corners: what is only read, what was closed, what is large, what crashed halfway.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use volume::backing::{Backing, Event, MemoryBacking, RecordingBacking};
use volume::{BlockDevice, OpenOptions, Persistence, PinnedDisk, Policy, RamDisk, Volume};

fn store(settings: &volume::VolumeSettings, times: u64) -> (Arc<dyn Backing>, u64) {
    let bytes = times * Volume::backing_bytes_for(settings);
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, settings, Some(bytes)).unwrap();
    (backing, bytes)
}

fn write(volume: &Volume, lba: u64, id: u64) {
    volume.write(lba * BLOCK as u64, &content(id)).unwrap();
}

#[test]
fn a_generation_that_is_being_removed_leaves_older_ones_what_they_have() {
    let settings = small(400, Policy::Full, Persistence::Ordered);
    let bytes = 4 * Volume::backing_bytes_for(&settings);
    let memory = MemoryBacking::new(bytes);
    Volume::create(&memory, &settings, Some(bytes)).unwrap();
    let mut start = vec![0; 2 * BLOCK];
    memory.read_at(0, &mut start).unwrap();
    let recorder = RecordingBacking::new(memory);
    let volume = Volume::open(Arc::new(recorder.clone()), &options()).unwrap();
    for lba in 0..400 {
        write(&volume, lba, lba * 8);
    }
    let older = volume.pin().unwrap();
    let then = contents_of(&volume);
    write(&volume, 3, 70_000);
    let newer = volume.pin().unwrap();
    for lba in 0..200 {
        write(&volume, lba, 80_000 + lba * 8);
    }
    volume.flush().unwrap();
    let before = recorder.event_count();
    volume.unpin(newer).unwrap();
    drop(volume);
    let events = recorder.take_events();
    for done in before..=events.len() {
        let crashed = MemoryBacking::new(bytes);
        crashed.write_at(0, &start).unwrap();
        for event in &events[..done] {
            if let Event::Write { offset, data } = event {
                crashed.write_at(*offset, data).unwrap();
            }
        }
        let backing: Arc<dyn Backing> = Arc::new(crashed);
        let volume = Arc::new(open(&backing));
        let when = format!("after {done} events of {}", events.len());
        assert_fine(&volume, &when);
        for lba in 0..400 {
            write(&volume, lba, 90_000 + lba * 8);
        }
        volume.flush().unwrap();
        let pinned = PinnedDisk::new(Arc::clone(&volume), older).unwrap();
        assert!(contents_of(&pinned) == then, "{when}");
    }
}

#[test]
fn what_is_open_for_reading_is_not_written() {
    let settings = small(400, Policy::Full, Persistence::Thin);
    let bytes = 2 * Volume::backing_bytes_for(&settings);
    let memory = MemoryBacking::new(bytes);
    Volume::create(&memory, &settings, None).unwrap();
    let recorder = RecordingBacking::new(memory);
    let volume = Volume::open(Arc::new(recorder.clone()), &options()).unwrap();
    for lba in 0..400 {
        write(&volume, lba, lba);
    }
    let pinned = volume.pin().unwrap();
    volume.write_zeroes(0, 100 * BLOCK as u64).unwrap();
    volume.flush().unwrap();
    drop(volume);
    let _ = recorder.take_events();
    let options = OpenOptions {
        read_only: true,
        ..options()
    };
    let volume = Volume::open(Arc::new(recorder.clone()), &options).unwrap();
    assert!(volume.compact().is_err());
    assert!(volume.pin().is_err());
    assert!(volume.unpin(pinned).is_err());
    assert!(volume.grow(settings.size_bytes, bytes).is_err());
    volume.changed_ranges(pinned, None).unwrap();
    volume.check(true).unwrap();
    volume.flush().unwrap();
    volume.close().unwrap();
    assert_eq!(recorder.take_events(), []);
}

#[test]
fn what_is_written_after_closing_is_not_lost() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let (backing, _) = store(&small(400, Policy::Full, persistence), 1);
        let volume = open(&backing);
        for lba in 0..400 {
            write(&volume, lba, lba * 8);
        }
        volume.flush().unwrap();
        volume.close().unwrap();
        for lba in 0..100 {
            write(&volume, lba, 50_000 + lba * 8);
        }
        volume.flush().unwrap();
        let wanted = contents_of(&volume);
        drop(volume);
        let volume = open(&backing);
        assert_fine(&volume, persistence.name());
        assert!(contents_of(&volume) == wanted, "{}", persistence.name());
    }
}

#[test]
fn compaction_leaves_pinned_blocks_where_they_are() {
    let (backing, _) = store(&small(1500, Policy::Full, Persistence::Thin), 4);
    let volume = open(&backing);
    for lba in 0..1500 {
        write(&volume, lba, lba * 8);
    }
    for lba in (0..1500).filter(|lba| lba % 3 != 0) {
        volume.trim(lba * BLOCK as u64, BLOCK as u64).unwrap();
    }
    volume.pin().unwrap();
    let before = volume.usage();
    let done = volume.compact().unwrap();
    assert_eq!(done.blocks_moved, 0, "{done:?}");
    assert!(volume.usage().data_blocks <= before.data_blocks);
    assert_fine(&volume, "compacted");
}

#[test]
fn a_block_with_many_references_is_moved() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let (backing, _) = store(&small(20_000, Policy::Full, persistence), 1);
        let volume = open(&backing);
        for lba in 0..250 {
            write(&volume, lba, lba * 8);
        }
        for lba in 500..20_000 {
            write(&volume, lba, 5);
        }
        for lba in 250..500 {
            write(&volume, lba, lba * 8);
        }
        volume.trim(0, 500 * BLOCK as u64).unwrap();
        for lba in 1..20 {
            write(&volume, lba, lba * 8);
        }
        volume.flush().unwrap();
        let wanted = contents_of(&volume);
        volume.compact().unwrap();
        assert_fine(&volume, persistence.name());
        assert!(contents_of(&volume) == wanted);
        drop(volume);
        let volume = open(&backing);
        assert_fine(&volume, persistence.name());
        assert!(contents_of(&volume) == wanted);
    }
}

#[test]
fn reading_keeps_to_the_cache() {
    let settings = volume::VolumeSettings {
        window_blocks: 64,
        zone_blocks: 1024,
        ..small(400_000, Policy::None, Persistence::Cow)
    };
    let (backing, _) = store(&settings, 1);
    let volume = open(&backing);
    for lba in (0..400_000).step_by(250) {
        write(&volume, lba, 6);
    }
    volume.close().unwrap();
    drop(volume);
    let options = OpenOptions {
        cache_bytes: 1 << 18,
        read_only: true,
        ..options()
    };
    let volume = Volume::open(Arc::clone(&backing), &options).unwrap();
    let before = volume.usage().memory_bytes;
    let mut bytes = vec![0; 64 * BLOCK];
    for lba in (0..400_000).step_by(250) {
        volume
            .read(lba * BLOCK as u64, &mut bytes[..BLOCK])
            .unwrap();
    }
    let after = volume.usage().memory_bytes;
    assert!(after - before < 1 << 19, "{before} {after}");
}

#[test]
fn a_full_volume_opens_after_a_crash() {
    for persistence in [Persistence::Ordered, Persistence::Thin, Persistence::Cow] {
        let settings = volume::VolumeSettings {
            window_blocks: 1,
            zone_blocks: 16,
            ..small(20_000, Policy::Full, persistence)
        };
        let bytes = 18_000 * BLOCK as u64;
        let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
        Volume::create(&*backing, &settings, Some(bytes)).unwrap();
        let options = OpenOptions {
            cache_bytes: 1,
            ..options()
        };
        let volume = Volume::open(Arc::clone(&backing), &options).unwrap();
        let mut full = false;
        for lba in 0..20_000 {
            let at = lba * 7919 % 20_000;
            match volume.write(at * BLOCK as u64, &content(lba * 8 + 5)) {
                Ok(()) => {}
                Err(volume::DeviceError::Full(_)) => {
                    full = true;
                    break;
                }
                Err(error) => panic!("{}: {error}", persistence.name()),
            }
        }
        assert!(full);
        volume.flush().unwrap();
        let wanted = contents_of(&volume);
        drop(volume);
        let volume = Volume::open(Arc::clone(&backing), &options)
            .unwrap_or_else(|error| panic!("{}: {error}", persistence.name()));
        assert!(contents_of(&volume) == wanted, "{}", persistence.name());
        assert_fine(&volume, persistence.name());
    }
}

#[test]
fn a_full_store_survives_compaction() {
    let settings = volume::VolumeSettings {
        window_blocks: 1,
        ..small(4000, Policy::Full, Persistence::Thin)
    };
    let bytes = 1500 * BLOCK as u64;
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, &settings, Some(bytes)).unwrap();
    let volume = open(&backing);
    let model = RamDisk::new(settings.size_bytes as usize, 4096);
    let mut written = 0;
    while written < 4000 {
        let data = content(written * 8);
        match volume.write(written * BLOCK as u64, &data) {
            Ok(()) => model.write(written * BLOCK as u64, &data).unwrap(),
            Err(volume::DeviceError::Full(_)) => break,
            Err(error) => panic!("{error}"),
        }
        written += 1;
    }
    for lba in (0..written).filter(|lba| lba % 2 == 0) {
        volume.trim(lba * BLOCK as u64, BLOCK as u64).unwrap();
        model.trim(lba * BLOCK as u64, BLOCK as u64).unwrap();
    }
    volume.flush().unwrap();
    volume.compact().unwrap();
    assert_equal(&volume, &model, "compacted");
    assert_fine(&volume, "compacted");
    volume.flush().unwrap();
}

#[test]
fn a_full_store_is_trimmed() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let settings = volume::VolumeSettings {
            window_blocks: 1,
            zone_blocks: 16,
            ..small(20_000, Policy::Full, persistence)
        };
        let bytes = 18_000 * BLOCK as u64;
        let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
        Volume::create(&*backing, &settings, Some(bytes)).unwrap();
        let options = OpenOptions {
            cache_bytes: 1,
            ..options()
        };
        let volume = Volume::open(Arc::clone(&backing), &options).unwrap();
        let write = |lba: u64| {
            let at = lba * 7919 % 20_000;
            volume.write(at * BLOCK as u64, &content(lba * 8 + 5))
        };
        assert!((0..20_000).any(|lba| write(lba).is_err()));
        volume.flush().unwrap();
        volume.trim(0, settings.size_bytes).unwrap();
        volume.flush().unwrap();
        assert_fine(&volume, persistence.name());
    }
}

#[test]
fn a_large_empty_disk_is_looked_over_by_pages() {
    let settings = volume::VolumeSettings::new(1 << 40);
    let bytes = 256 << 20;
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, &settings, Some(bytes)).unwrap();
    let volume = open(&backing);
    // In the open window: block by block this would take 268 million steps.
    volume.write(1 << 39, &content(1)).unwrap();
    volume.write_zeroes(1 << 38, 1 << 20).unwrap();
    let found = volume.extents(0, 1 << 40, usize::MAX).unwrap();
    let lengths: Vec<u64> = found.iter().map(|extent| extent.length_bytes).collect();
    assert_eq!(lengths, [1 << 39, 4096, (1 << 39) - 4096]);
}

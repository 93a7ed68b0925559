//! However full a store is: a write is taken and kept, or refused and not taken.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use volume::backing::{Backing, MemoryBacking};
use volume::{BlockDevice, DeviceError, OpenOptions, Persistence, Policy, RamDisk, Volume};

fn run(seed: u64, pins: bool) -> Result<(), String> {
    let mut random = Random(seed);
    let persistence =
        [Persistence::Thin, Persistence::Ordered, Persistence::Cow][random.below(3) as usize];
    let policy = [Policy::None, Policy::Full][random.below(2) as usize];
    let zone_blocks = 16 << random.below(3);
    let settings = volume::VolumeSettings {
        zone_blocks,
        window_blocks: [1, 4, 16, 64, 256, 1024][random.below(6) as usize],
        commit_zones: 1 + random.below(3) as u32,
        ..small(6000, policy, persistence)
    };
    let bytes = (1000 + random.below(2000)) / u64::from(zone_blocks)
        * u64::from(zone_blocks)
        * BLOCK as u64;
    let name = format!(
        "seed {seed}: {} {} zone {zone_blocks} window {} commit {} blocks {}",
        policy.name(),
        persistence.name(),
        settings.window_blocks,
        settings.commit_zones,
        bytes / 4096
    );
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, &settings, Some(bytes)).unwrap();
    let options = OpenOptions {
        cache_bytes: [1, 1 << 19, 1 << 20][random.below(3) as usize],
        ..options()
    };
    let mut volume = Volume::open(Arc::clone(&backing), &options).unwrap();
    let model = RamDisk::new(settings.size_bytes as usize, 4096);
    let kind = random.below(3);
    let mut fulls = 0;
    let mut pinned = Vec::new();
    let mut next = 0;
    for step in 0..6000u64 {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            format!("{name}: step {step}, {fulls} times full: {what}: {error}")
        };
        match random.below(if fulls > 0 { 40 } else { 400 }) {
            0 => volume.flush().map_err(|error| failed("flush", &error))?,
            1 => {
                let start = random.below(5900);
                let length = 1 + random.below(60);
                volume
                    .trim(start * 4096, length * 4096)
                    .map_err(|error| failed("trim", &error))?;
                model.trim(start * 4096, length * 4096).unwrap();
            }
            2 if pins && random.below(4) == 0 => match volume.pin() {
                Ok(number) => pinned.push(number),
                Err(volume::VolumeError::Full(_)) => {}
                Err(error) => return Err(failed("pin", &error)),
            },
            3 if pins && !pinned.is_empty() && random.below(6) == 0 => {
                let number = pinned.remove(random.below(pinned.len() as u64) as usize);
                volume
                    .unpin(number)
                    .map_err(|error| failed("unpin", &error))?;
            }
            4 if random.below(10) == 0 => {
                if random.below(2) == 0 {
                    volume.close().map_err(|error| failed("close", &error))?;
                } else {
                    volume.flush().map_err(|error| failed("flush", &error))?;
                }
                drop(volume);
                volume = Volume::open(Arc::clone(&backing), &options)
                    .map_err(|error| failed("open", &error))?;
            }
            5 if random.below(20) == 0 => match volume.compact() {
                Ok(_) => {}
                Err(error) => return Err(failed("compact", &error)),
            },
            _ => {
                let lba = if kind == 0 {
                    next % 6000
                } else {
                    random.below(6000)
                };
                next += 1;
                let id = match kind {
                    1 => random.below(20_000) * 8,
                    _ => (step + 1) * 8 + 5 + random.below(2),
                };
                let data = content(id);
                match volume.write(lba * 4096, &data) {
                    Ok(()) => model.write(lba * 4096, &data).unwrap(),
                    Err(DeviceError::Full(_)) => {
                        fulls += 1;
                    }
                    Err(error) => return Err(failed("write", &error)),
                }
            }
        }
    }
    volume
        .flush()
        .map_err(|error| format!("{name}: last flush: {error}"))?;
    assert_equal(&volume, &model, &name);
    assert_fine(&volume, &name);
    volume
        .close()
        .map_err(|error| format!("{name}: close: {error}"))?;
    drop(volume);
    let volume = Volume::open(Arc::clone(&backing), &options)
        .map_err(|error| format!("{name}: last open: {error}"))?;
    assert_equal(&volume, &model, &name);
    Ok(())
}

fn seeds(pins: bool) {
    let count = std::env::var("SEEDS").map_or(40, |count| count.parse().unwrap());
    let errors: Vec<String> = (0..count)
        .filter_map(|seed| run(seed, pins).err())
        .collect();
    assert!(
        errors.is_empty(),
        "{} of {count}:\n{}",
        errors.len(),
        errors.join("\n")
    );
}

#[test]
fn nothing_that_was_taken_is_lost_for_want_of_room() {
    seeds(false);
}

#[test]
fn nothing_that_was_taken_is_lost_for_want_of_room_with_pins() {
    seeds(true);
}

//! Volumes whose stored bytes are not what a volume wrote: whatever they say, nothing panics, and nothing
//! takes more memory than the volume's size explains.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use volume::backing::{Backing, MemoryBacking};
use volume::page::{PageBytes, PageIdentity, first_damaged_sector, seal};
use volume::{BlockDevice, OpenOptions, Persistence, PinnedDisk, Policy, RamDisk, Volume};

const BLOCKS: u64 = 700;

/// The bytes of a volume in use, with two pinned generations; `closed` or as after a crash.
fn image(persistence: Persistence, closed: bool) -> Vec<u8> {
    let settings = small(BLOCKS, Policy::FullAndJournal, persistence);
    let bytes = Volume::backing_bytes_for(&settings);
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(bytes));
    Volume::create(&*backing, &settings, None).unwrap();
    let volume = open(&backing);
    let mut random = Random(9);
    for step in 0..150 {
        apply(
            &volume,
            &operation(&mut random, settings.size_bytes, 4096, 300),
        );
        if step == 40 || step == 90 {
            volume.pin().unwrap();
        }
    }
    volume.flush().unwrap();
    if closed {
        volume.close().unwrap();
    }
    let mut image = vec![0; bytes as usize];
    backing.read_at(0, &mut image).unwrap();
    image
}

/// Blocks that are pages of tables, and which.
fn pages(image: &[u8]) -> Vec<(usize, PageIdentity)> {
    let mut found = Vec::new();
    for (block, bytes) in image.chunks_exact(BLOCK).enumerate() {
        let page: &PageBytes = bytes.try_into().unwrap();
        if page.iter().all(|&byte| byte == 0) {
            continue;
        }
        let identities =
            (4..=20u8).flat_map(|table| (0..40).map(move |page| PageIdentity { table, page }));
        found.extend(
            identities
                .filter(|identity| first_damaged_sector(*identity, page).is_none())
                .map(|identity| (block, identity)),
        );
    }
    found
}

/// Uses a volume in every way; errors are fine.
fn use_it(image: &[u8], read_only: bool) {
    let backing: Arc<dyn Backing> = Arc::new(MemoryBacking::new(image.len() as u64));
    backing.write_at(0, image).unwrap();
    let options = OpenOptions {
        read_only,
        ..options()
    };
    let Ok(volume) = Volume::open(backing, &options) else {
        return;
    };
    let volume = Arc::new(volume);
    let _ = volume.check(true);
    let mut bytes = vec![0; BLOCK * 10];
    for at in (0..BLOCKS - 10).step_by(10) {
        let _ = volume.read(at * BLOCK as u64, &mut bytes);
    }
    let _ = volume.extents(0, BLOCKS * BLOCK as u64, 1000);
    for generation in volume.generations() {
        let _ = volume.changed_ranges(generation.number, None);
        if let Ok(pinned) = PinnedDisk::new(Arc::clone(&volume), generation.number) {
            let _ = pinned.read(0, &mut bytes);
        }
    }
    let model = RamDisk::new((BLOCKS * BLOCK as u64) as usize, 4096);
    let mut random = Random(image[77].into());
    for _ in 0..20 {
        match operation(&mut random, model.geometry().size_bytes, 4096, 300) {
            Operation::Write { offset, data } => drop(volume.write(offset, &data)),
            Operation::Zero { offset, length } => drop(volume.write_zeroes(offset, length)),
            Operation::Flush => drop(volume.flush()),
        }
    }
    let _ = volume.flush();
    let _ = volume.compact();
    let _ = volume.pin();
    for generation in volume.generations() {
        let _ = volume.unpin(generation.number);
    }
    let _ = volume.close();
}

#[test]
fn pages_that_say_anything() {
    for persistence in [Persistence::Thin, Persistence::Ordered, Persistence::Cow] {
        let whole = image(persistence, persistence != Persistence::Ordered);
        let pages = pages(&whole);
        assert!(pages.len() > 20, "{}", pages.len());
        let mut random = Random(3);
        for turn in 0..250 {
            let mut image = whole.clone();
            for _ in 0..=random.below(2) {
                let (block, identity) = pages[random.below(pages.len() as u64) as usize];
                let page: &mut PageBytes = (&mut image[block * BLOCK..(block + 1) * BLOCK])
                    .try_into()
                    .unwrap();
                for _ in 0..=random.below(30) {
                    let at = random.below(BLOCK as u64 - 8) as usize;
                    let value = match random.below(3) {
                        0 => random.bits(),
                        1 => random.below(2000),
                        _ => random.below(2000) | random.below(4) << 40,
                    };
                    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
                }
                seal(identity, page);
            }
            use_it(&image, turn % 4 == 0);
        }
    }
}

#[test]
fn bytes_that_changed() {
    for closed in [false, true] {
        let whole = image(Persistence::Thin, closed);
        let mut random = Random(4);
        for turn in 0..150 {
            let mut image = whole.clone();
            for _ in 0..=random.below(200) {
                let at = random.below(image.len() as u64) as usize;
                image[at] = random.bits() as u8;
            }
            if turn % 5 == 0 {
                image.truncate(image.len() / 2);
            }
            use_it(&image, turn % 4 == 0);
        }
    }
}

//! When the finder looks, and what it says then.

use super::super::sample::{DESCRIPTORS, INODE, INODES, ROOT, SUPERBLOCK, Sample};
use super::*;

/// Writes a block that was changed in the sample, and flushes.
fn write(finder: &mut JournalFinder, sample: &Sample, block: u64) -> Option<String> {
    finder.on_write(block, sample.block(block));
    flush(finder, sample)
}

fn flush(finder: &mut JournalFinder, sample: &Sample) -> Option<String> {
    let change = finder.on_flush(sample.read());
    change.map(|ranges| ranges.to_string())
}

fn finder(sample: &Sample) -> JournalFinder {
    let size_bytes = sample.bytes.len() as u64;
    JournalFinder::new(&JournalSetting::Auto, size_bytes).unwrap()
}

#[test]
fn a_file_system_that_is_made_piece_by_piece_is_found_when_it_is_whole() {
    let whole = Sample::with_extents(&[(100, 50)]);
    let mut disk = Sample::empty();
    let mut finder = finder(&disk);
    assert_eq!(flush(&mut finder, &disk), None);
    assert!(!finder.is_stale());
    for (block, change, has_problem) in [
        (0, None, true),
        (7, None, true),
        (DESCRIPTORS, None, true),
        (INODES, Some("100-149"), false),
    ] {
        let at = block as usize * 4096;
        disk.bytes[at..at + 4096].copy_from_slice(whole.block(block));
        let found = write(&mut finder, &disk, block);
        assert_eq!(found.as_deref(), change, "block {block}");
        assert_eq!(finder.problem().is_some(), has_problem, "block {block}");
    }
    assert!(finder.ranges().contains(149) && !finder.ranges().contains(150));
}

#[test]
fn changes_of_what_was_read_are_looked_at_and_others_are_not() {
    let mut disk = Sample::with_extents(&[(100, 50)]);
    let mut finder = finder(&disk);
    assert_eq!(flush(&mut finder, &disk).as_deref(), Some("100-149"));
    let nothing = |_: u64, _: &mut [u8]| panic!("nothing is to be read");
    // Free blocks, mount time, the bit of recovery; a descriptor's counters; an inode's times; a
    // neighbour's size.
    for at in [
        SUPERBLOCK + 12,
        SUPERBLOCK + 44,
        DESCRIPTORS as usize * 4096 + 12,
        INODE + 8,
        INODE - 256 + 4,
    ] {
        disk.put32(at, 77);
        finder.on_write(at as u64 / 4096, disk.block(at as u64 / 4096));
        assert_eq!(finder.on_flush(nothing), None, "{at}");
    }
    disk.put32(SUPERBLOCK + 96, 0x44);
    finder.on_write(0, disk.block(0));
    assert_eq!(finder.on_flush(nothing), None);

    disk.put32(ROOT + 12 + 8, 300);
    assert_eq!(
        write(&mut finder, &disk, INODES).as_deref(),
        Some("300-349")
    );
    disk.put32(SUPERBLOCK + 104, 5);
    finder.on_write(0, disk.block(0));
    assert!(finder.is_stale(), "another uuid is another file system");
    assert_eq!(flush(&mut finder, &disk), None);
    disk.put32(SUPERBLOCK + 92, 0);
    assert_eq!(write(&mut finder, &disk, 0).as_deref(), Some(""));
    assert!(finder.problem().is_none());
}

#[test]
fn writes_of_many_blocks_and_zeros_are_compared_as_well() {
    let disk = Sample::with_extents(&[(100, 50)]);
    let mut finder = finder(&disk);
    flush(&mut finder, &disk);
    let before = (INODES - 3) * 4096;
    let mut data = disk.bytes[before as usize..][..6 * 4096].to_vec();
    finder.on_write(INODES - 3, &data);
    assert!(!finder.is_stale());
    data[INODE - before as usize + 4] ^= 1;
    finder.on_write(INODES + 1, &data);
    assert!(!finder.is_stale());
    finder.on_write(INODES - 3, &data);
    assert!(finder.is_stale());

    for (zeroes, is_stale) in [(2..INODES, false), (0..1, true), (INODES..u64::MAX, true)] {
        flush(&mut finder, &disk);
        finder.on_zeroes(zeroes.clone());
        assert_eq!(finder.is_stale(), is_stale, "{zeroes:?}");
    }
    // A piece of a block is not enough to compare.
    flush(&mut finder, &disk);
    finder.on_write(INODES, &disk.block(INODES)[..512]);
    assert!(finder.is_stale());
}

#[test]
fn a_read_that_fails_keeps_the_ranges_and_is_tried_again() {
    let mut disk = Sample::with_extents(&[(100, 50)]);
    let mut finder = finder(&disk);
    flush(&mut finder, &disk);
    disk.put32(ROOT + 12 + 8, 300);
    finder.on_write(INODES, disk.block(INODES));
    let failing = |_: u64, _: &mut [u8]| Err(DeviceError::Damaged("a test".to_owned()));
    assert_eq!(finder.on_flush(failing), None);
    assert_eq!(finder.ranges().to_string(), "100-149");
    assert!(matches!(finder.problem(), Some(JournalError::Read(_))));
    assert_eq!(flush(&mut finder, &disk).as_deref(), Some("300-349"));
    assert!(finder.problem().is_none());
}

#[test]
fn a_journal_that_is_damaged_is_none_until_it_is_mended() {
    let mut disk = Sample::with_extents(&[(100, 50)]);
    let mut finder = finder(&disk);
    flush(&mut finder, &disk);
    disk.put16(ROOT, 0);
    assert_eq!(write(&mut finder, &disk, INODES).as_deref(), Some(""));
    assert!(matches!(
        finder.problem(),
        Some(JournalError::Damaged { .. })
    ));
    disk.put16(ROOT, 0xF30A);
    assert_eq!(
        write(&mut finder, &disk, INODES).as_deref(),
        Some("100-149")
    );
}

#[test]
fn a_disk_that_grows_is_looked_at_again() {
    let disk = Sample::with_extents(&[(100, 50)]);
    let mut finder = JournalFinder::new(&JournalSetting::Auto, 500 * 4096).unwrap();
    assert_eq!(flush(&mut finder, &disk), None);
    assert!(finder.problem().is_some());
    finder.on_resize(disk.bytes.len() as u64);
    assert_eq!(flush(&mut finder, &disk).as_deref(), Some("100-149"));
}

#[test]
fn what_the_operator_says_is_not_looked_for() {
    let nothing = |_: u64, _: &mut [u8]| panic!("nothing is to be read");
    for (setting, ranges) in [("off", ""), ("external", "0-9"), ("3-4", "3-4")] {
        let mut finder = JournalFinder::new(&setting.parse().unwrap(), 40960).unwrap();
        finder.on_write(0, &[1; 4096]);
        finder.on_zeroes(0..10);
        assert_eq!(finder.on_flush(nothing), None);
        assert_eq!(finder.ranges().to_string(), ranges);
        finder.on_resize(81920);
        assert_eq!(finder.on_flush(nothing), None);
    }
    assert!(JournalFinder::new(&"3-10".parse().unwrap(), 40960).is_err());
}

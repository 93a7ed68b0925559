//! Journals of real file systems, block by block as `debugfs` lists them.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod journal_images;

use journal_images::{Image, JOURNALLED, reader, tools_are_there};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use volume::journal::{JournalRanges, find_ext_journal};

fn found(bytes: &[u8]) -> Option<JournalRanges> {
    find_ext_journal(reader(bytes), bytes.len() as u64).unwrap()
}

fn blocks(ranges: &JournalRanges) -> Vec<u64> {
    ranges
        .iter()
        .flat_map(|range| range.first..range.end)
        .collect()
}

#[test]
fn journals_are_where_debugfs_says() {
    if !tools_are_there() {
        return;
    }
    for (name, arguments, mebibytes) in JOURNALLED {
        let image = Image::new(arguments, *mebibytes);
        let ranges = image.find().unwrap().expect(name);
        let expected = image.journal_blocks();
        println!(
            "{name}: {} ranges, {} blocks",
            ranges.iter().len(),
            ranges.blocks()
        );
        assert!(
            expected.len() >= 250,
            "{name}: debugfs lists {}",
            expected.len()
        );
        assert_eq!(blocks(&ranges), expected, "{name}");
    }
}

#[test]
fn journals_in_many_pieces_are_found_whole() {
    if !tools_are_there() {
        return;
    }
    for (name, arguments, mebibytes, journal, blocks_per_group, block_kib, gap, pieces) in [
        (
            "extents in the inode",
            "-t ext4 -b 4096",
            128,
            "16",
            32768,
            4,
            1500,
            2,
        ),
        (
            "extents, one level",
            "-t ext4 -b 4096",
            128,
            "8",
            32768,
            4,
            2,
            1000,
        ),
        (
            "extents, two levels",
            "-t ext4 -b 1024",
            64,
            "8",
            8192,
            1,
            6,
            600,
        ),
        ("map, 4 KiB", "-t ext3 -b 4096", 128, "8", 32768, 4, 2, 1000),
        ("map, 1 KiB", "-t ext3 -b 1024", 64, "8", 8192, 1, 6, 600),
    ] {
        let image = Image::new(arguments, mebibytes);
        image.scatter_journal(journal, blocks_per_group, mebibytes * 1024 / block_kib, gap);
        let ranges = image.find().unwrap().expect(name);
        println!(
            "{name}: {} ranges, {} blocks",
            ranges.iter().len(),
            ranges.blocks()
        );
        assert!(
            ranges.iter().len() >= pieces,
            "{name}: {}",
            ranges.iter().len()
        );
        assert_eq!(blocks(&ranges), image.journal_blocks(), "{name}");
    }
}

#[test]
fn no_journal_is_none_and_a_journal_device_is_all() {
    if !tools_are_there() {
        return;
    }
    for arguments in ["-t ext2", "-t ext4 -O ^has_journal"] {
        assert_eq!(
            found(&Image::new(arguments, 32).bytes()),
            None,
            "{arguments}"
        );
    }
    for block_bytes in ["1024", "4096"] {
        let arguments = format!("-O journal_dev -b {block_bytes}");
        let device = Image::new(&arguments, 32);
        let ranges = found(&device.bytes()).unwrap();
        assert_eq!(ranges.to_string(), "0-8191");
        // A file system that has its journal there, as if it were mounted with it.
        let image = Image::new(&format!("-t ext4 -O ^has_journal -b {block_bytes}"), 32);
        image.debug("feature has_journal\nssv journal_inum 0\n");
        assert_eq!(found(&image.bytes()), None);
    }
    let mut raw = vec![0; 1 << 20];
    assert_eq!(found(&raw), None);
    raw[..8].copy_from_slice(&[0xC0, 0x3B, 0x39, 0x98, 0, 0, 0, 4]);
    assert_eq!(found(&raw).unwrap().blocks(), 256);
    for length in [0, 512, 1024, 2048, 3584] {
        assert_eq!(found(&raw[8..][..length]), None);
    }
}

/// Where bytes of a lookup are: superblock and descriptors, the inode, and the blocks of its tree.
fn metadata(image: &Image, bytes: &[u8]) -> Vec<usize> {
    let mut read = Vec::new();
    let all = bytes.len() as u64;
    let answer = find_ext_journal(
        |offset, buffer| {
            read.extend(offset as usize..offset as usize + buffer.len());
            reader(bytes)(offset, buffer)
        },
        all,
    );
    assert_eq!(
        answer.unwrap().unwrap().blocks(),
        image.journal_blocks().len() as u64
    );
    read
}

#[test]
fn damaged_file_systems_give_answers_within_the_disk() {
    if !tools_are_there() {
        return;
    }
    let tree = Image::new("-t ext4 -b 1024", 32);
    tree.scatter_journal("4", 8192, 32 * 1024, 6);
    let map = Image::new("-t ext3 -b 1024", 32);
    let whole = Image::new("-t ext4 -b 4096", 32);
    for image in [&tree, &map, &whole] {
        let bytes = image.bytes();
        let touched = metadata(image, &bytes);
        let superblock: Vec<usize> = (1024..1024 + 340).collect();
        // Single bytes anywhere that was read, often in the superblock, and lengths cut short.
        let byte = prop_oneof![
            prop::sample::select(superblock),
            prop::sample::select(touched)
        ];
        let mutations = prop::collection::vec((byte, any::<u8>()), 1..12);
        let mut runner = TestRunner::new(Config {
            cases: 1500,
            failure_persistence: None,
            ..Config::default()
        });
        let mut disk = std::cell::RefCell::new(bytes.clone());
        let result = runner.run(&(mutations, any::<u16>()), |(mutations, cut)| {
            let mut disk = disk.borrow_mut();
            for (at, value) in &mutations {
                disk[*at] = *value;
            }
            let length = if cut % 4 == 0 {
                usize::from(cut) * 512
            } else {
                disk.len()
            };
            let length = length.min(disk.len());
            if let Ok(Some(ranges)) = find_ext_journal(reader(&disk[..length]), length as u64) {
                let end = ranges.iter().last().map_or(0, |range| range.end);
                prop_assert!(end * 4096 <= length as u64);
            }
            for (at, _) in &mutations {
                disk[*at] = bytes[*at];
            }
            Ok(())
        });
        result.unwrap();
        assert!(*disk.get_mut() == bytes, "every change was taken back");
    }
}

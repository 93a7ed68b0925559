//! Lookups in a small file system made by hand: what is refused, and what it costs.

use super::super::sample::{BLOCKS, DESCRIPTORS, INODE, ROOT, SUPERBLOCK, Sample};
use super::*;

fn find(sample: &Sample) -> Result<Option<JournalRanges>, JournalError> {
    find_ext_journal(sample.read(), sample.bytes.len() as u64)
}

#[test]
fn extents_are_found_initialised_or_not() {
    let sample = Sample::with_extents(&[(100, 50), (150, 10), (90, 5)]);
    assert_eq!(find(&sample).unwrap().unwrap().to_string(), "90-94,100-159");
    let mut kept = Sample::with_extents(&[(100, 50)]);
    kept.put16(ROOT + 12 + 4, 32768 + 50);
    assert_eq!(find(&kept).unwrap().unwrap().to_string(), "100-149");
}

#[test]
fn what_is_missing_is_said() {
    let sample = Sample::with_extents(&[(100, 50)]);
    for at in [
        INODE,
        INODE + 4,
        INODE + 26,
        DESCRIPTORS as usize * 4096 + 8,
    ] {
        let mut missing = sample.clone();
        missing.put16(at, 0);
        missing.put16(at + 2, 0);
        let error = find(&missing).unwrap_err();
        assert!(
            matches!(error, JournalError::Missing { inode: 8 }),
            "{error}"
        );
    }
}

#[test]
fn damage_is_named_by_its_place() {
    let sample = Sample::with_extents(&[(100, 50), (200, 10)]);
    let superblock = SUPERBLOCK as u64;
    let root = ROOT as u64;
    for (at, value, offset, what) in [
        (SUPERBLOCK + 24, 7, superblock, "block size"),
        (
            SUPERBLOCK + 4,
            BLOCKS as u16 + 1,
            superblock,
            "larger than the disk",
        ),
        (SUPERBLOCK + 40, 0, superblock, "no inodes"),
        (SUPERBLOCK + 88, 300, superblock, "size of an inode"),
        (SUPERBLOCK + 88, 64, superblock, "size of an inode"),
        (SUPERBLOCK + 96, 0x80, superblock, "group descriptor"),
        (
            DESCRIPTORS as usize * 4096 + 8,
            1024,
            4096,
            "the file system has not",
        ),
        (INODE, 0x4180, INODE as u64, "another kind"),
        (INODE + 4, 8192, INODE as u64, ""),
        (INODE + 108, 1, INODE as u64, "fewer blocks"),
        (ROOT, 1, root, "no node"),
        (ROOT + 2, 5, root, "too many entries"),
        (ROOT + 6, 6, root, "no node"),
        (ROOT + 12, 1, root + 12, "does not follow"),
        (ROOT + 24, 49, root + 24, "does not follow"),
        (ROOT + 24 + 4, 0, root + 24, "does not follow"),
        (ROOT + 24 + 6, 1, root + 24, "the file system has not"),
        (ROOT + 24 + 8, 1015, root + 24, "the file system has not"),
        (ROOT + 24 + 8, 0, root + 24, "the file system has not"),
    ] {
        let mut damaged = sample.clone();
        damaged.put16(at, value);
        match find(&damaged) {
            Err(JournalError::Damaged {
                offset: found,
                what: said,
            }) => {
                assert_eq!(found, offset, "{said}");
                assert!(said.contains(what), "{what}: {said}");
            }
            // Less than is allocated is no damage.
            Ok(Some(_)) if what.is_empty() => {}
            other => panic!("{what}: {other:?}"),
        }
    }
    let mut inline = sample.clone();
    inline.put32(INODE + 32, 0x1008_0000);
    assert!(matches!(find(&inline), Err(JournalError::Damaged { .. })));
}

#[test]
fn inodes_outside_of_the_first_meta_group_are_refused() {
    let mut sample = Sample::with_extents(&[(100, 50)]);
    sample.put32(SUPERBLOCK + 96, 0x10);
    assert_eq!(find(&sample).unwrap().unwrap().to_string(), "100-149");
    sample.put32(SUPERBLOCK + 224, 8 * 128 + 1);
    let error = find(&sample).unwrap_err();
    assert!(matches!(error, JournalError::Unsupported(_)), "{error}");
}

#[test]
fn trees_that_refer_to_one_block_over_and_over_cost_little() {
    // Every node has 340 entries, all of the same node below it: 340^5 leaves.
    let mut sample = Sample::with_extents(&[(100, 50)]);
    let node_of = |depth: u16| 500 + u32::from(depth);
    sample.put_node(ROOT, 1, 5);
    sample.put32(ROOT + 12 + 4, node_of(4));
    sample.put32(ROOT + 12 + 8, 0);
    for depth in 0..5_u16 {
        let at = node_of(depth) as usize * 4096;
        sample.put_node(at, if depth == 0 { 0 } else { 340 }, depth);
        for index in 1..=340 {
            sample.put32(at + index * 12 + 4, node_of(depth.saturating_sub(1)));
        }
    }
    let mut read_bytes = 0;
    let mut read = sample.read();
    let counted = |offset, buffer: &mut [u8]| {
        read_bytes += buffer.len();
        read(offset, buffer)
    };
    let error = find_ext_journal(counted, sample.bytes.len() as u64).unwrap_err();
    assert!(matches!(error, JournalError::Unsupported(_)), "{error}");
    assert!(read_bytes <= 16 << 20);

    // A map whose blocks of numbers refer to themselves, of a journal as long as there may be.
    let mut map = Sample::with_extents(&[(100, 50)]);
    map.put_inode(u32::MAX, 0);
    for index in 0..1024 {
        map.put32(500 * 4096 + index * 4, 500);
    }
    for index in 0..15 {
        map.put32(ROOT + index * 4, 500);
    }
    for high in [0, 1] {
        map.put32(INODE + 108, high);
        let error = find(&map).unwrap_err();
        assert!(matches!(error, JournalError::Unsupported(_)), "{error}");
    }
}

#[test]
fn a_hole_in_a_map_is_damage() {
    let mut map = Sample::with_extents(&[(100, 50)]);
    map.put_inode(20 * 4096, 0);
    for index in 0..12 {
        map.put32(ROOT + index * 4, 600 + index as u32);
    }
    map.put32(ROOT + 48, 700);
    for index in 0..8 {
        map.put32(700 * 4096 + index * 4, 800 + index as u32);
    }
    assert_eq!(find(&map).unwrap().unwrap().to_string(), "600-611,800-807");
    map.put32(700 * 4096 + 12, 0);
    let error = find(&map).unwrap_err();
    assert!(
        matches!(error, JournalError::Damaged { offset, .. } if offset == 700 * 4096 + 12),
        "{error}"
    );
}

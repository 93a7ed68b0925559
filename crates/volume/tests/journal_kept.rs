//! The finder while real file systems are made and changed, block by block in any order.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod journal_images;

use std::cell::Cell;

use journal_images::{Image, reader, tools_are_there};
use volume::journal::{JournalFinder, JournalSetting};

const BLOCK: usize = 4096;

/// A disk that a finder is told about.
struct Disk {
    bytes: Vec<u8>,
    finder: JournalFinder,
    random: u64,
    lookups: u64,
}

impl Disk {
    fn new(length: usize, seed: u64) -> Self {
        let finder = JournalFinder::new(&JournalSetting::Auto, length as u64).unwrap();
        Self {
            bytes: vec![0; length],
            finder,
            random: seed,
            lookups: 0,
        }
    }

    fn next(&mut self, below: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as usize % below
    }

    fn flush(&mut self) {
        let reads = Cell::new(0);
        let mut read = reader(&self.bytes);
        self.finder.on_flush(|offset, buffer| {
            reads.set(reads.get() + 1);
            read(offset, buffer)
        });
        self.lookups += u64::from(reads.get() > 0);
    }

    /// Writes what is different in another image, in random order with random flushes between;
    /// blocks of zeros are trimmed. Ends with a flush.
    fn become_like(&mut self, image: &[u8], flush_every: usize) {
        let blocks = 0..image.len() / BLOCK;
        let at = |block: usize| block * BLOCK..(block + 1) * BLOCK;
        let mut changed: Vec<usize> = blocks
            .filter(|block| self.bytes[at(*block)] != image[at(*block)])
            .collect();
        for left in (1..=changed.len()).rev() {
            let chosen = self.next(left);
            let block = changed.swap_remove(chosen);
            let new = &image[at(block)];
            self.bytes[at(block)].copy_from_slice(new);
            if new.iter().all(|byte| *byte == 0) {
                self.finder.on_zeroes(block as u64..block as u64 + 1);
            } else {
                self.finder.on_write(block as u64, new);
            }
            if self.next(flush_every) == 0 {
                self.flush();
            }
        }
        self.flush();
    }

    fn blocks(&self) -> Vec<u64> {
        let ranges = self.finder.ranges();
        ranges
            .iter()
            .flat_map(|range| range.first..range.end)
            .collect()
    }
}

#[test]
fn the_journal_is_known_after_the_last_flush_whatever_the_order_of_writes() {
    if !tools_are_there() {
        return;
    }
    for (arguments, other) in [
        ("-t ext4 -b 1024", "-t ext3 -b 1024"),
        ("-t ext3 -b 4096", "-t ext4 -b 4096 -O ^flex_bg"),
    ] {
        // The life of a disk: a file system, another journal, none, another file system, none.
        let image = Image::new(arguments, 32);
        let mut states = vec![(image.bytes(), image.journal_blocks())];
        let (group, blocks) = if arguments.ends_with("1024") {
            (8192, 32768)
        } else {
            (32768, 8192)
        };
        image.scatter_journal(if group == 8192 { "2" } else { "8" }, group, blocks, 6);
        states.push((image.bytes(), image.journal_blocks()));
        image.tune("-O ^has_journal");
        states.push((image.bytes(), Vec::new()));
        image.make(other, 32);
        states.push((image.bytes(), image.journal_blocks()));
        states.push((vec![0; 32 << 20], Vec::new()));
        for seed in 0..20 {
            let mut disk = Disk::new(32 << 20, seed);
            for (index, (bytes, expected)) in states.iter().enumerate() {
                disk.become_like(bytes, 1 + seed as usize * 3);
                assert_eq!(
                    &disk.blocks(),
                    expected,
                    "{arguments}, seed {seed}, state {index}"
                );
                assert!(disk.finder.problem().is_none());
            }
        }
    }
}

#[test]
fn nothing_is_read_while_nothing_that_matters_changes() {
    if !tools_are_there() {
        return;
    }
    let image = Image::new("-t ext4 -b 1024", 32);
    let mut disk = Disk::new(32 << 20, 1);
    disk.become_like(&image.bytes(), 1 << 20);
    let lookups = disk.lookups;
    // As mounts, unmounts, checkpoints and e2fsck do: the superblock's times and counters, other
    // inodes, new files, the journal's contents.
    let mut commands =
        String::from("ssv mnt_count 7\nssv wtime 20300101\nssv free_blocks_count 5\n");
    commands.push_str("mkdir a\nmkdir b\nsif / mtime 20300101\nsif <8> mtime 20300101\n");
    commands.push_str("feature needs_recovery\nssv state 0\n");
    image.debug(&commands);
    let mut bytes = image.bytes();
    for block in image.journal_blocks() {
        bytes[block as usize * BLOCK..][..BLOCK].fill(7);
    }
    assert!(bytes[1024..2048] != disk.bytes[1024..2048]);
    disk.become_like(&bytes, 3);
    assert_eq!(disk.lookups, lookups);
    assert_eq!(disk.blocks(), image.journal_blocks());
}

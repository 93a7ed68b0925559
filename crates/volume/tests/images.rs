//! Images that are read while the disk is in use: what a client reads of a pinned generation is the disk as it was, and
//! what it is told of changes is all of them.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use common::{BLOCK, Random, assert_fine, content, options, small};
use volume::backing::{Backing, FileBacking, MemoryBacking};
use volume::control::{Client, Server};
use volume::{BlockDevice, ExtentKind, Generation, OwnerId, Persistence, Policy, Volume};

const BLOCKS: u64 = 3000;

/// The disk as it should be: what each block holds.
type Model = Vec<u64>;

fn open(path: &Path) -> Arc<Volume> {
    let backing = Arc::new(FileBacking::open(path, true).unwrap());
    Arc::new(Volume::open(backing, &options()).unwrap())
}

fn create(path: &Path, policy: Policy, persistence: Persistence) {
    let mut settings = small(BLOCKS, policy, persistence);
    settings.sector_bytes = 512;
    let bytes = 4 * Volume::backing_bytes_for(&settings);
    let backing = FileBacking::create(path, bytes).unwrap();
    Volume::create(&backing, &settings, Some(bytes)).unwrap();
}

/// Writes, trims, flushes and compacts until it is told to end.
fn use_disk(volume: &Volume, model: &Mutex<Model>, is_over: &AtomicBool, seed: u64) {
    let mut random = Random(seed);
    while !is_over.load(Ordering::Relaxed) {
        let (first, count) = (random.below(BLOCKS), 1 + random.below(40));
        let range = first..(first + count).min(BLOCKS);
        let length = (range.end - range.start) * BLOCK as u64;
        let mut model = model.lock().unwrap();
        match random.below(40) {
            0..=9 => {
                let zeros = volume.write_zeroes(first * BLOCK as u64, length);
                zeros.unwrap();
                model[range.start as usize..range.end as usize].fill(7);
            }
            10 => volume.flush().unwrap(),
            11 => drop(volume.compact().unwrap()),
            12 => volume.close_window().unwrap(),
            _ => {
                let base = random.below(5000);
                let data: Vec<u8> = range
                    .clone()
                    .flat_map(|at| content(base + at % 9))
                    .collect();
                volume.write(first * BLOCK as u64, &data).unwrap();
                for at in range {
                    model[at as usize] = base + at % 9;
                }
            }
        }
        drop(model);
        std::thread::yield_now();
    }
}

fn is_in(ranges: &[Range<u64>], block: u64) -> bool {
    let at = block * BLOCK as u64;
    ranges.iter().any(|range| range.contains(&at))
}

/// Reads all of a generation as a backup does, and compares.
fn assert_holds(client: &mut Client, generation: &Generation, model: &Model, random: &mut Random) {
    let size = generation.logical_blocks * BLOCK as u64;
    let mut at = 0;
    while at < size {
        let mut length = (1 + random.below(300)) * 512;
        length = length.min(size - at);
        let mut read = vec![9; length as usize];
        client.read(generation.number, at, &mut read).unwrap();
        let mut expected = Vec::new();
        for block in at / BLOCK as u64..(at + length).div_ceil(BLOCK as u64) {
            expected.extend(content(model[block as usize]));
        }
        let from = (at % BLOCK as u64) as usize;
        assert!(read == expected[from..from + length as usize], "at {at}");
        at += length;
    }
    let mut at = 0;
    while at < size {
        let extents = client.extents(generation.number, at, size - at, 7).unwrap();
        for extent in extents {
            let end = at + extent.length_bytes;
            if extent.kind == ExtentKind::Hole {
                let blocks = at / BLOCK as u64..end / BLOCK as u64;
                let mut held = blocks.map(|block| model[block as usize] % 8);
                assert!(held.all(|kind| kind == 7), "a hole at {at}");
            }
            at = end;
        }
    }
}

fn is_backed_up_while_in_use(policy: Policy, persistence: Persistence) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk.1fv");
    create(&path, policy, persistence);
    let model = Mutex::new(vec![7; BLOCKS as usize]);
    let mut before: Option<(Generation, Model)> = None;
    let mut random = Random(policy as u64 * 10 + persistence as u64);
    for round in 0..3 {
        let volume = open(&path);
        let server = Server::start(&volume, &path).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (volume, model, is_over) = (&*volume, &model, &is_over);
            scope.spawn(move || use_disk(volume, model, is_over, 77 + round));
            for _ in 0..6 {
                let mut client = Client::connect(&path).unwrap().unwrap();
                let (generation, held) = {
                    let model = model.lock().unwrap();
                    (client.pin(OwnerId([1; 16])).unwrap(), model.clone())
                };
                if let Some((earlier, earlier_held)) = &before {
                    let changed = client
                        .changed_ranges(earlier.number, Some(generation.number))
                        .unwrap();
                    for block in 0..BLOCKS {
                        let at = block as usize;
                        let is_same = content(held[at]) == content(earlier_held[at]);
                        assert!(is_same || is_in(&changed, block), "block {block}");
                    }
                }
                assert_holds(&mut client, &generation, &held, &mut random);
                client.keep(generation.number).unwrap();
                for older in client.generations().unwrap() {
                    if older.number < generation.number {
                        client.unpin(older.number).unwrap();
                    }
                }
                before = Some((generation, held));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_fine(&volume, "while it was backed up");
        drop(server);
        volume.close().unwrap();
    }
}

#[test]
fn thin() {
    is_backed_up_while_in_use(Policy::Full, Persistence::Thin);
    is_backed_up_while_in_use(Policy::None, Persistence::Thin);
}

#[test]
fn ordered() {
    is_backed_up_while_in_use(Policy::Full, Persistence::Ordered);
}

#[test]
fn cow() {
    is_backed_up_while_in_use(Policy::FullAndJournal, Persistence::Cow);
}

/// A store that is slow, but for the thread that made it.
#[derive(Debug)]
struct Slow {
    store: MemoryBacking,
    quick: ThreadId,
    reads: AtomicUsize,
}

impl Backing for Slow {
    fn size_bytes(&self) -> io::Result<u64> {
        self.store.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if std::thread::current().id() != self.quick {
            self.reads.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(30));
        }
        self.store.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.store.write_at(offset, data)
    }

    fn sync(&self) -> io::Result<()> {
        self.store.sync()
    }

    fn discard(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        self.store.discard(offset, length_bytes)
    }
}

#[test]
fn the_disk_goes_on_while_changes_are_looked_for() {
    let settings = small(BLOCKS, Policy::Full, Persistence::Thin);
    let bytes = 4 * Volume::backing_bytes_for(&settings);
    let slow = Arc::new(Slow {
        store: MemoryBacking::new(bytes),
        quick: std::thread::current().id(),
        reads: AtomicUsize::new(0),
    });
    Volume::create(&*slow, &settings, Some(bytes)).unwrap();
    let volume = Volume::open(slow.clone(), &options()).unwrap();
    let block = BLOCK as u64;
    let write = |at: u64, id: u64| volume.write(at * block, &content(id)).unwrap();
    (0..BLOCKS).for_each(|at| write(at, at));
    let from = volume.pin().unwrap();
    for at in [5, 6, 700, 2999] {
        write(at, 9000 + 8 * at);
    }
    let to = volume.pin().unwrap();
    let (changed, reads) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| volume.changed_ranges(from, Some(to)));
        while slow.reads.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        write(8, 16);
        let reads = slow.reads.load(Ordering::SeqCst);
        (looking.join().unwrap().unwrap(), reads)
    });
    let expected = [5..7, 700..701, 2999..3000];
    assert_eq!(changed, expected.map(|it| it.start * block..it.end * block));
    let all = slow.reads.load(Ordering::SeqCst);
    assert!(reads < all, "written after {reads} of {all} reads");
}

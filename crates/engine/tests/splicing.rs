//! A stream that is stored from an earlier one and what changed is what it is when it is read in full.

#![allow(clippy::unwrap_used)] // A test says no by panicking.

mod common;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};
use common::{engine_on, noise, small_settings, text};
use engine::fingerprint::{CheckValue, Fingerprinter};
use engine::format::Vault;
use engine::object::{MemoryStore, ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::pipeline::{DeltaSettings, EarlierStream, SparseExtent, SparseStream, WriteError};
use engine::recipe::{Recipe, Run};
use engine::{Engine, rewriting::Rewriting};
use proptest::prelude::*;
use zeroize::Zeroizing;

const BLOCK: usize = 4096;

/// A disk in memory: blocks that are there, and those that are not.
#[derive(Debug, Clone, Default)]
struct Disk {
    blocks: Vec<Option<Vec<u8>>>,
    size_bytes: u64,
    read: Vec<Range<u64>>,
    passed_bytes: u64,
    stop_at: Option<u64>,
}

impl Disk {
    fn new(blocks: usize) -> Self {
        Self {
            blocks: vec![None; blocks],
            size_bytes: (blocks * BLOCK) as u64,
            ..Self::default()
        }
    }

    fn write(&mut self, first: usize, bytes: &[u8]) {
        for (number, block) in bytes.chunks(BLOCK).enumerate() {
            self.blocks[first + number] = Some(block.to_vec());
        }
    }

    fn trim(&mut self, blocks: Range<usize>) {
        self.blocks[blocks].fill(None);
    }

    fn bytes(&self) -> Vec<u8> {
        let zeros = vec![0; BLOCK];
        let blocks = self.blocks.iter();
        blocks
            .flat_map(|block| block.as_ref().unwrap_or(&zeros).clone())
            .collect()
    }

    fn changed_since(&self, earlier: &Disk) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let length = self.blocks.len().max(earlier.blocks.len());
        for block in 0..length {
            if self.blocks.get(block) == earlier.blocks.get(block) {
                continue;
            }
            let start = (block * BLOCK) as u64;
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end += BLOCK as u64,
                _ => ranges.push(start..start + BLOCK as u64),
            }
        }
        ranges
    }

    fn read_bytes(&self) -> u64 {
        self.read.iter().map(|range| range.end - range.start).sum()
    }
}

impl SparseStream for Disk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn extent_at(&mut self, offset: u64) -> io::Result<(SparseExtent, u64)> {
        let block = offset as usize / BLOCK;
        let kind = match self.blocks[block] {
            Some(_) => SparseExtent::Data,
            None => SparseExtent::Hole,
        };
        // One block at a time, or two, whether or not it goes on.
        let end = match self.blocks.get(block + 1) {
            Some(next) if next.is_some() == (kind == SparseExtent::Data) => block + 2,
            _ => block + 1,
        };
        Ok((kind, (end * BLOCK) as u64))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read.push(offset..offset + buffer.len() as u64);
        for (byte, at) in buffer.iter_mut().zip(offset as usize..) {
            let block = self.blocks[at / BLOCK].as_ref();
            *byte = block.expect("only data are read")[at % BLOCK];
        }
        Ok(())
    }

    fn passed(&mut self, bytes: u64) -> io::Result<()> {
        self.passed_bytes += bytes;
        match self.stop_at {
            Some(stop) if self.passed_bytes >= stop => Err(io::Error::other("stopped")),
            _ => Ok(()),
        }
    }
}

struct Stored {
    recipe: Recipe,
    check: CheckValue,
    kept_bytes: u64,
    read_bytes: u64,
    problems: usize,
}

fn store(engine: &Engine, disk: &mut Disk, earlier: Option<(&Recipe, &[Range<u64>])>) -> Stored {
    let mut writer = engine.writer().unwrap();
    let earlier = earlier.map(|(recipe, changed)| EarlierStream {
        recipe,
        reader: engine.reader().unwrap(),
        changed,
    });
    (disk.passed_bytes, disk.read) = (0, Vec::new());
    let spliced = writer.store_spliced(disk, earlier).unwrap();
    assert_eq!(disk.passed_bytes, disk.size_bytes);
    assert_eq!(disk.read_bytes(), spliced.read_bytes);
    let recipe = writer.settle(spliced.recipe).unwrap();
    writer.commit().unwrap();
    Stored {
        recipe,
        check: spliced.check,
        kept_bytes: spliced.kept_bytes,
        read_bytes: spliced.read_bytes,
        problems: spliced.problems.len(),
    }
}

/// Fingerprints and lengths of the chunks, and holes.
fn chunks(engine: &Engine, recipe: &Recipe) -> (Vec<String>, CheckValue) {
    let mut chunks = Vec::new();
    let reader = engine.reader().unwrap();
    let (_, check) = reader
        .visit_runs(recipe, &mut |run, located| match (run, located) {
            (Run::Hole { bytes }, _) => chunks.push(format!("hole {bytes}")),
            (Run::Slots { .. }, Some(located)) => {
                let section = &located.section.section;
                for chunk in located.chunks.clone() {
                    let fingerprint = section.fingerprints[chunk];
                    chunks.push(format!("{} {fingerprint:?}", section.lengths[chunk]));
                }
            }
            (Run::Slots { .. }, None) => unreachable!("slots lie somewhere"),
        })
        .unwrap();
    (chunks, check)
}

/// That what was stored is the disk, and cut as it is when it is read in full.
fn assert_is_disk(engine: &Engine, stored: &Stored, disk: &Disk) {
    let alone = engine_on(Arc::new(MemoryStore::new()), small_settings(1), false);
    assert_is_disk_as_on(&alone, engine, stored, disk);
}

/// That what was stored is the disk, and the check value that of its chunks. Gives them.
fn assert_holds_disk(engine: &Engine, stored: &Stored, disk: &Disk) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut stream = engine.reader().unwrap().stream(&stored.recipe);
    io::Read::read_to_end(&mut stream, &mut bytes).unwrap();
    assert!(bytes == disk.bytes(), "what was stored is the disk");
    let (chunks, check) = chunks(engine, &stored.recipe);
    assert_eq!(check, stored.check);
    chunks
}

/// That what was stored is the disk, and cut as it is when it is read in full on an engine that holds nothing else.
fn assert_is_disk_as_on(alone: &Engine, engine: &Engine, stored: &Stored, disk: &Disk) {
    let spliced = assert_holds_disk(engine, stored, disk);
    let full = store(alone, &mut disk.clone(), None);
    let (full_chunks, full_check) = chunks(alone, &full.recipe);
    let same = spliced.iter().zip(&full_chunks);
    let same = same.take_while(|(one, other)| one == other).count();
    let differ = (spliced.get(same), full_chunks.get(same));
    assert_eq!(differ, (None, None), "chunk {same}");
    assert_eq!(stored.check, full_check);
}

#[derive(Debug, Clone)]
enum Change {
    Write {
        first: usize,
        blocks: usize,
        seed: u64,
    },
    Same {
        first: usize,
        blocks: usize,
    },
    Trim {
        first: usize,
        blocks: usize,
    },
    Grow {
        blocks: usize,
    },
}

impl Change {
    fn apply(&self, disk: &mut Disk) {
        let range = |first: usize, blocks: usize| {
            let first = first % disk.blocks.len();
            first..(first + blocks).min(disk.blocks.len())
        };
        match *self {
            Change::Write {
                first,
                blocks,
                seed,
            } => {
                let range = range(first, blocks);
                let bytes = match seed % 2 {
                    0 => noise(seed, range.len() * BLOCK),
                    _ => text(seed, range.len() * BLOCK),
                };
                disk.write(range.start, &bytes);
            }
            Change::Same { first, blocks } => {
                let range = range(first, blocks);
                let zeros = vec![0; range.len() * BLOCK];
                disk.write(range.start, &zeros);
            }
            Change::Trim { first, blocks } => disk.trim(range(first, blocks)),
            Change::Grow { blocks } => {
                disk.blocks.resize(disk.blocks.len() + blocks, None);
                disk.size_bytes = (disk.blocks.len() * BLOCK) as u64;
            }
        }
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let first = 0..400usize;
    prop_oneof![
        6 => (first.clone(), 1..60usize, 1..1000u64)
            .prop_map(|(first, blocks, seed)| Change::Write { first, blocks, seed }),
        1 => (first.clone(), 1..20usize).prop_map(|(first, blocks)| Change::Same { first, blocks }),
        3 => (first, 1..40usize).prop_map(|(first, blocks)| Change::Trim { first, blocks }),
        1 => (1..30usize).prop_map(|blocks| Change::Grow { blocks }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn spliced_streams_are_those_read_in_full(
        rounds in proptest::collection::vec(proptest::collection::vec(any_change(), 0..8), 1..5),
        unchanged_said_changed in any::<bool>(),
    ) {
        let engine = engine_on(Arc::new(MemoryStore::new()), small_settings(2), true);
        let mut disk = Disk::new(300);
        let mut before: Option<(Disk, Recipe)> = None;
        for changes in rounds {
            for change in &changes {
                change.apply(&mut disk);
            }
            let stored = match &before {
                None => store(&engine, &mut disk, None),
                Some((earlier, recipe)) => {
                    let mut changed = disk.changed_since(earlier);
                    if unchanged_said_changed && changed.is_empty() {
                        changed.push(40_960..81_920);
                    }
                    store(&engine, &mut disk, Some((recipe, &changed)))
                }
            };
            assert_eq!(stored.problems, 0);
            assert_is_disk(&engine, &stored, &disk);
            before = Some((disk.clone(), stored.recipe));
        }
    }
}

/// A disk of 16 MiB, mostly full.
fn large_disk() -> Disk {
    let mut disk = Disk::new(4096);
    disk.write(0, &noise(1, 8 << 20));
    disk.write(2100, &text(2, 6 << 20));
    disk
}

#[test]
fn only_what_changed_is_read() {
    let engine = engine_on(Arc::new(MemoryStore::new()), small_settings(2), true);
    let mut disk = large_disk();
    let first = store(&engine, &mut disk, None);
    assert_eq!(first.read_bytes, 14 << 20);
    let same = store(&engine, &mut disk, Some((&first.recipe, &[])));
    assert_eq!((same.read_bytes, same.kept_bytes), (0, 14 << 20));
    assert_eq!(same.recipe, first.recipe);
    let earlier = disk.clone();
    for place in [100, 1000, 3000] {
        disk.write(place, &noise(place as u64, BLOCK));
    }
    let changed = disk.changed_since(&earlier);
    let second = store(&engine, &mut disk, Some((&first.recipe, &changed)));
    assert_is_disk(&engine, &second, &disk);
    // A block, the rest of two chunks, and a largest chunk ahead.
    let limit = 3 * (BLOCK as u64 + 4 * 16_384);
    assert!(second.read_bytes <= limit, "{} bytes", second.read_bytes);
    assert!(second.kept_bytes >= (14 << 20) - limit);
}

#[test]
fn what_is_gone_from_the_store_is_read_again() {
    let store_of = Arc::new(MemoryStore::new());
    let engine = engine_on(
        Arc::clone(&store_of) as Arc<dyn ObjectStore>,
        small_settings(2),
        true,
    );
    let mut disk = large_disk();
    let first = store(&engine, &mut disk, None);
    let Recipe::Runs(runs) = &first.recipe else {
        unreachable!("a few runs")
    };
    let Run::Slots { container, .. } = runs[3] else {
        unreachable!("data")
    };
    let gone = ObjectKey::new(ObjectKind::Container, container.0);
    store_of.delete(&gone).unwrap();
    let second = store(&engine, &mut disk, Some((&first.recipe, &[])));
    assert_eq!(second.problems, 1);
    assert!(second.read_bytes > 100 << 10 && second.read_bytes < 2 << 20);
    assert_is_disk(&engine, &second, &disk);
}

#[test]
fn a_stream_that_stops_is_an_error() {
    let engine = engine_on(Arc::new(MemoryStore::new()), small_settings(2), true);
    let mut disk = large_disk();
    disk.stop_at = Some(5 << 20);
    let mut writer = engine.writer().unwrap();
    let stopped = writer.store_spliced(&mut disk, None);
    assert!(matches!(stopped, Err(WriteError::Read(_))));
}

#[test]
fn it_goes_together_with_rewriting() {
    let engine = engine_on(Arc::new(MemoryStore::new()), small_settings(2), true);
    let engine = engine.rewriting(Rewriting::named("capping").unwrap());
    let mut disk = large_disk();
    let first = store(&engine, &mut disk, None);
    let earlier = disk.clone();
    for place in 0..40 {
        disk.write(place * 50, &noise(place as u64, 3 * BLOCK));
    }
    let changed = disk.changed_since(&earlier);
    let second = store(&engine, &mut disk, Some((&first.recipe, &changed)));
    assert_is_disk(&engine, &second, &disk);
}

/// An engine that cuts by `algorithm`; nothing where such chunks can't be.
fn engine_cutting_by(algorithm: Algorithm) -> Option<Engine> {
    let parameters = Parameters {
        min_bytes: 512,
        avg_bytes: 2048,
        max_bytes: 16_384,
        ..Parameters::new(algorithm)
    };
    let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed).ok()?;
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    Some(Engine::new(
        Arc::new(MemoryStore::new()),
        Vault::new(ObjectId([1; 16]), secrets, false),
        Fingerprinter::new(&[9; 32]),
        chunker,
        small_settings(1),
    ))
}

/// Changes that are the same for a seed.
fn changes(seed: u64) -> impl Iterator<Item = Change> {
    let numbers = noise(seed, 160);
    (0..20).map(move |at| {
        let number = |byte: usize| usize::from(numbers[at * 8 + byte]);
        let (first, blocks) = (number(0) * 256 + number(1), 1 + number(2) % 30);
        match number(3) % 8 {
            0..=4 => Change::Write {
                first,
                blocks,
                seed: seed * 1000 + at as u64,
            },
            5 => Change::Same { first, blocks },
            6 => Change::Trim { first, blocks },
            _ => Change::Grow { blocks },
        }
    })
}

/// Those that judge a cut by what is behind it, too.
const LOOKING_BEHIND_A_CUT: [Algorithm; 3] = [Algorithm::Ae, Algorithm::Maxp, Algorithm::Tttd];

#[test]
fn all_chunkers_cut_as_they_do_when_all_is_read() {
    for info in chunking::ALGORITHMS {
        let Some(engine) = engine_cutting_by(info.algorithm) else {
            continue;
        };
        let mut disk = Disk::new(600);
        disk.write(10, &noise(3, 250 * BLOCK));
        disk.write(300, &text(4, 200 * BLOCK));
        let mut before = store(&engine, &mut disk, None);
        for round in 0..3 {
            let earlier = disk.clone();
            changes(round + 1).for_each(|change| change.apply(&mut disk));
            let changed = disk.changed_since(&earlier);
            let stored = store(&engine, &mut disk, Some((&before.recipe, &changed)));
            println!("{}, round {round}", info.name);
            if LOOKING_BEHIND_A_CUT.contains(&info.algorithm) {
                assert_holds_disk(&engine, &stored, &disk);
            } else {
                let alone = engine_cutting_by(info.algorithm).unwrap();
                assert_is_disk_as_on(&alone, &engine, &stored, &disk);
            }
            before = stored;
        }
    }
}

#[test]
fn images_in_many_pieces() {
    for deltas in [None, Some(DeltaSettings::best())] {
        let engine = engine_on(Arc::new(MemoryStore::new()), small_settings(2), true);
        let engine = engine.with_deltas(deltas);
        let mut disk = Disk::new(9000);
        for at in (0..9000).step_by(2) {
            disk.write(at, &noise(at as u64, BLOCK));
        }
        let mut before = store(&engine, &mut disk, None);
        assert!(matches!(before.recipe, Recipe::Paged { .. }));
        for round in 0..3 {
            let earlier = disk.clone();
            for at in (round..9000).step_by(7 + 90 * round) {
                match at % 3 {
                    0 => disk.trim(at..at + 1),
                    1 => disk.write(at, &noise((9000 + at) as u64, BLOCK)),
                    // Much like what was there.
                    _ => {
                        let mut block = noise(at as u64, BLOCK);
                        block[100 + round] ^= 1;
                        disk.write(at, &block);
                    }
                }
            }
            let changed = disk.changed_since(&earlier);
            let stored = store(&engine, &mut disk, Some((&before.recipe, &changed)));
            assert_is_disk(&engine, &stored, &disk);
            before = stored;
        }
        // All of it at once.
        let earlier = disk.clone();
        disk.trim(0..9000);
        let changed = disk.changed_since(&earlier);
        let stored = store(&engine, &mut disk, Some((&before.recipe, &changed)));
        assert_is_disk(&engine, &stored, &disk);
    }
}

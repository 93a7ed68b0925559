//! One run: a volume, windows of writes, a flush after each.
//!
//! Enters: which writes, how many to a window, which persistence. Leaves: what the disk was asked in each window,
//! apart for the path of writes and for commits; and the time that it took here. A client writes a
//! window of blocks, then flushes: the paper's window, at whose end writes are acknowledged.
//!
//! Before anything counts, a block is written in every part of the disk, so that `ordered` has a place for
//! every page of its mapping: the paper's mapping is an array that is there from the beginning. The
//! cache holds all metadata, as in the paper.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use volume::address::BLOCK_BYTES;
use volume::backing::{Backing, FileBacking, MemoryBacking};
use volume::stat::Counters;
use volume::trace::{ContentId, content_of, is_compressible};
use volume::{BlockDevice, OpenOptions, Persistence, Volume, VolumeSettings};

use super::counting::{CountingBacking, Interval, SuperblocksOnly};
use super::device::Cost;
use crate::interrupt;

/// Entries of a page of the mapping, and pages of one directory of it.
const PER_PAGE: u64 = 504;

/// Bytes of memory for pages of metadata, which are never all used.
const CACHE_BYTES: u64 = 8 << 30;

/// A block that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockWrite {
    /// Which one.
    pub block: u64,
    /// What it then holds.
    pub content: ContentId,
}

/// How a volume is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Manner {
    /// How its mapping is made durable.
    pub persistence: Persistence,
    /// Blocks to a window.
    pub window: u32,
    /// C-zones before a commit.
    pub commit_zones: u32,
    /// Blocks that compress, of 100.
    pub compressible_percent: u32,
}

/// Where a volume lies.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// Nowhere: blocks are counted and forgotten.
    Nowhere,
    /// In memory.
    Memory,
    /// In a new file of this directory, gone at the end.
    Directory(&'a Path),
}

/// What a window cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowCost {
    /// Blocks that clients wrote.
    pub writes: u64,
    /// In the path of writes: what the client's flush waits for whenever there is no commit.
    pub path: Cost,
    /// Commits that fell into it.
    pub commit: Cost,
    /// Of `ordered`: the path if nothing but pages of the mapping were written in place.
    pub mapping_only: Cost,
}

/// What a run gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Each window.
    pub windows: Vec<WindowCost>,
    /// The last commit, when the volume was closed.
    pub closing: Cost,
    /// What the volume counted.
    pub counters: Counters,
    /// Time of writes and flushes here.
    pub seconds: f64,
}

impl Measured {
    /// Blocks that clients wrote.
    pub fn writes(&self) -> u64 {
        self.windows.iter().map(|window| window.writes).sum()
    }

    /// The path of all windows.
    pub fn path(&self) -> Cost {
        sum(self.windows.iter().map(|window| window.path))
    }

    /// All commits, the last one included.
    pub fn commits(&self) -> Cost {
        sum(self.windows.iter().map(|window| window.commit)) + self.closing
    }

    /// Blocks of metadata in the path of writes.
    pub fn path_metadata(&self) -> u64 {
        self.path().blocks - self.counters.data_blocks_written
    }

    /// The same run with the mapping alone written in place.
    pub fn with_mapping_only(&self) -> Self {
        let windows = self.windows.iter().map(|window| WindowCost {
            path: window.mapping_only,
            ..*window
        });
        Self {
            windows: windows.collect(),
            ..self.clone()
        }
    }
}

fn sum(costs: impl Iterator<Item = Cost>) -> Cost {
    costs.fold(Cost::default(), |sum, cost| sum + cost)
}

/// Runs it.
///
/// # Errors
/// When the volume fails, or somebody asked for a stop.
pub fn run(
    manner: &Manner,
    span_bytes: u64,
    place: Place<'_>,
    writes: impl Iterator<Item = BlockWrite>,
) -> Result<Measured> {
    let settings = VolumeSettings {
        persistence: manner.persistence,
        window_blocks: manner.window,
        commit_zones: manner.commit_zones,
        ..VolumeSettings::new(span_bytes)
    };
    let bytes = Volume::backing_bytes_for(&settings);
    let mut file = None;
    let inner: Box<dyn Backing> = match place {
        Place::Nowhere => Box::new(SuperblocksOnly::new(bytes)),
        Place::Memory => Box::new(MemoryBacking::new(bytes)),
        Place::Directory(directory) => {
            let directory = file.insert(tempfile::tempdir_in(directory)?);
            Box::new(FileBacking::create(
                &directory.path().join("volume"),
                bytes,
            )?)
        }
    };
    let store = Arc::new(CountingBacking::new(inner));
    Volume::create(&*store, &settings, None)?;
    let options = OpenOptions {
        cache_bytes: CACHE_BYTES,
        allow_volatile: true,
        ..OpenOptions::default()
    };
    let volume = Volume::open(Arc::clone(&store) as Arc<dyn Backing>, &options)?;
    Run {
        manner,
        store,
        volume,
    }
    .measure(settings.logical_blocks(), writes)
}

struct Run<'a> {
    manner: &'a Manner,
    store: Arc<CountingBacking>,
    volume: Volume,
}

impl Run<'_> {
    fn measure(
        &self,
        blocks: u64,
        mut writes: impl Iterator<Item = BlockWrite>,
    ) -> Result<Measured> {
        self.warm_up(blocks)?;
        let before = self.volume.counters();
        let mut measured = Measured::default();
        let mut window: Vec<BlockWrite> = Vec::new();
        let mut bytes = Vec::new();
        loop {
            window.clear();
            window.extend(writes.by_ref().take(self.manner.window as usize));
            if window.is_empty() {
                break;
            }
            interrupt::check()?;
            bytes.clear();
            for write in &window {
                let share = f64::from(self.manner.compressible_percent) / 100.0;
                let compresses = is_compressible(write.content, share);
                bytes.extend_from_slice(&content_of(write.content, compresses));
            }
            let started = Instant::now();
            for (write, block) in window.iter().zip(bytes.chunks_exact(BLOCK_BYTES)) {
                self.volume.write(write.block * BLOCK_BYTES as u64, block)?;
            }
            self.volume.flush()?;
            measured.seconds += started.elapsed().as_secs_f64();
            measured.windows.push(self.cost_of(&window));
        }
        measured.counters = self.volume.counters().since(&before);
        self.volume.close()?;
        measured.closing = sum(self.store.take().iter().map(|interval| interval.cost));
        Ok(measured)
    }

    /// Writes a block for each directory of the mapping.
    fn warm_up(&self, blocks: u64) -> Result<()> {
        for block in (0..blocks).step_by((PER_PAGE * PER_PAGE) as usize) {
            let name = (u128::from(block) | 1 << 127).to_le_bytes();
            let bytes = content_of(ContentId(name), false);
            self.volume.write(block * BLOCK_BYTES as u64, &bytes)?;
        }
        self.volume.flush()?;
        self.store.take();
        Ok(())
    }

    /// What the store was asked in a window.
    fn cost_of(&self, window: &[BlockWrite]) -> WindowCost {
        let intervals = self.store.take();
        let mut cost = WindowCost {
            writes: window.len() as u64,
            ..WindowCost::default()
        };
        let is_commit = |index: usize| {
            let has = |index: usize| {
                let found: Option<&Interval> = intervals.get(index);
                found.is_some_and(|interval| interval.has_superblock)
            };
            // Pages, and then the superblock.
            self.manner.persistence != Persistence::Cow && (has(index) || has(index + 1))
        };
        let mut data = None;
        for (index, interval) in intervals.iter().enumerate() {
            if is_commit(index) {
                cost.commit += interval.cost;
            } else {
                data = data.or(Some(interval.cost));
                cost.path += interval.cost;
            }
        }
        if let (Persistence::Ordered, Some(data)) = (self.manner.persistence, data) {
            cost.mapping_only = data + mapping_in_place(window);
        }
        cost
    }
}

/// What it costs to write the pages of the mapping in which a window's blocks are, and nothing else; they
/// follow each other.
fn mapping_in_place(window: &[BlockWrite]) -> Cost {
    let mut pages: Vec<u64> = window.iter().map(|write| write.block / PER_PAGE).collect();
    pages.sort_unstable();
    pages.dedup();
    let follow = pages.windows(2).filter(|pair| pair[0] + 1 == pair[1]);
    Cost {
        seeks: 1,
        hops: (pages.len() - 1 - follow.count()) as u64,
        blocks: pages.len() as u64,
        flushes: 1,
    }
}

#[cfg(test)]
mod tests {
    use volume::trace::{Access, Workload};

    use super::*;

    const SPAN_BYTES: u64 = 64 << 20;

    fn measured(persistence: Persistence, place: Place<'_>) -> Measured {
        let manner = Manner {
            persistence,
            window: 16,
            commit_zones: 1,
            compressible_percent: 80,
        };
        let workload = Workload {
            span_bytes: SPAN_BYTES,
            ..Workload::synthetic(Access::Random, 4_000, 1)
        };
        let writes = workload.records().unwrap().map(|record| BlockWrite {
            block: record.offset_bytes / BLOCK_BYTES as u64,
            content: record.content.unwrap(),
        });
        run(&manner, SPAN_BYTES, place, writes).unwrap()
    }

    #[test]
    fn the_disk_is_asked_what_the_volume_says() {
        for persistence in Persistence::ALL {
            let one = measured(persistence, Place::Nowhere);
            assert_eq!((one.windows.len(), one.writes()), (250, 4_000));
            let commits = sum(one.windows.iter().map(|window| window.commit));
            let blocks = one.path().blocks + commits.blocks;
            assert_eq!(blocks, one.counters.blocks_written(), "{persistence:?}");
            let flushes = one.path().flushes + commits.flushes;
            assert_eq!(flushes, one.counters.syncs, "{persistence:?}");
            let expected = match persistence {
                Persistence::Thin | Persistence::Ram => 1,
                Persistence::Ordered | Persistence::Cow => 2,
            };
            for window in &one.windows {
                assert_eq!(window.path.flushes, expected, "{persistence:?}");
            }
            assert_eq!(
                one.closing == Cost::default(),
                persistence == Persistence::Ram
            );
        }
    }

    #[test]
    fn a_store_that_keeps_nothing_is_asked_the_same() {
        let directory = tempfile::tempdir().unwrap();
        for persistence in Persistence::ALL {
            let [nowhere, memory, file] = [
                Place::Nowhere,
                Place::Memory,
                Place::Directory(directory.path()),
            ]
            .map(|place| measured(persistence, place));
            for other in [memory, file] {
                // Pages of the index follow from the volume's random key.
                if persistence != Persistence::Cow {
                    assert_eq!(nowhere.path_metadata(), other.path_metadata());
                }
                assert_eq!(nowhere.path().flushes, other.path().flushes);
                let data = |one: &Measured| one.counters.data_blocks_written;
                assert_eq!(data(&nowhere), data(&other));
            }
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn pages_of_the_mapping_follow_each_other() {
        let write = |block| BlockWrite {
            block,
            content: ContentId([0; 16]),
        };
        let window = [1000, 3, 2000, 5, 504].map(write);
        // Pages 0, 1 and 3.
        let cost = mapping_in_place(&window);
        assert_eq!((cost.seeks, cost.hops, cost.blocks), (1, 1, 3));
    }
}

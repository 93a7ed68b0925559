//! What a disk is asked: a store that counts writes as a disk would do them.
//!
//! Enters: writes and syncs of a volume. Leaves: for each sync the blocks written since the one before, and
//! the seeks between them when they are sorted ([`device`](super::device)). [`SuperblocksOnly`] is a store for volumes that
//! read nothing back: it forgets all but the superblocks, so that a disk of any size takes no memory.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use volume::address::BLOCK_BYTES;
use volume::backing::{Backing, MemoryBacking};

use super::device::Cost;

/// Superblocks are in the first two blocks.
const SUPERBLOCKS_END: u64 = 2;

/// What was asked from one sync to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// What it costs.
    pub cost: Cost,
    /// Whether a superblock was written: the end of a commit.
    pub has_superblock: bool,
}

/// A store that counts.
#[derive(Debug)]
pub struct CountingBacking {
    inner: Box<dyn Backing>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks written since the last sync: from, to.
    written: Vec<(u64, u64)>,
    /// Where the disk stands: behind this block.
    position: u64,
    intervals: Vec<Interval>,
}

impl State {
    fn sync(&mut self) {
        let mut interval = Interval::default();
        self.written.sort_unstable();
        let mut run_end = None;
        for &(from, to) in &self.written {
            let goes_on = match run_end {
                Some(end) => from <= end,
                None => from == self.position,
            };
            if !goes_on {
                interval.cost.seek();
            }
            interval.cost.blocks += to - from;
            interval.has_superblock |= from < SUPERBLOCKS_END;
            run_end = run_end.max(Some(to));
        }
        interval.cost.flushes = 1;
        self.position = run_end.unwrap_or(self.position);
        self.written.clear();
        self.intervals.push(interval);
    }
}

impl CountingBacking {
    /// Counts what is done to `inner`.
    pub fn new(inner: Box<dyn Backing>) -> Self {
        Self {
            inner,
            state: Mutex::default(),
        }
    }

    /// Intervals that a sync ended, since the last call.
    pub fn take(&self) -> Vec<Interval> {
        std::mem::take(&mut self.state().intervals)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backing for CountingBacking {
    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, data)?;
        let block = BLOCK_BYTES as u64;
        let end = (offset + data.len() as u64).div_ceil(block);
        self.state().written.push((offset / block, end));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()?;
        self.state().sync();
        Ok(())
    }

    fn discard(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        self.inner.discard(offset, length_bytes)
    }
}

/// A store that keeps superblocks and knows which other blocks were written. To read one of those is an
/// error, so that nothing is measured with wrong bytes.
#[derive(Debug)]
pub struct SuperblocksOnly {
    size_bytes: u64,
    kept: MemoryBacking,
    forgotten: Mutex<HashSet<u64>>,
}

impl SuperblocksOnly {
    /// `size_bytes` of zeros.
    pub fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            kept: MemoryBacking::new(SUPERBLOCKS_END * BLOCK_BYTES as u64),
            forgotten: Mutex::default(),
        }
    }

    fn forgotten(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.forgotten
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn blocks(offset: u64, length: usize) -> std::ops::Range<u64> {
    let block = BLOCK_BYTES as u64;
    offset / block..(offset + length as u64).div_ceil(block)
}

impl Backing for SuperblocksOnly {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let wanted = blocks(offset, buffer.len());
        if wanted.end <= SUPERBLOCKS_END {
            return self.kept.read_at(offset, buffer);
        }
        let forgotten = self.forgotten();
        if wanted.clone().any(|block| forgotten.contains(&block)) {
            let what = format!("blocks {wanted:?} are not kept in this experiment");
            return Err(io::Error::other(what));
        }
        buffer.fill(0);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let written = blocks(offset, data.len());
        if written.end <= SUPERBLOCKS_END {
            return self.kept.write_at(offset, data);
        }
        self.forgotten().extend(written);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_between_two_syncs_are_sorted_into_runs() {
        let store = CountingBacking::new(Box::new(MemoryBacking::new(1 << 20)));
        let write = |block: u64, blocks: usize| {
            let bytes = vec![1; blocks * BLOCK_BYTES];
            store.write_at(block * BLOCK_BYTES as u64, &bytes).unwrap();
        };
        for (block, blocks) in [(20, 2), (10, 1), (22, 1)] {
            write(block, blocks);
        }
        store.sync().unwrap();
        // Goes on where the last one ended.
        write(23, 4);
        store.sync().unwrap();
        store.sync().unwrap();
        write(1, 1);
        store.sync().unwrap();
        let costs: Vec<_> = store
            .take()
            .iter()
            .map(|one| {
                let Cost {
                    seeks,
                    hops,
                    blocks,
                    flushes,
                } = one.cost;
                (seeks, hops, blocks, flushes, one.has_superblock)
            })
            .collect();
        let wanted = [
            (1, 1, 4, 1, false),
            (0, 0, 4, 1, false),
            (0, 0, 0, 1, false),
            (1, 0, 1, 1, true),
        ];
        assert_eq!(costs, wanted);
        assert!(store.take().is_empty());
    }

    #[test]
    fn what_is_not_kept_is_not_read() {
        let store = SuperblocksOnly::new(1 << 20);
        let block = [7; BLOCK_BYTES];
        let mut read = [1; BLOCK_BYTES];
        store.write_at(4096, &block).unwrap();
        store.read_at(4096, &mut read).unwrap();
        assert_eq!(read, block);
        store.read_at(40_960, &mut read).unwrap();
        assert_eq!(read, [0; BLOCK_BYTES]);
        store.write_at(40_960, &block).unwrap();
        assert!(store.read_at(40_960, &mut read).is_err());
    }
}

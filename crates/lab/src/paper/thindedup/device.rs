//! Time by a model: a · writes + b · flushes.
//!
//! Between two flushes a disk may write in any order: what was written is sorted by address, and
//! writes that follow each other are a run. A run that does not begin where the disk stands costs a
//! *seek*, every block its *transfer*, every flush a *flush*. A synchronous write of 4 KB, the figure that
//! the paper has of its disks, is a transfer and a flush where it is sequential, and a seek as well where it
//! is random; so the three follow from the two latencies and from how fast the disk streams.
//!
//! A disk with a queue gets from one run to the next faster than from anywhere to anywhere: a *hop* is a
//! seek behind the first between two flushes. It costs as much as one unless a device says otherwise.
//!
//! Left out: processors, and reads (everything is in memory, as in the paper).

use std::ops::{Add, AddAssign};

use volume::address::BLOCK_BYTES;

/// A disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device {
    /// What it is called.
    pub name: &'static str,
    /// Latency of a synchronous write of 4 KB behind the one before.
    pub sequential_ms: f64,
    /// The same anywhere.
    pub random_ms: f64,
    /// What a hop costs; none: as much as a seek.
    pub hop_ms: Option<f64>,
    /// Speed of long writes.
    pub stream_bytes_per_second: f64,
}

impl Device {
    /// What a block costs.
    pub fn transfer_ms(&self) -> f64 {
        1e3 * BLOCK_BYTES as f64 / self.stream_bytes_per_second
    }

    /// What getting elsewhere costs.
    pub fn seek_ms(&self) -> f64 {
        self.random_ms - self.sequential_ms
    }

    /// What a flush costs.
    pub fn flush_ms(&self) -> f64 {
        self.sequential_ms - self.transfer_ms()
    }

    /// What all of it costs.
    pub fn ms(&self, cost: Cost) -> f64 {
        let hop_ms = self.hop_ms.unwrap_or(self.seek_ms());
        cost.seeks as f64 * self.seek_ms()
            + cost.hops as f64 * hop_ms
            + cost.blocks as f64 * self.transfer_ms()
            + cost.flushes as f64 * self.flush_ms()
    }
}

/// What a disk had to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Runs of blocks that do not begin where the disk stood: the first between two flushes.
    pub seeks: u64,
    /// The others.
    pub hops: u64,
    /// Blocks of 4 KiB.
    pub blocks: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Cost {
    /// One more run that does not begin where the disk stands.
    pub fn seek(&mut self) {
        match self.seeks {
            0 => self.seeks = 1,
            _ => self.hops += 1,
        }
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            seeks: self.seeks + other.seeks,
            hops: self.hops + other.hops,
            blocks: self.blocks + other.blocks,
            flushes: self.flushes + other.flushes,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::thindedup::published::DEVICES;

    #[test]
    fn one_synchronous_write_takes_what_the_paper_says() {
        for device in DEVICES {
            let mut cost = Cost {
                blocks: 1,
                flushes: 1,
                ..Cost::default()
            };
            assert!((device.ms(cost) - device.sequential_ms).abs() < 1e-9);
            cost.seeks = 1;
            assert!((device.ms(cost) - device.random_ms).abs() < 1e-9);
        }
    }
}

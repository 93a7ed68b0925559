//! Time by a model: what the volume wrote, at the speed of a disk; a flush; the hashes that the method needs.
//!
//! `seconds = device blocks · 4096 / bandwidth + syncs · flush + blocks hashed · hash`. The paper gives the speed
//! of long writes of its SSDs (Table 4.2); what a flush costs it does not say, and is assumed. Hashes are made one
//! after the other in the path of a write, as in the paper's prototype; a method hashes every block
//! that the file system writes, once. Left out: reads (of whole-block methods that compare bytes, too), and
//! everything that the file system and the processor do besides. So it is the upper bound of what a disk lets
//! through, and what compares methods.

use volume::address::BLOCK_BYTES;
use volume::stat::Counters;

/// A disk of Table 4.2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ssd {
    /// The paper's name of it.
    pub name: &'static str,
    /// Sequential write.
    pub write_bytes_per_second: f64,
    /// What a flush costs: assumed.
    pub flush_ms: f64,
}

impl Ssd {
    /// Time for what was counted, with so many seconds for each block that is hashed.
    pub fn seconds(&self, counted: &Counters, hash_seconds: f64) -> f64 {
        let bytes = counted.blocks_written() as f64 * BLOCK_BYTES as f64;
        bytes / self.write_bytes_per_second
            + counted.syncs as f64 * self.flush_ms / 1e3
            + counted.user_blocks_written as f64 * hash_seconds
    }
}

/// The value that a share of them (of 1) does not exceed; 0 where there is none.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    let at = rank.clamp(1, values.len().max(1)) - 1;
    values.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_that_of_blocks_flushes_and_hashes() {
        let ssd = Ssd {
            name: "one",
            write_bytes_per_second: 4096e3,
            flush_ms: 2.0,
        };
        let counted = Counters {
            user_blocks_written: 10,
            data_blocks_written: 4,
            page_blocks_written: 1,
            syncs: 3,
            ..Counters::default()
        };
        assert!((ssd.seconds(&counted, 1e-4) - 0.012).abs() < 1e-12);
        assert!((ssd.seconds(&counted, 0.0) - 0.011).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_values_that_there_are() {
        let mut values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(&mut values, 0.5), 2.0);
        assert_eq!(percentile(&mut values, 0.9), 4.0);
        assert_eq!(percentile(&mut values, 0.0), 1.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }
}

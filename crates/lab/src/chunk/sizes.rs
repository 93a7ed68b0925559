//! The sizes of chunks: counted exactly, so that every figure about them follows afterwards.
//!
//! Enters: lengths, each with whether it is a stream's last. Leaves: mean, standard deviation,
//! percentiles, shares at the bounds, histograms, the cumulative distribution. Memory: one entry
//! for each length that occurs, at most `max_bytes` of them.

use std::collections::BTreeMap;

/// How often each length occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SizeCounts {
    /// Of chunks that a cut ended.
    inner: BTreeMap<u32, u64>,
    /// Of the last chunks of streams, which the end ended.
    last: BTreeMap<u32, u64>,
}

/// One bar of a histogram: the chunks longer than `from_bytes` and at most `to_bytes` long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Exclusive.
    pub from_bytes: u32,
    /// Inclusive.
    pub to_bytes: u32,
    /// How many chunks.
    pub chunks: u64,
}

impl SizeCounts {
    /// Counts a chunk.
    pub fn add(&mut self, length: usize, is_last: bool) {
        let counts = if is_last {
            &mut self.last
        } else {
            &mut self.inner
        };
        // Chunks are at most 64 MiB long.
        *counts.entry(length as u32).or_insert(0) += 1;
    }

    /// All lengths that occur, rising, with how often.
    fn all(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let mut merged = self.inner.clone();
        for (&length, &count) in &self.last {
            *merged.entry(length).or_insert(0) += count;
        }
        merged.into_iter()
    }

    /// How many chunks.
    pub fn chunks(&self) -> u64 {
        self.inner.values().sum::<u64>() + self.last_chunks()
    }

    /// How many of them are the last of a stream.
    pub fn last_chunks(&self) -> u64 {
        self.last.values().sum()
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        self.all()
            .map(|(length, count)| u64::from(length) * count)
            .sum()
    }

    /// The mean length; 0 of no chunks.
    pub fn mean(&self) -> f64 {
        self.bytes() as f64 / self.chunks().max(1) as f64
    }

    /// The standard deviation of the lengths (of all of them, not of a sample).
    pub fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self
            .all()
            .map(|(length, count)| (f64::from(length) - mean).powi(2) * count as f64)
            .sum();
        (squares / self.chunks().max(1) as f64).sqrt()
    }

    /// The least length that at least this share of the chunks does not exceed; 0 of no chunks.
    pub fn percentile(&self, share: f64) -> u32 {
        let rank = (share * self.chunks() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let mut longest = 0;
        for (length, count) in self.all() {
            longest = length;
            seen += count;
            if seen >= rank {
                break;
            }
        }
        longest
    }

    /// The share of chunks that are `max` long.
    pub fn share_at_max(&self, max: u32) -> f64 {
        let count = |counts: &BTreeMap<u32, u64>| counts.get(&max).copied().unwrap_or(0);
        (count(&self.inner) + count(&self.last)) as f64 / self.chunks().max(1) as f64
    }

    /// The share of chunks that are at most `min` long, of those that are not a stream's last.
    pub fn share_at_min(&self, min: u32) -> f64 {
        let at_min: u64 = self.inner.range(..=min).map(|(_, count)| count).sum();
        at_min as f64 / self.inner.values().sum::<u64>().max(1) as f64
    }

    /// `bins` bars of equal width up to `max`, which is in the last.
    pub fn histogram(&self, max: u32, bins: u32) -> Vec<Bin> {
        let edge = |index: u32| (u64::from(max) * u64::from(index) / u64::from(bins)) as u32;
        let mut histogram: Vec<Bin> = (0..bins)
            .map(|index| Bin {
                from_bytes: edge(index),
                to_bytes: edge(index + 1),
                chunks: 0,
            })
            .collect();
        for (length, count) in self.all() {
            let index = histogram.partition_point(|bin| bin.to_bytes < length);
            if let Some(bin) = histogram.get_mut(index) {
                bin.chunks += count;
            }
        }
        histogram
    }
}

/// The middle value; of an even number, the mean of the two in the middle; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        length if length.is_multiple_of(2) => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(inner: &[usize], last: &[usize]) -> SizeCounts {
        let mut counts = SizeCounts::default();
        inner.iter().for_each(|&length| counts.add(length, false));
        last.iter().for_each(|&length| counts.add(length, true));
        counts
    }

    #[test]
    fn figures_equal_naive_ones() {
        let bytes = crate::chunk::data::random_bytes(1, 4000);
        let lengths: Vec<usize> = bytes
            .chunks(2)
            .map(|pair| 1 + usize::from(pair[0]) * usize::from(pair[1]))
            .collect();
        let counts = counts(&lengths[..1500], &lengths[1500..]);
        let total: usize = lengths.iter().sum();
        let mean = total as f64 / 2000.0;
        let variance = lengths
            .iter()
            .map(|&l| (l as f64 - mean).powi(2))
            .sum::<f64>()
            / 2000.0;
        assert_eq!(counts.chunks(), 2000);
        assert_eq!(counts.last_chunks(), 500);
        assert_eq!(counts.bytes(), total as u64);
        assert!((counts.mean() - mean).abs() < 1e-6);
        assert!((counts.standard_deviation() - variance.sqrt()).abs() < 1e-6);
        let mut sorted = lengths.clone();
        sorted.sort_unstable();
        assert_eq!(counts.percentile(0.5) as usize, sorted[999]);
        assert_eq!(counts.percentile(0.95) as usize, sorted[1899]);
        assert_eq!(counts.percentile(0.0) as usize, sorted[0]);
        assert_eq!(counts.percentile(1.0) as usize, sorted[1999]);
        for bins in [1, 7, 256] {
            let histogram = counts.histogram(65536, bins);
            assert_eq!(histogram.len(), bins as usize);
            assert_eq!(histogram.last().unwrap().to_bytes, 65536);
            for bin in &histogram {
                let within =
                    |&&l: &&usize| l > bin.from_bytes as usize && l <= bin.to_bytes as usize;
                assert_eq!(bin.chunks, lengths.iter().filter(within).count() as u64);
            }
        }
    }

    #[test]
    fn last_chunks_do_not_count_as_cut_at_min() {
        let counts = counts(&[100, 100, 200, 800], &[5, 100, 800]);
        assert_eq!(counts.share_at_min(100), 0.5);
        assert!((counts.share_at_max(800) - 2.0 / 7.0).abs() < 1e-12);
        assert_eq!(SizeCounts::default().share_at_min(9), 0.0);
        assert_eq!(SizeCounts::default().mean(), 0.0);
        assert_eq!(SizeCounts::default().percentile(0.5), 0);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[9.0, 1.0, 5.0, 2.0]), 3.5);
    }
}

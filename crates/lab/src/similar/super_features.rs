//! The super-features of many chunks.

use chunking::Isa;
use engine::similarity::{Detection, FeatureExtractor};

use crate::interrupt;
use crate::paper::timing::thread_seconds;

/// Chunks between two looks whether somebody asked for a stop.
const CHECK_EVERY: usize = 1024;

/// The super-features of chunks, in their order.
#[derive(Debug, Clone, Default)]
pub struct SuperFeatures {
    values: Vec<u32>,
    /// Where those of each chunk end.
    ends: Vec<usize>,
    /// Chunks without any.
    pub failures: u64,
    /// Seconds that the thread ran.
    pub seconds: f64,
}

impl SuperFeatures {
    /// Those of chunks, on one thread.
    ///
    /// # Errors
    /// When the parameters are impossible, or somebody asked for a stop.
    pub fn extract(detection: &Detection, chunks: &[&[u8]], isa: Isa) -> anyhow::Result<Self> {
        let mut extractor = FeatureExtractor::new(detection, isa)?;
        let mut all = Self::default();
        let mut own = Vec::new();
        for some in chunks.chunks(CHECK_EVERY) {
            interrupt::check()?;
            let clock = thread_seconds();
            for chunk in some {
                if !extractor.super_features(chunk, &mut own) {
                    all.failures += 1;
                }
                all.values.extend_from_slice(&own);
                all.ends.push(all.values.len());
            }
            all.seconds += thread_seconds() - clock;
        }
        Ok(all)
    }

    /// Those of a chunk; none where nothing was sampled.
    pub fn of(&self, chunk: usize) -> &[u32] {
        let start = match chunk {
            0 => 0,
            _ => self.ends[chunk - 1],
        };
        &self.values[start..self.ends[chunk]]
    }

    /// Chunks without features in a million.
    pub fn failures_per_million(&self) -> f64 {
        1e6 * self.failures as f64 / self.ends.len().max(1) as f64
    }

    /// So many for each chunk, given.
    #[cfg(test)]
    pub fn made(each: usize, values: &[u32]) -> Self {
        Self {
            values: values.to_vec(),
            ends: (1..=values.len() / each)
                .map(|chunk| chunk * each)
                .collect(),
            ..Self::default()
        }
    }
}

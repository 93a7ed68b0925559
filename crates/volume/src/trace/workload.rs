//! Writes with given characteristics, the same ones to the same seed.
//!
//! Source: Ni, dissertation, UT Arlington 2019, §5.3.2 (synthetic writes to 120 GB, random or
//! sequential; deduplication ratio: blocks written before deduplication to blocks after it;
//! compressibility ratio: share of blocks that compress, by 1.25) and Table 5.1 (days of FIU's
//! traces).

use std::time::Duration;

use super::random::{Random, mix};
use super::{BLOCK_BYTES, ContentId, ContentSource, TraceKind, TraceRecord, is_compressible};

/// Time from one write to the next. The evaluation writes without pauses; this keeps an order.
const INTERVAL: Duration = Duration::from_micros(1);

/// A day of a trace of FIU's in the evaluation. Of the days, only the ratio is published here; their
/// writes are in the traces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiuDay {
    /// Which trace.
    pub trace: &'static str,
    /// Which of its 21 days.
    pub day: u8,
    /// Its deduplication ratio.
    pub deduplication_ratio: f64,
}

/// Table 5.1.
pub const FIU_DAYS: [FiuDay; 9] = [
    fiu_day("webvm", 4, 1.60),
    fiu_day("webvm", 8, 1.35),
    fiu_day("webvm", 12, 1.16),
    fiu_day("homes", 11, 1.77),
    fiu_day("homes", 12, 2.80),
    fiu_day("homes", 13, 4.63),
    fiu_day("mail", 1, 5.43),
    fiu_day("mail", 2, 16.08),
    fiu_day("mail", 5, 9.73),
];

/// Those that the evaluation gives to the traces of Microsoft Research Cambridge (§5.3.3).
pub const MSR_CAMBRIDGE_DEDUPLICATION_RATIOS: [f64; 3] = [1.5, 2.0, 4.0];

const fn fiu_day(trace: &'static str, day: u8, deduplication_ratio: f64) -> FiuDay {
    FiuDay {
        trace,
        day,
        deduplication_ratio,
    }
}

/// Where writes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// From the first block on, and again when the last is written.
    Sequential,
    /// Anywhere, by chance.
    Random,
}

/// Writes of single blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Where they go.
    pub access: Access,
    /// Bytes of the disk, whole blocks of which are written.
    pub span_bytes: u64,
    /// How many writes.
    pub writes: u64,
    /// Blocks written to different contents.
    pub deduplication_ratio: f64,
    /// Share of the contents that compress.
    pub compressibility_ratio: f64,
    /// What chance follows from.
    pub seed: u64,
}

/// A workload can't be so.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// There is no whole block.
    #[error("{0} bytes are no block of {BLOCK_BYTES}")]
    Span(u64),
    /// Less is written than is stored.
    #[error("the deduplication ratio is 1 or more, not {0}")]
    DeduplicationRatio(f64),
    /// It is no share.
    #[error("the compressibility ratio is 0 to 1, not {0}")]
    CompressibilityRatio(f64),
}

impl Workload {
    /// The evaluation's synthetic writes with its most frequent figures: 120 GB, deduplication ratio
    /// 2, compressibility ratio 80 %.
    #[must_use]
    pub fn synthetic(access: Access, writes: u64, seed: u64) -> Self {
        Self {
            access,
            span_bytes: 120_000_000_000,
            writes,
            deduplication_ratio: 2.0,
            compressibility_ratio: 0.8,
            seed,
        }
    }

    /// Random writes with the ratio of a day of FIU's traces, to be used where the trace itself is
    /// not at hand.
    #[must_use]
    pub fn like(day: &FiuDay, writes: u64, seed: u64) -> Self {
        Self {
            deduplication_ratio: day.deduplication_ratio,
            ..Self::synthetic(Access::Random, writes, seed)
        }
    }

    /// The writes, in order.
    ///
    /// # Errors
    /// When there can't be such.
    pub fn records(&self) -> Result<impl Iterator<Item = TraceRecord> + use<>, WorkloadError> {
        let blocks = self.span_bytes / BLOCK_BYTES;
        if blocks == 0 {
            return Err(WorkloadError::Span(self.span_bytes));
        }
        if !(0.0..=1.0).contains(&self.compressibility_ratio) {
            let ratio = self.compressibility_ratio;
            return Err(WorkloadError::CompressibilityRatio(ratio));
        }
        let mut contents = ContentSource::new(self.deduplication_ratio, self.seed)?;
        let mut places = Random::new(mix(!self.seed));
        let access = self.access;
        let mut time = Duration::ZERO;
        Ok((0..self.writes).map(move |index| {
            let block = match access {
                Access::Sequential => index % blocks,
                Access::Random => places.below(blocks),
            };
            time = time.saturating_add(INTERVAL);
            TraceRecord {
                time,
                kind: TraceKind::Write,
                offset_bytes: block * BLOCK_BYTES,
                length_bytes: BLOCK_BYTES,
                content: Some(contents.next_content()),
            }
        }))
    }

    /// Whether a content is one of those that compress.
    #[must_use]
    pub fn compresses(&self, content: ContentId) -> bool {
        is_compressible(content, self.compressibility_ratio)
    }
}

/// A ratio that can be.
pub fn check_deduplication_ratio(ratio: f64) -> Result<(), WorkloadError> {
    match ratio.is_finite() && ratio >= 1.0 {
        true => Ok(()),
        false => Err(WorkloadError::DeduplicationRatio(ratio)),
    }
}

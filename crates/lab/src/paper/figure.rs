//! A number that an experiment gives, beside the paper's. What the numbers are is in one table,
//! [`METRICS`](super::metrics::METRICS).

use serde::Serialize;

pub use super::metrics::{Form, Metric};

/// A number that an experiment gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Name of the data set.
    pub data_set: String,
    /// What was measured, in the paper's words.
    pub approach: String,
    /// Where on the axis of the experiment it lies, if that has one.
    pub x: Option<f64>,
    /// What of it: the name of a row of [`METRICS`].
    pub metric: &'static str,
    /// What came out here.
    pub ours: f64,
    /// What the paper prints, if it does.
    pub paper: Option<f64>,
    /// `ours` − `paper`.
    pub difference: Option<f64>,
    /// The same, of 100 of the paper's; unknown where that is 0.
    pub difference_percent: Option<f64>,
}

/// Share of bytes saved, of 100: the dedup ratio of FastCDC and P-Dedupe.
pub const SAVED: &str = "dedup_saved_percent";
/// Bytes over bytes of distinct chunks: the dedup ratio of Ni.
pub const RATIO: &str = "dedup_ratio";
/// How much lower a dedup ratio is than another, of 100 of that.
pub const REDUCTION: &str = "dedup_reduction_percent";
/// Mean size of chunks.
pub const MEAN: &str = "mean_bytes";
/// Standard deviation of their sizes.
pub const DEVIATION: &str = "standard_deviation_bytes";
/// Speed of cutting.
pub const SPEED: &str = "chunk_bytes_per_second";
/// How many times as fast as the sequential chunker.
pub const SPEED_UP: &str = "speed_up";
/// What containers are filled with, of 100 of what they take: chunks and metadata.
pub const FILLING: &str = "filling_percent";
/// MiB restored over containers read.
pub const SPEED_FACTOR: &str = "speed_factor";
/// Duplicates whose fingerprint was in memory, of 100.
pub const HITS: &str = "hit_ratio_percent";
/// Bytes of distinct chunks over what deltas leave of them (Odess, Eq. 12).
pub const DCR: &str = "delta_compression_ratio";
/// The share that a delta saves, on average over similar chunks (Odess, Eq. 13).
pub const DCE: &str = "delta_compression_efficiency";
/// Similar chunks over the others (Odess, Eq. 14).
pub const SCR: &str = "similar_chunk_ratio";
/// Chunks in which nothing was sampled, in a million.
pub const SAMPLING_ERRORS: &str = "sampling_errors_per_million";
/// Speed of making super-features.
pub const FEATURE_SPEED: &str = "feature_bytes_per_second";
/// How far an estimated similarity is from the actual one, on average; both are 0 to 1.
pub const ERROR: &str = "estimating_error";
/// Standard deviation of that.
pub const ERROR_DEVIATION: &str = "estimating_error_deviation";
/// Throughput of a whole system in one thread.
pub const SYSTEM_SPEED: &str = "system_bytes_per_second";
/// The same if its stages ran side by side, computed.
pub const PIPELINED: &str = "pipelined_bytes_per_second";
/// Bytes over all that is left after dedup and deltas.
pub const GLOBAL_RATIO: &str = "global_compression_ratio";
/// The same, computed of what one thread takes.
pub const PREDICTED: &str = "predicted_speed_up";

impl Figure {
    /// A figure without numbers.
    pub fn new(
        experiment: &'static str,
        data_set: &str,
        approach: &str,
        metric: &'static str,
    ) -> Self {
        Self {
            experiment,
            data_set: data_set.to_owned(),
            approach: approach.to_owned(),
            x: None,
            metric,
            ours: 0.0,
            paper: None,
            difference: None,
            difference_percent: None,
        }
    }

    /// The same somewhere on the axis of the experiment.
    pub fn at(self, x: f64) -> Self {
        Self { x: Some(x), ..self }
    }

    /// The same with numbers.
    pub fn with(self, ours: f64, paper: Option<f64>) -> Self {
        Self {
            ours,
            paper,
            difference: paper.map(|paper| ours - paper),
            difference_percent: paper
                .filter(|paper| *paper != 0.0)
                .map(|paper| 100.0 * (ours / paper - 1.0)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_ours_from_the_papers() {
        let figure = Figure::new("table4", "TAR", "FIXC", SAVED).with(30.0, Some(40.0));
        assert_eq!(figure.difference, Some(-10.0));
        assert_eq!(figure.difference_percent, Some(-25.0));
        let shown = Metric::named(SAVED).difference(&figure);
        assert_eq!(shown.as_deref(), Some("-10.00"));
        let figure = Figure::new("fig14", "TAR", "RC-v1", SPEED).with(30.0, None);
        assert_eq!(figure.difference, None);
        let figure = Figure::new("table2.1", "TAR", "MUCH", "is_invariant").with(1.0, Some(0.0));
        assert_eq!(figure.difference_percent, None);
        let metric = Metric::named("is_invariant");
        assert_eq!(metric.difference(&figure).as_deref(), Some("differs"));
    }
}

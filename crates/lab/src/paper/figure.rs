//! A number that an experiment gives, beside the paper's; and what the numbers are.
//!
//! Every figure names its metric, and [`METRICS`] says how each is written: one table, for the
//! terminal, for pages and for the axes of plots.

use serde::Serialize;

use crate::units;

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

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With two decimals.
    Number,
    /// Hundredths with two decimals; differences are in points.
    Percent,
    /// A whole number.
    Count,
    /// GB/s with three digits.
    Speed,
    /// With three digits that count.
    Digits,
    /// With two decimals and a cross.
    Times,
    /// 1 and 0.
    YesNo,
}

/// What there is to know about a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name in JSON.
    pub name: &'static str,
    /// What stands above a column of it.
    pub heading: &'static str,
    /// What stands beside an axis of it.
    pub words: &'static str,
    /// How it is written.
    pub form: Form,
}

const fn metric(
    name: &'static str,
    heading: &'static str,
    words: &'static str,
    form: Form,
) -> Metric {
    Metric {
        name,
        heading,
        words,
        form,
    }
}

/// Every metric.
pub const METRICS: &[Metric] = &[
    metric(SAVED, "SAVED", "bytes saved", Form::Percent),
    metric(RATIO, "RATIO", "dedup ratio", Form::Number),
    metric(REDUCTION, "REDUCTION", "dedup ratio lost", Form::Percent),
    metric(MEAN, "MEAN", "mean chunk size (bytes)", Form::Count),
    metric(DEVIATION, "SD", "standard deviation (bytes)", Form::Count),
    metric(SPEED, "GB/S", "GB/s", Form::Speed),
    metric(SPEED_UP, "SPEED-UP", "speed-up", Form::Times),
    metric(PREDICTED, "PREDICTED", "predicted speed-up", Form::Times),
    metric(
        "predicted_bytes_per_second",
        "PREDICTED GB/S",
        "predicted GB/s",
        Form::Speed,
    ),
    metric(
        "equation_6_bytes_per_second",
        "EQ. 6 GB/S",
        "GB/s by Eq. 6",
        Form::Speed,
    ),
    metric(
        "dedup_bytes_per_second",
        "DEDUP GB/S",
        "GB/s of the whole system",
        Form::Speed,
    ),
    metric(
        "dedup_speed_up",
        "DEDUP SPEED-UP",
        "speed-up of the whole system",
        Form::Times,
    ),
    metric(
        "stage_seconds_per_gigabyte",
        "S/GB",
        "seconds for a gigabyte",
        Form::Digits,
    ),
    metric(
        "instructions_per_byte",
        "INSTRUCTIONS/B",
        "instructions for a byte",
        Form::Number,
    ),
    metric(
        "instructions_per_cycle",
        "IPC",
        "instructions a cycle",
        Form::Number,
    ),
    metric(
        "cycles_per_byte",
        "CYCLES/B",
        "cycles for a byte",
        Form::Number,
    ),
    metric(
        "branches_per_byte",
        "BRANCHES/B",
        "branches for a byte",
        Form::Number,
    ),
    metric("is_invariant", "INVARIANT", "invariant", Form::YesNo),
    metric("cut_lists", "CUT LISTS", "cut lists", Form::Count),
    metric(
        "cut_lists_different",
        "DIFFERENT",
        "different cut lists",
        Form::Count,
    ),
    metric(
        "two_threads_speed_up",
        "2 THREADS",
        "speed-up by two threads",
        Form::Times,
    ),
    metric("simd_speed_up", "SIMD", "speed-up by SIMD", Form::Times),
    metric(
        "stage_two_percent",
        "STAGE 2",
        "share of stage 2",
        Form::Percent,
    ),
    metric(
        "normalized_ratio_percent",
        "NORMALIZED",
        "saved, of what sequential chunking saves",
        Form::Percent,
    ),
    metric(
        "missed_percent",
        "MISSED",
        "duplicates not found, of all bytes",
        Form::Percent,
    ),
    metric(
        "dirty_percent",
        "DIRTY",
        "bytes in dirty chunks",
        Form::Percent,
    ),
    metric(
        "dirty_bytes_per_segment",
        "DIRTY/SEGMENT",
        "bytes in dirty chunks, a segment",
        Form::Number,
    ),
    metric(
        "borders_percent",
        "BORDERS",
        "share of borders",
        Form::Percent,
    ),
    metric(
        "chunking_percent",
        "CHUNKING",
        "share of chunking",
        Form::Percent,
    ),
    metric(
        "fingerprint_percent",
        "FINGERPRINTS",
        "share of fingerprints",
        Form::Percent,
    ),
    metric("disk_percent", "DISK", "disk is busy", Form::Percent),
    metric(
        "duplicate_chunks_percent",
        "CHUNKS",
        "share of chunks",
        Form::Percent,
    ),
    metric(
        "hit_percent",
        "HITS",
        "hits at this place of the list",
        Form::Percent,
    ),
    metric("slow_down_percent", "SLOW-DOWN", "slow-down", Form::Percent),
    metric(
        "small_files_percent",
        "FILES",
        "share of the files",
        Form::Percent,
    ),
    metric(
        "small_bytes_percent",
        "BYTES",
        "share of the bytes",
        Form::Percent,
    ),
    metric(FILLING, "FILLING", "filling ratio", Form::Percent),
    metric(
        "data_percent",
        "CHUNKS ALONE",
        "filling ratio, chunks alone",
        Form::Percent,
    ),
    metric("containers", "CONTAINERS", "containers", Form::Count),
    metric(
        SPEED_FACTOR,
        "SPEED FACTOR",
        "speed factor (MiB a container read)",
        Form::Digits,
    ),
    metric("container_reads", "READS", "containers read", Form::Count),
    metric(
        "last_speed_factor",
        "LAST VERSION",
        "speed factor of the last version",
        Form::Digits,
    ),
    metric(HITS, "HITS", "hit ratio", Form::Percent),
    metric(
        "reads_per_thousand_lookups",
        "READS/1000",
        "disk reads for 1000 duplicates",
        Form::Digits,
    ),
    metric(
        "read_bytes_per_lookup",
        "BYTES",
        "bytes read for a duplicate",
        Form::Digits,
    ),
    metric(
        "rewritten_percent",
        "REWRITTEN",
        "bytes stored again",
        Form::Percent,
    ),
    metric(
        "skipped_percent",
        "SKIPPED",
        "bytes cut by hints",
        Form::Percent,
    ),
    metric(DCE, "DCE", "delta compression efficiency", Form::Digits),
    metric(DCR, "DCR", "delta compression ratio", Form::Digits),
    metric(SCR, "SCR", "similar chunk ratio", Form::Digits),
    metric(
        SAMPLING_ERRORS,
        "NO FEATURES",
        "chunks without features, in a million",
        Form::Digits,
    ),
    metric(
        FEATURE_SPEED,
        "FEATURES GB/S",
        "GB/s of features",
        Form::Speed,
    ),
    metric(ERROR, "ERROR", "mean estimating error", Form::Digits),
    metric(
        ERROR_DEVIATION,
        "SD",
        "standard deviation of the estimating error",
        Form::Digits,
    ),
    metric(
        "similarity_percent",
        "SIMILARITY",
        "similarity",
        Form::Percent,
    ),
    metric(
        "similarity_deviation_percent",
        "SD",
        "standard deviation of the similarity",
        Form::Percent,
    ),
    metric(
        "estimates_percent",
        "ESTIMATES",
        "estimates up to there",
        Form::Percent,
    ),
    metric(
        SYSTEM_SPEED,
        "SYSTEM GB/S",
        "GB/s of the system, one thread",
        Form::Speed,
    ),
    metric(
        PIPELINED,
        "PIPELINED GB/S",
        "GB/s of the slowest stage",
        Form::Speed,
    ),
    metric(
        GLOBAL_RATIO,
        "GLOBAL",
        "global compression ratio",
        Form::Digits,
    ),
];

impl Metric {
    /// The metric of that name; one that no table has is a plain number.
    pub fn named(name: &'static str) -> Self {
        let found = METRICS.iter().find(|metric| metric.name == name);
        found
            .copied()
            .unwrap_or(metric(name, name, name, Form::Number))
    }

    /// A value as people read it.
    pub fn text(&self, value: f64) -> String {
        match self.form {
            Form::Number => format!("{value:.2}"),
            Form::Percent if value != 0.0 && value.abs() < 0.1 => format!("{value:.4} %"),
            Form::Percent => format!("{value:.2} %"),
            Form::Count => units::count(value.round().max(0.0) as u64),
            Form::Speed => units::three_digits(value / 1e9),
            Form::Digits => units::three_digits(value),
            Form::Times => format!("{value:.2}×"),
            Form::YesNo => if value == 1.0 { "yes" } else { "no" }.to_owned(),
        }
    }

    /// How far a figure is from the paper's.
    pub fn difference(&self, figure: &Figure) -> Option<String> {
        match self.form {
            Form::Percent => figure.difference.map(|points| format!("{points:+.2}")),
            Form::YesNo => figure.difference.map(|difference| {
                let is_same = difference == 0.0;
                if is_same { "" } else { "differs" }.to_owned()
            }),
            _ => figure
                .difference_percent
                .map(|percent| format!("{percent:+.1} %")),
        }
    }
}

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

    #[test]
    fn numbers_are_written_by_their_metric() {
        let text = |name, value| Metric::named(name).text(value);
        assert_eq!(text(SAVED, 12.345), "12.35 %");
        assert_eq!(text("missed_percent", 0.0054), "0.0054 %");
        assert_eq!(text(SPEED, 2.81e9), "2.81");
        assert_eq!(text(SPEED_UP, 3.3), "3.30×");
        assert_eq!(text("is_invariant", 1.0), "yes");
        assert_eq!(text(MEAN, 8192.4), "8,192");
        for (index, metric) in METRICS.iter().enumerate() {
            let others = &METRICS[..index];
            assert!(others.iter().all(|other| other.name != metric.name));
        }
    }
}

//! What the numbers of experiments are.
//!
//! Every figure names its metric, and [`METRICS`] says how each is written: one table, for the
//! terminal, for pages and for the axes of plots.

use super::figure::{
    DCE, DCR, DEVIATION, ERROR, ERROR_DEVIATION, FEATURE_SPEED, FILLING, Figure, GLOBAL_RATIO,
    HITS, MEAN, PIPELINED, PREDICTED, RATIO, REDUCTION, SAMPLING_ERRORS, SAVED, SCR, SPEED,
    SPEED_FACTOR, SPEED_UP, SYSTEM_SPEED,
};
use crate::units;

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
    metric("hash_mebibytes_per_second", "MIB/S", "MiB/s", Form::Digits),
    metric(
        "write_amplification",
        "WRITES",
        "blocks written for a block of the program",
        Form::Number,
    ),
    metric(
        "data_amplification",
        "DATA",
        "of them, blocks of data",
        Form::Number,
    ),
    metric(
        "metadata_amplification",
        "METADATA",
        "of them, blocks of the volume's metadata",
        Form::Number,
    ),
    metric(
        "writes_of_no_dedup_percent",
        "OF NO DEDUP",
        "blocks written, of those without dedup",
        Form::Percent,
    ),
    metric(
        "home_hits_percent",
        "HOME HITS",
        "home blocks that were in the journal",
        Form::Percent,
    ),
    metric(
        "wrong_blocks",
        "WRONG",
        "blocks that differ from what was written",
        Form::Count,
    ),
    metric(
        "wrong_writes",
        "WRONG WRITES",
        "writes that came back wrong",
        Form::Count,
    ),
    metric(
        "fast_ssd_megabytes_per_second",
        "FAST MB/S",
        "MB/s of the program on the fast SSD, by the model",
        Form::Digits,
    ),
    metric(
        "moderate_ssd_megabytes_per_second",
        "MODERATE MB/S",
        "MB/s of the program on the moderate SSD, by the model",
        Form::Digits,
    ),
    metric(
        "slow_ssd_megabytes_per_second",
        "SLOW MB/S",
        "MB/s of the program on the slow SSD, by the model",
        Form::Digits,
    ),
    metric(
        "wall_megabytes_per_second",
        "WALL MB/S",
        "MB/s of the program here",
        Form::Digits,
    ),
    metric(
        "window_latency_ms",
        "LATENCY MS",
        "latency of windows, by the model (ms)",
        Form::Digits,
    ),
    metric(
        "pool_bytes",
        "BYTES",
        "memory of the pool (bytes)",
        Form::Count,
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
    metric(
        "path_blocks_per_second",
        "BLOCKS/S",
        "blocks/s by the model, in the path of writes",
        Form::Count,
    ),
    metric(
        "blocks_per_second_with_commits",
        "WITH COMMITS",
        "blocks/s by the model, with commits",
        Form::Count,
    ),
    metric(
        "times_ordered",
        "× ORDERED",
        "of `ordered`'s throughput",
        Form::Times,
    ),
    metric(
        "times_ordered_mapping_only",
        "× MAPPING ONLY",
        "of the throughput of `ordered`, mapping only",
        Form::Times,
    ),
    metric(
        "times_ordered_with_commits",
        "× WITH COMMITS",
        "of `ordered`'s throughput, with commits",
        Form::Times,
    ),
    metric(
        "latency_ms",
        "LATENCY MS",
        "latency by the model (ms)",
        Form::Digits,
    ),
    metric(
        "thin_window",
        "THIN'S WINDOW",
        "window of `thin` (blocks)",
        Form::Count,
    ),
    metric(
        "latency_cut_percent",
        "LATENCY CUT",
        "latency that `thin` saves",
        Form::Percent,
    ),
    metric(
        "explicit_metadata_percent",
        "EXPLICIT",
        "metadata blocks written explicitly",
        Form::Percent,
    ),
    metric(
        "metadata_of_ordered_percent",
        "METADATA OF ORDERED'S",
        "metadata blocks in the path of writes, of `ordered`'s",
        Form::Percent,
    ),
    metric(
        "metadata_of_ordered_with_commits_percent",
        "WITH COMMITS",
        "metadata blocks with commits, of `ordered`'s",
        Form::Percent,
    ),
    metric(
        "data_blocks_per_window",
        "DATA",
        "data blocks a window",
        Form::Number,
    ),
    metric(
        "path_metadata_per_window",
        "METADATA",
        "metadata blocks a window, in the path of writes",
        Form::Number,
    ),
    metric(
        "path_flushes_per_window",
        "FLUSHES",
        "flushes a window, in the path of writes",
        Form::Number,
    ),
    metric(
        "path_seeks_per_window",
        "SEEKS",
        "seeks a window, in the path of writes",
        Form::Number,
    ),
    metric(
        "commit_blocks_per_window",
        "COMMITTED",
        "blocks of commits a window",
        Form::Number,
    ),
    metric(
        "commit_flushes_per_window",
        "COMMITS' FLUSHES",
        "flushes of commits a window",
        Form::Digits,
    ),
    metric(
        "compressed_percent",
        "COMPRESSED",
        "data blocks that were compressed",
        Form::Percent,
    ),
    metric("commits", "COMMITS", "commits", Form::Count),
    metric(
        "commit_blocks_per_write",
        "COMMITTED/BLOCK",
        "blocks of commits for a block written",
        Form::Number,
    ),
    metric(
        "hard_disk_times_ordered",
        "HARD DISK, × ORDERED",
        "of `ordered`'s throughput on the hard disk, with commits",
        Form::Times,
    ),
    metric(
        "ssd_times_ordered",
        "SSD, × ORDERED",
        "of `ordered`'s throughput on the SSD, with commits",
        Form::Times,
    ),
    metric(
        "longest_window_ms",
        "LONGEST MS",
        "longest window on the hard disk (ms)",
        Form::Count,
    ),
    metric(
        "wall_blocks_per_second",
        "OUR BLOCKS/S",
        "blocks/s on this machine",
        Form::Count,
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

#[cfg(test)]
mod tests {
    use super::*;

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

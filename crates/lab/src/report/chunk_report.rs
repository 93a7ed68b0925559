//! The report of `onefold-lab chunk` as data: what `--json` prints, described for users in
//! docs/guide/lab-json.md, and what tables, CSV and pages are made of.
//!
//! Names of fields have their unit last. Fields may be added; none changes its meaning.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use chunking::{OwnParameter, Parameters, Rolling};
use serde::Serialize;

use super::machine::Machine;
use crate::chunk::contestant::{Contestant, Method, rolling_name};
use crate::chunk::data::{DataSet, Notice};
use crate::chunk::loader::Reading;
use crate::chunk::measuring::{Effort, Measurement, Outcome};
use crate::chunk::sizes::median;

/// Bars of a histogram.
const BINS: u32 = 256;

/// All of it.
#[derive(Debug, Serialize)]
pub struct ChunkReport {
    /// As in the output of `onefold`.
    pub event: &'static str,
    /// The verb.
    pub command: &'static str,
    /// Name and version of this program.
    pub program: String,
    /// How it was measured.
    pub settings: SettingsReport,
    /// Where.
    pub machine: Machine,
    /// On what.
    pub data: DataReport,
    /// What was found out, contestant by contestant.
    pub results: Vec<ResultReport>,
    /// What was left out or ignored.
    pub notes: Vec<String>,
    /// How long all of it took.
    pub seconds: f64,
}

/// How it was measured.
#[derive(Debug, Serialize)]
pub struct SettingsReport {
    /// Timed passes of each contestant.
    pub runs: u64,
    /// Threads that cut.
    pub threads: u64,
    /// Most bytes that lie in memory at a time.
    pub memory_bytes: u64,
    /// Bytes of memory that were used for data.
    pub buffer_bytes: u64,
    /// How many of these lie in huge pages; `None` where the system does not tell.
    pub huge_page_bytes: Option<u64>,
}

/// On what.
#[derive(Debug, Serialize)]
pub struct DataReport {
    /// The paths that were given.
    pub paths: Vec<String>,
    /// Files of which there was anything.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Files of no bytes.
    pub empty_files: u64,
    /// Symlinks and special files.
    pub skipped: u64,
    /// Files and directories that could not be read to their end.
    pub failed: u64,
    /// Files that were longer or shorter than when they were found.
    pub changed: u64,
    /// What happened to which file.
    pub problems: Vec<ProblemReport>,
    /// How often the memory was filled.
    pub batches: u64,
    /// Time for reading.
    pub read_seconds: f64,
    /// Speed of reading.
    pub read_bytes_per_second: f64,
}

/// Something that happened to a file.
#[derive(Debug, Serialize)]
pub struct ProblemReport {
    /// The file.
    pub path: String,
    /// Its bytes in hexadecimal digits, where they are no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// What happened.
    pub message: String,
    /// Whether bytes are missing because of it.
    pub is_error: bool,
}

/// What was found out about a contestant.
#[derive(Debug, Clone, Serialize)]
pub struct ResultReport {
    pub label: String,
    pub algorithm: &'static str,
    pub crate_version: Option<&'static str>,
    pub min_bytes: u32,
    pub avg_bytes: u32,
    pub max_bytes: u32,
    pub normalization: u8,
    pub own: BTreeMap<&'static str, OwnValue>,
    pub rolling: Option<&'static str>,
    pub structure: &'static str,
    pub chunk_bytes_per_second: f64,
    pub chunk_seconds: f64,
    pub chunk_seconds_min: f64,
    pub chunk_seconds_max: f64,
    pub chunk_seconds_runs: Vec<f64>,
    pub read_seconds: f64,
    pub fingerprint_seconds: f64,
    pub index_seconds: f64,
    pub bytes: u64,
    pub bytes_unique: u64,
    pub dedup_ratio: Option<f64>,
    pub dedup_saved_percent: Option<f64>,
    pub chunks: u64,
    pub chunks_unique: u64,
    pub chunks_last: u64,
    pub mean_bytes: f64,
    pub standard_deviation_bytes: f64,
    pub shortest_bytes: u32,
    pub p05_bytes: u32,
    pub median_bytes: u32,
    pub p95_bytes: u32,
    pub longest_bytes: u32,
    pub at_max_share: f64,
    pub at_min_share: f64,
    pub cuts_digest: String,
    pub histogram: Vec<BinReport>,
}

/// The value of an own parameter: polynomials are hexadecimal text, for they do not fit into the
/// numbers of every reader of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OwnValue {
    Number(u64),
    Text(String),
}

/// The chunks longer than `from_bytes` and at most `to_bytes` long.
#[derive(Debug, Clone, Serialize)]
pub struct BinReport {
    pub from_bytes: u32,
    pub to_bytes: u32,
    pub chunks: u64,
}

impl ChunkReport {
    /// The report of a measurement.
    pub fn new(
        paths: &[impl AsRef<Path>],
        data: &DataSet,
        effort: &Effort,
        measurement: &Measurement,
        notes: Vec<String>,
    ) -> Self {
        let read_seconds = measurement.reading.seconds.as_secs_f64();
        let result = |outcome| ResultReport::new(outcome, read_seconds);
        Self {
            event: "summary",
            command: "chunk",
            program: program(),
            settings: SettingsReport {
                runs: effort.runs as u64,
                threads: 1,
                memory_bytes: effort.memory_bytes,
                buffer_bytes: measurement.memory_bytes,
                huge_page_bytes: measurement.huge_page_bytes,
            },
            machine: Machine::here(),
            data: DataReport::new(paths, data, &measurement.reading),
            results: measurement.outcomes.iter().map(result).collect(),
            notes,
            seconds: 0.0,
        }
    }
}

/// Name and version of this program.
pub fn program() -> String {
    format!("onefold-lab {}", env!("CARGO_PKG_VERSION"))
}

impl DataReport {
    /// What was read of a data set.
    pub fn new(paths: &[impl AsRef<Path>], data: &DataSet, reading: &Reading) -> Self {
        let notices = || data.notices.iter().chain(&reading.notices);
        let seconds = reading.seconds.as_secs_f64();
        Self {
            paths: paths
                .iter()
                .map(|path| path.as_ref().display().to_string())
                .collect(),
            files: reading.streams,
            bytes: reading.bytes,
            empty_files: data.empty_files,
            skipped: data.skipped,
            failed: notices().filter(|notice| notice.is_error).count() as u64,
            changed: reading.changed,
            problems: notices().map(ProblemReport::new).collect(),
            batches: reading.batches,
            read_seconds: seconds,
            read_bytes_per_second: rate(reading.bytes, seconds),
        }
    }

    /// What was read of a trace: so many bytes that it writes.
    pub fn of_trace(paths: &[impl AsRef<Path>], bytes: u64) -> Self {
        let reading = Reading {
            streams: paths.len() as u64,
            bytes,
            ..Reading::default()
        };
        Self::new(paths, &DataSet::default(), &reading)
    }

    /// Adds what was read of other paths.
    pub fn add(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.files += other.files;
        self.bytes += other.bytes;
        self.empty_files += other.empty_files;
        self.skipped += other.skipped;
        self.failed += other.failed;
        self.changed += other.changed;
        self.problems.extend(other.problems);
        self.batches += other.batches;
        self.read_seconds += other.read_seconds;
        self.read_bytes_per_second = rate(self.bytes, self.read_seconds);
    }
}

impl ProblemReport {
    fn new(notice: &Notice) -> Self {
        let bytes = notice.path.as_os_str().as_bytes();
        let is_text = std::str::from_utf8(bytes).is_ok();
        Self {
            path: notice.path.display().to_string(),
            path_hex: (!is_text).then(|| hexadecimal(bytes)),
            message: notice.message.clone(),
            is_error: notice.is_error,
        }
    }
}

impl ResultReport {
    /// The report on one contestant.
    pub fn new(outcome: &Outcome, read_seconds: f64) -> Self {
        let Outcome {
            contestant,
            sizes,
            chunk_seconds,
            ..
        } = outcome;
        let [min_bytes, avg_bytes, max_bytes] = contestant.sizes();
        let bytes = sizes.bytes();
        let unique = outcome.unique_bytes;
        let is_deduplicated = unique > 0;
        let seconds = median(chunk_seconds);
        let histogram = sizes.histogram(max_bytes, BINS.min(max_bytes));
        Self {
            label: contestant.label.clone(),
            algorithm: contestant.algorithm_name(),
            crate_version: crate_version(contestant),
            min_bytes,
            avg_bytes,
            max_bytes,
            normalization: normalization(contestant),
            own: own_parameters(contestant),
            rolling: rolling(contestant),
            structure: contestant.structure().name(),
            chunk_bytes_per_second: rate(bytes, seconds),
            chunk_seconds: seconds,
            chunk_seconds_min: chunk_seconds.iter().copied().fold(f64::INFINITY, f64::min),
            chunk_seconds_max: chunk_seconds.iter().copied().fold(0.0, f64::max),
            chunk_seconds_runs: chunk_seconds.clone(),
            read_seconds,
            fingerprint_seconds: outcome.fingerprint_seconds,
            index_seconds: outcome.index_seconds,
            bytes,
            bytes_unique: unique,
            dedup_ratio: is_deduplicated.then(|| bytes as f64 / unique as f64),
            dedup_saved_percent: is_deduplicated
                .then(|| 100.0 * (bytes - unique) as f64 / bytes as f64),
            chunks: sizes.chunks(),
            chunks_unique: outcome.unique_chunks,
            chunks_last: sizes.last_chunks(),
            mean_bytes: sizes.mean(),
            standard_deviation_bytes: sizes.standard_deviation(),
            shortest_bytes: sizes.percentile(0.0),
            p05_bytes: sizes.percentile(0.05),
            median_bytes: sizes.percentile(0.5),
            p95_bytes: sizes.percentile(0.95),
            longest_bytes: sizes.percentile(1.0),
            at_max_share: sizes.share_at_max(max_bytes),
            at_min_share: sizes.share_at_min(min_bytes),
            cuts_digest: hexadecimal(&outcome.cuts_digest),
            histogram: histogram
                .iter()
                .map(|bin| BinReport {
                    from_bytes: bin.from_bytes,
                    to_bytes: bin.to_bytes,
                    chunks: bin.chunks,
                })
                .collect(),
        }
    }

    /// GB/s: 10⁹ bytes in a second.
    pub fn gigabytes_per_second(&self) -> f64 {
        self.chunk_bytes_per_second / 1e9
    }

    /// Whether it looks at the bytes at all: chunks of one size do not depend on them.
    pub fn reads_the_data(&self) -> bool {
        self.crate_version.is_some() || self.algorithm != chunking::Algorithm::Fixed.name()
    }
}

fn crate_version(contestant: &Contestant) -> Option<&'static str> {
    match &contestant.method {
        Method::Own { .. } => None,
        Method::Rival(rival) => Some(rival.kind.info().version),
    }
}

fn normalization(contestant: &Contestant) -> u8 {
    match &contestant.method {
        Method::Own { parameters, .. } => parameters.normalization,
        Method::Rival(rival) => rival.normalization,
    }
}

fn rolling(contestant: &Contestant) -> Option<&'static str> {
    match &contestant.method {
        Method::Own {
            parameters: Parameters { algorithm, .. },
            running,
            ..
        } if Rolling::OneByte.is_of(*algorithm) => Some(rolling_name(running.rolling)),
        _ => None,
    }
}

fn own_parameters(contestant: &Contestant) -> BTreeMap<&'static str, OwnValue> {
    let Method::Own { parameters, .. } = &contestant.method else {
        return BTreeMap::new();
    };
    let value = |(parameter, value): (OwnParameter, u64)| {
        let value = match parameter {
            OwnParameter::Polynomial => OwnValue::Text(format!("{value:#x}")),
            _ => OwnValue::Number(value),
        };
        (parameter.info().name, value)
    };
    parameters.own.given().map(value).collect()
}

/// Bytes in a second; 0 where no time passed.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 / seconds
    } else {
        0.0
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

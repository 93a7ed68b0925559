//! The report of `onefold-lab similar` as data: what `--json` prints, described for users in
//! docs/guide/lab-json.md.

use serde::Serialize;

use super::chunk_report::DataReport;
use super::machine::Machine;
use crate::similar::chunks::UniqueChunks;
use crate::similar::studies::{Choices, Finding, LayoutFinding};

/// All of it.
#[derive(Debug, Serialize)]
pub struct SimilarReport {
    /// As in the output of `onefold`.
    pub event: &'static str,
    /// The verb.
    pub command: &'static str,
    /// Name and version of this program.
    pub program: String,
    /// How it was measured.
    pub settings: SimilarSettings,
    /// Where.
    pub machine: Machine,
    /// On what.
    pub data: DataReport,
    /// What chunking and dedup made of it.
    pub chunks: ChunksReport,
    /// One for each setting.
    pub results: Vec<SimilarResult>,
    /// One for each way to compress chunks together.
    pub layouts: Vec<LayoutReport>,
    /// How long all of it took.
    pub seconds: f64,
}

/// How it was measured.
#[derive(Debug, Serialize)]
pub struct SimilarSettings {
    /// What was varied.
    pub studies: Vec<&'static str>,
    /// What cuts, with its settings.
    pub algorithm: String,
    /// What finds similar chunks where that does not vary.
    pub detector: String,
    /// Which of several similar chunks is the base.
    pub base: &'static str,
    /// Most deltas to a whole chunk; unlimited if null.
    pub depth: Option<u32>,
    /// The longest delta that is kept, of 100 of its chunk.
    pub delta_limit_percent: u32,
    /// How differences are written down.
    pub codec: &'static str,
    /// zstd's level.
    pub level: i32,
    /// The level of instruction sets.
    pub isa: String,
    /// Timed passes.
    pub runs: u64,
    /// Most bytes of data.
    pub size_bytes: u64,
}

/// What chunking and dedup made of the data.
#[derive(Debug, Serialize)]
pub struct ChunksReport {
    /// All chunks.
    pub chunks: u64,
    /// Distinct ones.
    pub chunks_unique: u64,
    /// Bytes of all chunks.
    pub bytes: u64,
    /// Bytes of the distinct ones: what resemblance is looked for among.
    pub bytes_unique: u64,
    /// `bytes` over `bytes_unique`.
    pub dedup_ratio: f64,
    /// Mean size of the distinct ones.
    pub mean_bytes: f64,
}

/// What a setting gives.
#[derive(Debug, Serialize)]
pub struct SimilarResult {
    /// What was varied.
    pub study: &'static str,
    /// What finds similar chunks.
    pub detector: String,
    /// Super-features of a chunk.
    pub super_features: u64,
    /// Which of several similar chunks is the base.
    pub base: &'static str,
    /// Most deltas to a whole chunk.
    pub depth: Option<u32>,
    /// The longest delta that is kept, of 100 of its chunk.
    pub delta_limit_percent: u32,
    /// How differences are written down.
    pub codec: &'static str,
    /// Bytes of index for a distinct chunk; everything is held if null.
    pub index_bytes_per_chunk: Option<f64>,
    /// Super-features of a chunk that are put into the index.
    pub index_super_features: u64,
    /// What a full index forgets.
    pub index_forgets: Option<&'static str>,
    /// Super-features in the index in the end.
    pub index_entries: u64,
    /// DCR (Eq. 12).
    pub delta_compression_ratio: f64,
    /// DCE (Eq. 13).
    pub delta_compression_efficiency: f64,
    /// SCR (Eq. 14).
    pub similar_chunk_ratio: f64,
    /// What is stored, uncompressed.
    pub bytes_left: u64,
    /// Chunks that are whole, of it.
    pub whole_bytes: u64,
    /// Deltas, of it.
    pub delta_bytes: u64,
    /// Chunks that have a base.
    pub detected_chunks: u64,
    /// Those whose delta is shorter than they are.
    pub delta_chunks: u64,
    /// Chunks without features.
    pub sampling_errors: u64,
    /// Deltas to go through, on average over chunks that are deltas.
    pub mean_depth: f64,
    /// At most.
    pub max_depth: u32,
    /// Speed of making features.
    pub feature_bytes_per_second: f64,
    /// Speed of encoding.
    pub encode_bytes_per_second: f64,
    /// Speed of decoding one step.
    pub decode_bytes_per_second: f64,
    /// Looking super-features up, and putting them in.
    pub lookup_seconds: f64,
}

/// What a way to compress chunks together gives.
#[derive(Debug, Serialize)]
pub struct LayoutReport {
    /// What it is.
    pub label: &'static str,
    /// Bytes stored.
    pub bytes: u64,
    /// The same, of 100 of the distinct chunks.
    pub left_percent: f64,
    /// Features, look-ups, deltas, compression: of one core, for 10⁹ bytes of distinct chunks.
    pub seconds_per_gigabyte: f64,
    /// Compressed units to read for one chunk, on average.
    pub read_units: f64,
    /// Bytes of them.
    pub read_bytes: f64,
    /// Bytes that are decompressed.
    pub read_plain_bytes: f64,
}

impl SimilarSettings {
    /// As they were chosen.
    pub fn new(
        choices: &Choices,
        studies: Vec<&'static str>,
        algorithm: String,
        size_bytes: u64,
    ) -> Self {
        Self {
            studies,
            algorithm,
            detector: choices.detector.to_string(),
            base: choices.choice.name(),
            depth: choices.depth,
            delta_limit_percent: choices.limit_percent,
            codec: choices.codec.name(),
            level: choices.level.number(),
            isa: choices.isa.to_string(),
            runs: choices.runs as u64,
            size_bytes,
        }
    }
}

impl ChunksReport {
    /// Of distinct chunks.
    pub fn new(unique: &UniqueChunks<'_>) -> Self {
        Self {
            chunks: unique.logical_chunks,
            chunks_unique: unique.chunks.len() as u64,
            bytes: unique.logical_bytes,
            bytes_unique: unique.bytes,
            dedup_ratio: unique.dedup_ratio(),
            mean_bytes: unique.mean_bytes(),
        }
    }
}

impl SimilarResult {
    /// Of what was found.
    pub fn new(finding: &Finding) -> Self {
        let reduction = &finding.reduction;
        let (mean_depth, max_depth) = reduction.depths();
        let bounded = finding.bounded;
        let all = finding.super_features;
        Self {
            study: finding.study.name(),
            detector: finding.choices.detector.to_string(),
            super_features: all as u64,
            base: finding.choices.choice.name(),
            depth: finding.choices.depth,
            delta_limit_percent: finding.choices.limit_percent,
            codec: finding.choices.codec.name(),
            index_bytes_per_chunk: bounded.map(|bounded| bounded.bytes_per_chunk),
            index_super_features: bounded.map_or(all, |bounded| bounded.indexed) as u64,
            index_forgets: bounded.map(|bounded| bounded.forgetting.name()),
            index_entries: reduction.entries as u64,
            delta_compression_ratio: reduction.compression_ratio(),
            delta_compression_efficiency: reduction.efficiency(),
            similar_chunk_ratio: reduction.similar_ratio(),
            bytes_left: reduction.bytes_left(),
            whole_bytes: reduction.whole_bytes,
            delta_bytes: reduction.deltas.len() as u64,
            detected_chunks: reduction.detected,
            delta_chunks: reduction.pairs().count() as u64,
            sampling_errors: finding.failures,
            mean_depth,
            max_depth,
            feature_bytes_per_second: finding.feature_bytes_per_second,
            encode_bytes_per_second: finding.encode_bytes_per_second,
            decode_bytes_per_second: finding.decode_bytes_per_second,
            lookup_seconds: reduction.lookup_seconds,
        }
    }
}

impl LayoutReport {
    /// Of what was found on so many bytes of distinct chunks.
    pub fn new((layout, stored): &LayoutFinding, bytes_unique: u64) -> Self {
        let unique = bytes_unique.max(1) as f64;
        Self {
            label: layout.label,
            bytes: stored.bytes,
            left_percent: 100.0 * stored.bytes as f64 / unique,
            seconds_per_gigabyte: 1e9 * stored.seconds / unique,
            read_units: stored.read.units,
            read_bytes: stored.read.stored_bytes,
            read_plain_bytes: stored.read.plain_bytes,
        }
    }
}

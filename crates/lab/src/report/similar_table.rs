//! The report of `onefold-lab similar` as lines: a table for each study, CSV for programs.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;

use super::chunk_table::cell;
use super::similar_report::{LayoutReport, SimilarReport, SimilarResult};
use crate::units;

/// Columns of the CSV: fields of a result in JSON, in this order.
pub const COLUMNS: [&str; 26] = [
    "study",
    "detector",
    "super_features",
    "base",
    "depth",
    "delta_limit_percent",
    "codec",
    "index_bytes_per_chunk",
    "index_super_features",
    "index_forgets",
    "index_entries",
    "delta_compression_ratio",
    "delta_compression_efficiency",
    "similar_chunk_ratio",
    "bytes_left",
    "whole_bytes",
    "delta_bytes",
    "detected_chunks",
    "delta_chunks",
    "sampling_errors",
    "mean_depth",
    "max_depth",
    "feature_bytes_per_second",
    "encode_bytes_per_second",
    "decode_bytes_per_second",
    "lookup_seconds",
];

/// What does not vary, and what each study says of it.
pub fn text(report: &SimilarReport) -> String {
    let (settings, chunks) = (&report.settings, &report.chunks);
    let mut text = format!(
        "{}: {} in {}, cut by {}: {} distinct chunks of {} on average, {} (dedup ratio {:.3})\n",
        report.machine.cpu,
        units::bytes(report.data.bytes),
        units::counted(report.data.files, "stream", "streams"),
        settings.algorithm,
        units::count(chunks.chunks_unique),
        units::bytes(chunks.mean_bytes as u64),
        units::bytes(chunks.bytes_unique),
        chunks.dedup_ratio,
    );
    let _ = writeln!(
        text,
        "Unless it varies: {}, base {}, depth {}, deltas up to {} %, codec {}, zstd level {}; one thread, {}, median of {}",
        settings.detector,
        settings.base,
        depth(settings.depth),
        settings.delta_limit_percent,
        settings.codec,
        settings.level,
        settings.isa,
        units::counted(settings.runs, "pass", "passes"),
    );
    for study in &settings.studies {
        let of_study = |result: &&SimilarResult| result.study == *study;
        let results: Vec<&SimilarResult> = report.results.iter().filter(of_study).collect();
        if !results.is_empty() {
            let _ = writeln!(text, "\n{}", table(study, &results));
        }
    }
    if !report.layouts.is_empty() {
        let _ = writeln!(text, "\n{}", layouts(&report.layouts));
        text.push_str(
            "\nTo read one chunk from nothing: UNITS that are read and decompressed, bases' included.\n",
        );
    }
    let _ = writeln!(text, "\n{:.0} s", report.seconds);
    text
}

fn depth(depth: Option<u32>) -> String {
    depth.map_or("unlimited".to_owned(), |depth| depth.to_string())
}

/// What a setting is called where only it varies.
fn setting(study: &str, result: &SimilarResult) -> String {
    match study {
        "detectors" => result.detector.clone(),
        "bases" => result.base.to_owned(),
        "depths" => depth(result.depth),
        "limits" => format!("{} %", result.delta_limit_percent),
        "codecs" => result.codec.to_owned(),
        _ => match (result.index_bytes_per_chunk, result.index_forgets) {
            (Some(bytes), Some(forgets)) => format!(
                "{bytes:.2} B a chunk, {}, forgets {forgets}",
                units::counted(
                    result.index_super_features,
                    "super-feature",
                    "super-features"
                )
            ),
            _ => "everything".to_owned(),
        },
    }
}

fn table(study: &str, results: &[&SimilarResult]) -> Table {
    let mut table = plain_table(&[
        &study.to_uppercase(),
        "DCR",
        "DCE",
        "SCR",
        "LEFT",
        "DELTAS",
        "DEPTH",
        "NO FEATURES",
        "FEATURES GB/S",
        "ENCODE MB/S",
        "DECODE MB/S",
    ]);
    for result in results {
        table.add_row([
            setting(study, result),
            format!("{:.3}", result.delta_compression_ratio),
            format!("{:.4}", result.delta_compression_efficiency),
            format!("{:.3}", result.similar_chunk_ratio),
            units::bytes(result.bytes_left),
            units::bytes(result.delta_bytes),
            format!("{:.2} ({})", result.mean_depth, result.max_depth),
            units::count(result.sampling_errors),
            units::three_digits(result.feature_bytes_per_second / 1e9),
            units::count((result.encode_bytes_per_second / 1e6) as u64),
            units::count((result.decode_bytes_per_second / 1e6) as u64),
        ]);
    }
    table
}

fn layouts(layouts: &[LayoutReport]) -> Table {
    let mut table = plain_table(&[
        "COMPRESSED TOGETHER",
        "BYTES",
        "LEFT",
        "S/GB",
        "UNITS",
        "READ",
        "DECOMPRESSED",
    ]);
    for layout in layouts {
        table.add_row([
            layout.label.to_owned(),
            units::bytes(layout.bytes),
            format!("{:.2} %", layout.left_percent),
            units::three_digits(layout.seconds_per_gigabyte),
            format!("{:.2}", layout.read_units),
            units::bytes(layout.read_bytes as u64),
            units::bytes(layout.read_plain_bytes as u64),
        ]);
    }
    table
}

fn plain_table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(headings.to_vec());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The results as CSV.
pub fn csv(report: &SimilarReport) -> anyhow::Result<String> {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for result in &report.results {
        let fields: Value = serde_json::to_value(result)?;
        let cells: Vec<_> = COLUMNS.iter().map(|name| cell(&fields[*name])).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    Ok(text)
}

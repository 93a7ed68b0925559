//! The report of `onefold-lab chunk` as lines: a table for people, CSV for programs.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;

use super::chunk_report::{ChunkReport, ResultReport};
use crate::units;

/// Headings of the table.
const HEADINGS: [&str; 13] = [
    "ALGORITHM",
    "GB/S",
    "RATIO",
    "SAVED",
    "CHUNKS",
    "MEAN",
    "SD",
    "AT MAX",
    "AT MIN",
    "READ",
    "CHUNK",
    "FINGERPRINT",
    "INDEX",
];

/// Columns of the CSV: fields of a result in JSON, in this order.
pub const COLUMNS: [&str; 31] = [
    "label",
    "algorithm",
    "crate_version",
    "min_bytes",
    "avg_bytes",
    "max_bytes",
    "normalization",
    "rolling",
    "structure",
    "chunk_bytes_per_second",
    "chunk_seconds",
    "chunk_seconds_min",
    "chunk_seconds_max",
    "read_seconds",
    "fingerprint_seconds",
    "index_seconds",
    "bytes",
    "bytes_unique",
    "dedup_ratio",
    "dedup_saved_percent",
    "chunks",
    "chunks_unique",
    "mean_bytes",
    "standard_deviation_bytes",
    "shortest_bytes",
    "p05_bytes",
    "median_bytes",
    "p95_bytes",
    "longest_bytes",
    "at_max_share",
    "at_min_share",
];

/// The report for people.
pub fn text(report: &ChunkReport) -> String {
    let data = &report.data;
    let mut text = format!(
        "{}, {}; {} in memory, {}; {}, one thread, median of {}\n\n{}\n",
        units::counted(data.files, "file", "files"),
        units::bytes(data.bytes),
        units::counted(data.batches, "batch", "batches"),
        huge_pages(report),
        report.machine.cpu,
        units::counted(report.settings.runs, "pass", "passes"),
        table(&report.results)
    );
    let has_fixed = report.results.iter().any(|result| !result.reads_the_data());
    if has_fixed {
        let _ = writeln!(
            text,
            "\nChunks of one size look at no byte, so they have no speed."
        );
    }
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    if data.changed > 0 {
        let changed = units::counted(data.changed, "file", "files");
        let _ = writeln!(
            text,
            "{changed} changed while they were read (named above)."
        );
    }
    text
}

/// How much of the memory lies in huge pages.
pub fn huge_pages(report: &ChunkReport) -> String {
    let settings = &report.settings;
    match settings.huge_page_bytes {
        None => "huge pages unknown".to_owned(),
        Some(0) => "no huge pages".to_owned(),
        Some(bytes) => {
            let percent = 100.0 * bytes as f64 / settings.buffer_bytes.max(1) as f64;
            format!("{percent:.0} % huge pages")
        }
    }
}

fn table(results: &[ResultReport]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(HEADINGS);
    for result in results {
        table.add_row(row(result));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The cells of one contestant.
pub fn row(result: &ResultReport) -> [String; 13] {
    let or_dash = |value: Option<f64>, print: fn(f64) -> String| match value {
        Some(value) => print(value),
        None => "–".to_owned(),
    };
    let seconds = |value: f64| format!("{} s", units::three_digits(value));
    [
        result.label.clone(),
        if result.reads_the_data() {
            units::three_digits(result.gigabytes_per_second())
        } else {
            "–".to_owned()
        },
        or_dash(result.dedup_ratio, |ratio| format!("{ratio:.3}")),
        or_dash(result.dedup_saved_percent, |saved| format!("{saved:.2} %")),
        units::count(result.chunks),
        units::count(result.mean_bytes.round() as u64),
        units::count(result.standard_deviation_bytes.round() as u64),
        format!("{:.2} %", 100.0 * result.at_max_share),
        format!("{:.2} %", 100.0 * result.at_min_share),
        seconds(result.read_seconds),
        seconds(result.chunk_seconds),
        seconds(result.fingerprint_seconds),
        seconds(result.index_seconds),
    ]
}

/// The report as CSV: a line of headings, a line for each contestant.
pub fn csv(report: &ChunkReport) -> anyhow::Result<String> {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for result in &report.results {
        let fields = serde_json::to_value(result)?;
        let cells: Vec<_> = COLUMNS.iter().map(|name| cell(&fields[*name])).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    Ok(text)
}

/// A value as a cell (RFC 4180); unknown ones are empty.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::cell;
    use serde_json::json;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(cell(&json!(null)), "");
        assert_eq!(cell(&json!(1.5)), "1.5");
        assert_eq!(cell(&json!("gear")), "gear");
        assert_eq!(cell(&json!("a:b=1,c=\"2\"")), "\"a:b=1,c=\"\"2\"\"\"");
    }
}

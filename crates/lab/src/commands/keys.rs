//! `onefold-lab keys FILES…`: chunkers under many keys, and at equal mean chunks.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::output::{partial, print, tell};
use crate::chunk::data::DataSet;
use crate::chunk::keys::{KeyedOutcome, measure_keys};
use crate::chunk::selection::{self, Setting};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::report::chunk_report::program;
use crate::units::{self, parse_bytes, parse_chunk_bytes};

const AFTER_HELP: &str = concat!(
    "\
The dedup ratio differs by a percent from key to key, and smaller chunks save more whatever cuts
them: so ratios are averaged over keys, and compared at the mean chunk of the first algorithm.
",
    exit_codes!()
);

/// What to cut, by which chunkers, under how many keys.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct KeysArguments {
    /// Files to cut, and directories to find files in
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Keyed algorithms, with commas between them; the others are held against the first
    #[arg(short, long, value_name = "LIST", default_value = "fastcdc,fold")]
    pub algorithm: Vec<String>,
    /// How many keys
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub keys: u64,
    /// No chunk but the last of a file is smaller
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub min: Option<u32>,
    /// Expected size of a chunk, in the sense of each algorithm
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub avg: Option<u32>,
    /// No chunk is greater
    #[arg(long, value_name = "SIZE", value_parser = parse_chunk_bytes)]
    pub max: Option<u32>,
    /// Most data that is held in memory at a time
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    pub memory: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress and no notes
    #[arg(short, long)]
    pub quiet: bool,
}

/// The report (docs/guide/lab-json.md).
#[derive(Debug, Serialize)]
struct Report {
    event: &'static str,
    command: &'static str,
    /// Name and version of this program.
    program: String,
    /// Bytes of all files.
    bytes: u64,
    keys: u64,
    results: Vec<ResultReport>,
}

/// One algorithm.
#[derive(Debug, Serialize)]
struct ResultReport {
    label: String,
    dedup_ratio: f64,
    dedup_ratio_standard_error: f64,
    dedup_ratio_least: f64,
    dedup_ratio_most: f64,
    mean_bytes: f64,
    /// At the mean chunk of the first result.
    equal_mean_dedup_ratio: Option<f64>,
    /// By how much that is more than the ratio of the first result.
    equal_mean_gain_percent: Option<f64>,
}

impl ResultReport {
    fn new(outcome: &KeyedOutcome, first: &KeyedOutcome) -> Self {
        let gain = |ratio: f64| 100.0 * (ratio / first.dedup_ratio.mean - 1.0);
        Self {
            label: outcome.label.clone(),
            dedup_ratio: outcome.dedup_ratio.mean,
            dedup_ratio_standard_error: outcome.dedup_ratio.standard_error,
            dedup_ratio_least: outcome.dedup_ratio.least,
            dedup_ratio_most: outcome.dedup_ratio.most,
            mean_bytes: outcome.mean_bytes.mean,
            equal_mean_dedup_ratio: outcome.equal_mean_ratio,
            equal_mean_gain_percent: outcome.equal_mean_ratio.map(gain),
        }
    }
}

/// Measures, and prints what was found out.
pub fn run(arguments: &KeysArguments) -> anyhow::Result<()> {
    interrupt::catch()?;
    let sizes = [
        arguments.min.map(Setting::Min),
        arguments.avg.map(Setting::Avg),
        arguments.max.map(Setting::Max),
    ];
    let settings: Vec<_> = sizes.into_iter().flatten().collect();
    let selection = selection::select(&arguments.algorithm.join(","), &settings)?;
    let data = DataSet::of_paths(&arguments.files)?;
    let mut progress = Progress::new(arguments.quiet);
    tell(&data.notices, &progress);
    let (outcomes, reading) = measure_keys(
        &selection.contestants,
        arguments.keys,
        &data,
        arguments.memory,
        &mut progress,
    )?;
    progress.finish();
    tell(&reading, &progress);
    let Some(first) = outcomes.first() else {
        return Err(Failure::usage("no algorithm is left").into());
    };
    let report = Report {
        event: "summary",
        command: "keys",
        program: program(),
        bytes: data.bytes(),
        keys: arguments.keys,
        results: outcomes
            .iter()
            .map(|outcome| ResultReport::new(outcome, first))
            .collect(),
    };
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string(&report)?))?;
    } else {
        print(&text(&report))?;
    }
    let notices = data.notices.iter().chain(&reading);
    match notices.filter(|notice| notice.is_error).count() {
        0 => Ok(()),
        failed => Err(partial(failed as u64, arguments.json)),
    }
}

/// The report as a table.
fn text(report: &Report) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "ALGORITHM",
        "RATIO",
        "±",
        "LEAST",
        "MOST",
        "MEAN",
        "AT EQUAL MEAN",
        "",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for result in &report.results {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
        table.add_row([
            result.label.clone(),
            format!("{:.4}", result.dedup_ratio),
            format!("{:.4}", result.dedup_ratio_standard_error),
            format!("{:.4}", result.dedup_ratio_least),
            format!("{:.4}", result.dedup_ratio_most),
            format!("{:.0}", result.mean_bytes),
            or_dash(
                result
                    .equal_mean_dedup_ratio
                    .map(|ratio| format!("{ratio:.4}")),
            ),
            or_dash(
                result
                    .equal_mean_gain_percent
                    .map(|gain| format!("{gain:+.2} %")),
            ),
        ]);
    }
    let mut text = format!("{table}\n");
    let bytes = units::bytes(report.bytes);
    let _ = writeln!(
        text,
        "\n{bytes}, means over {} keys; ±: standard error",
        report.keys
    );
    text
}

//! `onefold-lab index`: the fingerprint index alone, at any size.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::output::print;
use crate::index::control_group::ControlGroup;
use crate::index::{Experiment, Results, measure};
use crate::interrupt;
use crate::progress::Progress;
use crate::report::chunk_report::program;
use crate::report::machine::Machine;
use crate::units::{self, parse_bytes};

/// What a control group may take beside the memory of the index.
const BESIDE_BYTES: u64 = 64 << 20;

const AFTER_HELP: &str = "\
Fingerprints are random and lie in containers of 512. 'Stream order' asks for them as a backup of the
same data does: those of a container that was found are known without the index from then on.
'Cold': the pages of the index were dropped from the page cache before. Sealed and synced as in a
repository; everything runs on one thread.

Exit codes:
    0  done
    1  failed
    2  wrong usage
  130  interrupted";

/// How large, and in how much memory.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct IndexArguments {
    /// Fingerprints in the index
    #[arg(long, value_name = "N", default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub entries: u64,
    /// Memory of the index
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Most look-ups of a measurement; a tenth of them where pages are cold
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub lookups: u64,
    /// Most seconds of a measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub seconds: u64,
    /// Build the index in this empty directory, and leave it there [else in a temporary one]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Run in a control group that may take 64 MiB more than the memory of the index, page cache
    /// included (Linux, mostly as root)
    #[arg(long)]
    pub control_group: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress
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
    machine: Machine,
    entries: u64,
    control_group: Option<GroupReport>,
    #[serde(flatten)]
    results: Results,
}

/// What the control group says.
#[derive(Debug, Serialize)]
struct GroupReport {
    limit_bytes: u64,
    peak_bytes: Option<u64>,
    /// How often the limit was met.
    limited: Option<u64>,
}

/// Measures, and prints what was found out.
pub fn run(arguments: &IndexArguments) -> anyhow::Result<()> {
    interrupt::catch()?;
    let memory_bytes = usize::try_from(arguments.memory).context("too much memory")?;
    let experiment = Experiment {
        entries: arguments.entries,
        memory_bytes,
        lookups: arguments.lookups,
        seconds: arguments.seconds,
    };
    let temporary = match arguments.directory {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("cannot make a directory")?),
    };
    let directory = match (&arguments.directory, &temporary) {
        (Some(directory), _) => directory.as_path(),
        (None, Some(temporary)) => temporary.path(),
        (None, None) => return Ok(()),
    };
    let limit_bytes = arguments.memory + BESIDE_BYTES;
    let group = match arguments.control_group {
        true => Some(ControlGroup::enter(limit_bytes)?),
        false => None,
    };
    let mut progress = Progress::new(arguments.quiet);
    let results = measure(&experiment, directory, &mut progress)?;
    progress.finish();
    let report = Report {
        event: "summary",
        command: "index",
        program: program(),
        machine: Machine::here(),
        entries: arguments.entries,
        control_group: group.map(|group| GroupReport {
            limit_bytes,
            peak_bytes: group.peak_bytes(),
            limited: group.limited(),
        }),
        results,
    };
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string(&report)?))
    } else {
        print(&text(&report))
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let build = &report.results.build;
    let or_unknown = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), units::bytes);
    let _ = writeln!(
        text,
        "{} fingerprints in {} of memory\n\n\
         build      {} a second ({:.1} s, {:.1} s of it merging; {:.1} s of processor), each written {:.2} times\n\
         runs       {} in the end, at most {}\n\
         disk       {:.2} B a fingerprint\n\
         memory     at most {} by the index's own count, {} resident",
        units::count(report.entries),
        units::bytes(report.results.memory.limit_bytes),
        units::count(build.entries_per_second as u64),
        build.seconds,
        build.merge_seconds,
        build.cpu_seconds,
        build.writes_per_entry,
        build.runs,
        build.runs_most,
        build.bytes_per_entry,
        units::bytes(build.counted_bytes_most),
        or_unknown(build.peak_rss_bytes),
    );
    for opening in &report.results.openings {
        let cold = if opening.is_cold { "cold" } else { "warm" };
        let _ = writeln!(text, "open       {:.1} ms, {cold}", opening.seconds * 1e3);
    }
    let _ = writeln!(text, "\n{}", table(report));
    let memory = &report.results.memory;
    let _ = writeln!(
        text,
        "\nin the end {} counted: footers {}, filters {}, blocks {}; {} resident at most",
        units::bytes(memory.counted_bytes),
        units::bytes(memory.footer_bytes),
        units::bytes(memory.filter_bytes),
        units::bytes(memory.block_bytes),
        or_unknown(memory.peak_rss_bytes),
    );
    if let Some(group) = &report.control_group {
        let limited = group.limited.map_or("?".to_owned(), units::count);
        let _ = writeln!(
            text,
            "control group: {} at most of {}, page cache included; the limit was met {limited} times",
            or_unknown(group.peak_bytes),
            units::bytes(group.limit_bytes),
        );
    }
    text
}

fn table(report: &Report) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "LOOK-UPS",
        "PAGES",
        "A SECOND",
        "OF PROCESSOR",
        "BLOCKS READ",
        "FALSE POSITIVES",
        "UNFILTERED",
        "PLANES READ",
    ]);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for measured in &report.results.measurements {
        table.add_row([
            measured.what.to_owned(),
            if measured.is_cold { "cold" } else { "warm" }.to_owned(),
            units::count(measured.lookups_per_second as u64),
            units::count((measured.lookups as f64 / measured.cpu_seconds) as u64),
            format!("{:.3}", measured.block_reads),
            format!("{:.4}", measured.false_positives),
            format!("{:.4}", measured.unfiltered_misses),
            units::count(measured.filter_reads),
        ]);
    }
    table
}

//! The report of `onefold-lab paper` as lines: tables for people, CSV for programs.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;

use super::chunk_table::cell;
use super::paper_report::PaperReport;
use crate::paper::about::{AxisInfo, ExperimentInfo};
use crate::paper::claim::{Claim, Verdict};
use crate::paper::figure::{Figure, Metric};
use crate::report::ticks::Unit;
use crate::units;

/// Columns of the CSV: fields of a figure in JSON, in this order.
pub const COLUMNS: [&str; 9] = [
    "experiment",
    "data_set",
    "approach",
    "x",
    "metric",
    "ours",
    "paper",
    "difference",
    "difference_percent",
];

/// An experiment's figures as a table: headings, rows.
pub type Grid = (Vec<String>, Vec<Vec<String>>);

/// The report for people.
pub fn text(report: &PaperReport) -> String {
    let mut text = format!(
        "{} on {}, {}, median of {}\n",
        report.about.title,
        report.machine.cpu,
        report.about.threads,
        units::counted(report.settings.runs, "pass", "passes")
    );
    for set in &report.data_sets {
        let sample = if set.is_sample {
            ", the first of more"
        } else {
            ""
        };
        let _ = write!(
            text,
            "{}: {} in {}{sample}",
            set.name,
            units::bytes(set.data.bytes),
            units::counted(set.data.files, "stream", "streams"),
        );
        let _ = match set.paper {
            Some(paper) => writeln!(text, "; the paper's: {paper}"),
            None if set.data.paths.is_empty() => writeln!(text, " of random numbers"),
            None => writeln!(text),
        };
    }
    let _ = writeln!(text, "{}", report.about.stand_ins);
    for info in report.experiments() {
        if let Some(grid) = grid(report, info) {
            let _ = writeln!(text, "\n{}\n{}", info.title, table(&grid));
        }
    }
    text.push('\n');
    text.push_str(&verdicts(&report.claims, report.about.tolerances));
    let _ = writeln!(text, "{}", report.about.comparison);
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    text
}

/// The claims that were looked at, in two lines each.
fn verdicts(claims: &[Claim], tolerances: &str) -> String {
    let mut text = format!("What the paper says, and whether it holds here ({tolerances})\n");
    let is_tested = |claim: &&Claim| claim.verdict != Verdict::NotTested;
    for claim in claims.iter().filter(is_tested) {
        let _ = writeln!(
            text,
            "{:14} {} ({})\n{:14} {}",
            claim.verdict.words(),
            claim.claim,
            claim.source,
            "",
            claim.evidence
        );
    }
    let open = claims.len() - claims.iter().filter(is_tested).count();
    if open > 0 {
        let open = units::counted(open as u64, "claim", "claims");
        let _ = writeln!(text, "{open} not tested, for want of experiments or data.");
    }
    text
}

/// Rows of an experiment: data set, approach, place on the axis.
type Key<'a> = (&'a str, &'a str, Option<f64>);

/// The figures of an experiment: a row for each approach on each data set (at each place of its
/// axis), columns for ours, the paper's, and the difference.
pub fn grid(report: &PaperReport, info: &ExperimentInfo) -> Option<Grid> {
    let figures: Vec<&Figure> = report.figures_of(info.name).collect();
    if figures.is_empty() {
        return None;
    }
    let mut metrics: Vec<(Metric, bool)> = Vec::new();
    let mut keys: Vec<Key<'_>> = Vec::new();
    for figure in &figures {
        let has_paper = figure.paper.is_some();
        match metrics
            .iter_mut()
            .find(|(metric, _)| metric.name == figure.metric)
        {
            Some((_, any)) => *any |= has_paper,
            None => metrics.push((Metric::named(figure.metric), has_paper)),
        }
        if !keys.contains(&key(figure)) {
            keys.push(key(figure));
        }
    }
    let mut headings = vec!["DATA".to_owned(), "APPROACH".to_owned()];
    headings.extend(info.axis.map(|axis| axis.heading.to_owned()));
    for (metric, has_paper) in &metrics {
        headings.push(metric.heading.to_owned());
        if *has_paper {
            headings.extend(["PAPER".to_owned(), "DIFFERENCE".to_owned()]);
        }
    }
    let row = |&wanted: &Key<'_>| {
        let (set, approach, x) = wanted;
        let mut row = vec![set.to_owned(), approach.to_owned()];
        row.extend(info.axis.map(|axis| place(&axis, x)));
        for (metric, has_paper) in &metrics {
            let figure = figures
                .iter()
                .find(|figure| key(figure) == wanted && figure.metric == metric.name);
            row.extend(cells(figure.copied(), metric, *has_paper));
        }
        row
    };
    Some((headings, keys.iter().map(row).collect()))
}

fn key(figure: &Figure) -> Key<'_> {
    (&figure.data_set, &figure.approach, figure.x)
}

/// A place on an axis in words.
fn place(axis: &AxisInfo, x: Option<f64>) -> String {
    let Some(x) = x else { return String::new() };
    match axis.unit {
        Unit::Bytes => units::short_bytes(x.round().max(0.0) as u64),
        Unit::Percent => format!("{x} %"),
        Unit::Number if x.fract() != 0.0 => x.to_string(),
        Unit::Number => units::count(x.round().max(0.0) as u64),
    }
}

fn cells(figure: Option<&Figure>, metric: &Metric, has_paper: bool) -> Vec<String> {
    let print = |value: Option<f64>| value.map_or_else(String::new, |value| metric.text(value));
    let mut cells = vec![print(figure.map(|figure| figure.ours))];
    if has_paper {
        cells.push(print(figure.and_then(|figure| figure.paper)));
        let difference = figure.and_then(|figure| metric.difference(figure));
        cells.push(difference.unwrap_or_default());
    }
    cells
}

/// What the paper says, as a table.
pub fn claims(claims: &[Claim]) -> Grid {
    let headings = ["", "SOURCE", "CLAIM", "FOUND"].map(str::to_owned).to_vec();
    let row = |claim: &Claim| {
        vec![
            claim.verdict.words().to_owned(),
            claim.source.to_owned(),
            claim.claim.to_owned(),
            claim.evidence.clone(),
        ]
    };
    (headings, claims.iter().map(row).collect())
}

fn table((headings, rows): &Grid) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(headings.clone());
    for row in rows {
        table.add_row(row.clone());
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 1 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<_> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// The figures as CSV.
pub fn csv(report: &PaperReport) -> anyhow::Result<String> {
    let mut text = COLUMNS.join(",");
    text.push('\n');
    for figure in &report.figures {
        let fields: Value = serde_json::to_value(figure)?;
        let cells: Vec<_> = COLUMNS.iter().map(|name| cell(&fields[*name])).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    Ok(text)
}

//! The report of `onefold-lab paper` as lines: tables for people, CSV for programs.

use std::fmt::Write as _;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde_json::Value;

use super::chunk_table::cell;
use super::paper_report::PaperReport;
use crate::paper::fastcdc::claims::{Claim, Verdict};
use crate::paper::fastcdc::experiments::{
    DEVIATION, EXPERIMENTS, ExperimentInfo, Figure, MEAN, SAVED, SPEED,
};
use crate::units;

/// Columns of the CSV: fields of a figure in JSON, in this order.
pub const COLUMNS: [&str; 8] = [
    "experiment",
    "data_set",
    "approach",
    "metric",
    "ours",
    "paper",
    "difference",
    "difference_percent",
];

/// Why levels differ from the paper's.
pub const STAND_INS: &str = "The paper's own data can't be had: what is given stands in for it. Levels differ with the data; what counts is how the approaches stand to each other.";

/// What "about" and "nearly" mean.
pub const TOLERANCES: &str = "\"about n×\" from 80 % of n on, \"nearly\" within 2 %, in every case";

/// Which loops are compared.
pub const LOOPS: &str = "All run by the loops that the paper prints: one byte after another, FC' two at a time. FC* has the cuts of FC by the fastest loop here, which is what onefold does; RC, GC and AE have such loops, too (`onefold-lab chunk` measures them).";

/// An experiment's figures as a table: headings, rows.
pub type Grid = (Vec<String>, Vec<Vec<String>>);

/// The report for people.
pub fn text(report: &PaperReport) -> String {
    let mut text = format!(
        "FastCDC (Xia et al., TPDS 2020) on {}, one thread, median of {}\n",
        report.machine.cpu,
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
            None => writeln!(text, " of random numbers"),
        };
    }
    let _ = writeln!(text, "{STAND_INS}");
    for info in EXPERIMENTS
        .iter()
        .filter(|info| report.has(info.experiment))
    {
        if let Some(grid) = grid(report, info) {
            let _ = writeln!(text, "\n{}\n{}", info.title, table(&grid));
        }
    }
    let _ = write!(text, "\n{}\n{LOOPS}\n", verdicts(&report.claims));
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    text
}

/// The claims that were looked at, in two lines each.
fn verdicts(claims: &[Claim]) -> String {
    let mut text = format!("What the paper says, and whether it holds here ({TOLERANCES})\n");
    let is_tested = |claim: &&Claim| claim.verdict != Verdict::NotTested;
    for claim in claims.iter().filter(is_tested) {
        let _ = writeln!(
            text,
            "{:14} {} ({})\n{:14} {}",
            verdict(claim.verdict),
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

/// The figures of an experiment: a row for each approach on each data set, columns for ours, the
/// paper's, and the difference.
pub fn grid(report: &PaperReport, info: &ExperimentInfo) -> Option<Grid> {
    let figures: Vec<&Figure> = report
        .figures
        .iter()
        .filter(|figure| figure.experiment == info.name)
        .collect();
    if figures.is_empty() {
        return None;
    }
    let mut metrics: Vec<(&'static str, bool)> = Vec::new();
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for figure in &figures {
        let has_paper = figure.paper.is_some();
        match metrics
            .iter_mut()
            .find(|(metric, _)| *metric == figure.metric)
        {
            Some((_, any)) => *any |= has_paper,
            None => metrics.push((figure.metric, has_paper)),
        }
        let key = (figure.data_set.as_str(), figure.approach.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut headings = vec!["DATA".to_owned(), "APPROACH".to_owned()];
    for (metric, has_paper) in &metrics {
        headings.push(heading(metric).to_owned());
        if *has_paper {
            headings.extend(["PAPER".to_owned(), "DIFFERENCE".to_owned()]);
        }
    }
    let row = |&(set, approach): &(&str, &str)| {
        let mut row = vec![set.to_owned(), approach.to_owned()];
        for (metric, has_paper) in &metrics {
            let figure = figures.iter().find(|figure| {
                figure.data_set == set && figure.approach == approach && figure.metric == *metric
            });
            row.extend(cells(figure.copied(), metric, *has_paper));
        }
        row
    };
    Some((headings, keys.iter().map(row).collect()))
}

fn cells(figure: Option<&Figure>, metric: &str, has_paper: bool) -> Vec<String> {
    let print = |value: Option<f64>| value.map_or_else(String::new, |value| number(metric, value));
    let mut cells = vec![print(figure.map(|figure| figure.ours))];
    if has_paper {
        cells.push(print(figure.and_then(|figure| figure.paper)));
        let difference = match metric {
            SAVED => figure
                .and_then(|figure| figure.difference)
                .map(|points| format!("{points:+.2}")),
            _ => figure
                .and_then(|figure| figure.difference_percent)
                .map(|percent| format!("{percent:+.1} %")),
        };
        cells.push(difference.unwrap_or_default());
    }
    cells
}

fn heading(metric: &str) -> &str {
    match metric {
        SAVED => "SAVED",
        MEAN => "MEAN",
        DEVIATION => "SD",
        SPEED => "GB/S",
        "instructions_per_byte" => "INSTRUCTIONS/B",
        "instructions_per_cycle" => "IPC",
        "cycles_per_byte" => "CYCLES/B",
        "branches_per_byte" => "BRANCHES/B",
        other => other,
    }
}

fn number(metric: &str, value: f64) -> String {
    match metric {
        SAVED => format!("{value:.2} %"),
        MEAN | DEVIATION => units::count(value.round() as u64),
        SPEED => units::three_digits(value / 1e9),
        _ => format!("{value:.2}"),
    }
}

/// What the paper says, as a table.
pub fn claims(claims: &[Claim]) -> Grid {
    let headings = ["", "SOURCE", "CLAIM", "FOUND"].map(str::to_owned).to_vec();
    let row = |claim: &Claim| {
        vec![
            verdict(claim.verdict).to_owned(),
            claim.source.to_owned(),
            claim.claim.to_owned(),
            claim.evidence.clone(),
        ]
    };
    (headings, claims.iter().map(row).collect())
}

/// A verdict in words.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "does not hold",
        Verdict::NotTested => "not tested",
    }
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

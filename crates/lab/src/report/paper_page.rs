//! The report of `onefold-lab paper` as a page: the paper's figures drawn again, its tables beside
//! ours, and what of it holds.

use super::chunk_page::machine_facts;
use super::page::{Page, escaped};
use super::paper_report::PaperReport;
use super::paper_table::{Grid, claims, grid};
use super::{fastcdc_plots, paper_plots};
use crate::paper::claim::Verdict;
use crate::units;

/// The page.
pub fn page(report: &PaperReport) -> String {
    let about = report.about;
    let lead = format!(
        "The experiments of {}, run on {}; {}, the median of {}.",
        about.citation,
        report.machine.cpu,
        about.threads,
        units::counted(report.settings.runs, "pass", "passes")
    );
    let (name, _) = about.title.split_once(" (").unwrap_or((about.title, ""));
    let mut page = Page::new(&format!("{name}: the paper’s experiments"), &lead);
    add_claims(&mut page, report);
    add_data(&mut page, report);
    for info in report.experiments() {
        let Some(grid) = grid(report, info) else {
            continue;
        };
        page.heading(info.title);
        match about.name {
            "fastcdc" => fastcdc_plots::add(&mut page, report, info.name),
            _ => paper_plots::add(&mut page, report, info),
        }
        add_grid(&mut page, &grid);
    }
    page.heading("Notes");
    for note in &report.notes {
        page.paragraph(&format!("{note}."));
    }
    page.heading("Machine");
    page.facts(&machine_facts(&report.machine));
    page.paragraph(&format!("{}, {:.0} s.", report.program, report.seconds));
    page.finish()
}

fn add_claims(page: &mut Page, report: &PaperReport) {
    page.heading("What the paper says");
    let (_, rows) = claims(&report.claims);
    let cells: Vec<String> = report
        .claims
        .iter()
        .zip(rows)
        .map(|(claim, row)| {
            let class = match claim.verdict {
                Verdict::Holds => "holds",
                Verdict::DoesNotHold => "fails",
                Verdict::NotTested => "open",
            };
            let words: String = row[1..]
                .iter()
                .map(|cell| format!("<td class=\"prose\">{}</td>", escaped(cell)))
                .collect();
            format!("<td class=\"{class}\">{}</td>{words}", row[0])
        })
        .collect();
    page.table_of_cells(4, &["", "source", "claim", "found here"], &cells);
    page.paragraph(&format!("A claim holds: {}.", report.about.tolerances));
    page.paragraph(report.about.comparison);
}

fn add_data(page: &mut Page, report: &PaperReport) {
    page.heading("Data");
    let rows: Vec<Vec<String>> = report
        .data_sets
        .iter()
        .map(|set| {
            let sample = if set.is_sample {
                ", the first of more"
            } else {
                ""
            };
            vec![
                set.name.clone(),
                format!("{}{sample}", units::bytes(set.data.bytes)),
                units::count(set.data.files),
                match set.paper {
                    Some(paper) => paper.to_owned(),
                    None if set.data.paths.is_empty() => "random numbers".to_owned(),
                    None => String::new(),
                },
            ]
        })
        .collect();
    page.table(4, &["data set", "here", "streams", "the paper’s"], &rows);
    page.paragraph(report.about.stand_ins);
}

fn add_grid(page: &mut Page, (headings, rows): &Grid) {
    let headings: Vec<String> = headings
        .iter()
        .map(|heading| page_heading(heading))
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    page.table(2, &headings, rows);
}

/// A heading as pages write it: in small letters, but for units and abbreviations.
fn page_heading(heading: &str) -> String {
    match heading {
        "GB/S" | "PREDICTED GB/S" => heading.to_lowercase().replace("gb", "GB"),
        "SD" | "IPC" | "SIMD" => heading.to_owned(),
        _ => heading.to_lowercase(),
    }
}

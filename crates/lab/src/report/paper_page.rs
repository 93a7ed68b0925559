//! The report of `onefold-lab paper` as a page: the paper's figures drawn again, its tables beside
//! ours, and what of it holds.

use super::chunk_page::machine_facts;
use super::page::{Page, escaped};
use super::paper_plots as plots;
use super::paper_report::PaperReport;
use super::paper_table::{Grid, LOOPS, STAND_INS, TOLERANCES, claims, grid};
use super::plot::Style;
use crate::paper::fastcdc::claims::Verdict;
use crate::paper::fastcdc::experiments::{EXPERIMENTS, Experiment};
use crate::units;

/// The page.
pub fn page(report: &PaperReport) -> String {
    let lead = format!(
        "The experiments of Xia et al., “The Design of Fast Content-Defined Chunking for Data Deduplication Based Storage Systems” (IEEE TPDS 2020), run on {}; one thread, the median of {}.",
        report.machine.cpu,
        units::counted(report.settings.runs, "pass", "passes")
    );
    let mut page = Page::new("FastCDC: the paper’s experiments", &lead);
    add_claims(&mut page, report);
    add_data(&mut page, report);
    for info in EXPERIMENTS
        .iter()
        .filter(|info| report.has(info.experiment))
    {
        let Some(grid) = grid(report, info) else {
            continue;
        };
        page.heading(info.title);
        add_plots(&mut page, report, info.experiment);
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
    page.paragraph(&format!("A claim holds: {TOLERANCES}."));
    page.paragraph(LOOPS);
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
                set.paper.unwrap_or("random numbers").to_owned(),
            ]
        })
        .collect();
    page.table(4, &["data set", "here", "streams", "the paper’s"], &rows);
    page.paragraph(STAND_INS);
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
        "GB/S" => "GB/s".to_owned(),
        "SD" | "IPC" => heading.to_owned(),
        _ => heading.to_lowercase(),
    }
}

fn add_plots(page: &mut Page, report: &PaperReport, experiment: Experiment) {
    match experiment {
        Experiment::Fig5 | Experiment::Fig11 => {
            let plots = plots::cumulative(report, experiment);
            let legend = plots.first().map(|(_, legend)| legend.clone());
            let svgs: Vec<String> = plots.into_iter().map(|(svg, _)| svg).collect();
            if svgs.len() == 1 {
                page.figure(&svgs[0], "");
            } else {
                page.figures(&svgs, "");
            }
            page.legend(&legend.unwrap_or_default());
        }
        Experiment::Fig9 => {
            let svgs = plots::density(report, experiment);
            page.figures(&svgs, "Share of chunks of each size.");
        }
        Experiment::Fig10 | Experiment::Fig12 | Experiment::Fig13 => {
            for (svgs, legend) in plots::by_size(report, experiment) {
                page.figures(&svgs, "");
                page.legend(&legend);
            }
        }
        Experiment::Fig14 => {
            for svg in plots::speeds(report) {
                page.figure(&svg, "");
            }
        }
        Experiment::Table6 => {
            if let Some(svg) = plots::instructions(report) {
                let legend = [(0, "here"), (1, "the paper, Intel i7-8770")];
                page.figure(&svg, "");
                page.legend(&legend.map(|(index, name)| (Style::of(index), name.to_owned())));
            }
        }
        _ => {}
    }
}

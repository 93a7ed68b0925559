//! The report of `onefold-lab chunk` as a page with plots.

use super::chunk_plots::{STAGES, cumulative, density_panels, speed_against_dedup, stages};
use super::chunk_report::{ChunkReport, OwnValue, ResultReport};
use super::chunk_table::{huge_pages, row};
use super::machine::Machine;
use super::page::Page;
use super::plot::Style;
use crate::units;

/// The page.
pub fn page(report: &ChunkReport) -> String {
    let data = &report.data;
    let lead = format!(
        "{} and {} of data ({}), cut by {} in memory, one thread; the median of {}.",
        units::counted(data.files, "file", "files"),
        units::bytes(data.bytes),
        data.paths.join(", "),
        units::counted(report.results.len() as u64, "contestant", "contestants"),
        units::counted(report.settings.runs, "pass", "passes"),
    );
    let mut page = Page::new("Chunking", &lead);
    add_results(&mut page, report);
    add_plots(&mut page, report);
    add_settings(&mut page, report);
    page.finish()
}

fn add_results(page: &mut Page, report: &ChunkReport) {
    page.heading("Results");
    let headings = [
        "algorithm",
        "GB/s",
        "dedup ratio",
        "saved",
        "chunks",
        "mean (B)",
        "SD (B)",
        "at max",
        "at min",
        "read",
        "chunk",
        "fingerprint",
        "index",
    ];
    let rows: Vec<_> = report
        .results
        .iter()
        .map(|result| row(result).to_vec())
        .collect();
    page.table(1, &headings, &rows);
    page.paragraph(
        "GB/s: 10⁹ bytes cut in a second. Dedup ratio: all bytes over those of distinct chunks, over the whole set. At max: chunks of exactly the greatest size. At min: chunks of the least size or below, the last of each stream aside. Times are for the whole set.",
    );
    if report.results.iter().any(|result| !result.reads_the_data()) {
        page.paragraph(
            "Chunks of one size are cut without a look at the bytes: their speed means nothing, and the plot of speed leaves them out.",
        );
    }
    for note in &report.notes {
        page.paragraph(&format!("Note: {note}."));
    }
    for problem in &data_errors(report) {
        page.paragraph(problem);
    }
}

fn data_errors(report: &ChunkReport) -> Vec<String> {
    let data = &report.data;
    let mut sentences = Vec::new();
    if data.failed > 0 {
        let failed = units::counted(data.failed, "file", "files");
        sentences.push(format!("{failed} could not be read to the end."));
    }
    if data.changed > 0 {
        let changed = units::counted(data.changed, "file", "files");
        sentences.push(format!("{changed} changed while they were read."));
    }
    sentences
}

fn add_plots(page: &mut Page, report: &ChunkReport) {
    let results = &report.results;
    if let Some(plot) = speed_against_dedup(results) {
        page.heading("Speed against dedup");
        page.figure(&plot, "Up and to the right is better.");
    }
    page.heading("Sizes of chunks");
    page.figures(
        &density_panels(results),
        "Share of chunks of each size. A panel may leave out up to 1 % of the chunks, the longest. A bar with ↑ is higher than its panel.",
    );
    for (plot, legend) in cumulative(results) {
        page.figure(&plot, "");
        page.legend(&legend);
    }
    page.heading("Time for each stage");
    let legend: Vec<_> = STAGES
        .iter()
        .enumerate()
        .map(|(index, stage)| (Style::of(index), (*stage).to_owned()))
        .collect();
    page.figure(
        &stages(results),
        "Chunk: median of the passes; fingerprint: BLAKE3 of every chunk; index: look-up of every fingerprint in a hash set in memory; read: from files into memory, once for all.",
    );
    page.legend(&legend);
}

fn add_settings(page: &mut Page, report: &ChunkReport) {
    page.heading("Settings");
    let settings = &report.settings;
    page.facts(&[
        ("program", report.program.clone()),
        ("passes", units::count(settings.runs)),
        (
            "memory for data",
            format!(
                "{} in {}, {}",
                units::bytes(settings.buffer_bytes),
                units::counted(report.data.batches, "batch", "batches"),
                huge_pages(report)
            ),
        ),
        ("took", format!("{:.1} s", report.seconds)),
    ]);
    let headings = [
        "algorithm",
        "method",
        "min",
        "avg",
        "max",
        "level",
        "other settings",
    ];
    let rows: Vec<_> = report.results.iter().map(settings_row).collect();
    page.table(2, &headings, &rows);
    page.heading("Machine");
    page.facts(&machine_facts(&report.machine));
}

fn settings_row(result: &ResultReport) -> Vec<String> {
    let method = match result.crate_version {
        Some(version) => format!("crate {} {version}", result.algorithm),
        None => result.algorithm.to_owned(),
    };
    let mut others: Vec<String> = result
        .own
        .iter()
        .map(|(name, value)| match value {
            OwnValue::Number(number) => format!("{name} {number}"),
            OwnValue::Text(text) => format!("{name} {text}"),
        })
        .collect();
    others.extend(result.rolling.map(|rolling| format!("rolling {rolling}")));
    let size = |bytes: u32| units::short_bytes(u64::from(bytes));
    vec![
        result.label.clone(),
        method,
        size(result.min_bytes),
        size(result.avg_bytes),
        size(result.max_bytes),
        result.normalization.to_string(),
        others.join(", "),
    ]
}

/// What is known of the machine.
pub fn machine_facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let memory = machine.memory_bytes.map(units::bytes);
    vec![
        ("processor", machine.cpu.clone()),
        ("architecture", machine.architecture.to_owned()),
        ("instruction sets", machine.instruction_sets.join(", ")),
        ("cores", machine.cores.to_string()),
        ("memory", memory.unwrap_or_else(|| "unknown".to_owned())),
        ("system", machine.system.clone()),
        (
            "huge pages",
            machine
                .huge_pages
                .clone()
                .unwrap_or_else(|| "unknown".to_owned()),
        ),
    ]
}

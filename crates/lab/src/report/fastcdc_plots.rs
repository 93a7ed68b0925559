//! The figures of the FastCDC paper drawn again, from what was measured here.

use super::chunk_report::BinReport;
use super::page::Page;
use super::paper_report::{Distribution, PaperReport};
use super::plot::{Axis, COLOURS, Plot, StackedBars, Style};
use super::ticks::Unit;
use crate::paper::fastcdc::experiments::Experiment;
use crate::paper::figure::{Figure, MEAN, SAVED, SPEED};
use crate::units::parse_bytes;

/// Where the axes of sizes end, as in the paper.
const SIZES_END: f64 = 65536.0;
/// A panel among others.
const PANEL: [f64; 2] = [400.0, 260.0];
/// A plot of its own.
const WIDE: [f64; 2] = [960.0, 380.0];

/// Series and their names.
pub type Legend = Vec<(Style, String)>;

/// Adds the plots of an experiment to a page.
pub fn add(page: &mut Page, report: &PaperReport, experiment: &str) {
    let Some(experiment) = Experiment::from_name(experiment) else {
        return;
    };
    match experiment {
        Experiment::Fig5 | Experiment::Fig11 => {
            let plots = cumulative(report, experiment);
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
            let svgs = density(report, experiment);
            page.figures(&svgs, "Share of chunks of each size.");
        }
        Experiment::Fig10 | Experiment::Fig12 | Experiment::Fig13 => {
            for (svgs, legend) in by_size(report, experiment) {
                page.figures(&svgs, "");
                page.legend(&legend);
            }
        }
        Experiment::Fig14 => {
            for svg in speeds(report) {
                page.figure(&svg, "");
            }
        }
        Experiment::Table6 => {
            if let Some(svg) = instructions(report) {
                let legend = [(0, "here"), (1, "the paper, Intel i7-8770")];
                page.figure(&svg, "");
                page.legend(&legend.map(|(index, name)| (Style::of(index), name.to_owned())));
            }
        }
        _ => {}
    }
}

fn of<'a>(
    report: &'a PaperReport,
    experiment: Experiment,
    set: &'a str,
) -> impl Iterator<Item = &'a Distribution> {
    let name = experiment.info().name;
    report
        .distributions
        .iter()
        .filter(move |found| found.experiment == name && found.data_set == set)
}

/// The data sets that an experiment has figures of.
fn sets(report: &PaperReport, experiment: Experiment) -> Vec<&str> {
    let mut sets: Vec<&str> = Vec::new();
    let name = experiment.info().name;
    for figure in report
        .figures
        .iter()
        .filter(|figure| figure.experiment == name)
    {
        if !sets.contains(&figure.data_set.as_str()) {
            sets.push(&figure.data_set);
        }
    }
    sets
}

/// Cumulative distributions (Figs. 5 and 11), a plot for each data set, with the exponential one
/// on random numbers.
fn cumulative(report: &PaperReport, experiment: Experiment) -> Vec<(String, Legend)> {
    let sets = sets(report, experiment);
    let size = if sets.len() == 1 { WIDE } else { PANEL };
    let plot = |set: &str| {
        let x = Axis::linear("chunk size (bytes)", 0.0, SIZES_END, Unit::Bytes);
        let y = Axis::linear("share of chunks up to that size", 0.0, 100.0, Unit::Percent);
        let mut plot = Plot::new(set, size, x, y.with_ticks(5, Unit::Percent));
        let mut legend = Legend::new();
        for (index, found) in of(report, experiment, set).enumerate() {
            let style = Style::of(index);
            plot.line(&points(&found.histogram), style, &found.approach);
            legend.push((style, found.approach.clone()));
        }
        if experiment == Experiment::Fig5 {
            let style = Style {
                colour: "#4d4d4d",
                dash: "6 4",
            };
            plot.line(&exponential(), style, "Math");
            legend.push((style, "Math: 1 − e^(−x / 8192)".to_owned()));
        }
        (plot.finish(), legend)
    };
    sets.into_iter().map(plot).collect()
}

fn points(histogram: &[BinReport]) -> Vec<(f64, f64)> {
    let total: u64 = histogram.iter().map(|bin| bin.chunks).sum();
    let mut chunks = 0;
    let mut points = vec![(0.0, 0.0)];
    for bin in histogram {
        chunks += bin.chunks;
        let share = 100.0 * chunks as f64 / total.max(1) as f64;
        points.push((f64::from(bin.to_bytes), share));
    }
    points.retain(|(size, _)| *size <= SIZES_END);
    points
}

/// Eq. (3).
fn exponential() -> Vec<(f64, f64)> {
    (0..=128)
        .map(|step| f64::from(step) * SIZES_END / 128.0)
        .map(|size| (size, 100.0 * (1.0 - (-size / 8192.0).exp())))
        .collect()
}

/// Shares of chunks of each size (Fig. 9), a panel for each approach, all of one height.
fn density(report: &PaperReport, experiment: Experiment) -> Vec<String> {
    let found = || {
        let sets = sets(report, experiment);
        let of_set = |set| of(report, experiment, set).collect::<Vec<_>>();
        sets.into_iter().flat_map(of_set).collect::<Vec<_>>()
    };
    let bars = |found: &Distribution| -> Vec<(f64, f64, f64)> {
        let total: u64 = found.histogram.iter().map(|bin| bin.chunks).sum();
        let bar = |bins: &[BinReport]| {
            let chunks: u64 = bins.iter().map(|bin| bin.chunks).sum();
            let from = bins.first().map_or(0, |bin| bin.from_bytes);
            let to = bins.last().map_or(0, |bin| bin.to_bytes);
            let share = 100.0 * chunks as f64 / total.max(1) as f64;
            (f64::from(from), f64::from(to), share)
        };
        let bins = found
            .histogram
            .iter()
            .take_while(|bin| bin.to_bytes <= 32768);
        let shown = &found.histogram[..bins.count()];
        shown.chunks(2).map(bar).collect()
    };
    let panels: Vec<_> = found()
        .into_iter()
        .map(|found| (found, bars(found)))
        .collect();
    let heights = panels
        .iter()
        .flat_map(|(_, bars)| bars.iter().map(|bar| bar.2));
    let height = heights.fold(0.0, f64::max) * 1.05;
    let panel = |(found, bars): &(&Distribution, Vec<(f64, f64, f64)>)| {
        let x = Axis::linear("chunk size (bytes)", 0.0, SIZES_END / 2.0, Unit::Bytes);
        let y = Axis::linear("share of chunks", 0.0, height, Unit::Percent);
        let title = format!("{}, {}", found.approach, found.data_set);
        let mut plot = Plot::new(&title, PANEL, x, y.with_ticks(4, Unit::Percent));
        plot.bars(bars, COLOURS[0], |share| format!("{share:.2} %"));
        plot.finish()
    };
    panels.iter().map(panel).collect()
}

/// Figures against a size that is in the names of the approaches: the expected size of Fig. 10, the
/// least size of Figs. 12 and 13. A row of plots, one for each metric, for each group of series.
fn by_size(report: &PaperReport, experiment: Experiment) -> Vec<(Vec<String>, Legend)> {
    let sets = sets(report, experiment);
    if experiment == Experiment::Fig12 {
        // One series for each data set.
        let series: Vec<(String, Vec<&Figure>)> = sets
            .iter()
            .map(|set| ((*set).to_owned(), figures(report, experiment, set)))
            .collect();
        return vec![row(experiment, &series)];
    }
    let of_set = |set: &&str| {
        let mut series: Vec<(String, Vec<&Figure>)> = Vec::new();
        for figure in figures(report, experiment, set) {
            let (name, _) = split(experiment, &figure.approach);
            match series.iter_mut().find(|(other, _)| *other == name) {
                Some((_, figures)) => figures.push(figure),
                None => series.push((name, vec![figure])),
            }
        }
        row(experiment, &series)
    };
    sets.iter().map(of_set).collect()
}

fn figures<'a>(report: &'a PaperReport, experiment: Experiment, set: &str) -> Vec<&'a Figure> {
    let name = experiment.info().name;
    let figures = report.figures.iter();
    figures
        .filter(|figure| figure.experiment == name && figure.data_set == set)
        .collect()
}

/// `RC 8K`, `min 2K` and `NC-2, min 4K` as the name of a series and a size.
fn split(experiment: Experiment, approach: &str) -> (String, f64) {
    let separator = match experiment {
        Experiment::Fig13 => ", min ",
        Experiment::Fig12 => "min ",
        _ => " ",
    };
    let (name, size) = approach.rsplit_once(separator).unwrap_or((approach, "0"));
    let size = parse_bytes(size).unwrap_or(0);
    (name.to_owned(), size as f64)
}

fn row(experiment: Experiment, series: &[(String, Vec<&Figure>)]) -> (Vec<String>, Legend) {
    let metrics = [
        (SPEED, "GB/s", 1e9, Unit::Number),
        (SAVED, "bytes saved", 1.0, Unit::Percent),
        (MEAN, "mean chunk size (bytes)", 1.0, Unit::Bytes),
    ];
    let has = |metric: &str| {
        let mut figures = series.iter().flat_map(|(_, figures)| figures);
        figures.any(|figure| figure.metric == metric)
    };
    let plots = metrics
        .iter()
        .filter(|(metric, ..)| has(metric))
        .map(|&(metric, label, scale, unit)| {
            let lines: Vec<Vec<(f64, f64)>> = series
                .iter()
                .map(|(_, figures)| {
                    let of_metric = figures.iter().filter(|figure| figure.metric == metric);
                    let point = |figure: &&&Figure| {
                        (split(experiment, &figure.approach).1, figure.ours / scale)
                    };
                    of_metric.map(|figure| point(&figure)).collect()
                })
                .collect();
            size_plot(experiment, &lines, label, unit, series)
        })
        .collect();
    let legend = series
        .iter()
        .enumerate()
        .map(|(index, (name, _))| (Style::of(index), name.clone()))
        .collect();
    (plots, legend)
}

fn size_plot(
    experiment: Experiment,
    lines: &[Vec<(f64, f64)>],
    label: &str,
    unit: Unit,
    series: &[(String, Vec<&Figure>)],
) -> String {
    let points = || lines.iter().flatten();
    let greatest = |choose: fn(&(f64, f64)) -> f64| points().map(choose).fold(0.0, f64::max);
    let least = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let top = greatest(|point| point.1);
    // Shares saved lie close together; speeds and sizes are read from zero.
    let (from, to) = if unit == Unit::Percent {
        let room = ((top - least) * 0.15).max(0.1);
        (least - room, top + room)
    } else {
        (0.0, top * 1.1)
    };
    let words = match experiment {
        Experiment::Fig10 => "expected chunk size (bytes)",
        _ => "least chunk size (bytes)",
    };
    let x = Axis::linear(words, 0.0, greatest(|point| point.0) * 1.05, Unit::Bytes);
    let y = Axis::linear(label, from, to, unit).with_ticks(5, unit);
    let mut plot = Plot::new(label, PANEL, x.with_ticks(5, Unit::Bytes), y);
    for (index, (line, (name, _))) in lines.iter().zip(series).enumerate() {
        plot.line(line, Style::of(index), name);
        plot.dots(line, Style::of(index), name);
    }
    plot.finish()
}

/// Speeds of the eleven approaches (Fig. 14), a plot for each data set.
fn speeds(report: &PaperReport) -> Vec<String> {
    let plot = |set: &str| {
        let rows: Vec<(String, Vec<f64>)> = figures(report, Experiment::Fig14, set)
            .iter()
            .map(|figure| (figure.approach.clone(), vec![figure.ours / 1e9]))
            .collect();
        StackedBars {
            title: set,
            label: "GB/s, one thread, in memory",
            parts: &["speed"],
            rows: &rows,
        }
        .finish()
    };
    sets(report, Experiment::Fig14)
        .into_iter()
        .map(plot)
        .collect()
}

/// Instructions for a byte, here and in the paper (Table 6).
fn instructions(report: &PaperReport) -> Option<String> {
    let name = Experiment::Table6.info().name;
    let figures = report.figures.iter();
    let points: Vec<&Figure> = figures
        .filter(|figure| figure.experiment == name && figure.metric == "instructions_per_byte")
        .collect();
    let most = points
        .iter()
        .flat_map(|figure| [figure.ours, figure.paper.unwrap_or(0.0)])
        .fold(0.0, f64::max);
    if points.is_empty() {
        return None;
    }
    let names: Vec<&str> = points
        .iter()
        .map(|figure| figure.approach.as_str())
        .collect();
    let x = Axis::named(&names);
    let y = Axis::linear("instructions for a byte", 0.0, most * 1.1, Unit::Number);
    let mut plot = Plot::new("", WIDE, x, y);
    for (series, offset) in [(0, 0.15), (1, 0.5)] {
        let bars: Vec<(f64, f64, f64)> = points
            .iter()
            .enumerate()
            .map(|(index, figure)| {
                let value = if series == 0 {
                    figure.ours
                } else {
                    figure.paper.unwrap_or(0.0)
                };
                let left = index as f64 + offset;
                (left, left + 0.35, value)
            })
            .collect();
        plot.bars(&bars, COLOURS[series], |value| format!("{value:.2}"));
    }
    Some(plot.finish())
}

//! The figures of papers drawn again: what lies on an axis as lines, everything else as bars.
//!
//! Enters: an experiment's figures. Leaves: for each of its metrics a row of panels, one for each
//! data set, with a line for each approach; or, where there is only one approach, one panel with a
//! line for each data set. What the paper prints stands in them as grey dots. A metric without an
//! axis gives rows of bars.

use super::page::Page;
use super::paper_report::PaperReport;
use super::plot::{Axis, Plot, StackedBars, Style};
use super::ticks::Unit;
use crate::paper::about::{AxisInfo, ExperimentInfo};
use crate::paper::figure::{Figure, Form, Metric};

/// A panel among others.
const PANEL: [f64; 2] = [400.0, 280.0];
/// More bars than these are not looked at.
const BARS: usize = 60;

/// A line: its name, its points, the paper's.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    paper: Vec<(f64, f64)>,
}

/// Adds the plots of an experiment to a page.
pub fn add(page: &mut Page, report: &PaperReport, info: &ExperimentInfo) {
    let figures: Vec<&Figure> = report.figures_of(info.name).collect();
    let mut metrics: Vec<&'static str> = Vec::new();
    for figure in &figures {
        if !metrics.contains(&figure.metric) {
            metrics.push(figure.metric);
        }
    }
    for metric in metrics.into_iter().map(Metric::named) {
        let of_metric = figures.iter().filter(|figure| figure.metric == metric.name);
        let of_metric: Vec<&Figure> = of_metric.copied().collect();
        match info.axis {
            Some(axis) => add_lines(page, &of_metric, &metric, &axis),
            None => add_bars(page, &of_metric, &metric),
        }
    }
}

fn distinct<'a>(figures: &[&'a Figure], name: fn(&'a Figure) -> &'a str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for figure in figures {
        if !names.contains(&name(figure)) {
            names.push(name(figure));
        }
    }
    names
}

fn series(name: &str, figures: &[&Figure], scale: f64) -> Series {
    let place = |value: fn(&Figure) -> Option<f64>| {
        let points = figures
            .iter()
            .filter_map(|figure| Some((figure.x?, value(figure)? / scale)));
        points.collect()
    };
    Series {
        name: name.to_owned(),
        points: place(|figure| Some(figure.ours)),
        paper: place(|figure| figure.paper),
    }
}

/// Panels of lines, with their legend.
fn add_lines(page: &mut Page, figures: &[&Figure], metric: &Metric, axis: &AxisInfo) {
    let figures: Vec<&Figure> = figures
        .iter()
        .copied()
        .filter(|figure| figure.x.is_some())
        .collect();
    let sets = distinct(&figures, |figure| &figure.data_set);
    let approaches = distinct(&figures, |figure| &figure.approach);
    let scale = if metric.form == Form::Speed { 1e9 } else { 1.0 };
    let part = |set: &str, approach: &str| -> Vec<&Figure> {
        let of_both = figures
            .iter()
            .filter(|figure| figure.data_set == set && figure.approach == approach);
        of_both.copied().collect()
    };
    let panels: Vec<(&str, Vec<Series>)> = if approaches.len() == 1 {
        let lines = sets
            .iter()
            .map(|set| series(set, &part(set, approaches[0]), scale));
        vec![(approaches[0], lines.collect())]
    } else {
        let of_set = |set: &&'_ str| {
            let lines = approaches
                .iter()
                .map(|approach| series(approach, &part(set, approach), scale));
            lines.collect::<Vec<_>>()
        };
        sets.iter().map(|set| (*set, of_set(set))).collect()
    };
    let svgs: Vec<String> = panels
        .iter()
        .filter(|(_, lines)| lines.iter().any(|line| !line.points.is_empty()))
        .map(|(title, lines)| panel(title, lines, metric, axis))
        .collect();
    let Some((_, first)) = panels.first() else {
        return;
    };
    let has_paper = panels
        .iter()
        .any(|(_, lines)| lines.iter().any(|line| !line.paper.is_empty()));
    page.figures(&svgs, if has_paper { "Grey: the paper." } else { "" });
    let legend: Vec<(Style, String)> = first
        .iter()
        .enumerate()
        .map(|(index, line)| (Style::of(index), line.name.clone()))
        .collect();
    page.legend(&legend);
}

fn panel(title: &str, lines: &[Series], metric: &Metric, axis: &AxisInfo) -> String {
    let points = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter().chain(&line.paper))
    };
    let least = |choose: fn(&(f64, f64)) -> f64| points().map(choose).fold(f64::INFINITY, f64::min);
    let most = |choose: fn(&(f64, f64)) -> f64| points().map(choose).fold(0.0, f64::max);
    let (from, to) = (least(|point| point.0), most(|point| point.0));
    let x = if axis.is_logarithmic {
        Axis::logarithmic(axis.words, from.max(f64::MIN_POSITIVE), to, axis.unit)
    } else {
        Axis::linear(axis.words, 0.0, to * 1.03, axis.unit).with_ticks(5, axis.unit)
    };
    let unit = match metric.form {
        Form::Percent => Unit::Percent,
        _ => Unit::Number,
    };
    let (bottom, top) = (
        least(|point| point.1).min(0.0),
        most(|point| point.1) * 1.08,
    );
    let y = Axis::linear(metric.words, bottom, top, unit).with_ticks(5, unit);
    let mut plot = Plot::new(title, PANEL, x, y);
    for (index, line) in lines.iter().enumerate() {
        plot.line(&line.points, Style::of(index), &line.name);
        plot.dots(&line.points, Style::of(index), &line.name);
        let grey = Style {
            colour: "#8c959f",
            dash: "",
        };
        plot.dots(&line.paper, grey, &format!("the paper, {}", line.name));
    }
    plot.finish()
}

/// Rows of bars, one for each approach on each data set.
fn add_bars(page: &mut Page, figures: &[&Figure], metric: &Metric) {
    let is_drawn = !matches!(metric.form, Form::YesNo) && figures.len() <= BARS;
    let has_below = figures.iter().any(|figure| figure.ours < 0.0);
    let has_length = figures.iter().any(|figure| figure.ours > 0.0);
    if !is_drawn || has_below || !has_length {
        return;
    }
    let scale = if metric.form == Form::Speed { 1e9 } else { 1.0 };
    let rows: Vec<(String, Vec<f64>)> = figures
        .iter()
        .map(|figure| {
            let name = format!("{}, {}", figure.data_set, figure.approach);
            (name, vec![figure.ours / scale])
        })
        .collect();
    let bars = StackedBars {
        title: "",
        label: metric.words,
        parts: &[metric.words],
        rows: &rows,
    };
    page.figure(&bars.finish(), "");
}

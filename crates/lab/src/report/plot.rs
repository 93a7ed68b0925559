//! Plots as SVG: axes, lines, bars, points. No script, no font, nothing from elsewhere.
//!
//! Enters: values in the units of the axes. Leaves: one `<svg>` element for a page. Marks carry a
//! `<title>`, which browsers show under the pointer.

use std::fmt::Write as _;

use super::labels::{self, Label};
use super::page::escaped;
use super::ticks::{self, Tick, Unit};

/// Colours that people of any eyesight tell apart (Okabe and Ito), dark enough on white.
pub const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#c0539a", "#e69f00", "#56b4e9", "#4d4d4d", "#7a5195",
];

/// Patterns of lines beyond the colours.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// Room around the area of the plot: left, right, top, bottom.
const MARGINS: [f64; 4] = [62.0, 16.0, 30.0, 46.0];

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Its colour.
    pub colour: &'static str,
    /// Its pattern, as SVG has it.
    pub dash: &'static str,
}

impl Style {
    /// The style of the n-th series: distinct for the first 32.
    pub fn of(index: usize) -> Self {
        Self {
            colour: COLOURS[index % COLOURS.len()],
            dash: DASHES[index / COLOURS.len() % DASHES.len()],
        }
    }
}

/// A direction of a plot.
#[derive(Debug, Clone)]
pub struct Axis {
    label: String,
    from: f64,
    to: f64,
    is_logarithmic: bool,
    ticks: Vec<Tick>,
}

impl Axis {
    /// Equal steps are equally long.
    pub fn linear(label: &str, from: f64, to: f64, unit: Unit) -> Self {
        let to = if to > from { to } else { from + 1.0 };
        Self {
            label: label.to_owned(),
            from,
            to,
            is_logarithmic: false,
            ticks: ticks::linear(from, to, 8, unit),
        }
    }

    /// Equal factors are equally long. `from` is above 0.
    pub fn logarithmic(label: &str, from: f64, to: f64, unit: Unit) -> Self {
        let to = if to > from { to } else { from * 2.0 };
        Self {
            label: label.to_owned(),
            from,
            to,
            is_logarithmic: true,
            ticks: ticks::logarithmic(from, to, unit),
        }
    }

    /// Names at equal distances: the n-th from n to n + 1.
    pub fn named(names: &[&str]) -> Self {
        let tick = |(index, name): (usize, &&str)| (index as f64 + 0.5, (*name).to_owned());
        Self {
            label: String::new(),
            from: 0.0,
            to: names.len().max(1) as f64,
            is_logarithmic: false,
            ticks: names.iter().enumerate().map(tick).collect(),
        }
    }

    /// The same with about so many ticks.
    pub fn with_ticks(mut self, count: usize, unit: Unit) -> Self {
        if !self.is_logarithmic {
            self.ticks = ticks::linear(self.from, self.to, count, unit);
        }
        self
    }

    /// Where on the axis `value` is: 0 at its beginning, 1 at its end; no farther.
    fn share(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }
}

/// A plot in the making.
#[derive(Debug)]
pub struct Plot {
    title: String,
    width: f64,
    height: f64,
    x: Axis,
    y: Axis,
    marks: String,
}

impl Plot {
    /// A plot without marks, of so many pixels at its natural size.
    pub fn new(title: &str, [width, height]: [f64; 2], x: Axis, y: Axis) -> Self {
        Self {
            title: title.to_owned(),
            width,
            height,
            x,
            y,
            marks: String::new(),
        }
    }

    fn left(&self, value: f64) -> f64 {
        let [left, right, ..] = MARGINS;
        left + self.x.share(value) * (self.width - left - right)
    }

    fn top(&self, value: f64) -> f64 {
        let [_, _, top, bottom] = MARGINS;
        self.height - bottom - self.y.share(value) * (self.height - top - bottom)
    }

    /// A line through points.
    pub fn line(&mut self, points: &[(f64, f64)], style: Style, title: &str) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.left(*x), self.top(*y));
        }
        let _ = write!(
            self.marks,
            "<path class=\"line\" d=\"{path}\" stroke=\"{}\" stroke-dasharray=\"{}\"><title>{}</title></path>",
            style.colour,
            style.dash,
            escaped(title)
        );
    }

    /// A dot at each point.
    pub fn dots(&mut self, points: &[(f64, f64)], style: Style, title: &str) {
        for (x, y) in points {
            let _ = write!(
                self.marks,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{}\"><title>{}</title></circle>",
                self.left(*x),
                self.top(*y),
                style.colour,
                escaped(title)
            );
        }
    }

    /// Bars from the bottom: from where, to where, how high. One that is higher than the plot is
    /// cut off, with its height on it.
    pub fn bars(&mut self, bars: &[(f64, f64, f64)], colour: &str, text: fn(f64) -> String) {
        for &(from, to, height) in bars {
            if height <= 0.0 {
                continue;
            }
            let (left, right) = (self.left(from), self.left(to));
            let top = self.top(height);
            let bottom = self.top(self.y.from);
            let _ = write!(
                self.marks,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"><title>{}</title></rect>",
                (right - left - 0.4).max(0.6),
                (bottom - top).max(0.5),
                escaped(&text(height))
            );
            if height > self.y.to * 1.001 {
                let _ = write!(
                    self.marks,
                    "<text class=\"note\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">↑ {}</text>",
                    left - 3.0,
                    top + 11.0,
                    escaped(&text(height))
                );
            }
        }
    }

    /// A vertical line across the plot, with words at its top.
    pub fn vertical(&mut self, x: f64, words: &str) {
        let left = self.left(x);
        let (top, bottom) = (self.top(self.y.to), self.top(self.y.from));
        let _ = write!(
            self.marks,
            "<line class=\"mark\" x1=\"{left:.1}\" x2=\"{left:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/><text class=\"note\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left + 3.0,
            top + 11.0,
            escaped(words)
        );
    }

    /// Points with their names beside them, as far as possible without overlap.
    pub fn named_points(&mut self, points: &[(f64, f64, Style, String)]) {
        let places: Vec<_> = points
            .iter()
            .map(|(x, y, ..)| (self.left(*x), self.top(*y)))
            .collect();
        let names: Vec<&str> = points.iter().map(|(.., name)| name.as_str()).collect();
        let [left, right, top, bottom] = MARGINS;
        let area = [left, top, self.width - right, self.height - bottom];
        let labels = labels::place(&places, &names, area);
        for ((place, label), (_, _, style, name)) in places.iter().zip(&labels).zip(points) {
            self.named_point(*place, label, *style, name);
        }
    }

    fn named_point(&mut self, (x, y): (f64, f64), label: &Label, style: Style, name: &str) {
        if label.is_far {
            let _ = write!(
                self.marks,
                "<line class=\"leader\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
                label.near.0, label.near.1
            );
        }
        let _ = write!(
            self.marks,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{}\" stroke=\"#fff\"><title>{}</title></circle><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
            style.colour,
            escaped(name),
            label.x,
            label.baseline,
            label.anchor,
            escaped(name)
        );
    }

    /// The SVG element.
    pub fn finish(self) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-label=\"{}\">",
            self.width,
            self.height,
            escaped(&self.title)
        );
        let _ = write!(
            svg,
            "<text class=\"title\" x=\"{:.1}\" y=\"17\">{}</text>",
            MARGINS[0],
            escaped(&self.title)
        );
        svg.push_str(&self.grid());
        svg.push_str(&self.marks);
        svg.push_str("</svg>");
        svg
    }

    fn grid(&self) -> String {
        let mut grid = String::new();
        let (left, right) = (self.left(self.x.from), self.left(self.x.to));
        let (top, bottom) = (self.top(self.y.to), self.top(self.y.from));
        for (value, text) in &self.x.ticks {
            let x = self.left(*value);
            let _ = write!(
                grid,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                escaped(text)
            );
        }
        for (value, text) in &self.y.ticks {
            let y = self.top(*value);
            let _ = write!(
                grid,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 6.0,
                y + 4.0,
                escaped(text)
            );
        }
        let middle = f64::midpoint(top, bottom);
        let _ = write!(
            grid,
            "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text class=\"label\" text-anchor=\"middle\" transform=\"translate(14 {middle:.1}) rotate(-90)\">{}</text>",
            f64::midpoint(left, right),
            bottom + 36.0,
            escaped(&self.x.label),
            escaped(&self.y.label)
        );
        grid
    }
}

/// Rows of bars that are made of parts laid end to end.
#[derive(Debug)]
pub struct StackedBars<'a> {
    /// What it is called.
    pub title: &'a str,
    /// What its lengths are.
    pub label: &'a str,
    /// The parts, in their order.
    pub parts: &'a [&'a str],
    /// Name and lengths of each row.
    pub rows: &'a [(String, Vec<f64>)],
}

/// Heights of a row and of its bar.
const ROW: [f64; 2] = [24.0, 15.0];

impl StackedBars<'_> {
    /// The SVG element.
    pub fn finish(&self) -> String {
        let longest_name = self.rows.iter().map(|(name, _)| labels::width(name));
        let left = longest_name.fold(60.0, f64::max) + 14.0;
        let (width, right) = (960.0, width_of_sums());
        let bottom = 34.0 + ROW[0] * self.rows.len() as f64;
        let total = self.rows.iter().map(|(_, parts)| parts.iter().sum());
        let total = total.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let scale = (width - left - right) / total;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {width} {:.0}\" role=\"img\" aria-label=\"{1}\"><text class=\"title\" x=\"0\" y=\"17\">{1}</text>",
            bottom + 46.0,
            escaped(self.title)
        );
        for (value, text) in ticks::linear(0.0, total, 8, Unit::Number) {
            let x = left + value * scale;
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"28\" y2=\"{bottom:.1}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                bottom + 16.0
            );
        }
        for (index, (name, parts)) in self.rows.iter().enumerate() {
            let top = 32.0 + ROW[0] * index as f64;
            svg.push_str(&self.row(name, parts, [left, top, scale]));
        }
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{left:.1} 28V{bottom:.1}H{:.1}\"/><text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text></svg>",
            width - right,
            f64::midpoint(left, width - right),
            bottom + 37.0,
            escaped(self.label)
        );
        svg
    }

    fn row(&self, name: &str, parts: &[f64], [left, top, scale]: [f64; 3]) -> String {
        let baseline = top + ROW[1] - 3.0;
        let mut row = format!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>",
            left - 7.0,
            escaped(name)
        );
        let mut x = left;
        for (index, (part, length)) in self.parts.iter().zip(parts).enumerate() {
            let width = length * scale;
            let _ = write!(
                row,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{}\" fill=\"{}\"><title>{}: {part} {length:.3}</title></rect>",
                ROW[1],
                COLOURS[index % COLOURS.len()],
                escaped(name)
            );
            x += width;
        }
        let sum: f64 = parts.iter().sum();
        let _ = write!(
            row,
            "<text class=\"note\" x=\"{:.1}\" y=\"{baseline:.1}\">{sum:.2}</text>",
            x + 5.0
        );
        row
    }
}

/// Room behind the longest bar for its sum.
fn width_of_sums() -> f64 {
    54.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_where_the_axis_says() {
        let axis = Axis::logarithmic("x", 1.0, 100.0, Unit::Number);
        assert!((axis.share(10.0) - 0.5).abs() < 1e-9);
        let axis = Axis::linear("x", 0.0, 8.0, Unit::Number);
        assert_eq!(axis.share(2.0), 0.25);
        assert_eq!(axis.share(9.0), 1.0);
        assert_eq!(Axis::linear("x", 3.0, 3.0, Unit::Number).share(3.0), 0.0);
    }

    #[test]
    fn words_are_escaped_and_styles_distinct() {
        let axis = || Axis::linear("a < b", 0.0, 1.0, Unit::Number);
        let mut plot = Plot::new("<&>", [300.0, 200.0], axis(), axis());
        plot.line(&[(0.0, 0.0), (1.0, 1.0)], Style::of(0), "x<y");
        plot.bars(&[(0.0, 0.5, 2.0)], "#000", |value| format!("{value}"));
        let svg = plot.finish();
        assert!(svg.contains("&lt;&amp;&gt;") && svg.contains("a &lt; b"));
        assert!(svg.contains("↑ 2"));
        assert!(!svg.contains("x<y"));
        for index in 0..32 {
            for other in 0..index {
                assert_ne!(Style::of(index), Style::of(other));
            }
        }
    }
}

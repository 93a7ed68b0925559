//! The plots of `onefold-lab chunk`: distributions of chunk sizes (as Figs. 5, 9 and 11 of the
//! FastCDC paper show them), speed against dedup, time for each stage.

use super::chunk_report::{BinReport, ResultReport};
use super::plot::{Axis, COLOURS, Plot, StackedBars, Style};
use super::ticks::Unit;

/// So many bins of a result are one bar of its panel.
const BINS_IN_BAR: usize = 2;

/// The share of chunks that may be beyond the end of a panel.
const OFF_PANEL_MAX: f64 = 0.01;

/// Lines in one plot of cumulative distributions.
pub const LINES_MAX: usize = 6;

/// The share of chunks of each size, one panel for each result (FastCDC, Fig. 9).
pub fn density_panels(results: &[ResultReport]) -> Vec<String> {
    let mut ends: Vec<u32> = results.iter().map(panel_end).collect();
    ends.sort_unstable();
    let usual = ends.get(ends.len() / 2).copied().unwrap_or(0);
    let panel = |result| density_panel(result, panel_end(result).max(usual));
    results.iter().map(panel).collect()
}

/// One panel, which ends at a size.
fn density_panel(result: &ResultReport, end: u32) -> String {
    let total = result.chunks.max(1) as f64;
    let share = |bins: &[BinReport]| {
        let chunks: u64 = bins.iter().map(|bin| bin.chunks).sum();
        100.0 * chunks as f64 / total
    };
    let shown = result
        .histogram
        .iter()
        .take_while(|bin| bin.to_bytes <= end);
    let bars: Vec<(f64, f64, f64)> = result.histogram[..shown.count()]
        .chunks(BINS_IN_BAR)
        .map(|bins| {
            let from = bins.first().map_or(0, |bin| bin.from_bytes);
            let to = bins.last().map_or(0, |bin| bin.to_bytes);
            (f64::from(from), f64::from(to), share(bins))
        })
        .collect();
    let mut heights: Vec<f64> = bars.iter().map(|bar| bar.2).collect();
    heights.sort_by(|a, b| b.total_cmp(a));
    // A spike at the bounds would leave the rest flat: it is cut off where it is much higher.
    let [first, second] = [0, 1].map(|rank| heights.get(rank).copied().unwrap_or(0.0));
    let height = if first > 3.0 * second && second > 0.0 {
        second * 1.6
    } else {
        first * 1.08
    };
    let mut plot = Plot::new(
        &result.label,
        [400.0, 230.0],
        Axis::linear("chunk size (bytes)", 0.0, f64::from(end), Unit::Bytes),
        Axis::linear("share of chunks", 0.0, height, Unit::Percent).with_ticks(4, Unit::Percent),
    );
    plot.bars(&bars, COLOURS[0], |share| format!("{share:.2} %"));
    plot.vertical(result.mean_bytes, "mean");
    plot.finish()
}

/// Where a panel ends: at the greatest size, or at a half, a quarter … of it, as long as hardly any
/// chunk is beyond.
fn panel_end(result: &ResultReport) -> u32 {
    let beyond = |end: u32| -> u64 {
        let bins = result.histogram.iter().filter(|bin| bin.to_bytes > end);
        bins.map(|bin| bin.chunks).sum()
    };
    let mut end = result.max_bytes;
    while end > 1024 && beyond(end / 2) as f64 <= OFF_PANEL_MAX * result.chunks as f64 {
        end /= 2;
    }
    end
}

/// The share of chunks up to each size (FastCDC, Figs. 5 and 11), [`LINES_MAX`] results to a plot.
pub fn cumulative(results: &[ResultReport]) -> Vec<(String, Vec<(Style, String)>)> {
    let greatest = results.iter().map(|result| result.max_bytes).max();
    let least = results.iter().map(|result| result.max_bytes).min();
    let (least, greatest) = (least.unwrap_or(1), greatest.unwrap_or(1));
    // Presets for large chunks beside small ones need a scale that shows both.
    let is_wide = greatest / least.max(1) >= 4;
    let x = if is_wide {
        Axis::logarithmic(
            "chunk size (bytes)",
            256.0,
            f64::from(greatest),
            Unit::Bytes,
        )
    } else {
        Axis::linear("chunk size (bytes)", 0.0, f64::from(greatest), Unit::Bytes)
    };
    results
        .chunks(LINES_MAX)
        .map(|results| {
            let y = Axis::linear("share of chunks up to that size", 0.0, 100.0, Unit::Percent);
            let y = y.with_ticks(5, Unit::Percent);
            let mut plot = Plot::new("", [960.0, 360.0], x.clone(), y);
            let mut legend = Vec::new();
            for (index, result) in results.iter().enumerate() {
                let style = Style::of(index);
                let mut points = cumulative_points(result);
                points.push((f64::from(greatest), 100.0));
                plot.line(&points, style, &result.label);
                legend.push((style, result.label.clone()));
            }
            (plot.finish(), legend)
        })
        .collect()
}

/// Points of a cumulative distribution.
pub fn cumulative_points(result: &ResultReport) -> Vec<(f64, f64)> {
    let total = result.chunks.max(1) as f64;
    let mut points = vec![(0.0, 0.0)];
    let mut chunks = 0;
    for bin in &result.histogram {
        chunks += bin.chunks;
        let share = 100.0 * chunks as f64 / total;
        points.push((f64::from(bin.to_bytes), share));
    }
    points
}

/// Speed against dedup: up and to the right is better. Those that look at no byte are left out.
pub fn speed_against_dedup(results: &[ResultReport]) -> Option<String> {
    let points: Vec<(f64, f64, Style, String)> = results
        .iter()
        .enumerate()
        .filter(|(_, result)| result.reads_the_data() && result.chunk_bytes_per_second > 0.0)
        .filter_map(|(index, result)| {
            let saved = result.dedup_saved_percent?;
            let speed = result.gigabytes_per_second();
            Some((speed, saved, Style::of(index), result.label.clone()))
        })
        .collect();
    let extremes = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(None, |extremes: Option<(f64, f64)>, value| {
            let (least, greatest) = extremes.unwrap_or((value, value));
            Some((least.min(value), greatest.max(value)))
        })
    };
    let (slowest, fastest) = extremes(&mut points.iter().map(|point| point.0))?;
    let (least, most) = extremes(&mut points.iter().map(|point| point.1))?;
    let x_label = "speed of cutting (GB/s, one thread, in memory)";
    let x = if fastest / slowest > 6.0 {
        Axis::logarithmic(x_label, slowest * 0.8, fastest * 1.5, Unit::Number)
    } else {
        Axis::linear(x_label, 0.0, fastest * 1.15, Unit::Number)
    };
    let room = ((most - least) * 0.12).max(0.05);
    let y = Axis::linear(
        "bytes saved by dedup",
        (least - room).max(0.0),
        (most + room).min(100.0),
        Unit::Percent,
    );
    let mut plot = Plot::new("", [960.0, 460.0], x, y);
    plot.named_points(&points);
    Some(plot.finish())
}

/// The parts of the time that are plotted.
pub const STAGES: [&str; 4] = ["chunk", "fingerprint", "index", "read"];

/// Time for each stage, in seconds for 10⁹ bytes.
pub fn stages(results: &[ResultReport]) -> String {
    let rows: Vec<(String, Vec<f64>)> = results
        .iter()
        .map(|result| {
            let gigabytes = result.bytes.max(1) as f64 / 1e9;
            let seconds = [
                result.chunk_seconds,
                result.fingerprint_seconds,
                result.index_seconds,
                result.read_seconds,
            ];
            (
                result.label.clone(),
                seconds.iter().map(|time| time / gigabytes).collect(),
            )
        })
        .collect();
    StackedBars {
        title: "",
        label: "seconds for 1 GB",
        parts: &STAGES,
        rows: &rows,
    }
    .finish()
}

//! Figs. 11 to 14: how far the estimates of detectors are from a similarity that is known.
//!
//! Two chunks are estimated to be as similar as their features of the same number are equal: k of n
//! (Eq. 2). Finesse's features are sorted before, in the lists of which it makes super-features (§2.4).
//! A chunk in which nothing was sampled is like no other.

use engine::similarity::{Detection, Detector, FeatureExtractor};

use super::analytic::{binomial, error_moments, sampled, union_samples};
use super::benchmark::{CHUNK_BYTES, Modification, Pair, pairs, series};
use super::claims::PAIRS;
use super::detections::{self, SUPER_FEATURES};
use super::published::{FEATURES, RATE, RATES};
use crate::interrupt;
use crate::paper::figure::{ERROR, ERROR_DEVIATION, Figure};
use crate::paper::{Plan, Results};
use crate::progress::Progress;

/// Numbers of features of Fig. 14.
pub const FEATURE_COUNTS: [usize; 5] = [6, 12, 18, 24, 36];
/// What is computed for the pairs of a data set, beside detectors.
pub const BY_EQUATION_6: &str = "Eq. 6";
/// The same with samples.
pub const BY_EQUATION_9: &str = "Eq. 9, 1/128";
/// The same over the samples of both chunks.
pub const BY_UNION: &str = "Eq. 9 over the union, 1/128";

/// Experiments of the benchmark.
const EXPERIMENTS: [&str; 4] = ["fig11", "fig12", "fig13", "fig14"];

/// Runs those that are wanted.
///
/// # Errors
/// When somebody asked for a stop.
pub fn run(plan: &Plan, results: &mut Results, progress: &mut Progress) -> anyhow::Result<()> {
    if !EXPERIMENTS.iter().any(|name| plan.has(name)) {
        return Ok(());
    }
    let count = (plan.synthetic_bytes / (2 * CHUNK_BYTES as u64)).max(1) as usize;
    for (name, modifications) in series() {
        let mut by_rate = Pooled::new(plan, "fig13", rate_detections());
        let mut by_count = Pooled::new(plan, "fig14", count_detections());
        progress.expect(modifications.len() as u64 * plan.synthetic_bytes);
        for (x, modification) in modifications {
            interrupt::check()?;
            let pairs = pairs(modification, count);
            let point = Point {
                name: &name,
                x,
                pairs: &pairs,
            };
            if plan.has("fig11") {
                results.figures.extend(point.similarities());
            }
            if plan.has("fig12") {
                results.figures.extend(point.errors());
            }
            by_rate.add(&pairs)?;
            by_count.add(&pairs)?;
            progress.advance(plan.synthetic_bytes, &said(modification));
        }
        results.figures.extend(by_rate.figures(&name));
        results.figures.extend(by_count.figures(&name));
    }
    results.notes.push(format!(
        "Figs. 11 to 14: {count} pairs of chunks for each modification, windows of 32 bytes counted; the paper does not say which MoR its Fig. 11(a) and which values its (b) has: here 1/4096, and 1/16384 to 1/1024"
    ));
    Ok(())
}

fn said(modification: Modification) -> String {
    format!("MoR 1/{}, MoL {}", modification.one_in, modification.bytes)
}

/// Mean and standard deviation, as they are added up.
#[derive(Debug, Clone, Copy, Default)]
struct Spread {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut spread = Self::default();
        for value in values {
            spread.add([value, value * value]);
        }
        spread
    }

    /// A value, or what it is expected to be, and the same of its square.
    fn add(&mut self, [value, square]: [f64; 2]) {
        self.count += 1.0;
        self.sum += value;
        self.squares += square;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    fn deviation(&self) -> f64 {
        let variance = self.squares / self.count.max(1.0) - self.mean().powi(2);
        variance.max(0.0).sqrt()
    }

    /// Figures of estimating errors.
    fn errors(&self, place: &Figure) -> [Figure; 2] {
        let of = |metric, ours| {
            Figure {
                metric,
                ..place.clone()
            }
            .with(ours, None)
        };
        [
            of(ERROR, self.mean()),
            of(ERROR_DEVIATION, self.deviation()),
        ]
    }
}

/// A data set of the benchmark.
struct Point<'a> {
    name: &'a str,
    x: f64,
    pairs: &'a [Pair],
}

impl Point<'_> {
    fn figure(&self, experiment: &'static str, approach: &str) -> Figure {
        Figure::new(experiment, self.name, approach, ERROR).at(self.x)
    }

    fn similarities(&self) -> [Figure; 2] {
        let spread = Spread::of(self.pairs.iter().map(|pair| 100.0 * pair.similarity));
        let of = |metric, ours| {
            let figure = self.figure("fig11", PAIRS);
            Figure { metric, ..figure }.with(ours, None)
        };
        [
            of("similarity_percent", spread.mean()),
            of("similarity_deviation_percent", spread.deviation()),
        ]
    }

    fn errors(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        for detector in Detector::ALL {
            let detection = detections::standard(detector);
            let errors = Spread::of(errors(&detection, self.pairs).into_iter());
            let name = detections::name(detector);
            figures.extend(errors.errors(&self.figure("fig12", name)));
        }
        let samples = CHUNK_BYTES / RATE as usize;
        let mut computed = [Spread::default(); 3];
        for pair in self.pairs {
            let p = pair.similarity;
            let union = union_samples(CHUNK_BYTES, RATE, p);
            let distributions = [
                binomial(FEATURES, p),
                sampled(FEATURES, samples, p),
                sampled(FEATURES, union, p),
            ];
            for (spread, distribution) in computed.iter_mut().zip(&distributions) {
                spread.add(error_moments(distribution, p));
            }
        }
        for (name, spread) in [BY_EQUATION_6, BY_EQUATION_9, BY_UNION]
            .iter()
            .zip(computed)
        {
            figures.extend(spread.errors(&self.figure("fig12", name)));
        }
        figures
    }
}

/// Detections over a whole series.
struct Pooled {
    experiment: &'static str,
    parts: Vec<(String, f64, Detection, Spread)>,
}

impl Pooled {
    fn new(plan: &Plan, experiment: &'static str, parts: Vec<(String, f64, Detection)>) -> Self {
        let parts = parts.into_iter().filter(|_| plan.has(experiment));
        Self {
            experiment,
            parts: parts
                .map(|(name, x, detection)| (name, x, detection, Spread::default()))
                .collect(),
        }
    }

    fn add(&mut self, pairs: &[Pair]) -> anyhow::Result<()> {
        for (_, _, detection, spread) in &mut self.parts {
            interrupt::check()?;
            for error in errors(detection, pairs) {
                spread.add([error, error * error]);
            }
        }
        Ok(())
    }

    fn figures(&self, set: &str) -> Vec<Figure> {
        let parts = self.parts.iter();
        let figures = parts.flat_map(|(name, x, _, spread)| {
            let place = Figure::new(self.experiment, set, name, ERROR).at(*x);
            spread.errors(&place)
        });
        figures.collect()
    }
}

fn rate_detections() -> Vec<(String, f64, Detection)> {
    let of = |detector: Detector| {
        RATES.map(|rate| {
            let detection = detections::with_rate(detector, rate);
            (
                detections::name(detector).to_owned(),
                f64::from(rate),
                detection,
            )
        })
    };
    [Detector::Odess, Detector::OdessPlus]
        .into_iter()
        .flat_map(of)
        .collect()
}

fn count_detections() -> Vec<(String, f64, Detection)> {
    let of = |detector: Detector| {
        FEATURE_COUNTS.map(|count| {
            let detection = detections::with_features(detector, count);
            (
                detections::name(detector).to_owned(),
                count as f64,
                detection,
            )
        })
    };
    Detector::ALL.into_iter().flat_map(of).collect()
}

/// How far the estimate of each pair is from its similarity.
fn errors(detection: &Detection, pairs: &[Pair]) -> Vec<f64> {
    let mut extractor = detections::extractor(detection);
    let is_sorted = detection.detector == Detector::Finesse;
    let of_pair = |pair: &Pair| {
        let own = own_features(&mut extractor, &pair.original, is_sorted);
        let other = own_features(&mut extractor, &pair.modified, is_sorted);
        (estimate(own.as_deref(), other.as_deref()) - pair.similarity).abs()
    };
    pairs.iter().map(of_pair).collect()
}

fn own_features(
    extractor: &mut FeatureExtractor,
    chunk: &[u8],
    is_sorted: bool,
) -> Option<Vec<u32>> {
    let mut features = extractor.features(chunk)?.to_vec();
    if is_sorted {
        for list in features.chunks_mut(SUPER_FEATURES) {
            list.sort_unstable();
        }
    }
    Some(features)
}

/// The share of features that are equal (Eq. 2).
fn estimate(own: Option<&[u32]>, other: Option<&[u32]>) -> f64 {
    let (Some(own), Some(other)) = (own, other) else {
        return 0.0;
    };
    let equal = own.iter().zip(other).filter(|(a, b)| a == b).count();
    equal as f64 / own.len().max(1) as f64
}

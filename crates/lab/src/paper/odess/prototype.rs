//! Figs. 6, 16 to 22 and Table 3: what detectors save on data, and how fast they are.
//!
//! The paper's prototype (§4.3): FastCDC with a quarter and eight times of the expected size as bounds,
//! FirstFit over super-features of all distinct chunks, bases stored whole, deltas of copies and inserts
//! that nothing compresses. No limit of memory, no cache.

use chunking::{Algorithm, Chunker, Isa, KeyMaterial, Parameters};
use engine::container::CompressionLevel;
use engine::similarity::{Detection, Detector, MaskBits, SubWindows};

use super::detections;
use super::published::{self, EXPECTED, RATES};
use crate::failure::Failure;
use crate::interrupt;
use crate::paper::figure::{DCE, DCR, FEATURE_SPEED, Figure, SAMPLING_ERRORS, SCR};
use crate::paper::timing::{self, Way};
use crate::paper::{Plan, Results};
use crate::progress::Progress;
use crate::similar::chunks::UniqueChunks;
use crate::similar::coder::{Codec, Coder};
use crate::similar::reduction::{Reduction, Rule};
use crate::similar::super_features::SuperFeatures;

/// The size of chunks where it does not vary.
const USUAL: u32 = 8 << 10;

/// FastCDC with the paper's sizes.
///
/// # Errors
/// When they are impossible, which they are not.
pub fn chunker(expected: u32) -> Result<Chunker, Failure> {
    let parameters = Parameters {
        min_bytes: expected / 4,
        avg_bytes: expected,
        max_bytes: expected * 8,
        ..Parameters::new(Algorithm::FastCdc)
    };
    Chunker::new(&parameters, KeyMaterial::Unkeyed)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Runs those experiments that are wanted on a data set.
///
/// # Errors
/// When a delta does not give its chunk back, or somebody asked for a stop.
pub fn run(
    name: &str,
    files: &[&[u8]],
    plan: &Plan,
    results: &mut Results,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    for expected in EXPECTED {
        let is_usual = expected == USUAL;
        let is_wanted = plan.has("fig16-21")
            || is_usual && ["fig6", "fig22", "table3"].iter().any(|it| plan.has(it));
        if !is_wanted {
            continue;
        }
        interrupt::check()?;
        let unique = UniqueChunks::of(files, &chunker(expected)?, plan.threads);
        let set = Prototype {
            name,
            unique: &unique,
            runs: plan.runs,
        };
        if plan.has("fig16-21") {
            set.detectors(expected, results, progress)?;
        }
        if is_usual && plan.has("fig6") {
            set.masks(results, progress)?;
        }
        if is_usual && plan.has("fig22") {
            set.rates(results, progress)?;
        }
        if is_usual && plan.has("table3") {
            set.windows(results, progress)?;
        }
    }
    Ok(())
}

/// The distinct chunks of a data set.
struct Prototype<'a> {
    name: &'a str,
    unique: &'a UniqueChunks<'a>,
    runs: usize,
}

/// What a detector gives.
struct Outcome {
    reduction: Reduction,
    super_features: SuperFeatures,
}

impl Prototype<'_> {
    fn reduce(&self, detection: &Detection) -> anyhow::Result<Outcome> {
        let chunks = &self.unique.chunks;
        let super_features = SuperFeatures::extract(detection, chunks, Isa::best())?;
        let mut coder = Coder::new(Codec::Instructions, CompressionLevel::DEFAULT);
        let reduction = Reduction::of(chunks, &super_features, Rule::PAPER, &mut coder)?;
        reduction.verify(chunks, &mut coder)?;
        Ok(Outcome {
            reduction,
            super_features,
        })
    }

    /// The figures of an outcome: `published` has DCE, DCR and SCR of the paper, if it prints them.
    fn ratios(
        &self,
        place: &Figure,
        outcome: &Outcome,
        published: Option<[f64; 3]>,
    ) -> Vec<Figure> {
        let reduction = &outcome.reduction;
        let of = |metric, ours, paper| {
            Figure {
                metric,
                ..place.clone()
            }
            .with(ours, paper)
        };
        let paper = |index: usize| published.map(|row| row[index]);
        vec![
            of(DCE, reduction.efficiency(), paper(0)),
            of(DCR, reduction.compression_ratio(), paper(1)),
            of(SCR, reduction.similar_ratio(), paper(2)),
        ]
    }

    /// Chunks without features, in a million.
    fn failures(&self, place: &Figure, outcome: &Outcome, paper: Option<f64>) -> Figure {
        let metric = SAMPLING_ERRORS;
        let ours = outcome.super_features.failures_per_million();
        Figure {
            metric,
            ..place.clone()
        }
        .with(ours, paper)
    }

    /// Median speed of features, of detections that take turns.
    fn speeds(
        &self,
        detections: &[(String, Detection)],
        progress: &mut Progress,
    ) -> anyhow::Result<Vec<f64>> {
        let seconds = feature_seconds(
            &self.unique.chunks,
            self.unique.bytes,
            detections,
            self.runs,
            progress,
        )?;
        Ok(seconds
            .iter()
            .map(|seconds| self.unique.bytes as f64 / seconds)
            .collect())
    }

    /// Figs. 16 to 21.
    fn detectors(
        &self,
        expected: u32,
        results: &mut Results,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        progress.expect(self.unique.bytes * Detector::ALL.len() as u64);
        for detector in Detector::ALL {
            let outcome = self.reduce(&detections::standard(detector))?;
            let place = Figure::new("fig16-21", self.name, detections::name(detector), DCR)
                .at(f64::from(expected));
            results.figures.extend(self.ratios(&place, &outcome, None));
            results.figures.push(self.failures(&place, &outcome, None));
            progress.advance(self.unique.bytes, detections::name(detector));
        }
        Ok(())
    }

    /// Fig. 6.
    fn masks(&self, results: &mut Results, progress: &mut Progress) -> anyhow::Result<()> {
        progress.expect(self.unique.bytes * MaskBits::ALL.len() as u64);
        let mut published = published::SAMPLING_ERRORS.iter();
        let paper = published
            .find(|(set, _)| *set == self.name)
            .map(|(_, errors)| *errors);
        for mask in MaskBits::ALL {
            let outcome = self.reduce(&detections::with_mask(mask))?;
            let place = Figure::new("fig6", self.name, detections::mask_name(mask), DCE);
            results.figures.extend(self.ratios(&place, &outcome, None));
            let paper = paper.filter(|_| mask == MaskBits::Scattered);
            results.figures.push(self.failures(&place, &outcome, paper));
            progress.advance(self.unique.bytes, detections::mask_name(mask));
        }
        Ok(())
    }

    /// Fig. 22.
    fn rates(&self, results: &mut Results, progress: &mut Progress) -> anyhow::Result<()> {
        for detector in [Detector::Odess, Detector::OdessPlus] {
            let name = detections::name(detector);
            let rated = RATES.map(|rate| {
                (
                    format!("{name} 1/{rate}"),
                    detections::with_rate(detector, rate),
                )
            });
            let speeds = self.speeds(&rated, progress)?;
            for ((rate, (_, detection)), speed) in RATES.iter().zip(&rated).zip(speeds) {
                let outcome = self.reduce(detection)?;
                let place =
                    Figure::new("fig22", self.name, name, FEATURE_SPEED).at(f64::from(*rate));
                results.figures.push(place.clone().with(speed, None));
                results.figures.extend(self.ratios(&place, &outcome, None));
                results.figures.push(self.failures(&place, &outcome, None));
            }
        }
        Ok(())
    }

    /// Table 3.
    fn windows(&self, results: &mut Results, progress: &mut Progress) -> anyhow::Result<()> {
        let rows = SubWindows::ALL.map(|windows| {
            let count = windows.count();
            let mut published = published::TABLE3.iter();
            let row = published.find(|(of, _)| usize::from(*of) == count);
            let row = row.map(|(_, row)| *row).filter(|_| self.name == "TAR");
            let name = format!("{count} windows in parallel");
            (name, detections::with_windows(windows), row)
        });
        let named: Vec<(String, Detection)> = rows
            .iter()
            .map(|(name, detection, _)| (name.clone(), detection.clone()))
            .collect();
        let speeds = self.speeds(&named, progress)?;
        for ((name, detection, row), speed) in rows.iter().zip(speeds) {
            let outcome = self.reduce(detection)?;
            let place = Figure::new("table3", self.name, name, DCE);
            let paper = row.map(|[dce, dcr, scr, _]| [dce, dcr, scr]);
            results.figures.extend(self.ratios(&place, &outcome, paper));
            let paper = row.map(|[.., megabytes]| megabytes * 1e6);
            let metric = FEATURE_SPEED;
            results.figures.push(
                Figure {
                    metric,
                    ..place.clone()
                }
                .with(speed, paper),
            );
            results.figures.push(self.failures(&place, &outcome, None));
        }
        Ok(())
    }
}

/// Seconds for the super-features of all chunks, of detections that take turns.
///
/// # Errors
/// When somebody asked for a stop.
pub fn feature_seconds(
    chunks: &[&[u8]],
    bytes: u64,
    detections: &[(String, Detection)],
    runs: usize,
    progress: &mut Progress,
) -> anyhow::Result<Vec<f64>> {
    let mut ways: Vec<Way<'_>> = detections
        .iter()
        .map(|(name, detection)| {
            let mut extractor = detections::extractor(detection);
            let mut own = Vec::new();
            Way::telling(name.clone(), move || {
                let clock = timing::thread_seconds();
                for chunk in chunks {
                    extractor.super_features(chunk, &mut own);
                    std::hint::black_box(&own);
                }
                timing::thread_seconds() - clock
            })
        })
        .collect();
    timing::alternate(runs, bytes, &mut ways, progress)
}

//! Chunkers under many keys: how much the dedup ratio depends on the key, and how two chunkers
//! compare when their chunks are equally long.
//!
//! Enters: contestants of ours, data, how many keys. Leaves: for each contestant the ratio and the
//! mean chunk over all keys; and its ratio at the mean chunk of the first contestant. For the latter,
//! chunkers with a normal size run at several of them: mean chunk and ratio, each averaged over
//! the keys, make a curve, which is read off (between two points, or beyond the nearest two, along
//! their line) where the mean chunk is the first contestant's own.
//!
//! The data is read once for each contestant. Memory: as [`measure`] says, for each key and normal
//! size; that is four times as many at a time as there are keys.
//!
//! The ratio of one key says little: between keys it differs by a percent or more, and smaller
//! chunks save more whatever cuts them.

use chunking::{OwnParameter, Parameters};

use super::contestant::{Contestant, Method};
use super::data::{DataSet, Notice};
use super::measuring::{Effort, Outcome, measure};
use crate::failure::Failure;
use crate::progress::Progress;

/// Normal sizes that are tried, in percent of the one asked for.
const NORMAL_PERCENTS: [u64; 4] = [85, 92, 100, 108];

/// The place of the normal size asked for among them.
const AS_ASKED: usize = 2;

/// A mean and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Mean over the keys.
    pub mean: f64,
    /// Its standard error: the standard deviation over the keys by the root of their number.
    pub standard_error: f64,
    /// The least of all keys.
    pub least: f64,
    /// The most of all keys.
    pub most: f64,
}

impl Estimate {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            standard_error: (squares / (count - 1.0).max(1.0) / count).sqrt(),
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// One contestant under all keys.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedOutcome {
    /// Its name.
    pub label: String,
    /// Logical bytes by unique bytes.
    pub dedup_ratio: Estimate,
    /// Bytes of a chunk.
    pub mean_bytes: Estimate,
    /// The ratio where the mean chunk is that of the first contestant; none without a normal size.
    pub equal_mean_ratio: Option<f64>,
}

/// Measures all contestants under the keys of seeds 1 to `keys`. Leaves the outcomes, and what
/// happened to files while they were read.
///
/// # Errors
/// As [`measure`], and when a contestant takes no key.
pub fn measure_keys(
    contestants: &[Contestant],
    keys: u64,
    data: &DataSet,
    memory_bytes: u64,
    progress: &mut Progress,
) -> anyhow::Result<(Vec<KeyedOutcome>, Vec<Notice>)> {
    let effort = Effort {
        runs: 0,
        memory_bytes,
        is_dedup_wanted: true,
    };
    let mut results: Vec<KeyedOutcome> = Vec::new();
    let mut notices = Vec::new();
    for contestant in contestants {
        let parameters = keyed_parameters(contestant)?;
        let variants = normal_sizes(&parameters);
        // All at once, so that the data is read once: those of a variant follow each other.
        let keyed: Vec<_> = variants
            .iter()
            .flat_map(|variant| (1..=keys).map(|seed| with_key(contestant, *variant, seed)))
            .collect();
        let measurement = measure(&keyed, data, &effort, progress)?;
        let of_variants = measurement.outcomes.chunks(keys.max(1) as usize);
        let points: Vec<_> = of_variants.map(estimates).collect();
        notices = measurement.reading.notices;
        let asked = points[if variants.len() > 1 { AS_ASKED } else { 0 }];
        let first_mean = results
            .first()
            .map_or(asked.1.mean, |first| first.mean_bytes.mean);
        results.push(KeyedOutcome {
            label: contestant.label.clone(),
            dedup_ratio: asked.0,
            mean_bytes: asked.1,
            equal_mean_ratio: (points.len() > 1).then(|| ratio_at(&points, first_mean)),
        });
    }
    Ok((results, notices))
}

fn keyed_parameters(contestant: &Contestant) -> Result<Parameters, Failure> {
    match &contestant.method {
        Method::Own { parameters, .. } if parameters.algorithm.info().keyed => Ok(*parameters),
        _ => Err(Failure::usage(format!("{} takes no key", contestant.label))),
    }
}

/// The same at several normal sizes, rising, or as it is where it has none.
fn normal_sizes(parameters: &Parameters) -> Vec<Parameters> {
    if !OwnParameter::NormalBytes.is_of(parameters.algorithm) || parameters.normalization == 0 {
        return vec![*parameters];
    }
    let given = parameters.own.get(OwnParameter::NormalBytes);
    let normal = given.unwrap_or(u64::from(parameters.avg_bytes));
    let with_percent = |percent: u64| {
        let mut parameters = *parameters;
        let normal = (normal * percent / 100).max(u64::from(parameters.min_bytes) + 1);
        parameters.own.set(OwnParameter::NormalBytes, normal);
        parameters
    };
    NORMAL_PERCENTS.into_iter().map(with_percent).collect()
}

fn with_key(contestant: &Contestant, parameters: Parameters, seed: u64) -> Contestant {
    let mut keyed = Contestant::own(
        format!("{} key {seed}", contestant.label),
        parameters,
        Default::default(),
    )
    .with_structure(contestant.structure());
    if let Method::Own { key_seed, .. } = &mut keyed.method {
        *key_seed = Some(seed);
    }
    keyed
}

/// Ratio and mean chunk.
fn estimates(outcomes: &[Outcome]) -> (Estimate, Estimate) {
    let ratios: Vec<f64> = outcomes
        .iter()
        .map(|outcome| outcome.sizes.bytes() as f64 / outcome.unique_bytes as f64)
        .collect();
    let means: Vec<f64> = outcomes
        .iter()
        .map(|outcome| outcome.sizes.mean())
        .collect();
    (Estimate::of(&ratios), Estimate::of(&means))
}

/// The ratio at a mean chunk, along the nearest line of the curve.
fn ratio_at(points: &[(Estimate, Estimate)], mean_bytes: f64) -> f64 {
    let pairs = points.windows(2);
    let nearest = pairs
        .clone()
        .find(|pair| mean_bytes <= pair[1].1.mean)
        .or_else(|| pairs.clone().last());
    let Some([(low_ratio, low), (high_ratio, high)]) = nearest else {
        return points[0].0.mean;
    };
    let slope = (high_ratio.mean - low_ratio.mean) / (high.mean - low.mean);
    low_ratio.mean + slope * (mean_bytes - low.mean)
}

#[cfg(test)]
mod tests {
    use super::{Estimate, normal_sizes, ratio_at};
    use chunking::{Algorithm, OwnParameter, Parameters};

    #[test]
    fn an_estimate_is_a_mean_with_its_error() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        assert_eq!(
            (estimate.mean, estimate.least, estimate.most),
            (2.0, 1.0, 3.0)
        );
        // A variance of 1, over 3 keys.
        assert!((estimate.standard_error - (1.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Estimate::of(&[5.0]).standard_error, 0.0);
    }

    #[test]
    fn a_curve_is_read_off_along_lines() {
        let point = |ratio: f64, mean: f64| (Estimate::of(&[ratio]), Estimate::of(&[mean]));
        let points = [point(4.0, 100.0), point(3.0, 200.0), point(2.5, 300.0)];
        for (mean, ratio) in [
            (100.0, 4.0),
            (150.0, 3.5),
            (250.0, 2.75),
            (50.0, 4.5),
            (400.0, 2.0),
        ] {
            assert!((ratio_at(&points, mean) - ratio).abs() < 1e-12, "{mean}");
        }
    }

    #[test]
    fn normal_sizes_stand_around_the_one_asked_for() {
        let mut parameters = Parameters::new(Algorithm::Fold);
        parameters.own.set(OwnParameter::NormalBytes, 10_000);
        let normals: Vec<_> = normal_sizes(&parameters)
            .iter()
            .map(|parameters| parameters.own.get(OwnParameter::NormalBytes))
            .collect();
        assert_eq!(
            normals,
            [Some(8500), Some(9200), Some(10_000), Some(10_800)]
        );
        assert_eq!(normal_sizes(&Parameters::new(Algorithm::Gear)).len(), 1);
    }
}

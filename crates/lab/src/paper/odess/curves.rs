//! Fig. 7: how estimates spread, computed.

use super::analytic::{Distribution, binomial, cumulative, sampled};
use super::benchmark::CHUNK_BYTES;
use super::published::FEATURES;
use crate::paper::figure::Figure;

/// What the "data" are in figures of equations.
pub const EQUATIONS: &str = "Eqs. 6 and 9";
/// Actual similarities, of 100: the paper draws some that its text does not name.
const SIMILARITIES: [u32; 5] = [10, 30, 50, 70, 90];
/// Sampling rates of the figure.
const RATES: [u32; 3] = [32, 128, 512];

/// The curves of N-Transform and of three sampling rates.
pub fn figures() -> Vec<Figure> {
    let mut figures = Vec::new();
    for percent in SIMILARITIES {
        let p = f64::from(percent) / 100.0;
        let mut add = |name: &str, distribution: &Distribution| {
            for k in 0..=FEATURES {
                let share = k as f64 / FEATURES as f64;
                let figure = Figure::new("fig7", EQUATIONS, name, "estimates_percent");
                let ours = 100.0 * cumulative(distribution, share);
                // Two digits tell twelfths apart, and a table shows them.
                figures.push(
                    figure
                        .at((10_000.0 * share).round() / 100.0)
                        .with(ours, None),
                );
            }
        };
        let name = |approach: &str| format!("p = {percent} %, {approach}");
        add(&name("N-Transform"), &binomial(FEATURES, p));
        for rate in RATES {
            let samples = CHUNK_BYTES / rate as usize;
            add(&name(&format!("1/{rate}")), &sampled(FEATURES, samples, p));
        }
    }
    figures
}

/// The farthest that the curves of a rate and of N-Transform are apart, of 100, over all similarities.
pub fn gap_percent(figures: &[Figure], rate: u32) -> Option<f64> {
    let ending = format!("1/{rate}");
    let of_fig7 = || figures.iter().filter(|figure| figure.experiment == "fig7");
    let sampled = of_fig7().filter(|figure| figure.approach.ends_with(&ending));
    let gaps = sampled.filter_map(|figure| {
        let (similarity, _) = figure.approach.split_once(", ")?;
        let beside = format!("{similarity}, N-Transform");
        let other = of_fig7().find(|other| other.approach == beside && other.x == figure.x)?;
        Some((figure.ours - other.ours).abs())
    });
    gaps.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewer_samples_the_farther_from_n_transform() {
        let figures = figures();
        assert_eq!(figures.len(), 5 * 4 * 13);
        let gaps = RATES.map(|rate| gap_percent(&figures, rate).unwrap());
        assert!(
            gaps[0] < 2.0 && gaps[0] < gaps[1] && gaps[1] < gaps[2],
            "{gaps:?}"
        );
        let ends = figures.iter().filter(|figure| figure.x == Some(100.0));
        assert!(
            ends.into_iter()
                .all(|figure| (figure.ours - 100.0).abs() < 1e-6)
        );
        assert_eq!(gap_percent(&figures, 7), None);
    }
}

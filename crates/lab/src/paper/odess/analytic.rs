//! How far an estimate of similarity is from the similarity itself, computed (Odess, §3.3): Eq. 6 for
//! N-Transform, Eq. 9 for what samples first; and Eq. 9 over the samples that there really are.
//!
//! Enters: how many features a chunk has, how similar two chunks are, how many samples stand for one.
//! Leaves: the probabilities that 0, 1 … n features are equal.
//!
//! Eq. 9 as printed lets the proxies of two chunks have r·c elements together. They have more: two sets
//! of c elements each and of the Jaccard similarity p have 2c / (1 + p) in their union, and it is the
//! union that similarity is counted over. [`union_samples`] is that number, sampled.

/// The probabilities that 0 … n features are equal.
pub type Distribution = Vec<f64>;

/// Eqs. 5 and 6: each of n features of two chunks is equal with the probability p.
pub fn binomial(n: usize, p: f64) -> Distribution {
    let factorials = log_factorials(n);
    (0..=n).map(|k| term(&factorials, n, k, p)).collect()
}

/// Eq. 9: first m of `samples` elements are equal (Eq. 7), then each feature is with m / samples.
pub fn sampled(n: usize, samples: usize, p: f64) -> Distribution {
    let mut distribution = vec![0.0; n + 1];
    let outer = log_factorials(samples);
    let inner = log_factorials(n);
    for m in 0..=samples {
        let weight = term(&outer, samples, m, p);
        let share = m as f64 / samples as f64;
        for (k, probability) in distribution.iter_mut().enumerate() {
            *probability += weight * term(&inner, n, k, share);
        }
    }
    distribution
}

/// Samples in the union of two chunks of `bytes` each, whose similarity is p, one in `rate` taken.
pub fn union_samples(bytes: usize, rate: u32, p: f64) -> usize {
    let union = 2.0 * bytes as f64 / (1.0 + p);
    (union / f64::from(rate)).round().max(1.0) as usize
}

/// The probability that at most a share of the features is equal.
pub fn cumulative(distribution: &[f64], share: f64) -> f64 {
    let n = distribution.len() - 1;
    let most = (share * n as f64 + 1e-9).floor() as usize;
    distribution[..=most.min(n)].iter().sum()
}

/// The mean of the distance from p and that of its square.
pub fn error_moments(distribution: &[f64], p: f64) -> [f64; 2] {
    let n = (distribution.len() - 1) as f64;
    let mut moments = [0.0; 2];
    for (k, probability) in distribution.iter().enumerate() {
        let error = (k as f64 / n - p).abs();
        moments[0] += probability * error;
        moments[1] += probability * error * error;
    }
    moments
}

/// ln 0! … ln n!
fn log_factorials(n: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let logarithms = (0..=n).map(|k| {
        sum += (k.max(1) as f64).ln();
        sum
    });
    logarithms.collect()
}

/// C(n, k) p^k (1 − p)^(n − k).
fn term(log_factorials: &[f64], n: usize, k: usize, p: f64) -> f64 {
    // 0⁰ is 1: powers of nothing are left out before logarithms are taken.
    let power = |base: f64, exponent: usize| match exponent {
        0 => Some(0.0),
        _ if base <= 0.0 => None,
        _ => Some(base.ln() * exponent as f64),
    };
    let ways = log_factorials[n] - log_factorials[k] - log_factorials[n - k];
    match (power(p, k), power(1.0 - p, n - k)) {
        (Some(equal), Some(different)) => (ways + equal + different).exp(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an estimate is on average.
    fn mean(distribution: &[f64]) -> f64 {
        let n = (distribution.len() - 1) as f64;
        let terms = distribution.iter().enumerate();
        terms
            .map(|(k, probability)| k as f64 / n * probability)
            .sum()
    }

    #[test]
    fn probabilities_sum_to_one_and_mean_p() {
        for p in [0.0, 0.1, 0.3, 0.5, 0.9, 1.0] {
            for distribution in [binomial(12, p), sampled(12, 64, p), sampled(12, 16, p)] {
                let sum: f64 = distribution.iter().sum();
                assert!((sum - 1.0).abs() < 1e-9, "{p}: {sum}");
                // Inference 1: sampling changes nothing on average.
                assert!((mean(&distribution) - p).abs() < 1e-9);
            }
        }
        for (found, exact) in binomial(3, 0.5).iter().zip([0.125, 0.375, 0.375, 0.125]) {
            assert!((found - exact).abs() < 1e-12);
        }
    }

    #[test]
    fn the_fewer_the_samples_the_farther_the_estimate() {
        let error = |distribution: &[f64]| error_moments(distribution, 0.7);
        let none = error(&binomial(12, 0.7));
        let mut last = none;
        for samples in [256, 64, 16] {
            let found = error(&sampled(12, samples, 0.7));
            assert!(found[0] > last[0] && found[1] > last[1], "{samples}");
            last = found;
        }
        // Variances add: p(1 − p) (1/n + 1/s − 1/(n s)).
        let expected = 0.21 * (1.0 / 12.0 + 1.0 / 16.0 - 1.0 / (12.0 * 16.0));
        assert!((last[1] - expected).abs() < 1e-9);
    }

    #[test]
    fn a_union_has_more_samples_than_a_chunk() {
        assert_eq!(union_samples(8192, 128, 1.0), 64);
        assert_eq!(union_samples(8192, 128, 0.0), 128);
    }

    /// §3.3 reads 60 % off Fig. 7(b); the steps give 49 %, and lines between them 63 %.
    #[test]
    fn at_most_a_share_is_a_step() {
        let distribution = binomial(12, 0.3);
        assert!((cumulative(&distribution, 0.3) - 0.4925).abs() < 1e-4);
        assert!((cumulative(&distribution, 4.0 / 12.0) - 0.7237).abs() < 1e-4);
        assert!((cumulative(&distribution, 1.0) - 1.0).abs() < 1e-9);
    }
}

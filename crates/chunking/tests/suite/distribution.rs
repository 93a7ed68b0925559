//! Sizes on random data: the mean that `Parameters::avg_bytes` documents.

use crate::random::random_bytes;
use crate::{fastcdc, lengths, unkeyed};
use chunking::Parameters;

/// The documented mean, with the maximum taken into account.
fn documented_mean(parameters: &Parameters) -> f64 {
    let [min, avg, max] = [
        parameters.min_bytes,
        parameters.avg_bytes,
        parameters.max_bytes,
    ]
    .map(f64::from);
    let level = f64::from(1u32 << parameters.normalization);
    let (before, after) = (1.0 / (avg * level), level / avg);
    let reaches_normal = (1.0 - before).powf(avg - min);
    let reaches_max = (1.0 - after).powf(max - avg);
    min + (1.0 - reaches_normal) / before + reaches_normal * (1.0 - reaches_max) / after
}

#[test]
fn means_are_as_documented() {
    let data = random_bytes(6, 24 << 20);
    for parameters in [
        fastcdc(2048, 8192, 65536, 0),
        fastcdc(2048, 8192, 65536, 1),
        fastcdc(2048, 8192, 65536, 2),
        fastcdc(2048, 8192, 65536, 3),
        fastcdc(64, 256, 4096, 2),
        fastcdc(1024, 4096, 32768, 2),
        fastcdc(8192, 16384, 131_072, 1),
    ] {
        let lengths = lengths(&unkeyed(&parameters), &data);
        let mean = data.len() as f64 / lengths.len() as f64;
        let ratio = mean / documented_mean(&parameters);
        assert!((0.96..1.04).contains(&ratio), "{parameters:?}: {ratio}");
    }
}

#[test]
fn the_default_mean_is_1_14_times_avg_bytes() {
    let ratio = documented_mean(&Parameters::default()) / 8192.0;
    assert!((1.135..1.145).contains(&ratio), "{ratio}");
}

#[test]
fn normalization_draws_sizes_to_the_normal_size() {
    let data = random_bytes(7, 24 << 20);
    let shares: Vec<f64> = (0..=3)
        .map(|level| {
            let lengths = lengths(&unkeyed(&fastcdc(2048, 8192, 65536, level)), &data);
            let near = lengths
                .iter()
                .filter(|length| (4096..16384).contains(*length))
                .count();
            near as f64 / lengths.len() as f64
        })
        .collect();
    assert!(shares.is_sorted(), "{shares:?}");
    assert!(shares[0] < 0.65 && shares[2] > 0.85, "{shares:?}");
}

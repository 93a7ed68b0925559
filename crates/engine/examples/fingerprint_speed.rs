//! How fast chunks are fingerprinted one by one and many at once, by one thread, from memory:
//! `cargo run --release -p onefold-engine --example fingerprint_speed`.

use std::time::Instant;

use engine::container::ContainerKind;
use engine::fingerprint::Fingerprinter;

const BYTES: usize = 256 << 20;
const RUNS: usize = 7;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Lengths between a third and five thirds of `mean` that make up [`BYTES`].
fn lengths(mean: usize) -> Vec<u32> {
    let (mut state, mut left, mut lengths) = (1u64, BYTES, Vec::new());
    while left > 0 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let length = (mean / 3 + (state >> 33) as usize % (mean * 4 / 3)).min(left);
        lengths.push(length as u32);
        left -= length;
    }
    lengths
}

fn main() {
    let fingerprinter = Fingerprinter::new(&[7; 32]);
    let kind = ContainerKind::Data;
    let mut data = vec![0; BYTES];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    println!("mean KiB   one by one   together   ratio     (GB/s, medians of {RUNS})");
    for mean in [2 << 10, 9600, 16 << 10, 72_000] {
        let lengths = lengths(mean);
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let started = Instant::now();
            let mut start = 0;
            let mut expected = Vec::with_capacity(lengths.len());
            for &length in &lengths {
                let chunk = &data[start..start + length as usize];
                expected.push(fingerprinter.fingerprint(kind, chunk));
                start += chunk.len();
            }
            alone.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let fingerprints = fingerprinter.fingerprints(kind, &data, &lengths);
            together.push(started.elapsed().as_secs_f64());
            assert!(fingerprints == expected);
        }
        let speed = |times| BYTES as f64 / 1e9 / median(times);
        let (alone, together) = (speed(alone), speed(together));
        println!(
            "{:8.1} {alone:12.2} {together:10.2} {:7.2}",
            mean as f64 / 1024.0,
            together / alone
        );
    }
}

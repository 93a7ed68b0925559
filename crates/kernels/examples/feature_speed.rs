//! GB/s of features on every level that the machine has, one thread: chunks of 8 KiB, from memory and
//! from the second cache, 12 features, one hash of 128 sampled where hashes are sampled; and how many
//! times as fast as N-Transform on its fastest level. Seconds are those that the thread ran, where Linux
//! tells them, so that other work on the machine counts for less.
//!
//! `cargo run --release -p onefold-kernels --example feature_speed [FILE...]`: random bytes, or files.

use kernels::features::gear::SampledGear;
use kernels::features::rabin::FeatureRabin;
use kernels::features::swpr::{self, SubWindows};
use kernels::features::{Transforms, scalar};
use kernels::isa::Isa;
use std::hint::black_box;
use std::time::Instant;

/// Passes of which the median counts.
const PASSES: usize = 7;

/// Bytes of a chunk.
const CHUNK: usize = 8 << 10;

/// Bytes of data: more than the last cache has, and what the second has room for.
const LENGTHS: [(&str, usize); 2] = [("memory", 96 << 20), ("L2", 256 << 10)];

/// Features.
const FEATURES: usize = 12;

fn main() -> std::io::Result<()> {
    let mut numbers = splitmix64(1);
    let mut data = Vec::new();
    for path in std::env::args().skip(1) {
        data.extend(std::fs::read(path)?);
    }
    if data.is_empty() {
        let count = LENGTHS[0].1 / 8;
        data.extend(numbers.by_ref().take(count).flat_map(u64::to_le_bytes));
    }
    let pairs: Vec<(u32, u32)> = numbers
        .by_ref()
        .take(FEATURES)
        .map(|number| (number as u32 | 1, (number >> 32) as u32))
        .collect();
    let table = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    let detectors = Detectors {
        transforms: Transforms::new(&pairs),
        rabin: FeatureRabin::new(0x04c1_1db7),
        gear: SampledGear::new(&table, 32, 0x4003_0341),
    };
    let chunk = &data[..CHUNK.min(data.len())];
    let samples = scalar::swpr_samples(SubWindows::Four, BOUNDARIES[1], chunk);
    println!(
        "{} of the first {} hashes are sampled",
        samples.len(),
        chunk.len()
    );
    for (name, length) in LENGTHS {
        report(name, &data[..length.min(data.len())], &detectors);
    }
    Ok(())
}

/// One hash in 128, of 64, 32 and 16 bits.
const BOUNDARIES: [u64; 3] = [u64::MAX - (1 << 57), 0xfdff_ffff, 0xfdff];

/// What takes features, made ready.
struct Detectors {
    transforms: Transforms,
    rabin: FeatureRabin,
    gear: SampledGear,
}

/// A name, and what it does to a chunk.
type Detector = (&'static str, fn(&Detectors, Isa, &[u8], &mut [u32]) -> bool);

const DETECTORS: [Detector; 6] = [
    ("n-transform", |it, isa, chunk, features| {
        it.rabin.minima(isa, &it.transforms, chunk, features)
    }),
    ("finesse", |it, isa, chunk, features| {
        it.rabin.maxima(isa, chunk, features)
    }),
    ("odess", |it, isa, chunk, features| {
        it.gear.minima(isa, &it.transforms, chunk, features)
    }),
    ("odess+, 2 windows", |it, isa, chunk, features| {
        let windows = (SubWindows::Two, BOUNDARIES[0]);
        swpr::minima(isa, windows, &it.transforms, chunk, features)
    }),
    ("odess+, 4 windows", |it, isa, chunk, features| {
        let windows = (SubWindows::Four, BOUNDARIES[1]);
        swpr::minima(isa, windows, &it.transforms, chunk, features)
    }),
    ("odess+, 8 windows", |it, isa, chunk, features| {
        let windows = (SubWindows::Eight, BOUNDARIES[2]);
        swpr::minima(isa, windows, &it.transforms, chunk, features)
    }),
];

fn report(place: &str, data: &[u8], detectors: &Detectors) {
    println!("from {place}: GB/s; times N-Transform's best");
    let mut best = f64::NAN;
    for (name, take) in DETECTORS {
        for isa in Isa::available() {
            let mut features = [0; FEATURES];
            let speed = median(data.len(), || {
                for chunk in black_box(data).chunks(CHUNK) {
                    black_box(take(detectors, isa, chunk, black_box(&mut features)));
                }
            });
            if name == DETECTORS[0].0 {
                best = best.max(speed);
            }
            println!("{name:18} {isa:8} {speed:7.2} {:6.1}", speed / best);
        }
    }
}

/// GB/s of the median pass over `length` bytes.
fn median(length: usize, mut pass: impl FnMut()) -> f64 {
    let repeats = ((32 << 20) / length).max(1);
    let begin = Instant::now();
    let mut seconds: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = seconds_run(&begin);
            (0..repeats).for_each(|_| pass());
            seconds_run(&begin) - start
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    (length * repeats) as f64 / seconds[PASSES / 2] / 1e9
}

/// What this thread has run so far, or else what has passed since `begin`.
fn seconds_run(begin: &Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    nanoseconds.map_or(begin.elapsed().as_secs_f64(), |run: f64| run / 1e9)
}

fn splitmix64(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

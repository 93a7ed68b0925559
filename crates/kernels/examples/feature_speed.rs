//! GB/s of features on every level that the machine has, one thread: chunks of 8 KiB, from memory and
//! from the second cache, 12 features, one hash of 128 sampled where hashes are sampled; and how many
//! times as fast as N-Transform on its fastest level.
//!
//! A pass is short, a millisecond or less for what is fast, so that on a machine that does other work too the best
//! passes are not disturbed; these are what is compared. Beside them the median.
//!
//! `cargo run --release -p onefold-kernels --example feature_speed [FILE...]`: random bytes, or files.

use kernels::features::gear::SampledGear;
use kernels::features::rabin::FeatureRabin;
use kernels::features::swpr::{self, SubWindows};
use kernels::features::{Transforms, scalar};
use kernels::isa::Isa;
use std::hint::black_box;
use std::time::Instant;

/// Passes, and how long they take in all, at least.
const PASSES: (usize, f64) = (48, 0.4);

/// Bytes of a pass.
const PASS: usize = 1 << 20;

/// Bytes of a chunk.
const CHUNK: usize = 8 << 10;

/// Bytes of data: more than the last cache has, and what the second has room for.
const LENGTHS: [(&str, usize); 2] = [("memory", 256 << 20), ("L2", 256 << 10)];

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
    println!("from {place}: GB/s of the best pass; times N-Transform's best; GB/s of the median");
    let mut n_transform = 0.0;
    for (name, take) in DETECTORS {
        for isa in Isa::available() {
            let mut features = [0; FEATURES];
            let (best, median) = speeds(data, |chunk| {
                black_box(take(detectors, isa, chunk, black_box(&mut features)));
            });
            if name == DETECTORS[0].0 {
                n_transform = best.max(n_transform);
            }
            let ratio = best / n_transform;
            println!("{name:18} {isa:8} {best:7.2} {ratio:6.1} {median:7.2}");
        }
    }
}

/// GB/s of the best and of the median pass over chunks of the data, which are taken in turn.
fn speeds(data: &[u8], mut take: impl FnMut(&[u8])) -> (f64, f64) {
    let pieces = data.chunks(PASS.min(data.len()));
    let repeats = PASS.div_ceil(data.len());
    let mut seconds = Vec::new();
    for piece in pieces.cycle() {
        let start = Instant::now();
        for _ in 0..repeats {
            black_box(piece).chunks(CHUNK).for_each(&mut take);
        }
        seconds.push(start.elapsed().as_secs_f64() / (piece.len() * repeats) as f64);
        if seconds.len() >= PASSES.0 && seconds.iter().sum::<f64>() * PASS as f64 >= PASSES.1 {
            break;
        }
    }
    seconds.sort_by(f64::total_cmp);
    let speed = |index: usize| 1.0 / seconds[index] / 1e9;
    (speed(0), speed(seconds.len() / 2))
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

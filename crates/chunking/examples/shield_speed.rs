//! GB/s of `shield`, by level of instruction sets, beside FastCDC and the crate `fastcdc`; and what
//! each leaves of the data when equal chunks are kept once.
//!
//! `cargo run --release -p onefold-chunking --example shield_speed [FILE…]`. One thread, data in
//! memory: 64 MiB of random bytes, or the files, each cut by itself. The rivals take turns; medians
//! over the rounds.

use chunking::{Algorithm, Chunker, Isa, KeyMaterial, OwnParameter, Parameters};
use fastcdc::v2020;
use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const RANDOM_BYTES: usize = 64 << 20;
const ROUNDS: usize = 5;
/// Ratios of one key are as chance has it; the last lines are means over so many.
const KEYS: u64 = 16;

/// A way to cut: the number of chunks.
type Cut<'a> = Box<dyn Fn(&[u8], &mut dyn FnMut(usize)) + 'a>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for path in std::env::args_os().skip(1) {
        files.push(std::fs::read(path)?);
    }
    if files.is_empty() {
        files.push(random_bytes());
    }
    let total: usize = files.iter().map(Vec::len).sum();
    println!("{:.1} MB in {} files", total as f64 / 1e6, files.len());
    for kib in [[2, 8, 64], [16, 64, 256]] {
        let rivals = rivals(kib)?;
        let mut seconds = vec![Vec::new(); rivals.len()];
        for _ in 0..ROUNDS {
            for ((_, cut), seconds) in rivals.iter().zip(&mut seconds) {
                let clock = Clock::start();
                for file in &files {
                    let mut count = 0;
                    cut(black_box(file), &mut |_| count += 1);
                    black_box(count);
                }
                seconds.push(clock.seconds());
            }
        }
        let [min, avg, max] = kib;
        println!("\n{min}K/{avg}K/{max}K          GB/s  mean bytes  dedup ratio");
        for ((name, cut), seconds) in rivals.iter().zip(&mut seconds) {
            seconds.sort_by(f64::total_cmp);
            let speed = total as f64 / seconds[ROUNDS / 2] / 1e9;
            let (mean, ratio) = dedup(cut, &files);
            println!("{name:18} {speed:6.2} {mean:11.0} {ratio:12.4}");
        }
        for algorithm in [Algorithm::FastCdc, Algorithm::Shield] {
            let (mean, ratio) = over_keys(&parameters(algorithm, kib), &files)?;
            println!("{algorithm:10} {KEYS:2} keys        {mean:11.0} {ratio:12.4}");
        }
    }
    Ok(())
}

/// Time on the processor where Linux tells it, so that other work beside this takes less away; else
/// time that passes.
struct Clock {
    passed: Instant,
    on_processor: Option<u64>,
}

impl Clock {
    fn start() -> Self {
        Self {
            on_processor: Self::nanoseconds(),
            passed: Instant::now(),
        }
    }

    fn seconds(&self) -> f64 {
        match (self.on_processor, Self::nanoseconds()) {
            (Some(start), Some(end)) => (end - start) as f64 / 1e9,
            _ => self.passed.elapsed().as_secs_f64(),
        }
    }

    fn nanoseconds() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok()
    }
}

/// The ways to cut that are compared.
fn rivals<'a>(kib: [u32; 3]) -> Result<Vec<(String, Cut<'a>)>, Box<dyn Error>> {
    let [min, avg, max] = kib;
    let of_crate: Cut = Box::new(move |data, chunk| {
        let level = v2020::Normalization::Level2;
        let cutter = v2020::FastCDC::with_level(
            data,
            (min << 10) as usize,
            (avg << 10) as usize,
            (max << 10) as usize,
            level,
        );
        cutter.for_each(|found| chunk(found.length));
    });
    let mut rivals = vec![("crate fastcdc".to_owned(), of_crate)];
    let mut add = |name: String, parameters: &Parameters, isa| -> Result<(), Box<dyn Error>> {
        let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed)?.with_isa(isa);
        let cut: Cut = Box::new(move |data, chunk| {
            for found in chunker.chunks(data) {
                chunk(found.len());
            }
        });
        rivals.push((name, cut));
        Ok(())
    };
    add(
        "fastcdc".to_owned(),
        &parameters(Algorithm::FastCdc, kib),
        Isa::best(),
    )?;
    for isa in Isa::available().filter(|&isa| isa != Isa::Scalar) {
        add(
            format!("shield {isa}"),
            &parameters(Algorithm::Shield, kib),
            isa,
        )?;
    }
    // Where real data makes the mean another, the normal size brings it back.
    for percent in [95, 105] {
        let mut moved = parameters(Algorithm::Shield, kib);
        let normal = u64::from(avg << 10) * percent / 100;
        moved.own.set(OwnParameter::NormalBytes, normal);
        add(format!("shield normal {percent} %"), &moved, Isa::best())?;
    }
    Ok(rivals)
}

fn parameters(algorithm: Algorithm, [min, avg, max]: [u32; 3]) -> Parameters {
    Parameters {
        min_bytes: min << 10,
        avg_bytes: avg << 10,
        max_bytes: max << 10,
        ..Parameters::new(algorithm)
    }
}

/// What [`dedup`] says, on average over keys.
fn over_keys(parameters: &Parameters, files: &[Vec<u8>]) -> Result<(f64, f64), Box<dyn Error>> {
    let mut sums = (0.0, 0.0);
    for seed in 1..=KEYS {
        let mut numbers = splitmix64(seed);
        let key = KeyMaterial::Table(Box::new(std::array::from_fn(|_| numbers())));
        let chunker = Chunker::new(parameters, key)?;
        let cut: Cut = Box::new(move |data, chunk| {
            for found in chunker.chunks(data) {
                chunk(found.len());
            }
        });
        let (mean, ratio) = dedup(&cut, files);
        sums = (sums.0 + mean, sums.1 + ratio);
    }
    Ok((sums.0 / KEYS as f64, sums.1 / KEYS as f64))
}

/// The mean of all chunks, and bytes to bytes of chunks that differ.
fn dedup(cut: &Cut, files: &[Vec<u8>]) -> (f64, f64) {
    let (mut count, mut total, mut kept, mut seen) = (0usize, 0usize, 0usize, HashSet::new());
    for file in files {
        let mut start = 0;
        cut(file, &mut |length| {
            let chunk = &file[start..start + length];
            start += length;
            count += 1;
            total += length;
            // Two sums of 64 bits: equal by chance in one of 2^64 pairs of a small set.
            if seen.insert((fnv(chunk), length)) {
                kept += length;
            }
        });
    }
    (total as f64 / count as f64, total as f64 / kept as f64)
}

/// A hash good enough to tell some hundred thousand chunks apart.
fn fnv(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|&word| u64::from_le_bytes(word));
    let words = words.chain(rest.iter().map(|&byte| u64::from(byte)));
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    })
}

fn random_bytes() -> Vec<u8> {
    let mut numbers = splitmix64(1);
    (0..RANDOM_BYTES / 8)
        .flat_map(|_| numbers().to_le_bytes())
        .collect()
}

fn splitmix64(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

//! Chunking in two stages beside the loops in order and the crate fastcdc, in one run.
//!
//! `cargo run --release -p onefold-chunking --example two_stage_speed
//! [ALGORITHM|FILE…]`. One thread; rounds in
//! which every row has its turn. Medians of GB/s and of the ratios to the first row, and both of the
//! fastest pass of each row, which other work on the machine disturbs least.

use chunking::two_stage::TwoStage;
use chunking::{Algorithm, Chunker, Isa, KeyMaterial, OwnParameter, Parameters, Rolling};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const DATA_BYTES: usize = 4 << 20;
const ROUNDS: usize = 41;
/// Small enough for its marks to be memory that is used again.
const SEGMENT_BYTES: usize = 256 << 10;

/// What is timed: chunks of the data, counted.
type Pass = Box<dyn Fn(&[u8]) -> usize>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut data = vec![0u8; DATA_BYTES];
    let mut state = 1u64;
    for word in data.chunks_exact_mut(8) {
        // xorshift64: random enough for speeds.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        table("random", &data)?;
    }
    for path in arguments {
        if let Ok(algorithm) = path.parse::<Algorithm>() {
            let mut rows = Vec::new();
            let parameters = Parameters::new(algorithm);
            add_rows(&mut rows, algorithm.name(), &parameters, Rolling::OneByte)?;
            print_rows("usual sizes", &rows, &data);
            continue;
        }
        let mut data = std::fs::read(&path)?;
        data.truncate(DATA_BYTES);
        table(&path, &data)?;
    }
    Ok(())
}

fn table(name: &str, data: &[u8]) -> Result<(), Box<dyn Error>> {
    println!("{name}, {} MB", data.len() / 1_000_000);
    for (min, avg, max) in [(2, 8, 64), (16, 64, 256)] {
        let crate_fastcdc: Pass = Box::new(move |data| {
            let (min, avg, max) = (min << 10, avg << 10, max << 10);
            let level = fastcdc::v2020::Normalization::Level2;
            fastcdc::v2020::FastCDC::with_level(data, min, avg, max, level).count()
        });
        let mut rows = vec![("crate fastcdc".to_owned(), crate_fastcdc)];
        for bits in [64, 32] {
            let mut parameters = sized(Algorithm::FastCdc, min as u32, avg as u32, max as u32);
            parameters.own.set(OwnParameter::HashBits, bits);
            add_rows(
                &mut rows,
                &format!("fastcdc {bits}"),
                &parameters,
                Rolling::OneByte,
            )?;
        }
        let gear = sized(Algorithm::Gear, min as u32, avg as u32, max as u32);
        add_rows(&mut rows, "gear", &gear, Rolling::OneByte)?;
        print_rows(&format!("{min}/{avg}/{max} KiB"), &rows, data);
    }
    for algorithm in [Algorithm::Crc32, Algorithm::Rabin] {
        let mut rows = Vec::new();
        let parameters = sized(algorithm, 2, 16, 64);
        add_rows(&mut rows, algorithm.name(), &parameters, Rolling::OneByte)?;
        print_rows("2/16/64 KiB", &rows, data);
    }
    Ok(())
}

fn sized(algorithm: Algorithm, min_kib: u32, avg_kib: u32, max_kib: u32) -> Parameters {
    Parameters {
        min_bytes: min_kib << 10,
        avg_bytes: avg_kib << 10,
        max_bytes: max_kib << 10,
        ..Parameters::new(algorithm)
    }
}

fn add_rows(
    rows: &mut Vec<(String, Pass)>,
    name: &str,
    parameters: &Parameters,
    paper: Rolling,
) -> Result<(), Box<dyn Error>> {
    let chunker = Chunker::new(parameters, KeyMaterial::Unkeyed)?;
    for (loop_name, rolling) in [("one byte", paper), ("in order", Rolling::InOrder)] {
        let chunker = chunker.clone().with_rolling(rolling);
        let pass: Pass = Box::new(move |data| chunker.chunks(data).count());
        rows.push((format!("{name}, {loop_name}"), pass));
    }
    for isa in Isa::available().filter(|isa| *isa != Isa::Scalar) {
        let chunker = chunker
            .clone()
            .with_isa(isa)
            .with_rolling(Rolling::TwoStage);
        let eager = TwoStage::new(chunker.clone(), SEGMENT_BYTES)?;
        let once = chunker.clone();
        let pass: Pass = Box::new(move |data| chunker.chunks(data).count());
        rows.push((format!("{name}, lazy, {isa}"), pass));
        let pass: Pass = Box::new(move |data| {
            let (mut start, mut count) = (0, 0);
            while start < data.len() {
                start += once.cut(&data[start..]);
                count += 1;
            }
            count
        });
        rows.push((format!("{name}, lazy, no memory, {isa}"), pass));
        let pass: Pass = Box::new(move |data| eager.cuts(data).len());
        rows.push((format!("{name}, eager, {isa}"), pass));
    }
    Ok(())
}

/// Each row in turn, round after round.
fn print_rows(sizes: &str, rows: &[(String, Pass)], data: &[u8]) {
    let mut seconds = vec![Vec::new(); rows.len()];
    let mut counts = vec![0; rows.len()];
    for _ in 0..ROUNDS {
        for (index, (_, pass)) in rows.iter().enumerate() {
            let start = Instant::now();
            counts[index] = pass(black_box(data));
            seconds[index].push(start.elapsed().as_secs_f64());
        }
    }
    let fastest = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    println!("  {sizes}: medians: GB/s, times the first row; fastest: the same; mean bytes");
    for ((name, _), (times, count)) in rows.iter().zip(seconds.iter().zip(&counts)) {
        let speed = data.len() as f64 / median(times.iter().copied()) / 1e9;
        let ratio = median(
            seconds[0]
                .iter()
                .zip(times)
                .map(|(first, this)| first / this),
        );
        let best = data.len() as f64 / fastest(times) / 1e9;
        let best_ratio = fastest(&seconds[0]) / fastest(times);
        let mean = data.len() / count;
        println!("    {name:36} {speed:6.2} {ratio:6.2}   {best:6.2} {best_ratio:6.2} {mean:8}");
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

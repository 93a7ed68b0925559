//! GB/s of `fold` on every level that the machine has, with cuts at 2, 8, 64 KiB and at 16, 64,
//! 256 KiB: random bytes in cache and in memory, and the files that are named.
//!
//! `cargo run --release -p onefold-kernels --example fold_speed [FILE...]`

use kernels::fold::Fold;
use kernels::isa::Isa;
use std::hint::black_box;
use std::time::Instant;

/// Passes of which the median counts.
const PASSES: usize = 9;

/// Bytes of random data.
const LENGTHS: [(&str, usize); 2] = [("random, cache", 1 << 20), ("random, memory", 512 << 20)];

fn main() -> std::io::Result<()> {
    let mut state = 1u64;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 31).to_le_bytes()
    });
    let random: Vec<u8> = random.take(LENGTHS[1].1 / 8).flatten().collect();
    for (name, length) in LENGTHS {
        report(name, &random[..length]);
    }
    let mut files = Vec::new();
    for path in std::env::args().skip(1) {
        files.extend(std::fs::read(path)?);
    }
    if !files.is_empty() {
        report("files", &files);
    }
    Ok(())
}

fn report(name: &str, data: &[u8]) {
    let reading = median(data.len(), || {
        black_box(sum(black_box(data)));
    });
    println!("{name:16} reading                  {reading:6.2} GB/s");
    for (sizes, signs) in [([2, 8, 64], (15, 11)), ([16, 64, 256], (18, 14))] {
        let [min, avg, max] = sizes.map(|kilo: usize| kilo << 10);
        let fold = Fold::new(
            [0x9a3c_51d7, 0x1f4b_7728, 0xe03d_9c15, 0x56b2_8a4f],
            signs.0,
            signs.1,
        );
        for isa in Isa::available() {
            let mut chunks = 0;
            let speed = median(data.len(), || {
                let mut rest = black_box(data);
                chunks = 0;
                while rest.len() > min {
                    let chunk = &rest[..rest.len().min(max)];
                    let cut = fold.find_cut(chunk, min, avg, isa).unwrap_or(chunk.len());
                    rest = &rest[cut..];
                    chunks += 1;
                }
            });
            let mean = data.len() / chunks.max(1);
            println!(
                "{name:16} {:>3}/{:>2}/{:>3} {isa:8} {speed:6.2} GB/s, mean {mean}",
                sizes[0], sizes[1], sizes[2]
            );
        }
    }
}

/// The sum of all words: how fast data can be read at all.
fn sum(data: &[u8]) -> u64 {
    let (blocks, _) = data.as_chunks::<64>();
    let mut sums = [0u64; 8];
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    sums.iter().fold(0, |total, sum| total ^ sum)
}

/// GB/s of the median pass over `length` bytes.
fn median(length: usize, mut pass: impl FnMut()) -> f64 {
    let repeats = (64 << 20) / length.min(64 << 20);
    let mut seconds: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            (0..repeats).for_each(|_| pass());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    (length * repeats) as f64 / seconds[PASSES / 2] / 1e9
}

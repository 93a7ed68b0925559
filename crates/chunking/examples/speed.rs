//! GB/s of each algorithm on random data: from cache, from memory, and through a stream.
//!
//! `cargo run --release -p onefold-chunking --example speed`. One thread; the fastest of many
//! passes, for other work on the machine only slows passes down, and short ones often escape it.

use chunking::{ALGORITHMS, Chunker, KeyMaterial, Parameters, StreamChunker};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const DATA_BYTES: usize = 64 << 20;
const CACHED_BYTES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut state = 1u64;
    let mut data = vec![0u8; DATA_BYTES];
    for word in data.chunks_exact_mut(8) {
        // xorshift64: random enough for speeds.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    println!("algorithm            min/avg/max KiB    cached   memory   stream   mean bytes");
    for info in ALGORITHMS {
        for (min_kib, avg_kib, max_kib) in [(2, 8, 64), (16, 64, 256), (256, 1024, 4096)] {
            let parameters = Parameters {
                min_bytes: min_kib << 10,
                avg_bytes: avg_kib << 10,
                max_bytes: max_kib << 10,
                ..Parameters::new(info.algorithm)
            };
            if parameters.validate().is_err() {
                continue;
            }
            let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed)?;
            let cut = |data| chunker.chunks(black_box(data)).count();
            let (cached, _) = best(CACHED_BYTES, || cut(&data[..CACHED_BYTES]));
            let (memory, count) = best(DATA_BYTES, || cut(&data));
            let mut stream = StreamChunker::new(chunker.clone(), &data[..]);
            let (streamed, _) = best(DATA_BYTES, || {
                stream.restart(&data);
                let mut count = 0;
                while let Ok(Some(chunk)) = stream.next_chunk() {
                    black_box(chunk);
                    count += 1;
                }
                count
            });
            let sizes = format!("{min_kib}/{avg_kib}/{max_kib}");
            println!(
                "{:20} {sizes:16} {cached:8.2} {memory:8.2} {streamed:8.2} {:12}",
                info.name,
                DATA_BYTES / count
            );
        }
    }
    Ok(())
}

/// GB/s of the fastest pass over `length` bytes, and what a pass counted.
fn best(length: usize, mut pass: impl FnMut() -> usize) -> (f64, usize) {
    let mut fastest = f64::INFINITY;
    let mut count = 0;
    for _ in 0..(1 << 30) / length {
        let start = Instant::now();
        count = pass();
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    (length as f64 / fastest / 1e9, count)
}

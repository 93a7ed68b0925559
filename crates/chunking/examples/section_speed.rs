//! How fast a file is cut with and without looking for tars: `section_speed FILE [PASSES]`. Best of the passes, from
//! memory, in turns.

use chunking::structure::{Sections, Structure};
use chunking::{Chunker, KeyMaterial, Parameters};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let data = std::fs::read(arguments.next().ok_or("a file is wanted")?)?;
    let passes = arguments.next().map_or(Ok(50), |passes| passes.parse())?;
    let chunker = Chunker::new(&Parameters::default(), KeyMaterial::Unkeyed)?;
    let mut best = [Duration::MAX; 2];
    for _ in 0..passes {
        for (best, structure) in best.iter_mut().zip([Structure::None, Structure::Tar]) {
            let clock = Instant::now();
            let mut sections = Sections::new(structure, &chunker);
            let mut rest = &data[..];
            while let Some(length) = sections.cut(&chunker, rest, true) {
                rest = &rest[length..];
            }
            *best = clock.elapsed().min(*best);
        }
    }
    for (best, name) in best.iter().zip(["none", "tar"]) {
        let speed = data.len() as f64 / best.as_secs_f64() / 1e9;
        println!("{name:<5}{speed:.2} GB/s");
    }
    Ok(())
}

//! How fast and how small deltas are, by one thread, on pairs of similar chunks of real data:
//! `cargo run --release -p onefold-engine --example delta_speed -- VERSIONS… [--mib N] [--runs N]`.
//!
//! VERSIONS are files or directories, oldest first; of one directory alone, its entries are. Every
//! version is cut by `fold` (2, 8, 64 KiB). A chunk that is new in a version is paired with the
//! chunk of earlier versions with which it shares most sampled words; pairs are taken until their
//! targets have N MiB (default 64). "together" is zstd -3 of the deltas in groups of 1 MiB.

#[path = "delta_speed/pairs.rs"]
mod pairs;

use std::error::Error;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Instant;

use engine::container::CompressionLevel;
use engine::similarity::delta::{self, DeltaEncoder};
use engine::similarity::prefix::{PrefixDecoder, PrefixEncoder};
use pairs::{Pair, pairs};

/// Bytes of deltas that are compressed together.
const GROUP_BYTES: usize = 1 << 20;

/// What a codec made of all pairs.
struct Outcome {
    encode_mb_s: f64,
    decode_mb_s: f64,
    /// Targets that stayed as they are.
    undone: usize,
    deltas: Vec<Vec<u8>>,
}

/// Appends the delta of a base and a target, or says that it can't.
type Encode<'a> = dyn FnMut(&[u8], &[u8], usize, &mut Vec<u8>) -> bool + 'a;

/// Appends the target of a base, a delta, and a length.
type Decode<'a> = dyn FnMut(&[u8], &[u8], usize, &mut Vec<u8>) + 'a;

/// Encodes and decodes every pair `runs` times; speeds are of targets, medians.
fn measure(pairs: &[Pair<'_>], runs: usize, encode: &mut Encode, decode: &mut Decode) -> Outcome {
    let bytes: usize = pairs.iter().map(|pair| pair.target.len()).sum();
    let (mut encode_times, mut decode_times) = (Vec::new(), Vec::new());
    let mut all = Vec::with_capacity(bytes);
    let mut lengths = Vec::with_capacity(pairs.len());
    let mut undone = 0;
    for _ in 0..runs {
        all.clear();
        lengths.clear();
        undone = 0;
        let started = seconds();
        for pair in pairs {
            let start = all.len();
            if !encode(pair.base, pair.target, pair.target.len(), &mut all) {
                undone += 1;
            }
            lengths.push(all.len() - start);
        }
        encode_times.push(seconds() - started);
    }
    let mut deltas = Vec::new();
    let mut start = 0;
    for length in lengths {
        deltas.push(all[start..start + length].to_vec());
        start += length;
    }
    let mut target = Vec::with_capacity(1 << 20);
    for run in 0..=runs {
        let started = seconds();
        for (pair, delta) in pairs.iter().zip(&deltas) {
            if !delta.is_empty() {
                target.clear();
                decode(pair.base, delta, pair.target.len(), &mut target);
                // The first run is for this alone.
                assert!(run > 0 || target == pair.target, "it does not lead back");
            }
        }
        if run > 0 {
            decode_times.push(seconds() - started);
        }
    }
    for (pair, delta) in pairs.iter().zip(&mut deltas) {
        if delta.is_empty() {
            delta.extend_from_slice(pair.target);
        }
    }
    let speed = |times| bytes as f64 / 1e6 / median(times);
    Outcome {
        encode_mb_s: speed(encode_times),
        decode_mb_s: speed(decode_times),
        undone,
        deltas,
    }
}

/// Seconds that this thread ran on a processor, where the system tells (Linux), so that the work of
/// others counts less; else seconds of the clock.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split(' ').next().and_then(|it| it.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |it: f64| it / 1e9)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Bytes after zstd -3 of each, and of groups.
fn compressed(deltas: &[Vec<u8>]) -> std::io::Result<(usize, usize)> {
    let mut compressor = zstd::bulk::Compressor::new(3)?;
    let mut alone = 0;
    for delta in deltas {
        alone += compressor.compress(delta)?.len().min(delta.len());
    }
    let (mut together, mut group) = (0, Vec::new());
    for delta in deltas {
        if group.len() + delta.len() > GROUP_BYTES {
            together += compressor.compress(&group)?.len();
            group.clear();
        }
        group.extend_from_slice(delta);
    }
    together += compressor.compress(&group)?.len();
    Ok((alone, together))
}

fn print(name: &str, targets: usize, outcome: &Outcome) -> std::io::Result<()> {
    let raw: usize = outcome.deltas.iter().map(Vec::len).sum();
    let (alone, together) = compressed(&outcome.deltas)?;
    let percent = |bytes| 100.0 * bytes as f64 / targets as f64;
    println!(
        "{name:12} {:9.0} {:9.0} {:8} {:8.2} {:8.2} {:9.3}",
        outcome.encode_mb_s,
        outcome.decode_mb_s,
        outcome.undone,
        percent(raw),
        percent(alone),
        percent(together)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut paths, mut mib, mut runs) = (Vec::new(), 64, 5);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments
                .next()
                .ok_or("a number is missing")?
                .parse::<usize>()
                .map_err(Box::<dyn Error>::from)
        };
        match argument.as_str() {
            "--mib" => mib = number()?,
            "--runs" => runs = number()?.max(1),
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let versions = pairs::versions(paths)?;
    let pairs = pairs(&versions, mib << 20)?;
    let targets: usize = pairs.iter().map(|pair| pair.target.len()).sum();
    if targets == 0 {
        return Err("no chunk of a later version resembles one of an earlier".into());
    }
    println!(
        "{} pairs, targets of {:.1} MB, {} bytes on average",
        pairs.len(),
        targets as f64 / 1e6,
        targets / pairs.len()
    );
    println!("codec         enc MB/s  dec MB/s   undone    % raw % zstd-3 % together");
    let plain = Outcome {
        encode_mb_s: 0.0,
        decode_mb_s: 0.0,
        undone: pairs.len(),
        deltas: pairs.iter().map(|pair| pair.target.to_vec()).collect(),
    };
    print("no delta", targets, &plain)?;
    let mut encoder = DeltaEncoder::new();
    let outcome = measure(
        &pairs,
        runs,
        &mut |base, target, limit, out| encoder.encode(base, target, limit, out),
        &mut |base, delta, bytes, out| delta::decode(base, delta, bytes, out).expect("it is ours"),
    );
    print("instructions", targets, &outcome)?;
    for level in [1, 3] {
        let level = CompressionLevel::new(level).expect("a level of zstd's");
        let mut encoder = PrefixEncoder::new(level);
        let mut decoder = PrefixDecoder::new();
        let outcome = measure(
            &pairs,
            runs,
            &mut |base, target, limit, out| encoder.encode(base, target, limit, out),
            &mut |base, delta, bytes, out| {
                let result = decoder.decode(base, delta, bytes, out);
                result.expect("it is ours");
            },
        );
        print(&format!("prefix -{}", level.number()), targets, &outcome)?;
    }
    Ok(())
}

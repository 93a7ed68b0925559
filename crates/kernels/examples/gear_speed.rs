//! GB/s of the kernels beside their specifications, on random data in cache and in memory.
//!
//! `cargo run --release -p onefold-kernels --example gear_speed`

use kernels::gear::{self, GearTable, Scan};
use kernels::zeros;
use std::hint::black_box;
use std::time::Instant;

type FindCut = fn(&GearTable, u64, u64, &[u8]) -> Scan;

fn main() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let table: GearTable = std::array::from_fn(|_| random());
    let bytes: Vec<u8> = (0..8 << 20).flat_map(|_| random().to_le_bytes()).collect();
    // Written first, so that the zeros are pages of their own and not one shared page.
    let mut zero_bytes = black_box(vec![1u8; 64 << 20]);
    zero_bytes.fill(0);
    for (place, length) in [("256 KiB", 256 << 10), ("64 MiB", 64 << 20)] {
        let kernels: [(&str, FindCut); 2] = [
            ("gear::scalar::find_cut", gear::scalar::find_cut),
            ("gear::find_cut", gear::find_cut),
        ];
        for (name, find_cut) in kernels {
            let mask = 0x0000_d9f0_0353_0000;
            let speed = best(length, || {
                let (mut rest, mut hash) = (&bytes[..length], 0);
                loop {
                    let scan = find_cut(&table, hash, mask, black_box(rest));
                    let Some(position) = scan.position else { break };
                    rest = &rest[position + 1..];
                    hash = scan.hash;
                }
            });
            println!("{name:24} {place:8} {speed:6.2} GB/s");
        }
        let speed = best(length, || {
            black_box(zeros::is_all_zero(black_box(&zero_bytes[..length])));
        });
        println!("{:24} {place:8} {speed:6.2} GB/s", "zeros::is_all_zero");
    }
}

/// GB/s of the fastest pass over `length` bytes: other work on the machine only slows passes down,
/// and short ones often escape it.
fn best(length: usize, mut pass: impl FnMut()) -> f64 {
    let passes = (1 << 30) / length;
    let fastest = (0..passes)
        .map(|_| {
            let start = Instant::now();
            pass();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    length as f64 / fastest / 1e9
}

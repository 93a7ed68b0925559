//! GB/s of marking every position, at each level of instruction sets, in cache and in memory.
//!
//! `cargo run --release -p onefold-kernels --example marks_speed`

use kernels::crc32::Crc32;
use kernels::gear::GearTable;
use kernels::gear_marks::{self, Tables};
use kernels::isa::Isa;
use kernels::marks::{Marks, Masks, words_for};
use kernels::rabin::Rabin;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let table: GearTable = std::array::from_fn(|_| random());
    let planes = gear_marks::planes(&table);
    let tables = Tables {
        numbers: &table,
        planes: &planes,
    };
    let data: Vec<u8> = (0..8 << 20).flat_map(|_| random().to_le_bytes()).collect();
    let masks = [
        ("gear, 16 bits", 0x1fff, 0x78),
        ("fastcdc, 32 bits", 0xffe0_0000, 0),
        ("fastcdc, 48 bits", 0x0000_d900_0353_0000, 0),
        ("gearhash, 64 bits", 0xffe0_0000_0000_0000, 0),
        // Every other position is marked: the worst that data can do.
        ("one bit of 48", 0x0000_8000_0000_0000, 0),
        ("one bit of 32", 0x8000_0000, 0),
    ];
    for (place, bytes) in [("256 KiB", 256 << 10), ("64 MiB", 64 << 20)] {
        let data = &data[..bytes];
        let count = bytes - 63;
        let mut strict = vec![0; words_for(count)];
        let mut loose = strict.clone();
        for (name, mask, value) in masks {
            let masks = Masks {
                strict: mask,
                loose: mask,
                value,
            };
            print!("{name:20} {place:8}");
            for isa in Isa::available() {
                let speed = best(bytes, || {
                    let mut marks = Marks::cleared(&mut strict, &mut loose, count);
                    gear_marks::mark(isa, tables, masks, black_box(data), 63, count, &mut marks);
                });
                print!("  {isa} {speed:6.2}");
            }
            println!(" GB/s");
        }
        let count = bytes - 255;
        let crc32 = Crc32::new(0xedb8_8320, 256, 0x78);
        let mask = (16 << 10) - 1;
        let in_order = best(bytes, || {
            let mut first = 255;
            while let Some(cut) = crc32.find_cut_in_order(mask, black_box(data), first) {
                first = cut + 1;
            }
        });
        print!("{:20} {place:8}  in order {in_order:6.2}", "crc32");
        for isa in Isa::available() {
            let speed = best(bytes, || {
                let mut marks = Marks::cleared(&mut strict, &mut loose, count);
                crc32.mark(isa, (mask, mask), black_box(data), 255, count, &mut marks);
            });
            print!("  {isa} {speed:6.2}");
        }
        println!(" GB/s");
        let rabin = Rabin::new(0xbfe6_b8a5_bf37_8d83, 48, 0x78);
        let mask = u64::from(mask);
        let in_order = best(bytes, || {
            let mut first = 255;
            while let Some(cut) = rabin.find_cut_in_order(mask, black_box(data), first) {
                first = cut + 1;
            }
        });
        print!("{:20} {place:8}  in order {in_order:6.2}", "rabin");
        for isa in Isa::available() {
            let speed = best(bytes, || {
                let mut marks = Marks::cleared(&mut strict, &mut loose, count);
                rabin.mark(isa, (mask, mask), black_box(data), 255, count, &mut marks);
            });
            print!("  {isa} {speed:6.2}");
        }
        println!(" GB/s");
    }
}

/// GB/s of the fastest pass over `length` bytes.
fn best(length: usize, mut pass: impl FnMut()) -> f64 {
    let passes = (1 << 29) / length;
    let fastest = (0..passes)
        .map(|_| {
            let start = Instant::now();
            pass();
            start.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    length as f64 / fastest / 1e9
}

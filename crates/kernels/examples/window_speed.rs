//! GB/s of the scans over a window, beside the loop of LBFS, on random data in memory: chunks of
//! 2 KiB and then a cut in 8 KiB on average, or of 512 KiB and a cut in 1 MiB.
//!
//! `cargo run --release -p onefold-kernels --example window_speed`

use kernels::adler::Adler;
use kernels::crc32::Crc32;
use kernels::rabin::{self, Rabin};
use std::hint::black_box;
use std::time::Instant;

const POLYNOMIAL: u64 = 0xbfe6_b8a5_bf37_8d83;

/// The loop as LBFS and its descendants write it: each step waits for the table of the last.
struct OneLane {
    append: [u64; 256],
    leave: [u64; 256],
}

impl OneLane {
    fn new() -> Self {
        let remainder = |byte: usize, zeros: usize| {
            let mut bytes = vec![0; zeros + 1];
            bytes[0] = byte as u8;
            rabin::scalar::fingerprint(POLYNOMIAL, &bytes)
        };
        // x^63 is x^7 of the last bit of eight bytes: byte · x^63 = (byte · x^56) · x^7.
        let times_x63 = |byte: usize| {
            let shifted = (byte as u128) << 7;
            let bytes = (shifted << 56).to_be_bytes();
            rabin::scalar::fingerprint(POLYNOMIAL, &bytes)
        };
        Self {
            append: std::array::from_fn(|byte| times_x63(byte) ^ (byte as u64) << 63),
            leave: std::array::from_fn(|byte| remainder(byte, 48)),
        }
    }

    fn find_cut(&self, mask: u64, data: &[u8], first: usize) -> Option<usize> {
        let before = &data[first - 48..first];
        let mut fingerprint = rabin::scalar::fingerprint(POLYNOMIAL, before);
        let pairs = data[first..].iter().zip(&data[first - 48..]);
        for (index, (&entering, &leaving)) in pairs.enumerate() {
            let top = (fingerprint >> 55) as usize & 0xff;
            fingerprint = (fingerprint << 8 | u64::from(entering))
                ^ self.append[top]
                ^ self.leave[usize::from(leaving)];
            if fingerprint & mask == 0x78 & mask {
                return Some(first + index);
            }
        }
        None
    }
}

/// A scan of what is left.
type Scan<'a> = &'a dyn Fn(&[u8]) -> Option<usize>;

fn main() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let bytes: Vec<u8> = (0..8 << 20).flat_map(|_| random().to_le_bytes()).collect();
    let numbers = std::array::from_fn(|_| random() as u16);
    let one_lane = OneLane::new();
    let rabin = Rabin::new(POLYNOMIAL, 48, 0x78);
    let restic = Rabin::new(0x003d_a335_8b4d_c173, 64, 0);
    let crc32 = Crc32::new(0xedb8_8320, 256, 0x78);
    let adler = Adler::new(&numbers, 48);
    for (min, bits) in [(2 << 10, 13), (512 << 10, 20)] {
        let mask = (1u64 << bits) - 1;
        let scans: [(&str, Scan); 5] = [
            ("Rabin, one lane", &|data| {
                one_lane.find_cut(mask, data, min)
            }),
            ("Rabin", &|data| rabin.find_cut(mask, data, min)),
            ("Rabin, restic", &|data| restic.find_cut(mask, data, min)),
            ("CRC-32", &|data| crc32.find_cut(mask as u32, data, min)),
            ("Adler", &|data| adler.find_cut(bits, data, min)),
        ];
        for (name, scan) in scans {
            let speed = best(&bytes, min, scan);
            println!("{name:16} 2^{bits} {speed:5.2} GB/s");
        }
    }
}

/// GB/s of the fastest of some passes: other work on the machine only slows passes down.
fn best(bytes: &[u8], min: usize, scan: Scan) -> f64 {
    let pass = || {
        let start = Instant::now();
        let mut rest = black_box(bytes);
        while rest.len() > min {
            let Some(cut) = scan(rest) else { break };
            rest = &rest[cut..];
        }
        start.elapsed().as_secs_f64()
    };
    bytes.len() as f64 / (0..5).map(|_| pass()).fold(f64::INFINITY, f64::min) / 1e9
}

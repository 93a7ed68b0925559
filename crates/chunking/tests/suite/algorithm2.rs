//! Algorithm 2 of the FastCDC paper, line by line: what the crate's chunker is compared with.
//!
//! The masks are derived here a second time, from the documented rule, in another way.

use chunking::{GearTable, Parameters};

/// `MaskS` and `MaskL`.
fn masks(parameters: &Parameters) -> (u64, u64) {
    if parameters.avg_bytes == 8192 && parameters.normalization == 2 {
        return (0x0000_d9f0_0353_0000, 0x0000_d900_0353_0000);
    }
    if parameters.avg_bytes == 8192 && parameters.normalization == 0 {
        return (0x0000_d930_0353_0000, 0x0000_d930_0353_0000);
    }
    let spread = |ones: u32| {
        let mut mask = 0u64;
        for turn in 0..ones {
            let digits = format!("{turn:05b}");
            let reversed: String = digits.chars().rev().collect();
            mask |= 1 << (47 - u32::from_str_radix(&reversed, 2).expect("binary digits"));
        }
        mask
    };
    let bits = parameters.avg_bytes.trailing_zeros();
    let level = u32::from(parameters.normalization);
    (spread(bits + level), spread(bits - level))
}

/// The lengths of all chunks of `data`.
pub fn lengths(parameters: &Parameters, gear: &GearTable, data: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let length = breakpoint(parameters, gear, rest);
        lengths.push(length);
        rest = &rest[length..];
    }
    lengths
}

/// Algorithm 2 with the paper's names.
fn breakpoint(parameters: &Parameters, gear: &GearTable, src: &[u8]) -> usize {
    let (mask_s, mask_l) = masks(parameters);
    let mut n = src.len();
    let min_size = parameters.min_bytes as usize;
    let max_size = parameters.max_bytes as usize;
    let mut normal_size = parameters.avg_bytes as usize;
    let mut fp = 0u64;
    let mut i = min_size;
    if n <= min_size {
        return n;
    }
    if n >= max_size {
        n = max_size;
    } else if n <= normal_size {
        normal_size = n;
    }
    while i < normal_size {
        fp = (fp << 1).wrapping_add(gear[src[i] as usize]);
        if fp & mask_s == 0 {
            return i;
        }
        i += 1;
    }
    while i < n {
        fp = (fp << 1).wrapping_add(gear[src[i] as usize]);
        if fp & mask_l == 0 {
            return i;
        }
        i += 1;
    }
    i
}

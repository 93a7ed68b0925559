//! The specification of features: each window by itself, each transform of each hash.

use super::swpr::SubWindows;
use super::{Transforms, WINDOW_BYTES, fold};
use crate::gear::GearTable;

/// The hash of a window by its sub-windows (SWPR; Odess §3.4, Eqs. 10 and 11): the sum of the
/// sub-windows of w bytes, each a big-endian number, the last as it is and each one before shifted
/// by 4 bits more, modulo 2^(128 / w).
#[must_use]
pub fn sub_window_hash(windows: SubWindows, window: &[u8; WINDOW_BYTES]) -> u64 {
    let hash = window.chunks(windows.count()).fold(0u64, |hash, bytes| {
        let number = bytes
            .iter()
            .fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        (hash << 4).wrapping_add(number)
    });
    hash & windows.hash_highest()
}

/// The Gear hash of a window: of 32 bits for one of 32 bytes, of 64 bits for one of 64.
#[must_use]
pub fn gear_hash(table: &GearTable, window: &[u8]) -> u64 {
    let hash = crate::gear::hash(table, 0, window);
    if window.len() == WINDOW_BYTES {
        hash & u64::from(u32::MAX)
    } else {
        hash
    }
}

/// The Rabin fingerprint of a window: the remainder of the polynomial whose coefficients are its
/// bits, the first bit of the first byte the highest, by x^32 + `polynomial`.
#[must_use]
pub fn rabin_fingerprint(polynomial: u32, window: &[u8]) -> u32 {
    let bits = window
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    bits.fold(0, |fingerprint, bit| {
        let reduced = if fingerprint >> 31 == 1 {
            polynomial
        } else {
            0
        };
        (fingerprint << 1 | u32::from(bit)) ^ reduced
    })
}

/// The least number that each transform makes of any value; [`u32::MAX`] of none.
#[must_use]
pub fn minima(transforms: &Transforms, values: &[u32]) -> Vec<u32> {
    let pairs = transforms.pairs();
    pairs
        .map(|(multiplier, addend)| {
            let transform = |value: &u32| value.wrapping_mul(multiplier).wrapping_add(addend);
            values.iter().map(transform).min().unwrap_or(u32::MAX)
        })
        .collect()
}

/// What counts of a chunk for Odess+: hashes of at least `boundary`, folded.
#[must_use]
pub fn swpr_samples(windows: SubWindows, boundary: u64, chunk: &[u8]) -> Vec<u32> {
    let hashes = chunk.windows(WINDOW_BYTES).map(|window| {
        let window = window.try_into().expect("windows of this length");
        sub_window_hash(windows, window)
    });
    hashes.filter(|&hash| hash >= boundary).map(fold).collect()
}

/// What counts of a chunk for Odess: Gear hashes of so many bits that are zero under the mask,
/// folded.
#[must_use]
pub fn gear_samples(table: &GearTable, hash_bits: usize, mask: u64, chunk: &[u8]) -> Vec<u32> {
    let hashes = chunk
        .windows(hash_bits)
        .map(|window| gear_hash(table, window));
    hashes.filter(|hash| hash & mask == 0).map(fold).collect()
}

/// The fingerprints of all windows.
#[must_use]
pub fn rabin_fingerprints(polynomial: u32, chunk: &[u8]) -> Vec<u32> {
    let windows = chunk.windows(WINDOW_BYTES);
    windows
        .map(|window| rabin_fingerprint(polynomial, window))
        .collect()
}

/// The greatest fingerprint of the windows that lie whole in each part; `None` where a part has
/// none. Part k of n begins at byte ⌊k · length / n⌋.
#[must_use]
pub fn rabin_maxima(polynomial: u32, chunk: &[u8], parts: usize) -> Option<Vec<u32>> {
    let bound = |part: usize| part * chunk.len() / parts;
    (0..parts)
        .map(|part| {
            let part = &chunk[bound(part)..bound(part + 1)];
            rabin_fingerprints(polynomial, part).into_iter().max()
        })
        .collect()
}

//! Gear hashing of every position: where would a chunk end, whatever the sizes allow?
//!
//! Enters: the Gear table, two masks and a value, data, which positions. Leaves: bit arrays
//! ([`Marks`](crate::marks::Marks)) of the positions whose hash has the value under each mask (first
//! stage of SS-CDC, Ni §2.3, for the hash of FastCDC). The hash of a position is that of the whole
//! window that ends there; its size is the highest bit of the masks and one more, for bit `j` of a
//! Gear hash knows the last `j + 1` bytes.
//!
//! Every form gives the same bits. [`Isa::Scalar`] runs four chains (`gear.rs`); [`Isa::Avx512`] 32
//! chains, with the tables in registers (`gear_marks/avx512.rs`). There is no form for AVX2 and
//! NEON: a table of 256 numbers is sixteen shuffles of sixteen bytes for each of its bytes, and
//! gathers are slower than four scalar chains, 1.1 to 1.9 GB/s. They run the scalar form.

use crate::gear::{self, GearTable};
use crate::isa::Isa;
use crate::marks::{Marks, Masks};

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(test)]
mod tests;

/// A Gear table byte by byte: `planes[k][b]` is byte k of the number of b, the lowest first.
pub type GearPlanes = [[u8; 256]; 8];

/// Chains of the scalar form.
const LANES: usize = 4;

/// What [`mark`] needs of a table.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// The table.
    pub numbers: &'a GearTable,
    /// What [`planes`] makes of it.
    pub planes: &'a GearPlanes,
}

/// The planes of a table. They are as secret as the table.
#[must_use]
pub fn planes(table: &GearTable) -> GearPlanes {
    std::array::from_fn(|plane| table.map(|number| number.to_le_bytes()[plane]))
}

/// How many bytes these masks know.
#[must_use]
pub fn window_bytes(masks: Masks<u64>) -> usize {
    (u64::BITS - (masks.strict | masks.loose).leading_zeros()) as usize
}

/// The specification: each window by itself.
pub mod scalar {
    use super::{GearTable, Marks, Masks, gear, window_bytes};

    /// Marks the positions `first..first + count`, the first as bit 0.
    pub fn mark(
        table: &GearTable,
        masks: Masks<u64>,
        data: &[u8],
        first: usize,
        count: usize,
        marks: &mut Marks<'_>,
    ) {
        let window = window_bytes(masks);
        for index in 0..count {
            let end = first + index + 1;
            let hash = gear::hash(table, 0, &data[end - window..end]) ^ masks.value;
            if hash & masks.loose == 0 {
                marks.set(index, hash & masks.strict == 0);
            }
        }
    }
}

/// Marks the positions `first..first + count`, the first as bit 0: equal to [`scalar::mark`], faster.
///
/// # Panics
/// When a first window begins before the data, a position lies behind them, or the marks are too
/// few.
pub fn mark(
    isa: Isa,
    tables: Tables<'_>,
    masks: Masks<u64>,
    data: &[u8],
    first: usize,
    count: usize,
    marks: &mut Marks<'_>,
) {
    if count == 0 {
        return;
    }
    assert!(
        window_bytes(masks) <= first + 1,
        "the first window lies in the data"
    );
    let data = &data[..first + count];
    let done = mark_in_simd(isa, tables, masks, data, first, marks);
    mark_in_lanes(tables.numbers, masks, data, first, done, marks);
}

/// Marks as many positions as there is a form for, and says how many.
#[cfg(target_arch = "x86_64")]
fn mark_in_simd(
    isa: Isa,
    tables: Tables<'_>,
    masks: Masks<u64>,
    data: &[u8],
    first: usize,
    marks: &mut Marks<'_>,
) -> usize {
    // Whole words of a hash may remember more than its window.
    let lead = (16 * avx512::words_for(masks)).saturating_sub(first);
    if isa.or_scalar() != Isa::Avx512 || first + lead >= data.len() {
        return 0;
    }
    scalar::mark(tables.numbers, masks, data, first, lead, marks);
    // SAFETY: the machine has the features.
    unsafe { avx512::mark(tables.planes, masks, data, first, lead, marks) }
}

#[cfg(not(target_arch = "x86_64"))]
fn mark_in_simd(
    _: Isa,
    _: Tables<'_>,
    _: Masks<u64>,
    _: &[u8],
    _: usize,
    _: &mut Marks<'_>,
) -> usize {
    0
}

/// Marks what stands behind the first `done` positions, in [`LANES`] chains.
fn mark_in_lanes(
    table: &GearTable,
    masks: Masks<u64>,
    data: &[u8],
    first: usize,
    done: usize,
    marks: &mut Marks<'_>,
) {
    let window = window_bytes(masks).max(1);
    let from = first + done;
    let lane = (data.len() - from) / LANES;
    let mut hashes: [u64; LANES] = std::array::from_fn(|k| {
        let start = from + k * lane;
        gear::hash(table, 0, &data[start + 1 - window..start])
    });
    let lanes: [&[u8]; LANES] = std::array::from_fn(|k| &data[from + k * lane..][..lane]);
    for index in 0..lane {
        let mut is_any = false;
        for (hash, bytes) in hashes.iter_mut().zip(&lanes) {
            *hash = gear::step(table, *hash, bytes[index]);
            is_any |= (*hash ^ masks.value) & masks.loose == 0;
        }
        if is_any {
            for (k, hash) in hashes.iter().enumerate() {
                let hash = hash ^ masks.value;
                if hash & masks.loose == 0 {
                    marks.set(done + k * lane + index, hash & masks.strict == 0);
                }
            }
        }
    }
    let mut hash = hashes[LANES - 1];
    for (index, &byte) in data.iter().enumerate().skip(from + LANES * lane) {
        hash = gear::step(table, hash, byte);
        if (hash ^ masks.value) & masks.loose == 0 {
            marks.set(index - first, (hash ^ masks.value) & masks.strict == 0);
        }
    }
}

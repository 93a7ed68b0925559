//! Gear-based chunking as it was before FastCDC (GC; FastCDC, Algorithm 1).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. The hash starts as 0 and first takes `src[min]`.
//! 2. The chunk is `src[0..i]` for the smallest i in min..n whose byte, once taken, leaves
//!    `hash & (avg − 1) == 0x78 & (avg − 1)`; the byte that matched begins the next chunk.
//! 3. No match: the first min(n, max) bytes.
//!
//! The b lowest bits of a Gear hash know the last b bytes, no more: at 8 KiB the window is 13
//! bytes, which is this chunker's weakness (FastCDC §3.2) and the reason it is here.

use super::fastcdc::Rolling;
use crate::Parameters;
use crate::gear_table::SharedGearTable;
use crate::two_stage::{Rule, Windowed};
use kernels::gear::{self, GearTable};
use kernels::isa::Isa;
use kernels::marks::{Marks, Masks};

/// The value that the judged bits must have, as in LBFS.
pub(crate) const BREAK_VALUE: u64 = 0x78;

/// A Gear chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct Gear {
    table: SharedGearTable,
    mask: u64,
    min: usize,
    max: usize,
    pub(crate) rolling: Rolling,
}

impl Gear {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: SharedGearTable) -> Self {
        Self {
            table,
            mask: u64::from(parameters.avg_bytes) - 1,
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
            rolling: Rolling::Fastest,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let value = BREAK_VALUE & self.mask;
        let find = match self.rolling {
            Rolling::OneByte => gear::scalar::find_value,
            _ => gear::find_value,
        };
        let scan = find(&self.table, 0, self.mask, value, &data[self.min..]);
        scan.position
            .map_or(data.len(), |position| self.min + position)
    }

    /// Whether the hash matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let hash = hash_at(&self.table, self.mask, &data[self.min..=length]);
        hash & self.mask == BREAK_VALUE & self.mask
    }
}

/// What `mask` sees of the hash that started as 0 and took `hashed`: only its last bytes count.
pub(super) fn hash_at(table: &GearTable, mask: u64, hashed: &[u8]) -> u64 {
    // Bit j knows the last j + 1 bytes.
    let seen_bytes = (u64::BITS - mask.leading_zeros()) as usize;
    gear::hash(table, 0, &hashed[hashed.len().saturating_sub(seen_bytes)..])
}

impl Windowed for Gear {
    fn rule(&self) -> Rule {
        Rule::started_at_min(self.min, self.max, self.mask.count_ones() as usize)
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        let masks = Masks {
            strict: self.mask,
            loose: self.mask,
            value: BREAK_VALUE & self.mask,
        };
        self.table.mark(isa, masks, data, (first, count), marks);
    }

    fn gain(&self, isa: Isa) -> f64 {
        if isa == Isa::Avx512 { 4.0 } else { 0.0 }
    }
}

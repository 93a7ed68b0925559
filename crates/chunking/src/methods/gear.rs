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
use kernels::gear::{self, GearTable};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The value that the judged bits must have, as in LBFS.
pub(crate) const BREAK_VALUE: u64 = 0x78;

/// A Gear chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct Gear {
    table: Arc<Zeroizing<GearTable>>,
    mask: u64,
    min: usize,
    pub(crate) rolling: Rolling,
}

impl Gear {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: Arc<Zeroizing<GearTable>>) -> Self {
        Self {
            table,
            mask: u64::from(parameters.avg_bytes) - 1,
            min: parameters.min_bytes as usize,
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
}

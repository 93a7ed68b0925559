//! FastCDC: Gear hashing with sub-minimum skipping and normalized chunking.
//!
//! Source: Xia et al., *The Design of Fast Content-Defined Chunking for Data Deduplication Based
//! Storage Systems*, IEEE TPDS 2020, Algorithm 2 and §3.3 to §3.6; its "rolling two bytes" (§3.7)
//! gives the same cuts and is a matter of the kernel.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left:
//! 1. n ≤ min: all n bytes.
//! 2. The hash starts as 0 and first takes `src[min]`; the bytes before are never hashed.
//! 3. The chunk is `src[0..i]` for the smallest i in min..n whose byte, once taken, leaves only
//!    zeros under the mask: `strict` while i < avg, `loose` from i = avg on. The byte that matched
//!    is *not* in the chunk: it is the first of the next one (the paper's `return i`). So a chunk
//!    can be exactly min long, when `src[min]` matches at once.
//! 4. No match: the first min(n, max) bytes.

use crate::Parameters;
use crate::masks::Masks;
use kernels::gear::{self, GearTable};

/// A FastCDC chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct FastCdc {
    table: Box<GearTable>,
    masks: Masks,
    min: usize,
    normal: usize,
    max: usize,
}

impl FastCdc {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: Box<GearTable>) -> Self {
        Self {
            table,
            masks: Masks::new(parameters.avg_bytes, parameters.normalization),
            min: parameters.min_bytes as usize,
            normal: parameters.avg_bytes as usize,
            max: parameters.max_bytes as usize,
        }
    }

    /// The length of the first chunk; `data` holds `max` bytes or all that is left.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        if data.len() <= self.min {
            return data.len();
        }
        let end = data.len().min(self.max);
        let normal = self.normal.min(end);
        let before = &data[self.min..normal];
        let scan = gear::find_cut(&self.table, 0, self.masks.strict, before);
        if let Some(position) = scan.position {
            return self.min + position;
        }
        let after = &data[normal..end];
        let scan = gear::find_cut(&self.table, scan.hash, self.masks.loose, after);
        scan.position.map_or(end, |position| normal + position)
    }
}

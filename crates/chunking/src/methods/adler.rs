//! Chunking by a rolling Adler checksum (P-Dedupe, Table 4).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with w = `window_bytes`,
//! 48 unless given, and b = log2(avg):
//! 1. A(x), for each value x of a byte, is the lowest 16 bits of the number that the Gear table has
//!    for it: the unkeyed table, or the secret one (gear_table.rs).
//! 2. For the window `src[i + 1 − w..=i]`, with sums modulo 2^16: S1(i) is the sum of all
//!    `A(src[i − k])`, k = 0 to w − 1, and S2(i) the sum of all `(k + 1) · A(src[i − k])`. Step by
//!    step: the byte x that leaves the window takes A(x) from S1 and w · A(x) from S2; the one that
//!    enters adds A to S1, then S1 is added to S2. The hash is H(i) = S2 · 2^16 + S1.
//! 3. The chunk is `src[0..i]` for the smallest i in min..n for which the b highest bits of the 32
//!    of H(i) are all ones: the b highest of S2, and for b > 16 the b − 16 highest of S1. The byte
//!    that ends the window is the first of the next chunk.
//! 4. No match: the first min(n, max) bytes.
//!
//! Table 4 adds bytes and never removes one, so that its hash knows the whole file: it gets a
//! window here. Judged are the highest bits because they are S2, which knows the order of bytes; S1
//! doesn't. All ones, for in a run of one byte S2 = A · w(w + 1) / 2, whose lowest bits are zero (3
//! for w = 48, 4 for 32, 5 for 64, 7 for 256): as soon as b reaches them, from b = 14 for w = 48 on,
//! a run of one byte is never cut, and before that it is with a chance of 2^-b. No run is with the
//! unkeyed table and the default window (a test).
//!
//! The key is an obstacle, not a proof: both sums are linear in the numbers of A, so that some
//! hundred cuts of known data give them away (for Gear so shown in eprint 2025/532 and 2025/558).

use crate::two_stage::{Rule, Windowed};
use crate::{Parameters, rules};
use kernels::adler;
use kernels::gear::GearTable;
use kernels::isa::Isa;
use kernels::marks::Marks;
use std::sync::Arc;

/// An Adler chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct Adler {
    scanner: Arc<adler::Adler>,
    bits: u32,
    min: usize,
    max: usize,
}

impl Adler {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: &GearTable) -> Self {
        let window = rules::window_bytes(parameters) as usize;
        Self {
            scanner: Arc::new(adler::Adler::new(
                &table.map(|number| number as u16),
                window,
            )),
            bits: parameters.avg_bytes.ilog2(),
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let cut = self.scanner.find_cut(self.bits, data, self.min);
        cut.unwrap_or(data.len())
    }

    /// Whether the hash matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let found = self.scanner.find_cut(self.bits, &data[..=length], length);
        found.is_some()
    }
}

impl Windowed for Adler {
    fn rule(&self) -> Rule {
        Rule::whole_windows(self.min, self.min, self.max)
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, _: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        self.scanner.mark(self.bits, data, first, count, marks);
    }

    fn gain(&self, _: Isa) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use crate::UNKEYED_GEAR_TABLE;
    use kernels::adler::scalar;

    #[test]
    fn runs_of_one_byte_are_not_cut_with_the_unkeyed_table() {
        let table = UNKEYED_GEAR_TABLE.map(|number| number as u16);
        for window in [32, 48, 64, 256] {
            for byte in 0..=255 {
                let hash = scalar::hash(&table, &vec![byte; window]);
                assert!(hash.leading_ones() < 12, "{window} {byte} {hash:#x}");
            }
        }
    }
}

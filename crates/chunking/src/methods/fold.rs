//! `fold`: a rolling hash over GF(2) with normalized chunking, our own, made for SIMD.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with b = log2(avg):
//! 1. `table[x]` is the XOR of `taps[p]` over those p in 0..4 for which `x & ROWS[p]` has an odd
//!    number of ones (kernels::fold). `taps[p]` is the lower half of number p of the key's Gear
//!    table, bit 0 set.
//! 2. The hash starts as 0 and takes each byte x from `src[i − 63]` to `src[i − 1]`:
//!    `hash = (hash << 1) ^ table[x]`.
//! 3. The chunk is `src[0..i]` for the smallest i in min..n whose hash has the signs of the pattern
//!    (kernels::fold::PATTERN): the first b + level of them while i < normal, the first b − level
//!    from i = normal on. normal = `normal_bytes`, avg unless given.
//! 4. No match: the first min(n, max) bytes.
//!
//! A cut follows from the 63 bytes before it: all bytes that decide a chunk's end lie in it.
//! min ≥ 64. Runs of a byte, and all data of a period up to 23 bytes (at 8 KiB and level 2), are
//! never cut before max.
//!
//! The hash is linear over GF(2), and so a key protects nothing: a few cuts of known data give it
//! away (SECURITY.md).

use super::fastcdc::Rolling;
use crate::two_stage::{Rule, Windowed};
use crate::{KeyMaterial, Parameters, rules};
use kernels::fold;
use kernels::isa::Isa;
use kernels::marks::Marks;
use std::sync::Arc;

/// The lowest min: more than the bytes that decide a cut.
pub(crate) const MIN_LOWEST: u32 = fold::WINDOW_BYTES as u32 + 1;

// Every pair of valid parameters asks for signs that the pattern has.
const _: () = {
    let level = Parameters::NORMALIZATION_HIGHEST as usize;
    assert!(Parameters::AVG_BYTES_LOWEST.ilog2() as usize - level >= fold::SIGNS_FEWEST);
    assert!(Parameters::AVG_BYTES_HIGHEST.ilog2() as usize + level <= fold::SIGNS_MOST);
};

/// A `fold` chunker.
#[derive(Clone)]
pub(crate) struct Fold {
    scanner: Arc<fold::Fold>,
    min: usize,
    normal: usize,
    max: usize,
    pub(crate) rolling: Rolling,
}

impl Fold {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, key: KeyMaterial) -> Self {
        let table = key.gear_table();
        let taps = std::array::from_fn(|plane| table[plane] as u32);
        let bits = parameters.avg_bytes.ilog2() as usize;
        let level = usize::from(parameters.normalization);
        Self {
            scanner: Arc::new(fold::Fold::new(taps, bits + level, bits - level)),
            min: parameters.min_bytes as usize,
            normal: rules::normal_bytes(parameters) as usize,
            max: parameters.max_bytes as usize,
            rolling: Rolling::Fastest,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, isa: Isa, data: &[u8]) -> usize {
        let isa = match self.rolling {
            Rolling::Fastest => isa,
            _ => Isa::Scalar,
        };
        let cut = self.scanner.find_cut(data, self.min, self.normal, isa);
        cut.unwrap_or(data.len())
    }

    /// Whether the signs match at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let data = &data[..=length];
        let cut = fold::scalar::find_cut(&self.scanner, data, length, self.normal);
        cut.is_some()
    }
}

impl Windowed for Fold {
    fn rule(&self) -> Rule {
        Rule {
            normal: self.normal,
            ..Rule::whole_windows(self.min, self.min, self.max)
        }
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(Isa::Scalar, data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        self.scanner.mark(isa, data, first, count, marks);
    }

    /// Its own loop does the same without bit arrays.
    fn gain(&self, _: Isa) -> f64 {
        0.0
    }
}

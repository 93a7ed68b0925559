//! Chunking by a rolling CRC-32 (SS-CDC; Ni §2.3.3).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with w = `window_bytes`,
//! 256 unless given:
//! 1. C(i) is the CRC-32 of the window `src[i + 1 − w..=i]`: from c = 0, for each byte x, first to
//!    last, c becomes c ^ x, and then eight times c becomes `(c >> 1) ^ (0xedb88320 if c is odd)`.
//!    There is no final XOR. It is the CRC of zip and Ethernet, but for its two inversions.
//! 2. The chunk is `src[0..i]` for the smallest i in min..n with
//!    `C(i) & (avg − 1) == 0x78 & (avg − 1)`. The byte that ends the window is the first of the next
//!    chunk.
//! 3. No match: the first min(n, max) bytes.
//!
//! Ni's Equation 2.2 adds the entering byte by a table indexed by that byte alone, so that a byte
//! is gone after four steps; a CRC indexes by `(hash ^ byte) & 0xff`, which is meant and done here.
//! Ni names no value to compare with; 0x78 is that of the other chunkers, and a run of zeros, whose
//! CRC is 0, is never cut. A run of another byte is cut at min with a chance of 1 / avg; with the
//! usual parameters and no key none is (a test).
//!
//! It takes no key. A secret polynomial would be no defence, and so no reason to let an encrypted
//! repository have this chunker unasked: there are but 2^27 irreducible ones of degree 32, all of
//! which a laptop tries against a few known chunks in minutes.

use super::fastcdc::Rolling;
use super::gear::BREAK_VALUE;
use crate::two_stage::{Rule, Windowed};
use crate::{Parameters, rules};
use kernels::crc32;
use kernels::isa::Isa;
use kernels::marks::Marks;
use std::sync::Arc;

/// The polynomial of Ethernet and zip, reflected.
const ETHERNET: u32 = 0xedb8_8320;

/// A CRC chunker.
#[derive(Clone)]
pub(crate) struct Crc32 {
    scanner: Arc<crc32::Crc32>,
    mask: u32,
    min: usize,
    max: usize,
    pub(crate) rolling: Rolling,
}

impl Crc32 {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let window = rules::window_bytes(parameters) as usize;
        Self {
            scanner: Arc::new(crc32::Crc32::new(ETHERNET, window, BREAK_VALUE as u32)),
            mask: parameters.avg_bytes - 1,
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
            rolling: Rolling::Fastest,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let cut = match self.rolling {
            Rolling::OneByte => self.scanner.find_cut_in_order(self.mask, data, self.min),
            _ => self.scanner.find_cut(self.mask, data, self.min),
        };
        cut.unwrap_or(data.len())
    }

    /// Whether the CRC matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let found = self.scanner.find_cut(self.mask, &data[..=length], length);
        found.is_some()
    }
}

impl Windowed for Crc32 {
    fn rule(&self) -> Rule {
        Rule::whole_windows(self.min, self.min, self.max)
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        self.scanner
            .mark(isa, (self.mask, self.mask), data, first, count, marks);
    }

    fn gain(&self, isa: Isa) -> f64 {
        match isa {
            Isa::Scalar => 0.0,
            _ => 4.0,
        }
    }
}

//! Preset: cuts where restic does (github.com/restic/chunker 0.4; the digests are also those of the
//! Rust crate rustic_cdc).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with P = `polynomial`, an
//! irreducible one of degree 53, 0x3da3358b4dc173 unless given:
//! 1. The digest D(l) is the window `src[l − 64..l]`, read as one polynomial over GF(2) whose first
//!    byte is the highest, modulo P.
//! 2. The chunk is `src[0..l]` for the smallest l in min..=n whose D(l) has only zeros in its
//!    log2(avg) lowest bits. The byte that ends the window *is* in the chunk, other than in this
//!    house's own chunkers.
//! 3. No match: the first min(n, max) bytes.
//!
//! restic's program starts each chunk with a window that holds a byte 1 and zeros, skips min − 64
//! bytes and then slides; when the first cut is possible, 64 bytes later, the 1 has just left, and
//! so nothing of that start is left in what is cut. It asks for min ≥ 64, or its skip is negative.
//! A run of zeros has the digest 0 and is cut at min bytes.
//!
//! Every restic repository has a P of its own, in its config, so that cut points do not tell
//! contents; the default here is the polynomial of restic's tests and of rustic_cdc. For how much
//! that hides see methods/rabin.rs.

use super::rabin;
use crate::two_stage::{Rule, Windowed};
use crate::{OwnParameter, Parameters};
use kernels::isa::Isa;
use kernels::marks::Marks;
use kernels::rabin::Rabin;
use std::sync::Arc;

/// The polynomial of restic's tests.
const TEST_POLYNOMIAL: u64 = 0x003d_a335_8b4d_c173;

/// restic's window in bytes.
pub(crate) const WINDOW_BYTES: u32 = 64;

/// A chunker as restic has it. Has no `Debug`: the polynomial may be secret.
#[derive(Clone)]
pub(crate) struct Restic {
    scanner: Arc<Rabin>,
    mask: u64,
    min: usize,
    max: usize,
}

impl Restic {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let given = parameters.own.get(OwnParameter::Polynomial);
        Self {
            scanner: Arc::new(Rabin::new(
                given.unwrap_or(TEST_POLYNOMIAL),
                WINDOW_BYTES as usize,
                0,
            )),
            mask: u64::from(parameters.avg_bytes) - 1,
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let cut = self.scanner.find_cut(self.mask, data, self.min - 1);
        cut.map_or(data.len(), |last| last + 1)
    }

    /// Whether the digest matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        rabin::is_match(&self.scanner, self.mask, data, length - 1)
    }
}

impl Windowed for Restic {
    fn rule(&self) -> Rule {
        Rule {
            included: 1,
            ..Rule::whole_windows(self.min - 1, self.min, self.max)
        }
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
            Isa::Avx512 => 4.0,
            _ => 1.75,
        }
    }
}

//! Rabin-based chunking as in LBFS (RC-v1 in FastCDC §4.5).
//!
//! Source: Muthitacharoen et al., *A Low-Bandwidth Network File System*, SOSP 2001, and its program
//! (`fingerprint.h`, `rabinpoly.h`); FastCDC §2, Eqs. 1 and 2.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with w = `window_bytes`,
//! 48 unless given, and P = `polynomial`, 0xbfe6b8a5bf378d83 unless given, the one of LBFS:
//! 1. Numbers stand for polynomials over GF(2), bit i for x^i. P is irreducible; LBFS's has the
//!    degree 63. A key gives a secret P of degree 63 in its place
//!    ([`polynomial::from_table`]).
//! 2. The fingerprint at i, F(i), is the window `src[i + 1 − w..=i]`, read as one number whose
//!    first byte is the highest, modulo P. No leading one is put before it, as LBFS puts none.
//! 3. The chunk is `src[0..i]` for the smallest i in min..n with
//!    `F(i) & (avg − 1) == 0x78 & (avg − 1)`. The byte that ends the window is *not* in the chunk:
//!    it is the first of the next one. As min ≥ w, every window lies in the chunk or ends one byte
//!    behind it, and a cut depends on nothing but the w bytes of its window and on the cut before.
//! 4. No match: the first min(n, max) bytes.
//!
//! LBFS itself judges from the first byte, with a window that runs across cuts, and drops cuts that
//! come too early. Destor starts with an empty window at min, so that its first w − 1 hashes know
//! less; here each knows w bytes. A run of zeros has the fingerprint 0 and is never cut, as 0x78 has
//! ones in the 8 bits that the smallest avg judges. A run of another byte is cut at min with a
//! chance of 1 / avg; with the usual parameters and no key none is (a test).
//!
//! The key is an obstacle, not a proof: fingerprints are linear, so that who knows some data and
//! where it was cut can find P (eprint 2025/532, 2025/558). It keeps cut points from being the same
//! for everybody, no more.

use super::fastcdc::Rolling;
use super::gear::BREAK_VALUE;
use crate::two_stage::{Rule, Windowed};
use crate::{KeyMaterial, OwnParameter, ParameterError, Parameters, polynomial, rules};
use kernels::isa::Isa;
use kernels::marks::Marks;
use kernels::rabin;
use std::sync::Arc;

/// The polynomial of LBFS (`FINGERPRINT_PT`): x^63 + x^61 + x^60 + ….
pub(crate) const LBFS_POLYNOMIAL: u64 = 0xbfe6_b8a5_bf37_8d83;

/// A Rabin chunker. Has no `Debug`: the polynomial may be secret.
#[derive(Clone)]
pub(crate) struct Rabin {
    scanner: Arc<rabin::Rabin>,
    mask: u64,
    min: usize,
    max: usize,
    pub(crate) rolling: Rolling,
}

impl Rabin {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, key: &KeyMaterial) -> Result<Self, ParameterError> {
        Ok(Self {
            scanner: Arc::new(scanner(parameters, key)?),
            mask: u64::from(parameters.avg_bytes) - 1,
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
            rolling: Rolling::Fastest,
        })
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let cut = find_cut(&self.scanner, self.rolling, self.mask, data, self.min);
        cut.unwrap_or(data.len())
    }

    /// Whether the fingerprint matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        is_match(&self.scanner, self.mask, data, length)
    }
}

/// Whether the window that ends with `data[last]` matches.
pub(super) fn is_match(scanner: &rabin::Rabin, mask: u64, data: &[u8], last: usize) -> bool {
    let found = scanner.find_cut_in_order(mask, &data[..=last], last);
    found.is_some()
}

impl Windowed for Rabin {
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
            Isa::Avx512 => 4.0,
            _ => 1.75,
        }
    }
}

/// By the loop that is wanted.
pub(super) fn find_cut(
    scanner: &rabin::Rabin,
    rolling: Rolling,
    mask: u64,
    data: &[u8],
    first: usize,
) -> Option<usize> {
    match rolling {
        Rolling::OneByte => scanner.find_cut_in_order(mask, data, first),
        _ => scanner.find_cut(mask, data, first),
    }
}

/// What scans for [`BREAK_VALUE`] with the polynomial that parameters and key agree on.
pub(super) fn scanner(
    parameters: &Parameters,
    key: &KeyMaterial,
) -> Result<rabin::Rabin, ParameterError> {
    let polynomial = match (key, parameters.own.get(OwnParameter::Polynomial)) {
        (KeyMaterial::Unkeyed, given) => given.unwrap_or(LBFS_POLYNOMIAL),
        (KeyMaterial::Table(table), None) => polynomial::from_table(table),
        (KeyMaterial::Table(_), Some(_)) => return Err(ParameterError::PolynomialBesideKey),
    };
    let window = rules::window_bytes(parameters) as usize;
    Ok(rabin::Rabin::new(polynomial, window, BREAK_VALUE))
}

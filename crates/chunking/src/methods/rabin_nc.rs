//! Rabin-based chunking with normalized chunk sizes (RC-v2 and RC-v3; FastCDC, Algorithm 3).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with b = log2(avg):
//! 1. The fingerprint F(i) is that of `rabin` (methods/rabin.rs), with the same window, polynomial
//!    and key.
//! 2. The chunk is `src[0..i]` for the smallest i in min..n with `F(i) & m == 0x78 & m`, where m is
//!    2^(b + level) − 1 while i < normal, and 2^(b − level) − 1 from i = normal on. The byte that
//!    ends the window is the first of the next chunk. normal = `normal_bytes`, avg unless given.
//! 3. No match: the first min(n, max) bytes.
//!
//! Level 0 is `rabin`, whatever the normal size. Algorithm 3 prints masks of `8192 * 2 − 1` and
//! `8192 / 2 − 1`, which is level 1; the sizes in the paper's Table 5 are those of level 2, as in
//! its Gear chunkers, and so is the default. RC-v2 and RC-v3 have min 6 and 8 KiB and a normal size
//! of min + 4 KiB there; Algorithm 3 and its text say 4 and 6 KiB.

use super::fastcdc::Rolling;
use super::rabin;
use crate::two_stage::{Rule, Windowed};
use crate::{KeyMaterial, ParameterError, Parameters, rules};
use kernels::isa::Isa;
use kernels::marks::Marks;
use std::sync::Arc;

/// A normalized Rabin chunker. Has no `Debug`: the polynomial may be secret.
#[derive(Clone)]
pub(crate) struct RabinNc {
    scanner: Arc<kernels::rabin::Rabin>,
    strict: u64,
    loose: u64,
    min: usize,
    normal: usize,
    max: usize,
    pub(crate) rolling: Rolling,
}

impl RabinNc {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, key: &KeyMaterial) -> Result<Self, ParameterError> {
        let avg = u64::from(parameters.avg_bytes);
        let level = parameters.normalization;
        Ok(Self {
            scanner: Arc::new(rabin::scanner(parameters, key)?),
            strict: (avg << level) - 1,
            loose: (avg >> level) - 1,
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
            normal: rules::normal_bytes(parameters) as usize,
            rolling: Rolling::Fastest,
        })
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let normal = self.normal.min(data.len());
        let find_cut =
            |mask, data, first| rabin::find_cut(&self.scanner, self.rolling, mask, data, first);
        let cut = find_cut(self.strict, &data[..normal], self.min);
        let cut = cut.or_else(|| find_cut(self.loose, data, normal));
        cut.unwrap_or(data.len())
    }

    /// Whether the fingerprint matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let mask = if length < self.normal {
            self.strict
        } else {
            self.loose
        };
        rabin::is_match(&self.scanner, mask, data, length)
    }
}

impl Windowed for RabinNc {
    fn rule(&self) -> Rule {
        Rule {
            normal: self.normal,
            ..Rule::whole_windows(self.min, self.min, self.max)
        }
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        self.scanner
            .mark(isa, (self.strict, self.loose), data, first, count, marks);
    }

    fn gain(&self, isa: Isa) -> f64 {
        match isa {
            Isa::Scalar => 0.0,
            Isa::Avx512 => 4.0,
            _ => 1.75,
        }
    }
}

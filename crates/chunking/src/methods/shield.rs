//! `shield`: a universal hash of 64 bytes, AES-128 of it, and normalized chunking.
//!
//! Source: the construction, a universal hash and then a pseudo-random function, is that of Truong,
//! Merz, Scarlata, Günther and Paterson, *Breaking and Fixing Content-Defined Chunking* (eprint
//! 2025/558); the hash is ours (`kernels::shield`), sizes are those of FastCDC (§3.5).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min, with b = log2(avg):
//! 1. The hash at i is that of the window `src[i − 63..=i]`; min ≥ 64. Its constants are g_t =
//!    `G[2t]` + 2^64 · `G[2t + 1]`, t = 0 … 7, the key of AES `G[16]` + 2^64 · `G[17]`; G is the table
//!    that the key material stands for.
//! 2. V(i) is the first eight bytes of the cipher text of the hash, little-endian. The chunk is
//!    `src[0..i]` for the smallest i in min..n with `V(i) & m == 0`, where m is 2^(b + level) − 1 while
//!    i < normal, and 2^(b − level) − 1 from i = normal on. The byte that ends the window is the
//!    first of the next chunk. normal = `normal_bytes`, avg unless given.
//! 3. No match: the first min(n, max) bytes.
//!
//! What this hides, from whom and why stands in SECURITY.md. Without a key it hides nothing.
//!
//! A run of one byte has one window and so one answer: with a chance of 2^-(b + level) it is cut at
//! every min, with one of about 2^-(b − level) at every normal size, else at every max.

use super::fastcdc::Rolling;
use crate::two_stage::{Rule, Windowed};
use crate::{Parameters, rules};
use kernels::gear::GearTable;
use kernels::isa::Isa;
use kernels::marks::Marks;
use kernels::shield::{Masks, Shield as Scanner, WINDOW_BYTES};
use std::sync::Arc;

/// The lowest min: the window, and the byte before it that leaves it.
pub(crate) const MIN_LOWEST: u32 = WINDOW_BYTES as u32;

/// A shield chunker. Has no `Debug`: its constants are secret.
#[derive(Clone)]
pub(crate) struct Shield {
    scanner: Arc<Scanner>,
    masks: Masks,
    min: usize,
    max: usize,
    pub(crate) rolling: Rolling,
}

impl Shield {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: &GearTable) -> Self {
        let (constants, key) = Self::secrets(table);
        let avg = u64::from(parameters.avg_bytes);
        let level = parameters.normalization;
        Self {
            scanner: Arc::new(Scanner::new(&constants, &key)),
            masks: Masks {
                strict: (avg << level) - 1,
                loose: (avg >> level) - 1,
                normal: rules::normal_bytes(parameters) as usize,
            },
            min: parameters.min_bytes as usize,
            max: parameters.max_bytes as usize,
            rolling: Rolling::Fastest,
        }
    }

    /// The constants of the hash and the key of the cipher.
    fn secrets(table: &GearTable) -> ([u128; 8], [u8; 16]) {
        let joined = |index: usize| u128::from(table[index]) | u128::from(table[index + 1]) << 64;
        let constants = std::array::from_fn(|bit| joined(2 * bit));
        (constants, joined(16).to_le_bytes())
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, isa: Isa, data: &[u8]) -> usize {
        let isa = match self.rolling {
            Rolling::Fastest => isa,
            _ => Isa::Scalar,
        };
        let cut = self.scanner.find_cut(isa, self.masks, data, self.min);
        cut.unwrap_or(data.len())
    }

    /// Whether the value matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let data = &data[..=length];
        let cut = self.scanner.find_cut(Isa::Scalar, self.masks, data, length);
        cut.is_some()
    }
}

impl Windowed for Shield {
    fn rule(&self) -> Rule {
        Rule {
            normal: self.masks.normal,
            ..Rule::whole_windows(self.min, self.min, self.max)
        }
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(Isa::Scalar, data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        let under = |mask| Masks {
            strict: mask,
            loose: mask,
            normal: 0,
        };
        let data = &data[..first + count];
        let find = |mask, data, first| self.scanner.find_cut(isa, under(mask), data, first);
        let mut next = first;
        while let Some(position) = find(self.masks.loose, data, next) {
            next = position + 1;
            let is_strict = find(self.masks.strict, &data[..next], position).is_some();
            marks.set(position - first, is_strict);
        }
    }

    /// Its own loop does the same without bit arrays.
    fn gain(&self, _: Isa) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Shield, WINDOW_BYTES};
    use crate::{Algorithm, Parameters, UNKEYED_GEAR_TABLE};
    use kernels::shield::scalar;

    /// The test vectors of docs/format/chunkers.md.
    #[test]
    fn test_vectors() {
        let (constants, key) = Shield::secrets(&UNKEYED_GEAR_TABLE);
        let keys = scalar::round_keys(&key);
        let hash = scalar::hash(&constants, &[0; WINDOW_BYTES]);
        assert_eq!(hash, 0);
        assert_eq!(scalar::value(&keys, hash), 0x8787_f4ad_fc95_5458);
        let window: [u8; WINDOW_BYTES] = std::array::from_fn(|index| index as u8);
        let hash = scalar::hash(&constants, &window);
        let expected = 0x0170_add6_98d5_e1f8_e487_a82a_d4b0_b804u128;
        assert_eq!(hash.to_le_bytes(), expected.to_be_bytes());
        assert_eq!(scalar::value(&keys, hash), 0xc0cc_7f12_a178_d703);
    }

    #[test]
    fn masks_are_the_lowest_bits() {
        let parameters = Parameters::new(Algorithm::Shield);
        let shield = Shield::new(&parameters, &UNKEYED_GEAR_TABLE);
        assert_eq!((shield.masks.strict, shield.masks.loose), (0x7fff, 0x7ff));
        assert_eq!(shield.masks.normal, 8192);
    }
}

//! The chunker `fastcdc-crate-v2020`: what the crate `fastcdc` cuts with its module `v2020`.
//!
//! What is cut, exactly: as by [`fastcdc`](super::fastcdc), with the table and masks of that crate,
//! and two differences, which come from its taking two bytes at a time:
//! 1. Masks: with b = log2(avg), rounded to the nearest, the masks number b + level and b − level
//!    of its list; the normal size is avg.
//! 2. Where min(n, max) is odd, so that the last byte has no second, no cut is made before that
//!    byte. Sizes must be even, so this concerns the end of a stream only.

use super::foreign_tables::{CRATE_FASTCDC, CRATE_FASTCDC_MASKS};
use super::gear::hash_at;
use super::masks::Masks;
use crate::Parameters;
use kernels::gear;

/// The logarithm that the first mask of the list belongs to.
const FIRST_BITS: u32 = 5;

/// A chunker that follows the crate.
#[derive(Clone)]
pub(crate) struct CrateFastCdc {
    masks: Masks,
    min: usize,
    normal: usize,
}

impl CrateFastCdc {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let bits = nearest_logarithm(parameters.avg_bytes);
        let level = u32::from(parameters.normalization);
        let mask = |bits: u32| CRATE_FASTCDC_MASKS[(bits - FIRST_BITS) as usize];
        Self {
            masks: Masks {
                strict: mask(bits + level),
                loose: mask(bits - level),
            },
            min: parameters.min_bytes as usize,
            normal: parameters.avg_bytes as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let judged = data.len() & !1;
        let normal = self.normal.min(judged);
        let before = &data[self.min..normal];
        let scan = gear::find_cut(&CRATE_FASTCDC, 0, self.masks.strict, before);
        if let Some(position) = scan.position {
            return self.min + position;
        }
        let after = &data[normal..judged];
        let scan = gear::find_cut(&CRATE_FASTCDC, scan.hash, self.masks.loose, after);
        scan.position
            .map_or(data.len(), |position| normal + position)
    }

    /// Whether the hash matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let mask = self.masks.at(length, self.normal);
        let is_judged = length < data.len() & !1;
        is_judged && hash_at(&CRATE_FASTCDC, mask, &data[self.min..=length]) & mask == 0
    }
}

/// log2, rounded to the nearest whole number.
fn nearest_logarithm(value: u32) -> u32 {
    let bits = value.ilog2();
    // value > 2^(bits + 1/2), squared; the two are never equal.
    let is_nearer_above = u64::from(value).pow(2) > 1 << (2 * bits + 1);
    bits + u32::from(is_nearer_above)
}

#[cfg(test)]
mod tests {
    use super::nearest_logarithm;

    #[test]
    fn logarithms_are_rounded() {
        for value in 256..=(1 << 22) + 1 {
            let expected = f64::from(value).log2().round() as u32;
            assert_eq!(nearest_logarithm(value), expected, "{value}");
        }
    }
}

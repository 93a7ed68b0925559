//! The masks of FastCDC: which bits of the Gear hash must be zero at a cut.
//!
//! Bit `j` of the hash knows the last `j + 1` bytes, for the hash shifts left. A mask whose
//! highest bit is 47 therefore judges a window of 48 bytes, and its zero bits spread the rest of
//! the mask over the window (the zero padding of FastCDC §3.3).
//!
//! - `avg_bytes` = 8192 with level 2 or 0: the masks the paper prints (Algorithm 2), of 15 and 11
//!   ones, or of 13.
//! - Any other: with b = log2(`avg_bytes`), `strict` has b + level ones and `loose` b − level,
//!   each placed by [`spread`].
//!
//! `strict` contains `loose`: where the strict mask cuts, the loose one would.
//! Masks decide cut points of stored data: they are frozen.

use crate::Parameters;

/// The masks before and after the normal size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Masks {
    /// `MaskS`, in force before the normal size.
    pub(crate) strict: u64,
    /// `MaskL`, in force from the normal size on.
    pub(crate) loose: u64,
}

/// Bits 16 to 47: the places of ones, so that the lowest still knows 17 bytes.
const PLACES: u32 = 32;
const HIGHEST_PLACE: u32 = 47;

// Every pair of valid parameters asks for 1 to PLACES ones.
const _: () = {
    let level = Parameters::NORMALIZATION_HIGHEST as u32;
    assert!(Parameters::AVG_BYTES_LOWEST.ilog2() > level);
    assert!(Parameters::AVG_BYTES_HIGHEST.ilog2() + level <= PLACES);
};

impl Masks {
    /// The masks of valid parameters.
    pub(crate) fn new(avg_bytes: u32, normalization: u8) -> Self {
        match (avg_bytes, normalization) {
            (8192, 0) => {
                return Self {
                    strict: 0x0000_d930_0353_0000,
                    loose: 0x0000_d930_0353_0000,
                };
            }
            (8192, 2) => {
                return Self {
                    strict: 0x0000_d9f0_0353_0000,
                    loose: 0x0000_d900_0353_0000,
                };
            }
            _ => {}
        }
        let bits = avg_bytes.ilog2();
        let level = u32::from(normalization);
        Self {
            strict: spread(bits + level),
            loose: spread(bits - level),
        }
    }

    /// The mask that is in force at `length`.
    pub(crate) fn at(self, length: usize, normal: usize) -> u64 {
        if length < normal {
            self.strict
        } else {
            self.loose
        }
    }
}

/// A mask of `ones` ones: one number `turn` = 0, 1, 2 … stands at bit 47 − r, where r is `turn`
/// with its five binary digits reversed (0, 16, 8, 24, 4, 20 …).
///
/// That order halves the gaps in turn, so gaps of one mask differ by a factor of two at most, and
/// a mask of fewer ones is contained in each of more.
pub(crate) fn spread(ones: u32) -> u64 {
    (0..ones)
        .map(|turn| turn.reverse_bits() / (1 << (u32::BITS - PLACES.ilog2())))
        .fold(0, |mask, reversed| mask | 1 << (HIGHEST_PLACE - reversed))
}

impl Masks {
    /// The masks of a hash of 32 bits.
    pub(crate) fn of_32_bits(avg_bytes: u32, normalization: u8) -> Self {
        let bits = avg_bytes.ilog2();
        let level = u32::from(normalization);
        Self {
            strict: spread_of_32_bits(bits + level),
            loose: spread_of_32_bits(bits - level),
        }
    }
}

/// A mask of `ones` ones in 32 bits: number `turn` = 0 … 15 stands at bit 31 − r, where r is `turn`
/// with its four binary digits reversed, and number 16 + `turn` at bit 15 − r: the upper half first,
/// for its bits know 17 to 32 bytes.
fn spread_of_32_bits(ones: u32) -> u64 {
    (0..ones)
        .map(|turn| 31 - turn / 16 * 16 - (turn % 16).reverse_bits() / (1 << 28))
        .fold(0, |mask, place| mask | 1 << place)
}

#[cfg(test)]
mod tests {
    use super::{Masks, spread, spread_of_32_bits};

    /// Golden: a change here changes the cut points of stored data.
    #[test]
    fn masks_of_32_bits_are_frozen() {
        for (ones, mask) in [
            (1, 0x8000_0000),
            (2, 0x8080_0000),
            (3, 0x8880_0000),
            (11, 0xeeea_0000),
            (15, 0xfffe_0000),
            (16, 0xffff_0000),
            (17, 0xffff_8000),
            (27, 0xffff_eeea),
        ] {
            assert_eq!(spread_of_32_bits(ones), mask, "{ones}");
        }
        for avg_bits in 8..=24u32 {
            for level in 0..=3u8 {
                let Masks { strict, loose } = Masks::of_32_bits(1 << avg_bits, level);
                assert_eq!(strict & loose, loose, "strict contains loose");
                assert_eq!((strict.ilog2(), loose.ilog2()), (31, 31));
            }
        }
    }

    /// Golden: a change here changes the cut points of stored data.
    #[test]
    fn masks_are_frozen() {
        let masks = |strict, loose| Masks { strict, loose };
        let published = masks(0x0000_d9f0_0353_0000, 0x0000_d900_0353_0000);
        assert_eq!(Masks::new(8192, 2), published);
        for (ones, mask) in [
            (1, 0x0000_8000_0000_0000),
            (2, 0x0000_8000_8000_0000),
            (3, 0x0000_8080_8000_0000),
            (4, 0x0000_8080_8080_0000),
            (5, 0x0000_8880_8080_0000),
            (8, 0x0000_8888_8888_0000),
            (11, 0x0000_a8a8_a888_0000),
            (13, 0x0000_aaa8_a8a8_0000),
            (15, 0x0000_aaaa_aaa8_0000),
            (16, 0x0000_aaaa_aaaa_0000),
            (27, 0x0000_fefe_feee_0000),
            (32, 0x0000_ffff_ffff_0000),
        ] {
            assert_eq!(spread(ones), mask, "{ones}");
        }
        let without_levels = masks(0x0000_d930_0353_0000, 0x0000_d930_0353_0000);
        assert_eq!(Masks::new(8192, 0), without_levels);
        assert_eq!(Masks::new(8192, 1), masks(spread(14), spread(12)));
        assert_eq!(Masks::new(16384, 2), masks(spread(16), spread(12)));
    }

    #[test]
    fn ones_window_and_nesting() {
        for avg_bits in 8..=24u32 {
            for level in 0..=3u8 {
                let Masks { strict, loose } = Masks::new(1 << avg_bits, level);
                assert_eq!(strict.count_ones(), avg_bits + u32::from(level));
                assert_eq!(loose.count_ones(), avg_bits - u32::from(level));
                assert_eq!(strict & loose, loose, "strict contains loose");
                for mask in [strict, loose] {
                    assert_eq!(mask.ilog2(), 47, "a window of 48 bytes");
                    assert!(mask.trailing_zeros() >= 16);
                }
            }
        }
    }
}

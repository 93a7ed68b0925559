//! Which hashes of a chunk count (content-defined sampling; Odess §3.2 and §3.4).

use super::SubWindows;

/// Which hashes of a chunk count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// All of them: N-Transform and Finesse.
    All,
    /// Gear hashes of `hash_bits` bits (32, or 64) that have only zeros under the mask: Odess.
    Mask {
        /// Bits of a hash, and bytes that it knows.
        hash_bits: u8,
        /// As many ones as halvings of the number of hashes.
        mask: u64,
    },
    /// Hashes of sub-windows in about the highest 1 / 2^`rate_bits` of their range: Odess+.
    Boundary {
        /// How long sub-windows are.
        sub_windows: SubWindows,
        /// One hash in 2^`rate_bits` counts.
        rate_bits: u8,
    },
}

/// Where the ones of a mask for Gear hashes of 32 bits stand: the four masks of Fig. 6, which gives an
/// example of each with 7 ones; and as many as one wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MaskBits {
    /// "Mask1", in the lowest bits: 0x000000f7.
    Low,
    /// "Mask2", in the middle: 0x0007f000.
    Middle,
    /// "Mask3", in the high bits: 0x7f000000.
    High,
    /// "Mask4", scattered: 0x40030341. The paper's choice.
    Scattered,
}

impl MaskBits {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 4] = [Self::Low, Self::Middle, Self::High, Self::Scattered];

    /// The mask with `ones` ones, from 1 to 9: one hash in 2^`ones` is zero under it.
    ///
    /// # Panics
    /// When `ones` is another number.
    #[must_use]
    pub fn mask(self, ones: u8) -> u64 {
        assert!((1..=9).contains(&ones));
        let places = match self {
            Self::Low => [0, 1, 2, 4, 5, 6, 7, 3, 8],
            Self::Middle => [12, 13, 14, 15, 16, 17, 18, 19, 20],
            Self::High => [30, 29, 28, 27, 26, 25, 24, 23, 22],
            Self::Scattered => [30, 17, 8, 0, 16, 9, 6, 24, 21],
        };
        let places = &places[..usize::from(ones)];
        places.iter().fold(0, |mask, place| mask | 1u64 << place)
    }
}

impl Sampling {
    /// The paper's choice for Odess: hashes of 32 bits, one in 128 by scattered ones.
    pub const MASK_DEFAULT: Self = Self::Mask {
        hash_bits: 32,
        mask: 0x4003_0341,
    };

    /// The paper's choice for Odess+: sub-windows of 4 bytes, one hash in 128.
    pub const BOUNDARY_DEFAULT: Self = Self::Boundary {
        sub_windows: SubWindows::Four,
        rate_bits: 7,
    };

    /// The bound that a hash must reach (§3.4): the greatest hash less the sampling rate of the range.
    pub(super) fn boundary(sub_windows: SubWindows, rate_bits: u8) -> u64 {
        let highest = sub_windows.hash_highest();
        highest - ((highest >> rate_bits) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::{MaskBits, Sampling};
    use crate::similarity::SubWindows;

    #[test]
    fn masks_are_those_of_the_paper() {
        let masks = MaskBits::ALL.map(|bits| bits.mask(7));
        assert_eq!(masks, [0xf7, 0x7_f000, 0x7f00_0000, 0x4003_0341]);
        for bits in MaskBits::ALL {
            for ones in 1..=9 {
                let mask = bits.mask(ones);
                assert_eq!(mask.count_ones(), u32::from(ones));
                assert_eq!(mask >> 32, 0);
                // One more one leaves the others where they are.
                assert_eq!(mask & bits.mask(9), mask);
            }
        }
        let mask = MaskBits::Scattered.mask(7);
        let expected = Sampling::Mask {
            hash_bits: 32,
            mask,
        };
        assert_eq!(Sampling::MASK_DEFAULT, expected);
    }

    /// The paper's example for 8 bits is 223 = 255 − 32.
    #[test]
    fn boundaries_are_those_of_the_paper() {
        assert_eq!(Sampling::boundary(SubWindows::Four, 7), 0xfdff_ffff);
        assert_eq!(Sampling::boundary(SubWindows::Four, 3), 0xdfff_ffff);
        assert_eq!(
            Sampling::boundary(SubWindows::Two, 7),
            (!0) << 57 ^ 1 << 57 ^ ((1 << 57) - 1)
        );
        assert_eq!(Sampling::boundary(SubWindows::Eight, 9), 0xff7f);
    }
}

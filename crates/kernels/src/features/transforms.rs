//! Linear transforms of many values, and the least that each makes (Odess, Eqs. 3 and 4).
//!
//! Enters: values of 32 bits, the minima so far. Leaves: the minima of these and what
//! `value · multiplier + addend` modulo 2^32 makes of the values.

use crate::isa::Isa;

/// The most transforms that there can be.
pub const TRANSFORMS_MOST: usize = 64;

/// A list of transforms.
#[derive(Debug, Clone)]
pub struct Transforms {
    pairs: [(u32, u32); TRANSFORMS_MOST],
    count: usize,
}

impl Transforms {
    /// These multipliers and addends.
    ///
    /// # Panics
    /// When there are none, or more than [`TRANSFORMS_MOST`].
    #[must_use]
    pub fn new(pairs: &[(u32, u32)]) -> Self {
        assert!((1..=TRANSFORMS_MOST).contains(&pairs.len()));
        let mut all = [(0, 0); TRANSFORMS_MOST];
        all[..pairs.len()].copy_from_slice(pairs);
        Self {
            pairs: all,
            count: pairs.len(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Multipliers and addends.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pairs[..self.count].iter().copied()
    }

    /// Lowers each minimum to what its transform makes of the values.
    ///
    /// # Panics
    /// When there are not as many minima as transforms.
    pub fn apply(&self, isa: Isa, values: &[u32], minima: &mut [u32]) {
        assert_eq!(minima.len(), self.count);
        let _ = isa;
        for ((multiplier, addend), minimum) in self.pairs().zip(minima) {
            for value in values {
                let transformed = value.wrapping_mul(multiplier).wrapping_add(addend);
                *minimum = transformed.min(*minimum);
            }
        }
    }
}

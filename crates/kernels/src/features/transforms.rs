//! Linear transforms of many values, and the least that each makes (Odess, Eqs. 3 and 4).
//!
//! Enters: values of 32 bits, the minima so far. Leaves: the minima of these and what
//! `value · multiplier + addend` modulo 2^32 makes of the values.
//!
//! Method. Of few values one is transformed by all transforms at once, a transform a lane: nothing is
//! left to join. Of many, as many as there are lanes are transformed by one transform after another:
//! no lane is idle, whatever the number of transforms, and joining lanes is paid once.

use crate::isa::Isa;

/// The most transforms that there can be.
pub const TRANSFORMS_MOST: usize = 64;

/// From so many values on, a lane is a value.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) const MANY: usize = 192;

/// A list of transforms.
#[derive(Debug, Clone)]
pub struct Transforms {
    /// Behind those that there are: zeros, so that registers can be filled.
    pub(super) multipliers: [u32; TRANSFORMS_MOST],
    pub(super) addends: [u32; TRANSFORMS_MOST],
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
        let mut transforms = Self {
            multipliers: [0; TRANSFORMS_MOST],
            addends: [0; TRANSFORMS_MOST],
            count: pairs.len(),
        };
        for (index, &(multiplier, addend)) in pairs.iter().enumerate() {
            transforms.multipliers[index] = multiplier;
            transforms.addends[index] = addend;
        }
        transforms
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Multipliers and addends.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        let pairs = self.multipliers.iter().zip(&self.addends);
        pairs
            .map(|(&multiplier, &addend)| (multiplier, addend))
            .take(self.count)
    }

    /// Lowers each minimum to what its transform makes of the values.
    ///
    /// Every level gives the same.
    ///
    /// # Panics
    /// When there are not as many minima as transforms.
    pub fn apply(&self, isa: Isa, values: &[u32], minima: &mut [u32]) {
        assert_eq!(minima.len(), self.count);
        match isa.or_scalar() {
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { super::avx512::transform(self, values, minima) },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { super::avx2::transform(self, values, minima) },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "x86_64")]
            Isa::Sse41 => unsafe { super::sse41::transform(self, values, minima) },
            // SAFETY: the machine has the features.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { super::neon::transform(self, values, minima) },
            _ => self.apply_one_by_one(values, minima),
        }
    }

    fn apply_one_by_one(&self, values: &[u32], minima: &mut [u32]) {
        for ((multiplier, addend), minimum) in self.pairs().zip(minima) {
            for value in values {
                let transformed = value.wrapping_mul(multiplier).wrapping_add(addend);
                *minimum = transformed.min(*minimum);
            }
        }
    }
}

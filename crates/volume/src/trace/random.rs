//! Numbers that follow from a seed, the same ones for ever: what is generated is compared between
//! versions.
//!
//! Source: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014), and its finisher.

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A sequence of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// That of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// The next number, below a limit that is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// The next number, from 0 up to but not 1.
    pub fn fraction(&mut self) -> f64 {
        fraction(self.next())
    }
}

/// A permutation of the numbers of 64 bits that looks like chance.
pub fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// A permutation of the numbers of 128 bits: four rounds of Feistel's with the one above.
pub fn mix_wide(value: u128) -> u128 {
    let (mut left, mut right) = ((value >> 64) as u64, value as u64);
    for round in 1..=4_u64 {
        let mixed = left ^ mix(right.wrapping_add(round.wrapping_mul(STEP)));
        (left, right) = (right, mixed);
    }
    u128::from(left) << 64 | u128::from(right)
}

/// The upper bits as a number from 0 up to but not 1.
pub fn fraction(value: u64) -> f64 {
    (value >> 11) as f64 / (1_u64 << 53) as f64
}

//! The one source of chance in tests: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
//!
//! A seed in, the same numbers out on every machine and in every version of onefold, so that
//! a printed seed replays. No cryptography.

use engine::object::ObjectId;

/// A seeded sequence of numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `limit`.
    ///
    /// # Panics
    /// When `limit` is zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "no number is below zero");
        ((u128::from(self.bits()) * u128::from(limit)) >> 64) as u64
    }

    /// An index below `limit`, which is not zero.
    pub fn index(&mut self, limit: usize) -> usize {
        self.below(limit as u64) as usize
    }

    /// True once in two.
    pub fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.bits().to_le_bytes()[..part.len()]);
        }
    }

    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(&mut bytes);
        bytes
    }

    /// The next object id: tests that must replay use this, not [`ObjectId::random`].
    pub fn object_id(&mut self) -> ObjectId {
        let mut id = [0; ObjectId::BYTES];
        self.fill(&mut id);
        ObjectId(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        // From the reference implementation by Sebastiano Vigna, seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn limits_hold() {
        let mut random = Random::new(1);
        assert!((0..1000).all(|_| random.below(7) < 7));
        assert_eq!(random.below(1), 0);
        assert_eq!(random.bytes(13).len(), 13);
    }
}

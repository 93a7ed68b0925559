//! Randomness from a seed, the same on every machine.
//!
//! SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
//! 2014). Real numbers are made with additions and multiplications only, which IEEE 754 fixes to
//! the last bit; logarithms and exponentials of the C library differ between systems. So the
//! normal distribution is a sum of twelve uniform ones (Irwin–Hall), and the power of two is
//! straight between whole exponents: sizes are log-normal as far as a data set cares.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

/// The increment of SplitMix64, 2⁶⁴ over the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finalizer: spreads every bit over all.
#[must_use]
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Seeded {
    /// The stream that belongs to a seed and a list of numbers that say what it is for.
    #[must_use]
    pub fn new(seed: u64, purpose: &[u64]) -> Self {
        let start = purpose
            .iter()
            .fold(mix(seed.wrapping_add(STEP)), |state, &number| {
                mix(state.wrapping_add(STEP) ^ mix(number.wrapping_add(STEP)))
            });
        Self(start)
    }

    /// 64 random bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(limit.max(1));
        (wide >> 64) as u64
    }

    /// An index into something of this length, which is not zero.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True with a probability in thousandths.
    pub fn is_one_of(&mut self, thousandths: u64) -> bool {
        self.below(1000) < thousandths
    }

    /// From 0 up to 1, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal: mean 0, deviation 1, within ±6.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// About log-normal: half lie below `median`, and two of three within a factor of
    /// 2^`deviation` around it.
    pub fn log_normal(&mut self, median: f64, deviation: f64) -> u64 {
        (median * power_of_two(self.normal() * deviation)) as u64
    }

    /// `count` as a whole number on average: 2.3 becomes 2 or, in three of ten cases, 3.
    pub fn rounded(&mut self, count: f64) -> usize {
        let whole = count.max(0.0) as usize;
        whole + usize::from(self.unit() < count - whole as f64)
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
        let rest = words.into_remainder();
        let word = self.next().to_le_bytes();
        rest.copy_from_slice(&word[..rest.len()]);
    }
}

/// 2^x for whole x, straight lines between them.
fn power_of_two(exponent: f64) -> f64 {
    let whole = exponent.floor().clamp(-60.0, 60.0);
    let (power, fraction) = ((1_u64 << whole.abs() as u32) as f64, exponent - whole);
    (if whole < 0.0 { 1.0 / power } else { power }) * (1.0 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut numbers = Seeded(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([(); 3].map(|()| numbers.next()), expected);
    }

    #[test]
    fn purposes_give_streams_of_their_own() {
        let first = |seed, purpose: &[u64]| Seeded::new(seed, purpose).next();
        let all = [
            first(1, &[]),
            first(2, &[]),
            first(1, &[0]),
            first(1, &[1]),
            first(1, &[0, 1]),
            first(1, &[1, 0]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one), "{all:?}");
        }
    }

    #[test]
    fn distributions_are_about_right() {
        let mut numbers = Seeded::new(7, &[]);
        let mut sizes: Vec<u64> = (0..9999).map(|_| numbers.log_normal(1000.0, 2.0)).collect();
        sizes.sort_unstable();
        assert!((900..1100).contains(&sizes[4999]), "{}", sizes[4999]);
        assert!((200..300).contains(&sizes[1586]), "{}", sizes[1586]);
        assert!((3500..4500).contains(&sizes[8413]), "{}", sizes[8413]);
        let rounded: usize = (0..10_000).map(|_| numbers.rounded(2.3)).sum();
        assert!((22_500..23_500).contains(&rounded), "{rounded}");
        assert!((0..9999).all(|_| numbers.below(3) < 3));
    }
}

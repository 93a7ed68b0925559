//! Filter partitions of an index run: split-block Bloom filters (docs/format/v1.md, §11; the
//! structure and salts are Apache Parquet's, BloomFilter.md; Putze, Sanders and Singler,
//! "Cache-, hash- and space-efficient Bloom filters", 2007).
//!
//! Enter: the prefixes of a partition. Leaves: 32 bytes for every 21⅓ keys, in which a prefix
//! that was put in is always found, and another one in less than one of a hundred cases.
//!
//! A partition covers a narrow range of prefixes, whose upper bits are therefore all alike.
//! Parquet picks the place by the upper half of the hash; so the prefix is first multiplied by
//! an odd constant, which brings its lower bits up.

use crate::format::DecodeError;

/// Most keys in a partition.
pub(super) const PARTITION_KEYS_MAX: u64 = 1 << 20;

/// Bits for each key.
const KEY_BITS: u64 = 12;

/// Bytes of a split block: eight words, one bit in each for a key.
const SPLIT_BYTES: usize = 32;

/// Parquet's eight odd constants.
const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// 2^64 / golden ratio (Knuth, TAOCP vol. 3, §6.4).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Length of the filter of `keys` keys in bytes.
pub(super) fn filter_bytes(keys: u64) -> u64 {
    (keys * KEY_BITS).div_ceil(SPLIT_BYTES as u64 * 8) * SPLIT_BYTES as u64
}

/// The filter of one partition.
#[derive(Debug)]
pub(super) struct Filter {
    bytes: Vec<u8>,
}

impl Filter {
    /// The filter of `prefixes`.
    pub(super) fn of(prefixes: &[u64]) -> Self {
        let mut filter = Self {
            bytes: vec![0; filter_bytes(prefixes.len() as u64) as usize],
        };
        for &prefix in prefixes {
            filter.insert(prefix);
        }
        filter
    }

    /// The filter that `bytes` are, of a partition of `keys` keys.
    ///
    /// # Errors
    /// When their length is not that of such a filter.
    pub(super) fn decode(bytes: Vec<u8>, keys: u64) -> Result<Self, DecodeError> {
        if keys == 0 || keys > PARTITION_KEYS_MAX || bytes.len() as u64 != filter_bytes(keys) {
            return Err(DecodeError::new(format!(
                "a filter of {keys} keys does not have {} bytes",
                bytes.len()
            )));
        }
        Ok(Self { bytes })
    }

    /// The stored form, before sealing.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Memory that the filter takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    fn insert(&mut self, prefix: u64) {
        let hash = hash(prefix);
        let split = self.split(hash);
        let words = self.bytes[split..split + SPLIT_BYTES].chunks_exact_mut(4);
        for (word, mask) in words.zip(masks(hash)) {
            for (byte, bits) in word.iter_mut().zip(mask.to_le_bytes()) {
                *byte |= bits;
            }
        }
    }

    /// Was `prefix` put in? A no is certain.
    pub(super) fn contains(&self, prefix: u64) -> bool {
        let hash = hash(prefix);
        let split = self.split(hash);
        let words = self.bytes[split..split + SPLIT_BYTES].chunks_exact(4);
        let mut missing = 0;
        for (word, mask) in words.zip(masks(hash)) {
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            missing |= mask & !word;
        }
        missing == 0
    }

    /// Where the split block of `hash` begins.
    fn split(&self, hash: u64) -> usize {
        let splits = (self.bytes.len() / SPLIT_BYTES) as u64;
        (((hash >> 32) * splits) >> 32) as usize * SPLIT_BYTES
    }
}

fn hash(prefix: u64) -> u64 {
    prefix.wrapping_mul(MULTIPLIER)
}

fn masks(hash: u64) -> [u32; 8] {
    SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::random::Random;

    /// Share of prefixes, drawn as `draw` draws those put in, that the filter takes for one.
    fn false_positives(keys: usize, draw: impl Fn(&mut Random) -> u64) -> f64 {
        let mut random = Random::new(keys as u64);
        let prefixes: Vec<u64> = (0..keys).map(|_| draw(&mut random)).collect();
        let filter = Filter::of(&prefixes);
        assert!(prefixes.iter().all(|&prefix| filter.contains(prefix)));
        let probes = 200_000;
        let hits = (0..probes)
            .filter(|_| filter.contains(draw(&mut random)))
            .count();
        hits as f64 / f64::from(probes)
    }

    #[test]
    fn false_positives_are_rare_also_in_a_narrow_range() {
        for keys in [100, 1 << 15, 150_000, 1 << 20] {
            let all = false_positives(keys, Random::bits);
            let narrow = false_positives(keys, |random| random.bits() >> 12 | 0xabc << 52);
            println!(
                "{keys} keys: {:.3} % of all, {:.3} % of a 4096th",
                all * 100.0,
                narrow * 100.0
            );
            assert!(all < 0.01 && narrow < 0.01, "{keys} keys: {all}, {narrow}");
        }
    }

    #[test]
    fn lengths_are_checked() {
        assert_eq!(
            (filter_bytes(1), filter_bytes(21), filter_bytes(22)),
            (32, 32, 64)
        );
        let filter = Filter::of(&[0, 1, u64::MAX]);
        let bytes = filter.as_bytes().to_vec();
        assert!(Filter::decode(bytes.clone(), 3).is_ok_and(|filter| filter.contains(u64::MAX)));
        assert!(Filter::decode(bytes.clone(), 22).is_err());
        assert!(Filter::decode(bytes[1..].to_vec(), 3).is_err());
        assert!(Filter::decode(Vec::new(), 0).is_err());
        let over = PARTITION_KEYS_MAX + 1;
        assert!(Filter::decode(vec![0; filter_bytes(over) as usize], over).is_err());
    }

    #[test]
    fn the_stored_form_does_not_change() {
        let filter = Filter::of(&[0x0123_4567_89ab_cdef]);
        let words: Vec<u32> = filter
            .as_bytes()
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        // hash = 0x0123456789abcdef · 0x9e3779b97f4a7c15 mod 2^64, its low half times each salt.
        let low = 0x0123_4567_89ab_cdef_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15) as u32;
        let model: Vec<u32> = SALTS
            .iter()
            .map(|salt| 1 << (low.wrapping_mul(*salt) >> 27))
            .collect();
        assert_eq!(words, model);
    }
}

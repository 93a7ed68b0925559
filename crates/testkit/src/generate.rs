//! Data for tests: a seed and a length in, the same bytes out, everywhere and always.

use std::ops::Range;

use crate::random::Random;

/// Bytes without pattern: every chunk is new, nothing compresses.
#[must_use]
pub fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    Random::new(seed).bytes(length)
}

/// Lines of words from a vocabulary of the seed, some words far more often than others:
/// compresses to about a third, without long repeats.
#[must_use]
pub fn text(seed: u64, length: usize) -> Vec<u8> {
    const VOCABULARY: usize = 1024;
    let mut random = Random::new(seed);
    let words: Vec<Vec<u8>> = (0..VOCABULARY).map(|_| word(&mut random)).collect();
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        // The lower of two picks: small numbers are frequent, as short words are.
        let pick = random.index(VOCABULARY).min(random.index(VOCABULARY));
        bytes.extend_from_slice(&words[pick]);
        bytes.push(if random.below(12) == 0 { b'\n' } else { b' ' });
    }
    bytes.truncate(length);
    bytes
}

fn word(random: &mut Random) -> Vec<u8> {
    const LETTERS: &[u8] = b"etaoinshrdlucmfwypvbgkjqxz";
    let length = 2 + random.index(8);
    (0..length)
        .map(|_| LETTERS[random.index(LETTERS.len()).min(random.index(LETTERS.len()))])
        .collect()
}

/// A version of the stream in the golden sample with deltas: bytes of xorshift, of which one every 3,000
/// is another in each version.
#[must_use]
pub fn stream_version(version: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let mut stream: Vec<u8> = (0..150_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 24) as u8
        })
        .collect();
    for stretch in stream.chunks_mut(3_000) {
        for earlier in 1..=version {
            stretch[100 * earlier] = earlier as u8;
        }
    }
    stream
}

/// Stretches of noise, text, zeros and copies of what came before, as disks and archives have:
/// something to chunk, to deduplicate and to compress.
#[must_use]
pub fn mixed(seed: u64, length: usize) -> Vec<u8> {
    const STRETCH_BYTES_MAX: usize = 64 * 1024;
    let mut random = Random::new(seed);
    let mut bytes: Vec<u8> = Vec::with_capacity(length);
    while bytes.len() < length {
        let stretch = (1 + random.index(STRETCH_BYTES_MAX)).min(length - bytes.len());
        match random.below(4) {
            0 => bytes.extend(random.bytes(stretch)),
            1 => bytes.extend(text(random.bits(), stretch)),
            2 => bytes.resize(bytes.len() + stretch, 0),
            _ => {
                let start = random.index(bytes.len() + 1);
                let end = (start + stretch).min(bytes.len());
                bytes.extend_from_within(start..end);
            }
        }
    }
    bytes
}

/// A way of changing a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// New bytes between two old ones: everything behind moves.
    Insert,
    /// Bytes taken out: everything behind moves.
    Delete,
    /// New bytes in the place of old ones: the length stays.
    Overwrite,
}

/// How one version of a buffer becomes the next.
#[derive(Debug, Clone)]
pub struct Edits {
    /// Number of edits, at places of the seed.
    pub count: usize,
    /// Length of one edit in bytes, drawn from this range, which is not empty.
    pub bytes: Range<usize>,
    /// The edits to draw from; one named twice is drawn twice as often.
    pub kinds: Vec<Edit>,
}

impl Default for Edits {
    /// Four edits of every kind, 1 to 255 bytes each.
    fn default() -> Self {
        Self {
            count: 4,
            bytes: 1..256,
            kinds: vec![Edit::Insert, Edit::Delete, Edit::Overwrite],
        }
    }
}

/// A changed copy of `previous`. Edits may touch the same place twice.
///
/// # Panics
/// When `edits` has edits to make but an empty range of lengths or no kinds.
#[must_use]
pub fn edited(previous: &[u8], seed: u64, edits: &Edits) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = previous.to_vec();
    for _ in 0..edits.count {
        let length = edits.bytes.start + random.index(edits.bytes.len());
        let kind = edits.kinds[random.index(edits.kinds.len())];
        let start = random.index(bytes.len() + 1);
        let end = (start + length).min(bytes.len());
        match kind {
            Edit::Insert => {
                let new = random.bytes(length);
                bytes.splice(start..start, new);
            }
            Edit::Delete => {
                bytes.drain(start..end);
            }
            Edit::Overwrite => random.fill(&mut bytes[start..end]),
        }
    }
    bytes
}

/// `first` and the versions that follow it, `count` in all, each an edit of the one before.
#[must_use]
pub fn versions(first: Vec<u8>, count: usize, seed: u64, edits: &Edits) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    std::iter::successors(Some(first), |last| Some(edited(last, random.bits(), edits)))
        .take(count)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        for generator in [random_bytes, text, mixed] {
            for length in [0, 1, 7, 1000, 200_000] {
                let bytes = generator(5, length);
                assert_eq!(bytes.len(), length);
                assert_eq!(bytes, generator(5, length));
                assert!(length < 7 || bytes != generator(6, length));
            }
        }
    }

    #[test]
    fn generated_bytes_never_change() {
        // Other tests may hold figures that rest on these bytes.
        let sum = |bytes: Vec<u8>| {
            let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
        };
        assert_eq!(sum(random_bytes(1, 10_000)), RANDOM_SUM);
        assert_eq!(sum(text(1, 10_000)), TEXT_SUM);
        assert_eq!(sum(mixed(1, 1_000_000)), MIXED_SUM);
        let edited = edited(&text(1, 10_000), 1, &Edits::default());
        assert_eq!(sum(edited), EDITED_SUM);
    }

    const RANDOM_SUM: u64 = 2700892948567996425;
    const TEXT_SUM: u64 = 75780730931613244;
    const MIXED_SUM: u64 = 10132733891095269746;
    const EDITED_SUM: u64 = 16561203820528633726;

    #[test]
    fn text_looks_like_text() {
        let text = text(3, 50_000);
        assert!(
            text.iter()
                .all(|byte| byte.is_ascii_lowercase() || b" \n".contains(byte))
        );
        let spaces = text.iter().filter(|byte| **byte == b' ').count();
        assert!((4_000..15_000).contains(&spaces), "{spaces} spaces");
    }

    #[test]
    fn edits_do_what_they_are_called() {
        let old = random_bytes(1, 10_000);
        let with = |kind| Edits {
            count: 1,
            bytes: 10..11,
            kinds: vec![kind],
        };
        assert_eq!(edited(&old, 2, &with(Edit::Insert)).len(), 10_010);
        assert_eq!(edited(&old, 2, &with(Edit::Delete)).len(), 9_990);
        let overwritten = edited(&old, 2, &with(Edit::Overwrite));
        assert_eq!(overwritten.len(), old.len());
        assert_ne!(overwritten, old);
        assert_eq!(edited(&[], 2, &with(Edit::Delete)), []);
    }

    #[test]
    fn versions_follow_one_another() {
        let versions = versions(text(1, 5_000), 4, 9, &Edits::default());
        assert_eq!(versions.len(), 4);
        assert_eq!(versions[0], text(1, 5_000));
        assert!(versions.windows(2).all(|pair| pair[0] != pair[1]));
    }
}

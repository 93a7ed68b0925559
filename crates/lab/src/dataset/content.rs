//! Made-up file contents, each block of which can be made alone.
//!
//! Enters: a stream (a number and a [`Grain`]) and a range in it. Leaves: its bytes. A stream is
//! endless and is made of blocks of 4 KiB, each a function of (seed, stream, block), so an extent
//! of it costs what its length costs, wherever it lies, and no content has to be kept.
//!
//! Grains: `Text` is lines of words from a dictionary of 4,096 made-up words, the frequent ones
//! far more often, about as compressible as prose; `Records` is rows of 64 bytes of which most
//! resemble their neighbours, as in tables; `Noise` is random, as media and archives are.

use super::seeded::Seeded;

/// Length of a block.
pub const BLOCK_BYTES: usize = 4096;

/// What a stream looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Lines of words.
    Text,
    /// Rows of a table.
    Records,
    /// Nothing that compresses.
    Noise,
}

/// A number apart for each use of the seed here.
const WORDS: u64 = 0x776f_7264;
const BLOCKS: u64 = 0x626c_6f63;

/// Makes contents from a seed.
pub struct Contents {
    seed: u64,
    words: Vec<String>,
}

impl Contents {
    /// Those of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut numbers = Seeded::new(seed, &[WORDS]);
        let words = (0..4096).map(|_| word(&mut numbers)).collect();
        Self { seed, words }
    }

    /// A word; the lower its number in the dictionary the likelier.
    pub fn word(&self, numbers: &mut Seeded) -> &str {
        let unit = numbers.unit();
        let index = (unit * unit * unit * self.words.len() as f64) as usize;
        &self.words[index.min(self.words.len() - 1)]
    }

    /// Appends `length` bytes of a stream, from `start` on.
    pub fn append(&self, to: &mut Vec<u8>, stream: u64, grain: Grain, start: u64, length: u64) {
        let (mut at, end) = (start, start + length);
        let mut block = Vec::with_capacity(BLOCK_BYTES + 80);
        while at < end {
            let number = at / BLOCK_BYTES as u64;
            block.clear();
            self.block(&mut block, stream, grain, number);
            let from = (at % BLOCK_BYTES as u64) as usize;
            let most = usize::try_from(end - at).unwrap_or(usize::MAX);
            let taken = &block[from..BLOCK_BYTES.min(from.saturating_add(most))];
            to.extend_from_slice(taken);
            at += taken.len() as u64;
        }
    }

    fn block(&self, block: &mut Vec<u8>, stream: u64, grain: Grain, number: u64) {
        let mut numbers = Seeded::new(self.seed, &[BLOCKS, stream, number]);
        match grain {
            Grain::Text => self.text(block, &mut numbers),
            Grain::Records => records(block, &mut numbers, number),
            Grain::Noise => {
                block.resize(BLOCK_BYTES, 0);
                numbers.fill(block);
            }
        }
    }

    fn text(&self, block: &mut Vec<u8>, numbers: &mut Seeded) {
        let mut line = 0;
        while block.len() < BLOCK_BYTES {
            let word = self.word(numbers);
            block.extend_from_slice(word.as_bytes());
            line += word.len() + 1;
            let end: &[u8] = match numbers.below(16) {
                0 => b". ",
                1 => b", ",
                _ => b" ",
            };
            block.extend_from_slice(if line > 72 { b"\n" } else { end });
            if line > 72 {
                line = 0;
            }
        }
        block.truncate(BLOCK_BYTES);
        block[BLOCK_BYTES - 1] = b'\n';
    }
}

/// Two to four syllables.
fn word(numbers: &mut Seeded) -> String {
    const CONSONANTS: &[u8] = b"bcdfghklmnprstvw";
    const VOWELS: &[u8] = b"aeiou";
    let mut word = String::new();
    for _ in 0..2 + numbers.below(3) {
        word.push(CONSONANTS[numbers.index(CONSONANTS.len())].into());
        word.push(VOWELS[numbers.index(VOWELS.len())].into());
    }
    word
}

/// Rows of: number, two columns that seldom change, a random amount, zeros.
fn records(block: &mut Vec<u8>, numbers: &mut Seeded, number: u64) {
    let mut columns = [numbers.next(), numbers.next()];
    for row in 0..(BLOCK_BYTES / 64) as u64 {
        for column in &mut columns {
            if numbers.is_one_of(100) {
                *column = numbers.next();
            }
        }
        let amount = numbers.next();
        for field in [
            number * 64 + row,
            columns[0],
            columns[1],
            amount,
            0,
            0,
            0,
            0,
        ] {
            block.extend_from_slice(&field.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_fit_together() {
        let contents = Contents::new(3);
        for grain in [Grain::Text, Grain::Records, Grain::Noise] {
            let mut whole = Vec::new();
            contents.append(&mut whole, 9, grain, 0, 20_000);
            assert_eq!(whole.len(), 20_000);
            for (start, length) in [(0, 1), (4095, 2), (4096, 4096), (5000, 15_000), (7, 0)] {
                let mut part = Vec::new();
                contents.append(&mut part, 9, grain, start, length);
                assert_eq!(part, whole[start as usize..][..length as usize]);
            }
            let mut other = Vec::new();
            contents.append(&mut other, 10, grain, 0, 20_000);
            assert_ne!(whole, other);
        }
    }

    #[test]
    fn text_is_made_of_lines() {
        let mut text = Vec::new();
        Contents::new(3).append(&mut text, 1, Grain::Text, 0, 8192);
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().all(|line| line.len() < 90), "{text}");
    }
}

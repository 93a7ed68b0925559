//! The duplicate locality (§3.2): how duplicates follow one another.
//!
//! Enters: the chunks of files in order. Leaves: for the first files of a set, how many chunks are
//! duplicates, and how many stand in LQ sequences of which length. A sequence is what follows the
//! first duplicate of a run, inside one file: a run of n duplicates has a sequence of n − 1.

use std::collections::BTreeMap;

use crate::chunk::measuring::FingerprintSet;

/// What was counted in some files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locality {
    /// Files.
    pub files: usize,
    /// Chunks.
    pub chunks: u64,
    /// Those that came before.
    pub duplicates: u64,
    /// How many sequences there are of each length above 0.
    sequences: BTreeMap<u64, u64>,
}

impl Locality {
    /// Takes in the next file: fingerprints of its chunks.
    fn add(&mut self, fingerprints: &[u128], met: &mut FingerprintSet) {
        self.files += 1;
        let mut run = 0u64;
        for fingerprint in fingerprints {
            self.chunks += 1;
            if met.insert(*fingerprint) {
                self.end(run);
                run = 0;
            } else {
                self.duplicates += 1;
                run += 1;
            }
        }
        self.end(run);
    }

    fn end(&mut self, run: u64) {
        if run > 1 {
            *self.sequences.entry(run - 1).or_insert(0) += 1;
        }
    }

    /// The share of chunks that are duplicates, of 100.
    pub fn duplicates_percent(&self) -> f64 {
        100.0 * self.duplicates as f64 / self.chunks.max(1) as f64
    }

    /// The share of chunks in sequences of at most this length, of 100.
    pub fn sequences_percent(&self, length_max: u64) -> f64 {
        let short = self.sequences.range(..=length_max);
        let chunks: u64 = short.map(|(length, count)| length * count).sum();
        100.0 * chunks as f64 / self.chunks.max(1) as f64
    }

    /// The length of the longest sequence.
    pub fn longest(&self) -> u64 {
        self.sequences.keys().next_back().copied().unwrap_or(0)
    }
}

/// What there is after a quarter, half, three quarters and all of the files (or each of fewer).
pub fn growth(files: &[Vec<u128>]) -> Vec<Locality> {
    let mut met = FingerprintSet::default();
    let mut locality = Locality::default();
    let mut steps = Vec::new();
    let marks: Vec<usize> = (1..=4)
        .map(|part| (files.len() * part).div_ceil(4))
        .collect();
    for (index, fingerprints) in files.iter().enumerate() {
        locality.add(fingerprints, &mut met);
        if marks.contains(&(index + 1)) {
            steps.push(locality.clone());
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_what_follows_the_first_duplicate() {
        let files = [
            vec![1, 2, 3, 4, 5, 6],
            vec![1, 2, 3, 9, 5, 10, 6, 6],
            vec![7],
        ];
        let steps = growth(&files);
        assert_eq!(
            steps.iter().map(|step| step.files).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        let last = &steps[2];
        // Of 15 chunks, 1 2 3 and 5 and 6 6 are duplicates; 2 3 and 6 are in sequences.
        assert_eq!((last.chunks, last.duplicates, last.longest()), (15, 6, 2));
        assert!((last.sequences_percent(1) - 100.0 / 15.0).abs() < 1e-9);
        assert!((last.sequences_percent(64) - 300.0 / 15.0).abs() < 1e-9);
        assert_eq!(steps[0].duplicates_percent(), 0.0);
    }
}

//! Chunks of files in memory, and how much of them is duplicates.
//!
//! Enters: files and, for each, the lengths of its chunks. Leaves: [`Dedup`]. Duplicates are found by
//! fingerprints of 128 bits over all files of a set, in their order.

use chunking::Chunker;

use super::threads;
use crate::chunk::measuring::{FingerprintSet, fingerprint};

/// The lengths of the chunks of a file.
pub type Lengths = Vec<u32>;

/// What deduplication gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dedup {
    /// Bytes of all chunks.
    pub bytes: u64,
    /// Bytes of distinct ones.
    pub bytes_unique: u64,
    /// Chunks.
    pub chunks: u64,
}

impl Dedup {
    /// Of the chunks of files; fingerprints are made on so many threads.
    pub fn of(files: &[&[u8]], cuts: &[Lengths], threads: usize) -> Self {
        let mut met = FingerprintSet::default();
        let mut dedup = Self::default();
        for (lengths, fingerprints) in cuts.iter().zip(fingerprints(files, cuts, threads)) {
            for (&length, fingerprint) in lengths.iter().zip(fingerprints) {
                dedup.chunks += 1;
                dedup.bytes += u64::from(length);
                if met.insert(fingerprint) {
                    dedup.bytes_unique += u64::from(length);
                }
            }
        }
        dedup
    }

    /// Bytes over bytes of distinct chunks.
    pub fn ratio(&self) -> f64 {
        self.bytes as f64 / self.bytes_unique.max(1) as f64
    }

    /// The share of bytes that are duplicates, of 100.
    pub fn saved_percent(&self) -> f64 {
        100.0 * (1.0 - self.bytes_unique as f64 / self.bytes.max(1) as f64)
    }

    /// How much lower the ratio is than another's, of 100 of that.
    pub fn reduction_percent(&self, other: &Self) -> f64 {
        100.0 * (1.0 - self.ratio() / other.ratio())
    }
}

/// Fingerprints of the chunks of files, a file a thread.
pub fn fingerprints(files: &[&[u8]], cuts: &[Lengths], threads: usize) -> Vec<Vec<u128>> {
    threads::run(threads, 1, files.len(), |index| {
        let mut start = 0;
        let chunks = cuts[index].iter().map(|&length| {
            let chunk = &files[index][start..start + length as usize];
            start += chunk.len();
            fingerprint(chunk)
        });
        chunks.collect()
    })
}

/// The chunks of files by a sequential chunker, a file a thread.
pub fn cut(chunker: &Chunker, files: &[&[u8]], threads: usize) -> Vec<Lengths> {
    threads::run(threads, 1, files.len(), |index| {
        lengths(chunker, files[index])
    })
}

/// The chunks of one file by a sequential chunker.
pub fn lengths(chunker: &Chunker, file: &[u8]) -> Lengths {
    let chunks = chunker.chunks(file);
    chunks.map(|chunk| chunk.len() as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_counted_over_all_files() {
        let files: [&[u8]; 2] = [b"aaabbbccc", b"bbbd"];
        let cuts = [vec![3, 3, 3], vec![3, 1]];
        for threads in [1, 2] {
            let dedup = Dedup::of(&files, &cuts, threads);
            assert_eq!((dedup.bytes, dedup.bytes_unique, dedup.chunks), (13, 10, 5));
            assert!((dedup.ratio() - 1.3).abs() < 1e-9);
            assert!((dedup.saved_percent() - 100.0 * 3.0 / 13.0).abs() < 1e-9);
        }
        let none = Dedup {
            bytes_unique: 13,
            ..Dedup::of(&files, &cuts, 1)
        };
        let better = Dedup::of(&files, &cuts, 1);
        assert!((none.reduction_percent(&better) - 100.0 * 0.3 / 1.3).abs() < 1e-9);
    }
}

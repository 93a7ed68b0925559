//! The distinct chunks of files in memory, in the order in which they come: what resemblance is looked
//! for among.

use chunking::Chunker;

use crate::chunk::measuring::FingerprintSet;
use crate::paper::dedup::{self, Lengths};

/// The distinct chunks of files.
pub struct UniqueChunks<'a> {
    /// Each once, in the order of the stream.
    pub chunks: Vec<&'a [u8]>,
    /// Bytes of all files.
    pub logical_bytes: u64,
    /// Chunks of all files.
    pub logical_chunks: u64,
    /// Bytes of the distinct ones.
    pub bytes: u64,
}

impl<'a> UniqueChunks<'a> {
    /// Cuts files and keeps what is new; on so many threads.
    pub fn of(files: &[&'a [u8]], chunker: &Chunker, threads: usize) -> Self {
        let cuts = dedup::cut(chunker, files, threads);
        Self::of_cuts(files, &cuts, threads)
    }

    /// The same of files that were cut.
    pub fn of_cuts(files: &[&'a [u8]], cuts: &[Lengths], threads: usize) -> Self {
        let mut unique = Self {
            chunks: Vec::new(),
            logical_bytes: 0,
            logical_chunks: 0,
            bytes: 0,
        };
        let mut met = FingerprintSet::default();
        let fingerprints = dedup::fingerprints(files, cuts, threads);
        for ((file, lengths), fingerprints) in files.iter().zip(cuts).zip(fingerprints) {
            let mut start = 0;
            for (&length, fingerprint) in lengths.iter().zip(fingerprints) {
                let chunk = &file[start..start + length as usize];
                start += chunk.len();
                unique.logical_bytes += u64::from(length);
                unique.logical_chunks += 1;
                if met.insert(fingerprint) {
                    unique.bytes += u64::from(length);
                    unique.chunks.push(chunk);
                }
            }
        }
        unique
    }

    /// Bytes over bytes of distinct chunks.
    pub fn dedup_ratio(&self) -> f64 {
        self.logical_bytes as f64 / self.bytes.max(1) as f64
    }

    /// Mean size of the distinct chunks.
    pub fn mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.chunks.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chunk_is_kept_once_in_order() {
        let files: [&[u8]; 2] = [b"aaabbbaaa", b"bbbccd"];
        let cuts = [vec![3, 3, 3], vec![3, 2, 1]];
        let unique = UniqueChunks::of_cuts(&files, &cuts, 1);
        let expected: [&[u8]; 4] = [b"aaa", b"bbb", b"cc", b"d"];
        assert_eq!(unique.chunks, expected);
        assert_eq!((unique.logical_bytes, unique.logical_chunks), (15, 6));
        assert_eq!(unique.bytes, 9);
    }
}

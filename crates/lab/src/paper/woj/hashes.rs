//! Table 4.1: how fast hash functions are on blocks of 4 KiB, on one thread.
//!
//! MD5, SHA-1, XXH3 and BLAKE3 are those that volumes make fingerprints with; SHA-256 and SHA-512 are those of
//! the lab's library of cryptography. Time is that of this thread: other programs do not count.

use std::hint::black_box;

use anyhow::Result;
use aws_lc_rs::digest;
use twox_hash::XxHash64;
use volume::address::BLOCK_BYTES;
use volume::fingerprint::{FingerprintKind, Fingerprinter};

use super::published::HASHES;
use crate::chunk::data::fill_random;
use crate::paper::Results;
use crate::paper::figure::Figure;
use crate::paper::timing::{Way, alternate, thread_seconds};
use crate::progress::Progress;

/// Blocks that are hashed over and over: they stay in the second cache.
const BLOCKS: usize = 64;
/// Bytes of them that WOJ's own fingerprint looks at (§4.3.1).
pub const PREFIX_BYTES: usize = 64;

/// The metric.
pub const HASH_SPEED: &str = "hash_mebibytes_per_second";

/// A hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// CRC32C.
    Crc32c,
    /// XXH64 of the whole block.
    Xxh64,
    /// XXH64 of its first 64 bytes.
    Xxh64Prefix,
    /// XXH3, 128 bits.
    Xxh3,
    /// BLAKE3, keyed.
    Blake3,
}

impl Hash {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Md5,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Crc32c,
        Self::Xxh64,
        Self::Xxh64Prefix,
        Self::Xxh3,
        Self::Blake3,
    ];

    /// The paper's name, or ours.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
            Self::Crc32c => "CRC32C",
            Self::Xxh64 => "xxHash",
            Self::Xxh64Prefix => "xxHash, first 64 bytes",
            Self::Xxh3 => "XXH3",
            Self::Blake3 => "BLAKE3",
        }
    }

    /// Hashes a block.
    fn run(self, block: &[u8], makers: &Makers) {
        match self {
            Self::Md5 => drop(black_box(makers.md5.of(block))),
            Self::Sha1 => drop(black_box(makers.sha1.of(block))),
            Self::Sha256 => drop(black_box(digest::digest(&digest::SHA256, block))),
            Self::Sha512 => drop(black_box(digest::digest(&digest::SHA512, block))),
            Self::Crc32c => drop(black_box(crc32c::crc32c(block))),
            Self::Xxh64 => drop(black_box(XxHash64::oneshot(0, block))),
            Self::Xxh64Prefix => drop(black_box(XxHash64::oneshot(0, &block[..PREFIX_BYTES]))),
            Self::Xxh3 => drop(black_box(makers.xxh3.of(block))),
            Self::Blake3 => drop(black_box(makers.blake3.of(block))),
        }
    }
}

struct Makers {
    md5: Fingerprinter,
    sha1: Fingerprinter,
    xxh3: Fingerprinter,
    blake3: Fingerprinter,
}

/// What a block costs, by hash function.
#[derive(Debug, Clone)]
pub struct Costs([f64; Hash::ALL.len()]);

impl Costs {
    /// Seconds for a block.
    pub fn seconds(&self, hash: Hash) -> f64 {
        self.0[hash as usize]
    }

    /// MiB of blocks in a second.
    fn speed(&self, hash: Hash) -> f64 {
        BLOCK_BYTES as f64 / f64::from(1 << 20) / self.seconds(hash)
    }
}

/// Measures them: the median of so many passes, each over so many bytes.
///
/// # Errors
/// When somebody asked for a stop.
pub fn measure(runs: usize, bytes: u64, progress: &mut Progress) -> Result<Costs> {
    let mut data = vec![0; BLOCKS * BLOCK_BYTES];
    fill_random(41, 0, &mut data);
    let maker = |kind| Fingerprinter::new(kind, [7; 32]);
    let makers = &Makers {
        md5: maker(FingerprintKind::Md5),
        sha1: maker(FingerprintKind::Sha1),
        xxh3: maker(FingerprintKind::Xxh3),
        blake3: maker(FingerprintKind::Blake3),
    };
    let rounds = (bytes as usize / data.len()).max(1);
    let data = &data;
    let mut ways: Vec<Way<'_>> = Hash::ALL
        .iter()
        .map(|hash| {
            Way::telling(hash.name(), move || {
                let start = thread_seconds();
                for block in (0..rounds).flat_map(|_| data.chunks_exact(BLOCK_BYTES)) {
                    hash.run(black_box(block), makers);
                }
                thread_seconds() - start
            })
        })
        .collect();
    let blocks = (rounds * BLOCKS) as f64;
    let seconds = alternate(runs, bytes, &mut ways, progress)?;
    let mut costs = [0.0; Hash::ALL.len()];
    for (cost, seconds) in costs.iter_mut().zip(seconds) {
        *cost = seconds.max(1e-9) / blocks;
    }
    Ok(Costs(costs))
}

/// The table.
pub fn table(costs: &Costs, results: &mut Results) {
    for hash in Hash::ALL {
        let printed = HASHES.iter().find(|(name, ..)| *name == hash.name());
        let figure = Figure::new("table4.1", "random blocks", hash.name(), HASH_SPEED);
        let paper = printed.map(|(_, fast, _)| *fast);
        results.figures.push(figure.with(costs.speed(hash), paper));
    }
}

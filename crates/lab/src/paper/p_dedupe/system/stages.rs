//! The stages of deduplication, each over a unit of chunks: cut, fingerprint, look up; writing is
//! [`store`](super::store).
//!
//! A unit is chunks of one file that lie behind one another, as many as it takes to reach a number of
//! bytes: with one byte a unit is a chunk, which is the paper's, and threads then pay for each chunk
//! to meet (§3.2). What a unit holds has no influence on what is stored.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use chunking::Chunker;
use clap::ValueEnum;

use crate::paper::timing::thread_seconds;

/// What tells chunks apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FingerprintKind {
    /// SHA-1, as in the paper
    #[default]
    Sha1,
    /// The first 20 bytes of BLAKE3
    Blake3,
}

impl FingerprintKind {
    /// Its name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Blake3 => "blake3",
        }
    }

    /// The fingerprint of a chunk.
    pub fn of(self, chunk: &[u8]) -> Fingerprint {
        let mut bytes = [0; Fingerprint::BYTES];
        match self {
            Self::Sha1 => {
                let algorithm = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
                let digest = aws_lc_rs::digest::digest(algorithm, chunk);
                bytes.copy_from_slice(digest.as_ref());
            }
            Self::Blake3 => {
                let digest = blake3::hash(chunk);
                bytes.copy_from_slice(&digest.as_bytes()[..Fingerprint::BYTES]);
            }
        }
        Fingerprint(bytes)
    }
}

/// 160 bits that stand for a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; Fingerprint::BYTES]);

impl Fingerprint {
    const BYTES: usize = 20;
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let first = self.0.first_chunk().copied().unwrap_or_default();
        state.write_u64(u64::from_le_bytes(first));
    }
}

/// Takes eight bytes of a fingerprint as they are: they are random already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Chunks that were cut.
#[derive(Debug)]
pub struct Unit<'a> {
    /// The number of their file.
    pub file: usize,
    /// Their bytes, end to end.
    pub data: &'a [u8],
    /// Their lengths.
    pub lengths: Vec<u32>,
}

/// Chunks with their fingerprints.
#[derive(Debug)]
pub struct Fingerprinted<'a> {
    /// The chunks.
    pub unit: Unit<'a>,
    /// One for each.
    pub fingerprints: Vec<Fingerprint>,
}

/// Chunks that were looked up.
#[derive(Debug)]
pub struct LookedUp<'a> {
    /// The chunks.
    pub chunks: Fingerprinted<'a>,
    /// For each the number of the distinct chunk it is; a new one has the next number.
    pub numbers: Vec<u32>,
}

impl<'a> Unit<'a> {
    /// Its chunks, in order.
    pub fn chunks(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        let mut rest = self.data;
        self.lengths.iter().map(move |&length| {
            let (chunk, behind) = rest.split_at(length as usize);
            rest = behind;
            chunk
        })
    }
}

/// Puts lengths of chunks into units: `rest` begins with the first chunk, and loses all of them.
pub fn gather<'a>(
    file: usize,
    rest: &mut &'a [u8],
    lengths: &mut impl Iterator<Item = u32>,
    unit_bytes: usize,
) -> Option<Unit<'a>> {
    let mut taken = Vec::new();
    let mut bytes = 0;
    while bytes < unit_bytes {
        let Some(length) = lengths.next() else { break };
        taken.push(length);
        bytes += length as usize;
    }
    if taken.is_empty() {
        return None;
    }
    let (data, behind) = rest.split_at(bytes);
    *rest = behind;
    Some(Unit {
        file,
        data,
        lengths: taken,
    })
}

/// Stage 1: the chunks of a file, cut as they are asked for.
pub fn cut<'a>(
    chunker: &'a Chunker,
    file: usize,
    data: &'a [u8],
    unit_bytes: usize,
) -> impl Iterator<Item = Unit<'a>> {
    let mut lengths = chunker.chunks(data).map(|chunk| chunk.len() as u32);
    let mut rest = data;
    std::iter::from_fn(move || gather(file, &mut rest, &mut lengths, unit_bytes))
}

/// Stage 2.
pub fn fingerprint(kind: FingerprintKind, unit: Unit<'_>) -> Fingerprinted<'_> {
    let fingerprints = unit.chunks().map(|chunk| kind.of(chunk)).collect();
    Fingerprinted { unit, fingerprints }
}

/// Stage 3: all fingerprints, in memory (§3.1).
#[derive(Debug, Default)]
pub struct Index {
    numbers: HashMap<Fingerprint, u32, BuildHasherDefault<AsItIs>>,
}

impl Index {
    /// Looks chunks up; those that are new are known from now on.
    pub fn look_up<'a>(&mut self, chunks: Fingerprinted<'a>) -> LookedUp<'a> {
        let number = |fingerprint: &Fingerprint| {
            let next = self.numbers.len() as u32;
            *self.numbers.entry(*fingerprint).or_insert(next)
        };
        let numbers = chunks.fingerprints.iter().map(number).collect();
        LookedUp { chunks, numbers }
    }
}

/// Seconds that processors worked for the stages, over all threads of each: neither waiting nor other
/// programs count.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageSeconds {
    /// Stage 1, *map*.
    pub chunk: f64,
    /// Stage 1, *reduce*: segments joined, chunks put into units. 0 where there are no segments.
    pub join: f64,
    /// Stage 2.
    pub fingerprint: f64,
    /// Stage 3.
    pub index: f64,
    /// Stage 4: containers and recipes.
    pub write: f64,
}

impl StageSeconds {
    /// Of all stages.
    pub fn sum(&self) -> f64 {
        self.chunk + self.join + self.fingerprint + self.index + self.write
    }
}

/// Does work and adds what it took of this thread.
pub fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let before = thread_seconds();
    let result = work();
    *seconds += thread_seconds() - before;
    result
}

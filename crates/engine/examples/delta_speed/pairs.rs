//! Pairs of similar chunks: versions of data in, (base, target) out.
//!
//! The pairing is simple and generous, so that codecs are compared on pairs that no detector
//! chose: a chunk is known by the [`WORDS`] least hashes of its eight-byte words, and the chunk of
//! earlier versions with which it shares most of them, the latest of equals, is its base.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};

/// Sampled words of a chunk.
const WORDS: usize = 12;

/// Words that a base must share.
const WORDS_SHARED_MIN: usize = 4;

/// A chunk and what it is to be made of.
pub struct Pair<'a> {
    /// A chunk of an earlier version.
    pub base: &'a [u8],
    /// A chunk of a later one, not equal to any before.
    pub target: &'a [u8],
}

/// The bytes of every version, in the order of `paths`; of one directory alone, its entries.
pub fn versions(paths: Vec<PathBuf>) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let paths = match paths.as_slice() {
        [] => return Err("give files or directories, or a directory of such".into()),
        [only] if only.is_dir() => entries(only)?,
        _ => paths,
    };
    let paths = paths
        .iter()
        .filter(|path| path.extension().is_none_or(|it| it != "json"));
    paths
        .map(|path| {
            let mut bytes = Vec::new();
            read(path, &mut bytes)?;
            Ok(bytes)
        })
        .collect()
}

fn entries(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    let mut paths: Vec<_> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    if path.is_symlink() {
        return Ok(());
    }
    if path.is_dir() {
        return entries(path)?
            .iter()
            .try_for_each(|entry| read(entry, bytes));
    }
    bytes.extend_from_slice(&fs::read(path)?);
    Ok(())
}

/// Pairs of chunks of `versions` until their targets have `bytes_max` bytes.
pub fn pairs(versions: &[Vec<u8>], bytes_max: usize) -> Result<Vec<Pair<'_>>, Box<dyn Error>> {
    let parameters = Parameters {
        algorithm: Algorithm::Fold,
        min_bytes: 2 << 10,
        avg_bytes: 8 << 10,
        max_bytes: 64 << 10,
        ..Parameters::default()
    };
    let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed)?;
    let mut pairs = Vec::new();
    let mut chunks: Vec<&[u8]> = Vec::new();
    let mut numbers: HashMap<blake3::Hash, usize> = HashMap::new();
    // By sampled word, the latest chunk that has it.
    let mut sharing: HashMap<u64, usize> = HashMap::new();
    let mut left = bytes_max;
    for version in versions {
        let first = chunks.len();
        for range in chunker.chunks(version) {
            let chunk = &version[range];
            if let std::collections::hash_map::Entry::Vacant(entry) =
                numbers.entry(blake3::hash(chunk))
            {
                entry.insert(chunks.len());
                chunks.push(chunk);
            }
        }
        let new: Vec<_> = chunks[first..].iter().map(|chunk| words(chunk)).collect();
        for (chunk, words) in chunks[first..].iter().zip(&new) {
            if let Some(base) = most_shared(words, &sharing) {
                if chunk.len() > left {
                    return Ok(pairs);
                }
                left -= chunk.len();
                pairs.push(Pair {
                    base: chunks[base],
                    target: chunk,
                });
            }
        }
        for (number, words) in new.iter().enumerate() {
            sharing.extend(words.iter().map(|&word| (word, first + number)));
        }
    }
    Ok(pairs)
}

fn most_shared(words: &[u64], sharing: &HashMap<u64, usize>) -> Option<usize> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for chunk in words.iter().filter_map(|word| sharing.get(word)) {
        *counts.entry(*chunk).or_default() += 1;
    }
    let shared = counts
        .into_iter()
        .max_by_key(|&(chunk, count)| (count, chunk));
    shared
        .filter(|&(_, count)| count >= WORDS_SHARED_MIN)
        .map(|(chunk, _)| chunk)
}

/// The least hashes of the words at every place, each once.
fn words(chunk: &[u8]) -> Vec<u64> {
    let hash = |word: &[u8]| {
        let word = u64::from_le_bytes(*word.first_chunk().expect("windows are of eight"));
        let mixed = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let mut hashes: Vec<_> = chunk.windows(8).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.truncate(WORDS);
    hashes
}

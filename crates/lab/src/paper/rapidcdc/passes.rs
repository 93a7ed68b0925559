//! Passes of RapidCDC over files in memory: once with real fingerprints, which are kept; then as
//! often as wanted against the clock, taking them from there.
//!
//! *Chunking only* is what is timed, as in the paper: look-ups and size lists are inside of the time,
//! fingerprints are not, but for those that the fingerprint test made in vain, which no later stage
//! could use.
//!
//! Several threads, a file each, share one history. What that history gives with more threads than
//! there are is found by turns: so many files are gone through together on one thread, a chunk of each
//! after the other, and the next file begins where one ends.

use std::hint::black_box;
use std::time::Instant;

use chunking::rapid::{RapidChunk, RapidChunker, RapidCounts, RapidStream, SizeLists};

use crate::chunk::measuring::{FingerprintSet, fingerprint};
use crate::paper::dedup::{Dedup, Lengths};
use crate::paper::threads;

/// Buckets with a lock each.
const BUCKETS: usize = 256;
/// The paper's length of lists.
pub const LISTS: usize = 2;

/// A chunk whose fingerprint is known.
#[derive(Debug, Clone, Copy)]
struct Known {
    start: usize,
    length: u32,
    fingerprint: u128,
}

/// A way to chunk files, and what it gave.
pub struct Pass<'a> {
    rapid: RapidChunker,
    files: &'a [&'a [u8]],
    list_length: usize,
    turns: usize,
    known: Vec<Vec<Known>>,
    /// How it went.
    pub counts: RapidCounts,
    /// What was duplicate.
    pub dedup: Dedup,
}

impl<'a> Pass<'a> {
    /// Runs it with real fingerprints, one file after the other.
    pub fn record(rapid: RapidChunker, files: &'a [&'a [u8]], list_length: usize) -> Self {
        Self::record_in_turns(rapid, files, list_length, 1)
    }

    /// Runs it with real fingerprints, so many files together.
    pub fn record_in_turns(
        rapid: RapidChunker,
        files: &'a [&'a [u8]],
        list_length: usize,
        turns: usize,
    ) -> Self {
        let mut known = vec![Vec::new(); files.len()];
        let mut met = FingerprintSet::default();
        let mut dedup = Dedup::default();
        let counts = run(
            &rapid,
            files,
            list_length,
            turns,
            |_, _, chunk| fingerprint(chunk),
            |file, start, chunk| {
                let length = chunk.length as u32;
                known[file].push(Known {
                    start,
                    length,
                    fingerprint: chunk.fingerprint,
                });
                dedup.chunks += 1;
                dedup.bytes += u64::from(length);
                if met.insert(chunk.fingerprint) {
                    dedup.bytes_unique += u64::from(length);
                }
            },
        );
        Self {
            rapid,
            files,
            list_length,
            turns,
            known,
            counts,
            dedup,
        }
    }

    /// Runs it with the fingerprints that are known.
    pub fn replay(&self) {
        let mut cursors = vec![0; self.files.len()];
        let counts = run(
            &self.rapid,
            black_box(self.files),
            self.list_length,
            self.turns,
            |file, start, chunk| {
                find(&self.known[file], &mut cursors[file], start, chunk)
                    .unwrap_or_else(|| fingerprint(chunk))
            },
            |_, _, chunk| {
                black_box(chunk);
            },
        );
        black_box(counts);
    }

    /// Runs it on threads, a file each, and returns the seconds of the thread that was busy longest,
    /// without those for fingerprints that were not known.
    pub fn replay_on_threads(&self, count: usize) -> f64 {
        let history = SizeLists::<u128, LISTS>::new(BUCKETS);
        let parts = threads::run(count, 1, self.files.len(), |file| {
            let clock = Instant::now();
            let mut vain = 0.0;
            let (mut cursor, mut start) = (0, 0);
            let mut stream = RapidStream::new(&self.rapid, &history);
            let data = self.files[file];
            loop {
                let chunk = stream.next_chunk(black_box(&data[start..]), |chunk| {
                    find(&self.known[file], &mut cursor, start, chunk).unwrap_or_else(|| {
                        let clock = Instant::now();
                        let fingerprint = fingerprint(chunk);
                        vain += clock.elapsed().as_secs_f64();
                        fingerprint
                    })
                });
                match chunk {
                    Some(chunk) => start += chunk.length,
                    None => break,
                }
            }
            let seconds = clock.elapsed().as_secs_f64() - vain;
            (std::thread::current().id(), seconds)
        });
        let mut busy: Vec<(std::thread::ThreadId, f64)> = Vec::new();
        for (thread, seconds) in parts {
            match busy.iter_mut().find(|(other, _)| *other == thread) {
                Some((_, sum)) => *sum += seconds,
                None => busy.push((thread, seconds)),
            }
        }
        busy.into_iter()
            .map(|(_, seconds)| seconds)
            .fold(0.0, f64::max)
    }

    /// The lengths of its chunks.
    pub fn cuts(&self) -> Vec<Lengths> {
        let lengths = |known: &Vec<Known>| known.iter().map(|chunk| chunk.length).collect();
        self.known.iter().map(lengths).collect()
    }
}

/// The fingerprint of a chunk, if it is the one that is known to begin there.
fn find(known: &[Known], cursor: &mut usize, start: usize, chunk: &[u8]) -> Option<u128> {
    while known.get(*cursor)?.start < start {
        *cursor += 1;
    }
    let found = known[*cursor];
    let is_it = found.start == start && found.length as usize == chunk.len();
    is_it.then_some(found.fingerprint)
}

/// Goes through files with lists of a length; see [`run_with`].
fn run(
    rapid: &RapidChunker,
    files: &[&[u8]],
    list_length: usize,
    turns: usize,
    fingerprint: impl FnMut(usize, usize, &[u8]) -> u128,
    each: impl FnMut(usize, usize, RapidChunk<u128>),
) -> RapidCounts {
    match list_length {
        1 => run_with::<1>(rapid, files, turns, fingerprint, each),
        2 => run_with::<2>(rapid, files, turns, fingerprint, each),
        3 => run_with::<3>(rapid, files, turns, fingerprint, each),
        4 => run_with::<4>(rapid, files, turns, fingerprint, each),
        _ => run_with::<8>(rapid, files, turns, fingerprint, each),
    }
}

/// Goes through files, `turns` of them together: a chunk of each after the other. `fingerprint` gets
/// the file, where the chunk begins, and the chunk.
fn run_with<const LENGTH: usize>(
    rapid: &RapidChunker,
    files: &[&[u8]],
    turns: usize,
    mut fingerprint: impl FnMut(usize, usize, &[u8]) -> u128,
    mut each: impl FnMut(usize, usize, RapidChunk<u128>),
) -> RapidCounts {
    let history = SizeLists::<u128, LENGTH>::new(BUCKETS);
    let mut counts = RapidCounts::default();
    let mut next = turns.clamp(1, files.len().max(1));
    let mut open: Vec<_> = (0..next.min(files.len()))
        .map(|file| (file, 0, RapidStream::new(rapid, &history)))
        .collect();
    while !open.is_empty() {
        open.retain_mut(|(file, start, stream)| {
            let rest = &files[*file][*start..];
            match stream.next_chunk(rest, |chunk| fingerprint(*file, *start, chunk)) {
                Some(chunk) => {
                    let length = chunk.length;
                    each(*file, *start, chunk);
                    *start += length;
                    true
                }
                None => {
                    counts.add(stream.counts());
                    let is_more = next < files.len();
                    if is_more {
                        (*file, *start, *stream) = (next, 0, RapidStream::new(rapid, &history));
                        next += 1;
                    }
                    is_more
                }
            }
        });
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;
    use crate::dataset::edits::paper_parameters;
    use chunking::rapid::Criterion;
    use chunking::{Chunker, KeyMaterial};

    fn versions() -> Vec<Vec<u8>> {
        let base = random_bytes(1, 300_000);
        let version = |number: usize| {
            let mut version = base.clone();
            version.splice(90_000..90_000, vec![number as u8; 50 * number]);
            version
        };
        (0..4).map(version).collect()
    }

    #[test]
    fn every_way_to_run_it_gives_all_bytes() {
        let versions = versions();
        let files: Vec<&[u8]> = versions.iter().map(Vec::as_slice).collect();
        let chunker = Chunker::new(&paper_parameters(), KeyMaterial::Unkeyed).unwrap();
        for criterion in [
            Criterion::FastForward,
            Criterion::RollingWindowAndFingerprint,
        ] {
            for turns in [1, 2, 9] {
                let rapid = RapidChunker::new(chunker.clone(), criterion);
                let pass = Pass::record_in_turns(rapid, &files, LISTS, turns);
                let bytes: usize = files.iter().map(|file| file.len()).sum();
                assert_eq!(pass.dedup.bytes, bytes as u64);
                assert_eq!(pass.counts.chunks, pass.dedup.chunks);
                for (lengths, file) in pass.cuts().iter().zip(&files) {
                    assert_eq!(lengths.iter().sum::<u32>() as usize, file.len());
                }
                pass.replay();
                assert!(pass.replay_on_threads(2) > 0.0);
            }
        }
    }

    #[test]
    fn known_chunks_are_found_and_others_are_not() {
        let known = [(0, 5), (5, 7), (12, 1)].map(|(start, length)| Known {
            start,
            length,
            fingerprint: start as u128 + 100,
        });
        let mut cursor = 0;
        assert_eq!(find(&known, &mut cursor, 0, &[0; 4]), None);
        assert_eq!(find(&known, &mut cursor, 0, &[0; 5]), Some(100));
        assert_eq!(find(&known, &mut cursor, 12, &[0; 1]), Some(112));
        assert_eq!(find(&known, &mut cursor, 13, &[0; 1]), None);
    }
}

//! The measurement: every contestant cuts all of the data, several times, in memory.
//!
//! For each batch that lies in memory:
//! 1. every contestant cuts it once. This pass warms caches and pages and is not timed; its cuts
//!    are what sizes and dedup are computed of;
//! 2. the chunks of each contestant are fingerprinted (BLAKE3) and looked up in its index, both
//!    timed;
//! 3. rounds: in each, every contestant cuts the batch once more, timed. Contestants alternate, so
//!    that a machine that gets slower or faster meanwhile does so for all.
//!
//! The time of a contestant's n-th pass is that of its n-th pass over every batch, summed up.
//! One thread does it all.
//!
//! Memory: the batch; 4 bytes for each chunk of a batch; for each contestant 16 bytes for each
//! unique chunk of the whole set, in a hash set (about 20 to 40 with its spare room).

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use chunking::structure::Sections;

use super::contestant::{Contestant, Cutter};
use super::data::DataSet;
use super::loader::{Batch, Loader, Reading};
use super::memory::{Memory, available_bytes};
use super::sizes::SizeCounts;
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::progress::Progress;
use crate::units;

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Timed passes of each contestant.
    pub runs: usize,
    /// Bytes that lie in memory at a time.
    pub memory_bytes: u64,
    /// Whether chunks are fingerprinted and looked up: without, there is no dedup ratio.
    pub is_dedup_wanted: bool,
}

/// What was found out about one contestant.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Who.
    pub contestant: Contestant,
    /// The sizes of its chunks.
    pub sizes: SizeCounts,
    /// Bytes of distinct chunks.
    pub unique_bytes: u64,
    /// Distinct chunks.
    pub unique_chunks: u64,
    /// Seconds of each timed pass over all data.
    pub chunk_seconds: Vec<f64>,
    /// Seconds for the fingerprints of all chunks.
    pub fingerprint_seconds: f64,
    /// Seconds for looking all fingerprints up, and in.
    pub index_seconds: f64,
    /// Follows from all cut points, in order: equal for equal cuts.
    pub cuts_digest: [u8; 16],
}

/// What was found out.
#[derive(Debug)]
pub struct Measurement {
    /// One for each contestant, in their order.
    pub outcomes: Vec<Outcome>,
    /// About the data.
    pub reading: Reading,
    /// Bytes of memory that the data lay in.
    pub memory_bytes: u64,
    /// How many of them in huge pages; unknown where the system does not tell.
    pub huge_page_bytes: Option<u64>,
}

/// Measures all contestants on all of the data.
///
/// # Errors
/// When the memory is too small for the greatest chunk or can't be had, parameters are
/// impossible, nothing could be read, or somebody asked for a stop.
pub fn measure(
    contestants: &[Contestant],
    data: &DataSet,
    effort: &Effort,
    progress: &mut Progress,
) -> anyhow::Result<Measurement> {
    let mut lanes = contestants
        .iter()
        .map(Lane::new)
        .collect::<Result<Vec<_>, _>>()?;
    let mut memory = allocate(contestants, data, effort.memory_bytes)?;
    let passes = (effort.runs + 1 + usize::from(effort.is_dedup_wanted)) * lanes.len();
    progress.expect(data.bytes() * passes as u64);
    progress.advance(0, "reading");

    let mut loader = Loader::new(data);
    let mut carry = 0..0;
    while let Some(batch) = loader.next_batch(&mut memory, carry)? {
        let bytes = memory.bytes();
        for lane in &mut lanes {
            interrupt::check()?;
            lane.collect(&batch, bytes);
            progress.advance(batch.new_bytes, &lane.contestant.label);
            if effort.is_dedup_wanted {
                interrupt::check()?;
                lane.deduplicate(&batch, bytes);
                progress.advance(batch.new_bytes, &lane.contestant.label);
            }
        }
        for round in 0..effort.runs {
            for lane in &mut lanes {
                interrupt::check()?;
                lane.time(&batch, bytes, round);
                progress.advance(batch.new_bytes, &lane.contestant.label);
            }
        }
        carry = advance(&mut lanes, &batch);
        progress.advance(0, "reading");
    }
    if loader.reading.bytes == 0 {
        let message = "none of the files could be read";
        return Err(Failure::new(FAILED, message).into());
    }
    Ok(Measurement {
        outcomes: lanes.into_iter().map(Lane::finish).collect(),
        memory_bytes: memory.bytes().len() as u64,
        huge_page_bytes: memory.huge_page_bytes(),
        reading: loader.reading,
    })
}

/// Memory for the data, or for a batch of it.
fn allocate(
    contestants: &[Contestant],
    data: &DataSet,
    memory_bytes: u64,
) -> Result<Memory, Failure> {
    let sizes = contestants.iter().map(|contestant| contestant.sizes());
    let greatest = sizes.map(|[.., max]| u64::from(max)).max().unwrap_or(0);
    let aligned = data.bytes() + 64 * data.streams.len() as u64;
    let wanted = memory_bytes.min(aligned);
    refuse_impossible(wanted, aligned, greatest, available_bytes())?;
    let refuse = |error: std::io::Error| {
        let message = format!("cannot get {} of memory: {error}", units::bytes(wanted));
        Failure::new(FAILED, message).with_hint(HINT_LESS)
    };
    let length =
        usize::try_from(wanted).map_err(|_| refuse(std::io::ErrorKind::OutOfMemory.into()))?;
    Memory::new(length).map_err(refuse)
}

const HINT_LESS: &str = "give less with --memory, for example --memory 256M";

/// Refuses too little for the greatest chunk, and more than there is: every page is touched, and
/// a system that runs out ends programs without a word.
fn refuse_impossible(
    wanted: u64,
    data: u64,
    greatest: u64,
    available: Option<u64>,
) -> Result<(), Failure> {
    // A stream that does not fit goes on behind at most `greatest` bytes that are carried over.
    let least = 4 * greatest;
    if wanted < least.min(data) {
        return Err(Failure::usage(format!(
            "--memory {} is too little: with chunks of up to {}, at least {} are needed",
            units::short_bytes(wanted),
            units::short_bytes(greatest),
            units::short_bytes(least)
        )));
    }
    if available.is_some_and(|available| wanted > available / 10 * 9) {
        let message = format!(
            "{} of memory are wanted for data, and {} are available",
            units::bytes(wanted),
            units::bytes(available.unwrap_or(0))
        );
        return Err(Failure::new(FAILED, message).with_hint(HINT_LESS));
    }
    Ok(())
}

/// Where each contestant goes on in the next batch, and which bytes that must hold again.
fn advance(lanes: &mut [Lane<'_>], batch: &Batch) -> Range<usize> {
    let Some(last) = batch.segments.last().filter(|segment| !segment.is_end) else {
        for lane in lanes {
            lane.resume = 0;
            lane.sections = lane.cutter.sections();
        }
        return 0..0;
    };
    let least = lanes.iter().map(|lane| lane.consumed).min().unwrap_or(0);
    for lane in lanes {
        lane.resume = lane.consumed - least;
        lane.sections = lane.sections_behind.clone();
    }
    last.range.start + least..last.range.end
}

/// A contestant under measurement.
struct Lane<'a> {
    contestant: &'a Contestant,
    cutter: Cutter,
    /// Where in the first segment of the batch its next chunk begins.
    resume: usize,
    /// Those of the stream of that segment, where that chunk begins.
    sections: Sections,
    /// And where it goes on behind the batch.
    sections_behind: Sections,
    /// How much of the last segment of the batch it has cut, if the stream goes on after it.
    consumed: usize,
    /// The chunks of the batch.
    lengths: Vec<u32>,
    index: FingerprintSet,
    digest: blake3::Hasher,
    unique_bytes: u64,
    sizes: SizeCounts,
    passes: Vec<Duration>,
    fingerprinting: Duration,
    indexing: Duration,
}

impl<'a> Lane<'a> {
    fn new(contestant: &'a Contestant) -> Result<Self, Failure> {
        let cutter = contestant
            .cutter()
            .map_err(|error| Failure::usage(format!("{}: {error}", contestant.label)))?;
        Ok(Self {
            contestant,
            sections: cutter.sections(),
            sections_behind: cutter.sections(),
            cutter,
            resume: 0,
            consumed: 0,
            lengths: Vec::new(),
            index: HashSet::default(),
            digest: blake3::Hasher::new(),
            unique_bytes: 0,
            sizes: SizeCounts::default(),
            passes: Vec::new(),
            fingerprinting: Duration::ZERO,
            indexing: Duration::ZERO,
        })
    }

    /// Cuts the batch and takes note of all chunks.
    fn collect(&mut self, batch: &Batch, bytes: &[u8]) {
        self.lengths.clear();
        self.consumed = 0;
        let mut resume = self.resume;
        let mut sections = self.sections.clone();
        for segment in &batch.segments {
            let data = &bytes[segment.range.start + resume..segment.range.end];
            let mut left = data.len();
            let lengths = &mut self.lengths;
            let sizes = &mut self.sizes;
            let is_end = segment.is_end;
            let cut = self.cutter.cut(data, is_end, &mut sections, |length| {
                left -= length;
                lengths.push(length as u32);
                sizes.add(length, segment.is_end && left == 0);
            });
            self.consumed = resume + cut;
            resume = 0;
            if segment.is_end {
                sections = self.cutter.sections();
            }
        }
        self.sections_behind = sections;
        for length in &self.lengths {
            self.digest.update(&length.to_le_bytes());
        }
    }

    /// Fingerprints the chunks of the batch and looks them up.
    fn deduplicate(&mut self, batch: &Batch, bytes: &[u8]) {
        let mut fingerprints = Vec::with_capacity(self.lengths.len());
        let clock = Instant::now();
        let mut lengths = self.lengths.iter();
        let mut resume = self.resume;
        for segment in &batch.segments {
            let mut data = &bytes[segment.range.start + resume..segment.range.end];
            resume = 0;
            // In a segment that the stream goes on after, the chunks end before the bytes do.
            while !data.is_empty() {
                let Some(&length) = lengths.next() else { break };
                let (chunk, rest) = data.split_at(length as usize);
                fingerprints.push(fingerprint(chunk));
                data = rest;
            }
        }
        self.fingerprinting += clock.elapsed();
        let clock = Instant::now();
        for (fingerprint, &length) in fingerprints.iter().zip(&self.lengths) {
            if self.index.insert(*fingerprint) {
                self.unique_bytes += u64::from(length);
            }
        }
        self.indexing += clock.elapsed();
    }

    /// Cuts the batch against the clock.
    fn time(&mut self, batch: &Batch, bytes: &[u8], round: usize) {
        let clock = Instant::now();
        let mut resume = self.resume;
        let mut sections = self.sections.clone();
        let mut chunks = 0u64;
        for segment in &batch.segments {
            let data = black_box(&bytes[segment.range.start + resume..segment.range.end]);
            let is_end = segment.is_end;
            self.cutter.cut(data, is_end, &mut sections, |length| {
                black_box(length);
                chunks += 1;
            });
            resume = 0;
            if is_end {
                sections = self.cutter.sections();
            }
        }
        let elapsed = clock.elapsed();
        assert_eq!(
            chunks,
            self.lengths.len() as u64,
            "cuts differ from pass to pass"
        );
        if self.passes.len() <= round {
            self.passes.resize(round + 1, Duration::ZERO);
        }
        self.passes[round] += elapsed;
    }

    fn finish(self) -> Outcome {
        let [_, cuts_digest] = halves(self.digest.finalize().as_bytes());
        Outcome {
            contestant: self.contestant.clone(),
            unique_bytes: self.unique_bytes,
            unique_chunks: self.index.len() as u64,
            chunk_seconds: self.passes.iter().map(Duration::as_secs_f64).collect(),
            fingerprint_seconds: self.fingerprinting.as_secs_f64(),
            index_seconds: self.indexing.as_secs_f64(),
            sizes: self.sizes,
            cuts_digest: cuts_digest.to_le_bytes(),
        }
    }
}

/// The two halves of a BLAKE3 hash.
fn halves(hash: &[u8; 32]) -> [u128; 2] {
    let mut halves = [0; 2];
    for (index, byte) in hash.iter().enumerate() {
        halves[index / 16] |= u128::from(*byte) << (index % 16 * 8);
    }
    halves
}

/// What tells chunks apart: half of their BLAKE3 hash.
pub fn fingerprint(chunk: &[u8]) -> u128 {
    let [low, _] = halves(blake3::hash(chunk).as_bytes());
    low
}

/// Fingerprints that were met.
pub type FingerprintSet = HashSet<u128, BuildHasherDefault<FingerprintHasher>>;

/// Takes eight bytes of a fingerprint as they are: they are random already.
#[derive(Default)]
pub struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (index, byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(*byte) << (8 * index);
        }
    }

    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::{BuildHasherDefault, FingerprintHasher, halves, refuse_impossible};
    use std::hash::BuildHasher;

    #[test]
    fn memory_that_can_not_be_is_refused() {
        let whole = refuse_impossible(1000, 1000, 64 << 10, Some(10_000));
        assert!(
            whole.is_ok(),
            "data that fits whole needs no room for chunks"
        );
        let little = refuse_impossible(100_000, 1 << 30, 64 << 10, None).unwrap_err();
        assert!(little.message.contains("at least 256K"), "{little}");
        let much = refuse_impossible(1 << 30, 1 << 40, 64 << 10, Some(1 << 30)).unwrap_err();
        assert!(much.message.contains("1.0 GiB are available"), "{much}");
        assert!(refuse_impossible(1 << 30, 1 << 40, 64 << 10, None).is_ok());
    }

    #[test]
    fn fingerprints_are_halves_of_hashes_and_hash_to_themselves() {
        let mut hash = [0; 32];
        hash[0] = 7;
        hash[16] = 9;
        assert_eq!(halves(&hash), [7, 9]);
        let build = BuildHasherDefault::<FingerprintHasher>::default();
        assert_eq!(build.hash_one(5u128), 5);
    }
}

//! Streams of as many chunks as are asked for, made as they are read: nothing of them is kept.
//!
//! A stream consists of records of [`RECORD_BYTES`], each another one; a repository that cuts every
//! [`RECORD_BYTES`] has a chunk for each. The second version has the pieces of the first in another
//! order, and every hundredth record is new: a stream of many short runs.

use std::io::{self, Read};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 64;

/// Records that stay together in the second version.
const PIECE_RECORDS: u64 = 10_000;

/// One record of so many is new in the second version.
const NEW_EVERY: u64 = 100;

/// Which of two streams that have most of their records in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Records in the order of their numbers.
    First,
    /// Pieces of it in another order, with new records.
    Second,
}

/// A stream, from its start to its end.
#[derive(Debug)]
pub struct RecordStream {
    version: Version,
    records: u64,
    next: u64,
    /// Pieces are taken in steps of so many.
    step: u64,
    buffer: Vec<u8>,
    taken: usize,
}

impl RecordStream {
    /// A stream of so many records.
    pub fn new(version: Version, records: u64) -> Self {
        Self {
            version,
            records,
            next: 0,
            step: step_of(records / PIECE_RECORDS),
            buffer: Vec::new(),
            taken: 0,
        }
    }

    /// Its length.
    pub fn length(&self) -> u64 {
        self.records * RECORD_BYTES as u64
    }

    /// The number of the record at a place of the stream.
    fn number_at(&self, place: u64) -> u64 {
        if self.version == Version::First {
            return place;
        }
        if place % NEW_EVERY == NEW_EVERY - 1 {
            return self.records + place;
        }
        let pieces = self.records / PIECE_RECORDS;
        let piece = place / PIECE_RECORDS;
        if piece >= pieces {
            return place; // What is left over stays at the end.
        }
        piece * self.step % pieces * PIECE_RECORDS + place % PIECE_RECORDS
    }

    fn fill(&mut self) {
        self.buffer.clear();
        self.taken = 0;
        let end = self.records.min(self.next + 4096);
        for place in self.next..end {
            put_record(self.number_at(place), &mut self.buffer);
        }
        self.next = end;
    }
}

impl Read for RecordStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.buffer.len() {
            self.fill();
        }
        let count = out.len().min(self.buffer.len() - self.taken);
        out[..count].copy_from_slice(&self.buffer[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

/// Appends record `number`.
pub fn put_record(number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&mixed(number).to_le_bytes());
    let text = format!("record {number:012}, and what else is in it: the same");
    out.extend_from_slice(text.as_bytes());
    out.resize(start + RECORD_BYTES, b'.');
}

/// A step that leads through all pieces: near the golden section, and without a common divisor.
fn step_of(pieces: u64) -> u64 {
    let near = (pieces as f64 * 0.618) as u64;
    (near.max(1)..)
        .find(|&step| common_divisor(step, pieces.max(1)) == 1)
        .unwrap_or(1)
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// A number that looks random (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Is what can be read from `actual` the same as the stream?
///
/// # Errors
/// When it can't be read, or differs: where.
pub fn compare(mut expected: RecordStream, actual: &mut dyn Read) -> anyhow::Result<()> {
    let mut position = 0u64;
    let mut both = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let count = actual.read(&mut both.0)?;
        let wanted = &mut both.1[..count];
        if count == 0 {
            let whole = expected.length();
            anyhow::ensure!(
                position == whole,
                "it ends after {position} of {whole} bytes"
            );
            return Ok(());
        }
        let is_longer = expected.read_exact(wanted).is_err();
        let is_same = !is_longer && wanted == &both.0[..count];
        anyhow::ensure!(
            is_same,
            "it differs after {position} bytes or a little later"
        );
        position += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn records(version: Version, count: u64) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut stream = RecordStream::new(version, count);
        stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, stream.length());
        bytes.chunks(RECORD_BYTES).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn every_record_is_another_one_and_most_are_in_both_versions() {
        for count in [1, 99, 35_000, 100_000] {
            let first: HashSet<_> = records(Version::First, count).into_iter().collect();
            let second: HashSet<_> = records(Version::Second, count).into_iter().collect();
            assert_eq!(first.len() as u64, count);
            assert_eq!(second.len() as u64, count);
            let new = second.difference(&first).count() as u64;
            assert_eq!(new, count / NEW_EVERY);
        }
        let second = records(Version::Second, 100_000);
        assert_ne!(second[..1000], records(Version::First, 100_000)[..1000]);
    }

    #[test]
    fn differences_are_found() {
        let mut bytes = records(Version::Second, 30_000).concat();
        let compare_with =
            |bytes: &[u8]| compare(RecordStream::new(Version::Second, 30_000), &mut &bytes[..]);
        compare_with(&bytes).unwrap();
        assert!(compare_with(&bytes[..bytes.len() - 1]).is_err());
        bytes.push(0);
        assert!(compare_with(&bytes).is_err());
        bytes.pop();
        bytes[1_000_000] ^= 1;
        assert!(compare_with(&bytes).is_err());
    }
}

//! Streams into memory, as many at a time as fit.
//!
//! Enters: a [`DataSet`] and memory. Leaves: batches. A batch is a list of [`Segment`]s: whole
//! streams, each beginning at a cache line, or a piece of a stream that is greater than the
//! memory. Such a stream goes on in the next batch, in front of which its last bytes are repeated:
//! those that some contestant has not cut yet, at most the greatest `max` of all contestants.
//!
//! A file that can't be opened, or fails or ends early, is named in a [`Notice`]; what was read
//! of it counts.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

use super::data::{DataSet, Notice, Source, Stream, fill_random, name_of};
use super::memory::Memory;
use crate::failure::Failure;
use crate::interrupt;

/// Where streams begin in memory.
const LINE: usize = 64;
/// Interruptions are looked for this often while reading.
const READ_BYTES: usize = 16 << 20;

/// A stream, or a piece of one, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it lies.
    pub range: Range<usize>,
    /// Whether the stream ends with it.
    pub is_end: bool,
}

/// What lies in memory at a time. Only its first segment may continue a stream, only its last
/// may be continued.
#[derive(Debug, Default)]
pub struct Batch {
    /// What it holds.
    pub segments: Vec<Segment>,
    /// Bytes that were not in the batch before.
    pub new_bytes: u64,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Reading {
    /// Bytes in all batches, each counted once.
    pub bytes: u64,
    /// Streams of which there was anything.
    pub streams: u64,
    /// Files that could not be read to their end.
    pub failed: u64,
    /// Files that were longer or shorter than when they were found.
    pub changed: u64,
    /// Batches.
    pub batches: u64,
    /// Time for reading.
    pub seconds: Duration,
    /// What happened to files.
    pub notices: Vec<Notice>,
}

/// Reads batches one after another.
pub struct Loader<'a> {
    streams: &'a [Stream],
    /// The stream that is read next, or now.
    next: usize,
    open: Option<Open>,
    /// What was read so far.
    pub reading: Reading,
}

/// The stream that is being read.
struct Open {
    input: Input,
    /// Bytes read of it.
    offset: u64,
}

enum Input {
    File(File),
    Random(u64),
}

impl Input {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Random(seed) => {
                fill_random(*seed, offset, out);
                Ok(out.len())
            }
            Self::File(file) => loop {
                match file.read(out) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    outcome => return outcome,
                }
            },
        }
    }

    /// Whether a file goes on behind the bytes that it was expected to have.
    fn has_more(&mut self) -> bool {
        match self {
            Self::Random(_) => false,
            Self::File(file) => matches!(file.read(&mut [0]), Ok(1)),
        }
    }
}

impl<'a> Loader<'a> {
    /// A loader of all streams of a data set.
    pub fn new(data: &'a DataSet) -> Self {
        Self {
            streams: &data.streams,
            next: 0,
            open: None,
            reading: Reading::default(),
        }
    }

    /// The next batch; `None` when there is no more. `carry` says which bytes of the last segment
    /// of the batch before come again: those of a stream that it did not end.
    ///
    /// # Errors
    /// When somebody asked for a stop.
    pub fn next_batch(
        &mut self,
        memory: &mut Memory,
        carry: Range<usize>,
    ) -> Result<Option<Batch>, Failure> {
        let clock = Instant::now();
        let room = memory.bytes_mut();
        let carried = carry.len();
        room.copy_within(carry, 0);
        let mut batch = Batch::default();
        let mut start = 0;
        let mut filled = carried;
        while self.next < self.streams.len() {
            if start > 0 && !self.fits(room.len().saturating_sub(start)) {
                break;
            }
            let (end, is_end) = self.read_stream(room, filled)?;
            batch.new_bytes += (end - filled) as u64;
            if end > start {
                let range = start..end;
                batch.segments.push(Segment { range, is_end });
            }
            if !is_end {
                break;
            }
            start = end.next_multiple_of(LINE);
            filled = start;
        }
        self.reading.seconds += clock.elapsed();
        self.reading.bytes += batch.new_bytes;
        if batch.segments.is_empty() {
            return Ok(None);
        }
        self.reading.batches += 1;
        Ok(Some(batch))
    }

    /// Whether the next stream fits into what is left. One that would fit nowhere begins at the
    /// front of the memory, too.
    fn fits(&self, left: usize) -> bool {
        self.streams[self.next].bytes <= left as u64
    }

    /// Reads on in the current stream, into `room[start..]`. Returns where its bytes end, and
    /// whether it is at its end; then the next one is current.
    fn read_stream(&mut self, room: &mut [u8], start: usize) -> Result<(usize, bool), Failure> {
        let stream = &self.streams[self.next];
        let mut open = match self.open.take() {
            Some(open) => open,
            None => match open_input(&stream.source) {
                Ok(input) => Open { input, offset: 0 },
                Err(error) => {
                    self.fail(&error);
                    return Ok((start, true));
                }
            },
        };
        let mut end = start;
        while open.offset < stream.bytes {
            interrupt::check()?;
            if end == room.len() {
                self.open = Some(open);
                return Ok((end, false));
            }
            let left = usize::try_from(stream.bytes - open.offset).unwrap_or(usize::MAX);
            let wanted = left.min(room.len() - end).min(READ_BYTES);
            match open.input.read(open.offset, &mut room[end..end + wanted]) {
                Ok(0) => {
                    self.changed(&format!(
                        "became shorter while it was read: {} bytes of {}",
                        open.offset, stream.bytes
                    ));
                    break;
                }
                Ok(length) => {
                    end += length;
                    open.offset += length as u64;
                }
                Err(error) => {
                    self.fail(&error);
                    return Ok((end, true));
                }
            }
        }
        let is_whole = open.offset == stream.bytes && !stream.is_sample;
        if is_whole && open.input.has_more() {
            self.changed("became longer while it was read: what was added is left out");
        }
        self.reading.streams += u64::from(open.offset > 0);
        self.next += 1;
        Ok((end, true))
    }

    /// The current stream can't be read on.
    fn fail(&mut self, error: &io::Error) {
        self.reading.failed += 1;
        self.notice(format!("cannot be read: {error}"), true);
        self.next += 1;
    }

    fn changed(&mut self, what: &str) {
        self.reading.changed += 1;
        self.notice(what.to_owned(), false);
    }

    fn notice(&mut self, message: String, is_error: bool) {
        let path = name_of(&self.streams[self.next].source);
        self.reading.notices.push(Notice {
            path,
            message,
            is_error,
        });
    }
}

fn open_input(source: &Source) -> io::Result<Input> {
    Ok(match source {
        Source::File(path) => Input::File(File::open(path)?),
        Source::Random(seed) => Input::Random(*seed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;

    fn set(sizes: &[u64]) -> DataSet {
        let streams = sizes.iter().enumerate();
        DataSet {
            streams: streams
                .map(|(seed, &bytes)| DataSet::random(seed as u64, bytes).streams.remove(0))
                .collect(),
            ..DataSet::default()
        }
    }

    #[test]
    fn batches_hold_every_stream_once_whatever_the_memory() {
        let sizes = [100, 5000, 64, 1, 20_000, 3000, 10];
        for room in [1024, 4096, 8000, 1 << 20] {
            let data = set(&sizes);
            let mut memory = Memory::new(room).unwrap();
            let mut loader = Loader::new(&data);
            let mut streams: Vec<Vec<u8>> = vec![Vec::new()];
            // What a contestant with max = 300 would leave over.
            let mut carry = 0..0;
            while let Some(batch) = loader.next_batch(&mut memory, carry.clone()).unwrap() {
                let mut carried = carry.len();
                carry = 0..0;
                for segment in &batch.segments {
                    let bytes = &memory.bytes()[segment.range.clone()];
                    let stream = streams.last_mut().unwrap();
                    stream.extend_from_slice(&bytes[carried..]);
                    carried = 0;
                    if segment.is_end {
                        streams.push(Vec::new());
                    } else {
                        let end = segment.range.end;
                        carry = end.saturating_sub(300).max(segment.range.start)..end;
                    }
                }
            }
            assert_eq!(streams.pop(), Some(Vec::new()));
            let expected: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(seed, &bytes)| random_bytes(seed as u64, bytes as usize))
                .collect();
            assert_eq!(streams, expected, "{room}");
            assert_eq!(loader.reading.bytes, data.bytes());
            assert_eq!(loader.reading.streams, 7);
        }
    }

    #[test]
    fn files_that_vanish_or_change_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["gone", "longer", "same", "shorter"] {
            std::fs::write(path(name), [1; 1000]).unwrap();
        }
        let data = DataSet::of_paths(&[directory.path().to_owned()]).unwrap();
        std::fs::remove_file(path("gone")).unwrap();
        std::fs::write(path("longer"), [1; 1001]).unwrap();
        std::fs::write(path("shorter"), [1; 10]).unwrap();
        let mut memory = Memory::new(1 << 16).unwrap();
        let mut loader = Loader::new(&data);
        let batch = loader.next_batch(&mut memory, 0..0).unwrap().unwrap();
        let lengths: Vec<_> = batch.segments.iter().map(|s| s.range.len()).collect();
        assert_eq!(lengths, [1000, 1000, 10]);
        let reading = loader.reading;
        assert_eq!((reading.failed, reading.changed), (1, 2));
        let named: Vec<_> = reading.notices.iter().map(|n| n.path.clone()).collect();
        assert_eq!(named, ["gone", "longer", "shorter"].map(path));
        let errors: Vec<_> = reading.notices.iter().map(|n| n.is_error).collect();
        assert_eq!(errors, [true, false, false]);
    }
}

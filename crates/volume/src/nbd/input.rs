//! What a client sends, read many requests at once.
//!
//! A client that is busy sends again within microseconds. To sleep until then costs more than to
//! look a few times, on both sides: who sends to a sleeper has to wake it. So a thread looks
//! [`LOOKS`] times, some 10 µs, before it sleeps.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use super::endpoint::Stream;

/// How often to look for input before sleeping.
const LOOKS: u32 = 32;

/// Why a connection ends before the client said so.
#[derive(Debug)]
pub(super) enum Broken {
    /// The client went, or its connection failed.
    Gone,
    /// It did what the protocol does not allow, or stood still where it may not.
    Violation,
    /// The server ends.
    Ending,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Violation,
            _ => Self::Gone,
        }
    }
}

/// A buffer between a stream and who takes from it.
///
/// Invariant: `start <= end <= buffer.len()`; what lies between has come and was not taken.
pub(super) struct Input<'a> {
    stream: &'a Stream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<'a> Input<'a> {
    pub fn new(stream: &'a Stream, capacity_bytes: usize) -> Self {
        Self {
            stream,
            buffer: vec![0; capacity_bytes].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    /// Most bytes that can be taken at once.
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes that can be taken now.
    pub fn available_bytes(&self) -> usize {
        self.end - self.start
    }

    /// Reads once, which may wait, so that in the end `count` bytes lie together.
    pub fn fill(&mut self, count: usize) -> Result<(), Broken> {
        debug_assert!(count <= self.buffer.len());
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start + count > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let free = &mut self.buffer[self.end..];
        for _ in 0..LOOKS {
            if let Some(count) = self.stream.read_now(free)? {
                self.end += at_least_one(count)?;
                return Ok(());
            }
            std::hint::spin_loop();
        }
        self.end += read(self.stream, free)?;
        Ok(())
    }

    /// The next bytes, which must be there.
    pub fn take(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        debug_assert!(self.start <= self.end);
        &self.buffer[start..self.start]
    }

    /// The next bytes, waiting for them until a deadline.
    pub fn take_before(&mut self, count: usize, deadline: Instant) -> Result<&[u8], Broken> {
        while self.available_bytes() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Broken::Violation);
            }
            self.stream.set_timeout(Some(left))?;
            self.fill(count)?;
        }
        Ok(self.take(count))
    }

    /// Throws bytes away as they come, until a deadline.
    pub fn skip_before(&mut self, mut count: u64, deadline: Instant) -> Result<(), Broken> {
        while count > 0 {
            let piece = count.min(self.capacity_bytes() as u64);
            self.take_before(piece as usize, deadline)?;
            count -= piece;
        }
        Ok(())
    }

    /// Fills a large buffer; a client that stands still for `stall` is dropped.
    pub fn take_into(&mut self, large: &mut [u8], stall: Duration) -> Result<(), Broken> {
        let here = self.available_bytes().min(large.len());
        let (front, mut rest) = large.split_at_mut(here);
        front.copy_from_slice(self.take(here));
        self.stream.set_timeout(Some(stall))?;
        while !rest.is_empty() {
            let count = read(self.stream, rest)?;
            rest = &mut rest[count..];
        }
        self.stream.set_timeout(None)?;
        Ok(())
    }

    /// Throws bytes away as they come.
    pub fn skip(&mut self, mut count: u64) -> Result<(), Broken> {
        loop {
            let here = (self.available_bytes() as u64).min(count);
            self.take(here as usize);
            count -= here;
            if count == 0 {
                return Ok(());
            }
            self.fill(1)?;
        }
    }
}

/// Reads once, at least a byte.
fn read(mut stream: &Stream, buffer: &mut [u8]) -> Result<usize, Broken> {
    loop {
        match stream.read(buffer) {
            Ok(count) => return at_least_one(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A client that sends no more has gone.
fn at_least_one(count: usize) -> Result<usize, Broken> {
    if count == 0 {
        return Err(Broken::Gone);
    }
    Ok(count)
}

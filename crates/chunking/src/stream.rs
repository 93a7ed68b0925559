//! Chunks of a reader, with bounded memory.
//!
//! Enters: anything that reads. Leaves: its chunks in order, lent one at a time. The cuts are
//! those of the whole stream in memory, whatever sizes the reader hands out, for a chunk is cut
//! only when `max_bytes` bytes are here or the stream has ended.
//!
//! Memory: one buffer of 2 × `max_bytes` + 64 KiB, never more. What is left of it moves to the
//! front when the rest is too small to read into: always fewer bytes than were handed out since
//! the last move, so a byte is moved once at most on average.

use crate::Chunker;
use crate::two_stage::Ahead;
use std::fmt;
use std::io::{self, Read};

/// Reads are offered at least this much room.
const READ_BYTES: usize = 64 << 10;

/// Cuts a reader into chunks; see [`StreamChunker::next_chunk`].
pub struct StreamChunker<R> {
    chunker: Chunker,
    reader: R,
    /// Of this, `buffer[start..end]` was read and not handed out.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The reader said that it has no more.
    ended: bool,
    /// Where the next chunk begins in the stream.
    offset: u64,
    /// Marks of bytes behind it.
    ahead: Option<Ahead>,
}

impl<R: Read> StreamChunker<R> {
    /// A stream of the chunks of `reader`, read from where it stands.
    pub fn new(chunker: Chunker, reader: R) -> Self {
        let max_bytes = chunker.parameters().max_bytes as usize;
        Self {
            chunker,
            reader,
            buffer: vec![0; 2 * max_bytes + READ_BYTES],
            start: 0,
            end: 0,
            ended: false,
            offset: 0,
            ahead: None,
        }
    }

    /// The same, for a reader that stands `offset` bytes into a larger stream, at one of its cuts:
    /// [`offset`](Self::offset) counts from there.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// The next chunk, lent until the next call; `None` at the end of the stream, and from then on.
    ///
    /// Blocks in the reader. Reads that were interrupted are tried again.
    ///
    /// # Errors
    /// What the reader fails with. No byte is lost: the next call goes on where the reader does.
    pub fn next_chunk(&mut self) -> io::Result<Option<&[u8]>> {
        self.fill()?;
        let chunk_start = self.start;
        let rest = &self.buffer[chunk_start..self.end];
        let length = self.chunker.cut_next(&mut self.ahead, rest);
        if length == 0 {
            return Ok(None);
        }
        self.start += length;
        self.offset += length as u64;
        Ok(Some(&self.buffer[chunk_start..self.start]))
    }

    /// Where in the stream the next chunk begins: how many bytes were handed out, and those before
    /// them ([`at_offset`](Self::at_offset)).
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The memory it holds, in bytes, which does not change.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// The reader, which may stand behind what was handed out.
    #[must_use]
    pub fn into_inner(self) -> R {
        self.reader
    }

    /// Begins another stream, at offset 0, in the same memory and gives the reader of the old one back.
    ///
    /// Bytes of the old stream that were read and not handed out are dropped.
    pub fn restart(&mut self, reader: R) -> R {
        (self.start, self.end, self.ended, self.offset) = (0, 0, false, 0);
        if let Some(ahead) = &mut self.ahead {
            ahead.clear();
        }
        std::mem::replace(&mut self.reader, reader)
    }

    /// Reads until `max_bytes` bytes are here or the stream has ended.
    fn fill(&mut self) -> io::Result<()> {
        let max_bytes = self.chunker.parameters().max_bytes as usize;
        while !self.ended && self.end - self.start < max_bytes {
            let missing = max_bytes - (self.end - self.start);
            if self.buffer.len() - self.end < missing.max(READ_BYTES) || self.start == self.end {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let room = &mut self.buffer[self.end..];
            match self.reader.read(room) {
                Ok(0) => self.ended = true,
                Ok(length) if length <= room.len() => self.end += length,
                Ok(_) => {
                    return Err(io::Error::other(
                        "the reader claims more than it was given room for",
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Never shows the key or the data.
impl<R> fmt::Debug for StreamChunker<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamChunker")
            .field("chunker", &self.chunker)
            .field("offset", &self.offset)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

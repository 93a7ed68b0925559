//! What a client is sent, written many replies at once.

use std::io::Write;
use std::time::Duration;

use super::BUFFER_BYTES;
use super::endpoint::Stream;
use super::input::Broken;
use super::protocol::{self, CHUNK_MAGIC, Errno, SIMPLE_REPLY_MAGIC, chunk};

/// Most bytes of a message to people.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Room that a reply without data takes behind its header, at most.
pub(super) const ERROR_BYTES_MAX: usize = 6 + MESSAGE_BYTES_MAX;

/// Room that the header of any reply takes, at most.
pub(super) const HEADER_BYTES_MAX: usize = 64;

/// Replies on their way to a client. They go when [`Output::send`] says so, or when room is wanted
/// that is not there.
pub(super) struct Output<'a> {
    stream: &'a Stream,
    buffer: Vec<u8>,
}

impl<'a> Output<'a> {
    pub fn new(stream: &'a Stream) -> Self {
        Self {
            stream,
            buffer: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    /// Writes what there is, which waits for the client to take it.
    pub fn send(&mut self) -> Result<(), Broken> {
        if !self.buffer.is_empty() {
            self.stream.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Makes room for a header and so many bytes, at most [`BUFFER_BYTES`] together.
    pub fn reserve(&mut self, payload_bytes: usize) -> Result<(), Broken> {
        let wanted = HEADER_BYTES_MAX + payload_bytes;
        debug_assert!(wanted <= BUFFER_BYTES);
        if self.buffer.len() + wanted > BUFFER_BYTES {
            self.send()?;
        }
        Ok(())
    }

    /// Writes what there is and then a large buffer, past this one. A client that stands still
    /// for `stall` is dropped.
    pub fn send_large(&mut self, payload: &[u8], stall: Duration) -> Result<(), Broken> {
        self.stream.set_timeout(Some(stall))?;
        self.send()?;
        self.stream.write_all(payload)?;
        self.stream.set_timeout(None)?;
        Ok(())
    }

    /// Has `fill` write a payload of so many bytes; when it fails, nothing is added.
    pub fn payload<E>(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.buffer.len();
        self.buffer.resize(start + bytes, 0);
        fill(&mut self.buffer[start..]).inspect_err(|_| self.buffer.truncate(start))
    }

    /// Where the next byte goes, for [`Output::rewind`].
    pub fn position(&self) -> usize {
        self.buffer.len()
    }

    /// Takes back what was added since a position, of which nothing may have been sent.
    pub fn rewind(&mut self, position: usize) {
        self.buffer.truncate(position);
    }

    pub fn u16(&mut self, value: u16) {
        self.buffer.extend_from_slice(&value.to_be_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.buffer.extend_from_slice(&value.to_be_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.buffer.extend_from_slice(&value.to_be_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// A reply to an option.
    pub fn option_reply(&mut self, option: u32, reply: u32, parts: &[&[u8]]) {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.u64(protocol::OPTION_REPLY_MAGIC);
        self.u32(option);
        self.u32(reply);
        self.u32(bytes as u32);
        for part in parts {
            self.bytes(part);
        }
    }

    /// A reply without payload, or the header of one whose payload follows.
    pub fn simple(&mut self, cookie: u64, error: Option<Errno>) {
        self.u32(SIMPLE_REPLY_MAGIC);
        self.u32(error.map_or(0, |errno| errno as u32));
        self.u64(cookie);
    }

    /// The header of a chunk, whose payload follows.
    pub fn chunk(&mut self, cookie: u64, kind: u16, is_last: bool, payload_bytes: usize) {
        self.u32(CHUNK_MAGIC);
        self.u16(if is_last { chunk::DONE } else { 0 });
        self.u16(kind);
        self.u64(cookie);
        self.u32(payload_bytes as u32);
    }

    /// A last chunk that says what went wrong.
    pub fn error_chunk(&mut self, cookie: u64, errno: Errno, message: &str) {
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        let message = &message.as_bytes()[..end];
        self.chunk(cookie, chunk::ERROR, true, 6 + message.len());
        self.u32(errno as u32);
        self.u16(message.len() as u16);
        self.bytes(message);
    }
}

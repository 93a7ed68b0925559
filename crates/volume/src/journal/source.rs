//! Reads of a lookup: aligned, within the disk, bounded, and remembered.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use super::{BLOCK_BYTES, JournalError};
use crate::device::DeviceError;

/// Most bytes that a lookup reads. It covers a journal of 16 GiB in a map of 4 KiB blocks, or of
/// 1 GiB in one of 1 KiB blocks; extents need far less.
const LOOKUP_BYTES_MAX: u64 = 16 << 20;

/// Bytes that an answer rests on. They lie within one block of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Witness {
    offset: u64,
    length_bytes: u32,
    digest: u64,
}

impl Witness {
    /// The block of the disk that they lie in.
    pub fn block(self) -> u64 {
        self.offset / BLOCK_BYTES
    }

    /// Whether they are the same in these bytes of their block, which may be cut short.
    pub fn holds(self, block: &[u8]) -> bool {
        let start = (self.offset % BLOCK_BYTES) as usize;
        let bytes = block.get(start..start + self.length_bytes as usize);
        bytes.is_some_and(|bytes| digest(bytes) == self.digest)
    }
}

/// It tells a change from none. Who makes two trees of one digest misleads nobody but himself, about
/// where his own journal is.
fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A disk that a lookup reads.
pub struct Source<R> {
    read: R,
    size_bytes: u64,
    bytes_left: u64,
    cached: Option<(u64, Vec<u8>)>,
    witnesses: Vec<Witness>,
}

impl<R: FnMut(u64, &mut [u8]) -> Result<(), DeviceError>> Source<R> {
    /// `read` fills a buffer from an offset; it is asked for whole blocks, or what the disk has of
    /// the last one.
    pub fn new(read: R, size_bytes: u64) -> Self {
        Self {
            read,
            size_bytes,
            bytes_left: LOOKUP_BYTES_MAX,
            cached: None,
            witnesses: Vec::new(),
        }
    }

    /// Bytes of the disk.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Bytes at an offset, at most 64 KiB.
    ///
    /// # Errors
    /// When they are not on the disk, can't be read, or too many have been read before.
    pub fn bytes(&mut self, offset: u64, length_bytes: usize) -> Result<Vec<u8>, JournalError> {
        let end = offset.checked_add(length_bytes as u64);
        let Some(end) = end.filter(|end| *end <= self.size_bytes) else {
            let what = "is the end of the disk, and more is referred to";
            let offset = self.size_bytes;
            return Err(JournalError::Damaged { offset, what });
        };
        let from = offset - offset % BLOCK_BYTES;
        let whole = end.checked_next_multiple_of(BLOCK_BYTES);
        let cover = whole.unwrap_or(end).min(self.size_bytes);
        let cover_bytes = (cover - from) as usize;
        let (start, length) = ((offset - from) as usize, length_bytes);
        // What is cached counts, too: a tree may refer to one block a million times.
        let Some(bytes_left) = self.bytes_left.checked_sub(cover_bytes as u64) else {
            return Err(JournalError::Unsupported("a tree of so many blocks"));
        };
        self.bytes_left = bytes_left;
        if let Some((at, bytes)) = &self.cached
            && *at == from
            && bytes.len() >= cover_bytes
        {
            return Ok(bytes[start..start + length].to_vec());
        }
        let mut bytes = vec![0; cover_bytes];
        (self.read)(from, &mut bytes)?;
        let wanted = bytes[start..start + length].to_vec();
        self.cached = Some((from, bytes));
        Ok(wanted)
    }

    /// Notes that the answer rests on these bytes.
    pub fn witness(&mut self, offset: u64, bytes: &[u8]) {
        let (mut offset, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let here = (BLOCK_BYTES - offset % BLOCK_BYTES) as usize;
            let (piece, after) = rest.split_at(here.min(rest.len()));
            self.witnesses.push(Witness {
                offset,
                length_bytes: piece.len() as u32,
                digest: digest(piece),
            });
            (offset, rest) = (offset + piece.len() as u64, after);
        }
    }

    /// Bytes at an offset, all of which the answer rests on.
    ///
    /// # Errors
    /// Like [`Source::bytes`].
    pub fn witnessed(&mut self, offset: u64, length_bytes: usize) -> Result<Vec<u8>, JournalError> {
        let bytes = self.bytes(offset, length_bytes)?;
        self.witness(offset, &bytes);
        Ok(bytes)
    }

    /// What the answer rests on, in the order of the disk.
    pub fn into_witnesses(mut self) -> Vec<Witness> {
        self.witnesses.sort_unstable();
        self.witnesses.dedup();
        self.witnesses
    }
}

//! A store in memory, for tests and experiments. Pages that were never written take none.

use std::collections::HashMap;
use std::io;
use std::sync::{PoisonError, RwLock};

use super::Backing;
use crate::address::BLOCK_BYTES;

type Blocks = HashMap<u64, Box<[u8; BLOCK_BYTES]>>;

/// Bytes in memory.
#[derive(Debug)]
pub struct MemoryBacking {
    size_bytes: u64,
    blocks: RwLock<Blocks>,
}

impl MemoryBacking {
    /// `size_bytes` of zeros.
    #[must_use]
    pub fn new(size_bytes: u64) -> Self {
        Self {
            size_bytes,
            blocks: RwLock::default(),
        }
    }

    fn check(&self, offset: u64, length: usize) -> io::Result<()> {
        match offset.checked_add(length as u64) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Parts of a range by block: (block, offset in it, bytes of it).
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + length as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at == end {
            return None;
        }
        let within = (at % BLOCK_BYTES as u64) as usize;
        let bytes = (BLOCK_BYTES - within).min((end - at) as usize);
        let part = (at / BLOCK_BYTES as u64, within, bytes);
        at += bytes as u64;
        Some(part)
    })
}

impl Backing for MemoryBacking {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.size_bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.check(offset, buffer.len())?;
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let mut rest = buffer;
        for (block, within, bytes) in parts(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(bytes);
            match blocks.get(&block) {
                Some(found) => part.copy_from_slice(&found[within..within + bytes]),
                None => part.fill(0),
            }
            rest = after;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check(offset, data.len())?;
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let mut rest = data;
        for (block, within, bytes) in parts(offset, rest.len()) {
            let (part, after) = rest.split_at(bytes);
            let stored = blocks
                .entry(block)
                .or_insert_with(|| Box::new([0; BLOCK_BYTES]));
            stored[within..within + bytes].copy_from_slice(part);
            rest = after;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, length_bytes: u64) -> io::Result<()> {
        self.check(offset, length_bytes as usize)?;
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        for (block, _, bytes) in parts(offset, length_bytes as usize) {
            if bytes == BLOCK_BYTES {
                blocks.remove(&block);
            }
        }
        Ok(())
    }
}

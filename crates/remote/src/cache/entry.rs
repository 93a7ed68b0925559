//! A copy in a file: a piece of an object, with a check value for each block.
//!
//! ```text
//! magic "1FCACHE1" │ object_bytes u64 │ offset u64 │ length u64 │ length bytes │ check values, 8 bytes a block
//! ```
//!
//! Numbers are little-endian. Blocks have 16 KiB, the last one fewer. A check value is the beginning of the BLAKE3 of
//! object's key, the three numbers, the block's number, and its bytes: so a file under a wrong name is as wrong as a
//! torn one. This guards against disks and crashes; against people there are the seals of what is inside.
//! The file is no part of the repository's format: an entry of another version is dropped.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;

use engine::object::ObjectKey;

const MAGIC: &[u8; 8] = b"1FCACHE1";
const HEADER_BYTES: u64 = 32;
const BLOCK_BYTES: u64 = 16 << 10;
const CHECK_BYTES: u64 = 8;

/// The most of an object that is read from a copy at once, in bytes.
const RANGE_BYTES_MAX: u64 = 1 << 30;

/// Which part of an object a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    /// All of it.
    Whole,
    /// Its end.
    Tail,
    /// From an offset, so many bytes.
    Range(u64, u64),
}

impl Piece {
    /// What the names of such copies end with.
    pub fn suffix(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Tail => ".tail".to_owned(),
            Self::Range(offset, length) => format!(".{offset}-{length}"),
        }
    }
}

/// The numbers in the header.
#[derive(Debug, Clone, Copy)]
struct Header {
    object_bytes: u64,
    offset: u64,
    length: u64,
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES as usize] {
        let mut out = [0; HEADER_BYTES as usize];
        out[..8].copy_from_slice(MAGIC);
        out[8..16].copy_from_slice(&self.object_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.offset.to_le_bytes());
        out[24..].copy_from_slice(&self.length.to_le_bytes());
        out
    }

    fn check(self, key: &ObjectKey, number: u64, block: &[u8]) -> [u8; CHECK_BYTES as usize] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(key.to_string().as_bytes());
        hasher.update(&self.encode());
        hasher.update(&number.to_le_bytes());
        hasher.update(block);
        let mut check = [0; CHECK_BYTES as usize];
        check.copy_from_slice(&hasher.finalize().as_bytes()[..CHECK_BYTES as usize]);
        check
    }
}

/// Writes a copy of `bytes`, which lie at `offset` in an object of `object_bytes`.
pub(super) fn write(
    file: &mut File,
    key: &ObjectKey,
    offset: u64,
    object_bytes: u64,
    bytes: &[u8],
) -> io::Result<()> {
    let header = Header {
        object_bytes,
        offset,
        length: bytes.len() as u64,
    };
    file.write_all(&header.encode())?;
    file.write_all(bytes)?;
    let blocks = bytes.chunks(BLOCK_BYTES as usize).enumerate();
    let checks = blocks.flat_map(|(number, block)| header.check(key, number as u64, block));
    file.write_all(&checks.collect::<Vec<u8>>())
}

/// Turns a file that holds an object's bytes behind room for a header into a copy of the whole object: the
/// length that goes into every check value is known only at the end.
pub(super) fn seal(file: &mut File, key: &ObjectKey, object_bytes: u64) -> io::Result<()> {
    let header = Header {
        object_bytes,
        offset: 0,
        length: object_bytes,
    };
    let mut block = vec![0; BLOCK_BYTES as usize];
    for number in 0..object_bytes.div_ceil(BLOCK_BYTES) {
        let start = number * BLOCK_BYTES;
        let bytes = BLOCK_BYTES.min(object_bytes - start) as usize;
        file.read_exact_at(&mut block[..bytes], HEADER_BYTES + start)?;
        let check = header.check(key, number, &block[..bytes]);
        file.write_all_at(&check, HEADER_BYTES + object_bytes + number * CHECK_BYTES)?;
    }
    file.write_all_at(&header.encode(), 0)
}

/// Room for the header of a copy that is written before its length is known.
pub(super) fn begin(file: &mut File) -> io::Result<()> {
    file.write_all(&[0; HEADER_BYTES as usize])
}

/// A copy, opened.
pub(super) struct Entry {
    file: File,
    key: ObjectKey,
    header: Header,
}

impl Entry {
    /// Reads the header; nothing if the file is not as long as that says.
    pub fn open(file: File, key: &ObjectKey) -> Option<Self> {
        let mut bytes = [0; HEADER_BYTES as usize];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let (magic, numbers) = bytes.split_first_chunk::<8>()?;
        let number = |at: usize| {
            Some(u64::from_le_bytes(
                numbers.get(at..at + 8)?.try_into().ok()?,
            ))
        };
        let header = Header {
            object_bytes: number(0)?,
            offset: number(8)?,
            length: number(16)?,
        };
        let checks = header
            .length
            .div_ceil(BLOCK_BYTES)
            .checked_mul(CHECK_BYTES)?;
        let file_bytes = HEADER_BYTES
            .checked_add(header.length)?
            .checked_add(checks)?;
        let end = header.offset.checked_add(header.length)?;
        let is_right = magic == MAGIC
            && file.metadata().ok()?.len() == file_bytes
            && end <= header.object_bytes;
        is_right.then_some(Self {
            file,
            key: *key,
            header,
        })
    }

    /// Length of the whole object in bytes.
    pub fn object_bytes(&self) -> u64 {
        self.header.object_bytes
    }

    /// Bytes of the object; nothing if some are not here, or not as they were.
    pub fn range(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let header = self.header;
        let here = header.offset..=header.offset + header.length;
        if start > end || !here.contains(&start) || !here.contains(&end) {
            return None;
        }
        if end - start > RANGE_BYTES_MAX {
            return None;
        }
        if start == end {
            return Some(Vec::new());
        }
        let (from, to) = (start - header.offset, end - header.offset);
        let first = from / BLOCK_BYTES;
        let last = (to - 1) / BLOCK_BYTES;
        let blocks_start = first * BLOCK_BYTES;
        let blocks_end = header.length.min((last + 1) * BLOCK_BYTES);
        let mut bytes = self.read(HEADER_BYTES + blocks_start, blocks_end - blocks_start)?;
        let checks_at = HEADER_BYTES + header.length + first * CHECK_BYTES;
        let checks = self.read(checks_at, (last + 1 - first) * CHECK_BYTES)?;
        let blocks = bytes.chunks(BLOCK_BYTES as usize);
        let mut checked = blocks.zip(checks.chunks(CHECK_BYTES as usize)).zip(first..);
        if !checked.all(|((block, check), number)| header.check(&self.key, number, block) == check)
        {
            return None;
        }
        bytes.truncate((to - blocks_start) as usize);
        bytes.drain(..(from - blocks_start) as usize);
        Some(bytes)
    }

    fn read(&self, at: u64, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
}

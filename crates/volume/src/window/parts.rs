//! The stored form of a window: entries in one or more blocks of compressed zones (Ni, §5.2.1).
//!
//! A *part* is a block: a header of 64 bytes, in most a compressed block of data, and at its end entries of
//! 32 bytes. A window is valid when all its parts are there, each with a right checksum, and the block of each
//! new entry has the entry's fingerprint; so data and metadata need no order between them.
//! Specified in docs/format/volume.md.

use twox_hash::XxHash3_64;

use crate::address::{BLOCK_BYTES, Lba, PHYSICAL_BLOCKS_MAX, Pba};
use crate::error::VolumeError;
use crate::fingerprint::Fingerprint;
use crate::page::{read_u16, read_u32, read_u64};

const MAGIC: &[u8; 4] = b"1FWP";
const HEADER_BYTES: usize = 64;
const CHECKSUM_AT: usize = 56;

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 32;

/// Entries that fit into a part without data.
pub const PART_ENTRIES_MAX: usize = (BLOCK_BYTES - HEADER_BYTES) / ENTRY_BYTES;

/// Parts of one window, at most.
pub const PARTS_MAX: usize = 1088;

/// What an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The block's bytes are in a block that this window wrote.
    New {
        /// The block of the disk.
        lba: Lba,
        /// Where its bytes are.
        pba: Pba,
        /// Of its bytes.
        fingerprint: Fingerprint,
    },
    /// The block's bytes are in a block that was there.
    Duplicate {
        /// The block of the disk.
        lba: Lba,
        /// Where its bytes are.
        pba: Pba,
        /// Of its bytes.
        fingerprint: Fingerprint,
    },
    /// Blocks are zeros.
    Unmap {
        /// The first of them.
        lba: Lba,
        /// How many.
        blocks: u64,
    },
}

impl Entry {
    fn encode(&self, bytes: &mut [u8]) {
        let (kind, lba, pba) = match self {
            Self::New { lba, pba, .. } => (1u64, lba, pba.0),
            Self::Duplicate { lba, pba, .. } => (2, lba, pba.0),
            Self::Unmap { lba, .. } => (3, lba, 0),
        };
        bytes[..8].copy_from_slice(&lba.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&(pba | kind << 40).to_le_bytes());
        match self {
            Self::New { fingerprint, .. } | Self::Duplicate { fingerprint, .. } => {
                bytes[16..32].copy_from_slice(&fingerprint.0);
            }
            Self::Unmap { blocks, .. } => {
                bytes[16..24].copy_from_slice(&blocks.to_le_bytes());
                bytes[24..32].fill(0);
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let lba = Lba(read_u64(bytes, 0));
        let word = read_u64(bytes, 8);
        let pba = Pba(word & (PHYSICAL_BLOCKS_MAX - 1));
        let mut fingerprint = [0; 16];
        fingerprint.copy_from_slice(&bytes[16..32]);
        let fingerprint = Fingerprint(fingerprint);
        Some(match word >> 40 {
            1 => Self::New {
                lba,
                pba,
                fingerprint,
            },
            2 => Self::Duplicate {
                lba,
                pba,
                fingerprint,
            },
            3 => Self::Unmap {
                lba,
                blocks: read_u64(bytes, 16),
            },
            _ => return None,
        })
    }
}

/// What all parts of a window say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowHeader {
    /// The volume.
    pub uuid: [u8; 16],
    /// Number of the window.
    pub window: u64,
    /// The newest window that was durable when this one was written.
    pub durable_window: u64,
    /// Parts of the window.
    pub parts: u16,
    /// Entries of the window.
    pub entries: u32,
}

/// A part that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What all parts say.
    pub header: WindowHeader,
    /// Which of the parts this is.
    pub part: u16,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// Entries that fit beside so many compressed bytes.
#[must_use]
pub fn room_beside(compressed_bytes: usize) -> usize {
    (BLOCK_BYTES - HEADER_BYTES).saturating_sub(compressed_bytes) / ENTRY_BYTES
}

/// The block of a part that goes to `pba`, with compressed data or none.
///
/// # Panics
/// When data and entries do not fit.
#[must_use]
pub fn encode(
    header: &WindowHeader,
    part: u16,
    compressed: &[u8],
    entries: &[Entry],
    pba: Pba,
) -> Vec<u8> {
    assert!(entries.len() <= room_beside(compressed.len()));
    let mut bytes = vec![0; BLOCK_BYTES];
    bytes[..4].copy_from_slice(MAGIC);
    bytes[6..8].copy_from_slice(&part.to_le_bytes());
    bytes[8..10].copy_from_slice(&header.parts.to_le_bytes());
    bytes[10..12].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    bytes[12..16].copy_from_slice(&header.entries.to_le_bytes());
    bytes[16..24].copy_from_slice(&header.window.to_le_bytes());
    bytes[24..32].copy_from_slice(&header.durable_window.to_le_bytes());
    bytes[32..48].copy_from_slice(&header.uuid);
    bytes[48..50].copy_from_slice(&(compressed.len() as u16).to_le_bytes());
    bytes[HEADER_BYTES..HEADER_BYTES + compressed.len()].copy_from_slice(compressed);
    let start = BLOCK_BYTES - entries.len() * ENTRY_BYTES;
    for (entry, place) in entries
        .iter()
        .zip(bytes[start..].chunks_exact_mut(ENTRY_BYTES))
    {
        entry.encode(place);
    }
    let sum = checksum(&bytes, pba);
    bytes[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The checksum of a block but for the field it stands in; it knows where the block lies.
fn checksum(bytes: &[u8], pba: Pba) -> u64 {
    let head = XxHash3_64::oneshot_with_seed(pba.0, &bytes[..CHECKSUM_AT]);
    XxHash3_64::oneshot_with_seed(head, &bytes[HEADER_BYTES..])
}

/// Whether a block is a part that was written to `pba` by this volume.
#[must_use]
pub fn is_part(bytes: &[u8], uuid: &[u8; 16], pba: Pba) -> bool {
    &bytes[..4] == MAGIC
        && bytes[32..48] == uuid[..]
        && read_u64(bytes, CHECKSUM_AT) == checksum(bytes, pba)
}

/// The metadata in a block; `None` when it is no part of this volume, or was written elsewhere.
#[must_use]
pub fn decode(bytes: &[u8], uuid: &[u8; 16], pba: Pba) -> Option<Part> {
    if !is_part(bytes, uuid, pba) {
        return None;
    }
    let count = usize::from(read_u16(bytes, 10));
    let compressed = usize::from(read_u16(bytes, 48));
    if count > room_beside(compressed) {
        return None;
    }
    let start = BLOCK_BYTES - count * ENTRY_BYTES;
    Some(Part {
        header: WindowHeader {
            uuid: *uuid,
            window: read_u64(bytes, 16),
            durable_window: read_u64(bytes, 24),
            parts: read_u16(bytes, 8),
            entries: read_u32(bytes, 12),
        },
        part: read_u16(bytes, 6),
        entries: bytes[start..]
            .chunks_exact(ENTRY_BYTES)
            .map(Entry::decode)
            .collect::<Option<_>>()?,
    })
}

/// The data in a part of this volume, decompressed into `into`; `false` when there is none, or the block
/// is damaged.
#[must_use]
pub fn decompress(bytes: &[u8], uuid: &[u8; 16], pba: Pba, into: &mut [u8]) -> bool {
    if !is_part(bytes, uuid, pba) {
        return false;
    }
    let compressed = usize::from(read_u16(bytes, 48));
    if compressed == 0 || HEADER_BYTES + compressed > BLOCK_BYTES {
        return false;
    }
    let data = &bytes[HEADER_BYTES..HEADER_BYTES + compressed];
    lz4_flex::block::decompress_into(data, into).is_ok_and(|bytes| bytes == BLOCK_BYTES)
}

/// Replaces a part of this volume by the data in it.
///
/// # Errors
/// [`VolumeError::Damaged`] when there are none, or the block is damaged.
pub fn decompress_in_place(block: &mut [u8], uuid: &[u8; 16], pba: Pba) -> Result<(), VolumeError> {
    let mut plain = [0; BLOCK_BYTES];
    if !decompress(block, uuid, pba, &mut plain) {
        return Err(VolumeError::Damaged(format!(
            "the compressed block {} is not what was written",
            pba.0
        )));
    }
    block.copy_from_slice(&plain);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (WindowHeader, Vec<Entry>, Vec<u8>) {
        let header = WindowHeader {
            uuid: [7; 16],
            window: 99,
            durable_window: 97,
            parts: 2,
            entries: 5,
        };
        let entries = vec![
            Entry::New {
                lba: Lba(5),
                pba: Pba(1000),
                fingerprint: Fingerprint([3; 16]),
            },
            Entry::Duplicate {
                lba: Lba(6),
                pba: Pba(PHYSICAL_BLOCKS_MAX - 1),
                fingerprint: Fingerprint([4; 16]),
            },
            Entry::Unmap {
                lba: Lba(1 << 40),
                blocks: 1 << 38,
            },
        ];
        let data: Vec<u8> = (0..BLOCK_BYTES).map(|at| (at / 64) as u8).collect();
        (header, entries, data)
    }

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let (header, entries, data) = sample();
        let compressed = lz4_flex::block::compress(&data);
        let block = encode(&header, 1, &compressed, &entries, Pba(4242));
        let part = decode(&block, &[7; 16], Pba(4242)).unwrap();
        assert_eq!((part.header, part.part), (header, 1));
        assert_eq!(part.entries, entries);
        let mut plain = vec![0; BLOCK_BYTES];
        assert!(decompress(&block, &[7; 16], Pba(4242), &mut plain));
        assert_eq!(plain, data);
        assert_eq!(decode(&block, &[7; 16], Pba(4243)), None);
        assert_eq!(decode(&block, &[8; 16], Pba(4242)), None);
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let (header, entries, data) = sample();
        let compressed = lz4_flex::block::compress(&data);
        let mut block = encode(&header, 0, &compressed, &entries, Pba(9));
        let mut plain = vec![0; BLOCK_BYTES];
        for at in 0..BLOCK_BYTES {
            block[at] ^= 0x20;
            assert_eq!(decode(&block, &[7; 16], Pba(9)), None, "byte {at}");
            assert!(!decompress(&block, &[7; 16], Pba(9), &mut plain));
            block[at] ^= 0x20;
        }
    }

    #[test]
    fn a_part_without_data_is_full_of_entries() {
        let (header, entries, _) = sample();
        let many: Vec<_> = entries
            .iter()
            .cycle()
            .take(PART_ENTRIES_MAX)
            .copied()
            .collect();
        let block = encode(&header, 0, &[], &many, Pba(9));
        assert_eq!(decode(&block, &[7; 16], Pba(9)).unwrap().entries, many);
        assert!(!decompress(&block, &[7; 16], Pba(9), &mut [0; BLOCK_BYTES]));
    }
}

//! Instruction deltas: a target chunk as copies out of a base chunk and literal bytes.
//!
//! Enter: base and target, 0 … [`CHUNK_BYTES_MAX`](crate::container::CHUNK_BYTES_MAX) bytes each.
//! Leaves: the delta, which is not compressed: deltas of many chunks are compressed together, which
//! makes them smaller than compressing each (docs/format/delta.md has the bytes, and why they lie
//! so).
//!
//! A delta is read from both ends: literals from the front, instructions from the back, and the two
//! meet. It neither says how long the target is (metadata does) nor what its base was, and has no
//! checksum: whoever decodes compares the target's fingerprint.

mod base_table;
mod decoder;
mod encoder;
mod matching;

pub use decoder::decode;
pub use encoder::DeltaEncoder;

use crate::container::CHUNK_BYTES_MAX;

/// Most bytes of a base and of a target.
pub const DELTA_SIDE_BYTES_MAX: usize = CHUNK_BYTES_MAX as usize;

/// Where the base position of a copy lies, relative to where the last copy ended: the two low bits
/// of an instruction's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Jump {
    /// As many bytes further as were inserted: the inserted bytes replace as many of the base.
    Replaced = 0,
    /// Where the last copy ended: the inserted bytes were not in the base.
    Inserted = 1,
    /// Further than [`Jump::Replaced`], by a distance that follows.
    Forward = 2,
    /// Before [`Jump::Replaced`], by a distance that follows.
    Backward = 3,
}

impl Jump {
    /// The jump of an instruction's first byte.
    fn of(first: u8) -> Self {
        match first & 3 {
            0 => Self::Replaced,
            1 => Self::Inserted,
            2 => Self::Forward,
            _ => Self::Backward,
        }
    }
}

/// Inserted bytes from which on their number does not fit into an instruction's first byte.
const INSERT_ESCAPE: usize = 63;

/// Why a delta could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeltaError {
    /// The base or the target is longer than any chunk.
    #[error("a {side} of {bytes} bytes is longer than a chunk can be ({limit} bytes)")]
    TooLong {
        /// `"base"` or `"target"`.
        side: &'static str,
        /// Its length.
        bytes: usize,
        /// The greatest length.
        limit: usize,
    },
    /// The delta ends before its target is whole, or its instructions run into its literals.
    #[error(
        "the delta is used up after {written_bytes} of {target_bytes} bytes of its target: \
         it is damaged, or its base or its target is another"
    )]
    UsedUp {
        /// Bytes of the target that were written.
        written_bytes: usize,
        /// Bytes that it should have.
        target_bytes: usize,
    },
    /// A number is not in its shortest form, or beyond all limits.
    #[error(
        "a number after {written_bytes} bytes of the target is malformed: the delta is damaged"
    )]
    BadNumber {
        /// Bytes of the target that were written before it.
        written_bytes: usize,
    },
    /// An instruction copies what is not in the base.
    #[error(
        "the delta copies {copy_bytes} bytes from {base_offset} of a base of {base_bytes}: \
         it is damaged, or its base is another"
    )]
    OutsideBase {
        /// Where the copy would begin; negative when it jumped before the base.
        base_offset: i64,
        /// Bytes that it would copy.
        copy_bytes: usize,
        /// Length of the base.
        base_bytes: usize,
    },
    /// An instruction writes more than the target has.
    #[error(
        "the delta writes {bytes} bytes after {written_bytes} of {target_bytes}: \
         it is damaged, or its target is another"
    )]
    OutsideTarget {
        /// Bytes of the target that were there.
        written_bytes: usize,
        /// Bytes that the instruction would add.
        bytes: usize,
        /// Bytes of the target.
        target_bytes: usize,
    },
    /// The target is whole and there is more delta.
    #[error("{bytes} bytes are left over in the delta: it is damaged, or its target is another")]
    LeftOver {
        /// Bytes of the delta that nothing used.
        bytes: usize,
    },
    /// An instruction does nothing, or says in two ways what can be said in one.
    #[error(
        "an instruction after {written_bytes} bytes of the target is void: the delta is damaged"
    )]
    Void {
        /// Bytes of the target that were written before it.
        written_bytes: usize,
    },
}

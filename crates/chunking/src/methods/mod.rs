//! The methods, one file each: what exactly is cut, and the code that does it.
//!
//! A method is handed more than `min_bytes` and at most `max_bytes` bytes, the beginning of what
//! is left of a stream; where it is handed fewer than `max_bytes`, the stream ends there. It
//! returns the length of the first chunk.
//!
//! A method that judges windows also says of one length whether its hash matches there
//! (`is_match`), for a chunk that begins where the data does; whether it matches before is not asked.

pub(crate) mod adler;
pub(crate) mod ae;
pub(crate) mod ae2;
pub(crate) mod crate_fastcdc;
pub(crate) mod crc32;
pub(crate) mod fastcdc;
pub(crate) mod fixed;
pub(crate) mod fold;
mod foreign_tables;
pub(crate) mod gear;
pub(crate) mod gearhash;
pub(crate) mod masks;
pub(crate) mod maxp;
pub(crate) mod ram;
pub(crate) mod seqcdc;
pub(crate) mod shield;
pub(crate) mod tttd;

#[cfg(test)]
mod hashless_tests;
pub(crate) mod rabin;
pub(crate) mod rabin_nc;
pub(crate) mod restic;

#[cfg(test)]
mod windowed_tests;

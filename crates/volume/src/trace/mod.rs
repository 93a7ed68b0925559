//! Block traces for experiments: what a disk was asked, in order, and what its blocks held.
//!
//! In: a text in a published format ([`TraceFormat`]), or the figures of a workload ([`Workload`]).
//! Out: [`TraceRecord`]s; with [`content_of`], the bytes of their blocks, and with [`TraceWriter`], a
//! trace that other tools read.
//!
//! The traces are those of ThinDedup's evaluation (Ni, dissertation, UT Arlington 2019, §5.3): days
//! of FIU's, whose records carry the MD5 of every block (Koller and Rangaswami, "I/O Deduplication",
//! FAST 2010), volumes of Microsoft Research Cambridge without contents (Narayanan et al., "Write
//! Off-Loading", FAST 2008), and synthetic writes. SNIA's IOTTA repository has the first two.
//!
//! A block's content is its identity: records of one [`ContentId`] hold the same bytes, of two hold
//! others. No file is opened here, and a line is all that is in memory.

mod contents;
mod fiu;
mod msr_cambridge;
mod random;
mod reader;
mod workload;
mod writer;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use contents::{ContentSource, content_of, is_compressible};
pub use reader::{TraceError, TraceReader};
pub use workload::{
    Access, FIU_DAYS, FiuDay, MSR_CAMBRIDGE_DEDUPLICATION_RATIOS, Workload, WorkloadError,
};
pub use writer::{TraceWriter, WriteError};

/// Bytes of a block that has a content of its own.
pub const BLOCK_BYTES: u64 = 4096;

/// Bytes of a sector, in which traces count.
const SECTOR_BYTES: u64 = 512;

/// What a disk was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceKind {
    /// To read.
    Read,
    /// To write.
    Write,
}

/// What a block holds, as far as a trace says: which blocks are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; 16]);

/// One request, or a block of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceRecord {
    /// Since the beginning of what the trace counts from: of FIU's the trace, of Microsoft's the year
    /// 1601.
    pub time: Duration,
    /// What was asked.
    pub kind: TraceKind,
    /// The first byte.
    pub offset_bytes: u64,
    /// How many bytes; the sum with the offset is no more than a `u64` holds.
    pub length_bytes: u64,
    /// What is written or read there; `None` when the trace does not say.
    pub content: Option<ContentId>,
}

/// How a trace is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// FIU's: fields between spaces, the last of them MD5s.
    Fiu,
    /// Microsoft Research Cambridge's: comma-separated.
    MsrCambridge,
}

impl TraceFormat {
    /// All, by name.
    pub const ALL: [(&'static str, Self); 2] =
        [("fiu", Self::Fiu), ("msr-cambridge", Self::MsrCambridge)];
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::ALL[*self as usize];
        out.write_str(name)
    }
}

/// The name is not that of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no format of traces: fiu or msr-cambridge")]
pub struct UnknownFormat(String);

impl FromStr for TraceFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        let (_, format) = found.ok_or_else(|| UnknownFormat(name.to_owned()))?;
        Ok(*format)
    }
}

/// A number in a field of that name.
fn number(field: &str, name: &str) -> Result<u64, String> {
    let number = field.parse().ok().filter(|_| !field.starts_with('+'));
    number.ok_or_else(|| format!("{name} is no number: {field:?}"))
}

/// Whether a range has an end.
fn check_range(offset_bytes: u64, length_bytes: u64) -> Result<(), String> {
    match offset_bytes.checked_add(length_bytes) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{length_bytes} bytes at {offset_bytes} have no end"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names() {
        for (name, format) in TraceFormat::ALL {
            assert_eq!(format.to_string(), name);
            assert_eq!(name.parse(), Ok(format));
        }
        let error = "blktrace".parse::<TraceFormat>().unwrap_err();
        assert!(error.to_string().starts_with("\"blktrace\" is no format"));
    }
}

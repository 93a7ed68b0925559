//! What clients see of a disk: bytes at offsets, in sectors, with a volatile cache.
//!
//! [`BlockDevice`] is the seam between the fronts (NBD, FUSE, tests) and what stores the bytes: a
//! volume, one of its pinned generations (read only), or memory ([`RamDisk`]).
//!
//! Durability is that of a disk with a write cache: a write, trim or write-zeroes that returned is
//! seen by every later read; it survives a crash once a [`BlockDevice::flush`] that began after it
//! returned `Ok`. What is not flushed survives as a prefix of what was written, or not at all.

mod ram;

pub use ram::RamDisk;

use std::io;

/// Size and granularity of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of the disk, a multiple of `sector_bytes`.
    pub size_bytes: u64,
    /// Offsets and lengths must be multiples of this: 512, 1024 or 4096.
    pub sector_bytes: u32,
    /// Offsets and lengths in multiples of this cost least.
    pub preferred_bytes: u32,
    /// Whether writes, trims and write-zeroes are refused.
    pub read_only: bool,
}

/// What is at a range of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtentKind {
    /// Bytes that were written.
    Data,
    /// Nothing is stored: it reads as zeros.
    Hole,
}

/// Consecutive bytes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Its length in bytes, a multiple of the disk's sector.
    pub length_bytes: u64,
    /// What is there.
    pub kind: ExtentKind,
}

/// Why a disk did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The range does not lie within the disk.
    #[error("{length_bytes} bytes at {offset} are not within the disk of {size_bytes} bytes")]
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length_bytes: u64,
        /// Bytes there are.
        size_bytes: u64,
    },
    /// Offset or length is not a multiple of the sector.
    #[error("{length_bytes} bytes at {offset} are no whole sectors of {sector_bytes} bytes")]
    Unaligned {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        length_bytes: u64,
        /// The disk's sector.
        sector_bytes: u32,
    },
    /// The disk takes no writes.
    #[error("the disk is read-only")]
    ReadOnly,
    /// There is no room for more. Nothing that was acknowledged is lost.
    #[error("the backing store is full: {0}")]
    Full(String),
    /// What is stored is not what was written.
    #[error("damaged: {0}")]
    Damaged(String),
    /// A write or sync failed earlier; what has been acknowledged since the last flush may be lost.
    #[error("an earlier write failed, so the disk takes no more: {0}")]
    Failed(String),
    /// The backing store failed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// What the operating system says.
        source: io::Error,
    },
}

/// A disk. All methods block; all may be called by many threads at once.
pub trait BlockDevice: Send + Sync {
    /// Size and granularity. May grow while the disk is in use, and never shrinks.
    fn geometry(&self) -> Geometry;

    /// Fills `buffer` with the bytes at `offset`. What was never written, or trimmed, is zeros.
    ///
    /// # Errors
    /// When the range is not whole sectors within the disk, or what is stored can't be read.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DeviceError>;

    /// Puts `data` at `offset`. Durable after the next [`BlockDevice::flush`].
    ///
    /// # Errors
    /// When the range is not whole sectors within the disk, or the bytes can't be taken.
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError>;

    /// Makes a range read as zeros, which takes no room. Durable after the next [`BlockDevice::flush`].
    ///
    /// # Errors
    /// Like [`BlockDevice::write`].
    fn write_zeroes(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError>;

    /// Says that a range is not needed; it reads as zeros from now on. Durable after the next
    /// [`BlockDevice::flush`].
    ///
    /// # Errors
    /// Like [`BlockDevice::write`].
    fn trim(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        self.write_zeroes(offset, length_bytes)
    }

    /// Returns when everything written before is durable.
    ///
    /// # Errors
    /// When that can't be said; the disk then takes no more writes.
    fn flush(&self) -> Result<(), DeviceError>;

    /// What is at a range: extents from `offset` on, at most `extents_max` of them, neighbours of
    /// different kinds. They may end before the range does, but never before `offset + sector`.
    ///
    /// # Errors
    /// When the range is not whole sectors within the disk, or the mapping can't be read.
    fn extents(
        &self,
        offset: u64,
        length_bytes: u64,
        extents_max: usize,
    ) -> Result<Vec<Extent>, DeviceError>;
}

/// The extents of a range, found run by run: `run_at` says what is at an offset, and up to where (exclusive,
/// beyond the offset) that goes on at least. Neighbours of one kind become one; at most `extents_max`.
pub(crate) fn collect_extents(
    range: std::ops::Range<u64>,
    extents_max: usize,
    mut run_at: impl FnMut(u64) -> Result<(ExtentKind, u64), DeviceError>,
) -> Result<Vec<Extent>, DeviceError> {
    let mut at = range.start;
    let mut extents: Vec<Extent> = Vec::new();
    while at < range.end {
        let (kind, run_end) = run_at(at)?;
        let next = range.end.min(run_end);
        if let Some(last) = extents.last_mut().filter(|last| last.kind == kind) {
            last.length_bytes += next - at;
        } else if extents.len() == extents_max {
            break;
        } else {
            extents.push(Extent {
                length_bytes: next - at,
                kind,
            });
        }
        at = next;
    }
    Ok(extents)
}

impl Geometry {
    /// Whether a range is whole sectors within the disk.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self, offset: u64, length_bytes: u64) -> Result<(), DeviceError> {
        let sector = u64::from(self.sector_bytes);
        if !offset.is_multiple_of(sector) || !length_bytes.is_multiple_of(sector) {
            return Err(DeviceError::Unaligned {
                offset,
                length_bytes,
                sector_bytes: self.sector_bytes,
            });
        }
        match offset.checked_add(length_bytes) {
            Some(end) if end <= self.size_bytes => Ok(()),
            _ => Err(DeviceError::OutOfRange {
                offset,
                length_bytes,
                size_bytes: self.size_bytes,
            }),
        }
    }
}

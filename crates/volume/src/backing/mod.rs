//! Where a volume's blocks lie: a file, a raw device, or memory.

mod file;
mod memory;
mod recording;

pub use file::FileBacking;
pub use memory::MemoryBacking;
pub use recording::{Event, RecordingBacking};

use std::io;

/// A store of bytes at offsets, with a volatile cache. All methods block and may be called by many
/// threads at once.
///
/// A write is seen by every later read. It survives a crash once a [`Backing::sync`] that began
/// after it returned `Ok`; until then any of its 512-byte sectors may survive or not, on their own.
pub trait Backing: Send + Sync + std::fmt::Debug {
    /// Bytes there are.
    ///
    /// # Errors
    /// When that can't be found out.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// When not all of it could be read; the end of the store is `UnexpectedEof`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// When not all of it could be written.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Returns when everything written is durable.
    ///
    /// # Errors
    /// When that can't be said.
    fn sync(&self) -> io::Result<()>;

    /// Says that a range holds nothing that will be read before it is written. Its room may be given
    /// back; what it reads as is not said. Durable at no particular time.
    ///
    /// # Errors
    /// When the store can do this, and failed.
    fn discard(&self, offset: u64, length_bytes: u64) -> io::Result<()>;
}

//! What other processes ask of the one that has a volume: its state, generations, a check, and what a pinned generation
//! holds, for a backup while the disk is in use.
//!
//! The process that has the volume listens at a Unix socket beside it ([`socket_path`]) with mode 0600; only one process
//! has a volume, so only one listens. Whoever may write the volume's file may as well ask for all of this.
//!
//! The protocol is between processes of one version and is stored nowhere: a client says its
//! [`VERSION`] first, and another one is refused. A request is one frame, answered by one frame, or by several where it
//! says so; a frame is its length (u32), a byte that says what it is, and the rest. Lengths are bounded.
//!
//! A generation that was pinned over a connection is removed when that ends, unless [`Client::keep`] was
//! called: so nothing stays of a backup that died.

mod client;
mod server;
mod wire;

pub use client::Client;
pub use server::Server;

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::VolumeError;
use crate::journal::JournalRanges;
use crate::settings::VolumeSettings;
use crate::stat::{Counters, Usage};
use crate::volume::Volume;

/// Changes with every change of the protocol.
pub const VERSION: u32 = 1;

/// Most bytes that are read at once.
pub const READ_BYTES_MAX: u32 = 4 << 20;

/// Why something was not done that was asked of another process.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// It says no.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The connection failed.
    #[error("the process that has the volume does not answer: {0}")]
    Io(#[from] io::Error),
    /// It is of another version, or no onefold.
    #[error("the process that has the volume is another version of onefold: {0}")]
    Version(String),
}

/// What a volume is and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its id.
    pub id: [u8; 16],
    /// What it was made with.
    pub settings: VolumeSettings,
    /// How full it is.
    pub usage: Usage,
    /// What it did in its life.
    pub counters: Counters,
    /// Blocks of the disk that are known to be a file system's journal.
    pub journal: JournalRanges,
    /// Why none are although there should be some.
    pub journal_problem: Option<String>,
    /// Pinned generations.
    pub generations: u64,
}

impl Volume {
    /// What it is and how it is.
    #[must_use]
    pub fn status(&self) -> Status {
        let (journal, journal_problem) = self.journal();
        Status {
            id: self.id(),
            settings: self.settings(),
            usage: self.usage(),
            counters: self.counters(),
            journal,
            journal_problem,
            generations: self.generations().len() as u64,
        }
    }
}

/// Where the process listens that has the volume at `path`: `NAME.control` beside a file, in `/run` for a
/// device.
///
/// # Errors
/// When there is nothing at `path`.
pub fn socket_path(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    let metadata = path.metadata()?;
    if metadata.file_type().is_block_device() {
        let number = metadata.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        return Ok(PathBuf::from(format!(
            "/run/onefold-volume-{major}-{minor}.control"
        )));
    }
    let mut name = path.into_os_string();
    name.push(".control");
    Ok(PathBuf::from(name))
}

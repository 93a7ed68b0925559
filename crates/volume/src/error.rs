//! Why a volume can't do what it was asked.

use std::io;

use crate::address::Pba;
use crate::device::DeviceError;

/// Why a volume can't be made, opened, changed or checked.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// What is there is no volume.
    #[error("this is no onefold volume: {0}")]
    NotAVolume(String),
    /// The volume was made by a newer onefold, or with features that this one does not have.
    #[error("this volume needs a newer onefold: {0}")]
    Unsupported(String),
    /// Settings that can't be.
    #[error("{0}")]
    Settings(String),
    /// Stored metadata or data are not what was written.
    #[error("the volume is damaged: {0}")]
    Damaged(String),
    /// There is no room for more.
    #[error("the backing store is full: {0}")]
    Full(String),
    /// An earlier write failed.
    #[error("an earlier write failed, so the volume takes no more: {0}")]
    Failed(String),
    /// The volume was opened for reading.
    #[error("the volume is open for reading only")]
    ReadOnly,
    /// No generation of that number.
    #[error("there is no generation {0}")]
    NoGeneration(u32),
    /// The backing store failed.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// What the operating system says.
        source: io::Error,
    },
}

impl VolumeError {
    /// A failure of the backing store.
    pub(crate) fn io(context: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let context = context.into();
        move |source| {
            if source.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()) {
                return VolumeError::Full(format!("{context}: {source}"));
            }
            VolumeError::Io { context, source }
        }
    }

    /// Reading a block failed.
    pub(crate) fn reading(pba: Pba) -> impl FnOnce(io::Error) -> Self {
        move |source| VolumeError::io(format!("reading block {}", pba.0))(source)
    }
}

impl From<VolumeError> for DeviceError {
    fn from(error: VolumeError) -> Self {
        match error {
            VolumeError::Full(what) => DeviceError::Full(what),
            VolumeError::Failed(what) => DeviceError::Failed(what),
            VolumeError::ReadOnly => DeviceError::ReadOnly,
            VolumeError::Io { context, source } => DeviceError::Io { context, source },
            other => DeviceError::Damaged(other.to_string()),
        }
    }
}

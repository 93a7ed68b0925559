//! A volume that this process has, or that another one serves and is asked for.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use volume::backing::FileBacking;
use volume::control::{Client, Status};
use volume::{
    BlockDevice, CheckReport, Compaction, Extent, Generation, OwnerId, PinnedDisk, Volume,
    VolumeError,
};

use super::{OPEN_AGAIN_AFTER, OPEN_TRIES, Place, no_volume, of};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::session::Session;

/// A volume that can be asked and changed.
pub enum Access {
    /// This process has it.
    Own(Arc<Volume>),
    /// Another process serves it.
    Served(Client),
}

impl Access {
    /// Opens the volume, or connects to the process that serves it.
    pub fn to(session: &Session, place: &Place, writable: bool) -> anyhow::Result<Self> {
        for _ in 0..OPEN_TRIES {
            match FileBacking::open(&place.path, writable) {
                Ok(backing) => {
                    let volume = place.open_on(session, Arc::new(backing), writable, !writable)?;
                    return Ok(Self::Own(volume));
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    let client = Client::connect(&place.path).map_err(VolumeError::from);
                    let client = client.with_context(|| place.path.display().to_string())?;
                    if let Some(client) = client {
                        return Ok(Self::Served(client));
                    }
                    // It may be about to listen, or to end.
                    std::thread::sleep(OPEN_AGAIN_AFTER);
                }
                Err(error) => return Err(no_volume(&place.path, error)),
            }
        }
        Err(in_use(&place.path))
    }

    /// Ends it; what was changed is durable.
    pub fn end(self, path: &Path) -> anyhow::Result<()> {
        match self {
            Self::Own(volume) => of(path, volume.close()),
            Self::Served(_) => Ok(()),
        }
    }

    pub fn status(&mut self) -> Result<Status, VolumeError> {
        match self {
            Self::Own(volume) => Ok(volume.status()),
            Self::Served(client) => Ok(client.status()?),
        }
    }

    /// Pins the disk as it is, until `unpin` if it is kept.
    pub fn pin(&mut self, owner: OwnerId) -> Result<Generation, VolumeError> {
        match self {
            Self::Own(volume) => volume.pin_for(owner),
            Self::Served(client) => Ok(client.pin(owner)?),
        }
    }

    pub fn keep(&mut self, generation: u32) -> Result<(), VolumeError> {
        match self {
            Self::Own(_) => Ok(()),
            Self::Served(client) => Ok(client.keep(generation)?),
        }
    }

    /// Removes a generation that was pinned and is not kept.
    pub fn give_up(&mut self, generation: u32) -> Result<(), VolumeError> {
        match self {
            Self::Own(volume) => volume.unpin(generation),
            Self::Served(client) => {
                // If it can't be asked, the generation goes with the connection.
                let _ = client.unpin(generation);
                Ok(())
            }
        }
    }

    pub fn unpin(&mut self, generation: u32) -> Result<(), VolumeError> {
        match self {
            Self::Own(volume) => volume.unpin(generation),
            Self::Served(client) => Ok(client.unpin(generation)?),
        }
    }

    pub fn generations(&mut self) -> Result<Vec<Generation>, VolumeError> {
        match self {
            Self::Own(volume) => Ok(volume.generations()),
            Self::Served(client) => Ok(client.generations()?),
        }
    }

    /// Calls `visit` with ranges that differ, ascending. After an error they mean nothing.
    pub fn visit_changes(
        &mut self,
        from: u32,
        to: Option<u32>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> Result<(), VolumeError> {
        match self {
            Self::Own(volume) => volume.visit_changes(from, to, &mut |range| {
                visit(range);
                Ok(())
            }),
            Self::Served(client) => Ok(client.visit_changes(from, to, visit)?),
        }
    }

    pub fn check(&mut self, read_data: bool) -> Result<CheckReport, VolumeError> {
        match self {
            Self::Own(volume) => volume.check(read_data),
            Self::Served(client) => Ok(client.check(read_data)?),
        }
    }

    pub fn compact(&mut self) -> Result<Compaction, VolumeError> {
        match self {
            Self::Own(volume) => volume.compact(),
            Self::Served(client) => Ok(client.compact()?),
        }
    }

    /// A pinned generation as a disk that can be read.
    pub fn disk(&mut self, generation: &Generation) -> Result<GenerationDisk<'_>, VolumeError> {
        Ok(match self {
            Self::Own(volume) => {
                let disk = PinnedDisk::new(Arc::clone(volume), generation.number)?;
                GenerationDisk::Own(disk)
            }
            Self::Served(client) => GenerationDisk::Served {
                client,
                number: generation.number,
            },
        })
    }
}

/// A pinned generation.
pub enum GenerationDisk<'a> {
    /// Of a volume that this process has.
    Own(PinnedDisk),
    /// Of one that another process serves.
    Served {
        /// The connection to it.
        client: &'a mut Client,
        /// The generation.
        number: u32,
    },
}

impl GenerationDisk<'_> {
    /// As [`BlockDevice::read`].
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Own(disk) => disk.read(offset, buffer).map_err(std::io::Error::other),
            Self::Served { client, number } => client
                .read(*number, offset, buffer)
                .map_err(std::io::Error::other),
        }
    }

    /// As [`BlockDevice::extents`].
    pub fn extents(
        &mut self,
        offset: u64,
        length_bytes: u64,
        extents_max: u32,
    ) -> std::io::Result<Vec<Extent>> {
        match self {
            Self::Own(disk) => disk
                .extents(offset, length_bytes, extents_max as usize)
                .map_err(std::io::Error::other),
            Self::Served { client, number } => client
                .extents(*number, offset, length_bytes, extents_max)
                .map_err(std::io::Error::other),
        }
    }
}

/// Another process has the volume, and can't be asked.
pub fn in_use(path: &Path) -> anyhow::Error {
    let message = format!("{} is in use by another process", path.display());
    let hint = "wait for the command that has it, or end the `onefold volume serve` or `mount`";
    anyhow::Error::new(Failure::new(ExitCode::Failed, message).with_hint(hint))
}

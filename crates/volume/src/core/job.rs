//! What a commit asks of the backing store. It is done once, by whoever comes first, with the volume's state at
//! hand or without; whoever comes second waits until it is done. So nothing is written after the volume has gone
//! on.

use std::io;
use std::sync::{Arc, OnceLock};

use crate::address::Pba;
use crate::backing::Backing;
use crate::error::VolumeError;
use crate::page::seal;
use crate::superblock::Superblock;
use crate::tables::{FrozenPage, PageSink};

/// Pages that a job writes, at most: 1 MiB.
pub(super) const JOB_PAGES_MAX: usize = 256;

#[derive(Debug)]
enum Work {
    /// Writes pages.
    Pages(Vec<FrozenPage>),
    /// Makes everything durable that was written before.
    Sync,
    /// Writes a superblock, and makes it durable.
    Superblock(Pba, Vec<u8>),
}

/// A step of a commit.
#[derive(Debug)]
pub(crate) struct Job {
    work: Work,
    done: OnceLock<Result<(), Arc<VolumeError>>>,
}

impl Job {
    fn new(work: Work) -> Self {
        Self {
            work,
            done: OnceLock::new(),
        }
    }

    pub(super) fn pages(pages: Vec<FrozenPage>) -> Self {
        Self::new(Work::Pages(pages))
    }

    pub(super) fn sync() -> Self {
        Self::new(Work::Sync)
    }

    pub(super) fn superblock(superblock: &Superblock) -> Self {
        Self::new(Work::Superblock(
            superblock.place(),
            superblock.encode().to_vec(),
        ))
    }

    /// Does it, or waits until it is done.
    pub(crate) fn run(&self, backing: &dyn Backing) -> Result<(), VolumeError> {
        let done = self
            .done
            .get_or_init(|| self.work.run(backing).map_err(Arc::new));
        done.clone().map_err(|error| again(&error))
    }

    /// Whether it was done.
    pub(super) fn is_done(&self) -> Result<bool, VolumeError> {
        match self.done.get() {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => Err(again(error)),
        }
    }
}

impl Work {
    fn run(&self, backing: &dyn Backing) -> Result<(), VolumeError> {
        match self {
            Self::Pages(pages) => {
                let mut sink = PageSink::new(backing);
                for page in pages {
                    let mut bytes = *page.bytes;
                    seal(page.identity, &mut bytes);
                    sink.put(page.place, &bytes)?;
                }
                sink.finish().map(|_| ())
            }
            Self::Sync => backing
                .sync()
                .map_err(VolumeError::io("making writes durable")),
            Self::Superblock(place, bytes) => {
                backing
                    .write_at(place.offset(), bytes)
                    .map_err(VolumeError::io("writing the superblock"))?;
                backing
                    .sync()
                    .map_err(VolumeError::io("making the superblock durable"))
            }
        }
    }
}

/// The same failure, for another who asks.
fn again(error: &VolumeError) -> VolumeError {
    match error {
        VolumeError::Full(what) => VolumeError::Full(what.clone()),
        VolumeError::Io { context, source } => VolumeError::Io {
            context: context.clone(),
            source: match source.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(source.kind(), source.to_string()),
            },
        },
        other => VolumeError::Failed(other.to_string()),
    }
}

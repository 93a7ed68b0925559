//! The side that asks.

use std::io;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::wire::{self, Body, DONE, REFUSED, Verb};
use super::{ControlError, READ_BYTES_MAX, Status, VERSION, socket_path};
use crate::check::CheckReport;
use crate::core::Compaction;
use crate::device::Extent;
use crate::error::VolumeError;
use crate::generations::{Generation, OwnerId};

/// A connection to the process that has a volume.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Connects to the process that has the volume at `path`; `None` when nobody listens there.
    ///
    /// # Errors
    /// When there is nothing at `path`, or who listens is no onefold of this version.
    pub fn connect(path: &Path) -> Result<Option<Self>, ControlError> {
        let stream = match UnixStream::connect(socket_path(path)?) {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let mut client = Self { stream };
        client.hello()?;
        Ok(Some(client))
    }

    fn hello(&mut self) -> Result<(), ControlError> {
        let body = Body::default().number(u64::from(VERSION)).0;
        match self.ask(Verb::Hello, &body) {
            Ok(theirs) if theirs == body => Ok(()),
            Ok(_) => Err(ControlError::Version("it speaks differently".to_owned())),
            Err(ControlError::Volume(error)) => Err(ControlError::Version(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn ask(&mut self, verb: Verb, body: &[u8]) -> Result<Vec<u8>, ControlError> {
        wire::send(&mut self.stream, verb as u8, body)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<u8>, ControlError> {
        match wire::receive(&mut self.stream)? {
            Some((DONE, body)) => Ok(body),
            Some((REFUSED, body)) => Err(wire::error(&body)?.into()),
            Some(_) => Err(wire::wrong("an answer of an unknown kind").into()),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// What the volume is and how it is.
    ///
    /// # Errors
    /// As all of these: when the volume can't, or the connection fails.
    pub fn status(&mut self) -> Result<Status, ControlError> {
        Ok(wire::status(&self.ask(Verb::Status, &[])?)?)
    }

    /// Pins the disk as it is. The generation is removed when this connection ends, unless it is
    /// [kept](Self::keep).
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn pin(&mut self, owner: OwnerId) -> Result<Generation, ControlError> {
        let body = Body::default().id(&owner.0).0;
        let mut pinned = wire::generations(&self.ask(Verb::Pin, &body)?)?;
        let pinned = pinned.pop();
        Ok(pinned.ok_or_else(|| wire::wrong("no generation was pinned"))?)
    }

    /// Leaves a generation that was pinned over this connection pinned.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn keep(&mut self, generation: u32) -> Result<(), ControlError> {
        self.ask(Verb::Keep, &number(generation)).map(drop)
    }

    /// Removes a generation, unless another connection reads it.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn unpin(&mut self, generation: u32) -> Result<(), ControlError> {
        self.ask(Verb::Unpin, &number(generation)).map(drop)
    }

    /// Pinned generations, oldest first.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn generations(&mut self) -> Result<Vec<Generation>, ControlError> {
        Ok(wire::generations(&self.ask(Verb::Generations, &[])?)?)
    }

    /// Bytes of the disk that differ between a pinned generation and a newer one (`None`: the disk as it is).
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn changed_ranges(
        &mut self,
        from: u32,
        to: Option<u32>,
    ) -> Result<Vec<Range<u64>>, ControlError> {
        let mut ranges = Vec::new();
        self.visit_changes(from, to, &mut |range| ranges.push(range))?;
        Ok(ranges)
    }

    /// Calls `visit` with the ranges of [`changed_ranges`](Self::changed_ranges) as they come.
    ///
    /// # Errors
    /// As [`status`](Self::status); then what was visited means nothing.
    pub fn visit_changes(
        &mut self,
        from: u32,
        to: Option<u32>,
        visit: &mut dyn FnMut(Range<u64>),
    ) -> Result<(), ControlError> {
        let to = to.map_or(u64::MAX, u64::from);
        let body = Body::default().number(u64::from(from)).number(to).0;
        wire::send(&mut self.stream, Verb::Changed as u8, &body)?;
        loop {
            let part = wire::ranges(&self.answer()?)?;
            if part.is_empty() {
                return Ok(());
            }
            part.into_iter().for_each(&mut *visit);
        }
    }

    /// What is at a range of a pinned generation, as [`crate::BlockDevice::extents`].
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn extents(
        &mut self,
        generation: u32,
        offset: u64,
        length_bytes: u64,
        extents_max: u32,
    ) -> Result<Vec<Extent>, ControlError> {
        let body = Body::default()
            .number(u64::from(generation))
            .number(offset)
            .number(length_bytes)
            .number(u64::from(extents_max));
        Ok(wire::extents(&self.ask(Verb::Extents, &body.0)?)?)
    }

    /// Fills `buffer` with what a pinned generation has at `offset`.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn read(
        &mut self,
        generation: u32,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), ControlError> {
        let mut offset = offset;
        for part in buffer.chunks_mut(READ_BYTES_MAX as usize) {
            let body = Body::default()
                .number(u64::from(generation))
                .number(offset)
                .number(part.len() as u64);
            let bytes = self.ask(Verb::Read, &body.0)?;
            if bytes.len() != part.len() {
                return Err(wire::wrong("fewer bytes than were asked for").into());
            }
            part.copy_from_slice(&bytes);
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// As [`crate::Volume::check`].
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn check(&mut self, read_data: bool) -> Result<CheckReport, ControlError> {
        let body = Body::default().number(u64::from(read_data)).0;
        Ok(wire::check(&self.ask(Verb::Check, &body)?)?)
    }

    /// As [`crate::Volume::compact`].
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub fn compact(&mut self) -> Result<Compaction, ControlError> {
        Ok(wire::compaction(&self.ask(Verb::Compact, &[])?)?)
    }
}

fn number(number: u32) -> Vec<u8> {
    Body::default().number(u64::from(number)).0
}

impl From<ControlError> for VolumeError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Volume(error) => error,
            ControlError::Io(source) => VolumeError::Io {
                context: "asking the process that has the volume".to_owned(),
                source,
            },
            ControlError::Version(what) => VolumeError::Unsupported(what),
        }
    }
}

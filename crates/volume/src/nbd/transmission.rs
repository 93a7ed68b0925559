//! Requests and their replies, after the handshake.
//!
//! Whole requests are taken from the input one after the other. When it holds none, the replies
//! are sent before anything waits for more. A payload that fits into the input's buffer is written
//! from there.
//!
//! Errors: out of range is `EINVAL`, but `ENOSPC` for WRITE and WRITE_ZEROES; not aligned,
//! unknown, with wrong flags, too long are `EINVAL`; read-only is `EPERM`; the rest `EIO`. A
//! client that asked for structured replies is told why in words.

use std::time::Duration;

use super::budget::Budget;
use super::handshake::Agreed;
use super::input::{Broken, Input};
use super::protocol::{BASE_ALLOCATION_ID, Command, Errno, Request, chunk, command_flags, state};
use super::reply::{ERROR_BYTES_MAX, HEADER_BYTES_MAX, Output};
use super::{BUFFER_BYTES, REQUEST_BYTES_MAX};
use crate::device::{BlockDevice, DeviceError, Extent, ExtentKind};

/// Most bytes of data in a chunk, when a reply may have several.
const PIECE_BYTES_MAX: u64 = 256 * 1024;

/// From how many bytes on a structured read looks for holes.
const HOLES_FROM_BYTES: u32 = 64 * 1024;

/// Most extents that are looked at together.
const EXTENTS_MAX: usize = 4096;

/// The zeros of a disk take no room, so `NO_HOLE` has nothing to prevent.
const WRITE_ZEROES_FLAGS: u16 =
    command_flags::FUA | command_flags::NO_HOLE | command_flags::FAST_ZERO;

/// Why a request is refused.
enum Refusal {
    Device(DeviceError),
    Invalid(&'static str),
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

/// What connections share.
pub(super) struct Shared<'a> {
    pub large: &'a Budget,
    pub stall: Duration,
}

/// Serves a client until it leaves.
pub(super) fn serve<'stream>(
    agreed: &Agreed,
    shared: &Shared<'_>,
    input: &mut Input<'stream>,
    output: &mut Output<'stream>,
) -> Result<(), Broken> {
    let mut transmission = Transmission {
        device: &*agreed.device,
        agreed,
        shared,
        input,
        output,
    };
    while transmission.request()? {}
    transmission.output.send()
}

struct Transmission<'a, 'stream> {
    device: &'a dyn BlockDevice,
    agreed: &'a Agreed,
    shared: &'a Shared<'a>,
    input: &'a mut Input<'stream>,
    output: &'a mut Output<'stream>,
}

impl Transmission<'_, '_> {
    /// Does the next request; false when the client said goodbye.
    fn request(&mut self) -> Result<bool, Broken> {
        self.wait_for(Request::BYTES)?;
        let header = self.input.take(Request::BYTES);
        let request = header.first_chunk().and_then(Request::decode);
        let request = request.ok_or(Broken::Violation)?;
        match request.command {
            Command::Disconnect => return Ok(false),
            Command::Read => self.read(request)?,
            Command::Write => self.write(request)?,
            Command::BlockStatus => self.block_status(request)?,
            _ => {
                let result = self.change(request);
                self.answer(request, result)?;
            }
        }
        Ok(true)
    }

    /// Has so many bytes in the input. What has been answered is sent before it waits.
    fn wait_for(&mut self, count: usize) -> Result<(), Broken> {
        while self.input.available_bytes() < count {
            self.output.send()?;
            self.input.fill(count)?;
        }
        Ok(())
    }

    /// Commands without payload.
    fn change(&self, request: Request) -> Result<(), Refusal> {
        let Request { offset, .. } = request;
        let length = u64::from(request.length_bytes);
        match request.command {
            Command::Flush => {
                allow(request, command_flags::FUA)?;
                if offset != 0 || length != 0 {
                    return Err(Refusal::Invalid("a flush has no range"));
                }
                return Ok(self.device.flush()?);
            }
            Command::Trim => {
                allow(request, command_flags::FUA)?;
                self.device.trim(offset, length)?;
            }
            Command::WriteZeroes => {
                allow(request, WRITE_ZEROES_FLAGS)?;
                self.device.write_zeroes(offset, length)?;
            }
            _ => return Err(Refusal::Invalid("unknown command")),
        }
        self.finish(request)
    }

    /// What FUA asks for after a write.
    fn finish(&self, request: Request) -> Result<(), Refusal> {
        if request.flags & command_flags::FUA != 0 {
            self.device.flush()?;
        }
        Ok(())
    }

    fn write(&mut self, request: Request) -> Result<(), Broken> {
        let length = request.length_bytes as usize;
        let checked = allow(request, command_flags::FUA).and_then(|()| bounded(request));
        if checked.is_err() {
            self.output.send()?;
            self.input.skip(u64::from(request.length_bytes))?;
            return self.answer(request, checked);
        }
        let written = if length <= self.input.capacity_bytes() {
            self.wait_for(length)?;
            self.device.write(request.offset, self.input.take(length))
        } else {
            self.output.send()?;
            let _share = self.shared.large.take(length).ok_or(Broken::Ending)?;
            let mut payload = vec![0; length];
            self.input.take_into(&mut payload, self.shared.stall)?;
            self.device.write(request.offset, &payload)
        };
        let result = written.map_err(Refusal::from);
        let result = result.and_then(|()| self.finish(request));
        self.answer(request, result)
    }

    fn read(&mut self, request: Request) -> Result<(), Broken> {
        let is_structured = self.agreed.is_structured;
        let df = if is_structured { command_flags::DF } else { 0 };
        let checked = allow(request, command_flags::FUA | df).and_then(|()| bounded(request));
        if checked.is_err() {
            return self.answer(request, checked);
        }
        if is_structured && request.length_bytes == 0 {
            return self.answer(request, Ok(()));
        }
        let may_have_holes = request.length_bytes >= HOLES_FROM_BYTES;
        if is_structured && may_have_holes && request.flags & command_flags::DF == 0 {
            return self.read_in_pieces(request);
        }
        let length = request.length_bytes as usize;
        if length > BUFFER_BYTES - HEADER_BYTES_MAX {
            return self.read_large(request);
        }
        self.output.reserve(length)?;
        let start = self.output.position();
        self.data_header(request);
        let (device, offset) = (self.device, request.offset);
        let read = self
            .output
            .payload(length, |data| device.read(offset, data));
        if let Err(error) = read {
            self.output.rewind(start);
            return self.answer(request, Err(error.into()));
        }
        Ok(())
    }

    /// What stands before the data of a reply that is whole.
    fn data_header(&mut self, request: Request) {
        if self.agreed.is_structured {
            let bytes = 8 + request.length_bytes as usize;
            self.output
                .chunk(request.cookie, chunk::OFFSET_DATA, true, bytes);
            self.output.u64(request.offset);
        } else {
            self.output.simple(request.cookie, None);
        }
    }

    /// A reply that must be whole and does not fit into the output's buffer.
    fn read_large(&mut self, request: Request) -> Result<(), Broken> {
        let length = request.length_bytes as usize;
        self.output.send()?;
        let _share = self.shared.large.take(length).ok_or(Broken::Ending)?;
        let mut data = vec![0; length];
        if let Err(error) = self.device.read(request.offset, &mut data) {
            return self.answer(request, Err(error.into()));
        }
        self.data_header(request);
        self.output.send_large(&data, self.shared.stall)
    }

    /// A structured reply of many chunks: data, and holes that take no bytes.
    fn read_in_pieces(&mut self, request: Request) -> Result<(), Broken> {
        let mut offset = request.offset;
        let mut left = u64::from(request.length_bytes);
        while left > 0 {
            let extents = match self.device.extents(offset, left, EXTENTS_MAX) {
                Ok(extents) => extents,
                Err(error) => return self.answer(request, Err(error.into())),
            };
            // What a disk says nothing about is read.
            let all = Extent {
                length_bytes: left,
                kind: ExtentKind::Data,
            };
            let extents = if extents.is_empty() {
                vec![all]
            } else {
                extents
            };
            for extent in extents {
                let length = extent.length_bytes.min(left);
                if length == 0 {
                    continue;
                }
                let is_last = length == left;
                match extent.kind {
                    ExtentKind::Hole => {
                        self.output.reserve(0)?;
                        let kind = chunk::OFFSET_HOLE;
                        self.output.chunk(request.cookie, kind, is_last, 12);
                        self.output.u64(offset);
                        self.output.u32(length as u32);
                    }
                    ExtentKind::Data => {
                        if let Err(error) = self.pieces(request, offset, length, is_last)? {
                            return self.answer(request, Err(error.into()));
                        }
                    }
                }
                offset += length;
                left -= length;
            }
        }
        Ok(())
    }

    /// Chunks of data.
    fn pieces(
        &mut self,
        request: Request,
        mut offset: u64,
        mut length: u64,
        is_last: bool,
    ) -> Result<Result<(), DeviceError>, Broken> {
        while length > 0 {
            let piece = length.min(PIECE_BYTES_MAX);
            let bytes = piece as usize;
            self.output.reserve(bytes)?;
            let start = self.output.position();
            let is_last = is_last && piece == length;
            let kind = chunk::OFFSET_DATA;
            self.output.chunk(request.cookie, kind, is_last, 8 + bytes);
            self.output.u64(offset);
            let device = self.device;
            let read = self.output.payload(bytes, |data| device.read(offset, data));
            if read.is_err() {
                self.output.rewind(start);
                return Ok(read);
            }
            offset += piece;
            length -= piece;
        }
        Ok(Ok(()))
    }

    fn block_status(&mut self, request: Request) -> Result<(), Broken> {
        let extents = self.status_extents(request);
        let extents = match extents {
            Ok(extents) => extents,
            Err(refusal) => return self.answer(request, Err(refusal)),
        };
        let bytes = 4 + 8 * extents.len();
        self.output.reserve(bytes)?;
        let kind = chunk::BLOCK_STATUS;
        self.output.chunk(request.cookie, kind, true, bytes);
        self.output.u32(BASE_ALLOCATION_ID);
        for (length, state) in extents {
            self.output.u32(length);
            self.output.u32(state);
        }
        Ok(())
    }

    /// Lengths and states, together no longer than the request.
    fn status_extents(&self, request: Request) -> Result<Vec<(u32, u32)>, Refusal> {
        allow(request, command_flags::FUA | command_flags::REQ_ONE)?;
        if !self.agreed.has_base_allocation {
            return Err(Refusal::Invalid("no metadata context was chosen"));
        }
        if request.length_bytes == 0 {
            return Err(Refusal::Invalid("the range is empty"));
        }
        let is_one = request.flags & command_flags::REQ_ONE != 0;
        let extents_max = if is_one { 1 } else { EXTENTS_MAX };
        let mut left = request.length_bytes;
        let found = self
            .device
            .extents(request.offset, u64::from(left), extents_max)?;
        let mut extents = Vec::with_capacity(found.len());
        for extent in found.into_iter().take(extents_max) {
            let length = extent.length_bytes.min(u64::from(left)) as u32;
            left -= length;
            let state = match extent.kind {
                ExtentKind::Data => 0,
                ExtentKind::Hole => state::HOLE | state::ZERO,
            };
            extents.push((length, state));
        }
        Ok(extents)
    }

    /// A reply without data.
    fn answer(&mut self, request: Request, result: Result<(), Refusal>) -> Result<(), Broken> {
        let cookie = request.cookie;
        self.output.reserve(ERROR_BYTES_MAX)?;
        let is_content = matches!(request.command, Command::Read | Command::BlockStatus);
        match result {
            Ok(()) if self.agreed.is_structured && is_content => {
                self.output.chunk(cookie, chunk::NONE, true, 0);
            }
            Ok(()) => self.output.simple(cookie, None),
            Err(refusal) => {
                let errno = refusal.errno(request.command);
                if self.agreed.is_structured {
                    let message = refusal.message();
                    self.output.error_chunk(cookie, errno, &message);
                } else {
                    self.output.simple(cookie, Some(errno));
                }
            }
        }
        Ok(())
    }
}

impl Refusal {
    fn errno(&self, command: Command) -> Errno {
        match self {
            Self::Invalid(_) | Self::Device(DeviceError::Unaligned { .. }) => Errno::Inval,
            Self::Device(DeviceError::OutOfRange { .. }) => match command {
                Command::Write | Command::WriteZeroes => Errno::NoSpace,
                _ => Errno::Inval,
            },
            Self::Device(DeviceError::ReadOnly) => Errno::Perm,
            Self::Device(DeviceError::Full(_)) => Errno::NoSpace,
            Self::Device(
                DeviceError::Damaged(_) | DeviceError::Failed(_) | DeviceError::Io { .. },
            ) => Errno::Io,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Device(error) => error.to_string(),
            Self::Invalid(message) => (*message).to_string(),
        }
    }
}

/// Whether a request has only flags that its command knows.
fn allow(request: Request, flags: u16) -> Result<(), Refusal> {
    if request.flags & !flags != 0 {
        return Err(Refusal::Invalid("a flag that the command does not have"));
    }
    Ok(())
}

/// Whether a request's data are not too long.
fn bounded(request: Request) -> Result<(), Refusal> {
    if request.length_bytes > REQUEST_BYTES_MAX {
        return Err(Refusal::Invalid("the request is too long"));
    }
    Ok(())
}

//! The numbers of the protocol, and its fixed-size messages to and from bytes.
//!
//! Everything is big-endian. Source: `doc/proto.md` of NetworkBlockDevice/nbd.

/// First word of the server: `NBDMAGIC`.
pub(super) const HELLO_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second word of the server, and first word of each option: `IHAVEOPT`.
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// First word of a reply to an option.
pub(super) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub(super) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub(super) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub(super) const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Handshake flags, of server and client alike: options get replies.
pub(super) const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flags, of server and client alike: no zeros after the reply to `EXPORT_NAME`.
pub(super) const FLAG_NO_ZEROES: u16 = 1 << 1;

/// Most bytes of a string, such as the name of an export.
pub(super) const STRING_BYTES_MAX: usize = 4096;
/// Most bytes of an option's data: a name, and some queries or requests for information.
pub(super) const OPTION_BYTES_MAX: usize = 4 * STRING_BYTES_MAX;
/// Most options in a handshake.
pub(super) const OPTIONS_MAX: usize = 256;

/// What an export can do, as clients are told.
pub(super) mod transmission_flags {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// What a client asks for in the handshake.
pub(super) mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// What it is told.
pub(super) mod option_reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Kinds of information about an export.
pub(super) mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// The context that says what is stored where.
pub(super) const BASE_ALLOCATION: &str = "base:allocation";
/// Its number in this server's replies.
pub(super) const BASE_ALLOCATION_ID: u32 = 1;

/// What an extent of `base:allocation` is.
pub(super) mod state {
    pub const HOLE: u32 = 1 << 0;
    pub const ZERO: u32 = 1 << 1;
}

/// Refinements of commands.
pub(super) mod command_flags {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Kinds of chunks of structured replies.
pub(super) mod chunk {
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
    /// Flag of the last one.
    pub const DONE: u16 = 1 << 0;
}

/// What went wrong, as clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Errno {
    /// The disk takes no writes.
    Perm = 1,
    /// The disk failed.
    Io = 5,
    /// The request makes no sense.
    Inval = 22,
    /// There is no room.
    NoSpace = 28,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    BlockStatus,
    Unknown(u16),
}

impl Command {
    fn of(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Unknown(other),
        }
    }
}

/// The header of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub flags: u16,
    pub command: Command,
    /// What the client calls the request; its reply carries the same.
    pub cookie: u64,
    pub offset: u64,
    pub length_bytes: u32,
}

impl Request {
    pub const BYTES: usize = 28;

    /// `None` when it does not begin as requests do.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(Self {
            flags: fields.u16()?,
            command: Command::of(fields.u16()?),
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length_bytes: fields.u32()?,
        })
    }
}

/// The header of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OptionHeader {
    pub option: u32,
    pub data_bytes: u32,
}

impl OptionHeader {
    pub const BYTES: usize = 16;

    /// `None` when it does not begin as options do.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.u64()? != OPTION_MAGIC {
            return None;
        }
        Some(Self {
            option: fields.u32()?,
            data_bytes: fields.u32()?,
        })
    }
}

/// Takes fields off the front; `None` when there are too few bytes.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*front)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length (32 bits) before it.
    pub fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        if length > STRING_BYTES_MAX {
            return None;
        }
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_the_specification_draws() {
        let mut bytes = [0; Request::BYTES];
        bytes[..4].copy_from_slice(&[0x25, 0x60, 0x95, 0x13]);
        bytes[4..8].copy_from_slice(&[0, 1, 0, 6]);
        bytes[8..16].copy_from_slice(b"cookie!!");
        bytes[16..24].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0]);
        bytes[24..].copy_from_slice(&[0, 0, 0x10, 0]);
        let request = Request::decode(&bytes).expect("it is one");
        assert_eq!(request.flags, command_flags::FUA);
        assert_eq!(request.command, Command::WriteZeroes);
        assert_eq!(request.cookie, u64::from_be_bytes(*b"cookie!!"));
        assert_eq!(request.offset, 1 << 32);
        assert_eq!(request.length_bytes, 4096);
        bytes[0] = 0;
        assert_eq!(Request::decode(&bytes), None);
    }

    #[test]
    fn fields_end_where_the_bytes_do() {
        let mut fields = Fields(&[0, 0, 0, 2, b'a', b'b', 0]);
        assert_eq!(fields.string(), Some("ab"));
        assert_eq!(fields.u16(), None);
        assert!(!fields.is_empty());
        assert_eq!(Fields(&[0xff; 8]).string(), None);
        assert_eq!(Fields(&[0, 0, 0, 2, 0xc3, 0x28]).string(), None);
    }
}

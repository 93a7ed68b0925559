//! A client of NBD, small and strict, written from the specification: what the server does must
//! agree with it, so nothing is shared with the server's code.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::Served;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const DF: u16 = 4;
pub const REQ_ONE: u16 = 8;
pub const FAST_ZERO: u16 = 16;

pub const EPERM: u32 = 1;
pub const EIO: u32 = 5;
pub const EINVAL: u32 = 22;
pub const ENOSPC: u32 = 28;

pub const ACK: u32 = 1;
pub const REP_SERVER: u32 = 2;
pub const REP_INFO: u32 = 3;
pub const REP_META_CONTEXT: u32 = 4;
pub const ERR_UNSUP: u32 = 0x8000_0001;
pub const ERR_POLICY: u32 = 0x8000_0002;
pub const ERR_INVALID: u32 = 0x8000_0003;
pub const ERR_UNKNOWN: u32 = 0x8000_0006;
pub const ERR_TOO_BIG: u32 = 0x8000_0009;

pub struct Client {
    pub stream: UnixStream,
    pub is_structured: bool,
    cookie: u64,
}

/// What the server answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Simple {
        error: u32,
        cookie: u64,
    },
    Chunk {
        is_last: bool,
        kind: u16,
        cookie: u64,
        payload: Vec<u8>,
    },
}

/// An extent of `base:allocation`: bytes, and whether it is a hole that reads as zeros.
pub type Status = (u32, bool);

impl Client {
    /// Connected; nothing was read or written.
    pub fn raw(served: &Served) -> Self {
        let stream = UnixStream::connect(served.socket()).expect("it listens");
        // A server that hangs fails the test.
        let timeout = Some(Duration::from_secs(60));
        stream.set_read_timeout(timeout).unwrap();
        stream.set_write_timeout(timeout).unwrap();
        Self {
            stream,
            is_structured: false,
            cookie: 0x6f6e_6566_6f6c_6400,
        }
    }

    /// Ready to send options.
    pub fn greeted(served: &Served, flags: u32) -> Self {
        let mut client = Self::raw(served);
        assert_eq!(&client.bytes::<16>(), b"NBDMAGICIHAVEOPT");
        assert_eq!(client.u16(), 3, "fixed newstyle, no zeroes");
        client.send(&flags.to_be_bytes());
        client
    }

    /// Ready to send commands to the default export; replies are simple.
    pub fn simple(served: &Served) -> Self {
        let mut client = Self::greeted(served, 3);
        let replies = client.option(7, &go(""));
        assert_eq!(replies.last().expect("a reply").0, ACK);
        client
    }

    /// The same with structured replies and `base:allocation`.
    pub fn structured(served: &Served) -> Self {
        let mut client = Self::greeted(served, 3);
        client.negotiate_structured();
        let set = meta_context("", &["base:allocation"]);
        assert_eq!(client.option(10, &set).last().expect("a reply").0, ACK);
        assert_eq!(client.option(7, &go("")).last().expect("a reply").0, ACK);
        client
    }

    pub fn negotiate_structured(&mut self) {
        assert_eq!(self.option(8, b""), [(ACK, vec![])]);
        self.is_structured = true;
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream
            .read_exact(&mut bytes)
            .expect("the server says more");
        bytes
    }

    pub fn vec(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream
            .read_exact(&mut bytes)
            .expect("the server says more");
        bytes
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes())
    }

    /// Whether the server closed the connection, after whatever it has still to say.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub fn send_option(&mut self, option: u32, data: &[u8]) {
        let mut bytes = b"IHAVEOPT".to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes);
    }

    /// Replies to an option, up to the final one.
    pub fn option(&mut self, option: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send_option(option, data);
        let mut replies = Vec::new();
        loop {
            assert_eq!(self.u64(), 0x0003_e889_0455_65a9);
            assert_eq!(self.u32(), option);
            let reply = self.u32();
            let length = self.u32() as usize;
            replies.push((reply, self.vec(length)));
            if reply == ACK || reply & (1 << 31) != 0 {
                return replies;
            }
        }
    }

    /// Sends a request, whose cookie is returned.
    pub fn request(&mut self, flags: u16, command: u16, offset: u64, length: u32) -> u64 {
        self.cookie += 1;
        let request = request(flags, command, self.cookie, offset, length);
        self.send(&request);
        self.cookie
    }

    /// A reply without the data of a simple READ.
    pub fn reply(&mut self) -> Reply {
        match self.u32() {
            0x6744_6698 => Reply::Simple {
                error: self.u32(),
                cookie: self.u64(),
            },
            0x668e_33ef => {
                assert!(self.is_structured, "nobody asked for chunks");
                let flags = self.u16();
                assert!(flags <= 1);
                let kind = self.u16();
                let cookie = self.u64();
                let length = self.u32() as usize;
                Reply::Chunk {
                    is_last: flags == 1,
                    kind,
                    cookie,
                    payload: self.vec(length),
                }
            }
            other => panic!("{other:#x} begins no reply"),
        }
    }

    /// The result of a command without data in its reply.
    pub fn done(&mut self, expected: u64) -> Result<(), u32> {
        match self.reply() {
            Reply::Simple { error, cookie } => {
                assert_eq!(cookie, expected);
                if error == 0 { Ok(()) } else { Err(error) }
            }
            Reply::Chunk {
                is_last,
                kind,
                cookie,
                payload,
            } => {
                assert_eq!((is_last, cookie), (true, expected));
                if kind == 0 {
                    assert_eq!(payload, []);
                    return Ok(());
                }
                Err(error_of(kind, &payload))
            }
        }
    }

    pub fn write(&mut self, flags: u16, offset: u64, data: &[u8]) -> Result<(), u32> {
        let cookie = self.request(flags, WRITE, offset, data.len() as u32);
        self.send(data);
        self.done(cookie)
    }

    pub fn change(
        &mut self,
        flags: u16,
        command: u16,
        offset: u64,
        length: u32,
    ) -> Result<(), u32> {
        let cookie = self.request(flags, command, offset, length);
        self.done(cookie)
    }

    pub fn flush(&mut self) -> Result<(), u32> {
        self.change(0, FLUSH, 0, 0)
    }

    pub fn read(&mut self, flags: u16, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        let cookie = self.request(flags, READ, offset, length);
        if self.is_structured {
            return self.chunks(cookie, offset, length).map(|(data, _)| data);
        }
        self.done(cookie)?;
        Ok(self.vec(length as usize))
    }

    /// The data of a structured READ, and how many chunks of data and holes it took.
    pub fn chunks(
        &mut self,
        expected: u64,
        offset: u64,
        length: u32,
    ) -> Result<(Vec<u8>, (usize, usize)), u32> {
        let mut data = vec![0xaa; length as usize];
        let mut covered = 0;
        let mut error = None;
        let (mut contents, mut holes) = (0, 0);
        loop {
            let Reply::Chunk {
                is_last,
                kind,
                cookie,
                payload,
            } = self.reply()
            else {
                panic!("a READ is answered in chunks")
            };
            assert_eq!(cookie, expected);
            match kind {
                0 => assert!(is_last),
                1 => {
                    let (at, bytes) = payload.split_first_chunk().expect("an offset");
                    let at = (u64::from_be_bytes(*at) - offset) as usize;
                    data[at..at + bytes.len()].copy_from_slice(bytes);
                    assert!(!bytes.is_empty());
                    covered += bytes.len();
                    contents += 1;
                }
                2 => {
                    assert_eq!(payload.len(), 12);
                    let at = u64::from_be_bytes(payload[..8].try_into().unwrap());
                    let bytes = u32::from_be_bytes(payload[8..].try_into().unwrap()) as usize;
                    let at = (at - offset) as usize;
                    data[at..at + bytes].fill(0);
                    assert!(bytes > 0);
                    covered += bytes;
                    holes += 1;
                }
                _ => error = Some(error_of(kind, &payload)),
            }
            if is_last {
                break;
            }
        }
        if let Some(error) = error {
            return Err(error);
        }
        assert_eq!(covered, length as usize, "chunks cover the range once");
        Ok((data, (contents, holes)))
    }

    pub fn status(&mut self, flags: u16, offset: u64, length: u32) -> Result<Vec<Status>, u32> {
        let expected = self.request(flags, BLOCK_STATUS, offset, length);
        let Reply::Chunk {
            is_last: true,
            kind,
            cookie,
            payload,
        } = self.reply()
        else {
            panic!("one chunk is the answer")
        };
        assert_eq!(cookie, expected);
        if kind != 5 {
            return Err(error_of(kind, &payload));
        }
        assert!(payload.len() >= 12 && payload.len() % 8 == 4);
        assert_eq!(payload[..4], [0, 0, 0, 1]);
        let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        let extents = payload[4..].chunks(8).map(|extent| {
            let state = word(&extent[4..]);
            assert!(state == 0 || state == 3);
            assert!(word(&extent[..4]) > 0);
            (word(&extent[..4]), state == 3)
        });
        Ok(extents.collect())
    }
}

fn error_of(kind: u16, payload: &[u8]) -> u32 {
    assert_eq!(kind, 0x8001, "an error without offset");
    let error = u32::from_be_bytes(payload[..4].try_into().unwrap());
    let length = u16::from_be_bytes(payload[4..6].try_into().unwrap());
    assert_eq!(payload.len(), 6 + usize::from(length));
    assert!(std::str::from_utf8(&payload[6..]).is_ok_and(|message| !message.is_empty()));
    assert_ne!(error, 0);
    error
}

/// The header of a request.
pub fn request(flags: u16, command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Data of INFO and GO that asks for nothing in particular.
pub fn go(name: &str) -> Vec<u8> {
    info(name, &[])
}

pub fn info(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((wanted.len() as u16).to_be_bytes());
    for kind in wanted {
        data.extend(kind.to_be_bytes());
    }
    data
}

/// Data of LIST_META_CONTEXT and SET_META_CONTEXT.
pub fn meta_context(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    for query in queries {
        data.extend(string(query));
    }
    data
}

fn string(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

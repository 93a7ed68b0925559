//! A server of the network block device protocol: disks for QEMU, the kernel's `nbd-client`,
//! `nbdcopy` and whoever else speaks it.
//!
//! What enters: connections on loopback TCP or on a Unix socket; what leaves: calls of
//! [`BlockDevice`](crate::BlockDevice). One thread waits for connections, and each connection has
//! a thread of its own, which does its requests one after the other and answers in their order.
//! Requests are read many at once, replies are written many at once, and no reply waits for input.
//!
//! Source: `doc/proto.md` of NetworkBlockDevice/nbd. Spoken is the fixed newstyle handshake with
//! `EXPORT_NAME`, `ABORT`, `LIST`, `INFO`, `GO`, `STRUCTURED_REPLY`, `LIST_META_CONTEXT` and
//! `SET_META_CONTEXT` (`base:allocation`), and the commands READ, WRITE, DISC, FLUSH, TRIM,
//! WRITE_ZEROES and BLOCK_STATUS. No TLS, so nothing but this machine is let in unless
//! [`Settings::allow_remote`] says so.
//!
//! Invariants:
//! * A write is given to the disk when all of its bytes have come; a client that vanishes in the
//!   middle of one leaves nothing of it.
//! * FUA and FLUSH are answered after [`BlockDevice::flush`](crate::BlockDevice::flush) returned
//!   `Ok`, which covers what other connections wrote: several connections to an export are safe.
//! * A length is compared with its limit before memory is taken for it. A connection has two
//!   buffers of [`BUFFER_BYTES`]; transfers that don't fit take from one sum for all connections
//!   ([`Limits::large_bytes_max`]), and whoever holds a part of it and does not move for
//!   [`Limits::stall_ms`] is dropped. So clients that are slow hold up only themselves.
//! * What breaks the protocol is never guessed at: the connection is dropped, and counted.

mod budget;
mod endpoint;
mod handshake;
mod input;
mod protocol;
mod reply;
mod server;
mod transmission;

pub use endpoint::Endpoint;
pub(crate) use endpoint::Listener;
pub use server::{Counts, Server};

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::device::{BlockDevice, DeviceError};

/// Bytes of each of the two buffers of a connection: what is read from it, what is written to it.
pub const BUFFER_BYTES: usize = 512 * 1024;

/// Most bytes that a client may read or write in one request.
pub const REQUEST_BYTES_MAX: u32 = 32 * 1024 * 1024;

/// A disk that clients can ask for.
#[derive(Clone)]
pub struct Export {
    /// What clients call it. The empty name, which asks for the default, means the first export.
    pub name: String,
    /// What people are told about it; may be empty.
    pub description: String,
    /// The disk.
    pub device: Arc<dyn BlockDevice>,
}

/// Where to listen, and what to bear.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where to listen; several places are possible.
    pub listen: Vec<Endpoint>,
    /// Whether TCP addresses other than those of loopback are accepted. The protocol has neither
    /// passwords nor encryption here: everybody who reaches the address can read and write.
    pub allow_remote: bool,
    /// What clients may take.
    pub limits: Limits,
}

/// What clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// Bytes of all transfers in hand that are larger than [`BUFFER_BYTES`], at least
    /// [`REQUEST_BYTES_MAX`]. Whoever needs more waits.
    pub large_bytes_max: usize,
    /// Time for a client to choose its export.
    pub handshake_ms: u64,
    /// How long a client may not move in the middle of a transfer that is larger than
    /// [`BUFFER_BYTES`].
    pub stall_ms: u64,
    /// When the server ends: how long requests that have arrived may take.
    pub drain_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            large_bytes_max: 256 * 1024 * 1024,
            handshake_ms: 10_000,
            stall_ms: 60_000,
            drain_ms: 10_000,
        }
    }
}

impl Settings {
    /// Listens there, with the usual limits, for this machine only.
    #[must_use]
    pub fn new(listen: Vec<Endpoint>) -> Self {
        Self {
            listen,
            allow_remote: false,
            limits: Limits::default(),
        }
    }
}

/// Why the server did not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum NbdError {
    /// There is nothing to serve, or nowhere.
    #[error("the server has no {0}")]
    Nothing(&'static str),
    /// A name can't be sent.
    #[error("the name or description of the export '{0}' is longer than {max} bytes", max = protocol::STRING_BYTES_MAX)]
    TooLong(String),
    /// A name would mean two disks.
    #[error("two exports have the name '{0}'")]
    SameName(String),
    /// A limit is below what one request needs.
    #[error("{name} is {value}, at least {min} is needed")]
    Limit {
        /// Which.
        name: &'static str,
        /// What it is.
        value: usize,
        /// What it must be.
        min: usize,
    },
    /// The address is open to other machines, and nobody said that it may be.
    #[error("{0} can be reached from other machines, which must be allowed explicitly")]
    NotLoopback(SocketAddr),
    /// A server listens on this socket.
    #[error("a server is listening on {}", .0.display())]
    InUse(PathBuf),
    /// There is something else where the socket should be.
    #[error("{} is no socket", .0.display())]
    NotSocket(PathBuf),
    /// The operating system refused.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// What it says.
        source: io::Error,
    },
    /// The last flush failed: what clients wrote since the one before may be lost.
    #[error("the export '{export}' could not be flushed: {source}")]
    Flush {
        /// Which.
        export: String,
        /// Why.
        source: DeviceError,
    },
}

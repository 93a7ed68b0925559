//! Where the server listens, and the streams that come of it.
//!
//! A Unix socket is made with mode 0600 from the start. A socket file that nobody listens on, as a
//! server that was killed leaves it, is replaced; one that somebody listens on is not touched.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::NbdError;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and a port; port 0 means any that is free.
    Tcp(SocketAddr),
    /// The path of a socket.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A socket that takes connections; removes its file when dropped.
pub(crate) struct Listener {
    socket: Socket,
    endpoint: Endpoint,
}

enum Socket {
    Tcp(TcpListener),
    /// With device and inode of its file.
    Unix(UnixListener, Option<(u64, u64)>),
}

impl Listener {
    /// # Errors
    /// When the address is not allowed, in use, or can't be had.
    pub fn bind(endpoint: &Endpoint, allow_remote: bool) -> Result<Self, NbdError> {
        let failed = |source| NbdError::Io {
            context: format!("listening on {endpoint}"),
            source,
        };
        let (socket, endpoint) = match endpoint {
            Endpoint::Tcp(address) => {
                if !allow_remote && !address.ip().to_canonical().is_loopback() {
                    return Err(NbdError::NotLoopback(*address));
                }
                let listener = TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                (Socket::Tcp(listener), Endpoint::Tcp(address))
            }
            Endpoint::Unix(path) => {
                make_way(path)?;
                let listener = bind_unix(path).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                (
                    Socket::Unix(listener, identity(path)),
                    Endpoint::Unix(path.clone()),
                )
            }
        };
        Ok(Self { socket, endpoint })
    }

    /// Where it listens, with the port that it got.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The next connection; `WouldBlock` when nobody waits.
    pub(super) fn accept(&self) -> io::Result<Stream> {
        let stream = match &self.socket {
            Socket::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
            Socket::Unix(listener, _) => Stream::Unix(listener.accept()?.0),
        };
        stream.prepare()?;
        Ok(stream)
    }
}

impl Listener {
    /// The next connection to a Unix socket; `WouldBlock` when nobody waits.
    pub fn accept_unix(&self) -> io::Result<UnixStream> {
        match self.accept()? {
            Stream::Unix(stream) => Ok(stream),
            Stream::Tcp(_) => Err(ErrorKind::Unsupported.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(listener) => listener.as_fd(),
            Socket::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let (Socket::Unix(_, ours), Endpoint::Unix(path)) = (&self.socket, &self.endpoint) {
            // Whoever has put another file there keeps it. A file that stays is replaced by the
            // next server.
            if ours.is_some() && identity(path) == *ours {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Removes a socket that nobody listens on.
fn make_way(path: &Path) -> Result<(), NbdError> {
    let failed = |source| NbdError::Io {
        context: format!("making way for the socket {}", path.display()),
        source,
    };
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !metadata.file_type().is_socket() {
        return Err(NbdError::NotSocket(path.to_path_buf()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        // A server whose queue is full, or that belongs to somebody else, is one all the same.
        Ok(_) | Err(_) => Err(NbdError::InUse(path.to_path_buf())),
    }
}

/// A socket gets the mode of its descriptor when it is bound, so there is no moment in which
/// others could connect.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// A connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Does the same with either kind.
macro_rules! either {
    ($stream:expr, $inner:pat => $body:expr) => {
        match $stream {
            Stream::Tcp($inner) => $body,
            Stream::Unix($inner) => $body,
        }
    };
}

impl Stream {
    fn prepare(&self) -> io::Result<()> {
        if let Self::Tcp(stream) = self {
            stream.set_nodelay(true)?;
        }
        either!(self, stream => stream.set_nonblocking(false))
    }

    /// Reads what has come; `None` when nothing has.
    pub fn read_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let socket = either!(self, stream => stream.as_fd());
        match rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends one direction or both, for whoever reads or writes at the moment, too.
    pub fn shutdown(&self, how: Shutdown) {
        // It fails when the client is gone already.
        let _ = either!(self, stream => stream.shutdown(how));
    }

    /// How long a read or write may wait; `None` for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        // A timeout of zero would be refused.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        either!(self, stream => {
            stream.set_read_timeout(timeout)?;
            stream.set_write_timeout(timeout)
        })
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, stream => {
            let mut stream = stream;
            stream.read(buffer)
        })
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, stream => {
            let mut stream = stream;
            stream.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

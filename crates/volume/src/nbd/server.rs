//! Listening, the threads of connections, and the end.
//!
//! [`Server::shutdown`] lets nobody in any more, closes the receiving half of every connection, so
//! that what has arrived is done and answered and its thread then finds the end of its input, waits
//! for them, cuts off those that take longer than [`Limits::drain_ms`](super::Limits::drain_ms),
//! and flushes the disks.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::budget::Budget;
use super::endpoint::{Listener, Stream};
use super::handshake;
use super::input::{Broken, Input};
use super::protocol::STRING_BYTES_MAX;
use super::reply::Output;
use super::transmission;
use super::{BUFFER_BYTES, Endpoint, Export, Limits, NbdError, REQUEST_BYTES_MAX, Settings};

/// How long to wait when the system has no descriptors or memory for a connection.
const EXHAUSTED_MS: u64 = 50;

/// A running server. Dropping it ends it, too, but does not tell whether the disks were flushed.
pub struct Server {
    shared: Arc<Shared>,
    endpoints: Vec<Endpoint>,
    /// The acceptor ends when the other end of this is closed.
    running: Option<(UnixStream, JoinHandle<()>)>,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are open.
    pub open: usize,
    /// Connections that were let in.
    pub accepted: u64,
    /// Connections that were closed at once, for there were too many.
    pub rejected: u64,
    /// Connections that were dropped because the client did what the protocol does not allow.
    pub violations: u64,
}

/// What the threads share.
struct Shared {
    exports: Vec<Export>,
    limits: Limits,
    large: Budget,
    connections: Mutex<HashMap<u64, Arc<Stream>>>,
    /// A connection has ended.
    ended: Condvar,
    accepted: AtomicU64,
    rejected: AtomicU64,
    violations: AtomicU64,
}

impl Server {
    /// Listens, and serves in threads of its own.
    ///
    /// # Errors
    /// When a setting makes no sense, or an address can't be had.
    pub fn start(exports: Vec<Export>, settings: &Settings) -> Result<Self, NbdError> {
        check(&exports, settings)?;
        let bind = |endpoint| Listener::bind(endpoint, settings.allow_remote);
        let listeners: Result<Vec<Listener>, NbdError> = settings.listen.iter().map(bind).collect();
        let listeners = listeners?;
        let endpoints = listeners.iter().map(|listener| listener.endpoint().clone());
        let endpoints = endpoints.collect();
        let shared = Arc::new(Shared {
            exports,
            limits: settings.limits,
            large: Budget::new(settings.limits.large_bytes_max),
            connections: Mutex::new(HashMap::new()),
            ended: Condvar::new(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            violations: AtomicU64::new(0),
        });
        let failed = |source| NbdError::Io {
            context: "starting the thread that waits for connections".to_string(),
            source,
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let acceptor = std::thread::Builder::new().name("nbd-accept".to_string());
        let acceptor = acceptor.spawn({
            let shared = Arc::clone(&shared);
            move || accept(&shared, &listeners, &theirs)
        });
        Ok(Self {
            shared,
            endpoints,
            running: Some((ours, acceptor.map_err(failed)?)),
        })
    }

    /// Where it listens, with the ports that it got.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            open: self.shared.connections().len(),
            accepted: self.shared.accepted.load(Ordering::Relaxed),
            rejected: self.shared.rejected.load(Ordering::Relaxed),
            violations: self.shared.violations.load(Ordering::Relaxed),
        }
    }

    /// Lets nobody in, finishes what has arrived, closes all connections, removes the sockets and
    /// flushes the disks.
    ///
    /// # Errors
    /// When a disk can't be flushed. All are tried; the first failure is returned.
    pub fn shutdown(mut self) -> Result<(), NbdError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), NbdError> {
        let Some((running, acceptor)) = self.running.take() else {
            return Ok(());
        };
        drop(running);
        // It ends by itself, and if it had panicked there would be nothing to do but what follows.
        let _ = acceptor.join();
        self.shared.close_connections();
        let mut result = Ok(());
        for export in &self.shared.exports {
            let flushed = export.device.flush().map_err(|source| NbdError::Flush {
                export: export.name.clone(),
                source,
            });
            result = result.and(flushed);
        }
        result
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Who wants to know calls shutdown.
        let _ = self.end();
    }
}

/// Whether settings make sense.
fn check(exports: &[Export], settings: &Settings) -> Result<(), NbdError> {
    if exports.is_empty() {
        return Err(NbdError::Nothing("export"));
    }
    if settings.listen.is_empty() {
        return Err(NbdError::Nothing("address to listen on"));
    }
    for (index, export) in exports.iter().enumerate() {
        if export.name.len() > STRING_BYTES_MAX || export.description.len() > STRING_BYTES_MAX {
            return Err(NbdError::TooLong(export.name.clone()));
        }
        let mut others = exports[..index].iter();
        if others.any(|other| other.name == export.name) {
            return Err(NbdError::SameName(export.name.clone()));
        }
    }
    let limits = settings.limits;
    for (name, value, min) in [
        (
            "large_bytes_max",
            limits.large_bytes_max,
            REQUEST_BYTES_MAX as usize,
        ),
        ("connections_max", limits.connections_max, 1),
    ] {
        if value < min {
            return Err(NbdError::Limit { name, value, min });
        }
    }
    Ok(())
}

/// Lets connections in until the other end of `running` is closed.
fn accept(shared: &Arc<Shared>, listeners: &[Listener], running: &UnixStream) {
    loop {
        let mut waited: Vec<PollFd<'_>> = vec![PollFd::new(running, PollFlags::IN)];
        waited.extend(
            listeners
                .iter()
                .map(|listener| PollFd::new(listener, PollFlags::IN)),
        );
        let ready = rustix::event::poll(&mut waited, None);
        if ready.is_err() {
            pause_if(ready != Err(rustix::io::Errno::INTR));
            continue;
        }
        if !waited[0].revents().is_empty() {
            return;
        }
        for (listener, event) in listeners.iter().zip(&waited[1..]) {
            if event.revents().is_empty() {
                continue;
            }
            match listener.accept() {
                Ok(stream) => shared.admit(stream),
                Err(error) => pause_if(!matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                )),
            }
        }
    }
}

/// Does not spin while the system can't give what is needed.
fn pause_if(is_exhausted: bool) {
    if is_exhausted {
        std::thread::sleep(Duration::from_millis(EXHAUSTED_MS));
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, HashMap<u64, Arc<Stream>>> {
        let connections = self.connections.lock();
        connections.unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection a thread, or closes it.
    fn admit(self: &Arc<Self>, stream: Stream) {
        let stream = Arc::new(stream);
        let id = self.accepted.load(Ordering::Relaxed);
        {
            let mut connections = self.connections();
            if connections.len() >= self.limits.connections_max {
                self.rejected.fetch_add(1, Ordering::Relaxed);
                return;
            }
            connections.insert(id, Arc::clone(&stream));
        }
        // Only the thread that accepts counts, so no other connection has this number.
        self.accepted.fetch_add(1, Ordering::Relaxed);
        let thread = std::thread::Builder::new().name("nbd-connection".to_string());
        let open = Open {
            shared: Arc::clone(self),
            id,
        };
        let thread = thread.spawn(move || {
            // Dropped last: who waits for the end finds the socket closed.
            let open = open;
            let served = open.shared.serve(&stream);
            if matches!(served, Err(Broken::Violation)) {
                open.shared.violations.fetch_add(1, Ordering::Relaxed);
            }
            drop(stream);
        });
        if thread.is_err() {
            self.rejected.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn serve(&self, stream: &Stream) -> Result<(), Broken> {
        let mut input = Input::new(stream, BUFFER_BYTES);
        let mut output = Output::new(stream);
        let deadline = Instant::now() + Duration::from_millis(self.limits.handshake_ms);
        stream.set_timeout(Some(Duration::from_millis(self.limits.handshake_ms)))?;
        let agreed = handshake::negotiate(&self.exports, &mut input, &mut output, deadline)?;
        stream.set_timeout(None)?;
        let Some(agreed) = agreed else {
            return Ok(());
        };
        let shared = transmission::Shared {
            large: &self.large,
            stall: Duration::from_millis(self.limits.stall_ms),
        };
        transmission::serve(&agreed, &shared, &mut input, &mut output)
    }

    /// Ends all connections. Nobody is let in any more.
    fn close_connections(&self) {
        let shutdown_all = |connections: &HashMap<u64, Arc<Stream>>, how| {
            for stream in connections.values() {
                stream.shutdown(how);
            }
        };
        let connections = self.connections();
        shutdown_all(&connections, Shutdown::Read);
        let drain = Duration::from_millis(self.limits.drain_ms);
        let waited = self
            .ended
            .wait_timeout_while(connections, drain, |open| !open.is_empty());
        let (connections, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if connections.is_empty() {
            return;
        }
        self.large.close();
        shutdown_all(&connections, Shutdown::Both);
        let waited = self.ended.wait_while(connections, |open| !open.is_empty());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// That a connection is open.
struct Open {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.connections().remove(&self.id);
        self.shared.ended.notify_all();
    }
}

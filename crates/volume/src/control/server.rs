//! The side that answers: a thread that waits for connections, and one for each of them.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags};

use super::wire::{self, Body, DONE, Fields, RANGES_PER_FRAME, REFUSED, Verb};
use super::{READ_BYTES_MAX, VERSION, socket_path};
use crate::device::{BlockDevice, DeviceError};
use crate::error::VolumeError;
use crate::generations::OwnerId;
use crate::nbd::{Endpoint, Listener, NbdError};
use crate::pinned::PinnedDisk;
use crate::volume::Volume;

/// Connections at a time; further ones are closed.
const CONNECTIONS_MAX: usize = 16;

/// Most extents in an answer.
const EXTENTS_MAX: u64 = 64 << 10;

/// Answers what other processes ask of a volume, until it is dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    /// The acceptor ends when the other end of this is closed.
    running: Option<(UnixStream, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Shared {
    volume: Arc<Volume>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connections: HashMap<u64, (UnixStream, Option<JoinHandle<()>>)>,
    /// How many connections use a generation.
    readers: HashMap<u32, usize>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Listens for those who want something of the volume at `path`.
    ///
    /// # Errors
    /// When the socket can't be made.
    pub fn start(volume: &Arc<Volume>, path: &Path) -> Result<Self, NbdError> {
        let failed = |context: &str| {
            let context = context.to_owned();
            move |source| NbdError::Io { context, source }
        };
        let socket = socket_path(path).map_err(failed("finding the volume"))?;
        let listener = Listener::bind(&Endpoint::Unix(socket), false)?;
        let shared = Arc::new(Shared {
            volume: Arc::clone(volume),
            state: Mutex::default(),
        });
        let (ours, theirs) = UnixStream::pair().map_err(failed("starting to listen"))?;
        let acceptor = std::thread::Builder::new().name("volume-control".to_owned());
        let acceptor = acceptor.spawn({
            let shared = Arc::clone(&shared);
            move || accept(&shared, &listener, &theirs)
        });
        Ok(Self {
            shared,
            running: Some((ours, acceptor.map_err(failed("starting to listen"))?)),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some((running, acceptor)) = self.running.take() else {
            return;
        };
        drop(running);
        let _ = acceptor.join();
        let connections = {
            let mut state = self.shared.state();
            std::mem::take(&mut state.connections)
        };
        for (stream, thread) in connections.into_values() {
            let _ = stream.shutdown(Shutdown::Both);
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: &Listener, running: &UnixStream) {
    let mut next = 0;
    loop {
        let mut waited = [
            PollFd::new(running, PollFlags::IN),
            PollFd::new(listener, PollFlags::IN),
        ];
        if rustix::event::poll(&mut waited, None).is_err() {
            continue;
        }
        if !waited[0].revents().is_empty() {
            return;
        }
        match listener.accept_unix() {
            Ok(stream) => admit(shared, stream, next),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Nothing left to make a connection of: not a reason to spin.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
        next += 1;
    }
}

fn admit(shared: &Arc<Shared>, stream: UnixStream, number: u64) {
    let mut state = shared.state();
    if state.connections.len() >= CONNECTIONS_MAX {
        return;
    }
    let Ok(theirs) = stream.try_clone() else {
        return;
    };
    let serving = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("volume-control".to_owned());
    let thread = thread.spawn(move || {
        let mut connection = Connection {
            shared: &serving,
            stream: theirs,
            disks: HashMap::new(),
            pinned: Vec::new(),
        };
        // The client is gone, or says what can't be: either way that is its end.
        let _ = connection.serve();
        drop(connection);
        serving.state().connections.remove(&number);
    });
    if let Ok(thread) = thread {
        // The thread takes itself out behind this lock.
        state.connections.insert(number, (stream, Some(thread)));
    }
}

/// A connection.
struct Connection<'a> {
    shared: &'a Shared,
    stream: UnixStream,
    disks: HashMap<u32, PinnedDisk>,
    /// Generations that go with the connection.
    pinned: Vec<u32>,
}

/// Why a request is not answered as it was asked.
enum Unanswered {
    /// The volume can't.
    Refused(VolumeError),
    /// The connection is of no use any more.
    Broken(io::Error),
}

impl From<VolumeError> for Unanswered {
    fn from(error: VolumeError) -> Self {
        Self::Refused(error)
    }
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl From<DeviceError> for Unanswered {
    fn from(error: DeviceError) -> Self {
        Self::Refused(match error {
            DeviceError::Full(what) => VolumeError::Full(what),
            DeviceError::Failed(what) => VolumeError::Failed(what),
            DeviceError::Damaged(what) => VolumeError::Damaged(what),
            DeviceError::Io { context, source } => VolumeError::Io { context, source },
            other => VolumeError::Settings(other.to_string()),
        })
    }
}

impl Connection<'_> {
    fn serve(&mut self) -> io::Result<()> {
        let mut is_greeted = false;
        while let Some((kind, body)) = wire::receive(&mut self.stream)? {
            let verb = Verb::of(kind).ok_or_else(|| wire::wrong("an unknown request"))?;
            if !is_greeted && verb != Verb::Hello {
                return Err(wire::wrong("a request before the greeting"));
            }
            is_greeted = true;
            match self.answer(verb, &body) {
                Ok(answer) => wire::send(&mut self.stream, DONE, &answer)?,
                Err(Unanswered::Refused(error)) => {
                    wire::send(&mut self.stream, REFUSED, &wire::put_error(&error))?;
                }
                Err(Unanswered::Broken(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn answer(&mut self, verb: Verb, body: &[u8]) -> Result<Vec<u8>, Unanswered> {
        let volume = &self.shared.volume;
        let mut fields = Fields::of(body);
        Ok(match verb {
            Verb::Hello => {
                let version = fields.number()?;
                if version != u64::from(VERSION) {
                    let text = format!("its protocol is {VERSION}, ours {version}");
                    return Err(VolumeError::Unsupported(text).into());
                }
                Body::default().number(version).0
            }
            Verb::Status => wire::put_status(&volume.status()),
            Verb::Pin => {
                let pinned = volume.pin_for(OwnerId(fields.id()?))?;
                self.pinned.push(pinned.number);
                self.open(pinned.number)?;
                wire::put_generations(&[pinned])
            }
            Verb::Keep => {
                let number = fields.number_u32()?;
                self.pinned.retain(|pinned| *pinned != number);
                Vec::new()
            }
            Verb::Unpin => {
                self.unpin(fields.number_u32()?)?;
                Vec::new()
            }
            Verb::Generations => wire::put_generations(&volume.generations()),
            Verb::Changed => {
                let (from, to) = (fields.number_u32()?, fields.number()?);
                self.send_changes(from, u32::try_from(to).ok())?;
                wire::put_ranges(&[])
            }
            Verb::Extents => {
                let number = fields.number_u32()?;
                let (offset, length) = (fields.number()?, fields.number()?);
                let extents_max = fields.number()?.clamp(1, EXTENTS_MAX) as usize;
                let disk = self.open(number)?;
                wire::put_extents(&disk.extents(offset, length, extents_max)?)
            }
            Verb::Read => {
                let number = fields.number_u32()?;
                let (offset, length) = (fields.number()?, fields.number()?);
                if length > u64::from(READ_BYTES_MAX) {
                    return Err(wire::wrong("a reading that is too long").into());
                }
                let mut bytes = vec![0; length as usize];
                self.open(number)?.read(offset, &mut bytes)?;
                bytes
            }
            Verb::Check => wire::put_check(&volume.check(fields.number()? != 0)?),
            Verb::Compact => wire::put_compaction(&volume.compact()?),
        })
    }

    /// Sends ranges as they are found.
    fn send_changes(&mut self, from: u32, to: Option<u32>) -> Result<(), VolumeError> {
        let stream = &mut self.stream;
        let mut send = |part: &[Range<u64>]| {
            wire::send(stream, DONE, &wire::put_ranges(part))
                .map_err(VolumeError::io("sending what changed"))
        };
        let mut part = Vec::new();
        self.shared.volume.visit_changes(from, to, &mut |range| {
            part.push(range);
            if part.len() == RANGES_PER_FRAME {
                send(&part)?;
                part.clear();
            }
            Ok(())
        })?;
        match part.is_empty() {
            true => Ok(()),
            false => send(&part),
        }
    }

    /// The disk of a pinned generation, which others can't remove from now on.
    fn open(&mut self, number: u32) -> Result<&PinnedDisk, VolumeError> {
        use std::collections::hash_map::Entry;
        match self.disks.entry(number) {
            Entry::Occupied(disk) => Ok(disk.into_mut()),
            Entry::Vacant(vacant) => {
                let mut state = self.shared.state();
                let disk = PinnedDisk::new(Arc::clone(&self.shared.volume), number)?;
                *state.readers.entry(number).or_default() += 1;
                drop(state);
                Ok(vacant.insert(disk))
            }
        }
    }

    fn close(&mut self, number: u32) {
        if self.disks.remove(&number).is_some() {
            let mut state = self.shared.state();
            if let Some(readers) = state.readers.get_mut(&number) {
                *readers -= 1;
                if *readers == 0 {
                    state.readers.remove(&number);
                }
            }
        }
    }

    fn unpin(&mut self, number: u32) -> Result<(), VolumeError> {
        self.close(number);
        // Nobody begins to read it meanwhile.
        let state = self.shared.state();
        if state.readers.contains_key(&number) {
            let text = format!("generation {number} is being read");
            return Err(VolumeError::Settings(text));
        }
        self.shared.volume.unpin(number)?;
        drop(state);
        self.pinned.retain(|pinned| *pinned != number);
        Ok(())
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        let open: Vec<u32> = self.disks.keys().copied().collect();
        for number in open {
            self.close(number);
        }
        for number in std::mem::take(&mut self.pinned) {
            // If it can't be removed now, the next backup removes it.
            let _ = self.shared.volume.unpin(number);
        }
    }
}

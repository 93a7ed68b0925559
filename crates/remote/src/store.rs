//! [`RemoteStore`]: objects on a server.
//!
//! Keys are names below the address's prefix, as [`ObjectKey`] prints them. An object goes up in one request
//! (S3, Google, Azure: visible whole or not at all, by the services' own word), or under a name in `tmp/`
//! that is renamed (SFTP, WebDAV: a server that dies in the middle leaves a file there that nobody reads).
//! Durable means: the server said that it has it. S3 and its like promise that; what an SSH or WebDAV
//! server holds back in its memory nobody here can know.
//!
//! The library is asynchronous; every call here blocks its thread until it is done, and the library's own
//! two threads move the bytes. At most `connections` calls are under way.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use engine::object::{
    ObjectId, ObjectKey, ObjectKind, ObjectStore, ObjectWriter, OperationCounts, PutOutcome,
    StoreError, Tail, WholeWriter,
};
use futures::TryStreamExt as _;
use opendal::options::WriteOptions;
use opendal::{BytesRange, ErrorKind, Operator};
use tokio::runtime::Runtime;

use crate::claims::CLAIMS_DIRECTORY;
use crate::error::{self, RemoteError, RemoteErrorKind, Subject};
use crate::gate::{Gate, Turn};
use crate::location::Address;
use crate::meter::{Meter, RemoteCounts};
use crate::operators::{Environment, Operators, RemoteSettings, of_process};
use crate::parts::{PART_BYTES, PARTS_AT_ONCE, PartsWriter};
use crate::throttle::Throttle;
use crate::writing::temporary_name;

/// Threads of the library.
const RUNTIME_THREADS: usize = 2;
/// From so many objects on it is cheaper to list their kinds than to ask for each.
const ASKED_ONE_BY_ONE: usize = 16;
/// The longest tail that is asked for: more than any object has.
const TAIL_BYTES_MAX: usize = 1 << 40;

/// Where objects lie until they are whole, on servers that show them before.
pub(crate) const TEMPORARY_DIRECTORY: &str = "tmp";

/// An object store on a server.
pub struct RemoteStore {
    // Before the runtime: connections are closed by it.
    operators: Operators,
    runtime: Runtime,
    shown: String,
    /// Objects that are being written are not seen under their names.
    writes_whole: bool,
    takes_parts: bool,
    has_answered: AtomicBool,
    /// Whether the server keeps to "only if absent"; found out when it is first needed.
    conditions: OnceLock<bool>,
    gate: Gate,
    upload: Throttle,
    download: Throttle,
    meter: Arc<Meter>,
    settings: RemoteSettings,
}

impl std::fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteStore({})", self.shown)
    }
}

impl RemoteStore {
    /// The store at an address. No request is made yet, so that a wrong address is only found out by the
    /// first use.
    ///
    /// # Errors
    /// When credentials or the address can't be used, or threads can't be started.
    pub fn open(address: &Address, settings: RemoteSettings) -> Result<Self, StoreError> {
        Self::open_in(address, settings, &of_process)
    }

    /// The same with credentials from an environment other than the process's.
    ///
    /// # Errors
    /// As [`RemoteStore::open`].
    pub fn open_in(
        address: &Address,
        settings: RemoteSettings,
        environment: Environment<'_>,
    ) -> Result<Self, StoreError> {
        let shown = address.to_string();
        let failed = |error: RemoteError| {
            Subject {
                action: "open",
                subject: "the repository".to_owned(),
                location: &shown,
            }
            .failed(error)
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .thread_name("remote")
            .enable_all()
            .build()
            .map_err(|error| failed(RemoteError::setup(&error)))?;
        let meter = Arc::new(Meter::default());
        // Clients look for the runtime that they are made in.
        let operators = {
            let _inside = runtime.enter();
            Operators::of(address, &settings, &meter, environment).map_err(failed)?
        };
        let writes_whole = !matches!(address, Address::Sftp { .. } | Address::WebDav { .. });
        Ok(Self {
            takes_parts: operators.once.info().capability().write_can_multi,
            operators,
            runtime,
            shown,
            writes_whole,
            has_answered: AtomicBool::new(false),
            conditions: OnceLock::new(),
            gate: Gate::new(settings.connections),
            upload: Throttle::new(settings.upload_bytes_a_second),
            download: Throttle::new(settings.download_bytes_a_second),
            meter,
            settings,
        })
    }

    /// How it is used.
    #[must_use]
    pub fn settings(&self) -> &RemoteSettings {
        &self.settings
    }

    /// What was asked for so far.
    #[must_use]
    pub fn counts(&self) -> RemoteCounts {
        self.meter.counts()
    }

    /// A name below the prefix that is none of a repository's, if there is one.
    ///
    /// # Errors
    /// As [`ObjectStore::list`].
    pub fn foreign_name(&self) -> Result<Option<String>, StoreError> {
        let _turn = self.gate.enter();
        let listed = self.list_directory("/");
        let entries = listed.map_err(|error| self.list_error("the prefix", &error))?;
        let is_ours = |name: &str| {
            name.is_empty()
                || name == TEMPORARY_DIRECTORY
                || name == CLAIMS_DIRECTORY
                || ObjectKind::ALL.iter().any(|kind| kind.directory() == name)
        };
        let names = entries.iter().map(|entry| entry.path().trim_matches('/'));
        Ok(names
            .filter(|name| !is_ours(name))
            .map(str::to_owned)
            .next())
    }

    /// Runs a future on this thread until it is done.
    pub(crate) fn wait<T>(
        &self,
        future: impl Future<Output = opendal::Result<T>>,
    ) -> opendal::Result<T> {
        let outcome = self.runtime.block_on(future);
        let is_answer = match &outcome {
            Ok(_) => true,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound),
        };
        if is_answer {
            self.has_answered.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Has the server answered at all?
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// The handle that fits what is known of the server.
    pub(crate) fn operator(&self) -> &Operator {
        match self.has_answered() {
            true => &self.operators.patient,
            false => &self.operators.eager,
        }
    }

    /// The handle that never tries again.
    pub(crate) fn once(&self) -> &Operator {
        &self.operators.once
    }

    /// Whether the server keeps to "only if absent", as far as that is known.
    pub(crate) fn conditions(&self) -> &OnceLock<bool> {
        &self.conditions
    }

    /// An object appears under its name whole, by the service's word.
    pub(crate) fn writes_whole(&self) -> bool {
        self.writes_whole
    }

    /// Waits until one more operation may be under way.
    pub(crate) fn turn(&self) -> Turn<'_> {
        self.gate.enter()
    }

    pub(crate) fn count_retry(&self) {
        self.meter.retry();
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut OperationCounts)) {
        self.meter.count(change);
    }

    pub(crate) fn before_upload(&self, bytes: u64) {
        self.upload.wait_for(bytes);
    }

    pub(crate) fn error(
        &self,
        action: &'static str,
        key: &ObjectKey,
        error: &opendal::Error,
    ) -> StoreError {
        error::of_object(action, key, &self.shown, error)
    }

    fn object_bytes(&self, key: &ObjectKey) -> Result<u64, StoreError> {
        let found = self.wait(self.operator().stat(&key.to_string()));
        found
            .map(|metadata| metadata.content_length())
            .map_err(|error| self.error("read", key, &error))
    }

    /// Reads a range; what is shorter than it should be is no content. Returns the bytes and the length
    /// of the whole object, where the server tells that along the way.
    fn read(&self, key: &ObjectKey, range: BytesRange, limit: Limit) -> opendal::Result<Read> {
        let path = key.to_string();
        self.wait(async {
            let reader = self.operator().reader(&path).await?;
            let mut stream = reader.into_stream(range).await?;
            let object_bytes = match stream.metadata().await {
                Ok(metadata) => Some(metadata.content_length()),
                Err(error) if error.kind() == ErrorKind::Unsupported => None,
                Err(error) => return Err(error),
            };
            if let (Limit::Object(limit_bytes), Some(object_bytes)) = (limit, object_bytes)
                && object_bytes > limit_bytes
            {
                return Ok(Read::TooLong(object_bytes));
            }
            let mut bytes = Vec::new();
            while let Some(piece) = stream.try_next().await? {
                let bytes_here = bytes.len() as u64 + piece.len() as u64;
                match limit {
                    Limit::Object(limit_bytes) if bytes_here > limit_bytes => {
                        let stat = self.operator().stat(&path).await?;
                        return Ok(Read::TooLong(stat.content_length()));
                    }
                    // A server that takes no notice of ranges sends all it has.
                    Limit::Range(wanted) if bytes_here > wanted => {
                        let message =
                            format!("the server sends more than the {wanted} bytes asked for");
                        return Err(opendal::Error::new(ErrorKind::Unexpected, message));
                    }
                    _ => {}
                }
                for part in piece {
                    bytes.extend_from_slice(&part);
                }
            }
            Ok(Read::Bytes {
                bytes,
                object_bytes,
            })
        })
    }

    /// Lists what there is of some kinds, to see whether `keys` are among it.
    fn all_are_listed(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        for kind in ObjectKind::ALL {
            let wanted: Vec<&ObjectKey> = keys.iter().filter(|key| key.kind == kind).collect();
            if wanted.is_empty() {
                continue;
            }
            let mut there = HashSet::new();
            self.list(kind, &mut |id, _| {
                there.insert(id);
            })?;
            if let Some(missing) = wanted.iter().find(|key| !there.contains(&key.id)) {
                return Err(StoreError::Missing {
                    key: **missing,
                    location: self.shown.clone(),
                });
            }
        }
        Ok(())
    }
}

/// How much a read may bring.
#[derive(Clone, Copy)]
enum Limit {
    /// The object is at most so long.
    Object(u64),
    /// The range is so long; the object may be longer.
    Range(u64),
}

/// What a read brought.
enum Read {
    Bytes {
        bytes: Vec<u8>,
        object_bytes: Option<u64>,
    },
    TooLong(u64),
}

impl ObjectStore for RemoteStore {
    fn location(&self) -> String {
        self.shown.clone()
    }

    fn put(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        self.before_upload(bytes.len() as u64);
        let _turn = self.gate.enter();
        self.put_whole(key, bytes)?;
        self.count(|counts| {
            counts.puts += 1;
            counts.put_bytes += bytes.len() as u64;
        });
        Ok(())
    }

    fn create(&self, key: &ObjectKey) -> Result<Box<dyn ObjectWriter + '_>, StoreError> {
        if !self.takes_parts {
            return Ok(Box::new(WholeWriter::new(self, key)));
        }
        let temporary = (!self.writes_whole).then(temporary_name);
        let path = temporary.clone().unwrap_or_else(|| key.to_string());
        let options = WriteOptions {
            chunk: Some(PART_BYTES),
            concurrent: if self.writes_whole { PARTS_AT_ONCE } else { 1 },
            ..WriteOptions::default()
        };
        // Where parts are appended to a file, one that is sent again would be there twice.
        let operator = match self.writes_whole {
            true => self.operator(),
            false => self.once(),
        };
        let writer = self.wait(operator.writer_options(&path, options));
        let writer = writer.map_err(|error| self.error("write", key, &error))?;
        Ok(Box::new(PartsWriter::new(self, key, writer, temporary)))
    }

    fn put_if_absent(&self, key: &ObjectKey, bytes: &[u8]) -> Result<PutOutcome, StoreError> {
        self.before_upload(bytes.len() as u64);
        let _turn = self.gate.enter();
        self.count(|counts| {
            counts.puts += 1;
            counts.put_bytes += bytes.len() as u64;
        });
        self.create_once(key, bytes)
    }

    fn replace(&self, key: &ObjectKey, bytes: &[u8]) -> Result<(), StoreError> {
        if self.writes_whole {
            return self.put(key, bytes);
        }
        self.before_upload(bytes.len() as u64);
        let _turn = self.gate.enter();
        self.count(|counts| {
            counts.puts += 1;
            counts.put_bytes += bytes.len() as u64;
        });
        self.replace_renamed(key, bytes)
    }

    fn persist(&self, keys: &[ObjectKey]) -> Result<(), StoreError> {
        self.count(|counts| counts.persists += keys.len() as u64);
        if keys.len() > ASKED_ONE_BY_ONE {
            return self.all_are_listed(keys);
        }
        let _turn = self.gate.enter();
        keys.iter()
            .try_for_each(|key| self.object_bytes(key).map(|_| ()))
    }

    fn get(&self, key: &ObjectKey, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
        self.count(|counts| counts.gets += 1);
        let turn = self.gate.enter();
        let read = self.read(key, BytesRange::new(0, None), Limit::Object(limit_bytes));
        drop(turn);
        match read.map_err(|error| self.error("read", key, &error))? {
            Read::TooLong(object_bytes) => Err(StoreError::TooLong {
                key: *key,
                location: self.shown.clone(),
                object_bytes,
                limit_bytes,
            }),
            Read::Bytes {
                bytes,
                object_bytes,
            } => {
                self.download.wait_for(bytes.len() as u64);
                if object_bytes.is_some_and(|object_bytes| object_bytes != bytes.len() as u64) {
                    return Err(self.cut_short(key, bytes.len() as u64));
                }
                self.count(|counts| counts.get_bytes += bytes.len() as u64);
                Ok(bytes)
            }
        }
    }

    fn get_range(
        &self,
        key: &ObjectKey,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, StoreError> {
        self.count(|counts| counts.ranges += 1);
        let wanted_end = offset.saturating_add(length as u64);
        let too_short = |object_bytes| StoreError::TooShort {
            key: *key,
            location: self.shown.clone(),
            wanted_end,
            object_bytes,
        };
        let _turn = self.gate.enter();
        if length == 0 || wanted_end == u64::MAX {
            return match self.object_bytes(key)? {
                object_bytes if wanted_end > object_bytes => Err(too_short(object_bytes)),
                _ => Ok(Vec::new()),
            };
        }
        let range = BytesRange::new(offset, Some(length as u64));
        match self.read(key, range, Limit::Range(length as u64)) {
            Ok(Read::Bytes { bytes, .. }) if bytes.len() == length => {
                self.download.wait_for(length as u64);
                self.count(|counts| counts.range_bytes += length as u64);
                Ok(bytes)
            }
            // Too little: because the object ends there, or because the answer was cut short.
            Ok(_) => match self.object_bytes(key)? {
                object_bytes if wanted_end > object_bytes => Err(too_short(object_bytes)),
                _ => Err(self.cut_short(key, 0)),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(self.error("read", key, &error))
            }
            Err(error) => match self.object_bytes(key)? {
                object_bytes if wanted_end > object_bytes => Err(too_short(object_bytes)),
                _ => Err(self.error("read", key, &error)),
            },
        }
    }

    fn get_tail(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        self.count(|counts| counts.tails += 1);
        let _turn = self.gate.enter();
        // The library's SFTP takes "the last bytes" for the first; WebDAV servers may know no such thing.
        if length > 0 && self.writes_whole {
            let range = BytesRange::suffix(length.min(TAIL_BYTES_MAX) as u64);
            match self.read(key, range, Limit::Range(length as u64)) {
                Ok(Read::Bytes {
                    bytes,
                    object_bytes: Some(object_bytes),
                }) if bytes.len() as u64 == object_bytes.min(length as u64) => {
                    self.download.wait_for(bytes.len() as u64);
                    self.count(|counts| counts.tail_bytes += bytes.len() as u64);
                    return Ok(Tail {
                        bytes,
                        object_bytes,
                    });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(self.error("read", key, &error));
                }
                // An object without content has no last bytes; some servers know no tails.
                _ => {}
            }
        }
        self.tail_by_length(key, length)
    }

    fn list(
        &self,
        kind: ObjectKind,
        visit: &mut dyn FnMut(ObjectId, u64),
    ) -> Result<(), StoreError> {
        self.count(|counts| counts.lists += 1);
        if kind == ObjectKind::Config {
            return match self.object_bytes(&ObjectKey::CONFIG) {
                Ok(object_bytes) => {
                    visit(ObjectKey::CONFIG.id, object_bytes);
                    Ok(())
                }
                Err(error) if error.is_missing() => Ok(()),
                Err(error) => Err(error),
            };
        }
        self.list_kind(kind, visit)
    }

    fn delete(&self, key: &ObjectKey) -> Result<(), StoreError> {
        self.count(|counts| counts.deletes += 1);
        let _turn = self.gate.enter();
        match self.wait(self.operator().delete(&key.to_string())) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(self.error("delete", key, &error))
            }
            _ => Ok(()),
        }
    }
}

impl RemoteStore {
    /// The end of an object by two requests.
    fn tail_by_length(&self, key: &ObjectKey, length: usize) -> Result<Tail, StoreError> {
        let object_bytes = self.object_bytes(key)?;
        let wanted = object_bytes.min(length as u64);
        let mut tail = Tail {
            bytes: Vec::new(),
            object_bytes,
        };
        if wanted == 0 {
            return Ok(tail);
        }
        let range = BytesRange::new(object_bytes - wanted, Some(wanted));
        match self.read(key, range, Limit::Range(wanted)) {
            Ok(Read::Bytes { bytes, .. }) if bytes.len() as u64 == wanted => {
                self.download.wait_for(wanted);
                self.count(|counts| counts.tail_bytes += wanted);
                tail.bytes = bytes;
                Ok(tail)
            }
            Ok(_) => Err(self.cut_short(key, 0)),
            Err(error) => Err(self.error("read", key, &error)),
        }
    }

    /// An answer ended before its content did.
    fn cut_short(&self, key: &ObjectKey, bytes: u64) -> StoreError {
        let message = format!("the answer of the server ended after {bytes} bytes of content");
        Subject {
            action: "read",
            subject: key.to_string(),
            location: &self.shown,
        }
        .failed(RemoteError::new(RemoteErrorKind::Unreachable, message))
    }
}

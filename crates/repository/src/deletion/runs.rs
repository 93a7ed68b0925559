//! Runs: who is at work in a repository.
//!
//! A run registers before it looks at anything, by an object `runs/ID`, which stays until its end, so that nobody who looks
//! can miss it. While it works it puts another beside that now and then, with a higher count, in the place of the one
//! before, so that others see it alive. Whoever thinks a run dead puts
//! `expired/RUN`. That may be wrong: a writer looks for it after its snapshot is written ([`Registration::is_expired`]),
//! and takes that back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::format::{
    DecodeError, Decoder, FieldList, FieldWriter, InObject, ObjectError, UnknownFields, Vault,
    put_bytes, put_varint, read_document, write_document,
};
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};

use crate::repository::PROGRAM;
use crate::timestamp::Timestamp;

/// How often a run shows that it is alive.
pub const SIGN_EVERY: Duration = Duration::from_secs(300);

/// How long a run may show no sign of life until it is taken for dead.
pub const DEAD_AFTER: Duration = Duration::from_secs(24 * 3600);

/// What a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// It stores, and will refer to what it found.
    Writer = 1,
    /// It deletes.
    Prune = 2,
    /// It reads.
    Reader = 3,
}

impl RunKind {
    fn of(number: u64) -> Option<Self> {
        [Self::Writer, Self::Prune, Self::Reader]
            .into_iter()
            .find(|kind| *kind as u64 == number)
    }

    /// What a person is told of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Writer => "backup",
            Self::Prune => "prune",
            Self::Reader => "check",
        }
    }
}

/// A run as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which one.
    pub id: ObjectId,
    /// What it does.
    pub kind: RunKind,
    /// How often it showed a sign of life.
    pub signs: u64,
    /// When it began, by its own clock.
    pub started: Timestamp,
    /// Its machine.
    pub host: String,
    /// Name and version of its program.
    pub program: String,
    /// Its process, where the system tells processes of one machine apart from those of others.
    pub process: Option<Process>,
    /// Fields of newer versions.
    pub unknown: UnknownFields,
}

/// A process: of this machine since it was started, and as numbers of processes count here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// What is the same for all processes that see each other.
    pub place: String,
    /// Its number.
    pub number: u32,
}

impl Process {
    /// This process; nothing where the system has no names for places.
    #[must_use]
    pub fn own() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let numbers = std::fs::read_link("/proc/self/ns/pid").ok()?;
        Some(Self {
            place: format!("{} {}", boot.trim(), numbers.display()),
            number: std::process::id(),
        })
    }

    /// Whether it has certainly ended. Of processes elsewhere nobody knows.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let is_here = Self::own().is_some_and(|own| own.place == self.place);
        let number = i32::try_from(self.number).ok();
        let process = number.and_then(rustix::process::Pid::from_raw);
        let is_gone =
            |process| rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH);
        is_here && process.is_some_and(is_gone)
    }
}

impl Run {
    /// Whether its process has certainly ended without taking leave.
    #[must_use]
    pub fn has_died(&self) -> bool {
        self.process.as_ref().is_some_and(Process::has_ended)
    }
}

/// Tags of the fields.
mod tag {
    pub const PROCESS: u64 = 12;
    pub const ID: u64 = 1;
    pub const KIND: u64 = 3;
    pub const SIGNS: u64 = 4;
    pub const STARTED: u64 = 6;
    pub const HOST: u64 = 8;
    pub const PROGRAM: u64 = 10;
}

impl Run {
    fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::new();
        fields.field(tag::ID, |out| out.extend_from_slice(&self.id.0));
        fields.varint(tag::KIND, self.kind as u64);
        fields.varint(tag::SIGNS, self.signs);
        fields.field(tag::STARTED, |out| self.started.encode(out));
        fields.field(tag::HOST, |out| out.extend_from_slice(self.host.as_bytes()));
        fields.field(tag::PROGRAM, |out| {
            out.extend_from_slice(self.program.as_bytes());
        });
        if let Some(process) = &self.process {
            fields.field(tag::PROCESS, |out| {
                put_bytes(out, process.place.as_bytes());
                put_varint(out, u64::from(process.number));
            });
        }
        fields.unknown(&self.unknown);
        let mut out = Vec::new();
        fields.finish(&mut out);
        out
    }

    fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let (mut id, mut kind) = (None, None);
        let mut run = Self {
            id: ObjectId([0; 16]),
            kind: RunKind::Writer,
            signs: 0,
            started: Timestamp::default(),
            host: String::new(),
            program: String::new(),
            process: None,
            unknown: UnknownFields::default(),
        };
        let mut fields = FieldList::new(body);
        while let Some(field) = fields.next_field()? {
            let mut value = Decoder::new(field.value);
            match field.tag {
                tag::ID => id = Some(ObjectId(value.array()?)),
                tag::KIND => kind = Some(RunKind::of(value.varint()?)),
                tag::SIGNS => run.signs = value.varint()?,
                tag::STARTED => run.started = Timestamp::decode(&mut value)?,
                tag::HOST => run.host = text(&mut value)?,
                tag::PROGRAM => run.program = text(&mut value)?,
                tag::PROCESS => {
                    let place = String::from_utf8_lossy(value.bytes()?).into_owned();
                    let most = u64::from(u32::MAX);
                    let number = value.varint_at_most(most, "a process's number")? as u32;
                    run.process = Some(Process { place, number });
                }
                _ => {
                    run.unknown.keep(field)?;
                    continue;
                }
            }
            value.finish()?;
        }
        run.id = id.ok_or_else(|| DecodeError::new("it names no run"))?;
        // One that does what this version does not know may do anything: writing, for one.
        run.kind = kind.flatten().unwrap_or(RunKind::Writer);
        Ok(run)
    }
}

fn text(value: &mut Decoder<'_>) -> Result<String, DecodeError> {
    let bytes = value.take(value.rest().len())?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// Runs that are registered, by their ids, each as its latest sign says. What can't be read stands for a writer of its
/// object's id: it may be one.
///
/// # Errors
/// When the store can't be listed or read.
pub fn registered(
    store: &dyn ObjectStore,
    vault: &Vault,
) -> Result<BTreeMap<ObjectId, Run>, ObjectError> {
    let mut objects = Vec::new();
    store.list(ObjectKind::Run, &mut |id, _| objects.push(id))?;
    let mut runs: BTreeMap<ObjectId, Run> = BTreeMap::new();
    for object in objects {
        let key = ObjectKey::new(ObjectKind::Run, object);
        let run = match read_document(store, vault, key) {
            Ok(body) => Run::decode(&body).in_object(key, "run"),
            Err(error) => Err(error),
        };
        let run = match run {
            Ok(run) => run,
            // It has ended, or it was a sign of life before the last.
            Err(error) if error.is_missing() => continue,
            Err(error) if error.is_damage() => Run {
                id: object,
                kind: RunKind::Writer,
                signs: 0,
                started: Timestamp::default(),
                host: String::new(),
                program: String::new(),
                process: None,
                unknown: UnknownFields::default(),
            },
            Err(error) => return Err(error),
        };
        let known = runs.entry(run.id).or_insert_with(|| run.clone());
        if known.signs < run.signs {
            *known = run;
        }
    }
    Ok(runs)
}

/// Takes a run for dead. What it registered goes.
///
/// # Errors
/// When the store can't be written.
pub fn expire(store: &dyn ObjectStore, vault: &Vault, run: ObjectId) -> Result<(), ObjectError> {
    let key = ObjectKey::new(ObjectKind::Expired, run);
    if !is_expired(store, run)? {
        let mut body = Vec::new();
        let mut fields = FieldWriter::new();
        fields.field(tag::STARTED, |out| Timestamp::now().encode(out));
        fields.finish(&mut body);
        match write_document(store, vault, key, &body) {
            // Somebody else was faster.
            Err(_) if is_expired(store, run)? => {}
            written => drop(written?),
        }
    }
    delete_registrations(store, vault, run)
}

/// Whether a run was taken for dead.
///
/// # Errors
/// When the store can't say.
pub fn is_expired(store: &dyn ObjectStore, run: ObjectId) -> Result<bool, ObjectError> {
    let key = ObjectKey::new(ObjectKind::Expired, run);
    match store.get_tail(&key, 1) {
        Ok(_) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Every run that was taken for dead.
///
/// # Errors
/// When the store can't be listed.
pub fn expired(store: &dyn ObjectStore) -> Result<Vec<ObjectId>, ObjectError> {
    let mut runs = Vec::new();
    store.list(ObjectKind::Expired, &mut |id, _| runs.push(id))?;
    runs.sort_unstable();
    Ok(runs)
}

fn delete_registrations(
    store: &dyn ObjectStore,
    vault: &Vault,
    run: ObjectId,
) -> Result<(), ObjectError> {
    let mut objects = Vec::new();
    store.list(ObjectKind::Run, &mut |id, _| objects.push(id))?;
    for object in objects {
        let key = ObjectKey::new(ObjectKind::Run, object);
        let is_its = match read_document(store, vault, key) {
            Ok(body) => Run::decode(&body).is_ok_and(|found| found.id == run),
            Err(error) if error.is_damage() => object == run,
            Err(_) => false,
        };
        if is_its {
            store.delete(&key)?;
        }
    }
    Ok(())
}

/// This process at work.
#[derive(Clone)]
pub struct Registration {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn ObjectStore>,
    vault: Arc<Vault>,
    id: ObjectId,
    state: Mutex<State>,
}

struct State {
    run: Run,
    /// Whether the object that it registered by stands for it still: it does until the end, so that whoever lists runs
    /// at any time finds it.
    is_registered: bool,
    /// The object of the last sign of life.
    sign: Option<ObjectId>,
    /// Objects of earlier signs that could not be deleted.
    left: Vec<ObjectId>,
    shown: Instant,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registration({})", self.shared.id)
    }
}

impl Registration {
    /// Registers a run: before it looks at anything.
    ///
    /// # Errors
    /// When the store can't be written.
    pub fn begin(
        store: &Arc<dyn ObjectStore>,
        vault: &Arc<Vault>,
        kind: RunKind,
        host: &str,
    ) -> Result<Self, ObjectError> {
        let id = ObjectId::random();
        let run = Run {
            id,
            kind,
            signs: 0,
            started: Timestamp::now(),
            host: host.to_owned(),
            program: PROGRAM.to_owned(),
            process: Process::own(),
            unknown: UnknownFields::default(),
        };
        let key = ObjectKey::new(ObjectKind::Run, id);
        write_document(store.as_ref(), vault, key, &run.encode())?;
        Ok(Self {
            shared: Arc::new(Shared {
                store: Arc::clone(store),
                vault: Arc::clone(vault),
                id,
                state: Mutex::new(State {
                    run,
                    is_registered: true,
                    sign: None,
                    left: Vec::new(),
                    shown: Instant::now(),
                }),
            }),
        })
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        self.shared.id
    }

    /// Shows that it is alive, if it did not lately. Cheap: call it often.
    ///
    /// # Errors
    /// When the store can't be written.
    pub fn show_life(&self) -> Result<(), ObjectError> {
        let mut state = self.shared.state();
        if state.shown.elapsed() < SIGN_EVERY {
            return Ok(());
        }
        self.shared.show_now(&mut state)
    }

    /// Whether it was taken for dead meanwhile.
    ///
    /// # Errors
    /// When the store can't say.
    pub fn is_expired(&self) -> Result<bool, ObjectError> {
        is_expired(self.shared.store.as_ref(), self.shared.id)
    }

    /// Ends it.
    ///
    /// # Errors
    /// When the store can't delete; it is then taken for dead some day.
    pub fn end(&self) -> Result<(), ObjectError> {
        self.shared.end()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_now(&self, state: &mut State) -> Result<(), ObjectError> {
        if !state.is_registered {
            return Ok(());
        }
        state.run.signs += 1;
        let object = ObjectId::random();
        let key = ObjectKey::new(ObjectKind::Run, object);
        write_document(self.store.as_ref(), &self.vault, key, &state.run.encode())?;
        state.left.extend(state.sign.replace(object));
        state.shown = Instant::now();
        // An old one that stays (the store may let nobody delete) says less than the new one, and harms nobody.
        let _ = self.delete_left(state);
        Ok(())
    }

    /// Deletes what stands no more for the run.
    fn delete_left(&self, state: &mut State) -> Result<(), ObjectError> {
        while let Some(object) = state.left.last() {
            let key = ObjectKey::new(ObjectKind::Run, *object);
            self.store.delete(&key)?;
            state.left.pop();
        }
        Ok(())
    }

    fn end(&self) -> Result<(), ObjectError> {
        let mut state = self.state();
        if std::mem::take(&mut state.is_registered) {
            // From the last on: what it registered by goes at the end.
            let sign = state.sign.take();
            state.left.extend(sign);
            state.left.insert(0, self.id);
            self.delete_left(&mut state)?;
        }
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A registration that stays is taken for dead some day.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;

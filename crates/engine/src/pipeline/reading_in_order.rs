//! Reads one stream back in order, several groups at once: for `dump`, pipes, block images.
//!
//! ```text
//! recipe ──▶ plan ──window──▶ fetch, unseal, decompress, verify ──kept groups──▶ the caller
//!           one thread              fetch threads                (its own thread)
//! ```
//!
//! Enter: a recipe. Leave: its bytes and holes in order, verified; at the end the stream's check
//! value is compared. What is read when, and what is kept, is decided by
//! [`LookAhead`](crate::restore::LookAhead). The planning thread is ahead of the caller by at most
//! [`WINDOW_FACTOR`] times what is kept in memory. Bounds: plaintext of groups by the limit given
//! (a group beyond it goes alone), a read a thread, and some 100 bytes a need of the window.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::in_order_needs::{Making, Need, NeededGroup, Step, push_needs};
use super::reading::ReadingRoom;
use super::stages::{Stage, Stages};
use crate::container::{ChunkPlaces, GroupOpener, GroupRead, LoadedSection, SectionPlace};
use crate::fingerprint::CheckValue;
use crate::format::ObjectError;
use crate::recipe::Recipe;
use crate::restore::{GroupPlace, LookAhead, ReadError, Reader, add_to_check};

/// The window covers so many times the bytes that are kept.
const WINDOW_FACTOR: u64 = 16;

/// Fetching begins when the window covers so many times the bytes that are kept, or all.
const BEGIN_FACTOR: u64 = 2;

/// Objects that may be gone one after the other while a stream is read.
const OBJECTS_GONE_MAX: usize = 64;

/// Least bytes of the limit for each need of the window.
const BYTES_A_NEED: u64 = 1 << 10;

/// Bytes of a stream, as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamPiece<'a> {
    /// Stored bytes.
    Bytes(&'a [u8]),
    /// So many zeros that are not stored.
    Hole(u64),
}

/// Why a stream was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum InOrderError {
    /// It can't be read; what came before is right.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Whoever takes the bytes failed.
    #[error(transparent)]
    Take(io::Error),
    /// The system starts no more threads.
    #[error("cannot start a thread: {0}")]
    Threads(io::Error),
}

/// What reading a stream took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InOrderReport {
    /// Bytes of the stream, with holes.
    pub bytes: u64,
    /// Visits of containers to read groups.
    pub containers_read: u64,
}

/// What is to be read.
struct Wanted<'a> {
    recipe: &'a Recipe,
    check: Option<CheckValue>,
    cache_bytes: usize,
}

/// A group in memory: some chunks of it, stored whole, may be damaged.
struct OpenedGroup {
    plain: Vec<u8>,
    places: ChunkPlaces,
    damage: Mutex<Vec<(usize, ObjectError)>>,
}

/// A group, or why there is none: told once.
type Arrived = Arc<Result<OpenedGroup, Mutex<Option<ObjectError>>>>;

struct State {
    look: LookAhead<SectionPlace, Arrived>,
    needs: VecDeque<Need>,
    /// Bytes of the stream that are planned and not taken.
    window_bytes: u64,
    /// Enough is planned for visits to take along what they should.
    is_begun: bool,
    is_planned: bool,
    is_stopped: bool,
}

struct Shared<'a> {
    reader: &'a Reader,
    /// What comes before was given.
    from_bytes: u64,
    state: Mutex<State>,
    /// The window has room.
    window: Condvar,
    /// There may be something to fetch.
    work: Condvar,
    /// What the stream needs next may be there.
    front: Condvar,
    stages: &'a Stages,
    cache_bytes: u64,
    read_bytes_max: usize,
}

/// Stops everybody when its thread ends, however it does.
struct StopAtEnd<'a>(&'a Shared<'a>);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.lock().is_stopped = true;
        self.0.window.notify_all();
        self.0.work.notify_all();
        self.0.front.notify_all();
    }
}

/// The same, if it ends by a panic.
struct StopOnPanic<'a>(&'a Shared<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            drop(StopAtEnd(self.0));
        }
    }
}

impl ReadingRoom {
    /// Reads a stream in order and hands its pieces to `take`; at most `cache_bytes` of its groups
    /// are in memory. Where a container's object is gone since it was planned, planning begins anew at what was
    /// not given yet: the container may have been moved.
    ///
    /// # Errors
    /// At the first damage, at the end if the check value differs, or when `take` fails.
    pub fn read_in_order(
        &self,
        reader: &Reader,
        recipe: &Recipe,
        check: Option<CheckValue>,
        cache_bytes: usize,
        take: &mut dyn FnMut(StreamPiece<'_>) -> io::Result<()>,
    ) -> Result<InOrderReport, InOrderError> {
        let mut report = InOrderReport::default();
        let mut gone = HashSet::new();
        let wanted = Wanted {
            recipe,
            check,
            cache_bytes,
        };
        loop {
            let read = self.read_on(reader, &wanted, &mut report, take);
            let object = match &read {
                Err(InOrderError::Read(error)) => error.missing_object(),
                _ => None,
            };
            match object {
                Some(object) if gone.len() < OBJECTS_GONE_MAX && gone.insert(object) => {
                    reader.containers().note_gone(object);
                }
                _ => return read.map(|()| report),
            }
        }
    }

    /// Reads on from what was given.
    fn read_on(
        &self,
        reader: &Reader,
        wanted: &Wanted<'_>,
        report: &mut InOrderReport,
        take: &mut dyn FnMut(StreamPiece<'_>) -> io::Result<()>,
    ) -> Result<(), InOrderError> {
        let &Wanted {
            recipe,
            check,
            cache_bytes,
        } = wanted;
        let shared = Shared {
            reader,
            from_bytes: report.bytes,
            state: Mutex::new(State {
                look: LookAhead::new(cache_bytes as u64),
                needs: VecDeque::new(),
                window_bytes: 0,
                is_begun: false,
                is_planned: false,
                is_stopped: false,
            }),
            window: Condvar::new(),
            work: Condvar::new(),
            front: Condvar::new(),
            stages: self.stages(),
            cache_bytes: cache_bytes as u64,
            read_bytes_max: self.read_bytes_max(),
        };
        let threads = self.fetch_threads().max(self.compute_threads());
        let stages = self.stages();
        for stage in [
            Stage::Fetch,
            Stage::Unseal,
            Stage::Decompress,
            Stage::Verify,
        ] {
            stages.meter(stage).set_threads(threads);
        }
        stages.meter(Stage::Plan).set_threads(1);
        stages.meter(Stage::Write).set_threads(1);
        thread::scope(|scope| {
            let shared = &shared;
            let _stop = StopAtEnd(shared);
            let named = |name: String| thread::Builder::new().name(name);
            named("plan".to_owned())
                .spawn_scoped(scope, move || shared.plan(recipe, check))
                .map_err(InOrderError::Threads)?;
            for number in 0..threads {
                let fetch = named(format!("fetch-{number}"));
                match fetch.spawn_scoped(scope, move || shared.fetch()) {
                    Ok(_) => {}
                    Err(error) if number == 0 => return Err(InOrderError::Threads(error)),
                    Err(_) => break,
                }
            }
            shared.take_all(report, take)
        })
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The planning thread.
    fn plan(&self, recipe: &Recipe, check: Option<CheckValue>) {
        let _stop = StopOnPanic(self);
        let meter = self.stages.meter(Stage::Plan);
        let planned = meter.busy_but_for_waits(0, || self.plan_runs(recipe, check));
        let mut state = self.lock();
        if let Err(error) = planned {
            state.needs.push_back(Need::Failed(error));
        }
        state.is_begun = true;
        state.is_planned = true;
        drop(state);
        self.work.notify_all();
        self.front.notify_all();
    }

    fn plan_runs(&self, recipe: &Recipe, check: Option<CheckValue>) -> Result<(), ReadError> {
        let mut actual = self.reader.containers().fingerprinter().check();
        let mut runs = self.reader.runs(recipe);
        let mut given_bytes = self.from_bytes;
        while let Some((run, mut located)) = runs.next_located()? {
            add_to_check(&mut actual, &run, located.as_ref());
            let is_wanted = match &mut located {
                None => {
                    let bytes = run.bytes().saturating_sub(given_bytes);
                    given_bytes -= run.bytes() - bytes;
                    bytes == 0 || self.push_need(Need::Hole(bytes), None)
                }
                Some(located) => {
                    located.skip(&mut given_bytes);
                    push_needs(self.reader.containers(), located, &mut |group, need| {
                        self.push_need(need, Some(group))
                    })?
                }
            };
            if !is_wanted {
                return Ok(()); // Nobody wants more.
            }
        }
        match check {
            Some(check) if check != actual.finish() => Err(ReadError::Check),
            _ => Ok(()),
        }
    }

    /// Adds a need to the window, when it has room; false when nobody wants more.
    fn push_need(&self, need: Need, group: Option<NeededGroup>) -> bool {
        let bytes = need.bytes();
        let meter = self.stages.meter(Stage::Plan);
        let mut state = self.lock();
        let needs_max = (self.cache_bytes / BYTES_A_NEED).max(16) as usize;
        while !state.is_stopped
            && !state.needs.is_empty()
            && (state.window_bytes + bytes > WINDOW_FACTOR * self.cache_bytes
                || state.needs.len() >= needs_max)
        {
            state.is_begun = true;
            self.work.notify_all();
            state = meter.blocked(|| wait(&self.window, state));
        }
        if state.is_stopped {
            return false;
        }
        state.window_bytes += bytes;
        state.needs.push_back(need);
        if let Some((place, plain_bytes)) = group {
            state.look.push(place, plain_bytes);
        }
        if state.window_bytes >= BEGIN_FACTOR * self.cache_bytes {
            state.is_begun = true;
        }
        drop(state);
        self.work.notify_one();
        self.front.notify_one();
        true
    }

    /// A fetching thread: visits containers until the stream is at its end.
    fn fetch(&self) {
        let _stop = StopOnPanic(self);
        let mut opener = GroupOpener::new(self.stages);
        while let Some(visit) = self.next_visit() {
            self.visit(&visit, &mut opener);
        }
    }

    fn next_visit(&self) -> Option<Vec<GroupPlace<SectionPlace>>> {
        let meter = self.stages.meter(Stage::Fetch);
        let mut state = self.lock();
        loop {
            if state.is_stopped || (state.is_planned && state.look.waiting() == 0) {
                return None;
            }
            if state.is_begun
                && let Some(visit) = state.look.next_visit()
            {
                return Some(visit);
            }
            state = meter.starved(|| wait(&self.work, state));
        }
    }

    fn visit(&self, visit: &[GroupPlace<SectionPlace>], opener: &mut GroupOpener) {
        let place = visit[0].container;
        let groups: Vec<usize> = visit.iter().map(|place| place.group as usize).collect();
        let meter = self.stages.meter(Stage::Fetch);
        match meter.busy(0, || self.reader.containers().section_in(place, None)) {
            Ok(loaded) => {
                for read in loaded.section.group_reads(&groups, self.read_bytes_max) {
                    self.read(&loaded, &read, opener);
                }
            }
            Err(error) => {
                // The first one needed tells it.
                let failed = Arc::new(Err(Mutex::new(Some(error))));
                for &group in &groups {
                    self.arrived(place, group, Arc::clone(&failed));
                }
            }
        }
    }

    fn read(&self, loaded: &LoadedSection, read: &GroupRead, opener: &mut GroupOpener) {
        let section = &loaded.section;
        let containers = self.reader.containers();
        let meter = self.stages.meter(Stage::Fetch);
        let fetch = || containers.fetch_groups(loaded, read);
        match meter.busy(read.bytes as u64, fetch) {
            Ok(mut bytes) => {
                for &group in &read.groups {
                    let sealed = &mut bytes[read.range_of(section, group)];
                    let opened = self.open(loaded, group, sealed, opener);
                    let opened = opened.map_err(|error| Mutex::new(Some(error)));
                    self.arrived(loaded.place(), group, Arc::new(opened));
                }
            }
            Err(_) if read.groups.len() > 1 => {
                for read in read.one_by_one(section) {
                    self.read(loaded, &read, opener);
                }
            }
            Err(error) => {
                let failed = Err(Mutex::new(Some(error)));
                self.arrived(loaded.place(), read.groups[0], Arc::new(failed));
            }
        }
    }

    fn open(
        &self,
        loaded: &LoadedSection,
        index: usize,
        sealed: &mut [u8],
        opener: &mut GroupOpener,
    ) -> Result<OpenedGroup, ObjectError> {
        let plain = opener.open(loaded, index, sealed)?.to_vec();
        let section = &loaded.section;
        let places = section.places_in(index);
        let containers = self.reader.containers();
        let verify = || {
            let chunks = places.first()..places.first() + places.count();
            let whole = chunks.filter(|&chunk| section.delta(chunk).is_none());
            let damaged = |chunk| {
                let bytes = &plain[places.of(chunk)];
                let verified = containers.verify_chunk(loaded, chunk, bytes);
                verified.err().map(|error| (chunk, error))
            };
            whole.filter_map(damaged).collect()
        };
        let meter = self.stages.meter(Stage::Verify);
        let damage = Mutex::new(meter.busy(plain.len() as u64, verify));
        Ok(OpenedGroup {
            plain,
            places,
            damage,
        })
    }

    fn arrived(&self, container: SectionPlace, group: usize, arrived: Arrived) {
        let place = GroupPlace {
            container,
            group: group as u32,
        };
        self.lock().look.arrived(place, arrived);
        self.front.notify_one();
        // Something may go for it.
        self.work.notify_one();
    }

    /// The caller's thread: takes what comes, in order.
    fn take_all(
        &self,
        report: &mut InOrderReport,
        take: &mut dyn FnMut(StreamPiece<'_>) -> io::Result<()>,
    ) -> Result<(), InOrderError> {
        let taken = self.take_needs(&mut report.bytes, take);
        report.containers_read += self.lock().look.visits();
        taken
    }

    fn take_needs(
        &self,
        given_bytes: &mut u64,
        take: &mut dyn FnMut(StreamPiece<'_>) -> io::Result<()>,
    ) -> Result<(), InOrderError> {
        let meter = self.stages.meter(Stage::Write);
        let mut making = Making::default();
        while let Some((need, group)) = meter.starved(|| self.next_need()) {
            let piece = match (need, &group) {
                (Need::Chunks { chunks, .. }, Some(group)) => {
                    StreamPiece::Bytes(part_of(group, &chunks)?)
                }
                (Need::Step(step), Some(group)) => {
                    let made = self.step(&mut making, &step, group);
                    let made = made.map_err(|error| step.lost(error))?;
                    if !step.is_last() {
                        continue;
                    }
                    StreamPiece::Bytes(made)
                }
                (Need::Hole(bytes), _) => StreamPiece::Hole(bytes),
                (Need::Failed(error), _) => return Err(error.into()),
                (Need::Chunks { .. } | Need::Step(_), None) => continue,
            };
            let bytes = match piece {
                StreamPiece::Bytes(bytes) => bytes.len() as u64,
                StreamPiece::Hole(bytes) => bytes,
            };
            meter
                .busy(bytes, || take(piece))
                .map_err(InOrderError::Take)?;
            *given_bytes += bytes;
        }
        Ok(())
    }

    /// Makes a step on the way to a chunk stored as a delta.
    fn step<'a>(
        &self,
        making: &'a mut Making,
        step: &Step,
        group: &Arrived,
    ) -> Result<&'a [u8], ReadError> {
        let stored = part_of(group, &(step.chunk..step.chunk + 1))?;
        let meter = self.stages.meter(Stage::Decompress);
        let containers = self.reader.containers();
        meter.busy(0, || {
            making.step(containers, self.reader.deltas(), step, stored)
        })
    }

    /// The next part of the stream, with its group, when both are there; nothing at the end.
    fn next_need(&self) -> Option<(Need, Option<Arrived>)> {
        let mut state = self.lock();
        loop {
            match state.needs.front() {
                None if state.is_planned || state.is_stopped => return None,
                Some(Need::Chunks { .. } | Need::Step(_)) => {
                    if let Some(group) = state.look.front() {
                        state.look.pop();
                        return self.pop(state, Some(group));
                    }
                    if state.is_stopped {
                        return None;
                    }
                }
                Some(Need::Hole(_) | Need::Failed(_)) => return self.pop(state, None),
                None => {}
            }
            state = wait(&self.front, state);
        }
    }

    fn pop(
        &self,
        mut state: MutexGuard<'_, State>,
        group: Option<Arrived>,
    ) -> Option<(Need, Option<Arrived>)> {
        let need = state.needs.pop_front()?;
        state.window_bytes -= need.bytes();
        drop(state);
        self.window.notify_one();
        if group.is_some() {
            self.work.notify_all();
        }
        Some((need, group))
    }
}

fn wait<'a>(condition: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    condition
        .wait(state)
        .unwrap_or_else(PoisonError::into_inner)
}

/// What is stored of these chunks in their group; an error when one is damaged.
fn part_of<'a>(group: &'a Arrived, chunks: &Range<usize>) -> Result<&'a [u8], ReadError> {
    match group.as_ref() {
        Ok(opened) => {
            let mut damage = opened.damage.lock().unwrap_or_else(PoisonError::into_inner);
            let first = damage.iter().position(|(chunk, _)| chunks.contains(chunk));
            match first {
                Some(at) => Err(damage.swap_remove(at).1.into()),
                None => Ok(&opened.plain[opened.places.of_all(chunks)]),
            }
        }
        Err(error) => {
            let mut error = error.lock().unwrap_or_else(PoisonError::into_inner);
            Err(error
                .take()
                .expect("told once, for reading ends there")
                .into())
        }
    }
}

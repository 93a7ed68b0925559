//! A file system in memory that crashes: what was not synced may be lost, torn or reordered.
//!
//! ```text
//! let disk = CrashDisk::new(0);
//! disk.crash_at(17);                 // operation 17 and all after it fail
//! workload(disk.clone());            // clones are handles to one disk
//! for seed in 0..32 {
//!     let found = disk.after_crash(seed, CrashMode::PowerLoss);
//!     check(found);                  // a disk of its own; the crashed one stays as it is
//! }
//! ```
//!
//! Operations are the calls that change something or sync, numbered from 0; reading is not
//! counted. The operation that the crash hits is done wholly, in part or not at all, as the
//! seed of `after_crash` says. Same calls, same seeds → same disk; with several threads the
//! numbering follows their luck.
//!
//! Reads are answered in two halves where they can be, so that callers learn to go on.

mod nodes;
mod power_loss;

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::object::{FileStatus, FileSystem};
use rustix::io::Errno;

use crate::random::Random;
use nodes::{FileNode, Node, NodeId, Tree};

/// How the world ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashMode {
    /// The machine stops: what was not synced survives by chance.
    PowerLoss,
    /// The process stops: what was visible stays visible, and still not durable.
    ProcessKill,
}

impl CrashMode {
    /// Both.
    pub const ALL: [CrashMode; 2] = [CrashMode::PowerLoss, CrashMode::ProcessKill];
}

/// A handle to a disk; clones share it.
#[derive(Debug, Clone)]
pub struct CrashDisk {
    state: Arc<Mutex<State>>,
}

/// An open file of a [`CrashDisk`].
#[derive(Debug)]
pub struct CrashFile {
    node: NodeId,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    clock: Duration,
    random: Random,
    operations: u64,
    sync_points: Vec<u64>,
    crash_at: Option<u64>,
    crashed: bool,
    /// What the crash hit.
    in_flight: Option<Change>,
    /// Bytes that can still be written.
    room_bytes: Option<u64>,
    /// Numbers of syncs (not of operations) that fail.
    failing_syncs: Range<u64>,
}

/// An operation that changes what is seen.
#[derive(Debug, Clone)]
enum Change {
    CreateDir(String),
    WriteNewFile(String, Arc<[u8]>),
    Append(NodeId, Arc<[u8]>),
    Publish(String, String),
    Replace(String, String),
    RemoveFile(String),
}

impl CrashDisk {
    /// An empty disk. The seed decides what a failed sync loses, nothing else.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_tree(Tree::new(), Duration::ZERO, Random::new(seed))
    }

    fn with_tree(tree: Tree, clock: Duration, random: Random) -> Self {
        let state = State {
            tree,
            clock,
            random,
            operations: 0,
            sync_points: Vec::new(),
            crash_at: None,
            crashed: false,
            in_flight: None,
            room_bytes: None,
            failing_syncs: 0..0,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The operation of this number fails, and everything after it, reading too.
    pub fn crash_at(&self, operation: u64) {
        self.lock().crash_at = Some(operation);
    }

    /// Has the crash happened?
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.lock().crashed
    }

    /// A new disk as found after the crash, or after one right now if none has happened. It
    /// counts operations from 0 and has no faults; this disk stays as it is.
    #[must_use]
    pub fn after_crash(&self, seed: u64, mode: CrashMode) -> CrashDisk {
        let state = self.lock();
        let mut random = Random::new(seed);
        let mut tree = state.tree.clone();
        if let Some(change) = &state.in_flight {
            apply_by_chance(&mut tree, change, state.clock, &mut random);
        }
        let tree = match mode {
            CrashMode::PowerLoss => power_loss::after_power_loss(&tree, &mut random),
            CrashMode::ProcessKill => tree,
        };
        Self::with_tree(tree, state.clock, random)
    }

    /// Number of operations so far: `crash_at` of any smaller number would have hit.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// The numbers of those operations that were syncs.
    #[must_use]
    pub fn sync_points(&self) -> Vec<u64> {
        self.lock().sync_points.clone()
    }

    /// The disk is full once `bytes` more have been written: the write that does not fit is
    /// done in part and fails with "no space", as does every later creation. Removing files
    /// gives nothing back; [`CrashDisk::stop_failing`] does.
    pub fn fail_after_bytes(&self, bytes: u64) {
        self.lock().room_bytes = Some(bytes);
    }

    /// The syncs of these numbers, counted from the disk's first one, fail with an I/O error
    /// and lose by chance what they should have made durable: it stays visible, and later
    /// syncs pass it over as clean and succeed.
    pub fn fail_syncs(&self, numbers: Range<u64>) {
        self.lock().failing_syncs = numbers;
    }

    /// There is room again, and syncs succeed. A crash is not undone.
    pub fn stop_failing(&self) {
        let mut state = self.lock();
        state.room_bytes = None;
        state.failing_syncs = 0..0;
    }

    /// Lets time pass: files grow older.
    pub fn advance_clock(&self, time: Duration) {
        self.lock().clock += time;
    }

    /// Paths of all visible files, sorted; also after the crash.
    #[must_use]
    pub fn file_paths(&self) -> Vec<String> {
        self.lock().tree.file_paths()
    }

    /// Changes a file behind everybody's back, durably.
    ///
    /// # Errors
    /// `NotFound`, or the path is a directory's.
    pub fn corrupt(&self, path: &str, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut state = self.lock();
        let node = state.tree.find(path)?;
        let file = state.tree.file_mut(node)?;
        let mut bytes = file.current.to_vec();
        change(&mut bytes);
        file.current = Arc::from(bytes);
        file.durable = Arc::clone(&file.current);
        file.dirty = false;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn alive(&self) -> io::Result<()> {
        if self.crashed {
            return Err(io::Error::other("the crash disk has crashed"));
        }
        Ok(())
    }

    /// Counts an operation, and crashes if it is the one.
    fn begin(&mut self, change: Option<Change>) -> io::Result<()> {
        self.alive()?;
        let number = self.operations;
        if self.crash_at == Some(number) {
            self.crashed = true;
            self.in_flight = change;
            return self.alive();
        }
        self.operations += 1;
        Ok(())
    }

    /// Counts a sync; true if it is one of those that fail.
    fn begin_sync(&mut self) -> io::Result<bool> {
        let number = self.operations;
        self.begin(None)?;
        let fails = self
            .failing_syncs
            .contains(&(self.sync_points.len() as u64));
        self.sync_points.push(number);
        Ok(fails)
    }

    /// Takes room for `bytes`; returns how many of them fit.
    fn take_room(&mut self, bytes: usize) -> usize {
        let Some(room) = &mut self.room_bytes else {
            return bytes;
        };
        let fit = bytes.min(usize::try_from(*room).unwrap_or(usize::MAX));
        *room -= fit as u64;
        fit
    }
}

impl FileSystem for CrashDisk {
    type File = CrashFile;

    fn create_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.begin(Some(Change::CreateDir(path.to_owned())))?;
        if state.room_bytes == Some(0) {
            return Err(Errno::NOSPC.into());
        }
        state.tree.create_dir(path)
    }

    fn write_new_file(&self, path: &str, bytes: &[u8]) -> io::Result<CrashFile> {
        let mut state = self.lock();
        state.begin(Some(Change::WriteNewFile(
            path.to_owned(),
            Arc::from(bytes),
        )))?;
        if state.room_bytes == Some(0) {
            return Err(Errno::NOSPC.into());
        }
        let clock = state.clock;
        let fit = state.take_room(bytes.len());
        let node = state.tree.write_new_file(path, &bytes[..fit], clock)?;
        if fit < bytes.len() {
            return Err(Errno::NOSPC.into());
        }
        Ok(CrashFile { node })
    }

    fn append(&self, file: &CrashFile, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.begin(Some(Change::Append(file.node, Arc::from(bytes))))?;
        let clock = state.clock;
        let fit = state.take_room(bytes.len());
        state.tree.append(file.node, &bytes[..fit], clock)?;
        if fit < bytes.len() {
            return Err(Errno::NOSPC.into());
        }
        Ok(())
    }

    fn open_file(&self, path: &str) -> io::Result<CrashFile> {
        let state = self.lock();
        state.alive()?;
        let node = state.tree.find(path)?;
        Ok(CrashFile { node })
    }

    fn file_bytes(&self, file: &CrashFile) -> io::Result<u64> {
        let state = self.lock();
        state.alive()?;
        Ok(state.tree.file(file.node)?.current.len() as u64)
    }

    fn read_at(&self, file: &CrashFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let state = self.lock();
        state.alive()?;
        let content = &state.tree.file(file.node)?.current;
        let start = usize::try_from(offset).map_or(content.len(), |start| start.min(content.len()));
        let count = buffer.len().div_ceil(2).min(content.len() - start);
        buffer[..count].copy_from_slice(&content[start..start + count]);
        Ok(count)
    }

    fn sync_file(&self, file: &CrashFile) -> io::Result<()> {
        let mut state = self.lock();
        let fails = state.begin_sync()?;
        let State { tree, random, .. } = &mut *state;
        let file = tree.file_mut(file.node)?;
        if file.dirty {
            file.durable = if fails {
                power_loss::surviving_bytes(file, random)
            } else {
                Arc::clone(&file.current)
            };
            file.dirty = false;
        }
        if fails { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn sync_dir(&self, path: &str) -> io::Result<()> {
        let mut state = self.lock();
        let fails = state.begin_sync()?;
        let State { tree, random, .. } = &mut *state;
        let node = tree.find(path)?;
        let directory = tree.directory_mut(node)?;
        if fails {
            directory.durable = power_loss::surviving_names(directory, random);
        } else {
            for change in &directory.pending {
                change.apply(&mut directory.durable);
            }
        }
        directory.pending.clear();
        if fails { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn publish(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.begin(Some(Change::Publish(from.to_owned(), to.to_owned())))?;
        state.tree.publish(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.begin(Some(Change::Replace(from.to_owned(), to.to_owned())))?;
        state.tree.replace(from, to)
    }

    fn remove_file(&self, path: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.begin(Some(Change::RemoveFile(path.to_owned())))?;
        state.tree.remove_file(path)
    }

    fn status(&self, path: &str) -> io::Result<FileStatus> {
        let state = self.lock();
        state.alive()?;
        let node = state.tree.find(path)?;
        Ok(match &state.tree.nodes[&node] {
            Node::File(FileNode {
                current,
                written_at,
                ..
            }) => FileStatus {
                is_file: true,
                bytes: current.len() as u64,
                age: state.clock.saturating_sub(*written_at),
            },
            Node::Directory(_) => FileStatus {
                is_file: false,
                bytes: 0,
                age: Duration::ZERO,
            },
        })
    }

    fn list_dir(&self, path: &str) -> io::Result<Vec<String>> {
        let state = self.lock();
        state.alive()?;
        let directory = state.tree.directory(state.tree.find(path)?)?;
        Ok(directory.current.keys().cloned().collect())
    }
}

/// The change that the crash hit: not done, done, or done in part. Fails as the call would
/// have failed, unseen.
fn apply_by_chance(tree: &mut Tree, change: &Change, clock: Duration, random: &mut Random) {
    let fate = random.below(3);
    if fate == 0 {
        return;
    }
    let mut part_by_chance = |bytes: &Arc<[u8]>| -> Arc<[u8]> {
        if fate == 1 {
            return Arc::clone(bytes);
        }
        Arc::from(&bytes[..random.index(bytes.len() + 1)])
    };
    let _ = match change {
        Change::CreateDir(path) => tree.create_dir(path),
        Change::WriteNewFile(path, bytes) => tree
            .write_new_file(path, &part_by_chance(bytes), clock)
            .map(|_| ()),
        Change::Append(node, bytes) => tree.append(*node, &part_by_chance(bytes), clock),
        Change::Publish(from, to) => tree.publish(from, to),
        Change::Replace(from, to) => tree.replace(from, to),
        Change::RemoveFile(path) => tree.remove_file(path),
    };
}

#[cfg(test)]
mod tests;

//! Copies snapshots from one repository to another, which has keys of its own.
//!
//! ```text
//! tree of the snapshot ──▶ what an earlier copy has is taken over     ──▶ tree in the target
//!  beside it, an earlier    the rest: a batch of entries and chunks
//!  snapshot and its copy     └▶ chunks read once, in the order of their containers, verified, stored
//! ```
//!
//! Everything that a snapshot says of itself and of its files is copied as it is; what depends on keys (fingerprints, check
//! values, where chunks lie, how pages are cut) is made anew by the target's writer. The copy names the snapshot that it
//! is a copy of ([`Origin`]): what was copied is not copied again.
//!
//! *Keeping*: where both repositories cut alike ([`Repository::cuts_like`]), chunks stay as they are (`keeping.rs`), and later
//! backups into the target find them. *Cutting again*: elsewhere files go through the target's chunker (`cutting.rs`).
//!
//! An earlier snapshot that is in both is followed beside the one that is copied (`beside.rs`): a directory that is the
//! same as there is not read, nor is a file. So a copy of the snapshot of the next day costs what changed.
//!
//! Memory: a batch ([`Limits`]), the table of chunks (`table.rs`), and what reading and writing take of the memory that each
//! repository was opened with.

mod beside;
mod cutting;
mod keeping;
mod pairs;
mod report;
mod table;

pub use report::{CopyError, CopyOptions, CopyReport, Outcome};

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::Engine;
use engine::container::ContainerId;
use engine::format::ObjectError;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::pipeline::{InOrderError, IncomingStream, ReadingRoom, WriteError, Writer};
use engine::recipe::{Recipe, Run};
use engine::restore::Reader;
use engine::rewriting::Rewriting;

use crate::backup::parent::LiveContainers;
use crate::backup::tree_builder::{Content, TreeBuilder};
use crate::config::ConfigError;
use crate::deletion::runs::{Registration, RunKind};
use crate::listing::{DirectoryEntries, SnapshotTree, join_path};
use crate::progress::{Problem, Progress};
use crate::repository::Repository;
use crate::snapshot::{Origin, Snapshot};
use crate::tree::{Entry, EntryKind, HardLink};
use beside::Beside;
use pairs::{Pair, has_same_fingerprints, pairs_of};
use table::ChunkTable;

/// How much waits until it is read and stored.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Entries and parts of files.
    items: usize,
    /// Chunks, or runs where files are cut again.
    chunks: usize,
    /// Bytes of the table of chunks.
    table_bytes: usize,
}

impl Limits {
    fn of(memory_bytes: usize) -> Self {
        let table_bytes = memory_bytes / 8;
        Self {
            items: (memory_bytes / 16 / 512).max(1 << 8),
            chunks: (table_bytes / 2 / table::CHUNK_BYTES).max(1 << 10),
            table_bytes,
        }
    }
}

impl Repository {
    /// Copies snapshots of this repository to another one, the oldest first, and tells `told` what becomes of each. One
    /// that is damaged does not keep the others from being copied.
    ///
    /// # Errors
    /// When the copying ends before all snapshots were looked at. What was told until then is done.
    pub fn copy_to(
        &self,
        target: &Repository,
        snapshots: &[Snapshot],
        options: &CopyOptions,
        progress: &Progress,
        told: &mut dyn FnMut(&Snapshot, &Outcome, Option<&CopyError>),
    ) -> Result<CopyReport, CopyError> {
        if self.config().id == target.config().id {
            return Err(CopyError::SameRepository);
        }
        let mut copy = Copy::begin(self, target, options, progress)?;
        let mut snapshots: Vec<&Snapshot> = snapshots.iter().collect();
        snapshots.sort_by_key(|snapshot| (snapshot.time, snapshot.id));
        for snapshot in snapshots {
            let (outcome, error) = match copy.snapshot(snapshot) {
                Ok(outcome) => (outcome, None),
                Err(error) if error.is_damage_of_source() => {
                    copy.table.forget_waiting();
                    (Outcome::Failed, Some(error))
                }
                Err(error) => {
                    copy.leave();
                    return Err(error);
                }
            };
            match outcome {
                Outcome::Copied(_) => copy.report.copied += 1,
                Outcome::WasThere(_) => copy.report.there += 1,
                Outcome::Failed => copy.report.failed += 1,
            }
            told(snapshot, &outcome, error.as_ref());
        }
        copy.finish()
    }
}

/// A part of a tree whose turn comes.
enum Item {
    /// A directory begins.
    Enter(Box<Entry>),
    /// It ends.
    Leave,
    /// An entry whose content is known, or that has none.
    Settled(Box<Entry>),
    /// Another name of a file that came before.
    Linked(Box<Entry>),
    /// Chunks of the file that ends next, by their place in the source.
    Chunks {
        container: ContainerId,
        first: u16,
        count: u32,
    },
    /// A hole in it.
    Hole(u64),
    /// It ends, or all of it is to be cut again.
    File { entry: Box<Entry>, path: Vec<u8> },
}

/// What waits until it is read and stored.
#[derive(Default)]
struct Batch {
    items: Vec<Item>,
    /// What is to be read where chunks are kept: slots and lengths by container, in the order in which these are
    /// first needed.
    containers: Vec<ContainerId>,
    slots: BTreeMap<ContainerId, Vec<(u16, u32)>>,
    /// What is to be read where files are cut again.
    runs: Vec<Run>,
    chunks: usize,
}

/// A copy while it runs.
struct Copy<'a> {
    source: &'a Repository,
    options: &'a CopyOptions,
    progress: &'a Progress,
    engine: Engine,
    reader: Reader,
    room: ReadingRoom,
    registration: Registration,
    /// That the source is being read; none where nobody can be told.
    reading: Option<Registration>,
    writer: Writer,
    pairs: Vec<Pair>,
    there: BTreeMap<Origin, ObjectId>,
    table: ChunkTable,
    limits: Limits,
    is_kept: bool,
    has_same_fingerprints: bool,
    report: CopyReport,
}

/// One snapshot while it is copied.
struct Current {
    tree: TreeBuilder,
    beside: Option<Beside>,
    batch: Batch,
    /// The file whose chunks come.
    incoming: IncomingStream,
    links: HashSet<HardLink>,
}

impl<'a> Copy<'a> {
    fn begin(
        source: &'a Repository,
        target: &'a Repository,
        options: &'a CopyOptions,
        progress: &'a Progress,
    ) -> Result<Self, CopyError> {
        let of_target = |error: ConfigError| CopyError::Target(error.into());
        target.config().check_writable().map_err(of_target)?;
        // Before anything is looked at: what prunes delete from now on, they know of.
        let registration = target.register(RunKind::Writer, &options.host);
        let registration = registration.map_err(CopyError::Target)?;
        // A medium that can only be read is pruned by nobody.
        let reading = source.register(RunKind::Reader, &options.host).ok();
        let engine = target.engine_without_condemned();
        let engine = engine.map_err(CopyError::Target)?;
        let engine = engine.metered(&progress.stages).rewriting(Rewriting::Off);
        let of_source = |error: ObjectError| CopyError::Source(error.into());
        let reading_engine = source.engine().metered(&progress.stages);
        let reader = reading_engine.reader().map_err(of_source)?;
        let writer = engine.writer()?;
        let (pairs, there) = pairs_of(source, target)?;
        let is_kept = source.cuts_like(target);
        let limits = Limits::of(source.settings().memory_bytes);
        Ok(Self {
            has_same_fingerprints: has_same_fingerprints(source, target),
            room: reading_engine.reading_room(),
            table: ChunkTable::new(limits.table_bytes),
            report: CopyReport {
                is_cut_again: !is_kept,
                ..CopyReport::default()
            },
            source,
            options,
            progress,
            engine,
            reader,
            registration,
            reading,
            writer,
            pairs,
            there,
            limits,
            is_kept,
        })
    }

    fn show_life(&self) -> Result<(), CopyError> {
        let shown = self.registration.show_life();
        shown.map_err(|error| CopyError::Target(error.into()))?;
        if let Some(reading) = &self.reading {
            let shown = reading.show_life();
            shown.map_err(|error| CopyError::Source(error.into()))?;
        }
        match self.progress.is_cancelled() {
            true => Err(CopyError::Interrupted),
            false => Ok(()),
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<Outcome, CopyError> {
        let origin = snapshot.origin(self.source.config().id);
        if let Some(id) = self.there.get(&origin)
            && !self.options.force
        {
            return Ok(Outcome::WasThere(*id));
        }
        let counts = &snapshot.summary;
        Progress::add(&self.progress.files_total, counts.files);
        Progress::add(&self.progress.bytes_total, counts.files_bytes);
        let done = self.progress.bytes_done.load(Ordering::Relaxed);
        let files = self.progress.files_done.load(Ordering::Relaxed);
        let root = self.tree(snapshot)?;
        let totals = self.writer.commit()?;
        let mut copied = Snapshot {
            root,
            run: Some(self.registration.id()),
            remap_generation: self.writer.remap_generation(),
            parent: self.copy_of_parent(snapshot),
            replaces: Vec::new(),
            copy_of: Some(origin),
            is_doubtful: false,
            ..snapshot.clone()
        };
        let written = copied.write(self.engine.store().as_ref(), self.engine.vault());
        self.report.bytes_stored += written.map_err(|error| CopyError::Target(error.into()))?;
        self.take_back_if_dead(copied.id)?;
        self.report.bytes_new = totals.bytes_new;
        self.there.insert(origin, copied.id);
        let id = copied.id;
        self.pairs.push(Pair {
            source: snapshot.clone(),
            target: copied,
        });
        // Directories that were taken over count as a whole.
        let rest = |done: u64, before: u64, all: u64| (before + all).saturating_sub(done);
        let now = self.progress.bytes_done.load(Ordering::Relaxed);
        Progress::add(
            &self.progress.bytes_done,
            rest(now, done, counts.files_bytes),
        );
        let now = self.progress.files_done.load(Ordering::Relaxed);
        Progress::add(&self.progress.files_done, rest(now, files, counts.files));
        Ok(Outcome::Copied(id))
    }

    /// Who was taken for dead may refer to what is deleted since: such a snapshot must not stay.
    fn take_back_if_dead(&self, snapshot: ObjectId) -> Result<(), CopyError> {
        let of_target = |error: ObjectError| CopyError::Target(error.into());
        if self.registration.is_expired().map_err(of_target)? {
            let key = ObjectKey::new(ObjectKind::Snapshot, snapshot);
            let deleted = self.engine.store().delete(&key);
            deleted.map_err(|error| CopyError::Target(error.into()))?;
            return Err(CopyError::TakenForDead);
        }
        Ok(())
    }

    fn copy_of_parent(&self, snapshot: &Snapshot) -> Option<ObjectId> {
        let parent = snapshot.parent?;
        let is_parent = |pair: &&Pair| pair.source.is_or_was(parent);
        self.pairs.iter().find(is_parent).map(|pair| pair.target.id)
    }

    /// What is followed beside a snapshot: its parent, or else the last before it of the same host and paths.
    fn pair_beside(&self, snapshot: &Snapshot) -> Option<&Pair> {
        if self.options.force {
            return None;
        }
        let is_parent = |pair: &&Pair| {
            let parent = snapshot.parent;
            parent.is_some_and(|parent| pair.source.is_or_was(parent))
        };
        let is_alike = |pair: &&Pair| {
            pair.source.host == snapshot.host
                && pair.source.paths == snapshot.paths
                && !pair.source.is_interrupted
        };
        let alike = || self.pairs.iter().filter(is_alike);
        let before = alike().filter(|pair| pair.source.time <= snapshot.time);
        let nearest = before.max_by_key(|pair| pair.source.time);
        self.pairs
            .iter()
            .find(is_parent)
            .or(nearest)
            .or_else(|| alike().min_by_key(|pair| pair.source.time))
    }

    /// Copies the tree of a snapshot; returns the root's pages.
    fn tree(&mut self, snapshot: &Snapshot) -> Result<Recipe, CopyError> {
        let tree = SnapshotTree::new(self.reader.clone(), snapshot);
        let target_reader = Reader::new(
            Arc::clone(self.writer.index().containers()),
            self.engine.settings().shares().tree_bytes,
        );
        let live = LiveContainers::new(Arc::clone(self.writer.index().live_objects()));
        let beside = self.pair_beside(snapshot).map(|pair| {
            let source = SnapshotTree::new(self.reader.clone(), &pair.source);
            let target = SnapshotTree::new(target_reader, &pair.target);
            Beside::new(source, target, live)
        });
        if let Some(root) = beside
            .as_ref()
            .and_then(|beside| beside.same_root(tree.root()))
        {
            self.report.directories_kept += 1;
            return Ok(root);
        }
        let fingerprinter = Arc::clone(self.engine.fingerprinter());
        let mut current = Current {
            tree: TreeBuilder::new(Arc::clone(&fingerprinter)),
            beside,
            batch: Batch::default(),
            incoming: IncomingStream::new(&fingerprinter),
            links: HashSet::new(),
        };
        self.walk(&tree, &mut current)?;
        self.store(&mut current)?;
        self.writer.flush()?;
        let (root, refused) = current.tree.finish(&mut self.writer)?;
        match refused.into_iter().next() {
            Some(problem) => Err(CopyError::Refused(problem)),
            None => Ok(root),
        }
    }

    fn walk(&mut self, tree: &SnapshotTree, current: &mut Current) -> Result<(), CopyError> {
        let mut stack: Vec<(Vec<u8>, DirectoryEntries)> =
            vec![(Vec::new(), tree.directory(tree.root(), b""))];
        while let Some((directory, entries)) = stack.last_mut() {
            let Some(entry) = entries.next() else {
                stack.pop();
                if !stack.is_empty() {
                    current.batch.items.push(Item::Leave);
                    if let Some(beside) = &mut current.beside {
                        beside.leave();
                    }
                }
                continue;
            };
            let entry = entry?;
            let path = join_path(directory, &entry.name);
            let is_directory = entry.kind == EntryKind::Directory;
            if let Some(below) = self.entry(entry, &path, current)? {
                debug_assert!(is_directory);
                stack.push((path.clone(), tree.directory(&below, &path)));
            }
            let Batch {
                items,
                chunks,
                runs,
                ..
            } = &current.batch;
            if items.len() >= self.limits.items || chunks + runs.len() >= self.limits.chunks {
                self.store(current)?;
            }
        }
        Ok(())
    }

    /// Takes an entry; returns the pages of a directory that is to be walked.
    fn entry(
        &mut self,
        mut entry: Entry,
        path: &[u8],
        current: &mut Current,
    ) -> Result<Option<Recipe>, CopyError> {
        let before = current
            .beside
            .as_mut()
            .and_then(|beside| beside.find(&entry.name));
        let is_same = match (&before, &current.beside) {
            (Some(before), Some(beside)) => beside.is_same(&entry, before),
            _ => false,
        };
        if let (true, Some(before)) = (is_same, &before) {
            match entry.kind {
                EntryKind::Directory => self.report.directories_kept += 1,
                _ => {
                    self.report.files_kept += 1;
                    Progress::add(&self.progress.files_done, 1);
                    Progress::add(&self.progress.bytes_done, entry.size);
                }
            }
            entry.content = before.target.content.clone();
            entry.check = before.target.check;
            current.links.extend(entry.hard_link);
            current.batch.items.push(Item::Settled(Box::new(entry)));
            return Ok(None);
        }
        match entry.kind {
            EntryKind::Directory => {
                let below = std::mem::take(&mut entry.content);
                if let Some(beside) = &mut current.beside {
                    beside.enter(before, path);
                }
                current.batch.items.push(Item::Enter(Box::new(entry)));
                return Ok(Some(below));
            }
            EntryKind::File => {
                self.progress.set_current(path);
                self.report.files += 1;
                let is_later_name = entry
                    .hard_link
                    .is_some_and(|link| !current.links.insert(link));
                if is_later_name {
                    Progress::add(&self.progress.files_done, 1);
                    Progress::add(&self.progress.bytes_done, entry.size);
                    let entry = Box::new(entry);
                    current.batch.items.push(Item::Linked(entry));
                } else if self.is_kept {
                    if let Some(before) = before
                        && !self.has_same_fingerprints
                        && let Some(beside) = &current.beside
                    {
                        beside.learn(&before, &mut self.table);
                    }
                    self.gather_chunks(entry, path, current)?;
                } else {
                    self.gather_file(entry, path, current)?;
                }
            }
            _ => current.batch.items.push(Item::Settled(Box::new(entry))),
        }
        Ok(None)
    }

    /// Reads and stores what waits.
    fn store(&mut self, current: &mut Current) -> Result<(), CopyError> {
        self.show_life()?;
        let before = self.writer.totals().bytes_new;
        if self.is_kept {
            self.store_chunks(&mut current.batch)?;
            self.refer(current)?;
            self.table.shrink();
        } else {
            self.cut_again(current)?;
        }
        let new = self.writer.totals().bytes_new - before;
        Progress::add(&self.progress.bytes_new, new);
        self.show_life()
    }

    /// An item that needs no contents, for the tree.
    fn plain_item(&mut self, item: Item, tree: &mut TreeBuilder) -> Result<(), CopyError> {
        match item {
            Item::Enter(entry) => tree.enter(*entry),
            Item::Leave => tree.leave(),
            Item::Linked(entry) => tree.entry(*entry, Content::Linked),
            Item::Settled(entry) => tree.entry(*entry, Content::Settled),
            Item::Chunks { .. } | Item::Hole(_) | Item::File { .. } => {
                unreachable!("contents are for those who read them")
            }
        }
        Ok(tree.advance(&mut self.writer)?)
    }

    /// The file that came last is complete.
    fn end_file(
        &mut self,
        mut entry: Entry,
        incoming: &mut IncomingStream,
        tree: &mut TreeBuilder,
    ) -> Result<(), CopyError> {
        let (recipe, check) = incoming.take(self.engine.fingerprinter());
        entry.content = Recipe::default();
        entry.check = (entry.size > 0).then_some(check);
        Progress::add(&self.progress.files_done, 1);
        tree.entry(entry, Content::Pending(recipe));
        Ok(tree.advance(&mut self.writer)?)
    }

    /// Makes what is stored durable and takes leave: a failure here is less than the one before.
    fn leave(mut self) {
        let _ = self.writer.commit();
        let _ = self.writer.leave_index();
        let _ = self.registration.end();
        if let Some(reading) = self.reading {
            let _ = reading.end();
        }
    }

    fn finish(mut self) -> Result<CopyReport, CopyError> {
        // Of a snapshot that failed there may be chunks that the index does not have yet.
        let totals = self.writer.commit()?;
        self.report.bytes_new = totals.bytes_new;
        self.report.bytes_stored += totals.stored_bytes;
        let note = |path: &[u8], message: String| Problem {
            path: path.to_vec(),
            message,
            is_error: false,
        };
        let index = ObjectKind::Index.directory().as_bytes();
        if let Err(error) = self.writer.merge_index() {
            let message = format!("the index could not be tidied: {error}");
            self.progress.report(&note(index, message));
        }
        let runs = ObjectKind::Run.directory().as_bytes();
        for registration in [Some(self.registration), self.reading]
            .into_iter()
            .flatten()
        {
            if let Err(error) = registration.end() {
                let message = format!("cannot take leave: {error}");
                self.progress.report(&note(runs, message));
            }
        }
        self.progress.is_total_known.store(true, Ordering::Relaxed);
        Ok(self.report)
    }

    fn in_order_error(path: &[u8], error: InOrderError) -> CopyError {
        match error {
            InOrderError::Read(error) => CopyError::Read {
                path: path.to_vec(),
                error,
            },
            InOrderError::Take(error) => CopyError::Write(WriteError::Read(error)),
            InOrderError::Threads(error) => CopyError::Threads(error),
        }
    }
}

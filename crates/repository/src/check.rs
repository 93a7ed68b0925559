//! Is everything that snapshots name there, and is it what was stored?
//!
//! Without reading data: every key slot, snapshot, remap, index run, and the metadata of every
//! container open and decode; every directory can be read; every file's recipe agrees with
//! the containers it names, and its check value with their fingerprints; every delta has its base
//! (`deltas.rs`). With data: besides, every container and index run is read whole, every seal opened, every
//! delta applied, every chunk fingerprinted. In between: some groups of the containers (`level.rs`).
//!
//! A check changes nothing. [`Repository::set_aside`] makes use of what it found: new backups
//! store again what damaged containers held.

mod deltas;
mod level;

pub use level::{CheckLevel, Sample, SampleSize};

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::container::{ContainerId, ContainerSummary};
use engine::format::ObjectError;
use engine::index::RunSet;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::pipeline::{ReadingRoom, Stage};
use engine::recipe::{Recipe, Run};
use engine::restore::{Reader, VerifySink, verify_objects};

use self::deltas::DeltaCheck;
use crate::deletion::condemned::Condemned;
use crate::deletion::runs::RunKind;
use crate::files::host_name;
use crate::keys::{KeyError, read_slots};
use crate::listing::{DirectoryEntries, SnapshotTree, join_path};
use crate::progress::{Problem, Progress};
use crate::repository::{Repository, RepositoryError};
use crate::tree::{Entry, EntryKind};

/// Problems kept in the report; all are reported to the progress handler.
const PROBLEMS_KEPT_MAX: usize = 10_000;

/// How thoroughly to check: all data or none. [`CheckLevel`] knows more.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckOptions {
    /// Read and verify all data, not only structure.
    pub read_data: bool,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckProblem {
    /// The object or the path in a snapshot.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What that means for the person.
    pub meaning: &'static str,
    /// Is something lost or unreadable? Otherwise it is made good by itself or a later repair.
    pub is_loss: bool,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is wrong; at most 10,000 entries.
    pub problems: Vec<CheckProblem>,
    /// How many problems there are.
    pub problem_count: u64,
    /// Those of them that mean a loss.
    pub losses: u64,
    /// Snapshots checked.
    pub snapshots: u64,
    /// Files checked; those in directories that snapshots share count once.
    pub files: u64,
    /// Container objects checked.
    pub containers: u64,
    /// Chunks in them.
    pub chunks: u64,
    /// Bytes of these.
    pub containers_bytes: u64,
    /// Bytes of containers read and verified: with data all, of a sample those of its groups.
    pub bytes_verified: u64,
    /// Groups read and verified; only of a sample.
    pub groups_verified: u64,
    /// Container objects that are there and damaged, in ascending order: for
    /// [`Repository::set_aside`].
    pub damaged_containers: Vec<ObjectId>,
}

const SNAPSHOT_LOST: &str = "this snapshot can't be restored, others are not affected; `onefold recover` finds its directories";
const CONTAINER_DAMAGED: &str = "files with chunks in this container can't be restored whole from the snapshots there are; `onefold repair containers` moves what is whole of it, and new backups store the rest again";
const DELTAS_LOST: &str = "files with these chunks can't be restored whole from the snapshots there are; `onefold repair snapshots` makes snapshots without them";
const INDEX_DAMAGED: &str = "no data is lost; `onefold repair index` makes it good, and until then backups may store some chunks again";
const SLOT_DAMAGED: &str =
    "the password of this slot no longer opens the repository; other slots do";
const FILE_DAMAGED: &str = "this file can't be restored whole from this snapshot; `onefold repair snapshots` makes one without it";
const DIRECTORY_DAMAGED: &str = "this directory and what is below it can't be restored from this snapshot; `onefold repair snapshots` makes one of the rest";

/// A check while it runs.
struct Check<'a> {
    repository: &'a Repository,
    reader: Reader,
    progress: &'a Progress,
    report: CheckReport,
    room: ReadingRoom,
    /// Problems whose turn has not come; nothing where they are told at once.
    waiting: Option<Vec<CheckProblem>>,
    directories_seen: HashSet<[u8; 16]>,
    /// Containers that snapshots use.
    containers_used: HashSet<ContainerId>,
    /// Container objects that were condemned when it began: they may go meanwhile.
    condemned: HashSet<ObjectId>,
}

/// How often runs of the index are listed again when some seem to be lacking: others merge them meanwhile.
const INDEX_TRIES: usize = 5;

/// What the threads find out about containers.
struct ContainerSink<'a> {
    progress: &'a Progress,
    is_sample: bool,
    chunks: AtomicU64,
    /// Groups of a sample that were verified, and their bytes.
    groups: AtomicU64,
    group_bytes: AtomicU64,
    /// Objects that hold deltas, with their lengths.
    deltas: Mutex<Vec<(ObjectKey, u64)>>,
    failures: Mutex<Vec<(ObjectKey, ObjectError)>>,
}

impl VerifySink for ContainerSink<'_> {
    fn verified(
        &self,
        key: ObjectKey,
        object_bytes: u64,
        outcome: Result<ContainerSummary, ObjectError>,
    ) {
        self.progress.set_current(key.to_string().as_bytes());
        match outcome {
            Ok(summary) => {
                Progress::add(&self.chunks, summary.chunks);
                if summary.delta_chunks > 0 {
                    lock(&self.deltas).push((key, object_bytes));
                }
            }
            Err(error) => lock(&self.failures).push((key, error)),
        }
        Progress::add(&self.progress.files_done, 1);
        if !self.is_sample {
            Progress::add(&self.progress.bytes_done, object_bytes);
        }
    }

    fn sampled(&self, key: ObjectKey, outcome: Result<(u64, u64), ObjectError>) {
        match outcome {
            Ok((groups, bytes)) => {
                Progress::add(&self.groups, groups);
                Progress::add(&self.group_bytes, bytes);
                Progress::add(&self.progress.bytes_done, bytes);
            }
            Err(error) => lock(&self.failures).push((key, error)),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}

impl Repository {
    /// Checks the repository at a [`CheckLevel`].
    ///
    /// # Errors
    /// When the store can't be listed, or remaps are unreadable: then nothing can be said.
    /// Damage is no error but a problem in the report.
    pub fn check(
        &self,
        level: impl Into<CheckLevel>,
        progress: &Progress,
    ) -> Result<CheckReport, RepositoryError> {
        let level = level.into();
        // So that a prune waits with what it condemns from now on; where nothing can be written, nothing is.
        let _registration = self.register(RunKind::Reader, &host_name()).ok();
        let engine = self.engine().metered(&progress.stages);
        let condemned = Condemned::load(engine.store().as_ref(), engine.vault())?.objects();
        let mut check = Check {
            repository: self,
            reader: engine.reader()?,
            progress,
            report: CheckReport::default(),
            room: engine.reading_room(),
            waiting: None,
            directories_seen: HashSet::new(),
            containers_used: HashSet::new(),
            condemned,
        };
        check.keys()?;
        check.index(level == CheckLevel::Data)?;
        check.containers_and_snapshots(level)?;
        check.index_is_complete()?;
        Ok(check.report)
    }

    /// Has new backups take nothing from these container objects any more, but store again what
    /// they find there: for containers that a check found damaged. Snapshots that use them are
    /// restored as far as the containers are intact. Backups set aside by themselves what they
    /// find damaged; they do not read the data of chunks that they have already.
    ///
    /// # Errors
    /// When the repository can't be written.
    pub fn set_aside(&self, containers: &[ObjectId]) -> Result<(), RepositoryError> {
        self.check_writable()?;
        let mut writer = self.engine().writer()?;
        for &container in containers {
            writer.set_aside(container);
        }
        Ok(writer.merge_index()?)
    }
}

impl Check<'_> {
    /// Tells of a problem, or keeps it until its turn has come.
    fn problem(&mut self, problem: CheckProblem) {
        match &mut self.waiting {
            Some(waiting) if waiting.len() < PROBLEMS_KEPT_MAX => waiting.push(problem),
            _ => self.tell(problem),
        }
    }

    fn tell(&mut self, problem: CheckProblem) {
        self.progress.report(&Problem {
            path: problem.subject.clone().into_bytes(),
            message: format!("{} ({})", problem.message, problem.meaning),
            is_error: true,
        });
        self.report.problem_count += 1;
        self.report.losses += u64::from(problem.is_loss);
        if self.report.problems.len() < PROBLEMS_KEPT_MAX {
            self.report.problems.push(problem);
        }
    }

    fn keys(&mut self) -> Result<(), RepositoryError> {
        for error in read_slots(self.repository.store())?.unusable {
            let directory = ObjectKind::Key.directory().to_owned();
            let subject = match error {
                KeyError::DamagedSlot { slot, .. } => {
                    ObjectKey::new(ObjectKind::Key, slot).to_string()
                }
                _ => directory,
            };
            self.problem(CheckProblem {
                subject,
                message: error.to_string(),
                meaning: SLOT_DAMAGED,
                is_loss: false,
            });
        }
        Ok(())
    }

    fn open_index(&self) -> Result<RunSet, RepositoryError> {
        let engine = self.repository.engine();
        let (store, vault) = (Arc::clone(engine.store()), Arc::clone(engine.vault()));
        let memory_bytes = engine.settings().shares().index_bytes;
        Ok(RunSet::open(store, vault, memory_bytes)?)
    }

    /// A snapshot is written after the index run of what it uses: if no run knows of that, one is
    /// lost. Of containers that nobody uses, an interrupted backup has left some, and the next one
    /// takes them in.
    fn index_is_complete(&mut self) -> Result<(), RepositoryError> {
        if self.progress.is_cancelled() {
            return Ok(());
        }
        let used = std::mem::take(&mut self.containers_used);
        let engine = self.repository.engine();
        let now = Condemned::load(engine.store().as_ref(), engine.vault())?.objects();
        let condemned: HashSet<ObjectId> = self.condemned.union(&now).copied().collect();
        // One that can't be read is told already, and its loss is no loss of the index.
        let containers = self.reader.containers();
        // What is condemned is in no run on purpose, nor is what was packed anew a moment ago.
        let is_lost = |runs: &RunSet, container: ContainerId| {
            let remaps = containers.remaps();
            !runs.covered(container)
                && !remaps.is_moved(container)
                && !condemned.contains(&remaps.object_of(container).id)
                && containers.section(container).is_ok()
        };
        let mut lost = 0;
        for _ in 0..INDEX_TRIES {
            // Opened now, so that it has what the snapshots that were read have.
            let runs = self.open_index()?;
            let is_lost = |&&container: &&ContainerId| is_lost(&runs, container);
            lost = used.iter().filter(is_lost).count();
            if lost == 0 {
                break;
            }
        }
        if lost > 0 {
            let containers = match lost {
                1 => "1 container that snapshots use is".to_owned(),
                _ => format!("{lost} containers that snapshots use are"),
            };
            self.problem(CheckProblem {
                subject: ObjectKind::Index.directory().to_owned(),
                message: format!("{containers} in no index run that can be read"),
                meaning: INDEX_DAMAGED,
                is_loss: false,
            });
        }
        Ok(())
    }

    fn index(&mut self, read_data: bool) -> Result<(), RepositoryError> {
        let runs = self.open_index()?;
        if read_data {
            runs.verify();
        }
        for (key, error) in runs.damaged() {
            self.problem(CheckProblem {
                subject: key.to_string(),
                message: error.to_string(),
                meaning: INDEX_DAMAGED,
                is_loss: false,
            });
        }
        Ok(())
    }

    /// Verifies the containers, and walks the trees of the snapshots at the same time.
    fn containers_and_snapshots(&mut self, level: CheckLevel) -> Result<(), RepositoryError> {
        let mut objects: Vec<(ObjectKey, u64)> = Vec::new();
        let store = self.repository.store();
        store.list(ObjectKind::Container, &mut |id, bytes| {
            objects.push((ObjectKey::new(ObjectKind::Container, id), bytes));
        })?;
        objects.sort_unstable();
        let total = objects.iter().map(|(_, bytes)| bytes).sum();
        self.progress
            .files_total
            .store(objects.len() as u64, Ordering::Relaxed);
        let (choice, read_data) = (level.choice(total), level == CheckLevel::Data);
        let expected = level.expected_bytes(total);
        self.progress.bytes_total.store(expected, Ordering::Relaxed);
        self.progress.is_total_known.store(true, Ordering::Relaxed);
        let sink = ContainerSink {
            progress: self.progress,
            is_sample: choice.is_sample(),
            chunks: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            group_bytes: AtomicU64::new(0),
            deltas: Mutex::default(),
            failures: Mutex::default(),
        };
        let reader = self.reader.clone();
        let room = self.room.clone();
        // Trees are walked meanwhile; what is found there is told after what is found here.
        self.waiting = Some(Vec::new());
        let walked = verify_objects(reader.containers(), &room, &objects, choice, &sink, || {
            let plan = self.progress.stages.meter(Stage::Plan);
            plan.set_threads(1);
            plan.busy(0, || self.snapshots())
        });
        let waiting = self.waiting.take().unwrap_or_default();
        self.report.containers = objects.len() as u64;
        self.report.containers_bytes = total;
        self.report.chunks = sink.chunks.into_inner();
        self.report.groups_verified = sink.groups.into_inner();
        self.report.bytes_verified = match read_data {
            true => total,
            false => sink.group_bytes.into_inner(),
        };
        let mut deltas = into_inner(sink.deltas);
        deltas.sort_unstable();
        let failures = into_inner(sink.failures);
        let is_reachable = failures.iter().all(|(_, error)| error.is_damage());
        for (key, error) in first_of_each(failures) {
            if error.is_missing() && self.condemned.contains(&key.id) {
                continue; // A prune deleted it, as was to be expected.
            }
            if error.is_damage() {
                self.report.damaged_containers.push(key.id);
            }
            self.problem(CheckProblem {
                subject: key.to_string(),
                message: error.to_string(),
                meaning: CONTAINER_DAMAGED,
                is_loss: true,
            });
        }
        self.deltas(&deltas, read_data, is_reachable);
        for problem in waiting {
            self.tell(problem);
        }
        walked
    }

    /// Chunks stored as deltas in these objects, those with damage apart: these are told.
    fn deltas(&mut self, objects: &[(ObjectKey, u64)], read_data: bool, is_reachable: bool) {
        // As much as a restore of its plans and its files.
        let engine = self.repository.engine();
        let plan_bytes = engine.settings().memory_bytes / 4;
        let (reader, room) = (&self.reader, &self.room);
        let condemned = engine.condemned();
        let check = DeltaCheck::new(
            reader,
            room,
            self.progress,
            plan_bytes,
            is_reachable,
            condemned,
        );
        let losses = check.run(objects, read_data);
        for (container, losses) in losses {
            if losses.is_damage {
                self.report.damaged_containers.push(losses.object.id);
            }
            let chunks = match losses.chunks {
                1 => "a chunk".to_owned(),
                chunks => format!("{chunks} chunks"),
            };
            let message = format!(
                "{chunks} stored as deltas in container {container} can't be made: {}",
                losses.message
            );
            self.problem(CheckProblem {
                subject: losses.object.to_string(),
                message,
                meaning: DELTAS_LOST,
                is_loss: true,
            });
        }
        self.report.damaged_containers.sort_unstable();
        self.report.damaged_containers.dedup();
    }

    fn snapshots(&mut self) -> Result<(), RepositoryError> {
        let list = self.repository.snapshots()?;
        for unreadable in list.unreadable {
            let key = ObjectKey::new(ObjectKind::Snapshot, unreadable.id);
            self.problem(CheckProblem {
                subject: key.to_string(),
                message: unreadable.error.to_string(),
                meaning: SNAPSHOT_LOST,
                is_loss: true,
            });
        }
        for snapshot in list.snapshots {
            if self.progress.is_cancelled() {
                break;
            }
            self.report.snapshots += 1;
            let tree = SnapshotTree::new(self.reader.clone(), &snapshot);
            self.tree(&tree, &snapshot.id.short());
        }
        Ok(())
    }

    fn tree(&mut self, tree: &SnapshotTree, snapshot: &str) {
        let mut stack: Vec<(Vec<u8>, DirectoryEntries)> = Vec::new();
        if self.is_first_visit(tree.root()) {
            stack.push((Vec::new(), tree.directory(tree.root(), b"")));
        }
        while let Some((path, entries)) = stack.last_mut() {
            if self.progress.is_cancelled() {
                return;
            }
            let entry = match entries.next() {
                None => {
                    stack.pop();
                    continue;
                }
                Some(Ok(entry)) => entry,
                Some(Err(error)) => {
                    let problem = CheckProblem {
                        subject: subject(snapshot, path),
                        message: error.to_string(),
                        meaning: DIRECTORY_DAMAGED,
                        is_loss: true,
                    };
                    self.problem(problem);
                    stack.pop();
                    continue;
                }
            };
            let path = join_path(path, &entry.name);
            match entry.kind {
                EntryKind::File => self.file(&entry, &path, snapshot),
                EntryKind::Directory if self.is_first_visit(&entry.content) => {
                    let entries = tree.directory(&entry.content, &path);
                    stack.push((path, entries));
                }
                _ => {}
            }
        }
    }

    /// Directories that snapshots share are checked once.
    fn is_first_visit(&mut self, recipe: &Recipe) -> bool {
        let mut table = engine::recipe::ContainerTable::default();
        let mut bytes = Vec::new();
        recipe.encode(&mut table, &mut bytes);
        table.encode(&mut bytes);
        self.containers_used.extend(table.containers());
        let mut seen = [0; 16];
        seen.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
        self.directories_seen.insert(seen)
    }

    fn file(&mut self, entry: &Entry, path: &[u8], snapshot: &str) {
        self.report.files += 1;
        let used = &mut self.containers_used;
        let mut note = |run: &Run, _: Option<&_>| used.extend(container_of(run));
        let message = match self.reader.visit_runs(&entry.content, &mut note) {
            Ok((bytes, _)) if bytes != entry.size => {
                format!(
                    "its recipe makes {bytes} bytes where {} are expected",
                    entry.size
                )
            }
            Ok((_, check)) if entry.check.is_some_and(|expected| expected != check) => {
                "its check value differs from its chunks".to_owned()
            }
            Ok(_) => return,
            Err(error) => error.to_string(),
        };
        self.problem(CheckProblem {
            subject: subject(snapshot, path),
            message,
            meaning: FILE_DAMAGED,
            is_loss: true,
        });
    }
}

/// One failure of each object, whichever thread met them first; in ascending order.
fn first_of_each(mut failures: Vec<(ObjectKey, ObjectError)>) -> BTreeMap<ObjectKey, ObjectError> {
    failures.sort_by_cached_key(|(key, error)| (*key, error.to_string()));
    let mut first = BTreeMap::new();
    for (key, error) in failures {
        first.entry(key).or_insert(error);
    }
    first
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn into_inner<T>(shared: Mutex<T>) -> T {
    shared.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn container_of(run: &Run) -> Option<ContainerId> {
    match run {
        Run::Slots { container, .. } => Some(*container),
        Run::Hole { .. } => None,
    }
}

fn subject(snapshot: &str, path: &[u8]) -> String {
    let path = if path.is_empty() { b"/" } else { path };
    format!("{snapshot}:{}", String::from_utf8_lossy(path))
}

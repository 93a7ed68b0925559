//! Directories that no snapshot names: what an interrupted backup left, or a snapshot that was deleted.
//!
//! Enter: the pages in metadata containers that no snapshot reaches. Leaves: a snapshot with the directories among them
//! that no other directory names. One such directory becomes the root; several come below it under the names
//! `found-0001` and so on, for their own names stood in pages that are not there. Files that are not whole are left out
//! and listed. The snapshot is marked as interrupted and has the tag `recovered`: nobody takes it for all there was.
//!
//! What an interrupted backup had stored of file contents needs no recovery: the next backup finds it.
//!
//! Memory: 20 B a page that nobody reaches.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::Engine;
use engine::container::{ChunkAddress, ContainerKind, Slot};
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::pipeline::{PendingRecipe, Writer};
use engine::recipe::{Recipe, Run, RunJoiner};
use engine::restore::Reader;

use super::health::Health;
use super::tree::TreeRepair;
use super::{Loss, RepairError};
use crate::deletion::runs::{self, Registration, Run as ClientRun, RunKind};
use crate::listing::DirectoryEntries;
use crate::progress::Progress;
use crate::prune::Marking;
use crate::repository::{PROGRAM, Repository, RepositoryError};
use crate::snapshot::Snapshot;
use crate::timestamp::Timestamp;
use crate::tree::{Entry, EntryKind, Metadata, PageWriter, decode_page};

/// Most directories that come below one root.
const FOUND_MAX: usize = 9_999;

/// The tag of snapshots that were made so.
pub const RECOVERED_TAG: &str = "recovered";

/// How to look for what is left.
#[derive(Debug, Clone, Default)]
pub struct RecoverOptions {
    /// This machine's name.
    pub host: String,
    /// Only say what there is.
    pub dry_run: bool,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoverReport {
    /// Runs that are registered whose process has certainly ended.
    pub dead_runs: Vec<ClientRun>,
    /// Container objects that no index run covers: what backups left that did not end.
    pub containers_uncovered: u64,
    /// Bytes of them.
    pub bytes_uncovered: u64,
    /// Pages of directories that no snapshot reaches.
    pub pages: u64,
    /// Directories that no other one names.
    pub directories: u64,
    /// Those of them for which there was no room below one root: the next run takes them.
    pub directories_left: u64,
    /// Files in and below them that are whole; one that lies in several counts in each.
    pub files: u64,
    /// Bytes of these files.
    pub files_bytes: u64,
    /// What is lost of them.
    pub losses: Vec<Loss>,
    /// The snapshot that was made.
    pub snapshot: Option<ObjectId>,
}

/// A directory that was found.
struct Found {
    recipe: Recipe,
    /// The latest modification of what is in it.
    modified: Timestamp,
}

impl Repository {
    /// Finds directories that no snapshot names, and makes a snapshot of them.
    ///
    /// # Errors
    /// When the store can't be read or written.
    pub fn recover(
        &self,
        options: &RecoverOptions,
        progress: &Progress,
    ) -> Result<RecoverReport, RepairError> {
        self.config().check_writable()?;
        let mut report = RecoverReport::default();
        let store = self.store();
        let registered = runs::registered(store, self.engine().vault())?;
        report.dead_runs = registered
            .into_values()
            .filter(ClientRun::has_died)
            .collect();
        let registration = match options.dry_run {
            true => None,
            false => Some(self.register(RunKind::Writer, &options.host)?),
        };
        let engine = self.engine_without_condemned()?.metered(&progress.stages);
        let engine = match options.dry_run {
            true => engine.discarding(),
            false => engine,
        };
        self.uncovered(&engine, &mut report)?;
        let reader = engine.reader()?;
        let found = self.unreached(&engine, &reader, &mut report, progress)?;
        if found.is_empty() {
            return Ok(report);
        }
        let mut writer = engine.writer()?;
        let root = attach(&engine, &reader, found, &mut writer, &mut report, progress)?;
        writer.commit()?;
        if !options.dry_run {
            self.write_recovered(root, &writer, registration.as_ref(), options, &mut report)?;
        }
        if let Some(registration) = registration {
            registration.end()?;
        }
        Ok(report)
    }

    fn uncovered(&self, engine: &Engine, report: &mut RecoverReport) -> Result<(), RepairError> {
        let index_bytes = engine.settings().shares().index_bytes;
        let (store, vault) = (Arc::clone(engine.store()), Arc::clone(engine.vault()));
        let runs = engine::index::RunSet::open(store, vault, index_bytes)?;
        let remaps = engine::container::RemapSet::load(engine.store().as_ref(), engine.vault())?;
        let named: BTreeSet<ObjectId> = remaps.moved().map(|(_, object)| object).collect();
        let listed = engine
            .store()
            .list(ObjectKind::Container, &mut |id, bytes| {
                let is_covered = runs.covered(engine::container::ContainerId(id));
                if !is_covered && !named.contains(&id) && !engine.condemned().contains(&id) {
                    report.containers_uncovered += 1;
                    report.bytes_uncovered += bytes;
                }
            });
        Ok(listed.map_err(RepositoryError::from)?)
    }

    /// The directories that neither a snapshot nor another directory reaches.
    fn unreached(
        &self,
        engine: &Engine,
        reader: &Reader,
        report: &mut RecoverReport,
        progress: &Progress,
    ) -> Result<Vec<Found>, RepairError> {
        let mut marking = Marking::new(reader, progress);
        for snapshot in &self.snapshots()?.snapshots {
            // What can't be reached of a damaged one is looked for as well.
            let _ = marking.snapshot(snapshot);
        }
        if progress.is_cancelled() {
            return Err(RepairError::Interrupted);
        }
        let marks = marking.finish(&[]).expect("without deltas nothing is read");
        let mut objects = Vec::new();
        let listed = engine
            .store()
            .list(ObjectKind::Container, &mut |id, bytes| {
                if !engine.condemned().contains(&id) {
                    objects.push((ObjectKey::new(ObjectKind::Container, id), bytes));
                }
            });
        listed.map_err(RepositoryError::from)?;
        objects.sort_unstable();
        progress.expect(
            objects.len() as u64,
            objects.iter().map(|(_, bytes)| bytes).sum(),
        );
        let (mut pages, mut children) = (Vec::new(), BTreeSet::new());
        let remaps = reader.containers().remaps();
        for (key, bytes) in objects {
            if progress.is_cancelled() {
                return Err(RepairError::Interrupted);
            }
            Progress::add(&progress.files_done, 1);
            Progress::add(&progress.bytes_done, bytes);
            let sections = match reader.containers().object(key) {
                Ok((metadata, _)) => metadata.sections,
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error.into()),
            };
            for section in sections {
                let is_here = remaps.is_place(section.id, key.id);
                if section.kind != ContainerKind::Metadata || !is_here {
                    continue;
                }
                for &slot in &section.slots {
                    let marked = marks.of(section.id);
                    if marked.is_some_and(|slots| slots.contains(slot)) {
                        continue;
                    }
                    let container = section.id;
                    let address = ChunkAddress { container, slot };
                    read_page(reader, address, &mut pages, &mut children)?;
                }
            }
        }
        pages.sort_unstable_by_key(|(address, ..)| *address);
        pages.dedup_by_key(|(address, ..)| *address);
        report.pages = pages.len() as u64;
        pages.retain(|(address, ..)| !children.contains(address));
        report.directories = pages.len() as u64;
        let found = pages.into_iter().map(|(address, bytes, modified)| Found {
            recipe: Recipe::Runs(vec![Run::Slots {
                container: address.container,
                first: address.slot,
                count: 1,
                bytes,
            }]),
            modified,
        });
        let mut found: Vec<Found> = found.collect();
        // The latest first: where there are very many, these are wanted most.
        found.sort_by_key(|found| std::cmp::Reverse(found.modified));
        Ok(found)
    }

    fn write_recovered(
        &self,
        root: Recipe,
        writer: &Writer,
        registration: Option<&Registration>,
        options: &RecoverOptions,
        report: &mut RecoverReport,
    ) -> Result<(), RepairError> {
        let mut snapshot = Snapshot {
            root,
            time: Timestamp::now(),
            is_interrupted: true,
            host: options.host.clone(),
            user: crate::files::current_user(),
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            paths: vec![b"/".to_vec()],
            tags: vec![RECOVERED_TAG.to_owned()],
            run: registration.map(Registration::id),
            remap_generation: writer.remap_generation(),
            program: PROGRAM.to_owned(),
            ..Snapshot::default()
        };
        snapshot.summary.files = report.files;
        snapshot.summary.files_bytes = report.files_bytes;
        for loss in &report.losses {
            snapshot
                .errors
                .record(loss.path.clone(), loss.message.clone());
        }
        let is_dead = || registration.map_or(Ok(false), Registration::is_expired);
        let written = snapshot.write_unless(self.store(), self.engine().vault(), &is_dead);
        if !written.map_err(RepositoryError::from)? {
            return Err(RepairError::TakenForDead);
        }
        report.snapshot = Some(snapshot.id);
        Ok(())
    }
}

/// A page of a directory that was found: where, how long, and when what is in it was modified last.
type FoundPage = (ChunkAddress, u64, Timestamp);

/// Takes a page in, if it is one of a directory, and what its entries name.
fn read_page(
    reader: &Reader,
    address: ChunkAddress,
    pages: &mut Vec<FoundPage>,
    children: &mut BTreeSet<ChunkAddress>,
) -> Result<(), RepairError> {
    let page = match reader.chunk(address) {
        Ok(page) => page,
        Err(error) if error.is_damage() => return Ok(()),
        Err(error) => return Err(RepairError::Read(Box::new(error))),
    };
    let Ok(entries) = decode_page(&page) else {
        return Ok(()); // A page of a recipe.
    };
    let mut modified = Timestamp::default();
    for entry in &entries {
        modified = modified.max(entry.metadata.modified);
        if entry.kind != EntryKind::Directory {
            continue;
        }
        for run in reader.runs(&entry.content) {
            // Of a page that can't be read nobody knows what it names.
            let Ok(Run::Slots {
                container,
                first: Slot(first),
                count,
                ..
            }) = run
            else {
                continue;
            };
            let slots = (first..=u16::MAX).take(count as usize).map(Slot);
            children.extend(slots.map(|slot| ChunkAddress { container, slot }));
        }
    }
    pages.push((address, page.len() as u64, modified));
    Ok(())
}

/// A root with what was found below it, without files that are not whole.
fn attach(
    engine: &Engine,
    reader: &Reader,
    mut found: Vec<Found>,
    writer: &mut Writer,
    report: &mut RecoverReport,
    progress: &Progress,
) -> Result<Recipe, RepairError> {
    let health = Health::avoiding_condemned(engine)?;
    let fingerprinter = Arc::clone(engine.fingerprinter());
    let mut trees = TreeRepair::new(reader, &health, &fingerprinter, progress, false);
    let is_alone = found.len() == 1;
    report.directories_left = found.len().saturating_sub(FOUND_MAX) as u64;
    found.truncate(FOUND_MAX);
    let (mut pages, mut runs) = (PageWriter::new(), RunJoiner::default());
    for (number, Found { recipe, modified }) in found.into_iter().enumerate() {
        count_files(reader, &recipe, report);
        let name = format!("found-{:04}", number + 1);
        let recipe = match trees.is_whole(&recipe, false)? {
            true => recipe,
            false => {
                let left = trees.rebuild(&recipe, writer)?;
                let prefix = if is_alone {
                    String::new()
                } else {
                    format!("/{name}")
                };
                for mut loss in left.losses {
                    if !loss.is_directory {
                        report.files = report.files.saturating_sub(1);
                        let bytes = loss.bytes_readable + loss.bytes_lost;
                        report.files_bytes = report.files_bytes.saturating_sub(bytes);
                    }
                    loss.path.splice(0..0, prefix.bytes());
                    report.losses.push(loss);
                }
                left.root
            }
        };
        if is_alone {
            return Ok(recipe);
        }
        let entry = Entry {
            name: name.into_bytes(),
            kind: EntryKind::Directory,
            metadata: Metadata {
                mode: 0o700,
                uid: rustix::process::getuid().as_raw(),
                gid: rustix::process::getgid().as_raw(),
                modified,
                changed: modified,
                ..Metadata::default()
            },
            size: 0,
            content: recipe,
            check: None,
            hard_link: None,
            unknown: Default::default(),
        };
        let pushed = pages.push(&fingerprinter, &entry);
        pushed.expect("names are short and ascend");
        while let Some(page) = pages.next_page() {
            runs.push(writer.push_page(&page)?);
        }
    }
    for page in pages.finish() {
        runs.push(writer.push_page(&page)?);
    }
    Ok(writer.settle(PendingRecipe::from_runs(&runs.finish()))?)
}

/// Counts the files in and below a directory, as far as its pages can be read.
fn count_files(reader: &Reader, recipe: &Recipe, report: &mut RecoverReport) {
    let mut waiting = vec![DirectoryEntries::new(reader, recipe, b"")];
    while let Some(entries) = waiting.last_mut() {
        match entries.next() {
            Some(Ok(entry)) if entry.kind == EntryKind::Directory => {
                waiting.push(DirectoryEntries::new(reader, &entry.content, b""));
            }
            Some(Ok(entry)) if entry.kind == EntryKind::File => {
                report.files += 1;
                report.files_bytes += entry.size;
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => drop(waiting.pop()),
        }
    }
}

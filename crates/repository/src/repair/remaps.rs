//! Remaps again, from what objects say of their sections.
//!
//! Enter: the remaps that can be read, and the metadata of all container objects, which name the logical containers that
//! they hold (docs/format/v1.md, §6). Leave: remaps of all places that there are, durable, and then neither damaged
//! remaps nor those whose places the new ones name. A place that only a lost remap named is found in the object itself:
//! whatever holds a section of a container has chunks of that container, verified when it was packed. Places in objects
//! that are gone are dropped.
//!
//! A remap names a container once; where one lies in several objects, several remaps are stored, the oldest place first,
//! so that readers try them in the order in which they did before.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use engine::container::{
    ContainerId, ContainerReader, ContainerSummary, ObjectMetadata, Remap, RemapSet,
};
use engine::format::ObjectError;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::restore::{MetadataSink, read_metadata};

use super::RepairError;
use crate::deletion::condemned::Condemned;
use crate::deletion::runs::RunKind;
use crate::progress::{Problem, Progress};
use crate::repository::{Repository, RepositoryError};
use crate::snapshot::Snapshot;

/// How remaps are to be repaired.
#[derive(Debug, Clone, Default)]
pub struct RepairRemapsOptions {
    /// This machine's name.
    pub host: String,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What a repair of remaps found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairRemapsReport {
    /// Remaps that were there.
    pub remaps: u64,
    /// Those that are damaged.
    pub damaged: u64,
    /// Places that the others name.
    pub places: u64,
    /// Those of them that are gone: they were, or would be, dropped.
    pub places_gone: u64,
    /// Places that no readable remap names: they were, or would be, named again.
    pub places_found: u64,
    /// Remaps that new ones took, or would take, the place of.
    pub replaced: u64,
    /// Container objects whose metadata can't be read: what they hold is not known.
    pub containers_unreadable: u64,
}

/// Logical containers, and objects that they lie in.
type PlaceList = Vec<(ContainerId, ObjectId)>;

struct Places<'a> {
    progress: &'a Progress,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Logical containers in objects of other names.
    found: PlaceList,
    unreadable: u64,
    failure: Option<ObjectError>,
}

impl Places<'_> {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetadataSink for Places<'_> {
    fn metadata(
        &self,
        key: ObjectKey,
        bytes: u64,
        outcome: Result<(ObjectMetadata, ContainerSummary), ObjectError>,
    ) {
        Progress::add(&self.progress.files_done, 1);
        Progress::add(&self.progress.bytes_done, bytes);
        let mut state = self.state();
        match outcome {
            Ok((metadata, _)) => {
                let sections = metadata.sections.iter().map(|section| section.id);
                let moved = sections.filter(|container| container.0 != key.id);
                state
                    .found
                    .extend(moved.map(|container| (container, key.id)));
            }
            Err(error) if error.is_missing() => {}
            Err(error) if error.is_damage() => state.unreadable += 1,
            Err(error) => drop(state.failure.get_or_insert(error)),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled() || self.state().failure.is_some()
    }
}

impl Repository {
    /// Replaces damaged remaps by what container objects say, and drops places that are gone. An interruption leaves
    /// them as whole as they were, or more so.
    ///
    /// # Errors
    /// When the store can't be read or written.
    pub fn repair_remaps(
        &self,
        options: &RepairRemapsOptions,
        progress: &Progress,
    ) -> Result<RepairRemapsReport, RepairError> {
        self.config().check_writable()?;
        let registration = match options.dry_run {
            true => None,
            false => Some(self.register(RunKind::Writer, &options.host)?),
        };
        let engine = self.engine();
        let (store, vault) = (engine.store().as_ref(), engine.vault());
        // Before objects are listed: what a remap names was there when it was stored, and is gone if it is not listed.
        let readable = RemapSet::load_readable(store, vault)?;
        let mut report = RepairRemapsReport {
            remaps: readable.set.objects().count() as u64 + readable.damaged.len() as u64,
            damaged: readable.damaged.len() as u64,
            places: readable.set.moved().count() as u64,
            ..RepairRemapsReport::default()
        };
        for (key, error) in &readable.damaged {
            progress.report(&Problem {
                path: key.to_string().into_bytes(),
                message: error.to_string(),
                is_error: false,
            });
        }
        let (there, found) = self.places(&readable.set, &mut report, progress)?;
        if progress.is_cancelled() {
            return Err(RepairError::Interrupted);
        }
        let is_gone = |object: &ObjectId| !there.contains(object);
        let gone = readable.set.moved().filter(|(_, object)| is_gone(object));
        report.places_gone = gone.count() as u64;
        let is_complete = readable.damaged.is_empty() && !self.lacks_remaps(&readable.set)?;
        let lost: Vec<_> = match is_complete {
            // Nobody has named them yet, or nobody will: they are no places.
            true => Vec::new(),
            false => {
                let unnamed =
                    |place: &(ContainerId, ObjectId)| !readable.set.is_place(place.0, place.1);
                found.into_iter().filter(unnamed).collect()
            }
        };
        report.places_found = lost.len() as u64;
        let is_wrong = report.damaged > 0 || report.places_gone > 0 || !lost.is_empty();
        if is_wrong {
            report.replaced = report.remaps;
        }
        if options.dry_run || !is_wrong {
            return Ok(report);
        }
        let remaps = self.remaps_of(&readable.set, &there, lost)?;
        // What is tried first is stored first: at every moment what is there is tried in the same order.
        for remap in remaps.into_iter().rev() {
            remap.store(store, vault)?;
        }
        let old = readable.set.objects();
        let damaged = readable.damaged.iter().map(|(key, _)| key.id);
        for id in old.chain(damaged) {
            let key = ObjectKey::new(ObjectKind::Remap, id);
            store.delete(&key).map_err(RepositoryError::from)?;
        }
        if let Some(registration) = registration {
            registration.end()?;
        }
        Ok(report)
    }

    /// The container objects that there are, and the containers that lie in objects of other names, those in condemned
    /// objects first.
    fn places(
        &self,
        set: &RemapSet,
        report: &mut RepairRemapsReport,
        progress: &Progress,
    ) -> Result<(HashSet<ObjectId>, PlaceList), RepairError> {
        let engine = self.engine();
        let store = engine.store();
        let mut objects = Vec::new();
        let listed = store.list(ObjectKind::Container, &mut |id, bytes| {
            objects.push((ObjectKey::new(ObjectKind::Container, id), bytes));
        });
        listed.map_err(RepositoryError::from)?;
        objects.sort_unstable();
        progress.expect(
            objects.len() as u64,
            objects.iter().map(|(_, bytes)| bytes).sum(),
        );
        let condemned = Condemned::load(store.as_ref(), engine.vault())?.objects();
        let containers = ContainerReader::new(
            Arc::clone(store),
            Arc::clone(engine.vault()),
            Arc::clone(engine.fingerprinter()),
            set.clone(),
            0,
        );
        let places = Places {
            progress,
            state: Mutex::default(),
        };
        read_metadata(&containers, &engine.reading_room(), &objects, &places);
        let state = places.state.into_inner();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = state.failure {
            return Err(failure.into());
        }
        report.containers_unreadable = state.unreadable;
        // Condemned ones as the oldest, which are tried last: something may have been moved out of them. A writer that is
        // waited for may need what is in them.
        state.found.sort_unstable_by_key(|&(container, object)| {
            (!condemned.contains(&object), container, object)
        });
        let there = objects.iter().map(|(key, _)| key.id).collect();
        Ok((there, state.found))
    }

    /// Has a writer of a snapshot read a newer remap than there are?
    fn lacks_remaps(&self, set: &RemapSet) -> Result<bool, RepairError> {
        let (store, vault) = (self.store(), self.engine().vault());
        let list = Snapshot::load_all(store, vault).map_err(RepositoryError::from)?;
        let mut snapshots = list.snapshots.iter();
        Ok(snapshots.any(|snapshot| snapshot.remap_generation > set.generation()))
    }

    /// Remaps that name the places of `set` that are there, and those that were found.
    fn remaps_of(
        &self,
        set: &RemapSet,
        there: &HashSet<ObjectId>,
        found: PlaceList,
    ) -> Result<Vec<Remap>, RepairError> {
        // Oldest first. What was found may be older or newer than the others; it has what it has in any case.
        let mut places: BTreeMap<ContainerId, Vec<ObjectId>> = BTreeMap::new();
        for (container, object) in found {
            places.entry(container).or_default().push(object);
        }
        let containers: HashSet<ContainerId> =
            set.moved().map(|(container, _)| container).collect();
        for container in containers {
            let mut named: Vec<ObjectId> = set.places(container).collect();
            named.retain(|&object| object != container.0 && there.contains(&object));
            named.reverse();
            if !named.is_empty() {
                places.entry(container).or_default().extend(named);
            }
        }
        let (store, vault) = (self.store(), self.engine().vault());
        let list = Snapshot::load_all(store, vault).map_err(RepositoryError::from)?;
        let read = list
            .snapshots
            .iter()
            .map(|snapshot| snapshot.remap_generation);
        let generation = read.max().unwrap_or(0).max(set.generation());
        let ranks = places.values().map(Vec::len).max().unwrap_or(0).max(1);
        let remap = |rank: usize| {
            let moved = places.iter().filter_map(|(&container, objects)| {
                objects.get(rank).map(|&object| (container, object))
            });
            Remap {
                generation: generation + 1 + rank as u64,
                moved: moved.collect(),
            }
        };
        Ok((0..ranks).map(remap).collect())
    }
}

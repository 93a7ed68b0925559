//! What is whole of damaged containers, moved to new objects.
//!
//! Enter: all container objects, read to their ends. Leave: of each damaged one whose metadata can be read, its whole
//! chunks in a new object, under the same logical ids and slots, with a remap that says so; the damaged objects,
//! condemned, for a prune to delete once no snapshot needs what is lost of them (docs/design/0015-prune.md); and a list
//! of the files that are not whole, by snapshot.
//!
//! Order: new objects, remap, marker, waiting list, each durable before the next. Nothing is deleted here: whatever ends
//! it, everything that could be read before can be read still.

use std::collections::{BTreeMap, BTreeSet};

use engine::container::{ContainerId, SlotSet};
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::restore::Reader;

use super::health::{DamagedObject, Health};
use super::snapshots::snapshots_left;
use super::{RepairError, RepairedSnapshot};
use crate::deletion::condemned;
use crate::deletion::runs::{self, RunKind};
use crate::progress::{Problem, Progress};
use crate::repository::{Repository, RepositoryError};

/// How containers are to be repaired.
#[derive(Debug, Clone, Default)]
pub struct RepairContainersOptions {
    /// This machine's name.
    pub host: String,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What a repair of containers found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairContainersReport {
    /// Container objects that were there.
    pub containers: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that are damaged, and were not condemned before.
    pub damaged: u64,
    /// Those of them of which nobody knows what was in them.
    pub unreadable: u64,
    /// Chunks of damaged containers that are whole: they were, or would be, moved.
    pub chunks_kept: u64,
    /// Chunks of damaged containers that are lost there.
    pub chunks_lost: u64,
    /// Objects that were written.
    pub objects_written: u64,
    /// Bytes of them.
    pub bytes_written: u64,
    /// Damaged objects that were, or would be, condemned.
    pub condemned: u64,
    /// Snapshots that are not whole, with the files.
    pub snapshots: Vec<RepairedSnapshot>,
}

impl Repository {
    /// Moves what is whole of damaged containers to new objects, and condemns the damaged ones.
    ///
    /// # Errors
    /// When the store can't be read or written, or it can't be said what is damaged. Nothing is worse then than before.
    pub fn repair_containers(
        &self,
        options: &RepairContainersOptions,
        progress: &Progress,
    ) -> Result<RepairContainersReport, RepairError> {
        if !options.dry_run {
            self.check_may_pack()?;
        }
        let registration = match options.dry_run {
            true => None,
            false => Some(self.register(RunKind::Writer, &options.host)?),
        };
        let engine = self.engine().metered(&progress.stages);
        let reader = engine.reader()?;
        let health = Health::scan(&engine, &reader, true, progress)?;
        if progress.is_cancelled() {
            return Err(RepairError::Interrupted);
        }
        let mut report = RepairContainersReport::default();
        report.count(&health);
        tell(&health, progress);
        if !options.dry_run && !health.damaged.is_empty() {
            if let Some(registration) = &registration {
                registration.show_life()?;
            }
            self.salvage(&reader, &health, &mut report, progress)?;
            let own = registration.as_ref().map(|registration| registration.id());
            self.condemn_damaged(&health, own)?;
        }
        if report.chunks_lost > 0 || report.unreadable > 0 {
            report.snapshots = snapshots_left(self, &health, progress)?;
        }
        if let Some(registration) = registration {
            registration.end()?;
        }
        Ok(report)
    }

    /// Moves the whole chunks of damaged objects.
    fn salvage(
        &self,
        reader: &Reader,
        health: &Health,
        report: &mut RepairContainersReport,
        progress: &Progress,
    ) -> Result<(), RepairError> {
        let engine = self.engine();
        let mut compactor = engine.compactor()?;
        compactor.keep_orphans();
        let mut containers: BTreeMap<ContainerId, SlotSet> = BTreeMap::new();
        let remaps = reader.containers().remaps();
        for (container, object, lost) in health.lost() {
            compactor.pass_over(container, object, lost.clone());
        }
        for (&object, damaged) in &health.damaged {
            let sections = damaged.sections.iter().flatten();
            for section in sections.filter(|section| remaps.is_place(section.container, object)) {
                let slots = containers.entry(section.container).or_default();
                slots.insert_all(&section.whole);
            }
        }
        // What else there is of these containers: of several places, the new one is tried first.
        for (&container, slots) in &mut containers {
            for object in remaps.places(container) {
                if health.damaged.contains_key(&object) {
                    continue;
                }
                let key = ObjectKey::new(ObjectKind::Container, object);
                let Ok((metadata, _)) = reader.containers().object(key) else {
                    continue; // It is not there, or damaged and condemned before.
                };
                let lost = health.lost_in(container, object);
                let there = metadata.section(container).map(|section| &section.slots);
                for &slot in there.into_iter().flatten() {
                    if !lost.is_some_and(|lost| lost.contains(slot)) {
                        slots.insert(slot);
                    }
                }
            }
        }
        for (container, slots) in &containers {
            if progress.is_cancelled() {
                return Err(RepairError::Interrupted);
            }
            compactor.keep(*container, slots)?;
        }
        let compacted = compactor.finish()?;
        report.objects_written = compacted.totals.objects;
        report.bytes_written = compacted.totals.bytes_written;
        // Also where nothing is moved: from now on containers may be deleted.
        engine.store_remap(compacted.moved)?;
        Ok(())
    }

    /// Condemns the damaged objects, and writes down who may not know that.
    fn condemn_damaged(&self, health: &Health, own: Option<ObjectId>) -> Result<(), RepairError> {
        let engine = self.engine();
        let (store, vault) = (engine.store().as_ref(), engine.vault());
        let damaged: Vec<ObjectId> = health.damaged.keys().copied().collect();
        for objects in damaged.chunks(condemned::OBJECTS_MAX) {
            let objects: BTreeSet<ObjectId> = objects.iter().copied().collect();
            let marker = condemned::condemn(store, vault, &objects)?;
            let mut waited_for = runs::registered(store, vault)?;
            waited_for.retain(|id, _| Some(*id) != own);
            let signs = waited_for.into_values().map(|run| (run.id, run.signs));
            condemned::wait_for(store, vault, marker, &signs.collect())?;
        }
        // What was moved is to be found by backups; a failure here costs no more than that.
        let mut writer = self
            .engine_without_condemned()?
            .writer()
            .map_err(RepairError::from)?;
        writer.commit()?;
        writer.merge_index().map_err(RepositoryError::from)?;
        Ok(())
    }
}

impl RepairContainersReport {
    fn count(&mut self, health: &Health) {
        self.containers = health.objects;
        self.bytes = health.bytes;
        self.damaged = health.damaged.len() as u64;
        self.condemned = self.damaged;
        for DamagedObject { sections, .. } in health.damaged.values() {
            self.unreadable += u64::from(sections.is_none());
            for section in sections.iter().flatten() {
                self.chunks_kept += section.whole.len() as u64;
                self.chunks_lost += section.lost.len() as u64;
            }
        }
    }
}

/// Names what is damaged.
fn tell(health: &Health, progress: &Progress) {
    for (&object, damaged) in &health.damaged {
        let what = match &damaged.sections {
            None => "nobody knows what was in it".to_owned(),
            Some(sections) => {
                let lost: usize = sections.iter().map(|section| section.lost.len()).sum();
                let whole: usize = sections.iter().map(|section| section.whole.len()).sum();
                format!("{lost} of {} chunks are lost", lost + whole)
            }
        };
        progress.report(&Problem {
            path: ObjectKey::new(ObjectKind::Container, object)
                .to_string()
                .into_bytes(),
            message: format!("{}: {what}", damaged.message),
            is_error: false,
        });
    }
}

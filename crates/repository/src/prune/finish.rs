//! Finishes what was condemned: waits, rescues, deletes (docs/design/0015-prune.md, 5 to 7).

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::container::{ChunkAddress, ContainerId, SlotSet};
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::restore::Reader;

use super::plan::section_in;
use super::{Marks, PruneError, Pruning};
use crate::deletion::condemned::{self, Condemned, Marker};
use crate::deletion::runs::{self, Run};
use crate::timestamp::Timestamp;

impl Pruning<'_> {
    /// Deletes what was condemned and what nobody is waited for any more.
    pub(super) fn finish_condemned(&mut self) -> Result<(), PruneError> {
        let condemned = self.condemned()?;
        self.report.objects_waiting = 0;
        self.report.waiting_for.clear();
        if condemned.markers.is_empty() && condemned.orphans.is_empty() {
            return Ok(());
        }
        let store = self.repository.store();
        let mut ready = Vec::new();
        for marker in condemned.markers.values() {
            let waited_for = self.waited_for(marker)?;
            if waited_for.is_empty() {
                ready.push(marker);
                continue;
            }
            self.report.objects_waiting += marker.objects.len() as u64;
            for run in waited_for {
                if !self.report.waiting_for.iter().any(|it| it.id == run.id) {
                    self.report.waiting_for.push(run);
                }
            }
        }
        if self.options.dry_run {
            self.report.objects_waiting += ready
                .iter()
                .map(|marker| marker.objects.len() as u64)
                .sum::<u64>();
            return Ok(());
        }
        for list in &condemned.orphans {
            condemned::remove_orphan(store, *list)?;
        }
        if ready.is_empty() {
            return Ok(());
        }
        self.rescue(&condemned, &ready)?;
        for marker in ready {
            self.delete(marker)?;
        }
        Ok(())
    }

    /// The runs that a marker waits for still. Takes those for dead that showed no life for long.
    fn waited_for(&mut self, marker: &Marker) -> Result<Vec<Run>, PruneError> {
        let engine = self.repository.engine();
        let (store, vault) = (engine.store().as_ref(), engine.vault());
        if marker.waiting.is_empty() && !self.options.dry_run {
            // Who condemned died before it had listed who is at work.
            self.write_waiting_list(marker.id)?;
            let condemned = self.condemned()?;
            return match condemned.markers.get(&marker.id) {
                Some(marker) if !marker.waiting.is_empty() => self.waited_for(marker),
                // Somebody else has finished it.
                _ => Ok(Vec::new()),
            };
        }
        let registered = runs::registered(store, vault)?;
        let expired: HashSet<ObjectId> = runs::expired(store)?.into_iter().collect();
        let (mut waited_for, mut alive) = (BTreeMap::new(), BTreeMap::new());
        for list in &marker.waiting {
            let is_long_ago = Timestamp::now()
                .since(list.time)
                .is_some_and(|age| age >= self.options.dead_after);
            for (id, signs) in &list.runs {
                let Some(run) = registered.get(id) else {
                    continue;
                };
                if expired.contains(id) || self.own_run() == Some(*id) {
                    continue;
                }
                let is_dead = run.has_died() || (is_long_ago && run.signs == *signs);
                if is_dead && !self.options.dry_run {
                    runs::expire(store, vault, *id)?;
                    self.report.expired.push(run.clone());
                    continue;
                }
                if run.signs != *signs {
                    alive.insert(*id, run.signs);
                }
                waited_for.insert(*id, run.clone());
            }
        }
        if !alive.is_empty() && !self.options.dry_run {
            self.note_signs(marker, &waited_for)?;
        }
        Ok(waited_for.into_values().collect())
    }

    /// Writes down who is waited for still, with the signs of life that there are now: those that show none from
    /// now on are told from those that do.
    fn note_signs(
        &self,
        marker: &Marker,
        waited_for: &BTreeMap<ObjectId, Run>,
    ) -> Result<(), PruneError> {
        let engine = self.repository.engine();
        let (store, vault) = (engine.store().as_ref(), engine.vault());
        let signs = waited_for.iter().map(|(id, run)| (*id, run.signs));
        condemned::wait_for(store, vault, marker.id, &signs.collect())?;
        // The new list is there; those before it say nothing more.
        for list in &marker.waiting {
            condemned::remove_orphan(store, list.id)?;
        }
        Ok(())
    }

    /// Packs slots anew that a snapshot needs and that lie in condemned objects alone.
    fn rescue(&mut self, condemned: &Condemned, ready: &[&Marker]) -> Result<(), PruneError> {
        let reader = self.reader()?;
        let mut sections: HashMap<ContainerId, SlotSet> = HashMap::new();
        let (mut deltas, mut unreadable) = (Vec::new(), Vec::new());
        for object in ready.iter().flat_map(|marker| &marker.objects) {
            self.check()?;
            let key = ObjectKey::new(ObjectKind::Container, *object);
            let metadata = match reader.containers().object(key) {
                Ok((metadata, _)) => metadata,
                Err(error) if error.is_missing() => continue,
                Err(error) if error.is_damage() => {
                    unreadable.push(*object);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for section in metadata.sections {
                let slots = sections.entry(section.id).or_default();
                slots.insert_all(&section.slots.iter().copied().collect());
                if section.kind == engine::container::ContainerKind::Deltas {
                    deltas.push(section.id);
                }
            }
        }
        let marks = self.mark_again(&reader, deltas)?;
        let all = condemned.objects();
        for object in unreadable {
            nothing_needed_of(&reader, object, &marks, &all)?;
        }
        let mut compactor = self.repository.engine().compactor()?;
        let mut rescued = 0;
        for (container, there) in &sections {
            self.check()?;
            let Some(needed) = marks.of(*container) else {
                continue;
            };
            let elsewhere = slots_elsewhere(&reader, *container, &all)?;
            let alone = |slot: &engine::container::Slot| {
                there.contains(*slot) && !elsewhere.contains(*slot)
            };
            let count = needed.iter().filter(alone).count();
            if count > 0 {
                compactor.keep(*container, needed)?;
                rescued += count as u64;
            }
        }
        let compacted = compactor.finish()?;
        self.report.chunks_rescued += rescued;
        self.report.bytes_written += compacted.totals.bytes_written;
        self.repository.engine().store_moved(&compacted)?;
        Ok(())
    }

    /// Marks with what is there now. Containers of deltas may lie in condemned objects, or not.
    fn mark_again(
        &mut self,
        reader: &Reader,
        condemned_deltas: Vec<ContainerId>,
    ) -> Result<Marks, PruneError> {
        let inventory = super::plan::Inventory::take(self, &HashSet::new())?;
        let mut deltas = inventory.deltas();
        deltas.extend(condemned_deltas);
        deltas.sort_unstable();
        deltas.dedup();
        self.mark(reader, &deltas)
    }

    fn delete(&mut self, marker: &Marker) -> Result<(), PruneError> {
        let store = self.repository.store();
        for object in &marker.objects {
            self.check()?;
            let key = ObjectKey::new(ObjectKind::Container, *object);
            let bytes = match store.get_tail(&key, 1) {
                Ok(tail) => tail.object_bytes,
                Err(error) if error.is_missing() => continue,
                Err(error) => return Err(error.into()),
            };
            store.delete(&key)?;
            self.report.objects_deleted += 1;
            self.report.bytes_deleted += bytes;
        }
        Ok(marker.remove(store)?)
    }
}

/// An object that can't be read stays as long as somebody needs what it may have held: it may be brought back from a
/// copy.
fn nothing_needed_of(
    reader: &Reader,
    object: ObjectId,
    marks: &Marks,
    condemned: &HashSet<ObjectId>,
) -> Result<(), PruneError> {
    let remaps = reader.containers().remaps();
    let moved = remaps.moved().filter(|(_, place)| *place == object);
    let containers = moved.map(|(container, _)| container);
    for container in containers.chain([ContainerId(object)]) {
        let Some(needed) = marks.of(container) else {
            continue;
        };
        let elsewhere = slots_elsewhere(reader, container, condemned)?;
        if let Some(slot) = needed.iter().find(|&slot| !elsewhere.contains(slot)) {
            let address = ChunkAddress { container, slot };
            return Err(PruneError::Missing { address });
        }
    }
    Ok(())
}

/// Slots of a container that lie in objects that are not condemned.
fn slots_elsewhere(
    reader: &Reader,
    container: ContainerId,
    condemned: &HashSet<ObjectId>,
) -> Result<SlotSet, PruneError> {
    let mut slots = SlotSet::new();
    for object in reader.containers().remaps().places(container) {
        if condemned.contains(&object) {
            continue;
        }
        if let Some(section) = section_in(reader, object, container)? {
            slots.insert_all(&section.slots.iter().copied().collect());
        }
    }
    Ok(slots)
}

//! What becomes of each container object.
//!
//! Enter: all container objects that are not condemned, with their sections, and what is needed. Leaves: which hold
//! nothing that is needed, which are to be packed anew, and which stay. Of a slot that lies in several objects the copy
//! counts that readers find first, among objects that are not condemned.

use std::collections::{HashMap, HashSet};

use engine::container::{ChunkAddress, ContainerId, ContainerKind, RemapSet, Section, SlotSet};
use engine::index::RunSet;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::restore::Reader;

use super::duplicates::Class;
use super::{Marks, PruneError, Pruning};

/// A container object as it was found.
#[derive(Debug)]
struct Found {
    id: ObjectId,
    bytes: u64,
    /// The logical containers in it that readers look for there.
    sections: Vec<FoundSection>,
    /// Is it in an index run, or a place that a remap names?
    is_known: bool,
}

#[derive(Debug)]
struct FoundSection {
    container: ContainerId,
    kind: ContainerKind,
    chunks: usize,
}

/// All container objects that are not condemned.
#[derive(Debug)]
pub(super) struct Inventory {
    objects: Vec<Found>,
    objects_left: u64,
    /// Logical containers that lie in several objects, or not in their own.
    moved: HashSet<ContainerId>,
    runs: RunSet,
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// Objects that were looked at.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of them that nobody needs.
    pub bytes_unneeded: u64,
    /// Objects without a slot that is needed.
    pub unneeded: Vec<ObjectId>,
    /// Objects whose needed slots are packed anew.
    pub packed: Vec<ObjectId>,
    /// Bytes of these.
    pub bytes_packed: u64,
    /// The containers that are packed anew, ascending.
    pub packed_containers: Vec<ContainerId>,
    /// Objects that were left alone, whatever they hold.
    pub objects_left: u64,
    /// Slots with equal chunks in what is packed, which are to be stored once.
    pub classes: Vec<Class>,
}

impl Plan {
    /// All objects that go, ascending.
    #[must_use]
    pub fn condemned(&self) -> Vec<ObjectId> {
        let mut condemned = [&self.unneeded[..], &self.packed[..]].concat();
        condemned.sort_unstable();
        condemned
    }
}

/// An object of which a part is needed.
struct Partial<'a> {
    found: &'a Found,
    unneeded: Unneeded,
}

/// What nobody needs of an object.
#[derive(Debug, Clone, Copy)]
struct Unneeded {
    /// Its share of the object's bytes: that of its chunks among all.
    bytes: u64,
    /// There are deltas in it whose bases nobody needs, and may go: what is left must be packed without them, or
    /// they would seem to be lost.
    has_loose_deltas: bool,
}

impl Inventory {
    /// Lists the objects and reads what is in them. Who may be writing is asked after that: whoever has written something
    /// that was listed is registered then, or has ended, and its index run is there.
    pub fn take(pruning: &Pruning<'_>, condemned: &HashSet<ObjectId>) -> Result<Self, PruneError> {
        let engine = pruning.repository.engine();
        let mut listed: Vec<(ObjectId, u64)> = Vec::new();
        engine
            .store()
            .list(ObjectKind::Container, &mut |id, bytes| {
                if !condemned.contains(&id) {
                    listed.push((id, bytes));
                }
            })?;
        listed.sort_unstable();
        let is_somebody_writing = pruning.is_somebody_writing()?;
        let reader = pruning.reader()?;
        let remaps = reader.containers().remaps();
        let mut inventory = Self {
            objects: Vec::with_capacity(listed.len()),
            objects_left: 0,
            moved: remaps.moved().map(|(container, _)| container).collect(),
            runs: pruning.index_runs()?,
        };
        for (id, bytes) in listed {
            pruning.check()?;
            let found = inventory_of(&reader, &remaps, id, bytes);
            let Some(mut found) = found? else {
                continue;
            };
            let covered = |section: &FoundSection| inventory.runs.covered(section.container);
            found.is_known = found.sections.iter().any(covered);
            if !found.is_known && is_somebody_writing {
                inventory.objects_left += 1;
            }
            found.is_known |= !is_somebody_writing;
            inventory.objects.push(found);
        }
        Ok(inventory)
    }

    /// The index.
    pub fn runs(&self) -> &RunSet {
        &self.runs
    }

    /// Of a container that lies in its own object alone, as a backup wrote it, and that may be deleted: its kind.
    pub fn kind_as_written(&self, container: ContainerId) -> Option<ContainerKind> {
        let found = self.object(container.0).filter(|found| found.is_known)?;
        match &found.sections[..] {
            [section] if section.container == container && !self.moved.contains(&container) => {
                Some(section.kind)
            }
            _ => None,
        }
    }

    /// Has an object several sections that readers look for there?
    pub fn has_several_sections(&self, object: ObjectId) -> bool {
        self.object(object)
            .is_some_and(|found| found.sections.len() > 1)
    }

    /// Bytes of an object; 0 of one that is not there.
    pub fn bytes_of(&self, object: ObjectId) -> u64 {
        self.object(object).map_or(0, |found| found.bytes)
    }

    fn object(&self, object: ObjectId) -> Option<&Found> {
        let at = self.objects.binary_search_by_key(&object, |found| found.id);
        at.ok().map(|at| &self.objects[at])
    }

    /// Containers of deltas.
    pub fn deltas(&self) -> Vec<ContainerId> {
        let sections = self.objects.iter().flat_map(|found| &found.sections);
        let deltas = sections.filter(|section| section.kind == ContainerKind::Deltas);
        let mut deltas: Vec<ContainerId> = deltas.map(|section| section.container).collect();
        deltas.sort_unstable();
        deltas.dedup();
        deltas
    }

    /// Decides what becomes of each object.
    pub fn plan(
        &self,
        pruning: &Pruning<'_>,
        reader: &Reader,
        marks: &Marks,
    ) -> Result<Plan, PruneError> {
        let mut plan = Plan {
            objects: self.objects.len() as u64,
            bytes: self.objects.iter().map(|found| found.bytes).sum(),
            objects_left: self.objects_left,
            ..Plan::default()
        };
        let first = self.first_places(reader, marks)?;
        let mut partial = Vec::new();
        for found in self.objects.iter().filter(|found| found.is_known) {
            pruning.check()?;
            let needed = |section: &FoundSection| self.needed(found, section, marks, &first);
            let counts = found.sections.iter().map(|section| needed(section).len());
            let (needed_chunks, chunks): (usize, usize) = (
                counts.sum(),
                found.sections.iter().map(|section| section.chunks).sum(),
            );
            if needed_chunks == 0 {
                plan.bytes_unneeded += found.bytes;
                plan.unneeded.push(found.id);
            } else if needed_chunks < chunks {
                let unneeded_chunks = (chunks - needed_chunks) as u128;
                let bytes = u128::from(found.bytes) * unneeded_chunks / chunks as u128;
                let unneeded = Unneeded {
                    bytes: bytes as u64,
                    has_loose_deltas: self.has_loose_deltas(reader, found, marks, &first)?,
                };
                plan.bytes_unneeded += unneeded.bytes;
                partial.push(Partial { found, unneeded });
            }
        }
        choose(&mut plan, partial, pruning);
        self.plan_duplicates(pruning, reader, marks, &mut plan)?;
        Ok(plan)
    }

    /// The needed slots of a section that readers find there first.
    fn needed(
        &self,
        found: &Found,
        section: &FoundSection,
        marks: &Marks,
        first: &HashMap<(ContainerId, ObjectId), SlotSet>,
    ) -> SlotSet {
        if self.moved.contains(&section.container) {
            let slots = first.get(&(section.container, found.id));
            return slots.cloned().unwrap_or_default();
        }
        marks.of(section.container).cloned().unwrap_or_default()
    }

    /// For containers that were moved: which of their needed slots readers find in which object.
    fn first_places(
        &self,
        reader: &Reader,
        marks: &Marks,
    ) -> Result<HashMap<(ContainerId, ObjectId), SlotSet>, PruneError> {
        let objects: HashMap<ObjectId, &Found> =
            self.objects.iter().map(|found| (found.id, found)).collect();
        let remaps = reader.containers().remaps();
        let mut first = HashMap::new();
        for &container in &self.moved {
            let Some(needed) = marks.of(container) else {
                continue;
            };
            let mut taken = SlotSet::new();
            for object in remaps.places(container) {
                if !objects.contains_key(&object) {
                    continue;
                }
                let Some(section) = section_in(reader, object, container)? else {
                    continue;
                };
                let here: SlotSet = section
                    .slots
                    .iter()
                    .copied()
                    .filter(|slot| needed.contains(*slot) && !taken.contains(*slot))
                    .collect();
                taken.insert_all(&here);
                first.insert((container, object), here);
            }
        }
        Ok(first)
    }

    /// Are there unneeded deltas in an object whose bases nobody needs?
    fn has_loose_deltas(
        &self,
        reader: &Reader,
        found: &Found,
        marks: &Marks,
        first: &HashMap<(ContainerId, ObjectId), SlotSet>,
    ) -> Result<bool, PruneError> {
        let is_marked = |base: ChunkAddress| {
            let slots = marks.of(base.container);
            slots.is_some_and(|slots| slots.contains(base.slot))
        };
        let of_deltas = |section: &&FoundSection| section.kind == ContainerKind::Deltas;
        for found_section in found.sections.iter().filter(of_deltas) {
            let needed = self.needed(found, found_section, marks, first);
            let Some(section) = section_in(reader, found.id, found_section.container)? else {
                continue;
            };
            for (chunk, delta) in section.deltas.iter().enumerate() {
                if let Some(delta) = delta
                    && !needed.contains(section.slots[chunk])
                    && !is_marked(delta.base)
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Chooses objects to be packed anew: those that must be, then those of which the most is unneeded.
fn choose(plan: &mut Plan, mut partial: Vec<Partial<'_>>, pruning: &Pruning<'_>) {
    let options = pruning.options;
    partial.sort_by(|one, other| {
        // By share, without fractions: a/b before c/d if a·d > c·b.
        let share = |a: &Partial<'_>, b: &Partial<'_>| {
            u128::from(a.unneeded.bytes) * u128::from(b.found.bytes.max(1))
        };
        let must = |it: &Partial<'_>| it.unneeded.has_loose_deltas;
        must(other)
            .cmp(&must(one))
            .then(share(other, one).cmp(&share(one, other)))
            .then(one.found.id.cmp(&other.found.id))
    });
    let kept = plan.bytes.saturating_sub(plan.bytes_unneeded);
    let allowed = u128::from(kept) * u128::from(options.unused_max_thousandths) / 1000;
    let mut left: u64 = partial.iter().map(|it| it.unneeded.bytes).sum();
    for Partial { found, unneeded } in partial {
        let is_too_much = plan.bytes_packed.saturating_add(found.bytes) > options.repack_bytes_max;
        if !unneeded.has_loose_deltas && (u128::from(left) <= allowed || is_too_much) {
            continue;
        }
        plan.packed.push(found.id);
        plan.bytes_packed += found.bytes;
        left -= unneeded.bytes;
        let containers = found.sections.iter().map(|section| section.container);
        plan.packed_containers.extend(containers);
    }
    plan.packed_containers.sort_unstable();
    plan.packed_containers.dedup();
}

/// What is in an object; nothing if it is gone meanwhile.
fn inventory_of(
    reader: &Reader,
    remaps: &RemapSet,
    id: ObjectId,
    bytes: u64,
) -> Result<Option<Found>, PruneError> {
    let metadata = match reader
        .containers()
        .object(ObjectKey::new(ObjectKind::Container, id))
    {
        Ok((metadata, _)) => metadata,
        Err(error) if error.is_missing() => return Ok(None),
        // Nobody knows what was in it: it stays.
        Err(error) if error.is_damage() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let sections = metadata.sections.iter();
    let looked_for = |section: &&Section| remaps.is_place(section.id, id);
    let sections = sections.filter(looked_for).map(|section| FoundSection {
        container: section.id,
        kind: section.kind,
        chunks: section.chunk_count(),
    });
    Ok(Some(Found {
        id,
        bytes,
        sections: sections.collect(),
        is_known: false,
    }))
}

/// A container's section in an object, if it is there.
pub(super) fn section_in(
    reader: &Reader,
    object: ObjectId,
    container: ContainerId,
) -> Result<Option<Section>, PruneError> {
    let key = ObjectKey::new(ObjectKind::Container, object);
    match reader.containers().object(key) {
        Ok((metadata, _)) => Ok(metadata
            .sections
            .into_iter()
            .find(|section| section.id == container)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

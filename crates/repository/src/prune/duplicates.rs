//! Chunks that are stored more than once: several clients stored them at the same time, and did not know of each other.
//!
//! Enter: the index, and what is needed. Leave: classes of slots with equal chunks, for
//! [`Compactor::merge`](engine::container::Compactor::merge), in containers of which a good part is so: all of each is written
//! anew. What a backup stored again on purpose, for locality, is of another generation than what was there, and stays.
//! The index is read from its start to its end, twice if there is something; nothing is looked up in it.
//!
//! Memory: some 100 bytes for two containers that have chunks in common, and as much for a slot in a class; there are
//! at most as many as a quarter of `--memory` holds, and the next prune goes on.

use std::collections::{BTreeSet, HashMap, HashSet};

use engine::container::{ChunkAddress, ContainerId, ContainerKind, Slot};
use engine::fingerprint::Fingerprint;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::restore::Reader;

use super::plan::{Inventory, Plan, section_in};
use super::{Marks, PruneError, Pruning};

/// A container is written anew if one in so many of its needed chunks lies elsewhere, too.
const SHARE: usize = 4;

/// Memory that a slot in a class takes.
const SLOT_BYTES: usize = 100;

/// Slots with equal chunks: of different containers, ascending.
pub(super) type Class = Vec<ChunkAddress>;

impl Inventory {
    /// Adds to a plan what is to be stored once from now on.
    pub fn plan_duplicates(
        &self,
        pruning: &Pruning<'_>,
        reader: &Reader,
        marks: &Marks,
        plan: &mut Plan,
    ) -> Result<(), PruneError> {
        self.keep_shared(reader, marks, plan)?;
        let finding = Finding {
            inventory: self,
            marks,
            unneeded: plan.unneeded.iter().copied().collect(),
        };
        let shared = finding.containers_in_common()?;
        pruning.check()?;
        let slots_max = pruning.repository.engine().settings().memory_bytes / 4 / SLOT_BYTES;
        let bytes_left = pruning.options.repack_bytes_max;
        let bytes_left = bytes_left.saturating_sub(plan.bytes_packed);
        let chosen = finding.chosen(shared, slots_max, bytes_left, plan);
        if chosen.is_empty() {
            return Ok(());
        }
        let classes = finding.classes(reader, &chosen)?;
        pruning.check()?;
        let containers: BTreeSet<ContainerId> = classes
            .iter()
            .flatten()
            .map(|chunk| chunk.container)
            .collect();
        let packed: HashSet<ObjectId> = plan.packed.iter().copied().collect();
        for container in containers.into_iter().filter(|it| !packed.contains(&it.0)) {
            plan.packed.push(container.0);
            plan.bytes_packed += self.bytes_of(container.0);
            plan.packed_containers.push(container);
        }
        plan.packed_containers.sort_unstable();
        plan.classes.extend(classes);
        plan.classes.sort_unstable();
        Ok(())
    }

    /// What an earlier prune stored once stays so where its object is packed anew.
    fn keep_shared(
        &self,
        reader: &Reader,
        marks: &Marks,
        plan: &mut Plan,
    ) -> Result<(), PruneError> {
        let packed: Vec<ObjectId> = plan.packed.clone();
        for object in packed
            .into_iter()
            .filter(|&it| self.has_several_sections(it))
        {
            let key = ObjectKey::new(ObjectKind::Container, object);
            let (metadata, _) = reader.containers().object(key)?;
            // By the group, and the place in it.
            let mut classes: HashMap<(u32, u32), Class> = HashMap::new();
            for section in &metadata.sections {
                let Some(needed) = marks.of(section.id) else {
                    continue;
                };
                for group in &section.groups {
                    for at in 0..group.chunk_count {
                        let chunk = section.address((group.first_chunk + at) as usize);
                        if needed.contains(chunk.slot) {
                            let class = classes.entry((group.number, at)).or_default();
                            class.push(chunk);
                        }
                    }
                }
            }
            let shared = classes.into_values().filter(|class| class.len() > 1);
            plan.classes.extend(shared.map(|mut class| {
                class.sort_unstable();
                class
            }));
        }
        plan.classes.sort_unstable();
        // What lies in several objects is found in the first of them.
        let mut seen = HashSet::new();
        plan.classes
            .retain(|class| class.iter().all(|chunk| seen.insert(*chunk)));
        Ok(())
    }
}

struct Finding<'a> {
    inventory: &'a Inventory,
    marks: &'a Marks,
    unneeded: HashSet<ObjectId>,
}

impl Finding<'_> {
    /// May chunks of a container be stored elsewhere? It is one of data that nobody moved yet.
    fn is_eligible(&self, container: ContainerId) -> bool {
        self.inventory.kind_as_written(container) == Some(ContainerKind::Data)
            && !self.unneeded.contains(&container.0)
    }

    fn is_needed(&self, chunk: &ChunkAddress) -> bool {
        let slots = self.marks.of(chunk.container);
        slots.is_some_and(|slots| slots.contains(chunk.slot))
    }

    /// Visits slots of different containers that begin alike and were stored at the same time, as far as the index
    /// tells. Where runs are merged meanwhile, or are damaged, it tells less: what is double stays so until later.
    fn visit(&self, visit: &mut dyn FnMut(&[ChunkAddress])) -> Result<(), PruneError> {
        let runs = self.inventory.runs();
        let mut by_generation: Vec<(u32, ChunkAddress)> = Vec::new();
        let visited = runs.visit_repeated(&mut |same| {
            by_generation.clear();
            let needed = same.iter().filter(|chunk| self.is_needed(chunk));
            let eligible = needed.filter(|chunk| self.is_eligible(chunk.container));
            by_generation.extend(eligible.map(|&chunk| (runs.generation(chunk.container), chunk)));
            by_generation.sort_unstable();
            for same in by_generation.chunk_by(|one, other| one.0 == other.0) {
                let mut class: Class = same.iter().map(|(_, chunk)| *chunk).collect();
                class.dedup_by_key(|chunk| chunk.container);
                if class.len() > 1 {
                    visit(&class);
                }
            }
        });
        match visited {
            Err(error) if !error.is_missing() && !error.is_damage() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// How many chunks each two containers have in common.
    fn containers_in_common(
        &self,
    ) -> Result<HashMap<(ContainerId, ContainerId), usize>, PruneError> {
        let mut shared: HashMap<(ContainerId, ContainerId), usize> = HashMap::new();
        self.visit(&mut |class| {
            for pair in class.windows(2) {
                let pair = (pair[0].container, pair[1].container);
                *shared.entry(pair).or_default() += 1;
            }
        })?;
        Ok(shared)
    }

    /// The containers that are written anew, those with the most in common first, as many as limits allow.
    fn chosen(
        &self,
        shared: HashMap<(ContainerId, ContainerId), usize>,
        slots_max: usize,
        mut bytes_left: u64,
        plan: &Plan,
    ) -> HashSet<ContainerId> {
        let mut of_container: HashMap<ContainerId, usize> = HashMap::new();
        for (&(one, other), &count) in &shared {
            *of_container.entry(one).or_default() += count;
            *of_container.entry(other).or_default() += count;
        }
        let is_worth_it = |container: &ContainerId| {
            let needed = self.marks.of(*container).map_or(0, |slots| slots.len());
            of_container[container] * SHARE >= needed
        };
        let mut pairs: Vec<_> = shared
            .into_iter()
            .filter(|((one, other), _)| is_worth_it(one) && is_worth_it(other))
            .collect();
        pairs.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        let packed: HashSet<ObjectId> = plan.packed.iter().copied().collect();
        let mut chosen = HashSet::new();
        let mut slots = 0;
        for ((one, other), count) in pairs {
            let more = [one, other].into_iter();
            let more: Vec<ContainerId> = more.filter(|it| !chosen.contains(it)).collect();
            let written = more.iter().filter(|it| !packed.contains(&it.0));
            let bytes: u64 = written.map(|it| self.inventory.bytes_of(it.0)).sum();
            if slots + 2 * count > slots_max || bytes > bytes_left {
                continue;
            }
            slots += 2 * count;
            bytes_left -= bytes;
            chosen.extend(more);
        }
        chosen
    }

    /// The classes in these containers, by whole fingerprints, ascending.
    fn classes(
        &self,
        reader: &Reader,
        chosen: &HashSet<ContainerId>,
    ) -> Result<Vec<Class>, PruneError> {
        let mut wanted: HashMap<ContainerId, Vec<Slot>> = HashMap::new();
        self.visit(&mut |class| {
            let within = || class.iter().filter(|it| chosen.contains(&it.container));
            if within().count() > 1 {
                for chunk in within() {
                    let slots = wanted.entry(chunk.container).or_default();
                    slots.push(chunk.slot);
                }
            }
        })?;
        let mut by_fingerprint: HashMap<Fingerprint, Class> = HashMap::new();
        let mut containers: Vec<_> = wanted.into_iter().collect();
        containers.sort_unstable();
        for (container, mut slots) in containers {
            let Some(section) = section_in(reader, container.0, container)? else {
                continue;
            };
            slots.sort_unstable();
            for slot in slots {
                let Some(chunk) = section.chunk_in(slot) else {
                    continue;
                };
                let class = by_fingerprint
                    .entry(section.fingerprints[chunk])
                    .or_default();
                if class.last().is_none_or(|last| last.container != container) {
                    class.push(ChunkAddress { container, slot });
                }
            }
        }
        let several = by_fingerprint.into_values().filter(|class| class.len() > 1);
        let mut classes: Vec<Class> = several.collect();
        classes.sort_unstable();
        Ok(classes)
    }
}

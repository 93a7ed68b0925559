//! Which chunks are whole, and which are damaged where they lie.
//!
//! Enter: all container objects. Leaves: for each that is damaged what of it is whole and what is lost, and an answer
//! for any chunk: is it there, and all that it is made of? With data, every object is read to its end; without, data
//! is believed, and only metadata tells.
//!
//! What can't be read just now (a disk that is out of order, a secret that is not at hand) is not damage: it ends the
//! repair, for nobody knows what is lost. Memory: a bit for each chunk of damaged objects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use engine::Engine;
use engine::container::{
    ChunkAddress, ContainerId, ContainerKind, ContainerSummary, Examined, ExaminedSection,
    ObjectMetadata, SlotSet,
};
use engine::fingerprint::Fingerprint;
use engine::format::ObjectError;
use engine::object::{ObjectId, ObjectKey, ObjectKind};
use engine::restore::{
    ExamineSink, LocatedRun, MetadataSink, Reader, examine_objects, read_metadata,
};

use crate::deletion::condemned::Condemned;
use crate::progress::Progress;

/// A container object that is damaged.
#[derive(Debug, Clone)]
pub(super) struct DamagedObject {
    /// What is wrong with it, for a person.
    pub message: String,
    /// What of it is whole and what is lost; nothing where its metadata can't be read.
    pub sections: Option<Vec<ExaminedSection>>,
}

/// What is damaged.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Damaged objects that are not condemned.
    pub damaged: BTreeMap<ObjectId, DamagedObject>,
    /// Container objects that there are, and their bytes.
    pub objects: u64,
    pub bytes: u64,
    /// What can't be read of a container in an object.
    lost: HashMap<(ContainerId, ObjectId), SlotSet>,
    pub condemned: HashSet<ObjectId>,
    /// What lies in condemned objects counts as lost: who refers to it now may come too late.
    avoids_condemned: bool,
}

/// What is known of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// It can be read; so many bytes.
    Whole(u32),
    /// It can't; its fingerprint and its length are known where its container's metadata is.
    Lost(Option<(Fingerprint, u32)>),
}

struct Scan<'a> {
    progress: &'a Progress,
    state: Mutex<(Health, Option<ObjectError>)>,
}

impl Scan<'_> {
    fn note(&self, key: ObjectKey, bytes: u64, outcome: Result<Examined, ObjectError>) {
        self.progress.set_current(key.to_string().as_bytes());
        Progress::add(&self.progress.files_done, 1);
        Progress::add(&self.progress.bytes_done, bytes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (health, failure) = &mut *state;
        let (message, sections) = match outcome {
            Ok(Examined { damage: None, .. }) => return,
            Ok(Examined {
                damage: Some(error),
                sections,
                ..
            }) => (error.to_string(), Some(sections)),
            Err(error) if error.is_missing() => return, // Somebody deleted it since it was listed.
            Err(error) if error.is_damage() => (error.to_string(), None),
            Err(error) => {
                failure.get_or_insert(error);
                return;
            }
        };
        for section in sections.iter().flatten() {
            if !section.lost.is_empty() {
                let place = (section.container, key.id);
                health.lost.insert(place, section.lost.clone());
            }
        }
        if !health.condemned.contains(&key.id) {
            let object = DamagedObject { message, sections };
            health.damaged.insert(key.id, object);
        }
    }

    fn is_over(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.progress.is_cancelled() || state.1.is_some()
    }
}

impl ExamineSink for Scan<'_> {
    fn examined(&self, key: ObjectKey, bytes: u64, outcome: Result<Examined, ObjectError>) {
        self.note(key, bytes, outcome);
    }

    fn is_cancelled(&self) -> bool {
        self.is_over()
    }
}

impl MetadataSink for Scan<'_> {
    fn metadata(
        &self,
        key: ObjectKey,
        bytes: u64,
        outcome: Result<(ObjectMetadata, ContainerSummary), ObjectError>,
    ) {
        let examined = |(_, summary)| Examined {
            summary,
            sections: Vec::new(),
            damage: None,
        };
        self.note(key, bytes, outcome.map(examined));
    }

    fn is_cancelled(&self) -> bool {
        self.is_over()
    }
}

impl Health {
    /// Looks at all container objects: at all of their data, or their metadata alone.
    ///
    /// # Errors
    /// When the store can't be listed, or an object can't be read although it may be whole.
    pub fn scan(
        engine: &Engine,
        reader: &Reader,
        read_data: bool,
        progress: &Progress,
    ) -> Result<Self, ObjectError> {
        let mut objects: Vec<(ObjectKey, u64)> = Vec::new();
        let store = engine.store();
        store.list(ObjectKind::Container, &mut |id, bytes| {
            objects.push((ObjectKey::new(ObjectKind::Container, id), bytes));
        })?;
        objects.sort_unstable();
        let health = Self {
            objects: objects.len() as u64,
            bytes: objects.iter().map(|(_, bytes)| bytes).sum(),
            condemned: Condemned::load(store.as_ref(), engine.vault())?.objects(),
            ..Self::default()
        };
        progress.expect(health.objects, health.bytes);
        let scan = Scan {
            progress,
            state: Mutex::new((health, None)),
        };
        let (containers, room) = (reader.containers(), engine.reading_room());
        match read_data {
            true => examine_objects(containers, &room, &objects, &scan),
            false => read_metadata(containers, &room, &objects, &scan),
        }
        let state = scan.state.into_inner();
        match state.unwrap_or_else(PoisonError::into_inner) {
            (_, Some(failure)) => Err(failure),
            (health, None) => Ok(health),
        }
    }

    /// Nothing is known of damage; what lies in condemned objects counts as lost.
    ///
    /// # Errors
    /// When it can't be said what is condemned.
    pub fn avoiding_condemned(engine: &Engine) -> Result<Self, ObjectError> {
        Ok(Self {
            condemned: Condemned::load(engine.store().as_ref(), engine.vault())?.objects(),
            avoids_condemned: true,
            ..Self::default()
        })
    }

    /// All that can't be read: container, object, slots.
    pub fn lost(&self) -> impl Iterator<Item = (ContainerId, ObjectId, &SlotSet)> {
        let all = self.lost.iter();
        all.map(|(&(container, object), slots)| (container, object, slots))
    }

    /// What can't be read of a container in that object, if anything.
    pub fn lost_in(&self, container: ContainerId, object: ObjectId) -> Option<&SlotSet> {
        self.lost.get(&(container, object))
    }

    /// Are all chunks of a located run whole? Where `is_strict`, they must not lie in condemned objects, either.
    ///
    /// # Errors
    /// When that can't be said now.
    pub fn is_run_whole(
        &self,
        reader: &Reader,
        located: &LocatedRun,
        is_strict: bool,
    ) -> Result<bool, ObjectError> {
        let section = &located.section.section;
        let object = located.section.object.id;
        let is_strict = is_strict || self.avoids_condemned;
        if is_strict && self.condemned.contains(&object) {
            return Ok(false);
        }
        let lost = self.lost_in(section.id, object);
        if lost.is_none() && section.kind != ContainerKind::Deltas {
            return Ok(true);
        }
        for chunk in located.chunks.clone() {
            let is_lost = lost.is_some_and(|lost| lost.contains(section.slots[chunk]));
            if is_lost || !self.has_bases(reader, section.address(chunk), is_strict)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is known of a chunk.
    ///
    /// # Errors
    /// When that can't be said now.
    pub fn chunk(&self, reader: &Reader, address: ChunkAddress) -> Result<ChunkState, ObjectError> {
        let (loaded, chunk) = match reader.containers().find(address) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(ChunkState::Lost(None)),
            Err(error) if error.is_damage() => return Ok(ChunkState::Lost(None)),
            Err(error) => return Err(error),
        };
        let section = &loaded.section;
        let length = section.lengths[chunk];
        let lost = self.lost_in(section.id, loaded.object.id);
        let is_going = self.avoids_condemned && self.condemned.contains(&loaded.object.id);
        let is_lost = is_going || lost.is_some_and(|lost| lost.contains(address.slot));
        if is_lost || !self.has_bases(reader, address, false)? {
            let known = (section.fingerprints[chunk], length);
            return Ok(ChunkState::Lost(Some(known)));
        }
        Ok(ChunkState::Whole(length))
    }

    /// Is there all that a chunk is made of, itself apart?
    fn has_bases(
        &self,
        reader: &Reader,
        address: ChunkAddress,
        is_strict: bool,
    ) -> Result<bool, ObjectError> {
        let is_strict = is_strict || self.avoids_condemned;
        let (mut address, mut depth_max) = (address, u8::MAX);
        let mut is_base = false;
        loop {
            let (loaded, chunk) = match reader.containers().find(address) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(false),
                Err(error) if error.is_damage() => return Ok(false),
                Err(error) => return Err(error),
            };
            let (section, object) = (&loaded.section, loaded.object.id);
            let lost = self.lost_in(section.id, object);
            let is_gone = lost.is_some_and(|lost| lost.contains(address.slot))
                || (is_strict && self.condemned.contains(&object))
                || section.kind == ContainerKind::Metadata;
            if is_base && is_gone {
                return Ok(false);
            }
            let Some(delta) = section.delta(chunk) else {
                return Ok(true);
            };
            if delta.depth >= depth_max {
                return Ok(false); // Deltas go in a circle.
            }
            (address, depth_max, is_base) = (delta.base, delta.depth, true);
        }
    }
}

//! Chunks stored as deltas: are their bases there, and do the deltas make the chunks?
//!
//! Enter: the container objects that hold deltas. Leaves: for each logical container of them what can't be
//! made, whether its base is missing, or that one's base; with data, every delta is applied, and what
//! comes out compared with its fingerprint.
//!
//! Memory: 8 KiB for each container that lost something, and the metadata of one for each thread. With
//! data, as much as a restore: deltas go into plans of bounded memory, and a container is read once for
//! each plan that has deltas to what it holds.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::container::{ChunkAddress, ContainerId, ContainerKind, ContainerSummary};
use engine::container::{ObjectMetadata, SLOTS_MAX, Section, Slot};
use engine::format::ObjectError;
use engine::object::{ObjectId, ObjectKey};
use engine::pipeline::ReadingRoom;
use engine::recipe::{Recipe, Run};
use engine::restore::{ChunkSink, MetadataSink, Reader, RestorePlan, read_metadata, wrong_bases};

use crate::progress::Progress;

/// Slots of a container that can't be had, a bit each.
type Slots = [u64; SLOT_WORDS];

const SLOT_WORDS: usize = (SLOTS_MAX + 1).div_ceil(64);

/// What a container of deltas has lost.
pub(super) struct Losses {
    pub object: ObjectKey,
    slots: Box<Slots>,
    /// Chunks that can't be made.
    pub chunks: u64,
    /// The first of them, and what is wrong with it.
    first: Slot,
    pub message: String,
    /// Are stored bytes gone or wrong (rather than unreachable just now)?
    pub is_damage: bool,
}

impl Losses {
    fn has(&self, Slot(slot): Slot) -> bool {
        self.slots[usize::from(slot) / 64] >> (slot % 64) & 1 == 1
    }
}

/// Checks deltas.
pub(super) struct DeltaCheck<'a> {
    reader: &'a Reader,
    room: &'a ReadingRoom,
    progress: &'a Progress,
    /// What a plan may take.
    plan_bytes: usize,
    /// Could all containers be read, as far as they are not damaged? Otherwise a chunk that can't be made
    /// may come back.
    is_reachable: bool,
    /// Objects that are about to be deleted: what they alone hold nobody needs.
    condemned: &'a HashSet<ObjectId>,
    losses: Mutex<BTreeMap<ContainerId, Losses>>,
}

impl<'a> DeltaCheck<'a> {
    pub fn new(
        reader: &'a Reader,
        room: &'a ReadingRoom,
        progress: &'a Progress,
        plan_bytes: usize,
        is_reachable: bool,
        condemned: &'a HashSet<ObjectId>,
    ) -> Self {
        Self {
            reader,
            room,
            progress,
            plan_bytes,
            is_reachable,
            condemned,
            losses: Mutex::default(),
        }
    }

    /// Checks the deltas in these objects, given with their lengths. Returns what is lost, by logical
    /// container.
    pub fn run(
        self,
        objects: &[(ObjectKey, u64)],
        read_data: bool,
    ) -> BTreeMap<ContainerId, Losses> {
        let containers = self.reader.containers();
        read_metadata(containers, self.room, objects, &Bases(&self));
        // What is made of what is lost is lost as well: from depth to depth.
        let mut lost = self.lost_chunks();
        while lost > 0 && !self.progress.is_cancelled() {
            read_metadata(containers, self.room, objects, &MadeOfLost(&self));
            if self.lost_chunks() == std::mem::replace(&mut lost, self.lost_chunks()) {
                break;
            }
        }
        if read_data {
            self.apply_all(objects);
        }
        self.losses
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ContainerId, Losses>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost_chunks(&self) -> u64 {
        self.lock().values().map(|losses| losses.chunks).sum()
    }

    fn is_lost(&self, chunk: ChunkAddress) -> bool {
        let losses = self.lock();
        let losses = losses.get(&chunk.container);
        losses.is_some_and(|losses| losses.has(chunk.slot))
    }

    /// A chunk can't be made. Whichever thread comes first, the first chunk's message stays.
    fn lose(&self, chunk: ChunkAddress, message: String, is_damage: bool) {
        let ChunkAddress { container, slot } = chunk;
        let object = self.reader.containers().remaps().object_of(container);
        let mut losses = self.lock();
        let losses = losses.entry(container).or_insert_with(|| Losses {
            object,
            slots: Box::new([0; SLOT_WORDS]),
            chunks: 0,
            first: slot,
            message: String::new(),
            is_damage: false,
        });
        if losses.has(slot) {
            return;
        }
        losses.slots[usize::from(slot.0) / 64] |= 1 << (slot.0 % 64);
        losses.chunks += 1;
        losses.is_damage |= is_damage;
        if losses.chunks == 1 || slot < losses.first {
            losses.first = slot;
            losses.message = message;
        }
    }

    /// The sections of deltas in an object that readers try, and that is not about to be deleted.
    fn sections<'b>(
        &'b self,
        key: ObjectKey,
        metadata: &'b ObjectMetadata,
    ) -> impl Iterator<Item = &'b Section> {
        let remaps = self.reader.containers().remaps();
        let is_there = !self.condemned.contains(&key.id);
        let sections = metadata.sections.iter();
        sections.filter(move |section| {
            let is_deltas = section.kind == ContainerKind::Deltas;
            is_there && is_deltas && remaps.is_place(section.id, key.id)
        })
    }

    /// Applies every delta that has its base.
    fn apply_all(&self, objects: &[(ObjectKey, u64)]) {
        let mut plan = RestorePlan::default();
        let mut chunks = Vec::new();
        for &(key, _) in objects {
            // One that can't be read is told already.
            let Ok((metadata, _)) = self.reader.containers().object(key) else {
                continue;
            };
            for section in self.sections(key, &metadata) {
                for chunk in 0..section.chunk_count() {
                    if self.progress.is_cancelled() {
                        return;
                    }
                    self.plan_chunk(section, chunk, &mut plan, &mut chunks);
                    let plan_bytes = plan.memory_bytes() + size_of_val(&chunks[..]);
                    if plan_bytes >= self.plan_bytes {
                        self.execute(&mut plan, &mut chunks);
                    }
                }
            }
        }
        self.execute(&mut plan, &mut chunks);
    }

    /// Adds a chunk, if it is stored as a delta, as a stream of its own.
    fn plan_chunk(
        &self,
        section: &Section,
        chunk: usize,
        plan: &mut RestorePlan,
        chunks: &mut Vec<ChunkAddress>,
    ) {
        let address = section.address(chunk);
        if section.delta(chunk).is_none() || self.is_lost(address) {
            return;
        }
        let recipe = Recipe::Runs(vec![Run::Slots {
            container: address.container,
            first: address.slot,
            count: 1,
            bytes: u64::from(section.lengths[chunk]),
        }]);
        let stream = chunks.len() as u32;
        match plan.add_stream(self.reader, stream, &recipe, None) {
            Ok(_) => chunks.push(address),
            Err(error) => self.lose(address, error.to_string(), error.is_damage()),
        }
    }

    fn execute(&self, plan: &mut RestorePlan, chunks: &mut Vec<ChunkAddress>) {
        let sink = Applied {
            check: self,
            chunks,
        };
        plan.execute(self.reader, self.room, &sink);
        chunks.clear();
    }
}

/// Are the bases there?
struct Bases<'a>(&'a DeltaCheck<'a>);

impl MetadataSink for Bases<'_> {
    fn metadata(
        &self,
        key: ObjectKey,
        _: u64,
        outcome: Result<(ObjectMetadata, ContainerSummary), ObjectError>,
    ) {
        // One that can't be read is told already.
        let Ok((metadata, _)) = outcome else {
            return;
        };
        let Self(check) = self;
        check.progress.set_current(key.to_string().as_bytes());
        for section in check.sections(key, &metadata) {
            for wrong in wrong_bases(check.reader.containers(), section) {
                let address = section.address(wrong.chunk);
                check.lose(address, wrong.message, wrong.is_damage);
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.0.progress.is_cancelled()
    }
}

/// Which bases are lost themselves?
struct MadeOfLost<'a>(&'a DeltaCheck<'a>);

impl MetadataSink for MadeOfLost<'_> {
    fn metadata(
        &self,
        key: ObjectKey,
        _: u64,
        outcome: Result<(ObjectMetadata, ContainerSummary), ObjectError>,
    ) {
        let Ok((metadata, _)) = outcome else {
            return;
        };
        let Self(check) = self;
        for section in check.sections(key, &metadata) {
            for chunk in 0..section.chunk_count() {
                let Some(delta) = section.delta(chunk) else {
                    continue;
                };
                if check.is_lost(delta.base) {
                    let address = section.address(chunk);
                    let message = format!(
                        "the chunk in {address} is made of the one in {}, which can't be made itself",
                        delta.base
                    );
                    check.lose(address, message, true);
                }
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        self.0.progress.is_cancelled()
    }
}

/// Takes note of what is not made.
struct Applied<'a> {
    check: &'a DeltaCheck<'a>,
    chunks: &'a [ChunkAddress],
}

impl ChunkSink for Applied<'_> {
    fn write(&self, _: u32, _: u64, _: &[u8]) {}

    fn lost(&self, stream: u32, _: u64, _: usize, error: &str) {
        let chunk = self.chunks[stream as usize];
        let is_damage = self.check.is_reachable;
        self.check.lose(chunk, error.to_owned(), is_damage);
    }

    fn is_cancelled(&self) -> bool {
        self.check.progress.is_cancelled()
    }
}

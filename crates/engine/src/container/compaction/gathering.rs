//! Gathers what is to be kept of one logical container, from all the places in which it lies.
//!
//! Enter: the container's sections in its places, and the slots to keep. Leave: one section with its groups, compressed and
//! not sealed yet. Each slot is taken from the first place that has it. Groups of which everything is kept
//! stay as they are compressed; what remains of others, and small groups, joins up to the size of a group and is
//! compressed again. Every chunk to be kept is compared with its full fingerprint, those that are stored as deltas
//! by applying them.
//!
//! Memory: the kept groups of one container, one read of at most 8 MiB, and a group.

use std::ops::Range;
use std::sync::Arc;

use super::{CompactionError, Compactor, SlotSet};
use crate::container::metadata::{Group, Section};
use crate::container::{
    ChunkAddress, Compression, ContainerId, Features, GroupRead, LoadedSection, READ_BYTES_MAX,
    Slot,
};
use crate::format::{DecodeError, ObjectError, SEAL_TAG_BYTES};

/// A group that has less than one part in so many of a full one joins its neighbours.
const SMALL_SHARE: usize = 8;

/// What is kept of a container: its groups are compressed, and their places in the object are not known.
pub(super) struct Gathered {
    pub section: Section,
    /// What is stored of the groups, one after the other, without seals.
    pub stored: Vec<u8>,
}

/// A chunk to be kept: its slot, the number of the place that has it, and its index there.
#[derive(Debug, Clone, Copy)]
struct Kept {
    slot: Slot,
    place: u32,
    chunk: u32,
}

/// The places of a container and what of them is kept.
pub(super) struct Sources {
    places: Vec<Source>,
    kept: Vec<Kept>,
}

struct Source {
    loaded: Arc<LoadedSection>,
    /// The reads that bring the groups that are needed, and the bytes of the last one.
    reads: Vec<GroupRead>,
    fetched: Option<(usize, Vec<u8>)>,
}

impl Sources {
    /// Finds each slot of `keep`.
    pub fn find(
        compactor: &Compactor,
        container: ContainerId,
        keep: &SlotSet,
    ) -> Result<Self, CompactionError> {
        let containers = compactor.reader.containers();
        let mut is_found = SlotSet::new();
        let (mut places, mut kept, mut failure) = (Vec::new(), Vec::new(), None);
        for loaded in containers.sections(container) {
            let loaded = match loaded {
                Ok(loaded) => loaded,
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            };
            let place = places.len() as u32;
            let of_place = loaded.section.slots.iter().enumerate();
            for (chunk, &slot) in of_place {
                let is_wanted =
                    keep.contains(slot) && !compactor.is_damaged(container, loaded.object.id, slot);
                if is_wanted && is_found.insert(slot) {
                    let chunk = chunk as u32;
                    kept.push(Kept { slot, place, chunk });
                }
            }
            places.push(Source {
                loaded,
                reads: Vec::new(),
                fetched: None,
            });
            if kept.len() == keep.len() {
                break;
            }
        }
        if let Some(slot) = keep.iter().find(|&slot| !is_found.contains(slot)) {
            let chunk = ChunkAddress { container, slot };
            return Err(match failure {
                Some(error) => CompactionError::Container { container, error },
                None => CompactionError::Missing { chunk },
            });
        }
        kept.sort_unstable_by_key(|kept| kept.slot);
        Ok(Self { places, kept })
    }

    /// Chunks in the places that are not kept.
    pub fn dropped(&self, keep: &SlotSet) -> u64 {
        let all = self
            .places
            .iter()
            .flat_map(|source| &source.loaded.section.slots);
        let slots: SlotSet = all.copied().filter(|&slot| !keep.contains(slot)).collect();
        slots.len() as u64
    }

    /// All slots in the groups that hold something to be kept.
    pub fn whole_groups(&self, compactor: &Compactor) -> SlotSet {
        let mut slots = SlotSet::new();
        for kept in &self.kept {
            let loaded = &self.places[kept.place as usize].loaded;
            let section = &loaded.section;
            let group = &section.groups[section.group_of(kept.chunk as usize)];
            let first = group.first_chunk as usize;
            let chunks = first..first + group.chunk_count as usize;
            let object = loaded.object.id;
            let is_whole = |slot: &&Slot| !compactor.is_damaged(section.id, object, **slot);
            section.slots[chunks]
                .iter()
                .filter(is_whole)
                .for_each(|&slot| {
                    slots.insert(slot);
                });
        }
        slots
    }

    /// Reads, verifies and groups what is kept, of which there is something.
    pub fn gather(mut self, compactor: &mut Compactor) -> Result<Gathered, CompactionError> {
        for (number, source) in self.places.iter_mut().enumerate() {
            let section = &source.loaded.section;
            let of_place = self
                .kept
                .iter()
                .filter(|kept| kept.place as usize == number);
            let mut groups: Vec<_> = of_place
                .map(|kept| section.group_of(kept.chunk as usize))
                .collect();
            groups.dedup();
            source.reads = section.group_reads(&groups, READ_BYTES_MAX);
        }
        let mut gathering = Gathering::new(
            &self.places[self.kept[0].place as usize].loaded.section,
            compactor,
        );
        let is_same_group = |a: &Kept, b: &Kept| {
            let group_of = |kept: &Kept| {
                let section = &self.places[kept.place as usize].loaded.section;
                (kept.place, section.group_of(kept.chunk as usize))
            };
            group_of(a) == group_of(b)
        };
        let spans: Vec<Range<usize>> = self
            .kept
            .chunk_by(is_same_group)
            .scan(0, |end, span| {
                *end += span.len();
                Some(*end - span.len()..*end)
            })
            .collect();
        for span in spans {
            let kept = &self.kept[span];
            let source = &mut self.places[kept[0].place as usize];
            gathering.take_span(compactor, source, kept)?;
        }
        gathering.close_group(compactor);
        Ok(gathering.gathered)
    }
}

impl Source {
    /// The sealed bytes of a group.
    fn sealed(&mut self, compactor: &mut Compactor, index: usize) -> Result<Vec<u8>, ObjectError> {
        let section = &self.loaded.section;
        let has_group = |read: &GroupRead| read.groups.binary_search(&index).is_ok();
        let number = self.reads.iter().position(has_group);
        let number = number.expect("groups that are needed are read");
        if self
            .fetched
            .as_ref()
            .is_none_or(|(last, _)| *last != number)
        {
            // Not two reads in memory.
            self.fetched = None;
            let read = &self.reads[number];
            let containers = compactor.reader.containers();
            let bytes = containers.fetch_groups(&self.loaded, read)?;
            compactor.totals.bytes_read += bytes.len() as u64;
            self.fetched = Some((number, bytes));
        }
        let (_, bytes) = self.fetched.as_ref().expect("it was just fetched");
        Ok(bytes[self.reads[number].range_of(section, index)].to_vec())
    }
}

/// A section while it is gathered.
struct Gathering {
    gathered: Gathered,
    has_markers: bool,
    group_bytes: usize,
    /// The open group: plaintext of chunks that are in the section and in no group.
    plain: Vec<u8>,
    open_chunks: u32,
    /// How that is stored already, where it is a whole group of a source.
    as_stored: Option<(Vec<u8>, Compression)>,
}

impl Gathering {
    fn new(like: &Section, compactor: &Compactor) -> Self {
        Self {
            gathered: Gathered {
                section: Section {
                    id: like.id,
                    kind: like.kind,
                    slots: Vec::new(),
                    lengths: Vec::new(),
                    fingerprints: Vec::new(),
                    markers: Vec::new(),
                    deltas: Vec::new(),
                    features: Features::new(like.features.per_chunk()),
                    groups: Vec::new(),
                },
                stored: Vec::new(),
            },
            has_markers: !like.markers.is_empty(),
            group_bytes: compactor.group_bytes(like.kind),
            plain: Vec::new(),
            open_chunks: 0,
            as_stored: None,
        }
    }

    /// Takes chunks of one group of a place.
    fn take_span(
        &mut self,
        compactor: &mut Compactor,
        source: &mut Source,
        kept: &[Kept],
    ) -> Result<(), CompactionError> {
        let loaded = Arc::clone(&source.loaded);
        let section = &loaded.section;
        let chunk_error = |chunk: usize, error: super::ReadError| CompactionError::Chunk {
            chunk: section.address(chunk),
            object: loaded.object,
            error: Box::new(error),
        };
        let first = kept[0].chunk as usize;
        if section.kind != self.gathered.section.kind {
            let reason = DecodeError::new("it is of another kind than in its other places");
            let (key, part) = (loaded.object, "metadata");
            let error = ObjectError::Corrupt { key, part, reason };
            return Err(chunk_error(first, error.into()));
        }
        let index = section.group_of(first);
        let group = section.groups[index];
        let sealed = source.sealed(compactor, index);
        let mut sealed = sealed.map_err(|error| chunk_error(first, error.into()))?;
        let mut decompressor = std::mem::take(&mut compactor.decompressor);
        let opened = loaded.open_group(index, &mut sealed, &mut decompressor);
        let (stored, plain) = opened.map_err(|error| chunk_error(first, error.into()))?;
        let places = section.places_in(index);
        for kept in kept {
            let chunk = kept.chunk as usize;
            let verified = compactor.verify(&loaded, chunk, &plain[places.of(chunk)]);
            verified.map_err(|error| chunk_error(chunk, error))?;
        }
        let is_whole = kept.len() == group.chunk_count as usize;
        let span_bytes: usize = kept
            .iter()
            .map(|kept| places.of(kept.chunk as usize).len())
            .sum();
        let is_large = span_bytes >= self.group_bytes / SMALL_SHARE;
        if (is_whole && is_large) || self.plain.len() + span_bytes > self.group_bytes {
            self.close_group(compactor);
        }
        self.as_stored =
            (is_whole && self.open_chunks == 0).then(|| (stored.to_vec(), group.compression));
        for kept in kept {
            let chunk = kept.chunk as usize;
            self.plain.extend_from_slice(&plain[places.of(chunk)]);
            self.push_chunk(section, chunk);
        }
        compactor.decompressor = decompressor;
        if is_whole && is_large {
            self.close_group(compactor);
        }
        Ok(())
    }

    fn push_chunk(&mut self, from: &Section, chunk: usize) {
        let section = &mut self.gathered.section;
        section.slots.push(from.slots[chunk]);
        section.lengths.push(from.lengths[chunk]);
        section.fingerprints.push(from.fingerprints[chunk]);
        if self.has_markers {
            // Places of one container have markers all or none.
            section
                .markers
                .push(from.markers.get(chunk).copied().unwrap_or_default());
        }
        section.deltas.extend(from.deltas.get(chunk));
        let features = from.features.of(chunk).unwrap_or_default();
        let is_same = from.features.per_chunk() == section.features.per_chunk();
        section.features.push(if is_same { features } else { &[] });
        self.open_chunks += 1;
    }

    /// Ends the open group, if there is one.
    fn close_group(&mut self, compactor: &mut Compactor) {
        if self.open_chunks == 0 {
            return;
        }
        let as_stored = self.as_stored.take();
        match as_stored {
            Some(_) => compactor.totals.groups_kept += 1,
            None => compactor.totals.groups_made += 1,
        }
        let compressed = match as_stored {
            Some((stored, compression)) => Some((stored, compression)),
            None => compactor
                .compressor
                .compress(&self.plain)
                .map(|compressed| (compressed, Compression::Zstd)),
        };
        let (stored, compression) = match &compressed {
            Some((stored, compression)) => (&stored[..], *compression),
            None => (&self.plain[..], Compression::Stored),
        };
        let Gathered {
            section,
            stored: all,
        } = &mut self.gathered;
        all.extend_from_slice(stored);
        section.groups.push(Group {
            offset: 0,
            sealed_bytes: (stored.len() + SEAL_TAG_BYTES) as u32,
            compression,
            number: section.groups.len() as u32,
            first_chunk: section.chunk_count() as u32 - self.open_chunks,
            chunk_count: self.open_chunks,
            plain_bytes: self.plain.len() as u64,
        });
        self.plain.clear();
        self.open_chunks = 0;
    }
}

//! Verifies whole container objects: seals, padding, decompression, the fingerprint of every
//! chunk that is stored whole. One stored as a delta takes its base to be verified, which lies
//! elsewhere: that is a matter of a [`RestorePlan`](crate::restore::RestorePlan).
//!
//! An object is fetched, whole or its end alone, and then verified: two calls, so that one thread
//! may wait for the store while another computes. Of a *sample* ([`GroupChoice`]) only some groups are fetched. Who
//! wants to know what is left of a damaged object has it *examined*: then nothing ends at the first damage.

use std::collections::HashSet;
use std::sync::Arc;

use super::groups::{GroupOpener, GroupRead, READ_BYTES_MAX};
use super::metadata::{Group, ObjectMetadata, Section};
use super::reader::{
    ContainerReader, ContainerSummary, LoadedSection, OBJECT_BYTES_MAX, OpenObject, PADDING_PIECE,
    TAIL_BYTES,
};
use super::{ContainerId, ContainerKind, SlotSet};
use crate::format::{DecodeError, InObject, LENGTH_TAG_BYTES, ObjectError, ObjectSealer};
use crate::object::{ObjectId, ObjectKey, Tail};
use crate::pipeline::Stage;

/// Which groups of container objects are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupChoice {
    /// None: metadata alone.
    None,
    /// All, and the padding as well.
    All,
    /// About `share` of 2³² parts of the groups, scattered over all containers: the same ones with the same seed.
    Share {
        /// Another seed chooses others.
        seed: u32,
        /// How many of 2³² parts.
        share: u32,
    },
    /// One of `of` parts, each group being in exactly one part: after all parts all groups were read.
    Part {
        /// Another seed divides them otherwise.
        seed: u32,
        /// Which part: less than `of`.
        part: u32,
        /// How many parts there are, at least 1.
        of: u32,
    },
}

impl GroupChoice {
    /// Is a group read? It is given by its object and its number there.
    #[must_use]
    pub fn takes(self, object: ObjectId, group: u32) -> bool {
        match self {
            GroupChoice::None => false,
            GroupChoice::All => true,
            GroupChoice::Share { seed, share } => lot(seed, object, group) as u32 <= share,
            GroupChoice::Part { seed, part, of } => {
                lot(seed, object, group) % u64::from(of.max(1)) == u64::from(part)
            }
        }
    }

    /// Does it take some groups and leave others?
    #[must_use]
    pub fn is_sample(self) -> bool {
        matches!(self, GroupChoice::Share { .. } | GroupChoice::Part { .. })
    }
}

/// What is drawn for a group: evenly spread, and the same again.
fn lot(seed: u32, object: ObjectId, group: u32) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&object.0);
    hasher.update(&group.to_le_bytes());
    let mut drawn = [0; 8];
    drawn.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(drawn)
}

/// A section of a container object, and what of it can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExaminedSection {
    /// The logical container.
    pub container: ContainerId,
    /// What its chunks are.
    pub kind: ContainerKind,
    /// Chunks whose group can't be opened, or that do not have their fingerprint. Of those stored as deltas only the
    /// delta was looked at.
    pub lost: SlotSet,
    /// The other chunks.
    pub whole: SlotSet,
}

/// A container object whose metadata can be read, and all the rest of it.
#[derive(Debug)]
pub struct Examined {
    /// What it consists of.
    pub summary: ContainerSummary,
    /// Its sections.
    pub sections: Vec<ExaminedSection>,
    /// The first thing that is wrong, if anything is.
    pub damage: Option<ObjectError>,
}

/// Groups of a section that are fetched in one read.
pub type SampleRead = (Arc<LoadedSection>, GroupRead);

/// Groups of a section that were fetched for a sample.
#[derive(Debug)]
pub struct FetchedGroups {
    loaded: Arc<LoadedSection>,
    read: GroupRead,
    bytes: Vec<u8>,
}

impl FetchedGroups {
    /// The object they lie in.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        self.loaded.object
    }
}

/// A container object as it was read from the store.
#[derive(Debug)]
pub struct FetchedObject {
    key: ObjectKey,
    /// The whole object, or its end.
    tail: Tail,
    is_whole: bool,
}

impl ContainerReader {
    /// Bytes that [`ContainerReader::fetch_object`] reads of an object of that length.
    #[must_use]
    pub fn fetch_bytes(object_bytes: u64, whole: bool) -> usize {
        let bytes = object_bytes.min(OBJECT_BYTES_MAX) as usize;
        if whole { bytes } else { bytes.min(TAIL_BYTES) }
    }

    /// Reads an object: the whole of it, or as much of its end as usually holds its metadata.
    ///
    /// # Errors
    /// What the store says; objects that are too long for a container are not read.
    pub fn fetch_object(&self, key: ObjectKey, whole: bool) -> Result<FetchedObject, ObjectError> {
        let tail = if whole {
            let bytes = self.store.get(&key, OBJECT_BYTES_MAX)?;
            let object_bytes = bytes.len() as u64;
            Tail {
                bytes,
                object_bytes,
            }
        } else {
            self.store.get_tail(&key, TAIL_BYTES)?
        };
        Ok(FetchedObject {
            key,
            tail,
            is_whole: whole,
        })
    }

    /// Verifies all that was fetched: the metadata, and what lies before it if that is there.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_fetched(
        &self,
        fetched: FetchedObject,
        opener: &mut GroupOpener,
    ) -> Result<ContainerSummary, ObjectError> {
        let FetchedObject {
            key,
            tail,
            is_whole,
        } = fetched;
        let unseal = opener.stages().meter(Stage::Unseal);
        let open = unseal.busy(0, || self.open_tail(key, &tail))?;
        let summary = open.summary;
        if is_whole {
            self.verify_data(key, tail.bytes, open, opener)?;
        }
        Ok(summary)
    }

    /// Reads a whole object and verifies all there is.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_object(&self, key: ObjectKey) -> Result<ContainerSummary, ObjectError> {
        let fetched = self.fetch_object(key, true)?;
        self.verify_fetched(fetched, &mut GroupOpener::default())
    }

    /// The metadata of an object, and the reads that bring the groups of it that are chosen.
    ///
    /// # Errors
    /// When the metadata can't be read.
    pub fn sample_of(
        &self,
        key: ObjectKey,
        choice: GroupChoice,
    ) -> Result<(ContainerSummary, Vec<SampleRead>), ObjectError> {
        let open = self.open_tail(key, &self.store.get_tail(&key, TAIL_BYTES)?)?;
        let mut reads = Vec::new();
        for loaded in loaded_sections(key, open.metadata.sections, &open.sealer) {
            let groups = loaded.section.groups.iter().enumerate();
            let chosen = groups.filter(|(_, group)| choice.takes(key.id, group.number));
            let chosen: Vec<usize> = chosen.map(|(index, _)| index).collect();
            let of_section = loaded.section.group_reads(&chosen, READ_BYTES_MAX);
            reads.extend(
                of_section
                    .into_iter()
                    .map(|read| (Arc::clone(&loaded), read)),
            );
        }
        Ok((open.summary, reads))
    }

    /// Fetches the groups of one read of a sample.
    ///
    /// # Errors
    /// What the store says.
    pub fn fetch_sample(&self, (loaded, read): SampleRead) -> Result<FetchedGroups, ObjectError> {
        let bytes = self.fetch_groups(&loaded, &read)?;
        Ok(FetchedGroups {
            loaded,
            read,
            bytes,
        })
    }

    /// Verifies fetched groups; how many there are, and their bytes in the object.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify_sample(
        &self,
        fetched: FetchedGroups,
        opener: &mut GroupOpener,
    ) -> Result<(u64, u64), ObjectError> {
        let FetchedGroups {
            loaded,
            read,
            mut bytes,
        } = fetched;
        let mut verified = (0, 0);
        for &index in &read.groups {
            let range = read.range_of(&loaded.section, index);
            verified = (verified.0 + 1, verified.1 + range.len() as u64);
            self.verify_group(&loaded, index, &mut bytes[range], opener)?;
        }
        Ok(verified)
    }

    /// Looks at everything in an object that was fetched as a whole, and says what of it is damaged.
    ///
    /// # Errors
    /// When its metadata can't be read: then nobody knows what is in it.
    pub fn examine_fetched(
        &self,
        fetched: FetchedObject,
        opener: &mut GroupOpener,
    ) -> Result<Examined, ObjectError> {
        let FetchedObject { key, tail, .. } = fetched;
        let open = self.open_tail(key, &tail)?;
        let mut object = tail.bytes;
        let mut damage = check_padding(key, &mut object, &open).err();
        let shared = shared_groups(&open.metadata);
        let mut sections = Vec::new();
        for loaded in loaded_sections(key, open.metadata.sections, &open.sealer) {
            let section = &loaded.section;
            let mut examined = ExaminedSection {
                container: section.id,
                kind: section.kind,
                lost: SlotSet::new(),
                whole: SlotSet::new(),
            };
            for (index, group) in section.groups.iter().enumerate() {
                let found = on_sealed(&mut object, group, &shared, |sealed| {
                    self.examine_group(&loaded, index, sealed, opener, &mut examined)
                });
                if let Err(error) = found {
                    damage.get_or_insert(error);
                }
            }
            sections.push(examined);
        }
        Ok(Examined {
            summary: open.summary,
            sections,
            damage,
        })
    }

    fn examine_group(
        &self,
        loaded: &LoadedSection,
        index: usize,
        sealed: &mut [u8],
        opener: &mut GroupOpener,
        examined: &mut ExaminedSection,
    ) -> Result<(), ObjectError> {
        let section = &loaded.section;
        let places = section.places_in(index);
        let chunks = places.first()..places.first() + places.count();
        let plain = match opener.open(loaded, index, sealed) {
            Ok(plain) => plain,
            Err(error) => {
                for &slot in &section.slots[chunks] {
                    examined.lost.insert(slot);
                }
                return Err(error);
            }
        };
        let mut first = Ok(());
        for chunk in chunks {
            let verified = match section.delta(chunk) {
                Some(_) => Ok(()),
                None => self.verify_chunk(loaded, chunk, &plain[places.of(chunk)]),
            };
            let slots = match &verified {
                Ok(()) => &mut examined.whole,
                Err(_) => &mut examined.lost,
            };
            slots.insert(section.slots[chunk]);
            first = first.and(verified);
        }
        first
    }

    fn verify_data(
        &self,
        key: ObjectKey,
        mut object: Vec<u8>,
        open: OpenObject,
        opener: &mut GroupOpener,
    ) -> Result<(), ObjectError> {
        check_padding(key, &mut object, &open)?;
        let shared = shared_groups(&open.metadata);
        for loaded in loaded_sections(key, open.metadata.sections, &open.sealer) {
            for (index, group) in loaded.section.groups.iter().enumerate() {
                on_sealed(&mut object, group, &shared, |sealed| {
                    self.verify_group(&loaded, index, sealed, opener)
                })?;
            }
        }
        Ok(())
    }

    fn verify_group(
        &self,
        loaded: &LoadedSection,
        index: usize,
        sealed: &mut [u8],
        opener: &mut GroupOpener,
    ) -> Result<(), ObjectError> {
        let stages = opener.stages().clone();
        let plain = opener.open(loaded, index, sealed)?;
        let section = &loaded.section;
        let places = section.places_in(index);
        let chunks = places.first()..places.first() + places.count();
        let verify = stages.meter(Stage::Verify);
        verify.busy(section.groups[index].plain_bytes, || {
            let mut whole = chunks.filter(|&chunk| section.delta(chunk).is_none());
            whole.try_for_each(|chunk| self.verify_chunk(loaded, chunk, &plain[places.of(chunk)]))
        })
    }
}

/// Has something done with the sealed bytes of a group, which opens them in place: with a copy, where another section
/// names the group, too.
fn on_sealed<T>(
    object: &mut [u8],
    group: &Group,
    shared: &HashSet<u32>,
    then: impl FnOnce(&mut [u8]) -> T,
) -> T {
    let start = group.offset as usize;
    let sealed = &mut object[start..start + group.sealed_bytes as usize];
    match shared.contains(&group.number) {
        true => then(&mut sealed.to_vec()),
        false => then(sealed),
    }
}

/// Groups that several sections name.
fn shared_groups(metadata: &ObjectMetadata) -> HashSet<u32> {
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    for group in metadata.sections.iter().flat_map(|section| &section.groups) {
        if !seen.insert(group.number) {
            shared.insert(group.number);
        }
    }
    shared
}

/// The sections of an object, ready for their groups to be read.
fn loaded_sections(
    key: ObjectKey,
    sections: Vec<Section>,
    sealer: &Arc<ObjectSealer>,
) -> impl Iterator<Item = Arc<LoadedSection>> {
    sections.into_iter().map(move |section| {
        Arc::new(LoadedSection {
            object: key,
            section: Arc::new(section),
            sealer: Arc::clone(sealer),
        })
    })
}

/// Is the padding of an object, of which all bytes are there, zeros under its seal?
fn check_padding(key: ObjectKey, object: &mut [u8], open: &OpenObject) -> Result<(), ObjectError> {
    let data_end = open.summary.data_bytes as usize;
    let metadata_start = object.len() - LENGTH_TAG_BYTES - open.summary.metadata_bytes as usize;
    if data_end == metadata_start {
        return Ok(());
    }
    let padding = &mut object[data_end..metadata_start];
    let zeros = open
        .sealer
        .open_slice(PADDING_PIECE, padding)
        .in_object(key, "padding")?;
    match zeros.iter().any(|&byte| byte != 0) {
        true => Err(DecodeError::new("it is not zero")).in_object(key, "padding"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(choice: GroupChoice) -> Vec<(u8, u32)> {
        let all = (0..=255u8).flat_map(|object| (0..16).map(move |group| (object, group)));
        all.filter(|&(object, group)| choice.takes(ObjectId([object; 16]), group))
            .collect()
    }

    #[test]
    fn a_share_is_spread_and_the_same_again() {
        let choice = |seed| GroupChoice::Share {
            seed,
            share: u32::MAX / 20,
        };
        let some = chosen(choice(1));
        // 4096 groups, 5 %: 205 ± 14.
        assert!((120..300).contains(&some.len()), "{}", some.len());
        assert_eq!(some, chosen(choice(1)));
        assert_ne!(some, chosen(choice(2)));
        let objects: std::collections::BTreeSet<u8> =
            some.iter().map(|(object, _)| *object).collect();
        assert!(objects.len() > 100, "of {} containers", objects.len());
        let all = GroupChoice::Share {
            seed: 1,
            share: u32::MAX,
        };
        assert_eq!(chosen(all).len(), 4096);
        assert_eq!(chosen(GroupChoice::None).len(), 0);
    }

    #[test]
    fn parts_make_up_the_whole_without_overlap() {
        for of in [1, 2, 7] {
            let part = |part| GroupChoice::Part { seed: 0, part, of };
            let mut all: Vec<_> = (0..of).flat_map(|number| chosen(part(number))).collect();
            assert!((0..of).all(|number| chosen(part(number)).len() > 4096 / of as usize / 2));
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 4096, "each is in one of {of} parts");
            let counted: usize = (0..of).map(|number| chosen(part(number)).len()).sum();
            assert_eq!(counted, 4096);
        }
    }
}

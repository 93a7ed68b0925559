//! Reads the groups of a section: by which ranged reads, and what is in them.
//!
//! Enter: a section and the indices of its wanted groups, ascending. Leave: [`GroupRead`]s, each a
//! range of the object that is fetched in one go; then, group by group, plaintext, and chunks that
//! have their fingerprints. Fetching waits for the store, opening takes a processor: they are
//! calls of their own, so that they may run on different threads.

use std::ops::Range;
use std::time::Instant;

use super::ContainerKind;
use super::compression::{Decompressor, FrontDecompressor};
use super::decompress;
use super::metadata::Section;
use super::reader::{ContainerReader, LoadedSection};
use crate::format::{DecodeError, InObject, ObjectError};
use crate::pipeline::{Stage, Stages};

/// Groups whose ranges are this near are fetched in one read.
const READ_GAP_BYTES: u64 = 64 << 10;

/// Most bytes fetched in one read.
pub(crate) const READ_BYTES_MAX: usize = 8 << 20;

/// Where the chunks of a group, or the deltas that stand for them, lie in its plaintext.
#[derive(Debug, Clone)]
pub struct ChunkPlaces {
    first: usize,
    /// One more than there are chunks; a group's plaintext has at most 32 MiB.
    starts: Vec<u32>,
}

impl ChunkPlaces {
    /// The first chunk of the group.
    #[must_use]
    pub fn first(&self) -> usize {
        self.first
    }

    /// How many chunks it has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of the group's plaintext that a chunk takes.
    ///
    /// # Panics
    /// When it is not in the group.
    #[must_use]
    pub fn of(&self, chunk: usize) -> Range<usize> {
        self.of_all(&(chunk..chunk + 1))
    }

    /// The same, of chunks that follow each other.
    ///
    /// # Panics
    /// When they are not in the group.
    #[must_use]
    pub fn of_all(&self, chunks: &Range<usize>) -> Range<usize> {
        let start = |chunk: usize| self.starts[chunk - self.first] as usize;
        start(chunks.start)..start(chunks.end)
    }

    /// Memory that they take.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>()
    }
}

/// Groups of a section that are fetched in one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRead {
    /// Their indices, ascending.
    pub groups: Vec<usize>,
    /// Where the range begins in the object.
    pub offset: u64,
    /// Its length.
    pub bytes: usize,
}

impl GroupRead {
    /// The range that spans these groups.
    fn spanning(section: &Section, groups: &[usize]) -> Self {
        let offset = section.groups[groups[0]].offset;
        let end = end_of(section, groups[groups.len() - 1]);
        Self {
            groups: groups.to_vec(),
            offset,
            bytes: (end - offset) as usize,
        }
    }

    /// Reads that bring the same groups one by one: what is wrong with one of them then does not
    /// keep the others from being read.
    #[must_use]
    pub fn one_by_one(&self, section: &Section) -> Vec<GroupRead> {
        let groups = self.groups.iter();
        groups
            .map(|&group| Self::spanning(section, &[group]))
            .collect()
    }

    /// Where a group stands in what was fetched.
    #[must_use]
    pub fn range_of(&self, section: &Section, group: usize) -> Range<usize> {
        let start = (section.groups[group].offset - self.offset) as usize;
        start..start + section.groups[group].sealed_bytes as usize
    }
}

fn end_of(section: &Section, group: usize) -> u64 {
    section.groups[group].offset + u64::from(section.groups[group].sealed_bytes)
}

impl Section {
    /// Where the chunks of a group lie in its plaintext.
    ///
    /// # Panics
    /// When there is no such group.
    #[must_use]
    pub fn places_in(&self, group: usize) -> ChunkPlaces {
        let group = &self.groups[group];
        let first = group.first_chunk as usize;
        let chunks = first..first + group.chunk_count as usize;
        let mut starts = Vec::with_capacity(chunks.len() + 1);
        let mut start = 0;
        starts.push(start);
        for chunk in chunks {
            start += self.stored_bytes(chunk);
            starts.push(start);
        }
        ChunkPlaces { first, starts }
    }

    /// The reads, of at most `bytes_max` where a group is not larger, that bring these groups:
    /// near ones come in one, and where three quarters of the bytes from the first to the last are
    /// wanted, the others come along.
    #[must_use]
    pub fn group_reads(&self, groups: &[usize], bytes_max: usize) -> Vec<GroupRead> {
        let (Some(&first), Some(&last)) = (groups.first(), groups.last()) else {
            return Vec::new();
        };
        let sealed = |&group: &usize| u64::from(self.groups[group].sealed_bytes);
        let wanted_bytes: u64 = groups.iter().map(sealed).sum();
        let span_bytes = end_of(self, last) - self.groups[first].offset;
        let gap_bytes_max = match wanted_bytes * 4 >= span_bytes * 3 {
            true => span_bytes,
            false => READ_GAP_BYTES,
        };
        let mut reads = Vec::new();
        let mut start = 0;
        for at in 1..=groups.len() {
            let is_joined = groups.get(at).is_some_and(|&group| {
                let gap_bytes = self.groups[group].offset - end_of(self, groups[at - 1]);
                let bytes = end_of(self, group) - self.groups[groups[start]].offset;
                gap_bytes <= gap_bytes_max && bytes <= bytes_max as u64
            });
            if !is_joined {
                reads.push(GroupRead::spanning(self, &groups[start..at]));
                start = at;
            }
        }
        reads
    }
}

impl ContainerReader {
    /// Fetches the bytes of a read.
    ///
    /// # Errors
    /// What the store says.
    pub fn fetch_groups(
        &self,
        loaded: &LoadedSection,
        read: &GroupRead,
    ) -> Result<Vec<u8>, ObjectError> {
        let (object, offset, bytes) = (&loaded.object, read.offset, read.bytes);
        Ok(match loaded.section.kind {
            ContainerKind::Metadata => self.store.get_metadata_range(object, offset, bytes)?,
            ContainerKind::Data | ContainerKind::Deltas => {
                self.store.get_range(object, offset, bytes)?
            }
        })
    }

    /// Reads groups of a section, given by ascending index; near ones in one go. Calls `visit`
    /// with each group's index and its plaintext, or what is wrong with it: a damaged group
    /// does not keep the others from being read.
    pub fn read_groups(
        &self,
        loaded: &LoadedSection,
        groups: &[usize],
        visit: &mut dyn FnMut(usize, Result<Vec<u8>, ObjectError>),
    ) {
        for read in loaded.section.group_reads(groups, READ_BYTES_MAX) {
            self.read_near_groups(loaded, &read, visit);
        }
    }

    /// Reads a group of a section, and decompresses the first `front_bytes` bytes of it.
    ///
    /// # Errors
    /// When it can't be read, its seal does not match, or it does not decompress to so many.
    pub fn read_front(
        &self,
        loaded: &LoadedSection,
        index: usize,
        front_bytes: usize,
        decompressor: &mut FrontDecompressor,
    ) -> Result<Vec<u8>, ObjectError> {
        let read = GroupRead::spanning(&loaded.section, &[index]);
        let mut sealed = self.fetch_groups(loaded, &read)?;
        let stored = unseal(loaded, index, &mut sealed)?;
        let compression = loaded.section.groups[index].compression;
        decompressor
            .decompress(compression, stored, front_bytes)
            .in_object(loaded.object, "group")
    }

    fn read_near_groups(
        &self,
        loaded: &LoadedSection,
        read: &GroupRead,
        visit: &mut dyn FnMut(usize, Result<Vec<u8>, ObjectError>),
    ) {
        let section = &loaded.section;
        match self.fetch_groups(loaded, read) {
            Ok(mut bytes) => {
                for &index in &read.groups {
                    let sealed = &mut bytes[read.range_of(section, index)];
                    visit(index, open_group(loaded, index, sealed));
                }
            }
            Err(_) if read.groups.len() > 1 => {
                for read in read.one_by_one(section) {
                    self.read_near_groups(loaded, &read, visit);
                }
            }
            Err(error) => visit(read.groups[0], Err(error)),
        }
    }

    /// Checks a chunk's bytes against its full fingerprint.
    ///
    /// # Errors
    /// When they differ: what was stored is not what was backed up.
    pub fn verify_chunk(
        &self,
        loaded: &LoadedSection,
        chunk: usize,
        bytes: &[u8],
    ) -> Result<(), ObjectError> {
        let section = &loaded.section;
        if self.fingerprinter().fingerprint(section.kind, bytes) == section.fingerprints[chunk] {
            return Ok(());
        }
        Err(ObjectError::Corrupt {
            key: loaded.object,
            part: "chunk",
            reason: DecodeError::new(format!(
                "the chunk in slot {} does not have its fingerprint",
                section.slots[chunk].0
            )),
        })
    }
}

/// Opens the seal of a group in place.
fn unseal<'a>(
    loaded: &LoadedSection,
    index: usize,
    sealed: &'a mut [u8],
) -> Result<&'a [u8], ObjectError> {
    let piece = 3 + loaded.section.groups[index].number;
    let stored = loaded.sealer.open_slice(piece, sealed);
    Ok(stored.in_object(loaded.object, "group")?)
}

/// Unseals a group in place, and decompresses it.
fn open_group(
    loaded: &LoadedSection,
    index: usize,
    sealed: &mut [u8],
) -> Result<Vec<u8>, ObjectError> {
    let group = &loaded.section.groups[index];
    let stored = unseal(loaded, index, sealed)?;
    decompress(group.compression, stored, group.plain_bytes as usize)
        .in_object(loaded.object, "group")
}

impl LoadedSection {
    /// What is stored of a group whose sealed bytes these are, and its plaintext.
    ///
    /// # Errors
    /// When its seal does not match, or it does not decompress.
    pub(super) fn open_group<'a>(
        &self,
        index: usize,
        sealed: &'a mut [u8],
        decompressor: &'a mut Decompressor,
    ) -> Result<(&'a [u8], &'a [u8]), ObjectError> {
        let group = &self.section.groups[index];
        let stored = unseal(self, index, sealed)?;
        let plain = decompressor.decompress(group.compression, stored, group.plain_bytes as usize);
        Ok((stored, plain.in_object(self.object, "group")?))
    }
}

/// Opens one group after the other, into memory that is used again, and reports to the meters.
#[derive(Debug, Default)]
pub struct GroupOpener {
    decompressor: Decompressor,
    stages: Stages,
}

impl GroupOpener {
    /// An opener that reports to these meters.
    #[must_use]
    pub fn new(stages: &Stages) -> Self {
        Self {
            decompressor: Decompressor::default(),
            stages: stages.clone(),
        }
    }

    /// What it reports to.
    #[must_use]
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// The plaintext of a group whose bytes in its object are `sealed`.
    ///
    /// # Errors
    /// When its seal does not match, or it does not decompress.
    pub fn open<'a>(
        &'a mut self,
        loaded: &LoadedSection,
        index: usize,
        sealed: &'a mut [u8],
    ) -> Result<&'a [u8], ObjectError> {
        let group = &loaded.section.groups[index];
        let started = Instant::now();
        let stored = unseal(loaded, index, sealed);
        let unsealed = Instant::now();
        let meter = self.stages.meter(Stage::Unseal);
        meter.worked(unsealed - started, u64::from(group.sealed_bytes));
        let plain_bytes = group.plain_bytes as usize;
        let plain = self
            .decompressor
            .decompress(group.compression, stored?, plain_bytes);
        let meter = self.stages.meter(Stage::Decompress);
        meter.worked(unsealed.elapsed(), group.plain_bytes);
        plain.in_object(loaded.object, "group")
    }
}

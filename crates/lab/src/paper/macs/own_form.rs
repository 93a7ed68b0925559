//! The three schemes in onefold's own form: compressed groups, sealed, in containers of the product.
//!
//! Enters: distinct chunks with their bytes. Leaves: containers in an object store in a scratch
//! directory, built by the engine's `ContainerBuilder`, encrypted and padded to their fixed size; what
//! they are filled with; files again, each chunk verified by its seal and fingerprint.
//!
//! Groups have 1 MiB before compression, as in the product; one that does not fit is cut at a chunk.
//! Containers are closed after each version, as the product does after a backup; the last one of a
//! version is padded to a Padmé length and no more. Metadata takes 32 bytes for a fingerprint, 2 or 3
//! for a length.
//!
//! - *MACS*: the product.
//! - *Baseline*: a fixed metadata region for [`ENTRIES_PER_EXPECTED`] entries of [`ENTRY_BYTES`] for each
//!   chunk of the expected size that a container would hold uncompressed, rounded up to 4 KiB: it is
//!   sized for chunks that compression halves.
//! - *SACS*: the same for chunks from 1 KiB on; containers for smaller ones double their region
//!   while that leaves room.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use engine::container::{
    Compression, CompressionLevel, Compressor, ContainerBuilder, ContainerId, ContainerKind,
    ContainerReader, RemapSet,
};
use engine::fingerprint::{Fingerprint, Fingerprinter};
use engine::format::Vault;
use engine::object::{LocalStore, ObjectId, ObjectStore};
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::layout::{CONTAINER_BYTES, SMALL_BYTES, Scheme, entries_of};
use super::trace::{Chunk, ChunkSink, Trace};
use crate::interrupt;
use crate::restore_caches::lru::LruContainers;

/// Entries that a fixed region has room for, over those of uncompressed chunks of the expected size.
const ENTRIES_PER_EXPECTED: usize = 2;
/// What an entry of a fixed region takes: a fingerprint and a length of 2 bytes.
const ENTRY_BYTES: usize = 34;
/// What metadata has beside entries, about.
const HEAD_BYTES: usize = 256;
/// As in the product.
const GROUP_BYTES: usize = 1 << 20;
/// A front of a group smaller than this does not make a group of its own.
const FRONT_BYTES_MIN: usize = 8 << 10;
/// Metadata of containers that is kept when restoring.
const METADATA_CACHE_BYTES: usize = 16 << 20;

/// Chunks that wait for their group.
#[derive(Default)]
struct Group {
    plain: Vec<u8>,
    chunks: Vec<(Fingerprint, u32)>,
    numbers: Vec<u32>,
}

/// A container in the making and the group that comes next.
#[derive(Default)]
struct Open {
    builder: Option<ContainerBuilder>,
    /// Its number: two may be open at a time.
    number: u32,
    region_bytes: usize,
    group: Group,
}

/// A container; what it takes is known once it was written.
#[derive(Debug, Clone, Copy)]
pub struct Sealed {
    id: ContainerId,
    /// Data, metadata and tag.
    pub filled_bytes: u64,
    /// Bytes of the object.
    pub object_bytes: u64,
}

/// All containers of a scheme.
pub struct OwnStored {
    /// Its name.
    pub scheme: Scheme,
    /// Containers, by their numbers.
    pub containers: Vec<Sealed>,
    /// For each chunk its container.
    pub places: Vec<u32>,
    first_region_bytes: usize,
    open: [Open; 2],
    vault: Arc<Vault>,
    fingerprinter: Arc<Fingerprinter>,
    compressor: Compressor,
    store: Arc<LocalStore>,
    _scratch: TempDir,
}

impl OwnStored {
    /// No container yet; they will lie in a directory of `scratch` that goes with this.
    ///
    /// # Errors
    /// When nothing can be made there.
    pub fn new(scheme: Scheme, expected_bytes: u32, scratch: &Path) -> Result<Self> {
        let context = || format!("making a scratch directory in {}", scratch.display());
        let directory = TempDir::new_in(scratch).with_context(context)?;
        let store = LocalStore::create(directory.path()).with_context(context)?;
        // For a measurement any secret will do.
        let secrets = BTreeMap::from([(1, Zeroizing::new([1; 32]))]);
        let entries = ENTRIES_PER_EXPECTED * entries_of(expected_bytes) as usize;
        let region_bytes = (HEAD_BYTES + ENTRY_BYTES * entries).next_multiple_of(4096);
        Ok(Self {
            scheme,
            containers: Vec::new(),
            places: Vec::new(),
            first_region_bytes: region_bytes,
            open: Default::default(),
            vault: Arc::new(Vault::new(ObjectId([1; 16]), secrets, true)),
            fingerprinter: Arc::new(Fingerprinter::new(&[2; 32])),
            compressor: Compressor::new(CompressionLevel::DEFAULT),
            store: Arc::new(store),
            _scratch: directory,
        })
    }

    /// What the containers are filled with, of 100 of what they take on disk.
    pub fn filling_percent(&self) -> f64 {
        let filled: u64 = self.containers.iter().map(|one| one.filled_bytes).sum();
        let objects: u64 = self.containers.iter().map(|one| one.object_bytes).sum();
        100.0 * filled as f64 / objects.max(1) as f64
    }

    /// Puts all waiting chunks into containers.
    fn flush_group(&mut self, which: usize) -> Result<()> {
        while !self.open[which].group.chunks.is_empty() {
            if self.open[which].builder.is_none() {
                self.begin(which);
            }
            let taken = self.push_front(which);
            if taken > 0 || self.grow(which) {
                continue;
            }
            self.seal(which, false)?;
        }
        Ok(())
    }

    fn begin(&mut self, which: usize) {
        let mut builder = ContainerBuilder::new(&self.vault, ContainerKind::Data, CONTAINER_BYTES);
        if self.scheme != Scheme::Macs {
            builder.fix_metadata_region(self.first_region_bytes);
        }
        let number = self.containers.len() as u32;
        self.containers.push(Sealed {
            id: builder.id(),
            filled_bytes: 0,
            object_bytes: 0,
        });
        let open = &mut self.open[which];
        open.builder = Some(builder);
        open.number = number;
        open.region_bytes = self.first_region_bytes;
    }

    /// Puts as many chunks of the group into the open container as fit; returns how many.
    fn push_front(&mut self, which: usize) -> usize {
        let open = &mut self.open[which];
        let Some(builder) = &mut open.builder else {
            return 0;
        };
        let group = &mut open.group;
        let is_empty = builder.chunk_count() == 0;
        let mut count = group.chunks.len();
        loop {
            let plain_bytes = bytes_of(&group.chunks[..count]);
            let is_worth_it = is_empty || count == group.chunks.len();
            if count == 0 || (plain_bytes < FRONT_BYTES_MIN && !is_worth_it) {
                return 0;
            }
            let room = room_for(builder, &group.chunks[..count]);
            let plain = &group.plain[..plain_bytes];
            let compressed = self.compressor.compress(plain);
            let stored = compressed.as_deref().unwrap_or(plain);
            if stored.len() <= room {
                let compression = match compressed {
                    Some(_) => Compression::Zstd,
                    None => Compression::Stored,
                };
                builder.push_group(stored, compression, &group.chunks[..count]);
                for number in group.numbers.drain(..count) {
                    self.places[number as usize] = open.number;
                }
                group.plain.drain(..plain_bytes);
                group.chunks.drain(..count);
                return count;
            }
            count = fewer(builder, &group.chunks[..count], stored.len());
        }
    }

    /// Doubles the metadata region of a container for small chunks, if that leaves room for some.
    fn grow(&mut self, which: usize) -> bool {
        let open = &mut self.open[which];
        let (Some(builder), true) = (&mut open.builder, which == 1) else {
            return false;
        };
        let doubled = 2 * open.region_bytes;
        if doubled > CONTAINER_BYTES as usize / 2 {
            return false;
        }
        builder.fix_metadata_region(doubled);
        let first = &open.group.chunks[..1];
        if room_for(builder, first) < FRONT_BYTES_MIN {
            builder.fix_metadata_region(open.region_bytes);
            return false;
        }
        open.region_bytes = doubled;
        true
    }

    fn seal(&mut self, which: usize, is_last: bool) -> Result<()> {
        let Some(builder) = self.open[which].builder.take() else {
            return Ok(());
        };
        let sealed = builder.finish(is_last);
        self.store.put(&sealed.key, &sealed.bytes)?;
        let container = &mut self.containers[self.open[which].number as usize];
        container.filled_bytes = sealed.filled_bytes;
        container.object_bytes = sealed.bytes.len() as u64;
        Ok(())
    }

    /// Puts a version together through a cache of so many containers and compares every file with
    /// what it was; returns how many containers were read.
    ///
    /// # Errors
    /// When a container is damaged or a file differs.
    pub fn restore(&self, trace: &Trace, version: usize, containers_max: usize) -> Result<u64> {
        let store: Arc<dyn ObjectStore> = Arc::clone(&self.store) as _;
        let reader = ContainerReader::new(
            store,
            Arc::clone(&self.vault),
            Arc::clone(&self.fingerprinter),
            RemapSet::default(),
            METADATA_CACHE_BYTES,
        );
        let mut cache: LruContainers<u32, HashMap<[u8; 20], Vec<u8>>> =
            LruContainers::new(containers_max);
        let mut reads = 0;
        let mut chunks = trace.versions[version].chunks.iter();
        for (index, file) in trace.versions[version].files.iter().enumerate() {
            let mut hasher = blake3::Hasher::new();
            for &number in chunks.by_ref().take(file.chunks as usize) {
                let container = self.places[number as usize];
                if cache.get(container).is_none() {
                    interrupt::check()?;
                    cache.insert(container, self.load(&reader, container)?);
                    reads += 1;
                }
                let wanted = &trace.chunks[number as usize].fingerprint.0;
                let bytes = cache.get(container).and_then(|chunks| chunks.get(wanted));
                let bytes =
                    bytes.with_context(|| format!("container {container} lacks chunk {number}"))?;
                hasher.update(bytes);
            }
            ensure!(
                *hasher.finalize().as_bytes() == file.hash,
                "file {index} of version {} restored from {} differs",
                version + 1,
                self.scheme.name()
            );
        }
        Ok(reads)
    }

    /// The chunks of a container by their SHA-1, each verified.
    fn load(&self, reader: &ContainerReader, number: u32) -> Result<HashMap<[u8; 20], Vec<u8>>> {
        let loaded = reader.section(self.containers[number as usize].id)?;
        let section = &loaded.section;
        let groups: Vec<usize> = (0..section.groups.len()).collect();
        let mut chunks = HashMap::new();
        let mut failed = None;
        reader.read_groups(&loaded, &groups, &mut |index, plain| {
            let plain = match plain {
                Ok(plain) => plain,
                Err(error) => {
                    failed = Some(error);
                    return;
                }
            };
            let group = &section.groups[index];
            let mut start = 0;
            for chunk in group.first_chunk..group.first_chunk + group.chunk_count {
                let length = section.lengths[chunk as usize] as usize;
                let bytes = &plain[start..start + length];
                start += length;
                if let Err(error) = reader.verify_chunk(&loaded, chunk as usize, bytes) {
                    failed = Some(error);
                    return;
                }
                chunks.insert(
                    super::container_bytes::Fingerprint::of(bytes).0,
                    bytes.to_vec(),
                );
            }
        });
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(chunks),
        }
    }
}

impl ChunkSink for OwnStored {
    fn store(&mut self, chunk: &Chunk, bytes: &[u8]) -> Result<()> {
        let is_small = self.scheme == Scheme::Sacs && chunk.bytes < SMALL_BYTES;
        let which = usize::from(is_small);
        let fingerprint = self.fingerprinter.fingerprint(ContainerKind::Data, bytes);
        let number = self.places.len() as u32;
        self.places.push(u32::MAX);
        let group = &mut self.open[which].group;
        group.plain.extend_from_slice(bytes);
        group.chunks.push((fingerprint, chunk.bytes));
        group.numbers.push(number);
        if group.plain.len() >= GROUP_BYTES {
            self.flush_group(which)?;
        }
        Ok(())
    }

    fn end_version(&mut self) -> Result<()> {
        for which in 0..2 {
            self.flush_group(which)?;
            self.seal(which, true)?;
        }
        Ok(())
    }
}

fn bytes_of(chunks: &[(Fingerprint, u32)]) -> usize {
    chunks.iter().map(|&(_, length)| length as usize).sum()
}

fn room_for(builder: &ContainerBuilder, chunks: &[(Fingerprint, u32)]) -> usize {
    let entries = chunks.iter();
    let metadata = entries.map(|&(_, length)| ContainerBuilder::chunk_metadata_bytes(length));
    builder.group_room(chunks.len(), metadata.sum())
}

/// How many of these chunks, which take `stored_bytes` and don't fit, would: fewer than all.
fn fewer(builder: &ContainerBuilder, chunks: &[(Fingerprint, u32)], stored_bytes: usize) -> usize {
    let share = stored_bytes as f64 / bytes_of(chunks) as f64 * 1.02;
    let fits = |count: &usize| {
        let front = &chunks[..*count];
        bytes_of(front) as f64 * share <= room_for(builder, front) as f64
    };
    // What fits is a beginning of the counts: more chunks take more and leave less room.
    let counts: Vec<usize> = (1..chunks.len()).collect();
    counts.partition_point(fits)
}

#[cfg(test)]
mod tests {
    use super::super::container_bytes;
    use super::super::stored::Stored;
    use super::super::trace::{FileRecipe, Reading, Version, chunker, trace};
    use super::*;
    use crate::chunk::data::random_bytes;
    use crate::paper::GivenSet;
    use crate::progress::Progress;

    /// Files of many sizes, half noise, in two versions.
    fn set(root: &Path) -> GivenSet {
        for number in 0..60u64 {
            let length = 40 + (number * number * 97) as usize % 500_000;
            let mut bytes = random_bytes(number, length);
            for part in bytes.chunks_mut(64) {
                let length = part.len().min(24);
                part[..length].fill(7);
            }
            for version in ["v1", "v2"] {
                let path = root.join(version).join(format!("f{number:02}"));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &bytes).unwrap();
                bytes.splice(length / 2..length / 2, *b"something in between");
            }
        }
        GivenSet {
            name: "LNX".to_owned(),
            paths: vec![root.to_owned()],
        }
    }

    #[test]
    fn every_scheme_and_form_gives_back_what_went_in() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let set = set(directory.path());
        let mut own =
            Scheme::ALL.map(|scheme| OwnStored::new(scheme, 4096, scratch.path()).unwrap());
        let mut stored = Scheme::ALL
            .map(|scheme| Stored::new(scheme, entries_of(4096), scratch.path()).unwrap());
        let mut sinks: Vec<&mut dyn ChunkSink> = Vec::new();
        sinks.extend(own.iter_mut().map(|one| one as &mut dyn ChunkSink));
        sinks.extend(stored.iter_mut().map(|one| one as &mut dyn ChunkSink));
        let reading = Reading {
            size_bytes: 1 << 30,
            threads: 1,
        };
        let chunker = chunker(4096).unwrap();
        let mut progress = Progress::new(true);
        let (trace, _) = trace(&set, &chunker, reading, &mut sinks, &mut progress).unwrap();
        for one in &mut stored {
            one.close().unwrap();
        }
        for version in 0..2 {
            for one in &own {
                assert!(one.places.iter().all(|place| *place != u32::MAX));
                assert!(one.restore(&trace, version, 3).unwrap() > 0);
            }
            for one in &stored {
                assert!(one.restore(&trace, version, 3).unwrap() > 0);
            }
        }
        let [baseline, _, macs] = own.each_ref().map(OwnStored::filling_percent);
        assert!(macs > 95.0 && macs >= baseline, "{macs} {baseline}");
        let counts = stored.each_ref().map(|one| one.layout.containers().len());
        assert!(counts[2] <= counts[0], "{counts:?}");
    }

    /// Groups of both kinds are placed in turn, while a container of each is open.
    #[test]
    fn two_containers_are_open_at_a_time() {
        let scratch = tempfile::tempdir().unwrap();
        let mut own = OwnStored::new(Scheme::Sacs, 4096, scratch.path()).unwrap();
        let mut trace = Trace::default();
        let mut version = Version::default();
        for number in 0..3000u32 {
            let length = if number % 2 == 0 { 1000 } else { 4000 };
            let bytes = random_bytes(u64::from(number), length);
            let chunk = Chunk {
                fingerprint: container_bytes::Fingerprint::of(&bytes),
                bytes: length as u32,
            };
            own.store(&chunk, &bytes).unwrap();
            trace.chunks.push(chunk);
            version.chunks.push(number);
            version.files.push(FileRecipe {
                chunks: 1,
                bytes: length as u64,
                hash: *blake3::hash(&bytes).as_bytes(),
            });
        }
        own.end_version().unwrap();
        trace.versions.push(version);
        assert_eq!(own.restore(&trace, 0, 3).unwrap(), 3);
        assert!(own.containers.iter().all(|one| one.filled_bytes > 0));
        assert_ne!(own.places[0], own.places[1]);
    }
}

//! Containers of the paper's form on disk: written chunk by chunk, and versions put together from them
//! again.
//!
//! Enters: distinct chunks with their bytes. Leaves: containers of 4 MiB in a scratch file, which is
//! gone at the end; for each chunk the number of its container; on restoring, how many containers were
//! read, after every file was compared by its BLAKE3. Memory: the open containers when writing, the
//! cache when restoring.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::container_bytes::{Entry, Fingerprint, Form, encode, entries, region_bytes};
use super::layout::{CONTAINER_BYTES, Layout, Scheme, TAG_BYTES};
use super::trace::{Chunk, ChunkSink, Trace};
use crate::interrupt;
use crate::restore_caches::lru::LruContainers;

/// A container that takes more.
#[derive(Debug, Default)]
struct Open {
    chunks: Vec<(Fingerprint, u32)>,
    data: Vec<u8>,
}

/// All containers of a scheme.
#[derive(Debug)]
pub struct Stored {
    /// Its name.
    pub scheme: Scheme,
    /// Which containers there are.
    pub layout: Layout,
    /// For each chunk its container.
    pub places: Vec<u32>,
    open: HashMap<u32, Open>,
    /// Container n begins at n times the size of a container.
    file: File,
}

/// What reading metadata cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetadataRead {
    /// Reads.
    pub reads: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A container in memory.
struct Loaded {
    bytes: Vec<u8>,
    places: HashMap<Fingerprint, Entry>,
}

impl Stored {
    /// No container yet; they will lie in `scratch`.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn new(scheme: Scheme, entries: u32, scratch: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(scratch)
            .with_context(|| format!("making a scratch file in {}", scratch.display()))?;
        Ok(Self {
            scheme,
            layout: Layout::new(scheme, entries),
            places: Vec::new(),
            open: HashMap::new(),
            file,
        })
    }

    /// Writes what is still open.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn close(&mut self) -> Result<()> {
        self.layout.close();
        self.write_sealed()
    }

    fn write_sealed(&mut self) -> Result<()> {
        let numbers: Vec<u32> = self.open.keys().copied().collect();
        for number in numbers {
            if self.layout.is_open(number) {
                continue;
            }
            if let Some(open) = self.open.remove(&number) {
                let container = &self.layout.containers()[number as usize];
                let bytes = encode(container, &open.chunks, &open.data);
                let offset = u64::from(number) * u64::from(CONTAINER_BYTES);
                self.file
                    .write_all_at(&bytes, offset)
                    .context("writing a container to the scratch file")?;
            }
        }
        Ok(())
    }

    fn read(&self, number: u32, bytes: u32) -> Result<Vec<u8>> {
        let mut read = vec![0; bytes as usize];
        let offset = u64::from(number) * u64::from(CONTAINER_BYTES);
        self.file
            .read_exact_at(&mut read, offset)
            .with_context(|| format!("reading container {number}"))?;
        Ok(read)
    }

    fn form(&self, number: u32) -> Form {
        Form::of(self.layout.containers()[number as usize].region)
    }

    fn load(&self, number: u32) -> Result<Loaded> {
        let bytes = self.read(number, CONTAINER_BYTES)?;
        let entries = entries(self.form(number), &bytes)
            .with_context(|| format!("decoding container {number}"))?;
        let places = entries.into_iter().map(|entry| (entry.fingerprint, entry));
        Ok(Loaded {
            places: places.collect(),
            bytes,
        })
    }

    /// The length of the metadata region of a container with tag or head.
    pub fn metadata_bytes(&self, number: u32) -> u32 {
        self.layout.containers()[number as usize].region_bytes()
    }

    /// Reads the metadata of a container (§III-C): in one read when its length is known, otherwise the
    /// whole container. Returns its fingerprints, its length, and what that cost.
    ///
    /// # Errors
    /// When it can't be read or is damaged.
    pub fn read_metadata(
        &self,
        number: u32,
        known_bytes: Option<u32>,
    ) -> Result<(Vec<Fingerprint>, u32, MetadataRead)> {
        let asked = known_bytes.unwrap_or(CONTAINER_BYTES).max(TAG_BYTES);
        let bytes = self.read(number, asked)?;
        let form = self.form(number);
        let context = || format!("decoding the metadata of container {number}");
        let length = region_bytes(form, &bytes).with_context(context)?;
        let entries = entries(form, &bytes).with_context(context)?;
        let fingerprints = entries.iter().map(|entry| entry.fingerprint).collect();
        let read = MetadataRead {
            reads: 1,
            bytes: u64::from(asked),
        };
        Ok((fingerprints, length, read))
    }

    /// Puts a version together through a cache of so many containers and compares every file with
    /// what it was; returns how many containers were read.
    ///
    /// # Errors
    /// When a container can't be read or decoded, or a file differs.
    pub fn restore(&self, trace: &Trace, version: usize, containers_max: usize) -> Result<u64> {
        let mut cache: LruContainers<u32, Loaded> = LruContainers::new(containers_max);
        let mut reads = 0;
        let mut chunks = trace.versions[version].chunks.iter();
        for (index, file) in trace.versions[version].files.iter().enumerate() {
            let mut hasher = blake3::Hasher::new();
            for &number in chunks.by_ref().take(file.chunks as usize) {
                let container = self.places[number as usize];
                let chunk = &trace.chunks[number as usize];
                if cache.get(container).is_none() {
                    interrupt::check()?;
                    cache.insert(container, self.load(container)?);
                    reads += 1;
                }
                let found = cache
                    .get(container)
                    .and_then(|loaded| Some((loaded, loaded.places.get(&chunk.fingerprint)?)));
                let (loaded, entry) =
                    found.with_context(|| format!("container {container} lacks chunk {number}"))?;
                hasher.update(&loaded.bytes[entry.offset as usize..][..entry.bytes as usize]);
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
}

impl ChunkSink for Stored {
    fn store(&mut self, chunk: &Chunk, bytes: &[u8]) -> Result<()> {
        let number = self.layout.place(chunk.bytes);
        self.places.push(number);
        if !self.open.contains_key(&number) {
            self.write_sealed()?;
        }
        let open = self.open.entry(number).or_default();
        open.chunks.push((chunk.fingerprint, chunk.bytes));
        open.data.extend_from_slice(bytes);
        Ok(())
    }

    fn end_version(&mut self) -> Result<()> {
        Ok(())
    }
}

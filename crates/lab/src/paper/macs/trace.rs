//! Data sets as chunks: what every experiment starts from.
//!
//! Enters: a data set, whose versions are read, cut by AE and fingerprinted one after another. Leaves:
//! a [`Trace`]: the distinct chunks, numbered in the order in which they come, and for each version
//! its files as numbers of chunks. Distinct chunks are handed to [`ChunkSink`]s with their bytes, once.
//! Only one version lies in memory at a time.
//!
//! A version is an entry of the directory that is given, in byte order: a directory with all its
//! files, or a file. Of several paths, the entries of one follow those of the other. A file is cut on
//! its own, in path order; chunks are duplicates by SHA-1, within a version as well.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};

use super::container_bytes::Fingerprint;
use crate::dataset::manifest::MANIFEST_NAME;
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::names;
use crate::paper::loaded::LoadedSet;
use crate::paper::{GivenSet, MeasuredSet, dedup, threads};
use crate::progress::Progress;

/// No chunk is longer than so many times the expected size; the paper is silent.
const MAX_PER_EXPECTED: u32 = 8;

/// A distinct chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// Its length.
    pub bytes: u32,
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRecipe {
    /// How many chunks it has.
    pub chunks: u32,
    /// Its length.
    pub bytes: u64,
    /// The BLAKE3 of its bytes.
    pub hash: [u8; 32],
}

/// A backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Version {
    /// Its files.
    pub files: Vec<FileRecipe>,
    /// The numbers of their chunks, one file after another.
    pub chunks: Vec<u32>,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// A data set as chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The expected size of chunks.
    pub expected_bytes: u32,
    /// Distinct chunks, in the order in which they come.
    pub chunks: Vec<Chunk>,
    /// Backups, in order.
    pub versions: Vec<Version>,
}

impl Trace {
    /// Bytes of all versions.
    pub fn bytes(&self) -> u64 {
        self.versions.iter().map(|version| version.bytes).sum()
    }

    /// Bytes of distinct chunks.
    pub fn bytes_unique(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.bytes)).sum()
    }
}

/// What is done with the chunks that are stored.
pub trait ChunkSink {
    /// Takes the next distinct chunk with its bytes.
    fn store(&mut self, chunk: &Chunk, bytes: &[u8]) -> anyhow::Result<()>;

    /// A version ends here.
    fn end_version(&mut self) -> anyhow::Result<()>;
}

/// The chunker of the paper: AE, with a window of expected size / (e − 1).
///
/// # Errors
/// When there is none of that size.
pub fn chunker(expected_bytes: u32) -> Result<Chunker, Failure> {
    let parameters = Parameters {
        min_bytes: 1,
        avg_bytes: expected_bytes,
        max_bytes: MAX_PER_EXPECTED * expected_bytes,
        ..Parameters::new(Algorithm::Ae)
    };
    Chunker::new(&parameters, KeyMaterial::Unkeyed)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// The versions of a data set.
///
/// # Errors
/// When a directory can't be read, or nothing is in it.
pub fn versions(set: &GivenSet) -> Result<Vec<PathBuf>, Failure> {
    let mut versions = Vec::new();
    for path in &set.paths {
        if !path.is_dir() {
            versions.push(path.clone());
            continue;
        }
        let failed = |error: std::io::Error| {
            let shown = names::escaped(path);
            Failure::new(FAILED, format!("cannot read {shown}: {error}"))
        };
        let entries: Vec<_> = std::fs::read_dir(path)
            .and_then(|entries| entries.collect())
            .map_err(failed)?;
        let mut entries: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
        entries.retain(|entry| holds_bytes(entry));
        entries.sort();
        versions.extend(entries);
    }
    if versions.is_empty() {
        return Err(
            Failure::new(FAILED, format!("{} has no versions", set.name))
                .with_hint("give a directory with a directory, or a file, for each backup"),
        );
    }
    Ok(versions)
}

fn holds_bytes(path: &Path) -> bool {
    if path.file_name().is_some_and(|name| name == MANIFEST_NAME) || path.is_symlink() {
        return false;
    }
    if !path.is_dir() {
        return path
            .metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut entries = entries.map(|entry| entry.path());
    entries.any(|entry| holds_bytes(&entry))
}

/// How a data set is gone through.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// At most so many bytes of it are taken.
    pub size_bytes: u64,
    /// Threads that cut and fingerprint files.
    pub threads: usize,
}

/// Cuts a data set and hands distinct chunks on; says what was read.
///
/// # Errors
/// When nothing can be read, a sink fails, or somebody asked for a stop.
pub fn trace(
    set: &GivenSet,
    chunker: &Chunker,
    reading: Reading,
    sinks: &mut [&mut dyn ChunkSink],
    progress: &mut Progress,
) -> anyhow::Result<(Trace, MeasuredSet)> {
    let mut tracing = Tracing {
        chunker,
        reading,
        numbers: HashMap::new(),
        trace: Trace {
            expected_bytes: chunker.parameters().avg_bytes,
            ..Trace::default()
        },
    };
    let mut whole: Option<MeasuredSet> = None;
    let mut left = reading.size_bytes;
    for path in versions(set)? {
        interrupt::check()?;
        if left == 0 {
            if let Some(whole) = &mut whole {
                whole.is_sample = true;
            }
            break;
        }
        let given = GivenSet {
            name: set.name.clone(),
            paths: vec![path],
        };
        let (loaded, measured) = LoadedSet::load(&given, left)?;
        left -= loaded.bytes().min(left);
        tracing.version(&loaded, sinks)?;
        progress.advance(loaded.bytes(), &set.name);
        match &mut whole {
            Some(whole) => whole.add(measured),
            None => whole = Some(measured),
        }
    }
    let Some(mut whole) = whole else {
        anyhow::bail!("{} has no versions", set.name);
    };
    whole.data.paths = set
        .paths
        .iter()
        .map(|path| names::escaped(path).to_string())
        .collect();
    Ok((tracing.trace, whole))
}

struct Tracing<'a> {
    chunker: &'a Chunker,
    reading: Reading,
    numbers: HashMap<Fingerprint, u32>,
    trace: Trace,
}

impl Tracing<'_> {
    fn version(
        &mut self,
        loaded: &LoadedSet,
        sinks: &mut [&mut dyn ChunkSink],
    ) -> anyhow::Result<()> {
        let files = loaded.files();
        let cut = threads::run(self.reading.threads, 1, files.len(), |index| {
            let file = files[index];
            let lengths = dedup::lengths(self.chunker, file);
            let mut start = 0;
            let chunks: Vec<Chunk> = lengths
                .iter()
                .map(|&bytes| {
                    let chunk = &file[start..start + bytes as usize];
                    start += chunk.len();
                    let fingerprint = Fingerprint::of(chunk);
                    Chunk { fingerprint, bytes }
                })
                .collect();
            (chunks, *blake3::hash(file).as_bytes())
        });
        let mut version = Version::default();
        for (file, (chunks, hash)) in files.iter().zip(cut) {
            let mut start = 0;
            for chunk in &chunks {
                let bytes = &file[start..start + chunk.bytes as usize];
                start += bytes.len();
                let next = self.trace.chunks.len() as u32;
                let number = *self.numbers.entry(chunk.fingerprint).or_insert(next);
                if number == next {
                    self.trace.chunks.push(*chunk);
                    for sink in sinks.iter_mut() {
                        sink.store(chunk, bytes)?;
                    }
                }
                version.chunks.push(number);
            }
            version.bytes += file.len() as u64;
            version.files.push(FileRecipe {
                chunks: chunks.len() as u32,
                bytes: file.len() as u64,
                hash,
            });
        }
        for sink in sinks.iter_mut() {
            sink.end_version()?;
        }
        self.trace.versions.push(version);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;

    struct Kept(Vec<(Chunk, Vec<u8>)>, usize);

    impl ChunkSink for Kept {
        fn store(&mut self, chunk: &Chunk, bytes: &[u8]) -> anyhow::Result<()> {
            self.0.push((*chunk, bytes.to_vec()));
            Ok(())
        }
        fn end_version(&mut self) -> anyhow::Result<()> {
            self.1 += 1;
            Ok(())
        }
    }

    #[test]
    fn versions_are_cut_file_by_file_and_put_together_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let file = random_bytes(1, 100_000);
        for (name, bytes) in [
            ("v1/a", &file[..]),
            ("v1/sub/b", &file[..50_000]),
            ("v2/a", &file[10_000..]),
            ("v2/c", b"short"),
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), bytes).unwrap();
        }
        std::fs::create_dir(root.join("v3")).unwrap();
        std::fs::write(root.join(MANIFEST_NAME), "{}").unwrap();
        let set = GivenSet {
            name: "LNX".to_owned(),
            paths: vec![root.to_owned()],
        };
        let reading = Reading {
            size_bytes: 1 << 30,
            threads: 2,
        };
        let mut kept = Kept(Vec::new(), 0);
        let (trace, measured) = trace(
            &set,
            &chunker(4096).unwrap(),
            reading,
            &mut [&mut kept],
            &mut Progress::new(true),
        )
        .unwrap();
        assert_eq!((trace.versions.len(), kept.1), (2, 2));
        assert_eq!(
            (measured.data.files, measured.data.bytes),
            (4, trace.bytes())
        );
        assert!(trace.bytes_unique() < 130_000, "{}", trace.bytes_unique());
        assert_eq!(kept.0.len(), trace.chunks.len());
        for version in &trace.versions {
            let mut chunks = version.chunks.iter();
            for file in &version.files {
                let mut bytes = Vec::new();
                for number in chunks.by_ref().take(file.chunks as usize) {
                    let (chunk, stored) = &kept.0[*number as usize];
                    assert_eq!(Fingerprint::of(stored), chunk.fingerprint);
                    bytes.extend_from_slice(stored);
                }
                assert_eq!(*blake3::hash(&bytes).as_bytes(), file.hash);
            }
        }
    }
}

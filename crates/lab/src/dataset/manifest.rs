//! `dataset.json`: what was asked, what lies in the directory, what it was made with.
//!
//! A version is one file (`v01.tar`) or one tree (`v01`); each of its files stands there with
//! its path below the data set's directory, length and BLAKE3, in byte order of the paths.
//! `digest` is one BLAKE3 over (path, NUL, length as u64 little-endian, BLAKE3) of the files of
//! all versions in order, and is there only when the data set is whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// Its name.
pub const MANIFEST_NAME: &str = "dataset.json";

/// The layout of the file that this code knows.
const FORMAT: u32 = 1;

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Below the data set's directory, `/` between names.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Of its content, in hexadecimal.
    pub blake3: String,
}

/// One backup, release or image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// `v01`, with an ending when it is one file.
    pub name: String,
    /// What it is.
    pub label: String,
    /// All files.
    pub files: Vec<Entry>,
}

/// The whole list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Layout of this file.
    pub format: u32,
    /// Of the data set.
    pub name: String,
    /// About how many bytes were asked for.
    pub bytes_asked: u64,
    /// How many versions were asked for at most.
    pub versions_asked: usize,
    /// Start of all randomness.
    pub seed: u64,
    /// What else was asked for, by the names of options; nothing for most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Files of all versions.
    pub files: u64,
    /// Bytes of all versions.
    pub bytes: u64,
    /// Over everything; nothing while versions are missing.
    pub digest: Option<String>,
    /// Programs and packages, with their versions.
    pub tools: BTreeMap<String, String>,
    /// In order, without gaps.
    pub versions: Vec<Version>,
}

impl Manifest {
    /// Of a data set that has no version yet.
    #[must_use]
    pub fn new(name: &str, bytes_asked: u64, versions_asked: usize, seed: u64) -> Self {
        Self {
            format: FORMAT,
            name: name.to_owned(),
            bytes_asked,
            versions_asked,
            seed,
            options: BTreeMap::new(),
            files: 0,
            bytes: 0,
            digest: None,
            tools: BTreeMap::new(),
            versions: Vec::new(),
        }
    }

    /// That of a directory, if there is one.
    ///
    /// # Errors
    /// When it can't be read or is no manifest of ours.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(MANIFEST_NAME);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let manifest: Self = serde_json::from_slice(&text)
            .with_context(|| format!("{} is no list of a data set", path.display()))?;
        if manifest.format != FORMAT {
            bail!(
                "{} has format {}, this program knows {FORMAT}",
                path.display(),
                manifest.format
            );
        }
        Ok(Some(manifest))
    }

    /// Replaces that of a directory; durable when it returns.
    ///
    /// # Errors
    /// When it can't be written; the former one is still there then.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let temporary = directory.join(format!(".{MANIFEST_NAME}"));
        let writing = || format!("cannot write {}", temporary.display());
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let mut file = File::create(&temporary).with_context(writing)?;
        file.write_all(&text).with_context(writing)?;
        file.sync_all().with_context(writing)?;
        fs::rename(&temporary, directory.join(MANIFEST_NAME)).with_context(writing)?;
        File::open(directory)?.sync_all().with_context(writing)
    }

    /// Counts everything and sets the digest over it.
    pub fn sum_up(&mut self) {
        let mut hasher = blake3::Hasher::new();
        (self.files, self.bytes) = (0, 0);
        for entry in self.versions.iter().flat_map(|version| &version.files) {
            self.files += 1;
            self.bytes += entry.bytes;
            hash_entry(&mut hasher, &entry.path, entry);
        }
        self.digest = Some(hasher.finalize().to_string());
    }
}

impl Version {
    /// Lists what lies at `directory/name`.
    ///
    /// # Errors
    /// When it can't be read, or holds something that is neither file nor directory.
    pub fn scan(directory: &Path, name: &str, label: &str) -> Result<Self> {
        let mut paths = Vec::new();
        files_below(&directory.join(name), &mut paths)?;
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            files.push(Entry::of(directory, &path)?);
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self {
            name: name.to_owned(),
            label: label.to_owned(),
            files,
        })
    }

    /// Bytes of all its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.bytes).sum()
    }

    /// One digest over its files, whatever the version is called: as that of a data set, with
    /// the paths below the version.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for entry in &self.files {
            let path = entry.path.strip_prefix(&self.name).unwrap_or(&entry.path);
            hash_entry(&mut hasher, path.trim_start_matches('/'), entry);
        }
        hasher.finalize().to_string()
    }

    /// What of this does not lie in `directory`, in words; nothing when all does.
    ///
    /// # Errors
    /// When what lies there can't be read.
    pub fn damage(&self, directory: &Path) -> Result<Option<String>> {
        if !directory.join(&self.name).exists() {
            return Ok(Some("it is missing".to_owned()));
        }
        for entry in &self.files {
            match fs::metadata(directory.join(&entry.path)) {
                Ok(metadata) if metadata.len() == entry.bytes => {}
                Ok(metadata) => {
                    let (path, bytes, was) = (&entry.path, metadata.len(), entry.bytes);
                    return Ok(Some(format!("{path} has {bytes} bytes and had {was}")));
                }
                Err(error) => return Ok(Some(format!("{}: {error}", entry.path))),
            }
        }
        let there = Self::scan(directory, &self.name, &self.label)?;
        if there.files.len() != self.files.len() {
            let (now, was) = (there.files.len(), self.files.len());
            return Ok(Some(format!("it has {now} files and had {was}")));
        }
        let mut pairs = self.files.iter().zip(&there.files);
        let different = pairs.find(|(was, is)| was != is);
        Ok(different.map(|(was, _)| format!("the content of {} is another", was.path)))
    }
}

impl Entry {
    fn of(directory: &Path, path: &Path) -> Result<Self> {
        let reading = || format!("cannot read {}", path.display());
        let mut hasher = blake3::Hasher::new();
        let file = File::open(path).with_context(reading)?;
        hasher.update_reader(file).with_context(reading)?;
        let below = path.strip_prefix(directory)?;
        let Some(below) = below.to_str() else {
            bail!("the name of {} is not UTF-8", path.display());
        };
        Ok(Self {
            path: below.to_owned(),
            bytes: hasher.count(),
            blake3: hasher.finalize().to_string(),
        })
    }
}

fn hash_entry(hasher: &mut blake3::Hasher, path: &str, entry: &Entry) {
    hasher.update(path.as_bytes());
    hasher.update(&[0]);
    hasher.update(&entry.bytes.to_le_bytes());
    hasher.update(entry.blake3.as_bytes());
}

fn files_below(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let reading = || format!("cannot read {}", path.display());
    let kind = fs::symlink_metadata(path)
        .with_context(reading)?
        .file_type();
    if kind.is_dir() {
        for entry in fs::read_dir(path).with_context(reading)? {
            files_below(&entry?.path(), files)?;
        }
    } else if kind.is_file() {
        files.push(path.to_owned());
    } else {
        bail!("{} is neither file nor directory", path.display());
    }
    Ok(())
}

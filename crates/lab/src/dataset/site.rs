//! The directory that a data set is laid in: filled in, verified, never left half-built.
//!
//! A version is built below `.building` in that directory and renamed into place when it is
//! whole; then `dataset.json` is written anew with it. So at any moment the directory holds
//! whole versions only, of which all but the last one are listed. The versions' bytes are not
//! synced: after a power failure the next run finds by their digests what was lost.
//!
//! Opening verifies every listed version. One that is damaged is told, removed and built again,
//! and must become what it was ([`Sameness::Exact`]). A directory that holds something else is
//! refused, and so is one that another process builds in.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::edits::EditRequest;
use super::manifest::{MANIFEST_NAME, Manifest, Version};
use super::{Kind, Outcome, Request, Sameness};

/// Where versions are built before they are whole.
const SCRATCH_NAME: &str = ".building";

/// A data set that is being built.
pub struct Site {
    directory: PathBuf,
    kind: &'static Kind,
    manifest: Manifest,
    edits: EditRequest,
    /// What `dataset.json` said of versions that are to be built again.
    former: Vec<Option<Version>>,
    /// Indexed like `former`: versions that are there.
    present: Vec<Option<Version>>,
    verified: usize,
    built: usize,
    was_whole: bool,
    was_empty: bool,
    is_new_directory: bool,
    /// Held as long as this lives.
    _lock: File,
}

impl Site {
    /// Makes or takes over the directory and verifies what is there.
    pub(super) fn open(kind: &'static Kind, request: &Request) -> Result<Self> {
        let bytes = request.bytes.unwrap_or(kind.bytes_default);
        let versions = request.versions.unwrap_or(kind.versions_default);
        if versions < 2 {
            bail!("a data set has at least two versions");
        }
        if versions > 999 {
            bail!("{versions} versions are more than 999");
        }
        let is_new_directory = !request.directory.exists();
        fs::create_dir_all(&request.directory)
            .with_context(|| format!("cannot make {}", request.directory.display()))?;
        let directory = request.directory.canonicalize()?;
        let lock = lock(&directory)?;
        let mut asked = Manifest::new(kind.name, bytes, versions, request.seed);
        asked.options = options(&request.edits);
        let manifest = take_over(&directory, &asked)?;
        let count = manifest.versions.len();
        let mut site = Self {
            directory,
            kind,
            was_whole: manifest.digest.is_some(),
            was_empty: count == 0,
            manifest,
            edits: request.edits,
            former: vec![None; count],
            present: vec![None; count],
            verified: 0,
            built: 0,
            is_new_directory,
            _lock: lock,
        };
        site.verify()?;
        fs::create_dir_all(site.scratch())?;
        Ok(site)
    }

    fn verify(&mut self) -> Result<()> {
        for (index, version) in self.manifest.versions.iter().enumerate() {
            if let Some(damage) = version.damage(&self.directory)? {
                eprintln!("{}: {damage}; built again", version.name);
                remove(&self.directory.join(&version.name))?;
                self.former[index] = Some(version.clone());
            } else {
                self.present[index] = Some(version.clone());
                self.verified += 1;
            }
        }
        Ok(())
    }

    /// Nothing is to be built.
    pub(super) fn is_whole(&self) -> bool {
        self.was_whole && self.present.iter().all(Option::is_some)
    }

    /// About how many bytes all versions have together.
    #[must_use]
    pub fn bytes_asked(&self) -> u64 {
        self.manifest.bytes_asked
    }

    /// How many versions there are to be, at most where a data set has a limit of its own.
    #[must_use]
    pub fn versions_asked(&self) -> usize {
        self.manifest.versions_asked
    }

    /// Start of all randomness.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.manifest.seed
    }

    /// How versions are to differ, where the data set can be told.
    #[must_use]
    pub fn edits(&self) -> EditRequest {
        self.edits
    }

    /// Does the version with this number, from 1, have to be built?
    #[must_use]
    pub fn lacks(&self, number: usize) -> bool {
        self.present.get(number - 1).is_none_or(Option::is_none)
    }

    /// Forgets versions that are there, for data sets that can only be built from the start.
    ///
    /// # Errors
    /// When they can't be removed.
    pub fn start_over(&mut self) -> Result<()> {
        for version in self.present.drain(..).flatten() {
            eprintln!("{}: built again with the others", version.name);
            remove(&self.directory.join(&version.name))?;
        }
        self.former.clear();
        self.verified = 0;
        Ok(())
    }

    /// An empty directory for what is not whole yet, on the data set's file system.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.scratch().join(name);
        remove(&path)?;
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// Where versions are put.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where what is not whole yet lies.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.directory.join(SCRATCH_NAME)
    }

    /// Notes what the data set is made with.
    pub fn note_tool(&mut self, name: &str, version: &str) {
        let (name, version) = (name.to_owned(), version.trim().to_owned());
        self.manifest.tools.insert(name, version);
    }

    /// Puts a whole version into place: `source` becomes `v01` and `ending`.
    ///
    /// # Errors
    /// When it can't be moved, or differs from what it was before it was damaged.
    pub fn add(&mut self, number: usize, source: &Path, ending: &str, label: &str) -> Result<()> {
        let name = version_name(number, ending);
        let target = self.directory.join(&name);
        remove(&target)?;
        fs::rename(source, &target)
            .with_context(|| format!("cannot put {} into place", target.display()))?;
        let version = Version::scan(&self.directory, &name, label)?;
        let index = number - 1;
        if self.present.len() <= index {
            self.present.resize(index + 1, None);
            self.former.resize(index + 1, None);
        }
        if let Some(former) = &self.former[index]
            && former.files != version.files
        {
            if self.kind.sameness == Sameness::Exact {
                remove(&target)?;
                bail!("{name} was built again and differs from what {MANIFEST_NAME} says");
            }
            eprintln!("{name}: built again with other bytes");
        }
        eprintln!("{name}: {label}, {}", mebibytes(version.bytes()));
        if self.present[index].replace(version).is_some() {
            self.verified -= 1;
        }
        self.built += 1;
        self.list_present(false)
    }

    /// Writes `dataset.json` with the versions up to the first that is missing, and what was
    /// known of those behind it, so that the next run looks for them.
    fn list_present(&mut self, is_whole: bool) -> Result<()> {
        let pairs = self.present.iter().zip(&self.former);
        let known = pairs.map_while(|(now, former)| now.as_ref().or(former.as_ref()));
        self.manifest.versions = known.cloned().collect();
        self.manifest.sum_up();
        if !is_whole {
            self.manifest.digest = None;
        }
        self.manifest.write(&self.directory)
    }

    /// Says that all versions are there.
    pub(super) fn finish(mut self) -> Result<Outcome> {
        if let Some(missing) = self.present.iter().position(Option::is_none) {
            bail!("version {} was not built", missing + 1);
        }
        if !self.is_whole() || self.built > 0 {
            self.list_present(true)?;
        }
        Ok(Outcome {
            manifest: self.manifest.clone(),
            verified: self.verified,
            built: self.built,
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let mut outcome = remove(&self.scratch());
        if self.was_empty && self.built == 0 {
            outcome = outcome.and_then(|()| remove(&self.directory.join(MANIFEST_NAME)));
            if self.is_new_directory {
                outcome = outcome.and_then(|()| Ok(fs::remove_dir(&self.directory)?));
            }
        }
        if let Err(error) = outcome {
            eprintln!("cannot clean up {}: {error:#}", self.directory.display());
        }
    }
}

/// `v01`, with an ending.
#[must_use]
pub fn version_name(number: usize, ending: &str) -> String {
    format!("v{number:02}{ending}")
}

/// For lines on progress.
pub(super) fn mebibytes(bytes: u64) -> String {
    let tenths = (bytes * 10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Removes a file or a tree; nothing there is fine.
pub(super) fn remove(path: &Path) -> Result<()> {
    let outcome = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn lock(directory: &Path) -> Result<File> {
    let file = File::open(directory)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another process builds in {}", directory.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", directory.display()))
        }
    }
}

/// What was asked for beside size, versions and seed.
fn options(edits: &EditRequest) -> BTreeMap<String, String> {
    let all = [
        ("edits", edits.edits.map(|edits| edits.to_string())),
        ("edit-kind", edits.kind.map(|kind| kind.name().to_owned())),
        ("edit-range", edits.range_percent.map(|it| it.to_string())),
    ];
    let given = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect()
}

/// The list of what is there, which must have been made as asked now.
fn take_over(directory: &Path, asked: &Manifest) -> Result<Manifest> {
    let Some(there) = Manifest::read(directory)? else {
        let names: Vec<_> = fs::read_dir(directory)?.collect::<io::Result<_>>()?;
        let has_scratch = directory.join(SCRATCH_NAME).is_dir();
        let is_ours = |name: &str| {
            let ours = [SCRATCH_NAME, "v01", ".dataset.json"];
            has_scratch && ours.iter().any(|our| name.starts_with(our))
        };
        for entry in names {
            if !is_ours(&entry.file_name().to_string_lossy()) {
                bail!(
                    "{} is not empty and holds no {MANIFEST_NAME}: name another directory",
                    directory.display()
                );
            }
        }
        return Ok(asked.clone());
    };
    let request = |manifest: &Manifest| {
        let Manifest { name, seed, .. } = manifest;
        let (bytes, versions) = (manifest.bytes_asked, manifest.versions_asked);
        let options = manifest.options.iter();
        let options: String = options
            .map(|(name, value)| format!(", {name} {value}"))
            .collect();
        format!("{name}, {bytes} bytes, {versions} versions, seed {seed}{options}")
    };
    if request(&there) != request(asked) {
        bail!(
            "{} holds {}, and {} is asked for: name another directory",
            directory.display(),
            request(&there),
            request(asked)
        );
    }
    Ok(there)
}

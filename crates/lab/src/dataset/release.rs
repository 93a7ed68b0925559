//! Releases of projects whose whole source is published as a crate.
//!
//! Enters: a [`Release`], pinned by version and digest. Leaves: its tree, as upstream published
//! it, with plain permissions and one time. `cargo vendor` fetches it: whoever can build onefold
//! can have it, and nothing of it is built. What cargo itself adds or rewrites is left out.
//!
//! Where the releases have more bytes than are asked for, a share of the files is taken, the
//! same paths in every release: those whose path's BLAKE3 is low.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};

use super::manifest::Version;
use super::programs::{Program, output};
use super::site::{Site, remove};

const CARGO: Program = Program {
    name: "cargo",
    purpose: "to fetch releases from its registry",
    install: "https://rustup.rs",
};

/// Files at a crate's top that cargo writes anew; each of its versions in its own way.
const FOREIGN: [&str; 3] = ["Cargo.toml", "Cargo.toml.orig", "Cargo.lock"];

/// How often a download is tried.
const TRIES: u32 = 3;

/// A release of a project.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    /// The crate that carries it.
    pub package: &'static str,
    /// Of the crate; behind the plus that of upstream.
    pub version: &'static str,
    /// Directory inside of the crate, empty for all of it.
    pub directory: &'static str,
    /// Bytes of its files.
    pub bytes: u64,
    /// [`Version::digest`] of its tree.
    pub digest: &'static str,
}

/// Which files of each release are taken, of all 1000 parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u64);

impl Share {
    /// All files.
    pub const ALL: Self = Self(1000);

    /// What makes `total` bytes about `bytes`.
    pub fn of(bytes: u64, total: u64) -> Self {
        if total <= bytes {
            Self::ALL
        } else {
            Self((bytes * 1000 / total).max(1))
        }
    }
}

impl Release {
    /// The upstream version, or the crate's.
    pub fn upstream(&self) -> &'static str {
        let parts = self.version.split_once('+');
        parts.map_or(self.version, |(_, upstream)| upstream)
    }

    /// Fetches its tree, checks it, and gives it plain permissions and one time; it lies in the
    /// site's scratch directory until the next one is fetched.
    ///
    /// # Errors
    /// When cargo or the release can't be had, or is not what it was.
    pub fn fetch(&self, site: &mut Site, share: Share, seconds: u64) -> Result<PathBuf> {
        let fetching = || format!("fetching {} {}", self.package, self.version);
        site.note_tool("cargo", &CARGO.version("--version")?);
        let directory = site.fresh("fetch")?;
        let vendored = self.vendor(&directory).with_context(fetching)?;
        let tree = directory.join("tree");
        fs::rename(vendored.join(self.directory), &tree).with_context(fetching)?;
        remove(&directory.join("vendor"))?;
        if self.directory.is_empty() {
            drop_foreign(&tree)?;
        }
        let version = Version::scan(&directory, "tree", "")?;
        if version.digest() != self.digest {
            bail!(
                "{} {} is not what it was: {} bytes with digest {}",
                self.package,
                self.version,
                version.bytes(),
                version.digest()
            );
        }
        settle(&tree, share, seconds)?;
        Ok(tree)
    }

    /// Vendors the crate; returns where it lies.
    fn vendor(&self, directory: &Path) -> Result<PathBuf> {
        let version = self.version.split('+').next().unwrap_or(self.version);
        fs::create_dir_all(directory.join("src"))?;
        File::create(directory.join("src/lib.rs"))?;
        let manifest = format!(
            "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
             [workspace]\n\n[dependencies]\n{} = \"={version}\"\n",
            self.package
        );
        fs::write(directory.join("Cargo.toml"), manifest)?;
        for attempt in 1.. {
            let mut command = CARGO.command()?;
            command.args(["vendor", "--quiet", "--versioned-dirs", "vendor"]);
            match output(command.current_dir(directory)) {
                Err(error) if attempt == TRIES => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_secs(3)),
                Ok(_) => break,
            }
        }
        let prefix = format!("{}-{version}", self.package);
        for entry in fs::read_dir(directory.join("vendor"))? {
            let entry = entry?;
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('+')) {
                return Ok(entry.path());
            }
        }
        bail!("cargo vendor left no {prefix}");
    }
}

/// The releases to take, and the share of their files that makes them fit into `bytes` bytes:
/// the first `versions` ones, or, if that is all of them, those that fit, at least two.
///
/// # Errors
/// When there are not that many releases.
pub fn fitting(
    releases: &'static [Release],
    bytes: u64,
    versions: usize,
) -> Result<(&'static [Release], Share)> {
    if versions > releases.len() {
        bail!("there are {} releases, not {versions}", releases.len());
    }
    let mut total = 0;
    let fits = |release: &&Release| {
        total += release.bytes;
        total <= bytes
    };
    let count = if versions < releases.len() {
        versions
    } else {
        releases.iter().take_while(fits).count().clamp(2, versions)
    };
    let taken = &releases[..count];
    let total: u64 = taken.iter().map(|release| release.bytes).sum();
    Ok((taken, Share::of(bytes, total)))
}

/// Removes what is cargo's own.
fn drop_foreign(tree: &Path) -> Result<()> {
    for entry in fs::read_dir(tree)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_hidden = name.starts_with('.');
        let is_directory = entry.file_type()?.is_dir();
        let is_left_over = name.ends_with(".orig") || name.ends_with(".rej");
        if FOREIGN.contains(&&*name) || is_left_over || (is_hidden && !is_directory) {
            fs::remove_file(entry.path())?;
        } else if is_directory {
            drop_foreign(&entry.path())?;
        }
    }
    Ok(())
}

/// Drops what is not in the share, gives everything else plain permissions and one time.
///
/// # Errors
/// When something is neither file nor directory, or can't be changed.
pub fn settle(tree: &Path, share: Share, seconds: u64) -> Result<()> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let times = FileTimes::new().set_modified(time).set_accessed(time);
    settle_below(tree, tree, share, times)?;
    Ok(())
}

/// Innermost first. Returns whether anything is left.
fn settle_below(path: &Path, top: &Path, share: Share, times: FileTimes) -> Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        bail!("{} is a symlink, which no crate can hold", path.display());
    }
    let is_program = metadata.permissions().mode() & 0o100 != 0;
    if metadata.is_dir() {
        let mut is_empty = true;
        for entry in fs::read_dir(path)? {
            is_empty &= !settle_below(&entry?.path(), top, share, times)?;
        }
        if is_empty {
            fs::remove_dir(path)?;
            return Ok(false);
        }
    } else if share != Share::ALL {
        let below = path.strip_prefix(top)?.as_os_str().as_encoded_bytes();
        let hash = blake3::hash(below);
        let number = u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("32 bytes"));
        if number % 1000 >= share.0 {
            fs::remove_file(path)?;
            return Ok(false);
        }
    }
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    File::open(path)?.set_times(times)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn release(bytes: u64) -> Release {
        Release {
            package: "p",
            version: "1.0.0+2.0",
            directory: "",
            bytes,
            digest: "",
        }
    }

    static RELEASES: [Release; 4] = [release(10), release(20), release(30), release(40)];

    #[test]
    fn as_many_as_fit() {
        let fit = |bytes, versions| {
            let (taken, share) = fitting(&RELEASES, bytes, versions).unwrap();
            (taken.len(), share.0)
        };
        assert_eq!(fit(1000, 4), (4, 1000));
        assert_eq!(fit(1000, 3), (3, 1000));
        assert_eq!(fit(99, 4), (3, 1000));
        assert_eq!(fit(59, 4), (2, 1000));
        assert_eq!(fit(30, 4), (2, 1000));
        assert_eq!(fit(15, 4), (2, 500));
        assert_eq!(fit(0, 4), (2, 1));
        assert_eq!(fit(30, 3), (3, 500));
        assert!(fitting(&RELEASES, 1000, 5).is_err());
        assert_eq!(RELEASES[0].upstream(), "2.0");
    }
}

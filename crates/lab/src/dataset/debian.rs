//! Trees of Debian systems.
//!
//! Enters: names of packages, or of a release. Leaves: trees. A *bootstrapped* system is what
//! `debootstrap` installs (that needs root), less caches, logs, manuals and translations, as
//! images of containers and clouds leave them out. *Packages* are what `apt-get download`
//! fetches, unpacked by `dpkg-deb` and not configured: no root needed, and a function of the
//! packages' versions, which the archive moves on from time to time.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::programs::{Program, output};
use super::site::{Site, remove};

const APT_GET: Program = Program {
    name: "apt-get",
    purpose: "to fetch packages of a Debian system",
    install: "use Debian, or a container of it",
};

const DPKG_DEB: Program = Program {
    name: "dpkg-deb",
    purpose: "to unpack Debian packages",
    install: "use Debian, or a container of it",
};

const DEBOOTSTRAP: Program = Program {
    name: "debootstrap",
    purpose: "to install Debian systems",
    install: "apt-get install debootstrap",
};

/// Packages of all sizes, the smaller ones first. None depends on what is not here in order to
/// be unpacked.
pub const PACKAGES: [&str; 22] = [
    "hostname",
    "mawk",
    "base-files",
    "debianutils",
    "gzip",
    "login",
    "sed",
    "diffutils",
    "grep",
    "findutils",
    "tar",
    "util-linux",
    "dpkg",
    "bash",
    "perl-base",
    "openssl",
    "coreutils",
    "libc6",
    "libpython3-stdlib",
    "vim-common",
    "git",
    "cpp-12",
];

/// How many packages are fetched at once.
const TOGETHER: usize = 4;

/// Directories that a system needs no copy of.
const LEFT_OUT: [&str; 9] = [
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "etc/machine-id",
    "dev",
];

/// May systems be bootstrapped here?
#[must_use]
pub fn can_bootstrap() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    is_root && DEBOOTSTRAP.find().is_ok()
}

/// Installs a minimal system of a release with further packages, in the site's scratch
/// directory `name`.
///
/// # Errors
/// When debootstrap fails.
pub fn bootstrap(site: &mut Site, name: &str, release: &str, packages: &str) -> Result<PathBuf> {
    site.note_tool("debootstrap", &DEBOOTSTRAP.version("--version")?);
    let tree = site.fresh(name)?;
    eprintln!("{}", format!("debootstrap {release} {packages}").trim());
    let mut command = DEBOOTSTRAP.command()?;
    command.arg("--variant=minbase");
    if !packages.is_empty() {
        command.arg(format!("--include={packages}"));
    }
    output(command.arg(release).arg(&tree)).context("bootstrapping a system")?;
    for path in LEFT_OUT {
        remove(&tree.join(path))?;
    }
    for path in ["var/log", "var/cache/apt", "dev"] {
        fs::create_dir_all(tree.join(path))?;
    }
    Ok(tree)
}

/// Packages that were fetched and unpacked, each into a tree of its own.
#[derive(Default)]
pub struct Packages {
    trees: HashMap<&'static str, (PathBuf, u64)>,
}

impl Packages {
    /// The tree of a package and its bytes. Packages that stand together in [`PACKAGES`] are
    /// fetched together, because each start of apt-get costs a second.
    ///
    /// # Errors
    /// When a program is missing, or the package can't be had.
    pub fn tree(&mut self, site: &mut Site, name: &'static str) -> Result<(PathBuf, u64)> {
        if !self.trees.contains_key(name) {
            let mut together = PACKAGES.chunks(TOGETHER);
            let names = together.find(|names| names.contains(&name));
            self.fetch(site, names.unwrap_or(&[name]))?;
        }
        let known = self.trees.get(name);
        known
            .cloned()
            .with_context(|| format!("the package {name} did not come"))
    }

    fn fetch(&mut self, site: &mut Site, names: &[&'static str]) -> Result<()> {
        let fetching = || format!("fetching {} (was apt-get update run?)", names.join(", "));
        let archives = site.fresh("archives")?;
        let mut command = APT_GET.command()?;
        command.args(["-qq", "-o", "APT::Sandbox::User=root", "download"]);
        output(command.args(names).current_dir(&archives)).with_context(fetching)?;
        for entry in fs::read_dir(&archives)? {
            let archive = entry?.path();
            let file_name = archive.file_name().unwrap_or_default().to_string_lossy();
            let package = file_name.split('_').next().unwrap_or_default();
            let Some(name) = names.iter().find(|name| **name == package) else {
                continue;
            };
            let version = output(DPKG_DEB.command()?.arg("-f").arg(&archive).arg("Version"))?;
            site.note_tool(&format!("package {name}"), &version);
            let tree = site.fresh(&format!("package-{name}"))?;
            output(DPKG_DEB.command()?.arg("-x").arg(&archive).arg(&tree))
                .with_context(fetching)?;
            let bytes = used_bytes(&tree)?;
            self.trees.insert(name, (tree, bytes));
        }
        remove(&archives)
    }

    /// As many of [`PACKAGES`] as have this many bytes together, at least three.
    ///
    /// # Errors
    /// As [`Packages::tree`].
    pub fn fitting(&mut self, site: &mut Site, bytes: u64) -> Result<Vec<&'static str>> {
        let (mut total, mut names) = (0, Vec::new());
        for name in PACKAGES {
            let (_, size) = self.tree(site, name)?;
            total += size;
            if total > bytes && names.len() >= 3 {
                break;
            }
            names.push(name);
        }
        Ok(names)
    }
}

/// What a tree takes in a file system of 4 KiB blocks, about.
///
/// # Errors
/// When it can't be read.
pub fn used_bytes(path: &Path) -> Result<u64> {
    let metadata = fs::symlink_metadata(path)?;
    let mut bytes = 4096;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += used_bytes(&entry?.path())?;
        }
    } else if metadata.is_file() {
        bytes = metadata.len().next_multiple_of(4096) / metadata.nlink().max(1);
    }
    Ok(bytes)
}

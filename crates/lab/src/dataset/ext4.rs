//! ext4 images, made and changed without being mounted.
//!
//! Enters: trees, files, removals, in order. Leaves: an image that `e2fsck` finds clean. It is
//! made by `mke2fs` and written by `debugfs`, so that nobody has to be root and everything that
//! would differ between two runs (UUID, hash seed, times, order of names) is given. Blocks are
//! those that the library of e2fsprogs allocates: first fit, freed ones are taken again and keep
//! their old contents until then, as on any disk. What a mounted file system does beside, delayed
//! allocation and a journal, is missing.
//!
//! Devices, sockets and pipes of a tree are left out, and so are extended attributes.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::programs::{Program, output};

const MKE2FS: Program = Program {
    name: "mke2fs",
    purpose: "to make ext4 images",
    install: "apt-get install e2fsprogs",
};

const DEBUGFS: Program = Program {
    name: "debugfs",
    purpose: "to write into ext4 images",
    install: "apt-get install e2fsprogs",
};

const E2FSCK: Program = Program {
    name: "e2fsck",
    purpose: "to check ext4 images",
    install: "apt-get install e2fsprogs",
};

/// The time that e2fsprogs takes for now.
const CLOCK: &str = "E2FSPROGS_FAKE_TIME";

/// Changes to an image, gathered, then applied at once.
pub struct Image {
    path: PathBuf,
    script: String,
    /// Now, for the file system.
    seconds: u64,
    /// Whoever runs this; what belongs to them belongs to root inside.
    user: u32,
}

impl Image {
    /// Makes an empty file system of this many bytes.
    ///
    /// # Errors
    /// When mke2fs is not there or fails.
    pub fn create(path: &Path, bytes: u64, number: u64, seconds: u64) -> Result<Self> {
        let uuid = |kind: u64| format!("00000000-0000-4000-8{kind:03x}-{number:012x}");
        let mut command = MKE2FS.command()?;
        command.env(CLOCK, seconds.to_string());
        command.args([
            "-q", "-F", "-t", "ext4", "-b", "4096", "-i", "8192", "-m", "1",
        ]);
        command.args(["-O", "^has_journal,^resize_inode", "-U", &uuid(0)]);
        let features = format!(
            "hash_seed={},root_owner=0:0,lazy_itable_init=1,nodiscard",
            uuid(1)
        );
        command.args(["-E", &features]).arg(path);
        command.arg((bytes / 4096).to_string());
        output(&mut command)?;
        Self::open(path, seconds)
    }

    /// Takes an image that is there.
    ///
    /// # Errors
    /// When this process can't be asked who runs it.
    pub fn open(path: &Path, seconds: u64) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            script: String::new(),
            seconds,
            user: fs::metadata("/proc/self").map_or(0, |process| process.uid()),
        })
    }

    /// Which versions of programs make images.
    ///
    /// # Errors
    /// When one is not there.
    pub fn tools() -> Result<String> {
        E2FSCK.find()?;
        DEBUGFS.find()?;
        MKE2FS.version("-V")
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When its name can't be told to debugfs.
    pub fn directory(&mut self, inside: &str) -> Result<()> {
        let name = quoted(inside)?;
        writeln!(self.script, "mkdir {name}")?;
        Ok(())
    }

    /// Copies a file in.
    ///
    /// # Errors
    /// When its name can't be told to debugfs.
    pub fn write(&mut self, source: &Path, inside: &str) -> Result<()> {
        let name = quoted(inside)?;
        let source = quoted(&source.to_string_lossy())?;
        writeln!(self.script, "write {source} {name}")?;
        Ok(())
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When its name can't be told to debugfs.
    pub fn remove(&mut self, inside: &str) -> Result<()> {
        let name = quoted(inside)?;
        writeln!(self.script, "rm {name}")?;
        Ok(())
    }

    /// Copies a tree in, below `inside`; what is there already of directories stays, of files is
    /// replaced, as when a package is installed. `is_there` knows what is there (a path, and
    /// whether it is a directory) and learns what is new.
    ///
    /// # Errors
    /// When it can't be read, or a name not be told to debugfs.
    pub fn tree(
        &mut self,
        top: &Path,
        inside: &str,
        is_there: &mut HashMap<String, bool>,
    ) -> Result<()> {
        let mut links = HashMap::new();
        self.below(top, inside, is_there, &mut links)?;
        let mut links: Vec<_> = links.into_values().collect();
        links.sort();
        for (name, count) in links.into_iter().filter(|(_, count)| *count > 1) {
            writeln!(self.script, "sif {name} links_count {count}")?;
        }
        Ok(())
    }

    fn below(
        &mut self,
        directory: &Path,
        prefix: &str,
        is_there: &mut HashMap<String, bool>,
        links: &mut HashMap<(u64, u64), (String, u32)>,
    ) -> Result<()> {
        let reading = || format!("cannot read {}", directory.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).with_context(reading)? {
            names.push(entry.with_context(reading)?.file_name());
        }
        names.sort();
        for file_name in names {
            let path = directory.join(&file_name);
            let inside = format!("{prefix}/{}", file_name.to_string_lossy());
            let metadata = fs::symlink_metadata(&path).with_context(reading)?;
            let (kind, name) = (metadata.file_type(), quoted(&inside)?);
            let is_known = kind.is_dir() || kind.is_file() || kind.is_symlink();
            if !is_known {
                continue;
            }
            let was_directory = is_there.insert(inside.clone(), kind.is_dir());
            if was_directory == Some(false) {
                writeln!(self.script, "rm {name}")?;
            }
            if kind.is_dir() {
                if was_directory != Some(true) {
                    writeln!(self.script, "mkdir {name}")?;
                }
                self.below(&path, &inside, is_there, links)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&path)?;
                let target = quoted(&target.to_string_lossy())?;
                writeln!(self.script, "symlink {name} {target}")?;
                continue;
            } else if let Some((first, count)) = links.get_mut(&(metadata.dev(), metadata.ino())) {
                *count += 1;
                writeln!(self.script, "ln {first} {name}")?;
                continue;
            } else {
                links.insert((metadata.dev(), metadata.ino()), (name.clone(), 1));
                self.write(&path, &inside)?;
            }
            self.attributes(&name, &metadata)?;
        }
        Ok(())
    }

    fn attributes(&mut self, name: &str, metadata: &fs::Metadata) -> Result<()> {
        writeln!(self.script, "sif {name} mode 0{:o}", metadata.mode())?;
        for (field, owner) in [("uid", metadata.uid()), ("gid", metadata.gid())] {
            if owner != 0 && self.user == 0 {
                writeln!(self.script, "sif {name} {field} {owner}")?;
            }
        }
        // What was made just now, by whoever unpacked it, is as old as the image.
        let modified = u64::try_from(metadata.mtime()).unwrap_or(0);
        let modified = modified.min(self.seconds);
        writeln!(self.script, "sif {name} mtime @{modified}")?;
        Ok(())
    }

    /// Makes all changes and checks the file system.
    ///
    /// # Errors
    /// When there is no room, a program is missing, or the outcome is not clean.
    pub fn apply(mut self) -> Result<()> {
        self.script.push_str("quit\n");
        let script = self.path.with_extension("script");
        fs::write(&script, &self.script)?;
        let mut command = DEBUGFS.command()?;
        command.env(CLOCK, self.seconds.to_string());
        command.args(["-w", "-f"]).arg(&script).arg(&self.path);
        let done = command.output().context("cannot run debugfs")?;
        let complaints = String::from_utf8_lossy(&done.stderr).into_owned();
        // It ends well whatever happened; its first line is its version.
        let mut complaints = complaints
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with("debugfs "));
        if let Some(complaint) = complaints.next() {
            bail!("debugfs: {complaint}");
        }
        fs::remove_file(&script)?;
        let mut command = E2FSCK.command()?;
        output(command.args(["-f", "-n"]).arg(&self.path))?;
        Ok(())
    }
}

/// For debugfs, which knows no escapes within quotes.
fn quoted(name: &str) -> Result<String> {
    if name.contains(['"', '\n', '\r', '\u{fffd}']) {
        bail!("the name {name:?} can't be put into an image");
    }
    Ok(format!("\"{name}\""))
}

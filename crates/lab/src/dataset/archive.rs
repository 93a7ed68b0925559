//! Tars that are the same wherever they are written.
//!
//! Enters: names, contents or directories. Leaves: a GNU tar in which everything belongs to root
//! and has the time that it is given, in the order in which it is added; trees are added in the
//! byte order of names, each directory before what it holds.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tar::{Builder, EntryType, Header};

/// A tar that is being written.
pub struct Archive<W: Write> {
    builder: Builder<W>,
    /// Seconds since 1970 that all entries get.
    seconds: u64,
    /// Those that were added, so that trees can be laid over each other.
    directories: HashSet<String>,
}

impl Archive<BufWriter<File>> {
    /// Starts a tar in a new file.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn create(path: &Path, seconds: u64) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self::new(BufWriter::with_capacity(1 << 20, file), seconds))
    }
}

impl<W: Write> Archive<W> {
    /// Starts a tar.
    pub fn new(writer: W, seconds: u64) -> Self {
        let builder = Builder::new(writer);
        Self {
            builder,
            seconds,
            directories: HashSet::new(),
        }
    }

    /// From here on entries get another time.
    pub fn set_seconds(&mut self, seconds: u64) {
        self.seconds = seconds;
    }

    /// Adds a file of `bytes` bytes.
    ///
    /// # Errors
    /// When the content can't be read or the tar not be written.
    pub fn file(&mut self, name: &str, mode: u32, bytes: u64, content: impl Read) -> Result<()> {
        let mut header = self.header(EntryType::Regular, mode);
        header.set_size(bytes);
        let content = Exact {
            inner: content,
            left: bytes,
        };
        self.builder
            .append_data(&mut header, name, content)
            .with_context(|| format!("cannot pack {name}"))
    }

    /// Adds a directory, once.
    ///
    /// # Errors
    /// When the tar can't be written.
    pub fn directory(&mut self, name: &str, mode: u32) -> Result<()> {
        if !self.directories.insert(name.to_owned()) {
            return Ok(());
        }
        let mut header = self.header(EntryType::Directory, mode);
        self.builder
            .append_data(&mut header, format!("{name}/"), io::empty())
            .with_context(|| format!("cannot pack {name}"))
    }

    /// Adds what lies below a directory, under `prefix`; devices, sockets and pipes are left
    /// out. Modes are kept, set-user bits included.
    ///
    /// # Errors
    /// When it can't be read, or the tar not be written.
    pub fn tree(&mut self, directory: &Path, prefix: &str) -> Result<()> {
        let reading = || format!("cannot read {}", directory.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).with_context(reading)? {
            names.push(entry.with_context(reading)?.file_name());
        }
        names.sort();
        for name in names {
            let path = directory.join(&name);
            let Some(name) = name.to_str() else {
                bail!("the name of {} is not UTF-8", path.display());
            };
            let inside = match prefix {
                "" => name.to_owned(),
                _ => format!("{prefix}/{name}"),
            };
            let metadata = fs::symlink_metadata(&path).with_context(reading)?;
            let (kind, mode) = (metadata.file_type(), metadata.mode() & 0o7777);
            if kind.is_dir() {
                self.directory(&inside, mode)?;
                self.tree(&path, &inside)?;
            } else if kind.is_symlink() {
                let mut header = self.header(EntryType::Symlink, 0o777);
                self.builder
                    .append_link(&mut header, &inside, fs::read_link(&path)?)
                    .with_context(|| format!("cannot pack {}", path.display()))?;
            } else if kind.is_file() {
                self.file(&inside, mode, metadata.len(), File::open(&path)?)?;
            }
        }
        Ok(())
    }

    /// Writes the end.
    ///
    /// # Errors
    /// When the tar can't be written.
    pub fn finish(self) -> Result<W> {
        let mut writer = self.builder.into_inner()?;
        writer.flush()?;
        Ok(writer)
    }

    fn header(&self, kind: EntryType, mode: u32) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(self.seconds);
        header.set_size(0);
        header
    }
}

/// A reader that fails when it ends early, and is read no further than it should be: the header
/// with the size is already written.
struct Exact<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.inner.read(&mut buffer[..most])?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tar: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(tar);
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    #[test]
    fn trees_are_packed_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let long = "x".repeat(120);
        for name in ["b", "a.c", "a/z", "a/b", &format!("{long}/{long}")] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        std::os::unix::fs::symlink("a/z", directory.path().join("link")).unwrap();
        let pack = || {
            let mut archive = Archive::new(Vec::new(), 1_000_000_000);
            archive.tree(directory.path(), "top").unwrap();
            archive.finish().unwrap()
        };
        let tar = pack();
        let long = [format!("top/{long}/"), format!("top/{long}/{long}")];
        let expected = [
            "top/a/", "top/a/b", "top/a/z", "top/a.c", "top/b", "top/link",
        ];
        assert_eq!(names(&tar)[..6], expected);
        assert_eq!(names(&tar)[6..], long);
        assert_eq!(pack(), tar);
    }

    #[test]
    fn content_that_ends_early_fails() {
        let mut archive = Archive::new(Vec::new(), 0);
        let outcome = archive.file("a", 0o644, 4, &b"abc"[..]);
        assert!(outcome.is_err());
        archive.file("b", 0o644, 2, &b"abc"[..]).unwrap();
    }
}

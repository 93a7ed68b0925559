//! Trees of files: made, changed from version to version, and compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use testkit::generate::{Edits, edited, mixed, random_bytes, text};

/// A directory in memory, where there is one.
pub fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a directory for the test")
}

/// What a person would compare of everything below a directory: type, mode, owner, content,
/// time of modification, by path.
pub type Picture = BTreeMap<PathBuf, String>;

pub fn picture(root: &Path) -> Picture {
    let mut picture = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("metadata");
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            let name = path.strip_prefix(root).expect("below").to_owned();
            picture.insert(name, line(&path, &metadata));
        }
    }
    picture
}

fn line(path: &Path, metadata: &fs::Metadata) -> String {
    let file_type = metadata.file_type();
    let content = if metadata.is_dir() {
        "directory".to_owned()
    } else if metadata.is_symlink() {
        format!("-> {}", fs::read_link(path).expect("a link").display())
    } else if file_type.is_file() {
        let bytes = fs::read(path).expect("a file");
        format!("{} bytes {}", bytes.len(), blake3::hash(&bytes))
    } else if file_type.is_fifo() {
        "FIFO".to_owned()
    } else {
        format!("device {:x}", metadata.rdev())
    };
    format!(
        "{content} {:o} {}:{} {}.{:09}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.mtime(),
        metadata.mtime_nsec()
    )
}

/// What is not the same in two pictures: path, before, after.
pub fn differences<'a>(
    expected: &'a Picture,
    actual: &'a Picture,
) -> Vec<(&'a Path, Option<&'a str>, Option<&'a str>)> {
    let mut paths: Vec<&PathBuf> = expected.keys().chain(actual.keys()).collect();
    paths.sort();
    paths.dedup();
    let side = |picture: &'a Picture, path| picture.get(path).map(String::as_str);
    paths
        .into_iter()
        .map(|path| (path.as_path(), side(expected, path), side(actual, path)))
        .filter(|(_, before, after)| before != after)
        .collect()
}

/// A directory that is backed up in one version after the other.
pub struct Source {
    _place: TempDir,
    root: PathBuf,
}

/// Large files: name, bytes at first.
const LARGE: [(&str, usize); 3] = [
    ("noise", 90_000),
    ("deep/er/mixed", 120_000),
    ("text", 100_000),
];

/// Small files at first.
const SMALL: u64 = 24;

impl Source {
    /// Version 0: a few dozen files, some 350 KB.
    pub fn new() -> Self {
        let place = place();
        let root = place.path().join("source");
        fs::create_dir_all(root.join("deep/er")).expect("made");
        fs::create_dir_all(root.join("small")).expect("made");
        fs::create_dir(root.join("empty")).expect("made");
        let source = Self {
            _place: place,
            root,
        };
        source.write(LARGE[0].0, &random_bytes(1, LARGE[0].1));
        source.write(LARGE[1].0, &mixed(2, LARGE[1].1));
        source.write(LARGE[2].0, &text(3, LARGE[2].1));
        for number in 0..SMALL {
            source.write(&small(number), &text(100 + number, 97 * number as usize));
        }
        symlink("../text", source.root.join("deep/link")).expect("linked");
        fs::hard_link(source.root.join("text"), source.root.join("also text")).expect("linked");
        source
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.root.join(name), bytes).expect("written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.root.join(name)).expect("read")
    }

    pub fn picture(&self) -> Arc<Picture> {
        Arc::new(picture(&self.root))
    }

    /// Makes the next version of it: edits in large files, some small files changed, one new,
    /// one removed, and new noise that fills a container.
    pub fn advance(&self, version: u64) {
        for (name, _) in LARGE {
            let bytes = edited(&self.read(name), 1000 * version, &Edits::default());
            self.write(name, &bytes);
        }
        for number in (version % 5..SMALL).step_by(5) {
            if self.root.join(small(number)).exists() {
                let mut bytes = self.read(&small(number));
                bytes.extend_from_slice(format!("version {version}\n").as_bytes());
                self.write(&small(number), &bytes);
            }
        }
        let _ = fs::remove_file(self.root.join(small(7 * version)));
        self.write(
            &format!("new-{version}"),
            &random_bytes(5000 + version, 70_000),
        );
    }

    /// A version that differs in one small file.
    pub fn touch(&self, version: u64) {
        self.write("touched", &text(9000 + version, 300 + version as usize));
    }
}

fn small(number: u64) -> String {
    format!("small/{number:02}")
}

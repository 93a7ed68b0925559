//! What is cut: streams, each of them a file or random numbers, and what could not be taken.
//!
//! Enters: paths as they were given. Leaves: a [`DataSet`], its streams in the order of their
//! names, so that a measurement can be repeated. A directory is walked down; symlinks in it are
//! not followed, and what is no file is passed over, each with a notice. A path that was given is
//! what it leads to, and must be readable.

use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};

use crate::dataset::manifest::{MANIFEST_NAME, Manifest};
use crate::failure::{FAILED, Failure};
use crate::names;

/// Where the bytes of a stream come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Random numbers of this seed.
    Random(u64),
}

/// Bytes that are cut on their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Where they come from.
    pub source: Source,
    /// How many are taken.
    pub bytes: u64,
    /// The file has more, which are left out on purpose.
    pub is_sample: bool,
}

/// Something that happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The file.
    pub path: PathBuf,
    /// What happened.
    pub message: String,
    /// Whether bytes are missing because of it.
    pub is_error: bool,
}

/// What is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataSet {
    /// The streams, none of them empty.
    pub streams: Vec<Stream>,
    /// Files of no bytes, which have no chunks.
    pub empty_files: u64,
    /// Symlinks and special files.
    pub skipped: u64,
    /// What happened while looking for files.
    pub notices: Vec<Notice>,
}

impl DataSet {
    /// The files of these paths.
    ///
    /// # Errors
    /// When one of the paths is not there or can't be read, and when there is nothing to cut.
    pub fn of_paths(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut set = Self::default();
        for path in paths {
            set.add_given(path)?;
        }
        set.refuse_empty(paths)?;
        Ok(set)
    }

    /// One stream of random numbers.
    pub fn random(seed: u64, bytes: u64) -> Self {
        let stream = Stream {
            source: Source::Random(seed),
            bytes,
            is_sample: false,
        };
        Self {
            streams: vec![stream],
            ..Self::default()
        }
    }

    /// How many bytes all streams have.
    pub fn bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }

    /// Leaves only the first bytes, in the order of the streams.
    pub fn limit(&mut self, bytes: u64) {
        let mut left = bytes;
        self.streams.retain_mut(|stream| {
            if stream.bytes > left {
                stream.bytes = left;
                stream.is_sample = true;
            }
            left -= stream.bytes;
            stream.bytes > 0
        });
    }

    fn add_given(&mut self, path: &Path) -> Result<(), Failure> {
        let refuse = |error: std::io::Error| {
            Failure::new(
                FAILED,
                format!("cannot read {}: {error}", names::escaped(path)),
            )
            .with_hint("give files or directories that are there and that you may read")
        };
        let metadata = fs::metadata(path).map_err(refuse)?;
        if metadata.is_dir() {
            fs::read_dir(path).map_err(refuse)?;
            self.add_directory(path);
        } else if metadata.is_file() {
            File::open(path).map_err(refuse)?;
            self.add_file(path, &metadata);
        } else {
            self.skip(path, "neither a file nor a directory");
        }
        Ok(())
    }

    fn add_directory(&mut self, directory: &Path) {
        let entries: std::io::Result<Vec<_>> =
            fs::read_dir(directory).and_then(|entries| entries.collect());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.fail(directory, &error),
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => self.add_directory(&path),
                Ok(metadata) if metadata.is_file() => {
                    if is_manifest(directory, &path) {
                        self.skip(&path, "the list of a data set");
                    } else {
                        self.add_file(&path, &metadata);
                    }
                }
                Ok(metadata) if metadata.is_symlink() => self.skip(&path, "a symlink"),
                Ok(_) => self.skip(&path, "a special file"),
                Err(error) => self.fail(&path, &error),
            }
        }
    }

    fn add_file(&mut self, path: &Path, metadata: &Metadata) {
        if metadata.len() == 0 {
            self.empty_files += 1;
            return;
        }
        self.streams.push(Stream {
            source: Source::File(path.to_owned()),
            bytes: metadata.len(),
            is_sample: false,
        });
    }

    fn skip(&mut self, path: &Path, what: &str) {
        self.skipped += 1;
        self.notices.push(Notice {
            path: path.to_owned(),
            message: format!("left out: it is {what}"),
            is_error: false,
        });
    }

    fn fail(&mut self, path: &Path, error: &std::io::Error) {
        self.notices.push(Notice {
            path: path.to_owned(),
            message: format!("cannot be read: {error}"),
            is_error: true,
        });
    }

    fn refuse_empty(&self, paths: &[PathBuf]) -> Result<(), Failure> {
        if !self.streams.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = paths.iter().map(|path| names::escaped(path)).collect();
        let names = names.join(", ");
        let message = match self.empty_files {
            0 => format!("there is no file in {names}"),
            1 => format!("the only file in {names} is empty"),
            count => format!("all {count} files in {names} are empty"),
        };
        Err(Failure::new(FAILED, message).with_hint("give files that hold some bytes"))
    }
}

/// The file that a stream is, for a message.
pub fn name_of(source: &Source) -> PathBuf {
    match source {
        Source::File(path) => path.clone(),
        Source::Random(seed) => PathBuf::from(format!("random numbers of seed {seed}")),
    }
}

/// Random numbers: the output of BLAKE3 for the seed, from `offset` on.
pub fn fill_random(seed: u64, offset: u64, out: &mut [u8]) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut reader = hasher.finalize_xof();
    reader.set_position(offset);
    reader.fill(out);
}

/// Whether the file is what `onefold-lab dataset` writes beside its versions.
fn is_manifest(directory: &Path, path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == MANIFEST_NAME)
        && matches!(Manifest::read(directory), Ok(Some(_)))
}

/// The first random numbers of a seed.
#[cfg(test)]
pub fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill_random(seed, 0, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(set: &DataSet) -> Vec<String> {
        let name = |stream: &Stream| name_of(&stream.source).display().to_string();
        set.streams.iter().map(name).collect()
    }

    #[test]
    fn directories_are_walked_in_order_and_symlinks_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("b")).unwrap();
        for (name, contents) in [("b/z", "zz"), ("b/y", "yyy"), ("a", "a"), ("empty", "")] {
            fs::write(root.join(name), contents).unwrap();
        }
        symlink(root.join("a"), root.join("link")).unwrap();
        symlink(root, root.join("b/loop")).unwrap();
        let set = DataSet::of_paths(&[root.to_owned()]).unwrap();
        let expected = ["a", "b/y", "b/z"].map(|name| root.join(name).display().to_string());
        assert_eq!(names(&set), expected);
        assert_eq!((set.bytes(), set.empty_files, set.skipped), (6, 1, 2));
        assert_eq!(set.notices.len(), 2);
        let given = DataSet::of_paths(&[root.join("link"), root.join("a")]).unwrap();
        assert_eq!(given.bytes(), 2);
    }

    #[test]
    fn the_list_of_a_data_set_is_no_data_and_another_file_of_its_name_is() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::write(root.join("v01.tar"), "tar").unwrap();
        fs::create_dir(root.join("own")).unwrap();
        fs::write(root.join("own").join(MANIFEST_NAME), "{}").unwrap();
        Manifest::new("tar", 3, 1, 0).write(root).unwrap();
        let set = DataSet::of_paths(&[root.to_owned()]).unwrap();
        assert_eq!((set.bytes(), set.skipped), (5, 1));
    }

    #[test]
    fn nothing_to_cut_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        let message = |paths: &[PathBuf]| DataSet::of_paths(paths).unwrap_err().message;
        assert!(message(&[root.join("gone")]).contains("gone"));
        assert!(message(std::slice::from_ref(&root)).contains("no file"));
        fs::write(root.join("a"), "").unwrap();
        assert!(message(std::slice::from_ref(&root)).contains("only file"));
        fs::write(root.join("b"), "").unwrap();
        assert!(message(&[root]).contains("all 2 files"));
    }

    #[test]
    fn a_limit_leaves_the_beginning() {
        let mut set = DataSet::default();
        for bytes in [5, 10, 20] {
            let stream = DataSet::random(bytes, bytes).streams.remove(0);
            set.streams.push(stream);
        }
        set.limit(12);
        let left: Vec<_> = set
            .streams
            .iter()
            .map(|stream| (stream.bytes, stream.is_sample))
            .collect();
        assert_eq!(left, [(5, false), (7, true)]);
    }

    #[test]
    fn random_numbers_can_be_taken_in_pieces() {
        let whole = random_bytes(3, 1000);
        let mut piece = [0; 100];
        fill_random(3, 777, &mut piece);
        assert_eq!(piece[..], whole[777..877]);
        assert_ne!(random_bytes(4, 1000), whole);
    }
}

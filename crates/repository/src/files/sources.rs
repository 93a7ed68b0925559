//! The paths that a user gave, as one tree rooted at `/`.
//!
//! Paths are made absolute by their text alone: joined to the current directory, `.` and `..`
//! taken out. The last component is what it is, a symlink stays one; symlinks on the way to
//! it are followed when the walk gets there, because the user named them as directories.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::problem::{Action, FilesError, Problem};

/// The path that `given` means, without looking at the file system: absolute, no `.` or `..`.
#[must_use]
pub fn absolute_path(current_directory: &Path, given: &Path) -> PathBuf {
    let mut absolute = PathBuf::from("/");
    for component in current_directory.join(given).components() {
        match component {
            Component::Normal(name) => absolute.push(name),
            Component::ParentDir => {
                absolute.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    absolute
}

/// A number of a node in the tree of given paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourceNode(usize);

#[derive(Debug, Default)]
struct Node {
    /// Was this path itself given? Then everything below it is meant.
    given: bool,
    children: BTreeMap<OsString, SourceNode>,
}

/// Paths to back up, merged into one tree.
#[derive(Debug)]
pub struct Sources {
    paths: Vec<PathBuf>,
    nodes: Vec<Node>,
    missing: Vec<Problem>,
}

impl Sources {
    /// The sources that `given` means in `current_directory`. Duplicates are taken once, and
    /// paths inside of others only matter where the others would leave them out.
    ///
    /// # Errors
    /// When nothing is given, or nothing of it is there: most likely a misspelling. One missing
    /// path among others is a problem that the walk reports.
    pub fn new(given: &[PathBuf], current_directory: &Path) -> Result<Self, FilesError> {
        let mut sources = Self {
            paths: Vec::new(),
            nodes: vec![Node::default()],
            missing: Vec::new(),
        };
        let mut first_missing = None;
        let mut is_any_there = false;
        for given in given {
            let path = absolute_path(current_directory, given);
            let found = if given.as_os_str().is_empty() {
                Err(io::Error::new(io::ErrorKind::NotFound, "the path is empty"))
            } else {
                std::fs::symlink_metadata(&path).map(|_| ())
            };
            match found {
                Ok(()) => {
                    is_any_there = true;
                    sources.insert(&path);
                    if !sources.paths.contains(&path) {
                        sources.paths.push(path);
                    }
                }
                Err(error) if first_missing.is_none() => first_missing = Some((given, error)),
                Err(error) => sources.add_missing(given, error),
            }
        }
        match first_missing {
            None if sources.paths.is_empty() => Err(FilesError::NoPaths),
            Some((given, error)) if !is_any_there => Err(FilesError::NoSource {
                path: given.clone(),
                error,
            }),
            Some((given, error)) => {
                sources.add_missing(given, error);
                Ok(sources)
            }
            None => Ok(sources),
        }
    }

    /// The paths that are there: absolute, in the order given, each once.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn add_missing(&mut self, given: &Path, error: io::Error) {
        self.missing.push(Problem {
            path: given.to_owned(),
            what: Action::FindSource,
            error: error.into(),
        });
    }

    fn insert(&mut self, path: &Path) {
        let mut node = Self::ROOT;
        for component in path.components() {
            let Component::Normal(name) = component else {
                continue;
            };
            node = match self.child(node, name) {
                Some(child) => child,
                None => {
                    let child = SourceNode(self.nodes.len());
                    self.nodes.push(Node::default());
                    self.nodes[node.0].children.insert(name.to_owned(), child);
                    child
                }
            };
        }
        self.nodes[node.0].given = true;
    }

    /// The node of `/`.
    pub(super) const ROOT: SourceNode = SourceNode(0);

    /// The node below `node` of that name.
    pub(super) fn child(&self, node: SourceNode, name: &OsStr) -> Option<SourceNode> {
        self.nodes[node.0].children.get(name).copied()
    }

    /// Names below a node, in order.
    pub(super) fn names(&self, node: SourceNode) -> impl Iterator<Item = &OsString> {
        self.nodes[node.0].children.keys()
    }

    /// Was the path of this node given?
    pub(super) fn is_given(&self, node: SourceNode) -> bool {
        self.nodes[node.0].given
    }

    /// Were paths below this node given?
    pub(super) fn has_children(&self, node: SourceNode) -> bool {
        !self.nodes[node.0].children.is_empty()
    }

    /// The paths given that are not there; once.
    pub(super) fn take_missing(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_by_their_text() {
        for (given, expected) in [
            ("a", "/home/u/a"),
            ("./a/./b//c/", "/home/u/a/b/c"),
            ("../x", "/home/x"),
            ("../../../../x", "/x"),
            ("/a/b/../c", "/a/c"),
            ("/", "/"),
            (".", "/home/u"),
            ("..", "/home"),
        ] {
            let path = absolute_path(Path::new("/home/u"), Path::new(given));
            assert_eq!(path, Path::new(expected), "{given}");
        }
    }

    #[test]
    fn missing_paths() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("there");
        std::fs::write(&there, b"").unwrap();
        let (gone, empty) = (PathBuf::from("gone"), PathBuf::new());
        let new = |given: &[&PathBuf]| {
            let given: Vec<PathBuf> = given.iter().map(|&path| path.clone()).collect();
            Sources::new(&given, directory.path())
        };
        assert!(matches!(new(&[]), Err(FilesError::NoPaths)));
        assert!(matches!(new(&[&gone]), Err(FilesError::NoSource { path, .. }) if path == gone));
        assert!(matches!(new(&[&empty]), Err(FilesError::NoSource { .. })));
        assert!(matches!(
            new(&[&gone, &empty]),
            Err(FilesError::NoSource { .. })
        ));
        let mut sources = new(&[&gone, &there, &empty, &PathBuf::from("./there")]).unwrap();
        assert_eq!(sources.paths(), [there]);
        assert_eq!(sources.take_missing().len(), 2);
    }
}

//! The text files of the working tree, read once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directories that hold nothing of ours: built, fetched or found by fuzzing.
const SKIPPED: &[&str] = &[
    "target",
    ".git",
    "corpus",
    "artifacts",
    "coverage",
    "shared",
    "node_modules",
];

/// Endings of the files that rules look into.
const READ: &[&str] = &["rs", "md", "toml"];

/// A file and its text.
#[derive(Debug)]
pub struct TextFile {
    /// Its path from the root.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

impl TextFile {
    /// Does the path end so?
    pub fn has_extension(&self, extension: &str) -> bool {
        self.path
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Is it a test, so that rules about length do not hold?
    pub fn is_test(&self) -> bool {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let in_tests = self.path.iter().any(|part| part == "tests");
        in_tests || name == "tests" || name.ends_with("_tests")
    }
}

/// All files and directories.
#[derive(Debug, Default)]
pub struct Tree {
    files: Vec<TextFile>,
    paths: Vec<PathBuf>,
}

impl Tree {
    /// Reads what lies below `root`.
    ///
    /// # Errors
    /// When a file or directory can't be read.
    pub fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_directory(root, Path::new(""))?;
        tree.paths.sort();
        tree.files.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(tree)
    }

    /// A tree of these files, for tests of rules.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let path = PathBuf::from(path);
            tree.paths.extend(path.ancestors().map(Path::to_owned));
            let text = (*text).to_owned();
            tree.files.push(TextFile { path, text });
        }
        tree.paths.sort();
        tree
    }

    /// The files that rules look into, in the order of their paths.
    pub fn files(&self) -> &[TextFile] {
        &self.files
    }

    /// Rust files.
    pub fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.has_extension("rs"))
    }

    /// Is there a file or directory of that path from the root?
    pub fn has(&self, path: &Path) -> bool {
        self.paths
            .binary_search_by(|found| found.as_path().cmp(path))
            .is_ok()
    }

    /// Every file and directory, in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn add_directory(&mut self, root: &Path, directory: &Path) -> Result<()> {
        let absolute = root.join(directory);
        let reading = || format!("cannot read {}", absolute.display());
        for entry in fs::read_dir(&absolute).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let name = entry.file_name();
            let path = directory.join(&name);
            let kind = entry.file_type().with_context(reading)?;
            if kind.is_dir() {
                if !SKIPPED.iter().any(|skipped| name == *skipped) {
                    self.add_directory(root, &path)?;
                    self.paths.push(path);
                }
                continue;
            }
            let is_read = path
                .extension()
                .is_some_and(|found| READ.iter().any(|read| found == *read));
            if kind.is_file() && is_read {
                let text = fs::read_to_string(root.join(&path))
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let path = path.clone();
                self.files.push(TextFile { path, text });
            }
            self.paths.push(path);
        }
        Ok(())
    }
}

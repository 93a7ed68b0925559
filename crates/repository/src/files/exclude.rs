//! What a backup leaves out: patterns, caches, other file systems, ignored files.
//!
//! A path that was given is never left out, nor are the directories on the way to it; what lies
//! in a directory that is left out never comes up. A pattern with `!` brings back what
//! ignore files leave out, too.

use std::path::{Path, PathBuf};

use super::directory::OpenDirectory;
use super::ignore_files::{IgnoreFiles, read_rules};
use super::patterns::{PatternList, Patterns, Verdict};
use super::problem::FilesError;

/// The file that marks a directory as a cache (<https://bford.info/cachedir/>).
pub(super) const CACHE_TAG: &str = "CACHEDIR.TAG";

/// What the tag begins with.
const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Largest tag that is looked at.
const CACHE_TAG_BYTES_MAX: u64 = 1 << 20;

/// What a backup is to leave out. Nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilterOptions {
    /// Patterns; they win over those in files.
    pub patterns: Vec<String>,
    /// Patterns for which case does not count; they win over all others.
    pub patterns_ignoring_case: Vec<String>,
    /// Files with a pattern a line.
    pub pattern_files: Vec<PathBuf>,
    /// Of directories with a proper `CACHEDIR.TAG`, keep only the tag.
    pub caches: bool,
    /// Stay on the file systems of the given paths: a mount point is kept as an empty directory.
    pub one_file_system: bool,
    /// Obey `.gitignore` and `.onefoldignore` files on the way.
    pub ignore_files: bool,
}

/// Decides what a backup leaves out.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    patterns: Patterns,
    caches: bool,
    one_file_system: bool,
    ignore_files: bool,
}

impl Filter {
    /// The filter of these options.
    ///
    /// # Errors
    /// When a pattern does not parse or a file of patterns can't be read.
    pub fn new(options: &FilterOptions) -> Result<Self, FilesError> {
        let mut list = PatternList::new();
        for file in &options.pattern_files {
            list.add_file(file)?;
        }
        for pattern in &options.patterns {
            list.add(pattern, false)?;
        }
        for pattern in &options.patterns_ignoring_case {
            list.add(pattern, true)?;
        }
        Ok(Self {
            patterns: list.build()?,
            caches: options.caches,
            one_file_system: options.one_file_system,
            ignore_files: options.ignore_files,
        })
    }

    /// All patterns, those from files among them.
    #[must_use]
    pub fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// Is the walk to stay on one file system?
    pub(super) fn one_file_system(&self) -> bool {
        self.one_file_system
    }

    /// Are ignore files to be read?
    pub(super) fn ignore_files(&self) -> bool {
        self.ignore_files
    }

    /// Are the contents of this directory left out but for the tag? It is known to hold an entry
    /// of the tag's name.
    pub(super) fn is_cache(&self, directory: &OpenDirectory) -> Result<bool, FilesError> {
        let tag = read_rules(directory, CACHE_TAG, CACHE_TAG_BYTES_MAX)?;
        Ok(tag.is_some_and(|tag| tag.starts_with(CACHE_SIGNATURE)))
    }

    /// Do caches matter?
    pub(super) fn caches(&self) -> bool {
        self.caches
    }

    /// Is the entry at `path` left out, if it is a file, and if it is a directory?
    pub(super) fn is_left_out(&self, path: &Path, ignore: Option<&IgnoreFiles>) -> (bool, bool) {
        let decide = |verdict, is_directory| match (verdict, ignore) {
            (Verdict::Undecided, Some(ignore)) => {
                ignore.verdict(path, is_directory) == Verdict::Matched
            }
            (verdict, _) => verdict == Verdict::Matched,
        };
        let (as_file, as_directory) = self.patterns.verdicts(path);
        (decide(as_file, false), decide(as_directory, true))
    }
}

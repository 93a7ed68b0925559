//! Which paths a restore takes: the patterns that a backup excludes by, matched against whole
//! paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{RestoreError, RestoreOptions};
use crate::files::{PatternList, Patterns, Verdict};

/// What a restore does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Restore it, and what is below it unless that is excluded.
    Take,
    /// Not it, but something below it may be wanted.
    LookBelow,
    /// Neither it nor anything below.
    Skip,
}

/// The patterns of a restore.
pub(super) struct Selection {
    include: Option<Patterns>,
    exclude: Patterns,
}

impl Selection {
    pub fn new(options: &RestoreOptions) -> Result<Self, RestoreError> {
        Ok(Self {
            include: match options.include.is_empty() {
                true => None,
                false => Some(matcher(&options.include)?),
            },
            exclude: matcher(&options.exclude)?,
        })
    }

    /// What to do with `path` (beginning with `/`), whose parent was not skipped.
    pub fn choose(&self, path: &[u8], is_directory: bool) -> Choice {
        let path = Path::new(OsStr::from_bytes(path));
        if self.exclude.verdict(path, is_directory) == Verdict::Matched {
            return Choice::Skip;
        }
        match &self.include {
            None => Choice::Take,
            Some(include) => {
                if is_included(include, path, is_directory) {
                    Choice::Take
                } else if is_directory {
                    Choice::LookBelow
                } else {
                    Choice::Skip
                }
            }
        }
    }
}

/// Does a pattern name the path, or a directory above it?
fn is_included(include: &Patterns, path: &Path, is_directory: bool) -> bool {
    let matches = |path, is_directory| include.verdict(path, is_directory) == Verdict::Matched;
    matches(path, is_directory)
        || path
            .ancestors()
            .skip(1)
            .any(|directory| directory != Path::new("/") && matches(directory, true))
}

fn matcher(patterns: &[String]) -> Result<Patterns, RestoreError> {
    let mut list = PatternList::new();
    for pattern in patterns {
        list.add(pattern, false)?;
    }
    Ok(list.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(include: &[&str], exclude: &[&str], path: &str, is_directory: bool) -> Choice {
        let owned = |patterns: &[&str]| patterns.iter().map(|&p| p.to_owned()).collect();
        let options = RestoreOptions {
            include: owned(include),
            exclude: owned(exclude),
            ..RestoreOptions::default()
        };
        Selection::new(&options)
            .unwrap()
            .choose(path.as_bytes(), is_directory)
    }

    #[test]
    fn patterns_choose() {
        for (include, exclude, path, is_directory, expected) in [
            (&[][..], &[][..], "/a/b", false, Choice::Take),
            (&[], &["*.tmp"], "/a/b.tmp", false, Choice::Skip),
            (&[], &["/a"], "/a", true, Choice::Skip),
            (&[], &["/a"], "/b/a", true, Choice::Take),
            (&["*.jpg"], &[], "/a", true, Choice::LookBelow),
            (&["*.jpg"], &[], "/a/x.jpg", false, Choice::Take),
            (&["*.jpg"], &[], "/a/x.png", false, Choice::Skip),
            (&["/home/u"], &[], "/home", true, Choice::LookBelow),
            (&["/home/u"], &[], "/home/u/deep/file", false, Choice::Take),
            (&["/home/u"], &["*.o"], "/home/u/x.o", false, Choice::Skip),
        ] {
            assert_eq!(
                choose(include, exclude, path, is_directory),
                expected,
                "{path}"
            );
        }
    }
}

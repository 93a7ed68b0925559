//! Ignore files: `.gitignore` and `.onefoldignore` in the directories that are walked.
//!
//! Each counts for its directory and everything below it, by the rules of git. A file deeper in
//! the tree wins over one above it, and `.onefoldignore` over `.gitignore` beside it. Ignore
//! files above the given paths, and those of a user or a repository, are not looked for.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::retry_on_intr;

use super::directory::OpenDirectory;
use super::listing::Names;
use super::patterns::Verdict;
use super::problem::{Action, FilesError, Problem};
use super::status::Status;

/// The names of ignore files, the weakest first.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".onefoldignore"];

/// Largest ignore file.
const IGNORE_FILE_BYTES_MAX: u64 = 1 << 20;

/// The rules that count in a directory.
#[derive(Debug)]
pub(super) struct IgnoreFiles {
    above: Option<Arc<IgnoreFiles>>,
    /// Those of one directory, the weakest first.
    matchers: Vec<Gitignore>,
}

impl IgnoreFiles {
    /// The rules in a directory of those names, below the rules `above`. What can't be read or
    /// does not parse becomes a problem; the rest counts.
    pub fn read(
        above: Option<&Arc<Self>>,
        (directory, names): (&OpenDirectory, &Names),
        path: &Path,
        problems: &mut Vec<Problem>,
    ) -> Option<Arc<Self>> {
        let mut matchers = Vec::new();
        for name in IGNORE_FILES {
            if !names.contains(name.as_bytes()) {
                continue;
            }
            let mut failed = |error| {
                problems.push(Problem {
                    path: path.join(name),
                    what: Action::ReadRules,
                    error,
                });
            };
            match read_rules(directory, name, IGNORE_FILE_BYTES_MAX) {
                Ok(Some(text)) => matchers.push(parse(path, &text, &mut failed)),
                Ok(None) => {}
                Err(error) => failed(error),
            }
        }
        if matchers.is_empty() {
            return above.cloned();
        }
        let above = above.cloned();
        Some(Arc::new(Self { above, matchers }))
    }

    /// What the rules say about an absolute path.
    pub fn verdict(&self, path: &Path, is_directory: bool) -> Verdict {
        let mut rules = Some(self);
        while let Some(here) = rules {
            for matcher in here.matchers.iter().rev() {
                let verdict = matcher.matched(path, is_directory).into();
                if verdict != Verdict::Undecided {
                    return verdict;
                }
            }
            rules = here.above.as_deref();
        }
        Verdict::Undecided
    }
}

fn parse(path: &Path, text: &[u8], failed: &mut dyn FnMut(FilesError)) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for line in text.split(|&byte| byte == b'\n') {
        let added = match str::from_utf8(line) {
            Ok(line) => builder
                .add_line(None, line)
                .map_err(|error| error.to_string()),
            Err(_) => Err("it is not UTF-8".to_owned()),
        };
        if let Err(reason) = added {
            failed(FilesError::BadPattern {
                pattern: String::from_utf8_lossy(line).into_owned(),
                reason,
            });
        }
    }
    builder.build().unwrap_or_else(|error| {
        failed(FilesError::BadPattern {
            pattern: String::new(),
            reason: error.to_string(),
        });
        Gitignore::empty()
    })
}

/// The content of a file of rules in an open directory; nothing where it is not a regular file.
pub(super) fn read_rules(
    directory: &OpenDirectory,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, FilesError> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if Status::at(directory, name, false)?.file_type != FileType::RegularFile {
        return Ok(None);
    }
    let file = retry_on_intr(|| rustix::fs::openat(directory, name, flags, Mode::empty()))
        .map_err(FilesError::of_second_look)?;
    if Status::of(&file)?.file_type != FileType::RegularFile {
        return Ok(None);
    }
    let mut text = Vec::new();
    File::from(file).take(limit + 1).read_to_end(&mut text)?;
    if text.len() as u64 > limit {
        return Err(FilesError::BadRules { limit });
    }
    Ok(Some(text))
}

//! Patterns that say which paths are left out (or meant, at restore).
//!
//! | pattern | means |
//! |---|---|
//! | `*.o` | entries of such a name, anywhere |
//! | `build/out` | entries whose path ends so, anywhere |
//! | `/home/u/tmp` | this path, counted from the root |
//! | `a/**/b` | `**` is any number of directories |
//! | `cache/` | directories only |
//! | `!keep.o` | not these, whatever an earlier pattern said |
//!
//! `*` and `?` do not match `/`, `[…]` is a class, `{a,b}` an alternative, `\` takes the meaning
//! from the next character. Case counts unless said otherwise. The last pattern that matches
//! decides. A directory that is left out is not entered, so nothing in it can be brought back.
//! Names that are no text match by their bytes. The matching is that of `.gitignore` (crate
//! `ignore`), but for `build/out`, which there is counted from the root.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::problem::FilesError;

/// Largest file of patterns.
const PATTERN_FILE_BYTES_MAX: u64 = 16 << 20;

/// What patterns say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Undecided,
    /// A pattern matches.
    Matched,
    /// A pattern with `!` matches.
    Negated,
}

impl<T> From<Match<T>> for Verdict {
    fn from(found: Match<T>) -> Self {
        match found {
            Match::None => Verdict::Undecided,
            Match::Ignore(_) => Verdict::Matched,
            Match::Whitelist(_) => Verdict::Negated,
        }
    }
}

/// Patterns while they are gathered; later ones win.
#[derive(Debug)]
pub struct PatternList {
    builder: GitignoreBuilder,
    texts: Vec<String>,
    has_directory_patterns: bool,
}

impl Default for PatternList {
    fn default() -> Self {
        Self {
            builder: GitignoreBuilder::new("/"),
            texts: Vec::new(),
            has_directory_patterns: false,
        }
    }
}

impl PatternList {
    /// A list without patterns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pattern.
    ///
    /// # Errors
    /// When it does not parse.
    pub fn add(&mut self, pattern: &str, ignore_case: bool) -> Result<(), FilesError> {
        let bad = |reason: String| FilesError::BadPattern {
            pattern: pattern.to_owned(),
            reason,
        };
        let line = gitignore_line(pattern).ok_or_else(|| bad("it is empty".to_owned()))?;
        self.builder
            .case_insensitive(ignore_case)
            .and_then(|builder| builder.add_line(None, &line))
            .map_err(|error| bad(error.to_string()))?;
        self.has_directory_patterns |= line.ends_with('/');
        self.texts.push(pattern.to_owned());
        Ok(())
    }

    /// Adds the patterns in a file, one a line; blank lines and lines that begin with `#` are
    /// skipped, white space at the end of a line does not count.
    ///
    /// # Errors
    /// [`FilesError::PatternFile`] when the file can't be read or a line does not parse.
    pub fn add_file(&mut self, path: &Path) -> Result<(), FilesError> {
        self.add_lines_of(path)
            .map_err(|error| FilesError::PatternFile {
                path: path.to_owned(),
                error: Box::new(error),
            })
    }

    fn add_lines_of(&mut self, path: &Path) -> Result<(), FilesError> {
        let limit = PATTERN_FILE_BYTES_MAX;
        if std::fs::metadata(path)?.len() > limit {
            return Err(FilesError::BadRules { limit });
        }
        let text = std::fs::read(path)?;
        let text = str::from_utf8(&text).map_err(|_| FilesError::BadRules { limit })?;
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = match line.ends_with("\\ ") {
                true => line,
                false => line.trim_end(),
            };
            if !line.is_empty() && !line.starts_with('#') {
                self.add(line, false)?;
            }
        }
        Ok(())
    }

    /// The patterns, ready to match.
    ///
    /// # Errors
    /// When they are too large together.
    pub fn build(self) -> Result<Patterns, FilesError> {
        let matcher = self
            .builder
            .build()
            .map_err(|error| FilesError::BadPattern {
                pattern: self.texts.join(" "),
                reason: error.to_string(),
            })?;
        Ok(Patterns {
            matcher,
            texts: self.texts,
            has_directory_patterns: self.has_directory_patterns,
        })
    }
}

/// The line of a `.gitignore` at the root that means what `pattern` means here.
fn gitignore_line(pattern: &str) -> Option<String> {
    let (negation, body) = match pattern.strip_prefix('!') {
        Some(body) => ("!", body),
        None => ("", pattern),
    };
    let mut body = body;
    while let Some(rest) = body.strip_prefix("./") {
        body = rest;
    }
    let directory = if body.ends_with('/') { "/" } else { "" };
    let body = body.trim_end_matches('/');
    if body.is_empty() {
        return None;
    }
    let anywhere = if body.contains('/') && !body.starts_with('/') {
        "**/"
    } else if negation.is_empty() && body.starts_with('#') {
        "\\"
    } else {
        ""
    };
    Some(format!(
        "{negation}{anywhere}{}{directory}",
        with_spaces_escaped(body)
    ))
}

/// White space at the end of a pattern counts: it was not trimmed by whoever gave the pattern.
fn with_spaces_escaped(body: &str) -> String {
    let text = body.trim_end();
    let backslashes = text.len() - text.trim_end_matches('\\').len();
    let mut is_escaped = backslashes % 2 == 1;
    let mut escaped = text.to_owned();
    for space in body[text.len()..].chars() {
        if !is_escaped {
            escaped.push('\\');
        }
        escaped.push(space);
        is_escaped = false;
    }
    escaped
}

/// Patterns, ready to match.
#[derive(Debug, Clone)]
pub struct Patterns {
    matcher: Gitignore,
    texts: Vec<String>,
    has_directory_patterns: bool,
}

impl Default for Patterns {
    fn default() -> Self {
        Self {
            matcher: Gitignore::empty(),
            texts: Vec::new(),
            has_directory_patterns: false,
        }
    }
}

impl Patterns {
    /// The patterns, as they were given.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// What they say about an absolute path. They are to be asked about the directories above
    /// it first.
    #[must_use]
    pub fn verdict(&self, path: &Path, is_directory: bool) -> Verdict {
        self.matcher.matched(path, is_directory).into()
    }

    /// What they say about a path whose type is not known yet: as a file, and as a directory.
    pub(super) fn verdicts(&self, path: &Path) -> (Verdict, Verdict) {
        let as_file = self.verdict(path, false);
        if self.has_directory_patterns {
            (as_file, self.verdict(path, true))
        } else {
            (as_file, as_file)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn patterns(texts: &[&str]) -> Patterns {
        let mut list = PatternList::new();
        for text in texts {
            list.add(text, false).unwrap();
        }
        list.build().unwrap()
    }

    /// Patterns, a path (with `/` at its end for a directory), and whether it is left out.
    const TABLE: &[(&[&str], &str, bool)] = &[
        (&["*.o"], "/a/b/c.o", true),
        (&["*.o"], "/c.o", true),
        (&["*.o"], "/a.o/b", false),
        (&["*.o"], "/a/b.oo", false),
        (&["node_modules"], "/home/u/p/node_modules/", true),
        (&["node_modules"], "/home/u/p/node_modules2", false),
        (&["build/out"], "/x/build/out", true),
        (&["build/out"], "/build/out/", true),
        (&["build/out"], "/x/rebuild/out", false),
        (&["build/*.o"], "/x/build/a.o", true),
        (&["build/*.o"], "/x/build/y/a.o", false),
        (&["/home/u"], "/home/u/", true),
        (&["/home/u"], "/mnt/home/u/", false),
        (&["/home/*/tmp"], "/home/anna/tmp/", true),
        (&["/home/*/tmp"], "/home/anna/x/tmp/", false),
        (&["/etc"], "/etc", true),
        (&["/etc"], "/x/etc", false),
        (&["a/**/b"], "/x/a/b", true),
        (&["a/**/b"], "/x/a/y/z/b", true),
        (&["**/b"], "/a/b", true),
        (&["/a/**"], "/a/x/y", true),
        (&["/a/**"], "/a/", false),
        (&["/a/*"], "/a/x", true),
        (&["cache/"], "/x/cache/", true),
        (&["cache/"], "/x/cache", false),
        (&["x/cache/"], "/y/x/cache/", true),
        (&["x/cache/"], "/y/x/cache", false),
        (&["*.log", "!keep.log"], "/keep.log", false),
        (&["*.log", "!keep.log"], "/drop.log", true),
        (&["!keep.log", "*.log"], "/keep.log", true),
        (&["*.log", "!/var/keep.log"], "/var/keep.log", false),
        (&["*.log", "!/var/keep.log"], "/home/keep.log", true),
        (&["*.log", "!var/log"], "/x/var/log/", false),
        (&["[ab].txt"], "/a.txt", true),
        (&["[!ab].txt"], "/a.txt", false),
        (&["?.txt"], "/ab.txt", false),
        (&["{a,b}.txt"], "/b.txt", true),
        (&["A.txt"], "/a.txt", false),
        (&["./a/b"], "/x/a/b", true),
        (&["#draft"], "/x/#draft", true),
        (&["x/#draft"], "/x/#draft", true),
        (&["\\!important"], "/!important", true),
        (&["\\*"], "/*", true),
        (&["\\*"], "/a", false),
        (&["a "], "/a ", true),
        (&["a "], "/a", false),
        (&["a  /"], "/a  /", true),
        (&["a\\ "], "/a ", true),
        (&["a\\  "], "/a  ", true),
        (&["a\\\\ "], "/a\\ ", true),
        (&["a\\\\ "], "/a ", false),
        (&["über*"], "/x/überall", true),
        (&[".*"], "/.profile", true),
        (&["*"], "/.profile", true),
    ];

    #[test]
    fn table_of_patterns() {
        for &(texts, path, expected) in TABLE {
            let (path, is_directory) = match path.strip_suffix('/') {
                Some(path) => (path, true),
                None => (path, false),
            };
            let verdict = patterns(texts).verdict(Path::new(path), is_directory);
            let both = patterns(texts).verdicts(Path::new(path));
            assert_eq!(verdict, if is_directory { both.1 } else { both.0 });
            assert_eq!(verdict == Verdict::Matched, expected, "{texts:?} on {path}");
        }
    }

    #[test]
    fn bytes_and_case() {
        let path = Path::new(OsStr::from_bytes(b"/x/caf\xe9.o"));
        assert_eq!(patterns(&["*.o"]).verdict(path, false), Verdict::Matched);
        assert_eq!(patterns(&["*.c"]).verdict(path, false), Verdict::Undecided);
        let mut list = PatternList::new();
        list.add("*.JPG", true).unwrap();
        list.add("*.Raw", false).unwrap();
        let patterns = list.build().unwrap();
        assert_eq!(
            patterns.verdict(Path::new("/a.jpg"), false),
            Verdict::Matched
        );
        assert_eq!(
            patterns.verdict(Path::new("/a.raw"), false),
            Verdict::Undecided
        );
        assert_eq!(patterns.texts(), ["*.JPG", "*.Raw"]);
    }

    #[test]
    fn bad_patterns_are_refused() {
        for bad in ["", "/", "!", "!/", "./", "a[", "{a", "a\\"] {
            let mut list = PatternList::new();
            let added = list.add(bad, false);
            // An open class is taken by its letter, as git does.
            assert_eq!(added.is_err(), bad != "a[", "{bad}: {added:?}");
        }
    }

    #[test]
    fn files_of_patterns() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("patterns");
        std::fs::write(&file, "\u{feff}# comment\n\n*.o  \r\n  \nend\\ \n!a.o\n").unwrap();
        let mut list = PatternList::new();
        list.add_file(&file).unwrap();
        let patterns = list.build().unwrap();
        assert_eq!(patterns.texts(), ["*.o", "end\\ ", "!a.o"]);
        assert_eq!(patterns.verdict(Path::new("/b.o"), false), Verdict::Matched);
        assert_eq!(patterns.verdict(Path::new("/a.o"), false), Verdict::Negated);
        assert_eq!(
            patterns.verdict(Path::new("/end "), false),
            Verdict::Matched
        );

        std::fs::write(&file, b"*.o\n\xff\n").unwrap();
        for path in [
            &file,
            &directory.path().join("gone"),
            &directory.path().to_owned(),
        ] {
            let error = PatternList::new().add_file(path).unwrap_err();
            assert!(matches!(error, FilesError::PatternFile { .. }), "{error}");
        }
    }
}

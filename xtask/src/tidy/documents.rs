//! Rules about what documents point to.

use std::path::{Component, Path, PathBuf};

use super::Breach;
use super::tree::{TextFile, Tree};

/// Relative links in Markdown lead somewhere.
pub fn links(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files().iter().filter(|file| file.has_extension("md")) {
        for (line, text) in prose(file) {
            for target in link_targets(text) {
                let here = file.path.parent().unwrap_or(Path::new(""));
                if !leads_somewhere(tree, here, target) {
                    let what = format!("the link to '{target}' leads nowhere");
                    breaches.push(Breach::new(&file.path, line, what));
                }
            }
        }
    }
    breaches
}

/// Lines outside of fenced code.
fn prose(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    file.text
        .lines()
        .enumerate()
        .filter_map(move |(index, line)| {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                return None;
            }
            (!is_code).then_some((index + 1, line))
        })
}

/// What stands in the round brackets of `[text](target)`.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?;
        target.split_whitespace().next()
    })
}

fn leads_somewhere(tree: &Tree, here: &Path, target: &str) -> bool {
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
    let path = target.split('#').next().unwrap_or_default();
    if is_elsewhere || path.is_empty() {
        return true;
    }
    normal(&here.join(path)).is_some_and(|path| path.as_os_str().is_empty() || tree.has(&path))
}

/// The path without `.` and `..`, unless it leaves the tree.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(normal)
}

/// Paths in backticks in the map of the house are there.
pub fn architecture_paths(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let map = tree
        .files()
        .iter()
        .filter(|file| file.path == Path::new("ARCHITECTURE.md"));
    for file in map {
        for (line, text) in prose(file) {
            for quoted in text.split('`').skip(1).step_by(2) {
                if looks_like_path(tree, quoted) && !tree.has(Path::new(quoted)) {
                    let what = format!("'{quoted}' is not there");
                    breaches.push(Breach::new(&file.path, line, what));
                }
            }
        }
    }
    breaches
}

/// Is it the path of a file or directory of ours, not that of a stored object or a module?
fn looks_like_path(tree: &Tree, quoted: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let Some((first, _)) = quoted.split_once('/') else {
        return quoted.ends_with(".md") && quoted.chars().all(is_plain);
    };
    let has_ending = [".rs", ".md", ".toml"]
        .iter()
        .any(|ending| quoted.ends_with(ending));
    let is_below_top = !first.is_empty() && tree.has(Path::new(first));
    quoted.chars().all(is_plain) && (has_ending || is_below_top)
}

/// Documents that comments in code refer to are there.
pub fn paths_in_code(tree: &Tree) -> Vec<Breach> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let mut breaches = Vec::new();
    for file in tree.rust() {
        for (index, text) in file.text.lines().enumerate() {
            for word in text.split(|c: char| !is_part(c)) {
                let word = word.trim_end_matches('.');
                let is_document = word.starts_with("docs/") && word.ends_with(".md");
                if is_document && !tree.has(Path::new(word)) {
                    let what = format!("'{word}' is not there");
                    breaches.push(Breach::new(&file.path, index + 1, what));
                }
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(breaches: &[Breach]) -> Vec<usize> {
        breaches.iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn links_lead_somewhere() {
        let text = "\
[a](a.md) [b](../README.md#top) [web](https://example.org/x) [here](#here)
[gone](b.md)
```
[code](c.md)
```
[out](../../x) and [dir](../guide)";
        let tree = Tree::of(&[("guide/z.md", text), ("guide/a.md", ""), ("README.md", "")]);
        assert_eq!(lines_of(&links(&tree)), [2, 6]);
    }

    #[test]
    fn the_map_is_true() {
        let text = "\
`crates/a/src/lib.rs`, `crates/a`, `containers/xx/ID`, `a::b`, `README.md`
`crates/b/src/lib.rs`
`elsewhere/x.rs`
`NOTES.md`";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", text),
            ("README.md", ""),
            ("crates/a/src/lib.rs", ""),
        ]);
        assert_eq!(lines_of(&architecture_paths(&tree)), [2, 3, 4]);
    }

    #[test]
    fn code_refers_to_documents_that_are_there() {
        let gone = ["docs", "gone.md"].join("/");
        let text = format!("//! As docs/format/v1.md, §1, says.\n//! ({gone})");
        let tree = Tree::of(&[
            ("docs/format/v1.md", ""),
            ("crates/a/src/lib.rs", text.as_str()),
        ]);
        assert_eq!(lines_of(&paths_in_code(&tree)), [2]);
    }
}

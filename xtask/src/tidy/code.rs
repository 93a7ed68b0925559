//! Rules about Rust files.

use std::path::PathBuf;

use super::Breach;
use super::tree::{TextFile, Tree};

/// Crates that may hold unsafe code, and why.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[("crates/kernels", "intrinsics of the hot loops")];

/// Most lines in a file that is no test.
const LINES_MAX: usize = 600;

/// What a crate root says when it has no unsafe code.
const FORBID: &str = "#![forbid(unsafe_code)]";

/// Roots of libraries and programs forbid unsafe code, and nowhere else is any.
pub fn unsafe_code(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.rust().filter(|file| !may_be_unsafe(file)) {
        if is_crate_root(file) && !file.text.lines().any(|line| line.trim() == FORBID) {
            breaches.push(Breach::new(&file.path, 1, format!("{FORBID} is missing")));
        }
        for (line, text) in numbered(file) {
            if has_unsafe(text) {
                breaches.push(Breach::new(
                    &file.path,
                    line,
                    "unsafe code outside of kernels",
                ));
            }
        }
    }
    breaches
}

fn may_be_unsafe(file: &TextFile) -> bool {
    let mut allowed = UNSAFE_ALLOWED.iter();
    allowed.any(|(directory, _)| file.path.starts_with(directory))
}

fn is_crate_root(file: &TextFile) -> bool {
    let path = file.path.to_string_lossy();
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") || path.contains("src/bin/")
}

fn has_unsafe(line: &str) -> bool {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        if word.trim_start_matches(['(', '{', '=']) != "unsafe" {
            continue;
        }
        let next = words.clone().next().unwrap_or_default();
        if ["{", "fn", "impl", "extern", "trait"].contains(&next) {
            return true;
        }
    }
    false
}

/// No macro stands for work left undone or for a look that was taken once.
pub fn unfinished_code(tree: &Tree) -> Vec<Breach> {
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let mut breaches = Vec::new();
    for file in tree.rust() {
        for (line, text) in numbered(file) {
            for found in macros.iter().filter(|name| text.contains(name.as_str())) {
                breaches.push(Breach::new(
                    &file.path,
                    line,
                    format!("{found}…) is left over"),
                ));
            }
        }
    }
    breaches
}

/// A file holds one idea; one that is long seldom does.
pub fn file_length(tree: &Tree) -> Vec<Breach> {
    let long = long_files(tree).filter(|(file, _)| !file.is_test());
    long.map(|(file, lines)| {
        let what = format!("{lines} lines, at most {LINES_MAX} are usual: divide it");
        Breach::new(&file.path, lines, what)
    })
    .collect()
}

/// Tests that are long, which is no breach.
pub fn long_tests(tree: &Tree) -> Vec<(PathBuf, usize)> {
    let long = long_files(tree).filter(|(file, _)| file.is_test());
    long.map(|(file, lines)| (file.path.clone(), lines))
        .collect()
}

fn long_files(tree: &Tree) -> impl Iterator<Item = (&TextFile, usize)> {
    tree.rust()
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
}

/// A file opens with what it is for.
pub fn file_documentation(tree: &Tree) -> Vec<Breach> {
    tree.rust()
        .filter(|file| {
            let first = file.text.lines().find(|line| !line.starts_with("#!["));
            !first.is_some_and(|line| line.starts_with("//!"))
        })
        .map(|file| Breach::new(&file.path, 1, "it does not begin with //!"))
        .collect()
}

fn numbered(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    file.text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree::of(&[(path, text)])
    }

    #[test]
    fn unsafe_code_is_seen_where_it_is() {
        let block = format!("//! Doc.\nlet x = {} {{ 1 }};", "unsafe");
        assert_eq!(
            unsafe_code(&tree("crates/engine/src/a.rs", &block)).len(),
            1
        );
        assert_eq!(unsafe_code(&tree("crates/kernels/src/a.rs", &block)), []);
        let words = "//! Doc.\n// unsafe code is not here";
        assert_eq!(unsafe_code(&tree("crates/engine/src/a.rs", words)), []);
        assert_eq!(
            unsafe_code(&tree("crates/engine/src/lib.rs", words)).len(),
            1
        );
        let good = format!("{FORBID}\n//! Doc.");
        assert_eq!(unsafe_code(&tree("crates/engine/src/lib.rs", &good)), []);
    }

    #[test]
    fn unfinished_code_is_seen() {
        let text = format!("//! Doc.\nfn f() {{ {}!() }}", "todo");
        let breaches = unfinished_code(&tree("crates/engine/src/a.rs", &text));
        assert_eq!(breaches[0].line, 2);
    }

    #[test]
    fn only_tests_may_be_long() {
        let text = "//! Doc.\n".repeat(LINES_MAX + 1);
        for (path, breaches) in [
            ("crates/engine/src/a.rs", 1),
            ("crates/engine/src/a_tests.rs", 0),
            ("crates/engine/tests/a.rs", 0),
        ] {
            let tree = tree(path, &text);
            assert_eq!(file_length(&tree).len(), breaches, "{path}");
            assert_eq!(long_tests(&tree).len(), 1 - breaches, "{path}");
        }
    }

    #[test]
    fn files_open_with_documentation() {
        let path = "crates/engine/src/a.rs";
        assert_eq!(file_documentation(&tree(path, "#![no_main]\n//! Doc.")), []);
        assert_eq!(file_documentation(&tree(path, "use a;\n//! Doc.")).len(), 1);
        assert_eq!(file_documentation(&tree(path, "")).len(), 1);
    }
}

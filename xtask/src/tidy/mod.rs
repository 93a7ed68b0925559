//! `tidy`: the house rules of STYLE.md that a program can check.
//!
//! Enters: the files of the working tree. Leaves: one line for each breach, and failure when
//! there is one. Rules read text, not syntax: they are simple, and what they can't see is left
//! to review. An exception is a line in a table, with its reason.

mod code;
mod documents;
mod golden;
mod manifests;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use tree::Tree;

/// Something that a rule does not allow.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    file: PathBuf,
    /// Counted from one; zero for the file as a whole.
    line: usize,
    what: String,
}

impl Breach {
    fn new(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// A rule: its name and what it finds.
type Rule = (&'static str, fn(&Tree) -> Vec<Breach>);

const RULES: &[Rule] = &[
    ("unsafe code", code::unsafe_code),
    ("unfinished code", code::unfinished_code),
    ("file length", code::file_length),
    ("file documentation", code::file_documentation),
    ("links", documents::links),
    ("paths in ARCHITECTURE.md", documents::architecture_paths),
    ("documents named in code", documents::paths_in_code),
    ("golden samples", golden::tested),
    (
        "dependencies by way of the workspace",
        manifests::by_workspace,
    ),
    ("direction of dependencies", manifests::direction),
    ("lints", manifests::lints),
];

/// Checks every rule on the files below `root`.
///
/// # Errors
/// When a rule is broken, or the files can't be read.
pub fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    for (file, lines) in code::long_tests(&tree) {
        println!("note: {} has {lines} lines", file.display());
    }
    let mut count = 0;
    for (name, rule) in RULES {
        for breach in rule(&tree) {
            let Breach { file, line, what } = breach;
            println!("{}:{line}: {what} ({name})", file.display());
            count += 1;
        }
    }
    if count > 0 {
        bail!("{count} breaches of the house rules");
    }
    println!("{} files keep {} rules", tree.files().len(), RULES.len());
    Ok(())
}

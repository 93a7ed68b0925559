//! The rule about golden samples: every version of the stored format that lies in
//! `testdata/golden` is read by a test.

use std::collections::BTreeSet;
use std::path::Path;

use super::Breach;
use super::tree::Tree;

const GOLDEN: &str = "testdata/golden";

/// A version counts as tested when a test file names its directory.
pub fn tested(tree: &Tree) -> Vec<Breach> {
    versions(tree)
        .into_iter()
        .filter(|version| {
            let directory = format!("{GOLDEN}/{version}");
            let mut tests = tree.rust().filter(|file| file.is_test());
            !tests.any(|file| file.text.contains(&directory))
        })
        .map(|version| {
            let directory = Path::new(GOLDEN).join(&version);
            Breach::new(&directory, 0, "no test reads these samples")
        })
        .collect()
}

/// Directories of samples that are not empty.
fn versions(tree: &Tree) -> BTreeSet<String> {
    tree.paths()
        .iter()
        .filter_map(|path| path.strip_prefix(GOLDEN).ok())
        .filter(|below| below.iter().count() > 1)
        .filter_map(|below| Some(below.iter().next()?.to_string_lossy().into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_test() {
        let test = format!("//! Reads {GOLDEN}/v1.");
        let tree = Tree::of(&[
            ("testdata/golden/v1/plain/config", ""),
            ("testdata/golden/v2/plain/config", ""),
            ("crates/repository/tests/golden.rs", test.as_str()),
        ]);
        let breaches = tested(&tree);
        assert_eq!(breaches.len(), 1);
        assert_eq!(breaches[0].file, Path::new("testdata/golden/v2"));
    }
}

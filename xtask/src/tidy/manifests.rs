//! Rules about `Cargo.toml` files of the workspace's crates.
//!
//! Manifests are read line by line: one dependency is one line there, as this very rule asks.

use std::path::Path;

use super::Breach;
use super::tree::{TextFile, Tree};

/// The crates from the bottom up: a crate may use what stands on a lower level, and nothing
/// else of ours. Design: ARCHITECTURE.md, "The house".
const LEVELS: &[&[&str]] = &[
    &["kernels"],
    &["chunking"],
    &["engine"],
    &["testkit", "repository", "volume", "remote"],
    &["cli", "lab", "python"],
];

/// May be used by tests of any crate, and by nothing that is shipped.
const TESTS_ONLY: &str = "testkit";

/// A line that names a dependency.
struct Dependency<'a> {
    line: usize,
    is_for_tests: bool,
    name: &'a str,
    is_by_workspace: bool,
}

fn manifests(tree: &Tree) -> impl Iterator<Item = &TextFile> {
    let all = tree.files().iter();
    all.filter(|file| {
        let is_manifest = file
            .path
            .file_name()
            .is_some_and(|name| name == "Cargo.toml");
        is_manifest && (file.path.starts_with("crates") || file.path.starts_with("xtask"))
    })
}

fn dependencies(manifest: &TextFile) -> Vec<Dependency<'_>> {
    let mut dependencies = Vec::new();
    let mut section = "";
    for (index, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']);
            continue;
        }
        let is_dependency = section.ends_with("dependencies") && !line.is_empty();
        if !is_dependency || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let key = key.trim();
        let dotted = key.strip_suffix(".workspace");
        dependencies.push(Dependency {
            line: index + 1,
            is_for_tests: section.ends_with("dev-dependencies"),
            name: dotted.unwrap_or(key),
            is_by_workspace: dotted.is_some() || value.contains("workspace = true"),
        });
    }
    dependencies
}

/// Versions stand once, in the manifest of the workspace.
pub fn by_workspace(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for manifest in manifests(tree) {
        for dependency in dependencies(manifest) {
            if !dependency.is_by_workspace {
                let what = format!("'{}' is not taken from the workspace", dependency.name);
                breaches.push(Breach::new(&manifest.path, dependency.line, what));
            }
        }
    }
    breaches
}

/// Nothing points upward.
pub fn direction(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for manifest in manifests(tree).filter(|manifest| manifest.path.starts_with("crates")) {
        let name = crate_name(&manifest.path);
        let Some(level) = level_of(&name) else {
            let what = format!("crate '{name}' has no place in the table of levels");
            breaches.push(Breach::new(&manifest.path, 0, what));
            continue;
        };
        for dependency in dependencies(manifest) {
            let Some(used) = level_of(dependency.name) else {
                continue;
            };
            let is_tool_of_tests = dependency.name == TESTS_ONLY;
            let is_allowed = match (is_tool_of_tests, dependency.is_for_tests) {
                (true, is_for_tests) => is_for_tests,
                (false, _) => used < level,
            };
            if !is_allowed {
                let what = format!("'{name}' may not use '{}'", dependency.name);
                breaches.push(Breach::new(&manifest.path, dependency.line, what));
            }
        }
    }
    breaches
}

fn crate_name(manifest: &Path) -> String {
    let directory = manifest.parent().and_then(Path::file_name);
    directory.unwrap_or_default().to_string_lossy().into_owned()
}

fn level_of(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&name))
}

/// Every crate takes the lints of the workspace.
pub fn lints(tree: &Tree) -> Vec<Breach> {
    manifests(tree)
        .filter(|manifest| !manifest.text.contains("[lints]\nworkspace = true"))
        .map(|manifest| Breach::new(&manifest.path, 0, "the workspace's lints are not taken"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(path: &str, text: &str) -> [usize; 3] {
        let tree = Tree::of(&[(path, text)]);
        [by_workspace(&tree), direction(&tree), lints(&tree)].map(|breaches| breaches.len())
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn good_manifests_pass() {
        let text = format!(
            "{LINTS}[dependencies]\n# Why.\nkernels.workspace = true\n\
             zstd = {{ workspace = true, features = [\"x\"] }}\n\
             [dev-dependencies]\ntestkit.workspace = true\n\
             [[bin]]\nname = \"x\"\n"
        );
        assert_eq!(breaches("crates/engine/Cargo.toml", &text), [0, 0, 0]);
    }

    #[test]
    fn versions_of_ones_own_are_refused() {
        let text = format!("{LINTS}[dev-dependencies]\nzstd = \"1\"\n");
        assert_eq!(breaches("crates/engine/Cargo.toml", &text), [1, 0, 0]);
    }

    #[test]
    fn nothing_points_upward() {
        let using = |name: &str| format!("{LINTS}[dependencies]\n{name}.workspace = true\n");
        for name in ["repository", "engine", "testkit"] {
            assert_eq!(
                breaches("crates/engine/Cargo.toml", &using(name)),
                [0, 1, 0]
            );
        }
        assert_eq!(
            breaches("crates/volume/Cargo.toml", &using("repository")),
            [0, 1, 0]
        );
        assert_eq!(
            breaches("crates/cli/Cargo.toml", &using("engine")),
            [0, 0, 0]
        );
        assert_eq!(breaches("crates/unknown/Cargo.toml", ""), [0, 1, 1]);
    }
}

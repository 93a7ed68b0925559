//! Directory trees: put into place, read, counted, compared.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// One version of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `v01`, or `v01.rdb`.
    name: String,
    /// The tree or the file.
    pub path: PathBuf,
    /// What stands behind the number in the name of a file, with its dot; none for a tree.
    ending: Option<String>,
}

/// The versions in a data set: `v` and digits, in order; for files, with the same ending.
///
/// # Errors
/// When there are none, or of both kinds.
pub fn versions(dataset: &Path) -> Result<Vec<Version>> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(dataset)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type()?.is_file();
        let (stem, ending) = match name.split_once('.') {
            Some((stem, ending)) if is_file => (stem, Some(format!(".{ending}"))),
            None if !is_file => (name.as_str(), None),
            _ => continue,
        };
        let digits = stem.strip_prefix('v');
        let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) else {
            continue;
        };
        let path = entry.path();
        let version = Version { name, path, ending };
        versions.push((number, version));
    }
    versions.sort_by_key(|(number, _)| *number);
    let versions: Vec<Version> = versions.into_iter().map(|(_, version)| version).collect();
    let Some(first) = versions.first() else {
        bail!("no versions v01 … vNN in {}", dataset.display());
    };
    if versions
        .iter()
        .any(|version| version.ending != first.ending)
    {
        bail!("versions of several kinds in {}", dataset.display());
    }
    Ok(versions)
}

/// Makes `tree` hold a fresh copy of the versions: of one, what is in it, or the file under a
/// name that is the same for all; of several, all below their names.
///
/// Beside files lies another, `newest`, that was made after them: borg reads again what is no
/// older than the newest file of a backup, which would be all there is.
///
/// # Errors
/// When copying fails.
pub fn put_into_place(versions: &[Version], is_batch: bool, tree: &Path) -> Result<()> {
    let next = tree.with_extension("next");
    let is_tree = versions[0].ending.is_none();
    if is_batch || !is_tree {
        fs::create_dir(&next)?;
    }
    for version in versions {
        let to = match &version.ending {
            _ if is_batch => next.join(&version.name),
            Some(ending) => next.join(format!("version{ending}")),
            None => next.clone(),
        };
        copy(&version.path, &to)?;
    }
    if !is_tree {
        // Later by the clock of file systems, which may stand still for some milliseconds.
        thread::sleep(Duration::from_millis(50));
        fs::write(
            next.join("newest"),
            versions[versions.len() - 1].name.as_bytes(),
        )?;
    }
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    fs::rename(&next, tree)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if !status.success() {
        bail!("cannot copy {}", from.display());
    }
    Ok(())
}

/// Writes out dirty pages, then reads all files of a tree, so that they are in memory.
///
/// # Errors
/// When one can't be read.
pub fn warm(tree: &Path) -> Result<()> {
    write_out()?;
    for path in below(tree)? {
        if fs::symlink_metadata(&path)?.is_file() {
            io::copy(&mut File::open(&path)?, &mut io::sink())?;
        }
    }
    Ok(())
}

/// Writes out dirty pages.
///
/// # Errors
/// When `sync` can't be run.
pub fn write_out() -> Result<()> {
    Command::new("sync").status().context("cannot run sync")?;
    Ok(())
}

/// How many files lie below `root`, or are it, and their bytes.
///
/// # Errors
/// When a directory can't be read.
pub fn files_and_bytes(root: &Path) -> Result<(u64, u64)> {
    if root.is_file() {
        return Ok((1, root.metadata()?.len()));
    }
    let (mut files, mut bytes) = (0, 0);
    for path in below(root)? {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_file() {
            files += 1;
            bytes += metadata.len();
        }
    }
    Ok((files, bytes))
}

/// The first thing in which two trees differ: names, types, permissions, modification times to
/// the second, targets of links, contents.
///
/// # Errors
/// When one can't be read.
pub fn difference(left: &Path, right: &Path) -> Result<Option<String>> {
    let (left_facts, right_facts) = (facts(left)?, facts(right)?);
    for (path, fact) in &left_facts {
        let other = right_facts.get(path);
        if other != Some(fact) {
            let other = other.map_or("not there", String::as_str);
            return Ok(Some(format!("{}: {fact}; {other}", path.display())));
        }
        let original = left.join(path);
        if fs::symlink_metadata(&original)?.is_file()
            && fs::read(&original)? != fs::read(right.join(path))?
        {
            return Ok(Some(format!("{}: other content", path.display())));
        }
    }
    let mut added = right_facts
        .keys()
        .filter(|path| !left_facts.contains_key(*path));
    Ok(added
        .next()
        .map(|path| format!("{}: not in the original", path.display())))
}

/// What a person would compare of everything below `root`, but for contents.
fn facts(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let mut facts = BTreeMap::new();
    for path in below(root)? {
        let metadata = fs::symlink_metadata(&path)?;
        let fact = if metadata.is_symlink() {
            format!("link to {}", fs::read_link(&path)?.display())
        } else {
            let length = if metadata.is_dir() { 0 } else { metadata.len() };
            format!(
                "mode {:o}, {length} bytes, time {}",
                metadata.mode(),
                metadata.mtime()
            )
        };
        facts.insert(path.strip_prefix(root)?.to_owned(), fact);
    }
    Ok(facts)
}

/// All entries below a directory.
fn below(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let reading = || format!("cannot read {}", directory.display());
        for entry in fs::read_dir(&directory).with_context(reading)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of this test's own.
    fn scratch(name: &str) -> PathBuf {
        let name = format!("onefold-compare-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn names(versions: &[Version]) -> Vec<&str> {
        versions
            .iter()
            .map(|version| version.name.as_str())
            .collect()
    }

    #[test]
    fn files_follow_each_other_at_one_path() {
        let root = scratch("files");
        for name in ["v2.rdb", "v10.rdb", "v1.rdb", "dataset.json", "view.rdb"] {
            fs::write(root.join(name), name).unwrap();
        }
        fs::create_dir(root.join("other")).unwrap();
        let versions = versions(&root).unwrap();
        assert_eq!(names(&versions), ["v1.rdb", "v2.rdb", "v10.rdb"]);
        let tree = root.join("tree");
        for version in &versions {
            put_into_place(std::slice::from_ref(version), false, &tree).unwrap();
            assert_eq!(
                fs::read(tree.join("version.rdb")).unwrap(),
                version.name.as_bytes()
            );
            assert_eq!(files_and_bytes(&tree).unwrap().0, 2);
        }
        put_into_place(&versions, true, &tree).unwrap();
        assert_eq!(files_and_bytes(&tree).unwrap().0, 4);
        assert_eq!(files_and_bytes(&versions[0].path).unwrap(), (1, 6));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn trees_follow_each_other_at_one_path() {
        let root = scratch("trees");
        for name in ["v01", "v02"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join(name), name).unwrap();
        }
        let found = versions(&root).unwrap();
        assert_eq!(names(&found), ["v01", "v02"]);
        let tree = root.join("tree");
        put_into_place(&found[..1], false, &tree).unwrap();
        put_into_place(&found[1..], false, &tree).unwrap();
        assert!(tree.join("v02").is_file() && !tree.join("v01").exists());
        assert_eq!(difference(&tree, &root.join("v02")).unwrap(), None);
        put_into_place(&found, true, &tree).unwrap();
        assert!(tree.join("v01/v01").is_file() && tree.join("v02/v02").is_file());
        fs::write(root.join("v03.img"), "").unwrap();
        assert!(versions(&root).is_err());
        fs::remove_dir_all(&root).unwrap();
        assert!(versions(&std::env::temp_dir().join("no such directory")).is_err());
    }
}

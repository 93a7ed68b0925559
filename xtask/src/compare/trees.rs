//! Directory trees: put into place, read, counted, compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The names of the versions in a data set: `v` and digits, in order.
///
/// # Errors
/// When there are none.
pub fn versions(dataset: &Path) -> Result<Vec<String>> {
    let mut versions = Vec::new();
    for entry in fs::read_dir(dataset)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name
            .strip_prefix('v')
            .and_then(|digits| digits.parse::<u32>().ok());
        if let (Some(number), true) = (number, entry.file_type()?.is_dir()) {
            versions.push((number, name));
        }
    }
    versions.sort();
    if versions.is_empty() {
        bail!("no versions v01 … vNN in {}", dataset.display());
    }
    Ok(versions.into_iter().map(|(_, name)| name).collect())
}

/// Makes `tree` hold a fresh copy of the versions: the contents of one, or all of them below
/// their names.
///
/// # Errors
/// When copying fails.
pub fn put_into_place(
    dataset: &Path,
    versions: &[String],
    is_batch: bool,
    tree: &Path,
) -> Result<()> {
    let next = tree.with_extension("next");
    if is_batch {
        fs::create_dir(&next)?;
        for version in versions {
            copy(&dataset.join(version), &next.join(version))?;
        }
    } else {
        copy(&dataset.join(&versions[0]), &next)?;
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
            fs::read(&path)?;
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

/// How many files lie below `root`, and their bytes.
///
/// # Errors
/// When a directory can't be read.
pub fn files_and_bytes(root: &Path) -> Result<(u64, u64)> {
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

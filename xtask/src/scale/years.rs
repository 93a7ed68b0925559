//! A tree that is backed up often, and pruned: `scale --snapshots`.
//!
//! Half of the chunks make up the first version of the tree; each later one has as many new ones as it takes to come to
//! all of them with the last. What changes are halves of files, so that containers come to be partly needed. Then half
//! of the snapshots go, and what is left of the repository must give the last version back.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::stream::{RECORD_BYTES, put_record};
use super::{Data, Row, Scale};

/// Records of a file.
const FILE_RECORDS: u64 = 1000;

/// Files of a directory.
const DIRECTORY_FILES: u64 = 100;

/// A tree of files of [`FILE_RECORDS`] records each, version by version.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The first record of each half of each file.
    halves: Vec<u64>,
    next_record: u64,
    /// Halves that change from one version to the next.
    changes: u64,
    changed: u64,
}

impl Tree {
    /// A tree that has had `records` different records after `versions` versions; none of it is written yet.
    pub fn new(root: PathBuf, records: u64, versions: u64) -> Self {
        let files = (records / 2 / FILE_RECORDS).max(1);
        let halves: Vec<u64> = (0..2 * files)
            .map(|half| half * (FILE_RECORDS / 2))
            .collect();
        let left = records.saturating_sub(files * FILE_RECORDS);
        Self {
            root,
            next_record: files * FILE_RECORDS,
            changes: left / (FILE_RECORDS / 2) / versions.saturating_sub(1).max(1),
            changed: 0,
            halves,
        }
    }

    /// Writes the first version.
    pub fn write(&self) -> Result<()> {
        for file in 0..self.halves.len() / 2 {
            self.write_file(file)?;
        }
        Ok(())
    }

    /// Writes the next version.
    pub fn change(&mut self) -> Result<()> {
        for _ in 0..self.changes {
            // Far apart, and all of them in their turn.
            let half = (self.changed * 7919) as usize % self.halves.len();
            self.changed += 1;
            self.halves[half] = self.next_record;
            self.next_record += FILE_RECORDS / 2;
            self.write_file(half / 2)?;
        }
        Ok(())
    }

    fn path_of(file: usize) -> PathBuf {
        let directory = file as u64 / DIRECTORY_FILES;
        Path::new(&format!("directory-{directory:05}")).join(format!("file-{file:07}"))
    }

    fn contents_of(&self, file: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_RECORDS as usize * RECORD_BYTES);
        for half in [2 * file, 2 * file + 1] {
            let first = self.halves[half];
            (first..first + FILE_RECORDS / 2).for_each(|number| put_record(number, &mut bytes));
        }
        bytes
    }

    fn write_file(&self, file: usize) -> Result<()> {
        let path = self.root.join(Self::path_of(file));
        fs::create_dir_all(path.parent().context("a file in a directory")?)?;
        Ok(fs::File::create(path)?.write_all(&self.contents_of(file))?)
    }

    /// Are all files below `restored` as in this version?
    pub fn compare(&self, restored: &Path) -> Result<()> {
        for file in 0..self.halves.len() / 2 {
            let path = restored.join(Self::path_of(file));
            let found = fs::read(&path).with_context(|| path.display().to_string())?;
            ensure!(
                found == self.contents_of(file),
                "{} differs",
                path.display()
            );
        }
        Ok(())
    }
}

impl Scale {
    /// Backs a tree up often, forgets half of that, and prunes.
    pub(super) fn years(&mut self, snapshots: u64) -> Result<()> {
        self.create()?;
        let root = self.directory.join("tree");
        let mut tree = Tree::new(root.clone(), self.options.chunks, snapshots);
        tree.write()?;
        let root = root.display().to_string();
        self.verb("backup, the first", &["backup", &root], Data::None)?;
        let first = self.rows.len();
        for snapshot in 1..snapshots {
            tree.change()?;
            self.verb(
                &format!("backup {snapshot}"),
                &["backup", &root],
                Data::None,
            )?;
        }
        let later = self.rows.split_off(first);
        self.rows.extend(Row::sum("backups, all others", &later));
        self.verb("prune, nothing forgotten", &["prune"], Data::None)?;
        self.print_log();
        let kept = (snapshots / 2).to_string();
        self.verb(
            "forget half of them",
            &["forget", "--keep-last", &kept],
            Data::None,
        )?;
        let dry_run = ["prune", "--dry-run"];
        self.verb("prune --dry-run", &dry_run, Data::None)?;
        self.print_log();
        self.verb("prune", &["prune"], Data::None)?;
        self.print_log();
        self.verb("prune, nothing to do", &["prune"], Data::None)?;
        self.verb("check, all data", &["check", "--read-data"], Data::None)?;
        let target = self.directory.join("restored");
        let from = format!("latest:{root}");
        let restore = ["restore", &from, &target.display().to_string()];
        self.verb("restore", &restore, Data::None)?;
        tree.compare(&target)
    }

    /// Shows the last line that the verb printed.
    fn print_log(&self) {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        println!("{}", log.lines().last().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_as_many_records_as_were_asked_for() {
        let mut tree = Tree::new(PathBuf::new(), 1_000_000, 11);
        assert_eq!((tree.halves.len(), tree.next_record), (1000, 500_000));
        assert_eq!(tree.changes, 100);
        for _ in 0..10 {
            for _ in 0..tree.changes {
                tree.halves[(tree.changed * 7919) as usize % 1000] = tree.next_record;
                tree.changed += 1;
                tree.next_record += FILE_RECORDS / 2;
            }
        }
        assert_eq!(tree.next_record, 1_000_000);
        assert!(
            tree.halves.iter().all(|&first| first >= 500_000),
            "each half in its turn"
        );
    }

    #[test]
    fn what_differs_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(directory.path().to_owned(), 20_000, 3);
        tree.write().unwrap();
        tree.compare(directory.path()).unwrap();
        tree.change().unwrap();
        tree.compare(directory.path()).unwrap();
        let path = directory.path().join(Tree::path_of(3));
        fs::write(path, b"other").unwrap();
        assert!(tree.compare(directory.path()).is_err());
    }
}

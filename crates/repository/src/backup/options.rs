//! What a backup is asked to do, and what it did.

use std::path::PathBuf;

use engine::object::ObjectId;
use engine::pipeline::{DeltaLevel, WriteTotals};
use engine::rewriting::Rewriting;

use crate::progress::Problem;
use crate::snapshot::Snapshot;

/// How a backup is to be done.
#[derive(Debug, Clone, Default)]
pub struct BackupOptions {
    /// The host's name in the snapshot.
    pub host: String,
    /// Tags of the snapshot.
    pub tags: Vec<String>,
    /// Read every file, even those that seem unchanged since the parent snapshot.
    pub force: bool,
    /// The snapshot that unchanged files are taken from; the latest of the same host and paths
    /// when not given.
    pub parent: Option<ObjectId>,
    /// What is left out.
    pub excludes: ExcludeOptions,
    /// Count files and bytes ahead of the backup, so that progress has a total.
    pub count_ahead: bool,
    /// Do everything but store: what would be new?
    pub dry_run: bool,
    /// Which duplicates are stored again; what the repository says when not given. Files taken
    /// unchanged from the parent are not read, and stay where they are.
    pub rewriting: Option<Rewriting>,
    /// How chunks that resemble others are stored; as the repository says when not given.
    pub deltas: Option<DeltaLevel>,
}

/// What a backup leaves out.
#[derive(Debug, Clone, Default)]
pub struct ExcludeOptions {
    /// Patterns.
    pub patterns: Vec<String>,
    /// Files with a pattern a line.
    pub pattern_files: Vec<PathBuf>,
    /// Directories, by their absolute paths: the repository itself, for one.
    pub directories: Vec<PathBuf>,
    /// Leave out the contents of directories with a valid `CACHEDIR.TAG`.
    pub caches: bool,
    /// Stay on the file systems of the given paths.
    pub one_file_system: bool,
    /// Obey `.gitignore` and `.onefoldignore` files.
    pub ignore_files: bool,
}

/// What a backup did.
#[derive(Debug)]
pub struct BackupReport {
    /// The snapshot as stored (its summary has the counts).
    pub snapshot: Snapshot,
    /// Is it in the repository? Not after a dry run, nor when a backup was interrupted before it
    /// had a file.
    pub is_written: bool,
    /// Which duplicates were to be stored again.
    pub rewriting: Rewriting,
    /// What went into the repository.
    pub totals: WriteTotals,
    /// Bytes of the index runs, snapshot and containers written.
    pub stored_bytes: u64,
    /// What could not be saved (all of it; the snapshot lists at most 1,000).
    pub errors: u64,
    /// Damage met in the repository and worked around by storing anew.
    pub repository_warnings: Vec<Problem>,
}

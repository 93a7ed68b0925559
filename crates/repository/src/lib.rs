#![forbid(unsafe_code)]
//! Files ↔ snapshots: an encrypted, deduplicating backup repository.
//!
//! A [`Repository`] is opened on an object store; [`Repository::backup`] makes a snapshot of
//! files, [`Repository::restore`] brings them back, [`Repository::check`] says whether everything
//! is there. See `examples/backup_directory.rs`. The library does no terminal I/O: what
//! goes on is told through [`Progress`].
//!
//! Rooms: [`config`], [`keys`], [`snapshot`], [`tree`] (stored form of directories), [`files`]
//! (the operating system's files), [`backup`], [`restore`], [`listing`], [`retention`] (which
//! snapshots are kept), [`tar`] (the format of archives), and one file each for diff, dump, export, stats, check, repair,
//! forget.

pub mod backup;
pub mod check;
pub mod config;
pub mod copy;
pub mod deletion;
pub mod diff;
pub mod dump;
pub mod export;
pub mod files;
mod forget;
mod keyring;
pub mod keys;
pub mod listing;
pub mod migrate;
pub mod progress;
pub mod prune;
pub mod repair;
mod repository;
pub mod restore;
pub mod retention;
pub mod snapshot;
pub mod stats;
pub mod tar;
pub mod timestamp;
pub mod tree;

pub use backup::{
    BackupError, BackupOptions, BackupReport, DiskImage, EarlierImage, ExcludeOptions,
    ImportOptions,
};
pub use check::{CheckLevel, CheckOptions, CheckProblem, CheckReport, Sample, SampleSize};
pub use copy::{CopyError, CopyOptions, CopyReport};
pub use diff::{Change, DiffError, DiffSummary, Difference};
pub use dump::DumpError;
pub use export::{ExportError, ExportReport};
pub use keyring::{EpochInfo, KeyInfo, Keyring, Rotation};
pub use listing::{ListError, SnapshotTree};
pub use migrate::MigrateError;
pub use progress::{Problem, Progress};
pub use repair::{
    Loss, RecoverOptions, RecoverReport, RepairContainersOptions, RepairContainersReport,
    RepairError, RepairIndexOptions, RepairIndexReport, RepairRemapsOptions, RepairRemapsReport,
    RepairSnapshotsOptions, RepairSnapshotsReport, RepairedSnapshot, SnapshotOutcome,
};
pub use repository::{
    CreateOptions, PROGRAM, Repository, RepositoryError, RunSettings, SharedChunker,
};
pub use restore::{Overwrite, RestoreError, RestoreOptions, RestoreReport};
pub use stats::{Filling, KindFilling, Stats};

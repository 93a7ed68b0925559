//! The event of a snapshot, as `snapshots` lists it.

use repository::snapshot::Snapshot;
use serde::Serialize;

use super::{PathText, PathTexts};
use crate::times;

/// A snapshot as `snapshots` lists it.
#[derive(Debug, Serialize)]
pub struct SnapshotEvent {
    snapshot: String,
    time: String,
    host: String,
    user: String,
    #[serde(flatten)]
    paths: PathTexts,
    tags: Vec<String>,
    excludes: Vec<String>,
    parent: Option<String>,
    original: String,
    copy_of: Option<OriginEvent>,
    program: String,
    is_partial: bool,
    is_interrupted: bool,
    is_doubtful: bool,
    repaired: Option<String>,
    is_protected: bool,
    errors: u64,
    error_list: Vec<ListedError>,
    files: u64,
    directories: u64,
    other_entries: u64,
    files_new: u64,
    files_changed: u64,
    files_unmodified: u64,
    bytes: u64,
    bytes_read: u64,
    bytes_new: u64,
    bytes_stored: u64,
    seconds: f64,
}

/// What a snapshot is a copy of.
#[derive(Debug, Serialize)]
struct OriginEvent {
    repository: String,
    snapshot: String,
}

#[derive(Debug, Serialize)]
struct ListedError {
    #[serde(flatten)]
    path: PathText,
    message: String,
}

impl SnapshotEvent {
    /// The event of that snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        let summary = &snapshot.summary;
        let errors = snapshot.errors.listed.iter();
        Self {
            snapshot: snapshot.id.to_string(),
            time: times::universal(snapshot.time),
            host: snapshot.host.clone(),
            user: snapshot.user.clone(),
            paths: PathTexts::new(&snapshot.paths),
            tags: snapshot.tags.clone(),
            excludes: snapshot.excludes.clone(),
            parent: snapshot.parent.map(|id| id.to_string()),
            original: snapshot.original().to_string(),
            copy_of: snapshot.copy_of.map(|origin| OriginEvent {
                repository: origin.repository.to_string(),
                snapshot: origin.snapshot.to_string(),
            }),
            program: snapshot.program.clone(),
            is_partial: !snapshot.errors.is_empty(),
            is_interrupted: snapshot.is_interrupted,
            is_doubtful: snapshot.is_doubtful,
            repaired: snapshot.repaired.map(|id| id.to_string()),
            is_protected: snapshot.is_protected,
            errors: snapshot.errors.count,
            error_list: errors
                .map(|error| ListedError {
                    path: PathText::new(&error.path),
                    message: error.message.clone(),
                })
                .collect(),
            files: summary.files,
            directories: summary.directories,
            other_entries: summary.other_entries,
            files_new: summary.files_new,
            files_changed: summary.files_changed,
            files_unmodified: summary.files_unmodified,
            bytes: summary.files_bytes,
            bytes_read: summary.bytes_read,
            bytes_new: summary.bytes_new,
            bytes_stored: summary.bytes_stored,
            seconds: summary.milliseconds as f64 / 1000.0,
        }
    }
}

//! What `--json` prints of repairs (docs/guide/json.md).

use repository::{RepairedSnapshot, SnapshotOutcome};
use serde::Serialize;

/// A snapshot that a repair looked at.
#[derive(Debug, Serialize)]
pub struct RepairedEvent {
    pub snapshot: String,
    pub outcome: &'static str,
    pub new: Option<String>,
    pub is_forgotten: bool,
    pub files_relinked: u64,
    pub files_lost: u64,
    pub files_kept_in_part: u64,
    pub directories_damaged: u64,
    pub bytes_lost: u64,
}

/// The name of an outcome.
pub fn outcome_name(outcome: SnapshotOutcome) -> &'static str {
    match outcome {
        SnapshotOutcome::Whole => "whole",
        SnapshotOutcome::Cleared => "cleared",
        SnapshotOutcome::StillDoubtful => "still_doubtful",
        SnapshotOutcome::Repaired => "repaired",
        SnapshotOutcome::WasRepaired => "was_repaired",
    }
}

impl RepairedEvent {
    /// The event of that snapshot.
    pub fn new(found: &RepairedSnapshot) -> Self {
        let losses = || found.losses.iter();
        Self {
            snapshot: found.id.to_string(),
            outcome: outcome_name(found.outcome),
            new: found.new.map(|id| id.to_string()),
            is_forgotten: found.is_forgotten,
            files_relinked: found.files_relinked,
            files_lost: losses()
                .filter(|loss| !loss.is_directory && !loss.is_kept)
                .count() as u64,
            files_kept_in_part: losses().filter(|loss| loss.is_kept).count() as u64,
            directories_damaged: losses().filter(|loss| loss.is_directory).count() as u64,
            bytes_lost: losses().map(|loss| loss.bytes_lost).sum(),
        }
    }
}

/// What a repair of snapshots did.
#[derive(Debug, Default, Serialize)]
pub struct RepairSnapshotsSummary {
    pub snapshots: u64,
    pub whole: u64,
    pub cleared: u64,
    pub still_doubtful: u64,
    pub repaired: u64,
    pub was_repaired: u64,
    pub files_relinked: u64,
    pub files_lost: u64,
    pub files_kept_in_part: u64,
    pub directories_damaged: u64,
    pub bytes_lost: u64,
    pub unreadable: u64,
    pub containers_damaged: u64,
    pub is_dry_run: bool,
    pub seconds: f64,
}

impl RepairSnapshotsSummary {
    /// Adds a snapshot.
    pub fn add(&mut self, event: &RepairedEvent) {
        self.snapshots += 1;
        let count = match event.outcome {
            "whole" => &mut self.whole,
            "cleared" => &mut self.cleared,
            "still_doubtful" => &mut self.still_doubtful,
            "repaired" => &mut self.repaired,
            _ => &mut self.was_repaired,
        };
        *count += 1;
        self.files_relinked += event.files_relinked;
        self.files_lost += event.files_lost;
        self.files_kept_in_part += event.files_kept_in_part;
        self.directories_damaged += event.directories_damaged;
        self.bytes_lost += event.bytes_lost;
    }
}

/// What a repair of containers did.
#[derive(Debug, Serialize)]
pub struct RepairContainersSummary {
    pub containers: u64,
    pub bytes: u64,
    pub damaged: u64,
    pub unreadable: u64,
    pub chunks_kept: u64,
    pub chunks_lost: u64,
    pub containers_written: u64,
    pub bytes_written: u64,
    pub condemned: u64,
    pub snapshots_damaged: u64,
    pub is_dry_run: bool,
    pub seconds: f64,
}

/// What a repair of remaps did.
#[derive(Debug, Serialize)]
pub struct RepairRemapsSummary {
    pub remaps: u64,
    pub damaged: u64,
    pub places: u64,
    pub places_gone: u64,
    pub places_found: u64,
    pub replaced: u64,
    pub containers_unreadable: u64,
    pub is_dry_run: bool,
    pub seconds: f64,
}

/// What was found that no snapshot names.
#[derive(Debug, Serialize)]
pub struct RecoverSummary {
    pub snapshot: Option<String>,
    pub dead_runs: Vec<String>,
    pub containers_uncovered: u64,
    pub bytes_uncovered: u64,
    pub pages: u64,
    pub directories: u64,
    pub directories_left: u64,
    pub files: u64,
    pub bytes: u64,
    pub files_lost: u64,
    pub is_dry_run: bool,
    pub seconds: f64,
}

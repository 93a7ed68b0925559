//! What `--json` prints: one object a line, described for users in docs/guide/json.md.
//!
//! Every object has `event`; the last line of a run is a `summary` or an `error`, so that a
//! reader knows whether it has seen everything. Names of fields have their unit last. Fields may
//! be added later; none changes its meaning.

mod snapshot;

pub use snapshot::SnapshotEvent;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::hexadecimal;
use crate::repair_events::{
    RecoverSummary, RepairContainersSummary, RepairRemapsSummary, RepairSnapshotsSummary,
    RepairedEvent,
};
use crate::server_view::ServerEvent;
use crate::stages_view::StageEvent;

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A repository was created.
    Created {
        repository: String,
        location: String,
        is_encrypted: bool,
    },
    /// How far a long operation is.
    Progress(ProgressEvent),
    /// What the stages of a long operation have done, at its end.
    Stages {
        bottleneck: Option<&'static str>,
        seconds: f64,
        stages: Vec<StageEvent>,
    },
    /// What was asked of the server that the repository lies on, at the end of a run.
    Server(ServerEvent),
    /// Something could not be done, and the run goes on.
    Problem {
        #[serde(flatten)]
        path: PathText,
        message: String,
        is_error: bool,
    },
    /// Something may be wrong, and the run goes on.
    Warning { message: String },
    /// A snapshot (of `snapshots`).
    Snapshot(Box<SnapshotEvent>),
    /// A snapshot was changed: another id stands for it now (of `tag`, `protect`, `unprotect`).
    Changed {
        before: String,
        snapshot: String,
        tags: Vec<String>,
        is_protected: bool,
    },
    /// A snapshot that was looked at (of `repair snapshots`, and of `repair containers` where something is lost).
    Repaired(RepairedEvent),
    /// What became of a snapshot (of `copy`).
    Copied {
        snapshot: String,
        copy: Option<String>,
        is_new: bool,
    },
    /// What becomes of a snapshot (of `forget`).
    Decision(Box<DecisionEvent>),
    /// A migration that there is (of `migrate`).
    Migration {
        name: &'static str,
        about: &'static str,
        is_done: bool,
    },
    /// A key slot (of `key list`).
    Key(Box<KeyEvent>),
    /// An epoch (of `key list`).
    Epoch(Box<EpochEvent>),
    /// An entry of a directory (of `ls`).
    Entry(Box<EntryEvent>),
    /// An entry that differs (of `diff`).
    Difference(DifferenceEvent),
    /// A volume is served there now: an address, a socket, or a file.
    Serving { address: String },
    /// A pinned generation of a volume (of `volume generations`).
    Generation {
        number: u32,
        created: u64,
        size_bytes: u64,
        changed_bytes: Option<u64>,
        owner: Option<String>,
    },
    /// The run is done, perhaps but for the problems that it counts.
    Summary(Box<Summary>),
    /// The run failed.
    Error {
        code: u8,
        message: String,
        hint: Option<String>,
    },
}

/// A path that JSON can carry: text, and the bytes as well where they are no text.
#[derive(Debug, Serialize)]
pub struct PathText {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
}

impl PathText {
    /// The path of these bytes.
    pub fn new(path: &[u8]) -> Self {
        let text = String::from_utf8_lossy(path);
        Self {
            path_hex: std::str::from_utf8(path)
                .is_err()
                .then(|| hexadecimal(path)),
            path: text.into_owned(),
        }
    }
}

/// Paths of a snapshot that JSON can carry.
#[derive(Debug, Serialize)]
pub struct PathTexts {
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths_hex: Option<Vec<String>>,
}

impl PathTexts {
    /// The paths of these bytes.
    pub fn new(paths: &[Vec<u8>]) -> Self {
        let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
        let hexadecimals = || paths.iter().map(|path| hexadecimal(path)).collect();
        let are_texts = paths.iter().all(|path| std::str::from_utf8(path).is_ok());
        Self {
            paths: paths.iter().map(text).collect(),
            paths_hex: (!are_texts).then(hexadecimals),
        }
    }
}

/// The counters of a long operation. What is not known yet is null.
#[derive(Debug, Serialize)]
pub struct ProgressEvent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_done: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_total: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers_done: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers_total: Option<Option<u64>>,
    pub bytes_done: u64,
    pub bytes_total: Option<u64>,
    pub bytes_new: u64,
    pub bytes_per_second: f64,
    pub seconds: f64,
    pub seconds_left: Option<f64>,
    pub errors: u64,
    pub stages: Vec<StageEvent>,
    #[serde(flatten)]
    pub path: PathText,
}

/// What becomes of a snapshot.
#[derive(Debug, Serialize)]
pub struct DecisionEvent {
    pub snapshot: String,
    pub time: String,
    pub host: String,
    #[serde(flatten)]
    pub paths: PathTexts,
    pub tags: Vec<String>,
    pub is_interrupted: bool,
    pub is_protected: bool,
    pub group: u64,
    pub is_kept: bool,
    pub reasons: Vec<ReasonEvent>,
}

/// Why a snapshot is kept.
#[derive(Debug, Serialize)]
pub struct ReasonEvent {
    pub rule: &'static str,
    pub detail: Option<String>,
    pub text: String,
}

/// An entry of a directory as `ls` lists it.
#[derive(Debug, Serialize)]
pub struct EntryEvent {
    #[serde(flatten)]
    pub path: PathText,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub bytes: u64,
    pub mode: String,
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    pub group: String,
    pub modified: String,
    pub inode: u64,
    pub is_hard_link: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<[u32; 2]>,
}

/// An entry that differs between two snapshots.
#[derive(Debug, Serialize)]
pub struct DifferenceEvent {
    #[serde(flatten)]
    pub path: PathText,
    pub change: &'static str,
    pub is_directory: bool,
    pub is_content_changed: bool,
    pub is_metadata_changed: bool,
    pub is_type_changed: bool,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// The last line of a run that did its work.
#[derive(Debug, Serialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Summary {
    Init {
        repository: String,
        location: String,
        is_encrypted: bool,
    },
    Backup(BackupSummary),
    Snapshots {
        snapshots: u64,
        unreadable: u64,
    },
    Ls {
        snapshot: String,
        entries: u64,
    },
    Restore {
        snapshot: String,
        files: u64,
        directories: u64,
        other_entries: u64,
        bytes: u64,
        failed: u64,
        incomplete_metadata: u64,
        containers_read: u64,
        containers: u64,
        is_dry_run: bool,
        seconds: f64,
    },
    Dump {
        snapshot: String,
        bytes: u64,
        containers_read: u64,
    },
    Export {
        snapshot: String,
        files: u64,
        directories: u64,
        other_entries: u64,
        links: u64,
        bytes: u64,
        archive_bytes: u64,
        containers_read: u64,
        seconds: f64,
    },
    Import(ImportSummary),
    Copy {
        copied: u64,
        there: u64,
        failed: u64,
        unreadable: u64,
        is_cut_again: bool,
        files: u64,
        files_kept: u64,
        directories_kept: u64,
        bytes_read: u64,
        bytes_new: u64,
        bytes_stored: u64,
        containers_read: u64,
        seconds: f64,
    },
    Diff {
        before: String,
        after: String,
        added: u64,
        removed: u64,
        changed: u64,
        metadata_changed: u64,
        bytes_added: u64,
        bytes_removed: u64,
    },
    Forget {
        groups: u64,
        snapshots: u64,
        kept: u64,
        forgotten: u64,
        unreadable: u64,
        is_dry_run: bool,
    },
    Prune {
        is_dry_run: bool,
        snapshots: u64,
        chunks_needed: u64,
        mark_seconds: f64,
        mark_bytes: u64,
        containers: u64,
        bytes: u64,
        bytes_unneeded: u64,
        containers_unneeded: u64,
        containers_packed: u64,
        bytes_packed: u64,
        bytes_written: u64,
        containers_deleted: u64,
        bytes_deleted: u64,
        containers_waiting: u64,
        waiting_for: Vec<String>,
        chunks_rescued: u64,
        chunks_repeated: u64,
        chunks_merged: u64,
        expired: Vec<String>,
    },
    TagAdd(ChangeSummary),
    TagRemove(ChangeSummary),
    TagSet(ChangeSummary),
    Protect(ChangeSummary),
    Unprotect(ChangeSummary),
    KeyList {
        keys: u64,
        unusable: u64,
    },
    KeyAdd {
        key: String,
    },
    KeyRemove {
        key: String,
    },
    KeyPasswd {
        key: String,
        before: String,
    },
    KeyRotate {
        epoch: u32,
        keys: Vec<String>,
        left_out: Vec<String>,
    },
    Stats(Box<StatsSummary>),
    Check {
        problems: u64,
        losses: u64,
        snapshots: u64,
        files: u64,
        containers: u64,
        chunks: u64,
        containers_bytes: u64,
        bytes_verified: u64,
        groups_verified: Option<u64>,
        is_data_read: bool,
        sample: Option<String>,
        seed: Option<u32>,
        seconds: f64,
    },
    RepairIndex {
        runs: u64,
        runs_damaged: u64,
        runs_replaced: u64,
        containers: u64,
        containers_indexed: u64,
        containers_unreadable: u64,
        chunks_indexed: u64,
        is_dry_run: bool,
        seconds: f64,
    },
    RepairSnapshots(RepairSnapshotsSummary),
    RepairContainers(RepairContainersSummary),
    RepairRemaps(RepairRemapsSummary),
    Recover(RecoverSummary),
    Migrate {
        repository: String,
        format_version: u32,
        features: Vec<String>,
        migration: Option<&'static str>,
        is_applied: bool,
    },
    VolumeCreate {
        volume: String,
        size_bytes: u64,
        backing_bytes: u64,
        policy: &'static str,
        persistence: &'static str,
        fingerprint: &'static str,
    },
    VolumeServe {
        volume: String,
        counters: Map<String, Value>,
    },
    VolumeStat {
        volume: String,
        size_bytes: u64,
        policy: &'static str,
        persistence: &'static str,
        fingerprint: &'static str,
        mapped_bytes: u64,
        stored_bytes: u64,
        metadata_bytes: u64,
        backing_bytes: u64,
        dedup_ratio: Option<f64>,
        write_amplification: Option<f64>,
        compressed_zone_share: Option<f64>,
        memory_bytes: u64,
        generations: u64,
        journal: String,
        counters: Map<String, Value>,
    },
    VolumeCheck {
        volume: String,
        mapped_blocks: u64,
        stored_blocks: u64,
        blocks_read: u64,
        not_in_index: u64,
        problems: u64,
    },
    VolumeCompact {
        volume: String,
        blocks_moved: u64,
        blocks_pinned: u64,
        free_zones_before: u32,
        free_zones: u32,
        bytes_discarded: u64,
    },
    VolumeGrow {
        volume: String,
        size_bytes: u64,
        backing_bytes: u64,
    },
    VolumePin {
        volume: String,
        generation: u32,
    },
    VolumeUnpin {
        volume: String,
        generation: u32,
    },
    VolumeGenerations {
        volume: String,
        generations: u64,
    },
}

/// What a backup did.
#[derive(Debug, Serialize)]
pub struct BackupSummary {
    pub snapshot: Option<String>,
    pub parent: Option<String>,
    pub generation: Option<u32>,
    pub bytes_changed: Option<u64>,
    pub is_dry_run: bool,
    pub files: u64,
    pub files_new: u64,
    pub files_changed: u64,
    pub files_unmodified: u64,
    pub directories: u64,
    pub other_entries: u64,
    pub errors: u64,
    pub bytes: u64,
    pub bytes_read: u64,
    pub bytes_new: u64,
    pub bytes_unique: u64,
    pub bytes_stored: u64,
    pub dedup_ratio: Option<f64>,
    pub chunks: u64,
    pub chunks_new: u64,
    pub rewriting: &'static str,
    pub chunks_rewritten: u64,
    pub bytes_rewritten: u64,
    pub dedup_ratio_with_rewriting: Option<f64>,
    pub containers_new: u64,
    pub filling_ratio: Option<f64>,
    pub seconds: f64,
}

/// What an import did.
#[derive(Debug, Serialize)]
pub struct ImportSummary {
    pub snapshot: Option<String>,
    pub is_dry_run: bool,
    pub files: u64,
    pub directories: u64,
    pub other_entries: u64,
    pub errors: u64,
    pub bytes: u64,
    pub bytes_new: u64,
    pub bytes_stored: u64,
    pub chunks: u64,
    pub chunks_new: u64,
    pub seconds: f64,
}

/// A key slot.
#[derive(Debug, Serialize)]
pub struct KeyEvent {
    pub key: String,
    pub created: Option<String>,
    pub host: Option<String>,
    pub user: Option<String>,
    pub name: Option<String>,
    pub is_current: bool,
    pub has_password: bool,
    pub argon2_memory_bytes: Option<u64>,
    pub argon2_passes: Option<u32>,
    pub argon2_lanes: Option<u32>,
    pub opens_newest: Option<bool>,
}

/// An epoch: what is stored in it is sealed under a secret of its own.
#[derive(Debug, Serialize)]
pub struct EpochEvent {
    pub epoch: u32,
    pub created: Option<String>,
    pub keys: Vec<String>,
    pub is_newest: bool,
    pub is_open: bool,
}

/// How many snapshots were changed.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ChangeSummary {
    pub changed: u64,
    pub unchanged: u64,
}

/// What a repository holds.
#[derive(Debug, Serialize)]
pub struct StatsSummary {
    pub snapshots: u64,
    pub files: u64,
    pub other_entries: u64,
    pub bytes: u64,
    pub bytes_unique: u64,
    pub bytes_stored: u64,
    pub dedup_ratio: Option<f64>,
    pub reduction_ratio: Option<f64>,
    pub chunks: u64,
    pub pages: u64,
    pub data_containers: u64,
    pub data_containers_bytes: u64,
    pub delta_containers: u64,
    pub delta_containers_bytes: u64,
    pub delta_chunks: u64,
    pub delta_chunks_bytes: u64,
    pub delta_bytes: u64,
    pub delta_share: Option<f64>,
    pub delta_compression_ratio: Option<f64>,
    pub delta_compression_efficiency: Option<f64>,
    pub similar_chunk_ratio: Option<f64>,
    pub delta_depth: Option<f64>,
    pub metadata_containers: u64,
    pub metadata_containers_bytes: u64,
    pub index_bytes: u64,
    pub snapshots_bytes: u64,
    pub other_bytes: u64,
    pub filling_ratio: Option<f64>,
    pub data_filling_ratio: Option<f64>,
    pub data_whole_containers: u64,
    pub data_whole_filling_ratio: Option<f64>,
    pub data_smaller_filling_ratio: Option<f64>,
    pub delta_filling_ratio: Option<f64>,
    pub delta_whole_containers: u64,
    pub delta_whole_filling_ratio: Option<f64>,
    pub delta_smaller_filling_ratio: Option<f64>,
    pub metadata_filling_ratio: Option<f64>,
    pub metadata_whole_containers: u64,
    pub metadata_whole_filling_ratio: Option<f64>,
    pub metadata_smaller_filling_ratio: Option<f64>,
    pub metadata_per_chunk_bytes: Option<f64>,
    pub metadata_per_file_bytes: Option<f64>,
    pub chunker: &'static str,
    pub acceleration: String,
    pub segment_bytes: Option<u32>,
    pub structure: &'static str,
    pub rewriting: &'static str,
    pub unreadable: u64,
}

//! Snapshots: what a backup leaves behind, and the commit of it (docs/format/v1.md, §10).
//!
//! Enters: the recipe of a root directory and the facts about a backup. Leaves: an object
//! `snapshots/ID`, a sealed document. Its appearance is the commit: whoever writes it has made
//! everything it refers to durable before.
//!
//! Objects never change, so what is changed of a snapshot (`change.rs`) is written as a new one that
//! names the one whose place it takes; both may be there for a moment, and one is shown.
//!
//! Limits are those of the table of fields in the specification; they are checked before
//! writing and after reading.

mod body;
mod change;
mod selection;

pub use change::SnapshotChange;
pub use selection::{Resolved, SnapshotFilter, SnapshotSpec, interrupted_since, latest};

use std::collections::BTreeSet;

use engine::format::{InObject, ObjectError, UnknownFields, Vault, read_document, write_document};
use engine::object::{ObjectId, ObjectKey, ObjectKind, ObjectStore};
use engine::recipe::Recipe;

use crate::timestamp::Timestamp;

/// Most errors that a snapshot names; further ones are counted.
pub const ERRORS_LISTED_MAX: usize = 1_000;

/// What a backup left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The object's id; given by [`Snapshot::write`].
    pub id: ObjectId,
    /// The pages of the root directory, which stands for `/`.
    pub root: Recipe,
    /// When the backup began.
    pub time: Timestamp,
    /// The backup was stopped before its end: what is there is whole, but not all of it is there.
    /// The next backup goes on from it; it is nobody's latest snapshot.
    pub is_interrupted: bool,
    /// The machine that was backed up.
    pub host: String,
    /// Name of the user who ran the backup, empty when unknown.
    pub user: String,
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
    /// Absolute paths backed up; for a stream its name.
    pub paths: Vec<Vec<u8>>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The snapshot that unchanged files were taken from.
    pub parent: Option<ObjectId>,
    /// The backup run that wrote it.
    pub run: Option<ObjectId>,
    /// Highest generation of remaps that its writer had read.
    pub remap_generation: u64,
    /// What was counted.
    pub summary: Summary,
    /// What could not be backed up.
    pub errors: SnapshotErrors,
    /// Name and version of the program that wrote it.
    pub program: String,
    /// Patterns of what was left out on purpose.
    pub excludes: Vec<String>,
    /// The ids that this snapshot had before it was changed, the first one first. Objects of these
    /// ids, where they are there, count no more.
    pub replaces: Vec<ObjectId>,
    /// Nobody forgets it.
    pub is_protected: bool,
    /// The state of a disk that the snapshot is the image of.
    pub disk: Option<DiskState>,
    /// The damaged snapshot that this one was made from, without what is lost of it.
    pub repaired: Option<ObjectId>,
    /// The snapshot of another repository that it is a copy of.
    pub copy_of: Option<Origin>,
    /// Its run was taken for dead before it ended: what it needs may be deleted. Not stored, but found out by
    /// [`Repository::snapshots`](crate::Repository::snapshots).
    pub is_doubtful: bool,
    /// Fields of newer versions, kept as they are.
    pub unknown: UnknownFields,
}

impl Default for Snapshot {
    /// An empty root directory, at the beginning of 1970, of nobody.
    fn default() -> Self {
        Self {
            id: ObjectId([0; ObjectId::BYTES]),
            root: Recipe::default(),
            time: Timestamp::default(),
            is_interrupted: false,
            host: String::new(),
            user: String::new(),
            uid: 0,
            gid: 0,
            paths: Vec::new(),
            tags: Vec::new(),
            parent: None,
            run: None,
            remap_generation: 0,
            summary: Summary::default(),
            errors: SnapshotErrors::default(),
            program: String::new(),
            excludes: Vec::new(),
            replaces: Vec::new(),
            is_protected: false,
            disk: None,
            repaired: None,
            copy_of: None,
            is_doubtful: false,
            unknown: UnknownFields::default(),
        }
    }
}

/// Which state of which disk an image is of, so that a later backup reads only what changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DiskState {
    /// The volume's id.
    pub volume: [u8; 16],
    /// What tells the generation from those of copies of the volume.
    pub generation_id: [u8; 16],
    /// The generation's number.
    pub generation: u32,
}

/// Which snapshot of which repository: what tells a copy from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The repository's id.
    pub repository: ObjectId,
    /// The id that the snapshot had there first ([`Snapshot::original`]).
    pub snapshot: ObjectId,
}

/// What a backup counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Regular files and streams.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links, devices and the like.
    pub other_entries: u64,
    /// Lengths of all files, holes included.
    pub files_bytes: u64,
    /// Files that the parent does not have.
    pub files_new: u64,
    /// Files that differ from the parent's.
    pub files_changed: u64,
    /// Files taken from the parent without reading them.
    pub files_unmodified: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes of chunks that the repository did not have.
    pub bytes_new: u64,
    /// Bytes of objects written.
    pub bytes_stored: u64,
    /// Chunks that the files read were cut into.
    pub chunks: u64,
    /// Those that the repository did not have.
    pub chunks_new: u64,
    /// How long the backup took.
    pub milliseconds: u64,
    /// Chunks that the repository had and that were stored again.
    pub chunks_rewritten: u64,
    /// Bytes of these.
    pub bytes_rewritten: u64,
}

/// What a backup could not take: counted in full, named up to [`ERRORS_LISTED_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotErrors {
    /// How many there were.
    pub count: u64,
    /// The first of them.
    pub listed: Vec<ListedError>,
}

impl SnapshotErrors {
    /// Counts an error, and lists it while there is room.
    pub fn record(&mut self, path: impl Into<Vec<u8>>, message: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < ERRORS_LISTED_MAX {
            self.listed.push(ListedError {
                path: path.into(),
                message: message.into(),
            });
        }
    }

    /// Were there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Something that a backup could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedError {
    /// Where it lies.
    pub path: Vec<u8>,
    /// What happened, for a person.
    pub message: String,
}

/// Why a snapshot could not be written, read or found.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The object could not be used, or the store failed.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// More than a snapshot holds.
    #[error("a snapshot with {count} {what} can't be stored, at most {limit} are possible")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The text is not a way to name a snapshot.
    #[error("{text:?} names no snapshot: give an id, the beginning of one, or `latest`")]
    BadSpec {
        /// The text.
        text: String,
    },
    /// No snapshot is the one that was asked for.
    #[error("no snapshot {asked}: {hint}")]
    NotFound {
        /// What was asked for.
        asked: String,
        /// What is there instead.
        hint: String,
    },
    /// Several snapshots begin with the prefix.
    #[error("{prefix} is the beginning of {} snapshots: {}", matches.len(), selection::listed(matches))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// Those snapshots, in ascending order.
        matches: Vec<ObjectId>,
    },
    /// The snapshot that is meant is there and can't be read.
    #[error("snapshot {id} can't be read: {reason}")]
    Unreadable {
        /// Which one.
        id: ObjectId,
        /// What is wrong with it, for a person.
        reason: String,
    },
    /// Snapshots were to be forgotten that are protected.
    #[error("protected: {}", selection::listed(ids))]
    Protected {
        /// Which ones.
        ids: Vec<ObjectId>,
    },
    /// A snapshot was to be changed, and was forgotten or changed by somebody else meanwhile.
    #[error(
        "snapshot {id} was forgotten or changed by somebody else meanwhile: it is left as they made it"
    )]
    Vanished {
        /// The id that it had.
        id: ObjectId,
    },
}

/// All snapshots of a repository.
#[derive(Debug, Default)]
pub struct SnapshotList {
    /// Those that can be read, oldest first.
    pub snapshots: Vec<Snapshot>,
    /// The others, in ascending order of their ids. Whoever deletes what no snapshot reaches
    /// must stop when there are any.
    pub unreadable: Vec<UnreadableSnapshot>,
    /// Ids of objects whose place another of the snapshots has taken, in ascending order: left by a
    /// change that was cut off, or is at work just now.
    pub replaced: Vec<ObjectId>,
}

/// A snapshot that is there and can't be read.
#[derive(Debug)]
pub struct UnreadableSnapshot {
    /// Which one.
    pub id: ObjectId,
    /// What is wrong with it.
    pub error: ObjectError,
}

impl SnapshotList {
    /// Takes those out that others name as their earlier form.
    fn set_replaced_aside(&mut self) {
        let earlier = self
            .snapshots
            .iter()
            .flat_map(|snapshot| &snapshot.replaces);
        let earlier: BTreeSet<ObjectId> = earlier.copied().collect();
        let replaced = self
            .snapshots
            .extract_if(.., |snapshot| earlier.contains(&snapshot.id));
        self.replaced = replaced.map(|snapshot| snapshot.id).collect();
        self.replaced.sort_unstable();
    }

    /// The snapshot that `spec` names: by an id that it has or had before it was changed, by the
    /// beginning of one, or as the latest; `filter` narrows `latest` and nothing else.
    ///
    /// # Errors
    /// [`SnapshotError::NotFound`], [`SnapshotError::Ambiguous`]; [`SnapshotError::Unreadable`]
    /// when the one of that id can't be read.
    pub fn find(
        &self,
        spec: &SnapshotSpec,
        filter: &SnapshotFilter,
    ) -> Result<&Snapshot, SnapshotError> {
        selection::find(self, spec, filter)
    }
}

fn key_of(id: ObjectId) -> ObjectKey {
    ObjectKey::new(ObjectKind::Snapshot, id)
}

impl Snapshot {
    /// What snapshots are ordered by: the oldest comes first, and of those of one time one that was repaired last, for
    /// all of it can be read.
    #[must_use]
    pub fn order(&self) -> (Timestamp, bool, ObjectId) {
        (self.time, self.repaired.is_some(), self.id)
    }

    /// Stores the snapshot durably: the commit of a backup. Returns the bytes stored.
    ///
    /// The snapshot gets a new random id each time, so that no id is sealed twice; after a
    /// failure an object of the id that it has then may or may not be there.
    ///
    /// # Errors
    /// [`SnapshotError::TooLarge`], and when the store fails.
    pub fn write(&mut self, store: &dyn ObjectStore, vault: &Vault) -> Result<u64, SnapshotError> {
        let body = body::encode(self)?;
        self.id = ObjectId::random();
        Ok(write_document(store, vault, key_of(self.id), &body)?)
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::Object`] when it is missing, unreadable or damaged.
    pub fn load(
        store: &dyn ObjectStore,
        vault: &Vault,
        id: ObjectId,
    ) -> Result<Self, SnapshotError> {
        Ok(read(store, vault, id)?)
    }

    /// Reads all snapshots, oldest first, and one that was repaired after the one that it was made from. One that is damaged, or sealed in an epoch for which
    /// there is no secret, is set aside; one that was changed is there once, as it is now; one
    /// that vanishes meanwhile is passed over, unless a changed one takes its place: that is
    /// looked for.
    ///
    /// # Errors
    /// When the store fails.
    pub fn load_all(store: &dyn ObjectStore, vault: &Vault) -> Result<SnapshotList, SnapshotError> {
        let mut list = SnapshotList::default();
        let mut seen = BTreeSet::new();
        loop {
            let mut has_vanished = false;
            for id in Self::ids(store)? {
                if !seen.insert(id) {
                    continue;
                }
                match read(store, vault, id) {
                    Ok(snapshot) => list.snapshots.push(snapshot),
                    Err(ObjectError::Store(error)) if error.is_missing() => has_vanished = true,
                    Err(error)
                        if error.is_damage()
                            || matches!(error, ObjectError::UnknownEpoch { .. }) =>
                    {
                        list.unreadable.push(UnreadableSnapshot { id, error });
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            // A change writes the new object before it deletes the old one: what took the place of
            // one that vanished is in a listing made from now on. An id vanishes once.
            if !has_vanished {
                break;
            }
        }
        list.unreadable.sort_by_key(|unreadable| unreadable.id);
        list.set_replaced_aside();
        list.snapshots.sort_by_key(Snapshot::order);
        Ok(list)
    }

    /// The ids of all snapshots, in ascending order.
    ///
    /// # Errors
    /// When the store can't list them.
    pub fn ids(store: &dyn ObjectStore) -> Result<Vec<ObjectId>, SnapshotError> {
        let mut ids = Vec::new();
        store
            .list(ObjectKind::Snapshot, &mut |id, _| ids.push(id))
            .map_err(ObjectError::from)?;
        ids.sort_unstable();
        Ok(ids)
    }
}

fn read(store: &dyn ObjectStore, vault: &Vault, id: ObjectId) -> Result<Snapshot, ObjectError> {
    let body = read_document(store, vault, key_of(id))?;
    body::decode(id, &body).in_object(key_of(id), "snapshot")
}

#[cfg(test)]
mod tests;

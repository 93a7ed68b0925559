//! Snapshots that are in both repositories.

use std::collections::{BTreeMap, HashSet};

use engine::object::ObjectId;

use super::CopyError;
use crate::repository::Repository;
use crate::snapshot::{Origin, Snapshot};

/// A snapshot of the source, and its copy.
#[derive(Clone)]
pub(super) struct Pair {
    pub source: Snapshot,
    pub target: Snapshot,
}

impl Snapshot {
    /// Which snapshot of which repository it is, or is a copy of, when it is in `repository`.
    #[must_use]
    pub fn origin(&self, repository: ObjectId) -> Origin {
        self.copy_of.unwrap_or(Origin {
            repository,
            snapshot: self.original(),
        })
    }

    /// Is that its id, or one that it had?
    pub(super) fn is_or_was(&self, id: ObjectId) -> bool {
        self.id == id || self.replaces.contains(&id)
    }
}

/// The snapshots of the source that are in the target, and what is there.
pub(super) type Pairs = (Vec<Pair>, BTreeMap<Origin, ObjectId>);

pub(super) fn pairs_of(source: &Repository, target: &Repository) -> Result<Pairs, CopyError> {
    let in_target = target.snapshots().map_err(CopyError::Target)?;
    let in_source = source.snapshots().map_err(CopyError::Source)?;
    let id = target.config().id;
    // What may lack something, or was found damaged, is no copy to rest on.
    let listed = in_target.snapshots.iter();
    let damaged: HashSet<ObjectId> = listed.filter_map(|snapshot| snapshot.repaired).collect();
    let sound = in_target.snapshots.iter().filter(|snapshot| {
        let mut ids = snapshot.replaces.iter().chain([&snapshot.id]);
        !snapshot.is_doubtful && !ids.any(|id| damaged.contains(id))
    });
    let there: BTreeMap<Origin, &Snapshot> = sound
        .map(|snapshot| (snapshot.origin(id), snapshot))
        .collect();
    let pair = |source_snapshot: &Snapshot| {
        let origin = source_snapshot.origin(source.config().id);
        Some(Pair {
            source: source_snapshot.clone(),
            target: (*there.get(&origin)?).clone(),
        })
    };
    let pairs = in_source.snapshots.iter().filter_map(pair).collect();
    let there = there.iter().map(|(origin, copy)| (*origin, copy.id));
    Ok((pairs, there.collect()))
}

/// Do both repositories have the same fingerprints of the same chunks?
pub(super) fn has_same_fingerprints(one: &Repository, two: &Repository) -> bool {
    let of = |repository: &Repository| {
        let fingerprinter = repository.engine().fingerprinter();
        fingerprinter.fingerprint(engine::container::ContainerKind::Data, b"onefold copy")
    };
    of(one) == of(two)
}

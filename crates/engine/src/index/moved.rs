//! What moved containers mean for the index: which objects it has to be told of, and which it takes nothing from.
//!
//! Runs name logical containers. One that was moved lies in an object of another name, together with others; that
//! object need be read only if one of them is in no run. Runs may name slots that a compaction dropped:
//! who looks them up finds that they are not there.

use std::collections::HashSet;

use super::RunSet;
use crate::container::{ContainerId, RemapSet};
use crate::object::ObjectId;

/// The container objects whose chunks a set of runs does not have.
#[derive(Debug)]
pub struct ObjectsToIndex<'a> {
    remaps: &'a RemapSet,
    /// Moved containers that no run covers.
    moved: &'a HashSet<ContainerId>,
    /// The objects that remaps name, and whether one of their containers is in `moved`.
    named: HashSet<ObjectId>,
    wanted: HashSet<ObjectId>,
}

impl<'a> ObjectsToIndex<'a> {
    /// Those that hold containers of `moved` ([`RunSet::moved_uncovered`]), or a container of their own that no
    /// run covers.
    #[must_use]
    pub fn new(remaps: &'a RemapSet, moved: &'a HashSet<ContainerId>) -> Self {
        let named = remaps.moved().map(|(_, object)| object).collect();
        let wanted = remaps
            .moved()
            .filter(|(container, _)| moved.contains(container))
            .map(|(_, object)| object)
            .collect();
        Self {
            remaps,
            moved,
            named,
            wanted,
        }
    }

    /// Is that object one of them?
    #[must_use]
    pub fn contains(&self, runs: &RunSet, object: ObjectId) -> bool {
        let own = ContainerId(object);
        match self.named.contains(&object) {
            true => self.wanted.contains(&object),
            false => self.is_uncovered(runs, own),
        }
    }

    /// Has the index to be told of that container, which lies in that object? Of a moved one it is told of all
    /// places.
    #[must_use]
    pub fn is_wanted(&self, runs: &RunSet, container: ContainerId, object: ObjectId) -> bool {
        self.remaps.is_place(container, object) && self.is_uncovered(runs, container)
    }

    fn is_uncovered(&self, runs: &RunSet, container: ContainerId) -> bool {
        match self.remaps.is_moved(container) {
            true => self.moved.contains(&container),
            false => !runs.covered(container),
        }
    }
}

impl RunSet {
    /// Containers that were moved and that no run covers.
    #[must_use]
    pub fn moved_uncovered(&self, remaps: &RemapSet) -> HashSet<ContainerId> {
        let moved = remaps.moved().map(|(container, _)| container);
        moved
            .filter(|&container| !self.covered(container))
            .collect()
    }
}

/// Containers that a run covers and none has entries of.
pub(super) fn set_aside_before(runs: &RunSet) -> HashSet<ContainerId> {
    let runs = runs.runs();
    let covered = runs.iter().flat_map(|run| &run.footer().covered);
    let mut aside: HashSet<ContainerId> = covered.copied().collect();
    for container in runs.iter().flat_map(|run| &run.footer().containers) {
        aside.remove(container);
    }
    aside
}

/// The objects that hold nothing but containers that were set aside, as far as is known. Of one that was moved, what
/// was intact lies in an object with others.
pub(super) fn objects_aside<'a>(
    aside: &'a HashSet<ContainerId>,
    remaps: &'a RemapSet,
) -> impl Iterator<Item = ObjectId> + 'a {
    let holding = |is_aside: bool| {
        let places = remaps.moved();
        let places = places.filter(move |(container, _)| aside.contains(container) == is_aside);
        places
            .map(|(_, object)| object)
            .collect::<HashSet<ObjectId>>()
    };
    let (with, beside) = match aside.is_empty() {
        true => Default::default(),
        false => (holding(true), holding(false)),
    };
    let own = aside.iter().map(|container| container.0);
    own.chain(
        with.into_iter()
            .filter(move |object| !beside.contains(object)),
    )
}

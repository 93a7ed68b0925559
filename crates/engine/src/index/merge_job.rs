//! A merge beside look-ups: which containers keep their entries.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::live::LiveObjects;
use super::{MergeSummary, RunSet};
use crate::container::{ContainerId, ContainerReader};
use crate::format::ObjectError;

/// Merges the runs of an index while the index is in use.
pub struct MergeJob {
    pub(super) runs: Arc<RunSet>,
    pub(super) live: Arc<LiveObjects>,
    pub(super) aside: Arc<HashSet<ContainerId>>,
    pub(super) reader: Arc<ContainerReader>,
}

impl MergeJob {
    /// Merges until sizes are geometric, or `cancel` is set: see [`RunSet::merge`].
    ///
    /// # Errors
    /// When the store fails; the index is whole all the same.
    pub fn run(&self, cancel: &AtomicBool) -> Result<MergeSummary, ObjectError> {
        // Containers are in `live` before any run names them, those sealed meanwhile as well.
        let remaps = self.reader.remaps();
        let is_live = |container: ContainerId| {
            self.live.has_container(&remaps, container) || self.aside.contains(&container)
        };
        self.runs.merge(&is_live, cancel)
    }
}

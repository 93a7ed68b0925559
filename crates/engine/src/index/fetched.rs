//! Containers whose metadata was fetched because a chunk of theirs was met: chunks that resemble theirs
//! tend to follow.
//!
//! Enter: sections that come into the locality cache, and the ids of containers of this run. Leave: the
//! last sections that were not taken yet, each once, bounded in bytes. Those of this run are left out:
//! whether they are fetched at all depends on how far the threads that put them are.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::container::{ContainerId, Section};

/// The sections that wait for whoever takes them.
#[derive(Debug)]
pub(super) struct Fetched {
    sections: VecDeque<Arc<Section>>,
    bytes: usize,
    limit_bytes: usize,
    /// Containers that came, and those of this run: 16 bytes each, and what a set adds.
    seen: HashSet<ContainerId>,
}

impl Fetched {
    /// Holds at most so many bytes, or one section.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            sections: VecDeque::new(),
            bytes: 0,
            limit_bytes,
            seen: HashSet::new(),
        }
    }

    /// That container is one of this run.
    pub fn note_own(&mut self, container: ContainerId) {
        self.seen.insert(container);
    }

    /// That section was fetched. The oldest go where there is no room.
    pub fn push(&mut self, section: &Arc<Section>) {
        if section.features.per_chunk() == 0 || !self.seen.insert(section.id) {
            return;
        }
        self.bytes += section.memory_bytes();
        self.sections.push_back(Arc::clone(section));
        while self.bytes > self.limit_bytes
            && self.sections.len() > 1
            && let Some(oldest) = self.sections.pop_front()
        {
            self.bytes -= oldest.memory_bytes();
        }
    }

    /// Gives away what is there, the oldest first.
    pub fn take(&mut self) -> VecDeque<Arc<Section>> {
        self.bytes = 0;
        std::mem::take(&mut self.sections)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use zeroize::Zeroizing;

    use super::*;
    use crate::container::{Compression, ContainerBuilder, ContainerKind, NewChunk};
    use crate::fingerprint::Fingerprint;
    use crate::format::Vault;
    use crate::object::ObjectId;

    fn section(features: usize) -> Arc<Section> {
        let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
        let vault = Vault::new(ObjectId([1; 16]), secrets, false);
        let builder = ContainerBuilder::new(&vault, ContainerKind::Data, 1 << 20);
        let mut builder = builder.with_features(features);
        let chunk = NewChunk {
            features: vec![5; features],
            ..NewChunk::whole(Fingerprint([0; 32]), 1000)
        };
        builder.push_chunks(&[7; 1000], Compression::Stored, &[chunk]);
        builder.finish(true).section
    }

    #[test]
    fn each_comes_once_and_the_last_ones_stay() {
        let sections: Vec<_> = (0..5).map(|_| section(3)).collect();
        let mut fetched = Fetched::new(3 * sections[0].memory_bytes());
        fetched.note_own(sections[1].id);
        for section in sections.iter().chain(&sections) {
            fetched.push(section);
        }
        fetched.push(&section(0));
        let ids = |taken: VecDeque<Arc<Section>>| -> Vec<_> {
            taken.iter().map(|section| section.id).collect()
        };
        let last = [2, 3, 4].map(|number: usize| sections[number].id);
        assert_eq!(ids(fetched.take()), last);
        fetched.push(&sections[3]);
        assert!(fetched.take().is_empty());
        let (one, other) = (section(3), section(3));
        let mut small = Fetched::new(1);
        small.push(&one);
        small.push(&other);
        assert_eq!(ids(small.take()), [other.id]);
    }
}

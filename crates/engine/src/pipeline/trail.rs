//! Where hints come from in a repository: the recipe that a stream had in the parent snapshot, and
//! the metadata of the containers that it names.
//!
//! Enters: that recipe, and what the stream is cut into now. Leaves: for a chunk that the parent had,
//! what followed it there, and what lies in the next slot of its container: at most two hints,
//! with the fingerprints that they lead to. Container metadata is fetched through the reader that
//! the index has, which keeps it: what is fetched here need not be fetched when the chunks are
//! looked up, and the other way round.
//!
//! Hints depend on the parent and on the place in the stream, never on other streams or threads:
//! so cuts do not either. The recipe is followed [`AHEAD_BYTES`] ahead of the stream, so that bytes
//! put in or taken out shift it by so much at most before hints end, or as far as there is room for;
//! without a hint the chunker looks for its cuts.
//!
//! Memory: two generations of [`GENERATION_CHUNKS`] and one container's chunks at most, about 100
//! bytes each. When something can't be read there are no more hints, and the trail says why
//! ([`Trail::take_problem`]); the stream is stored all the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chunking::rapid::Hint;

use crate::container::{ContainerId, Section};
use crate::fingerprint::Fingerprint;
use crate::recipe::{Recipe, Run};
use crate::restore::{ReadError, Reader, Runs};

/// How far the recipe is followed ahead.
const AHEAD_BYTES: u64 = 64 << 20;

/// Chunks after which the oldest are forgotten.
const GENERATION_CHUNKS: usize = 16 << 10;

/// Hints for one chunk.
pub(super) const HINTS_MAX: usize = 2;

/// A chunk that followed another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Follower {
    pub hint: Hint,
    pub fingerprint: Fingerprint,
}

/// What followed a chunk, the likelier first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Followers([Option<Follower>; HINTS_MAX]);

impl Followers {
    fn put_first(&mut self, follower: Follower) {
        let [first, second] = &mut self.0;
        if first.is_some_and(|it| it.hint.bytes != follower.hint.bytes) {
            *second = *first;
        }
        *first = Some(follower);
    }

    /// The followers, the likelier first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Follower> {
        self.0.iter().flatten()
    }
}

type Links = HashMap<Fingerprint, Followers>;

/// What a stream was when the parent snapshot was made.
#[derive(Debug)]
pub struct Trail {
    reader: Reader,
    runs: Option<Runs>,
    /// How far the stream has come, holes included.
    position: u64,
    /// How far the recipe was followed.
    followed_bytes: u64,
    /// How far it was followed when the older links were put aside: the stream needs them until it
    /// comes there.
    rotated_at: u64,
    /// The last chunk so far, and its container.
    last: Option<Fingerprint>,
    last_container: Option<ContainerId>,
    links: Links,
    older_links: Links,
    problem: Option<ReadError>,
}

impl Trail {
    /// The trail of a stream that had this recipe, which is read through `reader`.
    #[must_use]
    pub fn new(reader: Reader, recipe: &Recipe) -> Self {
        let runs = reader.runs(recipe);
        Self {
            reader,
            runs: Some(runs),
            position: 0,
            followed_bytes: 0,
            rotated_at: 0,
            last: None,
            last_container: None,
            links: Links::new(),
            older_links: Links::new(),
            problem: None,
        }
    }

    /// What it reads by.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Why there are no more hints, once.
    pub fn take_problem(&mut self) -> Option<ReadError> {
        self.problem.take()
    }

    /// Counts bytes of the stream that are behind: of chunks, and of holes.
    pub fn pass(&mut self, bytes: u64) {
        self.position = self.position.saturating_add(bytes);
    }

    /// Whether there is more of the recipe to follow, and room for it.
    fn is_behind(&self) -> bool {
        let is_full = self.links.len() >= GENERATION_CHUNKS && self.position < self.rotated_at;
        self.runs.is_some()
            && !is_full
            && self.followed_bytes < self.position.saturating_add(AHEAD_BYTES)
    }

    /// What followed the chunk `before`. Reads ahead in the store.
    pub(super) fn after(&mut self, before: &Fingerprint) -> Followers {
        while self.is_behind() {
            if let Err(error) = self.follow_run() {
                self.problem = Some(error);
                self.runs = None;
            }
        }
        let found = self.links.get(before);
        let found = found.or_else(|| self.older_links.get(before));
        found.copied().unwrap_or_default()
    }

    fn follow_run(&mut self) -> Result<(), ReadError> {
        let next = self.runs.as_mut().map(Runs::next_located);
        let Some((run, located)) = next.transpose()?.flatten() else {
            self.runs = None;
            return Ok(());
        };
        self.followed_bytes = self.followed_bytes.saturating_add(run.bytes());
        let (Run::Slots { container, .. }, Some(located)) = (run, located) else {
            // What comes behind a hole is cut as a stream of its own.
            self.last = None;
            return Ok(());
        };
        if self.links.len() >= GENERATION_CHUNKS {
            self.older_links = std::mem::take(&mut self.links);
            self.rotated_at = self.followed_bytes;
        }
        let section = &located.section.section;
        if self.last_container != Some(container) {
            self.link_neighbours(section);
            self.last_container = Some(container);
        }
        for chunk in located.chunks {
            if let Some(last) = self.last {
                let followers = self.links.entry(last).or_default();
                followers.put_first(follower(section, chunk));
            }
            self.last = Some(section.fingerprints[chunk]);
        }
        Ok(())
    }

    /// Chunks in the next slots of a container, where nothing better is known.
    fn link_neighbours(&mut self, section: &Section) {
        for chunk in 1..section.chunk_count() {
            if self
                .older_links
                .contains_key(&section.fingerprints[chunk - 1])
            {
                continue;
            }
            if let Entry::Vacant(vacant) = self.links.entry(section.fingerprints[chunk - 1]) {
                let mut followers = Followers::default();
                followers.put_first(follower(section, chunk));
                vacant.insert(followers);
            }
        }
    }
}

fn follower(section: &Section, chunk: usize) -> Follower {
    Follower {
        hint: Hint {
            bytes: section.lengths[chunk],
            marker: section.markers.get(chunk).copied().unwrap_or_default(),
        },
        fingerprint: section.fingerprints[chunk],
    }
}

#[cfg(test)]
mod tests {
    use super::{Follower, Followers, Hint};
    use crate::fingerprint::Fingerprint;

    #[test]
    fn two_lengths_are_kept_the_latest_first() {
        let follower = |bytes, number| Follower {
            hint: Hint { bytes, marker: 0 },
            fingerprint: Fingerprint([number; 32]),
        };
        let mut followers = Followers::default();
        let listed = |followers: &Followers| followers.iter().copied().collect::<Vec<_>>();
        assert_eq!(listed(&followers), []);
        followers.put_first(follower(5, 1));
        followers.put_first(follower(5, 2));
        assert_eq!(listed(&followers), [follower(5, 2)]);
        followers.put_first(follower(6, 3));
        followers.put_first(follower(7, 4));
        assert_eq!(listed(&followers), [follower(7, 4), follower(6, 3)]);
    }
}

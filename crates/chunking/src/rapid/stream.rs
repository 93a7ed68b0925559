//! The loop of RapidCDC over one stream: cut, fingerprint, look up, take hints for the next.
//!
//! Enters: what is left of a stream in memory, a function that fingerprints, and the history of all
//! chunks so far, which other threads may use at the same time. Leaves: chunks with their
//! fingerprints, and in the history what followed what. Each chunk is fingerprinted once, and once
//! more for every hint that the fingerprint test refused.

use super::{Hint, Hints, RapidChunker, RapidCounts, SizeLists};
use std::hash::Hash;

/// A chunk of a [`RapidStream`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RapidChunk<F> {
    /// Its length.
    pub length: usize,
    /// Its fingerprint.
    pub fingerprint: F,
    /// The same chunk came before.
    pub is_duplicate: bool,
    /// Which of the hints was accepted; `None` when the cut was looked for.
    pub accepted: Option<usize>,
}

/// Cuts one stream by what is known of others; see [`RapidStream::next_chunk`].
#[derive(Debug)]
pub struct RapidStream<'a, F, const LENGTH: usize = 2> {
    rapid: &'a RapidChunker,
    history: &'a SizeLists<F, LENGTH>,
    /// The chunk before, and what followed it when it came earlier.
    before: Option<(F, Hints<LENGTH>)>,
    counts: RapidCounts,
}

impl<'a, F: Hash + Eq + Clone, const LENGTH: usize> RapidStream<'a, F, LENGTH> {
    /// A stream at its beginning.
    #[must_use]
    pub fn new(rapid: &'a RapidChunker, history: &'a SizeLists<F, LENGTH>) -> Self {
        Self {
            rapid,
            history,
            before: None,
            counts: RapidCounts::default(),
        }
    }

    /// Cuts the first chunk of `rest`, all that is left of the stream or at least `max_bytes` of it,
    /// and takes it in. `None` when nothing is left.
    pub fn next_chunk(
        &mut self,
        rest: &[u8],
        mut fingerprint: impl FnMut(&[u8]) -> F,
    ) -> Option<RapidChunk<F>> {
        let hints = self.before.as_ref().map(|before| before.1);
        let hints = hints.unwrap_or_default();
        let mut tested = None;
        let is_known = |_: usize, chunk: &[u8]| {
            let candidate = fingerprint(chunk);
            let is_known = self.history.knows(&candidate);
            tested = Some(candidate);
            is_known
        };
        let cut = self
            .rapid
            .cut(rest, hints.as_slice(), is_known, &mut self.counts);
        if cut.length == 0 {
            return None;
        }
        let chunk = &rest[..cut.length];
        // What was tested last is what was accepted, if any was.
        let tested = tested.filter(|_| cut.accepted.is_some());
        let fingerprint = tested.unwrap_or_else(|| fingerprint(chunk));
        let next = Hint::of(chunk, self.rapid.criterion());
        if let Some((before, hints)) = &self.before
            && hints.as_slice().first() != Some(&next)
        {
            self.history.follow(before, next);
        }
        let met = self.history.enter(&fingerprint);
        self.before = Some((fingerprint.clone(), met.hints));
        Some(RapidChunk {
            length: cut.length,
            fingerprint,
            is_duplicate: met.is_duplicate,
            accepted: cut.accepted,
        })
    }

    /// Cuts a whole stream in memory and hands each chunk to `each`.
    pub fn run(
        mut self,
        data: &[u8],
        mut fingerprint: impl FnMut(&[u8]) -> F,
        mut each: impl FnMut(RapidChunk<F>),
    ) -> RapidCounts {
        let mut start = 0;
        while let Some(chunk) = self.next_chunk(&data[start..], &mut fingerprint) {
            start += chunk.length;
            each(chunk);
        }
        self.counts
    }

    /// How it went so far.
    #[must_use]
    pub fn counts(&self) -> &RapidCounts {
        &self.counts
    }
}

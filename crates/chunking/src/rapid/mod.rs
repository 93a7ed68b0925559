//! RapidCDC: a chunk that was met before tells where the next one may end.
//!
//! Source: Ni, *Optimizing Deduplication*, ch. 3 (RapidCDC, SoCC 2019): §3.3.1 hints, §3.3.2
//! criteria, §3.3.3 size lists.
//!
//! Enters: what is left of a stream, and hints, lengths that chunks had which followed the chunk
//! before ([`Hint`]), the most likely first. Leaves: the length of the next chunk. Each hint is held
//! against a [`Criterion`]; the first that is accepted is the cut, and no byte was rolled over.
//! When all are refused the chunker looks for the cut itself. Where hints come from is the
//! caller's: [`SizeLists`] is the paper's way, and [`RapidStream`] the loop around it.
//!
//! What holds, whatever the hints are:
//! - chunks laid end to end are the data; none is longer than `max_bytes`, and only the last of a
//!   stream may be shorter than `min_bytes`: a hint that would break this is refused unchecked;
//! - without hints the cuts are those of the chunker;
//! - [`Criterion::RollingWindow`]: [`Chunker::is_cut_at`] is true of every cut (of those that
//!   rolling found it always is);
//! - [`Criterion::RollingWindowAndFingerprint`], when a chunk counts as known only if the same bytes
//!   were cut by this chunker before: the cuts are the chunker's, all of them. For bytes that it cut
//!   at their end once it cuts nowhere before that end, and the window there matches. (The end of a
//!   stream of odd length is an exception for `fastcdc-crate-v2020`, whose last byte goes
//!   unjudged.)
//!
//! With the other criteria cuts depend on what was met before: the same data may be cut
//! differently by another history.
//!
//! Nothing says what RWT shall do where a regular chunker cuts without looking at the hash: at
//! `max_bytes`, as it does for a third of the chunks with 4, 8, 12 KiB, and at the end of a stream. To
//! refuse such hints would be to roll for a third of the chunks, and the paper's speed-ups (10 and
//! more with RWT) rule that out; to accept them all costs up to 0.7 % of the dedup ratio on its
//! synthetic sets, for a chunk in which bytes were put in or taken out still has room for a cut of
//! its own. So there, having no window to test, RWT tests the marker.

mod history;
mod stream;

pub use history::{Hints, Met, SizeLists};
pub use stream::{RapidChunk, RapidStream};

use crate::Chunker;
use std::fmt;

/// When a hint is accepted (§3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Criterion {
    /// Always (FF).
    FastForward,
    /// When the window there cuts, under the mask that is in force at this length; where the chunker
    /// looks at none, when the last byte is as for [`Criterion::Marker`] (FF+RWT).
    RollingWindow,
    /// When the last byte is the one that the chunk had which gave the hint (FF+MT).
    Marker,
    /// When the window there cuts and the chunk is one that is known (FF+RWT+FPT).
    RollingWindowAndFingerprint,
}

/// What there is to know about a [`Criterion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CriterionInfo {
    /// The criterion of this row.
    pub criterion: Criterion,
    /// Its number in repositories.
    pub id: u8,
    /// Its name in commands and reports.
    pub name: &'static str,
}

/// Every criterion, in the order of their numbers.
pub const CRITERIA: &[CriterionInfo] = &[
    row(Criterion::FastForward, 1, "ff"),
    row(Criterion::RollingWindow, 2, "ff+rwt"),
    row(Criterion::Marker, 3, "ff+mt"),
    row(Criterion::RollingWindowAndFingerprint, 4, "ff+rwt+fpt"),
];

const fn row(criterion: Criterion, id: u8, name: &'static str) -> CriterionInfo {
    CriterionInfo {
        criterion,
        id,
        name,
    }
}

impl Criterion {
    /// Its row in [`CRITERIA`].
    #[must_use]
    pub fn info(self) -> &'static CriterionInfo {
        &CRITERIA[self as usize]
    }

    /// Whether it looks at [`Hint::marker`].
    #[must_use]
    pub fn looks_at_markers(self) -> bool {
        matches!(self, Self::RollingWindow | Self::Marker)
    }

    /// The criterion called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let row = CRITERIA.iter().find(|info| info.name == name)?;
        Some(row.criterion)
    }

    /// The criterion with a stored number.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        let row = CRITERIA.iter().find(|info| info.id == id)?;
        Some(row.criterion)
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.info().name)
    }
}

/// A chunk that once followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hint {
    /// Its length.
    pub bytes: u32,
    /// Its last byte; 0 where the criterion does not [look at it](Criterion::looks_at_markers), so
    /// that no byte of a chunk that was skipped need come into the processor.
    pub marker: u8,
}

impl Hint {
    /// What a chunk leaves behind for `criterion`; it is not empty.
    #[must_use]
    pub fn of(chunk: &[u8], criterion: Criterion) -> Self {
        let marker = match criterion.looks_at_markers() {
            true => chunk.last().copied().unwrap_or_default(),
            false => 0,
        };
        Self {
            bytes: u32::try_from(chunk.len()).unwrap_or(u32::MAX),
            marker,
        }
    }
}

/// A chunk that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RapidCut {
    /// Its length; 0 at the end of the data.
    pub length: usize,
    /// Which of the hints was accepted; `None` when the cut was looked for.
    pub accepted: Option<usize>,
}

/// How it went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RapidCounts {
    /// Chunks that were cut.
    pub chunks: u64,
    /// Those for which there was a hint.
    pub chunks_hinted: u64,
    /// Hints that were accepted, by their place in the list; the last counts all places from there on.
    pub hits: [u64; Self::PLACES],
    /// Hints that were refused, by their place.
    pub misses: [u64; Self::PLACES],
    /// Of these, hints that could be no length here: refused without a check.
    pub impossible: u64,
    /// Bytes of the chunks that hints cut.
    pub bytes_skipped: u64,
    /// Bytes of the chunks whose cut was looked for.
    pub bytes_sought: u64,
    /// Of these, bytes behind `min_bytes`, which the hash was rolled over.
    pub bytes_rolled: u64,
}

impl RapidCounts {
    /// Places of a list that are counted apart.
    pub const PLACES: usize = 4;

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.hits.iter_mut().zip(other.hits) {
            *sum += count;
        }
        for (sum, count) in self.misses.iter_mut().zip(other.misses) {
            *sum += count;
        }
        self.chunks += other.chunks;
        self.chunks_hinted += other.chunks_hinted;
        self.impossible += other.impossible;
        self.bytes_skipped += other.bytes_skipped;
        self.bytes_sought += other.bytes_sought;
        self.bytes_rolled += other.bytes_rolled;
    }
}

/// A chunker that takes hints. Has no state of its own, as a [`Chunker`] has none.
#[derive(Debug, Clone)]
pub struct RapidChunker {
    chunker: Chunker,
    criterion: Criterion,
    refuses_all: bool,
}

impl RapidChunker {
    /// Cuts as `chunker` does, and where hints that satisfy `criterion` say.
    ///
    /// A window test is one window for chunkers that have one
    /// ([`Algorithm::judges_windows`](crate::Algorithm::judges_windows)); with others it costs as
    /// much as looking for the cut.
    #[must_use]
    pub fn new(chunker: Chunker, criterion: Criterion) -> Self {
        Self {
            chunker,
            criterion,
            refuses_all: false,
        }
    }

    /// The same, which checks hints and then refuses each: to measure the worst case (§3.4.4,
    /// Fig. 3.11). Its cuts are those of the chunker.
    #[must_use]
    pub fn refusing_all(mut self) -> Self {
        self.refuses_all = true;
        self
    }

    /// What cuts when hints do not.
    #[must_use]
    pub fn chunker(&self) -> &Chunker {
        &self.chunker
    }

    /// When hints are accepted.
    #[must_use]
    pub fn criterion(&self) -> Criterion {
        self.criterion
    }

    /// Cuts the first chunk of `data`, which holds what [`Chunker::cut`] asks for.
    ///
    /// `is_known` gets the place of a hint and the chunk that it would make, and says whether that
    /// chunk is known; it is asked by [`Criterion::RollingWindowAndFingerprint`] alone.
    pub fn cut(
        &self,
        data: &[u8],
        hints: &[Hint],
        mut is_known: impl FnMut(usize, &[u8]) -> bool,
        counts: &mut RapidCounts,
    ) -> RapidCut {
        if data.is_empty() {
            return RapidCut {
                length: 0,
                accepted: None,
            };
        }
        counts.chunks += 1;
        counts.chunks_hinted += u64::from(!hints.is_empty());
        for (place, hint) in hints.iter().enumerate() {
            let counted = place.min(RapidCounts::PLACES - 1);
            let length = hint.bytes as usize;
            if !self.is_possible(data, length) {
                counts.impossible += 1;
            } else if self.accepts(data, *hint, |chunk| is_known(place, chunk)) {
                counts.hits[counted] += 1;
                counts.bytes_skipped += u64::from(hint.bytes);
                return RapidCut {
                    length,
                    accepted: Some(place),
                };
            }
            counts.misses[counted] += 1;
        }
        let length = self.chunker.cut(data);
        let min_bytes = self.chunker.parameters().min_bytes as usize;
        counts.bytes_sought += length as u64;
        counts.bytes_rolled += length.saturating_sub(min_bytes) as u64;
        RapidCut {
            length,
            accepted: None,
        }
    }

    /// Whether a chunk of `data` can have this length at all.
    fn is_possible(&self, data: &[u8], length: usize) -> bool {
        let parameters = self.chunker.parameters();
        let longest = data.len().min(parameters.max_bytes as usize);
        let is_end = length == data.len() && length > 0;
        length <= longest && (is_end || length >= parameters.min_bytes as usize)
    }

    fn accepts(&self, data: &[u8], hint: Hint, is_known: impl FnOnce(&[u8]) -> bool) -> bool {
        let length = hint.bytes as usize;
        let is_accepted = match self.criterion {
            Criterion::FastForward => true,
            Criterion::RollingWindow => {
                let parameters = self.chunker.parameters();
                let is_forced = length == data.len() || length == parameters.max_bytes as usize;
                self.chunker.is_cut_at(data, length)
                    && (!is_forced || data[length - 1] == hint.marker)
            }
            Criterion::Marker => data[length - 1] == hint.marker,
            Criterion::RollingWindowAndFingerprint => {
                self.chunker.is_cut_at(data, length) && is_known(&data[..length])
            }
        };
        // Else the check could be left out by a compiler that sees what becomes of it.
        std::hint::black_box(is_accepted) && !self.refuses_all
    }
}

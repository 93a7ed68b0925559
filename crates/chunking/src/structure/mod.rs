//! Sections: parts of a stream that are cut each as a stream of its own, because its format says that
//! something else begins there.
//!
//! Enters: a stream as it is read, and which formats are looked for ([`Structure`]). Leaves: how
//! much of what is in memory belongs to the section of the next chunk ([`Sections::next`]), or that
//! chunk's length ([`Sections::cut`]). A format is
//! recognised by content and never trusted: sections only ever add cuts, so that chunks laid end to
//! end are the stream, whatever it says about itself; only the last chunk of a section may have
//! fewer than `min_bytes`.
//!
//! Sections depend on the stream alone, never on the sizes of reads. They are specified in
//! docs/format/chunkers.md ("Sections").
//!
//! ```
//! use chunking::{Chunker, KeyMaterial, Parameters, structure::{Sections, Structure}};
//! let chunker = Chunker::new(&Parameters::default(), KeyMaterial::Unkeyed)?;
//! let data = vec![7u8; 100_000];
//! let mut sections = Sections::new(Structure::Tar, &chunker);
//! let mut lengths = Vec::new();
//! let mut rest = &data[..];
//! while let Some(length) = sections.cut(&chunker, rest, true) {
//!     rest = &rest[length..];
//!     lengths.push(length);
//! }
//! assert_eq!(lengths, [65_536, 34_464], "no tar");
//! # Ok::<(), chunking::ParameterError>(())
//! ```
//!
//! To add a format: a row in [`Structure::NAMES`], its number in the repository's `config`, a scanner
//! beside `tar.rs`, an arm in `Scanner`, its definition in docs/format/chunkers.md, golden sections.

mod tar;
mod tar_header;

use std::collections::VecDeque;

use crate::Chunker;
use tar::TarScanner;

/// Formats that are looked for in streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Structure {
    /// None: a stream is one section.
    #[default]
    None,
    /// Archives of tar: v7, ustar, GNU and pax.
    Tar,
}

impl Structure {
    /// All of them, with their names and what there is to say about each.
    pub const NAMES: [(Structure, &'static str, &'static str); 2] = [
        (Structure::None, "none", "files are just bytes"),
        (
            Structure::Tar,
            "tar",
            "in tar archives contents apart from headers, each as if it were a file",
        ),
    ];

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Structure::None => "none",
            Structure::Tar => "tar",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|row| row.1 == name);
        found.map(|row| row.0)
    }
}

/// Bytes that are looked at ahead of the chunker: few, so that they are in the cache when it comes.
const AHEAD_BYTES: usize = 64 << 10;

/// Headers begin at multiples of so many bytes, in all formats so far.
const BLOCK_BYTES: u64 = 512;

/// The sections of one stream; see [`Sections::next`].
#[derive(Debug, Clone)]
pub struct Sections {
    scanner: Option<Scanner>,
    chunk_bytes_max: usize,
    /// Where in the stream the next chunk begins.
    start: u64,
    /// How many bytes the scanner has seen.
    seen: u64,
    /// Boundaries behind `start`.
    boundaries: VecDeque<u64>,
}

/// What finds boundaries, one for each format.
#[derive(Debug, Clone)]
enum Scanner {
    Tar(TarScanner),
}

impl Scanner {
    fn push(&mut self, piece: &[u8], boundary: &mut impl FnMut(u64)) {
        match self {
            Scanner::Tar(scanner) => scanner.push(piece, boundary),
        }
    }

    fn decided(&self) -> u64 {
        match self {
            Scanner::Tar(scanner) => scanner.decided(),
        }
    }

    fn searching_until(&self) -> Option<u64> {
        match self {
            Scanner::Tar(scanner) => scanner.searching_until(),
        }
    }
}

impl Sections {
    /// The sections of a stream that stands at its start, and is cut by `chunker`.
    #[must_use]
    pub fn new(structure: Structure, chunker: &Chunker) -> Self {
        Self {
            scanner: match structure {
                Structure::None => None,
                Structure::Tar => Some(Scanner::Tar(TarScanner::new())),
            },
            chunk_bytes_max: chunker.parameters().max_bytes as usize,
            start: 0,
            seen: 0,
            boundaries: VecDeque::new(),
        }
    }

    /// A stream without sections, of which nothing is asked.
    #[must_use]
    pub fn none() -> Self {
        Self {
            scanner: None,
            chunk_bytes_max: usize::MAX,
            start: 0,
            seen: 0,
            boundaries: VecDeque::new(),
        }
    }

    /// What the chunker is to see for the next chunk: the bytes from its start on to the end of
    /// its section, or at least `max_bytes` of these. Nothing when more of the stream is needed to
    /// know, or when it is at its end.
    ///
    /// `rest` is the stream from where the next chunk begins ([`pass`](Self::pass)), as far as it is
    /// there: at least as far as it was when this was called before. `is_end` says that the stream
    /// ends with it.
    pub fn next<'a>(&mut self, rest: &'a [u8], is_end: bool) -> Option<&'a [u8]> {
        let wanted = self.chunk_bytes_max;
        loop {
            let Some(scanner) = &self.scanner else {
                let is_enough = rest.len() >= wanted || (is_end && !rest.is_empty());
                return is_enough.then_some(rest);
            };
            if let Some(&boundary) = self.boundaries.front() {
                let section_bytes = usize::try_from(boundary - self.start);
                return Some(&rest[..section_bytes.unwrap_or(usize::MAX)]);
            }
            let decided = scanner.decided().saturating_sub(self.start);
            let decided = usize::try_from(decided).unwrap_or(usize::MAX);
            if decided >= wanted {
                return Some(&rest[..decided]);
            }
            let seen = usize::try_from(self.seen - self.start).unwrap_or(usize::MAX);
            let piece = &rest[seen.min(rest.len())..];
            if piece.is_empty() {
                let is_enough = is_end && !rest.is_empty();
                return is_enough.then_some(rest);
            }
            let piece = &piece[..piece.len().min(AHEAD_BYTES)];
            self.push(piece);
        }
    }

    /// Shows the scanner what follows what it has seen.
    fn push(&mut self, piece: &[u8]) {
        let Some(scanner) = &mut self.scanner else {
            return;
        };
        let (start, boundaries) = (self.start, &mut self.boundaries);
        scanner.push(piece, &mut |boundary| {
            // A chunk may have ended there, before it was known.
            if boundary > start {
                boundaries.push_back(boundary);
            }
        });
        self.seen += piece.len() as u64;
    }

    /// The length of the next chunk, of which note is taken ([`pass`](Self::pass)); nothing where
    /// [`next`](Self::next) has nothing. `chunker` is the one that the sections were made for.
    ///
    /// The same cuts as by `next`, and faster where nothing is found: bytes are looked at when the
    /// chunker has brought them into the cache.
    pub fn cut(&mut self, chunker: &Chunker, rest: &[u8], is_end: bool) -> Option<usize> {
        let length = match self.cut_before_looking(chunker, rest) {
            Some(length) => length,
            None => chunker.cut(self.next(rest, is_end)?),
        };
        self.pass(length);
        Some(length)
    }

    /// The length of the next chunk if no header is in it, of a chunker that looks at nothing behind
    /// its cuts: then a boundary behind the chunk changes nothing.
    fn cut_before_looking(&mut self, chunker: &Chunker, rest: &[u8]) -> Option<usize> {
        let end = self.scanner.as_ref()?.searching_until()?;
        let until_end = usize::try_from(end.checked_sub(self.start)?).unwrap_or(usize::MAX);
        // The scanner may stand at the end of a content and not have left it.
        let is_possible = until_end > 0
            && self.boundaries.is_empty()
            && rest.len() >= self.chunk_bytes_max.min(until_end)
            && chunker.cuts_at_first_match();
        if !is_possible {
            return None;
        }
        let length = chunker.cut(&rest[..rest.len().min(until_end)]);
        let seen = usize::try_from(self.seen - self.start).ok()?;
        let wanted = self.start + length as u64;
        let looked_at = usize::try_from(wanted.next_multiple_of(BLOCK_BYTES) - self.start).ok()?;
        if seen < looked_at {
            self.push(rest.get(seen..looked_at)?);
        }
        let is_decided = self.scanner.as_ref()?.decided() >= wanted;
        let boundary = self.boundaries.front();
        let is_free = boundary.is_none_or(|&boundary| boundary >= wanted);
        (is_decided && is_free).then_some(length)
    }

    /// Takes note of the next chunk's length: the one behind it is the next from here on.
    pub fn pass(&mut self, length: usize) {
        self.start += length as u64;
        self.seen = self.seen.max(self.start);
        while self.boundaries.front().is_some_and(|&it| it <= self.start) {
            self.boundaries.pop_front();
        }
    }
}

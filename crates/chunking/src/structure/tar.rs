//! Where a tar's members begin and end, in a stream that is pushed in.
//!
//! Enters: a stream, in pieces of any sizes. Leaves: boundaries, offsets at which a *section* of the
//! stream ends and the next begins (docs/format/chunkers.md, "Sections"). Formats: v7, ustar,
//! GNU (long names, sizes in base 256, sparse) and pax (local and global records with `size`).
//!
//! Two kinds of sections alternate in an archive: the *content* of one member, and all *between* two
//! of these: what fills the last block of the content before, headers, names and records, and contents of
//! at most [`SMALL_BYTES`], for which sections of their own would cost more than they save. Times and
//! owners change in headers alone, and a content stays the same bytes at the start of a stream
//! of its own, in whatever tar it lies, or in none.
//!
//! A content is looked at as a stream of its own, so that an archive in an archive is found as well
//! ([`DEPTH_MAX`] deep). In a stream that is no archive, or no longer one, each block is asked
//! for the magic of a header; one that has it, and a right checksum, begins an archive. v7, which has no magic, is
//! known by its checksum, at the start of a stream and inside an archive.
//!
//! Nothing is trusted: whatever headers say, boundaries rise, and lie in the stream; memory is bounded
//! by [`RECORD_BYTES_MAX`]. An archive that breaks is just bytes from there to the next header.

use super::tar_header::{
    Announced, BLOCK_BYTES, Block, Header, has_magic, is_extended, is_zero, pax_size,
};

/// Contents of so many bytes at most stay with their headers.
pub(super) const SMALL_BYTES: u64 = 512;

/// Archives in archives that are looked into.
const DEPTH_MAX: usize = 8;

/// Names and records that are longer are contents.
const METADATA_BYTES_MAX: u64 = 1 << 20;

/// How much of a member's records is read.
const RECORD_BYTES_MAX: usize = 64 << 10;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Finds boundaries; see [`TarScanner::push`].
#[derive(Debug, Clone)]
pub(super) struct TarScanner {
    /// How many bytes were pushed.
    position: u64,
    /// The stream, and the contents that hold the position, the outermost first.
    levels: Vec<Level>,
    /// The beginning of a block that was not pushed whole.
    partial: Vec<u8>,
    /// Records of the member to come.
    records: Vec<u8>,
    last_boundary: u64,
}

/// A stream, or a content that is looked at as one.
#[derive(Debug, Clone)]
struct Level {
    /// Where it ends, as far as is known.
    end: u64,
    /// The next block that matters. A multiple of a block, or `end`.
    next: u64,
    expected: Expected,
    /// What records say of the size of the next member, and of all.
    size_of_next: Option<u64>,
    size_of_all: Option<u64>,
}

/// What the next block may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The first of a stream: of any archive, or of none.
    First,
    /// A header of this archive, or its end.
    Header,
    /// Records, up to this offset.
    Records { bytes: u64, is_of_all: bool },
    /// More holes of a content of so many bytes.
    Extension { size: u64 },
    /// Anything.
    Anything,
}

impl Level {
    fn new(start: u64, end: u64) -> Self {
        Self {
            end,
            next: start,
            expected: Expected::First,
            size_of_next: None,
            size_of_all: None,
        }
    }
}

impl TarScanner {
    /// A stream of which nothing was pushed yet.
    pub(super) fn new() -> Self {
        Self {
            position: 0,
            levels: vec![Level::new(0, u64::MAX)],
            partial: Vec::new(),
            records: Vec::new(),
            last_boundary: 0,
        }
    }

    /// Up to where all boundaries are known: of the last 511 bytes some may yet become a header.
    pub(super) fn decided(&self) -> u64 {
        self.position - self.partial.len() as u64
    }

    /// Up to where there is no boundary but in front of headers, which are looked for block by
    /// block: the end of the content, or of the stream. Nothing where more is known of what comes.
    pub(super) fn searching_until(&self) -> Option<u64> {
        let level = self.levels.last()?;
        let is_searching = self.partial.is_empty() && level.expected == Expected::Anything;
        is_searching.then_some(level.end)
    }

    /// Takes the next piece of the stream, and hands each boundary that is certain now to
    /// `boundary`, in rising order.
    pub(super) fn push(&mut self, mut piece: &[u8], boundary: &mut impl FnMut(u64)) {
        if !self.partial.is_empty() {
            let missing = BLOCK_BYTES - self.partial.len();
            let (taken, rest) = piece.split_at(missing.min(piece.len()));
            self.partial.extend_from_slice(taken);
            self.position += taken.len() as u64;
            if taken.len() < missing {
                return;
            }
            let block = std::mem::take(&mut self.partial);
            let at = self.position - BLOCK;
            let block = block.as_slice().try_into().expect("it is a whole block");
            self.block(at, block, boundary);
            piece = rest;
        }
        while !piece.is_empty() {
            let passed = self.pass(piece, boundary);
            self.position += passed as u64;
            piece = &piece[passed..];
        }
    }

    /// Passes some bytes of a piece, at least one.
    fn pass(&mut self, piece: &[u8], boundary: &mut impl FnMut(u64)) -> usize {
        while self.levels.len() > 1 && self.level().end <= self.position {
            self.levels.pop();
            self.add(self.position, boundary);
        }
        let position = self.position;
        let level = self.level();
        let next = level.next.min(level.end);
        if next > position {
            let wanted = next - position;
            return usize::try_from(wanted).map_or(piece.len(), |wanted| wanted.min(piece.len()));
        }
        if level.end - position < BLOCK {
            level.next = level.end;
            return self.pass(piece, boundary);
        }
        if level.expected == Expected::Anything {
            let room = usize::try_from(level.end - position).unwrap_or(usize::MAX);
            let passed = without_magic(&piece[..piece.len().min(room)]);
            level.next = position + passed as u64;
            if passed > 0 {
                return passed;
            }
        }
        match piece.first_chunk::<BLOCK_BYTES>() {
            Some(block) => {
                self.block(position, block, boundary);
                BLOCK_BYTES
            }
            None => {
                self.partial.extend_from_slice(piece);
                piece.len()
            }
        }
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("the stream itself stays")
    }

    fn add(&mut self, offset: u64, boundary: &mut impl FnMut(u64)) {
        if offset > self.last_boundary {
            self.last_boundary = offset;
            boundary(offset);
        }
    }

    /// Looks at the block at `at`, which is the next that matters.
    fn block(&mut self, at: u64, block: &Block, boundary: &mut impl FnMut(u64)) {
        let behind = at + BLOCK;
        let level = self.level();
        level.next = behind;
        match level.expected {
            Expected::Records { bytes, is_of_all } => {
                let take = block
                    .len()
                    .min(usize::try_from(bytes).unwrap_or(usize::MAX));
                if self.records.len() + take <= RECORD_BYTES_MAX {
                    self.records.extend_from_slice(&block[..take]);
                }
                self.expect_records(bytes - take as u64, is_of_all);
            }
            Expected::Extension { size } => {
                if !is_extended(block) {
                    self.content(behind, size, boundary);
                }
            }
            Expected::First | Expected::Header | Expected::Anything => {
                let may_be = level.expected != Expected::Anything || has_magic(block);
                match may_be.then(|| Header::parse(block)).flatten() {
                    Some(header) => {
                        if level.expected == Expected::Anything {
                            (level.size_of_next, level.size_of_all) = (None, None);
                            self.add(at, boundary);
                        }
                        self.header(behind, header, boundary);
                    }
                    None => {
                        let is_broken = level.expected == Expected::Header && !is_zero(block);
                        level.expected = Expected::Anything;
                        if is_broken {
                            self.add(at, boundary);
                        }
                    }
                }
            }
        }
    }

    /// Goes on behind a header.
    fn header(&mut self, behind: u64, header: Header, boundary: &mut impl FnMut(u64)) {
        let level = self.level();
        level.expected = Expected::Header;
        let Header { announced, size } = header;
        let is_of_all = announced == Announced::PaxOfAll;
        match announced {
            Announced::Metadata if size <= METADATA_BYTES_MAX => {
                level.next = padded_end(behind, size);
            }
            Announced::PaxOfAll | Announced::PaxOfNext if size <= METADATA_BYTES_MAX => {
                self.records.clear();
                self.expect_records(size, is_of_all);
            }
            Announced::Nothing => level.size_of_next = None,
            Announced::Metadata | Announced::PaxOfAll | Announced::PaxOfNext => {
                self.content(behind, size, boundary)
            }
            Announced::Content | Announced::ContentBehindExtensions => {
                let said = level.size_of_next.take().or(level.size_of_all);
                let size = said.unwrap_or(size);
                if announced == Announced::Content {
                    self.content(behind, size, boundary);
                } else {
                    level.expected = Expected::Extension { size };
                }
            }
        }
    }

    /// Expects so many more bytes of records, or has them all.
    fn expect_records(&mut self, bytes: u64, is_of_all: bool) {
        if bytes > 0 {
            self.level().expected = Expected::Records { bytes, is_of_all };
            return;
        }
        let size = pax_size(&self.records);
        let level = self.level();
        level.expected = Expected::Header;
        match is_of_all {
            true => level.size_of_all = size.or(level.size_of_all),
            false => level.size_of_next = size.or(level.size_of_next),
        }
    }

    /// Goes on at the start of a content.
    fn content(&mut self, start: u64, size: u64, boundary: &mut impl FnMut(u64)) {
        let level = self.level();
        level.expected = Expected::Header;
        level.next = padded_end(start, size).min(level.end);
        if size <= SMALL_BYTES {
            return;
        }
        let mut content = Level::new(start, start.saturating_add(size).min(level.end));
        if self.levels.len() > DEPTH_MAX {
            content.next = content.end;
        }
        self.levels.push(content);
        self.add(start, boundary);
    }
}

/// The end of the last block of a content.
fn padded_end(start: u64, size: u64) -> u64 {
    let blocks = size.div_ceil(BLOCK);
    start.saturating_add(blocks.saturating_mul(BLOCK))
}

/// How many bytes stand before the first block that has the magic, or that is not whole.
fn without_magic(bytes: &[u8]) -> usize {
    let blocks = bytes.as_chunks::<BLOCK_BYTES>().0;
    let found = blocks.iter().position(has_magic);
    found.unwrap_or(blocks.len()) * BLOCK_BYTES
}

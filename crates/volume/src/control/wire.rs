//! Frames and what is in them. Numbers are little-endian; nothing is trusted: lengths are checked before memory is taken,
//! and what is left over is an error.

use std::io::{self, Read, Write};
use std::ops::Range;

use super::Status;
use crate::check::CheckReport;
use crate::core::Compaction;
use crate::device::{Extent, ExtentKind};
use crate::error::VolumeError;
use crate::fingerprint::FingerprintKind;
use crate::generations::{Generation, GenerationId, OwnerId};
use crate::journal::{BlockRange, JournalRanges};
use crate::settings::{Persistence, Policy, VolumeSettings};
use crate::stat::{COUNTERS, Counters, Usage};

/// Most bytes of a frame behind its length: those of a reading and a little.
pub const FRAME_BYTES_MAX: usize = super::READ_BYTES_MAX as usize + 4096;

/// Most ranges in a frame.
pub const RANGES_PER_FRAME: usize = 64 << 10;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    Hello = 1,
    Status = 2,
    Pin = 3,
    Keep = 4,
    Unpin = 5,
    Generations = 6,
    Changed = 7,
    Extents = 8,
    Read = 9,
    Check = 10,
    Compact = 11,
}

impl Verb {
    const ALL: [Verb; 11] = [
        Self::Hello,
        Self::Status,
        Self::Pin,
        Self::Keep,
        Self::Unpin,
        Self::Generations,
        Self::Changed,
        Self::Extents,
        Self::Read,
        Self::Check,
        Self::Compact,
    ];

    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| *verb as u8 == number)
    }
}

/// A reply that is what was asked for.
pub const DONE: u8 = 0;
/// A reply that says why it can't be.
pub const REFUSED: u8 = 1;

/// Sends a frame.
pub fn send(stream: &mut dyn Write, kind: u8, body: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(5 + body.len());
    frame.extend_from_slice(&(body.len() as u32 + 1).to_le_bytes());
    frame.push(kind);
    frame.extend_from_slice(body);
    stream.write_all(&frame)
}

/// Receives a frame; nothing at the end of the stream.
pub fn receive(stream: &mut dyn Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 4];
    let mut filled = 0;
    while filled < head.len() {
        match stream.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(head) as usize;
    if length == 0 || length > FRAME_BYTES_MAX + 1 {
        return Err(wrong("a frame of an impossible length"));
    }
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    let mut body = vec![0; length - 1];
    stream.read_exact(&mut body)?;
    Ok(Some((kind[0], body)))
}

/// That what came is not what could come.
pub fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Puts the body of a frame together.
#[derive(Debug, Default)]
pub struct Body(pub Vec<u8>);

impl Body {
    pub fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self = self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn id(mut self, id: &[u8; 16]) -> Self {
        self.0.extend_from_slice(id);
        self
    }
}

/// Takes the body of a frame apart.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(body: &'a [u8]) -> Self {
        Self(body)
    }

    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| wrong("a frame is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn number(&mut self) -> io::Result<u64> {
        let mut number = [0; 8];
        number.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(number))
    }

    pub fn number_u32(&mut self) -> io::Result<u32> {
        u32::try_from(self.number()?).map_err(|_| wrong("a number is too large"))
    }

    pub fn bytes(&mut self) -> io::Result<&'a [u8]> {
        let count = usize::try_from(self.number()?).map_err(|_| wrong("a frame is cut off"))?;
        self.take(count)
    }

    pub fn text(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub fn id(&mut self) -> io::Result<[u8; 16]> {
        let mut id = [0; 16];
        id.copy_from_slice(self.take(16)?);
        Ok(id)
    }

    /// A count of things of at least `bytes_min` each.
    pub fn count(&mut self, bytes_min: usize) -> io::Result<usize> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() / bytes_min => Ok(count),
            _ => Err(wrong("a frame is cut off")),
        }
    }

    pub fn end(&self) -> io::Result<()> {
        match self.0 {
            [] => Ok(()),
            _ => Err(wrong("a frame has something behind its end")),
        }
    }
}

/// Why a request is refused.
pub fn put_error(error: &VolumeError) -> Vec<u8> {
    let (kind, number, text) = match error {
        VolumeError::NotAVolume(what) => (1, 0, what.clone()),
        VolumeError::Unsupported(what) => (2, 0, what.clone()),
        VolumeError::Settings(what) => (3, 0, what.clone()),
        VolumeError::Damaged(what) => (4, 0, what.clone()),
        VolumeError::Full(what) => (5, 0, what.clone()),
        VolumeError::Failed(what) => (6, 0, what.clone()),
        VolumeError::ReadOnly => (7, 0, String::new()),
        VolumeError::NoGeneration(number) => (8, u64::from(*number), String::new()),
        VolumeError::Io { context, source } => (9, 0, format!("{context}: {source}")),
    };
    Body::default()
        .number(kind)
        .number(number)
        .bytes(text.as_bytes())
        .0
}

/// Why a request was refused.
pub fn error(body: &[u8]) -> io::Result<VolumeError> {
    let mut fields = Fields::of(body);
    let (kind, number, text) = (fields.number()?, fields.number_u32()?, fields.text()?);
    fields.end()?;
    Ok(match kind {
        1 => VolumeError::NotAVolume(text),
        2 => VolumeError::Unsupported(text),
        3 => VolumeError::Settings(text),
        4 => VolumeError::Damaged(text),
        5 => VolumeError::Full(text),
        6 => VolumeError::Failed(text),
        7 => VolumeError::ReadOnly,
        8 => VolumeError::NoGeneration(number),
        9 => VolumeError::Io {
            context: "the process that has the volume".to_owned(),
            source: io::Error::other(text),
        },
        _ => return Err(wrong("an error of an unknown kind")),
    })
}

pub fn put_generations(generations: &[Generation]) -> Vec<u8> {
    let body = Body::default().number(generations.len() as u64);
    let put = |body: Body, generation: &Generation| {
        body.number(u64::from(generation.number))
            .id(&generation.id.0)
            .id(&generation.owner.0)
            .number(generation.created)
            .number(generation.logical_blocks)
            .number(generation.removed_blocks)
    };
    generations.iter().fold(body, put).0
}

/// Generations, without what only the volume needs.
pub fn generations(body: &[u8]) -> io::Result<Vec<Generation>> {
    let mut fields = Fields::of(body);
    let count = fields.count(64)?;
    let mut generations = Vec::with_capacity(count);
    for _ in 0..count {
        generations.push(Generation {
            number: fields.number_u32()?,
            id: GenerationId(fields.id()?),
            owner: OwnerId(fields.id()?),
            created: fields.number()?,
            logical_blocks: fields.number()?,
            removed_blocks: fields.number()?,
            roots: Vec::new(),
        });
    }
    fields.end()?;
    Ok(generations)
}

pub fn put_ranges(ranges: &[Range<u64>]) -> Vec<u8> {
    let body = Body::default().number(ranges.len() as u64);
    let put = |body: Body, range: &Range<u64>| body.number(range.start).number(range.end);
    ranges.iter().fold(body, put).0
}

pub fn ranges(body: &[u8]) -> io::Result<Vec<Range<u64>>> {
    let mut fields = Fields::of(body);
    let count = fields.count(16)?;
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        ranges.push(fields.number()?..fields.number()?);
    }
    fields.end()?;
    Ok(ranges)
}

pub fn put_extents(extents: &[Extent]) -> Vec<u8> {
    let body = Body::default().number(extents.len() as u64);
    let put = |body: Body, extent: &Extent| {
        body.number(extent.length_bytes)
            .number(u64::from(extent.kind == ExtentKind::Hole))
    };
    extents.iter().fold(body, put).0
}

pub fn extents(body: &[u8]) -> io::Result<Vec<Extent>> {
    let mut fields = Fields::of(body);
    let count = fields.count(16)?;
    let mut extents = Vec::with_capacity(count);
    for _ in 0..count {
        extents.push(Extent {
            length_bytes: fields.number()?,
            kind: match fields.number()? {
                0 => ExtentKind::Data,
                1 => ExtentKind::Hole,
                _ => return Err(wrong("an extent of an unknown kind")),
            },
        });
    }
    fields.end()?;
    Ok(extents)
}

pub fn put_check(report: &CheckReport) -> Vec<u8> {
    let body = Body::default()
        .number(report.mapped_blocks)
        .number(report.stored_blocks)
        .number(report.blocks_read)
        .number(report.not_in_index)
        .number(report.generations)
        .number(report.problem_count)
        .number(report.problems.len() as u64);
    let put = |body: Body, problem: &String| body.bytes(problem.as_bytes());
    report.problems.iter().fold(body, put).0
}

pub fn check(body: &[u8]) -> io::Result<CheckReport> {
    let mut fields = Fields::of(body);
    let mut report = CheckReport {
        mapped_blocks: fields.number()?,
        stored_blocks: fields.number()?,
        blocks_read: fields.number()?,
        not_in_index: fields.number()?,
        generations: fields.number()?,
        problem_count: fields.number()?,
        problems: Vec::new(),
    };
    for _ in 0..fields.count(8)? {
        report.problems.push(fields.text()?);
    }
    fields.end()?;
    Ok(report)
}

pub fn put_compaction(done: &Compaction) -> Vec<u8> {
    Body::default()
        .number(done.blocks_moved)
        .number(done.blocks_pinned)
        .number(u64::from(done.free_zones.0))
        .number(u64::from(done.free_zones.1))
        .number(done.bytes_discarded)
        .0
}

pub fn compaction(body: &[u8]) -> io::Result<Compaction> {
    let mut fields = Fields::of(body);
    let done = Compaction {
        blocks_moved: fields.number()?,
        blocks_pinned: fields.number()?,
        free_zones: (fields.number_u32()?, fields.number_u32()?),
        bytes_discarded: fields.number()?,
    };
    fields.end()?;
    Ok(done)
}

pub fn put_status(status: &Status) -> Vec<u8> {
    let settings = &status.settings;
    let mut body = Body::default()
        .id(&status.id)
        .number(settings.size_bytes)
        .number(u64::from(settings.sector_bytes))
        .number(settings.policy as u64)
        .number(settings.persistence as u64)
        .number(settings.fingerprint as u64)
        .number(u64::from(settings.zone_blocks))
        .number(u64::from(settings.window_blocks))
        .number(u64::from(settings.commit_zones))
        .bytes(settings.journal.as_bytes());
    for number in usage_values(&status.usage) {
        body = body.number(number);
    }
    for number in status.counters.values() {
        body = body.number(number);
    }
    let journal: Vec<Range<u64>> = status.journal.iter().map(|it| it.first..it.end).collect();
    body.bytes(&put_ranges(&journal))
        .bytes(status.journal_problem.as_deref().unwrap_or("").as_bytes())
        .number(status.generations)
        .0
}

pub fn status(body: &[u8]) -> io::Result<Status> {
    let mut fields = Fields::of(body);
    let unknown = |what: &'static str| move || wrong(what);
    let number = |value: u64| u8::try_from(value).unwrap_or(u8::MAX);
    let status = Status {
        id: fields.id()?,
        settings: VolumeSettings {
            size_bytes: fields.number()?,
            sector_bytes: fields.number_u32()?,
            policy: Policy::from_number(number(fields.number()?))
                .ok_or_else(unknown("an unknown policy"))?,
            persistence: Persistence::from_number(number(fields.number()?))
                .ok_or_else(unknown("an unknown persistence"))?,
            fingerprint: FingerprintKind::from_number(number(fields.number()?))
                .ok_or_else(unknown("an unknown fingerprint"))?,
            zone_blocks: fields.number_u32()?,
            window_blocks: fields.number_u32()?,
            commit_zones: fields.number_u32()?,
            journal: fields.text()?,
        },
        usage: usage(&mut fields)?,
        counters: {
            let mut values = [0; COUNTERS];
            for value in &mut values {
                *value = fields.number()?;
            }
            Counters::from_values(values)
        },
        journal: {
            let block = |range: Range<u64>| BlockRange {
                first: range.start,
                end: range.end,
            };
            let blocks = ranges(fields.bytes()?)?.into_iter().map(block);
            JournalRanges::of_blocks(blocks.collect())
        },
        journal_problem: Some(fields.text()?).filter(|problem| !problem.is_empty()),
        generations: fields.number()?,
    };
    fields.end()?;
    Ok(status)
}

fn usage_values(usage: &Usage) -> [u64; 12] {
    [
        usage.mapped_blocks,
        usage.logical_blocks,
        usage.physical_blocks,
        usage.data_blocks,
        usage.page_blocks,
        usage.free_zones,
        usage.data_zones,
        usage.compressed_zones,
        usage.uncommitted_zones,
        usage.page_zones,
        usage.memory_bytes,
        usage.pool_entries,
    ]
}

fn usage(fields: &mut Fields<'_>) -> io::Result<Usage> {
    Ok(Usage {
        mapped_blocks: fields.number()?,
        logical_blocks: fields.number()?,
        physical_blocks: fields.number()?,
        data_blocks: fields.number()?,
        page_blocks: fields.number()?,
        free_zones: fields.number()?,
        data_zones: fields.number()?,
        compressed_zones: fields.number()?,
        uncommitted_zones: fields.number()?,
        page_zones: fields.number()?,
        memory_bytes: fields.number()?,
        pool_entries: fields.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_sent_comes_back() {
        let generation = Generation {
            number: 7,
            id: GenerationId([1; 16]),
            owner: OwnerId([2; 16]),
            created: 3,
            logical_blocks: 4,
            removed_blocks: 5,
            roots: Vec::new(),
        };
        let sent = vec![generation.clone(), generation];
        assert_eq!(generations(&put_generations(&sent)).unwrap(), sent);
        let sent = vec![0..4096, 8192..u64::MAX];
        assert_eq!(ranges(&put_ranges(&sent)).unwrap(), sent);
        let sent = [ExtentKind::Data, ExtentKind::Hole].map(|kind| Extent {
            length_bytes: 512,
            kind,
        });
        assert_eq!(extents(&put_extents(&sent)).unwrap(), sent);
        let sent = CheckReport {
            blocks_read: 9,
            problems: vec!["one".to_owned(), String::new()],
            problem_count: 3,
            ..CheckReport::default()
        };
        assert_eq!(check(&put_check(&sent)).unwrap(), sent);
        let sent = Compaction {
            free_zones: (3, 4),
            bytes_discarded: 5,
            ..Compaction::default()
        };
        assert_eq!(compaction(&put_compaction(&sent)).unwrap(), sent);
        let refused = error(&put_error(&VolumeError::NoGeneration(12))).unwrap();
        assert!(matches!(refused, VolumeError::NoGeneration(12)));
        let sent = Status {
            id: [3; 16],
            settings: VolumeSettings::new(1 << 30),
            usage: Usage {
                pool_entries: 12,
                ..Usage::default()
            },
            counters: Counters::from_values(std::array::from_fn(|at| at as u64)),
            journal: JournalRanges::of_blocks(vec![
                BlockRange { first: 5, end: 9 },
                BlockRange { first: 20, end: 21 },
            ]),
            journal_problem: Some("none".to_owned()),
            generations: 2,
        };
        assert_eq!(status(&put_status(&sent)).unwrap(), sent);
    }

    proptest! {
        #[test]
        fn hostile_frames_never_panic(bytes: Vec<u8>) {
            let _ = receive(&mut &bytes[..]);
            let _ = error(&bytes);
            let _ = generations(&bytes);
            let _ = ranges(&bytes);
            let _ = extents(&bytes);
            let _ = check(&bytes);
            let _ = compaction(&bytes);
            let _ = status(&bytes);
        }
    }

    #[test]
    fn a_frame_is_no_longer_than_it_may_be() {
        let mut long = (FRAME_BYTES_MAX as u32 + 2).to_le_bytes().to_vec();
        long.resize(64, 0);
        assert!(receive(&mut &long[..]).is_err());
        assert!(receive(&mut &[0; 4][..]).is_err());
        assert!(receive(&mut &[][..]).unwrap().is_none());
        assert!(receive(&mut &[9, 0][..]).is_err());
    }
}

//! Reads a stream, cuts it into chunks and fingerprints them: what a reading worker does.

use std::io::{self, Read};

use chunking::Chunker;

use crate::container::ContainerKind;
use crate::fingerprint::{Fingerprint, Fingerprinter};

/// Bytes of a stream handled at a time (more if the largest chunk needs it).
const SEGMENT_BYTES: usize = 1 << 20;

/// How a stream is divided before chunking: chunks never cross the end of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sectioning {
    /// The stream is one section.
    #[default]
    WholeStream,
}

impl Sectioning {
    /// Bytes from the start of `window` to the end of the section, if it ends in there.
    fn end_within(self, _window: &[u8]) -> Option<usize> {
        match self {
            Sectioning::WholeStream => None,
        }
    }
}

/// What it takes to turn a stream into chunks.
#[derive(Debug, Clone, Copy)]
pub struct StreamChunking<'a> {
    /// Cuts.
    pub chunker: &'a Chunker,
    /// Fingerprints.
    pub fingerprinter: &'a Fingerprinter,
    /// Divides beforehand.
    pub sectioning: Sectioning,
}

/// Consecutive chunks of a stream with their bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkedSegment {
    /// The chunks' bytes, joined; there may be unrelated bytes behind them.
    pub bytes: Vec<u8>,
    /// Fingerprint and length of each chunk.
    pub chunks: Vec<(Fingerprint, u32)>,
}

/// Reads `stream` to its end (or for `limit_bytes`) and calls `emit` with its chunks, segment by
/// segment. When `expected_bytes` have been read, that is taken as the end if the next read
/// would not fit the buffer made for them: a file of the size it was said to have costs one
/// read. Returns how many bytes were read.
///
/// # Errors
/// What the stream says. `emit` may stop the reading by returning false; that is no error.
pub fn chunk_stream(
    with: StreamChunking<'_>,
    stream: &mut dyn Read,
    expected_bytes: Option<u64>,
    emit: &mut dyn FnMut(ChunkedSegment) -> bool,
) -> io::Result<u64> {
    let chunk_bytes_max = with.chunker.parameters().max_bytes as usize;
    let segment_bytes = SEGMENT_BYTES.max(4 * chunk_bytes_max);
    let capacity = expected_bytes.map_or(segment_bytes, |bytes| {
        usize::try_from(bytes).map_or(segment_bytes, |bytes| (bytes + 1).min(segment_bytes))
    });
    let mut buffer = vec![0; capacity];
    let mut filled = 0;
    let mut total = 0u64;
    loop {
        let mut ended = false;
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(count) => {
                    filled += count;
                    total += count as u64;
                    if Some(total) == expected_bytes && filled < buffer.len() {
                        ended = true;
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut chunks = Vec::new();
        let used = cut(with, &buffer[..filled], ended, chunk_bytes_max, &mut chunks);
        let carried = buffer[used..filled].to_vec();
        if !chunks.is_empty() {
            let bytes = std::mem::take(&mut buffer);
            if !emit(ChunkedSegment { bytes, chunks }) {
                return Ok(total);
            }
        }
        if ended {
            return Ok(total);
        }
        filled = carried.len();
        let mut next = carried;
        next.resize(segment_bytes, 0);
        buffer = next;
    }
}

/// Cuts what can be cut: up to the last place that later bytes could not change.
fn cut(
    with: StreamChunking<'_>,
    data: &[u8],
    ended: bool,
    chunk_bytes_max: usize,
    chunks: &mut Vec<(Fingerprint, u32)>,
) -> usize {
    let mut used = 0;
    while used < data.len() {
        let rest = &data[used..];
        let section_end = with.sectioning.end_within(rest);
        let section = &rest[..section_end.unwrap_or(rest.len())];
        let is_whole = ended || section_end.is_some();
        if !is_whole && section.len() < chunk_bytes_max {
            break;
        }
        let length = with.chunker.cut(section);
        let fingerprint = with
            .fingerprinter
            .fingerprint(ContainerKind::Data, &section[..length]);
        chunks.push((fingerprint, length as u32));
        used += length;
    }
    used
}

//! Segments of a stream, cut and fingerprinted at the same time.
//!
//! Enters: a stream and how it is cut by segments. Leaves: its chunks, in order, which do not depend
//! on the number of threads. Memory: a batch of one segment a thread, and one more where its chunks
//! are handed on.

use std::io::{self, Read};
use std::time::Instant;

use chunking::segments::{SegmentJob, SegmentStream, SegmentedChunks, Segments};

use super::chunk_stream::{ChunkedSegment, StreamChunking};
use super::fingerprint_pool::SegmentInTurn;
use super::stages::Stage;
use crate::container::ContainerKind;

/// Reads a stream to its end by batches of segments; as
/// [`chunk_stream`](super::chunk_stream()).
pub(super) fn chunk_segments(
    with: &StreamChunking,
    segments: &Segments,
    stream: &mut dyn Read,
    expected_bytes: Option<u64>,
    emit: &mut dyn FnMut(SegmentInTurn) -> bool,
) -> io::Result<u64> {
    let stream = SegmentStream::new(segments.clone(), stream, with.threads);
    let mut stream = stream.expecting(expected_bytes);
    let (read, chunk) = (Stage::Read, Stage::Chunk);
    let mut bytes_before = 0;
    loop {
        let started = Instant::now();
        let batch = stream.next_batch()?;
        let bytes = stream.read_bytes() - bytes_before;
        bytes_before += bytes;
        with.stages.meter(read).worked(started.elapsed(), bytes);
        let Some(batch) = batch else {
            break;
        };
        with.stages.meter(chunk).set_threads(with.threads);
        let joined = with.stages.meter(chunk).busy(bytes, || {
            let jobs: Vec<SegmentJob<'_>> = batch.jobs(segments).collect();
            let cuts = map_on_threads(&jobs, with.threads, SegmentJob::run);
            stream.join(batch, &cuts)
        });
        if joined.lengths.is_empty() {
            continue;
        }
        if !emit(SegmentInTurn::Ready(fingerprint(with, joined))) {
            break;
        }
    }
    Ok(stream.read_bytes())
}

/// Fingerprints the chunks of a batch on the threads that cut it.
fn fingerprint(with: &StreamChunking, joined: SegmentedChunks) -> ChunkedSegment {
    let SegmentedChunks { bytes, lengths } = joined;
    let share = lengths.len().div_ceil(with.threads.max(1)).max(1);
    let mut rest = &bytes[..];
    let mut parts: Vec<(&[u8], &[u32])> = Vec::new();
    for lengths in lengths.chunks(share) {
        let part_bytes: usize = lengths.iter().map(|&length| length as usize).sum();
        let (part, behind) = rest.split_at(part_bytes);
        parts.push((part, lengths));
        rest = behind;
    }
    let chunk_bytes = bytes.len() - rest.len();
    let fingerprinter = with.fingerprints.fingerprinter();
    let meter = with.stages.meter(Stage::Fingerprint);
    let fingerprints = meter.busy(chunk_bytes as u64, || {
        map_on_threads(&parts, with.threads, |(bytes, lengths)| {
            fingerprinter.fingerprints(ContainerKind::Data, bytes, lengths)
        })
    });
    let fingerprints = fingerprints.into_iter().flatten();
    let chunks = fingerprints.zip(lengths).collect();
    ChunkedSegment { bytes, chunks }
}

/// Maps items in order, on so many threads at most.
pub(super) fn map_on_threads<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    map: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let share = items.len().div_ceil(threads.max(1)).max(1);
    if items.len() <= share {
        return items.iter().map(map).collect();
    }
    std::thread::scope(|scope| {
        let map = &map;
        let mut parts = items.chunks(share);
        let first = parts.next().unwrap_or_default();
        let others = parts.map(|part| scope.spawn(move || part.iter().map(map).collect()));
        let others: Vec<_> = others.collect();
        let mut mapped: Vec<R> = first.iter().map(map).collect();
        for other in others {
            let part: Vec<R> = match other.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            mapped.extend(part);
        }
        mapped
    })
}

//! Segments of a stream, cut and fingerprinted at the same time.
//!
//! Enters: a stream and how it is cut by segments. Leaves: its chunks, in order, which do not depend
//! on the number of threads. Memory: a batch of one segment a thread, and one more where its chunks
//! are handed on.

use std::io::{self, Read};

use chunking::segments::{SegmentJob, SegmentStream, Segments};

use super::chunk_stream::{ChunkedSegment, Sectioning, StreamChunking};
use crate::container::ContainerKind;

/// Reads a stream to its end by batches of segments; as
/// [`chunk_stream`](super::chunk_stream()).
pub(super) fn chunk_segments(
    with: StreamChunking<'_>,
    segments: &Segments,
    stream: &mut dyn Read,
    expected_bytes: Option<u64>,
    emit: &mut dyn FnMut(ChunkedSegment) -> bool,
) -> io::Result<u64> {
    let Sectioning::WholeStream = with.sectioning;
    let stream = SegmentStream::new(segments.clone(), stream, with.threads);
    let mut stream = stream.expecting(expected_bytes);
    while let Some(batch) = stream.next_batch()? {
        let jobs: Vec<SegmentJob<'_>> = batch.jobs(segments).collect();
        let cuts = map_on_threads(&jobs, with.threads, SegmentJob::run);
        let joined = stream.join(batch, &cuts);
        let mut start = 0;
        let chunks = joined.lengths.iter().map(|&length| {
            let chunk = &joined.bytes[start..start + length as usize];
            start += chunk.len();
            chunk
        });
        let chunks: Vec<&[u8]> = chunks.collect();
        let fingerprints = map_on_threads(&chunks, with.threads, |chunk| {
            with.fingerprinter.fingerprint(ContainerKind::Data, chunk)
        });
        if chunks.is_empty() {
            continue;
        }
        let chunks = fingerprints.into_iter().zip(joined.lengths).collect();
        let bytes = joined.bytes;
        if !emit(ChunkedSegment { bytes, chunks }) {
            break;
        }
    }
    Ok(stream.read_bytes())
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

//! Segments: the chunks are possible ones, the same however the jobs are run, and the sequential
//! ones where that is promised.

use crate::collection::any_parameters;
use crate::random::{Splitmix64, any_data, random_bytes};
use crate::{lengths, sized, unkeyed};
use chunking::segments::{
    JoinCounts, SegmentCuts, SegmentError, SegmentStream, Segments, dirty, expected_dirty_bytes,
};
use chunking::{Algorithm, Chunker, Parameters};
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::{self, Read};
use std::ops::Range;

fn segments(chunker: Chunker, segment_bytes: u32, has_jointing: bool) -> Segments {
    Segments::new(chunker, segment_bytes, has_jointing).expect("a possible size")
}

/// Runs jobs on so many threads.
fn on_threads(segments: &Segments, data: &[u8], threads: usize) -> Vec<SegmentCuts> {
    let jobs: Vec<_> = segments.jobs(data).collect();
    let share = jobs.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts = jobs
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(|job| job.run()).collect::<Vec<_>>()));
        let parts: Vec<_> = parts.collect();
        let parts = parts.into_iter().map(|part| part.join().expect("it ran"));
        parts.flatten().collect()
    })
}

/// Reads of any sizes, of which some are interrupted.
struct Reads<'a>(&'a [u8], Splitmix64);

impl Read for Reads<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        assert!(!room.is_empty());
        let size = self.1.next().expect("endless") as usize % 9000;
        if size < 50 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = size.min(room.len()).min(self.0.len());
        room[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

fn streamed(
    segments: &Segments,
    data: &[u8],
    batch: usize,
    expected: Option<u64>,
) -> (Vec<usize>, JoinCounts) {
    let mut stream = SegmentStream::new(
        segments.clone(),
        Reads(data, Splitmix64(data.len() as u64)),
        batch,
    )
    .expecting(expected);
    let (mut lengths, mut joined) = (Vec::new(), Vec::new());
    while let Some(batch) = stream.next_batch().expect("no failing reader") {
        let cuts: Vec<_> = batch.jobs(segments).map(|job| job.run()).collect();
        let chunks = stream.join(batch, &cuts);
        let bytes: usize = chunks.lengths.iter().map(|&length| length as usize).sum();
        joined.extend_from_slice(&chunks.bytes[..bytes]);
        lengths.extend(chunks.lengths.iter().map(|&length| length as usize));
    }
    assert!(stream.next_batch().expect("ended").is_none());
    assert!(joined == data, "the bytes themselves");
    assert_eq!(stream.read_bytes(), data.len() as u64);
    (lengths, stream.counts())
}

fn sequential(chunker: &Chunker, data: &[u8]) -> Vec<Range<usize>> {
    chunker.chunks(data).collect()
}

/// Fails unless what the module promises of bounds holds.
fn assert_possible(segments: &Segments, data: &[u8], chunks: &[Range<usize>]) {
    let parameters = segments.chunker().parameters();
    let size = segments.segment_bytes();
    let mut end = 0;
    for chunk in chunks {
        assert_eq!(chunk.start, end);
        end = chunk.end;
        assert!(!chunk.is_empty() && chunk.len() <= parameters.max_bytes as usize);
        if chunk.len() >= parameters.min_bytes as usize || chunk.end == data.len() {
            continue;
        }
        if segments.has_jointing() {
            let start = (chunk.end - 1) / size * size;
            let segment = &data[start..data.len().min(start + size)];
            let first = segments.chunker().cut(segment);
            assert_eq!(chunk.end, start + first, "short, and not at Z");
        } else {
            assert_eq!(chunk.end % size, 0, "short, and not at a border");
        }
    }
    assert_eq!(end, data.len());
}

/// Fails unless cuts that the sequential chunker also makes are followed by such, up to the last
/// chunk that begins in the segment.
fn assert_common_cuts_stay(segments: &Segments, data: &[u8], chunks: &[Range<usize>]) {
    let size = segments.segment_bytes();
    let chunker = segments.chunker();
    let of_sequence: HashSet<usize> = sequential(chunker, data).iter().map(|it| it.end).collect();
    let cuts: Vec<usize> = chunks.iter().map(|chunk| chunk.end).collect();
    for start in (0..data.len()).step_by(size) {
        let end = data.len().min(start + size);
        let first = match (start, segments.has_jointing()) {
            (0, _) => 0,
            _ => start + chunker.cut(&data[start..end]),
        };
        let mut is_common = start == 0;
        for &cut in cuts.iter().filter(|&&cut| cut >= first && cut < end) {
            assert!(!is_common || of_sequence.contains(&cut), "{cut}");
            is_common |= of_sequence.contains(&cut);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn chunks_are_possible_and_the_same_on_any_threads(
        parameters in any_parameters(),
        data in any_data(),
        more in 0u32..30_000,
        has_jointing: bool,
        threads in 1usize..5,
        batch in 1usize..5,
        expectation in 0u64..3,
    ) {
        let chunker = unkeyed(&parameters);
        let segments = segments(chunker.clone(), 2 * parameters.max_bytes + more, has_jointing);
        let (chunks, counts) = segments.chunks(&data);
        assert_possible(&segments, &data, &chunks);
        assert_common_cuts_stay(&segments, &data, &chunks);
        let cuts = on_threads(&segments, &data, threads);
        prop_assert_eq!(segments.join(&data, &cuts), (chunks.clone(), counts));
        let of_chunks: Vec<_> = chunks.iter().map(ExactSizeIterator::len).collect();
        // Nothing, the truth, less than the truth.
        let total = data.len() as u64;
        let expected = [None, Some(total), Some(total / 2 + 1)][expectation as usize];
        if expected.is_none_or(|bytes| bytes >= total) {
            let (lengths, counted) = streamed(&segments, &data, batch, expected);
            prop_assert_eq!(lengths, of_chunks);
            prop_assert_eq!(counted, counts);
        }
        let count = data.len().div_ceil(segments.segment_bytes());
        let borders = if has_jointing { count.saturating_sub(1) } else { 0 };
        prop_assert_eq!(counts.borders(), borders as u64);
        if count <= 1 {
            prop_assert_eq!(chunks, sequential(&chunker, &data));
        }
    }

    #[test]
    fn without_a_dirty_border_the_cuts_are_the_sequential_ones(
        seed: u64,
        index in 0usize..5,
        data_bytes in 0usize..300_000,
    ) {
        let algorithm = [
            Algorithm::Rabin,
            Algorithm::Adler,
            Algorithm::Crc32,
            Algorithm::GearHash,
            Algorithm::Restic,
        ][index];
        let parameters = sized(algorithm, 256, 1024, 8192);
        let chunker = unkeyed(&parameters);
        let segments = segments(chunker.clone(), 20_000, true);
        let data = random_bytes(seed, data_bytes);
        let (chunks, counts) = segments.chunks(&data);
        let expected = sequential(&chunker, &data);
        prop_assert_eq!(counts.early, 0);
        let is_any_forced = segments.jobs(&data).any(|job| job.run().lengths()[0] == 8192);
        if counts.dirty_borders() == 0 && !is_any_forced {
            prop_assert_eq!(chunks, expected);
        }
    }
}

#[test]
fn dirty_chunks_are_as_many_as_equation_8_says() {
    // 1 MiB with 2, 8, 64 KiB has too few borders here: smaller, in the same proportions.
    let small = sized(Algorithm::Rabin, 256, 1024, 8192);
    assert_eq!(
        expected_dirty_bytes(2 << 10, 8 << 10),
        8.0 * expected_dirty_bytes(256, 1024)
    );
    let chunker = unkeyed(&small);
    let segments = segments(chunker.clone(), 128 << 10, true);
    let data = random_bytes(11, 96 << 20);
    let (chunks, counts) = segments.chunks(&data);
    let found = dirty(&sequential(&chunker, &data), &chunks);
    let mean = found.bytes as f64 / counts.borders() as f64;
    let expected = expected_dirty_bytes(256, 1024);
    let without = Segments::new(chunker.clone(), 128 << 10, false).expect("possible");
    let (unjoined, _) = without.chunks(&data);
    let unjoined = dirty(&sequential(&chunker, &data), &unjoined);
    println!(
        "dirty bytes a segment: {mean:.1}, Eq. 8 {expected:.1}; cases {:?}; without jointing {:.1}",
        counts.cases,
        unjoined.bytes as f64 / counts.borders() as f64
    );
    assert!(mean < 2.0 * expected && mean > 0.5 * expected, "{mean}");
    assert!(unjoined.bytes > 3 * found.bytes);
}

#[test]
fn sizes_of_segments_have_bounds() {
    let chunker = unkeyed(&Parameters::default());
    for (size, is_possible) in [
        (0, false),
        ((128 << 10) - 1, false),
        (128 << 10, true),
        (Segments::BYTES_HIGHEST, true),
        (Segments::BYTES_HIGHEST + 1, false),
        (u32::MAX, false),
    ] {
        let made = Segments::new(chunker.clone(), size, true);
        assert_eq!(made.is_ok(), is_possible, "{size}");
        if let Err(error) = made {
            let SegmentError::Size { segment_bytes, .. } = error else {
                panic!("{error}");
            };
            assert_eq!(segment_bytes, size);
            assert!(error.to_string().contains(&size.to_string()), "{error}");
        }
    }
}

#[test]
fn nothing_and_a_little() {
    let chunker = unkeyed(&Parameters::default());
    let segments = segments(chunker.clone(), 1 << 20, true);
    assert_eq!(segments.chunks(&[]), (Vec::new(), JoinCounts::default()));
    let data = random_bytes(2, 100_000);
    let (chunks, _) = segments.chunks(&data);
    let found: Vec<_> = chunks.iter().map(ExactSizeIterator::len).collect();
    assert_eq!(found, lengths(&chunker, &data));
    assert_eq!(streamed(&segments, &[], 3, None).0, []);
}

#[test]
fn a_reader_that_fails_loses_nothing() {
    struct Failing<'a>(&'a [u8], bool);
    impl Read for Failing<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::Error::other("now and then"));
            }
            let length = room.len().min(self.0.len()).min(7000);
            room[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }
    let parameters = sized(Algorithm::FastCdc, 64, 256, 1024);
    let segments = segments(unkeyed(&parameters), 5000, true);
    let data = random_bytes(5, 60_000);
    let mut stream = SegmentStream::new(segments.clone(), Failing(&data, false), 2);
    let mut found = Vec::new();
    loop {
        match stream.next_batch() {
            Err(_) => {}
            Ok(None) => break,
            Ok(Some(batch)) => {
                let cuts: Vec<_> = batch.jobs(&segments).map(|job| job.run()).collect();
                let lengths = stream.join(batch, &cuts).lengths;
                found.extend(lengths.iter().map(|&length| length as usize));
            }
        }
    }
    let (chunks, _) = segments.chunks(&data);
    let expected: Vec<_> = chunks.iter().map(ExactSizeIterator::len).collect();
    assert_eq!(found, expected);
}

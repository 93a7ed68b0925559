//! Chunking in two stages: the same cuts as in order, whatever the size of segments, the number of
//! threads, the instruction set, the sizes of pieces (chunking invariability, Ni §2.2.3).

use crate::random::{Splitmix64, any_data, random_bytes};
use crate::{lengths, sized, unkeyed};
use chunking::two_stage::{LossyJob, MarkJob, Much, MuchJob, TwoStage, TwoStageFeed, lossy_jobs};
use chunking::{
    Algorithm, Chunker, FeedChunker, Isa, KeyMaterial, OwnParameter, Parameters, Rolling,
    StreamChunker,
};
use proptest::prelude::*;
use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;

const WINDOWED: [Algorithm; 12] = [
    Algorithm::FastCdc,
    Algorithm::Gear,
    Algorithm::Tttd,
    Algorithm::Rabin,
    Algorithm::RabinNc,
    Algorithm::Adler,
    Algorithm::Crc32,
    Algorithm::Fold,
    Algorithm::Shield,
    Algorithm::GearHash,
    Algorithm::Xet,
    Algorithm::Restic,
];

/// Possible parameters of any of them, small, so that short data has many chunks.
fn any_parameters() -> impl Strategy<Value = Parameters> {
    let algorithm = prop::sample::select(WINDOWED.to_vec());
    let sizes = (8u32..=12, 1u32..6000, 1u32..9, 1u32..20_000);
    (algorithm, sizes, 0u8..=3, 0usize..4, any::<bool>()).prop_map(
        |(algorithm, (avg_bits, min, max_times, more), level, window, is_half)| {
            let avg = 1u32 << avg_bits;
            let window = [32, 48, 64, 256][window];
            let lowest = match algorithm {
                Algorithm::FastCdc | Algorithm::Gear => 1,
                Algorithm::GearHash
                | Algorithm::Xet
                | Algorithm::Restic
                | Algorithm::Fold
                | Algorithm::Shield => 64,
                Algorithm::Tttd => 48,
                _ => window,
            };
            let has_levels = Parameters::new(algorithm).has_levels();
            let min = (min % (avg * 2)).max(lowest);
            let mut parameters = sized(algorithm, min, avg, (min.max(avg) + more) * max_times);
            parameters.normalization = if has_levels { level } else { 0 };
            if has_levels {
                let normal = u64::from(min) + 1 + u64::from(more) % 3000;
                parameters.own.set(OwnParameter::NormalBytes, normal);
                parameters.max_bytes = parameters.max_bytes.max(min + 4000);
            }
            if OwnParameter::WindowBytes.is_of(algorithm) {
                parameters.own.set(OwnParameter::WindowBytes, window.into());
            }
            if algorithm == Algorithm::FastCdc && is_half {
                parameters.own.set(OwnParameter::HashBits, 32);
            }
            if algorithm == Algorithm::Tttd {
                parameters.max_bytes = parameters.max_bytes.min(min * 64).max(avg.max(min) + 1);
                parameters.min_bytes = min.max(parameters.max_bytes.div_ceil(64));
            }
            parameters
        },
    )
}

fn key(parameters: &Parameters, seed: Option<u64>) -> KeyMaterial {
    match seed {
        Some(seed) if parameters.algorithm.info().keyed => {
            let mut numbers = Splitmix64(seed);
            KeyMaterial::Table(Box::new(std::array::from_fn(|_| {
                numbers.next().expect("endless")
            })))
        }
        _ => KeyMaterial::Unkeyed,
    }
}

/// Data of few symbols and runs, and periodic data.
fn any_low_entropy() -> impl Strategy<Value = Vec<u8>> {
    let periodic =
        (any::<u64>(), 1usize..700, 1usize..40_000).prop_map(|(seed, period, length)| {
            let once = random_bytes(seed, period);
            once.iter().copied().cycle().take(length).collect()
        });
    let text = (any::<u64>(), 0usize..40_000).prop_map(|(seed, length)| {
        let words = [&b"error"[..], b"info", b" 2026-11-21T", b"\n", b"host7 "];
        let mut text: Vec<u8> = Vec::new();
        for number in Splitmix64(seed) {
            if text.len() >= length {
                break;
            }
            text.extend_from_slice(words[number as usize % words.len()]);
        }
        text
    });
    prop_oneof![periodic, text, any_data()]
}

/// Runs jobs on so many threads, and brings what they leave into order.
fn on_threads<Job: Send, Done: Send>(
    jobs: impl Iterator<Item = Job> + Send,
    threads: usize,
    run: impl Fn(Job) -> Done + Sync,
) -> Vec<Done> {
    let queue = Mutex::new(jobs.enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no panic").next();
                    let Some((index, job)) = next else { break };
                    let result = run(job);
                    done.lock().expect("no panic").push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no panic");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn feed_lengths(chunker: &Chunker, data: &[u8], piece: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut feed = FeedChunker::new(chunker.clone());
    for piece in data.chunks(piece) {
        feed.feed(piece, |chunk| out.push(chunk.len()));
    }
    assert_eq!(
        feed.finish(|chunk| out.push(chunk.len())),
        data.len() as u64
    );
    out
}

fn two_stage_feed_lengths(
    chunker: &Chunker,
    data: &[u8],
    piece: usize,
    segment: usize,
) -> Vec<usize> {
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut feed = TwoStageFeed::new(chunker.clone(), segment).expect("a windowed chunker");
    for piece in data.chunks(piece) {
        feed.feed(piece, |chunk| chunks.push(chunk.to_vec()));
    }
    let total = feed.finish(|chunk| chunks.push(chunk.to_vec()));
    assert_eq!(total, data.len() as u64);
    assert_eq!(chunks.concat(), data);
    chunks.iter().map(Vec::len).collect()
}

/// Hands out at most so many bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let end = self.1.min(room.len());
        self.0.read(&mut room[..end])
    }
}

fn lengths_of(chunks: &[Range<usize>]) -> Vec<usize> {
    chunks.iter().map(Range::len).collect()
}

/// All forms against the loop in order.
fn assert_invariant(chunker: &Chunker, data: &[u8], segment: usize, threads: usize, piece: usize) {
    let in_order = chunker.clone().with_rolling(Rolling::InOrder);
    let expected = lengths(&in_order, data);
    for isa in Isa::available() {
        let chunker = chunker
            .clone()
            .with_isa(isa)
            .with_rolling(Rolling::TwoStage);
        assert_eq!(chunker.isa(), isa);
        assert_eq!(lengths(&chunker, data), expected, "lazy, {isa}");
        let mut start = 0;
        for &length in &expected {
            assert_eq!(chunker.cut(&data[start..]), length, "one cut, {isa}");
            start += length;
        }
        assert_eq!(feed_lengths(&chunker, data, piece), expected, "fed, {isa}");
        let mut stream = StreamChunker::new(chunker.clone(), Slow(data, piece));
        for &length in &expected {
            let chunk = stream.next_chunk().expect("memory does not fail");
            assert_eq!(chunk.map(<[u8]>::len), Some(length), "stream, {isa}");
        }
        assert!(stream.next_chunk().expect("memory does not fail").is_none());
        let fed = two_stage_feed_lengths(&chunker, data, piece, segment);
        assert_eq!(fed, expected, "eager feed, {isa}");

        let two_stage = TwoStage::new(chunker.clone(), segment).expect("a windowed chunker");
        let jobs = two_stage.jobs(data, 1 + piece % 4);
        let marked = on_threads(jobs, threads, MarkJob::run).concat();
        let chunks = two_stage.join(data, &marked);
        assert_eq!(lengths_of(&chunks), expected, "SFMS, {isa}, {segment}");
        assert_eq!(two_stage.cuts(data), chunks, "MFMS");
    }
    let much = Much::new(chunker.clone(), segment).expect("a windowed chunker");
    let segments = on_threads(much.jobs(data), threads, MuchJob::run);
    let chunks = much.marshal(data, &segments);
    assert_eq!(lengths_of(&chunks), expected, "MUCH");
    let fastest = chunker.clone().with_rolling(Rolling::Fastest);
    assert_eq!(lengths(&fastest, data), expected, "fastest");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn cuts_are_those_of_the_loop_in_order(
        parameters in any_parameters(),
        seed: Option<u64>,
        data in any_low_entropy(),
        segment in prop_oneof![1usize..200, 200usize..30_000, Just(1 << 20)],
        threads in 1usize..4,
        piece in 1usize..30_000,
    ) {
        prop_assert_eq!(parameters.validate(), Ok(()));
        let segment = segment.max(data.len() / 400);
        let piece = piece.max(data.len() / 100);
        let chunker = Chunker::new(&parameters, key(&parameters, seed)).expect("possible");
        assert_invariant(&chunker, &data, segment, threads, piece);
    }
}

/// The usual sizes, where many blocks lie between two cuts, on all kinds of data.
#[test]
fn usual_parameters() {
    let mut data = random_bytes(5, 900_000);
    data[300_000..400_000].fill(0);
    data[400_000..500_000].fill(b'x');
    let text = random_bytes(6, 100_000);
    for (byte, text) in data[500_000..600_000].iter_mut().zip(&text) {
        *byte = b'a' + text % 4;
    }
    for algorithm in WINDOWED {
        let mut parameters = Parameters::new(algorithm);
        if algorithm == Algorithm::Restic {
            parameters = sized(algorithm, 2048, 8192, 65_536);
        }
        assert_invariant(&unkeyed(&parameters), &data, 65_537, 2, 50_000);
    }
    let mut half = Parameters::new(Algorithm::FastCdc);
    half.own.set(OwnParameter::HashBits, 32);
    for level in 0..=3 {
        half.normalization = level;
        assert_invariant(&unkeyed(&half), &data, 1 << 20, 2, 100_000);
    }
}

/// A table under which every window, or every run of one byte, matches.
#[test]
fn where_everything_is_a_candidate() {
    for number in [0, 1 << 47, u64::MAX] {
        for algorithm in [Algorithm::FastCdc, Algorithm::Gear, Algorithm::Tttd] {
            let parameters = sized(algorithm, 100, 256, 1000);
            let key = KeyMaterial::Table(Box::new([number; 256]));
            let chunker = Chunker::new(&parameters, key).expect("possible parameters");
            assert_invariant(&chunker, &random_bytes(1, 20_000), 700, 2, 999);
        }
    }
}

#[test]
fn streams_do_not_remember_the_stream_before() {
    let (first, second) = (random_bytes(1, 50_000), random_bytes(2, 50_000));
    for isa in Isa::available() {
        let chunker = unkeyed(&Parameters::default());
        let chunker = chunker.with_isa(isa).with_rolling(Rolling::TwoStage);
        let mut stream = StreamChunker::new(chunker.clone(), &first[..]);
        assert!(stream.next_chunk().expect("memory").is_some());
        stream.restart(&second[..]);
        for length in lengths(&chunker, &second) {
            let chunk = stream.next_chunk().expect("memory").expect("not the end");
            assert_eq!(chunk.len(), length);
        }
    }
}

#[test]
fn segments_by_themselves_lose_the_cuts_at_their_ends() {
    let data = random_bytes(3, 300_000);
    let chunker = unkeyed(&Parameters::default());
    let jobs = lossy_jobs(&chunker, &data, 65_536);
    let chunks = on_threads(jobs, 2, LossyJob::run).concat();
    let mut end = 0;
    for chunk in &chunks {
        assert_eq!(chunk.start, end);
        end = chunk.end;
    }
    assert_eq!(end, data.len());
    for boundary in (65_536..300_000).step_by(65_536) {
        assert!(chunks.iter().any(|chunk| chunk.start == boundary));
    }
    let first: Vec<_> = chunker.chunks(&data[..65_536]).collect();
    assert_eq!(chunks[..first.len()], first[..]);
    assert_ne!(lengths_of(&chunks), lengths(&chunker, &data));
}

#[test]
fn only_chunkers_of_a_window() {
    for info in chunking::ALGORITHMS {
        let chunker = unkeyed(&Parameters::new(info.algorithm));
        let is_windowed = WINDOWED.contains(&info.algorithm);
        assert_eq!(Rolling::TwoStage.is_of(info.algorithm), is_windowed);
        match TwoStage::new(chunker.clone(), 1000) {
            Ok(_) => assert!(is_windowed, "{}", info.name),
            Err(error) => {
                assert!(!is_windowed, "{error}");
                assert_eq!(error.algorithm, info.algorithm);
                // Told to, it cuts as it can.
                let data = random_bytes(4, 100_000);
                let told = chunker.clone().with_rolling(Rolling::TwoStage);
                assert_eq!(lengths(&told, &data), lengths(&chunker, &data));
            }
        }
    }
}

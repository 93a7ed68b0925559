//! What holds for every algorithm of the table, on any possible parameters and any data.

use crate::random::{Splitmix64, any_data, random_bytes};
use crate::{lengths, sized, unkeyed};
use chunking::{
    ALGORITHMS, Algorithm, Chunker, FeedChunker, Isa, KeyMaterial, OWN_PARAMETERS, OwnParameter,
    ParameterError, Parameters, StreamChunker,
};
use proptest::prelude::*;
use std::io::{self, Read};

/// Sizes that every algorithm takes, small, so that short data has many chunks.
pub fn small(algorithm: Algorithm) -> Parameters {
    let parameters = sized(algorithm, 512, 2048, 8192);
    assert_eq!(parameters.validate(), Ok(()), "{algorithm}");
    parameters
}

/// An algorithm with sizes, level and own parameters drawn at random, where they are possible.
pub fn any_parameters() -> impl Strategy<Value = Parameters> {
    let sizes = (1u32..5000, 8u32..=13, 0u32..3, 1u32..60_000);
    let rest = (0u8..=3, prop::option::of(0usize..4), 1u64..6000);
    (0..ALGORITHMS.len(), sizes, rest).prop_map(
        |(index, (min, avg_bits, odd, above), (level, window, normal))| {
            let algorithm = ALGORITHMS[index].algorithm;
            let avg = (1 << avg_bits) + 2 * odd * (1 << (avg_bits - 3));
            let mut drawn = sized(algorithm, min, avg, avg.max(min) + above);
            if drawn.has_levels() {
                drawn.normalization = level;
            }
            if let Some(window) = window {
                drawn
                    .own
                    .set(OwnParameter::WindowBytes, [32, 48, 64, 256][window]);
            }
            let mut with_normal = drawn;
            with_normal.own.set(OwnParameter::NormalBytes, normal);
            let mut even = drawn;
            (even.min_bytes, even.max_bytes) = (min & !1, even.max_bytes & !1);
            let mut plain = sized(algorithm, min, 1 << avg_bits, drawn.max_bytes);
            plain.normalization = drawn.normalization;
            [with_normal, drawn, even, plain]
                .into_iter()
                .find(|parameters| parameters.validate().is_ok())
                .unwrap_or_else(|| small(algorithm))
        },
    )
}

/// Fails unless `lengths` are those of possible chunks of `total` bytes.
fn assert_possible(parameters: &Parameters, lengths: &[usize], total: usize) {
    let (min, max) = (parameters.min_bytes as usize, parameters.max_bytes as usize);
    assert_eq!(lengths.iter().sum::<usize>(), total, "{parameters:?}");
    for (index, &length) in lengths.iter().enumerate() {
        assert!((1..=max).contains(&length), "{length}, {parameters:?}");
        let is_last = index + 1 == lengths.len();
        assert!(is_last || length >= min, "{length}, {parameters:?}");
    }
}

/// Hands out `data` in reads of the given sizes, in turn.
struct Reads<'a>(&'a [u8], Box<dyn Iterator<Item = usize> + 'a>);

impl Read for Reads<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let size = self.1.next().expect("endless sizes");
        let length = size.min(room.len()).min(self.0.len());
        let (head, rest) = self.0.split_at(length);
        room[..length].copy_from_slice(head);
        self.0 = rest;
        Ok(length)
    }
}

fn streamed_lengths<R: Read>(mut stream: StreamChunker<R>) -> Vec<usize> {
    let mut lengths = Vec::new();
    loop {
        let offset = stream.offset();
        let Some(chunk) = stream.next_chunk().expect("a reader that does not fail") else {
            return lengths;
        };
        let length = chunk.len();
        lengths.push(length);
        assert_eq!(stream.offset(), offset + length as u64);
    }
}

/// The lengths of what comes out when `data` is fed in pieces of the given sizes.
fn fed_lengths(
    chunker: Chunker,
    data: &[u8],
    mut sizes: Box<dyn Iterator<Item = usize>>,
) -> Vec<usize> {
    let max_bytes = chunker.parameters().max_bytes as usize;
    let mut feed = FeedChunker::new(chunker);
    let (mut lengths, mut joined, mut rest) = (Vec::new(), Vec::new(), data);
    while !rest.is_empty() {
        let size = sizes.next().expect("endless sizes").min(rest.len());
        let (piece, behind) = rest.split_at(size);
        feed.feed(piece, |chunk| {
            lengths.push(chunk.len());
            joined.extend_from_slice(chunk);
        });
        assert!(feed.pending_bytes() < max_bytes);
        assert_eq!(feed.offset(), joined.len() as u64);
        rest = behind;
    }
    let total = feed.finish(|chunk| {
        lengths.push(chunk.len());
        joined.extend_from_slice(chunk);
    });
    assert_eq!(total, data.len() as u64);
    assert!(joined == data, "the bytes themselves");
    lengths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn chunks_tile_the_data_within_bounds(parameters in any_parameters(), data in any_data()) {
        let chunker = unkeyed(&parameters);
        let found = lengths(&chunker, &data);
        assert_possible(&parameters, &found, data.len());
        // `cut` looks at no more than `max_bytes` bytes.
        let seen = &data[..data.len().min(parameters.max_bytes as usize)];
        prop_assert_eq!(chunker.cut(&data), chunker.cut(seen));
    }

    /// Cuts follow from what stands behind the cut before them.
    #[test]
    fn every_cut_is_a_place_to_resume(parameters in any_parameters(), data in any_data()) {
        let chunker = unkeyed(&parameters);
        let found = lengths(&chunker, &data);
        let start: usize = found.iter().take(found.len() / 2).sum();
        prop_assert_eq!(&found[found.len() / 2..], lengths(&chunker, &data[start..]));
    }

    #[test]
    fn read_sizes_do_not_matter(
        parameters in any_parameters(),
        data in any_data(),
        seed: u64,
        largest in 1u64..20_000,
    ) {
        let chunker = unkeyed(&parameters);
        let expected = lengths(&chunker, &data);
        let random = Splitmix64(seed).map(|number| 1 + (number % largest) as usize);
        let sizes: Vec<usize> = random.take(200).collect();
        let endless = || Box::new(sizes.clone().into_iter().cycle());
        let stream = StreamChunker::new(chunker.clone(), Reads(&data, endless()));
        prop_assert_eq!(streamed_lengths(stream), &expected[..]);
        prop_assert_eq!(fed_lengths(chunker, &data, endless()), expected);
    }
}

#[test]
fn read_sizes_do_not_matter_at_usual_sizes() {
    let data = random_bytes(30, 300_000);
    for info in ALGORITHMS {
        let chunker = unkeyed(&small(info.algorithm));
        let expected = lengths(&chunker, &data);
        assert!(expected.len() > 20, "{}: {}", info.name, expected.len());
        for size in [1, 37, 255, 4096, usize::MAX] {
            let reads = Reads(&data, Box::new(std::iter::repeat(size)));
            let stream = StreamChunker::new(chunker.clone(), reads);
            assert_eq!(streamed_lengths(stream), expected, "{} {size}", info.name);
            let fed = fed_lengths(chunker.clone(), &data, Box::new(std::iter::repeat(size)));
            assert_eq!(fed, expected, "{} {size}", info.name);
        }
    }
}

#[test]
fn levels_of_instruction_sets_do_not_matter() {
    let data = random_bytes(36, 200_000);
    for info in ALGORITHMS {
        for parameters in [small(info.algorithm), Parameters::new(info.algorithm)] {
            let chunker = unkeyed(&parameters);
            let expected = lengths(&chunker, &data);
            for isa in Isa::available() {
                let chunker = chunker.clone().with_isa(isa);
                assert_eq!(lengths(&chunker, &data), expected, "{} {isa}", info.name);
            }
        }
    }
}

#[test]
fn empty_tiny_and_uniform_data() {
    for info in ALGORITHMS {
        let parameters = small(info.algorithm);
        let chunker = unkeyed(&parameters);
        assert_eq!(chunker.cut(&[]), 0, "{}", info.name);
        assert_eq!(chunker.chunks(&[]).next(), None, "{}", info.name);
        for length in [1, 2, 7, 8, 9, 63, 64, 65, 511, 512] {
            for byte in [0, 1, 255] {
                let data = vec![byte; length];
                assert_eq!(lengths(&chunker, &data), [length], "{}", info.name);
            }
        }
        // Around the minimum and the maximum, one byte at a time.
        let data = random_bytes(31, 8200);
        for length in (500..530).chain(8185..8200) {
            let found = lengths(&chunker, &data[..length]);
            assert_possible(&parameters, &found, length);
        }
        for byte in 0..=255 {
            let data = vec![byte; 100_000];
            let found = lengths(&chunker, &data);
            assert_possible(&parameters, &found, data.len());
            let first = found[0];
            let (_, whole) = found.split_last().expect("chunks");
            assert!(
                whole.iter().all(|&length| length == first),
                "{}: runs are cut evenly",
                info.name
            );
        }
    }
}

#[test]
fn offsets_beyond_4_gib_in_streams() {
    const BEFORE: u64 = (4 << 30) - 50_000;
    let data = random_bytes(32, 100_000);
    for info in ALGORITHMS {
        let chunker = unkeyed(&small(info.algorithm));
        let expected = lengths(&chunker, &data);
        let stream = StreamChunker::new(chunker, &data[..]).at_offset(BEFORE);
        assert_eq!(stream.offset(), BEFORE);
        assert_eq!(streamed_lengths(stream), expected, "{}", info.name);
    }
}

/// No algorithm sees an offset: what counts them is the stream.
#[test]
fn more_than_4_gib_in_one_stream() {
    const BYTES: u64 = (4 << 30) + 1000;
    let chunker = unkeyed(&sized(Algorithm::Fixed, 1, 16 << 20, 16 << 20));
    let mut stream = StreamChunker::new(chunker, io::repeat(0).take(BYTES));
    let mut count = 0;
    while stream.next_chunk().expect("endless zeros").is_some() {
        count += 1;
    }
    assert_eq!((stream.offset(), count), (BYTES, 257));
}

#[test]
fn chunkers_cross_threads_and_are_small() {
    fn crosses_threads<T: Send + Sync + Clone>() {}
    crosses_threads::<Chunker>();
    assert!(size_of::<Chunker>() <= 2400, "{}", size_of::<Chunker>());
}

/// Data that is made to hurt: runs of every byte, and short periods. Judged by the clock this would
/// be no test; by the hang that a cost of max_bytes a chunk would be, it is one.
#[test]
fn no_data_makes_an_algorithm_hang() {
    for info in ALGORITHMS {
        let usual = Parameters::new(info.algorithm);
        let largest = Parameters {
            max_bytes: 64 << 20,
            ..usual
        };
        let parameters = [largest, usual]
            .into_iter()
            .find(|parameters| parameters.validate().is_ok())
            .expect("usual parameters are possible");
        let chunker = unkeyed(&parameters);
        for byte in [0, 10, 25, 32, 67, 71, 133, 211, 255] {
            let data = vec![byte; 1 << 20];
            assert_possible(&parameters, &lengths(&chunker, &data), data.len());
        }
        for period in [2, 3, 7, 48, 64, 655] {
            let data: Vec<u8> = (0..1 << 20).map(|index| (index % period) as u8).collect();
            assert_possible(&parameters, &lengths(&chunker, &data), data.len());
        }
    }
}

/// The means that docs/format/chunkers.md promises on random data, in shares of `avg_bytes`, at 2,
/// 8 and 64 KiB or what a preset has.
#[test]
fn means_on_random_data_are_as_documented() {
    let data = random_bytes(35, 32 << 20);
    for info in ALGORITHMS {
        let parameters = Parameters::new(info.algorithm);
        let count = lengths(&unkeyed(&parameters), &data).len();
        let mean = (data.len() / count) as f64 / f64::from(parameters.avg_bytes);
        let (expected, tolerance) = match info.algorithm {
            Algorithm::Fixed | Algorithm::Ram | Algorithm::Maxp | Algorithm::SeqCdc => (1.0, 0.05),
            Algorithm::Ae => (1.04, 0.03),
            Algorithm::Ae2 => (0.25 + 1.04 * 0.75, 0.03),
            Algorithm::FastCdc | Algorithm::RabinNc | Algorithm::Fold | Algorithm::Shield => {
                (1.14, 0.03)
            }
            Algorithm::FastCdcCrateV2020 => (1.2, 0.06),
            Algorithm::Gear => (0.25 + 0.92, 0.05),
            Algorithm::GearHash => (1.3, 0.06),
            // Of few chunks, and cut at max often.
            Algorithm::Restic => (1.5, 0.5),
            Algorithm::Xet => (0.125 + 0.83, 0.1),
            _ => (1.25, 0.06),
        };
        assert!(
            (mean - expected).abs() <= tolerance,
            "{}: {mean}",
            info.name
        );
    }
}

/// Zeros that were never written take no memory.
#[test]
#[cfg(target_pointer_width = "64")]
fn offsets_beyond_4_gib_in_slices() {
    let data = vec![0u8; (4 << 30) + 1000];
    let chunker = unkeyed(&sized(Algorithm::Fixed, 1, 64 << 20, 64 << 20));
    let last = chunker.chunks(&data).last().expect("chunks");
    assert_eq!(last, 4 << 30..(4 << 30) + 1000);
}

/// The point of content-defined chunking: an insertion changes the chunks near it, no others. Fixed
/// size is the one that fails.
#[test]
fn an_insertion_moves_few_cuts() {
    let data = random_bytes(33, 1 << 20);
    let mut edited = data.clone();
    edited.splice(300_000..300_000, *b"inserted");
    for info in ALGORITHMS {
        let chunker = unkeyed(&small(info.algorithm));
        let ends = |data: &[u8], shift: usize| -> Vec<usize> {
            let behind = chunker
                .chunks(data)
                .filter(|chunk| chunk.start > 600_000 + shift);
            behind.map(|chunk| chunk.end - shift).collect()
        };
        let is_resilient = ends(&data, 0) == ends(&edited, 8);
        assert_eq!(
            is_resilient,
            info.algorithm != Algorithm::Fixed,
            "{}",
            info.name
        );
    }
}

#[test]
fn a_key_changes_cuts_or_is_refused() {
    let data = random_bytes(34, 200_000);
    for info in ALGORITHMS {
        let parameters = small(info.algorithm);
        let key = |seed| {
            let mut numbers = Splitmix64(seed);
            let table = std::array::from_fn(|_| numbers.next().expect("endless"));
            KeyMaterial::Table(Box::new(table))
        };
        let keyed = |seed| Chunker::new(&parameters, key(seed));
        if !info.keyed {
            let algorithm = info.algorithm;
            let refused = keyed(1).map(|_| ());
            assert_eq!(refused, Err(ParameterError::NotKeyed { algorithm }));
            continue;
        }
        let cuts: Vec<_> = [1, 1, 2]
            .map(|seed| lengths(&keyed(seed).expect("keyed"), &data))
            .into();
        assert_eq!(cuts[0], cuts[1], "{}", info.name);
        assert_ne!(cuts[0], cuts[2], "{}", info.name);
        assert_ne!(
            cuts[0],
            lengths(&unkeyed(&parameters), &data),
            "{}",
            info.name
        );
    }
}

#[test]
fn presets_and_hashless_chunkers_are_not_keyed() {
    // Nor is crc32, whose secret would be too small (methods/crc32.rs).
    for info in ALGORITHMS {
        let is_unkeyed = info.id >= 64
            || ["fixed", "crc32", "ae", "ae2", "ram", "maxp", "seqcdc"].contains(&info.name);
        assert_eq!(info.keyed, !is_unkeyed, "{}", info.name);
    }
}

#[test]
fn own_parameters_are_refused_where_they_have_no_meaning() {
    for info in ALGORITHMS {
        for own in OWN_PARAMETERS {
            let algorithm = info.algorithm;
            let mut parameters = small(algorithm);
            parameters.own.set(own.parameter, 64);
            let is_foreign = parameters.validate()
                == Err(ParameterError::NotOfAlgorithm {
                    parameter: own.parameter,
                    value: 64,
                    algorithm,
                });
            assert_eq!(is_foreign, !own.parameter.is_of(algorithm), "{}", info.name);
        }
        let mut parameters = small(info.algorithm);
        parameters.normalization = 4;
        let error = parameters.validate().expect_err("no such level");
        assert!(error.to_string().contains("normalization = 4"), "{error}");
    }
}

/// The page that other languages follow has the rows of the table, word for word.
#[test]
fn the_format_page_lists_every_algorithm_and_parameter() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/chunkers.md");
    let page = std::fs::read_to_string(path).expect("docs/format/chunkers.md");
    for info in ALGORITHMS {
        let keyed = if info.keyed { "yes" } else { "no" };
        let row = format!(
            "| {} | `{}` | {keyed} | {} |",
            info.id, info.name, info.average
        );
        assert!(page.contains(&row), "{row}");
        let definition = format!("**{}** ({})", info.name, info.id);
        assert!(page.contains(&definition), "{definition}");
    }
    for info in OWN_PARAMETERS {
        let names: Vec<_> = info.algorithms.iter().map(|a| a.name()).collect();
        let row = format!("| {} | `{}` | {} |", info.id, info.name, names.join(", "));
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn usual_parameters_are_possible() {
    for info in ALGORITHMS {
        let parameters = Parameters::new(info.algorithm);
        assert_eq!(parameters.validate(), Ok(()), "{}", info.name);
        assert_eq!(parameters.algorithm, info.algorithm);
    }
}

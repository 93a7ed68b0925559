//! Streams give the cuts of the whole data, whatever the sizes and troubles of reads.

use crate::random::{Splitmix64, random_bytes};
use crate::{fastcdc, lengths, unkeyed};
use chunking::{Parameters, StreamChunker};
use proptest::prelude::*;
use std::io::{self, ErrorKind, Read};

/// Hands out `data` in reads of the given sizes, in turn; a size of 0 is an interruption.
struct Reads<'a> {
    data: &'a [u8],
    sizes: Box<dyn Iterator<Item = usize> + 'a>,
}

impl<'a> Reads<'a> {
    fn new(data: &'a [u8], sizes: impl Iterator<Item = usize> + 'a) -> Self {
        Self {
            data,
            sizes: Box::new(sizes),
        }
    }
}

impl Read for Reads<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        assert!(!room.is_empty(), "a read without room looks like the end");
        let size = self.sizes.next().expect("endless sizes");
        if size == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let length = size.min(room.len()).min(self.data.len());
        let (head, rest) = self.data.split_at(length);
        room[..length].copy_from_slice(head);
        self.data = rest;
        Ok(length)
    }
}

/// The chunks of a stream, joined, and their lengths.
fn drain<R: Read>(stream: &mut StreamChunker<R>) -> (Vec<u8>, Vec<usize>) {
    let (mut joined, mut lengths) = (Vec::new(), Vec::new());
    while let Some(chunk) = stream.next_chunk().expect("a reader that does not fail") {
        joined.extend_from_slice(chunk);
        lengths.push(chunk.len());
        let handed_out = joined.len() as u64;
        assert_eq!(stream.offset(), handed_out);
    }
    assert!(
        stream.next_chunk().expect("ended").is_none(),
        "ended for good"
    );
    (joined, lengths)
}

fn assert_same_cuts(parameters: &Parameters, data: &[u8], sizes: impl Iterator<Item = usize>) {
    let chunker = unkeyed(parameters);
    let expected = lengths(&chunker, data);
    let mut stream = StreamChunker::new(chunker, Reads::new(data, sizes));
    let (joined, lengths) = drain(&mut stream);
    assert_eq!(lengths, expected);
    assert!(joined == data, "the bytes themselves");
}

#[test]
fn any_fixed_read_size() {
    let data = random_bytes(8, 700_000);
    for size in [1, 37, 255, 4096, 65_536, usize::MAX] {
        for parameters in [Parameters::default(), fastcdc(64, 256, 300, 1)] {
            assert_same_cuts(&parameters, &data, std::iter::repeat(size));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_read_sizes_with_interruptions(
        seed: u64,
        length in 0usize..400_000,
        largest in 1u64..100_000,
        max_bytes in 4097u32..80_000,
    ) {
        let data = random_bytes(seed, length);
        let sizes = Splitmix64(!seed).map(|number| (number % (largest + 1)) as usize);
        assert_same_cuts(&fastcdc(512, 4096, max_bytes, 2), &data, sizes);
    }
}

#[test]
fn an_empty_stream_has_no_chunk() {
    assert_same_cuts(&Parameters::default(), &[], std::iter::repeat(1));
}

#[test]
fn memory_is_two_chunks_and_a_read() {
    let parameters = fastcdc(64, 256, 1 << 20, 0);
    let stream = StreamChunker::new(unkeyed(&parameters), io::empty());
    assert_eq!(stream.buffer_bytes(), (2 << 20) + (64 << 10));
}

#[test]
fn an_error_loses_no_byte() {
    /// Fails at every third read.
    struct Failing<'a>(Reads<'a>, u32);
    impl Read for Failing<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(3) {
                return Err(ErrorKind::TimedOut.into());
            }
            self.0.read(room)
        }
    }
    let data = random_bytes(9, 300_000);
    let chunker = unkeyed(&Parameters::default());
    let expected = lengths(&chunker, &data);
    let reader = Failing(Reads::new(&data, std::iter::repeat(1000)), 0);
    let mut stream = StreamChunker::new(chunker, reader);
    let (mut lengths, mut errors) = (Vec::new(), 0);
    loop {
        match stream.next_chunk() {
            Ok(Some(chunk)) => lengths.push(chunk.len()),
            Ok(None) => break,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                errors += 1;
            }
        }
    }
    assert_eq!(lengths, expected);
    assert!(errors >= 100, "{errors}");
}

#[test]
fn a_reader_that_lies_is_an_error() {
    struct Lying;
    impl Read for Lying {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            Ok(room.len() + 1)
        }
    }
    let mut stream = StreamChunker::new(unkeyed(&Parameters::default()), Lying);
    assert!(stream.next_chunk().is_err());
}

#[test]
fn restart_begins_anew() {
    let first = random_bytes(10, 100_000);
    let second = random_bytes(11, 50_000);
    let chunker = unkeyed(&Parameters::default());
    let mut stream = StreamChunker::new(chunker.clone(), &first[..]);
    assert!(stream.next_chunk().expect("memory does not fail").is_some());
    // The old reader is behind what was handed out: bytes were read ahead.
    assert!(stream.restart(&second[..]).len() < first.len());
    assert_eq!(stream.offset(), 0);
    assert_eq!(
        drain(&mut stream),
        (second.clone(), lengths(&chunker, &second))
    );
    // An ended stream can be begun anew as well.
    stream.restart(&first[..]);
    assert_eq!(
        drain(&mut stream),
        (first.clone(), lengths(&chunker, &first))
    );
}

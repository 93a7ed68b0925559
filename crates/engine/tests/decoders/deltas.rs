//! Deltas of both kinds (docs/format/delta.md), against a base that is always the same.
//!
//! The bytes are a `u32` length of the target, then the delta.

use engine::container::CompressionLevel;
use engine::similarity::delta::{self, DeltaEncoder};
use engine::similarity::prefix::{PrefixDecoder, PrefixEncoder};
use testkit::generate::{Edits, edited, mixed};

/// Mixed content, so that deltas have copies and literals of all lengths.
fn base() -> Vec<u8> {
    mixed(7, 9000)
}

/// Appends a target of that length to the bytes, or leaves them as they are and says no.
type Decode<'a> = dyn FnMut(&[u8], &[u8], usize, &mut Vec<u8>) -> bool + 'a;

/// Gives the target, after looking at the bounds that hold for any delta.
fn decoded(bytes: &[u8], decode: &mut Decode) -> Option<Vec<u8>> {
    let (target_bytes, delta) = bytes.split_first_chunk()?;
    let target_bytes = u32::from_le_bytes(*target_bytes) as usize;
    let mut out = Vec::new();
    let is_decoded = decode(&base(), delta, target_bytes, &mut out);
    assert!(out.capacity() <= target_bytes.clamp(8, 16 << 20));
    assert_eq!(out.len(), if is_decoded { target_bytes } else { 0 });
    is_decoded.then_some(out)
}

/// An instruction delta.
pub fn instructions(bytes: &[u8]) {
    let mut decode = |base: &[u8], delta: &[u8], target_bytes, out: &mut Vec<u8>| {
        delta::decode(base, delta, target_bytes, out).is_ok()
    };
    let Some(target) = decoded(bytes, &mut decode) else {
        return;
    };
    let mut delta = Vec::new();
    assert!(DeltaEncoder::new().encode(&base(), &target, usize::MAX, &mut delta));
    let mut again = Vec::new();
    assert!(decode(&base(), &delta, target.len(), &mut again));
    assert!(again == target);
}

/// A prefix delta.
pub fn prefix(bytes: &[u8]) {
    let mut decoder = PrefixDecoder::new();
    let mut decode = |base: &[u8], delta: &[u8], target_bytes, out: &mut Vec<u8>| {
        decoder.decode(base, delta, target_bytes, out).is_ok()
    };
    let Some(target) = decoded(bytes, &mut decode) else {
        return;
    };
    let mut encoder = PrefixEncoder::new(CompressionLevel::DEFAULT);
    let mut delta = Vec::new();
    assert!(encoder.encode(&base(), &target, usize::MAX, &mut delta));
    let mut again = Vec::new();
    assert!(decode(&base(), &delta, target.len(), &mut again));
    assert!(again == target);
}

fn samples(encode: &mut dyn FnMut(&[u8], &mut Vec<u8>) -> bool) -> Vec<Vec<u8>> {
    let few = Edits::default();
    let many = Edits {
        count: 40,
        bytes: 1..100,
        ..Edits::default()
    };
    let moved = [&base()[4000..], &base()[..4000]].concat();
    let targets = [
        edited(&base(), 1, &few),
        edited(&base(), 2, &many),
        moved,
        base()[..200].to_vec(),
        Vec::new(),
    ];
    let sample = |target: &Vec<u8>| {
        let mut sample = (target.len() as u32).to_le_bytes().to_vec();
        assert!(encode(target, &mut sample));
        sample
    };
    targets.iter().map(sample).collect()
}

pub fn instruction_samples() -> Vec<Vec<u8>> {
    let mut encoder = DeltaEncoder::new();
    samples(&mut |target, out| encoder.encode(&base(), target, usize::MAX, out))
}

pub fn prefix_samples() -> Vec<Vec<u8>> {
    let mut encoder = PrefixEncoder::new(CompressionLevel::DEFAULT);
    samples(&mut |target, out| encoder.encode(&base(), target, usize::MAX, out))
}

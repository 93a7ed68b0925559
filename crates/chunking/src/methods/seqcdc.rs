//! SeqCDC: a chunk ends where bytes rise (Udayashankar et al., *SeqCDC: Hashless Content-Defined
//! Chunking for Data Deduplication*, Middleware 2024; increasing mode).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. i = min, rises = 0, falls = 0.
//! 2. While i < n, compare `src[i]` with `src[i − 1]`, as numbers of 0 to 255:
//!    - equal: nothing;
//!    - greater: rises += 1, and when rises = `sequence_bytes` the chunk is `src[0..i]`: the byte
//!      that completes the sequence begins the next chunk;
//!    - less: rises = 0, falls += 1, and when falls = `jump_trigger`: falls = 0, i += `jump_bytes`.
//!
//!    Then i += 1.
//! 3. No cut: the whole `src[0..n]`.
//!
//! Defaults: `sequence_bytes` 5 and `jump_trigger` 50, as published; `jump_bytes` so that the mean
//! on random data is about avg, [`default_jump_bytes`]. The published choices for other minima
//! (256 for 4, 8, 16 KiB; 512 for 8, 16, 32 KiB) can be given. The cuts then are those of
//! DedupBench, the authors' program.

use crate::{OwnParameter, Parameters};
use kernels::sequence::{self, Rule};

/// The published length of a sequence.
const SEQUENCE_BYTES: u64 = 5;

/// The published number of falling pairs that make it jump.
const JUMP_TRIGGER: u64 = 50;

/// The `sequence_bytes` that can be.
pub(crate) const SEQUENCE_BYTES_LOWEST: u64 = 2;
/// The `sequence_bytes` that can be.
pub(crate) const SEQUENCE_BYTES_HIGHEST: u64 = 8;
/// The highest `jump_trigger`.
pub(crate) const JUMP_TRIGGER_HIGHEST: u64 = 65_535;

/// How many pairs of random bytes are judged until 2, 3 … 8 of them have risen in a row: the
/// solution of the Markov chain of (rises, last byte), rounded.
const WAIT_PAIRS: [u64; 7] = [7, 29, 147, 873, 6_114, 49_312, 450_682];

/// A SeqCDC chunker.
#[derive(Clone)]
pub(crate) struct SeqCdc {
    min: usize,
    rule: Rule,
}

impl SeqCdc {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let own = |parameter| parameters.own.get(parameter);
        let rises = own(OwnParameter::SequenceBytes).unwrap_or(SEQUENCE_BYTES);
        let falls = own(OwnParameter::JumpTrigger).unwrap_or(JUMP_TRIGGER);
        let jump = own(OwnParameter::JumpBytes)
            .unwrap_or_else(|| default_jump_bytes(parameters, rises, falls));
        Self {
            min: parameters.min_bytes as usize,
            rule: Rule {
                rises: rises as u32,
                falls: falls as u32,
                jump: usize::try_from(jump).unwrap_or(usize::MAX),
            },
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        // The first pair is (min − 1, min).
        let start = self.min - 1;
        let found = sequence::find_cut(&self.rule, &data[start..]);
        found.map_or(data.len(), |index| start + index)
    }
}

/// The jump with which the mean on random data is about `avg_bytes`.
///
/// With s pairs to judge until a sequence ([`WAIT_PAIRS`]) and p = 512 / 255 × t pairs for t
/// falling ones, there are about s / p − 1 / 2 jumps in a chunk, for the last stretch ends in the
/// cut and not in a jump. Its mean length is min + s + (s / p − 1 / 2) × jump; hence
/// jump = (avg − min − s) × 512 t / (255 s − 256 t), rounded down. It is 0 where avg ≤ min + s,
/// and where a sequence mostly comes before the first jump, s ≤ p.
fn default_jump_bytes(parameters: &Parameters, rises: u64, falls: u64) -> u64 {
    let wait = WAIT_PAIRS[(rises - SEQUENCE_BYTES_LOWEST) as usize];
    if 255 * wait <= 512 * falls {
        return 0;
    }
    let behind_min = u64::from(parameters.avg_bytes.saturating_sub(parameters.min_bytes));
    behind_min.saturating_sub(wait) * 512 * falls / (255 * wait - 256 * falls)
}

#[cfg(test)]
mod tests {
    use super::SeqCdc;
    use crate::{Algorithm, OwnParameter, Parameters};

    fn of_sizes(min_bytes: u32, avg_bytes: u32) -> Parameters {
        Parameters {
            min_bytes,
            avg_bytes,
            max_bytes: 8 * avg_bytes,
            ..Parameters::new(Algorithm::SeqCdc)
        }
    }

    /// Golden: a change here changes the cut points of stored data.
    #[test]
    fn default_jumps_are_frozen() {
        for (min_bytes, avg_bytes, jump) in [
            (2 << 10, 8 << 10, 643),
            (4 << 10, 8 << 10, 393),
            (1 << 10, 4 << 10, 268),
            (16 << 10, 64 << 10, 5890),
            (64, 256, 0),
            (9000, 8192, 0),
        ] {
            let seqcdc = SeqCdc::new(&of_sizes(min_bytes, avg_bytes));
            assert_eq!(seqcdc.rule.jump, jump, "{min_bytes} {avg_bytes}");
            assert_eq!((seqcdc.rule.rises, seqcdc.rule.falls), (5, 50));
        }
        let mut parameters = of_sizes(2 << 10, 8 << 10);
        parameters.own.set(OwnParameter::SequenceBytes, 4);
        parameters.own.set(OwnParameter::JumpTrigger, 10);
        assert_eq!(SeqCdc::new(&parameters).rule.jump, 879);
        parameters.own.set(OwnParameter::JumpTrigger, 74);
        assert_eq!(SeqCdc::new(&parameters).rule.jump, 0);
        parameters.own.set(OwnParameter::JumpBytes, 7);
        assert_eq!(SeqCdc::new(&parameters).rule.jump, 7);
    }

    #[test]
    fn the_byte_that_completes_the_sequence_begins_the_next_chunk() {
        let seqcdc = SeqCdc::new(&of_sizes(64, 256));
        let mut data = [9u8; 2048];
        assert_eq!(seqcdc.cut(&data), 2048);
        data[100..106].copy_from_slice(&[0, 1, 2, 3, 4, 5]);
        assert_eq!(seqcdc.cut(&data), 105);
        assert_eq!(seqcdc.cut(&data[..105]), 105);
        // The pair of the last byte of the minimum is the first that counts.
        let mut data = [9u8; 2048];
        data[60..69].copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(seqcdc.cut(&data), 68);
        data[69] = 8;
        assert_eq!(seqcdc.cut(&data[..68]), 68);
    }
}

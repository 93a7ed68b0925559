//! Dirty chunks: those that a sequential chunker would not have made (P-Dedupe §3.3, Eqs. 7 and 8).

use std::ops::Range;

/// Chunks that are not those of the sequential chunker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dirty {
    /// How many.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What of `chunks` is not in `sequential`: two ways to cut the same data, in order.
#[must_use]
pub fn dirty(sequential: &[Range<usize>], chunks: &[Range<usize>]) -> Dirty {
    let mut sequential = sequential.iter().peekable();
    let mut dirty = Dirty::default();
    for chunk in chunks {
        while sequential.next_if(|it| it.start < chunk.start).is_some() {}
        if sequential.peek() != Some(&chunk) {
            dirty.chunks += 1;
            dirty.bytes += chunk.len() as u64;
        }
    }
    dirty
}

/// How many bytes of a segment are expected to be in dirty chunks: Eq. 8, for a chunker without
/// levels on random data and segments much larger than chunks.
///
/// Chunk sizes without a minimum are exponential (Eq. 7), so that one is shorter than the minimum
/// with p = 1 − e^(−min/avg). Case 2 comes when two in a row are, and goes on while further ones
/// are; then a chunk of mean size is dirty, and n of the minimum:
/// the sum over n ≥ 1 of p^(n+1) (1 − p) (avg + min + n·min) = p² (avg + min) + p² min / (1 − p).
///
/// For 2 and 8 KiB this is 0.614 KiB; the paper prints 0.6258, which its own terms do not give.
#[must_use]
pub fn expected_dirty_bytes(min_bytes: u32, avg_bytes: u32) -> f64 {
    let (min, avg) = (f64::from(min_bytes), f64::from(avg_bytes));
    let short = 1.0 - (-min / avg).exp();
    short * short * (avg + min + min / (1.0 - short))
}

#[cfg(test)]
mod tests {
    use super::{Dirty, dirty, expected_dirty_bytes};

    #[test]
    fn equation_8_evaluates_to_less_than_is_printed() {
        let expected = expected_dirty_bytes(2 << 10, 8 << 10) / 1024.0;
        assert!((expected - 0.6146).abs() < 0.0005, "{expected}");
        // Term by term.
        let short: f64 = 0.2211;
        let terms = (1..100).map(|n| short.powi(n + 1) * 0.7789 * (10.0 + f64::from(n) * 2.0));
        let sum: f64 = terms.sum();
        assert!((sum - 0.6144).abs() < 0.0005, "{sum}");
    }

    #[test]
    fn what_one_way_has_and_the_other_has_not() {
        let sequential = [0..5, 5..9, 9..20, 20..21];
        assert_eq!(dirty(&sequential, &sequential), Dirty::default());
        let other = [0..5, 5..20, 20..21];
        assert_eq!(
            dirty(&sequential, &other),
            Dirty {
                chunks: 1,
                bytes: 15
            }
        );
        assert_eq!(
            dirty(&other, &sequential),
            Dirty {
                chunks: 2,
                bytes: 15
            }
        );
        assert_eq!(dirty(&[], &other[..1]).chunks, 1);
        assert_eq!(dirty(&other, &[]).chunks, 0);
    }
}

//! Pairs of chunks whose similarity is known: the paper's benchmark (§4.2).
//!
//! Enters: a modification rate (MoR) and a modification length (MoL). Leaves: random chunks and what
//! modifications made of them. A modification begins at each byte with the probability MoR; it puts
//! MoL random bytes in, takes MoL bytes out, or puts others in their place, each one time of three.
//!
//! Similarity is recorded as Broder's theorem has it: the windows of 32 bytes that both chunks have,
//! over those that either has. Contents are random, so that windows are equal only where bytes were
//! kept: in a run of kept bytes, all but the first 31 end such a window.

use crate::dataset::seeded::Seeded;

/// Bytes of a chunk before it is modified: the paper's average.
pub const CHUNK_BYTES: usize = 8 << 10;
/// Bytes that a rolling hash sees (§4.3).
pub const WINDOW_BYTES: usize = 32;
/// One modification in so many bytes, where the length varies.
pub const RATE: u32 = 4096;
/// The lengths.
pub const LENGTHS: [usize; 5] = [50, 100, 200, 400, 800];
/// "MoL=200 and varied MoR" (Fig. 11).
pub const LENGTH: usize = 200;
/// One modification in so many bytes, where that varies.
pub const RATES: [u32; 5] = [16_384, 8192, 4096, 2048, 1024];

/// How chunks are modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modification {
    /// One in so many bytes begins a modification: 1 / MoR.
    pub one_in: u32,
    /// So many bytes are put in, taken out, or replaced: MoL.
    pub bytes: usize,
}

/// A chunk and what became of it.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Random.
    pub original: Vec<u8>,
    /// The same with modifications.
    pub modified: Vec<u8>,
    /// Shared windows over windows of either: 0 to 1.
    pub similarity: f64,
}

/// A series of benchmark data sets (Fig. 11): its name, and each modification with its place on the axis.
pub fn series() -> [(String, Vec<(f64, Modification)>); 2] {
    let by_length = LENGTHS.map(|bytes| {
        let modification = Modification {
            one_in: RATE,
            bytes,
        };
        (bytes as f64, modification)
    });
    let by_rate = RATES.map(|one_in| {
        let modification = Modification {
            one_in,
            bytes: LENGTH,
        };
        (f64::from(one_in), modification)
    });
    [
        (format!("MoR 1/{RATE}"), by_length.to_vec()),
        (format!("MoL {LENGTH}"), by_rate.to_vec()),
    ]
}

/// So many pairs, the same for the same modification.
pub fn pairs(modification: Modification, count: usize) -> Vec<Pair> {
    let purpose = [u64::from(modification.one_in), modification.bytes as u64];
    let mut random = Seeded::new(12, &purpose);
    (0..count)
        .map(|_| pair(&mut random, modification))
        .collect()
}

fn pair(random: &mut Seeded, modification: Modification) -> Pair {
    let mut original = vec![0; CHUNK_BYTES];
    random.fill(&mut original);
    let mut modified = Vec::with_capacity(2 * CHUNK_BYTES);
    let mut shared = 0;
    let (mut position, mut run_start) = (0, 0);
    while position < original.len() {
        if random.below(u64::from(modification.one_in)) > 0 {
            position += 1;
            continue;
        }
        modified.extend_from_slice(&original[run_start..position]);
        shared += windows(position - run_start);
        let kind = random.below(3);
        if kind != DELETION {
            let start = modified.len();
            modified.resize(start + modification.bytes, 0);
            random.fill(&mut modified[start..]);
        }
        run_start = position;
        if kind != INSERTION {
            run_start = (position + modification.bytes).min(original.len());
        }
        // The byte behind an insertion has had its turn.
        position = run_start.max(position + 1);
    }
    modified.extend_from_slice(&original[run_start..]);
    shared += windows(original.len() - run_start);
    let either = windows(original.len()) + windows(modified.len()) - shared;
    Pair {
        similarity: shared as f64 / either.max(1) as f64,
        original,
        modified,
    }
}

const INSERTION: u64 = 0;
const DELETION: u64 = 1;

/// Windows in a run of bytes.
fn windows(bytes: usize) -> usize {
    bytes.saturating_sub(WINDOW_BYTES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_recorded_similarity_is_that_of_the_windows() {
        for (one_in, bytes) in [(16_384, 50), (1024, 200), (300, 20), (4096, 800)] {
            for pair in pairs(Modification { one_in, bytes }, 12) {
                let set = |chunk: &[u8]| -> HashSet<Vec<u8>> {
                    chunk.windows(WINDOW_BYTES).map(<[u8]>::to_vec).collect()
                };
                let (a, b) = (set(&pair.original), set(&pair.modified));
                let exact = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
                // One time of 256 the byte beside a run is the same by chance: a window more.
                let difference = (pair.similarity - exact).abs();
                assert!(difference < 1e-3, "{one_in} {bytes}: {difference}");
            }
        }
    }

    #[test]
    fn more_and_longer_modifications_leave_less() {
        let mean = |modification| {
            let pairs = pairs(modification, 100);
            pairs.iter().map(|pair| pair.similarity).sum::<f64>() / 100.0
        };
        for (name, modifications) in series() {
            let means: Vec<f64> = modifications.iter().map(|(_, it)| mean(*it)).collect();
            let is_falling = means.windows(2).all(|pair| pair[1] < pair[0]);
            assert!(is_falling, "{name}: {means:?}");
        }
    }
}

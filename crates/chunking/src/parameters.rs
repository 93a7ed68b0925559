//! The parameters of a chunker.
//!
//! They are data: stored in a repository's `config`, never read from the environment. Which are
//! possible stands in `rules.rs`.

use crate::rules;
use crate::{Algorithm, OwnParameters, ParameterError};

/// How to cut: the algorithm, its sizes in bytes, and what else it may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// No chunk but the last of a stream is smaller.
    pub min_bytes: u32,
    /// The expected size, in the sense of each algorithm
    /// ([`AlgorithmInfo::average`](crate::AlgorithmInfo::average)).
    ///
    /// It is seldom the mean. Chunkers that judge a hash first skip `min_bytes` and then wait
    /// `avg_bytes` on average, so that the mean is `min_bytes + avg_bytes` (FastCDC §3.4).
    /// Normalized ones switch from a strict condition to a loose one at the normal size, which is
    /// `avg_bytes` unless given: with p = 1 / (`avg_bytes` × 2^level) before and
    /// q = 2^level / `avg_bytes` after, and s = (1 − p)^(normal − `min_bytes`) the share of chunks
    /// that reach the normal size, the mean is `min_bytes` + (1 − s) / p + s / q, as long as few
    /// chunks reach `max_bytes`: for level 2 and `min_bytes = avg_bytes / 4`, 1.14 × `avg_bytes`
    /// on random data.
    pub avg_bytes: u32,
    /// No chunk is larger.
    pub max_bytes: u32,
    /// How strongly sizes are drawn to the normal size: 0 not at all, up to 3 (FastCDC §3.5); 0
    /// for algorithms that have no such levels.
    ///
    /// Level n asks for n more zero bits of the hash before the normal size, n fewer after it.
    pub normalization: u8,
    /// What only this algorithm can be told.
    pub own: OwnParameters,
}

/// `fold` at 2 KiB, 8 KiB, 64 KiB, level 2 (docs/design/0007).
impl Default for Parameters {
    fn default() -> Self {
        Self::new(Algorithm::Fold)
    }
}

impl Parameters {
    /// The lowest `avg_bytes` of any algorithm.
    pub const AVG_BYTES_LOWEST: u32 = 256;
    /// The highest `avg_bytes` of any algorithm.
    pub const AVG_BYTES_HIGHEST: u32 = 16 << 20;
    /// The highest `max_bytes`.
    pub const MAX_BYTES_HIGHEST: u32 = 64 << 20;
    /// The highest `normalization`.
    pub const NORMALIZATION_HIGHEST: u8 = 3;

    /// The usual parameters of an algorithm: those of the papers, 2 KiB, 8 KiB, 64 KiB, or of the
    /// program that a preset follows.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        let (min_bytes, avg_bytes, max_bytes) = match algorithm {
            Algorithm::Xet => (8 << 10, 64 << 10, 128 << 10),
            Algorithm::Restic => (512 << 10, 1 << 20, 8 << 20),
            _ => (2 << 10, 8 << 10, 64 << 10),
        };
        let normalization = match algorithm {
            Algorithm::FastCdc | Algorithm::RabinNc | Algorithm::Fold | Algorithm::Shield => 2,
            Algorithm::FastCdcCrateV2020 => 1,
            _ => 0,
        };
        Self {
            algorithm,
            min_bytes,
            avg_bytes,
            max_bytes,
            normalization,
            own: OwnParameters::default(),
        }
    }

    /// Whether the algorithm has levels of normalization.
    #[must_use]
    pub fn has_levels(&self) -> bool {
        rules::of(self.algorithm).levels
    }

    /// Whether a chunker can be made of these.
    ///
    /// # Errors
    /// One parameter that is impossible, with the reason.
    pub fn validate(&self) -> Result<(), ParameterError> {
        rules::validate(self)
    }
}

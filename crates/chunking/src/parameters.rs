//! The parameters of a chunker, and which of them are possible.
//!
//! They are data: stored in a repository's `config`, never read from the environment.

use crate::Algorithm;

/// How to cut: the algorithm and its sizes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// No chunk but the last of a stream is smaller.
    pub min_bytes: u32,
    /// The *normal size*, a power of two: before it cuts are made rarer, after it more frequent.
    ///
    /// It is not the mean. Without normalization the mean is `avg_bytes + min_bytes`, for the
    /// search only begins after `min_bytes` (FastCDC §3.4); with level 2 and
    /// `min_bytes = avg_bytes / 4` it is 1.14 × `avg_bytes` on random data. In general, with
    /// p = 1 / (`avg_bytes` × 2^level) before and q = 2^level / `avg_bytes` after, and
    /// s = (1 − p)^(`avg_bytes` − `min_bytes`) the share that reaches the normal size, the mean
    /// is `min_bytes` + (1 − s) / p + s / q, as long as few chunks reach `max_bytes`.
    pub avg_bytes: u32,
    /// No chunk is larger.
    pub max_bytes: u32,
    /// How strongly sizes are drawn to `avg_bytes`: 0 not at all, up to 3 (FastCDC §3.5).
    ///
    /// Level n asks for n more zero bits of the hash before the normal size, n fewer after it.
    pub normalization: u8,
}

/// FastCDC as its paper runs it: 2 KiB, 8 KiB, 64 KiB, level 2.
impl Default for Parameters {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::FastCdc,
            min_bytes: 2 << 10,
            avg_bytes: 8 << 10,
            max_bytes: 64 << 10,
            normalization: 2,
        }
    }
}

impl Parameters {
    /// The lowest `min_bytes`: as many bytes as a 64-bit Gear hash remembers.
    pub const MIN_BYTES_LOWEST: u32 = 64;
    /// The lowest `avg_bytes`.
    pub const AVG_BYTES_LOWEST: u32 = 256;
    /// The highest `avg_bytes`.
    pub const AVG_BYTES_HIGHEST: u32 = 16 << 20;
    /// The highest `max_bytes`.
    pub const MAX_BYTES_HIGHEST: u32 = 64 << 20;
    /// The highest `normalization`.
    pub const NORMALIZATION_HIGHEST: u8 = 3;

    /// Whether a chunker can be made of these.
    ///
    /// # Errors
    /// One parameter that is impossible, with the reason.
    pub fn validate(&self) -> Result<(), ParameterError> {
        let Self {
            algorithm: Algorithm::FastCdc,
            min_bytes,
            avg_bytes,
            max_bytes,
            normalization,
        } = *self;
        if min_bytes < Self::MIN_BYTES_LOWEST {
            return Err(ParameterError::MinTooSmall { min_bytes });
        }
        if !(Self::AVG_BYTES_LOWEST..=Self::AVG_BYTES_HIGHEST).contains(&avg_bytes) {
            return Err(ParameterError::AvgOutOfRange { avg_bytes });
        }
        if !avg_bytes.is_power_of_two() {
            return Err(ParameterError::AvgNotPowerOfTwo { avg_bytes });
        }
        if min_bytes >= avg_bytes {
            return Err(ParameterError::MinNotBelowAvg {
                min_bytes,
                avg_bytes,
            });
        }
        if max_bytes <= avg_bytes {
            return Err(ParameterError::MaxNotAboveAvg {
                max_bytes,
                avg_bytes,
            });
        }
        if max_bytes > Self::MAX_BYTES_HIGHEST {
            return Err(ParameterError::MaxTooLarge { max_bytes });
        }
        if normalization > Self::NORMALIZATION_HIGHEST {
            return Err(ParameterError::NormalizationTooHigh { normalization });
        }
        Ok(())
    }
}

/// Which parameter is impossible, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// `min_bytes` is below [`Parameters::MIN_BYTES_LOWEST`].
    #[error(
        "min_bytes = {min_bytes} is impossible: it must be at least {}, the reach of the rolling hash",
        Parameters::MIN_BYTES_LOWEST
    )]
    MinTooSmall {
        /// The value that was given.
        min_bytes: u32,
    },
    /// `avg_bytes` is outside of [`Parameters::AVG_BYTES_LOWEST`] to
    /// [`Parameters::AVG_BYTES_HIGHEST`].
    #[error(
        "avg_bytes = {avg_bytes} is impossible: it must be from {} to {}, so that the masks fit the window of the hash",
        Parameters::AVG_BYTES_LOWEST,
        Parameters::AVG_BYTES_HIGHEST
    )]
    AvgOutOfRange {
        /// The value that was given.
        avg_bytes: u32,
    },
    /// `avg_bytes` is not a power of two.
    #[error(
        "avg_bytes = {avg_bytes} is impossible: it must be a power of two, for a mask of n bits cuts once in 2^n bytes"
    )]
    AvgNotPowerOfTwo {
        /// The value that was given.
        avg_bytes: u32,
    },
    /// `min_bytes` is not below `avg_bytes`.
    #[error(
        "min_bytes = {min_bytes} is impossible: it must be below avg_bytes = {avg_bytes}, or no byte is left to cut at before the normal size"
    )]
    MinNotBelowAvg {
        /// The value that was given.
        min_bytes: u32,
        /// The bound it meets.
        avg_bytes: u32,
    },
    /// `max_bytes` is not above `avg_bytes`.
    #[error(
        "max_bytes = {max_bytes} is impossible: it must be above avg_bytes = {avg_bytes}, or chunks are cut by size and not by contents"
    )]
    MaxNotAboveAvg {
        /// The value that was given.
        max_bytes: u32,
        /// The bound it meets.
        avg_bytes: u32,
    },
    /// `max_bytes` is above [`Parameters::MAX_BYTES_HIGHEST`].
    #[error(
        "max_bytes = {max_bytes} is impossible: it must be at most {}, for a stream holds two such chunks in memory",
        Parameters::MAX_BYTES_HIGHEST
    )]
    MaxTooLarge {
        /// The value that was given.
        max_bytes: u32,
    },
    /// `normalization` is above [`Parameters::NORMALIZATION_HIGHEST`].
    #[error(
        "normalization = {normalization} is impossible: it must be at most {}, beyond which sizes are nearly fixed",
        Parameters::NORMALIZATION_HIGHEST
    )]
    NormalizationTooHigh {
        /// The value that was given.
        normalization: u8,
    },
}

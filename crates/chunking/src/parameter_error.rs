//! Which parameter is impossible, and why.

use crate::{Algorithm, OwnParameter, Parameters};

/// Which parameter is impossible, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// `min_bytes` is below what the algorithm needs.
    #[error("min_bytes = {min_bytes} is impossible: it must be at least {lowest}, {reason}")]
    MinTooSmall {
        /// The value that was given.
        min_bytes: u32,
        /// The lowest that can be.
        lowest: u32,
        /// Why.
        reason: &'static str,
    },
    /// `avg_bytes` is outside of what the algorithm takes.
    #[error(
        "avg_bytes = {avg_bytes} is impossible: {algorithm} takes from {lowest} to {highest} bytes"
    )]
    AvgOutOfRange {
        /// The value that was given.
        avg_bytes: u32,
        /// The algorithm that can't take it.
        algorithm: Algorithm,
        /// The lowest that can be.
        lowest: u32,
        /// The highest that can be.
        highest: u32,
    },
    /// `avg_bytes` is not a power of two.
    #[error(
        "avg_bytes = {avg_bytes} is impossible: it must be a power of two, for a mask of n bits cuts once in 2^n bytes"
    )]
    AvgNotPowerOfTwo {
        /// The value that was given.
        avg_bytes: u32,
    },
    /// `min_bytes` is not below the normal size.
    #[error(
        "min_bytes = {min_bytes} is impossible: it must be below the normal size, {normal_bytes}, or no byte is left to cut at before it"
    )]
    MinNotBelowNormal {
        /// The value that was given.
        min_bytes: u32,
        /// The bound it meets: `avg_bytes`, or `normal_bytes` where that is given.
        normal_bytes: u32,
    },
    /// `min_bytes` is above a bound.
    #[error("min_bytes = {min_bytes} is impossible: it must be at most {highest}, {reason}")]
    MinTooLarge {
        /// The value that was given.
        min_bytes: u32,
        /// The highest that can be.
        highest: u32,
        /// Why.
        reason: &'static str,
    },
    /// `max_bytes` is below a bound.
    #[error("max_bytes = {max_bytes} is impossible: it must be at least {lowest}, {reason}")]
    MaxTooSmall {
        /// The value that was given.
        max_bytes: u32,
        /// The lowest that can be.
        lowest: u32,
        /// Why.
        reason: &'static str,
    },
    /// `max_bytes` is too many times `min_bytes`.
    #[error(
        "max_bytes = {max_bytes} is impossible with min_bytes = {min_bytes}: {algorithm} takes at most {times} times min_bytes, for data can be made of which it judges max_bytes to cut min_bytes off"
    )]
    MaxTooManyMins {
        /// The algorithm.
        algorithm: Algorithm,
        /// The values that were given.
        min_bytes: u32,
        /// The values that were given.
        max_bytes: u32,
        /// How many times `min_bytes` would be possible.
        times: u32,
    },
    /// `max_bytes` is above a bound, for most algorithms [`Parameters::MAX_BYTES_HIGHEST`].
    #[error(
        "max_bytes = {max_bytes} is impossible: it must be at most {highest}, for a stream holds two such chunks in memory"
    )]
    MaxTooLarge {
        /// The value that was given.
        max_bytes: u32,
        /// The highest that can be.
        highest: u32,
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
    /// The algorithm has no levels of normalization.
    #[error("normalization = {normalization} is impossible: {algorithm} has no levels, only 0")]
    NoNormalization {
        /// The value that was given.
        normalization: u8,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The algorithm does not have this parameter.
    #[error("{} = {value} is impossible: {algorithm} has no such parameter", parameter.info().name)]
    NotOfAlgorithm {
        /// The parameter.
        parameter: OwnParameter,
        /// The value that was given.
        value: u64,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The value of an own parameter can't be.
    #[error("{} = {value} is impossible: it must be {wanted}", parameter.info().name)]
    OwnImpossible {
        /// The parameter.
        parameter: OwnParameter,
        /// The value that was given.
        value: u64,
        /// What would be possible.
        wanted: &'static str,
    },
    /// A size is odd where the algorithm takes bytes by twos.
    #[error(
        "min, avg, max = {min_bytes}, {avg_bytes}, {max_bytes} is impossible: {algorithm} takes two bytes at a time, so each must be even"
    )]
    SizesNotEven {
        /// The algorithm.
        algorithm: Algorithm,
        /// The values that were given.
        min_bytes: u32,
        /// The values that were given.
        avg_bytes: u32,
        /// The values that were given.
        max_bytes: u32,
    },
    /// A key was given to an algorithm that has none.
    #[error(
        "{algorithm} takes no key: it cuts the same for everybody who gives it the same parameters"
    )]
    NotKeyed {
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// A key was given beside a polynomial, which would take its place.
    #[error("a polynomial beside a key is impossible: the key makes the polynomial")]
    PolynomialBesideKey,
}

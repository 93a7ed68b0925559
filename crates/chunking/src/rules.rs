//! Which parameters are possible, algorithm by algorithm.

use crate::methods::{ae, ae2, fold, gearhash, maxp, ram, restic, seqcdc, shield, tttd};
use crate::{Algorithm, OwnParameter, ParameterError, Parameters, polynomial};
use kernels::rabin;

/// What the sizes of an algorithm must obey.
pub(crate) struct Rules {
    /// The lowest `min_bytes`, and why.
    pub(crate) min_lowest: (u32, &'static str),
    pub(crate) min_highest: u32,
    pub(crate) max_lowest: u32,
    pub(crate) max_highest: u32,
    pub(crate) avg_lowest: u32,
    pub(crate) avg_highest: u32,
    pub(crate) avg_power_of_two: bool,
    /// Whether there are levels of normalization.
    pub(crate) levels: bool,
    pub(crate) sizes_even: bool,
    pub(crate) shape: Shape,
}

/// How sizes stand to one another.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// min < normal size < max, avg < max.
    Normalized,
    /// min < max, avg < max: the hash is judged from min on, whatever avg is.
    Skipping,
    /// As `Skipping`, and max at most so many times min.
    SkippingWithin(u32),
    /// min ≤ avg ≤ max: bounds only bracket the size.
    Bracketing,
    /// min ≤ a window that follows from avg, avg < max, and max at least what is given.
    Windowed {
        window: fn(&Parameters) -> u32,
        max_lowest: fn(&Parameters) -> u32,
    },
    /// min < avg < max: a window is made of what avg leaves behind min.
    WindowBehindMin,
}

/// The rules that most have.
const COMMON: Rules = Rules {
    min_lowest: (1, "for an empty chunk would never end"),
    min_highest: u32::MAX,
    max_lowest: 1,
    max_highest: Parameters::MAX_BYTES_HIGHEST,
    avg_lowest: Parameters::AVG_BYTES_LOWEST,
    avg_highest: Parameters::AVG_BYTES_HIGHEST,
    avg_power_of_two: true,
    levels: false,
    sizes_even: false,
    shape: Shape::Skipping,
};

const CRATE_BOUNDS: &str = "as the crate has it";

/// The rules of `algorithm`.
pub(crate) fn of(algorithm: Algorithm) -> Rules {
    match algorithm {
        // The windows of the last three bound min as well: `validate_window`.
        Algorithm::Gear | Algorithm::Rabin | Algorithm::Adler | Algorithm::Crc32 => COMMON,
        Algorithm::FastCdc | Algorithm::RabinNc => Rules {
            levels: true,
            shape: Shape::Normalized,
            ..COMMON
        },
        Algorithm::Fold => Rules {
            min_lowest: (fold::MIN_LOWEST, "the bytes that decide a cut, and one"),
            levels: true,
            shape: Shape::Normalized,
            ..COMMON
        },
        Algorithm::Shield => Rules {
            min_lowest: (shield::MIN_LOWEST, "the window of the hash"),
            levels: true,
            shape: Shape::Normalized,
            ..COMMON
        },
        Algorithm::Tttd => Rules {
            min_lowest: (tttd::WINDOW_BYTES, "the window that its masks see"),
            shape: Shape::SkippingWithin(tttd::MAX_PER_MIN),
            ..COMMON
        },
        Algorithm::FastCdcCrateV2020 => Rules {
            min_lowest: (64, CRATE_BOUNDS),
            min_highest: 1 << 20,
            max_lowest: 1 << 10,
            max_highest: 16 << 20,
            avg_highest: 4 << 20,
            avg_power_of_two: false,
            levels: true,
            sizes_even: true,
            shape: Shape::Normalized,
            ..COMMON
        },
        Algorithm::GearHash | Algorithm::Xet => Rules {
            min_lowest: (gearhash::WINDOW_BYTES, "the reach of the rolling hash"),
            ..COMMON
        },
        Algorithm::Restic => Rules {
            min_lowest: (
                restic::WINDOW_BYTES,
                "for restic takes its window of 64 bytes in before it cuts",
            ),
            ..COMMON
        },
        Algorithm::Fixed
        | Algorithm::Ae
        | Algorithm::Ae2
        | Algorithm::Ram
        | Algorithm::Maxp
        | Algorithm::SeqCdc => of_hashless(algorithm),
    }
}

/// The rules of those whose avg need not be a power of two.
fn of_hashless(algorithm: Algorithm) -> Rules {
    let common = Rules {
        avg_power_of_two: false,
        ..COMMON
    };
    let windowed = |window, max_lowest| Shape::Windowed { window, max_lowest };
    match algorithm {
        Algorithm::Fixed => Rules {
            avg_lowest: 1,
            avg_highest: Parameters::MAX_BYTES_HIGHEST,
            shape: Shape::Bracketing,
            ..common
        },
        Algorithm::Ae => Rules {
            shape: windowed(ae::window_bytes, |_| 0),
            ..common
        },
        Algorithm::Ae2 => Rules {
            shape: Shape::WindowBehindMin,
            ..common
        },
        Algorithm::Ram => Rules {
            avg_lowest: 2 * ram::WAIT_BYTES + 1,
            shape: windowed(ram::window_bytes, |_| 0),
            ..common
        },
        Algorithm::Maxp => Rules {
            shape: windowed(maxp::reach_bytes, maxp::max_lowest),
            ..common
        },
        _ => common,
    }
}

/// Whether a chunker can be made of `parameters`.
pub(crate) fn validate(parameters: &Parameters) -> Result<(), ParameterError> {
    let rules = of(parameters.algorithm);
    validate_level(parameters, &rules)?;
    validate_own(parameters)?;
    validate_window(parameters)?;
    validate_sizes(parameters, &rules)
}

fn validate_level(parameters: &Parameters, rules: &Rules) -> Result<(), ParameterError> {
    let normalization = parameters.normalization;
    if !rules.levels && normalization != 0 {
        return Err(ParameterError::NoNormalization {
            normalization,
            algorithm: parameters.algorithm,
        });
    }
    if normalization > Parameters::NORMALIZATION_HIGHEST {
        return Err(ParameterError::NormalizationTooHigh { normalization });
    }
    Ok(())
}

fn validate_own(parameters: &Parameters) -> Result<(), ParameterError> {
    for (parameter, value) in parameters.own.given() {
        if !parameter.is_of(parameters.algorithm) {
            return Err(ParameterError::NotOfAlgorithm {
                parameter,
                value,
                algorithm: parameters.algorithm,
            });
        }
        let (is_possible, wanted) = match parameter {
            OwnParameter::NormalBytes => (
                value <= u64::from(Parameters::MAX_BYTES_HIGHEST),
                "between min_bytes and max_bytes",
            ),
            OwnParameter::WindowBytes => (matches!(value, 32 | 48 | 64 | 256), "32, 48, 64 or 256"),
            OwnParameter::SequenceBytes => (
                (seqcdc::SEQUENCE_BYTES_LOWEST..=seqcdc::SEQUENCE_BYTES_HIGHEST).contains(&value),
                "from 2 to 8, beyond which bytes never rise as often in a row",
            ),
            OwnParameter::JumpTrigger => (
                (1..=seqcdc::JUMP_TRIGGER_HIGHEST).contains(&value),
                "from 1 to 65535",
            ),
            OwnParameter::HashBits => (matches!(value, 32 | 64), "32 or 64"),
            OwnParameter::JumpBytes => (
                value <= u64::from(Parameters::MAX_BYTES_HIGHEST),
                "at most 67108864, the longest chunk",
            ),
            OwnParameter::Polynomial if parameters.algorithm == Algorithm::Restic => (
                value.checked_ilog2() == Some(53) && polynomial::is_irreducible(value),
                "an irreducible polynomial over GF(2) of degree 53, as restic's are",
            ),
            OwnParameter::Polynomial => (
                value >> rabin::DEGREE_LOWEST != 0 && polynomial::is_irreducible(value),
                "an irreducible polynomial over GF(2) of degree 53 to 63",
            ),
        };
        if !is_possible {
            return Err(ParameterError::OwnImpossible {
                parameter,
                value,
                wanted,
            });
        }
    }
    Ok(())
}

/// The first hash that is judged ends at min and has its whole window in the chunk.
fn validate_window(parameters: &Parameters) -> Result<(), ParameterError> {
    let min_bytes = parameters.min_bytes;
    let lowest = window_bytes(parameters);
    if OwnParameter::WindowBytes.is_of(parameters.algorithm) && min_bytes < lowest {
        return Err(ParameterError::MinTooSmall {
            min_bytes,
            lowest,
            reason: "the window of the hash, which is taken in before it cuts",
        });
    }
    Ok(())
}

fn validate_sizes(parameters: &Parameters, rules: &Rules) -> Result<(), ParameterError> {
    let Parameters {
        algorithm,
        min_bytes,
        avg_bytes,
        max_bytes,
        ..
    } = *parameters;
    let (lowest, reason) = rules.min_lowest;
    if min_bytes < lowest {
        return Err(ParameterError::MinTooSmall {
            min_bytes,
            lowest,
            reason,
        });
    }
    if !(rules.avg_lowest..=rules.avg_highest).contains(&avg_bytes) {
        return Err(ParameterError::AvgOutOfRange {
            avg_bytes,
            algorithm,
            lowest: rules.avg_lowest,
            highest: rules.avg_highest,
        });
    }
    if rules.avg_power_of_two && !avg_bytes.is_power_of_two() {
        return Err(ParameterError::AvgNotPowerOfTwo { avg_bytes });
    }
    if max_bytes > rules.max_highest {
        return Err(ParameterError::MaxTooLarge {
            max_bytes,
            highest: rules.max_highest,
        });
    }
    min_at_most(parameters, rules.min_highest, CRATE_BOUNDS)?;
    max_at_least(parameters, rules.max_lowest, CRATE_BOUNDS)?;
    if rules.sizes_even && (min_bytes | avg_bytes | max_bytes) % 2 == 1 {
        return Err(ParameterError::SizesNotEven {
            algorithm,
            min_bytes,
            avg_bytes,
            max_bytes,
        });
    }
    validate_shape(parameters, rules.shape)
}

fn validate_shape(parameters: &Parameters, shape: Shape) -> Result<(), ParameterError> {
    let Parameters {
        min_bytes,
        avg_bytes,
        ..
    } = *parameters;
    match shape {
        Shape::Normalized => {
            let normal_bytes = normal_bytes(parameters);
            if min_bytes >= normal_bytes {
                return Err(ParameterError::MinNotBelowNormal {
                    min_bytes,
                    normal_bytes,
                });
            }
            max_above(parameters, avg_bytes)?;
            max_above(parameters, normal_bytes)
        }
        Shape::Skipping => {
            max_above(parameters, avg_bytes)?;
            max_above(parameters, min_bytes)
        }
        Shape::SkippingWithin(times) => {
            max_above(parameters, avg_bytes)?;
            max_above(parameters, min_bytes)?;
            max_within(parameters, times)
        }
        Shape::Bracketing => {
            min_at_most(parameters, avg_bytes, "the size of every chunk")?;
            max_at_least(parameters, avg_bytes, "the size of every chunk")
        }
        Shape::Windowed { window, max_lowest } => {
            let reason = "the window that avg_bytes gives";
            min_at_most(parameters, window(parameters), reason)?;
            max_above(parameters, avg_bytes)?;
            max_at_least(parameters, max_lowest(parameters), WINDOW_FITS)
        }
        Shape::WindowBehindMin => {
            let reason = "below avg_bytes, for the window is what avg_bytes leaves behind it";
            min_at_most(parameters, avg_bytes - 1, reason)?;
            max_above(parameters, avg_bytes)?;
            max_at_least(parameters, ae2::max_lowest(parameters), WINDOW_FITS)
        }
    }
}

const WINDOW_FITS: &str =
    "or the window never fits, and chunks are cut by size and not by contents";

fn min_at_most(
    parameters: &Parameters,
    highest: u32,
    reason: &'static str,
) -> Result<(), ParameterError> {
    let min_bytes = parameters.min_bytes;
    if min_bytes <= highest {
        return Ok(());
    }
    Err(ParameterError::MinTooLarge {
        min_bytes,
        highest,
        reason,
    })
}

fn max_at_least(
    parameters: &Parameters,
    lowest: u32,
    reason: &'static str,
) -> Result<(), ParameterError> {
    let max_bytes = parameters.max_bytes;
    if max_bytes >= lowest {
        return Ok(());
    }
    Err(ParameterError::MaxTooSmall {
        max_bytes,
        lowest,
        reason,
    })
}

fn max_above(parameters: &Parameters, bound: u32) -> Result<(), ParameterError> {
    let reason = "or chunks are cut by size and not by contents";
    max_at_least(parameters, bound.saturating_add(1), reason)
}

fn max_within(parameters: &Parameters, times: u32) -> Result<(), ParameterError> {
    let Parameters {
        algorithm,
        min_bytes,
        max_bytes,
        ..
    } = *parameters;
    if u64::from(max_bytes) <= u64::from(min_bytes) * u64::from(times) {
        return Ok(());
    }
    Err(ParameterError::MaxTooManyMins {
        algorithm,
        min_bytes,
        max_bytes,
        times,
    })
}

/// The normal size of a normalized chunker.
pub(crate) fn normal_bytes(parameters: &Parameters) -> u32 {
    match parameters.own.get(OwnParameter::NormalBytes) {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None => parameters.avg_bytes,
    }
}

/// The window of a chunker that has one to choose.
pub(crate) fn window_bytes(parameters: &Parameters) -> u32 {
    match parameters.own.get(OwnParameter::WindowBytes) {
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
        None if parameters.algorithm == Algorithm::Crc32 => 256,
        None => 48,
    }
}

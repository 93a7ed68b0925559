//! Which parameters are possible, algorithm by algorithm.

use crate::methods::{ae, gearhash, maxp, ram, restic, seqcdc};
use crate::{Algorithm, OwnParameter, ParameterError, Parameters, polynomial};
use kernels::rabin;

/// What the sizes of an algorithm must obey.
pub(crate) struct Rules {
    /// The lowest `min_bytes`, and why.
    pub(crate) min_lowest: (u32, &'static str),
    pub(crate) avg_lowest: u32,
    pub(crate) avg_highest: u32,
    pub(crate) avg_power_of_two: bool,
    pub(crate) levels: bool,
    /// Whether sizes must be even.
    pub(crate) is_even: bool,
    pub(crate) order: Order,
}

/// How sizes stand to one another.
pub(crate) enum Order {
    /// min < normal size < max.
    Normalized,
    /// min < max and avg < max: the hash is judged from min on, whatever avg is.
    Skipping,
    /// min ≤ avg ≤ max: bounds only bracket the size.
    Bracketing,
    /// min ≤ the size of a window that follows from avg, avg < max.
    Windowed(fn(&Parameters) -> u32),
    /// min < avg < max: a window is made of what avg leaves behind min.
    WindowBehindMin,
}

const SOME: (u32, &str) = (1, "for an empty chunk would never end");

/// The rules of `algorithm`.
pub(crate) fn of(algorithm: Algorithm) -> Rules {
    let hashed = Rules {
        min_lowest: SOME,
        avg_lowest: Parameters::AVG_BYTES_LOWEST,
        avg_highest: Parameters::AVG_BYTES_HIGHEST,
        avg_power_of_two: true,
        levels: false,
        is_even: false,
        order: Order::Skipping,
    };
    match algorithm {
        Algorithm::FastCdc => Rules {
            levels: true,
            order: Order::Normalized,
            ..hashed
        },
        Algorithm::Fixed => Rules {
            avg_lowest: 1,
            avg_highest: Parameters::MAX_BYTES_HIGHEST,
            avg_power_of_two: false,
            order: Order::Bracketing,
            ..hashed
        },
        Algorithm::RabinNc => Rules {
            levels: true,
            order: Order::Normalized,
            ..hashed
        },
        Algorithm::FastCdcCrateV2020 => Rules {
            min_lowest: (64, "as the crate has it"),
            avg_highest: 4 << 20,
            avg_power_of_two: false,
            levels: true,
            order: Order::Normalized,
            is_even: true,
            ..hashed
        },
        Algorithm::GearHash | Algorithm::Xet => Rules {
            min_lowest: (gearhash::WINDOW_BYTES, "the reach of the rolling hash"),
            ..hashed
        },
        Algorithm::Ae => Rules {
            avg_power_of_two: false,
            order: Order::Windowed(ae::window_bytes),
            ..hashed
        },
        Algorithm::Ae2 => Rules {
            avg_power_of_two: false,
            order: Order::WindowBehindMin,
            ..hashed
        },
        Algorithm::Ram => Rules {
            avg_lowest: 2 * ram::WAIT_BYTES + 1,
            avg_power_of_two: false,
            order: Order::Windowed(ram::window_bytes),
            ..hashed
        },
        Algorithm::Maxp => Rules {
            avg_power_of_two: false,
            order: Order::Windowed(maxp::reach_bytes),
            ..hashed
        },
        Algorithm::SeqCdc => Rules {
            avg_power_of_two: false,
            ..hashed
        },
        // Their windows bound min as well: `validate_window`.
        Algorithm::Rabin | Algorithm::Adler | Algorithm::Crc32 => hashed,
        Algorithm::Restic => Rules {
            min_lowest: (
                restic::WINDOW_BYTES,
                "for restic takes its window of 64 bytes in before it cuts",
            ),
            ..hashed
        },
        Algorithm::Gear | Algorithm::Tttd => hashed,
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
    if max_bytes > Parameters::MAX_BYTES_HIGHEST {
        return Err(ParameterError::MaxTooLarge { max_bytes });
    }
    if rules.is_even && (min_bytes | avg_bytes | max_bytes) % 2 == 1 {
        return Err(ParameterError::SizesNotEven { algorithm });
    }
    validate_order(parameters, &rules.order)
}

fn validate_order(parameters: &Parameters, order: &Order) -> Result<(), ParameterError> {
    let Parameters {
        min_bytes,
        avg_bytes,
        max_bytes,
        ..
    } = *parameters;
    let max_above = |bound: u32| {
        if max_bytes > bound {
            Ok(())
        } else {
            Err(ParameterError::MaxTooSmall { max_bytes, bound })
        }
    };
    let min_at_most = |highest: u32, reason| {
        if min_bytes <= highest {
            Ok(())
        } else {
            Err(ParameterError::MinTooLarge {
                min_bytes,
                highest,
                reason,
            })
        }
    };
    match order {
        Order::Normalized => {
            let normal_bytes = normal_bytes(parameters);
            if min_bytes >= normal_bytes {
                return Err(ParameterError::MinNotBelowNormal {
                    min_bytes,
                    normal_bytes,
                });
            }
            max_above(normal_bytes)
        }
        Order::Skipping => {
            max_above(avg_bytes)?;
            max_above(min_bytes)
        }
        Order::Bracketing => {
            min_at_most(avg_bytes, "the size of every chunk")?;
            if max_bytes < avg_bytes {
                return Err(ParameterError::MaxTooSmall {
                    max_bytes,
                    bound: avg_bytes - 1,
                });
            }
            Ok(())
        }
        Order::Windowed(window) => {
            min_at_most(window(parameters), "the window that avg_bytes gives")?;
            max_above(avg_bytes)
        }
        Order::WindowBehindMin => {
            let reason = "below avg_bytes, for the window is what avg_bytes leaves behind it";
            min_at_most(avg_bytes - 1, reason)?;
            max_above(avg_bytes)
        }
    }
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

//! Parameters that only some algorithms have, listed once: names for people, numbers for
//! repositories.

use crate::Algorithm;
use std::fmt;

/// A parameter that only some algorithms have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OwnParameter {
    /// The normal size in bytes, where the strict condition gives way to the loose one;
    /// `avg_bytes` when it is not given (`fastcdc`, `rabin-nc`, `fold`, `shield`).
    NormalBytes,
    /// The sliding window of the hash in bytes: 32, 48, 64 or 256 (`rabin`, `rabin-nc`, `adler`,
    /// `crc32`).
    WindowBytes,
    /// The irreducible polynomial over GF(2), bit i for x^i (`rabin`, `rabin-nc`, `restic`).
    Polynomial,
    /// How many bytes must rise in a row (`seqcdc`).
    SequenceBytes,
    /// How many falling pairs make it jump (`seqcdc`).
    JumpTrigger,
    /// How far it jumps, in bytes (`seqcdc`).
    JumpBytes,
    /// Bits of the hash, 64 or 32 (`fastcdc`).
    HashBits,
}

/// What there is to know about an [`OwnParameter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnParameterInfo {
    /// The parameter of this row.
    pub parameter: OwnParameter,
    /// Its name in commands, reports and errors.
    pub name: &'static str,
    /// Its number in repositories.
    pub id: u16,
    /// The algorithms that have it.
    pub algorithms: &'static [Algorithm],
}

/// Every parameter of this kind, in the order of their numbers.
pub const OWN_PARAMETERS: &[OwnParameterInfo] = &[
    OwnParameterInfo {
        parameter: OwnParameter::NormalBytes,
        name: "normal_bytes",
        id: 1,
        algorithms: &[
            Algorithm::FastCdc,
            Algorithm::RabinNc,
            Algorithm::Fold,
            Algorithm::Shield,
        ],
    },
    OwnParameterInfo {
        parameter: OwnParameter::WindowBytes,
        name: "window_bytes",
        id: 2,
        algorithms: &[
            Algorithm::Rabin,
            Algorithm::RabinNc,
            Algorithm::Adler,
            Algorithm::Crc32,
        ],
    },
    OwnParameterInfo {
        parameter: OwnParameter::Polynomial,
        name: "polynomial",
        id: 3,
        algorithms: &[Algorithm::Rabin, Algorithm::RabinNc, Algorithm::Restic],
    },
    OwnParameterInfo {
        parameter: OwnParameter::SequenceBytes,
        name: "sequence_bytes",
        id: 4,
        algorithms: &[Algorithm::SeqCdc],
    },
    OwnParameterInfo {
        parameter: OwnParameter::JumpTrigger,
        name: "jump_trigger",
        id: 5,
        algorithms: &[Algorithm::SeqCdc],
    },
    OwnParameterInfo {
        parameter: OwnParameter::JumpBytes,
        name: "jump_bytes",
        id: 6,
        algorithms: &[Algorithm::SeqCdc],
    },
    OwnParameterInfo {
        parameter: OwnParameter::HashBits,
        name: "hash_bits",
        id: 7,
        algorithms: &[Algorithm::FastCdc],
    },
];

impl OwnParameter {
    /// Its row in [`OWN_PARAMETERS`].
    #[must_use]
    pub fn info(self) -> &'static OwnParameterInfo {
        &OWN_PARAMETERS[self as usize]
    }

    /// The parameter called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let row = OWN_PARAMETERS.iter().find(|info| info.name == name)?;
        Some(row.parameter)
    }

    /// The parameter with a stored number.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        let row = OWN_PARAMETERS.iter().find(|info| info.id == id)?;
        Some(row.parameter)
    }

    /// Whether `algorithm` has it.
    #[must_use]
    pub fn is_of(self, algorithm: Algorithm) -> bool {
        self.info().algorithms.contains(&algorithm)
    }
}

/// Values of own parameters. Those not given have the algorithm's frozen default.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct OwnParameters([Option<u64>; OWN_PARAMETERS.len()]);

impl OwnParameters {
    /// The value given for `parameter`, if any.
    #[must_use]
    pub fn get(&self, parameter: OwnParameter) -> Option<u64> {
        self.0[parameter as usize]
    }

    /// Gives `parameter` a value.
    pub fn set(&mut self, parameter: OwnParameter, value: u64) {
        self.0[parameter as usize] = Some(value);
    }

    /// The same with a value for `parameter`.
    #[must_use]
    pub fn with(mut self, parameter: OwnParameter, value: u64) -> Self {
        self.set(parameter, value);
        self
    }

    /// The values that were given, in the order of the parameters' numbers.
    pub fn given(&self) -> impl Iterator<Item = (OwnParameter, u64)> + '_ {
        OWN_PARAMETERS
            .iter()
            .zip(self.0)
            .filter_map(|(info, value)| Some((info.parameter, value?)))
    }
}

/// Shows what was given, but no polynomial: in restic's repositories it is a secret.
impl fmt::Debug for OwnParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (parameter, value) in self.given() {
            match parameter {
                OwnParameter::Polynomial => map.entry(&parameter, &"hidden"),
                _ => map.entry(&parameter, &value),
            };
        }
        map.finish()
    }
}

impl fmt::Display for OwnParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::{OWN_PARAMETERS, OwnParameter, OwnParameters};

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_are_found() {
        for (index, info) in OWN_PARAMETERS.iter().enumerate() {
            assert_eq!(info.parameter as usize, index);
            assert_eq!(usize::from(info.id), index + 1);
            assert_eq!(OwnParameter::from_name(info.name), Some(info.parameter));
            assert_eq!(OwnParameter::from_id(info.id), Some(info.parameter));
            assert_eq!(info.parameter.info(), info);
        }
        assert_eq!(OwnParameter::from_name("window"), None);
        assert_eq!(OwnParameter::from_id(0), None);
    }

    #[test]
    fn values_are_given_or_not() {
        let own = OwnParameters::default()
            .with(OwnParameter::JumpBytes, 9)
            .with(OwnParameter::WindowBytes, 64);
        let given: Vec<_> = own.given().collect();
        assert_eq!(
            given,
            [
                (OwnParameter::WindowBytes, 64),
                (OwnParameter::JumpBytes, 9)
            ]
        );
        assert_eq!(own.get(OwnParameter::NormalBytes), None);
        assert_eq!(own.get(OwnParameter::JumpBytes), Some(9));
        assert_eq!(OwnParameters::default().given().count(), 0);
        let shown = format!("{:?}", own.with(OwnParameter::Polynomial, 1_234_567));
        assert!(shown.contains("JumpBytes: 9"), "{shown}");
        assert!(!shown.contains("1234567"), "{shown}");
    }
}

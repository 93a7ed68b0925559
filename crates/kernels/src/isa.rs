//! The levels of instruction sets that kernels are written for, and which of them runs here.
//!
//! A level is a whole bundle of features, so that a kernel has one form a level and not one a
//! feature: what a machine lacks of a bundle puts it on the level below. Every level gives the same
//! bits; which one runs is a matter of speed, and tests and benches can force each that the machine
//! has ([`Isa::available`]).

use std::fmt;
use std::str::FromStr;

/// A level of instruction sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isa {
    /// Plain code, on any machine: the specification, or the fastest form without intrinsics.
    Scalar,
    /// x86-64 with SSE4.1 (and what stands below it, SSSE3): from about 2008 on. Only the kernels of
    /// features have a form for it, the one that their paper measures; others run the scalar form.
    Sse41,
    /// x86-64 with AVX2, POPCNT, BMI1, BMI2, LZCNT, PCLMULQDQ and AES-NI: from about 2013 on.
    Avx2,
    /// x86-64 with AVX-512 (F, BW, CD, DQ, VL, VBMI, VBMI2), GFNI, VPCLMULQDQ and VAES beside all
    /// of [`Isa::Avx2`]: Intel from Ice Lake, AMD from Zen 4 on.
    Avx512,
    /// 64-bit ARM with NEON and its cryptographic part (PMULL, AES).
    Neon,
}

impl Isa {
    /// Every level, slowest first.
    pub const ALL: [Self; 5] = [
        Self::Scalar,
        Self::Sse41,
        Self::Avx2,
        Self::Avx512,
        Self::Neon,
    ];

    /// The fastest level of this machine.
    #[must_use]
    pub fn best() -> Self {
        let mut levels = Self::ALL.into_iter().rev();
        levels
            .find(|level| level.is_available())
            .unwrap_or(Self::Scalar)
    }

    /// The levels of this machine, slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|level| level.is_available())
    }

    /// Its name in commands and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse41 => "sse41",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        }
    }

    /// Whether this machine has all that the level needs. Costs a few loads, for the answer is
    /// remembered.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Sse41 => has_sse41(),
            Self::Avx2 => has_avx2(),
            Self::Avx512 => has_avx512(),
            Self::Neon => has_neon(),
        }
    }

    /// This level, or [`Isa::Scalar`] where the machine does not have it: what every kernel does
    /// with the level it is given, so that none can be made to run what is not there.
    #[must_use]
    pub(crate) fn or_scalar(self) -> Self {
        if self.is_available() {
            self
        } else {
            Self::Scalar
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_sse41() -> bool {
    is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    has_sse41()
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("vaes")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_sse41() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(target_arch = "aarch64")]
fn has_neon() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
        && std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(target_arch = "aarch64"))]
fn has_neon() -> bool {
    false
}

/// By name.
impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        let mut levels = Self::ALL.into_iter();
        levels
            .find(|level| level.name() == name)
            .ok_or_else(|| UnknownIsa(name.to_owned()))
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no level of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownIsa(pub String);

impl fmt::Display for UnknownIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Isa::ALL.map(Isa::name).join(", ");
        write!(
            f,
            "there is no instruction set {:?}; there are {names}",
            self.0
        )
    }
}

impl std::error::Error for UnknownIsa {}

#[cfg(test)]
mod tests {
    use super::Isa;

    #[test]
    fn names_lead_back_and_scalar_is_everywhere() {
        for level in Isa::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        assert!("sse9".parse::<Isa>().is_err());
        assert_eq!(Isa::available().next(), Some(Isa::Scalar));
        assert!(Isa::available().any(|level| level == Isa::best()));
        assert_eq!(Isa::available().last(), Some(Isa::best()));
    }
}

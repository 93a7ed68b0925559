//! The detectors, listed once: names for people, numbers for repositories.

use std::fmt;
use std::str::FromStr;

/// What there is to know about a [`Detector`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectorInfo {
    /// The detector of this row.
    pub detector: Detector,
    /// Its name in commands, reports and Python.
    pub name: &'static str,
    /// Its number in repositories: stored, never given to another.
    pub id: u8,
    /// One line for people who choose.
    pub summary: &'static str,
}

/// A way to take features of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Detector {
    /// Linear transforms of every Rabin fingerprint (Broder 1997; Odess §2.3).
    NTransform,
    /// The greatest Rabin fingerprint of each part of a chunk (Zhang et al., FAST 2019; Odess §2.4).
    Finesse,
    /// Linear transforms of Gear hashes that a mask samples (Odess §3.2).
    Odess,
    /// Linear transforms of hashes of sub-windows that a bound samples (Odess §3.4).
    OdessPlus,
}

/// Every detector, in the order of the numbers.
pub const DETECTORS: &[DetectorInfo] = &[
    DetectorInfo {
        detector: Detector::NTransform,
        name: "n-transform",
        id: 1,
        summary: "linear transforms of every Rabin fingerprint; slow",
    },
    DetectorInfo {
        detector: Detector::Finesse,
        name: "finesse",
        id: 2,
        summary: "greatest Rabin fingerprint of each part of a chunk; finds less",
    },
    DetectorInfo {
        detector: Detector::Odess,
        name: "odess",
        id: 3,
        summary: "linear transforms of Gear hashes sampled by a mask",
    },
    DetectorInfo {
        detector: Detector::OdessPlus,
        name: "odess+",
        id: 4,
        summary: "linear transforms of sub-window hashes sampled by a bound; made for SIMD",
    },
];

impl Detector {
    /// Every detector.
    pub const ALL: [Self; 4] = [
        Self::NTransform,
        Self::Finesse,
        Self::Odess,
        Self::OdessPlus,
    ];

    /// The detector with a stored number.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        let row = DETECTORS.iter().find(|info| info.id == id)?;
        Some(row.detector)
    }

    /// Its row in [`DETECTORS`].
    #[must_use]
    pub fn info(self) -> &'static DetectorInfo {
        // One order, which a test holds.
        &DETECTORS[self as usize]
    }

    /// Its name in commands, reports and Python.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Its number in repositories.
    #[must_use]
    pub fn id(self) -> u8 {
        self.info().id
    }
}

/// By name.
impl FromStr for Detector {
    type Err = UnknownDetector;

    fn from_str(name: &str) -> Result<Self, UnknownDetector> {
        let mut all = DETECTORS.iter();
        all.find(|info| info.name == name)
            .map(|info| info.detector)
            .ok_or_else(|| UnknownDetector(name.to_owned()))
    }
}

impl fmt::Display for Detector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// There is no detector of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no detector called {0:?}; there are n-transform, finesse, odess, odess+")]
pub struct UnknownDetector(pub String);

#[cfg(test)]
mod tests {
    use super::{DETECTORS, Detector};

    /// What repositories hold: these never change.
    #[test]
    fn numbers_are_frozen() {
        let numbers: Vec<_> = DETECTORS.iter().map(|info| (info.id, info.name)).collect();
        let expected = [
            (1, "n-transform"),
            (2, "finesse"),
            (3, "odess"),
            (4, "odess+"),
        ];
        assert_eq!(numbers, expected);
        assert_eq!(Detector::ALL.len(), DETECTORS.len());
        for (info, detector) in DETECTORS.iter().zip(Detector::ALL) {
            assert_eq!(info.detector, detector);
            assert_eq!(detector.info(), info);
            assert_eq!(Detector::from_id(info.id), Some(detector));
            assert_eq!(info.name.parse(), Ok(detector));
            assert_eq!(detector.to_string(), info.name);
        }
        assert_eq!(Detector::from_id(0), None);
        let error = "Odess".parse::<Detector>().expect_err("in lower case");
        for info in DETECTORS {
            assert!(error.to_string().contains(info.name), "{error}");
        }
    }
}

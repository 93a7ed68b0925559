//! The detectors that are compared, with the groups of their features.

use std::fmt;
use std::str::FromStr;

use engine::similarity::{Detection, Detector, UnknownDetector};

/// What comes behind the name of a detector with super-features of several strengths.
const TIERS: &str = "/tiers";

/// A detector, and how its features make super-features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectorChoice {
    /// Which.
    pub detector: Detector,
    /// Three super-features of four features, four of three and six of two, the strictest first; else
    /// the first three alone.
    pub has_tiers: bool,
}

impl DetectorChoice {
    /// Those that are compared: each with three super-features, and the last one with tiers.
    pub const ALL: [Self; 5] = [
        Self::one(Detector::NTransform),
        Self::one(Detector::Finesse),
        Self::one(Detector::Odess),
        Self::one(Detector::OdessPlus),
        Self {
            detector: Detector::OdessPlus,
            has_tiers: true,
        },
    ];

    const fn one(detector: Detector) -> Self {
        Self {
            detector,
            has_tiers: false,
        }
    }

    /// Its parameters.
    pub fn detection(self) -> Detection {
        if self.has_tiers {
            Detection::tiered(self.detector)
        } else {
            Detection::new(self.detector)
        }
    }

    /// Super-features of a chunk.
    pub fn super_features(self) -> usize {
        self.detection().super_features()
    }
}

impl fmt::Display for DetectorChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiers = if self.has_tiers { TIERS } else { "" };
        write!(f, "{}{tiers}", self.detector)
    }
}

impl FromStr for DetectorChoice {
    type Err = UnknownDetector;

    fn from_str(text: &str) -> Result<Self, UnknownDetector> {
        let name = text.strip_suffix(TIERS);
        Ok(Self {
            detector: name.unwrap_or(text).parse()?,
            has_tiers: name.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for choice in DetectorChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
            assert_eq!(
                choice.super_features(),
                if choice.has_tiers { 13 } else { 3 }
            );
        }
        assert!("odess/steps".parse::<DetectorChoice>().is_err());
    }
}

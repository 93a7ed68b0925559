//! The paper's detectors and their variants.

use chunking::Isa;
use engine::similarity::{Detection, Detector, FeatureExtractor, MaskBits, Sampling, SubWindows};

/// Super-features of a chunk (§4.3).
pub const SUPER_FEATURES: usize = 3;

/// What the paper calls a detector.
pub fn name(detector: Detector) -> &'static str {
    match detector {
        Detector::NTransform => N_TRANSFORM,
        Detector::Finesse => FINESSE,
        Detector::Odess => ODESS,
        Detector::OdessPlus => ODESS_PLUS,
        other => other.name(),
    }
}

/// Names of detectors in figures.
pub const N_TRANSFORM: &str = "N-Transform";
/// The second.
pub const FINESSE: &str = "Finesse";
/// Gear and a mask.
pub const ODESS: &str = "Odess";
/// Sub-windows and a bound.
pub const ODESS_PLUS: &str = "Odess+";

/// A detector as the paper runs it: 12 features, 3 super-features, one in 128 sampled.
pub fn standard(detector: Detector) -> Detection {
    Detection::new(detector)
}

/// The same with another rate, one in 8 to one in 512, of Odess or Odess+.
pub fn with_rate(detector: Detector, rate: u32) -> Detection {
    let rate_bits = rate.ilog2() as u8;
    let sampling = match detector {
        Detector::Odess => Sampling::Mask {
            hash_bits: 32,
            mask: MaskBits::Scattered.mask(rate_bits),
        },
        _ => Sampling::Boundary {
            sub_windows: SubWindows::Four,
            rate_bits,
        },
    };
    Detection {
        sampling,
        ..standard(detector)
    }
}

/// Odess with the ones of its mask elsewhere.
pub fn with_mask(bits: MaskBits) -> Detection {
    let sampling = Sampling::Mask {
        hash_bits: 32,
        mask: bits.mask(RATE_ONES),
    };
    Detection {
        sampling,
        ..standard(Detector::Odess)
    }
}

/// Ones of a mask that lets one in 128 through.
const RATE_ONES: u8 = 7;

/// What the paper calls a mask.
pub fn mask_name(bits: MaskBits) -> &'static str {
    match bits {
        MaskBits::Low => "mask 1, low bits",
        MaskBits::Middle => "mask 2, middle bits",
        MaskBits::High => "mask 3, high bits",
        MaskBits::Scattered => SCATTERED,
    }
}

/// The paper's choice.
pub const SCATTERED: &str = "mask 4, scattered bits";

/// Odess+ with other sub-windows.
pub fn with_windows(sub_windows: SubWindows) -> Detection {
    let sampling = Sampling::Boundary {
        sub_windows,
        rate_bits: RATE_ONES,
    };
    Detection {
        sampling,
        ..standard(Detector::OdessPlus)
    }
}

/// A detector with another number of features, a multiple of 3, for 3 super-features.
pub fn with_features(detector: Detector, features: usize) -> Detection {
    Detection {
        features: features as u32,
        tiers: vec![(features / SUPER_FEATURES) as u32],
        ..standard(detector)
    }
}

/// What takes features, by the best instructions there are.
pub fn extractor(detection: &Detection) -> FeatureExtractor {
    FeatureExtractor::new(detection, Isa::best()).expect("the paper's parameters are possible")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::odess::accuracy::FEATURE_COUNTS;
    use crate::paper::odess::published::RATES;

    #[test]
    fn every_variant_of_the_paper_is_possible() {
        let mut all: Vec<Detection> = Detector::ALL.map(standard).to_vec();
        all.extend(MaskBits::ALL.map(with_mask));
        all.extend(SubWindows::ALL.map(with_windows));
        for detector in [Detector::Odess, Detector::OdessPlus] {
            all.extend(RATES.map(|rate| with_rate(detector, rate)));
            assert_eq!(with_rate(detector, 128), standard(detector));
        }
        for detector in Detector::ALL {
            all.extend(FEATURE_COUNTS.map(|count| with_features(detector, count)));
            assert_eq!(with_features(detector, 12), standard(detector));
        }
        for detection in all {
            assert_eq!(detection.check(), Ok(()));
            assert_eq!(detection.super_features(), SUPER_FEATURES);
        }
        assert_eq!(with_mask(MaskBits::Scattered), standard(Detector::Odess));
        let four = with_windows(SubWindows::Four);
        assert_eq!(four, standard(Detector::OdessPlus));
    }
}

//! What is to be detected, and how: parameters, and which of them are impossible.

use super::{Detector, Sampling};
use kernels::features::TRANSFORMS_MOST;

/// How similar chunks are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// What takes the features.
    pub detector: Detector,
    /// Features of a chunk, from 1 to [`Detection::FEATURES_MOST`].
    pub features: u32,
    /// Features that make one super-feature, for each *tier* of super-features, the strictest (the
    /// largest groups) first. Each divides the number of features. One tier of 4 is what the papers
    /// have; three tiers of 4, 3, 2 find more, surest first.
    pub tiers: Vec<u32>,
    /// Which hashes count.
    pub sampling: Sampling,
}

impl Default for Detection {
    fn default() -> Self {
        Self::new(Detector::OdessPlus)
    }
}

/// Parameters that are impossible, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectionError {
    /// Too many or too few features.
    #[error(
        "{features} features are impossible: from 1 to {} can be",
        Detection::FEATURES_MOST
    )]
    Features {
        /// How many were asked for.
        features: u32,
    },
    /// Too many tiers, or none.
    #[error(
        "{tiers} tiers of super-features are impossible: from 1 to {} can be",
        Detection::TIERS_MOST
    )]
    Tiers {
        /// How many were asked for.
        tiers: usize,
    },
    /// Groups that leave features over, or are empty.
    #[error(
        "groups of {group} of {features} features are impossible: give a divisor of {features}"
    )]
    Group {
        /// Features of a group.
        group: u32,
        /// How many there are.
        features: u32,
    },
    /// A tier that is not less strict than the one before it.
    #[error("a tier of groups of {group} after one of {before} is impossible: strictest first")]
    TierOrder {
        /// Features of a group of the tier before.
        before: u32,
        /// Features of a group of this tier.
        group: u32,
    },
    /// A sampling that the detector does not have.
    #[error("{detector} does not sample so: give it {wanted}")]
    SamplingOfAnother {
        /// The detector.
        detector: Detector,
        /// What it takes.
        wanted: &'static str,
    },
    /// Hashes of another size.
    #[error("Gear hashes of {hash_bits} bits are impossible: 32 or 64 can be")]
    HashBits {
        /// The size that was asked for.
        hash_bits: u8,
    },
    /// A mask beyond the hash.
    #[error("the mask {mask:#x} is impossible: hashes have {hash_bits} bits")]
    MaskTooWide {
        /// The mask.
        mask: u64,
        /// Bits of a hash.
        hash_bits: u8,
    },
    /// Too many or too few hashes would count.
    #[error(
        "a sampling rate of 1 in 2^{rate_bits} is impossible: from 1 in 2^{} to 1 in 2^{} can be",
        Detection::RATE_BITS_LOWEST,
        Detection::RATE_BITS_HIGHEST
    )]
    Rate {
        /// The negated logarithm of the rate.
        rate_bits: u32,
    },
}

impl Detection {
    /// The most features.
    pub const FEATURES_MOST: u32 = TRANSFORMS_MOST as u32;

    /// The most tiers.
    pub const TIERS_MOST: usize = 4;

    /// At most one hash in 2 counts where hashes are sampled.
    pub const RATE_BITS_LOWEST: u32 = 1;

    /// At least one hash in 4096 counts.
    pub const RATE_BITS_HIGHEST: u32 = 12;

    /// The detector as the paper runs it: 12 features, 3 super-features, one hash in 128.
    #[must_use]
    pub fn new(detector: Detector) -> Self {
        Self {
            detector,
            features: 12,
            tiers: vec![4],
            sampling: match detector {
                Detector::NTransform | Detector::Finesse => Sampling::All,
                Detector::Odess => Sampling::MASK_DEFAULT,
                Detector::OdessPlus => Sampling::BOUNDARY_DEFAULT,
            },
        }
    }

    /// The same with three tiers of super-features: 3 of 4 features each, 4 of 3, 6 of 2.
    #[must_use]
    pub fn tiered(detector: Detector) -> Self {
        Self {
            tiers: vec![4, 3, 2],
            ..Self::new(detector)
        }
    }

    /// Super-features of each tier, strictest first. What a chunk has lies tier after tier.
    pub fn super_features_by_tier(&self) -> impl Iterator<Item = usize> {
        let features = self.features;
        let tiers = self.tiers.iter();
        tiers.map(move |&group| features.checked_div(group).unwrap_or(0) as usize)
    }

    /// Super-features of a chunk, all tiers together.
    #[must_use]
    pub fn super_features(&self) -> usize {
        self.super_features_by_tier().sum()
    }

    /// Whether these parameters are possible.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), DetectionError> {
        let features = self.features;
        if !(1..=Self::FEATURES_MOST).contains(&features) {
            return Err(DetectionError::Features { features });
        }
        let tiers = self.tiers.len();
        if !(1..=Self::TIERS_MOST).contains(&tiers) {
            return Err(DetectionError::Tiers { tiers });
        }
        for &group in &self.tiers {
            if group == 0 || !features.is_multiple_of(group) {
                return Err(DetectionError::Group { group, features });
            }
        }
        for pair in self.tiers.windows(2) {
            let (before, group) = (pair[0], pair[1]);
            if group >= before {
                return Err(DetectionError::TierOrder { before, group });
            }
        }
        self.check_sampling()
    }

    fn check_sampling(&self) -> Result<(), DetectionError> {
        let detector = self.detector;
        let rate_bits = match (detector, self.sampling) {
            (Detector::NTransform | Detector::Finesse, Sampling::All) => return Ok(()),
            (Detector::Odess, Sampling::Mask { hash_bits, mask }) => {
                if !matches!(hash_bits, 32 | 64) {
                    return Err(DetectionError::HashBits { hash_bits });
                }
                if hash_bits == 32 && mask >> 32 != 0 {
                    return Err(DetectionError::MaskTooWide { mask, hash_bits });
                }
                mask.count_ones()
            }
            (Detector::OdessPlus, Sampling::Boundary { rate_bits, .. }) => u32::from(rate_bits),
            (detector, _) => {
                return Err(DetectionError::SamplingOfAnother {
                    detector,
                    wanted: match detector {
                        Detector::NTransform | Detector::Finesse => "all hashes",
                        Detector::Odess => "a mask",
                        Detector::OdessPlus => "a boundary",
                    },
                });
            }
        };
        if (Self::RATE_BITS_LOWEST..=Self::RATE_BITS_HIGHEST).contains(&rate_bits) {
            Ok(())
        } else {
            Err(DetectionError::Rate { rate_bits })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Detection, DetectionError};
    use crate::similarity::{Detector, Sampling, SubWindows};

    #[test]
    fn what_the_paper_runs_is_possible() {
        assert_eq!(Detection::default().detector, Detector::OdessPlus);
        for detector in Detector::ALL {
            assert_eq!(Detection::new(detector).check(), Ok(()));
            assert_eq!(Detection::new(detector).super_features(), 3);
            let tiered = Detection::tiered(detector);
            assert_eq!(tiered.check(), Ok(()));
            let tiers: Vec<usize> = tiered.super_features_by_tier().collect();
            assert_eq!(tiers, [3, 4, 6]);
        }
    }

    #[test]
    fn each_impossible_parameter_is_named() {
        let change = |change: &dyn Fn(&mut Detection)| {
            let mut detection = Detection::default();
            change(&mut detection);
            detection.check()
        };
        for features in [0, 65] {
            let error = DetectionError::Features { features };
            assert_eq!(change(&|it| it.features = features), Err(error));
        }
        for tiers in [vec![], vec![6, 4, 3, 2, 1]] {
            let error = DetectionError::Tiers { tiers: tiers.len() };
            assert_eq!(change(&|it| it.tiers = tiers.clone()), Err(error));
        }
        for group in [0, 5, 24] {
            let error = DetectionError::Group {
                group,
                features: 12,
            };
            assert_eq!(change(&|it| it.tiers = vec![group]), Err(error));
        }
        for (before, group) in [(3, 4), (4, 4)] {
            let error = DetectionError::TierOrder { before, group };
            assert_eq!(change(&|it| it.tiers = vec![before, group]), Err(error));
        }
        for (rate_bits, is_possible) in [(0, false), (1, true), (12, true), (13, false)] {
            let result = change(&|it| {
                it.sampling = Sampling::Boundary {
                    sub_windows: SubWindows::Two,
                    rate_bits,
                };
            });
            let error = DetectionError::Rate {
                rate_bits: u32::from(rate_bits),
            };
            let expected = if is_possible { Ok(()) } else { Err(error) };
            assert_eq!(result, expected);
        }
    }

    #[test]
    fn each_detector_has_its_own_sampling() {
        let samplings = [
            Sampling::All,
            Sampling::MASK_DEFAULT,
            Sampling::BOUNDARY_DEFAULT,
        ];
        for detector in Detector::ALL {
            for sampling in samplings {
                let detection = Detection {
                    sampling,
                    ..Detection::new(detector)
                };
                let is_own = sampling == Detection::new(detector).sampling;
                assert_eq!(detection.check().is_ok(), is_own, "{detector} {sampling:?}");
            }
        }
        let masked = |hash_bits, mask| Detection {
            sampling: Sampling::Mask { hash_bits, mask },
            ..Detection::new(Detector::Odess)
        };
        assert_eq!(masked(64, 0x0000_4003_0341_0000).check(), Ok(()));
        assert_eq!(
            masked(32, 0x0000_4003_0341_0000).check(),
            Err(DetectionError::MaskTooWide {
                mask: 0x0000_4003_0341_0000,
                hash_bits: 32
            })
        );
        let error = DetectionError::HashBits { hash_bits: 48 };
        assert_eq!(masked(48, 1).check(), Err(error));
        let error = DetectionError::Rate { rate_bits: 0 };
        assert_eq!(masked(32, 0).check(), Err(error));
    }
}

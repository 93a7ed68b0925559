//! Features and super-features of chunks.
//!
//! Enters: chunks, one after another. Leave: their features, or the word that a chunk has none: it is
//! too short for a window, or nothing in it was sampled. Such chunks are similar to none, not even to
//! each other.

use super::super_features::{push_in_order, push_sorted};
use super::{Detection, DetectionError, Detector, Sampling, SubWindows};
use chunking::UNKEYED_GEAR_TABLE;
use kernels::features::gear::SampledGear;
use kernels::features::rabin::FeatureRabin;
use kernels::features::{Transforms, swpr};
use kernels::isa::Isa;

/// The polynomial of the Rabin fingerprints, without its highest term x^32: that of CRC-32, which is
/// irreducible.
const RABIN_POLYNOMIAL: u32 = 0x04c1_1db7;

/// Takes features of chunks.
#[derive(Debug, Clone)]
pub struct FeatureExtractor {
    detection: Detection,
    isa: Isa,
    hashing: Hashing,
    transforms: Transforms,
    features: Vec<u32>,
}

/// What hashes the windows, made ready.
#[derive(Debug, Clone)]
enum Hashing {
    NTransform(Box<FeatureRabin>),
    Finesse(Box<FeatureRabin>),
    Odess(Box<SampledGear>),
    OdessPlus(SubWindows, u64),
}

impl FeatureExtractor {
    /// An extractor that runs on this level of instructions, or on the scalar one where the machine
    /// does not have it. Every level gives the same features.
    ///
    /// # Errors
    /// When the parameters are impossible.
    pub fn new(detection: &Detection, isa: Isa) -> Result<Self, DetectionError> {
        detection.check()?;
        let hashing = match detection.sampling {
            Sampling::All => {
                let rabin = Box::new(FeatureRabin::new(RABIN_POLYNOMIAL));
                if detection.detector == Detector::Finesse {
                    Hashing::Finesse(rabin)
                } else {
                    Hashing::NTransform(rabin)
                }
            }
            Sampling::Mask { hash_bits, mask } => {
                let hash_bits = usize::from(hash_bits);
                let table = UNKEYED_GEAR_TABLE.map(|number| number >> (64 - hash_bits));
                Hashing::Odess(Box::new(SampledGear::new(&table, hash_bits, mask)))
            }
            Sampling::Boundary {
                sub_windows,
                rate_bits,
            } => Hashing::OdessPlus(sub_windows, Sampling::boundary(sub_windows, rate_bits)),
        };
        let features = detection.features as usize;
        Ok(Self {
            detection: detection.clone(),
            isa,
            hashing,
            transforms: Transforms::new(&transform_pairs(features)),
            features: vec![0; features],
        })
    }

    /// What it detects.
    #[must_use]
    pub fn detection(&self) -> &Detection {
        &self.detection
    }

    /// The features of a chunk, [`Detection::features`] of them; `None`: it has none.
    ///
    /// Feature i of one chunk means feature i of another, but for Finesse, where i is a part of the
    /// chunk.
    pub fn features(&mut self, chunk: &[u8]) -> Option<&[u32]> {
        let (isa, transforms, features) = (self.isa, &self.transforms, &mut self.features[..]);
        let has_features = match &self.hashing {
            Hashing::NTransform(rabin) => rabin.minima(isa, transforms, chunk, features),
            Hashing::Finesse(rabin) => rabin.maxima(isa, chunk, features),
            Hashing::Odess(gear) => gear.minima(isa, transforms, chunk, features),
            Hashing::OdessPlus(sub_windows, boundary) => {
                swpr::minima(isa, (*sub_windows, *boundary), transforms, chunk, features)
            }
        };
        has_features.then_some(features)
    }

    /// The super-features of a chunk, tier after tier, [`Detection::super_features`] of them, put into
    /// `out` in place of what it has; says whether there are any.
    pub fn super_features(&mut self, chunk: &[u8], out: &mut Vec<u32>) -> bool {
        out.clear();
        if self.features(chunk).is_none() {
            return false;
        }
        for &group in &self.detection.tiers {
            let group = group as usize;
            if self.detection.detector == Detector::Finesse {
                push_sorted(&self.features, group, out);
            } else {
                push_in_order(&self.features, group, out);
            }
        }
        true
    }
}

/// Multipliers and addends: the lower and the upper half of the outputs of splitmix64 from the seed
/// `features`, multipliers made odd, so that transforms are permutations.
///
/// Stored data depends on it: it is frozen.
fn transform_pairs(count: usize) -> Vec<(u32, u32)> {
    let mut state = u64::from_le_bytes(*b"features");
    let pairs = std::iter::repeat_with(|| {
        let number = super::super_features::mix(state);
        state = state.wrapping_add(super::super_features::GOLDEN);
        (number as u32 | 1, (number >> 32) as u32)
    });
    pairs.take(count).collect()
}

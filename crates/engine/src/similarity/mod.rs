//! Similarity: which chunks are alike without being equal (Odess; Xia et al., ACM ToS 2022).
//!
//! Enters: a chunk. Leave: its *features*, numbers of 32 bits that similar chunks share, and its
//! *super-features*, each a hash of a group of features: chunks that share one are similar with some
//! certainty, the greater the group (§2.2). What is computed, exactly: docs/format/similarity.md.
//! Features are stored in repositories, so they never change for given parameters.
//!
//! A chunk that resembles one already stored is kept as its difference from it (`delta`, `prefix`;
//! docs/format/delta.md).
//!
//! Pure: no I/O, no threads, no randomness. The hot loops are in `kernels::features`.

pub mod base_choice;
pub mod delta;
mod detection;
mod detector;
mod extractor;
pub mod index;
pub mod prefix;
mod sampling;
mod super_features;
mod undelta;

pub use detection::{Detection, DetectionError};
pub use detector::{DETECTORS, Detector, DetectorInfo, UnknownDetector};
pub use extractor::FeatureExtractor;
pub use kernels::features::swpr::SubWindows;
pub use sampling::{MaskBits, Sampling};
pub use undelta::{Undelta, UndeltaError};

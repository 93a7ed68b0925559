//! Similar chunks: what detectors find, what deltas of it save, and how it is best compressed.
//!
//! Enters: files in memory. They are cut, each distinct chunk is taken once ([`chunks`]) and gets its
//! super-features ([`super_features`]), by which an index finds a base ([`base_index`]); each chunk is then
//! whole or a delta ([`reduction`], [`coder`]). [`layouts`] and [`packing`] say what becomes of that when it
//! is compressed; [`studies`] vary one thing at a time for `onefold-lab similar`.

pub mod base_index;
pub mod chunks;
pub mod coder;
pub mod detector;
pub mod layouts;
pub mod packing;
pub mod reduction;
pub mod studies;
pub mod super_features;

#![forbid(unsafe_code)]
//! What the fuzz targets run: the same checks, on the same samples, as the short attacks in the
//! `tests/decoders.rs` of both crates, where they live.
//!
//! ```text
//! cargo run --bin write_corpus             # samples to begin with, once
//! cargo +nightly fuzz run container_sealed # from the root of the workspace
//! ```

#[path = "../../crates/engine/tests/decoders/targets.rs"]
pub mod engine_targets;
#[path = "../../crates/repository/tests/decoders/targets.rs"]
pub mod repository_targets;

use testkit::mutate::Target;

/// Every target, of all crates.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let engine = engine_targets::TARGETS.iter();
    engine.chain(repository_targets::TARGETS)
}

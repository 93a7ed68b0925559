//! A short attack on every decoder of stored bytes, the same in every run. Longer ones are for
//! the fuzz targets in `fuzz/`, which have the same names and checks.

#[path = "decoders/targets.rs"]
mod targets;

use targets::TARGETS;

testkit::attack_tests!(
    TARGETS;
    archive,
    directory_page,
    snapshot,
    config,
    key_slot,
    epoch,
);

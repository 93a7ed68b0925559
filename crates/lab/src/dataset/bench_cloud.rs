//! `bench-cloud`: backups of the files of a benchmark of personal cloud storage, one tar each.
//!
//! Stands for Bench of P-Dedupe: the file sets of a benchmark of cloud storage services, on
//! which files are created, deleted and modified as Tarasov et al. suggest, 20 backups, 86.9 %
//! duplicates. Such a benchmark uploads sets of files of equal size, of 10 kB, 100 kB and 1 MB,
//! of text made of dictionary words, of random bytes, and of random bytes that look like
//! pictures. 86.9 % of 20 backups mean that about 8 % of a backup is new.

use anyhow::Result;

use super::backup_tree::{self, Life};
use super::content::Grain;
use super::seeded::Seeded;
use super::site::Site;

const LIFE: Life = Life {
    deleted: 20,
    created: 20,
    copied: 50,
    modified: 65,
    modified_again: 300,
    new_file,
    patch_bytes: 4096,
};

/// Adds the versions that are missing.
pub fn build(site: &mut Site) -> Result<()> {
    backup_tree::build(site, LIFE)
}

/// As many bytes in each class of sizes as in the next, about.
fn new_file(numbers: &mut Seeded) -> (u64, Grain) {
    let bytes = match numbers.below(111) {
        0..100 => 10_000,
        100..110 => 100_000,
        _ => 1_000_000,
    };
    let grain = if numbers.is_one_of(400) {
        Grain::Text
    } else {
        Grain::Noise
    };
    (bytes, grain)
}

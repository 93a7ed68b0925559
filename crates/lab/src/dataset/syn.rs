//! `syn`: synthetic backups of a home directory, one tar a backup.
//!
//! Stands for SYN of FastCDC and Odess ("simulated by the file create/delete/modify
//! operations"). Their ratios (97.5 % of 300 backups, 22 times of 75) mean that about 2–3 % of a
//! backup is new; the shares below give that at 8 KiB chunks.

use anyhow::Result;

use super::backup_tree::{self, Life};
use super::content::Grain;
use super::seeded::Seeded;
use super::site::Site;

const LIFE: Life = Life {
    deleted: 4,
    created: 5,
    copied: 100,
    modified: 24,
    modified_again: 400,
    new_file,
    patch_bytes: 1024,
};

/// Adds the versions that are missing.
pub fn build(site: &mut Site) -> Result<()> {
    backup_tree::build(site, LIFE)
}

/// Median 8 KiB, deviation a factor of 5: a mean of about 40 KiB, as file servers have.
fn new_file(numbers: &mut Seeded) -> (u64, Grain) {
    let grain = match numbers.below(10) {
        0..6 => Grain::Text,
        6..8 => Grain::Records,
        _ => Grain::Noise,
    };
    (numbers.log_normal(8192.0, 2.3), grain)
}

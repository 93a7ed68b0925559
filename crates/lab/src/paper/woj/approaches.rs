//! What is compared: policies, fingerprints and persistences of the volume, under the paper's names.

use std::sync::Arc;

use anyhow::{Context, Result};
use volume::backing::Backing;
use volume::fingerprint::FingerprintKind;
use volume::pool::PoolKind;
use volume::{OpenOptions, Persistence, Policy, Volume, VolumeSettings};

use super::hashes::Hash;
use super::observed::{Observed, Watch};

/// One way to keep a file system's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Approach {
    /// The paper's name, or ours in its manner.
    pub name: &'static str,
    policy: Policy,
    persistence: Persistence,
    fingerprint: FingerprintKind,
    /// Blocks of the journal are known by their first 64 bytes alone, as published.
    pub is_published: bool,
}

const fn in_ram(name: &'static str, policy: Policy, fingerprint: FingerprintKind) -> Approach {
    Approach {
        name,
        policy,
        persistence: Persistence::Ram,
        fingerprint,
        is_published: false,
    }
}

/// No dedup.
pub const NO_DEDUP: Approach = in_ram("No_Dedup_DJ", Policy::None, FingerprintKind::Xxh3);
/// WOJ as published.
pub const PUBLISHED: Approach = Approach {
    is_published: true,
    ..in_ram(
        "WOJ_xxh64, 64 bytes (unsafe)",
        Policy::Journal,
        FingerprintKind::Xxh3,
    )
};
/// WOJ by whole blocks.
pub const WHOLE: Approach = in_ram("WOJ_xxh3", Policy::Journal, FingerprintKind::Xxh3);
/// The same.
pub const MD5: Approach = in_ram("WOJ_md5", Policy::Journal, FingerprintKind::Md5);
/// The same.
pub const SHA1: Approach = in_ram("WOJ_sha1", Policy::Journal, FingerprintKind::Sha1);
/// What stands for Dmdedup.
pub const FULL: Approach = in_ram("Full_sha1", Policy::Full, FingerprintKind::Sha1);
/// No dedup, with a mapping that survives.
pub const THIN_NO_DEDUP: Approach = Approach {
    persistence: Persistence::Thin,
    ..in_ram("No_Dedup_DJ, thin", Policy::None, FingerprintKind::Blake3)
};
/// WOJ as the product has it.
pub const THIN: Approach = Approach {
    persistence: Persistence::Thin,
    ..in_ram("WOJ_blake3, thin", Policy::Journal, FingerprintKind::Blake3)
};

/// Those of most figures.
pub const MAIN: [Approach; 6] = [NO_DEDUP, PUBLISHED, WHOLE, FULL, THIN_NO_DEDUP, THIN];
/// Those of Fig. 4.3.
pub const BY_HASH: [Approach; 4] = [PUBLISHED, WHOLE, MD5, SHA1];

/// The fingerprints by which approaches look blocks up, by their names.
pub const FINGERPRINTS: [&str; 5] = ["prefix64", "xxh3", "md5", "sha1", "blake3"];

impl Approach {
    /// The name of its fingerprint among [`FINGERPRINTS`]; none when it looks nothing up.
    pub fn fingerprint(&self) -> Option<&'static str> {
        let hash = self.hash()?;
        Some(match hash {
            Hash::Xxh64Prefix => "prefix64",
            _ => self.fingerprint.name(),
        })
    }

    /// Whether it is among those of these fingerprints, of which none means all.
    pub fn is_among(&self, fingerprints: &[String]) -> bool {
        let is_asked_for = |name| fingerprints.iter().any(|asked| asked == name);
        fingerprints.is_empty() || self.fingerprint().is_none_or(is_asked_for)
    }

    /// What every block is hashed with; none: nothing is looked up.
    pub fn hash(&self) -> Option<Hash> {
        match (self.policy, self.is_published) {
            (Policy::None, _) => None,
            (_, true) => Some(Hash::Xxh64Prefix),
            _ => Some(match self.fingerprint {
                FingerprintKind::Blake3 => Hash::Blake3,
                FingerprintKind::Xxh3 => Hash::Xxh3,
                FingerprintKind::Md5 => Hash::Md5,
                FingerprintKind::Sha1 => Hash::Sha1,
            }),
        }
    }

    /// Whether it looks at the journal.
    pub fn has_journal(&self) -> bool {
        self.policy.has_journal()
    }

    fn settings(&self, disk_bytes: u64, journal: &str) -> VolumeSettings {
        VolumeSettings {
            policy: self.policy,
            persistence: self.persistence,
            fingerprint: self.fingerprint,
            journal: journal.to_owned(),
            ..VolumeSettings::new(disk_bytes)
        }
    }

    /// Bytes of a store for a disk of that size.
    pub fn backing_bytes(&self, disk_bytes: u64) -> u64 {
        Volume::backing_bytes_for(&self.settings(disk_bytes, "auto"))
    }

    /// A new volume, watched. `journal`: where that lies, as volumes are told.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn make(
        &self,
        backing: Arc<dyn Backing>,
        disk_bytes: u64,
        journal: &str,
    ) -> Result<Arc<Observed>> {
        let settings = self.settings(disk_bytes, journal);
        Volume::create(&*backing, &settings, None).context("making a volume")?;
        let options = OpenOptions {
            allow_volatile: true,
            ..OpenOptions::default()
        };
        let volume = Volume::open(backing, &options).context("opening a volume")?;
        let watch = match self.is_published {
            true => {
                volume.set_pool_kind(PoolKind::Prefix64)?;
                Watch::EachFlush
            }
            false => Watch::End,
        };
        Ok(Arc::new(Observed::new(volume, watch)))
    }
}

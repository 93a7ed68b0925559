//! Fingerprints of blocks: 128 bits of a hash.

use md5::Md5;
use sha1::{Digest, Sha1};
use twox_hash::XxHash3_128;

/// The fingerprint of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// No block has this one: the fingerprint is not known.
    pub const UNKNOWN: Fingerprint = Fingerprint([0; 16]);

    /// Stands for a block of zeros that needs no room.
    pub const ZEROS: Fingerprint = Fingerprint([0xff; 16]);

    /// The first eight bytes, as a number.
    #[must_use]
    pub fn high(self) -> u64 {
        crate::page::read_u64(&self.0, 0)
    }

    /// The last eight bytes, as a number.
    #[must_use]
    pub fn low(self) -> u64 {
        crate::page::read_u64(&self.0, 8)
    }
}

/// How fingerprints are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum FingerprintKind {
    /// BLAKE3, keyed with a secret of the volume: nobody can make two blocks that collide, so that
    /// equal fingerprints are equal blocks.
    #[default]
    Blake3 = 1,
    /// XXH3, seeded: ten times as fast, and not to be trusted alone: blocks are compared.
    Xxh3 = 2,
    /// MD5, as ThinDedup (Ni, §5.3.1) has it. Broken since 2004: blocks are compared.
    Md5 = 3,
    /// SHA-1, as Dmdedup has it. Broken since 2017: blocks are compared.
    Sha1 = 4,
}

impl FingerprintKind {
    /// All of them.
    pub const ALL: [FingerprintKind; 4] = [Self::Blake3, Self::Xxh3, Self::Md5, Self::Sha1];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Xxh3 => "xxh3",
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
        }
    }

    /// The kind of that stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether blocks of equal fingerprints must be compared byte by byte before they share room.
    #[must_use]
    pub fn needs_comparison(self) -> bool {
        self != Self::Blake3
    }
}

/// Makes fingerprints.
#[derive(Debug, Clone)]
pub struct Fingerprinter {
    kind: FingerprintKind,
    key: [u8; 32],
}

impl Fingerprinter {
    /// Fingerprints of that kind, with the volume's key.
    #[must_use]
    pub fn new(kind: FingerprintKind, key: [u8; 32]) -> Self {
        Self { kind, key }
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> FingerprintKind {
        self.kind
    }

    /// The fingerprint of a block. Never [`Fingerprint::UNKNOWN`] nor [`Fingerprint::ZEROS`].
    #[must_use]
    pub fn of(&self, block: &[u8]) -> Fingerprint {
        let mut bytes = [0; 16];
        match self.kind {
            FingerprintKind::Blake3 => {
                bytes.copy_from_slice(&blake3::keyed_hash(&self.key, block).as_bytes()[..16]);
            }
            FingerprintKind::Xxh3 => {
                let seed = crate::page::read_u64(&self.key, 0);
                bytes = XxHash3_128::oneshot_with_seed(seed, block).to_le_bytes();
            }
            FingerprintKind::Md5 => bytes.copy_from_slice(&Md5::digest(block)),
            FingerprintKind::Sha1 => bytes.copy_from_slice(&Sha1::digest(block)[..16]),
        }
        if bytes == [0; 16] || bytes == [0xff; 16] {
            bytes[0] = 1;
        }
        Fingerprint(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_and_names_and_numbers_are_theirs_alone() {
        let block = [7; 4096];
        let mut seen = std::collections::HashSet::new();
        for kind in FingerprintKind::ALL {
            let fingerprint = Fingerprinter::new(kind, [9; 32]).of(&block);
            assert!(seen.insert(fingerprint), "{}", kind.name());
            assert_eq!(FingerprintKind::from_number(kind as u8), Some(kind));
        }
        assert_eq!(FingerprintKind::from_number(0), None);
    }

    #[test]
    fn published_hashes_are_theirs() {
        // MD5 and SHA-1 of the empty string, from RFC 1321 and FIPS 180.
        let md5 = Fingerprinter::new(FingerprintKind::Md5, [0; 32]).of(b"");
        assert_eq!(md5.0[..4], [0xd4, 0x1d, 0x8c, 0xd9]);
        let sha1 = Fingerprinter::new(FingerprintKind::Sha1, [0; 32]).of(b"");
        assert_eq!(sha1.0[..4], [0xda, 0x39, 0xa3, 0xee]);
    }

    #[test]
    fn the_key_matters_where_there_is_one() {
        for kind in [FingerprintKind::Blake3, FingerprintKind::Xxh3] {
            let one = Fingerprinter::new(kind, [1; 32]).of(&[5; 4096]);
            let two = Fingerprinter::new(kind, [2; 32]).of(&[5; 4096]);
            assert_ne!(one, two);
        }
    }
}

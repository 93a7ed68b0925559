//! A hasher for what is a hash, or random, already: fingerprints, their prefixes, ids.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Fingerprints are keyed hashes: any eight of their bytes do as a hash.
#[derive(Debug, Default)]
pub(super) struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk::<8>() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// A map by such keys.
pub(super) type HashedMap<K, V> = HashMap<K, V, BuildHasherDefault<AlreadyHashed>>;

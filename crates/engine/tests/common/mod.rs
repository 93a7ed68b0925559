//! An engine on a store of the test's choice, with fixed secrets.

#![allow(dead_code)] // Each test binary uses a part of it.

pub mod compaction;

use std::collections::BTreeMap;
use std::sync::Arc;

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};
use engine::fingerprint::Fingerprinter;
use engine::format::Vault;
use engine::object::{ObjectId, ObjectStore};
use engine::{Engine, EngineSettings};
use zeroize::Zeroizing;

/// Small containers and groups, so that a test fills many of them.
pub fn small_settings(threads: usize) -> EngineSettings {
    EngineSettings {
        container_bytes: 256 << 10,
        group_bytes: 64 << 10,
        threads,
        memory_bytes: 16 << 20,
        ..EngineSettings::default()
    }
}

/// An engine whose secrets are always the same.
pub fn engine_on(store: Arc<dyn ObjectStore>, settings: EngineSettings, padded: bool) -> Engine {
    let secrets = BTreeMap::from([(1, Zeroizing::new([7; 32]))]);
    let parameters = Parameters {
        algorithm: Algorithm::FastCdc,
        min_bytes: 512,
        avg_bytes: 2048,
        max_bytes: 16384,
        normalization: 2,
        ..Parameters::default()
    };
    Engine::new(
        store,
        Vault::new(ObjectId([1; 16]), secrets, padded),
        Fingerprinter::new(&[9; 32]),
        Chunker::new(&parameters, KeyMaterial::Unkeyed).expect("the parameters are possible"),
        settings,
    )
}

/// Bytes that do not compress, always the same for a seed.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut noise);
    noise
}

/// Bytes that compress about three to one, always the same for a seed.
pub fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 16);
    for byte in noise(seed, bytes / 6 + 1) {
        text.extend_from_slice(format!("word{byte:02x} ").as_bytes());
    }
    text.truncate(bytes);
    text
}

//! Stores a stream and reads it back: the engine in a few lines.
//!
//! `cargo run -p onefold-engine --example store_stream`

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Read;
use std::sync::Arc;

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};
use engine::fingerprint::Fingerprinter;
use engine::format::Vault;
use engine::object::{MemoryStore, ObjectId};
use engine::{Engine, EngineSettings};
use zeroize::Zeroizing;

fn main() -> Result<(), Box<dyn Error>> {
    // A real program keeps these secrets; `repository` does so in key slots.
    let data_secrets = BTreeMap::from([(1, Zeroizing::new([1; 32]))]);
    let vault = Vault::new(ObjectId::random(), data_secrets, true);
    let fingerprinter = Fingerprinter::new(&[2; 32]);
    let parameters = Parameters {
        algorithm: Algorithm::FastCdc,
        min_bytes: 2 << 10,
        avg_bytes: 8 << 10,
        max_bytes: 64 << 10,
        normalization: 2,
        ..Parameters::default()
    };
    let chunker = Chunker::new(&parameters, KeyMaterial::Unkeyed)?;
    let store = Arc::new(MemoryStore::new());
    let engine = Engine::new(
        store,
        vault,
        fingerprinter,
        chunker,
        EngineSettings::default(),
    );

    let stream = b"the same words, again and again; ".repeat(100_000);
    let mut writer = engine.writer()?;
    let pending = writer.store_stream(&mut stream.as_slice(), None)?.0;
    let recipe = writer.settle(pending)?;
    let totals = writer.commit()?;
    println!(
        "{} bytes: {} unique, {} stored",
        stream.len(),
        totals.bytes_new,
        totals.stored_bytes
    );

    let mut back = Vec::new();
    engine.reader()?.stream(&recipe).read_to_end(&mut back)?;
    assert_eq!(back, stream);
    println!("read back, bit for bit");
    Ok(())
}

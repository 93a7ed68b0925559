//! Tests of the public interface.

mod algorithm2;
mod collection;
mod distribution;
mod golden;
mod parameters;
mod presets;
mod properties;
mod random;
mod rapid;
mod segments;
mod stream;
mod structure;
#[path = "../../../testkit/src/tar.rs"]
mod tars;
mod two_stage;
mod windows;

use chunking::{Algorithm, Chunker, KeyMaterial, Parameters};

/// FastCDC with these sizes and this level.
fn fastcdc(min_bytes: u32, avg_bytes: u32, max_bytes: u32, normalization: u8) -> Parameters {
    Parameters {
        normalization,
        ..sized(Algorithm::FastCdc, min_bytes, avg_bytes, max_bytes)
    }
}

/// An algorithm with these sizes.
fn sized(algorithm: Algorithm, min_bytes: u32, avg_bytes: u32, max_bytes: u32) -> Parameters {
    Parameters {
        min_bytes,
        avg_bytes,
        max_bytes,
        ..Parameters::new(algorithm)
    }
}

/// The chunker without a key.
fn unkeyed(parameters: &Parameters) -> Chunker {
    Chunker::new(parameters, KeyMaterial::Unkeyed).expect("the test gives possible parameters")
}

/// The lengths of the chunks of `data`.
fn lengths(chunker: &Chunker, data: &[u8]) -> Vec<usize> {
    chunker.chunks(data).map(|chunk| chunk.len()).collect()
}

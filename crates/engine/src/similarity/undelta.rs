//! From a base and a delta back to the chunk, whichever kind of delta it is.
//!
//! Enter: the bytes of the base, the delta as its group's plaintext has it, and what the metadata of its
//! container says of both. Leaves: exactly as many bytes as the chunk has, at most
//! [`CHUNK_BYTES_MAX`](crate::container::CHUNK_BYTES_MAX). Whether they are the chunk, its fingerprint
//! says: the caller compares it.

use std::sync::{Mutex, PoisonError};

use super::delta::{self, DeltaError};
use super::prefix::{PrefixDecoder, PrefixError};
use crate::container::DeltaMethod;

/// Why a delta makes no chunk of its base.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndeltaError {
    /// The instructions make no sense.
    #[error(transparent)]
    Instructions(#[from] DeltaError),
    /// The frame does not decode.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
}

/// Applies deltas; may be shared by threads. Keeps the working memory of as many zstd decoders as were
/// ever needed at once.
#[derive(Debug, Default)]
pub struct Undelta {
    idle: Mutex<Vec<PrefixDecoder>>,
}

impl Undelta {
    /// The chunk of `chunk_bytes` bytes that `delta` makes of `base`.
    ///
    /// # Errors
    /// When the delta is not one, or not one of this base and this length.
    pub fn apply(
        &self,
        method: DeltaMethod,
        base: &[u8],
        delta: &[u8],
        chunk_bytes: u32,
    ) -> Result<Vec<u8>, UndeltaError> {
        let mut chunk = Vec::new();
        let bytes = chunk_bytes as usize;
        match method {
            DeltaMethod::Instructions => delta::decode(base, delta, bytes, &mut chunk)?,
            DeltaMethod::Prefix => {
                let mut decoder = self.lock().pop().unwrap_or_default();
                let decoded = decoder.decode(base, delta, bytes, &mut chunk);
                self.lock().push(decoder);
                decoded?;
            }
        }
        Ok(chunk)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<PrefixDecoder>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::CompressionLevel;
    use crate::similarity::delta::DeltaEncoder;
    use crate::similarity::prefix::PrefixEncoder;

    #[test]
    fn each_method_undoes_its_own_deltas() {
        let base = b"every word of it, again and again; ".repeat(200);
        let mut chunk = base.clone();
        chunk.splice(3000..3010, *b"other words");
        let mut deltas = [Vec::new(), Vec::new()];
        assert!(DeltaEncoder::new().encode(&base, &chunk, 1000, &mut deltas[0]));
        let mut prefix = PrefixEncoder::new(CompressionLevel::DEFAULT);
        assert!(prefix.encode(&base, &chunk, 1000, &mut deltas[1]));
        let undelta = Undelta::default();
        let methods = [DeltaMethod::Instructions, DeltaMethod::Prefix];
        let bytes = chunk.len() as u32;
        for (method, delta) in methods.into_iter().zip(&deltas) {
            let apply = |bytes| undelta.apply(method, &base, delta, bytes);
            assert_eq!(apply(bytes).as_ref(), Ok(&chunk), "{method:?}");
            assert!(apply(bytes + 1).is_err(), "{method:?}");
            assert!(apply(u32::MAX).is_err(), "{method:?}");
            let cut_off = &delta[..delta.len() / 2];
            assert!(undelta.apply(method, &base, cut_off, bytes).is_err());
            let lost = undelta.apply(method, b"", delta, bytes);
            assert!(lost.is_err(), "{method:?} without its base");
        }
    }
}

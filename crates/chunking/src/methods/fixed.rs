//! Chunks of one size (FIXC; FastCDC §4.5, which uses 10 KiB).
//!
//! What is cut, exactly: the first `avg_bytes` bytes, or all that is left. An inserted byte moves
//! every cut behind it, which is why the others exist.

use crate::Parameters;

/// A chunker of fixed size.
#[derive(Clone)]
pub(crate) struct Fixed {
    size: usize,
}

impl Fixed {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            size: parameters.avg_bytes as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        data.len().min(self.size)
    }
}

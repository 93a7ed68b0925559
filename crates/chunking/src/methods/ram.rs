//! Rapid asymmetric maximum (RAM; Widodo et al., *A new content-defined chunking algorithm for
//! data deduplication in cloud storage*, 2017).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. The window is `src[0..w]`, w = avg − 256; its greatest byte, of 0 to 255, is m.
//! 2. The chunk is `src[0..i + 1]` for the smallest i in w..n with `src[i]` ≥ m: the byte that
//!    matched is in the chunk.
//! 3. No match, or n < w: the whole `src[0..n]`.
//!
//! On random data m is 255, and one byte in 256 matches: hence w. Where bytes are few and one of
//! them is rare, as in text, chunks reach max: that is what RAM pays for its speed.

use crate::Parameters;
use kernels::window_maximum;

/// What a chunk of random data is longer than the window, on average.
pub(crate) const WAIT_BYTES: u32 = 256;

/// A RAM chunker.
#[derive(Clone)]
pub(crate) struct Ram {
    window: usize,
}

impl Ram {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            window: window_bytes(parameters) as usize,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let found = window_maximum::find_cut(data, self.window);
        found.map_or(data.len(), |index| index + 1)
    }
}

/// The window that `avg_bytes` gives.
pub(crate) fn window_bytes(parameters: &Parameters) -> u32 {
    parameters.avg_bytes - WAIT_BYTES
}

#[cfg(test)]
mod tests {
    use super::Ram;
    use crate::{Algorithm, Parameters};

    #[test]
    fn the_byte_that_matches_is_in_the_chunk() {
        let parameters = Parameters {
            min_bytes: 100,
            avg_bytes: 556,
            max_bytes: 1024,
            ..Parameters::new(Algorithm::Ram)
        };
        let ram = Ram::new(&parameters);
        let mut data = [1u8; 1024];
        assert_eq!(ram.cut(&data), 301);
        data[299] = 2;
        assert_eq!(ram.cut(&data), 1024);
        data[400] = 2;
        assert_eq!(ram.cut(&data), 401);
        data[350] = 3;
        assert_eq!(ram.cut(&data), 351);
        assert_eq!(ram.cut(&data[..300]), 300);
        assert_eq!(ram.cut(&data[..200]), 200);
    }
}

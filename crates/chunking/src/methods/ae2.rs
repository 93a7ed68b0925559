//! Asymmetric extremum, optimized (AE-v2 in FastCDC §4.5, which cites an article for it that we
//! do not have; this definition is our own).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. Position i, for i in min..n − 7, has a value: `src[i..i + 8]` are four little-endian numbers
//!    of 16 bits; each is multiplied by 0xf34d modulo 2^16; of the four products the first is the
//!    highest part of a number of 64 bits, and so on.
//! 2. The window is w = (avg − min) / (e − 1), rounded as in `ae`.
//! 3. The maximum M starts as position min. As long as one of the positions M + 1 to M + w has a
//!    greater value (not equal), the first such position becomes M.
//! 4. The chunk is `src[0..M + w + 1]`. It is `src[0..n]` when n is smaller, or when there is no
//!    position (n < min + 8).
//!
//! What differs from `ae`: the search begins behind min, so that a part of the data is not looked
//! at and sizes vary less; and the order is scrambled, so that a maximum is not where the highest
//! letter stands. The multiplier was chosen among odd ones for which runs of 0x00, 0x20 and 0xff,
//! where nothing tells one position from the next, have low values and seldom are the maximum.
//!
//! Dedup ratios of a prototype, at an equal mean chunk (9.5 kB, max 64 KiB), on four OpenSSL trees
//! as tars | four Redis dumps, beside FastCDC's 1.419 | 2.593 at 2/8/64 KiB, level 2: `ae`
//! 1.376 | 2.372; big-endian behind min = 2 KiB 1.394 | 2.429, behind 4 KiB 1.389 | 2.447; this one
//! 1.405 | 2.432 and 1.410 | 2.482. The skip gains most; what scrambling gains is in part the luck
//! of a multiplier (nine of them behind 2 KiB: 1.369 to 1.405 | 2.406 to 2.432), but it keeps runs
//! from being maxima. A multiplication of 64 bits (1.398 | 2.421, the mean of four multipliers)
//! makes poorer vectors.

use super::ae::window_of_mean;
use super::fastcdc::Rolling;
use crate::Parameters;
use kernels::extremum::{self, Order};

/// Bytes of a value.
const VALUE_BYTES: u32 = 8;

/// An optimized AE chunker.
#[derive(Clone)]
pub(crate) struct Ae2 {
    min: usize,
    window: usize,
    pub(crate) rolling: Rolling,
}

impl Ae2 {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            min: parameters.min_bytes as usize,
            window: window_bytes(parameters) as usize,
            rolling: Rolling::Fastest,
        }
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let find = match self.rolling {
            Rolling::OneByte => extremum::scalar::asymmetric,
            _ => extremum::asymmetric,
        };
        let maximum = find(Order::Scrambled, &data[self.min..], self.window);
        maximum.map_or(data.len(), |maximum| {
            data.len().min(self.min + maximum + self.window + 1)
        })
    }
}

/// The window that avg_bytes and min_bytes give.
pub(crate) fn window_bytes(parameters: &Parameters) -> u32 {
    window_of_mean(parameters.avg_bytes - parameters.min_bytes)
}

/// The lowest max with which a maximum can be found.
pub(crate) fn max_lowest(parameters: &Parameters) -> u32 {
    parameters.min_bytes + window_bytes(parameters) + VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use super::Ae2;
    use crate::{Algorithm, Parameters};

    #[test]
    fn the_search_begins_behind_the_minimum() {
        let parameters = Parameters {
            min_bytes: 84,
            avg_bytes: 256,
            max_bytes: 1024,
            ..Parameters::new(Algorithm::Ae2)
        };
        let ae2 = Ae2::new(&parameters);
        assert_eq!(ae2.window, 100);
        let mut data = [0u8; 1024];
        assert_eq!(ae2.cut(&data), 84 + 101);
        // Seen from the position of its first byte or, as a high byte, from the one before it.
        data[84] = 1;
        assert_eq!(ae2.cut(&data), 84 + 101);
        (data[84], data[83]) = (0, 1);
        assert_eq!(ae2.cut(&data), 84 + 101, "not looked at");
        // Of a pair at 120 the product is 0xf34d, of one at 119 it is 0x4d00.
        data[120] = 1;
        assert_eq!(ae2.cut(&data), 120 + 101);
        assert_eq!(ae2.cut(&data[..91]), 91);
    }
}

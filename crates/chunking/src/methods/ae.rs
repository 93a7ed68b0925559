//! Asymmetric extremum (AE-v1 in FastCDC §4.5; Zhang et al., *AE: An Asymmetric Extremum Content
//! Defined Chunking Algorithm*, INFOCOM 2015).
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. Position i, for i in 0..n − 7, has the value of `src[i..i + 8]`, big-endian. Positions
//!    whose eight bytes are not all in the data (of which only max bytes are seen) have none.
//! 2. The window is w = avg / (e − 1), rounded: (avg × 10^9 + 859 140 914) / 1 718 281 828 in
//!    integers.
//! 3. The maximum M starts as position 0. The positions 1, 2 … are taken in turn; one of a value
//!    greater than M's (not equal) becomes M. When the position M + w was taken and M stands, or
//!    all positions were taken, M is found.
//! 4. The chunk is `src[0..M + w + 1]`: the byte at M + w, where the window ends, is in it. It is
//!    `src[0..n]` when n is smaller, or when there is no position (n < 8).
//!
//! Eight bytes, and not one, make values of which few are equal. No byte is skipped; a chunk is
//! longer than w, which therefore is at least min. The paper takes (e − 1) w for the mean on random
//! data. It is a little more: 1.781 w on 256 MiB, avg from 1 to 64 KiB, which is e^γ w, so 1.037
//! avg. The window is the paper's all the same, as other programs have it.

use super::fastcdc::Rolling;
use crate::Parameters;
use kernels::extremum::{self, Order};

/// 10^9 (e − 1), to the nearest integer.
const E_MINUS_1_BILLIONTHS: u64 = 1_718_281_828;

/// An AE chunker.
#[derive(Clone)]
pub(crate) struct Ae {
    window: usize,
    pub(crate) rolling: Rolling,
}

impl Ae {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
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
        let maximum = find(Order::BigEndian, data, self.window);
        maximum.map_or(data.len(), |maximum| {
            data.len().min(maximum + self.window + 1)
        })
    }
}

/// The window that `avg_bytes` gives.
pub(crate) fn window_bytes(parameters: &Parameters) -> u32 {
    window_of_mean(parameters.avg_bytes)
}

/// The window with which the mean is `mean_bytes`: that / (e − 1), rounded.
pub(crate) fn window_of_mean(mean_bytes: u32) -> u32 {
    let billionths = u64::from(mean_bytes) * 1_000_000_000;
    ((billionths + E_MINUS_1_BILLIONTHS / 2) / E_MINUS_1_BILLIONTHS) as u32
}

#[cfg(test)]
mod tests {
    use super::{Ae, window_of_mean};
    use crate::{Algorithm, Parameters};

    /// Golden: a change here changes the cut points of stored data.
    #[test]
    fn windows_are_frozen() {
        for (mean_bytes, window) in [
            (1, 1),
            (256, 149),
            (6144, 3576),
            (8192, 4768),
            (65_536, 38_140),
            (16 << 20, 9_763_949),
        ] {
            assert_eq!(window_of_mean(mean_bytes), window);
        }
    }

    #[test]
    fn the_byte_at_the_end_of_the_window_is_in_the_chunk() {
        let parameters = Parameters {
            min_bytes: 10,
            avg_bytes: 256,
            max_bytes: 1024,
            ..Parameters::new(Algorithm::Ae)
        };
        let ae = Ae::new(&parameters);
        let mut data = [0u8; 1024];
        assert_eq!(ae.cut(&data), 150);
        // 1 in the last place of the value at 93; at 100 it stands in the first.
        data[100] = 1;
        assert_eq!(ae.cut(&data), 100 + 150);
        // A greater value at M + w is seen, one behind it is not.
        data[249] = 2;
        assert_eq!(ae.cut(&data), 249 + 150);
        (data[249], data[250]) = (0, 2);
        assert_eq!(ae.cut(&data), 250);
        // The end of the data.
        assert_eq!(ae.cut(&data[..180]), 180);
        assert_eq!(ae.cut(&[1; 11][..]), 11);
    }
}

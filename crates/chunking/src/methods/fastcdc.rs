//! FastCDC: Gear hashing with sub-minimum skipping and normalized chunking.
//!
//! Source: Xia et al., *The Design of Fast Content-Defined Chunking for Data Deduplication Based
//! Storage Systems*, IEEE TPDS 2020, Algorithm 2 and §3.3 to §3.6; its "rolling two bytes" (§3.7)
//! gives the same cuts and is a matter of the kernel.
//!
//! What is cut, exactly, for the data `src[0..n]` that is left, n > min:
//! 1. The hash starts as 0 and first takes `src[min]`; the bytes before are never hashed.
//! 2. The chunk is `src[0..i]` for the smallest i in min..n whose byte, once taken, leaves only
//!    zeros under the mask: `strict` while i < normal, `loose` from i = normal on. The byte that
//!    matched is *not* in the chunk: it is the first of the next one (the paper's `return i`). So
//!    a chunk can be exactly min long, when `src[min]` matches at once.
//! 3. No match: the first min(n, max) bytes.
//!
//! In the paper's names: FC-v1 is level 0 with min 2 KiB; FC-v2 and FC-v3 are level 2 with min 6
//! and 8 KiB and a normal size of min + 4 KiB (§4.4), all with an avg of 8 KiB. FC' is the same
//! with [`Rolling::TwoBytes`].

use super::masks::Masks;
use crate::{Algorithm, Parameters, rules};
use kernels::gear::{self, GearTable, Scan};
use std::sync::Arc;
use zeroize::Zeroizing;

/// By which loop to search: a matter of speed, the cuts are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rolling {
    /// What is fastest here.
    #[default]
    Fastest,
    /// One byte after another, in one chain, as the papers print it (FC, GC, RC, AE in FastCDC
    /// §4.5): `fastcdc`, `gear`, `rabin`, `rabin-nc`, `ae`, `ae2`.
    OneByte,
    /// Two bytes at a time (FC' in FastCDC §4.5; its Algorithm 4): `fastcdc`.
    TwoBytes,
}

impl Rolling {
    /// Whether `algorithm` has such a loop. Where it has not, its fastest takes its place.
    #[must_use]
    pub fn is_of(self, algorithm: Algorithm) -> bool {
        match self {
            Self::Fastest => true,
            Self::TwoBytes => algorithm == Algorithm::FastCdc,
            Self::OneByte => matches!(
                algorithm,
                Algorithm::FastCdc
                    | Algorithm::Gear
                    | Algorithm::Rabin
                    | Algorithm::RabinNc
                    | Algorithm::Ae
                    | Algorithm::Ae2
            ),
        }
    }
}

/// A FastCDC chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct FastCdc {
    table: Arc<Zeroizing<GearTable>>,
    masks: Masks,
    min: usize,
    normal: usize,
    rolling: Rolling,
    /// The second table, where bytes are taken by twos.
    table_shifted: Option<Arc<Zeroizing<GearTable>>>,
}

impl FastCdc {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: Arc<Zeroizing<GearTable>>) -> Self {
        Self {
            table,
            masks: Masks::new(parameters.avg_bytes, parameters.normalization),
            min: parameters.min_bytes as usize,
            normal: rules::normal_bytes(parameters) as usize,
            rolling: Rolling::Fastest,
            table_shifted: None,
        }
    }

    /// Takes so many bytes at a time from now on.
    pub(crate) fn set_rolling(&mut self, rolling: Rolling) {
        self.rolling = rolling;
        let is_by_twos = rolling == Rolling::TwoBytes;
        self.table_shifted =
            is_by_twos.then(|| Arc::new(Zeroizing::new(gear::two_bytes::shifted(&self.table))));
    }

    /// The length of the first chunk.
    pub(crate) fn cut(&self, data: &[u8]) -> usize {
        let end = data.len();
        let normal = self.normal.min(end);
        let before = &data[self.min..normal];
        let scan = self.scan(0, self.masks.strict, before);
        if let Some(position) = scan.position {
            return self.min + position;
        }
        let scan = self.scan(scan.hash, self.masks.loose, &data[normal..]);
        scan.position.map_or(end, |position| normal + position)
    }

    fn scan(&self, hash: u64, mask: u64, bytes: &[u8]) -> Scan {
        match (self.rolling, &self.table_shifted) {
            (Rolling::TwoBytes, Some(shifted)) => {
                gear::two_bytes::find_cut(&self.table, shifted, hash, mask, bytes)
            }
            (Rolling::OneByte, _) => gear::scalar::find_cut(&self.table, hash, mask, bytes),
            _ => gear::find_cut(&self.table, hash, mask, bytes),
        }
    }
}

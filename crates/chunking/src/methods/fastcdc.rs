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
//! With `hash_bits` = 32 the table has the upper 32 bits of its numbers, hashes are taken modulo
//! 2^32, and masks lie in 32 bits (masks.rs): a window of 32 bytes, and half the work for SIMD.
//!
//! In the paper's names: FC-v1 is level 0 with min 2 KiB; FC-v2 and FC-v3 are level 2 with min 6
//! and 8 KiB and a normal size of min + 4 KiB (§4.4), all with an avg of 8 KiB. FC' is the same
//! with [`Rolling::TwoBytes`].

use super::gear::hash_at;
use super::masks::Masks;
use crate::gear_table::SharedGearTable;
use crate::two_stage::{Rule, Windowed};
use crate::{Algorithm, OwnParameter, Parameters, rules};
use kernels::gear::{self, GearTable, Scan};
use kernels::isa::Isa;
use kernels::marks::{self, Marks};
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
    /// §4.5): `fastcdc`, `gear`, `rabin`, `rabin-nc`, `crc32`, `fold`,
    /// `ae`, `ae2`.
    OneByte,
    /// Two bytes at a time (FC' in FastCDC §4.5; its Algorithm 4): `fastcdc`.
    TwoBytes,
    /// One stage, by the fastest loop that judges position after position.
    InOrder,
    /// Two stages: all positions of a block are judged at once, at the level of the chunker's
    /// [`Isa`](crate::Isa), then cuts are found among the marks (SS-CDC; two_stage/mod.rs): every
    /// chunker of a window.
    TwoStage,
}

impl Rolling {
    /// Whether `algorithm` has such a loop. Where it has not, its fastest takes its place.
    #[must_use]
    pub fn is_of(self, algorithm: Algorithm) -> bool {
        match self {
            Self::Fastest | Self::InOrder => true,
            Self::TwoStage => matches!(
                algorithm,
                Algorithm::FastCdc
                    | Algorithm::Fold
                    | Algorithm::Gear
                    | Algorithm::Tttd
                    | Algorithm::Rabin
                    | Algorithm::RabinNc
                    | Algorithm::Adler
                    | Algorithm::Crc32
                    | Algorithm::Shield
                    | Algorithm::GearHash
                    | Algorithm::Xet
                    | Algorithm::Restic
            ),
            Self::TwoBytes => algorithm == Algorithm::FastCdc,
            Self::OneByte => matches!(
                algorithm,
                Algorithm::FastCdc
                    | Algorithm::Fold
                    | Algorithm::Gear
                    | Algorithm::Rabin
                    | Algorithm::RabinNc
                    | Algorithm::Crc32
                    | Algorithm::Ae
                    | Algorithm::Ae2
            ),
        }
    }
}

/// A FastCDC chunker. Has no `Debug`: the table may be secret.
#[derive(Clone)]
pub(crate) struct FastCdc {
    table: SharedGearTable,
    masks: Masks,
    min: usize,
    normal: usize,
    max: usize,
    rolling: Rolling,
    /// The second table, where bytes are taken by twos.
    table_shifted: Option<Arc<Zeroizing<GearTable>>>,
}

impl FastCdc {
    /// A chunker of valid parameters.
    pub(crate) fn new(parameters: &Parameters, table: SharedGearTable) -> Self {
        let (avg_bytes, level) = (parameters.avg_bytes, parameters.normalization);
        let (table, masks) = match parameters.own.get(OwnParameter::HashBits) {
            // Sums modulo 2^32 are the lower bits of sums modulo 2^64.
            Some(32) => (table.upper_half(), Masks::of_32_bits(avg_bytes, level)),
            _ => (table, Masks::new(avg_bytes, level)),
        };
        Self {
            table,
            masks,
            min: parameters.min_bytes as usize,
            normal: rules::normal_bytes(parameters) as usize,
            max: parameters.max_bytes as usize,
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

    /// Whether the hash matches at `length`, from min on and before the end.
    pub(crate) fn is_match(&self, data: &[u8], length: usize) -> bool {
        let mask = self.masks.at(length, self.normal);
        hash_at(&self.table, mask, &data[self.min..=length]) & mask == 0
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

impl Windowed for FastCdc {
    fn rule(&self) -> Rule {
        Rule {
            normal: self.normal,
            ..Rule::started_at_min(self.min, self.max, self.masks.strict.ilog2() as usize + 1)
        }
    }

    fn cut_in_order(&self, data: &[u8]) -> usize {
        self.cut(data)
    }

    fn mark(&self, isa: Isa, data: &[u8], first: usize, count: usize, marks: &mut Marks<'_>) {
        let masks = marks::Masks {
            strict: self.masks.strict,
            loose: self.masks.loose,
            value: 0,
        };
        self.table.mark(isa, masks, data, (first, count), marks);
    }

    fn gain(&self, isa: Isa) -> f64 {
        let is_dense = self.masks.loose.count_ones() < 8;
        match isa {
            Isa::Avx512 if is_dense => 0.0,
            Isa::Avx512 if self.masks.strict >> 32 == 0 => 2.0,
            Isa::Avx512 => 1.45,
            _ => 0.0,
        }
    }
}

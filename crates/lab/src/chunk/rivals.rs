//! Chunkers of other crates, measured in the same process on the same bytes.
//!
//! Taken are crates that are kept, small, and cut a slice in memory:
//! - `fastcdc` 5.0.0, module `v2020`: min, avg, max and level as given. Its `cut` is called as its
//!   own iterator calls it.
//! - `gearhash` 0.1.4: `next_match` with a mask of the highest bits, behind `min` bytes and up to
//!   `max`, as its users wrap it. Hashing starts 64 bytes before `min`, the reach of the hash.
//! - `rustic_cdc` 0.3.1: the 64-byte Rabin hash of restic, wrapped with `min` and `max` as
//!   rustic's own chunker does it, byte by byte.
//! - `mincdc` 0.1.0: cuts at the least hash of four bytes between two bounds; the mean is their
//!   middle, so that `max` is set to min + 2 × avg, which gives the mean min + avg of the others.
//! - `cdchunking` 1.0.1: ZPAQ's chunker, which knows no `min`; mean avg.
//!
//! Not taken:
//! - `quickcdc` 1.0.0: reads `u64`s through pointers that are not aligned, which is undefined and
//!   stops a debug build; no release since 2020, and it needs `rand` 0.6.
//! - `chunkrs` 0.9.1: copies into buffers of its own and hashes while it cuts, so that its time is
//!   not that of cutting.

use cdchunking::{ChunkerImpl, ZPAQ};
use fastcdc::v2020::{self, Normalization};
use mincdc::{MinCdcHash4, SliceChunker};
use rustic_cdc::{Rabin64, RollingHash64};

use super::contestant::walk;

/// Which crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RivalKind {
    /// `fastcdc`
    FastCdc,
    /// `gearhash`
    GearHash,
    /// `rustic_cdc`
    RusticCdc,
    /// `mincdc`
    MinCdc,
    /// `cdchunking`
    CdChunking,
}

/// What there is to know about a crate.
#[derive(Debug)]
pub struct RivalInfo {
    /// Which.
    pub kind: RivalKind,
    /// Its name on crates.io.
    pub crate_name: &'static str,
    /// The version that the manifest pins.
    pub version: &'static str,
}

/// Every crate that is measured.
pub const RIVALS: [RivalInfo; 5] = [
    RivalInfo {
        kind: RivalKind::FastCdc,
        crate_name: "fastcdc",
        version: "5.0.0",
    },
    RivalInfo {
        kind: RivalKind::GearHash,
        crate_name: "gearhash",
        version: "0.1.4",
    },
    RivalInfo {
        kind: RivalKind::RusticCdc,
        crate_name: "rustic_cdc",
        version: "0.3.1",
    },
    RivalInfo {
        kind: RivalKind::MinCdc,
        crate_name: "mincdc",
        version: "0.1.0",
    },
    RivalInfo {
        kind: RivalKind::CdChunking,
        crate_name: "cdchunking",
        version: "1.0.1",
    },
];

impl RivalKind {
    /// Its row in [`RIVALS`].
    pub fn info(self) -> &'static RivalInfo {
        &RIVALS[self as usize]
    }
}

/// A crate's chunker and its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rival {
    /// Which crate.
    pub kind: RivalKind,
    /// As asked for.
    pub min_bytes: u32,
    /// As asked for: a power of two.
    pub avg_bytes: u32,
    /// As asked for.
    pub max_bytes: u32,
    /// The level of normalization; only `fastcdc` has levels.
    pub normalization: u8,
}

impl Rival {
    /// A rival of these sizes, or why the crate can't have them.
    pub fn new(
        kind: RivalKind,
        [min_bytes, avg_bytes, max_bytes]: [u32; 3],
        normalization: u8,
    ) -> Result<Self, String> {
        if !avg_bytes.is_power_of_two() || !(256..=(4 << 20)).contains(&avg_bytes) {
            return Err(format!("avg {avg_bytes} is no power of two from 256 to 4M"));
        }
        if min_bytes >= avg_bytes || avg_bytes >= max_bytes {
            return Err(format!(
                "the sizes {min_bytes}, {avg_bytes}, {max_bytes} do not rise"
            ));
        }
        let is_fastcdc = kind == RivalKind::FastCdc;
        if is_fastcdc && (min_bytes < 64 || max_bytes > (16 << 20)) {
            return Err(format!(
                "min {min_bytes} and max {max_bytes} are not within 64 and 16M"
            ));
        }
        if is_fastcdc && !(min_bytes.is_multiple_of(2) && max_bytes.is_multiple_of(2)) {
            return Err(format!("min {min_bytes} and max {max_bytes} are not even"));
        }
        if matches!(kind, RivalKind::GearHash | RivalKind::RusticCdc) && min_bytes < 64 {
            return Err(format!("min {min_bytes} is below its window, 64"));
        }
        Ok(Self {
            kind,
            min_bytes,
            avg_bytes,
            max_bytes,
            normalization,
        })
    }

    /// The sizes that it keeps to.
    pub fn effective_sizes(&self) -> [u32; 3] {
        match self.kind {
            RivalKind::MinCdc => [
                self.min_bytes,
                self.avg_bytes,
                self.min_bytes + 2 * self.avg_bytes,
            ],
            RivalKind::CdChunking => [1, self.avg_bytes, self.max_bytes],
            _ => [self.min_bytes, self.avg_bytes, self.max_bytes],
        }
    }
}

/// A rival made ready to run.
pub enum RivalCutter {
    FastCdc(FastCdcCrate),
    GearHash(GearHash),
    RusticCdc(Box<RusticCdc>),
    MinCdc { min: usize, max: usize },
    CdChunking(Box<ZPAQ>),
}

impl RivalCutter {
    /// A cutter of that crate.
    pub fn new(rival: &Rival) -> Self {
        let [min, avg, max] = rival.effective_sizes().map(|size| size as usize);
        let bits = rival.avg_bytes.ilog2();
        match rival.kind {
            RivalKind::FastCdc => {
                let level = match rival.normalization {
                    0 => Normalization::Level0,
                    1 => Normalization::Level1,
                    2 => Normalization::Level2,
                    _ => Normalization::Level3,
                };
                Self::FastCdc(FastCdcCrate {
                    sizes: [min, avg, max],
                    masks: v2020::select_masks(avg, level),
                })
            }
            RivalKind::GearHash => Self::GearHash(GearHash {
                min,
                max,
                mask: u64::MAX << (u64::BITS - bits),
            }),
            RivalKind::RusticCdc => Self::RusticCdc(Box::new(RusticCdc {
                min,
                max,
                mask: u64::from(rival.avg_bytes) - 1,
                hash: Rabin64::new(6),
            })),
            RivalKind::MinCdc => Self::MinCdc { min, max },
            RivalKind::CdChunking => Self::CdChunking(Box::new(ZPAQ::new(bits as usize))),
        }
    }

    /// See [`super::contestant::Cutter::cut`].
    pub fn cut(
        &mut self,
        data: &[u8],
        is_end: bool,
        max: usize,
        visit: impl FnMut(usize),
    ) -> usize {
        match self {
            Self::FastCdc(method) => walk(data, is_end, max, |rest| method.cut(rest), visit),
            Self::GearHash(method) => walk(data, is_end, max, |rest| method.cut(rest), visit),
            Self::RusticCdc(method) => walk(data, is_end, max, |rest| method.cut(rest), visit),
            Self::MinCdc { min, max } => {
                let (min, max) = (*min, *max);
                let cut = |rest: &[u8]| {
                    let mut chunks = SliceChunker::new(rest, min, max, MinCdcHash4::new());
                    chunks.next().map_or(0, |chunk| chunk.len())
                };
                walk(data, is_end, max, cut, visit)
            }
            Self::CdChunking(zpaq) => {
                let cut = |rest: &[u8]| {
                    let window = &rest[..rest.len().min(max)];
                    zpaq.reset();
                    let boundary = zpaq.find_boundary(window);
                    boundary.map_or(window.len(), |last| last + 1)
                };
                walk(data, is_end, max, cut, visit)
            }
        }
    }
}

/// `fastcdc::v2020` with the masks that it would choose.
pub struct FastCdcCrate {
    sizes: [usize; 3],
    masks: (u64, u64),
}

impl FastCdcCrate {
    fn cut(&self, data: &[u8]) -> usize {
        let [min, avg, max] = self.sizes;
        let (strict, loose) = self.masks;
        let (_, length) = v2020::cut(data, min, avg, max, strict, loose, strict << 1, loose << 1);
        length
    }
}

/// `gearhash` behind a minimum.
pub struct GearHash {
    min: usize,
    max: usize,
    mask: u64,
}

impl GearHash {
    fn cut(&self, data: &[u8]) -> usize {
        let window = &data[..data.len().min(self.max)];
        if window.len() <= self.min {
            return window.len();
        }
        let mut hasher = gearhash::Hasher::default();
        hasher.update(&window[self.min - 64..self.min]);
        let found = hasher.next_match(&window[self.min..], self.mask);
        found.map_or(window.len(), |length| self.min + length)
    }
}

/// `rustic_cdc` behind a minimum.
pub struct RusticCdc {
    min: usize,
    max: usize,
    mask: u64,
    hash: Rabin64,
}

impl RusticCdc {
    fn cut(&mut self, data: &[u8]) -> usize {
        let window = &data[..data.len().min(self.max)];
        if window.len() <= self.min {
            return window.len();
        }
        // All of the window but the byte that is judged first.
        let mut before = window[self.min - 63..self.min].iter().copied();
        self.hash.reset_and_prefill_window(&mut before);
        for (position, &byte) in window.iter().enumerate().skip(self.min) {
            self.hash.slide(byte);
            if self.hash.hash & self.mask == 0 {
                return position + 1;
            }
        }
        window.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::data::random_bytes;

    #[test]
    fn every_rival_covers_the_data_within_its_sizes() {
        let data = random_bytes(7, 600_000);
        for info in &RIVALS {
            assert_eq!(info.kind.info().crate_name, info.crate_name);
            let rival = Rival::new(info.kind, [2048, 8192, 65536], 2).unwrap();
            let [min, _, max] = rival.effective_sizes().map(|size| size as usize);
            let mut cutter = RivalCutter::new(&rival);
            let mut lengths = Vec::new();
            cutter.cut(&data, true, max, |length| lengths.push(length));
            assert_eq!(lengths.iter().sum::<usize>(), data.len());
            let (_, before) = lengths.split_last().unwrap();
            for &length in before {
                assert!((min..=max).contains(&length), "{}", info.crate_name);
            }
            let mean = data.len() / lengths.len();
            assert!((6000..14000).contains(&mean), "{mean} {}", info.crate_name);
        }
    }

    #[test]
    fn fastcdc_is_called_as_its_iterator_calls_it() {
        let data = random_bytes(8, 300_000);
        let rival = Rival::new(RivalKind::FastCdc, [2048, 8192, 65536], 1).unwrap();
        let mut lengths = Vec::new();
        RivalCutter::new(&rival).cut(&data, true, 65536, |length| lengths.push(length));
        let theirs = v2020::FastCDC::new(&data, 2048, 8192, 65536);
        let theirs: Vec<usize> = theirs.map(|chunk| chunk.length).collect();
        assert_eq!(lengths, theirs);
    }

    #[test]
    fn sizes_that_a_crate_can_not_have_are_refused() {
        for (kind, sizes) in [
            (RivalKind::FastCdc, [2047, 8192, 65536]),
            (RivalKind::FastCdc, [32, 8192, 65536]),
            (RivalKind::GearHash, [2048, 8000, 65536]),
            (RivalKind::MinCdc, [8192, 8192, 65536]),
            (RivalKind::RusticCdc, [16, 8192, 65536]),
        ] {
            assert!(Rival::new(kind, sizes, 2).is_err(), "{sizes:?}");
        }
    }
}

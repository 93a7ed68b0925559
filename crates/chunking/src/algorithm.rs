//! The chunking algorithms, listed once: names for people, numbers for repositories.
//!
//! Numbers are stored and never change meaning; a number that was given out is not used again.
//! What exactly each algorithm cuts stands in its module under `methods/`, and for programmers of
//! other languages in docs/format/chunkers.md.

use std::fmt;
use std::str::FromStr;

/// What there is to know about an [`Algorithm`] without running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmInfo {
    /// The algorithm of this row.
    pub algorithm: Algorithm,
    /// Its name in commands, reports and Python.
    pub name: &'static str,
    /// Its number in repositories.
    pub id: u16,
    /// Whether a secret may decide its cut points. It keeps them from being the same for everybody;
    /// of all but `shield` it is an obstacle to finding out what was cut from sizes of chunks, not a
    /// proof against it (SECURITY.md).
    pub keyed: bool,
    /// One line for people who choose.
    pub summary: &'static str,
    /// What `avg_bytes` decides, and what the mean is then on random data.
    pub average: &'static str,
}

/// The enum and its table from one list: neither can have what the other lacks.
macro_rules! algorithms {
    ($(
        $(#[$doc:meta])*
        $variant:ident = $id:literal, $name:literal, keyed: $keyed:literal,
            $summary:literal,
            $average:literal;
    )*) => {
        /// A way to find cut points.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $( $(#[$doc])* $variant, )*
        }

        /// Every algorithm, in the order of their numbers. From 64 on: presets, which cut as other
        /// programs do.
        pub const ALGORITHMS: &[AlgorithmInfo] = &[
            $( AlgorithmInfo {
                algorithm: Algorithm::$variant,
                name: $name,
                id: $id,
                keyed: $keyed,
                summary: $summary,
                average: $average,
            }, )*
        ];
    };
}

algorithms! {
    /// Gear hashing with normalized chunking (FastCDC, Xia et al., Algorithm 2).
    FastCdc = 1, "fastcdc", keyed: true,
        "Gear hash, sub-minimum skipping, normalized chunk sizes (FastCDC 2020)",
        "mask bits and, unless normal_bytes is given, the normal size; mean about 1.14 avg at level 2 with min = avg / 4, min + avg at level 0";
    /// Chunks of one size (FIXC in FastCDC §4.5).
    Fixed = 2, "fixed", keyed: false,
        "every chunk avg bytes long, whatever it holds (FIXC)",
        "the size of every chunk";
    /// Gear hashing judged by its low bits (GC; FastCDC, Algorithm 1).
    Gear = 3, "gear", keyed: true,
        "Gear hash judged by its lowest bits, a window of 13 bytes at 8 KiB (GC)",
        "mask bits; mean min + avg, without a key min + 0.92 avg";
    /// Rabin fingerprints as in LBFS (RC-v1 in FastCDC §4.5).
    Rabin = 4, "rabin", keyed: true,
        "Rabin fingerprint of a sliding window, as in LBFS (RC-v1)",
        "divisor D; mean min + avg";
    /// Rabin fingerprints with normalized chunking (RC-v2 and RC-v3; FastCDC, Algorithm 3).
    RabinNc = 5, "rabin-nc", keyed: true,
        "Rabin fingerprint with normalized chunk sizes (RC-v2, RC-v3)",
        "divisor D and, unless normal_bytes is given, the normal size; mean about 1.14 avg at level 2 with min = avg / 4";
    /// A rolling Adler checksum (P-Dedupe, Table 4).
    Adler = 6, "adler", keyed: true,
        "rolling Adler checksum of a sliding window (P-Dedupe)",
        "mask bits; mean min + avg";
    /// A rolling CRC-32 (Ni §2.3.3).
    Crc32 = 7, "crc32", keyed: false,
        "rolling CRC-32 of a sliding window (the base of SS-CDC)",
        "mask bits; mean min + avg";
    /// Asymmetric extremum (AE-v1 in FastCDC §4.5).
    Ae = 8, "ae", keyed: false,
        "asymmetric extremum: the first maximum that a window does not exceed (AE-v1)",
        "the window, avg / (e − 1); mean 1.04 avg";
    /// Asymmetric extremum, optimized (AE-v2 in FastCDC §4.5).
    Ae2 = 9, "ae2", keyed: false,
        "asymmetric extremum behind the minimum, in a scrambled order (AE-v2)",
        "the window, (avg − min) / (e − 1); mean min + 1.04 (avg − min)";
    /// Two thresholds, two divisors (Eshghi and Tang 2005).
    Tttd = 10, "tttd", keyed: true,
        "two thresholds, two divisors: a backup cut instead of the maximum (TTTD)",
        "mask bits of the main divisor; mean min + avg, less where max is near";
    /// Rapid asymmetric maximum (Widodo et al. 2017).
    Ram = 11, "ram", keyed: false,
        "first byte as great as the maximum of a window at the start (RAM)",
        "the window, avg − 256; mean avg";
    /// Local maximum (Bjørner et al. 2010).
    Maxp = 12, "maxp", keyed: false,
        "local maximum of a symmetric window (MAXP)",
        "how far a maximum looks to each side, (avg − 1) / 2; mean avg";
    /// Monotone sequences with jumps (SeqCDC, Udayashankar et al. 2024).
    SeqCdc = 13, "seqcdc", keyed: false,
        "a rising sequence of bytes, with jumps over falling ones (SeqCDC)",
        "how far it jumps, unless jump_bytes is given; mean avg, or min + 873 where that is more";
    /// A rolling hash over GF(2), by carry-less multiplication: made for SIMD.
    Fold = 14, "fold", keyed: true,
        "GF(2) rolling hash made for SIMD, normalized chunk sizes; its key protects nothing",
        "signs looked at and, unless normal_bytes is given, the normal size; mean about 1.14 avg at level 2 with min = avg / 4";
    /// A universal hash and AES, then the mask (after Truong et al. 2025).
    Shield = 15, "shield", keyed: true,
        "universal hash and AES-128 of 64 bytes, normalized: cuts that hide the data (SECURITY.md)",
        "mask bits and, unless normal_bytes is given, the normal size; mean about 1.14 avg at level 2 with min = avg / 4";
    /// What the crate `fastcdc` cuts with its module `v2020`.
    FastCdcCrateV2020 = 64, "fastcdc-crate-v2020", keyed: false,
        "preset: cuts as the crate fastcdc does, module v2020",
        "mask bits and normal size, as that crate derives them";
    /// What the crate `gearhash` cuts with its default table.
    GearHash = 65, "gearhash", keyed: false,
        "preset: cuts as the crate gearhash does",
        "mask bits, from the top; mean a little above min + avg";
    /// What the Xet storage of Hugging Face cuts.
    Xet = 66, "xet", keyed: false,
        "preset: cuts as Xet storage does, 8 KiB, 64 KiB, 128 KiB",
        "mask bits, from the top; mean min + avg, less where max is near";
    /// What restic cuts.
    Restic = 67, "restic", keyed: false,
        "preset: cuts as restic does, 64-byte Rabin, 512 KiB, 1 MiB, 8 MiB",
        "mask bits; mean min + avg";
}

impl Algorithm {
    /// The algorithm called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::find(|info| info.name == name)
    }

    /// The algorithm with a stored number.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        Self::find(|info| info.id == id)
    }

    /// Its row in [`ALGORITHMS`].
    #[must_use]
    pub fn info(self) -> &'static AlgorithmInfo {
        // Both come from one list, in one order.
        &ALGORITHMS[self as usize]
    }

    /// Its name in commands, reports and Python.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// Its number in repositories.
    #[must_use]
    pub fn id(self) -> u16 {
        self.info().id
    }

    /// Whether a cut of it is judged by the bytes of one window, so that a single place can be
    /// judged alone ([`Chunker::is_cut_at`](crate::Chunker::is_cut_at)).
    #[must_use]
    pub fn judges_windows(self) -> bool {
        !matches!(
            self,
            Self::Fixed | Self::Ae | Self::Ae2 | Self::Ram | Self::Maxp | Self::SeqCdc
        )
    }

    fn find(matches: impl Fn(&AlgorithmInfo) -> bool) -> Option<Self> {
        let row = ALGORITHMS.iter().find(|info| matches(info))?;
        Some(row.algorithm)
    }
}

/// By name.
impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        Self::from_name(name).ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

/// There is no algorithm of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no algorithm called {0:?}; see ALGORITHMS for those there are")]
pub struct UnknownAlgorithm(pub String);

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{ALGORITHMS, Algorithm};

    /// What repositories hold: these never change.
    #[test]
    fn numbers_are_frozen() {
        let numbers: Vec<_> = ALGORITHMS.iter().map(|info| (info.id, info.name)).collect();
        let expected = [
            (1, "fastcdc"),
            (2, "fixed"),
            (3, "gear"),
            (4, "rabin"),
            (5, "rabin-nc"),
            (6, "adler"),
            (7, "crc32"),
            (8, "ae"),
            (9, "ae2"),
            (10, "tttd"),
            (11, "ram"),
            (12, "maxp"),
            (13, "seqcdc"),
            (14, "fold"),
            (15, "shield"),
            (64, "fastcdc-crate-v2020"),
            (65, "gearhash"),
            (66, "xet"),
            (67, "restic"),
        ];
        assert_eq!(numbers, expected);
        for info in ALGORITHMS {
            assert_eq!(info.algorithm.info(), info);
            assert_eq!(Algorithm::from_id(info.id), Some(info.algorithm));
            assert_eq!(info.name.parse(), Ok(info.algorithm));
            assert_eq!(info.algorithm.to_string(), info.name);
        }
    }

    #[test]
    fn names_and_numbers_are_distinct_and_unknown_ones_are_none() {
        for pair in ALGORITHMS.windows(2) {
            assert!(pair[0].id < pair[1].id);
        }
        for (index, info) in ALGORITHMS.iter().enumerate() {
            assert!(!ALGORITHMS[..index].iter().any(|row| row.name == info.name));
        }
        assert_eq!(Algorithm::from_name("FastCDC"), None);
        let error = "FastCDC".parse::<Algorithm>().expect_err("in lower case");
        assert!(error.to_string().contains("FastCDC"), "{error}");
        assert_eq!(Algorithm::from_name(""), None);
        assert_eq!(Algorithm::from_id(0), None);
        assert_eq!(Algorithm::from_id(u16::MAX), None);
    }
}

//! The chunking algorithms, listed once: names for people, numbers for repositories.
//!
//! Numbers are stored and never change meaning; a number that was given out is not used again.
//! What exactly each algorithm cuts stands in its module under `methods/`, and for programmers of
//! other languages in docs/format/chunkers.md.

use std::fmt;

/// A way to find cut points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Gear hashing with normalized chunking (FastCDC, Xia et al., Algorithm 2).
    FastCdc,
    /// Chunks of one size (FIXC in FastCDC §4.5).
    Fixed,
    /// Gear hashing judged by its low bits (GC; FastCDC, Algorithm 1).
    Gear,
    /// Rabin fingerprints as in LBFS (RC-v1 in FastCDC §4.5).
    Rabin,
    /// Rabin fingerprints with normalized chunking (RC-v2 and RC-v3; FastCDC, Algorithm 3).
    RabinNc,
    /// A rolling Adler checksum (P-Dedupe, Table 4).
    Adler,
    /// A rolling CRC-32 (Ni §2.3.3).
    Crc32,
    /// Asymmetric extremum (AE-v1 in FastCDC §4.5).
    Ae,
    /// Asymmetric extremum, optimized (AE-v2 in FastCDC §4.5).
    Ae2,
    /// Two thresholds, two divisors (Eshghi and Tang 2005).
    Tttd,
    /// Rapid asymmetric maximum (Widodo et al. 2017).
    Ram,
    /// Local maximum (Bjørner et al. 2010).
    Maxp,
    /// Monotone sequences with jumps (SeqCDC, Udayashankar et al. 2024).
    SeqCdc,
    /// What the crate `fastcdc` cuts with its module `v2020`.
    FastCdcCrateV2020,
    /// What the crate `gearhash` cuts with its default table.
    GearHash,
    /// What the Xet storage of Hugging Face cuts.
    Xet,
    /// What restic cuts.
    Restic,
}

/// What there is to know about an [`Algorithm`] without running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlgorithmInfo {
    /// The algorithm of this row.
    pub algorithm: Algorithm,
    /// Its name in commands, reports and Python.
    pub name: &'static str,
    /// Its number in repositories.
    pub id: u16,
    /// Whether a secret may decide its cut points, so that they do not tell what was cut.
    pub keyed: bool,
    /// One line for people who choose.
    pub summary: &'static str,
    /// What `avg_bytes` decides, and what the mean is then on random data.
    pub average: &'static str,
}

/// Every algorithm, in the order of their numbers. From 64 on: presets, which cut as other
/// programs do.
pub const ALGORITHMS: &[AlgorithmInfo] = &[
    AlgorithmInfo {
        algorithm: Algorithm::FastCdc,
        name: "fastcdc",
        id: 1,
        keyed: true,
        summary: "Gear hash, sub-minimum skipping, normalized chunk sizes (FastCDC 2020)",
        average: "mask bits and, unless normal_bytes is given, the normal size; mean about 1.14 avg at level 2 with min = avg / 4, min + avg at level 0",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Fixed,
        name: "fixed",
        id: 2,
        keyed: false,
        summary: "every chunk avg bytes long, whatever it holds (FIXC)",
        average: "the size of every chunk",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Gear,
        name: "gear",
        id: 3,
        keyed: true,
        summary: "Gear hash judged by its lowest bits, a window of 13 bytes at 8 KiB (GC)",
        average: "mask bits; mean min + avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Rabin,
        name: "rabin",
        id: 4,
        keyed: true,
        summary: "Rabin fingerprint of a sliding window, as in LBFS (RC-v1)",
        average: "divisor D; mean min + avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::RabinNc,
        name: "rabin-nc",
        id: 5,
        keyed: true,
        summary: "Rabin fingerprint with normalized chunk sizes (RC-v2, RC-v3)",
        average: "divisor D and, unless normal_bytes is given, the normal size; mean about 1.14 avg at level 2 with min = avg / 4",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Adler,
        name: "adler",
        id: 6,
        keyed: true,
        summary: "rolling Adler checksum of a sliding window (P-Dedupe)",
        average: "mask bits; mean min + avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Crc32,
        name: "crc32",
        id: 7,
        keyed: false,
        summary: "rolling CRC-32 of a sliding window (the base of SS-CDC)",
        average: "mask bits; mean min + avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Ae,
        name: "ae",
        id: 8,
        keyed: false,
        summary: "asymmetric extremum: the first maximum that a window does not exceed (AE-v1)",
        average: "the window, avg / (e − 1); mean 1.04 avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Ae2,
        name: "ae2",
        id: 9,
        keyed: false,
        summary: "asymmetric extremum behind the minimum, in a scrambled order (AE-v2)",
        average: "the window, (avg − min) / (e − 1); mean min + 1.04 (avg − min)",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Tttd,
        name: "tttd",
        id: 10,
        keyed: true,
        summary: "two thresholds, two divisors: a backup cut instead of the maximum (TTTD)",
        average: "mask bits of the main divisor; mean a little below min + avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Ram,
        name: "ram",
        id: 11,
        keyed: false,
        summary: "first byte as great as the maximum of a window at the start (RAM)",
        average: "the window, avg − 256; mean avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Maxp,
        name: "maxp",
        id: 12,
        keyed: false,
        summary: "local maximum of a symmetric window (MAXP)",
        average: "how far a maximum looks to each side, (avg − 1) / 2; mean avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::SeqCdc,
        name: "seqcdc",
        id: 13,
        keyed: false,
        summary: "a rising sequence of bytes, with jumps over falling ones (SeqCDC)",
        average: "how far it jumps, unless jump_bytes is given; mean avg, or min + 873 where that is more",
    },
    AlgorithmInfo {
        algorithm: Algorithm::FastCdcCrateV2020,
        name: "fastcdc-crate-v2020",
        id: 64,
        keyed: false,
        summary: "preset: cuts as the crate fastcdc does, module v2020",
        average: "mask bits and normal size, as that crate derives them",
    },
    AlgorithmInfo {
        algorithm: Algorithm::GearHash,
        name: "gearhash",
        id: 65,
        keyed: false,
        summary: "preset: cuts as the crate gearhash does",
        average: "mask bits, from the top; mean min + avg",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Xet,
        name: "xet",
        id: 66,
        keyed: false,
        summary: "preset: cuts as Xet storage does, 8 KiB, 64 KiB, 128 KiB",
        average: "mask bits, from the top; mean min + avg but for the near maximum",
    },
    AlgorithmInfo {
        algorithm: Algorithm::Restic,
        name: "restic",
        id: 67,
        keyed: false,
        summary: "preset: cuts as restic does, 64-byte Rabin, 512 KiB, 1 MiB, 8 MiB",
        average: "mask bits; mean min + avg",
    },
];

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
        ALGORITHMS
            .iter()
            .find(|info| info.algorithm == self)
            .expect("every algorithm has a row, as a test checks")
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

    fn find(matches: impl Fn(&AlgorithmInfo) -> bool) -> Option<Self> {
        let row = ALGORITHMS.iter().find(|info| matches(info))?;
        Some(row.algorithm)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{ALGORITHMS, Algorithm};

    /// One arm for each algorithm: a new one does not compile until it stands here, and then
    /// `every_algorithm_has_a_row` fails until it stands in the table.
    fn stored_number(algorithm: Algorithm) -> u16 {
        match algorithm {
            Algorithm::FastCdc => 1,
            Algorithm::Fixed => 2,
            Algorithm::Gear => 3,
            Algorithm::Rabin => 4,
            Algorithm::RabinNc => 5,
            Algorithm::Adler => 6,
            Algorithm::Crc32 => 7,
            Algorithm::Ae => 8,
            Algorithm::Ae2 => 9,
            Algorithm::Tttd => 10,
            Algorithm::Ram => 11,
            Algorithm::Maxp => 12,
            Algorithm::SeqCdc => 13,
            Algorithm::FastCdcCrateV2020 => 64,
            Algorithm::GearHash => 65,
            Algorithm::Xet => 66,
            Algorithm::Restic => 67,
        }
    }

    #[test]
    fn every_algorithm_has_a_row() {
        for number in (1..=13).chain(64..=67) {
            let algorithm = Algorithm::from_id(number).expect("a row");
            assert_eq!(stored_number(algorithm), number);
        }
        assert_eq!(ALGORITHMS.len(), 17);
        for info in ALGORITHMS {
            assert_eq!(info.id, stored_number(info.algorithm));
            assert_eq!(Algorithm::from_name(info.name), Some(info.algorithm));
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
        assert_eq!(Algorithm::from_name(""), None);
        assert_eq!(Algorithm::from_id(0), None);
        assert_eq!(Algorithm::from_id(u16::MAX), None);
    }
}

//! The chunking algorithms, listed once: names for people, numbers for repositories.
//!
//! Numbers are stored and never change meaning; a number that was given out is not used again.

use std::fmt;

/// A way to find cut points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Gear hashing with normalized chunking (FastCDC, Xia et al., Algorithm 2).
    FastCdc,
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
}

/// Every algorithm, in the order of their numbers.
pub const ALGORITHMS: &[AlgorithmInfo] = &[AlgorithmInfo {
    algorithm: Algorithm::FastCdc,
    name: "fastcdc",
    id: 1,
    keyed: true,
    summary: "Gear hash, sub-minimum skipping, normalized chunk sizes (FastCDC 2020)",
}];

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
        }
    }

    #[test]
    fn every_algorithm_has_a_row() {
        let all = [Algorithm::FastCdc];
        assert_eq!(all.len(), ALGORITHMS.len());
        for algorithm in all {
            let info = algorithm.info();
            assert_eq!(info.id, stored_number(algorithm));
            assert_eq!(Algorithm::from_name(info.name), Some(algorithm));
            assert_eq!(Algorithm::from_id(info.id), Some(algorithm));
            assert_eq!(algorithm.to_string(), algorithm.name());
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

//! Which of the chunks that resemble a chunk becomes its base.
//!
//! Enter: candidates in the order in which the index found them. Leaves: the same, the best first;
//! whoever asks takes the first that he can have.

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use super::index::Candidate;

/// A rule to choose a base by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BaseChoice {
    /// The first found: by the first super-feature that matches (Odess, §5.1, and Finesse).
    FirstFit,
    /// The newest.
    Latest,
    /// The one that shares most super-features; of several, the newest.
    #[default]
    Best,
    /// One in a container that is at hand already, if there is any; among these, and otherwise, the
    /// best.
    Near,
}

impl BaseChoice {
    /// Every rule.
    pub const ALL: [Self; 4] = [Self::FirstFit, Self::Latest, Self::Best, Self::Near];

    /// Its name in commands and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstFit => "first-fit",
            Self::Latest => "latest",
            Self::Best => "best",
            Self::Near => "near",
        }
    }

    /// Puts candidates into the order of preference. `is_near` says whether a chunk is at hand.
    pub fn sort(self, candidates: &mut [Candidate], is_near: impl Fn(&Candidate) -> bool) {
        let newest = |candidate: &Candidate| Reverse(candidate.number);
        let most = |candidate: &Candidate| (Reverse(candidate.shared), Reverse(candidate.number));
        match self {
            Self::FirstFit => {}
            Self::Latest => candidates.sort_by_key(newest),
            Self::Best => candidates.sort_by_key(most),
            Self::Near => {
                candidates.sort_by_cached_key(|candidate| (!is_near(candidate), most(candidate)))
            }
        }
    }
}

impl fmt::Display for BaseChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule {0:?} to choose a base by: first-fit, latest, best, near")]
pub struct UnknownBaseChoice(String);

impl FromStr for BaseChoice {
    type Err = UnknownBaseChoice;

    fn from_str(name: &str) -> Result<Self, UnknownBaseChoice> {
        let mut all = Self::ALL.into_iter();
        all.find(|choice| choice.name() == name)
            .ok_or_else(|| UnknownBaseChoice(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_order() {
        let candidates = [(4, 1), (9, 1), (2, 3), (7, 3)].map(|(number, shared)| Candidate {
            number,
            depth: 0,
            shared,
        });
        let order = |choice: BaseChoice| {
            let mut sorted = candidates;
            choice.sort(&mut sorted, |candidate| {
                candidate.number == 4 || candidate.number == 2
            });
            sorted.map(|candidate| candidate.number)
        };
        assert_eq!(order(BaseChoice::FirstFit), [4, 9, 2, 7]);
        assert_eq!(order(BaseChoice::Latest), [9, 7, 4, 2]);
        assert_eq!(order(BaseChoice::Best), [7, 2, 9, 4]);
        assert_eq!(order(BaseChoice::Near), [2, 4, 7, 9]);
        for choice in BaseChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert!("any".parse::<BaseChoice>().is_err());
    }
}

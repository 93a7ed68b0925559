//! What a paper says, and whether it holds here.
//!
//! Enters: the cases in which a claim was looked at. Leaves: a [`Claim`] with its verdict, which
//! holds when it does in every case, and the numbers.

use serde::Serialize;

/// Cases that are listed.
const LISTED: usize = 8;

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// In every case.
    Holds,
    /// In some case it does not.
    DoesNotHold,
    /// Nothing was measured that would tell.
    NotTested,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::NotTested => "not tested",
        }
    }
}

/// Something that a paper says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Where.
    pub source: &'static str,
    /// What, in short.
    pub claim: &'static str,
    /// Whether it holds.
    pub verdict: Verdict,
    /// The numbers.
    pub evidence: String,
}

/// One look at a claim: where, what came out, whether that is as claimed.
pub struct Case {
    pub place: String,
    pub value: String,
    pub holds: bool,
}

impl Case {
    /// One look.
    pub fn new(place: impl Into<String>, value: impl Into<String>, holds: bool) -> Self {
        Self {
            place: place.into(),
            value: value.into(),
            holds,
        }
    }
}

/// A claim that was looked at in these cases.
pub fn claim(source: &'static str, text: &'static str, cases: Vec<Case>) -> Claim {
    let failing = cases.iter().filter(|case| !case.holds).count();
    let verdict = match (cases.len(), failing) {
        (0, _) => Verdict::NotTested,
        (_, 0) => Verdict::Holds,
        _ => Verdict::DoesNotHold,
    };
    let total = cases.len();
    let mut listed: Vec<&Case> = cases.iter().collect();
    listed.sort_by_key(|case| case.holds);
    let mut words: Vec<String> = listed
        .iter()
        .take(LISTED)
        .map(|case| {
            let mark = if case.holds { "" } else { " ✗" };
            format!("{} {}{mark}", case.place, case.value)
        })
        .collect();
    if total > LISTED {
        words.push(format!("and {} more", total - LISTED));
    }
    let evidence = match (total, failing) {
        (0, _) => String::new(),
        (1, _) | (_, 0) => words.join("; "),
        _ => format!("{} of {total} cases: {}", total - failing, words.join("; ")),
    };
    Claim {
        source,
        claim: text,
        verdict,
        evidence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(holds: bool) -> Case {
        Case::new("TAR", "1×", holds)
    }

    #[test]
    fn a_claim_holds_when_it_does_everywhere() {
        assert_eq!(claim("", "", vec![]).verdict, Verdict::NotTested);
        let good = claim("", "", vec![case(true), case(true)]);
        assert_eq!(good.verdict, Verdict::Holds);
        assert_eq!(good.evidence, "TAR 1×; TAR 1×");
        let bad = claim("", "", vec![case(true), case(false)]);
        assert_eq!(bad.verdict, Verdict::DoesNotHold);
        assert_eq!(bad.evidence, "1 of 2 cases: TAR 1× ✗; TAR 1×");
        let many = claim("", "", (0..10).map(|_| case(true)).collect());
        assert!(many.evidence.ends_with("and 2 more"));
    }
}

//! What the paper says, and whether it holds here.
//!
//! A claim is looked at in every case that was measured: on each data set, at each expected size.
//! It holds when it does in all of them. "About n times" is taken for at least 80 % of n; "nearly
//! as much" for at least 98 %, "nearly the same" for a difference of at most 2 %: the paper's own
//! figures that it calls so differ by up to 1.55 %, WEB aside.
//!
//! Where speeds are compared, all run by the loops that papers print. FC* is listed beside them and
//! takes no part: RC, GC and AE have fastest loops of their own, which the paper's did not have.

mod sizes;
mod speeds;

use super::approaches::Approach;
use super::experiments::{Findings, SetFindings};
use crate::paper::claim::{Case, Claim, claim};
use crate::report::chunk_report::ResultReport;
use crate::units::short_bytes;

/// "Nearly": a difference of at most this share.
const NEARLY: f64 = 0.02;

/// Every claim that is looked at.
pub fn claims(findings: &Findings) -> Vec<Claim> {
    let mut claims = vec![
        sizes::random_is_exponential(findings),
        sizes::random_has_the_expected_mean(findings),
        sizes::short_chunks_of_random(findings),
        sizes::normalization_leaves_few_short(findings),
        sizes::fast_saves_as_rabin(findings),
        sizes::gear_saves_less(findings),
        sizes::fast_has_the_mean_of_rabin(findings),
    ];
    claims.extend(speeds::speeds_by_expected_size(findings));
    claims.push(speeds::two_bytes_cut_the_same(findings));
    claims.extend(speeds::least_sizes(findings));
    claims.extend(sizes::levels(findings));
    claims.extend(sizes::nine_approaches(findings));
    claims.extend(speeds::final_speeds(findings));
    claims.extend(speeds::counts(findings));
    claims
}

/// Cases of every given data set.
fn over_sets(findings: &Findings, look: impl Fn(&SetFindings) -> Vec<Case>) -> Vec<Case> {
    findings.given().flat_map(look).collect()
}

fn saved(result: &ResultReport) -> f64 {
    result.dedup_saved_percent.unwrap_or(0.0)
}

/// Two approaches on a data set.
fn pair<'a>(
    set: &'a SetFindings,
    first: &Approach,
    second: &Approach,
) -> Option<(&'a ResultReport, &'a ResultReport)> {
    Some((set.get(first)?, set.get(second)?))
}

/// As much saved, or but a little less.
fn nearly_case(place: String, pair: Option<(&ResultReport, &ResultReport)>) -> Option<Case> {
    let (first, second) = pair?;
    let (first, second) = (saved(first), saved(second));
    Some(Case {
        place,
        value: format!("{first:.2} / {second:.2} %"),
        holds: first >= second * (1.0 - NEARLY),
    })
}

fn size_name(set: &SetFindings, size: u32) -> String {
    format!("{} {}", set.name, short_bytes(u64::from(size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::claim::Verdict;

    #[test]
    fn without_data_nothing_is_tested() {
        for claim in claims(&Findings::default()) {
            assert_eq!(claim.verdict, Verdict::NotTested, "{}", claim.claim);
        }
    }
}

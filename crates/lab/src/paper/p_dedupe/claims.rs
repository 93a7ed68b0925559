//! What the P-Dedupe paper says of chunking, and whether it holds here.

use super::experiments::{BASELINE, MATH, WITH, WITHOUT};
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{Figure, SAVED};
use crate::units::short_bytes;

/// "Nearly the same dedup ratio": the paper's own differences with jointing are up to 0.05 points
/// with Rabin, 0.11 with Gear.
const NEARLY_POINTS: f64 = 0.11;
/// The paper's own counts agree with Eq. 8 by eye.
const ABOUT_SHARE: f64 = 0.35;

const TABLES: [&str; 3] = ["table3", "table5", "table6"];

/// Every claim that is looked at.
pub fn claims(figures: &[Figure]) -> Vec<Claim> {
    vec![
        claim(
            "Table 3, §4.3",
            "P-Dedupe with jointing saves nearly as much as sequential chunking (within 0.11 points)",
            near_cases(figures, "table3"),
        ),
        claim(
            "Tables 5 and 6, §4.4",
            "The same with Adler and Gear",
            TABLES[1..]
                .iter()
                .flat_map(|table| near_cases(figures, table))
                .collect(),
        ),
        claim(
            "Table 3, Fig. 9",
            "Jointing saves more than leaving segments as they are",
            jointing_cases(figures),
        ),
        claim(
            "Fig. 9, §4.2",
            "Without jointing, the larger the segments the more is saved",
            growing_cases(figures),
        ),
        claim(
            "Fig. 11, §4.2",
            "What is missed with jointing is about what Eq. 8 gives (within 35 %, or 0.01 points)",
            math_cases(figures),
        ),
        claim(
            "§3.3",
            "Less than 0.1 % of the bytes are dirty with segments of 1 MiB (random numbers)",
            dirty_cases(figures),
        ),
        claim(
            "§3.3, Eq. 8",
            "As many bytes a segment are dirty as Eq. 8 gives: 0.614 KB, not 0.6258 (within 35 %)",
            equation_cases(figures),
        ),
        claim(
            "§3.3",
            "22 % of borders are of cases 1 and 2, 4.9 % of case 2 (random numbers; within 1.5 points)",
            border_cases(figures),
        ),
        claim(
            "beyond the paper",
            "Half as many borders are of case 2, 2.45 %, and half as many bytes dirty: Z lies at least min behind Y (within 0.8 points and 35 %; segments up to 256 KiB)",
            half_cases(figures),
        ),
    ]
}

pub(super) fn of<'a>(
    figures: &'a [Figure],
    experiment: &'a str,
    approach: &'a str,
    metric: &'a str,
) -> impl Iterator<Item = &'a Figure> {
    figures.iter().filter(move |figure| {
        figure.experiment == experiment && figure.approach == approach && figure.metric == metric
    })
}

/// The figure of another approach at the same place.
pub(super) fn beside<'a>(
    figures: &'a [Figure],
    figure: &Figure,
    approach: &str,
) -> Option<&'a Figure> {
    figures.iter().find(|other| {
        other.approach == approach
            && other.experiment == figure.experiment
            && other.data_set == figure.data_set
            && other.metric == figure.metric
            && other.x == figure.x
    })
}

pub(super) fn place(figure: &Figure) -> String {
    match figure.x {
        Some(x) => format!("{} {}", figure.data_set, short_bytes(x as u64)),
        None => figure.data_set.clone(),
    }
}

fn near_cases(figures: &[Figure], table: &str) -> Vec<Case> {
    of(figures, table, WITH, SAVED)
        .filter_map(|with| {
            let baseline = beside(figures, with, BASELINE)?;
            let missed = baseline.ours - with.ours;
            let value = format!("{:.2} of {:.2} %", with.ours, baseline.ours);
            Some(Case::new(place(with), value, missed <= NEARLY_POINTS))
        })
        .collect()
}

fn jointing_cases(figures: &[Figure]) -> Vec<Case> {
    of(figures, "table3", WITH, SAVED)
        .filter_map(|with| {
            let without = beside(figures, with, WITHOUT)?;
            let value = format!("{:.2} against {:.2} %", with.ours, without.ours);
            Some(Case::new(place(with), value, with.ours >= without.ours))
        })
        .collect()
}

fn growing_cases(figures: &[Figure]) -> Vec<Case> {
    let normalized: Vec<&Figure> =
        of(figures, "fig9", WITHOUT, "normalized_ratio_percent").collect();
    normalized
        .windows(2)
        .filter(|pair| pair[0].data_set == pair[1].data_set)
        .map(|pair| {
            let value = format!("{:.3} → {:.3} %", pair[0].ours, pair[1].ours);
            Case::new(place(pair[1]), value, pair[1].ours >= pair[0].ours)
        })
        .collect()
}

fn math_cases(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig11", WITH, "missed_percent")
        .filter_map(|missed| {
            let math = beside(figures, missed, MATH)?;
            let value = format!("{:.4} against {:.4} %", missed.ours, math.ours);
            let difference = (missed.ours - math.ours).abs();
            let is_near = difference <= math.ours * ABOUT_SHARE || difference <= 0.01;
            Some(Case::new(place(missed), value, is_near))
        })
        .collect()
}

fn dirty_cases(figures: &[Figure]) -> Vec<Case> {
    of(figures, "eq8", WITH, "dirty_bytes_per_segment")
        .filter(|figure| figure.x == Some(f64::from(1 << 20)))
        .map(|figure| {
            let percent = 100.0 * figure.ours / f64::from(1 << 20);
            Case::new(place(figure), format!("{percent:.3} %"), percent < 0.1)
        })
        .collect()
}

fn equation_cases(figures: &[Figure]) -> Vec<Case> {
    of(figures, "eq8", WITH, "dirty_bytes_per_segment")
        .filter_map(|figure| {
            let math = beside(figures, figure, MATH)?;
            let value = format!("{:.0} B against {:.0}", figure.ours, math.ours);
            let is_near = (figure.ours / math.ours - 1.0).abs() <= ABOUT_SHARE;
            Some(Case::new(place(figure), value, is_near))
        })
        .collect()
}

/// P(O − Y > Z − Y − min, O − Y < min) of two exponential waits is p² / 2.
fn half_cases(figures: &[Figure]) -> Vec<Case> {
    of(figures, "eq8", "case 2", "borders_percent")
        .filter(|second| second.x <= Some(f64::from(256 << 10)))
        .filter_map(|second| {
            let metric = "dirty_bytes_per_segment";
            let find = |approach| of(figures, "eq8", approach, metric).find(|it| it.x == second.x);
            let share = find(WITH)?.ours / find(MATH)?.ours;
            let value = format!("{:.2} %, {share:.2} of Eq. 8", second.ours);
            let is_half = (share / 0.5 - 1.0).abs() <= ABOUT_SHARE;
            let is_near = (second.ours - 2.45).abs() <= 0.8;
            Some(Case::new(place(second), value, is_half && is_near))
        })
        .collect()
}

fn border_cases(figures: &[Figure]) -> Vec<Case> {
    let first = of(figures, "eq8", "case 1", "borders_percent");
    first
        .filter_map(|first| {
            let second = beside(figures, first, "case 2")?;
            let both = first.ours + second.ours;
            let is_near = (both - 22.12).abs() <= 1.5 && (second.ours - 4.9).abs() <= 1.5;
            let value = format!("{both:.1} %, {:.2} %", second.ours);
            Some(Case::new(place(first), value, is_near))
        })
        .collect()
}

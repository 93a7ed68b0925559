//! What the P-Dedupe paper says of whole systems, and whether it holds here.
//!
//! What it says of speed-ups is of four cores: it is looked at where so many were free, by the row
//! for nothing but computing.

use super::claims::{beside, of, place};
use super::experiments::{BASELINE, WITH, WITHOUT};
use super::published;
use super::whole::with_split;
use super::whole::{COMPUTED, CONTENDERS, GAIN, PAPERS_MACHINE, PIPELINE, SHARING, THROUGHPUT};
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{Figure, SAVED, SPEED_UP};
use crate::units::three_digits;

/// "Nearly the same": by eye.
const NEARLY_SHARE: f64 = 0.05;
/// "3 to 4 times", "about 4 times", "about 2 times".
const ABOUT_SHARE: f64 = 0.25;
/// As with chunking alone: the paper's own differences.
const NEARLY_POINTS: f64 = 0.11;

/// Every claim that is looked at; `computing` is the row that tells how many cores were free.
pub fn claims(figures: &[Figure], computing: &str) -> Vec<Claim> {
    let free = |figure: &Figure| {
        let rows = of(figures, figure.experiment, computing, SPEED_UP);
        let mut of_set = rows.filter(|row| row.data_set == figure.data_set);
        of_set.next().map_or(0.0, |row| row.ours)
    };
    let has_cores = |figure: &&Figure| free(figure) >= 0.9 * published::CORES;
    let mut claims = of_sizes(figures);
    claims.extend(of_speed_ups(figures, has_cores));
    claims.extend(of_equations(figures));
    claims
}

/// Figs. 10, 12 and 13.
fn of_sizes(figures: &[Figure]) -> Vec<Claim> {
    vec![
        claim(
            "Fig. 10, §4.2",
            "The larger the segments, the faster P-Dedupe (the largest against the smallest)",
            ends(figures, "fig10", WITH),
        ),
        claim(
            "Fig. 10, §4.2",
            "With jointing it is nearly as fast as without (within 5 %, over all segments)",
            jointing_cases(figures),
        ),
        claim(
            "Fig. 12, §4.2",
            "The larger the chunks, the less is saved",
            shrinking_cases(figures),
        ),
        claim(
            "Fig. 12, §4.2",
            "P-Dedupe saves nearly what the baseline saves, whatever the size of chunks (within 0.11 points)",
            near_cases(figures),
        ),
        claim(
            "Fig. 13, §4.2",
            "The larger the chunks, the faster both (the largest against the smallest)",
            [BASELINE, WITH]
                .into_iter()
                .flat_map(|approach| ends(figures, "fig13", approach))
                .collect(),
        ),
    ]
}

/// How many times as fast, where there are the cores for it.
fn of_speed_ups(figures: &[Figure], has_cores: impl Fn(&&Figure) -> bool + Copy) -> Vec<Claim> {
    vec![
        claim(
            "Fig. 13, §4.2",
            "P-Dedupe is 3 to 4 times as fast as the baseline, whatever the size of chunks (where four cores are free)",
            of(figures, "fig13", WITH, GAIN)
                .filter(has_cores)
                .map(three_to_four)
                .collect(),
        ),
        claim(
            "Fig. 14, Tables 5 and 6, §4.3, §4.4",
            "P-Dedupe is 3 to 4 times as fast as the baseline (the paper's threads, where four cores are free)",
            published_rows(figures)
                .filter(has_cores)
                .map(three_to_four)
                .collect(),
        ),
        claim(
            "Fig. 14, §4.3",
            "P-Dedupe is about twice as fast as the pipeline (within 25 %, where four cores are free)",
            published_rows(figures)
                .filter(|figure| figure.experiment == "fig14")
                .filter(has_cores)
                .filter_map(|figure| twice(figures, figure))
                .collect(),
        ),
    ]
}

/// What the equations give.
fn of_equations(figures: &[Figure]) -> Vec<Claim> {
    vec![
        claim(
            "§2.3, Eq. 4",
            "The baseline takes what its stages take together (within 5 %)",
            equation_cases(figures, "Eq. 4", NEARLY_SHARE),
        ),
        claim(
            "§2.2, §2.3, §4.3",
            "With the paper's own Tc, Tf and N = 4, Eq. 6 gives the paper's own throughput (within 25 %)",
            papers_cases(figures, ""),
        ),
        claim(
            "beyond the paper",
            "So it does when its four cores bound all threads together (within 25 %)",
            papers_cases(figures, SHARING),
        ),
        claim(
            "beyond the paper",
            "Eqs. 5 and 6 give what is measured when the cores that were free bound all threads (within 25 %)",
            ["Eq. 5", "Eq. 6"]
                .into_iter()
                .flat_map(|equation| {
                    equation_cases(figures, &format!("{equation}{SHARING}"), ABOUT_SHARE)
                })
                .collect(),
        ),
    ]
}

/// Speed at the end of an axis against its beginning.
fn ends(figures: &[Figure], experiment: &str, approach: &str) -> Vec<Case> {
    let rows: Vec<&Figure> = of(figures, experiment, approach, THROUGHPUT).collect();
    rows.chunk_by(|one, other| one.data_set == other.data_set)
        .filter_map(|of_set| {
            let (first, last) = (of_set.first()?, of_set.last()?);
            let [from, to] = [first, last].map(|figure| three_digits(figure.ours / 1e9));
            let value = format!("{approach} {from} → {to} GB/s");
            Some(Case::new(&first.data_set, value, last.ours >= first.ours))
        })
        .collect()
}

fn jointing_cases(figures: &[Figure]) -> Vec<Case> {
    let rows: Vec<&Figure> = of(figures, "fig10", WITH, THROUGHPUT).collect();
    rows.chunk_by(|one, other| one.data_set == other.data_set)
        .filter_map(|of_set| {
            let mut shares = Vec::new();
            for with in of_set {
                shares.push(with.ours / beside(figures, with, WITHOUT)?.ours);
            }
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            let is_near = (mean - 1.0).abs() <= NEARLY_SHARE;
            Some(Case::new(
                &of_set[0].data_set,
                format!("{mean:.3}"),
                is_near,
            ))
        })
        .collect()
}

fn shrinking_cases(figures: &[Figure]) -> Vec<Case> {
    let rows: Vec<&Figure> = of(figures, "fig12", BASELINE, SAVED).collect();
    rows.windows(2)
        .filter(|pair| pair[0].data_set == pair[1].data_set)
        .map(|pair| {
            let value = format!("{:.2} → {:.2} %", pair[0].ours, pair[1].ours);
            Case::new(place(pair[1]), value, pair[1].ours <= pair[0].ours)
        })
        .collect()
}

fn near_cases(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig12", WITH, SAVED)
        .filter_map(|with| {
            let missed = beside(figures, with, BASELINE)?.ours - with.ours;
            let value = format!("{missed:.3} points less");
            Some(Case::new(place(with), value, missed <= NEARLY_POINTS))
        })
        .collect()
}

/// Speed-ups with the threads of the paper.
fn published_rows(figures: &[Figure]) -> impl Iterator<Item = &Figure> {
    CONTENDERS.iter().flat_map(move |contender| {
        let approach = contender.published_approach();
        figures.iter().filter(move |figure| {
            figure.metric == GAIN
                && figure.experiment == contender.experiment
                && Some(&figure.approach) == approach.as_ref()
        })
    })
}

fn three_to_four(figure: &Figure) -> Case {
    let place = format!("{} {}", figure.experiment, place(figure));
    let holds = (3.0 * (1.0 - NEARLY_SHARE)..=4.0 * (1.0 + NEARLY_SHARE)).contains(&figure.ours);
    Case::new(place, format!("{:.2}×", figure.ours), holds)
}

fn twice(figures: &[Figure], with: &Figure) -> Option<Case> {
    let (_, suffix) = with.approach.split_once(" threads")?;
    let pipeline = beside(figures, with, &format!("{PIPELINE}{suffix}"))?;
    let times = with.ours / pipeline.ours;
    let is_near = (times / published::SPEED_UP_OF_PIPELINE - 1.0).abs() <= ABOUT_SHARE;
    Some(Case::new(&with.data_set, format!("{times:.2}×"), is_near))
}

/// What an equation gives beside what was measured, for approaches `label: equation, …`.
fn equation_cases(figures: &[Figure], equation: &str, tolerance: f64) -> Vec<Case> {
    let mut cases = Vec::new();
    for measured in figures.iter().filter(|figure| figure.experiment == "eq6") {
        let is_of = |(_, rest): (&str, &str)| {
            let rest = rest.strip_prefix(equation);
            rest.is_some_and(|rest| rest.starts_with(','))
        };
        if measured.metric != THROUGHPUT || !measured.approach.split_once(": ").is_some_and(is_of) {
            continue;
        }
        let computed = of(figures, "eq6", &measured.approach, COMPUTED);
        let of_set = computed.filter(|computed| computed.data_set == measured.data_set);
        for computed in of_set {
            let share = measured.ours / computed.ours;
            let place = format!("{} {}", measured.data_set, measured.approach);
            let is_near = (share - 1.0).abs() <= tolerance;
            cases.push(Case::new(place, format!("{share:.2} of it"), is_near));
        }
    }
    cases
}

fn papers_cases(figures: &[Figure], sharing: &str) -> Vec<Case> {
    let approach = with_split(&format!("Rabin: Eq. 6{sharing}"), published::SPLIT);
    let rows = of(figures, "eq6", &approach, COMPUTED);
    rows.filter(|row| row.data_set == PAPERS_MACHINE)
        .filter_map(|row| {
            let paper = row.paper?;
            let value = format!("{:.0} MB/s against {:.0}", row.ours / 1e6, paper / 1e6);
            let is_near = (row.ours / paper - 1.0).abs() <= ABOUT_SHARE;
            Some(Case::new("4 + 4 threads", value, is_near))
        })
        .collect()
}

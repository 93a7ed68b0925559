//! What Ni says of SS-CDC, and whether it holds here.

use chunking::Isa;

use super::dedup_loss::SFSS;
use super::invariance::APPROACHES;
use super::speeds::{LAZY, SS_CDC};
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{Figure, REDUCTION, SPEED_UP};
use crate::units::{bytes, short_bytes};

/// Every claim that is looked at.
pub fn claims(figures: &[Figure]) -> Vec<Claim> {
    vec![
        claim(
            "Table 2.1",
            "SS-CDC and MUCH cut exactly where sequential chunking does",
            invariant(figures, &["SS-CDC", "MUCH", "SS-CDC, lazy"], true),
        ),
        claim(
            "Table 2.1",
            "P-Dedupe and Shredder (segments by themselves) do not",
            invariant(figures, &["P-Dedupe", "Shredder"], false),
        ),
        claim(
            "Fig. 2.1",
            "Segments of 1 MB lower the dedup ratio by 6 to 25 % (4, 8 and 12 KB)",
            losses(figures),
        ),
        claim(
            "Fig. 2.5",
            "SS-CDC is at least 3 times as fast as sequential CRC-32 on one core with AVX-512",
            one_core(figures, 3.0),
        ),
        claim(
            "Fig. 2.6",
            "The gain falls with the least size, and is still about 2.5 times at 8 KB (at least 2)",
            by_min(figures, SS_CDC),
        ),
        claim(
            "beyond the paper",
            "Skipping inside of SIMD (the lazy form) gains at least as much as marking everything, at 8 KB (at least 95 %)",
            lazy_gains(figures),
        ),
        claim(
            "Figs. 2.7 and 2.8",
            "SS-CDC on several threads gains more than their number",
            superlinear(figures),
        ),
        claim(
            "Fig. 2.8",
            "A file a thread gains at least as much as a file on all (at least 95 % of SFMS)",
            files_scale_better(figures),
        ),
        claim(
            "§2.3.3",
            "The second stage takes about 2 % of the time (at most 4 %)",
            stage_two(figures),
        ),
        claim(
            "Fig. 2.9",
            "The larger the segments, the less dedup ratio is lost",
            falling(figures),
        ),
        claim(
            "Fig. 2.10 (a)",
            "A larger least size loses more (8 KiB against 1 KiB)",
            varied(figures, "least size"),
        ),
        claim(
            "Fig. 2.10 (b)",
            "A larger expected size loses more (32 KiB against 4 KiB)",
            varied(figures, "expected size"),
        ),
        claim(
            "Fig. 2.10 (c)",
            "A larger greatest size loses more (256 KiB against 32 KiB)",
            varied(figures, "greatest size"),
        ),
    ]
}

fn of<'a>(
    figures: &'a [Figure],
    experiment: &'a str,
    metric: &'a str,
) -> impl Iterator<Item = &'a Figure> {
    figures
        .iter()
        .filter(move |figure| figure.experiment == experiment && figure.metric == metric)
}

/// Cut lists of an approach over all data: how many there are, how many differ.
fn lists(figures: &[Figure], approach: &str) -> (f64, f64) {
    let sum = |metric| {
        let all = of(figures, "table2.1", metric);
        let of_approach = all.filter(|figure| figure.approach == approach);
        of_approach.map(|figure| figure.ours).sum::<f64>()
    };
    (sum("cut_lists"), sum("cut_lists_different"))
}

/// One list that differs, on any data, and an approach is not invariant.
fn invariant(figures: &[Figure], approaches: &[&str], is_expected: bool) -> Vec<Case> {
    debug_assert!(approaches.iter().all(|name| APPROACHES.contains(name)));
    approaches
        .iter()
        .filter_map(|approach| {
            let (all, different) = lists(figures, approach);
            let value = format!("{different} of {all} lists differ");
            let holds = (different == 0.0) == is_expected;
            (all > 0.0).then(|| Case::new(*approach, value, holds))
        })
        .collect()
}

fn losses(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig2.1", REDUCTION)
        .filter(|figure| figure.approach == SFSS)
        .map(|figure| {
            let value = format!("{:.1} %", figure.ours);
            let holds = (6.0..=25.0).contains(&figure.ours);
            Case::new(&figure.data_set, value, holds)
        })
        .collect()
}

fn one_core(figures: &[Figure], least: f64) -> Vec<Case> {
    let approach = format!("crc32, {SS_CDC} {}", Isa::Avx512);
    of(figures, "fig2.5", SPEED_UP)
        .filter(|figure| figure.approach == approach)
        .map(|figure| {
            let value = format!("{:.2}×", figure.ours);
            Case::new(&figure.data_set, value, figure.ours >= least)
        })
        .collect()
}

/// Figures of Fig. 2.6 at two least sizes.
fn by_min(figures: &[Figure], approach: &str) -> Vec<Case> {
    let at = |min: f64| {
        of(figures, "fig2.6", SPEED_UP)
            .filter(move |figure| figure.x == Some(min) && figure.approach == approach)
    };
    at(8192.0)
        .filter_map(|large| {
            let small = at(1024.0).find(|small| small.data_set == large.data_set)?;
            let value = format!("{:.2}× → {:.2}×", small.ours, large.ours);
            let holds = large.ours < small.ours && large.ours >= 2.0;
            Some(Case::new(&large.data_set, value, holds))
        })
        .collect()
}

fn lazy_gains(figures: &[Figure]) -> Vec<Case> {
    let at = |approach: &'static str| {
        of(figures, "fig2.6", SPEED_UP)
            .filter(move |figure| figure.x == Some(8192.0) && figure.approach == approach)
    };
    at(LAZY)
        .filter_map(|lazy| {
            let eager = at(SS_CDC).find(|eager| eager.data_set == lazy.data_set)?;
            let value = format!("{:.2}× against {:.2}×", lazy.ours, eager.ours);
            let holds = lazy.ours >= 0.95 * eager.ours;
            Some(Case::new(&lazy.data_set, value, holds))
        })
        .collect()
}

fn superlinear(figures: &[Figure]) -> Vec<Case> {
    let cases = [("fig2.7", "SFMS"), ("fig2.8", "MFMS")];
    cases
        .iter()
        .flat_map(|(experiment, approach)| {
            of(figures, experiment, SPEED_UP).filter(move |figure| figure.approach == *approach)
        })
        .filter_map(|figure| {
            let threads = figure.x.filter(|threads| *threads > 1.0)?;
            let value = format!("{:.2}× on {threads} threads", figure.ours);
            let place = format!("{} {}", figure.data_set, figure.approach);
            Some(Case::new(place, value, figure.ours > threads))
        })
        .collect()
}

fn files_scale_better(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig2.8", SPEED_UP)
        .filter(|figure| figure.approach == "MFMS" && figure.x > Some(1.0))
        .filter_map(|many| {
            let one = of(figures, "fig2.7", SPEED_UP).find(|one| {
                one.approach == "SFMS" && one.data_set == many.data_set && one.x == many.x
            })?;
            let value = format!("{:.2}× against {:.2}×", many.ours, one.ours);
            let holds = many.ours >= 0.95 * one.ours;
            Some(Case::new(&many.data_set, value, holds))
        })
        .collect()
}

fn stage_two(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig2.7", "stage_two_percent")
        .map(|figure| {
            let value = format!("{:.2} %", figure.ours);
            Case::new(&figure.data_set, value, figure.ours <= 4.0)
        })
        .collect()
}

fn falling(figures: &[Figure]) -> Vec<Case> {
    let losses: Vec<&Figure> = of(figures, "fig2.9", REDUCTION)
        .filter(|figure| figure.approach == SFSS)
        .collect();
    losses
        .windows(2)
        .filter(|pair| pair[0].data_set == pair[1].data_set)
        .map(|pair| {
            let value = format!("{:.2} → {:.2} %", pair[0].ours, pair[1].ours);
            let segment = bytes(pair[1].x.unwrap_or(0.0) as u64);
            let place = format!("{} {segment}", pair[1].data_set);
            Case::new(place, value, pair[1].ours <= pair[0].ours)
        })
        .collect()
}

fn varied(figures: &[Figure], what: &str) -> Vec<Case> {
    let losses: Vec<&Figure> = of(figures, "fig2.10", REDUCTION)
        .filter(|figure| figure.approach == what)
        .collect();
    let mut cases = Vec::new();
    for of_set in losses.chunk_by(|a, b| a.data_set == b.data_set) {
        let (Some(first), Some(last)) = (of_set.first(), of_set.last()) else {
            continue;
        };
        let value = format!("{:.2} → {:.2} %", first.ours, last.ours);
        let size = short_bytes(last.x.unwrap_or(0.0) as u64);
        let place = format!("{} {size}", last.data_set);
        cases.push(Case::new(place, value, last.ours > first.ours));
    }
    cases
}

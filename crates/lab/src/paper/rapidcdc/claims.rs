//! What Ni says of RapidCDC, and whether it holds here.

use super::experiments::{INSERTS, REGULAR};
use super::real::FIXED;
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{Figure, RATIO, SPEED_UP};

/// "About" for speed-ups.
const ABOUT_SHARE: f64 = 0.25;
/// "The same dedup ratio".
const SAME_SHARE: f64 = 0.001;

const CHECKED: [&str; 3] = ["FF+RWT", "FF+MT", "FF+RWT+FPT"];
/// The stricter ones, of which the issue of history is asked.
const STRICT: [&str; 2] = ["FF+RWT", "FF+RWT+FPT"];

/// Every claim that is looked at.
pub fn claims(figures: &[Figure]) -> Vec<Claim> {
    let mut claims = synthetic(figures);
    claims.extend(real(figures));
    claims
}

fn synthetic(figures: &[Figure]) -> Vec<Claim> {
    vec![
        claim(
            "Fig. 3.7, §3.4.4",
            "FF is about as much faster as the dedup ratio is high (inserts and deletes, within 25 %)",
            follows_ratio(figures, "fig3.7"),
        ),
        claim(
            "Fig. 3.7",
            "FF is the fastest criterion",
            ff_is_fastest(figures, "fig3.7"),
        ),
        claim(
            "Fig. 3.7",
            "All but FF have the dedup ratio of regular CDC",
            same_ratio(figures, "fig3.7", &CHECKED),
        ),
        claim(
            "Fig. 3.7",
            "FF+RWT and FF+RWT+FPT have the dedup ratio of regular CDC",
            same_ratio(figures, "fig3.7", &STRICT),
        ),
        claim(
            "Fig. 3.8",
            "FF gains about as much wherever 1000 edits lie (within 25 % of all of the file)",
            whatever_the_part(figures),
        ),
        claim(
            "Fig. 3.9",
            "A larger least size changes the gain of FF little (within 25 % of that at 2 KiB)",
            whatever_the_min(figures),
        ),
        claim(
            "Fig. 3.10",
            "With Gear, FF gains a little less than with Rabin (75 to 100 %)",
            gear_gains_less(figures),
        ),
        claim(
            "Fig. 3.11",
            "When all hints are refused, chunking is less than 10 % slower",
            worst_case(figures),
        ),
    ]
}

fn real(figures: &[Figure]) -> Vec<Claim> {
    vec![
        claim(
            "Fig. 3.1, §3.1",
            "Chunking is over 60 % of the processor's time in regular CDC",
            chunking_share(figures),
        ),
        claim(
            "Fig. 3.2, §3.2",
            "The majority of duplicate chunks are in LQ sequences; up to 10 % of all chunks are isolated",
            locality(figures),
        ),
        claim(
            "Fig. 3.12",
            "FF loses no dedup ratio on real data",
            same_ratio(figures, "fig3.12", &["FF"]),
        ),
        claim(
            "Fig. 3.12",
            "FF+RWT and FF+RWT+FPT lose no dedup ratio on real data",
            same_ratio(figures, "fig3.12", &STRICT),
        ),
        claim(
            "Fig. 3.12",
            "FF has a speed-up close to the dedup ratio (within 25 %)",
            follows_ratio(figures, "fig3.12"),
        ),
        claim(
            "Fig. 3.13",
            "The first place of a list has by far the most hits (over 90 % of all)",
            first_place(figures),
        ),
        claim(
            "Fig. 3.14",
            "Longer lists than one make FF+RWT no slower (at least 97 %)",
            longer_lists(figures),
        ),
        claim(
            "Fig. 3.15",
            "Chunking and fingerprints together are about twice as fast with FF (1.5 to 2.5)",
            processor(figures),
        ),
        claim(
            "Fig. 3.16 (d)",
            "Fixed-size chunking saves less than RapidCDC",
            fixed_saves_less(figures),
        ),
    ]
}

fn of<'a>(
    figures: &'a [Figure],
    experiment: &'a str,
    metric: &'a str,
    approach: &'a str,
) -> impl Iterator<Item = &'a Figure> {
    figures.iter().filter(move |figure| {
        figure.experiment == experiment && figure.metric == metric && figure.approach == approach
    })
}

/// Another figure at the same place.
fn beside<'a>(
    figures: &'a [Figure],
    figure: &Figure,
    metric: &str,
    approach: &str,
) -> Option<&'a Figure> {
    figures.iter().find(|other| {
        other.experiment == figure.experiment
            && other.data_set == figure.data_set
            && other.x == figure.x
            && other.metric == metric
            && other.approach == approach
    })
}

fn place(figure: &Figure) -> String {
    match figure.x {
        Some(x) => format!("{} {x}", figure.data_set),
        None => figure.data_set.clone(),
    }
}

fn follows_ratio(figures: &[Figure], experiment: &str) -> Vec<Case> {
    of(figures, experiment, SPEED_UP, "FF")
        .filter(|figure| experiment != "fig3.7" || figure.data_set == INSERTS)
        .filter_map(|speed_up| {
            let ratio = beside(figures, speed_up, RATIO, "FF")?;
            let value = format!("{:.2}× of {:.2}", speed_up.ours, ratio.ours);
            let is_near = (speed_up.ours / ratio.ours - 1.0).abs() <= ABOUT_SHARE;
            Some(Case::new(place(speed_up), value, is_near))
        })
        .collect()
}

fn ff_is_fastest(figures: &[Figure], experiment: &str) -> Vec<Case> {
    of(figures, experiment, SPEED_UP, "FF")
        .map(|ff| {
            let others = CHECKED
                .iter()
                .filter_map(|name| beside(figures, ff, SPEED_UP, name));
            let best = others.map(|figure| figure.ours).fold(0.0, f64::max);
            let value = format!("{:.2}× against {best:.2}×", ff.ours);
            Case::new(place(ff), value, ff.ours >= best)
        })
        .collect()
}

fn same_ratio(figures: &[Figure], experiment: &str, criteria: &[&str]) -> Vec<Case> {
    let of_criterion = |criterion: &&str| -> Vec<Case> {
        of(figures, experiment, RATIO, criterion)
            .filter_map(|figure| {
                let regular = beside(figures, figure, RATIO, REGULAR)?;
                let change = figure.ours / regular.ours - 1.0;
                let value = format!("{:+.2} %", 100.0 * change);
                let place = format!("{} {criterion}", place(figure));
                Some(Case::new(place, value, change >= -SAME_SHARE))
            })
            .collect()
    };
    criteria.iter().flat_map(of_criterion).collect()
}

/// Whether figures over an axis are near the one at a place of it.
fn near_one(figures: &[Figure], experiment: &str, x: f64) -> Vec<Case> {
    let Some(one) = of(figures, experiment, SPEED_UP, "FF").find(|figure| figure.x == Some(x))
    else {
        return Vec::new();
    };
    of(figures, experiment, SPEED_UP, "FF")
        .filter(|figure| figure.x != Some(x))
        .map(|figure| {
            let is_near = (figure.ours / one.ours - 1.0).abs() <= ABOUT_SHARE;
            let value = format!("{:.2}× against {:.2}×", figure.ours, one.ours);
            Case::new(place(figure), value, is_near)
        })
        .collect()
}

fn whatever_the_part(figures: &[Figure]) -> Vec<Case> {
    near_one(figures, "fig3.8", 100.0)
}

fn whatever_the_min(figures: &[Figure]) -> Vec<Case> {
    near_one(figures, "fig3.9", 2048.0)
}

fn gear_gains_less(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig3.10", SPEED_UP, "FF")
        .filter_map(|gear| {
            let mut rabin = of(figures, "fig3.7", SPEED_UP, "FF");
            let rabin = rabin.find(|rabin| rabin.x == gear.x && rabin.data_set == gear.data_set)?;
            let share = gear.ours / rabin.ours;
            let value = format!("{:.2}× against {:.2}×", gear.ours, rabin.ours);
            Some(Case::new(place(gear), value, (0.75..=1.0).contains(&share)))
        })
        .collect()
}

fn worst_case(figures: &[Figure]) -> Vec<Case> {
    CHECKED
        .iter()
        .flat_map(|name| of(figures, "fig3.11", "slow_down_percent", name))
        .map(|figure| {
            let value = format!("{:.1} %", figure.ours);
            let place = format!("{} {}", place(figure), figure.approach);
            Case::new(place, value, figure.ours < 10.0)
        })
        .collect()
}

fn chunking_share(figures: &[Figure]) -> Vec<Case> {
    let approach = format!("{REGULAR}, NVMe SSD");
    of(figures, "fig3.1", "chunking_percent", &approach)
        .filter_map(|chunking| {
            let fingerprints = beside(figures, chunking, "fingerprint_percent", &approach)?;
            let share = 100.0 * chunking.ours / (chunking.ours + fingerprints.ours);
            let value = format!("{share:.0} %");
            Some(Case::new(place(chunking), value, share > 60.0))
        })
        .collect()
}

fn locality(figures: &[Figure]) -> Vec<Case> {
    let metric = "duplicate_chunks_percent";
    of(figures, "fig3.2", metric, "all duplicates")
        .filter_map(|all| {
            let sequences = beside(figures, all, metric, "in LQ sequences")?;
            let is_most = sequences.ours >= all.ours / 2.0;
            let value = format!("{:.1} of {:.1} %", sequences.ours, all.ours);
            let is_near = all.ours - sequences.ours <= 10.0;
            Some(Case::new(
                format!("{} files", place(all)),
                value,
                is_most && is_near,
            ))
        })
        .filter(|case| !case.value.ends_with("of 0.0 %"))
        .collect()
}

fn first_place(figures: &[Figure]) -> Vec<Case> {
    let hits = figures
        .iter()
        .filter(|figure| figure.experiment == "fig3.13");
    let first = hits.clone().filter(|figure| figure.x == Some(1.0));
    first
        .map(|first| {
            let of_set = hits
                .clone()
                .filter(|figure| figure.data_set == first.data_set);
            let all: f64 = of_set.map(|figure| figure.ours).sum();
            let value = format!("{:.2} of {all:.2} %", first.ours);
            Case::new(&first.data_set, value, first.ours > 0.9 * all)
        })
        .collect()
}

fn longer_lists(figures: &[Figure]) -> Vec<Case> {
    let of_length = |length: f64| {
        of(figures, "fig3.14", SPEED_UP, "FF+RWT").filter(move |figure| figure.x == Some(length))
    };
    of_length(1.0)
        .filter_map(|one| {
            let two = of_length(2.0).find(|two| two.data_set == one.data_set)?;
            let value = format!("{:.2}× → {:.2}×", one.ours, two.ours);
            let is_no_slower = two.ours >= 0.97 * one.ours;
            Some(Case::new(&one.data_set, value, is_no_slower))
        })
        .collect()
}

fn processor(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig3.15", SPEED_UP, "FF")
        .map(|figure| {
            let value = format!("{:.2}×", figure.ours);
            let is_near = (1.5..=2.5).contains(&figure.ours);
            Case::new(place(figure), value, is_near)
        })
        .collect()
}

fn fixed_saves_less(figures: &[Figure]) -> Vec<Case> {
    of(figures, "fig3.16", RATIO, FIXED)
        .filter_map(|fixed| {
            let rapid = beside(figures, fixed, RATIO, "RapidCDC, FF")?;
            let value = format!("{:.2} against {:.2}", fixed.ours, rapid.ours);
            Some(Case::new(place(fixed), value, fixed.ours <= rapid.ours))
        })
        .collect()
}

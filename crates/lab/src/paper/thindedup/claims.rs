//! What the ThinDedup paper says, and whether it holds here.

use super::bench::{COW, MAPPING_ONLY, ORDERED, RAM, THIN};
use super::experiments::{
    EXPLICIT, LATENCY, METADATA_OF_ORDERED, OF_ORDERED, PATH_RATE, WHOLE_RATE,
};
use super::published::{AVOIDED_AT_16_PERCENT, GAINS, LATENCY_CUT_PERCENT, SSD};
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{Figure, Metric};

/// What “close to” is.
const CLOSE: f64 = 0.9;
/// What “almost all” leaves over, of 100.
const FEW_PERCENT: f64 = 5.0;

/// Every claim that is looked at.
pub fn claims(figures: &[Figure]) -> Vec<Claim> {
    let figures = Figures(figures);
    let mut claims = figures.synthetic();
    claims.extend(figures.over_ratios());
    claims.extend(figures.of_traces());
    claims
}

struct Figures<'a>(&'a [Figure]);

fn x_of(figure: &Figure) -> f64 {
    figure.x.unwrap_or(0.0)
}

fn place(figure: &Figure) -> String {
    match figure.x {
        Some(x) => format!("{} at {x}", figure.data_set),
        None => figure.data_set.clone(),
    }
}

fn text(figure: &Figure) -> String {
    Metric::named(figure.metric).text(figure.ours)
}

impl<'a> Figures<'a> {
    fn of(
        &self,
        experiment: &'a str,
        approach: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a Figure> + use<'a> {
        self.0.iter().filter(move |figure| {
            figure.experiment == experiment
                && figure.approach == approach
                && figure.metric == metric
        })
    }

    /// Those of `thin` with several windows.
    fn of_windows(
        &self,
        experiment: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a Figure> + use<'a> {
        let all = self.0.iter();
        all.filter(move |figure| figure.experiment == experiment && figure.metric == metric)
    }

    /// The figure of another approach at the same place.
    fn beside(&self, figure: &Figure, approach: &str) -> Option<&'a Figure> {
        let is_it = |other: &&Figure| {
            other.approach == approach
                && other.experiment == figure.experiment
                && other.data_set == figure.data_set
                && other.metric == figure.metric
                && other.x == figure.x
        };
        self.0.iter().find(is_it)
    }

    /// The same figure at another place of the axis.
    fn at(&self, figure: &Figure, x: f64) -> Option<&'a Figure> {
        let is_it = |other: &&Figure| {
            other.approach == figure.approach
                && other.experiment == figure.experiment
                && other.data_set == figure.data_set
                && other.metric == figure.metric
                && other.x == Some(x)
        };
        self.0.iter().find(is_it)
    }

    /// Where each is beside others of the same place.
    fn against(
        &self,
        of: impl Iterator<Item = &'a Figure>,
        others: &[&str],
        holds: impl Fn(f64, f64) -> bool,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        for figure in of {
            for other in others.iter().filter_map(|other| self.beside(figure, other)) {
                let value = format!("{} to {} ({})", text(figure), text(other), other.approach);
                cases.push(Case::new(
                    place(figure),
                    value,
                    holds(figure.ours, other.ours),
                ));
            }
        }
        cases
    }

    fn each(
        &self,
        of: impl Iterator<Item = &'a Figure>,
        holds: impl Fn(&Figure) -> bool,
    ) -> Vec<Case> {
        of.map(|figure| Case::new(place(figure), text(figure), holds(figure)))
            .collect()
    }

    fn synthetic(&self) -> Vec<Claim> {
        let flushes = "path_flushes_per_window";
        let thin = self.of("counts", THIN.name, flushes);
        let ordered = self.of("counts", ORDERED.name, flushes);
        let metadata = self.of("counts", THIN.name, METADATA_OF_ORDERED);
        let with_commits = || self.of("fig5.3", THIN.name, WHOLE_RATE);
        let is_ssd = |figure: &&Figure| figure.data_set.ends_with(SSD.name);
        let on_ssd = self.of("fig5.3", THIN.name, PATH_RATE).filter(is_ssd);
        vec![
            claim(
                "§5.2.1",
                "ThinDedup needs one flush a window",
                self.each(thin, |figure| figure.ours == 1.0),
            ),
            claim(
                "§5.3.1",
                "OrderedWrites needs two",
                // Where a page has no place yet, a commit takes the place of the second one.
                self.each(ordered, |figure| (figure.ours - 2.0).abs() < 0.01),
            ),
            claim(
                "§5.3.2",
                "From windows of 32 blocks on, ThinDedup writes at most 5 % of OrderedWrites' metadata blocks in the path of writes",
                self.each(metadata.filter(|figure| x_of(figure) >= 32.0), |figure| {
                    figure.ours <= FEW_PERCENT
                }),
            ),
            claim(
                "Fig. 5.3",
                "ThinDedup is faster than OrderedWrites and Dmdedup, commits included",
                self.against(
                    with_commits(),
                    &[ORDERED.name, MAPPING_ONLY.name, COW.name],
                    |thin, other| thin > other,
                ),
            ),
            claim(
                "Fig. 5.3",
                "It gains more over OrderedWrites with random writes than with sequential ones",
                self.random_gains(),
            ),
            claim(
                "Fig. 5.3",
                "Dmdedup has the lowest throughput",
                self.against(
                    self.of("fig5.3", COW.name, PATH_RATE),
                    &[THIN.name, ORDERED.name, RAM.name],
                    |cow, other| cow < other,
                ),
            ),
            claim(
                "Fig. 5.3",
                "On the SSD ThinDedup is close to Ideal",
                self.against(on_ssd, &[RAM.name], |thin, ram| thin >= CLOSE * ram),
            ),
            claim(
                "Fig. 5.4",
                "ThinDedup's latency is below that of OrderedWrites (80th percentile)",
                self.against(
                    self.of("fig5.4", THIN.name, LATENCY)
                        .filter(|figure| x_of(figure) == 80.0),
                    &[ORDERED.name],
                    |thin, ordered| thin < ordered,
                ),
            ),
            claim(
                "§5.4",
                "At no less throughput the latency is up to 88 % less",
                self.greatest_cut(),
            ),
        ]
    }

    fn random_gains(&self) -> Vec<Case> {
        let all = self.of("fig5.3", THIN.name, OF_ORDERED);
        let random = all.filter(|figure| figure.data_set.starts_with("random"));
        random
            .filter_map(|figure| {
                let set = figure.data_set.replacen("random", "sequential", 1);
                let mut others = self.of("fig5.3", THIN.name, OF_ORDERED);
                let other = others.find(|other| other.data_set == set && other.x == figure.x)?;
                let value = format!("{} to {}", text(figure), text(other));
                Some(Case::new(place(figure), value, figure.ours > other.ours))
            })
            .collect()
    }

    fn greatest_cut(&self) -> Vec<Case> {
        let all = self.of("latency", "thin for ordered", "latency_cut_percent");
        let greatest = all.max_by(|one, other| one.ours.total_cmp(&other.ours));
        self.each(greatest.into_iter(), |figure| {
            figure.ours >= LATENCY_CUT_PERCENT - 0.5
        })
    }

    fn over_ratios(&self) -> Vec<Claim> {
        let growth = |approach: &'static str, holds: fn(f64) -> bool| -> Vec<Case> {
            let at_one = self.of("fig5.6", approach, PATH_RATE);
            at_one
                .filter(|figure| x_of(figure) == 1.0)
                .filter_map(|figure| {
                    let times = self.at(figure, 8.0)?.ours / figure.ours;
                    let place = format!("{} {approach}", figure.data_set);
                    Some(Case::new(place, format!("{times:.2}×"), holds(times)))
                })
                .collect()
        };
        let mut others = growth(ORDERED.name, |times| times < 1.0 / CLOSE);
        others.extend(growth(COW.name, |times| times < 1.0 / CLOSE));
        let explicit = self.of_windows("fig5.7", EXPLICIT);
        let is_easy = |figure: &&Figure| {
            x_of(figure) == 2.0 || (figure.approach.ends_with(" 32") && x_of(figure) <= 4.0)
        };
        let full = self
            .of_windows("fig5.8", PATH_RATE)
            .filter(|figure| x_of(figure) == 40.0 && !figure.approach.ends_with(" 8"));
        let full = full.filter_map(|figure| {
            let best = self.at(figure, 100.0)?;
            let place = format!("{}, {}", figure.data_set, figure.approach);
            let value = format!("{} of {}", text(figure), text(best));
            Some(Case::new(place, value, figure.ours >= CLOSE * best.ours))
        });
        vec![
            claim(
                "Fig. 5.6",
                "More duplicates do not make OrderedWrites and Dmdedup faster (ratio 8 to 1)",
                others,
            ),
            claim(
                "Fig. 5.6",
                "They make Ideal faster",
                growth(RAM.name, |times| times > 1.0),
            ),
            claim(
                "Fig. 5.7",
                "At a dedup ratio of 2, or with large windows (32, up to a ratio of 4), over 95 % of metadata blocks are saved",
                self.each(explicit.filter(is_easy), |figure| figure.ours < FEW_PERCENT),
            ),
            claim(
                "Fig. 5.8",
                "With windows of 16 and 32, 40 % of blocks that compress give the full benefit",
                full.collect(),
            ),
        ]
    }

    fn of_traces(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        let texts = [
            "FIU's days on the hard disk: ThinDedup gains 19 % and more over OrderedWrites",
            "FIU's days on the SSD: 7 % and more",
            "Microsoft's traces on the hard disk: 88 % and more",
            "Microsoft's traces on the SSD: 58 % and more",
        ];
        for ((experiment, [least, _]), words) in GAINS.iter().zip(texts) {
            let all = self.of(experiment, THIN.name, OF_ORDERED);
            let gains = all.map(|figure| {
                let gain = 100.0 * (figure.ours - 1.0);
                Case::new(place(figure), format!("{gain:.0} %"), gain >= *least)
            });
            claims.push(claim("§5.3.3", words, gains.collect()));
        }
        let avoided = self.of("fig5.10", THIN.name, EXPLICIT);
        let avoided = avoided.filter(|figure| figure.data_set.contains("Mail-2"));
        let avoided = avoided.map(|figure| {
            let avoided = 100.0 - figure.ours;
            let holds = avoided >= AVOIDED_AT_16_PERCENT;
            Case::new(place(figure), format!("{avoided:.1} %"), holds)
        });
        claims.push(claim(
            "§5.3.3",
            "At a dedup ratio of 16.08, 27.8 % of metadata writes are avoided, or more",
            avoided.collect(),
        ));
        claims
    }
}

//! What the MACS paper says, and whether it holds here.

use super::experiments::{ALL_CHUNKS, ours};
use super::layout::Scheme;
use super::metadata::BY_LENGTH;
use super::published::MACS_FILLING_PERCENT;
use super::rewriting::{ANY_THRESHOLD, CAPPING, LBW, named};
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{FILLING, Figure, HITS, MEAN, Metric, RATIO, SPEED_FACTOR};
use crate::units::short_bytes;

/// What we ask of our own containers.
const OUR_FILLING_PERCENT: f64 = 97.0;
/// "Close to 100 %" (§IV-D).
const CLOSE_PERCENT: f64 = 99.0;
/// Schemes are compared by this: tag and head are no gain.
const CHUNKS_ALONE: &str = "data_percent";
/// What counts as the same dedup ratio.
const EQUAL_SHARE: f64 = 0.01;

/// Every claim that is looked at.
pub fn claims(figures: &[Figure]) -> Vec<Claim> {
    let figures = Figures(figures);
    vec![
        claim(
            "Fig. 1, §II-A",
            "Files below 16 KiB are most of the files and less than half of the space",
            figures.small_files(),
        ),
        claim(
            "Fig. 2, §II-A",
            "The mean chunk is smaller than expected",
            figures.each("fig2", ALL_CHUNKS, MEAN, |figure| {
                figure.ours < place_of(figure)
            }),
        ),
        claim(
            "Fig. 2, §II-A",
            "The larger the expected size, the more the mean falls short of it",
            figures.gaps(),
        ),
        claim(
            "Figs. 3 and 6, §IV-B",
            "SACS fills containers better than a fixed metadata region (chunks alone)",
            figures.above(
                "fig6",
                CHUNKS_ALONE,
                Scheme::Sacs.name(),
                &[Scheme::Baseline.name()],
            ),
        ),
        claim(
            "Fig. 6, §IV-B",
            "MACS fills them best (chunks alone)",
            figures.above("fig6", CHUNKS_ALONE, Scheme::Macs.name(), &OTHERS),
        ),
        claim(
            "Fig. 6, §IV-B",
            "MACS fills over 95 %",
            figures.each("fig6", Scheme::Macs.name(), FILLING, |figure| {
                figure.ours > MACS_FILLING_PERCENT
            }),
        ),
        claim(
            "ours",
            "In onefold's form MACS fills over 97 %",
            figures.each("fig6", &ours(Scheme::Macs), FILLING, |figure| {
                figure.ours > OUR_FILLING_PERCENT
            }),
        ),
        claim(
            "ours",
            "In onefold's form MACS fills best",
            figures.own_best(FILLING, "fig6"),
        ),
        claim(
            "Fig. 7, §IV-C",
            "MACS has the highest speed factor",
            figures.above("fig7", SPEED_FACTOR, Scheme::Macs.name(), &OTHERS),
        ),
        claim(
            "ours",
            "In onefold's form MACS has the highest speed factor",
            figures.own_best(SPEED_FACTOR, "fig7"),
        ),
        claim(
            "Fig. 8, §IV-C",
            "At equal dedup ratios (within 1 %), by rewriting, MACS has the highest speed factor",
            figures.at_equal_ratios(),
        ),
        claim(
            "Fig. 8, §IV-C",
            "LBW as published raises the speed factor of the last version",
            figures.rewriting(LBW),
        ),
        claim(
            "beyond the paper",
            "LBW with any threshold and capping raise it, at 95 % of the dedup ratio",
            [ANY_THRESHOLD, CAPPING]
                .into_iter()
                .flat_map(|policy| figures.rewriting(policy))
                .collect(),
        ),
        claim(
            "Fig. 9, §IV-D",
            "From version 2 on, the hit ratio is close to 100 % (above 99 %)",
            figures.hits(),
        ),
        claim(
            "§III-D",
            "Replacement by length has at least the hit ratio of LRU",
            figures.replacements(),
        ),
    ]
}

const OTHERS: [&str; 2] = [Scheme::Baseline.name(), Scheme::Sacs.name()];

fn place_of(figure: &Figure) -> f64 {
    figure.x.unwrap_or(0.0)
}

fn place(figure: &Figure) -> String {
    let place = match figure.experiment {
        "fig8" => format!("{} %", place_of(figure)),
        "fig9" => format!("version {}", place_of(figure)),
        _ => short_bytes(place_of(figure) as u64),
    };
    format!("{} {place}", figure.data_set)
}

struct Figures<'a>(&'a [Figure]);

impl<'a> Figures<'a> {
    fn of(
        &self,
        experiment: &'a str,
        approach: &'a str,
        metric: &'a str,
    ) -> impl Iterator<Item = &'a Figure> + use<'a> {
        let all = self.0.iter();
        all.filter(move |figure| {
            figure.experiment == experiment
                && figure.approach == approach
                && figure.metric == metric
        })
    }

    /// The figure of another approach at the same place.
    fn beside(&self, figure: &Figure, approach: &str) -> Option<&'a Figure> {
        self.0.iter().find(|other| {
            other.approach == approach
                && other.experiment == figure.experiment
                && other.data_set == figure.data_set
                && other.metric == figure.metric
                && other.x == figure.x
        })
    }

    fn each(
        &self,
        experiment: &str,
        approach: &str,
        metric: &str,
        holds: impl Fn(&Figure) -> bool,
    ) -> Vec<Case> {
        let all = self.0.iter().filter(|figure| {
            figure.experiment == experiment
                && figure.approach == approach
                && figure.metric == metric
        });
        all.map(|figure| {
            let value = Metric::named(figure.metric).text(figure.ours);
            Case::new(place(figure), value, holds(figure))
        })
        .collect()
    }

    /// Where one is above others.
    fn above(&self, experiment: &str, metric: &str, approach: &str, others: &[&str]) -> Vec<Case> {
        let mut cases = Vec::new();
        let all = self.0.iter().filter(|figure| {
            figure.experiment == experiment
                && figure.approach == approach
                && figure.metric == metric
        });
        for figure in all {
            for other in others.iter().filter_map(|other| self.beside(figure, other)) {
                let value = format!(
                    "{:.2} against {:.2} ({})",
                    figure.ours, other.ours, other.approach
                );
                cases.push(Case::new(place(figure), value, figure.ours > other.ours));
            }
        }
        cases
    }

    fn own_best(&self, metric: &str, experiment: &str) -> Vec<Case> {
        let others = [ours(Scheme::Baseline), ours(Scheme::Sacs)];
        let others = others.each_ref().map(String::as_str);
        self.above(experiment, metric, &ours(Scheme::Macs), &others)
    }

    fn small_files(&self) -> Vec<Case> {
        let counts = self.of("fig1", "small files", "small_files_percent");
        // Where there are none the claim says nothing: tars.
        let at = counts.filter(|figure| place_of(figure) == 16_384.0 && figure.ours > 0.0);
        at.filter_map(|count| {
            let mut space = self.of("fig1", "small files", "small_bytes_percent");
            let space =
                space.find(|other| other.data_set == count.data_set && other.x == count.x)?;
            let value = format!(
                "{:.1} % of the files, {:.1} % of the space",
                count.ours, space.ours
            );
            let holds = count.ours > 50.0 && space.ours < 50.0;
            Some(Case::new(&count.data_set, value, holds))
        })
        .collect()
    }

    fn gaps(&self) -> Vec<Case> {
        let means: Vec<&Figure> = self.of("fig2", ALL_CHUNKS, MEAN).collect();
        let pairs = means
            .windows(2)
            .filter(|pair| pair[0].data_set == pair[1].data_set);
        pairs
            .map(|pair| {
                let [small, large] =
                    [pair[0], pair[1]].map(|figure| place_of(figure) - figure.ours);
                let value = format!("{small:.0} and {large:.0} bytes short");
                Case::new(place(pair[1]), value, large > small)
            })
            .collect()
    }

    fn at_equal_ratios(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for policy in [LBW, ANY_THRESHOLD, CAPPING] {
            let macs = named(Scheme::Macs, policy);
            let at = |figure: &&Figure| figure.experiment == "fig8" && figure.approach == macs;
            for figure in self.0.iter().filter(at) {
                if figure.metric != SPEED_FACTOR || place_of(figure) == 100.0 {
                    continue;
                }
                for other in [Scheme::Baseline, Scheme::Sacs] {
                    cases.extend(self.beside_at_equal_ratio(figure, &named(other, policy)));
                }
            }
        }
        cases
    }

    /// A comparison of speed factors, if the dedup ratios are nearly equal.
    fn beside_at_equal_ratio(&self, figure: &Figure, approach: &str) -> Option<Case> {
        let other = self.beside(figure, approach)?;
        let ratio_of = |figure: &Figure| {
            let mut all = self.0.iter();
            let found = all.find(|ratio| {
                ratio.metric == RATIO
                    && ratio.experiment == figure.experiment
                    && ratio.approach == figure.approach
                    && ratio.data_set == figure.data_set
                    && ratio.x == figure.x
            });
            found.map(|ratio| ratio.ours)
        };
        let (ratio, other_ratio) = (ratio_of(figure)?, ratio_of(other)?);
        if (ratio / other_ratio - 1.0).abs() > EQUAL_SHARE {
            return None;
        }
        let value = format!(
            "{:.2} at {ratio:.2} against {:.2} at {other_ratio:.2} ({})",
            figure.ours, other.ours, other.approach
        );
        Some(Case::new(place(figure), value, figure.ours > other.ours))
    }

    fn rewriting(&self, policy: &str) -> Vec<Case> {
        let mut cases = Vec::new();
        for scheme in Scheme::ALL {
            let name = named(scheme, policy);
            let is_it = |figure: &&Figure| {
                figure.experiment == "fig8"
                    && figure.approach == name
                    && figure.metric == "last_speed_factor"
            };
            let with: Vec<&Figure> = self.0.iter().filter(is_it).collect();
            for figure in with.iter().filter(|figure| place_of(figure) == 95.0) {
                let mut all = with.iter();
                let without =
                    all.find(|other| other.data_set == figure.data_set && place_of(other) == 100.0);
                if let Some(without) = without {
                    let value = format!("{:.3} from {:.3}", figure.ours, without.ours);
                    let place = format!("{} {name}", figure.data_set);
                    cases.push(Case::new(place, value, figure.ours > without.ours));
                }
            }
        }
        cases
    }

    fn hits(&self) -> Vec<Case> {
        let all = self.of("fig9", BY_LENGTH, HITS);
        all.filter(|figure| place_of(figure) >= 2.0)
            .map(|figure| {
                let value = format!("{:.2} %", figure.ours);
                Case::new(place(figure), value, figure.ours > CLOSE_PERCENT)
            })
            .collect()
    }

    fn replacements(&self) -> Vec<Case> {
        let all = self.of("lookups", "by length, lengths of all", HITS);
        all.filter_map(|figure| {
            let lru = self.beside(figure, "LRU, lengths of all")?;
            let value = format!("{:.3} against {:.3} %", figure.ours, lru.ours);
            Some(Case::new(place(figure), value, figure.ours >= lru.ours))
        })
        .collect()
    }
}

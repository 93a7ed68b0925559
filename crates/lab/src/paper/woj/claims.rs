//! What the WOJ paper says, and whether it holds here.

use super::approaches::{FULL, MD5, NO_DEDUP, PUBLISHED, SHA1, THIN, WHOLE};
use super::experiments::{AMPLIFICATION, DATA, LATENCY, OF_NO_DEDUP, SPEEDS, WRONG};
use super::hashes::{HASH_SPEED, Hash};
use super::memory::{BY_THE_PAPER, MEMORY};
use super::published::{JOURNAL_BYTES, REMOVED_PERCENT, SSDS};
use crate::paper::claim::{Case, Claim, claim};
use crate::paper::figure::{Figure, Metric};

/// What "about" is for a ratio of writes.
const NEAR: f64 = 0.1;
/// "About half".
const HALF_PERCENT: [f64; 2] = [40.0, 60.0];
/// What WOJ may write more than full dedup, of 1.
const AS_FULL: f64 = 1.1;

/// Every claim that is looked at.
pub fn claims(figures: &[Figure]) -> Vec<Claim> {
    let figures = Figures(figures);
    let large = |figure: &Figure| figure.x.is_some_and(|x| x >= 10.0);
    vec![
        claim(
            "Table 4.1, §4.1.3",
            "xxHash is ten times as fast as collision-resistant hashes",
            figures.hashes(),
        ),
        claim(
            "Fig. 4.2d, §4.3.2",
            "Without dedup data journaling writes about twice (±0.1) with windows of 1000, more with 10",
            figures.twice(),
        ),
        claim(
            "Fig. 4.2d, Fig. 4.5",
            "WOJ removes about half of the writes (40 to 60 %) with windows of 10 and more",
            figures.removed(
                &["fig4.2", "fig4.5"],
                &[PUBLISHED.name, WHOLE.name],
                large,
                HALF_PERCENT,
            ),
        ),
        claim(
            "Fig. 4.2d, Fig. 4.5",
            "It writes no more than full dedup does (1.1 times)",
            figures.against(
                &["fig4.2", "fig4.5"],
                WHOLE.name,
                FULL.name,
                AMPLIFICATION,
                |woj, full| woj <= full * AS_FULL,
            ),
        ),
        claim(
            "Figs. 4.2a–c",
            "WOJ_xxh64 is the fastest of the three, on every SSD",
            SPEEDS
                .iter()
                .flat_map(|speed| {
                    [NO_DEDUP.name, FULL.name].into_iter().flat_map(|other| {
                        figures.against(&["fig4.2"], PUBLISHED.name, other, speed, |woj, other| {
                            woj > other
                        })
                    })
                })
                .collect(),
        ),
        claim(
            "Fig. 4.2a",
            "On the fast SSD full dedup is slower than none with windows of 1000",
            figures.against_at(
                &["fig4.2"],
                FULL.name,
                NO_DEDUP.name,
                SPEEDS[0],
                Some(1000.0),
                |full, none| full < none,
            ),
        ),
        claim(
            "Fig. 4.2c",
            "On the slow SSD full dedup is faster than none",
            figures.against(
                &["fig4.2"],
                FULL.name,
                NO_DEDUP.name,
                SPEEDS[2],
                |full, none| full > none,
            ),
        ),
        claim(
            "Fig. 4.3, §4.3.2",
            "With xxHash WOJ is faster on the fast SSD than with MD5 and SHA-1",
            [MD5.name, SHA1.name]
                .into_iter()
                .flat_map(|other| {
                    figures.against(
                        &["fig4.3"],
                        PUBLISHED.name,
                        other,
                        SPEEDS[0],
                        |woj, other| woj > other,
                    )
                })
                .collect(),
        ),
        claim(
            "Fig. 4.4, §4.3.2",
            "On the fast SSD the 90th percentile of the latency is below that of full dedup",
            figures.latencies(),
        ),
        claim(
            "Fig. 4.5",
            "Random writes are amplified more than sequential ones (windows above 1)",
            figures.random(),
        ),
        claim(
            "Fig. 4.6d, §4.3.3",
            "WOJ removes 38 to 50 % of the writes, but for varmail",
            figures.removed(
                &["fig4.6"],
                &[PUBLISHED.name, WHOLE.name],
                |figure| figure.data_set != "varmail-like",
                REMOVED_PERCENT,
            ),
        ),
        claim(
            "Fig. 4.8d, §4.3.5",
            "It removes about half of the writes of real data (40 to 60 %)",
            figures.removed(
                &["fig4.8"],
                &[PUBLISHED.name, WHOLE.name],
                |_| true,
                HALF_PERCENT,
            ),
        ),
        claim(
            "§4.3.6",
            "Pool and reverse mapping of a journal of 256 MB take 1.28 MB (1280 KiB)",
            figures.memory(),
        ),
        claim(
            "§4.2.2",
            "64 bytes are enough: correctness is not compromised",
            figures.wrong(|name| name == PUBLISHED.name),
        ),
        claim(
            "ours",
            "By whole blocks nothing comes back wrong",
            figures.wrong(|name| name != PUBLISHED.name),
        ),
        claim(
            "ours",
            "By whole blocks sequential writes in windows of 1000 are amplified 1.01 times (±0.02)",
            figures.once(),
        ),
        claim(
            "ours",
            "With a mapping that survives, blocks of data are as many as with one in memory (3 %)",
            figures.against(
                &["fig4.2", "fig4.5"],
                THIN.name,
                WHOLE.name,
                DATA,
                |thin, ram| (thin / ram - 1.0).abs() <= 0.03,
            ),
        ),
    ]
}

struct Figures<'a>(&'a [Figure]);

fn place(figure: &Figure) -> String {
    let x = figure.x.map_or_else(String::new, |x| format!(" {x}"));
    format!("{}{x}", figure.data_set)
}

impl Figures<'_> {
    fn find(
        &self,
        experiment: &str,
        approach: &str,
        metric: &str,
        x: Option<f64>,
    ) -> Option<&Figure> {
        self.0.iter().find(|figure| {
            figure.experiment == experiment
                && figure.approach == approach
                && figure.metric == metric
                && figure.x == x
        })
    }

    /// One approach against another wherever both were measured.
    fn against(
        &self,
        experiments: &[&str],
        approach: &str,
        other: &str,
        metric: &str,
        holds: impl Fn(f64, f64) -> bool,
    ) -> Vec<Case> {
        self.against_at(experiments, approach, other, metric, None, holds)
    }

    fn against_at(
        &self,
        experiments: &[&str],
        approach: &str,
        other: &str,
        metric: &str,
        x: Option<f64>,
        holds: impl Fn(f64, f64) -> bool,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        for figure in self.0.iter().filter(|figure| {
            experiments.contains(&figure.experiment)
                && figure.approach == approach
                && figure.metric == metric
                && (x.is_none() || figure.x == x)
        }) {
            let beside = self.0.iter().find(|beside| {
                beside.approach == other
                    && beside.experiment == figure.experiment
                    && beside.data_set == figure.data_set
                    && beside.metric == metric
                    && beside.x == figure.x
            });
            if let Some(beside) = beside {
                let value = format!("{:.2} against {:.2} ({other})", figure.ours, beside.ours);
                cases.push(Case::new(
                    place(figure),
                    value,
                    holds(figure.ours, beside.ours),
                ));
            }
        }
        cases
    }

    fn hashes(&self) -> Vec<Case> {
        let speed = |hash: Hash| self.find("table4.1", hash.name(), HASH_SPEED, None);
        let Some(fast) = speed(Hash::Xxh64) else {
            return Vec::new();
        };
        [
            Hash::Md5,
            Hash::Sha1,
            Hash::Sha256,
            Hash::Sha512,
            Hash::Blake3,
        ]
        .into_iter()
        .filter_map(speed)
        .map(|slow| {
            let times = fast.ours / slow.ours;
            Case::new(&slow.approach, format!("{times:.1} times"), times >= 10.0)
        })
        .collect()
    }

    fn twice(&self) -> Vec<Case> {
        let at = |x| self.find("fig4.2", NO_DEDUP.name, AMPLIFICATION, Some(x));
        let (Some(small), Some(large)) = (at(10.0), at(1000.0)) else {
            return Vec::new();
        };
        let value = format!("{:.2}, and {:.2} with 10", large.ours, small.ours);
        let holds = (large.ours - 2.0).abs() <= NEAR && small.ours > large.ours;
        vec![Case::new("sequential", value, holds)]
    }

    fn removed(
        &self,
        experiments: &[&str],
        approaches: &[&str],
        counts: impl Fn(&Figure) -> bool,
        [least, most]: [f64; 2],
    ) -> Vec<Case> {
        let all = self.0.iter().filter(|figure| {
            experiments.contains(&figure.experiment)
                && approaches.contains(&figure.approach.as_str())
                && figure.metric == OF_NO_DEDUP
                && counts(figure)
        });
        all.map(|figure| {
            let removed = 100.0 - figure.ours;
            let value = format!("{removed:.1} % ({})", figure.approach);
            // As the paper rounds.
            let holds = (least..=most).contains(&removed.round());
            Case::new(place(figure), value, holds)
        })
        .collect()
    }

    fn latencies(&self) -> Vec<Case> {
        let fast = SSDS[0].name;
        let all = self.0.iter().filter(|figure| {
            figure.metric == LATENCY
                && figure.approach == PUBLISHED.name
                && figure.x == Some(90.0)
                && figure.data_set.ends_with(fast)
        });
        all.filter_map(|figure| {
            let full = self.0.iter().find(|full| {
                full.metric == LATENCY
                    && full.approach == FULL.name
                    && full.x == figure.x
                    && full.data_set == figure.data_set
            })?;
            let value = format!("{:.2} against {:.2} ms", figure.ours, full.ours);
            Some(Case::new(&figure.data_set, value, figure.ours < full.ours))
        })
        .collect()
    }

    fn random(&self) -> Vec<Case> {
        let all = self.0.iter().filter(|figure| {
            figure.experiment == "fig4.5"
                && figure.approach == NO_DEDUP.name
                && figure.metric == AMPLIFICATION
                && figure.x > Some(1.0)
        });
        all.filter_map(|figure| {
            let sequential = self.find("fig4.2", NO_DEDUP.name, AMPLIFICATION, figure.x)?;
            let value = format!("{:.2} against {:.2}", figure.ours, sequential.ours);
            Some(Case::new(
                place(figure),
                value,
                figure.ours > sequential.ours,
            ))
        })
        .collect()
    }

    fn memory(&self) -> Vec<Case> {
        let found = self.find("memory", BY_THE_PAPER, MEMORY, Some(JOURNAL_BYTES as f64));
        let case = |figure: &Figure| {
            let value = format!("{:.0} KiB", figure.ours / 1024.0);
            Case::new("256 MB", value, figure.ours == 1280.0 * 1024.0)
        };
        found.map(case).into_iter().collect()
    }

    fn wrong(&self, counts: impl Fn(&str) -> bool) -> Vec<Case> {
        let all = self.0.iter();
        all.filter(|figure| figure.metric == WRONG && counts(&figure.approach))
            .map(|figure| {
                let value = Metric::named(WRONG).text(figure.ours);
                let place = format!(
                    "{} {} {}",
                    figure.experiment,
                    place(figure),
                    figure.approach
                );
                Case::new(place, value, figure.ours == 0.0)
            })
            .collect()
    }

    fn once(&self) -> Vec<Case> {
        let figure = self.find("fig4.2", WHOLE.name, AMPLIFICATION, Some(1000.0));
        let none = self.find("fig4.2", NO_DEDUP.name, AMPLIFICATION, Some(1000.0));
        let (Some(figure), Some(none)) = (figure, none) else {
            return Vec::new();
        };
        let value = format!("{:.3} from {:.3}", figure.ours, none.ours);
        let holds = (figure.ours - 1.01).abs() <= 0.02;
        vec![Case::new("sequential", value, holds)]
    }
}

//! The experiments of the paper: which approaches each compares on which data, and which figures
//! come of it.
//!
//! Enters: [`Findings`], what was measured on each data set. Leaves: [`Figure`]s, each a number of
//! ours beside the paper's, where the paper prints it.

use super::approaches::{
    Approach, Loop, fast, fast_from, nine, normalized, normalized_without_min, plain,
    rabin_as_printed, unbounded, versions,
};
use super::counting::Counts;
use super::published::{self, EXPECTED_SIZES, TABLE3_APPROACHES};
use crate::paper::about::{ExperimentInfo, experiment};
use crate::paper::figure::{DEVIATION, Figure, MEAN, SAVED, SPEED};
use crate::report::chunk_report::ResultReport;
use crate::units::short_bytes;

/// The least sizes of Fig. 12; 1 stands for none.
pub const FIG12_MINS: [u32; 3] = [1, 2 << 10, 4 << 10];
/// The least sizes of Fig. 13.
pub const FIG13_MINS: [u32; 4] = [2 << 10, 4 << 10, 6 << 10, 8 << 10];
/// The levels of Figs. 9 and 13; 0 is FastCDC without normalized chunking.
pub const LEVELS: [u8; 4] = [0, 1, 2, 3];
/// The name of the random numbers among the data sets.
pub const RANDOM: &str = "RANDOM";

/// A table or figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experiment {
    Fig5,
    Fig9,
    Table3,
    Fig10,
    Fig11,
    Fig12,
    Fig13,
    Table4,
    Table5,
    Table6,
    Fig14,
    Fig15,
}

/// Every experiment, in the order of [`Experiment`].
pub const EXPERIMENTS: [ExperimentInfo; 12] = [
    experiment(
        "fig5",
        "Fig. 5: sizes of chunks on random numbers, no least and no greatest size",
    ),
    experiment("fig9", "Fig. 9: sizes of chunks with normalized chunking"),
    experiment(
        "table3",
        "Table 3: RC, GC and FC at expected sizes of 4, 8 and 16 KiB",
    ),
    experiment("fig10", "Fig. 10: speed of RC, GC, FC and FC'"),
    experiment("fig11", "Fig. 11: sizes of chunks of RC, GC and FC"),
    experiment("fig12", "Fig. 12: FC with a least size of 0, 2 and 4 KiB"),
    experiment(
        "fig13",
        "Fig. 13: levels of normalized chunking and least sizes",
    ),
    experiment("table4", "Table 4: dedup of the nine approaches"),
    experiment("table5", "Table 5: mean chunk size of the nine approaches"),
    experiment(
        "table6",
        "Table 6: instructions, branches and cycles for a byte",
    ),
    experiment("fig14", "Fig. 14: speed of the eleven approaches"),
    experiment("fig15", "Fig. 15: throughput of a whole system"),
];

/// The same.
pub const ALL: [Experiment; 12] = [
    Experiment::Fig5,
    Experiment::Fig9,
    Experiment::Table3,
    Experiment::Fig10,
    Experiment::Fig11,
    Experiment::Fig12,
    Experiment::Fig13,
    Experiment::Table4,
    Experiment::Table5,
    Experiment::Table6,
    Experiment::Fig14,
    Experiment::Fig15,
];

/// What was measured on one data set.
#[derive(Debug)]
pub struct SetFindings {
    /// The paper's name of it, or [`RANDOM`].
    pub name: String,
    /// By label, which is an approach's entry.
    pub results: Vec<ResultReport>,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Findings {
    /// The data sets, in the order given, then random numbers.
    pub sets: Vec<SetFindings>,
    /// What Table 6 counts, by the name of the approach; with the data set it was counted on.
    pub counts: Vec<(String, Counts)>,
    /// Which data set that was.
    pub counted_set: String,
}

impl Findings {
    /// The data sets that were given.
    pub fn given(&self) -> impl Iterator<Item = &SetFindings> {
        self.sets.iter().filter(|set| set.name != RANDOM)
    }
}

impl SetFindings {
    /// What was found out about an approach.
    pub fn get(&self, approach: &Approach) -> Option<&ResultReport> {
        self.results
            .iter()
            .find(|result| result.label == approach.entry)
    }
}

/// The data set that an experiment runs on, if the paper ran it on one only.
pub fn preferred(experiment: Experiment) -> Option<&'static str> {
    match experiment {
        Experiment::Fig5 => Some(RANDOM),
        Experiment::Fig9 | Experiment::Fig13 => Some("TAR"),
        Experiment::Fig10 => Some("RDB"),
        _ => None,
    }
}

impl Experiment {
    /// Its row in [`EXPERIMENTS`].
    pub fn info(self) -> &'static ExperimentInfo {
        &EXPERIMENTS[self as usize]
    }

    /// The experiment of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter()
            .find(|experiment| experiment.info().name == name)
    }

    /// What it measures on a data set.
    pub fn approaches(self) -> Vec<Approach> {
        match self {
            Self::Fig5 => unbounded().to_vec(),
            Self::Fig9 => LEVELS
                .map(|level| normalized_without_min(level_name(level), level))
                .to_vec(),
            Self::Table3 => EXPECTED_SIZES.into_iter().flat_map(table3).collect(),
            Self::Fig10 => EXPECTED_SIZES.into_iter().flat_map(fig10).collect(),
            Self::Fig11 => table3(8 << 10).to_vec(),
            Self::Fig12 => FIG12_MINS.map(|min| fast_from(min_name(min), min)).to_vec(),
            Self::Fig13 => fig13(),
            Self::Table4 | Self::Table5 => nine().into_iter().chain(rabin_as_printed()).collect(),
            Self::Table6 => eleven(),
            Self::Fig14 => eleven()
                .into_iter()
                .chain(versions(Loop::Fastest))
                .collect(),
            Self::Fig15 => Vec::new(),
        }
    }

    /// Its figures on a data set.
    pub fn figures(self, set: &SetFindings) -> Vec<Figure> {
        let approaches = self.approaches();
        let measured = approaches
            .iter()
            .filter_map(|approach| Some((approach, set.get(approach)?)));
        let name = set.name.as_str();
        let mut figures = Vec::new();
        for (approach, result) in measured {
            let mut add = |metric, ours, paper| {
                let figure = Figure::new(
                    self.info().name,
                    name,
                    &label(self, approach, result),
                    metric,
                );
                figures.push(figure.with(ours, paper));
            };
            let saved = result.dedup_saved_percent.unwrap_or(0.0);
            let published = published::table3(name, &approach.name, result.avg_bytes);
            match self {
                Self::Table3 => {
                    add(SAVED, saved, published.map(|(saved, _)| saved));
                    add(MEAN, result.mean_bytes, published.map(|(_, mean)| mean));
                }
                Self::Table4 => add(SAVED, saved, published::table4(name, &approach.name)),
                Self::Table5 => {
                    let paper = published::table5(name, &approach.name);
                    add(MEAN, result.mean_bytes, paper);
                }
                Self::Fig10 | Self::Fig14 => add(SPEED, result.chunk_bytes_per_second, None),
                Self::Fig12 | Self::Fig13 => {
                    add(SPEED, result.chunk_bytes_per_second, None);
                    add(SAVED, saved, None);
                    add(MEAN, result.mean_bytes, None);
                }
                Self::Fig5 | Self::Fig9 | Self::Fig11 => {
                    add(MEAN, result.mean_bytes, None);
                    add(DEVIATION, result.standard_deviation_bytes, None);
                }
                Self::Table6 | Self::Fig15 => {}
            }
        }
        figures
    }
}

/// What a row is called: approaches at several expected sizes are told apart by them.
fn label(experiment: Experiment, approach: &Approach, result: &ResultReport) -> String {
    match experiment {
        Experiment::Table3 | Experiment::Fig10 => format!(
            "{} {}",
            approach.name,
            short_bytes(u64::from(result.avg_bytes))
        ),
        _ => approach.name.clone(),
    }
}

/// RC, GC and FC at an expected size.
pub fn table3(expected: u32) -> [Approach; 3] {
    let [rabin, gear, _] = TABLE3_APPROACHES;
    [
        plain(rabin, "rabin", expected),
        plain(gear, "gear", expected),
        fast(Loop::One, expected),
    ]
}

/// RC, GC, FC, FC' and what onefold does, at an expected size.
fn fig10(expected: u32) -> Vec<Approach> {
    let mut approaches = table3(expected).to_vec();
    approaches.extend([Loop::Two, Loop::Fastest].map(|rolling| fast(rolling, expected)));
    approaches
}

/// Every level with every least size.
fn fig13() -> Vec<Approach> {
    let of_min = |min: u32| LEVELS.map(|level| fig13_approach(level, min));
    FIG13_MINS.into_iter().flat_map(of_min).collect()
}

/// One of them. Without levels (0), the normal size does not matter.
pub fn fig13_approach(level: u8, min: u32) -> Approach {
    let name = format!("{}, {}", level_name(level), min_name(min));
    normalized(name, Loop::One, level, min)
}

/// The approaches of Table 6 and Fig. 14.
fn eleven() -> Vec<Approach> {
    let nine = nine();
    let without_fixed = nine.into_iter().filter(|approach| approach.name != "FIXC");
    without_fixed.chain(versions(Loop::Two)).collect()
}

fn level_name(level: u8) -> String {
    match level {
        0 => "no NC".to_owned(),
        _ => format!("NC-{level}"),
    }
}

fn min_name(min: u32) -> String {
    match min {
        1 => "min 0".to_owned(),
        _ => format!("min {}", short_bytes(u64::from(min))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_stand_in_order_and_are_found() {
        for (index, info) in EXPERIMENTS.iter().enumerate() {
            assert_eq!(ALL[index] as usize, index);
            assert_eq!(Experiment::from_name(info.name), Some(ALL[index]));
        }
        assert_eq!(Experiment::from_name("fig6"), None);
    }

    #[test]
    fn names_are_those_of_the_tables() {
        let names = |experiment: Experiment| -> Vec<String> {
            let approaches = experiment.approaches();
            approaches
                .into_iter()
                .map(|approach| approach.name)
                .collect()
        };
        assert_eq!(names(Experiment::Table4)[..9], published::TABLE4_APPROACHES);
        let table6: Vec<_> = published::table6_approaches().collect();
        assert_eq!(names(Experiment::Table6), table6);
        assert_eq!(names(Experiment::Fig14)[..11], table6);
        assert_eq!(names(Experiment::Fig13).len(), 16);
    }

    #[test]
    fn every_approach_can_be_measured() {
        for experiment in ALL {
            for approach in experiment.approaches() {
                let contestant = approach.contestant().unwrap();
                assert_eq!(contestant.label, approach.entry);
                assert!(contestant.cutter().is_ok());
            }
        }
    }
}

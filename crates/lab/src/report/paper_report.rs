//! The report of `onefold-lab paper` as data: what `--json` prints, described for users in
//! docs/guide/lab-json.md.

use serde::Serialize;

use super::chunk_report::{BinReport, DataReport, ResultReport, program};
use super::machine::Machine;
use crate::paper::fastcdc::claims::{Claim, claims};
use crate::paper::fastcdc::experiments::{Experiment, Figure, SetFindings};
use crate::paper::fastcdc::published::DATA_SETS;
use crate::paper::fastcdc::{Outcome, Plan};

/// All of it.
#[derive(Debug, Serialize)]
pub struct PaperReport {
    /// As in the output of `onefold`.
    pub event: &'static str,
    /// The verb.
    pub command: &'static str,
    /// Which paper.
    pub paper: &'static str,
    /// Name and version of this program.
    pub program: String,
    /// How it was measured.
    pub settings: PaperSettings,
    /// Where.
    pub machine: Machine,
    /// On what.
    pub data_sets: Vec<SetReport>,
    /// Every number.
    pub figures: Vec<Figure>,
    /// Sizes of chunks.
    pub distributions: Vec<Distribution>,
    /// What the paper says, and whether it holds.
    pub claims: Vec<Claim>,
    /// What was not run, or otherwise than in the paper.
    pub notes: Vec<String>,
    /// How long all of it took.
    pub seconds: f64,
}

/// How it was measured.
#[derive(Debug, Serialize)]
pub struct PaperSettings {
    /// Names of the experiments.
    pub experiments: Vec<&'static str>,
    /// Timed passes of each approach.
    pub runs: u64,
    /// Most bytes that lie in memory at a time.
    pub memory_bytes: u64,
    /// Most bytes that were taken of a data set.
    pub size_bytes: u64,
}

/// A data set.
#[derive(Debug, Serialize)]
pub struct SetReport {
    /// The paper's name of it.
    pub name: String,
    /// What the paper's was.
    pub paper: Option<&'static str>,
    /// Whether only its first bytes were taken.
    pub is_sample: bool,
    /// What was read.
    pub data: DataReport,
}

/// The sizes of chunks of one approach on one data set.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Name of the data set.
    pub data_set: String,
    /// What was measured.
    pub approach: String,
    /// The chunks by their sizes.
    pub histogram: Vec<BinReport>,
}

impl PaperReport {
    /// The report of an outcome.
    pub fn new(plan: &Plan, outcome: Outcome) -> Self {
        let names = plan
            .experiments
            .iter()
            .map(|experiment| experiment.info().name);
        Self {
            event: "summary",
            command: "paper",
            paper: "fastcdc",
            program: program(),
            settings: PaperSettings {
                experiments: names.collect(),
                runs: plan.effort.runs as u64,
                memory_bytes: plan.effort.memory_bytes,
                size_bytes: plan.size,
            },
            machine: Machine::here(),
            distributions: distributions(plan, &outcome),
            claims: claims(&outcome.findings),
            data_sets: outcome
                .sets
                .into_iter()
                .map(|set| SetReport {
                    paper: DATA_SETS
                        .iter()
                        .find(|(name, _)| *name == set.name)
                        .map(|(_, paper)| *paper),
                    name: set.name,
                    is_sample: set.is_sample,
                    data: set.data,
                })
                .collect(),
            figures: outcome.figures,
            notes: outcome.notes,
            seconds: 0.0,
        }
    }

    /// Whether an experiment was asked for.
    pub fn has(&self, experiment: Experiment) -> bool {
        self.settings.experiments.contains(&experiment.info().name)
    }
}

/// The distributions that the paper draws: those of Figs. 5, 9 and 11.
fn distributions(plan: &Plan, outcome: &Outcome) -> Vec<Distribution> {
    let drawn = [Experiment::Fig5, Experiment::Fig9, Experiment::Fig11];
    let mut distributions = Vec::new();
    for experiment in drawn {
        if !plan.experiments.contains(&experiment) {
            continue;
        }
        let figures = outcome.figures.iter();
        let name = experiment.info().name;
        for figure in
            figures.filter(|figure| figure.experiment == name && figure.metric == "mean_bytes")
        {
            let set = outcome
                .findings
                .sets
                .iter()
                .find(|set| set.name == figure.data_set);
            let result = set.and_then(|set| result_of(experiment, set, &figure.approach));
            if let Some(result) = result {
                distributions.push(Distribution {
                    experiment: name,
                    data_set: figure.data_set.clone(),
                    approach: figure.approach.clone(),
                    histogram: result.histogram.clone(),
                });
            }
        }
    }
    distributions
}

fn result_of<'a>(
    experiment: Experiment,
    set: &'a SetFindings,
    name: &str,
) -> Option<&'a ResultReport> {
    let approaches = experiment.approaches();
    let approach = approaches.iter().find(|approach| approach.name == name)?;
    set.get(approach)
}

//! The report of `onefold-lab paper` as data: what `--json` prints, described for users in
//! docs/guide/lab-json.md.

use serde::Serialize;

use super::chunk_report::{BinReport, DataReport, program};
use super::machine::Machine;
use crate::paper::about::{About, ExperimentInfo};
use crate::paper::claim::Claim;
use crate::paper::figure::Figure;
use crate::paper::{MeasuredSet, Results};

/// All of it.
#[derive(Serialize)]
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
    /// The paper.
    #[serde(skip)]
    pub about: &'static About,
}

/// How it was measured.
#[derive(Debug, Serialize)]
pub struct PaperSettings {
    /// Names of the experiments.
    pub experiments: Vec<&'static str>,
    /// Timed passes of each approach.
    pub runs: u64,
    /// Most threads that ran.
    pub threads: u64,
    /// Most bytes that lie in memory at a time.
    pub memory_bytes: u64,
    /// Most bytes that were taken of a data set.
    pub size_bytes: u64,
    /// Bytes that were made up, where the paper does that; 0 where it does not.
    pub synthetic_bytes: u64,
    /// What tells chunks apart in whole systems; none where there are none.
    pub fingerprint: Option<&'static str>,
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
    /// The report of what experiments gave.
    pub fn new(about: &'static About, settings: PaperSettings, results: Results) -> Self {
        let set = |set: MeasuredSet| SetReport {
            paper: about.data_set(&set.name),
            name: set.name,
            is_sample: set.is_sample,
            data: set.data,
        };
        Self {
            event: "summary",
            command: "paper",
            paper: about.name,
            program: program(),
            settings,
            machine: Machine::here(),
            data_sets: results.sets.into_iter().map(set).collect(),
            figures: results.figures,
            distributions: results.distributions,
            claims: results.claims,
            notes: results.notes,
            seconds: 0.0,
            about,
        }
    }

    /// The experiments that were asked for, in the order of the paper.
    pub fn experiments(&self) -> impl Iterator<Item = &'static ExperimentInfo> + use<'_> {
        let all = self.about.experiments.iter();
        all.filter(|info| self.settings.experiments.contains(&info.name))
    }

    /// The figures of an experiment.
    pub fn figures_of<'a>(&'a self, experiment: &'a str) -> impl Iterator<Item = &'a Figure> {
        let figures = self.figures.iter();
        figures.filter(move |figure| figure.experiment == experiment)
    }
}

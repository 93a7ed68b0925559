//! Experiments of the papers, run on data that is given, beside the papers' own figures.
//!
//! A folder a paper: what it prints (`published`), what is run (`experiments`), what it says
//! (`claims`). Beside them what papers share: figures ([`figure`]) and metrics ([`metrics`]), claims and verdicts
//! ([`claim`]), the words of reports ([`about`]), data in memory ([`loaded`]), chunks and duplicates
//! ([`dedup`]), times ([`timing`]), threads and what more of them would give ([`threads`]).

pub mod about;
pub mod claim;
pub mod dedup;
pub mod fastcdc;
pub mod figure;
pub mod loaded;
pub mod macs;
pub mod metrics;
pub mod odess;
pub mod p_dedupe;
pub mod rapidcdc;
pub mod ss_cdc;
pub mod thindedup;
pub mod threads;
pub mod timing;
pub mod woj;

use std::path::PathBuf;

use crate::chunk::data::Notice;
use crate::report::chunk_report::DataReport;
use crate::report::paper_report::Distribution;

use self::claim::Claim;
use self::figure::Figure;

/// Data that stands for one of a paper's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSet {
    /// The paper's name of it, or another.
    pub name: String,
    /// Files and directories.
    pub paths: Vec<PathBuf>,
}

/// A data set that was gone through.
#[derive(Debug)]
pub struct MeasuredSet {
    /// The paper's name of it, or another.
    pub name: String,
    /// Whether only its first bytes were taken.
    pub is_sample: bool,
    /// What was read.
    pub data: DataReport,
    /// What happened to files.
    pub notices: Vec<Notice>,
}

impl MeasuredSet {
    /// Adds what was read of another part of the same data set.
    pub fn add(&mut self, other: Self) {
        self.is_sample |= other.is_sample;
        self.data.add(other.data);
        self.notices.extend(other.notices);
    }
}

/// What the experiments of a paper gave: what reports are made of.
#[derive(Debug, Default)]
pub struct Results {
    /// On what.
    pub sets: Vec<MeasuredSet>,
    /// Every figure of every experiment.
    pub figures: Vec<Figure>,
    /// Sizes of chunks, where a paper draws them.
    pub distributions: Vec<Distribution>,
    /// What the paper says, and whether it holds.
    pub claims: Vec<Claim>,
    /// What could not be run, and why; what was run otherwise than in the paper.
    pub notes: Vec<String>,
}

/// What to run of a paper whose data lies in memory as a whole.
#[derive(Debug, Clone)]
pub struct Plan {
    /// On what.
    pub sets: Vec<GivenSet>,
    /// Names of the experiments.
    pub experiments: Vec<&'static str>,
    /// At most so many bytes of each data set.
    pub size_bytes: u64,
    /// So many bytes are made up where a paper does that.
    pub synthetic_bytes: u64,
    /// Timed passes of each approach.
    pub runs: usize,
    /// Most threads that run.
    pub threads: usize,
}

impl Plan {
    /// Whether an experiment is wanted.
    pub fn has(&self, experiment: &str) -> bool {
        self.experiments.contains(&experiment)
    }
}

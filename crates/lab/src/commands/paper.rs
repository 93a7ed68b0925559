//! `onefold-lab paper NAME`: the experiments of a paper, beside its own figures.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};

use super::output::{self, Forms, STDOUT, partial, tell};
use crate::chunk::measuring::Effort;
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::names;
use crate::paper::fastcdc::experiments::{EXPERIMENTS, Experiment};
use crate::paper::fastcdc::published::DATA_SETS;
use crate::paper::fastcdc::{self, GivenSet, Plan};
use crate::progress::Progress;
use crate::report::paper_report::PaperReport;
use crate::report::{paper_page, paper_table};
use crate::units::parse_bytes;

/// Stands for every experiment.
const ALL: &str = "all";

/// Which paper.
#[derive(Debug, Args)]
pub struct PaperArguments {
    /// The paper
    #[command(subcommand)]
    pub paper: Paper,
}

/// The papers.
#[derive(Debug, Subcommand)]
pub enum Paper {
    /// Xia et al., The Design of Fast Content-Defined Chunking (TPDS 2020)
    Fastcdc(Box<FastcdcArguments>),
}

const AFTER_HELP: &str = "\
Data sets are called as in the paper: TAR, LNX, WEB, VMA, VMB, RDB, SYN. One given twice is made
of both paths. `onefold-lab dataset` builds some that are like them.
Experiments are fig5, fig9, table3, fig10, fig11, fig12, fig13, table4, table5, table6, fig14,
fig15. Without data, only fig5 and table6 can be run.

Exit codes:
    0  done
    1  failed
    2  wrong usage
    3  measured, but some files could not be read
  130  interrupted";

/// What to run.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct FastcdcArguments {
    /// A data set: one of the paper's names, and the file or directory that stands for it
    #[arg(long, value_name = "NAME=PATH")]
    pub data: Vec<String>,
    /// Experiments, with commas between them, or `all`
    #[arg(long, value_name = "LIST", default_value = ALL)]
    pub experiments: String,
    /// Take no more of each data set
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_bytes)]
    pub size: u64,
    /// Timed passes; the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub runs: u16,
    /// Most data that is held in memory at a time
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    pub memory: u64,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the figures as CSV, or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub csv: Option<PathBuf>,
    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Show no progress and no notes
    #[arg(short, long)]
    pub quiet: bool,
}

impl PaperArguments {
    /// Whether everything is to be JSON.
    pub fn is_json(&self) -> bool {
        match &self.paper {
            Paper::Fastcdc(arguments) => arguments.json,
        }
    }
}

/// Runs the experiments of a paper.
pub fn run(arguments: &PaperArguments) -> anyhow::Result<()> {
    match &arguments.paper {
        Paper::Fastcdc(arguments) => run_fastcdc(arguments),
    }
}

fn run_fastcdc(arguments: &FastcdcArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    let plan = plan(arguments)?;
    let mut progress = Progress::new(arguments.quiet);
    let outcome = fastcdc::run(&plan, &mut progress)?;
    progress.finish();
    for set in &outcome.sets {
        tell(&set.notices, &progress);
    }
    let mut report = PaperReport::new(&plan, outcome);
    report.seconds = started.elapsed().as_secs_f64();
    let forms = Forms {
        html: arguments.html.as_ref(),
        csv: arguments.csv.as_ref(),
        is_json: arguments.json,
    };
    output::write(
        &forms,
        &report,
        paper_page::page,
        paper_table::csv,
        paper_table::text,
    )?;
    match report.data_sets.iter().map(|set| set.data.failed).sum() {
        0 => Ok(()),
        failed => Err(partial(failed, arguments.json)),
    }
}

/// What the command line asks for.
fn plan(arguments: &FastcdcArguments) -> Result<Plan, Failure> {
    if arguments.runs == 0 {
        return Err(Failure::usage(
            "--runs 0 is impossible: time needs at least one pass",
        ));
    }
    if arguments.size == 0 {
        return Err(Failure::usage("--size 0 leaves nothing to measure"));
    }
    Ok(Plan {
        sets: sets(&arguments.data)?,
        experiments: experiments(&arguments.experiments)?,
        size: arguments.size,
        effort: Effort {
            runs: usize::from(arguments.runs),
            memory_bytes: arguments.memory,
            is_dedup_wanted: true,
        },
    })
}

/// `NAME=PATH` each.
fn sets(data: &[String]) -> Result<Vec<GivenSet>, Failure> {
    let mut sets: Vec<GivenSet> = Vec::new();
    for text in data {
        let hint = "data sets are given as in --data TAR=path/to/tars";
        let Some((given, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
            return Err(Failure::usage(format!("--data {text} has no path")).with_hint(hint));
        };
        let known = DATA_SETS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(given));
        let Some((name, _)) = known else {
            let names: Vec<&str> = DATA_SETS.iter().map(|(name, _)| *name).collect();
            return Err(
                Failure::usage(format!("the paper has no data set '{given}'"))
                    .with_hint(format!("it has {}", names.join(", "))),
            );
        };
        let path = PathBuf::from(path);
        if let Err(error) = path.metadata() {
            let shown = names::escaped(&path);
            return Err(
                Failure::new(FAILED, format!("cannot read {shown}: {error}")).with_hint(hint),
            );
        }
        match sets.iter_mut().find(|set| set.name == *name) {
            Some(set) => set.paths.push(path),
            None => sets.push(GivenSet {
                name,
                paths: vec![path],
            }),
        }
    }
    Ok(sets)
}

fn experiments(list: &str) -> Result<Vec<Experiment>, Failure> {
    if list == ALL {
        return Ok(EXPERIMENTS.iter().map(|info| info.experiment).collect());
    }
    let find = |name: &str| {
        Experiment::from_name(name).ok_or_else(|| {
            let names: Vec<&str> = EXPERIMENTS.iter().map(|info| info.name).collect();
            Failure::usage(format!("the paper has no experiment '{name}' here"))
                .with_hint(format!("they are {}, or {ALL}", names.join(", ")))
        })
    };
    let mut experiments = Vec::new();
    for name in list.split(',').map(str::trim) {
        let experiment = find(name)?;
        if !experiments.contains(&experiment) {
            experiments.push(experiment);
        }
    }
    if experiments == [Experiment::Fig15] {
        return Err(Failure::usage(
            "fig15 can't be run: the pipeline that it measures is not here yet",
        ));
    }
    Ok(experiments)
}

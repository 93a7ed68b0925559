//! `onefold-lab paper NAME`: the experiments of a paper, beside its own figures.

mod volumes;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};

use volumes::{THINDEDUP_HELP, ThinDedupArguments, WOJ_HELP, WojArguments, run_thindedup, run_woj};

use super::output::{self, Forms, STDOUT, partial, tell};
use crate::chunk::measuring::Effort;
use crate::failure::{FAILED, Failure};
use crate::interrupt;
use crate::names;
use crate::paper::about::{About, ExperimentInfo};
use crate::paper::fastcdc::experiments::Experiment;
use crate::paper::macs::{ContainerForm, Scheme};
use crate::paper::p_dedupe::FingerprintKind;
use crate::paper::{self, GivenSet, Results, fastcdc, macs, odess, p_dedupe, rapidcdc, ss_cdc};
use crate::progress::Progress;
use crate::report::paper_report::{PaperReport, PaperSettings};
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
    #[command(after_help = FASTCDC_HELP)]
    Fastcdc(Box<FastcdcArguments>),
    /// Ni, ch. 2: chunking in two stages, with SIMD and threads
    #[command(name = "ss-cdc", after_help = SS_CDC_HELP)]
    SsCdc(Box<LoadedArguments>),
    /// Ni, ch. 3: chunking by the sizes that followed before
    #[command(after_help = RAPIDCDC_HELP)]
    Rapidcdc(Box<LoadedArguments>),
    /// Xia et al., P-Dedupe: segments that are cut at the same time, and the system around them
    #[command(name = "p-dedupe", after_help = P_DEDUPE_HELP)]
    PDedupe(Box<PDedupeArguments>),
    /// Mo et al., MACS: what containers are filled with, and how many a restore reads
    #[command(after_help = MACS_HELP)]
    Macs(Box<MacsArguments>),
    /// Xia et al., Odess: how well similar chunks are found, how fast, and what that saves
    #[command(after_help = ODESS_HELP)]
    Odess(Box<LoadedArguments>),
    /// Ni, ch. 5: a volume's metadata inside compressed blocks of data
    #[command(after_help = THINDEDUP_HELP)]
    Thindedup(Box<ThinDedupArguments>),
    /// Ni, ch. 4: a journal whose blocks are written once
    #[command(after_help = WOJ_HELP)]
    Woj(Box<WojArguments>),
}

const FASTCDC_HELP: &str = concat!(
    "\
Data sets are called as in the paper: TAR, LNX, WEB, VMA, VMB, RDB, SYN. One given twice is made
of both paths. `onefold-lab dataset` builds some that are like them.
Experiments are fig5, fig9, table3, fig10, fig11, fig12, fig13, table4, table5, table6, fig14,
fig15. Without data, only fig5 and table6 can be run.
",
    exit_codes!()
);

const SS_CDC_HELP: &str = concat!(
    "\
Data sets may have any name; with one of the paper's (Cassandra, Redis, Debian, Linux-src, Neo4j,
Wordpress, Nodejs) its figures stand beside. One given twice is made of both paths.
Experiments are fig2.1, table2.1, fig2.5, fig2.6, fig2.7, fig2.8, fig2.9, fig2.10. Without data, only
table2.1 can be run, on random numbers.
",
    exit_codes!()
);

const RAPIDCDC_HELP: &str = concat!(
    "\
Data sets may have any name; with one of the paper's (Google-news, Linux-tar, Cassandra, Redis,
Debian, Neo4j, Wordpress, Nodejs) its figures stand beside. One given twice is made of both paths.
Experiments are fig3.1, fig3.2, fig3.3, fig3.7, fig3.8, fig3.9, fig3.10, fig3.11, fig3.12, fig3.13,
fig3.14, fig3.15, fig3.16, fig3.17. Without data, fig3.7 to fig3.11 are run, on files that are made up.
",
    exit_codes!()
);

const P_DEDUPE_HELP: &str = concat!(
    "\
Data sets may have any name; with one of the paper's (SciLab, GCC, Linux, Centos, Fedora, Freebsd,
Redis, Bench) its figures stand beside. One given twice is made of both paths.
Experiments are fig9, fig10, fig11, fig12, fig13, fig14, eq8, table3, table5, table6, fold, stages, eq6,
cores. Whole systems run with the paper's threads (4 + 4, Gear 3 + 5) and with those of --threads. Without
data, only eq8 can be run, on random numbers, and eq6, with the paper's own times.
",
    exit_codes!()
);

const MACS_HELP: &str = concat!(
    "\
Data sets may have any name; with one of the paper's (Linux, GCC, GDB) it stands beside. A data set is a
directory, and each entry of it a backup: a directory of files, or a file. One given twice is made of both.
Experiments are fig1, fig2, fig3, fig6, regions, fig7, versions, caches, fig8, rewriting, fig9, lookups.
Containers are written to the scratch directory: three to six times the distinct bytes of a data set, which
are gone at the end.
",
    exit_codes!()
);

const ODESS_HELP: &str = concat!(
    "\
Data sets may have any name; with one of the paper's (TAR, LNX, RDB, SYN, VMA, VMB) its figures stand
beside. One given twice is made of both paths. The paper's LNX is tarred.
Experiments are fig6, fig7, fig11, fig12, fig13, fig14, fig16-21, fig22, table3, fig23, stages. Without
data, fig7 and fig11 to fig14 are run, on chunks that are made up: so much for each modification.
",
    exit_codes!()
);

/// What all papers are asked.
#[derive(Debug, Args)]
pub struct CommonArguments {
    /// A data set: its name, and the file or directory that stands for it
    #[arg(long, alias = "trace", value_name = "NAME=PATH")]
    pub data: Vec<String>,
    /// Experiments, with commas between them, or `all`
    #[arg(long, value_name = "LIST", default_value = ALL)]
    pub experiments: String,
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

/// What to run of the FastCDC paper.
#[derive(Debug, Args)]
pub struct FastcdcArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// Take no more of each data set
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_bytes)]
    pub size: u64,
    /// Timed passes; the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub runs: u16,
    /// Most data that is held in memory at a time
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    pub memory: u64,
}

/// What to run of a paper whose data lies in memory as a whole.
#[derive(Debug, Args)]
pub struct LoadedArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// Take no more of each data set, which is held in memory
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = parse_bytes)]
    pub size: u64,
    /// Make up so much where the paper does: random numbers, or ten versions together
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub synthetic: Option<u64>,
    /// Timed passes; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: u16,
    /// Most threads that run; as many as there are cores, unless given
    #[arg(long, value_name = "N")]
    pub threads: Option<u16>,
}

/// What to run of the P-Dedupe paper.
#[derive(Debug, Args)]
pub struct PDedupeArguments {
    #[command(flatten)]
    pub loaded: LoadedArguments,
    /// What tells chunks apart in whole systems
    #[arg(long, value_name = "NAME", value_enum, default_value_t)]
    pub fingerprint: FingerprintKind,
}

/// What to run of the MACS paper.
#[derive(Debug, Args)]
pub struct MacsArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// Take no more of each data set, of which one version at a time is held in memory
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    pub size: u64,
    /// Most threads that cut and fingerprint; as many as there are cores, unless given
    #[arg(long, value_name = "N")]
    pub threads: Option<u16>,
    /// Where containers lie while it runs; the system's place for temporary files, unless given
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// The form of the containers
    #[arg(long, value_name = "NAME", value_enum, default_value_t)]
    pub form: ContainerForm,
    /// The container schemes, with commas between them; all of them, unless given
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub schemes: Vec<Scheme>,
}

impl PaperArguments {
    /// Whether everything is to be JSON.
    pub fn is_json(&self) -> bool {
        match &self.paper {
            Paper::Fastcdc(arguments) => arguments.common.json,
            Paper::SsCdc(arguments) | Paper::Rapidcdc(arguments) | Paper::Odess(arguments) => {
                arguments.common.json
            }
            Paper::PDedupe(arguments) => arguments.loaded.common.json,
            Paper::Macs(arguments) => arguments.common.json,
            Paper::Thindedup(arguments) => arguments.common.json,
            Paper::Woj(arguments) => arguments.common.json,
        }
    }
}

/// Runs the experiments of a paper.
pub fn run(arguments: &PaperArguments) -> anyhow::Result<()> {
    match &arguments.paper {
        Paper::Fastcdc(arguments) => run_fastcdc(arguments),
        Paper::SsCdc(arguments) => run_loaded(arguments, &ss_cdc::ABOUT, None, ss_cdc::run),
        Paper::Rapidcdc(arguments) => run_loaded(arguments, &rapidcdc::ABOUT, None, rapidcdc::run),
        Paper::PDedupe(arguments) => {
            let kind = arguments.fingerprint;
            let run =
                |plan: &paper::Plan, progress: &mut Progress| p_dedupe::run(plan, kind, progress);
            run_loaded(&arguments.loaded, &p_dedupe::ABOUT, Some(kind.name()), run)
        }
        Paper::Macs(arguments) => run_macs(arguments),
        Paper::Odess(arguments) => run_loaded(arguments, &odess::ABOUT, None, odess::run),
        Paper::Thindedup(arguments) => run_thindedup(arguments),
        Paper::Woj(arguments) => run_woj(arguments),
    }
}

fn run_fastcdc(arguments: &FastcdcArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    refuse_nothing(arguments.runs, arguments.size)?;
    let names = experiments(&fastcdc::ABOUT, &arguments.common.experiments)?;
    if names == ["fig15"] {
        return Err(Failure::usage(
            "fig15 can't be run: the pipeline that it measures is not here yet",
        )
        .into());
    }
    let plan = fastcdc::Plan {
        sets: sets(&fastcdc::ABOUT, &arguments.common.data, true)?,
        experiments: names
            .iter()
            .filter_map(|name| Experiment::from_name(name))
            .collect(),
        size: arguments.size,
        effort: Effort {
            runs: usize::from(arguments.runs),
            memory_bytes: arguments.memory,
            is_dedup_wanted: true,
        },
    };
    let mut progress = Progress::new(arguments.common.quiet);
    let results = fastcdc::run(&plan, &mut progress)?.results(&plan);
    let settings = PaperSettings {
        experiments: names,
        runs: plan.effort.runs as u64,
        threads: 1,
        memory_bytes: plan.effort.memory_bytes,
        size_bytes: plan.size,
        synthetic_bytes: 0,
        fingerprint: None,
    };
    let common = &arguments.common;
    finish(
        common,
        &fastcdc::ABOUT,
        settings,
        results,
        started,
        &progress,
    )
}

/// Runs a paper whose data lies in memory as a whole.
fn run_loaded(
    arguments: &LoadedArguments,
    about: &'static About,
    fingerprint: Option<&'static str>,
    run: impl Fn(&paper::Plan, &mut Progress) -> anyhow::Result<Results>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    let synthetic_bytes = arguments.synthetic.unwrap_or(about.synthetic_bytes);
    refuse_nothing(arguments.runs, arguments.size.min(synthetic_bytes))?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plan = paper::Plan {
        sets: sets(about, &arguments.common.data, false)?,
        experiments: experiments(about, &arguments.common.experiments)?,
        size_bytes: arguments.size,
        synthetic_bytes,
        runs: usize::from(arguments.runs),
        threads: arguments.threads.map_or(cores, usize::from).max(1),
    };
    let mut progress = Progress::new(arguments.common.quiet);
    let results = run(&plan, &mut progress)?;
    let largest = results.sets.iter().map(|set| set.data.bytes).max();
    let settings = PaperSettings {
        experiments: plan.experiments.clone(),
        runs: plan.runs as u64,
        threads: plan.threads as u64,
        memory_bytes: largest.unwrap_or(0),
        size_bytes: plan.size_bytes,
        synthetic_bytes: plan.synthetic_bytes,
        fingerprint,
    };
    finish(
        &arguments.common,
        about,
        settings,
        results,
        started,
        &progress,
    )
}

fn run_macs(arguments: &MacsArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    refuse_nothing(1, arguments.size)?;
    let about = &macs::ABOUT;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let plan = paper::Plan {
        sets: sets(about, &arguments.common.data, false)?,
        experiments: experiments(about, &arguments.common.experiments)?,
        size_bytes: arguments.size,
        synthetic_bytes: 0,
        runs: 1,
        threads: arguments.threads.map_or(cores, usize::from).max(1),
    };
    let options = macs::Options {
        scratch: arguments.scratch.clone().unwrap_or_else(std::env::temp_dir),
        form: arguments.form,
        schemes: match arguments.schemes.as_slice() {
            [] => Scheme::ALL.to_vec(),
            some => Scheme::ALL
                .into_iter()
                .filter(|one| some.contains(one))
                .collect(),
        },
    };
    let mut progress = Progress::new(arguments.common.quiet);
    let (results, memory_bytes) = macs::run(&plan, &options, &mut progress)?;
    let settings = PaperSettings {
        experiments: plan.experiments.clone(),
        runs: 1,
        threads: plan.threads as u64,
        memory_bytes,
        size_bytes: plan.size_bytes,
        synthetic_bytes: 0,
        fingerprint: Some("sha1"),
    };
    finish(
        &arguments.common,
        about,
        settings,
        results,
        started,
        &progress,
    )
}

fn refuse_nothing(runs: u16, size: u64) -> Result<(), Failure> {
    if runs == 0 {
        return Err(Failure::usage(
            "--runs 0 is impossible: time needs at least one pass",
        ));
    }
    if size == 0 {
        return Err(Failure::usage("a size of 0 leaves nothing to measure"));
    }
    Ok(())
}

/// Writes the report of what experiments gave, in every form that is wanted.
fn finish(
    arguments: &CommonArguments,
    about: &'static About,
    settings: PaperSettings,
    results: Results,
    started: Instant,
    progress: &Progress,
) -> anyhow::Result<()> {
    progress.finish();
    for set in &results.sets {
        tell(&set.notices, progress);
    }
    let mut report = PaperReport::new(about, settings, results);
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

/// `NAME=PATH` each: the paper's names, or, where they need not be, any.
fn sets(about: &About, data: &[String], is_strict: bool) -> Result<Vec<GivenSet>, Failure> {
    let mut sets: Vec<GivenSet> = Vec::new();
    for text in data {
        let (example, _) = about.data_sets[0];
        let hint = format!("data sets are given as in --data {example}=path/to/files");
        let given = text.split_once('=');
        let Some((given, path)) = given.filter(|(name, path)| !name.is_empty() && !path.is_empty())
        else {
            return Err(Failure::usage(format!("--data {text} has no path")).with_hint(hint));
        };
        let mut names = about.data_sets.iter().map(|(name, _)| *name);
        let known = names.find(|name| name.eq_ignore_ascii_case(given));
        if known.is_none() && is_strict {
            let names: Vec<&str> = about.data_sets.iter().map(|(name, _)| *name).collect();
            return Err(
                Failure::usage(format!("the paper has no data set '{given}'"))
                    .with_hint(format!("it has {}", names.join(", "))),
            );
        }
        let name = known.unwrap_or(given);
        let path = PathBuf::from(path);
        if let Err(error) = path.metadata() {
            let shown = names::escaped(&path);
            return Err(
                Failure::new(FAILED, format!("cannot read {shown}: {error}")).with_hint(hint),
            );
        }
        match sets.iter_mut().find(|set| set.name == name) {
            Some(set) => set.paths.push(path),
            None => sets.push(GivenSet {
                name: name.to_owned(),
                paths: vec![path],
            }),
        }
    }
    Ok(sets)
}

/// The names of the experiments that are asked for, each once.
fn experiments(about: &About, list: &str) -> Result<Vec<&'static str>, Failure> {
    let all = || {
        about
            .experiments
            .iter()
            .map(|info: &ExperimentInfo| info.name)
    };
    if list == ALL {
        return Ok(all().collect());
    }
    let mut experiments = Vec::new();
    for name in list.split(',').map(str::trim) {
        let found = about.experiment(name).ok_or_else(|| {
            let names: Vec<&str> = all().collect();
            Failure::usage(format!("the paper has no experiment '{name}' here"))
                .with_hint(format!("they are {}, or {ALL}", names.join(", ")))
        })?;
        if !experiments.contains(&found.name) {
            experiments.push(found.name);
        }
    }
    Ok(experiments)
}

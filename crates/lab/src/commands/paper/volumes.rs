//! `onefold-lab paper woj` and `thindedup`: the experiments that run on volumes.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use super::{CommonArguments, experiments, finish, refuse_nothing, sets};
use crate::failure::Failure;
use crate::interrupt;
use crate::paper::{self, thindedup, woj};
use crate::progress::Progress;
use crate::report::paper_report::PaperSettings;
use crate::units::parse_bytes;

pub(super) const WOJ_HELP: &str = concat!(
    "\
Data sets may have any name; with one of the paper's (GCC-code, DVD-image, GCC-clone) it stands beside. One
given twice is made of both paths. They are copied, twice, to a new file system (fig4.8).
Experiments are table4.1, fig4.2, fig4.3, fig4.4, fig4.5, fig4.6, fig4.7, fig4.8, memory, synthetic. Those from
fig4.2 to fig4.8 run on a real ext4, which needs root, /dev/fuse, a loop device and mkfs.ext4; without them the
others run. Blocks and flushes are counted; times are those of a model of the paper's SSDs, but for Table 4.1 and
what is called wall.
",
    exit_codes!()
);

pub(super) const THINDEDUP_HELP: &str = concat!(
    "\
A data set is a block trace in the format of FIU or of Microsoft Research Cambridge, not compressed; one given
twice is made of both files, in order (--trace is --data). With one of the paper's names (WebVM-4, WebVM-8,
WebVM-12, Homes-11, Homes-12, Homes-13, Mail-1, Mail-2, Mail-5, HM, RSRCH, SRC) it stands beside. Without
traces, writes are made up with the paper's ratios.
Experiments are counts, fig5.3, fig5.4, fig5.5, latency, fig5.6, fig5.7, fig5.8, fig5.9, fig5.10, fig5.11,
fig5.12, commits, speed. Blocks, flushes and seeks are counted; times are those of a model of the paper's
disks, but for speed, which is this machine's.
",
    exit_codes!()
);

/// What to run of the WOJ paper.
#[derive(Debug, Args)]
pub struct WojArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// What each job writes, and most that is copied of a data set
    #[arg(long, value_name = "SIZE", default_value = "128M", value_parser = parse_bytes)]
    pub size: u64,
    /// An eighth of that
    #[arg(long)]
    pub quick: bool,
    /// The journal of the file systems
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_bytes)]
    pub journal: u64,
    /// The disks that they are on
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_bytes)]
    pub disk: u64,
    /// Where volumes lie while it runs; in memory, unless given
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Only approaches that look blocks up by one of these, with commas between them, beside no dedup; `prefix64` is
    /// what the paper published, and unsafe [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = woj::FINGERPRINTS)]
    pub fingerprint: Vec<String>,
    /// Timed passes of each hash function; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: u16,
}

/// What to run of the ThinDedup paper.
#[derive(Debug, Args)]
pub struct ThinDedupArguments {
    #[command(flatten)]
    pub common: CommonArguments,
    /// Blocks that each run writes, and most that are taken of a trace
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub writes: u64,
    /// A tenth of the writes
    #[arg(long)]
    pub quick: bool,
    /// Timed passes of `speed`; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub runs: u16,
    /// Most runs at the same time; as many as there are cores, unless given
    #[arg(long, value_name = "N")]
    pub threads: Option<u16>,
    /// For `speed`: also write to a file in this directory, which is gone at the end
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
}

pub(super) fn run_woj(arguments: &WojArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    let about = &woj::ABOUT;
    let size_bytes = if arguments.quick {
        arguments.size / 8
    } else {
        arguments.size
    };
    refuse_nothing(arguments.runs, size_bytes)?;
    if arguments.journal < 4 << 20 || arguments.disk / 4 < arguments.journal.max(arguments.size) {
        return Err(Failure::usage(
            "a journal has at least 4 MiB, and the disk four times its size and that of a job",
        )
        .into());
    }
    let plan = paper::Plan {
        sets: sets(about, &arguments.common.data, false)?,
        experiments: experiments(about, &arguments.common.experiments)?,
        size_bytes,
        synthetic_bytes: size_bytes,
        runs: usize::from(arguments.runs),
        threads: 1,
    };
    let options = woj::Options {
        disk_bytes: arguments.disk.next_multiple_of(4096),
        journal_bytes: arguments.journal,
        work: arguments.work.clone(),
        fingerprints: arguments.fingerprint.clone(),
    };
    let mut progress = Progress::new(arguments.common.quiet);
    let results = woj::run(&plan, &options, &mut progress)?;
    let settings = PaperSettings {
        experiments: plan.experiments.clone(),
        runs: plan.runs as u64,
        threads: 1,
        memory_bytes: 0,
        size_bytes,
        synthetic_bytes: plan.synthetic_bytes,
        fingerprint: None,
    };
    let common = &arguments.common;
    finish(common, about, settings, results, started, &progress)
}

pub(super) fn run_thindedup(arguments: &ThinDedupArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    interrupt::catch()?;
    let writes = match arguments.quick {
        true => arguments.writes / 10,
        false => arguments.writes,
    };
    refuse_nothing(arguments.runs, writes)?;
    let about = &thindedup::ABOUT;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let bytes = writes.saturating_mul(volume::trace::BLOCK_BYTES);
    let plan = paper::Plan {
        sets: sets(about, &arguments.common.data, false)?,
        experiments: experiments(about, &arguments.common.experiments)?,
        size_bytes: bytes,
        synthetic_bytes: bytes,
        runs: usize::from(arguments.runs),
        threads: arguments.threads.map_or(cores, usize::from).max(1),
    };
    let options = thindedup::Options {
        writes,
        scratch: arguments.scratch.clone(),
    };
    let mut progress = Progress::new(arguments.common.quiet);
    let results = thindedup::run(&plan, &options, &mut progress)?;
    let settings = PaperSettings {
        experiments: plan.experiments.clone(),
        runs: plan.runs as u64,
        threads: plan.threads as u64,
        memory_bytes: 0,
        size_bytes: bytes,
        synthetic_bytes: bytes,
        fingerprint: Some("blake3"),
    };
    let common = &arguments.common;
    finish(common, about, settings, results, started, &progress)
}

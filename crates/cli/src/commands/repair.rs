//! `onefold repair`: makes good what can be made good.

mod containers;
mod remaps;
mod snapshots;

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use repository::{RepairError, RepairIndexOptions, RepairIndexReport};

use crate::events::{Event, Summary};
use crate::exit_code::ExitCode;
use crate::interrupt::{self, unless_interrupted};
use crate::progress_display::{Items, watch};
use crate::session::Session;
use crate::units;

/// Make good what can be made good, and say what is lost
///
/// Nothing that can be read is lost by a repair, and each may be stopped, or die, at any moment: run it again. With
/// --dry-run each says what it would do. What to do when, by the message of `check`: docs/guide/repair.md.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold repair remaps                 in this order, where everything may be damaged
  onefold repair index
  onefold repair containers
  onefold repair snapshots --dry-run")]
pub struct RepairArguments {
    #[command(subcommand)]
    what: What,
}

/// What is to be repaired.
#[derive(Debug, Subcommand)]
enum What {
    Index(RepairIndexArguments),
    Snapshots(snapshots::RepairSnapshotsArguments),
    Containers(containers::RepairContainersArguments),
    Remaps(remaps::RepairRemapsArguments),
}

/// What an interrupted repair leaves.
const NO_WORSE: &str = "nothing is worse than before; run it again";

/// A report, or the interruption.
fn unless_stopped<T>(outcome: Result<T, RepairError>) -> anyhow::Result<T> {
    match outcome {
        Err(RepairError::Interrupted) => Err(interrupt::interrupted(NO_WORSE)),
        outcome => Ok(outcome?),
    }
}

/// Build the index again from the containers
///
/// The index says which chunks are stored, so that backups need not store them again; restores do
/// not use it. What is lost or damaged of it is built again from the containers, which say what is
/// in them. No data is read, and nothing but the index is changed. The exit code is 13 if a
/// container can't be read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onefold repair index
  onefold repair index --dry-run
  onefold repair index --all")]
struct RepairIndexArguments {
    /// Build all of it again, also what is sound, or sealed with a secret that is not at hand
    #[arg(long)]
    all: bool,

    /// Only say what would be done
    #[arg(long, short = 'n')]
    dry_run: bool,
}

pub fn run(session: &Session, arguments: &RepairArguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Index(arguments) => run_index(session, arguments),
        What::Snapshots(arguments) => snapshots::run(session, arguments),
        What::Containers(arguments) => containers::run(session, arguments),
        What::Remaps(arguments) => remaps::run(session, arguments),
    }
}

fn run_index(session: &Session, arguments: &RepairIndexArguments) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let repository = session.open()?;
    let options = RepairIndexOptions {
        all: arguments.all,
        dry_run: arguments.dry_run,
    };
    let mut errors = 0;
    let report = watch(&session.output, Items::Containers, |progress| {
        let report = repository.repair_index(options, progress);
        errors = progress.errors.load(std::sync::atomic::Ordering::Relaxed);
        report
    })?;
    let rest = "the index is no worse than before; run it again";
    let report = unless_interrupted(report, rest)?;
    if interrupt::is_requested() {
        return Err(interrupt::interrupted(rest));
    }
    tell(session, &report, options.dry_run, started.elapsed())?;
    Ok(if errors > 0 {
        ExitCode::Damaged
    } else {
        ExitCode::Done
    })
}

fn tell(
    session: &Session,
    report: &RepairIndexReport,
    is_dry_run: bool,
    elapsed: Duration,
) -> anyhow::Result<()> {
    session
        .output
        .event(&Event::Summary(Box::new(Summary::RepairIndex {
            runs: report.runs,
            runs_damaged: report.runs_damaged,
            runs_replaced: report.runs_replaced,
            containers: report.containers,
            containers_indexed: report.containers_indexed,
            containers_unreadable: report.containers_unreadable,
            chunks_indexed: report.chunks_indexed,
            is_dry_run,
            seconds: elapsed.as_secs_f64(),
        })))?;
    session.output.summary(&text(report, is_dry_run, elapsed))?;
    Ok(())
}

fn text(report: &RepairIndexReport, is_dry_run: bool, elapsed: Duration) -> String {
    let counted = units::counted;
    let runs = counted(report.runs, "index run was", "index runs were");
    let found = format!("{runs} there, {} damaged.", report.runs_damaged);
    let mut text = if report.runs_replaced == 0 && report.containers_indexed == 0 {
        format!("{found} The index has all that can be read: nothing to do.")
    } else {
        format!(
            "{found} {} {} with {} into the index{} in {}.",
            if is_dry_run { "Would take" } else { "Took" },
            counted(report.containers_indexed, "container", "containers"),
            counted(report.chunks_indexed, "chunk", "chunks"),
            match report.runs_replaced {
                0 => String::new(),
                runs => format!(", in the place of {}", counted(runs, "run", "runs")),
            },
            units::duration(elapsed),
        )
    };
    if report.containers_unreadable > 0 {
        text.push_str(&format!(
            "\n{} can't be read: `onefold check` says what that means.",
            counted(report.containers_unreadable, "container", "containers"),
        ));
    }
    text
}
